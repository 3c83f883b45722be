// The steps of a device module's compilation that go through LLVM's C++ API, each contained.

#include "bytes.h"
#include "code_generation.h"
#include "contain.h"
#include "for_ptx.h"
#include "accumulators.h"
#include "exclusive_ors.h"
#include "interleave.h"
#include "narrow_integers.h"
#include "pass_limits.h"
#include "passes.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm-c/Core.h"
#include "llvm-c/Target.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/AsmParser/LLParser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/AutoUpgrade.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <mutex>

using namespace llvm;
using gpulower::contain;
using gpulower::toBytes;
using gpulower::toStringRef;
using gpulower::copyText;

extern "C" {

void gpulowerFreeText(char *text) { std::free(text); }

/// Registers LLVM's targets, once. All of them: lld does so in its first link, and a registration while another thread
/// looks a target up would be a race.
void gpulowerInitializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
    LLVMInitializeAllDisassemblers();
  });
}

} // extern "C"

/// What LLVM's NVPTX back end and ptxas have been seen to get wrong or to do badly, in another way.
static void writeForPtxas(Module &module, FunctionAnalysisManager &functions) {
  gpulower::exchangeOnce(module);
  gpulower::foldBfloatRoundings(module);
  gpulower::shuffleByOffset(module);
  gpulower::convertSingleBits(module);
  gpulower::computeAbsoluteValues(module);
  gpulower::forgetSignsOfShifts(module);
  gpulower::compareWithNaN(module);
  gpulower::chooseZeros(module);
  gpulower::keepFromSaturating(module);
  gpulower::separateMaskedLanes(module);
  gpulower::putOddVectorsTogether(module);
  // Nothing above keeps what was known.
  functions.clear();
  gpulower::compareLoopEnds(module, functions);
  gpulower::takePackedHalvesApart(module);
  gpulower::takeStructuresApart(module);
}

/// The same of LLVM's AMDGPU back end.
static void writeForAmd(Module &module) {
  gpulower::exchangeOnce(module);
  gpulower::convertSingleBits(module);
  gpulower::chooseZeros(module);
  gpulower::takeStructuresApart(module);
}

static bool isKernel(const Function &function) {
  return function.getCallingConv() == CallingConv::PTX_Kernel ||
         function.getCallingConv() == CallingConv::AMDGPU_KERNEL;
}

extern "C" {

/// Translates an operation of the LLVM dialect. MLIR's diagnostics say what was wrong.
GpulowerOutcome gpulowerTranslate(MlirOperation operation,
                                  LLVMContextRef context,
                                  LLVMModuleRef *result) {
  return contain([&]() -> std::string {
    // MLIR would print what LLVM's verifier says.
    std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(
        ::unwrap(operation), *unwrap(context), "LLVMDialectModule",
        /*disableVerification=*/true);
    if (!module)
      return "MLIR could not translate the module to LLVM IR";
    std::string text;
    raw_string_ostream stream(text);
    if (verifyModule(*module, &stream))
      return "MLIR translated the module to LLVM IR that is not valid: " + text;
    *result = wrap(module.release());
    return "";
  });
}

/// The layout of a text for NVIDIA that states none: accesses that state no alignment get theirs from it, and LLVM's default
/// gives an `i64` 4 bytes. (That of AMD's moves variables to another address space: a text without it was not written for it.)
static std::optional<std::string> layoutOfTarget(StringRef triple,
                                                 StringRef stated) {
  Triple target(triple);
  if (!stated.empty() || !target.isNVPTX())
    return std::nullopt;
  return target.computeDataLayout();
}

/// Parses bitcode or textual LLVM IR. What `parseIR` does to debug info of a text comes after the caller's verification:
/// of IR that is not valid it would print what is wrong, and end in a fatal error.
static std::unique_ptr<Module> parseModule(MemoryBufferRef buffer,
                                           SMDiagnostic &diagnostic,
                                           LLVMContext &context) {
  if (isBitcode(reinterpret_cast<const unsigned char *>(buffer.getBufferStart()),
                reinterpret_cast<const unsigned char *>(buffer.getBufferEnd())))
    return parseIR(buffer, diagnostic, context);
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(buffer), SMLoc());
  auto module =
      std::make_unique<Module>(buffer.getBufferIdentifier(), context);
  LLParser parser(buffer.getBuffer(), sources, diagnostic, module.get(),
                  /*Index=*/nullptr, context);
  if (parser.Run(/*UpgradeDebugInfo=*/false, layoutOfTarget))
    return nullptr;
  return module;
}

