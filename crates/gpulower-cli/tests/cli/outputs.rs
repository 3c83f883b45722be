//! What cannot be written, or not be compiled as asked, is refused before anything is compiled; and everything is written, or
//! nothing.
//!
//! That nothing was compiled is seen from a listener: `--dump-dir` writes a file for each stage that was reached.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::{Command, Stdio},
};

use super::support::{Run, Workshop, example};

/// Kernels of these names, each in a module of the name.
fn modules(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("gpu.module @{name} {{ gpu.func @k_{name}() kernel {{ gpu.return }} }}\n"))
        .collect()
}

/// Compiles in vain: the message is there, no stage was reached, and every file is what it was.
#[track_caller]
fn refused_at_once(work: &Workshop, arguments: &[&str], status: i32, messages: &[&str]) -> Run {
    let before = contents(work);
    let dump = tempfile::tempdir().expect("a directory");
    let dump_dir = format!("--dump-dir={}", dump.path().display());
    let all: Vec<&str> = ["compile"]
        .iter()
        .chain(arguments)
        .copied()
        .chain([&*dump_dir])
        .collect();
    let run = work.run(&all).failed(status).says(messages);
    let stages = fs::read_dir(dump.path()).expect("the directory").count();
    assert_eq!(stages, 0, "something was compiled before {}", run.stderr);
    assert_eq!(contents(work), before);
    run
}

/// The files and what is in them.
fn contents(work: &Workshop) -> Vec<(String, Option<Vec<u8>>)> {
    let names = work.files("");
    let read = |name: String| {
        let bytes = fs::read(work.path(&name)).ok();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn many_modules_for_one_file() {
    let work = Workshop::new();
    let names: Vec<String> = (0..64).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    work.write("k.mlir", modules(&names));
    let message = "64 artifacts do not fit into ";
    refused_at_once(
        &work,
        &["k.mlir", "-t", "sm_90", "-o", "k.cubin"],
        2,
        &[
            message,
            "k.cubin: m0.sm_90.cubin, m1.sm_90.cubin, m2.sm_90.cubin and 61 more",
        ],
    );
    let to_stdout = ["k.mlir", "-t", "sm_90", "-o", "-"];
    refused_at_once(&work, &to_stdout, 2, &[message, "the standard output"]);
}

#[test]
fn places_that_cannot_be_written() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    work.write("file", "mine");
    work.write("folder/file", "mine");
    std::os::unix::fs::symlink("loop", work.path("loop")).expect("a link");
    for (output, message) in [
        ("file/", "cannot write file/: Not a directory"),
        ("file/k.cubin", "cannot write file/k.cubin: "),
        ("none/k.cubin", "cannot write none/k.cubin: No such file or directory"),
        ("/proc/none/", "cannot write /proc/none/: "),
        ("/proc/k.cubin", "cannot write /proc/k.cubin: "),
        ("loop", "cannot write loop: Too many levels of symbolic links"),
        ("loop/", "cannot write loop/: "),
        (
            "loop/k.cubin",
            "cannot write loop/k.cubin: Too many levels of symbolic links",
        ),
    ] {
        refused_at_once(
            &work,
            &["k.mlir", "-t", "sm_90", "-o", output],
            1,
            &["error: output: ", message],
        );
    }
    // Artifacts go to a directory; one of their names is taken by another.
    work.write("folder/m.sm_90.cubin/x", "");
    let taken = ["k.mlir", "-t", "sm_90", "-o", "folder"];
    refused_at_once(&work, &taken, 1, &["cannot write folder/m.sm_90.cubin: is a directory"]);
    let report = [
        "k.mlir",
        "-t",
        "sm_90",
        "-o",
        "k.cubin",
        "--report=json",
        "--report-file",
    ];
    for (file, message) in [
        ("none/r.json", "cannot write none/r.json: "),
        ("folder", "cannot write folder: is a directory"),
        ("new/", "cannot write new/: is a directory"),
        ("loop", "cannot write loop: Too many levels of symbolic links"),
    ] {
        refused_at_once(&work, &[&report[..], &[file]].concat(), 1, &[message]);
        let trace = format!("--trace={file}");
        let arguments = ["k.mlir", "-t", "sm_90", "-o", "k.cubin", &trace];
        refused_at_once(&work, &arguments, 1, &[message]);
    }
}

/// Whoever runs the tests as root is not refused anything by permissions, unless that is given up.
#[test]
fn a_folder_that_must_not_be_written_to() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    fs::create_dir(work.path("theirs")).expect("a folder");
    let mode = |mode| fs::set_permissions(work.path("theirs"), fs::Permissions::from_mode(mode)).expect("permissions");
    mode(0o555);
    let run = |arguments: &[&str]| {
        let plain = work.command(&[&["compile", "k.mlir", "-t", "sm_90", "-e", "ptx"], arguments].concat());
        let mut command = match fs::metadata("/proc/self").expect("/proc").uid() {
            0 => {
                let mut command = Command::new("setpriv");
                command
                    .args(["--bounding-set=-dac_override", "--"])
                    .arg(plain.get_program());
                command
            }
            _ => Command::new(plain.get_program()),
        };
        command
            .args(plain.get_args())
            .current_dir(work.path(""))
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Run::of(command.stdin(Stdio::null()).output().expect("it runs"))
    };
    for (arguments, place) in [
        (&["-o", "theirs/k.ptx"][..], "theirs/k.ptx"),
        (&["-o", "theirs"], "theirs"),
        (&["-o", "theirs/new/"], "theirs/new/"),
        (
            &["-o", "k.ptx", "--report=json", "--report-file=theirs/r.json"],
            "theirs/r.json",
        ),
        (&["-o", "k.ptx", "--trace=theirs/t.json"], "theirs/t.json"),
        (&["-o", "k.ptx", "--depfile=theirs/k.d"], "theirs/k.d"),
        (&["-o", "k.ptx", "--dump-dir=theirs/dump"], "theirs/dump"),
    ] {
        run(arguments).failed(1).says(&[place, "Permission denied"]);
        assert_eq!(
            (work.files(""), work.files("theirs")),
            (vec!["k.mlir".into(), "theirs".into()], vec![])
        );
    }
    mode(0o755);
    assert_eq!(run(&["-o", "theirs/k.ptx"]).status, 0);
}

