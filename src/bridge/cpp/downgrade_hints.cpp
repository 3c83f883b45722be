// What only helps to optimise: flags of instructions, metadata and attributes that the readers do not know.

#include "downgrade.h"

#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/ModRef.h"

using namespace llvm;

namespace gpulower {

/// Removes the flags of an instruction. `setFastMathFlags` would only add.
static void clearFlags(Instruction &instruction) {
  instruction.dropPoisonGeneratingFlags();
  if (isa<FPMathOperator>(instruction))
    instruction.copyFastMathFlags(FastMathFlags());
}

/// What a release that has the instruction knows of its flags; the rest is removed.
static void keepKnownFlags(Instruction &instruction, Reader &reader) {
  if (auto *address = dyn_cast<GetElementPtrInst>(&instruction)) {
    if (!reader.reads("getelementptr nuw"))
      address->setNoWrapFlags(address->isInBounds() ? GEPNoWrapFlags::inBounds()
                                                    : GEPNoWrapFlags::none());
    return;
  }
  switch (instruction.getOpcode()) {
  case Instruction::Add:
  case Instruction::Sub:
  case Instruction::Mul:
  case Instruction::Shl:
  case Instruction::SDiv:
  case Instruction::UDiv:
  case Instruction::LShr:
  case Instruction::AShr:
  case Instruction::FNeg:
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FDiv:
  case Instruction::FRem:
  case Instruction::FCmp:
    return;
  case Instruction::PHI:
  case Instruction::Select:
  case Instruction::Call:
    if (!instruction.getType()->isStructTy() ||
        reader.reads("fast-math flags on structures"))
      return;
    break;
  case Instruction::ZExt:
    if (reader.reads("zext nneg"))
      return;
    break;
  case Instruction::UIToFP:
    if (reader.reads("uitofp nneg"))
      return;
    break;
  case Instruction::Or:
    if (reader.reads("or disjoint"))
      return;
    break;
  case Instruction::Trunc:
    if (reader.reads("trunc nuw"))
      return;
    break;
  case Instruction::FPTrunc:
  case Instruction::FPExt:
    if (reader.reads("fptrunc with fast-math flags"))
      return;
    break;
  case Instruction::ICmp:
    if (reader.reads("icmp samesign"))
      return;
    break;
  default:
    // Nothing else has flags up to LLVM 22.
    break;
  }
  clearFlags(instruction);
}

/// `!prof` of the forms that every release reads; of others some expect numbers where there is text.
static bool isPlainProfile(const MDNode &node) {
  auto *kind = node.getNumOperands() == 0
                   ? nullptr
                   : dyn_cast_or_null<MDString>(node.getOperand(0));
  if (!kind || (kind->getString() != "branch_weights" &&
                kind->getString() != "VP" &&
                kind->getString() != "function_entry_count"))
    return false;
  return all_of(drop_begin(node.operands()), [](const MDOperand &operand) {
    return isa_and_nonnull<ConstantAsMetadata>(operand.get());
  });
}

template <typename Holder, typename Remove>
static void keepKnownMetadata(Holder &holder, Reader &reader, Remove remove) {
  SmallVector<std::pair<unsigned, MDNode *>> all;
  holder.getAllMetadata(all);
  SmallVector<StringRef> names;
  holder.getContext().getMDKindNames(names);
  for (auto [kind, node] : all) {
    bool known = reader.knows(GpulowerMetadata, names[kind]);
    // What the AMDGPU back end found out, it finds out again.
    if (!known && !names[kind].starts_with("amdgpu."))
      reader.leftOut(GpulowerMetadata, names[kind], &holder);
    if (known && kind == LLVMContext::MD_prof && !isPlainProfile(*node))
      known = reader.reads("profiles with their source");
    if (!known)
      remove(kind);
  }
}

/// The effects on memory as older releases see them. Locations that they do not know belonged to others, and bitcode with
/// such a location is read as having no effect there: all have to say the same, or more than is true. Nothing if that
/// cannot be said.
static std::optional<MemoryEffects> olderEffects(MemoryEffects effects, Reader &reader) {
  ModRefInfo other = effects.getModRef(IRMemLocation::Other);
  if (!reader.reads("memory(errnomem)")) {
    other |= effects.getModRef(IRMemLocation::ErrnoMem);
    effects = effects.getWithModRef(IRMemLocation::Other, other)
                  .getWithModRef(IRMemLocation::ErrnoMem, other);
  }
  if (!reader.reads("memory(target_mem)"))
    for (IRMemLocation location :
         {IRMemLocation::TargetMem0, IRMemLocation::TargetMem1}) {
      ModRefInfo target = effects.getModRef(location);
      if ((target | other) != other)
        return std::nullopt;
      ModRefInfo inaccessible =
          effects.getModRef(IRMemLocation::InaccessibleMem) | target;
      effects = effects.getWithModRef(location, other)
                    .getWithModRef(IRMemLocation::InaccessibleMem, inaccessible);
    }
  return effects;
}

/// Whether a text attribute means something else, or nothing, to older releases of the target.
static bool isUnknownText(StringRef name, Reader &reader) {
  return name.starts_with("amdgpu-") && !reader.knows(GpulowerAttribute, name);
}

/// The value of `frame-pointer` that keeps at least as many frame pointers; readers refuse those that they do not know.
static StringRef olderFramePointer(StringRef value, Reader &reader) {
  if (value == "non-leaf-no-reserve" && !reader.reads("frame-pointer=non-leaf-no-reserve"))
    return "non-leaf";
  if (value == "reserved" && !reader.reads("frame-pointer=reserved"))
    return "all";
  return value;
}

static AttributeSet keepKnown(AttributeSet set, Reader &reader, const Value &place) {
  LLVMContext &context = place.getContext();
  AttributeMask unknown;
  AttrBuilder replaced(context);
  for (Attribute attribute : set) {
    if (attribute.isStringAttribute()) {
      StringRef name = attribute.getKindAsString();
      if (isUnknownText(name, reader))
        unknown.addAttribute(name);
      else if (name == "frame-pointer")
        replaced.addAttribute(name, olderFramePointer(attribute.getValueAsString(), reader));
      continue;
    }
    StringRef name = Attribute::getNameFromAttrKind(attribute.getKindAsEnum());
    if (!reader.knows(GpulowerAttribute, name)) {
      unknown.addAttribute(attribute.getKindAsEnum());
      if (name.starts_with("sanitize_"))
        reader.leftOut(GpulowerAttribute, name, &place);
    } else if (attribute.getKindAsEnum() == Attribute::Memory) {
      std::optional<MemoryEffects> effects =
          olderEffects(attribute.getMemoryEffects(), reader);
      unknown.addAttribute(Attribute::Memory);
      if (effects && *effects != MemoryEffects::unknown())
        replaced.addMemoryAttr(*effects);
    }
  }
  AttrBuilder kept(context, set.removeAttributes(context, unknown));
  kept.merge(replaced);
  return AttributeSet::get(context, kept);
}

static AttributeList keepKnown(AttributeList list, Reader &reader, const Value &place) {
  SmallVector<std::pair<unsigned, AttributeSet>> kept;
  for (unsigned index : list.indexes())
    if (AttributeSet set = keepKnown(list.getAttributes(index), reader, place);
        set.hasAttributes())
      kept.emplace_back(index, set);
  // Sorted by index, where that of the function is the last and comes first in `indexes`.
  llvm::sort(kept, llvm::less_first());
  return AttributeList::get(place.getContext(), kept);
}

void removeHints(Module &module, Reader &reader) {
  for (Function &function : module) {
    for (Instruction &instruction : instructions(function)) {
      keepKnownFlags(instruction, reader);
      keepKnownMetadata(instruction, reader, [&](unsigned kind) {
        instruction.setMetadata(kind, nullptr);
      });
      if (auto *call = dyn_cast<CallBase>(&instruction))
        call->setAttributes(keepKnown(call->getAttributes(), reader, *call));
    }
    keepKnownMetadata(function, reader,
                      [&](unsigned kind) { function.eraseMetadata(kind); });
    function.setAttributes(keepKnown(function.getAttributes(), reader, function));
  }
  for (GlobalVariable &global : module.globals()) {
    keepKnownMetadata(global, reader,
                      [&](unsigned kind) { global.eraseMetadata(kind); });
    global.setAttributes(keepKnown(global.getAttributes(), reader, global));
  }
}

} // namespace gpulower
