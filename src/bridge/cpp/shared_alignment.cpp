// Memory of a workgroup is aligned as the instructions that use it want it. Nothing in LLVM does so: an intrinsic or inline assembly
// takes an address, and a front end that left the alignment of a variable to its type (`memref.global` of halves: 2 bytes) gets
// an address that the hardware refuses, or reads in another order than it was written.

#include "bytes.h"
#include "contain.h"

#include "llvm-c/Types.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/KnownBits.h"

using namespace llvm;

extern "C" {

/// A variable whose alignment was raised, or an address that cannot be aligned. Texts are valid as long as the module is.
struct GpulowerSharedAlignment {
  GpulowerBytes variable;
  /// The instruction, and the function that it is in.
  GpulowerBytes instruction;
  GpulowerBytes function;
  /// Where debug info says that it is; a line of 0 stands for nowhere.
  GpulowerBytes directory;
  GpulowerBytes file;
  uint32_t line;
  uint32_t column;
  /// Whether the address cannot be aligned: `offset` bytes behind the start of the variable where `to` are wanted.
  bool misfit;
  uint64_t offset;
  uint64_t from;
  uint64_t to;
};
}

namespace {

/// Number of the address space of a workgroup's memory, for both vendors; and of that of a cluster's, for NVIDIA.
constexpr unsigned shared = 3, sharedCluster = 7;

/// Rows of 128 bytes are swizzled in groups of eight (CUDA C++ Programming Guide, "Tensor Memory Access": the pattern repeats
/// after 1024 bytes). Which swizzle it is says the tensor map, which the host makes.
constexpr uint64_t swizzled = 1024;

/// What an instruction wants of an address.
struct Demand {
  /// Of anything less the hardware makes a fault.
  uint64_t least;
  /// What variables get.
  uint64_t wanted;
};

/// An operand of intrinsics whose names begin so, behind `llvm.`.
struct Row {
  StringRef prefix;
  unsigned operand;
  Demand demand;
};

/// PTX ISA 9.0, the sections of the instructions; AMD's ISA documents, "LDS". The first row that fits an operand counts.
constexpr Row rows[] = {
    {"nvvm.cp.async.bulk.tensor.g2s.", 0, {128, swizzled}},
    {"nvvm.cp.async.bulk.tensor.g2s.", 1, {8, 8}},
    {"nvvm.cp.async.bulk.tensor.s2g.", 0, {128, swizzled}},
    {"nvvm.cp.async.bulk.tensor.reduce.", 0, {128, swizzled}},
    {"nvvm.cp.async.bulk.global.to.shared.", 0, {16, 128}},
    {"nvvm.cp.async.bulk.global.to.shared.", 1, {8, 8}},
    {"nvvm.cp.async.bulk.shared.cta.to.cluster", 0, {16, 128}},
    {"nvvm.cp.async.bulk.shared.cta.to.cluster", 1, {8, 8}},
    {"nvvm.cp.async.bulk.shared.cta.to.cluster", 2, {16, 128}},
    {"nvvm.cp.async.bulk.shared.cta.to.global", 1, {16, 128}},
    {"nvvm.cp.async.ca.shared.global.4", 0, {4, 16}},
    {"nvvm.cp.async.ca.shared.global.8", 0, {8, 16}},
    {"nvvm.cp.async.ca.shared.global.16", 0, {16, 16}},
    {"nvvm.cp.async.cg.shared.global.16", 0, {16, 16}},
    {"nvvm.cp.async.mbarrier.", 0, {8, 8}},
    {"nvvm.ldmatrix.", 0, {16, 16}},
    {"nvvm.stmatrix.", 0, {16, 16}},
    {"nvvm.mbarrier.", 0, {8, 8}},
    {"nvvm.clusterlaunchcontrol.try_cancel.", 0, {16, 16}},
    {"nvvm.clusterlaunchcontrol.try_cancel.", 1, {8, 8}},
    {"nvvm.tcgen05.alloc.", 0, {4, 4}},
    {"nvvm.tcgen05.commit.", 0, {8, 8}},
    // A fragment's rows may be shorter than the 32 bytes that the CUDA C++ Programming Guide asks for.
    {"nvvm.wmma.", 0, {0, 32}},
    {"amdgcn.raw.ptr.buffer.load.lds", 1, {4, 16}},
    {"amdgcn.raw.buffer.load.lds", 1, {4, 16}},
    {"amdgcn.struct.ptr.buffer.load.lds", 1, {4, 16}},
    {"amdgcn.struct.buffer.load.lds", 1, {4, 16}},
    {"amdgcn.global.load.lds", 1, {4, 16}},
    {"amdgcn.load.to.lds", 1, {4, 16}},
    {"amdgcn.global.load.async.to.lds.b128", 1, {16, 16}},
    {"amdgcn.cluster.load.async.to.lds.b128", 1, {16, 16}},
    {"amdgcn.global.store.async.from.lds.b128", 1, {16, 16}},
    {"amdgcn.ds.read.tr", 0, {8, 16}},
    {"amdgcn.ds.load.tr", 0, {8, 16}},
};

/// Instructions in inline assembly, of NVIDIA: what the first operand wants that is an address in a workgroup's memory. (Tensor
/// copies have another, a barrier.) The first that fits counts.
constexpr std::pair<StringRef, Demand> inAssembly[] = {
    {"cp.async.bulk.tensor.", {128, swizzled}},
    {"cp.async.bulk.prefetch", {0, 0}},
    {"cp.async.bulk.", {16, 128}},
    {"cp.reduce.async.bulk.tensor.", {128, swizzled}},
    {"cp.reduce.async.bulk.", {16, 128}},
    {"cp.async.mbarrier", {8, 8}},
    {"cp.async.cg.shared", {16, 16}},
    {"cp.async.ca.shared", {4, 16}},
    {"ldmatrix.", {16, 16}},
    {"stmatrix.", {16, 16}},
    {"mbarrier.", {8, 8}},
};

/// Instructions that take descriptors: addresses with other things in one integer.
bool takesDescriptors(StringRef instruction) {
  return instruction.contains("wgmma.mma_async") || instruction.contains("tcgen05.mma") ||
         instruction.contains("tcgen05.cp");
}

/// A variable that an address points into. The address is its start, `offset` bytes, and a multiple of `step` bytes that is not
/// known; the latter is 0 where there is nothing unknown.
struct Target {
  GlobalVariable *variable;
  uint64_t offset;
  uint64_t step;
};

/// Goes from an address back to the variables it may point into.
class Origins {
public:
  explicit Origins(const DataLayout &layout) : layout(layout) {}

