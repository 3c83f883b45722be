// Variables of a thread, one of which is chosen by its address, as `a.key < b.key ? a : b` does with structures. As
// long as an address is chosen they stay in memory. LLVM's SROA undoes that where a load follows the choice at once,
// and neither a field's distance nor another choice is in between; of three choices, or of structures with several
// fields, something is. Here a number is chosen in place of the address, and what is read is chosen by the number: the
// addresses of all reads are known then. Where something is written to what is chosen, nothing is done.

#include "for_ptx.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace {

/// Places that one access may reach, which becomes an access of each; and that choices have in common.
constexpr unsigned mostPlaces = 8, mostPlacesOfAll = 64;

/// Of a copy from what is chosen, and of one read.
constexpr uint64_t mostBytes = 64, mostBytesOfRead = 16;

/// A variable, and a distance in bytes from its beginning.
using Place = std::pair<AllocaInst *, int64_t>;

bool isChoice(const Value *value) { return isa<PHINode, SelectInst>(value) && value->getType()->isPointerTy(); }

MutableArrayRef<Use> sidesOf(Instruction &choice) {
  MutableArrayRef<Use> operands(choice.op_begin(), choice.getNumOperands());
  return isa<SelectInst>(choice) ? operands.drop_front() : operands;
}

/// The value that a constant is added to, and the constant.
std::pair<Value *, int64_t> withoutDistance(Value *address, const DataLayout &layout) {
  APInt distance(layout.getIndexTypeSizeInBits(address->getType()), 0);
  Value *base = address->stripAndAccumulateConstantOffsets(layout, distance, /*AllowNonInbounds=*/true);
  return {base, distance.getSExtValue()};
}

/// Choices that are chosen from one another, the places that they choose from, and what is read and written there.
class Choices {
public:
  explicit Choices(Instruction &first) : layout(first.getDataLayout()) { members.insert(&first); }

  bool areUnderstood() {
    // Members are added on the way: others that the same variables are chosen by.
    for (size_t i = 0; i != members.size(); ++i)
      if (!llvm::all_of(sidesOf(*members[i]), [&](Use &side) { return addSide(*side); }) || !addUses(*members[i], 0))
        return false;
    auto isSame = [&](const Place &place) {
      return place.second == 0 && place.first->getAllocatedType() == places.front().first->getAllocatedType();
    };
    if (places.size() < 2 || places.size() > mostPlacesOfAll || (!copies.empty() && !llvm::all_of(places, isSame)) ||
        llvm::any_of(copies, [&](MemTransferInst *copy) { return piecesOf(*copy).empty(); }))
      return false;
    findReached();
    return llvm::all_of(accesses, [&](const Access &access) {
      return llvm::popcount(reached[access.choice]) <= int(mostPlaces) &&
             llvm::all_of(reachedBy(access), [&](unsigned i) { return isWithin(access, places[i]); });
    });
  }

  /// Copies from what is chosen become reads and writes.
  void expandCopies() const {
    for (MemTransferInst *copy : copies)
      expand(*copy);
  }

  void replace() {
    // What is not chosen is read, too.
    for (const Place &place : places)
      for (User *user : make_early_inc_range(place.first->users()))
        if (auto *marker = dyn_cast<LifetimeIntrinsic>(user))
          marker->eraseFromParent();
    numbers();
    for (const Access &access : accesses) {
      IRBuilder<> builder(access.load);
      access.load->replaceAllUsesWith(chosen(builder, access));
      access.load->eraseFromParent();
    }
    for (Instruction *field : llvm::reverse(fields))
      field->eraseFromParent();
    for (Instruction *choice : members)
      choice->replaceAllUsesWith(PoisonValue::get(choice->getType()));
    for (Instruction *choice : members)
      choice->eraseFromParent();
  }

  const SmallSetVector<Instruction *, 8> &all() const { return members; }

private:
  struct Access {
    LoadInst *load;
    Instruction *choice;
    int64_t distance;
  };

