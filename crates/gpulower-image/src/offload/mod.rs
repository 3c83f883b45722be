//! What releases of clang make of a host object with device code: layouts, image forms, and the check of a file that was made.

pub mod check;
pub mod clang_version;
pub mod images;
pub mod layout;
pub mod openmp;
pub mod release;
pub mod runtime;

pub use runtime::Runtime;
