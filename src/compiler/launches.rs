//! What a module consists of, and what it launches: for programs that launch the kernels themselves.

use std::{fmt::Display, ops::Range};

use gpulower_runtime::{Arguments, LaunchShape, MemRef};
use melior::ir::{
    Module, RegionLike as _, ShapedTypeLike, Value, ValueLike,
    attribute::{DenseI32ArrayAttribute, IntegerAttribute},
    block::{BlockArgument, BlockLike as _},
    operation::{OperationLike, OperationPrintingFlags, OperationRef, OperationResult},
    r#type::{DimSize, MemRefType},
};

use super::input::InputError;
use crate::{
    bridge::mlir::{is_called, operations_below, place_of, string_value, symbol_attribute_name, symbol_path},
    device::lower::name_of,
    error::Error,
    stage::Stage,
};

/// An operation at the top of a module that has a name: a `gpu.module`, a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The operation, such as `gpu.module`.
    pub operation: String,
    /// It and what is in it as MLIR, which can be parsed by itself: it has no aliases, and says where each operation came from.
    pub text: String,
}

/// The operations at the top of a module that have a name, in order.
///
/// ```
/// use gpulower::compiler;
///
/// let context = compiler::context();
/// let module = compiler::parse(&context, "m.mlir", b"gpu.module @m {}\nfunc.func private @f()")?;
/// let symbols = compiler::symbols(&module);
/// assert_eq!(symbols[0].operation, "gpu.module");
/// assert!(symbols[0].text.starts_with("gpu.module @m {"));
/// assert_eq!(symbols[1].name, "f");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn symbols(module: &Module<'_>) -> Vec<Symbol> {
    let operations = std::iter::successors(module.body().first_operation(), OperationLike::next_in_block);
    let symbol = |operation: OperationRef<'_, '_>| {
        let name = string_value(operation.attribute(symbol_attribute_name()).ok()?)?;
        let flags = OperationPrintingFlags::new()
            .use_local_scope()
            .enable_debug_info(true, false);
        Some(Symbol {
            name,
            operation: name_of(&operation),
            text: operation.to_string_with_flags(flags).ok()?,
        })
    };
    operations.filter_map(symbol).collect()
}

/// A `gpu.launch_func` of a module.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// The `gpu.module` of the kernel.
    pub module: String,
    /// The kernel.
    pub kernel: String,
    /// Numbers of blocks, threads and bytes. An error, which says why and where, if one of them is no constant.
    pub shape: Result<LaunchShape, Error>,
    /// What the kernel takes, in its order.
    pub arguments: Vec<LaunchArgument>,
}

/// An argument of a [`KernelLaunch`].
#[derive(Clone, Debug)]
pub struct LaunchArgument {
    /// Which parameter of the function that launches it is, or whose memory it sees with other sizes. An error says what it is
    /// instead.
    pub parameter: Result<usize, Error>,
    /// The sizes of a memref whose elements follow each other in memory. An error if it is none, or one of them is not known.
    pub sizes: Result<Vec<i64>, Error>,
}

