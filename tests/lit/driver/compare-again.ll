; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; What is asked before a loop and after it is compared twice where there is much of it: otherwise predicates hold it for as long as the
; loop runs, and there are seven.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry bounds(
; CHECK: ld.param.b32 [[N:%r[0-9]+]], [bounds_param_3];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: setp.ge.s32 {{.*}}, [[N]];
; CHECK: fma.rn.f32
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK-DAG: setp.{{g[te]|l[te]}}.s32 {{.*}}[[N]], {{%r[0-9]+}};
; CHECK: ret;
define ptx_kernel void @bounds(ptr noalias %p, ptr noalias %w, ptr noalias %q, i32 %n, i32 %m) {
entry:
  %i0 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %ask0

ask0:
  %in0 = icmp slt i32 %i0, %n
  br i1 %in0, label %load0, label %ask1

load0:
  %p0 = getelementptr inbounds float, ptr %p, i32 %i0
  %l0 = load float, ptr %p0
  br label %ask1

ask1:
  %v0 = phi float [ 0.0, %ask0 ], [ %l0, %load0 ]
  %i1 = add nsw i32 %i0, 256
  %in1 = icmp slt i32 %i1, %n
  br i1 %in1, label %load1, label %ask2

load1:
  %p1 = getelementptr inbounds float, ptr %p, i32 %i1
  %l1 = load float, ptr %p1
  br label %ask2

ask2:
  %v1 = phi float [ 0.0, %ask1 ], [ %l1, %load1 ]
  %i2 = add nsw i32 %i0, 512
  %in2 = icmp slt i32 %i2, %n
  br i1 %in2, label %load2, label %ask3

load2:
  %p2 = getelementptr inbounds float, ptr %p, i32 %i2
  %l2 = load float, ptr %p2
  br label %ask3

ask3:
  %v2 = phi float [ 0.0, %ask2 ], [ %l2, %load2 ]
  %i3 = add nsw i32 %i0, 768
  %in3 = icmp slt i32 %i3, %n
  br i1 %in3, label %load3, label %asked

load3:
  %p3 = getelementptr inbounds float, ptr %p, i32 %i3
  %l3 = load float, ptr %p3
  br label %asked

asked:
  %v3 = phi float [ 0.0, %ask3 ], [ %l3, %load3 ]
  br label %loop

loop:
  %j = phi i32 [ 0, %asked ], [ %j.next, %loop ]
  %x0 = phi float [ 0.0, %asked ], [ %y0, %loop ]
  %x1 = phi float [ 0.0, %asked ], [ %y1, %loop ]
  %x2 = phi float [ 0.0, %asked ], [ %y2, %loop ]
  %x3 = phi float [ 0.0, %asked ], [ %y3, %loop ]
  %at = getelementptr inbounds float, ptr %w, i32 %j
  %weight = load float, ptr %at
  %y0 = call float @llvm.fma.f32(float %v0, float %weight, float %x0)
  %y1 = call float @llvm.fma.f32(float %v1, float %weight, float %x1)
  %y2 = call float @llvm.fma.f32(float %v2, float %weight, float %x2)
  %y3 = call float @llvm.fma.f32(float %v3, float %weight, float %x3)
  %j.next = add nuw nsw i32 %j, 1
  %more = icmp slt i32 %j.next, %m
  br i1 %more, label %loop, label %end0

end0:
  br i1 %in0, label %store0, label %end1

store0:
  %q0 = getelementptr inbounds float, ptr %q, i32 %i0
  store float %y0, ptr %q0
  br label %end1

end1:
  br i1 %in1, label %store1, label %end2

store1:
  %q1 = getelementptr inbounds float, ptr %q, i32 %i1
  store float %y1, ptr %q1
  br label %end2

end2:
  br i1 %in2, label %store2, label %end3

store2:
  %q2 = getelementptr inbounds float, ptr %q, i32 %i2
  store float %y2, ptr %q2
  br label %end3

end3:
  br i1 %in3, label %store3, label %done

store3:
  %q3 = getelementptr inbounds float, ptr %q, i32 %i3
  store float %y3, ptr %q3
  br label %done

done:
  ret void
}
