//! Stubs: the host functions that launch one kernel each, and the symbols that stand for device variables.
//!
//! A stub takes the sizes of grid and block, the bytes of dynamic shared memory, the stream, whether to wait, and the
//! kernel's arguments. It puts the arguments in memory and calls `__gpulower_launch` of the support functions.

use std::fmt::Write;

use melior::{
    Context,
    ir::{
        Module,
        attribute::TypeAttribute,
        operation::{OperationLike, OperationRef},
    },
};

use super::{
    error::OffloadError,
    openmp::{ARGUMENT_SIZE, LITERAL_ARGUMENT},
    program::{Kernel, Program, Runtime},
    support::{owned_symbols, symbols},
};
use crate::bridge::{
    edit::edit,
    mlir::{capture_diagnostics, function_inputs, parse_module, place_of},
};

/// What host code calls to launch a kernel, before the kernel's name.
pub(super) const STUB: &str = "__device_stub__";
/// The same for launches with clusters.
pub(super) const CLUSTER_STUB: &str = "__cluster_stub__";

/// The arguments of a stub before the kernel's: the names in its text, all i64 but those noted.
const SIZES: &[&str] = &["gx", "gy", "gz", "bx", "by", "bz"];
const CLUSTER_SIZES: &[&str] = &["gx", "gy", "gz", "cx", "cy", "cz", "bx", "by", "bz"];

/// Defines stubs, handles and shadows in the host code, which has declarations of the stubs that it calls; notes in the
/// program which kernels have launches with clusters.
pub(super) fn define<'c>(
    context: &'c Context,
    host: &mut Module<'c>,
    program: &mut Program,
    hidden_shadows: bool,
) -> Result<(), OffloadError> {
    let declared = symbols(host.as_operation());
    let mut text = String::new();
    for kernel in &mut program.kernels {
        let plain = declared.get(&kernel.stub);
        let clusters = declared.get(&format!("{CLUSTER_STUB}{}", called(kernel)));
        if let Some(declaration) = clusters {
            kernel.clusters = true;
            let reason = match program.runtime {
                Runtime::Cuda => None,
                Runtime::Hip => Some("which AMD's GPUs do not have"),
                Runtime::OpenMp => Some("of which libomptarget knows nothing"),
            };
            if let Some(reason) = reason {
                return Err(OffloadError::new(format!(
                    "the kernel {} is launched with clusters of blocks, {reason}",
                    kernel.source_name
                ))
                .at(place_of(declaration.location())));
            }
        }
        let _ = writeln!(
            text,
            "llvm.mlir.global internal constant @{}(\"{}\\00\")",
            quoted(&message_name(kernel)),
            escaped(&kernel.source_name)
        );
        match plain {
            Some(declaration) => {
                let arguments = kernel_arguments(*declaration, SIZES)?;
                if program.runtime == Runtime::OpenMp {
                    refuse_long(kernel, &arguments).map_err(|error| error.at(place_of(declaration.location())))?;
                    stub_for_openmp(&mut text, kernel, &arguments);
                } else {
                    stub(&mut text, kernel, &kernel.stub, SIZES, &arguments);
                }
            }
            // The kernel is launched with clusters alone: its stub is an address, and never called.
            None => stub(&mut text, kernel, &kernel.stub, SIZES, &[]),
        }
        if let Some(declaration) = clusters {
            let name = format!("{CLUSTER_STUB}{}", called(kernel));
            let arguments = kernel_arguments(*declaration, CLUSTER_SIZES)?;
            stub(&mut text, kernel, &name, CLUSTER_SIZES, &arguments);
        }
        if kernel.handle != kernel.stub {
            let _ = writeln!(
                text,
                "llvm.mlir.global external hidden constant @{}() {{alignment = 8 : i64}} : !llvm.ptr {{\n\
                 \x20 %stub = llvm.mlir.addressof @{} : !llvm.ptr\n  llvm.return %stub : !llvm.ptr\n}}",
                quoted(&kernel.handle),
                quoted(&kernel.stub)
            );
        }
    }
    for variable in &program.variables {
        let (size, visibility) = (variable.size, if hidden_shadows { "hidden " } else { "" });
        let _ = writeln!(
            text,
            "llvm.mlir.global external {visibility}@{}() {{alignment = 16 : i64}} : !llvm.array<{size} x i8> {{\n\
             \x20 %zero = llvm.mlir.zero : !llvm.array<{size} x i8>\n  llvm.return %zero : !llvm.array<{size} x i8>\n}}",
            quoted(&variable.shadow)
        );
    }
    // For the parser alone, which wants every called function declared.
    text.push_str(LAUNCH);
    if program.kernels.iter().any(|kernel| kernel.clusters) {
        text.push_str(LAUNCH_CLUSTERS);
    }
    let (module, diagnostics) = capture_diagnostics(context, || parse_module(context, "stubs", text.as_bytes()));
    let module = module.map_err(|error| {
        let reason = diagnostics
            .first()
            .map_or_else(|| error.to_string(), |first| first.message.clone());
        OffloadError::internal(format!("the stubs cannot be parsed: {reason}\n{text}"))
    })?;
    let definitions = owned_symbols(module)?;
    edit(host, |host, edits| {
        let declared = symbols(host);
        for (name, definition) in definitions {
            match declared.get(&name) {
                Some(declaration) => edits.replace(*declaration, definition),
                None => edits.append(host, definition),
            }
        }
    });
    Ok(())
}