impl KernelLaunch {
    /// What the kernel gets where its function is called with these memrefs, for
    /// [`Function::launch`](crate::runtime::Function::launch) with [`KernelLaunch::shape`].
    ///
    /// # Errors
    ///
    /// [`Error`] for what is no memref of known sizes in memory of a parameter (a number, say), and for a parameter that is not
    /// given, has fewer elements than the kernel sees, or whose elements do not follow each other from its address on. Kernels that
    /// were compiled with bare pointers take others: [`Arguments::bare_memref`].
    pub fn with_parameters(&self, parameters: &[MemRef]) -> Result<Arguments, Error> {
        let mut arguments = Arguments::new();
        for LaunchArgument { parameter, sizes } in &self.arguments {
            let (index, sizes) = (parameter.clone()?, sizes.clone()?);
            let elements = |sizes: &[i64]| sizes.iter().fold(1_i64, |product, size| product.saturating_mul(*size));
            let given = parameters.get(index).filter(|whole| {
                let given: Vec<i64> = whole.indices().skip(1).take(whole.rank()).collect();
                let plain = MemRef::contiguous(whole.aligned(), &given);
                plain.indices().eq(whole.indices()) && elements(&given) >= elements(&sizes)
            });
            let whole = given.ok_or_else(|| {
                let kernel = &self.kernel;
                let reason = format!(
                    "@{kernel} takes {} elements in a row of parameter {index} of the function that launches it, and what is given \
                     has not as many: {:?}",
                    elements(&sizes),
                    parameters.get(index)
                );
                Error::new(Stage::Plan, InputError::Launch { reason, location: None })
            })?;
            arguments.memref(&MemRef::contiguous(whole.aligned(), &sizes).with_index_bits(whole.index_bits()));
        }
        Ok(arguments)
    }
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

// The groups of a launch's operands, as `gpu.launch_func` in MLIR's `GPUOps.td` has them; grid, block and cluster are three each.
const GRID: usize = 1;
const BLOCK: usize = 4;
const CLUSTER: usize = 7;
const DYNAMIC_SHARED: usize = 10;
const ARGUMENTS: usize = 11;

fn launch(operation: OperationRef<'_, '_>) -> Option<KernelLaunch> {
    let path = symbol_path(operation.attribute("kernel").ok()?)?;
    let [module, kernel] = <[String; 2]>::try_from(path).ok()?;
    let arguments = group(operation, ARGUMENTS)?.enumerate().filter_map(|(number, index)| {
        let value = operation.operand(index).ok()?;
        Some(argument(operation, number, value))
    });
    Some(KernelLaunch {
        module,
        kernel,
        shape: shape(operation),
        arguments: arguments.collect(),
    })
}

/// What is not known of a launch.
fn unknown(operation: OperationRef<'_, '_>, what: &str, why: &dyn Display) -> Error {
    let reason = format!("{what} of this launch is not known before the program runs: {why}");
    let location = Some(place_of(operation.location()));
    Error::new(Stage::Plan, InputError::Launch { reason, location })
}

fn shape(operation: OperationRef<'_, '_>) -> Result<LaunchShape, Error> {
    let size = |what: &str, index| {
        let size = constant(operation, index).and_then(|size| u32::try_from(size).ok());
        size.ok_or_else(|| {
            let operands = group(operation, index).unwrap_or_default();
            let value = operands
                .into_iter()
                .next()
                .and_then(|index| operation.operand(index).ok());
            let why = value.map_or_else(String::new, |value| {
                format!("it is {}, and no constant of 32 bits", made_by(value))
            });
            unknown(operation, what, &why)
        })
    };
    let sizes = |what: &str, first| -> Result<[u32; 3], Error> {
        Ok([size(what, first)?, size(what, first + 1)?, size(what, first + 2)?])
    };
    let is_there = |index| group(operation, index).is_some_and(|operands| !operands.is_empty());
    let mut shape = LaunchShape::new(sizes("the grid", GRID)?, sizes("the block", BLOCK)?);
    if is_there(CLUSTER) {
        shape = shape.with_cluster(sizes("the cluster", CLUSTER)?);
    }
    if is_there(DYNAMIC_SHARED) {
        shape = shape.with_dynamic_shared(size("the dynamic shared memory", DYNAMIC_SHARED)?);
    }
    Ok(shape)
}

/// Where a value comes from, for a message.
fn made_by<'a>(value: Value<'a, 'a>) -> String {
    match OperationResult::try_from(value) {
        Ok(result) => format!("the result of {}", name_of(&result.owner())),
        Err(_) => "an argument of a function or a loop".to_owned(),
    }
}

fn argument<'a>(operation: OperationRef<'_, '_>, number: usize, value: Value<'a, 'a>) -> LaunchArgument {
    let kind = value.r#type();
    let refused = |what: &str, why: &dyn Display| unknown(operation, &format!("{what} of argument {number}"), why);
    LaunchArgument {
        parameter: parameter(value).map_err(|stopped| {
            let why = format!(
                "it is {}, and no parameter of a function, nor a view of its memory",
                made_by(stopped)
            );
            refused("the memory", &why)
        }),
        sizes: sizes(value).ok_or_else(|| {
            let why = format!("{kind} is no memref of known sizes whose elements follow each other");
            refused("the size", &why)
        }),
    }
}

/// The sizes of a memref, if all of them are known, and its elements follow each other in memory.
fn sizes(value: Value<'_, '_>) -> Option<Vec<i64>> {
    // The layout is a part of the type's text if it is not the usual one.
    let is_plain = |kind: &MemRefType<'_>| {
        !["strided<", "affine_map<"]
            .iter()
            .any(|word| kind.to_string().contains(word))
    };
    let memref = MemRefType::try_from(value.r#type()).ok().filter(is_plain)?;
    let size = |index| match memref.dim_size(index) {
        Ok(DimSize::Static(size)) => i64::try_from(size).ok(),
        _ => None,
    };
    (0..memref.rank()).map(size).collect()
}

