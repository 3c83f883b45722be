// Addresses that move by a number that is not known, in loops that are not interleaved, so that they take few
// registers.
//
// From address to address, in loops that were unrolled before: LLVM computes all addresses of an iteration from the
// first, with one, two and three times the number that they are apart by, and keeps each of these in two registers in
// all of the loop, so that ptxas has none left for loads that wait: a dot product of columns that clang unrolled
// took 2.2 of nvcc's time.
//
// By one offset, in loops over many arrays: LLVM moves an address for each, in two registers, by as many additions. The
// arguments of a kernel are in no register, since every instruction can name them, so that one offset is enough for all
// arrays.

#include "interleave.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace gpulower::interleave {
namespace {

/// So many addresses need two of those numbers.
constexpr unsigned fewest = 3;
/// Bytes that an iteration loads: for more, there are no registers beside them for addresses that are computed one
/// after the other.
constexpr uint64_t mostBytes = 32;

/// Instructions of a loop for each access. With more, other values hold the registers.
constexpr unsigned mostInstructionsOfAccess = 10;

/// Of fewer arrays, the addresses leave enough registers.
constexpr unsigned fewestArrays = 4;

/// Accesses of one block, each at the same distance from the one before.
struct Walk {
  const SCEV *last, *distance = nullptr;
  SmallVector<Instruction *, 4> accesses;
};

SmallVector<Walk, 4> findWalks(BasicBlock &block, Loop &loop, ScalarEvolution &evolution) {
  SmallVector<Walk, 4> walks;
  for (Instruction &access : block) {
    Value *pointer = getLoadStorePointerOperand(&access);
    auto *address = pointer ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(pointer)) : nullptr;
    if (!address || address->getLoop() != &loop || !address->isAffine())
      continue;
    auto joins = [&](Walk &walk) {
      const SCEV *distance = evolution.getMinusSCEV(address, walk.last);
      if (isa<SCEVCouldNotCompute, SCEVConstant>(distance) || !evolution.isLoopInvariant(distance, &loop) ||
          (walk.distance && walk.distance != distance))
        return false;
      walk.distance = distance;
      return true;
    };
    auto *walk = llvm::find_if(walks, joins);
    if (walk == walks.end()) {
      walks.push_back({address});
      walk = &walks.back();
    }
    walk->last = address;
    walk->accesses.push_back(&access);
  }
  return walks;
}

void setAddress(Instruction &access, Value *address) {
  bool isLoad = isa<LoadInst>(access);
  access.setOperand(isLoad ? LoadInst::getPointerOperandIndex() : StoreInst::getPointerOperandIndex(), address);
}

/// Whether there are registers for what the loads of an iteration wait for, and for their addresses.
bool leavesRegisters(const Loop &loop) {
  const DataLayout &layout = loop.getHeader()->getDataLayout();
  uint64_t bytes = 0;
  unsigned accesses = 0, instructions = 0;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &instruction : *block) {
      ++instructions;
      if (!isa<LoadInst, StoreInst>(instruction))
        continue;
      TypeSize size = layout.getTypeStoreSize(getLoadStoreType(&instruction));
      if (size.isScalable())
        return false;
      ++accesses;
      bytes += size;
    }
  return bytes <= mostBytes && instructions <= mostInstructionsOfAccess * accesses;
}

} // namespace

void forgetThatItIsNoPoison(const SCEV &number) {
  struct Arguments {
    bool follow(const SCEV *part) {
      if (auto *unknown = dyn_cast<SCEVUnknown>(part))
        if (auto *argument = dyn_cast<Argument>(unknown->getValue()))
          argument->removeAttr(Attribute::NoUndef);
      return true;
    }
    bool isDone() const { return false; }
  } arguments;
  visitAll(&number, arguments);
}

bool reachesAddressesInTurn(Loop &loop, ScalarEvolution &evolution) {
  // Each is compared with all before it. A loop with so many was most likely unrolled.
  constexpr unsigned mostAccesses = 64;
  unsigned accesses = 0;
  for (BasicBlock *block : loop.blocks())
    accesses += llvm::count_if(*block, [](Instruction &instruction) { return isa<LoadInst, StoreInst>(instruction); });
  if (accesses > mostAccesses)
    return true;
  return llvm::any_of(loop.blocks(), [&](BasicBlock *block) {
    return llvm::any_of(findWalks(*block, loop, evolution),
                        [](const Walk &walk) { return walk.accesses.size() >= fewest; });
  });
}

