//! Real AMDGPU objects for the tests of this folder, made by LLVM's own tools.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Kernels with parameters, shared memory, scratch, spills and a required block shape.
pub const KERNELS: &str = r#"
@tile = internal addrspace(3) global [256 x float] poison, align 16

define amdgpu_kernel void @saxpy(ptr addrspace(1) %x, ptr addrspace(1) %y, float %a, i32 %n) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %work, label %exit
work:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px
  %m = fmul float %v, %a
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %m, ptr addrspace(1) %py
  %pt = getelementptr float, ptr addrspace(3) @tile, i32 %i
  store float %m, ptr addrspace(3) %pt
  br label %exit
exit:
  ret void
}

define amdgpu_kernel void @scratch(ptr addrspace(1) %x) !reqd_work_group_size !1 !work_group_size_hint !2 {
  %p = alloca [16 x i32], addrspace(5)
  %i = load volatile i32, ptr addrspace(1) %x
  %q = getelementptr i32, ptr addrspace(5) %p, i32 %i
  store volatile i32 %i, ptr addrspace(5) %q
  ret void
}

define amdgpu_kernel void @spill(ptr addrspace(1) %x) #1 {
  %a = load volatile <32 x i32>, ptr addrspace(1) %x
  %b = load volatile <32 x i32>, ptr addrspace(1) %x
  store volatile <32 x i32> %b, ptr addrspace(1) %x
  store volatile <32 x i32> %a, ptr addrspace(1) %x
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
attributes #1 = { "amdgpu-num-vgpr"="24" }
!1 = !{i32 64, i32 2, i32 1}
!2 = !{i32 32, i32 4, i32 1}
"#;

/// A kernel which calls a function that is not there, and one which calls two of them.
pub const UNDEFINED: &str = r#"
define amdgpu_kernel void @one(ptr addrspace(1) %x) {
  call void @missing_a()
  ret void
}
define amdgpu_kernel void @two(ptr addrspace(1) %x) {
  call void @missing_a()
  call void @missing_b()
  ret void
}
declare void @missing_a()
declare void @missing_b()
"#;

/// Definitions for [`UNDEFINED`].
pub const DEFINITIONS: &str = r#"
define void @missing_a() { ret void }
define void @missing_b() { ret void }
"#;

/// A program of LLVM 22: from `$GPULOWER_LLVM_BIN`, or else where the distribution's package puts it.
pub fn tool(name: &str) -> PathBuf {
    let directory =
        std::env::var_os("GPULOWER_LLVM_BIN").map_or_else(|| PathBuf::from("/usr/lib/llvm-22/bin"), PathBuf::from);
    let path = directory.join(name);
    assert!(
        path.exists(),
        "this test needs `{name}` of LLVM 22, and {} does not exist: install the packages llvm-22, clang-22 \
         and lld-22, or set GPULOWER_LLVM_BIN to the directory of the tools",
        path.display()
    );
    path
}

/// Runs a program of LLVM 22 with `input` on its standard input, and returns its standard output.
pub fn run(name: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(tool(name))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A program may end before it has read everything: its status says whether that was an error.
    let _ = feeder.join().unwrap();
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Compiles LLVM IR to a relocatable object for `chip` with code object version `version`.
pub fn object(ir: &str, chip: &str, features: &str, version: u32) -> Vec<u8> {
    let module = format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n{ir}\n!llvm.module.flags = !{{!0}}\n\
         !0 = !{{i32 1, !\"amdhsa_code_object_version\", i32 {version}00}}\n"
    );
    let (cpu, attributes) = (format!("-mcpu={chip}"), format!("-mattr={features}"));
    let arguments = [&cpu, &attributes, "-O2", "-filetype=obj", "-o", "-", "-"];
    run("llc", &arguments, module.as_bytes())
}

/// Links `objects` with a spawned `ld.lld`, as clang 22 calls it for `amdgcn-amd-amdhsa`.
pub fn spawned_lld(directory: &Path, objects: &[&[u8]]) -> Vec<u8> {
    let out = directory.join("out.hsaco");
    let mut command = Command::new(tool("ld.lld"));
    command.args(["--no-undefined", "-shared"]);
    for (index, bytes) in objects.iter().enumerate() {
        let path = directory.join(format!("{index}.o"));
        std::fs::write(&path, bytes).unwrap();
        command.arg(path);
    }
    let output = command.arg("-o").arg(&out).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read(out).unwrap()
}

/// One object made and linked by the tools.
pub fn hsaco(ir: &str, chip: &str, features: &str, version: u32) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    spawned_lld(directory.path(), &[&object(ir, chip, features, version)])
}

/// What `llvm-readelf` prints about `file`.
pub fn readelf(file: &[u8], arguments: &[&str]) -> String {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-"]).collect();
    String::from_utf8(run("llvm-readelf", &arguments, file)).unwrap()
}
