// What kernels ask of the chip, as far as the module says it.

#include "bytes.h"
#include "contain.h"

#include "llvm-c/Types.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

struct Sizes {
  uint64_t shared = 0;
  uint64_t parameters = 0;
};

bool isKernel(const Function &function) {
  return function.getCallingConv() == CallingConv::PTX_Kernel ||
         function.getCallingConv() == CallingConv::AMDGPU_KERNEL;
}

/// Bytes of a kernel's parameters, each at a multiple of its alignment.
uint64_t parametersOf(const Function &kernel) {
  const DataLayout &layout = kernel.getParent()->getDataLayout();
  uint64_t end = 0;
  for (const Argument &argument : kernel.args()) {
    Type *passed = argument.getParamByValType();
    Type *type = passed ? passed : argument.getType();
    Align alignment = layout.getABITypeAlign(type);
    if (passed)
      alignment = std::max(alignment, argument.getParamAlign().valueOrOne());
    end = alignTo(end, alignment) + layout.getTypeAllocSize(type);
  }
  return end;
}

/// Adds a variable to the kernels that reach it.
void addTo(MapVector<const Function *, Sizes> &kernels, const GlobalVariable &variable) {
  const DataLayout &layout = variable.getParent()->getDataLayout();
  uint64_t size = layout.getTypeAllocSize(variable.getValueType());
  Align alignment = variable.getAlign().value_or(layout.getPrefTypeAlign(variable.getValueType()));
  SmallPtrSet<const Value *, 16> visited;
  SmallVector<const Value *, 16> worklist{&variable};
  while (!worklist.empty()) {
    const Value *value = worklist.pop_back_val();
    if (!visited.insert(value).second)
      continue;
    if (const auto *function = dyn_cast<Function>(value); function && isKernel(*function)) {
      Sizes &sizes = kernels[function];
      sizes.shared = alignTo(sizes.shared, alignment) + size;
      continue;
    }
    for (const User *user : value->users())
      if (const auto *instruction = dyn_cast<Instruction>(user))
        worklist.push_back(instruction->getFunction());
      else
        worklist.push_back(user);
  }
}

} // namespace

extern "C" {

/// Reports every kernel with the bytes of the variables in its workgroup's memory, and of its parameters.
GpulowerOutcome gpulowerKernelSizes(LLVMModuleRef moduleRef, void *closure,
                                    void (*report)(void *closure, GpulowerBytes kernel, uint64_t shared,
                                                   uint64_t parameters)) {
  MapVector<const Function *, Sizes> kernels;
  GpulowerOutcome outcome = gpulower::contain([&]() -> std::string {
    const Module &module = *unwrap(moduleRef);
    for (const Function &function : module)
      if (isKernel(function) && !function.isDeclaration())
        kernels[&function].parameters = parametersOf(function);
    for (const GlobalVariable &variable : module.globals())
      if (variable.getAddressSpace() == 3 && !variable.isDeclaration() && variable.getValueType()->isSized())
        addTo(kernels, variable);
    return "";
  });
  if (outcome.kind == GpulowerOk)
    for (const auto &[kernel, sizes] : kernels)
      report(closure, gpulower::toBytes(kernel->getName()), sizes.shared, sizes.parameters);
  return outcome;
}
}
