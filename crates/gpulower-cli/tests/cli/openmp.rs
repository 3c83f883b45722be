//! `gpulower export --kind openmp`: finished by real releases of clang, and run with real libomptarget and its plugin for CUDA.
//! In the place of NVIDIA's driver there is a stand-in (`cuda_driver.c`): what libomptarget hands to the driver is seen, and what
//! a GPU makes of it is not.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use super::{export::Site, support::example};

/// Where `cargo xtask setup` unpacks Debian's packages of libomptarget.
pub fn library_folder(release: u8) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.toolkit/openmp/usr/lib");
    let folder = Path::new(root).join(format!("llvm-{release}/lib"));
    assert!(
        folder.is_dir(),
        "these tests need libomptarget at {}: run `cargo xtask setup`",
        folder.display()
    );
    folder.canonicalize().expect("a folder")
}

/// Links in a folder of their own to the libraries of a release; libomp is that of clang 19 for all, as in Debian.
pub fn libraries(site: &Site, release: u8) -> String {
    let name = format!("openmp{release}");
    let folder = site.work.path(&name);
    if folder.exists() {
        return name;
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    let link = |from: PathBuf, name: &str| symlink(from, folder.join(name)).expect(name);
    let own = library_folder(release);
    for file in std::fs::read_dir(&own).expect("a folder") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("libomptarget") && name.contains(".so.") {
            link(path.clone(), &name);
            if name.starts_with("libomptarget.so.") {
                link(path, "libomptarget.so");
            } else if let Some((stem, _)) = name.split_once(".so.") {
                link(path, &format!("{stem}.so"));
            }
        }
    }
    for name in ["libomp.so", "libomp.so.5"] {
        link(library_folder(19).join("libomp.so.5"), name);
    }
    name
}

pub fn driver(site: &Site) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cuda_driver.c");
    let folder = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/tests/cli");
    let options = [
        "-D_GNU_SOURCE",
        "-w",
        "-shared",
        "-fPIC",
        folder,
        source,
        "-o",
        "libcuda.so.1",
    ];
    let output = site.tool("cc", &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    symlink("libcuda.so.1", site.work.path("libcuda.so")).expect("a link");
}

