; The chip that is asked for is the chip of every function, whatever the functions say: clang and rustc write `target-cpu` and
; `target-features` on each. LLVM believes the functions, so llc writes code of gfx1100 into an object for gfx942, with waves of 32,
; and leaves out functions with a feature that the chip lacks; the status is 0.

; RUN: split-file %s %t
; RUN: gpulower compile %t/kernel.ll --target gfx942 -e asm -o - | FileCheck %s --implicit-check-not global_store_b32 --implicit-check-not amdhsa_wavefront_size32
; CHECK: amdgcn_target "amdgcn-amd-amdhsa--gfx942"
; CHECK-LABEL: {{^}}k:
; CHECK: global_store_dword
; CHECK: .amdhsa_accum_offset
; CHECK: .wavefront_size: 64

; A feature that is demanded no longer takes the place of what the options say.
; RUN: gpulower compile %t/demand.ll --target gfx1100 --wave-size 64 -e asm -o - | FileCheck %s --check-prefix=WAVE
; WAVE: .amdhsa_wavefront_size32 0

; What says how a function runs stays.
; RUN: gpulower compile %t/mode.ll --target gfx1100 -e asm -o - | FileCheck %s --check-prefix=MODE
; MODE: .amdhsa_workgroup_processor_mode 0

; Code that was made for waves of one size is not compiled for the other.
; RUN: not gpulower compile %t/wave.ll --target gfx942 -o %t/wave.hsaco 2>&1 | FileCheck %s --check-prefix=SIZE
; SIZE: the function k with the feature +wavefrontsize32 in a module for gfx942: it was made for waves of that size; compile with that --wave-size

; No kernel is left out.
; RUN: not gpulower compile %t/demand.ll --target gfx900 -o %t/demand.hsaco 2>&1 | FileCheck %s --check-prefix=LACKS
; LACKS: the function k with the feature +gfx10-insts in a module for gfx900: the chip lacks it, and LLVM would leave the function out

; RUN: not gpulower compile %t/unknown.ll --target gfx900 -o %t/unknown.hsaco 2>&1 | FileCheck %s --check-prefix=UNKNOWN
; UNKNOWN-NOT: ignoring
; UNKNOWN: the function k with the feature +no-such-insts in a module for gfx900: LLVM 22 knows no such feature

; A function of the user's own is looked at where LLVM's passes have not run, too, whatever its linkage.
; RUN: not gpulower compile %t/internal.ll --target gfx942 -O0 -o %t/internal.hsaco 2>&1 | FileCheck %s --check-prefix=INTERNAL
; RUN: not gpulower compile %t/internal.ll --target gfx942 --input-optimized -o %t/internal.hsaco 2>&1 | FileCheck %s --check-prefix=INTERNAL
; INTERNAL: the function f with the feature +gfx11-insts in a module for gfx942: the chip lacks it

; What a chip has is not taken away.
; RUN: gpulower compile %t/without.ll --target gfx942 -e asm -o - | FileCheck %s --check-prefix=WITHOUT
; WITHOUT: global_store_dword

; The image's name says what it is: the target's xnack counts.
; RUN: gpulower compile %t/xnack.ll --target gfx90a -e asm -o - | FileCheck %s --check-prefix=XNACK
; XNACK: amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
; RUN: gpulower compile %t/xnack.ll --target gfx90a:xnack- -e asm -o - | FileCheck %s --check-prefix=XNACK-OFF
; XNACK-OFF: amdgcn_target "amdgcn-amd-amdhsa--gfx90a:xnack-"

; A setting is none of a chip's properties; one that only other chips have is of no use.
; RUN: gpulower compile %t/setting.ll --target gfx1100 -o %t/setting.hsaco 2>&1 | FileCheck %s --check-prefix=SETTING --allow-empty
; SETTING-NOT: {{.}}

; A library that was made for another chip, too.
; RUN: gpulower compile %t/uses.ll -l %t/library.ll --target gfx942 -e asm -o - | FileCheck %s --check-prefix=LIBRARY
; LIBRARY-NOT: buffer_gl0_inv
; LIBRARY: {{^}}uses:
; LIBRARY-NOT: buffer_gl0_inv

;--- kernel.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx1100" "tune-cpu"="gfx1100" "target-features"="+dl-insts,+gfx10-insts,+gfx11-insts,+from-llvm-23" }

;--- demand.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-features"="+gfx10-insts" }

;--- mode.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx1030" "target-features"="+gfx10-insts,+cumode" }

;--- wave.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx1100" "target-features"="+gfx11-insts,+wavefrontsize32" }

;--- unknown.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-features"="+no-such-insts" }

;--- internal.ll
target triple = "amdgcn-amd-amdhsa"
define internal i32 @f(i32 %x) noinline "target-features"="+gfx11-insts" {
  %y = mul i32 %x, %x
  ret i32 %y
}
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) {
  %y = call i32 @f(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}

;--- without.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-features"="-flat-global-insts,-gfx9-insts" }

;--- xnack.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx90a" "target-features"="+gfx90a-insts,+xnack" }

;--- setting.ll
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  store i32 1, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-features"="+promote-alloca,+xnack" }

;--- uses.ll
target triple = "amdgcn-amd-amdhsa"
declare i32 @taken(ptr addrspace(1))
define amdgpu_kernel void @uses(ptr addrspace(1) %p) {
  %x = call i32 @taken(ptr addrspace(1) %p)
  store i32 %x, ptr addrspace(1) %p
  ret void
}

;--- library.ll
target triple = "amdgcn-amd-amdhsa"
define i32 @taken(ptr addrspace(1) %p) #0 {
  %x = load atomic i32, ptr addrspace(1) %p syncscope("agent") seq_cst, align 4
  ret i32 %x
}
attributes #0 = { noinline "target-cpu"="gfx1030" "target-features"="+gfx10-insts" }
