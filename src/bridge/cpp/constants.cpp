// Constants of a module as the bytes and pointers that they will be in memory.

#include "bytes.h"
#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

using namespace llvm;
using gpulower::contain;
using gpulower::toBytes;

extern "C" {
/// What is reported of each constant, and of the pointers in the one that was reported last.
struct GpulowerConstants {
  void *closure;
  /// Whether the global variables of a section are wanted.
  bool (*wanted)(void *closure, GpulowerBytes section);
  void (*constant)(void *closure, GpulowerBytes name, GpulowerBytes section, bool kept, GpulowerBytes bytes);
  /// `target` is the number of a reported constant, or -1 for the symbol `name`.
  void (*pointer)(void *closure, uint64_t offset, int64_t target, int64_t addend, GpulowerBytes name);
};
}

namespace {
struct Pointer {
  uint64_t offset;
  GlobalValue *target;
  int64_t addend;
};

/// Bytes that initializers of a module may have together, and steps to go through them: both can be many more than a
/// small file suggests, since `zeroinitializer` and equal parts are written once.
struct Reader {
  const DataLayout &layout;
  uint64_t left;
  std::string bytes;
  std::vector<Pointer> pointers;

  bool spend(uint64_t amount) {
    if (amount > left)
      return false;
    left -= amount;
    return true;
  }

  /// Reads the initializer of one variable.
  bool readWhole(const Constant *constant) {
    bytes.clear();
    pointers.clear();
    TypeSize size = layout.getTypeAllocSize(constant->getType());
    if (size.isScalable() || !spend(size.getFixedValue()))
      return false;
    bytes.assign(size.getFixedValue(), '\0');
    return read(constant, 0, 0);
  }

  bool store(uint64_t offset, uint64_t value, uint64_t size) {
    if (size > 8 || offset > bytes.size() || bytes.size() - offset < size)
      return false;
    for (uint64_t i = 0; i < size; ++i)
      bytes[offset + i] = static_cast<char>(value >> (8 * i));
    return true;
  }

  bool read(const Constant *constant, uint64_t offset, unsigned depth) {
    if (depth > 64 || !spend(1))
      return false;
    // What is not defined is as good as zero.
    if (constant->isNullValue() || isa<UndefValue>(constant))
      return true;
    Type *type = constant->getType();
    if (auto *integer = dyn_cast<ConstantInt>(constant)) {
      if (integer->getBitWidth() > 64)
        return false;
      return store(offset, integer->getZExtValue(), layout.getTypeStoreSize(type).getFixedValue());
    }
    if (auto *data = dyn_cast<ConstantDataSequential>(constant)) {
      // The bytes are those of the array, unless the data layout has gaps between its elements.
      StringRef raw = data->getRawDataValues();
      if (layout.getTypeAllocSize(type).getFixedValue() != raw.size() || offset > bytes.size() ||
          bytes.size() - offset < raw.size())
        return false;
      bytes.replace(offset, raw.size(), raw.data(), raw.size());
      return true;
    }
    if (auto *array = dyn_cast<ConstantArray>(constant)) {
      uint64_t stride = layout.getTypeAllocSize(array->getType()->getElementType()).getFixedValue();
      for (unsigned i = 0; i < array->getNumOperands(); ++i)
        if (!read(array->getOperand(i), offset + i * stride, depth + 1))
          return false;
      return true;
    }
    if (auto *structure = dyn_cast<ConstantStruct>(constant)) {
      const StructLayout *fields = layout.getStructLayout(structure->getType());
      for (unsigned i = 0; i < structure->getNumOperands(); ++i)
        if (!read(structure->getOperand(i), offset + fields->getElementOffset(i).getFixedValue(), depth + 1))
          return false;
      return true;
    }
    if (type->isPointerTy()) {
      GlobalValue *target = nullptr;
      APInt addend;
      if (!IsConstantOffsetFromGlobal(const_cast<Constant *>(constant), target, addend, layout) ||
          !addend.isSignedIntN(64))
        return false;
      pointers.push_back({offset, target, addend.getSExtValue()});
      return true;
    }
    return false;
  }
};

/// Whether a variable is in `llvm.used`.
SmallPtrSet<const GlobalValue *, 16> keptGlobals(const Module &module) {
  SmallPtrSet<const GlobalValue *, 16> kept;
  const GlobalVariable *used = module.getGlobalVariable("llvm.used");
  if (!used || !used->hasInitializer())
    return kept;
  if (auto *list = dyn_cast<ConstantArray>(used->getInitializer()))
    for (const Use &use : list->operands())
      if (auto *global = dyn_cast<GlobalValue>(use->stripPointerCasts()))
        kept.insert(global);
  return kept;
}

/// Whether a variable holds text, which ends with a NUL byte.
bool isText(const GlobalVariable &global) {
  if (!global.hasInitializer())
    return false;
  auto *data = dyn_cast<ConstantDataArray>(global.getInitializer());
  return data && data->isString();
}
} // namespace

extern "C" {

/// Reports the variables of the wanted sections, and the texts to which they point. Refuses a module in which those have
/// more than `limit` bytes together, or an initializer that is not known before the program is linked.
GpulowerOutcome gpulowerConstants(LLVMModuleRef reference, uint64_t limit, const GpulowerConstants *report) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(reference);
    const DataLayout &layout = module.getDataLayout();
    if (!layout.isLittleEndian() || layout.getPointerSize() != 8)
      return "the host is not a little-endian machine of 64 bits";
    SmallPtrSet<const GlobalValue *, 16> kept = keptGlobals(module);

    std::vector<GlobalVariable *> globals;
    DenseMap<const GlobalValue *, int64_t> numbers;
    for (GlobalVariable &global : module.globals())
      if (global.hasInitializer() && global.hasSection() &&
          report->wanted(report->closure, toBytes(global.getSection()))) {
        numbers[&global] = static_cast<int64_t>(globals.size());
        globals.push_back(&global);
      }
    const size_t roots = globals.size();

    Reader reader{layout, limit, {}, {}};
    for (size_t index = 0; index < globals.size(); ++index) {
      GlobalVariable &global = *globals[index];
      if (!reader.readWhole(global.getInitializer()))
        return "the initializer of the global variable " + global.getName().str() +
               " cannot be read: it is too large for a file of this size, or not known before the program is linked";
      report->constant(report->closure, toBytes(global.getName()),
                       toBytes(global.hasSection() ? global.getSection() : StringRef()), kept.contains(&global),
                       toBytes(reader.bytes));
      for (const Pointer &pointer : reader.pointers) {
        auto *variable = dyn_cast<GlobalVariable>(pointer.target);
        if (variable && index < roots && isText(*variable) && numbers.try_emplace(variable, globals.size()).second)
          globals.push_back(variable);
        auto number = numbers.find(pointer.target);
        report->pointer(report->closure, pointer.offset, number == numbers.end() ? -1 : number->second, pointer.addend,
                        toBytes(pointer.target->getName()));
      }
    }
    return "";
  });
}

} // extern "C"
