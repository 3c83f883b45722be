/* gpulower for C++17: gpulower.h with values that free themselves. Header-only: what crosses to the library is C.
 *
 * A call that makes no sense throws gpulower::Error, and so does Result::value() of a call that failed. */
#ifndef GPULOWER_HPP
#define GPULOWER_HPP

#include "gpulower.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpulower {

/// What went wrong, or deserves attention.
struct Diagnostic {
  /// As in docs/errors.md; empty for a warning.
  std::string code;
  std::string stage;
  std::string module;
  std::string target;
  std::vector<std::string> kernels;
  std::string file;
  /// From 1 on; 0 where they are not known.
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  /// The place in MLIR's syntax; empty where it is not known.
  std::string location;
  /// The input that it is about, or GPULOWER_NO_INPUT.
  std::size_t input = GPULOWER_NO_INPUT;
  /// What is wrong, without the place and the rest.
  std::string message;
  /// All of it.
  std::string text;

  explicit Diagnostic(const gpulower_error *error) {
    auto owned = [](const char *lent) { return std::string(lent ? lent : ""); };
    code = owned(gpulower_error_code(error));
    stage = owned(gpulower_error_stage(error));
    module = owned(gpulower_error_module(error));
    target = owned(gpulower_error_target(error));
    for (std::size_t i = 0; i < gpulower_error_kernel_count(error); ++i)
      kernels.push_back(owned(gpulower_error_kernel(error, i)));
    file = owned(gpulower_error_file(error));
    location = owned(gpulower_error_location(error));
    line = gpulower_error_line(error);
    column = gpulower_error_column(error);
    input = gpulower_error_input(error);
    message = owned(gpulower_error_message(error));
    text = owned(gpulower_error_text(error));
  }
};

/// A call that failed, or makes no sense.
class Error : public std::runtime_error {
public:
  explicit Error(std::vector<Diagnostic> diagnostics)
      : std::runtime_error(words(diagnostics)), all(std::move(diagnostics)) {}
  const std::vector<Diagnostic> &diagnostics() const { return all; }

private:
  std::vector<Diagnostic> all;

  static std::string words(const std::vector<Diagnostic> &diagnostics) {
    std::string text;
    for (const Diagnostic &one : diagnostics)
      text += (text.empty() ? "" : "\n") + one.text;
    return text;
  }
};

namespace detail {
template <typename Handle, gpulower_status (*Free)(Handle *)> struct Freed {
  void operator()(Handle *handle) const { Free(handle); }
};
template <typename Handle, gpulower_status (*Free)(Handle *)>
using Owned = std::unique_ptr<Handle, Freed<Handle, Free>>;

/// Calls a function whose last argument is an error, and throws that.
template <typename Function, typename... Arguments> void checked(Function function, Arguments... arguments) {
  gpulower_error *error = nullptr;
  if (function(arguments..., &error) == GPULOWER_STATUS_OK)
    return;
  Owned<gpulower_error, gpulower_error_free> owned(error);
  throw Error({Diagnostic(error)});
}
} // namespace detail

/// What a compiler is made with: gpulower_config_set has the keys.
class Config {
public:
  using Progress = std::function<void(const gpulower_progress &)>;

  Config() {
    gpulower_config *made = nullptr;
    detail::checked(gpulower_config_create, &made);
    handle.reset(made);
  }

  Config &set(const std::string &key, const std::string &value) {
    detail::checked(gpulower_config_set, handle.get(), key.c_str(), value.c_str());
    return *this;
  }

  /// Calls `function` with every step, from any thread. What it throws is dropped.
  Config &progress(Progress function) {
    callback = std::make_shared<Progress>(std::move(function));
    gpulower_progress_callback call = [](void *data, const gpulower_progress *event) {
      try {
        (*static_cast<Progress *>(data))(*event);
      } catch (...) {
      }
    };
    detail::checked(gpulower_config_set_progress, handle.get(), call, static_cast<void *>(callback.get()));
    return *this;
  }

private:
  friend class Compiler;
  detail::Owned<gpulower_config, gpulower_config_free> handle;
  std::shared_ptr<Progress> callback;
};

/// What is to be done: gpulower_request_set has the keys.
class Request {
public:
  Request() {
    gpulower_request *made = nullptr;
    detail::checked(gpulower_request_create, &made);
    handle.reset(made);
  }

  Request &set(const std::string &key, const std::string &value) {
    detail::checked(gpulower_request_set, handle.get(), key.c_str(), value.c_str());
    return *this;
  }
  Request &input(const std::string &name, std::string_view bytes) {
    return add(gpulower_request_add_input, name, bytes);
  }
  Request &library(const std::string &name, std::string_view bytes) {
    return add(gpulower_request_add_library, name, bytes);
  }
  Request &object(const std::string &name, std::string_view bytes) {
    return add(gpulower_request_add_object, name, bytes);
  }
  /// An image for `pack`; an empty target is that of the image itself.
  Request &image(const std::string &name, std::string_view bytes, const std::string &target = "") {
    const char *stated = target.empty() ? nullptr : target.c_str();
    detail::checked(gpulower_request_add_image, handle.get(), name.c_str(), stated, data(bytes), bytes.size());
    return *this;
  }

private:
  friend class Compiler;
  detail::Owned<gpulower_request, gpulower_request_free> handle;

