//! Programs for AArch64 hosts: finished by a cross clang, and by a cross compiler of GCC's, and run under qemu with the runtime
//! library that writes down what is registered and launched. And the chips beside such processors.

use super::{
    export::Site,
    support::{Workshop, example},
};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// The runtime libraries for that machine, in the folder `arm`.
fn runtimes(site: &Site) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/export_runtime.c");
    std::fs::create_dir_all(site.work.path("arm")).expect("a folder");
    for (prefix, library) in [("cuda", "libcudart.so"), ("hip", "libamdhip64.so")] {
        let (prefix, output) = (format!("-DPREFIX={prefix}"), format!("arm/{library}"));
        let name = format!("-Wl,-soname,{library}");
        let options = ["-w", "-shared", "-fPIC", &prefix, source, &name, "-o", &output];
        let output = site.tool("aarch64-linux-gnu-gcc", &options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Exports for a host, carries out the commands with the cross compiler in its place, runs the program, and gives what it did.
fn ran(site: &Site, more: &[&str], compiler: &str) -> (Option<i32>, String) {
    let app = example("app.mlir");
    let commands = site.export(&[&[&app, "--host-triple", TRIPLE], more].concat());
    let native = match compiler {
        "aarch64-linux-gnu-gcc" => "cc ".to_owned(),
        clang => format!("{clang} "),
    };
    let cross = match compiler {
        "aarch64-linux-gnu-gcc" => "aarch64-linux-gnu-gcc -Larm ".to_owned(),
        clang => format!("{clang} --target=aarch64-linux-gnu -Larm "),
    };
    let commands = commands.trim_end();
    let (before, last) = commands.rsplit_once('\n').unwrap_or(("", commands));
    // The toolkit here has libraries for this machine.
    let last = last.replacen(&native, &cross, 1).replace("/lib64\"", "/none\"");
    let output = site.tool("sh", &["-ec", &format!("{before}\n{last}")]);
    assert!(
        output.status.success(),
        "{last}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = site.tool(
        "qemu-aarch64",
        &["-L", "/usr/aarch64-linux-gnu", "-E", "LD_LIBRARY_PATH=arm", "./app"],
    );
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// The program looks at its results itself.
#[test]
fn programs_for_aarch64_are_finished_and_run() {
    let site = Site::new();
    runtimes(&site);
    for (target, finish_with, form, compiler) in [
        ("sm_80,sm_90", "clang-16,cuda-13.0", "obj", "clang-16"),
        ("sm_80", "clang-16,cuda-13.0", "ll", "clang-16"),
        ("sm_80,sm_90", "clang-19,cuda-13.0", "obj", "clang-19"),
        ("sm_80", "clang-19,clang-22,cuda-13.0", "obj", "clang-22"),
        ("sm_80", "clang-19,cuda-13.0", "bc", "clang-19"),
        ("sm_87,sm_110,sm_121", "clang-22,cuda-13.0", "obj", "clang-22"),
        ("sm_80", "clang-22,cuda-13.0", "ll", "clang-22"),
        ("gfx90a", "clang-16,rocm", "obj", "clang-16"),
        ("gfx90a", "clang-19,rocm", "obj", "clang-19"),
        ("gfx90a,gfx942", "clang-22,rocm", "obj", "clang-22"),
    ] {
        let file = format!("app.{form}");
        let options = ["-t", target, "--finish-with", finish_with, "--emit", form, "-o", &file];
        check(
            &ran(&site, &options, compiler),
            &format!("{finish_with} {form} {target}"),
        );
    }
    for (target, context) in [("sm_80,sm_90", "self for CUDA"), ("gfx90a", "self for HIP")] {
        let options = ["-t", target, "--emit", "self", "-o", "app.o"];
        check(&ran(&site, &options, "aarch64-linux-gnu-gcc"), context);
    }
}

#[track_caller]
fn check((status, log): &(Option<i32>, String), context: &str) {
    assert_eq!(*status, Some(0), "{context}:\n{log}");
    for launch in [
        "launch saxpy grid 3907 1 1 block 256 1 1 shared 0",
        "launch turn_blocks grid 3907 1 1 block 256 1 1 shared 1024",
    ] {
        assert!(log.contains(launch), "{context}: no {launch:?} in\n{log}");
    }
}

/// Orin, Thor, Spark and their families: by each of NVIDIA's compilers, linked, and on which devices they are selected (CUDA C++
/// Programming Guide, "Binary Compatibility" and "Family-Specific Features").
#[test]
fn chips_beside_arm_processors_are_compiled_linked_and_selected() {
    const CHIPS: [(&str, &[&str]); 17] = [
        // Orin is Tegra's: what runs on the others does not run there.
        ("sm_86", &["8.6", "8.9"]),
        ("sm_87", &["8.7"]),
        ("sm_100", &["10.0", "10.3"]),
        ("sm_100a", &["10.0"]),
        ("sm_100f", &["10.0", "10.3"]),
        ("sm_103", &["10.3"]),
        ("sm_103a", &["10.3"]),
        ("sm_103f", &["10.3"]),
        ("sm_110", &["11.0"]),
        ("sm_110a", &["11.0"]),
        ("sm_110f", &["11.0"]),
        ("sm_120", &["12.0", "12.1"]),
        ("sm_120a", &["12.0"]),
        ("sm_120f", &["12.0", "12.1"]),
        ("sm_121", &["12.1"]),
        ("sm_121a", &["12.1"]),
        ("sm_121f", &["12.1"]),
    ];
    const DEVICES: [&str; 9] = ["8.6", "8.7", "8.9", "10.0", "10.1", "10.3", "11.0", "12.0", "12.1"];
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let parts = ["kernels.ptx", "functions.ptx"].map(|name| example(&format!("device_link/{name}")));
    let all = CHIPS.map(|(chip, _)| chip).join(",");
    for compiler in ["ptxas", "nvptxcompiler", "nvjitlink"] {
        let folder = format!("{compiler}/");
        work.run(&["compile", &saxpy, "-t", &all, "--ptx-compiler", compiler, "-o", &folder])
            .quiet();
    }
    for (chip, devices) in CHIPS {
        let linked = format!("{chip}.cubin");
        work.run(&["link", &parts[0], &parts[1], "-t", chip, "-o", &linked])
            .quiet();
        let made = ["ptxas", "nvptxcompiler", "nvjitlink"].map(|folder| format!("{folder}/saxpy.{chip}.cubin"));
        for file in made.iter().chain([&linked]) {
            let text = work.run(&["inspect", file, "--device", &DEVICES.join(",")]).output();
            let loads = |device: &&str| text.contains(&format!("On {device}:\n  loads image 1, "));
            let found: Vec<&str> = DEVICES.into_iter().filter(loads).collect();
            assert_eq!(found, devices, "{file}:\n{text}");
        }
    }
    // Thor's number before CUDA 13, whose PTX the driver compiles for 11.0.
    work.run(&["compile", &saxpy, "-t", "sm_101a", "-o", "thor/"])
        .failed(1)
        .says(&[
            "no PTX compiler at hand knows sm_101a",
            "CUDA 13 calls this chip sm_110",
        ]);
    work.run(&["compile", &saxpy, "-t", "sm_101a", "--emit", "ptx", "-o", "thor.ptx"])
        .quiet();
    for (device, status) in [("10.1", 0), ("11.0", 0), ("12.1", 1)] {
        work.run(&["inspect", "thor.ptx", "--device", device]).failed(status);
    }
}
