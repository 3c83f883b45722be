//! A valid kernel: what it is compiled to says whether this process is what it was.

use std::fmt;

use gpulower::{Compilation, Compiler, Emit, Failure, Target};

/// A kernel that every target compiles.
const KERNEL: &str = "gpu.module @m { gpu.func @k(%p: memref<?xf32>, %v: f32) kernel {
  %i = gpu.global_id x
  memref.store %v, %p[%i] : memref<?xf32>
  gpu.return } }";

/// Its artifacts, or the words of its refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made(Result<Vec<Vec<u8>>, String>);

impl Made {
    /// Compiles it.
    pub fn by(compiler: &Compiler, targets: &[Target], emit: Emit) -> Self {
        let bytes = |made: Compilation| made.artifacts.into_iter().map(|artifact| artifact.bytes).collect();
        let made = compiler.compile_source("valid.mlir", KERNEL.as_bytes(), targets, emit);
        Self(made.map(bytes).map_err(|failure: Failure| failure.to_string()))
    }
}

impl fmt::Display for Made {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(artifacts) => {
                let lengths: Vec<usize> = artifacts.iter().map(Vec::len).collect();
                write!(formatter, "of {lengths:?} bytes")
            }
            Err(message) => write!(formatter, "refused with {message:?}"),
        }
    }
}

/// The message of a kernel that should be something else.
pub fn difference(expected: &Made, made: &Made) -> String {
    format!("a bug in gpulower: the next kernel should be {expected}, and is {made}")
}

/// What this process made of the kernel before it had done anything else.
#[derive(Debug)]
pub struct Before(Vec<Made>);

impl Before {
    pub fn now() -> Self {
        Self(for_both_vendors())
    }

    /// The difference to what it makes of it now.
    pub fn differs(&self) -> Option<String> {
        let now = for_both_vendors();
        let mut pairs = self.0.iter().zip(&now);
        pairs
            .find(|(before, now)| before != now)
            .map(|(before, now)| difference(before, now))
    }
}

fn for_both_vendors() -> Vec<Made> {
    let compiler = Compiler::builder().threads(1).build();
    [("sm_90", Emit::Ptx), ("gfx942", Emit::Object)]
        .into_iter()
        .filter_map(|(target, emit)| Some(Made::by(&compiler, &[target.parse().ok()?], emit)))
        .collect()
}
