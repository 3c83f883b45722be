// Calls of a vendor's device library that are known, or that something simpler computes: functions of numbers that are
// written in the program, as LLVM and nvcc fold those of C's mathematical library, and powers of which one number is.
// LLVM knows these functions by C's names alone, and stops where the code of libdevice's takes a number apart.

#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

#include <optional>

using namespace llvm;
using gpulower::contain;

namespace {

/// A function of a device library.
struct LibraryFunction {
  StringRef prefix;
  /// Without what says which type it is for.
  StringRef name;
  StringRef suffix;

  std::string of(StringRef other) const { return (prefix + other + suffix).str(); }
};

/// Which function of libdevice's (`__nv_powf`) or ocml's (`__ocml_pow_f32`) computes numbers of this type.
std::optional<LibraryFunction> libraryFunction(StringRef symbol, Type *type) {
  bool isNvidia = symbol.starts_with("__nv_");
  // libdevice has nothing for halves.
  if (!type->isFloatTy() && !type->isDoubleTy() && (isNvidia || !type->isHalfTy()))
    return std::nullopt;
  StringRef prefix = isNvidia ? "__nv_" : "__ocml_";
  StringRef suffix = isNvidia             ? (type->isFloatTy() ? "f" : "")
                     : type->isDoubleTy() ? "_f64"
                     : type->isFloatTy()  ? "_f32"
                                          : "_f16";
  StringRef name = symbol;
  if (!name.consume_front(prefix) || !name.consume_back(suffix))
    return std::nullopt;
  // Less exact, and the same function.
  if (isNvidia)
    name.consume_front("fast_");
  return LibraryFunction{prefix, name, suffix};
}

/// C's functions, which LLVM evaluates with those of the machine that it runs on.
class FunctionsOfC {
public:
  explicit FunctionsOfC(LLVMContext &context) : functions("functions of C", context), known(triple()), library(known) {
    functions.setTargetTriple(triple());
  }

  /// What a call of C's function `name` with these numbers would return, if LLVM knows.
  Constant *evaluate(CallInst &call, StringRef name, ArrayRef<Constant *> numbers) {
    if (any_of(numbers, isTooSmall))
      return nullptr;
    FunctionCallee callee = functions.getOrInsertFunction(name, call.getFunctionType());
    auto *function = dyn_cast<Function>(callee.getCallee());
    // Of a name that was asked for with another type, there is another function.
    if (!function || function->getFunctionType() != call.getFunctionType())
      return nullptr;
    Constant *result = ConstantFoldCall(&call, function, numbers, &library);
    return result && isNumber(result) ? result : nullptr;
  }

private:
  Module functions;
  TargetLibraryInfoImpl known;
  TargetLibraryInfo library;

  /// A system with all of C's functions.
  static Triple triple() { return Triple("x86_64-unknown-linux-gnu"); }

  /// What a chip may take for zero.
  static bool isTooSmall(const Constant *number) {
    auto *value = dyn_cast<ConstantFP>(number);
    return value && value->getValueAPF().isDenormal();
  }

  static bool isNumber(const Constant *result) {
    auto *value = dyn_cast<ConstantFP>(result);
    return isa<ConstantInt>(result) || (value && value->getValueAPF().isFinite() && !isTooSmall(value));
  }
};

/// Powers with one number that is known. What is computed is at most two units in the last place off, as the libraries'
/// own are (CUDA C++ Programming Guide, "Mathematical Functions": 2 for f64, 4 for f32).
class Power {
public:
  Power(CallInst &call, const LibraryFunction &function) : call(call), function(function), builder(&call) {
    builder.setFastMathFlags(call.getFastMathFlags());
  }

  Value *simpler() {
    Value *base = call.getArgOperand(0), *exponent = call.getArgOperand(1);
    if (auto *number = dyn_cast<ConstantFP>(exponent))
      return ofExponent(base, *number);
    auto *number = dyn_cast<ConstantFP>(base);
    if (number && number->isExactlyValue(2.0))
      return callOther("exp2", exponent);
    if (number && number->isExactlyValue(10.0))
      return callOther("exp10", exponent);
    return nullptr;
  }

private:
  CallInst &call;
  const LibraryFunction &function;
  IRBuilder<> builder;

  Value *ofExponent(Value *base, const ConstantFP &exponent) {
    if (exponent.isZero())
      return number(1.0);
    if (exponent.isExactlyValue(1.0))
      return base;
    if (exponent.isExactlyValue(2.0))
      return square(base);
    if (exponent.isExactlyValue(3.0))
      return builder.CreateFMul(square(base), base);
    if (exponent.isExactlyValue(4.0))
      return square(square(base));
    if (exponent.isExactlyValue(-1.0))
      return builder.CreateFDiv(number(1.0), base);
    if (exponent.isExactlyValue(0.5))
      return root(base);
    if (exponent.isExactlyValue(1.5))
      return builder.CreateFMul(builder.CreateUnaryIntrinsic(Intrinsic::fabs, base), root(base));
    if (exponent.isExactlyValue(-0.5))
      return builder.CreateFDiv(number(1.0), root(base));
    return nullptr;
  }

