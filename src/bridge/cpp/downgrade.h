// A module of this LLVM is changed until an older release can read it: removed is what is only a hint, replaced what can be
// said otherwise, refused the rest. What a release knows is not decided here: the caller is asked, name by name.
#ifndef GPULOWER_BRIDGE_DOWNGRADE_H
#define GPULOWER_BRIDGE_DOWNGRADE_H

#include "bytes.h"
#include "contain.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

extern "C" {

/// What names are of; `Kind` of src/bridge/downgrade.rs.
enum GpulowerKind : int {
  GpulowerAddressSpace = 0,
  GpulowerAtomicOperation = 1,
  GpulowerAttribute = 2,
  GpulowerBundle = 3,
  GpulowerCallingConvention = 4,
  GpulowerConstruct = 5,
  GpulowerInstruction = 6,
  GpulowerIntrinsic = 7,
  GpulowerMetadata = 8,
};

struct GpulowerReader {
  void *closure;
  /// Whether the readers know the name.
  bool (*knows)(void *closure, GpulowerKind kind, GpulowerBytes name);
  /// Something that they do not know was refused, or left out although somebody may miss it.
  void (*report)(void *closure, bool refused, GpulowerKind kind,
                 GpulowerBytes name, GpulowerBytes place);
};
}

namespace gpulower {

/// Those who will read the module.
class Reader {
public:
  explicit Reader(const GpulowerReader &callbacks) : callbacks(callbacks) {}

  bool knows(GpulowerKind kind, llvm::StringRef name) const {
    return callbacks.knows(callbacks.closure, kind, bytes(name));
  }
  bool reads(llvm::StringRef construct) const {
    return knows(GpulowerConstruct, construct);
  }
  bool knowsIntrinsic(const llvm::Function &intrinsic) const;

  void refuse(GpulowerKind kind, llvm::StringRef name, const llvm::Value *place) {
    report(true, kind, name, place);
  }
  void leftOut(GpulowerKind kind, llvm::StringRef name, const llvm::Value *place) {
    report(false, kind, name, place);
  }

  /// An intrinsic of older releases, which this LLVM knows under another name or with another type.
  llvm::Function *olderIntrinsic(llvm::Module &module, llvm::StringRef name,
                                 llvm::FunctionType *type);
  bool isOlderIntrinsic(const llvm::Function &function) const {
    return olderIntrinsics.contains(&function);
  }

private:
  static GpulowerBytes bytes(llvm::StringRef text) {
    return GpulowerBytes{text.data(), text.size()};
  }
  void report(bool refused, GpulowerKind kind, llvm::StringRef name,
              const llvm::Value *place);

  const GpulowerReader &callbacks;
  llvm::DenseSet<const llvm::Function *> olderIntrinsics;
};

/// The calls of an intrinsic. They may be erased while they are gone through.
llvm::SmallVector<llvm::CallInst *> callsOf(llvm::Function &intrinsic);

/// Replaces a call and all its uses.
void replaceCall(llvm::CallInst &call, llvm::Value *result);

/// Intrinsics of every target: lifetimes, masked memory accesses, comparisons, functions of libm.
void rewriteIntrinsics(llvm::Module &module, Reader &reader);

/// Atomic operations that the readers do not have become loops of compare-and-swap.
void expandAtomics(llvm::Module &module, Reader &reader);

/// NVPTX: names of intrinsics, annotations of kernels, the order of memory accesses.
void rewriteNvptx(llvm::Module &module, Reader &reader);
void orderMemoryOnNvptx(llvm::Module &module, Reader &reader);

/// AMDGPU: intrinsics on words, the version of the code object.
void rewriteAmdgpu(llvm::Module &module, Reader &reader);

/// Constant expressions.
void rewriteConstants(llvm::Module &module, Reader &reader);

/// Flags of instructions, metadata, attributes: what says more about the program, but changes nothing. The last change, since
/// new intrinsics come with attributes.
void removeHints(llvm::Module &module, Reader &reader);

/// Refuses what is left and not known. Changes nothing.
void refuseUnknown(llvm::Module &module, Reader &reader);

} // namespace gpulower

#endif