  /// Adds what a choice chooses from; false where that is not known.
  bool addSide(Value &side) {
    auto [base, distance] = withoutDistance(&side, layout);
    if (isa<UndefValue>(base))
      return true;
    if (isChoice(base)) {
      members.insert(cast<Instruction>(base));
      return distance == 0;
    }
    auto *variable = dyn_cast<AllocaInst>(base);
    if (!variable || !variable->isStaticAlloca())
      return false;
    places.insert({variable, distance});
    return places.size() <= mostPlacesOfAll && (!variables.insert(variable).second || addChoicesOf(*variable));
  }

  /// Adds what is done with an address, at a distance from what is chosen; false where that is more than to read it, or
  /// to choose it.
  bool addUses(Instruction &address, int64_t distance, Instruction *choice = nullptr) {
    choice = choice ? choice : &address;
    return llvm::all_of(address.uses(), [&](Use &use) {
      auto *user = cast<Instruction>(use.getUser());
      if (auto *field = dyn_cast<GetElementPtrInst>(user)) {
        auto [base, further] = withoutDistance(field, layout);
        fields.push_back(field);
        return base == choice && addUses(*field, further, choice);
      }
      if (isChoice(user)) {
        members.insert(user);
        return distance == 0 && !isa<GetElementPtrInst>(address);
      }
      if (auto *copy = dyn_cast<MemTransferInst>(user)) {
        copies.insert(copy);
        return distance == 0 && use.getOperandNo() == 1 && !copy->isVolatile();
      }
      auto *load = dyn_cast<LoadInst>(user);
      if (!load || !load->isSimple())
        return false;
      accesses.push_back({load, choice, distance});
      return true;
    });
  }

