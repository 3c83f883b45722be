//! The file: host code and what registers its kernels as one LLVM module, then as an object or as IR.

use super::{
    super::{
        host::HostProgram,
        ir_text::IrText,
        profile::{self, IrSyntax},
        release::FinishWith,
    },
    ExportError, ExportForm, ExportOptions,
};
use crate::{
    bridge::llvm::{DeviceContext, EmitKind, TargetMachine},
    error::Error,
    options::OptimizationLevel,
};

/// Writes the file in the form that was asked for. Objects are optimised here, IR on the other machine.
pub(super) fn write(
    host: &HostProgram<'_>,
    parts: &IrText,
    options: &ExportOptions,
    level: Option<OptimizationLevel>,
    finish_with: Option<&FinishWith>,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, Error> {
    let failed = |error| super::stage(ExportError::Llvm(error));
    let level = level.unwrap_or(OptimizationLevel::O2).number();
    let triple = options.triple.as_str();
    let machine = TargetMachine::new(triple, "", "", level, false).map_err(failed)?;
    let context = DeviceContext::new();
    let module = host.translate(&context).map_err(super::offload)?;
    let text = parts.finish(&options.triple, &machine.data_layout());
    let registered = context.parse(text.as_bytes(), "registration").map_err(failed)?;
    module.join(registered).map_err(failed)?;

    let syntax = match options.form {
        ExportForm::Object | ExportForm::SelfRegistering => {
            module
                .run_passes(&machine, &format!("default<O{level}>"))
                .map_err(failed)?;
            return module.emit(&machine, EmitKind::Object).map_err(failed);
        }
        ExportForm::Llvm => IrSyntax::Text,
        ExportForm::Bitcode => IrSyntax::Bitcode,
    };
    let Some(&oldest) = finish_with.and_then(|finish_with| finish_with.clangs().first()) else {
        return Err(super::stage(ExportError::NoFinishWith { form: options.form }));
    };
    let written = profile::write(&module, oldest, syntax).map_err(super::stage)?;
    notes.extend(written.notes);
    Ok(written.bytes)
}
