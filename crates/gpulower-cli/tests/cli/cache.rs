//! The cache of results.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::support::{Run, Workshop, cuda, example};

/// Compiles with the cache in the folder `cache`.
fn compile(work: &Workshop, input: &str, output: &str, more: &[&str]) -> Run {
    let mut arguments = vec!["compile", input, "-o", output, "--cache-dir", "cache", "--report=json"];
    arguments.extend(more);
    if !more.iter().any(|argument| argument.contains("gfx")) {
        // It needs nothing else of the directory.
        arguments.extend(["--ptx-compiler", "ptxas"]);
    }
    let output = work
        .command(&arguments)
        .env_remove("GPULOWER_CACHE")
        .output()
        .expect("the program runs");
    Run {
        status: output.status.code().expect("not ended by a signal"),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The stages that were carried out for the first artifact, and those whose result was taken from the cache.
fn stages(run: &Run) -> (Vec<String>, Vec<String>) {
    let report = run.json();
    let artifact = &report["artifacts"][0];
    let names = |list: &str, key: &str, wanted: &dyn Fn(&serde_json::Value) -> bool| -> Vec<String> {
        let entries = artifact[list].as_array().expect("a list");
        let entries = entries.iter().filter(|entry| wanted(entry));
        entries
            .map(|entry| entry[key].as_str().expect("a name").to_owned())
            .collect()
    };
    (
        names("stages", "stage", &|_| true),
        names("decisions", "choice", &|decision| decision["stage"] == "cache"),
    )
}

/// Everything was taken from disk.
#[track_caller]
fn assert_known(run: &Run) {
    assert_eq!(stages(run), (vec![], vec!["disk".to_owned()]), "{}", run.stderr);
}

/// Everything was compiled.
#[track_caller]
fn assert_compiled(run: &Run) {
    let (stages, taken) = stages(run);
    assert!(stages.len() >= 4 && taken.is_empty(), "{stages:?} {taken:?}");
}

const KERNEL: &str = "gpu.module @m {
  gpu.func @k(%p: memref<8xf32>, %v: f32) kernel {
    %i = gpu.thread_id x
    %w = math.sin %v : f32
    memref.store %w, %p[%i] : memref<8xf32>
    gpu.return
  }
}
";

#[test]
fn the_second_time_nothing_is_compiled_and_the_bytes_are_the_same() {
    let work = Workshop::new();
    for (index, name) in ["softmax.mlir", "gelu.mlir"].into_iter().enumerate() {
        let target = ["--target", "sm_90,gfx942"];
        assert_compiled(&compile(&work, &example(name), &format!("cold{index}/"), &target).quiet());
        assert_known(&compile(&work, &example(name), &format!("warm{index}/"), &target).quiet());
        let files = work.files(&format!("cold{index}"));
        assert_eq!(files.len(), 2);
        for file in files {
            let bytes = |folder| work.read(&format!("{folder}{index}/{file}"));
            assert!(bytes("cold") == bytes("warm"), "{file}");
        }
    }
}

#[test]
fn what_does_not_reach_a_stage_does_not_repeat_it() {
    let work = Workshop::new();
    let target = ["--target", "sm_90"];
    let compile = |text: &str| {
        work.write("k.mlir", text);
        compile(&work, "k.mlir", "k.cubin", &target).quiet()
    };
    assert_compiled(&compile(KERNEL));
    let bytes = work.read("k.cubin");
    // Read again, and nothing more: a comment, and the name of the module.
    assert_known(&compile(&format!("// A comment.\n\n{KERNEL}")));
    assert_known(&compile(&KERNEL.replace("@m", "@other")));
    assert!(work.read("k.cubin") == bytes);
    // Lowered and optimised, to the same PTX, whose kernels are known.
    let dead = "%w = math.sin %v : f32\n    %dead = arith.addf %v, %v : f32";
    let (stages, taken) = stages(&compile(&KERNEL.replace("%w = math.sin %v : f32", dead)));
    let expected = ["lower", "translate", "link", "optimize", "code-gen", "ptx-to-cubin"];
    assert_eq!(stages, expected);
    assert_eq!(taken, ["disk"]);
    assert!(work.read("k.cubin") == bytes);
    // Another kernel.
    assert_compiled(&compile(&KERNEL.replace("math.sin", "math.cos")));
    assert!(work.read("k.cubin") != bytes);
}

#[test]
fn options_targets_and_libraries_are_part_of_what_is_asked() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    assert_compiled(&compile(&work, "k.mlir", "k", &["--target", "sm_90"]).quiet());
    assert_known(&compile(&work, "k.mlir", "k", &["--target", "sm_90", "--time-limit", "100"]).quiet());
    for more in [
        &["--target", "sm_80"][..],
        &["--target", "sm_90", "-O1"],
        &["--target", "sm_90", "--fast"],
        &["--target", "sm_90", "--emit", "object"],
        &["--target", "sm_90", "--debug", "line-tables"],
    ] {
        let run = compile(&work, "k.mlir", "k", more).quiet();
        assert!(stages(&run).0.contains(&"ptx-to-cubin".to_owned()), "{more:?}");
    }
    // The library's bytes count, not its name.
    let library = |factor: u32| {
        format!(
            "target triple = \"nvptx64-nvidia-cuda\"
             define i32 @scale(i32 %x) {{ %r = mul i32 %x, {factor} ret i32 %r }}"
        )
    };
    work.write(
        "user.mlir",
        "gpu.module @m {
           func.func private @scale(i32) -> i32
           gpu.func @k(%p: memref<8xi32>, %v: i32) kernel {
             %i = gpu.thread_id x
             %w = func.call @scale(%v) : (i32) -> i32
             memref.store %w, %p[%i] : memref<8xi32>
             gpu.return } }",
    );
    let linked = || compile(&work, "user.mlir", "k", &["--target", "sm_90", "--link", "l.ll"]).quiet();
    work.write("l.ll", library(3));
    assert_compiled(&linked());
    let three = work.read("k");
    work.write("l.ll", library(5));
    assert_compiled(&linked());
    assert!(work.read("k") != three);
    work.write("l.ll", library(3));
    assert_known(&linked());
    assert!(work.read("k") == three);
}

