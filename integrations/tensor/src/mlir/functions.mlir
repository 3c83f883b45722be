// What is done to a number, and to each element of a matrix in f32. MLIR inlines it, and fuses what follows each other.

// exp(x - max), added up, and divided by the sum.
func.func private @softmax_term(%x: f32, %max: f32) -> f32 {
  %d = arith.subf %x, %max : f32
  %e = math.exp %d : f32
  return %e : f32
}
func.func private @softmax_result(%x: f32, %max: f32, %sum: f32) -> f32 {
  %e = func.call @softmax_term(%x, %max) : (f32, f32) -> f32
  %y = arith.divf %e, %sum : f32
  return %y : f32
}

// (x - mean) / sqrt(variance + 1e-5)
func.func private @difference(%x: f32, %sum: f32) -> f32 {
  %n = arith.constant $columns.0 : f32
  %mean = arith.divf %sum, %n : f32
  %d = arith.subf %x, %mean : f32
  return %d : f32
}
func.func private @normalize_term(%x: f32, %sum: f32) -> f32 {
  %d = func.call @difference(%x, %sum) : (f32, f32) -> f32
  %square = arith.mulf %d, %d : f32
  return %square : f32
}
func.func private @normalize_result(%x: f32, %sum: f32, %squares: f32) -> f32 {
  %d = func.call @difference(%x, %sum) : (f32, f32) -> f32
  %n = arith.constant $columns.0 : f32
  %variance = arith.divf %squares, %n : f32
  %small = arith.constant 1.0e-5 : f32
  %v = arith.addf %variance, %small : f32
  %r = math.rsqrt %v : f32
  %y = arith.mulf %d, %r : f32
  return %y : f32
}

// x / 2 * (1 + erf(x / sqrt(2)))
func.func private @gelu(%x: !wide) -> !wide {
  %one = arith.constant dense<1.0> : !wide
  %half = arith.constant dense<0.5> : !wide
  %root = arith.constant dense<0.70710677> : !wide
  %scaled = arith.mulf %x, %root : !wide
  %erf = math.erf %scaled : !wide
  %more = arith.addf %erf, %one : !wide
  %halved = arith.mulf %x, %half : !wide
  %y = arith.mulf %more, %halved : !wide
  return %y : !wide
}

// A row becomes all rows.
func.func private @all_rows(%values: !vector) -> !wide {
  %empty = tensor.empty() : !wide
  %result = linalg.generic {indexing_maps = [#columns, #element], iterator_types = #each}
      ins(%values : !vector) outs(%empty : !wide) {
  ^bb0(%h: f16, %old: f32):
    %y = arith.extf %h : f16 to f32
    linalg.yield %y : f32
  } -> !wide
  return %result : !wide
}
