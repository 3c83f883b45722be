//! `compile --device-link` and `--link-object`: modules joined into one image, with objects of the user's.

use super::support::{Workshop, example};

#[test]
fn modules_are_joined_before_they_are_optimised() {
    let work = Workshop::new();
    let joined = example("device_link/joined.mlir");
    let ptx = work
        .run(&[
            "compile",
            &joined,
            "--device-link",
            "--target",
            "sm_90",
            "--emit",
            "ptx",
            "-o",
            "-",
        ])
        .quiet()
        .output();
    assert!(ptx.contains(".entry apply("), "{ptx}");
    assert!(
        !ptx.contains("call"),
        "the function of the other module is inlined:\n{ptx}"
    );
    // The host may look the shared variable up.
    assert_eq!(ptx.matches("table[16]").count(), 1, "{ptx}");
    work.run(&[
        "compile",
        &joined,
        "--device-link",
        "--target",
        "sm_90,gfx942",
        "-o",
        "out/",
    ])
    .quiet();
    assert_eq!(
        work.files("out"),
        ["kernels+functions.gfx942.hsaco", "kernels+functions.sm_90.cubin"]
    );
    work.run(&["compile", &joined, "--target", "sm_90", "-o", "out/"])
        .failed(1)
        .says(&[
            "2 unresolved symbols",
            "scale (needed by kernel apply)",
            "table (needed by kernel apply)",
        ]);
}

#[test]
fn what_two_modules_define_is_refused_by_name() {
    let work = Workshop::new();
    work.write(
        "twice.mlir",
        "gpu.module @one {
  func.func @f(%x: f32) -> f32 { return %x : f32 }
  gpu.func @a() kernel { gpu.return }
}
gpu.module @two {
  func.func @f(%x: f32) -> f32 { return %x : f32 }
  gpu.func @b() kernel { gpu.return }
}",
    );
    work.run(&[
        "compile",
        "twice.mlir",
        "--device-link",
        "--target",
        "sm_90",
        "-o",
        "k.cubin",
    ])
    .failed(1)
    .says(&["function f in module one at twice.mlir:2:3 and in module two at twice.mlir:6:3"]);
    assert_eq!(work.files(""), ["twice.mlir"]);
}

const USES_SCALE: &str = "gpu.module @kernels {
  func.func private @scale(f32) -> f32
  gpu.func @apply(%data: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %value = memref.load %data[%i] : memref<?xf32>
    %scaled = func.call @scale(%value) : (f32) -> f32
    memref.store %scaled, %data[%i] : memref<?xf32>
    gpu.return
  }
}";

const SCALE_PTX: &str = ".version 7.8
.target sm_90
.address_size 64
.visible .func (.param .b32 result) scale(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  mul.rn.f32 %r2, %r1, 0f40400000;
  st.param.b32 [result], %r2;
  ret;
}
";

#[test]
fn objects_are_linked_into_the_image() {
    let work = Workshop::new();
    work.write("k.mlir", USES_SCALE);
    work.write("scale.ptx", SCALE_PTX);
    let report = work
        .run(&[
            "compile",
            "k.mlir",
            "--link-object",
            "scale.ptx",
            "--target",
            "sm_90",
            "-o",
            "k.cubin",
            "--report=json",
        ])
        .quiet()
        .json();
    let image = &report["artifacts"][0]["images"][0];
    assert_eq!(image["kernels"][0]["name"], "apply");
    assert!(
        image["tool"].as_str().is_some_and(|tool| tool.starts_with("nvJitLink")),
        "{image}"
    );
    let stages = report["artifacts"][0]["stages"].as_array().expect("stages").iter();
    let stages: Vec<&str> = stages.filter_map(|stage| stage["stage"].as_str()).collect();
    assert_eq!(stages.last(), Some(&"device-link"), "{stages:?}");
    // The kernel calls what came from the PTX.
    let sass = std::process::Command::new(super::support::cuda().join("bin/cuobjdump"))
        .arg("-sass")
        .arg(work.path("k.cubin"))
        .output()
        .expect("cuobjdump runs");
    let sass = String::from_utf8_lossy(&sass.stdout).into_owned();
    assert!(sass.contains("Function : apply") && sass.contains("FMUL"), "{sass}");
    // In a fat binary there is no PTX then: it could not hold the objects.
    work.run(&[
        "compile",
        "k.mlir",
        "--link-object",
        "scale.ptx",
        "--target",
        "sm_90",
        "--emit",
        "fatbin",
        "-o",
        "k.fatbin",
    ])
    .quiet();
    let text = work.run(&["inspect", "k.fatbin"]).quiet().output();
    assert!(text.contains("cubin") && !text.contains("ptx "), "{text}");
    let plan = work
        .run(&[
            "compile",
            "k.mlir",
            "--link-object",
            "scale.ptx",
            "--target",
            "sm_90",
            "-o",
            "x",
            "--print-phases",
        ])
        .quiet()
        .output();
    assert!(plan.contains("device-link, {5}, \"scale.ptx\", cubin"), "{plan}");
}

