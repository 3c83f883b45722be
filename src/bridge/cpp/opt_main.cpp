// The driver of `gpulower-opt`: mlir-opt with everything upstream registers.
//
// Beyond mlir-opt, it shows the passes that run inside of ours, leaves out options that were not given when it prints a
// pipeline, says of a pipeline that cannot be read where that is, and hands what it writes to the standard error output to
// the program, which knows what may reach a terminal.

#include "inner_passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include "bytes.h"

#include <csignal>
#include <unistd.h>

using namespace mlir;
using llvm::StringRef;

/// Whether LLVM has an option of this name. Those of the driver come with the driver.
extern "C" bool gpulowerIsLlvmOption(GpulowerBytes name) {
  return llvm::cl::getRegisteredOptions().contains(gpulower::toStringRef(name));
}

/// Registers in `registry` every dialect, extension and translation that lowering `gpu` modules may need.
extern "C" void gpulowerRegisterDialects(void *registry) {
  auto &target = *static_cast<DialectRegistry *>(registry);
  registerAllDialects(target);
  registerAllExtensions(target);
  registerAllToLLVMIRTranslations(target);
  registerAllFromLLVMIRTranslations(target);
}

/// Writes text that may have anything in it to the standard error output, or bytes that are to be written as they are.
typedef void (*GpulowerWriteError)(GpulowerBytes text, bool asItIs);

namespace {

GpulowerWriteError writeError = nullptr;

/// Whether a signal is being handled: nothing may allocate or wait then.
volatile sig_atomic_t isCrashing = 0;

/// The standard error output of LLVM and MLIR, by way of the program: names, places and lines of the input are in it.
class ErrorOutput final : public llvm::raw_fd_ostream {
public:
  ErrorOutput() : raw_fd_ostream(STDERR_FILENO, /*shouldClose=*/false, /*unbuffered=*/true) {}

  raw_ostream &changeColor(enum Colors colour, bool bold, bool background) override {
    return colour == Colors::SAVEDCOLOR ? asItIs(llvm::sys::Process::OutputBold(background))
                                        : asItIs(llvm::sys::Process::OutputColor(char(colour), bold, background));
  }
  raw_ostream &resetColor() override { return asItIs(llvm::sys::Process::ResetColor()); }
  raw_ostream &reverseColor() override { return asItIs(llvm::sys::Process::OutputReverse()); }

private:
  void write_impl(const char *text, size_t size) override {
    if (!isCrashing)
      return writeError({text, size}, false);
    while (size > 0) {
      ssize_t written = ::write(STDERR_FILENO, text, size);
      if (written <= 0)
        return;
      text += written;
      size -= written;
    }
  }

  raw_ostream &asItIs(const char *code) {
    if (colors_enabled() && code)
      writeError(gpulower::toBytes(code), true);
    return *this;
  }
};

/// Has `llvm::errs()` be an ErrorOutput. LLVM has no other way in: MLIR's driver makes the handlers of diagnostics itself.
void takeErrorOutput() {
  static_assert(sizeof(ErrorOutput) == sizeof(llvm::raw_fd_ostream));
  llvm::raw_fd_ostream &errors = llvm::errs();
  errors.~raw_fd_ostream();
  new (&errors) ErrorOutput();
}

/// Whether pipelines are to be printed.
bool dumps = false;

/// The options of one pass, without those that have no value.
std::string givenOptions(StringRef options) {
  std::string given;
  size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i <= options.size(); ++i) {
    char character = i < options.size() ? options[i] : ' ';
    if (quote)
      quote = character == quote ? 0 : quote;
    else if (character == '"' || character == '\'')
      quote = character;
    else if (character == '{')
      ++depth;
    else if (character == '}')
      --depth;
    if ((character != ' ' || depth > 0 || quote) && i < options.size())
      continue;
    StringRef option = options.slice(begin, i);
    begin = i + 1;
    if (option.empty() || option.ends_with("="))
      continue;
    given += (given.empty() ? "" : " ") + option.str();
  }
  return given.empty() ? "" : "{" + given + "}";
}