#[test]
fn a_library_that_the_input_names_counts_by_its_bytes() {
    let work = Workshop::new();
    work.write(
        "k.mlir",
        r#"gpu.module @m [#nvvm.target<chip = "sm_90", link = ["l.ll"]>] {
           func.func private @scale(i32) -> i32
           gpu.func @k(%p: memref<8xi32>, %v: i32) kernel {
             %i = gpu.thread_id x
             %w = func.call @scale(%v) : (i32) -> i32
             memref.store %w, %p[%i] : memref<8xi32>
             gpu.return } }"#,
    );
    let with = |factor: u32| {
        work.write(
            "l.ll",
            format!(
                "target triple = \"nvptx64-nvidia-cuda\"
                 define i32 @scale(i32 %x) {{ %r = mul i32 %x, {factor} ret i32 %r }}"
            ),
        );
        let run = compile(&work, "k.mlir", "k", &[]).quiet();
        (stages(&run).1, work.read("k"))
    };
    let (taken, three) = with(3);
    assert_eq!(taken, Vec::<String>::new());
    let (taken, five) = with(5);
    assert_eq!(taken, Vec::<String>::new());
    assert!(five != three);
    assert_eq!(with(3), (vec!["disk".to_owned()], three));
}

/// The toolkit of the tests with another `ptxas`, which does what the real one does.
fn toolkit_with_another_ptxas(work: &Workshop, comment: &str) {
    let real = cuda();
    let script = format!(
        "#!/bin/sh\n# {comment}\nexec {} \"$@\"\n",
        real.join("bin/ptxas").display()
    );
    work.write("cuda/bin/ptxas", script);
    fs::set_permissions(work.path("cuda/bin/ptxas"), fs::Permissions::from_mode(0o755)).expect("permitted");
    if !work.path("cuda/nvvm").exists() {
        std::os::unix::fs::symlink(real.join("nvvm"), work.path("cuda/nvvm")).expect("linked");
    }
}

#[test]
fn a_tool_counts_by_its_content() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    let run = || compile(&work, "k.mlir", "k", &["--target", "sm_90", "--cuda", "cuda"]).quiet();
    toolkit_with_another_ptxas(&work, "one");
    assert_compiled(&run());
    assert_known(&run());
    toolkit_with_another_ptxas(&work, "two");
    assert_compiled(&run());
    toolkit_with_another_ptxas(&work, "one");
    assert_known(&run());
}

#[test]
fn a_damaged_entry_is_a_warning_and_a_compilation() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    let run = || compile(&work, "k.mlir", "k", &["--target", "sm_90"]);
    assert_compiled(&run().quiet());
    let bytes = work.read("k");
    for folder in work.files("cache/results/1") {
        for entry in work.files(&format!("cache/results/1/{folder}")) {
            let path = work.path(&format!("cache/results/1/{folder}/{entry}"));
            let mut content = fs::read(&path).expect("an entry");
            let last = content.len() - 1;
            content[last] ^= 1;
            fs::write(&path, content).expect("written");
        }
    }
    let damaged = run().failed(0).says(&[
        "warning: ",
        "an entry of the cache was damaged and is made anew: ",
        "its content has changed since it was written",
    ]);
    assert_compiled(&damaged);
    assert!(work.read("k") == bytes);
    assert_known(&run().quiet());
}

#[test]
fn a_cache_that_cannot_be_used_is_a_warning_and_a_compilation() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    fs::create_dir_all(work.path("cache")).expect("made");
    // Where the directory should be.
    work.write("cache/results", "");
    let run = compile(&work, "k.mlir", "k", &["--target", "sm_90"]).failed(0).says(&[
        "warning: ",
        "the cache is not used: ",
        "name another directory, or switch the cache off",
    ]);
    assert_compiled(&run);
    assert!(work.path("k").exists());
}

