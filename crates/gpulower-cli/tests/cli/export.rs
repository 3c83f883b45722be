//! `gpulower export`: the command that it prints is carried out with real releases of clang, and what comes out is run
//! with a runtime library that writes down what is registered and launched, and runs the kernels in C.

use std::{
    fmt::Write,
    process::{Command, Output},
};

use super::support::{Run, Workshop, cuda, example};

/// A folder with runtime libraries, in which programs are exported, finished and run.
pub struct Site {
    pub work: Workshop,
}

/// What a program did.
pub struct Ran {
    status: Option<i32>,
    pub log: String,
}

impl Site {
    pub fn new() -> Self {
        let site = Self { work: Workshop::new() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/export_runtime.c");
        // Linked against NVIDIA's library, run with ours.
        let library = std::fs::canonicalize(cuda().join("lib64/libcudart.so")).expect("libcudart");
        let cudart = library.file_name().expect("a name").to_string_lossy().into_owned();
        std::fs::create_dir_all(site.work.path("run")).expect("a folder");
        std::fs::create_dir_all(site.work.path("rocm/lib")).expect("a folder");
        for (prefix, library) in [
            ("cuda", format!("run/{cudart}")),
            ("hip", "rocm/lib/libamdhip64.so".to_owned()),
        ] {
            let options = ["-shared", "-fPIC", "-Wno-builtin-declaration-mismatch"];
            let prefix = format!("-DPREFIX={prefix}");
            let output = site.tool("cc", &[&options[..], &[&prefix, source, "-o", &library]].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        site
    }

    pub fn tool(&self, name: &str, arguments: &[&str]) -> Output {
        let folder = self.work.path("");
        Command::new(name)
            .args(arguments)
            .current_dir(&folder)
            .env("CUDA_ROOT", cuda())
            .env("ROCM_PATH", folder.join("rocm"))
            .env("LD_LIBRARY_PATH", format!("{0}/run:{0}/rocm/lib", folder.display()))
            .output()
            .unwrap_or_else(|error| panic!("{name} cannot be run ({error}): run `cargo xtask setup`"))
    }

    /// Exports, and gives the commands that finish the program.
    pub fn export(&self, arguments: &[&str]) -> String {
        let run = self.work.run(&[&["export"], arguments].concat());
        assert_eq!(run.status, 0, "{arguments:?}: {}", run.stderr);
        run.output()
    }

    /// Carries out the commands, with words added to the last one, and runs the program.
    pub fn finish(&self, commands: &str, more: &str, program: &str) -> Ran {
        let output = self.tool("sh", &["-ec", &format!("{} {more}", commands.trim_end())]);
        assert!(
            output.status.success(),
            "{commands} {more}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let output = self.tool(&self.work.path(program).display().to_string(), &[]);
        Ran {
            status: output.status.code(),
            log: format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    /// The architectures of the images in a finished program.
    fn assert_images(&self, program: &str, chips: &[&str]) {
        let path = self.work.path(program).display().to_string();
        let found = self.work.run(&["inspect", &path]).quiet().output();
        for chip in chips {
            assert!(found.contains(chip), "no {chip} in:\n{found}");
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn succeeded(&self, kernels: &[&str], context: &str) {
        assert_eq!(self.status, Some(0), "{context}:\n{}", self.log);
        for kernel in kernels {
            let registered = |line: &str| line.starts_with(&format!("function {kernel}__"));
            assert!(self.log.lines().any(registered), "{context}: {kernel}\n{}", self.log);
            let launched = |line: &str| line.starts_with(&format!("launch {kernel} grid"));
            assert!(self.log.lines().any(launched), "{context}: {kernel}\n{}", self.log);
        }
    }
}

const APP: &[&str] = &["saxpy", "turn_blocks"];
const LLD_GC: &str = "-fuse-ld=lld -Wl,--gc-sections";

/// Form, targets, and what is added to the command.
const FORMS: &[(&str, usize, &str)] = &[("obj", 2, ""), ("obj", 2, LLD_GC), ("ll", 1, ""), ("bc", 2, LLD_GC)];

#[test]
fn cuda_programs_are_finished_by_every_clang() {
    let site = Site::new();
    let app = example("app.mlir");
    for clang in ["16", "19", "22"] {
        let with = format!("clang-{clang},cuda-13.0");
        for (form, count, more) in FORMS {
            let chips = &["sm_80", "sm_90"][..*count];
            let (targets, file) = (chips.join(","), format!("app.{form}"));
            let commands = site.export(&[
                &app,
                "-t",
                &targets,
                "--finish-with",
                &with,
                "--emit",
                form,
                "-o",
                &file,
            ]);
            let context = format!("{with} {form} {more}");
            site.finish(&commands, more, "app").succeeded(APP, &context);
            site.assert_images("app", chips);
        }
    }
}

#[test]
fn hip_programs_are_finished_by_every_clang() {
    let site = Site::new();
    let app = example("app.mlir");
    for clang in ["16", "19", "22"] {
        let with = format!("clang-{clang},rocm");
        for (form, count, more) in FORMS {
            let chips = &["gfx90a", "gfx1030"][..*count];
            let (targets, file) = (chips.join(","), format!("app.{form}"));
            let commands = site.export(&[
                &app,
                "-t",
                &targets,
                "--finish-with",
                &with,
                "--emit",
                form,
                "-o",
                &file,
            ]);
            let context = format!("{with} {form} {more}");
            site.finish(&commands, more, "app").succeeded(APP, &context);
            site.assert_images("app", chips);
        }
    }
}

#[test]
fn one_object_serves_several_releases() {
    let site = Site::new();
    let app = example("app.mlir");
    let commands = site.export(&[
        &app,
        "-t",
        "sm_80",
        "--finish-with",
        "clang-15..19,clang-21..23,cuda-13.0",
        "-o",
        "app.o",
    ]);
    assert!(
        commands.starts_with("# Finished by clang 15 to 19 and 21 to 23, with:"),
        "{commands}"
    );
    for clang in ["clang-16", "clang-19", "clang-22"] {
        let commands = commands.replace("clang-23 ", &format!("{clang} "));
        site.finish(&commands, LLD_GC, "app").succeeded(APP, clang);
    }
    let run = site.work.run(&[
        "export",
        &app,
        "-t",
        "sm_80",
        "--finish-with",
        "clang-19..20,cuda-13.0",
        "-o",
        "no.o",
    ]);
    run.failed(1)
        .says(&["no object serves clang 19 and clang 20 at once", "export twice"]);
    assert!(!site.work.path("no.o").exists());
}

/// A part of a program: its number is stored on the device by a kernel that has the same name in every part. The first has
/// `main`, which calls the others.
fn part(number: usize) -> String {
    let mut text = format!(
        "module attributes {{gpu.container_module}} {{
           gpu.module @kernels {{
             memref.global @table : memref<4xi32> = dense<{number}>
             gpu.func @store(%p: memref<1xi32>, %v: i32) kernel {{
               %zero = arith.constant 0 : index
               %table = memref.get_global @table : memref<4xi32>
               %old = memref.load %table[%zero] : memref<4xi32>
               %new = arith.addi %old, %v : i32
               memref.store %new, %p[%zero] : memref<1xi32>
               gpu.return
             }}
           }}
           func.func @part_{number}(%p: memref<1xi32>) {{
             %one = arith.constant 1 : index
             %v = arith.constant {number} : i32
             gpu.launch_func @kernels::@store blocks in (%one, %one, %one) threads in (%one, %one, %one)
               args(%p : memref<1xi32>, %v : i32)
             return
           }}\n"
    );
    if number == 1 {
        text.push_str(
            "func.func private @part_2(memref<1xi32>)
             func.func private @part_3(memref<1xi32>)
             func.func @main() -> i32 {
               %zero = arith.constant 0 : index
               %host = memref.alloc() : memref<1xi32>
               %device = gpu.alloc() : memref<1xi32>\n",
        );
        for number in 1..=3 {
            let _ = write!(
                text,
                "func.call @part_{number}(%device) : (memref<1xi32>) -> ()
                 gpu.memcpy %host, %device : memref<1xi32>, memref<1xi32>
                 %found_{number} = memref.load %host[%zero] : memref<1xi32>
                 %wanted_{number} = arith.constant {number} : i32
                 %wrong_{number} = arith.cmpi ne, %found_{number}, %wanted_{number} : i32\n"
            );
        }
        text.push_str(
            "%wrong = arith.ori %wrong_1, %wrong_2 : i1
             %any = arith.ori %wrong, %wrong_3 : i1
             %status = arith.extui %any : i1 to i32
             return %status : i32
           }\n",
        );
    }
    text.push('}');
    text
}

/// Three exported files with kernels and variables of the same names become one program.
#[test]
fn three_files_are_one_program() {
    let site = Site::new();
    for number in 1..=3 {
        site.work.write(&format!("part_{number}.mlir"), part(number));
    }
    let export = |target: &str, with: Option<&str>, form: &str| {
        let mut commands = String::new();
        for number in (1..=3).rev() {
            let (input, output) = (format!("part_{number}.mlir"), format!("part_{number}.{form}"));
            let mut arguments = vec![&*input, "-t", target, "--emit", form, "-o", &output];
            arguments.extend(with.into_iter().flat_map(|with| ["--finish-with", with]));
            commands = site.export(&arguments);
        }
        commands
    };
    for (target, toolkit) in [("sm_80", "cuda-13.0"), ("gfx90a", "rocm")] {
        for clang in ["16", "19", "22"] {
            let with = format!("clang-{clang},{toolkit}");
            for form in ["obj", "bc"] {
                let commands = export(target, Some(&with), form);
                let more = format!("part_2.{form} part_3.{form} {LLD_GC}");
                let ran = site.finish(&commands, &more, "part_1");
                assert_three(&ran, 1, &format!("{with} {form}"));
            }
        }
        let commands = export(target, None, "self");
        let ran = site.finish(&commands, "part_2.self part_3.self -Wl,--gc-sections", "part_1");
        assert_three(&ran, 3, &format!("{target} self"));
    }
}

#[track_caller]
fn assert_three(ran: &Ran, binaries: usize, context: &str) {
    ran.succeeded(&["store"], context);
    for (start, count) in [
        ("fatbinary ", binaries),
        ("function store__", 3),
        ("variable table__", 3),
        ("launch store ", 3),
    ] {
        let found = ran.log.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(found, count, "{context}: {start}\n{}", ran.log);
    }
}

#[test]
fn programs_that_register_themselves_need_any_linker_and_carry_ptx() {
    let site = Site::new();
    let app = example("app.mlir");
    let commands = site.export(&[&app, "-t", "sm_80,sm_90", "--emit", "self", "-o", "app.o"]);
    assert!(commands.starts_with("cc app.o "), "{commands}");
    for more in ["", "-Wl,--gc-sections", "-no-pie"] {
        site.finish(&commands, more, "app").succeeded(APP, more);
    }
    // Lld calls no constructors of the old kind.
    let by_clang = commands.replace("cc app.o ", "clang-19 app.o ");
    site.finish(&by_clang, LLD_GC, "app").succeeded(APP, LLD_GC);
    let program = site.work.path("app").display().to_string();
    let found = site.tool(
        &cuda().join("bin/cuobjdump").display().to_string(),
        &["-lelf", "-lptx", &program],
    );
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    for image in ["sm_80.cubin", "sm_90.cubin", "sm_80.ptx"] {
        assert!(found.contains(image), "no {image} in {found}");
    }
    let commands = site.export(&[&app, "-t", "gfx90a,gfx1030", "--emit", "self", "-o", "app.o"]);
    site.finish(&commands, "", "app").succeeded(APP, "HIP");
    site.assert_images("app", &["gfx90a", "gfx1030"]);
}

/// That the tests above can fail: without --offload-link nothing is registered, and the program says so and fails.
#[test]
fn a_program_that_cannot_launch_says_why_and_fails() {
    let site = Site::new();
    let commands = site.export(&[
        &example("app.mlir"),
        "-t",
        "sm_80",
        "--finish-with",
        "clang-22,cuda-13.0",
        "-o",
        "app.o",
    ]);
    let ran = site.finish(&commands.replace("--offload-link", ""), "", "app");
    assert_eq!(ran.status, Some(1), "{}", ran.log);
    assert!(
        ran.log.contains("launch of a handle that is not registered"),
        "{}",
        ran.log
    );
    assert!(
        ran.log.contains("gpulower: cannot launch saxpy: cudaErrorUnknown"),
        "{}",
        ran.log
    );
}

/// An older ptxas makes cubins that the nvlink of an older toolkit takes, and that of a newer one too.
#[test]
fn the_image_is_made_for_the_cuda_toolkit_over_there() {
    let site = Site::new();
    let older = cuda().join("cuda-12.4");
    assert!(
        older.join("bin/ptxas").is_file(),
        "{} is missing: run `cargo xtask setup`",
        older.display()
    );
    let older = older.display().to_string();
    let export = |list: &str, form: &str, more: &[&str]| {
        let app = example("app.mlir");
        let arguments = [
            &[
                "export",
                &app,
                "-t",
                "sm_90",
                "--emit",
                form,
                "-v",
                "-o",
                "app.o",
                "--finish-with",
                list,
            ],
            more,
        ];
        let run = site.work.run(&arguments.concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        (run.output(), run.stderr)
    };
    for list in ["clang-20..23,cuda-12.4", "clang-22,cuda-12.8,cuda-13.0"] {
        let (commands, said) = export(list, "obj", &["--ptxas-of", &older]);
        assert!(said.contains("relocatable cubin  ptxas 12.4.131"), "{list}: {said}");
        // The nvlink here is newer.
        let commands = commands.replace("clang-23 ", "clang-22 ");
        site.finish(&commands, "", "app").succeeded(APP, list);
    }
    // Without it PTX or bitcode.
    let (commands, said) = export("clang-19,cuda-12.4", "obj", &[]);
    assert!(said.contains("  PTX  "), "{said}");
    // The toolkit here is newer than 12.8, and needs the script.
    let script = site.export(&[
        &example("app.mlir"),
        "-t",
        "sm_90",
        "--finish-with",
        "clang-19",
        "-o",
        "no.o",
    ]);
    let script: String = script
        .lines()
        .filter(|line| !line.contains("--offload-link"))
        .fold(String::new(), |text, line| text + line + "\n");
    let commands = script + &commands.replace("PATH=\"", "PATH=\"$PWD/gpulower-path:");
    site.finish(&commands, "", "app").succeeded(APP, "PTX");
    let (commands, said) = export("clang-22,cuda-12.4", "bc", &[]);
    assert!(said.contains("  bitcode  "), "{said}");
    site.finish(
        &commands.replace("clang-22 app.o ", "clang-22 -x ir app.o -x none "),
        "",
        "app",
    )
    .succeeded(APP, "bitcode");
    // The release of the toolkit here, where nothing is said of the one there.
    let (_, said) = export("clang-22", "obj", &[]);
    assert!(
        said.contains("note: no CUDA toolkit was named: CUDA 13.0 or a newer one is assumed"),
        "{said}"
    );
}

#[test]
fn the_fatbinary_script_comes_with_the_command_where_it_is_needed() {
    let site = Site::new();
    let with = |list: &str| {
        site.export(&[
            &example("app.mlir"),
            "-t",
            "sm_80",
            "--finish-with",
            list,
            "-o",
            "app.o",
        ])
    };
    assert!(with("clang-21,cuda-13.0").contains("cat > gpulower-path/fatbinary"));
    let plain = with("clang-22,cuda-13.0");
    assert_eq!(
        plain.lines().last(),
        Some(
            "PATH=\"${CUDA_ROOT:-/usr/local/cuda}/bin:$PATH\" clang-22 app.o --offload-link \
             -L\"${CUDA_ROOT:-/usr/local/cuda}/lib64\" -lcudart -o app"
        )
    );
    assert!(!plain.contains("gpulower-path"), "{plain}");
}

fn refused(work: &Workshop, arguments: &[&str]) -> Run {
    let run = work.run(&[&["export"], arguments, &["-o", "no.o"]].concat());
    assert!(!work.path("no.o").exists(), "{arguments:?} left a file");
    run
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let work = Workshop::new();
    let app = example("app.mlir");
    for (arguments, texts) in [
        (
            &["-t", "sm_80"][..],
            &[
                "say which clang finishes the program on the other machine",
                "--emit self needs no clang",
            ][..],
        ),
        (
            &["-t", "sm_80", "--finish-with", "clang-14"],
            &["clang 14 cannot finish the program"],
        ),
        (
            &["-t", "sm_80,gfx90a", "--finish-with", "22"],
            &["sm_80 and gfx90a cannot be in one program"],
        ),
        (
            &["-t", "gfx90a", "--finish-with", "22,cuda-12.4"],
            &["finished with cuda-12.4, and its targets need HIP"],
        ),
        (
            &["-t", "sm_80", "--finish-with", "22,rocm"],
            &["finished with rocm, and its targets need CUDA"],
        ),
        (
            &["-t", "gfx90a", "--finish-with", "19,22"],
            &["no object for HIP serves clang 19 and clang 22 at once"],
        ),
        (
            &["-t", "sm_80", "--finish-with", "20,cuda-12.4"],
            &[
                "no form of image for sm_80 serves clang 20 with CUDA 12.4",
                "ptxas here is of CUDA 13.0",
                "PTX: not with clang 20",
            ],
        ),
        (
            &["-t", "gfx1250", "--finish-with", "19,rocm"],
            &["clang 19 does not know gfx1250"],
        ),
        (
            &["-t", "gfx90a", "--finish-with", "21..23", "--code-object-version=4"],
            &["code object version 4 does not serve clang 21"],
        ),
        (
            &["--finish-with", "22"],
            &["no target: the module has no target attribute"],
        ),
        (
            &[
                "-t",
                "sm_80",
                "--finish-with",
                "22",
                "--host-triple",
                "riscv64-unknown-linux-gnu",
            ],
            &[
                "cannot export for the host \"riscv64-unknown-linux-gnu\"",
                "x86-64 nor AArch64",
            ],
        ),
        (
            &["-t", "sm_80", "--emit", "exe"],
            &["unknown form 'exe': expected obj, ll, bc or self"],
        ),
        (
            &["-t", "sm_80", "--finish-with", "22", "--ptxas-of", "/nonexistent"],
            &["--ptxas-of /nonexistent: No such file"],
        ),
    ] {
        let run = refused(&work, &[&[&*app], arguments].concat());
        assert!(run.status == 1 || run.status == 2, "{arguments:?}");
        run.says(texts);
    }
}

const KERNEL: &str = "gpu.module @kernels { gpu.func @k() kernel { gpu.return } }";
const LAUNCH: &str = "func.func @main() { %one = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one)
    return }";

#[test]
fn bad_programs_are_refused_with_their_place() {
    let work = Workshop::new();
    let object = |attributes: &str| format!("gpu.binary @kernels [#gpu.object<{attributes}>]");
    let ptx = "\".version 7.0\\0A.target sm_80\\0A.address_size 64\\0A.visible .entry other() { ret; }\\0A\"";
    for (name, kernel, launch, texts) in [
        (
            "kernels alone",
            KERNEL.to_owned(),
            "",
            &["the module has no host code that launches a kernel"][..],
        ),
        (
            "unknown kernel",
            KERNEL.replace("@k()", "@other()"),
            LAUNCH,
            &["program.mlir:4:5: error: input: 'gpu.launch_func' op kernel function '@kernels::@k' is undefined"],
        ),
        (
            "unknown module",
            KERNEL.replace("@kernels", "@others"),
            LAUNCH,
            &["program.mlir:4:5: error: input: 'gpu.launch_func' op kernel container 'kernels' is undefined"],
        ),
        (
            "another chip",
            object(&format!(
                "#nvvm.target<chip = \"sm_90\">, assembly = {}",
                ptx.replace("sm_80", "sm_90")
            )),
            LAUNCH,
            &["the module kernels has no image for sm_80; there is PTX for sm_90"],
        ),
        (
            "another kernel",
            object(&format!("#nvvm.target<chip = \"sm_80\">, assembly = {ptx}")),
            LAUNCH,
            &[
                "the kernel k is launched",
                "in the gpu.binary kernels does not define it",
                "other",
            ],
        ),
        (
            "damaged",
            object("#nvvm.target<chip = \"sm_80\">, bin = \"\\7FELF\""),
            LAUNCH,
            &["the gpu.binary kernels: its object"],
        ),
    ] {
        work.write(
            "program.mlir",
            format!("module attributes {{gpu.container_module}} {{\n{kernel}\n{launch} }}"),
        );
        let run = refused(&work, &["program.mlir", "-t", "sm_80", "--finish-with", "22"]);
        assert_eq!(run.status, 1, "{name}: {}", run.stderr);
        run.says(texts);
    }
    work.write("kernel.ptx", ".version 7.0\n.target sm_80\n");
    refused(&work, &["kernel.ptx", "-t", "sm_80", "--finish-with", "22"])
        .failed(1)
        .says(&["only MLIR can be exported"]);
}
