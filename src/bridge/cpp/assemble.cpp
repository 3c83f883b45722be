// From assembly text to an object, as llvm-mc does it (llvm/tools/llvm-mc/llvm-mc.cpp).

#include "bytes.h"
#include "contain.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using gpulower::contain;
using gpulower::toStringRef;

extern "C" {

void gpulowerInitializeTargets();

/// Assembles `text`; `name` is for messages. Calls `sink` once, on success.
GpulowerOutcome gpulowerAssemble(GpulowerBytes tripleName, GpulowerBytes chip,
                                 GpulowerBytes features, GpulowerBytes name,
                                 GpulowerBytes text, void *closure,
                                 void (*sink)(void *, GpulowerBytes)) {
  gpulowerInitializeTargets();
  // Released on the ordinary path only: a fatal error leaks it with everything else.
  auto *buffer = new SmallString<0>();
  GpulowerOutcome outcome = contain([&]() -> std::string {
    std::string messages;
    Triple triple(toStringRef(tripleName));
    const Target *target = TargetRegistry::lookupTarget(triple, messages);
    if (!target)
      return messages;
    SourceMgr sources;
    sources.AddNewSourceBuffer(
        MemoryBuffer::getMemBufferCopy(toStringRef(text), toStringRef(name)),
        SMLoc());
    raw_string_ostream stream(messages);
    sources.setDiagHandler(
        [](const SMDiagnostic &diagnostic, void *context) {
          diagnostic.print(nullptr, *static_cast<raw_ostream *>(context),
                           /*ShowColors=*/false);
        },
        &stream);
    MCTargetOptions options;
    std::unique_ptr<MCRegisterInfo> registers(target->createMCRegInfo(triple));
    std::unique_ptr<MCAsmInfo> syntax(
        target->createMCAsmInfo(*registers, triple, options));
    std::unique_ptr<MCInstrInfo> instructions(target->createMCInstrInfo());
    std::unique_ptr<MCSubtargetInfo> subtarget(target->createMCSubtargetInfo(
        triple, toStringRef(chip), toStringRef(features)));
    MCContext context(triple, syntax.get(), registers.get(), subtarget.get(),
                      &sources, &options);
    std::unique_ptr<MCObjectFileInfo> file(
        target->createMCObjectFileInfo(context, /*PIC=*/true));
    context.setObjectFileInfo(file.get());
    // Of its own it prints them.
    context.setDiagnosticHandler([&](const SMDiagnostic &diagnostic, bool, const SourceMgr &,
                                     std::vector<const MDNode *> &) {
      diagnostic.print(nullptr, stream, /*ShowColors=*/false);
    });
    raw_svector_ostream output(*buffer);
    std::unique_ptr<MCAsmBackend> backend(
        target->createMCAsmBackend(*subtarget, *registers, options));
    std::unique_ptr<MCObjectWriter> writer =
        backend->createObjectWriter(output);
    std::unique_ptr<MCStreamer> streamer(target->createMCObjectStreamer(
        triple, context, std::move(backend), std::move(writer),
        std::unique_ptr<MCCodeEmitter>(
            target->createMCCodeEmitter(*instructions, context)),
        *subtarget));
    std::unique_ptr<MCAsmParser> parser(
        createMCAsmParser(sources, context, *streamer, *syntax));
    std::unique_ptr<MCTargetAsmParser> targetParser(target->createMCAsmParser(
        *subtarget, *parser, *instructions, options));
    if (!targetParser)
      return "LLVM was built without an assembler for this target";
    parser->setTargetParser(*targetParser);
    if (!parser->Run(/*NoInitialTextSection=*/false))
      return "";
    return messages.empty() ? "the assembler refused the text" : messages;
  });
  if (outcome.kind == GpulowerOk)
    sink(closure, GpulowerBytes{buffer->data(), buffer->size()});
  if (outcome.kind == GpulowerOk || outcome.kind == GpulowerRefused)
    delete buffer;
  return outcome;
}

} // extern "C"