/// Exports for a release, and finishes with it; gives the folder of its libomptarget.
fn finished(site: &Site, input: &str, chip: &str, release: u8, form: &str) -> String {
    let (file, program) = (format!("omp{release}.{form}"), format!("omp{release}"));
    let finish_with = format!("clang-{release}");
    let arguments = [
        "--kind",
        "openmp",
        "-t",
        chip,
        "--finish-with",
        &finish_with,
        "--emit",
        form,
        "-o",
        &file,
    ];
    let commands = site.export(&[&[input], &arguments[..]].concat());
    assert!(commands.trim_end().ends_with(&format!(" -o {program}")), "{commands}");
    let folder = libraries(site, release);
    let output = site.tool("sh", &["-ec", &format!("{} -L{folder}", commands.trim_end())]);
    assert!(
        output.status.success(),
        "{commands}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder
}

/// The same, run with its libomptarget. `environment`: for the stand-in.
fn ran(site: &Site, input: &str, chip: &str, release: u8, form: &str, environment: &str) -> (Option<i32>, String) {
    let folder = finished(site, input, chip, release, form);
    let run = format!("LD_LIBRARY_PATH={folder}:. {environment} ./omp{release}");
    let output = site.tool("sh", &["-c", &run]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

const LAUNCHES: [&str; 2] = [
    "launch saxpy grid 3907 1 1 block 256 1 1 shared 0",
    "launch turn_blocks grid 3907 1 1 block 256 1 1 shared 1024",
];

/// The program looks at its 1000003 results itself.
#[test]
fn libomptarget_launches_what_the_program_asks_for() {
    let site = Site::new();
    driver(&site);
    let app = example("app.mlir");
    // The nvlink here is of CUDA 13: libomptarget of clang 22 takes its cubins from sm_100 on.
    for (release, chip, form, environment) in [
        (16, "sm_90", "obj", "CHIP=90"),
        (16, "sm_90", "ll", "CHIP=90"),
        (16, "sm_90", "bc", "CHIP=90"),
        (22, "sm_100", "obj", "CHIP=100 LEADING=1"),
        (22, "sm_100", "ll", "CHIP=100 LEADING=1"),
        (22, "sm_100", "bc", "CHIP=100 LEADING=1"),
    ] {
        let (status, log) = ran(&site, &app, chip, release, form, environment);
        assert_eq!(status, Some(0), "{release} {form}: {log}");
        for line in LAUNCHES {
            assert!(
                log.lines().any(|other| other == line),
                "{release} {form}: no {line:?} in\n{log}"
            );
        }
        let checked = site.work.run(&["export", "--check", &format!("omp{release}")]);
        assert!(checked.output().contains("by itself   2 of 2"), "{}", checked.output());
    }
}

/// Every argument takes eight bytes, whatever its type, and blocks may have three dimensions from clang 20 on.
#[test]
fn narrow_arguments_arrive_as_they_are() {
    let site = Site::new();
    driver(&site);
    site.work.write("narrow.mlir", NARROW);
    let (status, log) = ran(&site, "narrow.mlir", "sm_100", 22, "obj", "CHIP=100 LEADING=1");
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("launch narrow grid 2 3 1 block 32 2 1 shared 0"), "{log}");
    assert!(log.contains("narrow 1 fffe 12345678 4040 2.5"), "{log}");

    // With 16, the same launch is refused before it is made.
    let (status, log) = ran(&site, "narrow.mlir", "sm_90", 16, "obj", "CHIP=90");
    assert_eq!(status, Some(1), "{log}");
    let refused = "cannot launch narrow: libomptarget (libomptarget of clang up to 19 launches grids and blocks of one";
    assert!(log.contains(refused), "{log}");
}

/// A machine without a device: the program says so, and does not work on the host.
#[test]
fn without_a_device_the_program_says_so() {
    let site = Site::new();
    for release in [16, 22] {
        let chip = if release == 16 { "sm_90" } else { "sm_100" };
        let (status, log) = ran(&site, &example("app.mlir"), chip, release, "obj", "");
        assert_eq!(status, Some(1), "{log}");
        let said = "gpulower: omp_target_alloc failed: libomptarget (there is no device, or no image";
        assert!(log.contains(said), "{release}: {log}");
    }
}

/// What the table of images says of CUDA 13 and clang 19 is what libomptarget does: it loads nothing.
#[test]
fn images_with_a_newer_header_are_not_loaded() {
    let site = Site::new();
    driver(&site);
    let app = example("app.mlir");
    let refused = site.work.run(&[
        "export",
        &app,
        "--kind",
        "openmp",
        "-t",
        "sm_90",
        "--finish-with",
        "clang-19",
        "-o",
        "x.o",
    ]);
    assert_eq!(refused.status, 1);
    assert!(
        refused
            .stderr
            .contains("libomptarget of clang 19 does not know the ELF header"),
        "{}",
        refused.stderr
    );
    let object = site.work.run(&[
        "export",
        &app,
        "--kind",
        "openmp",
        "-t",
        "sm_90",
        "--finish-with",
        "clang-16",
        "-o",
        "omp19.o",
    ]);
    assert_eq!(object.status, 0, "{}", object.stderr);
    let said = object.output();
    assert!(said.contains("# Finished by clang 16, 17, with"), "{said}");
    let folder = libraries(&site, 19);
    let link =
        format!("PATH=$CUDA_ROOT/bin:$PATH clang-19 omp19.o --offload-link -fopenmp -lomptarget -L{folder} -o omp19");
    let output = site.tool("sh", &["-ec", &link]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = site.tool("sh", &["-c", &format!("LD_LIBRARY_PATH={folder}:. CHIP=90 ./omp19")]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Clang's own regions and our kernel work on the same device pointers. The device runtime that such regions need is in Debian's
/// packages for 16 and 19, and libomptarget of 19 does not load what the `nvlink` here makes; those of 22 need none (`ompx_bare`).
#[test]
fn clangs_own_regions_live_in_the_same_program() {
    for (release, chip, environment) in [(16, "sm_90", "CHIP=90"), (22, "sm_100", "CHIP=100 LEADING=1")] {
        let site = Site::new();
        driver(&site);
        let finish_with = format!("clang-{release}");
        let options = [
            "--kind",
            "openmp",
            "-t",
            chip,
            "--finish-with",
            &finish_with,
            "-o",
            "ours.o",
        ];
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/openmp_regions");
        site.export(&[&[&format!("{source}.mlir")[..]], &options[..]].concat());
        let folder = libraries(&site, release);
        let runtime = match release {
            16 => format!(
                "--libomptarget-nvptx-bc-path={}/libomptarget-nvptx-{chip}.bc",
                library_folder(16).display()
            ),
            _ => "-nogpulib -DBARE".to_owned(),
        };
        let clang = format!("PATH=$CUDA_ROOT/bin:$PATH {finish_with} -w -O1 -fopenmp --offload-arch={chip} {runtime}");
        let build = format!(
            "{clang} --cuda-path=$CUDA_ROOT -c {source}.c -o regions.o\n{clang} regions.o ours.o -lomptarget -L{folder} -L{} -o \
             regions",
            library_folder(release).display()
        );
        let output = site.tool("sh", &["-ec", &build]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let run = format!("LD_LIBRARY_PATH={folder}:. {environment} ./regions");
        let output = site.tool("sh", &["-c", &run]);
        let log = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{release}: {log}");
        let launches: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("launch ")?.split(' ').next())
            .collect();
        assert_eq!(
            launches,
            ["__omp_offloading_", "saxpy", "__omp_offloading_"],
            "{release}: {log}"
        );
        assert!(log.contains("0 wrong of 1000"), "{release}: {log}");
        let checked = site.work.run(&["export", "--check", "regions"]).quiet().output();
        assert!(checked.contains("by itself   2 of 2"), "{release}: {checked}");
    }
}

/// Executes a kernel by the executor of AMD code (`tests/amd`), with these arguments; gives what it prints.
fn executed(site: &Site, image: &str, kernel: &str, arguments: &[&str]) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new("python3");
    command
        .args(["-m", "checks", image, "--target", "gfx942", "--kernel", kernel])
        .args(["--grid", "4", "--block", "256", "--shared", "1024", "--orders", "2"])
        .current_dir(site.work.path(""))
        .env("PYTHONPATH", format!("{root}/.toolkit/amd:{root}/tests/amd"));
    for argument in arguments {
        command.args(["--arg", argument]);
    }
    let output = command.output().expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "run `cargo xtask setup` if numpy is missing:\n{text}{errors}"
    );
    text
}

/// What libomptarget of AMD would load and launch: the image out of the finished program, with a pointer before the arguments,
/// each of which takes eight bytes.
#[test]
fn programs_for_amd_are_finished_and_their_images_executed() {
    let (site, app) = (Site::new(), example("app.mlir"));
    for release in [19, 22] {
        let (program, image) = (format!("omp{release}"), format!("omp{release}.hsaco"));
        finished(&site, &app, "gfx942", release, "obj");
        let checked = site.work.run(&["export", "--check", &program]).quiet().output();
        assert!(checked.contains("by itself   2 of 2"), "{checked}");

        site.work.run(&["inspect", &program, "--extract", "-o", &image]).quiet();
        let report = site.work.run(&["inspect", &image, "--json"]).quiet().json();
        let kernels = report["images"][0]["kernels"].as_array().expect("kernels");
        let named = |name: &str| {
            let mut names = kernels.iter().filter_map(|kernel| kernel["name"].as_str());
            names.find(|other| other.starts_with(name)).expect("a kernel")
        };
        let two = format!("index={}", 2f32.to_bits());
        let memory = ["in:f32[1000]=iota", "out:f32[1000]=ones"];
        let arguments = ["index=0", "index=1000", &two, memory[0], memory[1]];
        let text = executed(&site, &image, named("saxpy"), &arguments);
        assert!(text.contains("[1.000e+00 3.000e+00 5.000e+00 ... 1.995e+03"), "{text}");
        let arguments = ["index=0", "index=1000", memory[0], memory[1]];
        let text = executed(&site, &image, named("turn_blocks"), &arguments);
        assert!(text.contains("[255. 254. 253. ... 770. 769. 768.]"), "{text}");
    }
    let options = [
        "-t",
        "gfx90a",
        "--kind",
        "openmp",
        "--finish-with",
        "clang-16",
        "-o",
        "x.o",
    ];
    site.work
        .run(&[&["export", &app[..]], &options[..]].concat())
        .failed(1)
        .says(&["libomptarget of clang 16 tells kernels of code object version 5 nothing of their sizes"]);
}

/// `export --check` of objects for each release that the tests have.
#[test]
fn objects_are_checked_for_each_release() {
    let site = Site::new();
    for (release, chip, toolkit) in [(16, "sm_90", "13.0"), (19, "sm_90", "12.4"), (22, "sm_100", "13.0")] {
        let (object, finish_with) = (format!("{release}.o"), format!("clang-{release},cuda-{toolkit}"));
        let options = [
            "--kind",
            "openmp",
            "-t",
            chip,
            "--finish-with",
            &finish_with,
            "-o",
            &object,
        ];
        site.export(&[&[&example("app.mlir")[..]], &options[..]].concat());
        site.work
            .run(&["export", "--check", &object, "--with", &release.to_string()])
            .quiet();
    }
    for (object, release, message) in [
        (
            "16.o",
            "15",
            "launches kernels that have no execution mode with 32 threads more",
        ),
        ("16.o", "22", "it looks for entries in the section llvm_offload_entries"),
        (
            "19.o",
            "16",
            "puts no pointer before the arguments of a kernel, and these kernels expect one",
        ),
        (
            "22.o",
            "19",
            "it looks for entries in the section omp_offloading_entries",
        ),
    ] {
        site.work
            .run(&["export", "--check", object, "--with", release])
            .failed(1)
            .says(&[message]);
    }
}

#[test]
fn what_libomptarget_cannot_do_is_refused() {
    let site = Site::new();
    site.work.write("narrow.mlir", NARROW);
    let vector = NARROW.replace("bf16", "vector<4xf32>").replace("3.0 :", "dense<3.0> :");
    site.work.write("vector.mlir", vector);
    for (input, options, message) in [
        (
            "narrow.mlir",
            &["--finish-with", "clang-15"][..],
            "libomptarget of clang 15 launches kernels",
        ),
        (
            "narrow.mlir",
            &["--finish-with", "clang-16,clang-18"],
            "no object for OpenMP serves clang 16 and clang 18",
        ),
        (
            "narrow.mlir",
            &["--emit", "self"],
            "a program for OpenMP is registered by clang's linker wrapper",
        ),
        (
            "vector.mlir",
            &["--finish-with", "clang-16"],
            "an argument of the type vector<4xf32>",
        ),
        (
            "narrow.mlir",
            &["--finish-with", "clang-16", "--index-bitwidth", "32"],
            "have indices of 64 bits",
        ),
    ] {
        let fixed = ["export", input, "--kind", "openmp", "-t", "sm_90", "-o", "x.o"];
        let run = site.work.run(&[&fixed[..], options].concat());
        assert_eq!(run.status, 1, "{options:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{options:?}: {}", run.stderr);
    }
}

const NARROW: &str = r#"
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @narrow(%flag: i1, %short: i16, %word: i32, %half: bf16, %double: f64, %out: memref<?xf32>) kernel {
      %zero = arith.constant 0 : index
      %a = arith.uitofp %flag : i1 to f32
      %b = arith.sitofp %short : i16 to f32
      %c = arith.sitofp %word : i32 to f32
      %e = arith.truncf %double : f64 to f32
      %1 = arith.addf %a, %b : f32
      %2 = arith.addf %1, %c : f32
      %3 = arith.addf %2, %e : f32
      memref.store %3, %out[%zero] : memref<?xf32>
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %warp = arith.constant 32 : index
    %out = gpu.alloc (%one) : memref<?xf32>
    %flag = arith.constant true
    %short = arith.constant -2 : i16
    %word = arith.constant 0x12345678 : i32
    %half = arith.constant 3.0 : bf16
    %double = arith.constant 2.5 : f64
    gpu.launch_func @kernels::@narrow blocks in (%two, %three, %one) threads in (%warp, %two, %one)
        args(%flag : i1, %short : i16, %word : i32, %half : bf16, %double : f64, %out : memref<?xf32>)
    gpu.dealloc %out : memref<?xf32>
    %zero = arith.constant 0 : i32
    return %zero : i32
  }
}
"#;