/// Parses bitcode or textual LLVM IR. Atomic operations of CUDA C++ by clang are CUDA's from here on.
GpulowerOutcome gpulowerParseModule(LLVMContextRef context, GpulowerBytes bytes,
                                    GpulowerBytes name, LLVMModuleRef *result) {
  return contain([&]() -> std::string {
    auto buffer = MemoryBuffer::getMemBufferCopy(toStringRef(bytes),
                                                 toStringRef(name));
    SMDiagnostic diagnostic;
    std::unique_ptr<Module> module =
        parseModule(buffer->getMemBufferRef(), diagnostic, *unwrap(context));
    if (module && !verifyModule(*module)) {
      UpgradeDebugInfo(*module);
      gpulower::relaxCudaAtomics(*module);
      *result = wrap(module.release());
      return "";
    }
    std::string text;
    raw_string_ostream stream(text);
    if (module)
      verifyModule(*module, &stream);
    else
      diagnostic.print(nullptr, stream, /*ShowColors=*/false);
    return text.empty() ? "not LLVM IR" : text;
  });
}

struct GpulowerMachineOptions {
  GpulowerBytes triple;
  GpulowerBytes chip;
  GpulowerBytes features;
  /// 0 to 3, as in -O0 to -O3.
  int optimization;
  /// Whether multiplications and additions are fused everywhere; otherwise where the IR allows it.
  bool contractEverywhere;
  /// NVIDIA: whether pointers into constant, workgroup and private memory have 32 bits.
  bool shortPointers;
};

namespace {

/// LLVM's option for short pointers, which it reads while it makes a machine, and nowhere else: one for the whole process.
class ShortPointers {
public:
  explicit ShortPointers(bool wanted) : lock(mutex()) {
    static auto *found = static_cast<cl::opt<bool> *>(
        cl::getRegisteredOptions().lookup("nvptx-short-ptr"));
    option = wanted ? found : nullptr;
    if (option)
      option->setValue(true);
  }
  ~ShortPointers() {
    if (option)
      option->setValue(false);
  }

private:
  static std::mutex &mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock;
  cl::opt<bool> *option;
};

} // namespace

GpulowerOutcome
gpulowerCreateTargetMachine(const GpulowerMachineOptions *options,
                            LLVMTargetMachineRef *result) {
  gpulowerInitializeTargets();
  // Outside of what is contained: a fatal error leaves that without destructors.
  ShortPointers pointers(options->shortPointers);
  return contain([&]() -> std::string {
    std::string error;
    Triple triple(toStringRef(options->triple));
    const Target *target = TargetRegistry::lookupTarget(triple, error);
    if (!target)
      return error;
    TargetOptions targetOptions;
    targetOptions.AllowFPOpFusion =
        options->contractEverywhere ? FPOpFusion::Fast : FPOpFusion::Standard;
    targetOptions.MCOptions.AsmVerbose = false;
    // Host objects: lld calls what is in .init_array, and not what is in .ctors.
    targetOptions.UseInitArray = true;
    TargetMachine *machine = target->createTargetMachine(
        triple, toStringRef(options->chip), toStringRef(options->features),
        targetOptions, Reloc::PIC_, std::nullopt,
        static_cast<CodeGenOptLevel>(options->optimization));
    if (!machine)
      return "LLVM was built without this target";
    *result = reinterpret_cast<LLVMTargetMachineRef>(machine);
    return "";
  });
}

