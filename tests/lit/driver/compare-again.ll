; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; What is asked before a loop and after it is compared twice: otherwise a predicate holds it for as long as the loop runs.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry bounds(
; CHECK: ld.param.b32 [[N:%r[0-9]+]], [bounds_param_3];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: fma.rn.f32
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK: ret;
define ptx_kernel void @bounds(ptr noalias %p, ptr noalias %w, ptr noalias %q, i32 %n, i32 %m) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is.first = icmp slt i32 %thread, %n
  br i1 %is.first, label %load.first, label %next

load.first:
  %first = getelementptr inbounds float, ptr %p, i32 %thread
  %first.value = load float, ptr %first
  br label %next

next:
  %a = phi float [ 0.0, %entry ], [ %first.value, %load.first ]
  %second.index = add nsw i32 %thread, 256
  %is.second = icmp slt i32 %second.index, %n
  br i1 %is.second, label %load.second, label %loop

load.second:
  %second = getelementptr inbounds float, ptr %p, i32 %second.index
  %second.value = load float, ptr %second
  br label %loop

loop:
  %b = phi float [ 0.0, %next ], [ %second.value, %load.second ], [ %b, %loop ]
  %j = phi i32 [ 0, %next ], [ 0, %load.second ], [ %j.next, %loop ]
  %x = phi float [ 0.0, %next ], [ 0.0, %load.second ], [ %x.next, %loop ]
  %y = phi float [ 0.0, %next ], [ 0.0, %load.second ], [ %y.next, %loop ]
  %weight.at = getelementptr inbounds float, ptr %w, i32 %j
  %weight = load float, ptr %weight.at
  %x.next = call float @llvm.fma.f32(float %a, float %weight, float %x)
  %y.next = call float @llvm.fma.f32(float %b, float %weight, float %y)
  %j.next = add nuw nsw i32 %j, 1
  %more = icmp slt i32 %j.next, %m
  br i1 %more, label %loop, label %end

end:
  br i1 %is.first, label %store.first, label %end.second

store.first:
  %to.first = getelementptr inbounds float, ptr %q, i32 %thread
  store float %x.next, ptr %to.first
  br label %end.second

end.second:
  br i1 %is.second, label %store.second, label %done

store.second:
  %to.second = getelementptr inbounds float, ptr %q, i32 %second.index
  store float %y.next, ptr %to.second
  br label %done

done:
  ret void
}
