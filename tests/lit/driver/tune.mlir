// What a launch is made of is said in full; a device is looked for afterwards.
// RUN: not gpulower tune %s --block 32 2>&1 | FileCheck %s --check-prefix=GRID
// RUN: not gpulower tune %s --grid 0 --block 32 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not gpulower tune %s --grid 1 --block 32 --arg 4xq32 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not gpulower tune %s --grid 1 --block 32 --device 4000000000 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: gpulower tune --help | FileCheck %s --check-prefix=HELP

// GRID: --grid <X[,Y[,Z]]>
// ZERO: expected one to three numbers above 0, such as 1056 or 32,32
// ARGUMENT: expected f32=2.5, index=1024, 1024x64xf32, 4096xi32=0..63 or *1024xf32
// DEVICE: error: run: tuning needs a GPU: {{.+}}
// DEVICE: Without one, gpulower compile --speed=best chooses by a model.
// HELP: Every variant has to give what balanced gives
// HELP: --arg <ARGUMENT>

gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