/// Names every feature of the vendor's chips, and says whether the machine's chip has it, and whether any has: what no chip has
/// is a setting, which every chip takes.
void gpulowerChipFeatures(LLVMTargetMachineRef machineRef, void *closure,
                          void (*report)(void *, GpulowerBytes name, bool has, bool isSetting)) {
  const MCSubtargetInfo &chip = *reinterpret_cast<TargetMachine *>(machineRef)->getMCSubtargetInfo();
  FeatureBitset ofSome;
  for (const SubtargetSubTypeKV &other : chip.getAllProcessorDescriptions())
    ofSome |= other.Implies.getAsBitset();
  for (FeatureBitset before; before != ofSome;) {
    before = ofSome;
    for (const SubtargetFeatureKV &feature : chip.getAllProcessorFeatures())
      if (before.test(feature.Value))
        ofSome |= feature.Implies.getAsBitset();
  }
  for (const SubtargetFeatureKV &feature : chip.getAllProcessorFeatures())
    report(closure, toBytes(StringRef(feature.Key)),
           chip.hasFeature(feature.Value), !ofSome.test(feature.Value));
}

/// Gives the module the triple and the data layout of the machine.
GpulowerOutcome gpulowerSetTarget(LLVMModuleRef module,
                                  LLVMTargetMachineRef machineRef) {
  return contain([&]() -> std::string {
    auto *machine = reinterpret_cast<TargetMachine *>(machineRef);
    unwrap(module)->setTargetTriple(machine->getTargetTriple());
    unwrap(module)->setDataLayout(machine->createDataLayout());
    return "";
  });
}

/// Links from a library (bitcode or textual IR) the definitions that `module` lacks. The bytes are only read lazily:
/// they have to stay valid during the call alone.
GpulowerOutcome gpulowerLinkLibrary(LLVMModuleRef moduleRef,
                                    GpulowerBytes bytes, GpulowerBytes name) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    LLVMContext &context = module.getContext();
    auto buffer = MemoryBuffer::getMemBuffer(
        toStringRef(bytes), toStringRef(name), /*RequiresNullTerminator=*/false);
    std::unique_ptr<Module> library;
    if (isBitcode(reinterpret_cast<const unsigned char *>(bytes.data),
                  reinterpret_cast<const unsigned char *>(bytes.data) +
                      bytes.length)) {
      Expected<std::unique_ptr<Module>> lazy =
          getLazyBitcodeModule(buffer->getMemBufferRef(), context,
                               /*ShouldLazyLoadMetadata=*/true);
      if (!lazy)
        return toString(lazy.takeError());
      library = std::move(*lazy);
    } else {
      SMDiagnostic diagnostic;
      auto copy = MemoryBuffer::getMemBufferCopy(toStringRef(bytes),
                                                 toStringRef(name));
      library = parseModule(copy->getMemBufferRef(), diagnostic, context);
      if (!library) {
        std::string text;
        raw_string_ostream stream(text);
        diagnostic.print(nullptr, stream, /*ShowColors=*/false);
        return text;
      }
      std::string reason;
      raw_string_ostream stream(reason);
      if (verifyModule(*library, &stream))
        return "the library's LLVM IR does not verify: " + reason;
      UpgradeDebugInfo(*library);
    }
    // Device libraries are written for a family of chips by older LLVMs: their spelling of the same layout differs.
    library->setTargetTriple(module.getTargetTriple());
    library->setDataLayout(module.getDataLayout());
    // What a lazy module has of metadata is read first: else the linker would read it, and bring along who made the library.
    if (Error error = library->materializeMetadata())
      return toString(std::move(error));
    for (StringRef metadata : {"opencl.ocl.version", "llvm.ident"})
      if (NamedMDNode *node = library->getNamedMetadata(metadata))
        library->eraseNamedMetadata(node);
    if (Linker::linkModules(module, std::move(library),
                            Linker::Flags::LinkOnlyNeeded))
      return "LLVM's linker refused the library";
    return "";
  });
}

