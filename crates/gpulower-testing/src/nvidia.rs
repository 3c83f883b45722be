//! What the tests of the NVIDIA serializers share: the toolkit, and small PTX modules.

use std::path::PathBuf;
use std::process::Command;

/// The CUDA toolkit the tests use. A missing one fails the test.
pub fn toolkit() -> PathBuf {
    let path = std::env::var_os("GPULOWER_CUDA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.toolkit/cuda")),
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
pub fn part(name: &str) -> PathBuf {
    let path = toolkit().join(name);
    assert!(path.is_file(), "the toolkit lacks {}", path.display());
    path
}

/// Runs a tool of the toolkit and returns its standard output.
pub fn run(tool: &str, arguments: &[&std::ffi::OsStr]) -> String {
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
pub fn store_kernel(version: &str, target: &str) -> String {
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
pub fn rich_module(version: &str, target: &str) -> String {
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
pub fn recursive_module() -> String {
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

/// A module for linking: it defines, and needs, symbols of every kind.
pub const LINKED_KERNELS: &str = r#".version 7.8
.target sm_90
.address_size 64
.extern .func (.param .b32 r) scale(.param .b32 x);
.extern .func (.param .b32 r) in_table(.param .b32 x);
.extern .func (.param .b32 r) never_called(.param .b32 x);
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .global .align 4 .b32 counter;
.extern .global .align 4 .b32 never_read;
.extern .shared .align 4 .b8 dynamic[];
.visible .global .align 8 .u64 table[2] = { in_table, 7 };
.weak .global .align 4 .b32 weak_value = 5;
.common .global .align 4 .b32 common_value;
.global .align 4 .b32 private_value = 5;
.func (.param .b32 r) private_function(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.s32 %r1, %r1, 3;
  st.param.b32 [r], %r1;
  ret;
}
.visible .func (.param .b32 r) offered(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), scale, (a); ld.param.b32 %r2, [b]; }
  st.param.b32 [r], %r2;
  ret;
}
.entry hidden_kernel(.param .u64 p) { ret; }
.visible .entry user(.param .u64 p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), scale, (a); ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), private_function, (a); ld.param.b32 %r2, [b]; }
  { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1;
    call.uni (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }
  ld.global.u32 %r3, [counter];
  add.s32 %r2, %r2, %r3;
  ld.global.u32 %r3, [private_value];
  add.s32 %r2, %r2, %r3;
  ld.global.u32 %r3, [weak_value];
  add.s32 %r2, %r2, %r3;
  ld.global.u32 %r3, [common_value];
  add.s32 %r2, %r2, %r3;
  st.shared.u32 [dynamic], %r2;
  st.global.u32 [%rd1], %r2;
  ret;
}
"#;

/// Assembles PTX to a relocatable cubin.
pub fn relocatable_cubin(ptx: &str, chip: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("k.ptx"), directory.path().join("k.cubin"));
    std::fs::write(&input, ptx).unwrap();
    let arch = format!("-arch={chip}");
    run(
        "ptxas",
        &[
            "-c".as_ref(),
            arch.as_ref(),
            input.as_ref(),
            "-o".as_ref(),
            output.as_ref(),
        ],
    );
    std::fs::read(output).unwrap()
}

/// Compiles CUDA C++ with `nvcc`: with `-dc` to a host object that holds relocatable device code, or with `-dc -ltoir` to
/// LTO-IR alone.
pub fn nvcc(source: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("k.cu"), directory.path().join("k.out"));
    std::fs::write(&input, source).unwrap();
    let mut arguments: Vec<&std::ffi::OsStr> = options.iter().map(AsRef::as_ref).collect();
    arguments.extend([input.as_os_str(), "-o".as_ref(), output.as_os_str()]);
    run("nvcc", &arguments);
    std::fs::read(output).unwrap()
}

/// What `ptxas` made of a module.
#[derive(Debug)]
pub struct Assembled {
    /// The cubin.
    pub cubin: Vec<u8>,
    /// What it printed.
    pub log: String,
}

/// Assembles PTX with `ptxas`.
pub fn assemble(ptx: &str, options: &[&str]) -> Assembled {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("k.ptx"), directory.path().join("k.cubin"));
    std::fs::write(&input, ptx).unwrap();
    let result = Command::new(part("bin/ptxas"))
        .args(options)
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&result.stderr).into_owned() + &String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "ptxas {options:?}: {log}");
    Assembled {
        cubin: std::fs::read(output).unwrap(),
        log,
    }
}
