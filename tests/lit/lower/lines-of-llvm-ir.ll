; Debug info of LLVM IR is reduced to lines that NVIDIA's compilers take in optimised code: of any unit that is not
; DebugDirectivesOnly, LLVM writes `.target sm_90, debug`, and ptxas says "Optimized debugging not supported".
; RUN: gpulower compile %s --target sm_90 --debug line-tables --emit ptx -o %t.ptx
; RUN: FileCheck %s < %t.ptx
; RUN: gpulower compile %t.ptx --target sm_90 --debug line-tables -o %t.cubin
; RUN: gpulower compile %s --target sm_90 --debug line-tables -o %t.cubin
; RUN: sed 's/LineTablesOnly/FullDebug/' %s > %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --debug line-tables -o %t.cubin

; CHECK: .target sm_90{{$}}
; CHECK: .loc 1 7 3

define ptx_kernel void @double(ptr addrspace(1) %p) !dbg !3 {
  %x = load float, ptr addrspace(1) %p, !dbg !5
  %y = fadd float %x, %x, !dbg !5
  store float %y, ptr addrspace(1) %p, !dbg !5
  ret void, !dbg !5
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, isOptimized: true, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "double.py", directory: "/somewhere")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "double", file: !1, line: 6, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{})
!5 = !DILocation(line: 7, column: 3, scope: !3)