/// Links all of `sourceRef`, which is used up, into `module` of the same context.
GpulowerOutcome gpulowerJoinModules(LLVMModuleRef moduleRef,
                                    LLVMModuleRef sourceRef) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    std::unique_ptr<Module> source(unwrap(sourceRef));
    // Both are given the target's own afterwards; until then one of them may be empty.
    source->setTargetTriple(module.getTargetTriple());
    source->setDataLayout(module.getDataLayout());
    if (Linker::linkModules(module, std::move(source)))
      return "LLVM's linker refused the module";
    return "";
  });
}

/// Reports every symbol that is used and not defined, with each kernel that reaches it (or a null kernel).
void gpulowerUndefinedSymbols(LLVMModuleRef moduleRef, void *closure,
                              void (*report)(void *closure,
                                             GpulowerBytes symbol,
                                             GpulowerBytes kernel)) {
  Module &module = *unwrap(moduleRef);
  auto reportSymbol = [&](const GlobalValue &symbol) {
    SmallPtrSet<const Value *, 16> visited;
    SmallVector<const Value *, 16> worklist{&symbol};
    bool reached = false;
    while (!worklist.empty()) {
      const Value *value = worklist.pop_back_val();
      if (!visited.insert(value).second)
        continue;
      if (const auto *function = dyn_cast<Function>(value))
        if (isKernel(*function)) {
          reached = true;
          report(closure, toBytes(symbol.getName()),
                 toBytes(function->getName()));
          continue;
        }
      for (const User *user : value->users()) {
        if (const auto *instruction = dyn_cast<Instruction>(user))
          worklist.push_back(instruction->getFunction());
        else
          worklist.push_back(user);
      }
    }
    if (!reached)
      report(closure, toBytes(symbol.getName()), GpulowerBytes{nullptr, 0});
  };
  for (const Function &function : module)
    // By the ID: a name in LLVM's own namespace that LLVM does not know is no intrinsic, and nothing would define it.
    if (function.isDeclaration() &&
        function.getIntrinsicID() == Intrinsic::not_intrinsic &&
        !function.use_empty() && function.getName() != "__nvvm_reflect")
      reportSymbol(function);
  for (const GlobalVariable &variable : module.globals()) {
    // Dynamic shared memory is an external array by design: NVPTX and AMDGPU size it at launch.
    bool dynamicShared = variable.getAddressSpace() == 3;
    if (variable.isDeclaration() && !variable.use_empty() && !dynamicShared)
      reportSymbol(variable);
  }
}

/// Dynamic shared memory as ptxas knows it: an array that is declared, and begins behind what the kernel defines. MLIR defines
/// an empty array, which becomes a variable of one byte, and so lies among the kernel's other variables.
static void declareDynamicSharedMemory(Module &module) {
  for (GlobalVariable &variable : module.globals()) {
    auto *array = dyn_cast<ArrayType>(variable.getValueType());
    if (variable.getAddressSpace() != 3 || !array || array->getNumElements() != 0 || variable.isDeclaration())
      continue;
    variable.setInitializer(nullptr);
    variable.setLinkage(GlobalValue::ExternalLinkage);
    variable.setUnnamedAddr(GlobalValue::UnnamedAddr::None);
  }
}

