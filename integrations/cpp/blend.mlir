elementwise.map @blend {
^bb0(%x: f32, %y: f32):
  %weight = elementwise.sigmoid %x : f32
  %product = arith.mulf %weight, %y : f32
  elementwise.yield %product : f32
}
elementwise.map @half {
^bb0(%x: f64):
  %two = arith.constant 2.0 : f64
  %result = arith.divf %x, %two : f64
  elementwise.yield %result : f64
}