#[test]
fn link_takes_ir_too() {
    let work = Workshop::new();
    work.write("k.mlir", USES_SCALE);
    work.write(
        "scale.ll",
        "define float @scale(float %x) { %y = fmul float %x, 3.0 ret float %y }\n",
    );
    work.write("scale.ptx", SCALE_PTX);
    for (function, tool) in [("scale.ll", "ptx"), ("scale.ptx", "nvJitLink")] {
        let run = work.run(&["link", "k.mlir", function, "--target", "sm_90", "-o", "k.cubin", "-v"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(
            run.stderr.contains("apply") && run.stderr.contains(tool),
            "{}",
            run.stderr
        );
        let text = work.run(&["inspect", "k.cubin"]).quiet().output();
        assert!(text.contains("apply"), "{text}");
    }
    work.run(&["link", "k.mlir", "scale.ll", "--target", "gfx942", "-o", "k.hsaco"])
        .quiet();
    work.run(&["link", "k.mlir", "--target", "sm_90", "-o", "out"])
        .failed(1)
        .says(&["scale (needed by kernel apply)"]);
}

/// The user's object holds the kernel, and the module what it calls, with an instruction that needs a newer PTX ISA.
#[test]
fn the_kernel_may_be_the_objects() {
    let work = Workshop::new();
    work.write(
        "f.mlir",
        "gpu.module @functions {
  func.func @scale(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }
}",
    );
    work.write(
        "kernel.ptx",
        ".version 7.8\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) scale(.param .b32 x);\n\
         .visible .entry apply(.param .u64 p) {\n .reg .b32 %r<3>; .reg .b64 %rd<2>;\n ld.param.u64 %rd1, [p];\n\
         ld.global.u32 %r1, [%rd1];\n { .param .b32 x; .param .b32 r; st.param.b32 [x], %r1;\n\
         call.uni (r), scale, (x); ld.param.b32 %r2, [r]; }\n st.global.u32 [%rd1], %r2;\n ret;\n}\n",
    );
    work.run(&[
        "compile",
        "f.mlir",
        "--link-object",
        "kernel.ptx",
        "--target",
        "sm_90",
        "-o",
        "k.cubin",
    ])
    .quiet();
    let text = work.run(&["inspect", "k.cubin"]).quiet().output();
    assert!(text.contains("apply"), "{text}");
}

#[test]
fn amd_objects_are_linked_too() {
    let work = Workshop::new();
    work.write("k.mlir", USES_SCALE);
    work.write(
        "scale.ll",
        "target triple = \"amdgcn-amd-amdhsa\"\ndefine float @scale(float %x) { %y = fmul float %x, 3.0 ret float %y }\n",
    );
    let status = std::process::Command::new("/usr/lib/llvm-22/bin/llc")
        .args([
            "-mcpu=gfx942",
            "--amdhsa-code-object-version=5",
            "-filetype=obj",
            "scale.ll",
            "-o",
            "scale.o",
        ])
        .current_dir(work.path(""))
        .status()
        .expect("this test needs llc 22: cargo xtask setup installs it");
    assert!(status.success());
    work.run(&[
        "compile",
        "k.mlir",
        "--link-object",
        "scale.o",
        "--target",
        "gfx942",
        "-o",
        "k.hsaco",
    ])
    .quiet();
    let text = work.run(&["inspect", "k.hsaco"]).quiet().output();
    assert!(text.contains("apply"), "{text}");
}

#[test]
fn what_cannot_be_linked_is_refused() {
    let work = Workshop::new();
    work.write("k.mlir", USES_SCALE);
    work.write("scale.ptx", SCALE_PTX);
    work.write("other.ptx", SCALE_PTX.replace("scale", "other"));
    work.write("text.txt", "hello");
    for (arguments, messages) in [
        (
            &["--link-object", "other.ptx"][..],
            &["scale (needed by kernel apply)"][..],
        ),
        (
            &["--link-object", "scale.ptx", "--emit", "ptx"],
            &["'device-link'", "linked into machine code"],
        ),
        (
            &["--link-object", "scale.ptx", "--emit", "fatbin", "--include-ptx=all"],
            &["'device-link'", "linked into machine code"],
        ),
        (
            &["--link-object", "scale.ptx", "--ptx-compiler=ptxas"],
            &["'ptx-compiler'", "nvJitLink compiles the PTX"],
        ),
        (
            &["--link-object", "scale.ptx", "--time-limit=5"],
            &["'time-limit'", "can be interrupted"],
        ),
        (&["--link-object", "missing.ptx"], &["missing.ptx"]),
        (&["--link-object", "text.txt"], &["text.txt"]),
        (
            &["--link-object", "scale.ptx", "--link-object", "scale.ptx"],
            &["scale"],
        ),
    ] {
        let mut command = vec!["compile", "k.mlir", "--target", "sm_90", "-o", "out"];
        command.extend(arguments);
        work.run(&command).failed(1).says(messages);
        assert!(!work.path("out").exists());
    }
}