/// The text of a pipeline, in which options of our passes that were not given are left out: empty is what they are by default.
std::string withoutEmptyOptions(StringRef pipeline) {
  std::string text;
  while (true) {
    size_t start = pipeline.find("gpulower-");
    size_t open = start == StringRef::npos ? start : pipeline.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyz0123456789-", start);
    if (open == StringRef::npos || pipeline[open] != '{') {
      size_t end = open == StringRef::npos ? pipeline.size() : open;
      text += pipeline.take_front(end);
      pipeline = pipeline.drop_front(end);
      if (pipeline.empty())
        return text;
      continue;
    }
    size_t close = open;
    int depth = 0;
    do
      depth += (pipeline[close] == '{') - (pipeline[close] == '}');
    while (depth > 0 && ++close < pipeline.size());
    text += pipeline.take_front(open);
    text += givenOptions(pipeline.slice(open + 1, close));
    pipeline = pipeline.drop_front(std::min(close + 1, pipeline.size()));
  }
}

void dump(PassManager &manager) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  manager.printAsTextualPipeline(stream, /*pretty=*/true);
  llvm::errs() << "Pass Manager with " << manager.size() << " passes:\n" << withoutEmptyOptions(text) << "\n\n";
}

/// What is asked for of the pass manager counts for those inside of passes.
void prepare(PassManager &manager) {
  if (dumps)
    dump(manager);
  (void)applyPassManagerCLOptions(manager);
}

/// The passes and pipelines with the names that are nearest to one that does not exist.
std::string didYouMean(StringRef unknown) {
  std::vector<std::pair<unsigned, std::string>> near;
  for (auto &entry : llvm::cl::getRegisteredOptions()) {
    StringRef name = entry.first;
    unsigned distance = name.edit_distance(unknown);
    if (distance <= std::max<size_t>(1, unknown.size() / 4) && (PassInfo::lookup(name) || PassPipelineInfo::lookup(name)))
      near.push_back({distance, name.str()});
  }
  if (near.empty())
    return "";
  llvm::sort(near);
  return " (did you mean '" + near.front().second + "'?)";
}

/// The text between the first pair of `quote`s after `before`.
StringRef quoted(StringRef text, StringRef before, char quote) {
  size_t start = text.find(before);
  return start == StringRef::npos ? "" : text.drop_front(start + before.size()).take_until([=](char c) { return c == quote; });
}