/// Makes everything internal that is neither a kernel nor named in `keep`, and removes what nothing needs.
GpulowerOutcome gpulowerInternalize(LLVMModuleRef moduleRef,
                                    const GpulowerBytes *keep,
                                    size_t keepCount) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    if (module.getTargetTriple().isNVPTX())
      declareDynamicSharedMemory(module);
    StringSet<> kept;
    for (size_t i = 0; i < keepCount; ++i)
      kept.insert(toStringRef(keep[i]));
    internalizeModule(module, [&](const GlobalValue &value) {
      if (const auto *function = dyn_cast<Function>(&value))
        if (isKernel(*function))
          return true;
      return kept.contains(value.getName());
    });
    ModuleAnalysisManager analyses;
    PassBuilder().registerModuleAnalyses(analyses);
    GlobalDCEPass().run(module, analyses);
    // What is said to be local to its code object is addressed as such, and lld wants that nothing else may take its place.
    if (module.getTargetTriple().isAMDGPU())
      for (GlobalObject &object : module.global_objects())
        if (!object.isDeclaration() && !object.hasLocalLinkage() && object.isDSOLocal() && object.hasDefaultVisibility())
          object.setVisibility(GlobalValue::ProtectedVisibility);
    return "";
  });
}

/// Whether whoever made the module chose to flush f32 denormals, by the module flag that LLVM's NVPTX reads.
bool gpulowerReflectsFtz(LLVMModuleRef module) {
  auto *flag = mdconst::extract_or_null<ConstantInt>(
      unwrap(module)->getModuleFlag("nvvm-reflect-ftz"));
  return flag && !flag->isZero();
}

/// Replaces `__nvvm_reflect(key)` for one key by a constant, everywhere.
void gpulowerFoldReflect(LLVMModuleRef moduleRef, GpulowerBytes key,
                         int32_t value) {
  Module &module = *unwrap(moduleRef);
  Function *reflect = module.getFunction("__nvvm_reflect");
  if (!reflect)
    return;
  for (User *user : make_early_inc_range(reflect->users())) {
    auto *call = dyn_cast<CallInst>(user);
    if (!call || call->arg_size() != 1)
      continue;
    auto *variable = dyn_cast<GlobalVariable>(
        call->getArgOperand(0)->stripPointerCasts());
    if (!variable || !variable->hasInitializer())
      continue;
    auto *text = dyn_cast<ConstantDataArray>(variable->getInitializer());
    if (!text || !text->isCString() ||
        text->getAsCString() != toStringRef(key))
      continue;
    call->replaceAllUsesWith(ConstantInt::getSigned(call->getType(), value));
    call->eraseFromParent();
  }
}

struct GpulowerFloatingPoint {
  /// Sets every fast-math flag.
  bool fast;
  /// Clears `contract` on every instruction.
  bool neverContract;
  /// Division of f32 need not be correctly rounded.
  bool approximateDivision;
  /// Square roots of f32 need not be correctly rounded.
  bool approximateSquareRoot;
  /// f32 denormals become zero.
  bool flushDenormals;
};

/// Replaces `llvm.fmuladd`, which may be fused, by a multiplication and an addition, which may not.
static void splitMultiplyAdd(IntrinsicInst &call) {
  IRBuilder<> builder(&call);
  builder.setFastMathFlags(call.getFastMathFlags());
  Value *product =
      builder.CreateFMul(call.getArgOperand(0), call.getArgOperand(1));
  call.replaceAllUsesWith(builder.CreateFAdd(product, call.getArgOperand(2)));
  call.eraseFromParent();
}

/// Permits an f32 division or square root to be approximate.
static void approximate(Instruction &instruction, bool division,
                        const GpulowerFloatingPoint &options) {
  Module &module = *instruction.getModule();
  if (!module.getTargetTriple().isNVPTX()) {
    // The accuracies are clang's for -fno-hip-fp32-correctly-rounded-divide-sqrt. The flag `afn` would mean less to
    // AMDGPU: v_rcp alone, wrong for denormal divisors.
    MDBuilder metadata(module.getContext());
    instruction.setMetadata(LLVMContext::MD_fpmath,
                            metadata.createFPMath(division ? 2.5f : 3.0f));
    return;
  }
  if (!division || options.fast || instruction.getType()->isVectorTy()) {
    instruction.setHasApproxFunc(true);
    return;
  }
  // `afn` selects div.approx, which gives 0 for divisors above 2^126; nvcc's -prec-div=false means div.full, 2 ulp over
  // the full range (PTX ISA, "div").
  IRBuilder<> builder(&instruction);
  Value *quotient = builder.CreateIntrinsic(
      options.flushDenormals ? Intrinsic::nvvm_div_full_ftz
                             : Intrinsic::nvvm_div_full,
      {instruction.getOperand(0), instruction.getOperand(1)});
  instruction.replaceAllUsesWith(quotient);
  instruction.eraseFromParent();
}

