// Passes of LLVM's that large functions do without.
#pragma once

#include "llvm/ADT/Any.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PassInstrumentation.h"

#include <functional>

namespace gpulower {

/// Leaves out passes whose time grows with the square of a function, or faster, where the function is large, and all
/// that can be left out once the work is to end. What is left out depends on the function alone.
class PassLimits {
public:
  using Report = std::function<void(llvm::StringRef pass, llvm::StringRef function)>;

  explicit PassLimits(Report report) : report(std::move(report)) {}

  /// The callbacks refer to this.
  void attach(llvm::PassInstrumentationCallbacks &callbacks);

  /// Looks at the functions as they are before the passes.
  void prepare(const llvm::Module &module);

  /// For code generation after the passes.
  void mark(llvm::Module &module);

private:
  bool isAllowed(llvm::StringRef pass, const llvm::Any &unit);

  /// Whether loops of the function are inside of each other in too many levels, those in `loop` included.
  bool isDeep(const llvm::Function &function, const llvm::Loop *loop);

  Report report;
  /// The names of such functions.
  llvm::StringSet<> deep;
};

/// Metadata of a loop: code generation does without LLVM's loop strength reduction there.
constexpr llvm::StringLiteral noLoopReduction = "gpulower.loop.no.strength.reduction";

/// Attribute of a function: code generation does without LLVM's straight-line strength reduction, without what tidies
/// up behind it, and sinks nothing.
constexpr llvm::StringLiteral noReduction = "gpulower-no-strength-reduction";

/// Attribute of a function: code generation sinks nothing.
constexpr llvm::StringLiteral noSinking = "gpulower-no-sinking";

/// Has code generation leave out what functions and loops are marked for, while it lives.
class CodeGenerationLimits final : public llvm::OptPassGate {
public:
  explicit CodeGenerationLimits(llvm::Module &module);
  ~CodeGenerationLimits() override;

  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef unit) const override;
  /// Of loops nothing is known before the first of them is entered.
  bool isEnabled() const override { return true; }

  /// Of a loop the gate is told no more than that it is one: passes over loops ask about this one until the next call.
  void enter(const llvm::Loop &loop);

  const bool isForAmd, isForNvidia;

private:
  llvm::LLVMContext &context;
  /// Functions as passes describe them, `function (NAME)`, by what they do without.
  llvm::StringSet<> withoutVectorizer, withoutReduction, withoutSinking;
  bool isLoopLeftAlone = false;
};

/// Passes of code generation, and ours among them: one tells the gate of the loop that strength reduction is about to
/// see.
class CodeGenerationPasses final : public llvm::legacy::PassManager {
public:
  explicit CodeGenerationPasses(CodeGenerationLimits &limits) : limits(limits) {}
  void add(llvm::Pass *pass) override;

private:
  CodeGenerationLimits &limits;
};

} // namespace gpulower