const LAUNCH: &str = "llvm.func @__gpulower_launch(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, \
                      i1, !llvm.ptr)\n";
const LAUNCH_CLUSTERS: &str = "llvm.func @__gpulower_launch_clusters(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, \
                               i64, i64, i64, i64, i64, !llvm.ptr, i1, !llvm.ptr)\n";

/// The types of the kernel's arguments, from the declaration of its stub.
fn kernel_arguments(declaration: OperationRef<'_, '_>, sizes: &[&str]) -> Result<Vec<String>, OffloadError> {
    declaration
        .attribute("function_type")
        .ok()
        .and_then(|attribute| TypeAttribute::try_from(attribute).ok())
        .and_then(|kind| function_inputs(kind.value()))
        // Shared memory, stream and whether to wait follow the sizes.
        .and_then(|inputs| Some(inputs.get(sizes.len() + 3..)?.iter().map(ToString::to_string).collect()))
        .ok_or_else(|| OffloadError::internal("a stub is declared without its arguments".to_owned()))
}

/// What a launch calls the kernel by: the end of its stub's name. Compiled kernels may share a name.
pub(super) fn called(kernel: &Kernel) -> &str {
    kernel.stub.strip_prefix(STUB).unwrap_or(&kernel.name)
}

/// Where the kernel's name for messages is.
fn message_name(kernel: &Kernel) -> String {
    format!("__gpulower_kernel_{}", called(kernel))
}

/// Refuses arguments that libomptarget cannot hand over: it has eight bytes for each.
fn refuse_long(kernel: &Kernel, arguments: &[String]) -> Result<(), OffloadError> {
    let fits = |kind: &String| match kind.strip_prefix('i').map(str::parse::<u32>) {
        Some(Ok(bits)) => u64::from(bits) <= 8 * ARGUMENT_SIZE,
        _ => ["f16", "bf16", "f32", "f64", "!llvm.ptr"].contains(&kind.as_str()),
    };
    match arguments.iter().find(|kind| !fits(kind)) {
        None => Ok(()),
        Some(kind) => Err(OffloadError::new(format!(
            "the kernel {} takes an argument of the type {kind}, and libomptarget hands over numbers and pointers of \
             {ARGUMENT_SIZE} bytes at most: pass it in memory",
            kernel.source_name
        ))),
    }
}

