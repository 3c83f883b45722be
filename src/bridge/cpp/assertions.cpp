// What a failed assertion says: file, line and function, which MLIR's conversion takes from the location.
// Where that has converted it already (convert-gpu-to-nvvm of upstream's), the function is put in afterwards.

#include "patterns.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

/// MLIR takes a name with a file behind it, and a file alone for a function that is not known. Other forms, such as the
/// fused ones of inlining and folding, are "(unknown):0" to it.
static Location asserted(cf::AssertOp op) {
  StringAttr function;
  if (auto around = op->getParentOfType<FunctionOpInterface>())
    function = around.getNameAttr();
  FileLineColLoc file;
  bool named = false;
  op.getLoc()->walk([&](Location location) {
    if (auto call = dyn_cast<CallSiteLoc>(location)) {
      // Only where it stands counts, not where that was called.
      location = call.getCallee();
      while (auto inner = dyn_cast<CallSiteLoc>(location))
        location = inner.getCallee();
    }
    if (auto name = dyn_cast<NameLoc>(location); name && !named) {
      function = name.getName();
      named = true;
    }
    if (auto found = location->findInstanceOf<FileLineColLoc>(); found && !file)
      file = found;
    return file ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!function)
    return op.getLoc();
  Location place = file ? Location(file) : UnknownLoc::get(op.getContext());
  return NameLoc::get(function, place);
}

namespace {
/// What was found and made for the assertions of a module.
struct Constants {
  SymbolTableCollection tables;
  /// The name of a function, in place of the constant that its assertions had.
  DenseMap<std::pair<Operation *, Operation *>, LLVM::GlobalOp> names;
};
} // namespace

/// The constant that an argument is the address of.
static LLVM::GlobalOp constantAt(Value address, Constants &constants) {
  Operation *op = address.getDefiningOp();
  while (isa_and_nonnull<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  auto taken = dyn_cast_or_null<LLVM::AddressOfOp>(op);
  return taken ? constants.tables.lookupNearestSymbolFrom<LLVM::GlobalOp>(taken, taken.getGlobalNameAttr()) : nullptr;
}

/// Calls of one text share its constant, whichever function they are in: each function gets its own.
static void nameFunction(LLVM::CallOp call, Constants &constants) {
  constexpr unsigned function = 3, all = 5;
  if (call.getCallee() != "__assertfail" || call.getArgOperands().size() != all)
    return;
  LLVM::GlobalOp constant = constantAt(call.getArgOperands()[function], constants);
  auto around = call->getParentOfType<FunctionOpInterface>();
  auto text = constant ? dyn_cast_or_null<StringAttr>(constant.getValueAttr()) : StringAttr();
  if (!text || text.getValue() != StringRef("(unknown)\0", 10) || !constant.getConstant() || !around)
    return;
  LLVM::GlobalOp &own = constants.names[{around, constant}];
  if (!own) {
    std::string name = around.getName().str() + '\0';
    own = cast<LLVM::GlobalOp>(constant->clone());
    own.setValueAttr(StringAttr::get(call.getContext(), name));
    own.setGlobalType(LLVM::LLVMArrayType::get(IntegerType::get(call.getContext(), 8), name.size()));
    constants.tables.getSymbolTable(constant->getParentOp()).insert(own);
  }
  SmallVector<Operation *> steps;
  for (Operation *op = call.getArgOperands()[function].getDefiningOp(); op;
       op = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr)
    steps.push_back(op);
  OpBuilder builder(call);
  Value address;
  for (Operation *step : llvm::reverse(steps)) {
    Operation *copy = builder.clone(*step);
    if (address)
      copy->setOperand(0, address);
    else
      cast<LLVM::AddressOfOp>(copy).setGlobalName(own.getSymName());
    address = copy->getResult(0);
  }
  call->setOperand(function, address);
}

void gpulower::placeAssertions(Operation *root) {
  root->walk([](cf::AssertOp op) { op->setLoc(asserted(op)); });
}

/// Where MLIR has converted assertions without a name in their location, that of the function around them is put in.
extern "C" void gpulowerNameAssertions(MlirOperation root) {
  SmallVector<LLVM::CallOp> calls;
  unwrap(root)->walk([&](LLVM::CallOp call) { calls.push_back(call); });
  Constants constants;
  for (LLVM::CallOp call : calls)
    nameFunction(call, constants);
}
