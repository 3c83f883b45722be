/// lld initialises every target of LLVM (`initLLVM` in lld/ELF/Driver.cpp), for link-time optimisation. What is linked here
/// is for AMD's chips and for this machine, so the code generators of all others are left out of the program: what the linker
/// finds here first, it does not take from LLVM's archives. That is 35 MB of 205.

#define FOR_TARGET(name)                                                                                               \
  void LLVMInitialize##name##TargetInfo() {}                                                                           \
  void LLVMInitialize##name##Target() {}                                                                               \
  void LLVMInitialize##name##TargetMC() {}                                                                             \
  void LLVMInitialize##name##AsmPrinter() {}                                                                           \
  void LLVMInitialize##name##AsmParser() {}                                                                            \
  void LLVMInitialize##name##Disassembler() {}                                                                         \
  void LLVMInitialize##name##TargetMCA() {}

extern "C" {
FOR_TARGET(ARM)
FOR_TARGET(AVR)
FOR_TARGET(BPF)
FOR_TARGET(Hexagon)
FOR_TARGET(Lanai)
FOR_TARGET(LoongArch)
FOR_TARGET(M68k)
FOR_TARGET(MSP430)
FOR_TARGET(Mips)
FOR_TARGET(PowerPC)
FOR_TARGET(RISCV)
FOR_TARGET(Sparc)
FOR_TARGET(SystemZ)
FOR_TARGET(VE)
FOR_TARGET(WebAssembly)
FOR_TARGET(XCore)
FOR_TARGET(Xtensa)
}
