//! Kernels for NVIDIA that need something of each kind, to be compiled apart and together.

/// The head of a module.
pub fn head(chip: &str) -> String {
    format!(".version 9.0\n.target {chip}\n.address_size 64\n")
}

/// Statements of a kernel that loads `%f1`, changes it and stores it.
pub const PLAIN: &str = "add.f32 %f1, %f1, %f1;";
/// A division: a slow path, which is a function of its own.
pub const DIVISION: &str = "div.rn.f32 %f1, %f1, %f2;";
/// Two such functions of other kinds.
pub const DOUBLE: &str =
    "cvt.f64.f32 %d1, %f1; div.rn.f64 %d2, %d1, %d1; sqrt.rn.f64 %d2, %d2; cvt.rn.f32.f64 %f1, %d2;";
/// Shared memory.
pub const SHARED: &str = ".shared .align 16 .b8 tile[260]; mov.u32 %r2, tile; st.shared.f32 [%r2+4], %f1; bar.sync 0; \
     ld.shared.f32 %f1, [%r2+8]; div.rn.f32 %f1, %f1, %f2;";
/// A stack frame.
pub const LOCAL: &str = ".local .align 16 .b8 frame[256]; mov.u64 %rd2, frame; and.b32 %r2, %r1, 31; \
     mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd2, %rd3; st.local.f32 [%rd3], %f1; ld.local.f32 %f1, [%rd2+16];";
/// A table of addresses in a constant bank of the kernel.
pub const BRANCHES: &str = "and.b32 %r2, %r1, 3; targets: .branchtargets A, B, C, D; brx.idx %r2, targets; \
     A: add.f32 %f1, %f1, %f1; bra E; B: mul.f32 %f1, %f1, %f1; bra E; C: sin.approx.f32 %f1, %f1; bra E; \
     D: cos.approx.f32 %f1, %f1; E:";
/// All of them.
pub const BODIES: [&str; 6] = [PLAIN, DIVISION, DOUBLE, SHARED, LOCAL, BRANCHES];

/// A kernel with such statements.
pub fn kernel(name: &str, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p)\n{{\n\
         .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .f64 %d<4>;\n\
         ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];\n\
         {body}\nst.global.f32 [%rd1], %f1; ret;\n}}\n"
    )
}

/// The source files of [`lines`].
pub const FILES: &str = ".file 1 \"a.mlir\"\n.file 2 \"directory/b.mlir\"\n";

/// Statements with lines of a source file.
pub fn lines(file: u32, line: u32, body: &str) -> String {
    let (next, last) = (line + 1, line + 200);
    format!("\n.loc {file} {line} 3\nadd.f32 %f2, %f2, %f1;\n.loc {file} {next} 0\n{body}\n.loc {file} {last} 7\n")
}