/// Applies floating-point permissions to every instruction of the module.
void gpulowerSetFloatingPoint(LLVMModuleRef moduleRef,
                              const GpulowerFloatingPoint *options) {
  for (Function &function : *unwrap(moduleRef))
    for (Instruction &instruction :
         make_early_inc_range(instructions(function))) {
      if (!isa<FPMathOperator>(instruction))
        continue;
      if (options->fast)
        instruction.setFast(true);
      if (options->neverContract)
        instruction.setHasAllowContract(false);
      auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
      Intrinsic::ID id =
          intrinsic ? intrinsic->getIntrinsicID() : Intrinsic::not_intrinsic;
      if (options->neverContract && id == Intrinsic::fmuladd) {
        splitMultiplyAdd(*intrinsic);
        continue;
      }
      bool division = instruction.getOpcode() == Instruction::FDiv;
      bool squareRoot = id == Intrinsic::sqrt;
      if (!(division || squareRoot) ||
          !instruction.getType()->getScalarType()->isFloatTy())
        continue;
      if (division ? options->approximateDivision
                   : options->approximateSquareRoot) {
        approximate(instruction, division, *options);
      } else if (options->fast) {
        // A demand for correct rounding is more specific than `fast`.
        instruction.setHasApproxFunc(false);
        instruction.setHasAllowReciprocal(false);
      }
    }
}

/// Sets a string attribute on every function that has a body, or on kernels alone.
void gpulowerSetAttribute(LLVMModuleRef moduleRef, GpulowerBytes key,
                          GpulowerBytes value, bool kernelsOnly) {
  for (Function &function : *unwrap(moduleRef))
    if (!function.isDeclaration() && (!kernelsOnly || isKernel(function)))
      function.addFnAttr(toStringRef(key), toStringRef(value));
}

/// Leaves lines alone, in units of the only kind that LLVM prints without `debug` in PTX's `.target`: with that word,
/// NVIDIA's compilers optimise nothing.
void gpulowerKeepLinesAlone(LLVMModuleRef moduleRef) {
  Module &module = *unwrap(moduleRef);
  NamedMDNode *units = module.getNamedMetadata("llvm.dbg.cu");
  if (!units)
    return;
  stripNonLineTableDebugInfo(module);
  DebugInfoFinder finder;
  finder.processModule(module);
  DenseMap<DICompileUnit *, DICompileUnit *> replacements;
  units->clearOperands();
  for (DICompileUnit *unit : finder.compile_units()) {
    DICompileUnit *lines = DICompileUnit::getDistinct(
        module.getContext(), unit->getSourceLanguage(), unit->getFile(), unit->getProducer(), unit->isOptimized(), "",
        unit->getRuntimeVersion(), "", DICompileUnit::DebugDirectivesOnly, nullptr, nullptr, nullptr, nullptr, nullptr,
        0, false, false, DICompileUnit::DebugNameTableKind::None, false, "", "");
    replacements[unit] = lines;
    units->addOperand(lines);
  }
  for (DISubprogram *function : finder.subprograms())
    if (DICompileUnit *unit = function->getUnit())
      function->replaceUnit(replacements.lookup(unit));
}

void gpulowerStripDebugInfo(LLVMModuleRef moduleRef) {
  StripDebugInfo(*unwrap(moduleRef));
}