#[test]
fn outputs_that_are_inputs_or_each_other() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    let base = ["k.mlir", "-t", "sm_90"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    refused_at_once(&work, &with(&["-o", "k.mlir"]), 2, &["k.mlir is an input"]);
    let report = with(&["-o", "k.cubin", "--report=json", "--report-file", "k.mlir"]);
    refused_at_once(&work, &report, 2, &["k.mlir is an input"]);
    let report = with(&["-o", "k.cubin", "--report=json", "--report-file", "./k.cubin"]);
    refused_at_once(&work, &report, 2, &["two outputs would both be ./k.cubin"]);
    let report = with(&["-o", "./", "--report=json", "--report-file", "m.sm_90.cubin"]);
    refused_at_once(&work, &report, 2, &["two outputs would both be m.sm_90.cubin"]);
    let depfile = with(&["-o", "k.cubin", "-MD", "-MF", "k.cubin"]);
    refused_at_once(&work, &depfile, 2, &["two outputs would both be k.cubin"]);
    std::os::unix::fs::symlink("k.mlir", work.path("link")).expect("a link");
    refused_at_once(&work, &with(&["-o", "link"]), 2, &["link is an input"]);
}

#[test]
fn names_that_collide() {
    let work = Workshop::new();
    work.write(
        "k.mlir",
        modules(&["\"a b\"", "\"a/b\""])
            .replace("@k_\"a b\"", "@k1")
            .replace("@k_\"a/b\"", "@k2"),
    );
    let arguments = ["k.mlir", "-t", "sm_90", "-o", "out/"];
    refused_at_once(
        &work,
        &arguments,
        2,
        &["two outputs would both be out/a_b.sm_90.cubin", "rename a module"],
    );
    work.write("one/k.mlir", modules(&["m"]));
    work.write("two/k.mlir", modules(&["m"]));
    let arguments = ["one/k.mlir", "two/k.mlir", "-t", "sm_90", "-o", "out/"];
    refused_at_once(&work, &arguments, 2, &["two outputs would both be out/k.m.sm_90.cubin"]);
}

#[test]
fn a_wrong_option_is_one_message_before_anything() {
    let work = Workshop::new();
    let names: Vec<String> = (0..16).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    work.write("k.mlir", modules(&names));
    for (arguments, message) in [
        (
            &["-t", "gfx942,sm_80,sm_90", "--wave-size=64"][..],
            "error: plan: option 'wave-size' cannot be honoured for sm_80, sm_90: ",
        ),
        (
            &["-t", "sm_90", "--emit", "hsaco"],
            "error: plan, target sm_90: hsaco does not exist for sm_90",
        ),
        (
            &["-t", "sm_80,sm_90", "--memory-limit=512"],
            "'memory-limit' cannot be honoured for sm_80, sm_90",
        ),
        (
            &["-t", "sm_90,sm_70", "--emit", "cubin"],
            "error: ptx-to-cubin, target sm_70: no PTX compiler at hand knows sm_70",
        ),
        (
            &["-t", "sm_90", "--cuda", "."],
            "error: ptx-to-cubin, target sm_90: no PTX compiler could be used for sm_90",
        ),
        (&[], "error: plan: no target"),
    ] {
        let all = [&["k.mlir", "-o", "out/"], arguments].concat();
        let run = refused_at_once(&work, &all, 1, &[message]);
        let errors = run.stderr.lines().filter(|line| line.contains("error: ")).count();
        assert_eq!(errors, 1, "{}", run.stderr);
    }
}