  SmallVector<Target, 2> of(Value *address) {
    targets.clear();
    seen.clear();
    left = mostValues;
    walk(address, {}, 0, 0);
    return std::move(targets);
  }

private:
  using Path = SmallVector<unsigned, 2>;

  /// Most values that are looked at for one address: what is further away keeps its alignment.
  static constexpr unsigned mostValues = 1000;

  static uint64_t smaller(uint64_t step, uint64_t other) {
    if (step == 0 || other == 0)
      return step | other;
    return std::min(step, other);
  }

  /// `path`: which member of an aggregate is meant.
  void walk(Value *value, const Path &path, uint64_t offset, uint64_t step) {
    if (left == 0 || !seen.insert({value, path.empty() ? 0 : unsigned(hash_combine_range(path))}).second)
      return;
    --left;
    if (auto *variable = dyn_cast<GlobalVariable>(value)) {
      if (variable->getAddressSpace() == shared)
        targets.push_back({variable, offset, step});
    } else if (auto *argument = dyn_cast<Argument>(value)) {
      for (User *user : argument->getParent()->users())
        if (auto *call = dyn_cast<CallBase>(user); call && call->getCalledFunction() == argument->getParent())
          walk(call->getArgOperand(argument->getArgNo()), path, offset, step);
    } else if (auto *phi = dyn_cast<PHINode>(value)) {
      for (Value *incoming : phi->incoming_values())
        walk(incoming, path, offset, step);
    } else if (auto *choice = dyn_cast<SelectInst>(value)) {
      walk(choice->getTrueValue(), path, offset, step);
      walk(choice->getFalseValue(), path, offset, step);
    } else if (auto *extract = dyn_cast<ExtractValueInst>(value)) {
      Path longer(extract->getIndices());
      llvm::append_range(longer, path);
      walk(extract->getAggregateOperand(), longer, offset, step);
    } else if (auto *insert = dyn_cast<InsertValueInst>(value)) {
      ArrayRef<unsigned> indices = insert->getIndices();
      if (ArrayRef(path).take_front(indices.size()) == indices)
        walk(insert->getInsertedValueOperand(), Path(ArrayRef(path).drop_front(indices.size())), offset, step);
      else
        walk(insert->getAggregateOperand(), path, offset, step);
    } else if (auto *constant = dyn_cast<Constant>(value); constant && !path.empty()) {
      if (Constant *member = constant->getAggregateElement(path.front()))
        walk(member, Path(ArrayRef(path).drop_front()), offset, step);
    } else if (auto *call = dyn_cast<CallBase>(value)) {
      walkCall(*call, path, offset, step);
    } else if (auto *element = dyn_cast<GEPOperator>(value)) {
      walkElement(*element, path, offset, step);
    } else if (auto *operation = dyn_cast<Operator>(value)) {
      walkOperator(*operation, path, offset, step);
    }
  }

