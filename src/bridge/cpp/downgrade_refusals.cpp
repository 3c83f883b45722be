// What carries meaning and cannot be said to older releases: refused by what they know, so that nothing new slips through.

#include "downgrade.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace gpulower {

namespace {

/// Goes through a module, and remembers what was seen.
class Refusals {
public:
  explicit Refusals(Reader &reader) : reader(reader) {}

  void visit(Module &module) {
    for (GlobalVariable &global : module.globals())
      visit(global);
    for (GlobalAlias &alias : module.aliases()) {
      visit(alias.getValueType(), &alias);
      visit(alias.getAliasee(), &alias);
    }
    for (GlobalIFunc &indirect : module.ifuncs())
      visit(indirect.getResolver(), &indirect);
    for (Function &function : module)
      visit(function);
    for (NamedMDNode &named : module.named_metadata())
      for (MDNode *node : named.operands())
        visit(node);
  }

private:
  void visit(GlobalVariable &global) {
    visit(global.getValueType(), &global);
    visit(global.getType(), &global);
    if (global.hasInitializer())
      visit(global.getInitializer(), &global);
    if (global.getCodeModel() && !reader.reads("code_model"))
      reader.refuse(GpulowerConstruct, "code_model", &global);
  }

  void visit(Function &function) {
    if (function.getName().starts_with("llvm."))
      intrinsic(function);
    convention(function.getCallingConv(), &function);
    visit(function.getFunctionType(), &function);
    for (Use &part : function.operands())
      visit(cast<Constant>(part.get()), &function);
    attributeTypes(function.getAttributes(), &function);
    for (Instruction &instruction : instructions(function))
      visit(instruction);
  }

  void intrinsic(Function &function) {
    if (reader.isOlderIntrinsic(function))
      return;
    // By the ID: not every name in LLVM's own namespace is an intrinsic.
    if (function.getIntrinsicID() == Intrinsic::not_intrinsic)
      reader.refuse(GpulowerConstruct, "an unknown intrinsic", &function);
    else if (!reader.knowsIntrinsic(function))
      reader.refuse(GpulowerIntrinsic, function.getName(), firstUser(function));
  }

  /// Where an intrinsic is used.
  static const Value *firstUser(Function &function) {
    return function.use_empty() ? &function : *function.user_begin();
  }

  void visit(Instruction &instruction) {
    if (!reader.knows(GpulowerInstruction, instruction.getOpcodeName()))
      reader.refuse(GpulowerInstruction, instruction.getOpcodeName(), &instruction);
    visit(instruction.getType(), &instruction);
    for (Use &operand : instruction.operands()) {
      visit(operand->getType(), &instruction);
      if (auto *constant = dyn_cast<Constant>(operand.get()))
        visit(constant, &instruction);
      if (auto *wrapped = dyn_cast<MetadataAsValue>(operand.get()))
        visit(wrapped->getMetadata());
    }
    if (auto *alloca = dyn_cast<AllocaInst>(&instruction))
      visit(alloca->getAllocatedType(), &instruction);
    if (auto *address = dyn_cast<GetElementPtrInst>(&instruction))
      visit(address->getSourceElementType(), &instruction);
    if (auto *call = dyn_cast<CallBase>(&instruction))
      visit(*call);
    const Triple &triple = instruction.getModule()->getTargetTriple();
    StringRef bfloats = triple.isNVPTX() ? "arithmetic with bfloat on NVPTX"
                                         : "arithmetic with bfloat on AMDGPU";
    if (triple.isGPU() && calculatesWithBFloat(instruction) && !reader.reads(bfloats))
      reader.refuse(GpulowerConstruct, bfloats, &instruction);
    if (instruction.isAtomic() && (isa<LoadInst>(instruction) || isa<StoreInst>(instruction)) &&
        getLoadStoreType(&instruction)->isVectorTy() &&
        !reader.reads("atomic load or store of a vector"))
      reader.refuse(GpulowerConstruct, "atomic load or store of a vector", &instruction);
    SmallVector<std::pair<unsigned, MDNode *>> attached;
    instruction.getAllMetadata(attached);
    for (auto [kind, node] : attached)
      visit(node);
  }

  /// Whether brain floats are calculated with, not only moved.
  static bool calculatesWithBFloat(Instruction &instruction) {
    auto *call = dyn_cast<CallInst>(&instruction);
    bool calculates = instruction.isUnaryOp() || instruction.isBinaryOp() ||
                      isa<FCmpInst>(instruction) ||
                      (isa<CastInst>(instruction) && !isa<BitCastInst>(instruction)) ||
                      (call && call->getIntrinsicID() != Intrinsic::not_intrinsic);
    auto isBFloat = [](const Type *type) { return type->getScalarType()->isBFloatTy(); };
    return calculates && (isBFloat(instruction.getType()) ||
                          any_of(instruction.operand_values(), [&](Value *value) {
                            return isBFloat(value->getType());
                          }));
  }