  /// Which places each choice may choose, a bit for each.
  void findReached() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Instruction *choice : members)
        for (Use &side : sidesOf(*choice)) {
          auto [base, distance] = withoutDistance(side, layout);
          uint64_t of = isChoice(base)          ? reached.lookup(cast<Instruction>(base))
                        : isa<UndefValue>(base) ? 0
                                                : uint64_t(1) << indexOf({cast<AllocaInst>(base), distance});
          changed |= (of & ~reached[choice]) != 0;
          reached[choice] |= of;
        }
    }
  }

  SmallVector<unsigned> reachedBy(const Access &access) const {
    SmallVector<unsigned> result;
    for (unsigned i = 0; i != places.size(); ++i)
      if (reached.lookup(access.choice) >> i & 1)
        result.push_back(i);
    return result;
  }

  unsigned indexOf(const Place &place) const { return std::distance(places.begin(), llvm::find(places, place)); }

  bool isWithin(const Access &access, const Place &place) const {
    TypeSize size = layout.getTypeStoreSize(access.load->getType());
    std::optional<TypeSize> whole = place.first->getAllocationSize(layout);
    int64_t begin = place.second + access.distance;
    return !size.isScalable() && size.getFixedValue() <= mostBytesOfRead && whole && !whole->isScalable() &&
           begin >= 0 && begin + int64_t(size.getFixedValue()) <= int64_t(whole->getFixedValue());
  }

  /// The scalars in the first bytes of a type, and where they begin; false where they are too many. A copy in larger
  /// pieces would make one value of two, of which one may be poison.
  bool addScalars(Type *inner, uint64_t at, uint64_t length,
                  SmallVectorImpl<std::pair<uint64_t, Type *>> &scalars) const {
    if (at >= length)
      return true;
    if (inner->isScalableTy() || scalars.size() > mostBytesOfRead)
      return false;
    if (auto *structure = dyn_cast<StructType>(inner)) {
      const StructLayout *offsets = layout.getStructLayout(structure);
      for (auto [i, element] : llvm::enumerate(structure->elements()))
        if (!addScalars(element, at + offsets->getElementOffset(i), length, scalars))
          return false;
      return true;
    }
    auto *array = dyn_cast<ArrayType>(inner);
    auto *vector = dyn_cast<FixedVectorType>(inner);
    if (array || vector) {
      Type *element = array ? array->getElementType() : vector->getElementType();
      uint64_t each = layout.getTypeAllocSize(element),
               count = array ? array->getNumElements() : vector->getNumElements();
      if (each == 0 || (vector && layout.getTypeSizeInBits(element) != each * 8))
        return false;
      for (uint64_t i = 0; i != count && at + i * each < length; ++i)
        if (!addScalars(element, at + i * each, length, scalars))
          return false;
      return true;
    }
    uint64_t bytes = layout.getTypeStoreSize(inner);
    if (at + bytes > length)
      return false;
    bool isWhole = layout.getTypeSizeInBits(inner) == bytes * 8;
    scalars.push_back({at, isWhole ? inner : Type::getIntNTy(inner->getContext(), bytes * 8)});
    return true;
  }

  /// What a copy consists of: scalars, and single bytes between them. Empty where that is too much, as of an array of
  /// bytes.
  SmallVector<std::pair<uint64_t, Type *>> piecesOf(const MemTransferInst &copy) const {
    auto *constant = dyn_cast<ConstantInt>(copy.getLength());
    uint64_t length = constant ? constant->getLimitedValue() : 0;
    AllocaInst *variable = places.front().first;
    std::optional<TypeSize> whole = variable->getAllocationSize(layout);
    SmallVector<std::pair<uint64_t, Type *>> scalars, pieces;
    if (length == 0 || length > mostBytes || !whole || whole->isScalable() || length > whole->getFixedValue() ||
        variable->isArrayAllocation() || !addScalars(variable->getAllocatedType(), 0, length, scalars))
      return {};
    Type *byte = Type::getInt8Ty(copy.getContext());
    uint64_t at = 0;
    for (auto [begin, scalar] : scalars) {
      for (; at < begin; ++at)
        pieces.push_back({at, byte});
      pieces.push_back({begin, scalar});
      at = begin + layout.getTypeStoreSize(scalar);
    }
    for (; at < length; ++at)
      pieces.push_back({at, byte});
    return pieces.size() * 2 > length ? SmallVector<std::pair<uint64_t, Type *>>() : pieces;
  }

  /// Reads all of it before anything is written.
  void expand(MemTransferInst &copy) const {
    IRBuilder<> builder(&copy);
    SmallVector<std::pair<uint64_t, LoadInst *>> loads;
    for (auto [at, piece] : piecesOf(copy))
      loads.push_back(
          {at, builder.CreateAlignedLoad(piece, builder.CreatePtrAdd(copy.getRawSource(), builder.getInt64(at)),
                                         commonAlignment(copy.getSourceAlign().valueOrOne(), at))});
    for (auto [at, load] : loads)
      builder.CreateAlignedStore(load, builder.CreatePtrAdd(copy.getRawDest(), builder.getInt64(at)),
                                 commonAlignment(copy.getDestAlign().valueOrOne(), at));
    copy.eraseFromParent();
  }

  /// Adds the choices of a variable; false where something else keeps it in memory.
  bool addChoicesOf(Instruction &address) {
    return llvm::all_of(address.uses(), [&](Use &use) {
      auto *user = cast<Instruction>(use.getUser());
      if (auto *field = dyn_cast<GetElementPtrInst>(user))
        return field->hasAllConstantIndices() && addChoicesOf(*field);
      if (auto *load = dyn_cast<LoadInst>(user))
        return load->isSimple();
      if (auto *store = dyn_cast<StoreInst>(user))
        return store->isSimple() && use.getOperandNo() == StoreInst::getPointerOperandIndex();
      if (auto *memory = dyn_cast<MemIntrinsic>(user))
        return !memory->isVolatile() && isa<ConstantInt>(memory->getLength());
      if (isChoice(user))
        members.insert(user);
      return isChoice(user) || user->isLifetimeStartOrEnd();
    });
  }

  /// Makes of each choice one of numbers of places.
  void numbers() {
    LLVMContext &context = members.front()->getContext();
    type = places.size() == 2 ? Type::getInt1Ty(context) : Type::getInt32Ty(context);
    for (Instruction *choice : members) {
      Value *none = PoisonValue::get(type);
      if (auto *select = dyn_cast<SelectInst>(choice))
        number[choice] = SelectInst::Create(select->getCondition(), none, none, "", choice->getIterator());
      else
        number[choice] = PHINode::Create(type, choice->getNumOperands(), "", choice->getIterator());
    }
    for (Instruction *choice : members) {
      if (auto *merged = dyn_cast<PHINode>(choice)) {
        for (auto [side, block] : llvm::zip_equal(merged->incoming_values(), merged->blocks()))
          cast<PHINode>(number[choice])->addIncoming(numberOf(*side), block);
      } else {
        auto *select = cast<SelectInst>(choice);
        cast<SelectInst>(number[choice])->setTrueValue(numberOf(*select->getTrueValue()));
        cast<SelectInst>(number[choice])->setFalseValue(numberOf(*select->getFalseValue()));
      }
    }
  }

  Value *numberOf(Value &side) {
    auto [base, distance] = withoutDistance(&side, layout);
    if (isa<UndefValue>(base))
      return PoisonValue::get(type);
    if (isChoice(base))
      return number[cast<Instruction>(base)];
    return ConstantInt::get(type, indexOf({cast<AllocaInst>(base), distance}));
  }

  /// Whether the place with this number is chosen.
  Value *isChosen(IRBuilder<> &builder, Instruction *choice, unsigned place) {
    if (places.size() == 2)
      return place == 1 ? number[choice] : builder.CreateNot(number[choice]);
    return builder.CreateICmpEQ(number[choice], ConstantInt::get(type, place));
  }

  std::pair<Value *, Align> address(IRBuilder<> &builder, const Access &access, const Place &place) {
    int64_t distance = place.second + access.distance;
    return {builder.CreatePtrAdd(place.first, builder.getInt64(distance)),
            commonAlignment(place.first->getAlign(), distance)};
  }

  Value *chosen(IRBuilder<> &builder, const Access &access) {
    Value *result = nullptr;
    for (unsigned i : reachedBy(access)) {
      auto [pointer, alignment] = address(builder, access, places[i]);
      Value *value = builder.CreateAlignedLoad(access.load->getType(), pointer, alignment);
      result = result ? builder.CreateSelect(isChosen(builder, access.choice, i), value, result) : value;
    }
    return result ? result : PoisonValue::get(access.load->getType());
  }

  const DataLayout &layout;
  SmallSetVector<Instruction *, 8> members;
  SmallSetVector<Place, 4> places;
  SmallPtrSet<AllocaInst *, 4> variables;
  SmallVector<Access> accesses;
  SmallSetVector<MemTransferInst *, 2> copies;
  SmallVector<Instruction *> fields;
  Type *type = nullptr;
  DenseMap<Instruction *, Instruction *> number;
  DenseMap<Instruction *, uint64_t> reached;
};

} // namespace

PreservedAnalyses gpulower::ReplaceMergedAddresses::run(Function &function, FunctionAnalysisManager &) {
  SmallPtrSet<Instruction *, 16> seen;
  SmallVector<Instruction *> firsts;
  for (Instruction &instruction : instructions(function)) {
    if (!isChoice(&instruction) || seen.contains(&instruction))
      continue;
    Choices choices(instruction);
    if (choices.areUnderstood())
      firsts.push_back(&instruction);
    seen.insert_range(choices.all());
  }
  for (Instruction *first : firsts) {
    Choices choices(*first);
    if (choices.areUnderstood())
      choices.expandCopies();
    Choices expanded(*first);
    if (expanded.areUnderstood())
      expanded.replace();
  }
  if (firsts.empty())
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
