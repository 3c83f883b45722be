//! What other releases of MLIR and LLVM write, and this one reads in another way or not at all: small rules on text, and in
//! `cpp/other_releases.cpp` on operations. docs/inputs.md is the table that is measured with them.

pub(crate) mod llvm_text;
pub(crate) mod mlir_text;