  Constant *number(double value) { return ConstantFP::get(call.getType(), value); }

  Value *square(Value *base) { return builder.CreateFMul(base, base); }

  /// Half a power: of negative zero it is zero, and of negative infinity infinite (C23, F.10.4.5).
  Value *root(Value *base) {
    Value *root = builder.CreateUnaryIntrinsic(Intrinsic::sqrt, base);
    root = builder.CreateUnaryIntrinsic(Intrinsic::fabs, root);
    if (call.hasNoInfs())
      return root;
    Value *infinite = builder.CreateFCmpOEQ(base, ConstantFP::getInfinity(call.getType(), true));
    return builder.CreateSelect(infinite, ConstantFP::getInfinity(call.getType()), root);
  }

  /// Nothing where the module has something else of that name.
  Value *callOther(StringRef name, Value *argument) {
    auto *type = FunctionType::get(call.getType(), {argument->getType()}, false);
    Module &module = *call.getModule();
    if (GlobalValue *known = module.getNamedValue(function.of(name)))
      if (!isa<Function>(known) || !known->isDeclaration() || cast<Function>(known)->getFunctionType() != type)
        return nullptr;
    CallInst *other = builder.CreateCall(module.getOrInsertFunction(function.of(name), type), {argument});
    other->setAttributes(AttributeList::get(call.getContext(), AttributeList::FunctionIndex,
                                            AttrBuilder(call.getContext(), call.getAttributes().getFnAttrs())));
    return other;
  }
};

Value *simplerCall(CallInst &call, FunctionsOfC &ofC) {
  const Function *callee = call.getCalledFunction();
  if (!callee || call.isNoBuiltin() || call.isStrictFP() || call.arg_empty() || call.getCallingConv() != CallingConv::C)
    return nullptr;
  Type *type = call.getArgOperand(0)->getType();
  std::optional<LibraryFunction> function = libraryFunction(callee->getName(), type);
  if (!function)
    return nullptr;
  SmallVector<Constant *, 2> numbers;
  for (Value *argument : call.args())
    if (isa<ConstantFP, ConstantInt>(argument))
      numbers.push_back(cast<Constant>(argument));
  // C has nothing for halves.
  if (numbers.size() == call.arg_size() && !type->isHalfTy())
    if (Constant *result = ofC.evaluate(call, (function->name + (type->isFloatTy() ? "f" : "")).str(), numbers))
      return result;
  bool isPower = function->name == "pow" && call.arg_size() == 2 && call.getArgOperand(1)->getType() == type &&
                 call.getType() == type && isa<FPMathOperator>(call);
  return isPower ? Power(call, *function).simpler() : nullptr;
}

/// What an intrinsic of NVIDIA's that LLVM does not evaluate makes of a number; nothing where it is another, or of a
/// NaN.
Constant *evaluated(const IntrinsicInst &intrinsic) {
  Type *type = intrinsic.getType();
  auto integer = [&](unsigned place) { return cast<ConstantInt>(intrinsic.getArgOperand(place))->getValue(); };
  auto number = [&] { return cast<ConstantFP>(intrinsic.getArgOperand(0))->getValueAPF(); };
  switch (intrinsic.getIntrinsicID()) {
  case Intrinsic::nvvm_d2i_hi:
    return ConstantInt::get(type, number().bitcastToAPInt().extractBits(32, 32));
  case Intrinsic::nvvm_d2i_lo:
    return ConstantInt::get(type, number().bitcastToAPInt().trunc(32));
  case Intrinsic::nvvm_lohi_i2d:
    return ConstantFP::get(type, APFloat(APFloat::IEEEdouble(), integer(1).concat(integer(0))));
  case Intrinsic::nvvm_rcp_approx_ftz_d: {
    // What has no exponent is zero, before and behind it, and the lower half is zero; so exact is the upper one (PTX
    // ISA, "rcp.approx.ftz.f64"). libdevice goes on from there to what is exact.
    APFloat divisor = number(), result(APFloat::IEEEdouble(), 1);
    if (divisor.isNaN())
      return nullptr;
    if (divisor.isDenormal())
      divisor = APFloat::getZero(APFloat::IEEEdouble(), divisor.isNegative());
    result.divide(divisor, APFloat::rmNearestTiesToEven);
    if (result.isDenormal())
      result = APFloat::getZero(APFloat::IEEEdouble(), result.isNegative());
    return ConstantFP::get(type,
                           APFloat(APFloat::IEEEdouble(), result.bitcastToAPInt() & APInt::getHighBitsSet(64, 32)));
  }
  default:
    return nullptr;
  }
}

bool isKnown(const CallInst &call) {
  return all_of(call.args(), [](const Use &argument) { return isa<ConstantFP, ConstantInt>(argument); });
}

/// Whether it calls one of the three functions that libdevice keeps from being inlined.
bool callsInternal(const CallInst &call) {
  const Function *callee = call.getCalledFunction();
  if (!callee || !callee->hasLocalLinkage() || callee->isDeclaration() || callee == call.getFunction() ||
      call.isMustTailCall() || callee->hasFnAttribute(Attribute::OptimizeNone) ||
      callee->hasFnAttribute(Attribute::StrictFP))
    return false;
  // Linked twice it has a number behind a point.
  StringRef name = callee->getName().split('.').first;
  return name == "__internal_accurate_pow" || name == "__internal_lgamma_pos" ||
         name == "__internal_trig_reduction_slowpathd";
}

/// Calls that are inlined in one function, and how often what is known is looked at anew for branches that are not
/// taken: of a logarithm twice.
constexpr unsigned mostInlined = 64, mostRounds = 8;

/// Evaluates what can be told of a function, from calls with known numbers onwards.
class KnownCalls {
public:
  explicit KnownCalls(Function &function) : function(function) {}