#[test]
fn a_closed_standard_output() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    let run = |arguments: &str| {
        let script = format!("exec {} {arguments} >&-", env!("CARGO_BIN_EXE_gpulower"));
        let mut command = work.command(&[]);
        let environment: Vec<_> = command
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(work.path(""));
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Run::of(command.stdin(Stdio::null()).output().expect("sh"))
    };
    let message = "error: output: cannot write to the standard output: it is closed";
    for arguments in [
        "compile k.mlir -t sm_90 -e ptx -o -",
        "compile k.mlir -t sm_90 -o k.cubin --report=json",
        "compile k.mlir -t sm_90 --dry-run",
        "targets",
        "--help",
        "--version",
        "completions bash",
    ] {
        run(arguments).failed(1).says(&[message]);
    }
    assert_eq!(work.files(""), ["k.mlir"]);
    // What writes nothing there does not mind.
    assert_eq!(run("compile k.mlir -t sm_90 -e ptx -o k.ptx").status, 0);
}

#[test]
fn a_full_disk() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    let message = "No space left on device";
    for arguments in [
        &["compile", "k.mlir", "-t", "sm_90", "-e", "ptx", "-o", "-"][..],
        &[
            "compile",
            "k.mlir",
            "-t",
            "sm_90",
            "-e",
            "ptx",
            "-o",
            "k.ptx",
            "--report=json",
        ],
        &["compile", "--help"],
        &["targets"],
    ] {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = work.command(arguments).stdin(Stdio::null()).stdout(full).output();
        Run::of(output.expect("the program runs")).failed(1).says(&[message]);
    }
    for arguments in [
        &["-o", "/dev/full"][..],
        &["-o", "k.ptx", "--report=json", "--report-file=/dev/full"],
        &["-o", "k.ptx", "--depfile=/dev/full"],
    ] {
        let all = [&["compile", "k.mlir", "-t", "sm_90", "-e", "ptx"], arguments].concat();
        work.run(&all).failed(1).says(&[message]);
    }
    assert_eq!(work.files(""), ["k.mlir"], "all or nothing");
    // A trace tells of the writing, too: it comes last.
    work.run(&[
        "compile",
        "k.mlir",
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
        "--trace=/dev/full",
    ])
    .failed(1)
    .says(&[message]);
    assert_eq!(work.files(""), ["k.mlir", "k.ptx"]);
}

#[test]
fn a_report_that_cannot_be_written_costs_nothing_that_was_there() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    work.write("k.ptx", "mine");
    let arguments = [
        "compile",
        "k.mlir",
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
        "--report=table",
    ];
    work.run(&[&arguments[..], &["--report-file=/dev/full"]].concat())
        .failed(1);
    assert_eq!(work.text("k.ptx"), "mine");
}

#[test]
fn a_dash_is_the_standard_output() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    let report = [
        "compile",
        "k.mlir",
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
        "--report=json",
        "--report-file=-",
    ];
    assert!(work.run(&report).quiet().json()["artifacts"].is_array());
    work.run(&["compile", "k.mlir", "-t", "sm_90", "-o", "k.cubin"]).quiet();
    let packed = work.run(&["pack", "k.cubin", "-e", "fatbin", "-o", "-"]).quiet();
    assert!(packed.stdout.starts_with(&[0x50, 0xed, 0x55, 0xba]));
    let ptx = ["compile", "k.mlir", "-t", "sm_90", "-e", "ptx", "-o", "k.ptx"];
    let with = |more: &[&'static str]| [&ptx[..], more].concat();
    for dependencies in [&["--depfile=-"][..], &["-MD", "-MF", "-"]] {
        let rule = work.run(&with(dependencies)).quiet().output();
        assert!(rule.starts_with("k.ptx: \\\n  k.mlir"), "{rule}");
    }
    assert!(work.run(&with(&["--trace", "-"])).quiet().json()["traceEvents"].is_array());
    let page = work.run(&["man", "-o", "-"]).quiet().output();
    assert!(page.contains(".TH gpulower"));
    for (arguments, message) in [
        (
            &["--depfile=-", "--report=json"][..],
            "the report and the dependencies cannot both go to the standard output",
        ),
        (
            &["--depfile=-", "-o", "-"],
            "the artifact and the dependencies cannot both go to the standard output",
        ),
        (
            &["--report=json", "--trace=-"],
            "the trace and something else cannot both go to the standard output",
        ),
        (&["--dump-dir=-"], "--dump-dir - is no folder"),
    ] {
        let arguments = [&["compile", "k.mlir", "-t", "sm_90", "-e", "ptx"], arguments].concat();
        work.run(&arguments).failed(2).says(&[message]);
    }
    assert_eq!(work.files(""), ["k.cubin", "k.mlir", "k.ptx"]);
}