/// Operations whose result, if its layout is the usual one, begins where their operand does (MLIR's `MemRefOps.td`).
const VIEWS: [&str; 4] = [
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
];

/// The operands of a launch in one of its groups.
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

/// The number of the parameter whose memory a value is, or what it comes from instead.
fn parameter<'a>(mut value: Value<'a, 'a>) -> Result<usize, Value<'a, 'a>> {
    while let Ok(result) = OperationResult::try_from(value) {
        let operation = result.owner();
        let is_view = VIEWS.iter().any(|name| is_called(&operation, name));
        value = is_view.then(|| operation.operand(0).ok()).flatten().ok_or(value)?;
    }
    let number = || {
        let argument = BlockArgument::try_from(value).ok()?;
        let block = argument.owner();
        // Loops have arguments, too.
        let function = block.parent_operation()?;
        let is_its = name_of(&function).ends_with(".func") && function.region(0).ok()?.first_block()? == block;
        is_its.then(|| argument.argument_number())
    };
    number().ok_or(value)
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
        let [launch] = <[KernelLaunch; 1]>::try_from(launches(&module)).expect("there is one");
        assert_eq!((launch.module.as_str(), launch.kernel.as_str()), ("m", "k"));
        let reason = launch.shape.expect_err("a parameter is no constant").to_string();
        assert!(reason.starts_with("source:10:5: "), "{reason}");
        assert!(reason.contains("the block of this launch is not known"), "{reason}");
        let arguments = launch.arguments.iter().map(|argument| {
            let LaunchArgument { parameter, sizes } = argument;
            (parameter.as_ref().ok().copied(), sizes.as_ref().ok().cloned())
        });
        let expected = [(Some(2), Some(vec![2, 8])), (None, None), (Some(1), None)];
        assert_eq!(arguments.collect::<Vec<_>>(), expected);
        let reason = launch.arguments[1].parameter.as_ref().expect_err("a sum").to_string();
        assert!(
            reason.contains("argument 1") && reason.contains("the result of arith.addi"),
            "{reason}"
        );
    }

    #[test]
    fn a_launch_of_known_sizes_gives_its_shape_and_its_arguments() {
        let source = r#"module attributes {gpu.container_module} {
  gpu.module @m { gpu.func @k(%x: memref<2x8xf32>, %y: memref<4xf32>) kernel { gpu.return } }
  func.func @f(%y: memref<4xf32>, %x: memref<16xf32>) {
    %one = arith.constant 1 : index
    %threads = arith.constant 64 : index
    %bytes = arith.constant 96 : i32
    %v = memref.expand_shape %x [[0, 1]] output_shape [2, 8] : memref<16xf32> into memref<2x8xf32>
    gpu.launch_func @m::@k clusters in (%one, %one, %one) blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        dynamic_shared_memory_size %bytes args(%v : memref<2x8xf32>, %y : memref<4xf32>)
    return
  }
}"#;
        let context = compiler::context();
        let module = compiler::parse(&context, "source", source.as_bytes()).expect("it is right");
        let launch = launches(&module).pop().expect("there is one");
        let shape = launch.shape.clone().expect("all are constants");
        let expected = LaunchShape::new([1; 3], [64, 1, 1]);
        assert_eq!(shape, expected.with_cluster([1; 3]).with_dynamic_shared(96));
        let memrefs = [MemRef::contiguous(64, &[4]), MemRef::contiguous(256, &[16])];
        let mut expected = Arguments::new();
        expected.memref(&MemRef::contiguous(256, &[2, 8])).memref(&memrefs[0]);
        assert_eq!(launch.with_parameters(&memrefs).expect("both are known"), expected);
        let reason = launch
            .with_parameters(&memrefs[..1])
            .expect_err("one is missing")
            .to_string();
        assert!(reason.contains("of parameter 1"), "{reason}");
        for wrong in [MemRef::contiguous(256, &[15]), MemRef::contiguous(256, &[])] {
            launch
                .with_parameters(&[memrefs[0].clone(), wrong])
                .expect_err("it is too small");
        }
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
        assert!(launches(&module)[0].arguments[0].parameter.is_err());
    }
}