/// A stub whose arguments are values of eight bytes each, as `ompLaunchKernel` of the support functions takes them.
fn stub_for_openmp(text: &mut String, kernel: &Kernel, arguments: &[String]) {
    head(text, &kernel.stub, SIZES, arguments);
    let count = arguments.len();
    let _ = writeln!(
        text,
        "  %zero = llvm.mlir.constant(0 : i64) : i64\n  %count = llvm.mlir.constant({count} : i32) : i32\n\
         \x20 %size = llvm.mlir.constant({ARGUMENT_SIZE} : i64) : i64\n\
         \x20 %kind = llvm.mlir.constant({LITERAL_ARGUMENT} : i64) : i64\n\
         \x20 %arguments = llvm.alloca %one x !llvm.struct<(i64, ptr, ptr, ptr)> : (i32) -> !llvm.ptr\n\
         \x20 llvm.store %count, %arguments : i32, !llvm.ptr"
    );
    for (place, list) in [(1, "values"), (2, "sizes"), (3, "kinds")] {
        let _ = writeln!(
            text,
            "  %{list} = llvm.alloca %one x !llvm.array<{} x i64> : (i32) -> !llvm.ptr\n\
             \x20 %{list}_place = llvm.getelementptr %arguments[{place}] : (!llvm.ptr) -> !llvm.ptr, i64\n\
             \x20 llvm.store %{list}, %{list}_place : !llvm.ptr, !llvm.ptr",
            count.max(1)
        );
    }
    for (index, kind) in arguments.iter().enumerate() {
        for (list, value) in [("values", "zero"), ("sizes", "size"), ("kinds", "kind")] {
            let _ = writeln!(
                text,
                "  %{list}{index} = llvm.getelementptr %{list}[{index}] : (!llvm.ptr) -> !llvm.ptr, i64\n\
                 \x20 llvm.store %{value}, %{list}{index} : i64, !llvm.ptr"
            );
        }
        // Both hosts are little-endian.
        let _ = writeln!(text, "  llvm.store %a{index}, %values{index} : {kind}, !llvm.ptr");
    }
    launch(text, kernel, SIZES);
}

/// The beginning of a stub.
fn head(text: &mut String, name: &str, sizes: &[&str], arguments: &[String]) {
    let _ = write!(text, "llvm.func hidden @{}(", quoted(name));
    for size in sizes {
        let _ = write!(text, "%{size}: i64, ");
    }
    text.push_str("%shared: i64, %stream: !llvm.ptr, %wait: i1");
    for (index, kind) in arguments.iter().enumerate() {
        let _ = write!(text, ", %a{index}: {kind}");
    }
    text.push_str(") {\n  %one = llvm.mlir.constant(1 : i32) : i32\n");
}

fn stub(text: &mut String, kernel: &Kernel, name: &str, sizes: &[&str], arguments: &[String]) {
    head(text, name, sizes, arguments);
    let _ = writeln!(
        text,
        "  %arguments = llvm.alloca %one x !llvm.array<{} x ptr> : (i32) -> !llvm.ptr",
        arguments.len().max(1)
    );
    for (index, kind) in arguments.iter().enumerate() {
        let _ = write!(
            text,
            "  %s{index} = llvm.alloca %one x {kind} : (i32) -> !llvm.ptr\n\
             \x20 llvm.store %a{index}, %s{index} : {kind}, !llvm.ptr\n\
             \x20 %p{index} = llvm.getelementptr %arguments[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n\
             \x20 llvm.store %s{index}, %p{index} : !llvm.ptr, !llvm.ptr\n"
        );
    }
    launch(text, kernel, sizes);
}

/// The end of a stub: the launch with `%arguments`.
fn launch(text: &mut String, kernel: &Kernel, sizes: &[&str]) {
    let launch = if sizes.len() == SIZES.len() {
        "__gpulower_launch"
    } else {
        "__gpulower_launch_clusters"
    };
    let values: String = sizes.iter().map(|size| format!("%{size}, ")).collect();
    let kinds = "i64, ".repeat(sizes.len());
    let _ = writeln!(
        text,
        "  %handle = llvm.mlir.addressof @{} : !llvm.ptr\n  %name = llvm.mlir.addressof @{} : !llvm.ptr\n\
         \x20 llvm.call @{launch}(%handle, %name, {values}%shared, %stream, %wait, %arguments) : \
         (!llvm.ptr, !llvm.ptr, {kinds}i64, !llvm.ptr, i1, !llvm.ptr) -> ()\n  llvm.return\n}}",
        quoted(&kernel.handle),
        quoted(&message_name(kernel)),
    );
}

/// A symbol's name as MLIR reads it after `@`.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", escaped(name))
}

/// Text inside of MLIR's quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let _ = write!(escaped, "\\{byte:02X}");
            }
            byte => escaped.push(char::from(byte)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(quoted("plain_1"), "\"plain_1\"");
        assert_eq!(quoted("a \"b\"\\\n"), "\"a \\22b\\22\\5C\\0A\"");
        assert_eq!(quoted("ä"), "\"\\C3\\A4\"");
    }
}
