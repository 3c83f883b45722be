; A program whose exit status is 0, or the number of the check that failed last. Inputs are read from volatile variables, so
; that no compiler does the work in advance.

@failed = global i32 0
@one = global i32 1
@minus = global i32 -1
@five = global i64 5
@zero = global float 0.0
@negative = global float -0.0
@nan = global float 0x7FF8000000000000
@half = global double 5.000000e-01
@table = global [16 x i32] [i32 0, i32 10, i32 20, i32 30, i32 40, i32 50, i32 60, i32 70, i32 80, i32 90, i32 100, i32 110, i32 120, i32 130, i32 140, i32 150]

; Addresses in initial values.
@plain = global ptr getelementptr ([16 x i32], ptr @table, i64 0, i64 4)
@inside = global { i8, [2 x ptr] } { i8 1, [2 x ptr] [ptr @table, ptr getelementptr inbounds nuw (i32, ptr @table, i64 3)] }
@before = global ptr getelementptr nuw (i8, ptr @table, i64 -4)
@difference = global i64 ptrtoint (ptr getelementptr nusw (i8, ptr @table, i64 7) to i64)
@ranged = global ptr getelementptr inrange(-16, 16) ([16 x i32], ptr @table, i64 0, i64 6)
@address = global i64 ptrtoaddr (ptr @table to i64)
@same = alias i32, getelementptr nuw (i32, ptr @table, i64 2)
@vector = global <4 x i32> splat (i32 6)
@thread = thread_local global i32 77

declare i32 @llvm.scmp.i32.i32(i32, i32)
declare <4 x i8> @llvm.ucmp.v4i8.v4i32(<4 x i32>, <4 x i32>)
declare float @llvm.maximum.f32(float, float)
declare float @llvm.minimum.f32(float, float)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>)
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, <4 x i1>)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr>, <4 x i1>, <4 x i32>)
declare double @llvm.tan.f64(double)
declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
declare double @llvm.atan2.f64(double, double)
declare { double, double } @llvm.sincos.f64(double)
declare double @llvm.ldexp.f64.i32(double, i32)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
declare ptr @llvm.threadlocal.address.p0(ptr)

define internal void @check(i1 %right, i32 %number) noinline {
  br i1 %right, label %good, label %bad
bad:
  store volatile i32 %number, ptr @failed
  br label %good
good:
  ret void
}

define internal void @addresses() noinline {
entry:
  %five = load volatile i64, ptr @five
  %a4 = load volatile ptr, ptr @plain
  %v4 = load i32, ptr %a4
  %c4 = icmp eq i32 %v4, 40
  call void @check(i1 %c4, i32 1)
  %a3 = load volatile ptr, ptr getelementptr inbounds (i8, ptr @inside, i64 16)
  %v3 = load i32, ptr %a3
  %c3 = icmp eq i32 %v3, 30
  call void @check(i1 %c3, i32 2)
  %before = load volatile ptr, ptr @before
  %again = getelementptr i8, ptr %before, i64 4
  %cb = icmp eq ptr %again, @table
  call void @check(i1 %cb, i32 3)
  %difference = load volatile i64, ptr @difference
  %address = load volatile i64, ptr @address
  %seven = sub i64 %difference, %address
  %cd = icmp eq i64 %seven, 7
  call void @check(i1 %cd, i32 4)
  %v2 = load volatile i32, ptr @same
  %c2 = icmp eq i32 %v2, 20
  call void @check(i1 %c2, i32 5)
  %a6 = load volatile ptr, ptr @ranged
  %v6 = load i32, ptr %a6
  %c6 = icmp eq i32 %v6, 60
  call void @check(i1 %c6, i32 6)
  %is5 = icmp eq i64 %five, 5
  br i1 %is5, label %then, label %join
then:
  store volatile i32 81, ptr getelementptr inbounds nuw (i32, ptr @table, i64 8)
  br label %join
join:
  %chosen = phi ptr [ getelementptr (i32, ptr @table, i64 9), %entry ], [ getelementptr nuw (i32, ptr @table, i64 8), %then ]
  %v8 = load volatile i32, ptr %chosen
  %c8 = icmp eq i32 %v8, 81
  call void @check(i1 %c8, i32 7)
  %minusOne = sub i64 %five, 6
  %end = getelementptr nuw i32, ptr @table, i64 %five
  %back = getelementptr i32, ptr %end, i64 %minusOne
  %v = load volatile i32, ptr %back
  %c = icmp eq i32 %v, 40
  call void @check(i1 %c, i32 8)
  %here = ptrtoaddr ptr @table to i64
  %ch = icmp eq i64 %here, %address
  call void @check(i1 %ch, i32 9)
  %thread = call ptr @llvm.threadlocal.address.p0(ptr @thread)
  %vt = load volatile i32, ptr %thread
  %ct = icmp eq i32 %vt, 77
  call void @check(i1 %ct, i32 10)
  ret void
}

