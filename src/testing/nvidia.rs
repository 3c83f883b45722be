//! What the tests of the NVIDIA serializers share: the toolkit, and small PTX modules.

use std::path::PathBuf;
use std::process::Command;

/// The CUDA toolkit the tests use. A missing one fails the test.
pub(crate) fn toolkit() -> PathBuf {
    let path = std::env::var_os("GPULOWER_CUDA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.toolkit/cuda")),
        PathBuf::from,
    );
    assert!(
        path.join("bin/ptxas").is_file(),
        "these tests need a CUDA toolkit at {} (or name one in GPULOWER_CUDA): run `cargo xtask test`, which \
         installs it",
        path.display()
    );
    path
}

/// A file of the toolkit.
pub(crate) fn part(name: &str) -> PathBuf {
    let path = toolkit().join(name);
    assert!(path.is_file(), "the toolkit lacks {}", path.display());
    path
}

/// Runs a tool of the toolkit and returns its standard output.
pub(crate) fn run(tool: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let path = part(&format!("bin/{tool}"));
    let output = Command::new(&path)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{} could not be run: {error}", path.display()));
    assert!(
        output.status.success(),
        "{tool} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One kernel that stores a constant.
pub(crate) fn store_kernel(version: &str, target: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .visible .entry store(.param .u64 p) {{\n\
         \x20 .reg .b64 %rd<3>;\n  .reg .b32 %r<2>;\n\
         \x20 ld.param.u64 %rd1, [p];\n  cvta.to.global.u64 %rd2, %rd1;\n\
         \x20 mov.u32 %r1, 7;\n  st.global.u32 [%rd2], %r1;\n  ret;\n}}\n"
    )
}

/// A module with kernels of every kind the readers tell apart: launch limits, shared memory, local memory,
/// spills under a register limit, parameters of several sizes, a call.
pub(crate) fn rich_module(version: &str, target: &str) -> String {
    let mut text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .const .align 4 .b32 table[64];\n\
         .visible .entry plain(.param .u64 p, .param .u32 n, .param .align 8 .b8 block[40])\n\
         .maxntid 128, 2, 1\n{{\n\
         \x20 .reg .b64 %rd<3>;\n  .reg .b32 %r<5>;\n\
         \x20 ld.param.u64 %rd1, [p];\n  ld.param.u32 %r1, [n];\n  ld.param.u32 %r2, [block+36];\n\
         \x20 add.s32 %r3, %r1, %r2;\n  st.global.u32 [%rd1], %r3;\n  ret;\n}}\n\
         .visible .entry shared_memory(.param .u64 p)\n.reqntid 64, 1, 1\n{{\n\
         \x20 .reg .b64 %rd<4>;\n  .reg .b32 %r<6>;\n\
         \x20 .shared .align 4 .b8 tile[2176];\n\
         \x20 mov.u32 %r1, %tid.x;\n  shl.b32 %r2, %r1, 2;\n  mov.u32 %r3, tile;\n  add.s32 %r4, %r3, %r2;\n\
         \x20 st.shared.u32 [%r4], %r1;\n  bar.sync 0;\n  ld.shared.u32 %r5, [%r4+4];\n\
         \x20 ld.param.u64 %rd1, [p];\n  mul.wide.u32 %rd2, %r1, 4;\n  add.s64 %rd3, %rd1, %rd2;\n\
         \x20 st.global.u32 [%rd3], %r5;\n  ret;\n}}\n\
         .visible .entry local_memory(.param .u64 p, .param .u32 i)\n{{\n\
         \x20 .local .align 4 .b8 frame[256];\n  .reg .b64 %rd<6>;\n  .reg .b32 %r<4>;\n\
         \x20 ld.param.u64 %rd1, [p];\n  ld.param.u32 %r1, [i];\n  mov.u64 %rd2, frame;\n\
         \x20 mul.wide.u32 %rd3, %r1, 4;\n  add.s64 %rd4, %rd2, %rd3;\n\
         \x20 st.local.u32 [%rd4], %r1;\n  ld.local.u32 %r2, [%rd2+16];\n\
         \x20 ld.const.u32 %r3, [table+8];\n  add.s32 %r2, %r2, %r3;\n\
         \x20 st.global.u32 [%rd1], %r2;\n  ret;\n}}\n"
    );
    // Sixty values alive at once, in a kernel that may use 24 registers.
    text.push_str(
        ".visible .entry spilling(.param .u64 p)\n.maxntid 256, 1, 1\n.maxnreg 24\n{\n  .reg .b64 %rd<2>;\n  .reg .b32 %r<130>;\n  \
         ld.param.u64 %rd1, [p];\n",
    );
    for index in 0..60 {
        text.push_str(&format!("  ld.volatile.global.u32 %r{index}, [%rd1+{}];\n", index * 4));
    }
    for index in (0..60).rev() {
        text.push_str(&format!("  st.volatile.global.u32 [%rd1+{}], %r{index};\n", index * 8));
    }
    text.push_str("  ret;\n}\n");
    text
}

/// A kernel that calls a function which calls itself.
pub(crate) fn recursive_module() -> String {
    ".version 7.8\n.target sm_80\n.address_size 64\n\
     .func (.param .b32 r) again(.param .b32 a);\n\
     .func (.param .b32 r) again(.param .b32 a) {\n\
     \x20 .reg .b32 %r<6>;\n  .reg .pred %p<2>;\n  .reg .b64 %rd<4>;\n  .local .align 4 .b8 frame[16];\n\
     \x20 ld.param.b32 %r1, [a];\n  setp.eq.s32 %p1, %r1, 0;\n  @%p1 bra done;\n\
     \x20 add.s32 %r2, %r1, -1;\n  mov.u64 %rd1, frame;\n  and.b32 %r4, %r1, 3;\n\
     \x20 mul.wide.u32 %rd2, %r4, 4;\n  add.s64 %rd3, %rd1, %rd2;\n  st.local.u32 [%rd3], %r1;\n\
     \x20 { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; call.uni (y), again, (x); \
     ld.param.b32 %r3, [y]; }\n\
     \x20 ld.local.u32 %r5, [frame+4];\n  add.s32 %r1, %r1, %r3;\n  add.s32 %r1, %r1, %r5;\n\
     done:\n  st.param.b32 [r], %r1;\n  ret;\n}\n\
     .visible .entry start(.param .u64 p, .param .u32 n) {\n\
     \x20 .reg .b32 %r<3>;\n  .reg .b64 %rd<2>;\n\
     \x20 ld.param.u32 %r1, [n];\n  ld.param.u64 %rd1, [p];\n\
     \x20 { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call.uni (y), again, (x); \
     ld.param.b32 %r2, [y]; }\n\
     \x20 st.global.u32 [%rd1], %r2;\n  ret;\n}\n"
        .to_owned()
}
