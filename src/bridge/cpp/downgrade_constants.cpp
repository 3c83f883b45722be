// Constant expressions: flags that older releases misread, and in bitcode address arithmetic, which they read as `undef`.

#include "downgrade.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/ReplaceConstant.h"

using namespace llvm;

namespace gpulower {

namespace {

/// Rewrites constants, from their innermost parts outwards.
class Constants {
public:
  Constants(Module &module, Reader &reader, bool asIntegers)
      : module(module), reader(reader), asIntegers(asIntegers) {}

  /// `place` is what the constant is a part of.
  Constant *rewrite(Constant *constant, const Value *place) {
    // Globals are rewritten on their own; numbers and the like have no parts.
    if (isa<GlobalValue>(constant) || constant->getNumOperands() == 0 ||
        !(isa<ConstantExpr>(constant) || isa<ConstantAggregate>(constant)))
      return constant;
    if (Constant *known = rewritten.lookup(constant))
      return known;
    Constant *result = rewriteUncached(constant, place);
    rewritten[constant] = result;
    return result;
  }

private:
  Constant *rewriteUncached(Constant *constant, const Value *place) {
    SmallVector<Constant *> parts;
    for (Use &part : constant->operands())
      parts.push_back(rewrite(cast<Constant>(part.get()), place));
    if (auto *structure = dyn_cast<ConstantStruct>(constant))
      return ConstantStruct::get(structure->getType(), parts);
    if (auto *array = dyn_cast<ConstantArray>(constant))
      return ConstantArray::get(array->getType(), parts);
    if (isa<ConstantVector>(constant))
      return ConstantVector::get(parts);
    auto *expression = cast<ConstantExpr>(constant);
    if (auto *address = dyn_cast<GEPOperator>(expression))
      return asIntegers ? addInteger(*address, parts.front(), place)
                        : withoutFlags(*address, parts);
    if (expression->getOpcode() == Instruction::PtrToAddr &&
        !reader.reads("ptrtoaddr"))
      return ConstantExpr::getPtrToInt(parts.front(), expression->getType());
    return expression->getWithOperands(parts);
  }

  Constant *withoutFlags(GEPOperator &address, ArrayRef<Constant *> parts) {
    bool flags = reader.reads("getelementptr nuw");
    GEPNoWrapFlags kept = flags ? address.getNoWrapFlags()
                          : address.isInBounds() ? GEPNoWrapFlags::inBounds()
                                                 : GEPNoWrapFlags::none();
    return ConstantExpr::getGetElementPtr(
        address.getSourceElementType(), parts.front(), parts.drop_front(), kept,
        flags ? address.getInRange() : std::nullopt);
  }

  /// A pointer plus a distance, calculated with integers.
  Constant *addInteger(GEPOperator &address, Constant *base, const Value *place) {
    const DataLayout &layout = module.getDataLayout();
    Type *type = address.getType();
    APInt distance(layout.getIndexTypeSizeInBits(type), 0);
    if (!type->isPointerTy() || layout.isNonIntegralPointerType(type) ||
        !address.accumulateConstantOffset(layout, distance)) {
      reader.refuse(GpulowerConstruct, "getelementptr in a constant of bitcode", place);
      return cast<Constant>(&cast<Value>(address));
    }
    Type *integer = layout.getIntPtrType(type);
    Constant *number = ConstantExpr::getPtrToInt(base, integer);
    number = ConstantExpr::getAdd(
        number, ConstantInt::get(integer, distance.sextOrTrunc(
                                              integer->getIntegerBitWidth())));
    return ConstantExpr::getIntToPtr(number, type);
  }

  Module &module;
  Reader &reader;
  bool asIntegers;
  DenseMap<Constant *, Constant *> rewritten;
};

} // namespace

/// The address arithmetic in a constant.
static void collectAddresses(Constant *constant, SmallPtrSetImpl<Constant *> &seen,
                             SetVector<Constant *> &addresses) {
  if (isa<GlobalValue>(constant) || !seen.insert(constant).second)
    return;
  if (isa<ConstantExpr>(constant) && isa<GEPOperator>(constant))
    addresses.insert(constant);
  for (Use &part : constant->operands())
    if (auto *inner = dyn_cast<Constant>(part.get()))
      collectAddresses(inner, seen, addresses);
}

/// Constant address arithmetic in functions becomes instructions.
static void makeInstructions(Module &module, Reader &reader) {
  SmallPtrSet<Constant *, 16> seen;
  SetVector<Constant *> addresses;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      for (Use &operand : instruction.operands())
        if (auto *constant = dyn_cast<Constant>(operand.get())) {
          size_t before = addresses.size();
          collectAddresses(constant, seen, addresses);
          // Its operands have to be constants.
          if (instruction.isEHPad() && addresses.size() > before)
            reader.refuse(GpulowerConstruct, "getelementptr in a constant of bitcode",
                          &instruction);
        }
  convertUsersOfConstantsToInstructions(addresses.getArrayRef(),
                                        /*RestrictToFunc=*/nullptr,
                                        /*RemoveDeadConstants=*/false,
                                        /*IncludeSelf=*/true);
}

/// The address of a pointer is the whole of it as an integer, apart from some address spaces.
static void replacePointerToAddress(Module &module, Reader &reader) {
  const DataLayout &layout = module.getDataLayout();
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *conversion = dyn_cast<PtrToAddrInst>(&instruction)) {
        Type *pointer = conversion->getPointerOperand()->getType();
        if (layout.getIndexTypeSizeInBits(pointer) !=
            layout.getPointerTypeSizeInBits(pointer)) {
          reader.refuse(GpulowerConstruct, "ptrtoaddr", conversion);
          continue;
        }
        IRBuilder<> builder(conversion);
        Value *integer = builder.CreatePtrToInt(
            conversion->getPointerOperand(), conversion->getType());
        conversion->replaceAllUsesWith(integer);
        conversion->eraseFromParent();
      }
}

void rewriteConstants(Module &module, Reader &reader) {
  if (!reader.reads("ptrtoaddr"))
    replacePointerToAddress(module, reader);
  bool addresses = reader.reads("getelementptr in a constant of bitcode");
  if (!addresses)
    makeInstructions(module, reader);
  Constants constants(module, reader, /*asIntegers=*/!addresses);
  for (GlobalVariable &global : module.globals())
    if (global.hasInitializer())
      global.setInitializer(constants.rewrite(global.getInitializer(), &global));
  for (GlobalAlias &alias : module.aliases())
    alias.setAliasee(constants.rewrite(alias.getAliasee(), &alias));
  for (GlobalIFunc &indirect : module.ifuncs())
    indirect.setResolver(constants.rewrite(indirect.getResolver(), &indirect));
  for (Function &function : module) {
    for (Use &part : function.operands())
      part.set(constants.rewrite(cast<Constant>(part.get()), &function));
    for (Instruction &instruction : instructions(function))
      for (Use &operand : instruction.operands())
        if (auto *constant = dyn_cast<Constant>(operand.get()))
          operand.set(constants.rewrite(constant, &function));
  }
}

} // namespace gpulower