define internal void @numbers() noinline {
  %one = load volatile i32, ptr @one
  %minus = load volatile i32, ptr @minus
  %less = call i32 @llvm.scmp.i32.i32(i32 %minus, i32 %one)
  %c20 = icmp eq i32 %less, -1
  call void @check(i1 %c20, i32 20)
  %v0 = insertelement <4 x i32> splat (i32 1), i32 %minus, i64 2
  %more = call <4 x i8> @llvm.ucmp.v4i8.v4i32(<4 x i32> %v0, <4 x i32> splat (i32 1))
  %bits = bitcast <4 x i8> %more to i32
  %c21 = icmp eq i32 %bits, 65536
  call void @check(i1 %c21, i32 21)
  %zero = load volatile float, ptr @zero
  %negative = load volatile float, ptr @negative
  %nan = load volatile float, ptr @nan
  %max = call float @llvm.maximum.f32(float %negative, float %zero)
  %maxBits = bitcast float %max to i32
  %c22 = icmp eq i32 %maxBits, 0
  call void @check(i1 %c22, i32 22)
  %min = call float @llvm.minimum.f32(float %zero, float %negative)
  %minBits = bitcast float %min to i32
  %c23 = icmp eq i32 %minBits, -2147483648
  call void @check(i1 %c23, i32 23)
  %no = call float @llvm.maximum.f32(float %nan, float %zero)
  %c24 = fcmp uno float %no, %no
  call void @check(i1 %c24, i32 24)
  %w0 = insertelement <4 x float> splat (float 1.0), float %nan, i64 1
  %w1 = insertelement <4 x float> %w0, float -3.0, i64 2
  %w = call <4 x float> @llvm.maximum.v4f32(<4 x float> %w1, <4 x float> splat (float 0.5))
  %e1 = extractelement <4 x float> %w, i64 1
  %e2 = extractelement <4 x float> %w, i64 2
  %c25 = fcmp uno float %e1, %e1
  call void @check(i1 %c25, i32 25)
  %c26 = fcmp oeq float %e2, 0.5
  call void @check(i1 %c26, i32 26)
  %half = load volatile double, ptr @half
  %both = call { double, double } @llvm.sincos.f64(double %half)
  %sin = extractvalue { double, double } %both, 0
  %cos = extractvalue { double, double } %both, 1
  %tan = call double @llvm.tan.f64(double %half)
  %product = fmul double %tan, %cos
  %distance = fsub double %product, %sin
  %near1 = fcmp olt double %distance, 0x3CD203AF9EE75616
  %near2 = fcmp ogt double %distance, 0xBCD203AF9EE75616
  %c27 = and i1 %near1, %near2
  call void @check(i1 %c27, i32 27)
  %scaled = call double @llvm.ldexp.f64.i32(double %half, i32 3)
  %c28 = fcmp oeq double %scaled, 4.0
  call void @check(i1 %c28, i32 28)
  %angle = call double @llvm.atan2.f64(double %half, double %half)
  %c29 = fcmp oeq double %angle, 0x3FE921FB54442D18
  call void @check(i1 %c29, i32 29)
  ret void
}

