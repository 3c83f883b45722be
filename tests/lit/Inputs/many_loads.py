#!/usr/bin/env python3
"""LLVM IR of a kernel that loads COUNT numbers, branches, and adds them up. With --returns not all threads come to that, with
--loop it does so again and again."""

import sys

count, returns, loop = int(sys.argv[1]), "--returns" in sys.argv, "--loop" in sys.argv
places = range(count)
print('target triple = "nvptx64-nvidia-cuda"')
print("define ptx_kernel void @k(ptr addrspace(1) %p, i1 %c, double %f) {\nentry:")
for i in places:
    print(f"  %a{i} = getelementptr double, ptr addrspace(1) %p, i64 {i}")
    print(f"  %x{i} = load double, ptr addrspace(1) %a{i}")
if loop:
    print("  br label %again\nagain:\n  %i = phi i32 [ 0, %entry ], [ %next, %rest ]\n  %d = sitofp i32 %i to double")
print("  br i1 %c, label %slow, label %rest\nslow:\n  store volatile i32 1, ptr addrspace(1) %p")
print("  ret void" if returns else "  br label %rest")
print(f"rest:\n  %s0 = fmul double %x0, %{'d' if loop else 'f'}")
for i in places[1:]:
    print(f"  %s{i} = fadd double %s{i - 1}, %x{i}")
print(f"  store volatile double %s{count - 1}, ptr addrspace(1) %p")
if loop:
    print("  %next = add i32 %i, 1\n  %more = icmp slt i32 %next, 100\n  br i1 %more, label %again, label %end\nend:")
print("  ret void\n}")
