#!/usr/bin/env python3
"""LLVM IR of a kernel that loads COUNT numbers, branches, and adds them up. With --returns not all threads come to that."""

import sys

count, returns = int(sys.argv[1]), "--returns" in sys.argv
places = range(count)
print('target triple = "nvptx64-nvidia-cuda"')
print("define ptx_kernel void @k(ptr addrspace(1) %p, i1 %c) {")
for i in places:
    print(f"  %a{i} = getelementptr double, ptr addrspace(1) %p, i64 {i}")
    print(f"  %x{i} = load double, ptr addrspace(1) %a{i}")
print("  br i1 %c, label %slow, label %rest\nslow:\n  store volatile i32 1, ptr addrspace(1) %p")
print("  ret void" if returns else "  br label %rest")
print("rest:\n  %s0 = fmul double %x0, 3.0")
for i in places[1:]:
    print(f"  %s{i} = fadd double %s{i - 1}, %x{i}")
print(f"  store double %s{count - 1}, ptr addrspace(1) %p\n  ret void\n}}")
