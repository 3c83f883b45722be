// What a device module is taken apart by, and taking a part of it into an LLVM context of its own.

#include "bytes.h"
#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/GlobalStatus.h"

using namespace llvm;
using gpulower::contain;
using gpulower::toBytes;
using gpulower::toStringRef;

extern "C" {

/// A function or variable of a module.
struct GpulowerGlobal {
  GpulowerBytes name;
  bool isFunction;
  bool isDefinition;
  /// Nothing is lost if several parts have it: a function that is inlined wherever it is called, or a variable that is
  /// never written, of which nothing but the module knows.
  bool isShareable;
  /// Whether LLVM may merge it with a variable of the same initial value.
  bool isMergeable;
  /// Variables of the same initial value have the same number; 0 for none.
  size_t initializer;
  size_t instructions;
  /// The positions of what it refers to.
  const size_t *references;
  size_t referenceCount;
};

} // extern "C"

/// Adds the functions and variables that a constant is made of.
static void collect(const Constant *constant, SmallPtrSetImpl<const Constant *> &seen,
                    SetVector<const GlobalValue *> &references) {
  SmallVector<const Constant *, 8> worklist{constant};
  while (!worklist.empty()) {
    const Constant *current = worklist.pop_back_val();
    if (isa<ConstantData>(current) || !seen.insert(current).second)
      continue;
    if (const auto *global = dyn_cast<GlobalValue>(current)) {
      references.insert(global);
      continue;
    }
    for (const Use &operand : current->operands())
      if (const auto *part = dyn_cast<Constant>(operand))
        worklist.push_back(part);
  }
}

/// Whether every call of the function is replaced by its body.
static bool isAlwaysInlined(Function &function) {
  return function.hasLocalLinkage() && function.hasFnAttribute(Attribute::AlwaysInline) &&
         !function.hasFnAttribute(Attribute::NoInline) && !function.hasAddressTaken() && !function.isVarArg() &&
         isInlineViable(function).isSuccess();
}

/// What LLVM finds out of a variable that is used by the module alone.
struct Variable {
  explicit Variable(const GlobalVariable &variable) {
    if (!variable.hasLocalLinkage() || !variable.hasDefinitiveInitializer() || variable.isThreadLocal() ||
        isa<UndefValue>(variable.getInitializer()) || variable.getAddressSpace() == 3 ||
        variable.getAddressSpace() == 5)
      return;
    GlobalStatus status;
    bool isKnown = !GlobalStatus::analyzeGlobal(&variable, status);
    bool isNeverWritten = isKnown && status.StoredType <= GlobalStatus::InitializerStored &&
                          status.Ordering == AtomicOrdering::NotAtomic;
    isConstant = variable.isConstant() || isNeverWritten;
    isMergeable = isConstant && (variable.hasGlobalUnnamedAddr() || (isKnown && !status.IsCompared));
  }
  bool isConstant = false;
  bool isMergeable = false;
};

/// Whether metadata names a function or variable: it would have to be divided, too.
static bool namesGlobals(const NamedMDNode &named) {
  SmallPtrSet<const Metadata *, 16> seen;
  SmallVector<const Metadata *, 16> worklist(named.op_begin(), named.op_end());
  while (!worklist.empty()) {
    const Metadata *current = worklist.pop_back_val();
    if (!current || !seen.insert(current).second)
      continue;
    if (const auto *value = dyn_cast<ValueAsMetadata>(current); value && !isa<ConstantData>(value->getValue()))
      return true;
    if (const auto *node = dyn_cast<MDNode>(current))
      for (const MDOperand &operand : node->operands())
        worklist.push_back(operand.get());
  }
  return false;
}

/// Why the parts of a module could not be put together again; empty if they could.
static std::string obstacle(const Module &module) {
  if (!module.alias_empty() || !module.ifunc_empty())
    return "it has aliases";
  if (!module.getModuleInlineAsm().empty())
    return "it has assembly outside of functions";
  for (const NamedMDNode &node : module.named_metadata())
    if (namesGlobals(node))
      return ("its metadata " + node.getName() + " is of functions or variables").str();
  for (const GlobalValue &value : module.global_values()) {
    StringRef name = value.getName();
    if (!value.hasName())
      return "something in it has no name";
    if (value.hasAppendingLinkage() || (name.starts_with("llvm.") && isa<GlobalVariable>(value)))
      return ("it has " + name).str();
    if (const auto *object = dyn_cast<GlobalObject>(&value); object && object->hasComdat())
      return (name + " is in a comdat").str();
    // Code generation numbers these names.
    for (StringRef own : {"__local_depot", "L__BB", "callseq", "prototype_"})
      if (name.contains(own))
        return (name + " is named as code generation names its own").str();
  }
  for (const Function &function : module) {
    if (function.hasPersonalityFn() || function.hasPrefixData() || function.hasPrologueData())
      return (function.getName() + " has data beside its code").str();
    for (const Instruction &instruction : instructions(function))
      if (isa<CallBrInst>(instruction))
        return (function.getName() + " has assembly that jumps").str();
  }
  return "";
}

