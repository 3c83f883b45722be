// A device that is not there.
func.func @main() {
  %n = arith.constant 99 : i32
  gpu.set_default_device %n
  return
}
