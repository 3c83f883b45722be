// What is written out before LLVM's passes and back ends, because they would make something else of it.
#ifndef GPULOWER_BRIDGE_CODE_GENERATION_H
#define GPULOWER_BRIDGE_CODE_GENERATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class Module;
class PassBuilder;
class TargetMachine;
} // namespace llvm

namespace gpulower {

/// Memory of a fixed size that a function takes from its stack somewhere is part of its frame, unless a loop may hold
/// several.
void takeStackOnce(llvm::Module &module);

/// Bfloats that are computed with beside halves are extended in a way that LLVM's passes do not look through.
void separateBfloatsFromHalves(llvm::Module &module);

/// Atomic operations of a module that clang made of CUDA C++ are relaxed and of the device, as CUDA has them.
void relaxCudaAtomics(llvm::Module &module);

/// Addresses of known memory say which, and are cast as a whole, where code is optimised. Vectors of them are not
/// looked at.
void inferAddressSpaces(llvm::Module &module, llvm::TargetMachine &machine, llvm::FunctionAnalysisManager &functions);

/// Makes the same known to `builder` as a pass of functions, so that passes see which memory it is:
/// `gpulower-infer-address-spaces`. Of pointers that a kernel is given it says nothing unless something else is cast:
/// with these known, loops over them are interleaved less well.
void addInference(llvm::PassBuilder &builder);

/// Atomic operations of a module for NVIDIA get the instructions that their ordering and their scope ask for.
void qualifyAtomics(llvm::Module &module, llvm::StringRef chip);

/// Loops that exchange a value for another one where it is a certain one are one compare-and-swap.
void exchangeOnce(llvm::Module &module);

/// Loops of a module for NVIDIA ask whether they go on in a way that ptxas unrolls well, and right: numbers that are
/// far apart are compared as unsigned ones, and counters are compared by order.
void compareLoopEnds(llvm::Module &module, llvm::FunctionAnalysisManager &functions);

/// Conversions between floats and single bits of a module for NVIDIA become others.
void convertSingleBits(llvm::Module &module);

/// Roundings of constant bfloats, which LLVM's passes do not fold, become constants.
void foldBfloatRoundings(llvm::Module &module);

/// Arithmetic on packed halves that ptxas gets wrong becomes arithmetic on one after the other.
void takePackedHalvesApart(llvm::Module &module);

/// Vectors of an odd number of halves or bfloats of a module for NVIDIA are put together of their elements.
void putOddVectorsTogether(llvm::Module &module);

/// Absolute values of integers of a module for NVIDIA become maxima.
void computeAbsoluteValues(llvm::Module &module);

/// Phis of structures become phis of their values, and values are taken out where a structure is made.
void takeStructuresApart(llvm::Module &module);

/// Shifts that may move a bit to that of the sign, in a module for NVIDIA, no longer say that the sign is kept.
void forgetSignsOfShifts(llvm::Module &module);

/// Shuffles of a module for NVIDIA that compute the lane which they read have the offset instead, where that is a
/// constant.
void shuffleByOffset(llvm::Module &module);

/// Masked loads of a module for NVIDIA no longer have values of their own for lanes that are not loaded.
void separateMaskedLanes(llvm::Module &module);

/// Choices between floats that are zeros are not taken for minima and maxima.
void chooseZeros(llvm::Module &module);

/// Minima and maxima of a module for NVIDIA that are no saturation, since NaN or -0 is another number then, are not
/// taken for one.
void keepFromSaturating(llvm::Module &module);

/// Comparisons of a module for NVIDIA that hold for every number ask whether there is one.
void compareWithNaN(llvm::Module &module);

/// Sums of the bytes of a vector of a module for AMD become additions one after the other.
void addBytesInTurn(llvm::Module &module);

/// Traps of a module for AMD get their instructions, where LLVM's own lead its code generation astray.
void writeTrapsOut(llvm::Module &module, llvm::StringRef chip);

} // namespace gpulower

#endif