  static const std::uint8_t *data(std::string_view bytes) {
    return reinterpret_cast<const std::uint8_t *>(bytes.data());
  }
  template <typename Function> Request &add(Function function, const std::string &name, std::string_view bytes) {
    detail::checked(function, handle.get(), name.c_str(), data(bytes), bytes.size());
    return *this;
  }
};

/// Ends calls, from any thread.
class Cancellation {
public:
  Cancellation() {
    gpulower_cancellation *made = nullptr;
    detail::checked(gpulower_cancellation_create, &made);
    handle.reset(made);
  }
  void cancel() { gpulower_cancellation_cancel(handle.get()); }

private:
  friend class Compiler;
  detail::Owned<gpulower_cancellation, gpulower_cancellation_free> handle;
};

/// Something that was made. The bytes are valid as long as the result.
struct Artifact {
  std::string_view bytes;
  std::string module;
  std::string format;
  std::string targets;
  std::size_t input;
};

/// What a call came to.
class Result {
public:
  bool ok() const { return gpulower_result_error_count(handle.get()) == 0; }

  /// This result, or everything that failed as an exception.
  const Result &value() const & {
    if (!ok())
      throw Error(errors());
    return *this;
  }
  Result value() && {
    if (!ok())
      throw Error(errors());
    return std::move(*this);
  }

  std::vector<Artifact> artifacts() const {
    std::vector<Artifact> all;
    for (std::size_t i = 0; i < gpulower_result_artifact_count(handle.get()); ++i) {
      const std::uint8_t *bytes = nullptr;
      std::size_t length = 0;
      gpulower_result_artifact_bytes(handle.get(), i, &bytes, &length);
      all.push_back({std::string_view(reinterpret_cast<const char *>(bytes), length),
                     gpulower_result_artifact_module(handle.get(), i), gpulower_result_artifact_format(handle.get(), i),
                     gpulower_result_artifact_targets(handle.get(), i),
                     gpulower_result_artifact_input(handle.get(), i)});
    }
    return all;
  }
  std::vector<Diagnostic> errors() const {
    std::vector<Diagnostic> all;
    for (std::size_t i = 0; i < gpulower_result_error_count(handle.get()); ++i)
      all.emplace_back(gpulower_result_error(handle.get(), i));
    return all;
  }
  std::vector<Diagnostic> warnings() const {
    std::vector<Diagnostic> all;
    for (std::size_t i = 0; i < gpulower_result_warning_count(handle.get()); ++i)
      all.emplace_back(gpulower_result_warning(handle.get(), i));
    return all;
  }
  /// The report, a JSON object.
  std::string report() const { return gpulower_result_report(handle.get()); }

private:
  friend class Compiler;
  explicit Result(gpulower_result *result) : handle(result) {}
  detail::Owned<gpulower_result, gpulower_result_free> handle;
};

/// Compiles, links, packs and exports, from any thread. Make one and keep it.
class Compiler {
public:
  explicit Compiler(const Config &config = Config()) : callback(config.callback) {
    gpulower_compiler *made = nullptr;
    detail::checked(gpulower_compiler_create, config.handle.get(), &made);
    handle.reset(made);
  }

  Result compile(const Request &request, const Cancellation *cancellation = nullptr) const {
    return run(gpulower_compile, request, token(cancellation));
  }
  Result link(const Request &request, const Cancellation *cancellation = nullptr) const {
    return run(gpulower_link, request, token(cancellation));
  }
  Result exportProgram(const Request &request, const Cancellation *cancellation = nullptr) const {
    return run(gpulower_export, request, token(cancellation));
  }
  Result runPass(const Request &request, const Cancellation *cancellation = nullptr) const {
    return run(gpulower_run_pass, request, token(cancellation));
  }
  Result plan(const Request &request) const { return run(gpulower_plan, request); }
  Result pack(const Request &request) const { return run(gpulower_pack, request); }

  /// What is in a file, and what `devices` load of it.
  static Result inspect(const std::string &name, std::string_view bytes, const std::string &devices = "") {
    gpulower_result *result = nullptr;
    gpulower_inspect(name.c_str(), Request::data(bytes), bytes.size(), devices.c_str(), &result);
    return Result(result);
  }

private:
  // Freed after the compiler.
  std::shared_ptr<Config::Progress> callback;
  detail::Owned<gpulower_compiler, gpulower_compiler_free> handle;

  static const gpulower_cancellation *token(const Cancellation *cancellation) {
    return cancellation ? cancellation->handle.get() : nullptr;
  }
  template <typename Function, typename... More>
  Result run(Function function, const Request &request, More... more) const {
    gpulower_result *result = nullptr;
    function(handle.get(), request.handle.get(), more..., &result);
    return Result(result);
  }
};

} // namespace gpulower

#endif /* GPULOWER_HPP */