/// A line without what would control a terminal, as long as it was: a caret below points into it.
std::string aligned(StringRef line) {
  std::string shown = line.str();
  std::replace_if(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return shown;
}

/// Shows a word of the command line, and a place in it.
void point(StringRef word, size_t at) {
  llvm::errs() << aligned(word) << "\n";
  llvm::errs().indent(at) << "^\n";
}

/// Where a value stands among options, and is no part of another.
size_t findValue(StringRef options, StringRef value) {
  auto isPart = [&](size_t at) { return at < options.size() && (llvm::isAlnum(options[at]) || options[at] == '_'); };
  size_t at = value.empty() ? StringRef::npos : options.find(value);
  while (at != StringRef::npos && ((at > 0 && isPart(at - 1)) || isPart(at + value.size())))
    at = options.find(value, at + 1);
  return at;
}

/// Shows the word of the command line in which `text` stands behind a character that begins an option, or anywhere.
bool show(llvm::ArrayRef<const char *> words, StringRef text, StringRef offset, bool anywhere) {
  for (StringRef word : words.drop_front())
    for (size_t at = word.find(text); at != StringRef::npos; at = word.find(text, at + 1)) {
      if (!anywhere && (at == 0 || !StringRef("= {,").contains(word[at - 1])))
        continue;
      point(word, at + offset.size());
      return true;
    }
  return false;
}

/// Says what is wrong with the pipeline, and where in the command line that is.
void explain(StringRef message, llvm::ArrayRef<const char *> words) {
  message.consume_front("<Pass-Options-Parser>: ");
  StringRef what = message.split('\n').first;
  StringRef unregistered = "' does not refer to a registered pass";
  if (size_t end = what.find(unregistered); end != StringRef::npos) {
    StringRef name = what.take_front(end).rsplit('\'').second;
    llvm::errs() << "gpulower-opt: error: '" << name << unregistered << " or pass pipeline" << didYouMean(name) << "\n";
    show(words, name, "", /*anywhere=*/true);
    return;
  }
  if (size_t parser = what.find(": error: "); parser != StringRef::npos)
    what = what.drop_front(parser + 9);
  llvm::errs() << "gpulower-opt: error: " << what << "\n";
  StringRef pass = quoted(message, "failed to add `", '`'), options = quoted(message, "with options `", '`');
  StringRef option = quoted(what, "option '", '\'');
  if (option.empty())
    option = quoted(what, "no such option ", ' ').trim();
  // The option of the pass that is to blame, or what is wrong of its value, as far as they are named.
  StringRef value = option.empty() ? quoted(what, "'", '\'') : "";
  size_t its = option.empty() ? findValue(options, value) : (" " + options).str().find((" " + option + "=").str());
  std::string before = (pass + "{" + options.take_front(its)).str();
  if (!pass.empty() && its != StringRef::npos && show(words, (pass + "{" + options).str(), before, true))
    return;
  if (!option.empty() && show(words, (option + "=").str(), "", false))
    return;
  for (StringRef word : words.drop_front())
    if (size_t at = findValue(word, value); at != StringRef::npos)
      return point(word, at);
  if (!pass.empty())
    show(words, pass, "", true);
}

/// Builds the pipeline that the command line asks for.
LogicalResult setUp(const MlirOptMainConfig &config, PassManager &manager, llvm::ArrayRef<const char *> words) {
  std::string message;
  LogicalResult result = failure();
  {
    ScopedDiagnosticHandler handler(manager.getContext(),
                                    [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
    result = config.setupPassPipeline(manager);
  }
  if (!message.empty())
    explain(message, words);
  if (succeeded(result) && dumps)
    dump(manager);
  return result;
}

LogicalResult run(int argc, char **argv, DialectRegistry &registry) {
  llvm::ArrayRef<const char *> words(argv, argc);
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "gpulower-opt: MLIR's optimizer driver with gpulower's passes\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return MlirOptMain(argc, argv, input, output, registry);
  llvm::InitLLVM initialized(argc, argv);
  MlirOptMainConfig ours = config;
  ours.setPassPipelineSetupFn([&](PassManager &manager) { return setUp(config, manager, words); });
  std::string problem;
  auto from = openInputFile(input, &problem);
  auto to = from ? openOutputFile(output, &problem) : nullptr;
  if (!to) {
    llvm::errs() << problem << "\n";
    return failure();
  }
  // Where a run fails, LLVM removes what it wrote to. A link or a device is not its own: root would lose /dev/stdout.
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(output, status, /*follow=*/false) || !llvm::sys::fs::is_regular_file(status)) {
    to->keep();
    llvm::sys::DontRemoveFileOnSignal(output);
  }
  if (failed(MlirOptMain(to->os(), std::move(from), registry, ours)))
    return failure();
  to->keep();
  return success();
}

} // namespace

/// Runs the driver on a command line; returns the exit status. Passes of ours have to be registered before.
extern "C" int gpulowerOptMain(int argc, char **argv, GpulowerWriteError write) {
  writeError = write;
  takeErrorOutput();
  llvm::sys::AddSignalHandler([](void *) { isCrashing = 1; }, nullptr);
  registerAllPasses();
  DialectRegistry registry;
  gpulowerRegisterDialects(&registry);
  // It would print the pipeline itself, with everything empty.
  std::vector<char *> words;
  for (char *word : llvm::ArrayRef<char *>(argv, argc))
    if (StringRef(word).ltrim('-') == "dump-pass-pipeline" && word[0] == '-')
      dumps = true;
    else
      words.push_back(word);
  words.push_back(nullptr);
  gpulower::prepareInnerPasses = prepare;
  return asMainReturnCode(run(int(words.size()) - 1, words.data(), registry));
}
