//! What a module launches: for programs that launch the kernels themselves.

use std::ops::Range;

use melior::ir::{
    Module, RegionLike as _, ShapedTypeLike, Value, ValueLike,
    attribute::{DenseI32ArrayAttribute, IntegerAttribute},
    block::{BlockArgument, BlockLike as _},
    operation::{OperationLike, OperationRef, OperationResult},
    r#type::{DimSize, MemRefType},
};

use crate::{
    bridge::mlir::{is_called, operations_below, symbol_path},
    device::lower::name_of,
};

/// A `gpu.launch_func` of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// The `gpu.module` of the kernel.
    pub module: String,
    /// The kernel.
    pub kernel: String,
    /// Blocks, if they are constants.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block, if they are constants.
    pub block: Option<[u32; 3]>,
    /// What the kernel takes, in its order.
    pub arguments: Vec<LaunchArgument>,
}

/// An argument of a [`KernelLaunch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchArgument {
    /// Which parameter of the function that launches it is, or whose memory it sees with other sizes.
    pub parameter: Option<usize>,
    /// The sizes of a memref, if all of them are known, and its elements follow each other in memory.
    pub sizes: Option<Vec<i64>>,
}

/// Every `gpu.launch_func` of a module, in order.
#[must_use]
pub fn launches(module: &Module<'_>) -> Vec<KernelLaunch> {
    let operations = operations_below(module.as_operation()).into_iter();
    operations
        .filter(|operation| is_called(operation, "gpu.launch_func"))
        .filter_map(launch)
        .collect()
}

/// The group of a launch's operands that the kernel gets: "kernelOperands" of `gpu.launch_func` in MLIR's `GPUOps.td`.
const ARGUMENTS: usize = 11;

fn launch(operation: OperationRef<'_, '_>) -> Option<KernelLaunch> {
    let path = symbol_path(operation.attribute("kernel").ok()?)?;
    let [module, kernel] = <[String; 2]>::try_from(path).ok()?;
    let sizes = |first: usize| {
        let size = |group| u32::try_from(constant(operation, group)?).ok();
        Some([size(first)?, size(first + 1)?, size(first + 2)?])
    };
    let arguments = group(operation, ARGUMENTS)?.filter_map(|index| operation.operand(index).ok());
    Some(KernelLaunch {
        module,
        kernel,
        grid: sizes(1),
        block: sizes(4),
        arguments: arguments.map(argument).collect(),
    })
}

fn argument<'a>(value: Value<'a, 'a>) -> LaunchArgument {
    // The layout is a part of the type's text if it is not the usual one.
    let is_plain = |kind: &MemRefType<'_>| {
        !["strided<", "affine_map<"]
            .iter()
            .any(|word| kind.to_string().contains(word))
    };
    let memref = MemRefType::try_from(value.r#type()).ok().filter(is_plain);
    let sizes = memref.and_then(|kind| {
        let size = |index| match kind.dim_size(index) {
            Ok(DimSize::Static(size)) => i64::try_from(size).ok(),
            _ => None,
        };
        (0..kind.rank()).map(size).collect()
    });
    LaunchArgument {
        parameter: parameter(value),
        sizes,
    }
}

/// Operations whose result, if its layout is the usual one, begins where their operand does (MLIR's `MemRefOps.td`).
const VIEWS: [&str; 4] = [
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
];

/// The operands of a launch in one of its groups: dependencies, the grid (3 groups), the block (3), the cluster (3), dynamic memory,
/// and what the kernel gets.
fn group(launch: OperationRef<'_, '_>, group: usize) -> Option<Range<usize>> {
    let sizes = DenseI32ArrayAttribute::try_from(launch.attribute("operandSegmentSizes").ok()?).ok()?;
    let size = |index| usize::try_from(sizes.element(index).ok()?).ok();
    let first = (0..group).map(size).sum::<Option<usize>>()?;
    Some(first..first + size(group)?)
}

/// The one operand of a group, if it is a constant.
pub(crate) fn constant(launch: OperationRef<'_, '_>, index: usize) -> Option<i64> {
    let group = group(launch, index)?;
    if group.len() != 1 {
        return None;
    }
    let made_by = OperationResult::try_from(launch.operand(group.start).ok()?)
        .ok()?
        .owner();
    if !matches!(
        name_of(&made_by).as_str(),
        "arith.constant" | "llvm.mlir.constant" | "index.constant"
    ) {
        return None;
    }
    let value = IntegerAttribute::try_from(made_by.attribute("value").ok()?).ok()?;
    Some(value.value())
}

fn parameter<'a>(mut value: Value<'a, 'a>) -> Option<usize> {
    while let Ok(result) = OperationResult::try_from(value) {
        let operation = result.owner();
        let is_view = VIEWS.iter().any(|name| is_called(&operation, name));
        value = is_view.then(|| operation.operand(0).ok()).flatten()?;
    }
    let argument = BlockArgument::try_from(value).ok()?;
    let block = argument.owner();
    // Loops have arguments, too.
    let function = block.parent_operation()?;
    let is_its = name_of(&function).ends_with(".func") && function.region(0).ok()?.first_block()? == block;
    is_its.then(|| argument.argument_number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler;

    #[test]
    fn what_a_module_launches_is_read() {
        let source = r#"module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: memref<2x8xf32>, %n: index, %y: memref<?xf32>) kernel { gpu.return }
  }
  func.func @f(%n: index, %y: memref<?xf32>, %x: memref<16xf32>) {
    %one = arith.constant 1 : index
    %bytes = arith.constant 64 : i32
    %v = memref.expand_shape %x [[0, 1]] output_shape [2, 8] : memref<16xf32> into memref<2x8xf32>
    %m = arith.addi %n, %n : index
    gpu.launch_func @m::@k clusters in (%one, %one, %one) blocks in (%one, %one, %one) threads in (%n, %one, %one)
        dynamic_shared_memory_size %bytes args(%v : memref<2x8xf32>, %m : index, %y : memref<?xf32>)
    return
  }
}"#;
        let context = compiler::context();
        let module = compiler::parse(&context, "source", source.as_bytes()).expect("it is right");
        let argument = |parameter, sizes| LaunchArgument { parameter, sizes };
        let launch = KernelLaunch {
            module: "m".to_owned(),
            kernel: "k".to_owned(),
            grid: Some([1, 1, 1]),
            block: None,
            arguments: vec![
                argument(Some(2), Some(vec![2, 8])),
                argument(None, None),
                argument(Some(1), None),
            ],
        };
        assert_eq!(launches(&module), [launch]);
    }

    #[test]
    fn arguments_of_loops_are_no_parameters() {
        let source = r#"module attributes {gpu.container_module} {
  gpu.module @m { gpu.func @k(%x: memref<8xf32>) kernel { gpu.return } }
  func.func @f(%n: index, %x: memref<8xf32>, %y: memref<8xf32>) {
    %one = arith.constant 1 : index
    scf.for %i = %one to %n step %one iter_args(%a = %x, %b = %y) -> (memref<8xf32>, memref<8xf32>) {
      gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%a : memref<8xf32>)
      scf.yield %b, %a : memref<8xf32>, memref<8xf32>
    }
    return
  }
}"#;
        let context = compiler::context();
        let module = compiler::parse(&context, "source", source.as_bytes()).expect("it is right");
        assert_eq!(launches(&module)[0].arguments[0].parameter, None);
    }
}
