//! A step to a kernel: MLIR's own passes, in process, on a context with everything that gpulower registers.

use std::error::Error;

use gpulower::compiler::{self, KernelLaunch};

use crate::graph::{Graph, Step};
use crate::step::{Tiles, source};

/// A step that was lowered.
pub struct Kernel {
    /// The `gpu.module`, and the function of the step's operands and its output that launches it, as MLIR.
    pub code: [String; 2],
    pub launch: KernelLaunch,
}

/// What is done to each element becomes one operation, the last, which writes to the result's memory. The schedule is
/// run, and what it launches becomes a `gpu.module`, in which everything that is a constant is one.
const PASSES: &str = "builtin.module(inline,symbol-dce,\
    func.func(convert-elementwise-to-linalg,linalg-fuse-elementwise-ops,eliminate-empty-tensors),\
    transform-interpreter,canonicalize,cse,canonicalize,\
    func.func(gpu-launch-sink-index-computations),gpu-kernel-outlining,lower-affine,canonicalize,cse)";

/// Lowers the step of that number.
pub fn lower(graph: &Graph, number: usize, step: &Step, tiles: &Tiles) -> Result<Kernel, Box<dyn Error>> {
    let name = format!("step{number}");
    let text = source(graph, step, tiles, &name);
    let context = compiler::context();
    let mut module = compiler::parse(&context, &name, text.as_bytes())?;
    compiler::run_pipeline(&mut module, PASSES)?;

    let symbols = compiler::symbols(&module);
    let launch = compiler::launches(&module).pop().ok_or("the schedule made no launch")?;
    let text = |name: &str| {
        let symbol = symbols.iter().find(|symbol| symbol.name == name);
        symbol.map(|symbol| symbol.text.clone()).ok_or("a symbol is missing")
    };
    Ok(Kernel {
        code: [text(&launch.module)?, text(&name)?],
        launch,
    })
}
