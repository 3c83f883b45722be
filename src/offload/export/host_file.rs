//! The file: host code and what registers its kernels as one LLVM module, then as an object or as IR.

use super::{
    super::{
        host::HostProgram,
        ir_text::IrText,
        profile::{self, IrSyntax},
    },
    ExportForm, stage,
};
use crate::{
    bridge::{
        llvm::{DeviceContext, EmitKind},
        target_machine::TargetMachine,
    },
    error::Error,
    options::OptimizationLevel,
};

/// Writes the file in the form that was asked for. Objects are optimised here, IR on the other machine.
pub(super) fn write(
    host: &HostProgram<'_>,
    parts: &IrText,
    form: &ExportForm,
    level: Option<OptimizationLevel>,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, Error> {
    let level = level.unwrap_or(OptimizationLevel::O2).number();
    let triple = &host.program().triple;
    let machine = TargetMachine::new(triple.as_str(), "", "", level, false).map_err(stage)?;
    let context = DeviceContext::new();
    let module = host.translate(&context).map_err(stage)?;
    let text = parts.finish(triple, &machine.data_layout());
    let registered = context.parse(text.as_bytes(), "registration").map_err(stage)?;
    module.join(registered).map_err(stage)?;

    let (syntax, finish_with) = match form {
        ExportForm::Object(_) | ExportForm::SelfRegistering => {
            module
                .run_passes(&machine, &format!("default<O{level}>"))
                .map_err(stage)?;
            return module.emit(&machine, EmitKind::Object).map_err(stage);
        }
        ExportForm::Llvm(finish_with) => (IrSyntax::Text, finish_with),
        ExportForm::Bitcode(finish_with) => (IrSyntax::Bitcode, finish_with),
    };
    let written = profile::write(&module, finish_with.oldest(), syntax).map_err(stage)?;
    notes.extend(written.notes);
    Ok(written.bytes)
}
