// One ELF link with lld inside this process. Called from one thread alone: lld has one context per process.

#include "contain.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

LLD_HAS_DRIVER(elf)

namespace {

// Hides LLVM's registered command line options (`cl::opt`) while it lives.
//
// lld sets each of them back to its default when it starts (ResetAllOptionOccurrences), those of the program around us
// too: mlir-opt would print its result without `--mlir-print-debuginfo`. We give lld no `-mllvm`, so it needs none.
class HiddenCommandLineOptions {
public:
  HiddenCommandLineOptions() {
    for (llvm::cl::SubCommand *command : llvm::cl::getRegisteredSubcommands()) {
      hidden.emplace_back(command, llvm::cl::SubCommand());
      exchange(*command, hidden.back().second);
    }
  }

  ~HiddenCommandLineOptions() {
    for (auto &[command, options] : hidden) {
      exchange(*command, options);
      // What registered itself during the link stays registered.
      for (auto &[name, option] : options.OptionsMap)
        command->OptionsMap.try_emplace(name, option);
      command->PositionalOpts.append(options.PositionalOpts);
      command->SinkOpts.append(options.SinkOpts);
      if (!command->ConsumeAfterOpt)
        command->ConsumeAfterOpt = options.ConsumeAfterOpt;
    }
  }

  HiddenCommandLineOptions(const HiddenCommandLineOptions &) = delete;
  HiddenCommandLineOptions &operator=(const HiddenCommandLineOptions &) = delete;

private:
  static void exchange(llvm::cl::SubCommand &a, llvm::cl::SubCommand &b) {
    std::swap(a.PositionalOpts, b.PositionalOpts);
    std::swap(a.SinkOpts, b.SinkOpts);
    std::swap(a.OptionsMap, b.OptionsMap);
    std::swap(a.ConsumeAfterOpt, b.ConsumeAfterOpt);
  }

  std::vector<std::pair<llvm::cl::SubCommand *, llvm::cl::SubCommand>> hidden;
};

} // namespace

// Returns lld's exit status in the low 8 bits, and bit 8 set when lld said that it cannot run again.
// `sink` receives everything lld printed, once.
extern "C" unsigned gpulowerLldLinkElf(const char *const *argv, size_t argc,
                                       void (*sink)(void *, const char *, size_t), void *context) {
  std::string text;
  llvm::raw_string_ostream out(text);
  lld::Result result;
  {
    HiddenCommandLineOptions hidden;
    gpulower::prepareForCrashes();
    gpulower::SignalHandlers handlers;
    // Without an enabled recovery context, lld's fatal() ends the process. Its signal handlers are not wanted: they know
    // nothing of the crashes of other threads, and have no stack of their own. It stays enabled: to enable it for each link
    // puts them in place for a moment, in which the crash of another thread would be lost.
    llvm::CrashRecoveryContext::Enable();
    handlers.restore();
    GpulowerOutcome outcome = gpulower::contain([&]() -> std::string {
      result = lld::lldMain(llvm::ArrayRef<const char *>(argv, argc), out, out, {{lld::Gnu, &lld::elf::link}});
      // After a fatal error lld leaves its context behind, and the next link would assert on it.
      if (!result.canRunAgain && lld::hasContext())
        lld::CommonLinkerContext::destroy();
      return "";
    });
    if (outcome.kind != GpulowerOk) {
      result = {1, false};
      out << "lld crashed: " << (outcome.text ? outcome.text : gpulower::outOfMemory);
      std::free(outcome.text);
    }
    // A link that writes a file installs some that remove it.
    handlers.restore();
  }
  out.flush();
  sink(context, text.data(), text.size());
  return (static_cast<unsigned>(result.retCode) & 0xffu) | (result.canRunAgain ? 0u : 0x100u);
}