#[test]
fn other_commands_look_at_their_outputs_first() {
    let work = Workshop::new();
    // Nothing of this would be read.
    work.write("k.ptx", "no PTX");
    work.write("folder/file", "");
    for (output, status, message) in [
        ("k.ptx", 2, "k.ptx is an input"),
        ("none/k", 1, "cannot write none/k: No such file or directory"),
        ("folder", 2, "folder is a directory: name a file with -o"),
        ("new/", 2, "new/ is a directory: name a file with -o"),
    ] {
        for command in [
            &["link", "k.ptx", "-t", "sm_90"][..],
            &["pack", "k.ptx", "-e", "fatbin"],
            &["export", "k.ptx", "-t", "sm_90", "--emit", "self"],
        ] {
            work.run(&[command, &["-o", output]].concat())
                .failed(status)
                .says(&[message]);
        }
    }
    assert_eq!(work.text("k.ptx"), "no PTX");
}

#[test]
fn what_can_be_made_is_made_when_asked_to_keep_going() {
    let work = Workshop::new();
    let good = example("saxpy.mlir");
    let bad = example("user_library.mlir");
    let arguments = [
        "compile",
        &good,
        &bad,
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "out/",
        "--report=json",
    ];
    work.run(&arguments).failed(1);
    assert!(work.files("").is_empty(), "all or nothing");
    let run = work.run(&[&arguments[..], &["--keep-going"]].concat()).failed(1);
    let run = run.says(&["error: link, module user_library, target sm_90: unresolved symbol"]);
    assert_eq!(work.files("out"), ["saxpy.sm_90.ptx"]);
    let report = run.json();
    assert_eq!(report["artifacts"][0]["path"], "out/saxpy.sm_90.ptx");
    assert_eq!(report["errors"][0]["code"], "E0401");
    // A target that has no such option costs the others nothing, either.
    let one_target = [
        "compile",
        &good,
        "-t",
        "gfx942,sm_90",
        "--wave-size=64",
        "-o",
        "two/",
        "-k",
    ];
    work.run(&one_target).failed(1).says(&["cannot be honoured for sm_90"]);
    assert_eq!(work.files("two"), ["saxpy.gfx942.hsaco"]);
}

/// The same bytes whether there is a place to keep things or not: nvPTXCompiler is used in any case.
#[test]
fn bytes_do_not_depend_on_a_home() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    work.write("taken", "");
    let places = [None, Some(work.path("cache")), Some(work.path("taken/cache"))];
    let images: Vec<(Vec<u8>, String)> = places
        .iter()
        .map(|place| {
            let arguments = [
                "compile",
                &saxpy,
                "-t",
                "sm_90",
                "-e",
                "fatbin",
                "-o",
                "k.fatbin",
                "--report=json",
            ];
            let mut command = work.command(&arguments);
            match place {
                Some(place) => command.env("XDG_CACHE_HOME", place),
                None => command.env_remove("XDG_CACHE_HOME").env_remove("HOME"),
            };
            let run = Run::of(command.stdin(Stdio::null()).output().expect("the program runs")).quiet();
            let tool = run.json()["artifacts"][0]["images"][0]["tool"].to_string();
            (work.read("k.fatbin"), tool)
        })
        .collect();
    assert!(images[0].1.contains("nvptxcompiler"), "{}", images[0].1);
    assert!(images.iter().all(|image| *image == images[0]));
}

/// A name that no file can have, in a folder that is there, and in one that is not.
#[test]
fn names_that_are_too_long() {
    let work = Workshop::new();
    let name = "n".repeat(300);
    work.write("k.mlir", modules(&["m"]));
    let report = format!("--report-file=new/{name}");
    let folder = format!("new/{name}/");
    for output in [
        &["-o", &name][..],
        &["-o", "new/", "--report=json", &report],
        &["-o", &folder],
    ] {
        let arguments = [&["k.mlir", "-t", "sm_90", "-e", "ptx"][..], output].concat();
        refused_at_once(&work, &arguments, 1, &["cannot write ", "File name too long"]);
    }
}

/// What is called like an output somewhere else is no matter of a folder that is not there yet.
#[test]
fn a_new_folder_is_not_confused_with_this_one() {
    let work = Workshop::new();
    work.write("k.mlir", modules(&["m"]));
    std::os::unix::fs::symlink("m.sm_90.ptx", work.path("m.sm_90.ptx")).expect("a link");
    work.run(&["compile", "k.mlir", "-t", "sm_90", "-e", "ptx", "-o", "new/"])
        .quiet();
    assert_eq!(work.files("new"), ["m.sm_90.ptx"]);
}
