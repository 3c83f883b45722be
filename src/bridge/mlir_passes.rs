//! Passes written in C++ (`cpp/patterns.cpp`, `cpp/host.cpp`, ...) that pipelines call by name: `gpulower-expand-gpu`, `gpulower-expand-gpu-blocks`,
//! `gpulower-interleave-loops`, `gpulower-func-to-llvm`, `gpulower-expand-host` and `gpulower-host-to-llvm`.

use std::sync::Once;

unsafe extern "C-unwind" {
    fn gpulowerRegisterPatternPasses();
    fn gpulowerRegisterInterleavePass();
    fn gpulowerRegisterHostPasses();
}

/// Registers the passes with MLIR, for this process. Further calls do nothing.
pub(crate) fn register_patterns() {
    static ONCE: Once = Once::new();
    // SAFETY: called once; they add to MLIR's registry alone.
    ONCE.call_once(|| unsafe {
        gpulowerRegisterPatternPasses();
        gpulowerRegisterInterleavePass();
        gpulowerRegisterHostPasses();
    });
}
