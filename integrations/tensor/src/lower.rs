//! A step to a kernel: MLIR's own passes, in process, on a context with everything that gpulower registers.

use std::{error::Error, fmt::Write};

use gpulower::{
    compiler,
    melior::ir::{
        BlockLike, Module, OperationRef, Value as MlirValue, ValueLike,
        attribute::IntegerAttribute,
        block::BlockArgument,
        operation::{OperationLike, OperationMutLike, OperationPrintingFlags, OperationResult, WalkOrder, WalkResult},
    },
};

use crate::{
    graph::{Graph, Op, Step, Value},
    linalg::{self, Source},
    schedule::{self, Tiles},
};

/// A step that was lowered.
#[derive(Debug)]
pub struct Kernel {
    /// The `gpu.module`, as MLIR.
    pub device: String,
    /// The function that launches it, as MLIR.
    pub host: String,
    /// The parameters of that function, the result last.
    pub parameters: Vec<(Value, Vec<usize>)>,
    /// Name of module and kernel.
    pub name: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Which parameters the kernel takes, in its order.
    pub arguments: Vec<usize>,
}

/// After the schedule: the launch's body becomes a `gpu.module`, in which everything that is a constant is one.
const OUTLINE: &str = "builtin.module(canonicalize,cse,canonicalize,func.func(gpu-launch-sink-index-computations),gpu-kernel-outlining,\
                       lower-affine,canonicalize,cse)";

/// The tiles that a step can be divided into; none are needed for one on rows.
pub fn candidates(graph: &Graph, step: &Step, tensor_cores: bool) -> Vec<Tiles> {
    let Op::Matmul { a, .. } = step.op else {
        return Vec::new();
    };
    let (&[m, k], &[_, n]) = (graph.shape(a), graph.shape(step.output)) else {
        return Vec::new();
    };
    schedule::candidates(m, n, k, tensor_cores)
}

/// Lowers a step. `tiles` are among [`candidates`].
pub fn lower(graph: &Graph, number: usize, step: &Step, tiles: Option<&Tiles>) -> Result<Kernel, Box<dyn Error>> {
    let (source, script) = match (&step.op, tiles) {
        (&Op::Matmul { a, b, transposed }, Some(tiles)) => (
            linalg::product(graph, number, step, (a, b, transposed)),
            schedule::product(tiles),
        ),
        (Op::Softmax(of) | Op::LayerNorm(of, ..), _) => {
            let width = graph.shape(*of).last().copied().unwrap_or(0);
            let threads = schedule::row_threads(width).ok_or("rows have to be a multiple of 32 long")?;
            (linalg::rows(graph, number, step, threads), schedule::rows(threads))
        }
        _ => return Err("no tiles fit: rows and columns have to be multiples of 16, or of 32 on tensor cores".into()),
    };
    let context = compiler::context();
    let text = format!(
        "module attributes {{transform.with_named_sequence}} {{\n{}{script}}}\n",
        source.text
    );
    let mut module = compiler::parse(&context, &format!("step{number}"), text.as_bytes())?;
    compiler::run_pipeline(&mut module, "builtin.module(transform-interpreter)")?;
    without_schedule(&module);
    compiler::run_pipeline(&mut module, OUTLINE)?;
    read(&module, number, source)
}

/// Takes the schedule away, which is no part of the program.
fn without_schedule(module: &Module<'_>) {
    let mut next = module.body().first_operation_mut();
    while let Some(mut operation) = next {
        next = operation.next_in_block_mut();
        if operation.name().as_string_ref().as_str() == Ok("transform.named_sequence") {
            operation.remove_from_parent();
        }
    }
}

fn read(module: &Module<'_>, number: usize, source: Source) -> Result<Kernel, Box<dyn Error>> {
    let mut kernel = Kernel {
        device: String::new(),
        host: String::new(),
        parameters: source.parameters,
        name: format!("step{number}_kernel"),
        grid: [1; 3],
        block: [1; 3],
        arguments: Vec::new(),
    };
    let mut next = module.body().first_operation();
    while let Some(operation) = next {
        next = operation.next_in_block();
        let text = operation.to_string_with_flags(OperationPrintingFlags::new().use_local_scope())?;
        match operation.name().as_string_ref().as_str()? {
            "gpu.module" => kernel.device += &text,
            _ => writeln!(kernel.host, "{text}")?,
        }
    }
    let mut launches = 0;
    let mut problem = None;
    module.as_operation().walk(WalkOrder::PreOrder, |operation| {
        if operation.name().as_string_ref().as_str() == Ok("gpu.launch_func") {
            launches += 1;
            problem = read_launch(&mut kernel, &operation).err();
        }
        WalkResult::Advance
    });
    match problem {
        Some(problem) => Err(problem),
        None if launches == 1 => Ok(kernel),
        None => Err(format!("{launches} launches were made of a step").into()),
    }
}

/// Six sizes, then the kernel's arguments: no clusters, no dynamic memory, nothing asynchronous.
fn read_launch(kernel: &mut Kernel, launch: &OperationRef<'_, '_>) -> Result<(), Box<dyn Error>> {
    for (index, operand) in launch.operands().enumerate() {
        match index {
            0..3 => kernel.grid[index] = constant(operand)?,
            3..6 => kernel.block[index - 3] = constant(operand)?,
            _ if operand.is_block_argument() => {
                kernel
                    .arguments
                    .push(BlockArgument::try_from(operand)?.argument_number());
            }
            _ => return Err(format!("{operand} is an argument of the kernel, and no parameter of the step").into()),
        }
    }
    Ok(())
}

fn constant(value: MlirValue<'_, '_>) -> Result<u32, Box<dyn Error>> {
    let attribute = OperationResult::try_from(value)?.owner().attribute("value")?;
    Ok(u32::try_from(IntegerAttribute::try_from(attribute)?.value())?)
}
