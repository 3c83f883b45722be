//! Which releases of clang register which kernels of a host file, and what a finished program registers.
//!
//! Nothing else says so: a link with the wrong layout succeeds, and the program finds no kernel. [`check()`] reads objects,
//! programs, archives and LLVM IR, of gpulower's making or not.
//!
//! | file | what is said |
//! |---|---|
//! | object, LLVM IR, archive of them | for each release of clang what a link with `--offload-link` would register |
//! | program or shared library | what it registers |
//! | object that registers its kernels itself | the images in it, and what it registers if it was made by `clang -r` |
//!
//! Reading LLVM IR takes LLVM: [`check_with`] is given a reader for it, as the crate `gpulower` has one.

mod archive;
mod chips;
mod contents;
mod elf;
mod entries;
mod finished;
mod images;
mod ir;
mod items;
mod member;
mod release;
mod report;
pub mod symbols;

pub use ir::{Constant, HostConstants, LlvmIrReader, Pointer};
pub use report::{FoundEntry, FoundImage, ImageSymbols, OfRelease, Registered, Report};

use self::member::Member;
use crate::{FileKind, ReadError, ReadProblem};

/// Says that a file cannot be checked, and if it is none of those that can, which can.
fn refused(error: ReadError) -> ReadError {
    match error.problem {
        ReadProblem::OtherFormat => ReadError::other_format(format!(
            "cannot be checked: {error}; name a host object, a program, an archive of objects, or host code as LLVM IR"
        )),
        _ => error.within("cannot be checked", None),
    }
}

/// Reads a host object, a program or shared library (64-bit ELF), or an archive of objects.
///
/// # Errors
///
/// [`ReadError`] if it is nothing of that, and for LLVM IR. What is wrong inside is in the report.
pub fn check(bytes: &[u8]) -> Result<Report, ReadError> {
    check_with(bytes, None)
}

/// The same, and LLVM IR as text or bitcode with what can read it.
///
/// # Errors
///
/// As those of [`check()`].
pub fn check_with(bytes: &[u8], reader: Option<&dyn LlvmIrReader>) -> Result<Report, ReadError> {
    if matches!(FileKind::of(bytes), FileKind::Archive | FileKind::ThinArchive) {
        return Ok(archive::check(bytes, reader));
    }
    let member = Member::read(bytes, reader)?;
    Ok(Report::of_members(member.kind, vec![(None, member)]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn llvm_ir_needs_llvm() {
        for bytes in [&b"define void @f()"[..], b"BC\xc0\xde"] {
            let error = super::check(bytes).expect_err("LLVM IR").to_string();
            assert!(
                error.starts_with("cannot be checked: it is LLVM IR, which this program was built without LLVM"),
                "{error}"
            );
        }
    }
}