  /// Results of functions; and addresses of the same place in another workgroup of the cluster.
  void walkCall(CallBase &call, const Path &path, uint64_t offset, uint64_t step) {
    Function *callee = call.getCalledFunction();
    if (!callee)
      return;
    if (callee->getName().starts_with("llvm.nvvm.mapa.") || callee->getName().starts_with("llvm.ptrmask."))
      return walk(call.getArgOperand(0), path, offset, 1);
    for (BasicBlock &block : *callee) {
      if (left == 0)
        return;
      --left;
      if (auto *end = dyn_cast<ReturnInst>(block.getTerminator()); end && end->getReturnValue())
        walk(end->getReturnValue(), path, offset, step);
    }
  }

  void walkElement(GEPOperator &element, const Path &path, uint64_t offset, uint64_t step) {
    unsigned bits = layout.getIndexTypeSizeInBits(element.getType());
    SmallMapVector<Value *, APInt, 4> variable;
    APInt constant(bits, 0);
    if (element.getType()->isVectorTy() || !element.collectOffset(layout, bits, variable, constant))
      return walk(element.getPointerOperand(), path, offset, 1);
    offset += constant.getSExtValue();
    for (auto &[index, scale] : variable) {
      KnownBits known = computeKnownBits(index, layout);
      if (known.isConstant()) {
        offset += (known.getConstant().sextOrTrunc(bits) * scale).getSExtValue();
        continue;
      }
      unsigned zeros = known.countMinTrailingZeros() + scale.countTrailingZeros();
      step = smaller(step, uint64_t(1) << std::min(zeros, 32u));
    }
    walk(element.getPointerOperand(), path, offset, step);
  }

  /// Casts, and arithmetic on addresses as integers. Which part of a sum is the address shows where it comes from.
  void walkOperator(Operator &operation, const Path &path, uint64_t offset, uint64_t step) {
    switch (operation.getOpcode()) {
    case Instruction::AddrSpaceCast:
    case Instruction::BitCast:
    case Instruction::PtrToInt:
    case Instruction::PtrToAddr:
    case Instruction::IntToPtr:
    case Instruction::Trunc:
    case Instruction::ZExt:
    case Instruction::Freeze:
      return walk(operation.getOperand(0), path, offset, step);
    case Instruction::Add:
      for (unsigned i : {0u, 1u}) {
        KnownBits other = computeKnownBits(operation.getOperand(1 - i), layout);
        if (other.isConstant())
          walk(operation.getOperand(i), path, offset + other.getConstant().sextOrTrunc(64).getSExtValue(), step);
        else
          walk(operation.getOperand(i), path, offset,
               smaller(step, uint64_t(1) << std::min(other.countMinTrailingZeros(), 32u)));
      }
      return;
    case Instruction::Sub:
    case Instruction::Or:
    case Instruction::And:
    case Instruction::Xor:
    case Instruction::Shl:
    case Instruction::LShr:
      for (Value *operand : operation.operands())
        walk(operand, path, offset, 1);
      return;
    default:
      return;
    }
  }