bool walkFromAddressToAddress(Loop &loop, LoopAnalyses analyses) {
  ScalarEvolution &evolution = analyses.evolution;
  BasicBlock *preheader = loop.getLoopPreheader(), *header = loop.getHeader(), *latch = loop.getLoopLatch();
  if (!preheader || !latch)
    return false;
  if (!leavesRegisters(loop))
    return false;
  SCEVExpander expander(evolution, "walk");
  Instruction *before = preheader->getTerminator();
  auto can = [&](const SCEV *value) { return expander.isSafeToExpandAt(value, before); };
  auto expand = [&](const SCEV *value) {
    return expander.expandCodeFor(value, value->getType(), before->getIterator());
  };
  bool changed = false;
  for (BasicBlock *block : loop.blocks()) {
    if (!analyses.dominators.dominates(block, latch))
      continue;
    for (const Walk &walk : findWalks(*block, loop, evolution)) {
      if (walk.accesses.size() < fewest)
        continue;
      Value *pointer = getLoadStorePointerOperand(walk.accesses.front());
      auto *first = cast<SCEVAddRecExpr>(evolution.getSCEV(pointer));
      // From the last one of an iteration to the first one of the next.
      const SCEV *back = evolution.getMinusSCEV(first->getPostIncExpr(evolution), walk.last);
      if (isa<SCEVCouldNotCompute>(back) || !can(first->getStart()) || !can(walk.distance) || !can(back))
        continue;
      forgetThatItIsNoPoison(*walk.distance);
      forgetThatItIsNoPoison(*back);
      Value *start = expand(first->getStart()), *distance = expand(walk.distance), *toNext = expand(back);
      PHINode *walked = PHINode::Create(start->getType(), 2, "walk", header->begin());
      Value *place = walked;
      for (Instruction *access : walk.accesses) {
        IRBuilder<> builder(access);
        // Of a number that is frozen there, LLVM does not see that it is the same in each iteration.
        if (access != walk.accesses.front())
          place = builder.CreatePtrAdd(place, builder.CreateFreeze(distance));
        setAddress(*access, place);
      }
      IRBuilder<> builder(latch->getTerminator());
      walked->addIncoming(start, preheader);
      walked->addIncoming(builder.CreatePtrAdd(place, builder.CreateFreeze(toNext)), latch);
      changed = true;
    }
  }
  if (changed)
    evolution.forgetLoop(&loop);
  return changed;
}

bool moveOneOffset(Loop &loop, LoopAnalyses analyses) {
  ScalarEvolution &evolution = analyses.evolution;
  BasicBlock *preheader = loop.getLoopPreheader(), *header = loop.getHeader(), *latch = loop.getLoopLatch();
  if (!preheader || !latch)
    return false;
  // Arguments of other functions are in registers.
  CallingConv::ID convention = header->getParent()->getCallingConv();
  if (convention != CallingConv::PTX_Kernel && convention != CallingConv::AMDGPU_KERNEL)
    return false;
  // What all these arrays have in common: where the loop begins, and how far an iteration is.
  const SCEV *start = nullptr, *step = nullptr;
  SmallVector<std::pair<Instruction *, Argument *>> accesses;
  SmallPtrSet<Argument *, 8> arrays;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &access : *block) {
      Value *pointer = getLoadStorePointerOperand(&access);
      auto *address = pointer ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(pointer)) : nullptr;
      if (!address || address->getLoop() != &loop || !address->isAffine())
        continue;
      auto *base = dyn_cast<SCEVUnknown>(evolution.getPointerBase(address));
      auto *array = base ? dyn_cast<Argument>(base->getValue()) : nullptr;
      const SCEV *offset = evolution.removePointerBase(address->getStart()),
                 *by = address->getStepRecurrence(evolution);
      if (!array || isa<SCEVConstant>(by) || (step && (by != step || offset != start)))
        continue;
      start = offset;
      step = by;
      accesses.push_back({&access, array});
      arrays.insert(array);
    }
  SCEVExpander expander(evolution, "offset");
  Instruction *before = preheader->getTerminator();
  if (arrays.size() < fewestArrays || !expander.isSafeToExpandAt(start, before) ||
      !expander.isSafeToExpandAt(step, before))
    return false;
  forgetThatItIsNoPoison(*step);
  Value *first = expander.expandCodeFor(start, start->getType(), before->getIterator());
  Value *by = expander.expandCodeFor(step, step->getType(), before->getIterator());
  PHINode *offset = PHINode::Create(first->getType(), 2, "offset", header->begin());
  offset->addIncoming(first, preheader);
  IRBuilder<> builder(latch->getTerminator());
  offset->addIncoming(builder.CreateAdd(offset, builder.CreateFreeze(by)), latch);
  for (auto [access, array] : accesses) {
    builder.SetInsertPoint(access);
    setAddress(*access, builder.CreatePtrAdd(array, offset));
  }
  evolution.forgetLoop(&loop);
  return true;
}

} // namespace gpulower::interleave
