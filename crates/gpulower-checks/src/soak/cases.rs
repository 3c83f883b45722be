//! What is compiled: kernels that compile, and inputs that fail, each in its own way.

use gpulower::{Compiler, Emit, Target};

/// An input, a target and a format. `NAME` in it stands for a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is, for the report.
    pub kind: &'static str,
    extension: &'static str,
    source: &'static str,
    target: &'static str,
    emit: Emit,
}

/// What came out: the bytes, or the message.
pub type Outcome = Result<Vec<u8>, String>;

impl Case {
    /// Compiles it under a name.
    pub fn compile(&self, compiler: &Compiler, name: &str) -> Outcome {
        let source = self.source.replace("NAME", name);
        let file = format!("{name}.{}", self.extension);
        let targets = Target::parse_list(self.target).map_err(|error| error.to_string())?;
        let compiled = compiler.compile_source(&file, source.as_bytes(), &targets, self.emit);
        match compiled {
            Ok(compilation) => Ok(compilation
                .artifacts
                .into_iter()
                .flat_map(|artifact| artifact.bytes)
                .collect()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

const SAXPY: &str = include_str!("../../../../examples/saxpy.mlir");
const GELU: &str = include_str!("../../../../examples/gelu.mlir");
const SOFTMAX: &str = include_str!("../../../../examples/softmax.mlir");
const TRANSPOSE: &str = include_str!("../../../../examples/transpose.mlir");
const HISTOGRAM: &str = include_str!("../../../../examples/histogram.mlir");

const fn good(source: &'static str, target: &'static str, emit: Emit) -> Case {
    Case {
        kind: "compiles",
        extension: "mlir",
        source,
        target,
        emit,
    }
}

/// Kernels that compile.
pub const GOOD: &[Case] = &[
    good(SAXPY, "sm_90", Emit::Ptx),
    good(SAXPY, "gfx942", Emit::Hsaco),
    good(GELU, "sm_80", Emit::Ptx),
    good(GELU, "gfx1100", Emit::Hsaco),
    good(SOFTMAX, "gfx90a", Emit::Hsaco),
    good(TRANSPOSE, "sm_90", Emit::Ptx),
    good(HISTOGRAM, "gfx942", Emit::Asm),
    good(TRANSPOSE, "gfx1100", Emit::Bitcode),
];

/// Kernels that need one of NVIDIA's compilers.
pub const CUBINS: &[Case] = &[
    good(SAXPY, "sm_90", Emit::Cubin),
    good(GELU, "sm_80,gfx942", Emit::Binary),
    good(SOFTMAX, "sm_80,sm_90", Emit::Fatbin),
];

/// Inputs that fail, and have to say so with their own name.
pub const BAD: &[Case] = &[
    Case {
        kind: "does not parse",
        extension: "mlir",
        source: "gpu.module @NAME {\n  gpu.func @k( kernel {\n",
        target: "sm_90",
        emit: Emit::Ptx,
    },
    Case {
        kind: "is for another vendor",
        extension: "mlir",
        source: "gpu.module @NAME { gpu.func @k(%p: memref<1xi32>) kernel {\n  %i = arith.constant 0 : index\n  \
                 %v = rocdl.workitem.id.x : i32\n  memref.store %v, %p[%i] : memref<1xi32>\n  gpu.return\n} }",
        target: "sm_90",
        emit: Emit::Ptx,
    },
    Case {
        kind: "cannot be selected",
        extension: "ll",
        source: "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\ndefine ptx_kernel void @NAME(ptr %p) {\n  \
                 %v = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)\n  store i32 %v, ptr %p\n  ret void\n}\n",
        target: "sm_75",
        emit: Emit::Ptx,
    },
    Case {
        kind: "misses a symbol",
        extension: "ll",
        source: "declare void @missing_NAME()\ndefine amdgpu_kernel void @NAME() {\n  call void @missing_NAME()\n  ret void\n}\n",
        target: "gfx942",
        emit: Emit::Hsaco,
    },
    Case {
        kind: "is refused by the PTX compiler",
        extension: "ptx",
        source: ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry NAME() { nonsense_NAME; ret; }\n",
        target: "sm_90",
        emit: Emit::Cubin,
    },
];