define internal void @memory() noinline {
  %buffer = alloca [4 x i32], align 4
  call void @llvm.lifetime.start.p0(ptr %buffer)
  %one = load volatile i32, ptr @one
  %cond = icmp eq i32 %one, 1
  %mask = insertelement <4 x i1> <i1 true, i1 false, i1 true, i1 false>, i1 %cond, i64 3
  %some = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr align 4 getelementptr (i8, ptr @table, i64 4), <4 x i1> %mask, <4 x i32> splat (i32 -7))
  store <4 x i32> zeroinitializer, ptr %buffer, align 4
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %some, ptr align 4 %buffer, <4 x i1> <i1 true, i1 true, i1 false, i1 true>)
  %stored = load <4 x i32>, ptr %buffer, align 4
  %expected = icmp eq <4 x i32> %stored, <i32 10, i32 -7, i32 0, i32 40>
  %all = bitcast <4 x i1> %expected to i4
  %c40 = icmp eq i4 %all, -1
  call void @check(i1 %c40, i32 40)
  %ends = getelementptr i32, ptr @table, <4 x i64> <i64 15, i64 14, i64 13, i64 12>
  %gathered = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> align 4 %ends, <4 x i1> %mask, <4 x i32> splat (i32 3))
  %right = icmp eq <4 x i32> %gathered, <i32 150, i32 3, i32 130, i32 120>
  %every = bitcast <4 x i1> %right to i4
  %c41 = icmp eq i4 %every, -1
  call void @check(i1 %c41, i32 41)
  call void @llvm.lifetime.end.p0(ptr %buffer)
  %top = call ptr @llvm.stacksave.p0()
  %more = alloca i32, i32 %one
  store volatile i32 5, ptr %more
  call void @llvm.stackrestore.p0(ptr %top)
  %sum = load volatile <4 x i32>, ptr @vector
  %twelve = add <4 x i32> %sum, splat (i32 6)
  %twelves = icmp eq <4 x i32> %twelve, splat (i32 12)
  %same = bitcast <4 x i1> %twelves to i4
  %c42 = icmp eq i4 %same, -1
  call void @check(i1 %c42, i32 42)
  ret void
}

define internal void @atomics() noinline {
  %word = alloca i32
  %real = alloca float
  %pair = alloca <2 x float>
  store i32 5, ptr %word
  %a = atomicrmw uinc_wrap ptr %word, i32 5 seq_cst
  %b = load i32, ptr %word
  %c60 = icmp eq i32 %b, 0
  call void @check(i1 %c60, i32 60)
  %c = atomicrmw udec_wrap ptr %word, i32 9 seq_cst
  %d = atomicrmw usub_cond ptr %word, i32 10 seq_cst
  %e = atomicrmw usub_sat ptr %word, i32 4 seq_cst
  %f = atomicrmw usub_sat ptr %word, i32 40 seq_cst
  %c61 = icmp eq i32 %d, 9
  call void @check(i1 %c61, i32 61)
  %c62 = icmp eq i32 %f, 5
  call void @check(i1 %c62, i32 62)
  %g = load i32, ptr %word
  %c63 = icmp eq i32 %g, 0
  call void @check(i1 %c63, i32 63)
  store float 2.0, ptr %real
  %h = atomicrmw fmaximum ptr %real, float 7.0 seq_cst
  %i = atomicrmw fminimum ptr %real, float 9.0 seq_cst
  %c64 = fcmp oeq float %i, 7.0
  call void @check(i1 %c64, i32 64)
  store <2 x float> <float 1.0, float 2.0>, ptr %pair
  %j = atomicrmw fadd ptr %pair, <2 x float> <float 3.0, float 4.0> seq_cst
  %k = load <2 x float>, ptr %pair
  %l = extractelement <2 x float> %k, i64 1
  %c65 = fcmp oeq float %l, 6.0
  call void @check(i1 %c65, i32 65)
  ret void
}

define i32 @main() {
  call void @addresses()
  call void @numbers()
  call void @memory()
  call void @atomics()
  %failed = load volatile i32, ptr @failed
  ret i32 %failed
}