/// Replaces the beginnings of paths in debug info: `pairs` are old and new ones in turn, of which the last that fits a
/// path counts. The directory and the name of a file are separate: where OLD goes beyond the directory, the name becomes
/// the whole path.
void gpulowerRemapFiles(LLVMModuleRef moduleRef, const GpulowerBytes *pairs,
                        size_t pairCount) {
  Module &module = *unwrap(moduleRef);
  DebugInfoFinder finder;
  finder.processModule(module);
  SetVector<DIFile *> files;
  auto add = [&files](DIFile *file) {
    if (file)
      files.insert(file);
  };
  for (DICompileUnit *unit : finder.compile_units())
    add(unit->getFile());
  for (DISubprogram *function : finder.subprograms())
    add(function->getFile());
  for (DIScope *scope : finder.scopes())
    add(scope->getFile());
  for (DIType *type : finder.types())
    add(type->getFile());
  for (DIGlobalVariableExpression *global : finder.global_variables())
    add(global->getVariable()->getFile());
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      for (const DILocation *location = instruction.getDebugLoc().get();
           location; location = location->getInlinedAt())
        for (auto *scope = dyn_cast<DILexicalBlockBase>(location->getScope());
             scope; scope = dyn_cast<DILexicalBlockBase>(scope->getScope()))
          add(scope->getFile());
  LLVMContext &context = module.getContext();
  auto text = [&context](const Twine &value) -> Metadata * {
    std::string copy = value.str();
    return copy.empty() ? nullptr : MDString::get(context, copy);
  };
  // Operands of a DIFile: name, directory, checksum, source (llvm/IR/DebugInfoMetadata.h).
  for (DIFile *file : files) {
    std::string name = file->getFilename().str();
    std::string directory = file->getDirectory().str();
    bool inDirectory = !directory.empty() && !sys::path::is_absolute(name);
    std::string whole = inDirectory ? directory + "/" + name : name;
    for (size_t i = pairCount; i-- > 0;) {
      StringRef old = toStringRef(pairs[2 * i]);
      StringRef replacement = toStringRef(pairs[2 * i + 1]);
      if (inDirectory && StringRef(directory).starts_with(old)) {
        file->replaceOperandWith(
            1, text(replacement + StringRef(directory).drop_front(old.size())));
        break;
      }
      if (StringRef(whole).starts_with(old)) {
        file->replaceOperandWith(
            0, text(replacement + StringRef(whole).drop_front(old.size())));
        if (inDirectory)
          file->replaceOperandWith(1, nullptr);
        break;
      }
    }
  }
}

/// Runs a textual LLVM pass pipeline. `report` is told of each pass that a large function does without.
GpulowerOutcome gpulowerRunPasses(LLVMModuleRef moduleRef,
                                  LLVMTargetMachineRef machineRef,
                                  GpulowerBytes pipeline, void *closure,
                                  void (*report)(void *, GpulowerBytes pass, GpulowerBytes function)) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    auto *machine = reinterpret_cast<TargetMachine *>(machineRef);
    PipelineTuningOptions tuning;
    tuning.LoopUnrolling = true;
    // A thread of NVIDIA's has no vectors but pairs of halves, which the SLP vectorizer finds; the loop vectorizer takes 8
    // percent of LLVM's time and changes nothing.
    tuning.LoopVectorization = !module.getTargetTriple().isNVPTX();
    tuning.LoopInterleaving = tuning.LoopVectorization;
    tuning.SLPVectorization = true;
    gpulower::PassLimits limits([&](StringRef pass, StringRef function) {
      report(closure, toBytes(pass), toBytes(function));
    });
    PassInstrumentationCallbacks callbacks;
    limits.attach(callbacks);
    limits.prepare(module);
    PassBuilder builder(machine, tuning, std::nullopt, &callbacks);
    if (module.getTargetTriple().isNVPTX())
      gpulower::addPassesForPtx(builder);
    gpulower::addAccumulators(builder);
    gpulower::addSeparation(builder);
    gpulower::addDivisions(builder);
    gpulower::addInference(builder);
    gpulower::interleave::addInterleaving(builder);
    gpulower::Analyses analyses(builder);
    ModulePassManager passes;
    if (Error error = builder.parsePassPipeline(passes, toStringRef(pipeline)))
      return toString(std::move(error));
    gpulower::takeStackOnce(module);
    gpulower::separateBfloatsFromHalves(module);
    passes.run(module, analyses.modules);
    // Here already, so that who looks at the optimised module sees what code is made of.
    if (machine)
      gpulower::inferAddressSpaces(module, *machine, analyses.functions);
    if (machine && module.getTargetTriple().isNVPTX())
      writeForPtxas(module, analyses.functions);
    else if (machine && module.getTargetTriple().isAMDGPU())
      writeForAmd(module);
    limits.mark(module);
    std::string text;
    raw_string_ostream stream(text);
    if (verifyModule(module, &stream))
      return "LLVM's passes produced invalid IR: " + text;
    return "";
  });
}

} // extern "C"

