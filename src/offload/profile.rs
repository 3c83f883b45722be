//! placeholder
use super::release::ClangRelease;
use crate::bridge::llvm::DeviceModule;
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrSyntax {
    /// x
    Text,
    /// x
    Bitcode,
}
/// x
#[derive(Debug)]
pub struct Written {
    /// x
    pub bytes: Vec<u8>,
    /// x
    pub notes: Vec<String>,
}
/// x
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x")]
pub struct ProfileError;
/// x
pub fn write(module: &DeviceModule<'_>, _oldest: ClangRelease, syntax: IrSyntax) -> Result<Written, ProfileError> {
    Ok(Written {
        bytes: match syntax {
            IrSyntax::Text => module.to_text().into_bytes(),
            IrSyntax::Bitcode => module.to_bitcode(),
        },
        notes: vec![],
    })
}
