//! Passes written in C++ (`cpp/patterns.cpp`, `cpp/host.cpp`, ...) that pipelines call by name: `gpulower-expand-gpu`, `gpulower-expand-gpu-blocks`,
//! `gpulower-canonicalize`, `gpulower-round-doubles-to-odd`, `gpulower-func-to-llvm`, `gpulower-vector-to-llvm`, `gpulower-expand-host` and `gpulower-host-to-llvm`.

use std::{panic::catch_unwind, sync::OnceLock};

use super::contain::{Bytes, Uncontained};

/// What the values of an option are, if it does not take this one; otherwise nothing.
pub(crate) type Range = fn(option: &str, value: &str) -> &'static str;

static RANGE: OnceLock<Range> = OnceLock::new();

unsafe extern "C-unwind" {
    fn gpulowerSetOptionRange(range: extern "C" fn(Bytes, Bytes) -> Bytes);
    fn gpulowerRegisterPatternPasses();
    fn gpulowerRegisterCanonicalizePass();
    fn gpulowerRegisterHostPasses();
}

/// Registers the passes with MLIR, for this process. `range` is asked about the values of their options. Further calls do
/// nothing.
pub(crate) fn register_patterns(range: Range) {
    RANGE.get_or_init(|| {
        // SAFETY: called once; they add to MLIR's registry alone, and the function lives as long as the process.
        unsafe {
            gpulowerSetOptionRange(expected);
            gpulowerRegisterPatternPasses();
            gpulowerRegisterCanonicalizePass();
            gpulowerRegisterHostPasses();
        }
        range
    });
}

extern "C" fn expected(option: Bytes, value: Bytes) -> Bytes {
    let _uncontained = Uncontained::new();
    let text = catch_unwind(|| {
        // SAFETY: both live during the call.
        let (option, value) = unsafe { (option.to_text(), value.to_text()) };
        RANGE.get().map_or("", |range| range(&option, &value))
    });
    Bytes::new(text.unwrap_or("another value").as_bytes())
}