/// Runs `write(stream)` in `contain` and hands what it wrote to `sink`.
template <typename Write>
static GpulowerOutcome containWriting(void *closure, GpulowerSink sink, Write &&write) {
  // Released on the ordinary path only: a fatal error leaks it with everything else.
  auto *buffer = new (std::nothrow) SmallString<0>();
  if (!buffer)
    return GpulowerOutcome{GpulowerFatal, copyText(gpulower::outOfMemory)};
  GpulowerOutcome outcome = contain([&]() -> std::string {
    raw_svector_ostream stream(*buffer);
    return write(stream);
  });
  if (outcome.kind == GpulowerOk)
    sink(closure, toBytes(*buffer));
  if (outcome.kind == GpulowerOk || outcome.kind == GpulowerRefused)
    delete buffer;
  return outcome;
}

extern "C" {

/// The module as text.
GpulowerOutcome gpulowerPrintModule(LLVMModuleRef module, void *closure, GpulowerSink sink) {
  return containWriting(closure, sink, [&](raw_ostream &stream) -> std::string {
    unwrap(module)->print(stream, nullptr);
    return "";
  });
}

/// The module as bitcode.
GpulowerOutcome gpulowerWriteBitcode(LLVMModuleRef module, void *closure, GpulowerSink sink) {
  return containWriting(closure, sink, [&](raw_ostream &stream) -> std::string {
    WriteBitcodeToFile(*unwrap(module), stream);
    return "";
  });
}

/// Emits assembly (`object` false) or an object file.
GpulowerOutcome gpulowerEmit(LLVMModuleRef moduleRef,
                             LLVMTargetMachineRef machineRef, bool object,
                             void *closure, GpulowerSink sink) {
  return containWriting(closure, sink, [&](raw_svector_ostream &stream) -> std::string {
    auto *machine = reinterpret_cast<TargetMachine *>(machineRef);
    Module &module = *unwrap(moduleRef);
    {
      PassBuilder builder(machine);
      gpulower::Analyses analyses(builder);
      gpulower::inferAddressSpaces(module, *machine, analyses.functions);
      if (module.getTargetTriple().isNVPTX()) {
        gpulower::qualifyAtomics(module, machine->getTargetCPU());
        writeForPtxas(module, analyses.functions);
      }
    }
    if (module.getTargetTriple().isAMDGPU()) {
      writeForAmd(module);
      gpulower::addBytesInTurn(module);
      gpulower::writeTrapsOut(module, machine->getTargetCPU());
    }
    gpulower::CodeGenerationLimits limits(module);
    gpulower::CodeGenerationPasses passes(limits);
    // Whatever came in, and whatever LLVM's passes made of it, is verified already.
    if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                     object ? CodeGenFileType::ObjectFile
                                            : CodeGenFileType::AssemblyFile,
                                     /*DisableVerify=*/true))
      return "this target cannot emit the requested kind of file";
    passes.run(module);
    return "";
  });
}

} // extern "C"