#[test]
fn verifying_compiles_and_compares() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    let run = |more: &[&str]| {
        let arguments = [&["--target", "sm_90,gfx942", "--emit", "binary"], more].concat();
        compile(&work, "k.mlir", "out/", &arguments).quiet()
    };
    assert_compiled(&run(&["--cache-verify"]));
    assert_compiled(&run(&["--cache-verify"]));
    assert_known(&run(&[]));
}

#[test]
fn nothing_is_kept_when_nothing_is_to_be_kept() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    for _ in 0..2 {
        assert_compiled(&compile(&work, "k.mlir", "k", &["--target", "sm_90", "--no-cache"]).quiet());
    }
    assert!(!work.path("cache/results").exists());
    // The files of the stages are of a compilation, not of a cache.
    compile(&work, "k.mlir", "k", &["--target", "sm_90"]).quiet();
    let dumped = compile(&work, "k.mlir", "k", &["--target", "sm_90", "--dump-dir", "stages"]).quiet();
    assert!(stages(&dumped).0.contains(&"lower".to_owned()));
    assert!(work.files("stages").len() >= 5);
}

#[test]
fn the_cache_is_shown_bounded_and_emptied() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    let show = |action: &str| {
        let run = work.run(&["cache", action, "--cache-dir", "cache"]).quiet();
        run.output()
    };
    assert_eq!(show("show"), "cache/results holds 0 results in 0 bytes\n");
    compile(&work, "k.mlir", "k", &["--target", "sm_90"]).quiet();
    // The input, the module and the PTX.
    assert!(
        show("show").starts_with("cache/results holds 3 results in "),
        "{}",
        show("show")
    );
    assert!(show("clear").starts_with("cache/results held 3 results in "));
    assert_eq!(show("show"), "cache/results holds 0 results in 0 bytes\n");
    compile(&work, "k.mlir", "k", &["--target", "sm_90", "--cache-size", "1K"]).quiet();
    assert_eq!(show("show"), "cache/results holds 0 results in 0 bytes\n");
    work.run(&["compile", "k.mlir", "--cache-size", "1.5G"])
        .failed(2)
        .says(&["expected a number of bytes, such as 1000000, 500M or 2G"]);
}

#[test]
fn eight_processes_share_a_cache() {
    let work = Workshop::new();
    let names = ["saxpy.mlir", "transpose.mlir", "softmax.mlir", "histogram.mlir"];
    for name in names {
        let alone = [
            "compile",
            &example(name),
            "-t",
            "sm_80",
            "--ptx-compiler",
            "ptxas",
            "-o",
            "alone/",
        ];
        work.run(&alone).quiet();
    }
    std::thread::scope(|scope| {
        for process in 0..8 {
            let work = &work;
            scope.spawn(move || {
                for name in names {
                    let folder = format!("shared{process}/");
                    compile(work, &example(name), &folder, &["-t", "sm_80"]).quiet();
                }
            });
        }
    });
    for file in work.files("alone") {
        for process in 0..8 {
            let shared = work.read(&format!("shared{process}/{file}"));
            assert!(shared == work.read(&format!("alone/{file}")), "{process} {file}");
        }
    }
    assert!(Path::new(&work.path("cache/results/1")).exists());
}

#[test]
fn a_disk_that_is_full_costs_the_entries_alone() {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    compile(&work, "k.mlir", "k", &["--target", "sm_90", "--no-cache"]).quiet();
    let whole = work.read("k");
    // No file may be larger than the cubin, as on a disk with so much room; an entry holds more than its cubin. (dash counts
    // in blocks of 512 bytes.)
    let blocks = whole.len().div_ceil(512);
    let limited = work
        .command(&[
            "compile",
            "k.mlir",
            "-o",
            "k2",
            "--cache-dir",
            "cache",
            "--ptx-compiler",
            "ptxas",
            "-t",
            "sm_90",
        ])
        .get_args()
        .map(|argument| format!(" '{}'", argument.to_string_lossy()))
        .collect::<String>();
    let script = format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec '{}'{limited}",
        env!("CARGO_BIN_EXE_gpulower")
    );
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(work.path(""))
        .env("CUDA_HOME", cuda())
        .env_remove("GPULOWER_CACHE")
        .output()
        .expect("the shell runs");
    let messages = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{messages}");
    assert!(
        messages.contains("warning: ") && messages.contains("a result could not be kept in the cache: "),
        "{messages}"
    );
    assert!(work.read("k2") == whole);
    for folder in work.files("cache/results/1") {
        assert_eq!(
            work.files(&format!("cache/results/1/{folder}")),
            Vec::<String>::new(),
            "nothing is left behind"
        );
    }
}
