//! A step to a kernel: MLIR's own passes, in process, on a context with everything that gpulower registers.

use std::{error::Error, iter::successors};

use gpulower::compiler;
use gpulower::melior::ir::BlockLike;
use gpulower::melior::ir::operation::{OperationLike, OperationPrintingFlags};

use crate::graph::{Graph, Step, Value};
use crate::step::{Tiles, source};

/// A step that was lowered.
pub struct Kernel {
    pub name: String,
    /// The `gpu.module`, and the function of the step's operands and its output that launches it, as MLIR.
    pub code: [String; 2],
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Values, with their sizes as the kernel sees them.
    pub arguments: Vec<(Value, Vec<i64>)>,
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

    let mut code = [String::new(), String::new()];
    for operation in successors(module.body().first_operation(), OperationLike::next_in_block) {
        let text = operation.to_string_with_flags(OperationPrintingFlags::new().use_local_scope())?;
        match operation.name().as_string_ref().as_str()? {
            "gpu.module" => code[0] = text,
            "func.func" => code[1] = text,
            _ => {} // The schedule.
        }
    }
    let launch = compiler::launches(&module).pop().ok_or("the schedule made no launch")?;
    let arguments = launch.arguments.into_iter().map(|argument| {
        let value = step.operands.get(argument.parameter?).unwrap_or(&step.output);
        Some((*value, argument.sizes?))
    });
    let arguments: Option<_> = arguments.collect();
    Ok(Kernel {
        name: launch.kernel,
        code,
        grid: launch.grid.ok_or("a grid that is no constant")?,
        block: launch.block.ok_or("a block that is no constant")?,
        arguments: arguments.ok_or("an argument that is no value of the graph")?,
    })
}
