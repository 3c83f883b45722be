//! LLVM IR as MLIR's LLVM dialect.

use melior::{Context, ir::Module};
use mlir_sys::{MlirContext, MlirModule};

use super::contain::{Bytes, LlvmError, Outcome};

unsafe extern "C-unwind" {
    fn gpulowerImportLlvm(context: MlirContext, text: Bytes, result: *mut MlirModule) -> Outcome;
}

/// Textual LLVM IR as a module of the LLVM dialect. The context has to have that dialect and DLTI loaded. Metadata that
/// the dialect cannot express is left out.
pub(crate) fn import_llvm<'c>(context: &'c Context, text: &str) -> Result<Module<'c>, LlvmError> {
    let mut raw = MlirModule {
        ptr: std::ptr::null_mut(),
    };
    // SAFETY: the context is alive, the text is read within the call, and success means a module that the caller owns.
    unsafe {
        gpulowerImportLlvm(context.to_raw(), Bytes::new(text.as_bytes()), &mut raw).into_result()?;
        Ok(Module::from_raw(raw))
    }
}
