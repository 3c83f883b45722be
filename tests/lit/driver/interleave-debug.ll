; RUN: gpulower compile %s --target gfx942 --emit llvm -o %t.full.ll --interleave 4 --debug full
; RUN: FileCheck %s --input-file %t.full.ll
; RUN: gpulower compile %s --target gfx942 --emit llvm -o %t.none.ll --interleave 4
; RUN: opt -S -passes=strip -o %t.1.ll %t.full.ll
; RUN: opt -S -passes=strip -o %t.2.ll %t.none.ll
; RUN: FileCheck %s --input-file %t.2.ll --check-prefix=CODE
; RUN: FileCheck %s --input-file %t.1.ll --check-prefix=CODE

; What debug info says of variables is said of every iteration that runs at once, and the code is what it is without.

; CHECK-LABEL: @scale(
; CHECK-COUNT-4: #dbg_value(float %{{.*}}, ![[SCALED:[0-9]+]],
; CHECK: ret void
; CODE-COUNT-4: load float
; CODE-NOT: load float
; CODE-COUNT-4: store float
; CODE-NOT: store
; CODE: load float
; CODE: store float
; CODE: ret void
define amdgpu_kernel void @scale(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %n) !dbg !4 {
entry:
  br label %loop, !dbg !9

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
    #dbg_value(i64 %i, !7, !DIExpression(), !9)
  %from = getelementptr inbounds float, ptr addrspace(1) %x, i64 %i, !dbg !9
  %loaded = load float, ptr addrspace(1) %from, align 4, !dbg !9
  %scaled = fmul float %loaded, 3.000000e+00, !dbg !9
    #dbg_value(float %scaled, !8, !DIExpression(), !9)
  %to = getelementptr inbounds float, ptr addrspace(1) %y, i64 %i, !dbg !9
  store float %scaled, ptr addrspace(1) %to, align 4, !dbg !9
  %next = add nuw nsw i64 %i, 1, !dbg !9
  %more = icmp slt i64 %next, %n, !dbg !9
  br i1 %more, label %loop, label %exit, !dbg !9

exit:
  ret void, !dbg !9
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, producer: "a compiler", isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "scale.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !{null})
!4 = distinct !DISubprogram(name: "scale", file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition | DISPFlagOptimized)
!5 = !DIBasicType(name: "float", size: 32, encoding: DW_ATE_float)
!6 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!7 = !DILocalVariable(name: "i", scope: !4, file: !1, line: 2, type: !6)
!8 = !DILocalVariable(name: "scaled", scope: !4, file: !1, line: 3, type: !5)
!9 = !DILocation(line: 4, column: 1, scope: !4)
