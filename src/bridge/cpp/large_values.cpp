// Values that LLVM's code generators for GPUs crash on, or take minutes over.

#include "bytes.h"

#include "llvm-c/Types.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

extern "C" {

/// The most that a value may have.
struct GpulowerValueLimits {
  uint64_t elements;
  uint64_t members;
  uint64_t bits;
};

enum GpulowerLargeValue : int {
  GpulowerNone = 0,
  GpulowerVector = 1,
  GpulowerAggregate = 2,
  GpulowerInteger = 3,
  /// Of a type that no GPU computes with: LLVM has no size for it, or says that code for it cannot be reached.
  GpulowerForeign = 4,
};
}

namespace {

/// What a type has, at most, of each kind; of nested aggregates the members of all levels are one product or sum.
struct Extent {
  uint64_t elements = 0;
  uint64_t members = 1;
  uint64_t bits = 0;
  bool foreign = false;

  void include(const Extent &other) {
    foreign |= other.foreign;
    elements = std::max(elements, other.elements);
    bits = std::max(bits, other.bits);
  }
};

/// Measures types, each once: structures may share their members, and stand for more than can be walked.
class Measure {
public:
  const Extent &of(Type *type) {
    auto known = extents.find(type);
    if (known != extents.end())
      return *known->second;
    auto extent = std::make_unique<Extent>();
    if (auto *vector = dyn_cast<FixedVectorType>(type)) {
      extent->include(of(vector->getElementType()));
      extent->elements = vector->getNumElements();
    } else if (auto *array = dyn_cast<ArrayType>(type)) {
      const Extent &element = of(array->getElementType());
      extent->include(element);
      extent->members =
          SaturatingMultiply(array->getNumElements(), element.members);
    } else if (auto *structure = dyn_cast<StructType>(type)) {
      extent->members = 0;
      for (Type *member : structure->elements()) {
        const Extent &inner = of(member);
        extent->include(inner);
        extent->members = SaturatingAdd(extent->members, inner.members);
      }
    } else if (auto *integer = dyn_cast<IntegerType>(type)) {
      extent->bits = integer->getBitWidth();
    } else {
      extent->foreign = type->isX86_FP80Ty() || type->isPPC_FP128Ty() ||
                        type->isTargetExtTy();
    }
    return *extents.try_emplace(type, std::move(extent)).first->second;
  }

private:
  DenseMap<Type *, std::unique_ptr<Extent>> extents;
};

} // namespace

extern "C" {

/// The first function with an argument, a result or an operand that is too large, or of another processor; its name lives
/// as long as the module.
/// `count` is how many elements, members or bits there are.
GpulowerLargeValue gpulowerFindLargeValue(LLVMModuleRef module,
                                          const GpulowerValueLimits *limits,
                                          GpulowerBytes *function,
                                          uint64_t *count) {
  Measure measure;
  auto check = [&](Type *type) {
    const Extent &extent = measure.of(type);
    if (extent.elements > limits->elements)
      return *count = extent.elements, GpulowerVector;
    if (extent.members > limits->members)
      return *count = extent.members, GpulowerAggregate;
    if (extent.bits > limits->bits)
      return *count = extent.bits, GpulowerInteger;
    return extent.foreign ? GpulowerForeign : GpulowerNone;
  };
  for (const Function &one : *unwrap(module)) {
    if (one.isDeclaration())
      continue;
    GpulowerLargeValue found = GpulowerNone;
    for (const Argument &argument : one.args())
      if (found == GpulowerNone)
        found = check(argument.getType());
    for (const Instruction &instruction : instructions(one)) {
      if (found != GpulowerNone)
        break;
      found = check(instruction.getType());
      for (const Value *operand : instruction.operands())
        if (found == GpulowerNone)
          found = check(operand->getType());
    }
    if (found != GpulowerNone) {
      *function = GpulowerBytes{one.getName().data(), one.getName().size()};
      return found;
    }
  }
  return GpulowerNone;
}

} // extern "C"
