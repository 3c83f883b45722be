// One ELF link with lld inside this process. The caller holds the lock: lld has one context per process.

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>
#include <string>

LLD_HAS_DRIVER(elf)

// Returns lld's exit status in the low 8 bits, and bit 8 set when lld said that it cannot run again.
// `sink` receives everything lld printed, once.
extern "C" unsigned gpulowerLldLinkElf(const char *const *argv, size_t argc,
                                       void (*sink)(void *, const char *, size_t), void *context) {
  std::string text;
  llvm::raw_string_ostream out(text);
  // Without an enabled recovery context, lld's fatal() ends the process.
  llvm::CrashRecoveryContext::Enable();
  lld::Result result = lld::lldMain(llvm::ArrayRef<const char *>(argv, argc), out, out,
                                    {{lld::Gnu, &lld::elf::link}});
  // After a fatal error lld leaves its context behind, and the next link would assert on it.
  if (!result.canRunAgain && lld::hasContext())
    lld::CommonLinkerContext::destroy();
  llvm::CrashRecoveryContext::Disable();
  out.flush();
  sink(context, text.data(), text.size());
  return (static_cast<unsigned>(result.retCode) & 0xffu) | (result.canRunAgain ? 0u : 0x100u);
}
