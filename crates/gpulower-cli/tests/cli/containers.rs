//! Several targets in one artifact: what `--emit fatbin|bundle|offload` makes, and what others' tools see in it.

use std::{ffi::OsStr, path::Path, process::Command};

use super::support::{Workshop, cuda, example};

/// What a program prints; it has to succeed.
fn output_of(program: impl AsRef<OsStr>, arguments: &[&OsStr]) -> String {
    let shown = program.as_ref().display().to_string();
    let output = Command::new(program.as_ref())
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("this test needs {shown}: {error}; `cargo xtask setup` installs it"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{shown} {arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The images of a fat binary as cuobjdump names them: `ELF sm_80`, `PTX sm_80`.
fn images(fatbin: &Path) -> Vec<String> {
    let cuobjdump = cuda().join("bin/cuobjdump");
    let list = |flag: &str, kind: &str, extension: &str| -> Vec<String> {
        output_of(&cuobjdump, &[flag.as_ref(), fatbin.as_ref()])
            .lines()
            // "ELF file    1: k.1.sm_80.cubin"
            .filter_map(|line| line.strip_suffix(extension)?.rsplit('.').next().map(str::to_owned))
            .map(|arch| format!("{kind} {arch}"))
            .collect()
    };
    let mut images = list("-lelf", "ELF", ".cubin");
    images.extend(list("-lptx", "PTX", ".ptx"));
    images
}

#[test]
fn all_targets_of_a_module_become_one_fat_binary() {
    let work = Workshop::new();
    for (arguments, expected) in [
        (
            &["--target", "sm_80,sm_90"][..],
            &["ELF sm_80", "ELF sm_90", "PTX sm_80"][..],
        ),
        (
            &["--target", "sm_90,sm_80", "--include-ptx=newest"],
            &["ELF sm_90", "ELF sm_80", "PTX sm_90"],
        ),
        (
            &["--target", "sm_80,sm_90", "--include-ptx=none"],
            &["ELF sm_80", "ELF sm_90"],
        ),
        (
            &["--target", "sm_80,sm_90a", "--include-ptx=all"],
            &["ELF sm_80", "ELF sm_90a", "PTX sm_80", "PTX sm_90a"],
        ),
        (
            &["--target", "sm_90", "--include-ptx=sm_75"],
            &["ELF sm_90", "PTX sm_75"],
        ),
        (&["--target", "sm_90a"], &["ELF sm_90a"]),
        (&["--target", "compute_80"], &["PTX sm_80"]),
        (
            &["--target", "sm_80,sm_90", "--compress=lz4"],
            &["ELF sm_80", "ELF sm_90", "PTX sm_80"],
        ),
        (
            &["--target", "sm_80,sm_90", "--compress=zstd"],
            &["ELF sm_80", "ELF sm_90", "PTX sm_80"],
        ),
        (
            &["-gencode", "arch=compute_80,code=[sm_80,sm_86,compute_80]"],
            &["ELF sm_80", "ELF sm_86", "PTX sm_80"],
        ),
        (&["-arch=sm_90"], &["ELF sm_90", "PTX sm_90"]),
        (&["-arch=sm_90a"], &["ELF sm_90a", "PTX sm_90", "PTX sm_90a"]),
        (&["-arch=compute_90", "-code=sm_90"], &["ELF sm_90"]),
    ] {
        let mut command = vec!["compile", "softmax.mlir", "--emit", "fatbin", "-o", "k.fatbin"];
        work.write(
            "softmax.mlir",
            std::fs::read(example("softmax.mlir")).expect("the example"),
        );
        command.extend(arguments);
        work.run(&command).quiet();
        assert_eq!(images(&work.path("k.fatbin")), expected, "{arguments:?}");
    }
}

/// Code for the virtual architecture is made once, and compiled for every chip in the list.
#[test]
fn one_generation_serves_several_chips() {
    let work = Workshop::new();
    let report = work
        .run(&[
            "compile",
            &example("saxpy.mlir"),
            "-gencode",
            "arch=compute_80,code=[sm_80,sm_86]",
            "--emit",
            "cubin",
            "-o",
            "out/",
            "--report=json",
        ])
        .quiet()
        .json();
    assert_eq!(work.files("out"), ["saxpy.sm_80.cubin", "saxpy.sm_86.cubin"]);
    let stages = |artifact: usize| {
        report["artifacts"][artifact]["stages"]
            .as_array()
            .expect("stages")
            .len()
    };
    assert!(stages(0) > 4, "{report}");
    assert_eq!(stages(1), 0, "what was done once is reported once: {report}");
}

#[test]
fn several_amd_targets_become_a_bundle() {
    let work = Workshop::new();
    let bundler = "clang-offload-bundler-22";
    let list = |file: &str| -> Vec<String> {
        let input = format!("--input={}", work.path(file).display());
        output_of(bundler, &["--list".as_ref(), "--type=o".as_ref(), input.as_ref()])
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let targets = "gfx90a:xnack-,gfx90a:xnack+,gfx942";
    let expected = [
        "host-x86_64-unknown-linux-gnu-",
        "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx942",
    ];
    for arguments in [
        &["--emit", "bundle"][..],
        &["--emit", "fatbin"],
        &["--emit", "bundle", "--compress=zstd"],
    ] {
        let softmax = example("softmax.mlir");
        let mut command = vec!["compile", &softmax, "--target", targets, "-o", "k.hipfb"];
        command.extend(arguments);
        work.run(&command).quiet();
        let mut ids = list("k.hipfb");
        ids.sort();
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(ids, expected, "{arguments:?}");
    }
    // What is inside is what is made without a bundle.
    work.run(&[
        "compile",
        &example("softmax.mlir"),
        "--target",
        "gfx942",
        "-o",
        "k.hsaco",
    ])
    .quiet();
    let path = |name: &str| work.path(name).display().to_string();
    output_of(
        bundler,
        &[
            "--unbundle".as_ref(),
            "--type=o".as_ref(),
            format!("--input={}", path("k.hipfb")).as_ref(),
            format!("--output={}", path("again.hsaco")).as_ref(),
            "--targets=hipv4-amdgcn-amd-amdhsa--gfx942".as_ref(),
        ],
    );
    assert_eq!(work.read("again.hsaco"), work.read("k.hsaco"));
}

#[test]
fn offload_binaries_hold_both_vendors() {
    let work = Workshop::new();
    work.run(&[
        "compile",
        &example("softmax.mlir"),
        "--target",
        "sm_90,gfx942",
        "--emit",
        "offload",
        "--include-ptx=none",
        "-o",
        "k.offload",
    ])
    .quiet();
    work.run(&[
        "compile",
        &example("softmax.mlir"),
        "--target",
        "sm_90,gfx942",
        "-o",
        "plain/",
    ])
    .quiet();
    for (arch, kind, triple, plain) in [
        ("sm_90", "cuda", "nvptx64-nvidia-cuda", "plain/softmax.sm_90.cubin"),
        ("gfx942", "hip", "amdgcn-amd-amdhsa", "plain/softmax.gfx942.hsaco"),
    ] {
        let out = work.path("out.bin");
        let image = format!("--image=file={},arch={arch},kind={kind},triple={triple}", out.display());
        output_of(
            "llvm-offload-binary-22",
            &[work.path("k.offload").as_ref(), image.as_ref()],
        );
        assert_eq!(work.read("out.bin"), work.read(plain), "{arch}");
    }
}

#[test]
fn both_vendors_in_fat_binaries_are_two_files() {
    let work = Workshop::new();
    let softmax = example("softmax.mlir");
    work.run(&[
        "compile",
        &softmax,
        "--target",
        "sm_80,sm_90,gfx942",
        "--emit",
        "fatbin",
        "-o",
        "out/",
    ])
    .quiet();
    assert_eq!(work.files("out"), ["softmax.fatbin", "softmax.gfx942.hsaco"]);
    work.run(&[
        "compile",
        &softmax,
        "--target",
        "sm_80,gfx942",
        "--emit",
        "fatbin",
        "-o",
        "k.fatbin",
    ])
    .failed(2)
    .says(&["2 artifacts do not fit into k.fatbin"]);
}

#[test]
fn what_cannot_be_in_one_container_is_refused() {
    let work = Workshop::new();
    let softmax = example("softmax.mlir");
    for (arguments, message) in [
        (
            &["--target", "sm_90", "--include-ptx=all"][..],
            "option 'include-ptx' cannot be honoured for binary",
        ),
        (
            &["--target", "sm_90", "--compress=zstd"],
            "option 'compress' cannot be honoured for binary",
        ),
        (&["--target", "gfx90a,gfx90a:xnack+", "--emit", "bundle"], "gfx90a"),
        (
            &["--target", "compute_90", "--emit", "fatbin", "--include-ptx=none"],
            "compute_90 is PTX alone",
        ),
        (
            &["--target", "sm_90a", "--emit", "fatbin", "--include-ptx=lowest"],
            "finds no portable target",
        ),
        (
            &["--target", "compute_90", "--emit", "bundle"],
            "an offload bundle is HIP's",
        ),
        (
            &["--target", "gfx942", "--emit", "bundle", "--compress=lz4"],
            "is compressed with zstd",
        ),
        (
            &["--target", "gfx942", "--emit", "offload", "--compress=zstd"],
            "clang up to 23 would not read it",
        ),
        (&["-arch=sm_90", "--include-ptx=all", "--emit", "fatbin"], "include-ptx"),
        (&["-gencode", "arch=compute_90,code=sm_80", "--emit", "fatbin"], "sm_80"),
        (
            &["-gencode", "arch=compute_90,code=lto_90", "--emit", "fatbin"],
            "lto_90",
        ),
        (&["-arch=compute_90", "--emit", "cubin"], "asks for no cubin"),
        (
            &["-arch=sm_90", "--compress=lz4", "--emit", "cubin"],
            "option 'compress' cannot be honoured",
        ),
    ] {
        let mut command = vec!["compile", &softmax, "-o", "out/"];
        command.extend(arguments);
        work.run(&command).failed(1).says(&[message]);
        assert!(work.files("").is_empty(), "{arguments:?}");
    }
    work.run(&["compile", &softmax, "--target", "sm_80", "-arch=sm_90", "-o", "out/"])
        .failed(2)
        .says(&["use one of the two spellings"]);
}

#[test]
fn the_devices_of_this_machine_need_a_driver() {
    let work = Workshop::new();
    let run = work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "-arch=native",
        "--emit",
        "fatbin",
        "-o",
        "k.fatbin",
    ]);
    // A machine with a GPU compiles for it.
    if run.status == 0 {
        assert!(!images(&work.path("k.fatbin")).is_empty());
    } else {
        run.failed(1).says(&["-arch=native", "libcuda.so.1"]);
    }
}

const IDENTICAL: &str = "
gpu.module @one { gpu.func @k(%p: memref<4xf32>) kernel { gpu.return } }
gpu.module @two { gpu.func @k(%p: memref<4xf32>) kernel { gpu.return } }
gpu.module @three { gpu.func @other(%p: memref<4xf32>) kernel { gpu.return } }
";

#[test]
fn identical_modules_are_serialized_once() {
    let work = Workshop::new();
    work.write("k.mlir", IDENTICAL);
    let report = work
        .run(&[
            "compile",
            "k.mlir",
            "--target",
            "sm_80,sm_90",
            "--emit",
            "fatbin",
            "-o",
            "out/",
            "--report=json",
        ])
        .quiet()
        .json();
    assert_eq!(work.files("out"), ["one.fatbin", "three.fatbin", "two.fatbin"]);
    assert_eq!(work.read("out/one.fatbin"), work.read("out/two.fatbin"));
    assert_ne!(work.read("out/one.fatbin"), work.read("out/three.fatbin"));
    let artifact = |index: usize| &report["artifacts"][index];
    assert_eq!(artifact(1)["decisions"][0]["choice"], "identical to module one");
    assert_eq!(artifact(1)["decisions"][0]["outcome"], "serialized once");
    let stages = |index: usize| -> Vec<String> {
        let stages = artifact(index)["stages"].as_array().expect("stages").iter();
        stages
            .map(|stage| stage["stage"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert!(stages(0).contains(&"ptx-to-cubin".to_owned()));
    assert_eq!(stages(1), ["container"]);
    assert!(stages(2).contains(&"ptx-to-cubin".to_owned()));
    // An assertion names its place in the source, which is part of the code.
    let module = |name: &str| {
        format!("gpu.module @{name} {{ gpu.func @k(%ok: i1) kernel {{\n cf.assert %ok, \"no\"\n gpu.return }} }}\n")
    };
    work.write("assert.mlir", [module("one"), module("two")].concat());
    let report = work
        .run(&[
            "compile",
            "assert.mlir",
            "--target",
            "sm_80",
            "--emit",
            "ptx",
            "-o",
            "out/",
            "--report=json",
        ])
        .quiet()
        .json();
    assert!(!report.to_string().contains("identical to"), "{report}");
    assert_ne!(work.read("out/one.sm_80.ptx"), work.read("out/two.sm_80.ptx"));
    // With line tables so is every place.
    let report = work
        .run(&[
            "compile",
            "k.mlir",
            "--target",
            "sm_80",
            "--emit",
            "fatbin",
            "--debug=line-tables",
            "-o",
            "out/",
            "--report=json",
        ])
        .quiet()
        .json();
    let decisions = report["artifacts"][1]["decisions"].to_string();
    assert!(!decisions.contains("identical"), "{decisions}");
}

/// Compiles `examples/saxpy.mlir` to a file.
fn saxpy(work: &Workshop, arguments: &[&str], file: &str) {
    let example = example("saxpy.mlir");
    let mut command = vec!["compile", &example, "-o", file];
    command.extend(arguments);
    work.run(&command).quiet();
}

#[test]
fn images_from_files_are_packed() {
    let work = Workshop::new();
    saxpy(&work, &["--target", "sm_80"], "80.cubin");
    saxpy(&work, &["--target", "sm_90a", "--emit", "fatbin"], "90a.fatbin");
    saxpy(&work, &["--target", "sm_80", "--emit", "ptx"], "80.ptx");
    for (way, expected) in [("none", 2), ("lz4", 2), ("zstd", 2)] {
        let compress = format!("--compress={way}");
        work.run(&[
            "pack",
            "80.cubin",
            "90a.fatbin",
            "80.ptx",
            "80.cubin",
            "--emit",
            "fatbin",
            &compress,
            "-o",
            "k.fatbin",
            "-v",
        ])
        .failed(0)
        .says(&["80.cubin: cubin for sm_80, ", "80.ptx: PTX for sm_80, "]);
        let found = images(&work.path("k.fatbin"));
        assert_eq!(found, ["ELF sm_80", "ELF sm_90a", "PTX sm_80"], "{way}");
        assert_eq!(found.iter().filter(|image| image.starts_with("ELF")).count(), expected);
    }
    // What NVIDIA's own tool makes of the same files is the same, byte for byte.
    work.run(&["pack", "80.cubin", "80.ptx", "--emit", "fatbin", "-o", "ours.fatbin"])
        .quiet();
    output_of(
        cuda().join("bin/fatbinary"),
        &[
            "-64".as_ref(),
            "--compress=false".as_ref(),
            format!("--create={}", work.path("theirs.fatbin").display()).as_ref(),
            format!("--image3=kind=elf,sm=80,file={}", work.path("80.cubin").display()).as_ref(),
            format!("--image3=kind=ptx,sm=80,file={}", work.path("80.ptx").display()).as_ref(),
        ],
    );
    let (ours, theirs) = (work.read("ours.fatbin"), work.read("theirs.fatbin"));
    // fatbinary strips comments and indentation of PTX: the entry of the cubin is what can be equal.
    let cubin_entry = 16 + 64 + work.read("80.cubin").len().next_multiple_of(8);
    assert_eq!(ours[16..cubin_entry], theirs[16..cubin_entry]);
}

#[test]
fn a_bundle_and_offload_binaries_are_packed() {
    let work = Workshop::new();
    for target in ["gfx90a", "gfx942"] {
        saxpy(&work, &["--target", target], &format!("{target}.hsaco"));
    }
    saxpy(
        &work,
        &["--target", "gfx90a,gfx942", "--emit", "bundle"],
        "compiled.hipfb",
    );
    work.run(&[
        "pack",
        "gfx90a.hsaco",
        "gfx942.hsaco",
        "--emit",
        "bundle",
        "-o",
        "packed.hipfb",
    ])
    .quiet();
    assert_eq!(work.read("packed.hipfb"), work.read("compiled.hipfb"));
    // Out of one container and into another.
    work.run(&["pack", "packed.hipfb", "--emit", "offload", "-o", "packed.offload"])
        .quiet();
    work.run(&[
        "pack",
        "packed.offload",
        "--emit",
        "bundle",
        "--compress=zstd",
        "-o",
        "again.hipfb",
    ])
    .quiet();
    assert_eq!(work.read("again.hipfb")[..4], *b"CCOB");
    work.run(&["pack", "again.hipfb", "--emit", "bundle", "-o", "plain.hipfb"])
        .quiet();
    assert_eq!(work.read("plain.hipfb"), work.read("packed.hipfb"));
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let work = Workshop::new();
    saxpy(&work, &["--target", "sm_80"], "80.cubin");
    saxpy(&work, &["--target", "sm_80", "-O0"], "other.cubin");
    saxpy(&work, &["--target", "gfx942"], "942.hsaco");
    saxpy(
        &work,
        &["--target", "sm_80", "--emit", "fatbin", "--include-ptx=all"],
        "all.fatbin",
    );
    saxpy(
        &work,
        &["--target", "sm_90", "--emit", "fatbin", "--include-ptx=none"],
        "none.fatbin",
    );
    saxpy(
        &work,
        &["--target", "sm_75", "--emit", "offload", "--include-ptx=newest"],
        "newest.offload",
    );
    work.write("cut.fatbin", &work.read("all.fatbin")[..200]);
    work.write("text.txt", "hello");
    for (arguments, messages) in [
        (
            &["all.fatbin", "none.fatbin", "--emit", "fatbin"][..],
            &["all.fatbin was made with include-ptx=all and none.fatbin with include-ptx=none"][..],
        ),
        (
            &["all.fatbin", "newest.offload", "--emit", "offload"],
            &["newest.offload with include-ptx=newest"],
        ),
        (
            &["80.cubin", "other.cubin", "--emit", "fatbin"],
            &["80.cubin and other.cubin both have cubin for sm_80, and they differ"],
        ),
        (
            &["80.cubin", "942.hsaco", "--emit", "fatbin"],
            &["942.hsaco has hsaco for gfx942", "into a bundle"],
        ),
        (
            &["80.cubin", "--emit", "bundle"],
            &["80.cubin has cubin for sm_80", "into a fat binary"],
        ),
        (
            &["sm_90=80.cubin", "--emit", "fatbin"],
            &["sm_90=80.cubin: the image is for sm_80"],
        ),
        (&["x=80.cubin", "--emit", "fatbin"], &["it is no target"]),
        (&["sm_80=all.fatbin", "--emit", "fatbin"], &["it holds 2 images"]),
        (&["cut.fatbin", "--emit", "fatbin"], &["cut.fatbin"]),
        (&["text.txt", "--emit", "fatbin"], &["none of the files that are read"]),
        (
            &["942.hsaco", "--emit", "bundle", "--compress=lz4"],
            &["compressed with zstd"],
        ),
        (&["missing", "--emit", "bundle"], &["cannot read missing"]),
    ] {
        let mut command = vec!["pack", "-o", "out"];
        command.extend(arguments);
        work.run(&command).failed(1).says(messages);
        assert!(!work.path("out").exists());
    }
}

/// LTO-IR is written by nvFatbin, between entries of ours.
#[test]
fn lto_ir_is_packed() {
    let work = Workshop::new();
    saxpy(&work, &["--target", "sm_90"], "90.cubin");
    work.write(
        "f.cu",
        "extern \"C\" __device__ float scale(float x) { return 3.0f * x; }\n",
    );
    let include = format!("-I{}", cuda().join("include").display());
    output_of(
        cuda().join("bin/nvcc"),
        &[
            "-dc".as_ref(),
            "-ltoir".as_ref(),
            "-gencode=arch=compute_90,code=lto_90".as_ref(),
            include.as_ref(),
            work.path("f.cu").as_ref(),
            "-o".as_ref(),
            work.path("f.ltoir").as_ref(),
        ],
    );
    work.run(&["pack", "90.cubin", "f.ltoir", "--emit", "fatbin", "-o", "k.fatbin"])
        .quiet();
    let json = work.run(&["inspect", "k.fatbin", "--json"]).quiet().json();
    let kinds: Vec<_> = json["images"]
        .as_array()
        .expect("images")
        .iter()
        .map(|image| &image["kind"])
        .collect();
    assert_eq!(kinds, ["cubin", "lto-ir"]);
    work.run(&["pack", "sm_80=f.ltoir", "--emit", "fatbin", "-o", "out"])
        .failed(1)
        .says(&["sm_80=f.ltoir: the image is for sm_90"]);
    work.run(&["pack", "f.ltoir", "--emit", "bundle", "-o", "out"])
        .failed(1)
        .says(&["f.ltoir has LTO-IR for sm_90"]);
}

/// The object is linked with a C program that finds the fat binary through the wrapper, as runtimes do.
#[test]
fn a_container_is_linked_into_a_program() {
    let work = Workshop::new();
    saxpy(&work, &["--target", "sm_90"], "90.cubin");
    work.run(&[
        "pack",
        "90.cubin",
        "--emit",
        "fatbin",
        "--host-object",
        "x86-64",
        "--symbol",
        "kernels",
        "-o",
        "k.o",
    ])
    .quiet();
    work.write(
        "main.c",
        "struct wrapper { unsigned magic, version; const unsigned *data; void *unused; };\n\
         extern const unsigned kernels[]; extern const struct wrapper kernels_wrapper;\n\
         int main(void) { return !(kernels_wrapper.magic == 0x466243b1 && kernels_wrapper.version == 1\n\
           && kernels_wrapper.data == kernels && kernels[0] == 0xba55ed50 && (unsigned long)kernels % 8 == 0); }\n",
    );
    let path = |name: &str| work.path(name);
    output_of(
        "cc",
        &[
            path("main.c").as_ref(),
            path("k.o").as_ref(),
            "-o".as_ref(),
            path("program").as_ref(),
        ],
    );
    output_of(path("program"), &[]);
    assert_eq!(images(&path("program")), ["ELF sm_90"]);
    let json = work.run(&["inspect", "program", "--json"]).quiet().json();
    assert_eq!(json["images"][0]["target"], "sm_90");
    saxpy(&work, &["--target", "gfx942"], "942.hsaco");
    for (input, format, section) in [
        ("942.hsaco", "bundle", ".hip_fatbin"),
        ("90.cubin", "offload", ".llvm.offloading"),
    ] {
        work.run(&["pack", input, "--emit", format, "--host-object", "aarch64", "-o", "k.o"])
            .quiet();
        let sections = output_of("llvm-readelf-22", &["-S".as_ref(), "-W".as_ref(), path("k.o").as_ref()]);
        assert!(sections.contains(section), "{sections}");
    }
}
