// Structures in loops and across blocks, as the tensor cores' results are: 128 floats. LLVM's instruction selection
// copies all values of a structure of another block, or of a phi, for each value that is taken out: a third of its time
// for a matrix product (LLVM 22, `SelectionDAGBuilder::getValue`). So phis are of the values, which are taken out where
// the structure is made.

#include "code_generation.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace {

/// A structure that is used whole is put together again, one value after the other, all of which instruction selection
/// copies for each.
constexpr unsigned mostParts = 256;

/// Whether there may be no place behind the value that is reached by it alone, as there is none behind an invoke.
bool isTerminator(const Value *value) {
  auto *instruction = dyn_cast<Instruction>(value);
  return instruction && instruction->isTerminator();
}

/// A phi of each value of a structure.
class PhiOfParts {
public:
  explicit PhiOfParts(PHINode &phi) : phi(phi), type(cast<StructType>(phi.getType())) {}

  /// One that is a variable of a debugger stays: LLVM says where its members are.
  static bool isFor(const PHINode &phi) {
    auto *type = dyn_cast<StructType>(phi.getType());
    return type && type->getNumElements() <= mostParts && !phi.isUsedByMetadata() &&
           all_of(type->elements(), [](Type *part) { return part->isSingleValueType(); }) &&
           any_of(phi.users(), [](const User *user) { return isa<ExtractValueInst, PHINode>(user); }) &&
           none_of(phi.incoming_values(), isTerminator);
  }

  void replace() {
    SmallVector<PHINode *> parts;
    for (Type *part : type->elements())
      parts.push_back(PHINode::Create(part, phi.getNumIncomingValues(), "", phi.getIterator()));
    for (auto [block, value] : zip(phi.blocks(), phi.incoming_values()))
      for (auto [index, part] : enumerate(parts))
        part->addIncoming(partOf(value, index), block);
    replaceExtractions(parts);
    if (!phi.use_empty())
      phi.replaceAllUsesWith(putTogether(parts));
    SmallVector<WeakTrackingVH> incoming(phi.incoming_values());
    phi.eraseFromParent();
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(incoming);
  }

private:
  /// A value that is defined where `whole` is.
  Value *partOf(Value *whole, unsigned index) {
    if (Value *found = FindInsertedValue(whole, index))
      return found;
    Value *&made = extractions[{whole, index}];
    if (!made)
      made = ExtractValueInst::Create(whole, index, "", behind(whole));
    return made;
  }

  BasicBlock::iterator behind(Value *value) {
    if (auto *instruction = dyn_cast<Instruction>(value))
      if (std::optional<BasicBlock::iterator> place = instruction->getInsertionPointAfterDef())
        return *place;
    return phi.getFunction()->getEntryBlock().getFirstInsertionPt();
  }

  void replaceExtractions(ArrayRef<PHINode *> parts) {
    for (User *user : make_early_inc_range(phi.users()))
      if (auto *extraction = dyn_cast<ExtractValueInst>(user)) {
        extraction->replaceAllUsesWith(parts[extraction->getIndices().front()]);
        extraction->eraseFromParent();
      }
  }

  Value *putTogether(ArrayRef<PHINode *> parts) {
    Value *whole = PoisonValue::get(type);
    BasicBlock::iterator place = phi.getParent()->getFirstInsertionPt();
    for (auto [index, part] : enumerate(parts))
      whole = InsertValueInst::Create(whole, part, index, "", place);
    return whole;
  }

  PHINode &phi;
  StructType *type;
  DenseMap<std::pair<Value *, unsigned>, Value *> extractions;
};

/// Moves an extraction to its structure.
void extractWhereMade(ExtractValueInst &extraction) {
  auto *made = dyn_cast<Instruction>(extraction.getAggregateOperand());
  if (!made || isTerminator(made) || made->getParent() == extraction.getParent())
    return;
  if (std::optional<BasicBlock::iterator> place = made->getInsertionPointAfterDef())
    extraction.moveBefore(*place);
}

} // namespace

void gpulower::takeStructuresApart(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    // A value that is not reached may be made of itself.
    removeUnreachableBlocks(function);
    // One that is replaced may have been the last use of another.
    SmallVector<WeakTrackingVH> phis;
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis())
        if (PhiOfParts::isFor(phi))
          phis.push_back(&phi);
    for (Value *phi : phis)
      if (phi)
        PhiOfParts(*cast<PHINode>(phi)).replace();
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *extraction = dyn_cast<ExtractValueInst>(&instruction))
        extractWhereMade(*extraction);
  }
}