  const DataLayout &layout;
  SmallVector<Target, 2> targets;
  DenseSet<std::pair<Value *, unsigned>> seen;
  unsigned left = 0;
};

/// Raises the alignment of the variables of a module.
class Aligner {
public:
  Aligner(Module &module, SmallVectorImpl<GpulowerSharedAlignment> &entries)
      : module(module), origins(module.getDataLayout()), entries(entries) {}

  void run() {
    if (none_of(module.globals(), isShared))
      return;
    for (Function &function : module)
      for (Instruction &instruction : instructions(function))
        visit(instruction);
    alignBySize();
    order();
  }

private:
  static bool isShared(const GlobalVariable &variable) { return variable.getAddressSpace() == shared; }

  /// What is written into PTX (`NVPTXAsmPrinter::printModuleLevelGV`).
  Align alignmentOf(const GlobalVariable &variable) const {
    return variable.getAlign().value_or(module.getDataLayout().getPrefTypeAlign(variable.getValueType()));
  }

  void visit(Instruction &instruction) {
    if (auto *call = dyn_cast<CallBase>(&instruction)) {
      if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand()))
        visitAssembly(*call, assembly->getAsmString());
      else if (Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic())
        visitIntrinsic(*call, callee->getName().drop_front(StringRef("llvm.").size()));
      return;
    }
    // Code may be there for both cases of an alignment that is found out when it runs: nothing is refused.
    Value *address = getLoadStorePointerOperand(&instruction);
    if (address && address->getType()->getPointerAddressSpace() == shared)
      if (uint64_t wanted = getLoadStoreAlignment(&instruction).value(); wanted > 4)
        demand(instruction, isa<LoadInst>(instruction) ? "load" : "store", address, {0, wanted});
  }

  void visitIntrinsic(CallBase &call, StringRef name) {
    if (takesDescriptors(name)) {
      for (Value *operand : call.args())
        if (operand->getType()->isIntegerTy(64))
          demand(call, name, operand, {0, swizzled});
      return;
    }
    DenseSet<unsigned> done;
    for (const Row &row : rows)
      if (name.starts_with(row.prefix) && row.operand < call.arg_size() && done.insert(row.operand).second &&
          call.getArgOperand(row.operand)->getType()->isPointerTy())
        demand(call, name, call.getArgOperand(row.operand), atLeast(call, name, row.demand));
  }

  /// Copies of 12 and 16 bytes for each lane into AMD's LDS want 16; the size is the operand behind the address.
  static Demand atLeast(CallBase &call, StringRef name, Demand demand) {
    if (name.starts_with("amdgcn.") && (name.contains(".load.lds") || name.contains(".load.to.lds")))
      if (auto *size = dyn_cast<ConstantInt>(call.getArgOperand(2)); size && size->getZExtValue() > 8)
        demand.least = 16;
    return demand;
  }

  void visitAssembly(CallBase &call, StringRef text) {
    if (takesDescriptors(text)) {
      for (Value *operand : call.args())
        if (operand->getType()->isIntegerTy(64))
          demand(call, firstWord(text, text.find("wgmma.mma_async")), operand, {0, swizzled});
      return;
    }
    size_t first = StringRef::npos;
    Demand wanted{0, 0};
    for (const auto &[instruction, demand] : inAssembly) {
      size_t at = text.find(instruction);
      if (at == StringRef::npos || at == first)
        continue;
      bool alone = first == StringRef::npos && text.find(instruction, at + 1) == StringRef::npos;
      // Which operand belongs to which of several instructions is not known: nothing is refused.
      wanted = {alone ? demand.least : 0, std::max(wanted.wanted, demand.wanted)};
      first = std::min(first, at);
    }
    if (wanted.wanted)
      for (Value *operand : call.args())
        if (demand(call, firstWord(text, first), operand, wanted))
          return;
  }

  static StringRef firstWord(StringRef text, size_t at) {
    return text.substr(at == StringRef::npos ? 0 : at).take_until([](char c) { return isSpace(c) || c == ';'; });
  }

  /// Whether the address is one in a workgroup's memory.
  bool demand(Instruction &instruction, StringRef name, Value *address, Demand demand) {
    auto targets = origins.of(address);
    for (const Target &target : targets) {
      uint64_t from = alignmentOf(*target.variable).value();
      uint64_t fits = target.step == 0 ? demand.least : std::min(target.step, demand.least);
      if (fits > 1 && target.offset % fits != 0)
        tell(instruction, name, target, from, demand.least, /*misfit=*/true);
      else if (from < demand.wanted) {
        target.variable->setAlignment(Align(demand.wanted));
        tell(instruction, name, target, from, demand.wanted, /*misfit=*/false);
      }
    }
    return !targets.empty();
  }

  void tell(Instruction &instruction, StringRef name, const Target &target, uint64_t from, uint64_t to, bool misfit) {
    GpulowerSharedAlignment entry{};
    entry.variable = gpulower::toBytes(target.variable->getName());
    entry.instruction = gpulower::toBytes(name);
    entry.function = gpulower::toBytes(instruction.getFunction()->getName());
    if (const DILocation *place = instruction.getDebugLoc().get()) {
      entry.directory = gpulower::toBytes(place->getDirectory());
      entry.file = gpulower::toBytes(place->getFilename());
      entry.line = place->getLine();
      entry.column = place->getColumn();
    }
    entry.misfit = misfit;
    entry.offset = target.offset;
    entry.from = from;
    entry.to = to;
    entries.push_back(entry);
  }

  /// As AMD's back end does it (`AMDGPULowerModuleLDSPass`, "super-align"): the widest accesses that fit in can be made.
  void alignBySize() {
    for (GlobalVariable &variable : module.globals()) {
      if (!isShared(variable) || variable.isDeclaration() || !variable.getValueType()->isSized())
        continue;
      uint64_t size = module.getDataLayout().getTypeAllocSize(variable.getValueType());
      Align wide(size > 8 ? 16 : size > 4 ? 8 : size > 2 ? 4 : size > 1 ? 2 : 1);
      if (alignmentOf(variable) < wide)
        variable.setAlignment(wide);
    }
  }

  /// ptxas places variables in the order of the text: the most aligned first, and nothing is left between them.
  void order() {
    SmallVector<GlobalVariable *> variables;
    for (GlobalVariable &variable : module.globals())
      if (isShared(variable))
        variables.push_back(&variable);
    llvm::stable_sort(variables, [&](const GlobalVariable *left, const GlobalVariable *right) {
      return alignmentOf(*left) > alignmentOf(*right);
    });
    for (GlobalVariable *variable : variables) {
      variable->removeFromParent();
      module.insertGlobalVariable(variable);
    }
  }

  Module &module;
  Origins origins;
  SmallVectorImpl<GpulowerSharedAlignment> &entries;
};

} // namespace

extern "C" {

/// Aligns the variables in workgroups' memory as the instructions that use them want it, and reports what was raised and what
/// cannot be aligned.
GpulowerOutcome gpulowerAlignShared(LLVMModuleRef module, void *closure,
                                    void (*report)(void *closure, const GpulowerSharedAlignment *entry)) {
  SmallVector<GpulowerSharedAlignment> entries;
  GpulowerOutcome outcome = gpulower::contain([&]() -> std::string {
    Aligner(*unwrap(module), entries).run();
    return "";
  });
  if (outcome.kind == GpulowerOk)
    for (const GpulowerSharedAlignment &entry : entries)
      report(closure, &entry);
  return outcome;
}
}
