//! Passes written in C++, under their names: `gpulower-expand-gpu`, `gpulower-expand-gpu-blocks` and
//! `gpulower-func-to-llvm`.

use std::sync::Once;

unsafe extern "C" {
    fn gpulowerRegisterPatternPasses();
}

/// Registers the passes with MLIR, for this process. Further calls do nothing.
pub fn register_patterns() {
    static ONCE: Once = Once::new();
    // SAFETY: called once; it adds to MLIR's registry alone.
    ONCE.call_once(|| unsafe { gpulowerRegisterPatternPasses() });
}
