//! An exported program as a module of MLIR's LLVM dialect, for those who go on in MLIR.

use std::collections::BTreeSet;

use melior::{
    Context,
    ir::{
        BlockLike, Module,
        attribute::{ArrayAttribute, StringAttribute},
        operation::{OperationLike, OperationRef},
    },
};

use super::{
    super::{embed, ir_text::IrText, support::symbols},
    Account, DeviceImage, ExportOptions, ExportedImage, Finish, Prepared, Program, prepare, stage,
};
use crate::{
    Target,
    bridge::{
        edit::{copy_of, into_operations, view},
        import::import_llvm,
        mlir::{capture_diagnostics, context_of, set_attribute},
    },
    compiler::{self, Compiler, symbol_name},
    error::{Cause, Error, Failure},
    report::Warning,
    stage::Stage,
};

/// An exported program in the LLVM dialect.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExportedModule<'c> {
    /// The host code with launch stubs and what registers its kernels. Its images are in `llvm.module_asm`, or in global
    /// constants where it registers itself.
    pub module: Module<'c>,
    /// What is in it.
    pub program: Program,
    /// The images, by module and then by target.
    pub images: Vec<ExportedImage>,
    /// How a file that is made of it is finished.
    pub finish: Finish,
    /// What was assumed on the way.
    pub notes: Vec<String>,
    /// Warnings of the compilation of the kernels.
    pub warnings: Vec<Warning>,
}

/// Exports a program as [`export`](super::export) does, and stops at MLIR's LLVM dialect: what `mlir-translate` makes of
/// it is what LLVM 22 writes, not made readable for an older clang. The form decides between offload entries and
/// registration by the program itself; IR forms are as an object is.
///
/// # Errors
///
/// As [`export`](super::export).
pub fn export_module<'c>(
    compiler: &Compiler,
    module: &Module<'c>,
    targets: &[Target],
    options: &ExportOptions,
) -> Result<ExportedModule<'c>, Failure> {
    let context = context_of(module.context());
    compiler::prepare(context);
    let Prepared {
        host,
        parts,
        images,
        account,
        layouts,
        loaded_by,
        form,
    } = prepare(compiler, module, targets, options)?;
    let result = copy_of(host.host()).map_err(|error| Error::new(Stage::Export, error))?;
    let root = result.as_operation();
    if let Some(layouts) = &layouts {
        let embedded: Vec<_> = images.iter().map(DeviceImage::embedded).collect();
        let assembly = embed::assembly(&embedded, layouts).map_err(stage)?;
        let lines: Vec<_> = assembly
            .lines()
            .map(|line| StringAttribute::new(context, line).into())
            .collect();
        set_attribute(root, "llvm.module_asm", ArrayAttribute::new(context, &lines).into());
    }
    add(context, &result, &parts, options)?;
    let mut serves = layouts.as_ref().map(super::LayoutSet::serves).unwrap_or_default();
    serves.retain(|release| loaded_by.contains(release));
    let Account {
        images,
        notes,
        warnings,
    } = account;
    Ok(ExportedModule {
        program: host.program().clone(),
        finish: Finish::new(host.program(), form, serves),
        module: result,
        images,
        notes,
        warnings,
    })
}

/// Adds what the parts define to the host code; what they declare is defined there.
fn add<'c>(context: &'c Context, host: &Module<'c>, parts: &IrText, options: &ExportOptions) -> Result<(), Error> {
    let text = parts.finish(&options.triple, "");
    let (imported, diagnostics) = capture_diagnostics(context, || import_llvm(context, &text));
    let imported = imported.map_err(|error| {
        let said = diagnostics.first().map(|first| first.message.clone());
        let problem = format!("what registers the kernels: {error} {}", said.unwrap_or_default());
        Error::new(Stage::Export, Cause::Internal(problem))
    })?;
    let known: BTreeSet<String> = symbols(host.as_operation()).into_keys().collect();
    let imported = into_operations(imported).map_err(|_| {
        let problem = "what registers the kernels uses values of its module".to_owned();
        Error::new(Stage::Export, Cause::Internal(problem))
    })?;
    for operation in imported {
        if !is_known(view(&operation), |name| known.contains(name)) {
            host.body().append_operation(operation);
        }
    }
    match capture_diagnostics(context, || host.as_operation().verify()) {
        (true, _) => Ok(()),
        (false, diagnostics) => {
            let reason = diagnostics.first().map_or("", |first| first.message.as_str());
            let problem = format!("the exported module is not valid: {reason}");
            Err(Error::new(Stage::Export, Cause::Internal(problem)))
        }
    }
}

fn is_known(operation: OperationRef<'_, '_>, known: impl Fn(&str) -> bool) -> bool {
    operation.has_attribute("sym_name") && known(&symbol_name(operation))
}
