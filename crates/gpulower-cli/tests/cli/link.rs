//! `gpulower link`.

use std::{path::PathBuf, process::Command};

use super::support::{Workshop, cuda, example};

fn pair() -> [String; 2] {
    ["kernels.ptx", "functions.ptx"].map(|name| example(&format!("device_link/{name}")))
}

/// Assembles PTX to a relocatable cubin in the workshop.
fn relocatable(work: &Workshop, ptx: &str, chip: &str, name: &str) {
    let status = Command::new(cuda().join("bin/ptxas"))
        .args(["-c", "-arch", chip, ptx, "-o"])
        .arg(work.path(name))
        .status()
        .expect("ptxas runs");
    assert!(status.success());
}

/// An AMDGPU object in the workshop.
fn object(work: &Workshop, ir: &str, chip: &str, features: &str, name: &str) {
    let directory = std::env::var_os("GPULOWER_LLVM_BIN").map_or_else(|| "/usr/lib/llvm-22/bin".into(), PathBuf::from);
    work.write("input.ll", format!("target triple = \"amdgcn-amd-amdhsa\"\n{ir}"));
    let status = Command::new(directory.join("llc"))
        .args([
            &format!("-mcpu={chip}"),
            &format!("-mattr={features}"),
            "-filetype=obj",
            "-o",
        ])
        .args([work.path(name), work.path("input.ll")])
        .status()
        .expect("llc of LLVM 22 runs: install the package llvm-22, or set GPULOWER_LLVM_BIN");
    assert!(status.success());
}

const KERNEL: &str = "declare i32 @scale(i32)\n\
    define amdgpu_kernel void @apply(ptr addrspace(1) %p) {\n  %x = load i32, ptr addrspace(1) %p\n\
      %y = call i32 @scale(i32 %x)\n  store i32 %y, ptr addrspace(1) %p\n  ret void\n}\n";
const FUNCTION: &str = "define i32 @scale(i32 %x) { %y = mul i32 %x, 3 ret i32 %y }\n";

#[test]
fn ptx_and_cubins_become_one_cubin() {
    let work = Workshop::new();
    let [kernels, functions] = pair();
    work.run(&["link", &kernels, &functions, "-t", "sm_90", "-o", "linked.cubin"])
        .quiet();
    relocatable(&work, &functions, "sm_90", "functions.cubin");
    let run = work.run(&["link", &kernels, "functions.cubin", "-t", "sm_90", "-o", "-", "-v"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let run = run.says(&["nvJitLink 1", "linked ", "functions.cubin", "set_offset", "registers"]);
    assert!(run.stdout.starts_with(b"\x7fELF"));
    let report = work.run(&["inspect", "linked.cubin"]).quiet().output();
    assert!(report.contains("apply") && report.contains("set_offset"), "{report}");
    assert_eq!(work.files(""), ["functions.cubin", "linked.cubin"]);
}

#[test]
fn what_is_missing_or_twice_there_is_named() {
    let work = Workshop::new();
    let [kernels, functions] = pair();
    let link = |files: &[&str]| {
        let mut arguments = vec!["link"];
        arguments.extend(files);
        arguments.extend(["-t", "sm_90", "-o", "linked.cubin"]);
        work.run(&arguments).failed(1)
    };
    link(&[&kernels]).says(&[
        "error: link: 2 unresolved symbols:",
        &format!("  scale (needed by apply of {kernels})"),
        "Give the file that defines them.",
    ]);
    work.write("copy.ptx", std::fs::read(&functions).expect("the example"));
    link(&[&kernels, &functions, "copy.ptx"]).says(&[
        "3 symbols are defined more than once:",
        &format!("  kernel set_offset in {functions} and copy.ptx"),
    ]);
    work.write("notes.txt", "hello");
    link(&["notes.txt"]).says(&["error: link: notes.txt cannot be linked: it starts with [68 65 6c 6c]"]);
    link(&["nothing.ptx"]).says(&["cannot read nothing.ptx: No such file"]);
    assert!(!work.path("linked.cubin").exists());
}

#[test]
fn linked_cubins_are_refused_before_their_kernels_are_lost() {
    let work = Workshop::new();
    let [kernels, functions] = pair();
    work.run(&["link", &kernels, &functions, "-t", "sm_90", "-o", "linked.cubin"])
        .quiet();
    work.run(&["link", "linked.cubin", "-t", "sm_90", "-o", "again.cubin"])
        .failed(1)
        .says(&[
            "linked.cubin cannot be linked: the cubin is linked already",
            "`ptxas -c`",
        ]);
}

#[test]
fn amd_objects_become_one_hsaco() {
    let work = Workshop::new();
    object(&work, KERNEL, "gfx90a", "+xnack", "kernel.o");
    object(&work, FUNCTION, "gfx90a", "", "function.o");
    work.run(&["link", "kernel.o", "function.o", "-t", "gfx90a:xnack+", "-o", "k.hsaco"])
        .quiet();
    assert!(work.read("k.hsaco").starts_with(b"\x7fELF"));
    object(&work, FUNCTION, "gfx90a", "-xnack", "off.o");
    work.run(&["link", "kernel.o", "off.o", "-t", "gfx90a:xnack+", "-o", "k.hsaco"])
        .failed(1)
        .says(&["kernel.o is for gfx90a:xnack+ and off.o is for gfx90a:xnack-: no device runs both"]);
    work.run(&[
        "link",
        "kernel.o",
        "-t",
        "gfx90a:xnack+",
        "-o",
        "k.hsaco",
        "--max-registers",
        "32",
    ])
    .failed(1)
    .says(&["have no effect on AMDGPU objects"]);
}

#[test]
fn the_command_line_is_checked() {
    let work = Workshop::new();
    let [kernels, _] = pair();
    work.write("a.ptx", std::fs::read(&kernels).expect("the example"));
    work.run(&["link", "a.ptx", "-t", "sm_90", "-o", "a.ptx"])
        .failed(2)
        .says(&["a.ptx is an input; name another file with -o"]);
    work.run(&["link", "a.ptx", "-t", "sm_90"])
        .failed(2)
        .says(&["--output"]);
    work.run(&["link", "-t", "sm_90", "-o", "x"])
        .failed(2)
        .says(&["<FILE>"]);
    work.run(&["link", "a.ptx", "-t", "sm_9", "-o", "x"])
        .failed(1)
        .says(&["plan: "]);
    work.run(&["link", "a.ptx", "-t", "compute_90", "-o", "x"])
        .failed(1)
        .says(&["compute_90 is a virtual architecture", "such as sm_90"]);
    // A toolkit without nvJitLink.
    let [kernels, functions] = pair();
    work.run(&[
        "link",
        &kernels,
        &functions,
        "-t",
        "sm_90",
        "-o",
        "x",
        "--cuda",
        &example(""),
    ])
    .failed(1)
    .says(&["needs nvJitLink, which cannot be used", "nvidia-nvjitlink"]);
}
