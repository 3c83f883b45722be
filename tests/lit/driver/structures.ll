; Phis of structures become phis of their values, and values are taken out where a structure is made: LLVM's instruction
; selection copies all values of a structure for each that is taken out of a phi, or in another block.

; RUN: gpulower compile %s --target sm_90,gfx942 -O0 --emit llvm -o %t/
; RUN: FileCheck %s --input-file %t/structures.sm_90.ll
; RUN: FileCheck %s --input-file %t/structures.gfx942.ll
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix PTX

; Each is what the other was before.
; CHECK-LABEL: @swapped(
; CHECK: loop:
; CHECK-NOT: phi {
; CHECK-COUNT-4: phi {{float|i32}} [
; CHECK-NOT: phi {
; CHECK-NOT: extractvalue
; CHECK: ret void
; PTX-LABEL: .func swapped(
; PTX: ret;
define void @swapped(ptr addrspace(1) %out, i32 %n) #0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = phi { float, i32 } [ { float 1.0, i32 7 }, %entry ], [ %b, %loop ]
  %b = phi { float, i32 } [ undef, %entry ], [ %a, %loop ]
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done

done:
  %x = extractvalue { float, i32 } %a, 0
  %y = extractvalue { float, i32 } %b, 1
  %float = bitcast float %x to i32
  %sum = add i32 %float, %y
  store i32 %sum, ptr addrspace(1) %out
  ret void
}

; What is stored whole as well is put together again.
; CHECK-LABEL: @whole(
; CHECK: done:
; CHECK: %[[A:.*]] = phi i32
; CHECK: %[[B:.*]] = phi i32
; CHECK: %[[ONE:.*]] = insertvalue { i32, i32 } poison, i32 %[[A]], 0
; CHECK: %[[TWO:.*]] = insertvalue { i32, i32 } %[[ONE]], i32 %[[B]], 1
; CHECK: store { i32, i32 } %[[TWO]]
define void @whole(ptr addrspace(1) %out, i1 %is, i32 %x, i32 %y) #0 {
entry:
  %one = insertvalue { i32, i32 } undef, i32 %x, 0
  %two = insertvalue { i32, i32 } %one, i32 %y, 1
  br i1 %is, label %other, label %done

other:
  %three = insertvalue { i32, i32 } %two, i32 3, 1
  br label %done

done:
  %pair = phi { i32, i32 } [ %two, %entry ], [ %three, %other ]
  store { i32, i32 } %pair, ptr addrspace(1) %out
  %first = extractvalue { i32, i32 } %pair, 0
  %next = getelementptr i8, ptr addrspace(1) %out, i64 8
  store i32 %first, ptr addrspace(1) %next
  ret void
}

; A structure in a structure stays.
; CHECK-LABEL: @nested(
; CHECK: phi { { i32 }, i32 }
define void @nested(ptr addrspace(1) %out, i1 %is, { { i32 }, i32 } %a, { { i32 }, i32 } %b) {
entry:
  br i1 %is, label %other, label %done

other:
  br label %done

done:
  %pair = phi { { i32 }, i32 } [ %a, %entry ], [ %b, %other ]
  %inner = extractvalue { { i32 }, i32 } %pair, 0, 0
  store i32 %inner, ptr addrspace(1) %out
  ret void
}

; The value is taken out where it is loaded, and once for each use.
; CHECK-LABEL: @loaded(
; CHECK: load { i32, i32 }
; CHECK-NEXT: extractvalue { i32, i32 } %{{.*}}, 1
; CHECK: other:
; CHECK-NOT: extractvalue
; CHECK: ret void
define void @loaded(ptr addrspace(1) %out, ptr addrspace(1) %in, i1 %is) #0 {
entry:
  %pair = load { i32, i32 }, ptr addrspace(1) %in
  br i1 %is, label %other, label %done

other:
  %second = extractvalue { i32, i32 } %pair, 1
  store i32 %second, ptr addrspace(1) %out
  br label %done

done:
  ret void
}

; What is never reached may be made of itself.
; CHECK-LABEL: @unreached(
; CHECK: ret void
define void @unreached(ptr addrspace(1) %out) #0 {
entry:
  br label %done

dead:
  %a = insertvalue { i32, i32 } %a, i32 1, 0
  br label %done

done:
  %pair = phi { i32, i32 } [ zeroinitializer, %entry ], [ %a, %dead ]
  %second = extractvalue { i32, i32 } %pair, 1
  store i32 %second, ptr addrspace(1) %out
  ret void
}

; Behind a branch with a value there is no place that it alone leads to.
; CHECK-LABEL: @branched(
; CHECK: phi { i32, i32 }
define void @branched(ptr addrspace(1) %out, i1 %is) #0 {
entry:
  br i1 %is, label %asked, label %done

asked:
  %two = callbr { i32, i32 } asm "", "=r,=r,!i"()
      to label %done [label %other]

other:
  ret void

done:
  %pair = phi { i32, i32 } [ zeroinitializer, %entry ], [ %two, %asked ]
  %second = extractvalue { i32, i32 } %pair, 1
  store i32 %second, ptr addrspace(1) %out
  ret void
}

; To take apart what is only stored would gain nothing.
; CHECK-LABEL: @stored(
; CHECK: phi { i32, i32 }
define void @stored(ptr addrspace(1) %out, i1 %is, { i32, i32 } %a, { i32, i32 } %b) #0 {
entry:
  br i1 %is, label %other, label %done

other:
  br label %done

done:
  %pair = phi { i32, i32 } [ %a, %entry ], [ %b, %other ]
  store { i32, i32 } %pair, ptr addrspace(1) %out
  ret void
}

attributes #0 = { noinline }