  void evaluate() {
    SmallVector<CallInst *, 4> inlined;
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction); call && call->getCalledFunction() && isKnown(*call)) {
        if (inlined.size() < mostInlined && callsInternal(*call))
          inlined.push_back(call);
        waiting.push_back(call);
      }
    // What is known of their arguments makes numbers of them.
    for (CallInst *call : inlined) {
      InlineFunctionInfo info;
      InlineFunction(*call, info);
    }
    if (!inlined.empty())
      waitForAll();
    for (unsigned round = 0; round < mostRounds; ++round) {
      while (!waiting.empty())
        if (auto *instruction = dyn_cast_or_null<Instruction>(waiting.pop_back_val()))
          evaluate(*instruction);
      if (!leaveOutWhatIsNotReached())
        break;
    }
  }

private:
  Function &function;
  SmallVector<WeakTrackingVH, 16> waiting;
  SmallVector<WeakTrackingVH, 16> branches;

  void waitForAll() {
    for (Instruction &instruction : instructions(function))
      waiting.push_back(&instruction);
  }

  void evaluate(Instruction &instruction) {
    if (instruction.isTerminator()) {
      branches.push_back(&instruction);
      return;
    }
    Constant *result = resultOf(instruction);
    if (!result)
      return;
    for (User *user : instruction.users())
      waiting.push_back(user);
    instruction.replaceAllUsesWith(result);
    if (isInstructionTriviallyDead(&instruction))
      instruction.eraseFromParent();
  }

  Constant *resultOf(Instruction &instruction) {
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction); intrinsic && isKnown(*intrinsic))
      if (Constant *result = evaluated(*intrinsic))
        return result;
    return ConstantFoldInstruction(&instruction, function.getDataLayout());
  }

  /// Whether a branch has become one without a condition: more is known then where blocks come together.
  bool leaveOutWhatIsNotReached() {
    bool isChanged = false;
    for (WeakTrackingVH &branch : branches)
      if (auto *instruction = dyn_cast_or_null<Instruction>(branch))
        isChanged |= ConstantFoldTerminator(instruction->getParent());
    branches.clear();
    if (!isChanged)
      return false;
    removeUnreachableBlocks(function);
    waitForAll();
    return true;
  }
};

} // namespace

/// Replaces calls of functions that a device library will define by what is known of their results. Whoever defines
/// such a function has it called.
extern "C" GpulowerOutcome gpulowerSimplifyLibraryCalls(LLVMModuleRef moduleRef) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    FunctionsOfC ofC(module.getContext());
    for (Function &function : make_early_inc_range(module)) {
      StringRef name = function.getName();
      if (!function.isDeclaration() || function.isIntrinsic() ||
          !(name.starts_with("__nv_") || name.starts_with("__ocml_")))
        continue;
      // Others that are called in its place come at the end of the module.
      for (User *user : make_early_inc_range(function.users()))
        if (auto *call = dyn_cast<CallInst>(user); call && call->getCalledFunction() == &function)
          if (Value *result = simplerCall(*call, ofC)) {
            call->replaceAllUsesWith(result);
            call->eraseFromParent();
          }
      if (function.use_empty())
        function.eraseFromParent();
    }
    return "";
  });
}

/// Evaluates calls with known numbers, and what follows from them, where libraries are linked.
extern "C" GpulowerOutcome gpulowerEvaluateCalls(LLVMModuleRef moduleRef) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    SmallVector<Function *, 16> functions;
    for (Function &function : module)
      if (!function.isDeclaration() && !function.hasOptNone() && !function.hasFnAttribute(Attribute::StrictFP))
        functions.push_back(&function);
    for (Function *function : functions)
      KnownCalls(*function).evaluate();
    return "";
  });
}