  void visit(CallBase &call) {
    convention(call.getCallingConv(), &call);
    visit(call.getFunctionType(), &call);
    attributeTypes(call.getAttributes(), &call);
    for (unsigned index = 0; index < call.getNumOperandBundles(); ++index) {
      StringRef tag = call.getOperandBundleAt(index).getTagName();
      if (!reader.knows(GpulowerBundle, tag))
        reader.refuse(GpulowerBundle, tag, &call);
    }
  }

  /// Readers take an unknown number without a word.
  void convention(CallingConv::ID convention, const Value *place) {
    std::string number = utostr(convention);
    if (!reader.knows(GpulowerCallingConvention, number))
      reader.refuse(GpulowerCallingConvention, number, place);
  }

  void attributeTypes(AttributeList list, const Value *place) {
    for (AttributeSet set : list)
      for (Attribute attribute : set)
        if (attribute.isTypeAttribute() && attribute.getValueAsType())
          visit(attribute.getValueAsType(), place);
  }

  void visit(Type *type, const Value *place) {
    if (!types.insert(type).second)
      return;
    switch (type->getTypeID()) {
    case Type::HalfTyID:
    case Type::BFloatTyID:
    case Type::FloatTyID:
    case Type::DoubleTyID:
    case Type::X86_FP80TyID:
    case Type::FP128TyID:
    case Type::PPC_FP128TyID:
    case Type::VoidTyID:
    case Type::LabelTyID:
    case Type::MetadataTyID:
    case Type::TokenTyID:
    case Type::IntegerTyID:
    case Type::FunctionTyID:
    case Type::StructTyID:
    case Type::ArrayTyID:
    case Type::FixedVectorTyID:
      break;
    case Type::PointerTyID:
      addressSpace(type->getPointerAddressSpace(), place);
      break;
    default: {
      std::string text;
      raw_string_ostream(text) << *type;
      StringRef construct = type->isTargetExtTy()      ? "target types"
                            : type->isScalableTy() ? "scalable vectors"
                                                   : StringRef(text);
      if (!reader.reads(construct))
        reader.refuse(GpulowerConstruct, construct, place);
    }
    }
    for (Type *inner : type->subtypes())
      visit(inner, place);
  }

  void addressSpace(unsigned space, const Value *place) {
    std::string number = utostr(space);
    if (!reader.knows(GpulowerAddressSpace, number))
      reader.refuse(GpulowerAddressSpace, number, place);
  }

  void visit(Constant *constant, const Value *place) {
    if (isa<GlobalValue>(constant) || !constants.insert(constant).second)
      return;
    visit(constant->getType(), place);
    if (StringRef construct = unknownConstant(*constant); !construct.empty())
      reader.refuse(GpulowerConstruct, construct, place);
    for (Use &part : constant->operands())
      if (auto *inner = dyn_cast<Constant>(part.get()))
        visit(inner, place);
  }

  /// What readers do not know about a constant itself; empty if nothing.
  StringRef unknownConstant(Constant &constant) {
    auto unlessRead = [&](StringRef construct) {
      return reader.reads(construct) ? StringRef() : construct;
    };
    if (auto *expression = dyn_cast<ConstantExpr>(&constant)) {
      if (isa<GEPOperator>(expression))
        return unlessRead("getelementptr in a constant of bitcode");
      return reader.knows(GpulowerInstruction, expression->getOpcodeName())
                 ? StringRef()
                 : StringRef(expression->getOpcodeName());
    }
    switch (constant.getValueID()) {
    case Value::ConstantIntVal:
    case Value::ConstantFPVal:
      return constant.getType()->isVectorTy() ? unlessRead("one number as a vector")
                                              : StringRef();
    case Value::BlockAddressVal:
    case Value::DSOLocalEquivalentVal:
    case Value::NoCFIValueVal:
    case Value::ConstantArrayVal:
    case Value::ConstantStructVal:
    case Value::ConstantVectorVal:
    case Value::UndefValueVal:
    case Value::PoisonValueVal:
    case Value::ConstantAggregateZeroVal:
    case Value::ConstantDataArrayVal:
    case Value::ConstantDataVectorVal:
    case Value::ConstantPointerNullVal:
    case Value::ConstantTargetNoneVal:
    case Value::ConstantTokenNoneVal:
      return "";
    case Value::ConstantPtrAuthVal:
      return unlessRead("ptrauth");
    default:
      return unlessRead("a constant of a new kind");
    }
  }

  /// Constants in metadata stay as they are: readers must know them.
  void visit(Metadata *part) {
    if (!part || !metadata.insert(part).second)
      return;
    if (auto *value = dyn_cast<ConstantAsMetadata>(part)) {
      if (isa<GEPOperator>(value->getValue()) && !reader.reads("getelementptr nuw"))
        reader.refuse(GpulowerConstruct, "getelementptr in metadata", nullptr);
      else
        visit(value->getValue(), nullptr);
    }
    if (auto *node = dyn_cast<MDNode>(part))
      for (const MDOperand &operand : node->operands())
        visit(operand.get());
  }

  Reader &reader;
  SmallPtrSet<Type *, 32> types;
  SmallPtrSet<Constant *, 32> constants;
  SmallPtrSet<Metadata *, 32> metadata;
};

} // namespace

void refuseUnknown(Module &module, Reader &reader) {
  Refusals(reader).visit(module);
}

} // namespace gpulower