extern "C" {

/// Counts the instructions of a module.
size_t gpulowerCountInstructions(LLVMModuleRef moduleRef) {
  size_t count = 0;
  for (const Function &function : *unwrap(moduleRef))
    count += function.getInstructionCount();
  return count;
}

/// Reports every function of a module in order, and then every variable. Refuses a module that cannot be split.
GpulowerOutcome gpulowerGlobals(LLVMModuleRef moduleRef, void *closure,
                                void (*report)(void *closure, const GpulowerGlobal *global)) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    if (std::string reason = obstacle(module); !reason.empty())
      return reason;
    DenseMap<const GlobalValue *, size_t> positions;
    for (const Function &function : module)
      positions[&function] = positions.size();
    for (const GlobalVariable &variable : module.globals())
      positions[&variable] = positions.size();
    SmallVector<size_t, 8> references;
    auto take = [&](const SetVector<const GlobalValue *> &found) {
      references.clear();
      for (const GlobalValue *value : found)
        references.push_back(positions.lookup(value));
    };
    for (Function &function : module) {
      SmallPtrSet<const Constant *, 16> seen;
      SetVector<const GlobalValue *> found;
      for (const Instruction &instruction : instructions(function))
        for (const Use &operand : instruction.operands())
          if (const auto *constant = dyn_cast<Constant>(operand))
            collect(constant, seen, found);
      take(found);
      GpulowerGlobal global{toBytes(function.getName()),
                            /*isFunction=*/true,
                            !function.isDeclaration(),
                            !function.isDeclaration() && isAlwaysInlined(function),
                            /*isMergeable=*/false,
                            /*initializer=*/0,
                            function.getInstructionCount(),
                            references.data(),
                            references.size()};
      report(closure, &global);
    }
    DenseMap<const Constant *, size_t> initializers;
    for (GlobalVariable &variable : module.globals()) {
      SmallPtrSet<const Constant *, 16> seen;
      SetVector<const GlobalValue *> found;
      Variable facts(variable);
      size_t initializer = 0;
      if (variable.hasInitializer()) {
        collect(variable.getInitializer(), seen, found);
        // Their order in the text is that of addresses in this process.
        if (!found.empty())
          return (variable.getName() + " refers to others").str();
        if (facts.isConstant)
          initializer = initializers.try_emplace(variable.getInitializer(), initializers.size() + 1).first->second;
      }
      GpulowerGlobal global{toBytes(variable.getName()),
                            /*isFunction=*/false,
                            !variable.isDeclaration(),
                            facts.isConstant,
                            facts.isMergeable,
                            initializer,
                            /*instructions=*/0,
                            nullptr,
                            0};
      report(closure, &global);
    }
    return "";
  });
}

/// Gives definitions a linkage with which passes draw no conclusions from who uses them. `wasPrivate` gets what
/// gpulowerUnshare needs.
void gpulowerShare(LLVMModuleRef moduleRef, const GpulowerBytes *names, size_t count, bool *wasPrivate) {
  for (size_t i = 0; i < count; ++i) {
    GlobalValue *value = unwrap(moduleRef)->getNamedValue(toStringRef(names[i]));
    if (!value || value->isDeclaration())
      continue;
    wasPrivate[i] = value->hasPrivateLinkage();
    value->setLinkage(GlobalValue::LinkOnceODRLinkage);
    if (auto *variable = dyn_cast<GlobalVariable>(value))
      variable->setConstant(true);
  }
}

/// Makes definitions again what they were before gpulowerShare, as far as they are still there.
void gpulowerUnshare(LLVMModuleRef moduleRef, const GpulowerBytes *names, size_t count, const bool *wasPrivate) {
  for (size_t i = 0; i < count; ++i)
    if (GlobalValue *value = unwrap(moduleRef)->getNamedValue(toStringRef(names[i])))
      if (value->hasLinkOnceODRLinkage())
        value->setLinkage(wasPrivate[i] ? GlobalValue::PrivateLinkage : GlobalValue::InternalLinkage);
}

/// Writes a module as bitcode from which the same module comes, the order of uses included.
GpulowerOutcome gpulowerWriteExactly(LLVMModuleRef module, void *closure, GpulowerSink sink) {
  return contain([&]() -> std::string {
    SmallString<0> buffer;
    raw_svector_ostream stream(buffer);
    WriteBitcodeToFile(*unwrap(module), stream, /*ShouldPreserveUseListOrder=*/true);
    sink(closure, toBytes(buffer));
    return "";
  });
}

/// Reads from bitcode the functions and variables whose position is set in `kept`, and what these declare. Bodies of other
/// functions are not read.
GpulowerOutcome gpulowerTakePart(LLVMContextRef context, GpulowerBytes bitcode, GpulowerBytes name, const bool *kept,
                                 size_t keptCount, LLVMModuleRef *result) {
  return contain([&]() -> std::string {
    MemoryBufferRef buffer(toStringRef(bitcode), toStringRef(name));
    Expected<std::unique_ptr<Module>> lazy =
        getLazyBitcodeModule(buffer, *unwrap(context), /*ShouldLazyLoadMetadata=*/true);
    if (!lazy)
      return toString(lazy.takeError());
    std::unique_ptr<Module> part = std::move(*lazy);
    if (part->size() + part->global_size() != keptCount)
      return "the module changed while it was written";
    SmallVector<GlobalValue *, 0> others;
    size_t position = 0;
    for (Function &function : *part) {
      if (!kept[position++])
        others.push_back(&function);
      else if (Error error = function.materialize())
        return toString(std::move(error));
    }
    for (GlobalVariable &variable : part->globals())
      if (!kept[position++])
        others.push_back(&variable);
    for (GlobalValue *other : others) {
      if (auto *function = dyn_cast<Function>(other))
        function->deleteBody();
      else
        cast<GlobalVariable>(other)->setInitializer(nullptr);
      other->setLinkage(GlobalValue::ExternalLinkage);
    }
    if (Error error = part->materializeAll())
      return toString(std::move(error));
    for (GlobalValue *other : others) {
      other->removeDeadConstantUsers();
      if (!other->use_empty())
        return (other->getName() + " is used outside of its part").str();
      other->eraseFromParent();
    }
    *result = wrap(part.release());
    return "";
  });
}

} // extern "C"
