//! The same input, options and tools give the same bytes, wherever and however the program runs.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path, process::Stdio};

use super::support::{Workshop, example};

/// What is compiled: the examples that both vendors have, a container of each kind, and an exported program.
const JOBS: &[(&str, &[&str])] = &[
    ("softmax.mlir", &["-t", "sm_80,sm_90,gfx942", "-e", "binary"]),
    ("histogram.mlir", &["-t", "sm_90", "-e", "ptx"]),
    (
        "layer_norm.mlir",
        &["-t", "sm_80,sm_90", "-e", "fatbin", "--compress", "zstd"],
    ),
    ("gelu.mlir", &["-t", "gfx90a,gfx1100", "-e", "bundle"]),
    ("reduction.mlir", &["-t", "sm_90,gfx942", "-e", "llvm"]),
    (
        "saxpy.mlir",
        &["-t", "gfx942", "-e", "object", "--debug", "line-tables"],
    ),
];

/// One way to run the program.
struct Way {
    name: &'static str,
    /// Below the workshop.
    directory: &'static str,
    /// The examples, absolute or seen from the directory.
    inputs: &'static str,
    threads: &'static str,
    environment: &'static [(&'static str, &'static str)],
    umask: &'static str,
}

const WAY: Way = Way {
    name: "plain",
    directory: "one",
    inputs: "../examples",
    threads: "1",
    environment: &[],
    umask: "022",
};

const WAYS: &[Way] = &[
    WAY,
    Way {
        name: "once more",
        ..WAY
    },
    Way {
        name: "two threads",
        threads: "2",
        ..WAY
    },
    Way {
        name: "eight threads",
        threads: "8",
        ..WAY
    },
    Way {
        name: "another directory",
        directory: "another/longer/name",
        inputs: "../../../examples",
        ..WAY
    },
    Way {
        name: "another language",
        environment: &[("LANG", "tr_TR.UTF-8"), ("LC_ALL", "tr_TR.UTF-8")],
        ..WAY
    },
    Way {
        name: "another time zone",
        environment: &[("TZ", "Pacific/Chatham")],
        ..WAY
    },
    Way {
        name: "a given clock",
        environment: &[("SOURCE_DATE_EPOCH", "1")],
        ..WAY
    },
    Way {
        name: "another home",
        environment: &[("HOME", "/nonexistent"), ("USER", "somebody")],
        ..WAY
    },
    Way {
        name: "another umask",
        umask: "077",
        ..WAY
    },
];

/// The artifacts of one way, by their names.
fn artifacts(work: &Workshop, way: &Way) -> BTreeMap<String, Vec<u8>> {
    let directory = work.path(way.directory);
    fs::create_dir_all(&directory).expect("a directory");
    let mut made = BTreeMap::new();
    for (index, (example, arguments)) in JOBS.iter().enumerate() {
        // The line tables name the input as it was given: that is the same in all ways but where the directory differs.
        let input = format!("{}/{example}", way.inputs);
        let output = format!("out{index}/");
        let mut words = vec!["compile", &input, "-j", way.threads, "-o", &output];
        words.extend(*arguments);
        let map = format!("{}/=", way.inputs);
        if arguments.contains(&"--debug") {
            words.extend(["--debug-prefix-map", &map]);
        }
        run(work, way, &words);
        let folder = directory.join(&output);
        for entry in fs::read_dir(&folder).expect("artifacts") {
            let entry = entry.expect("an artifact");
            let name = format!("{output}{}", entry.file_name().to_string_lossy());
            made.insert(name, fs::read(entry.path()).expect("an artifact"));
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
    let input = format!("{}/app.mlir", way.inputs);
    let words = [
        "export",
        &input,
        "-t",
        "sm_90",
        "--finish-with",
        "clang-19,cuda-13.0",
        "-j",
        way.threads,
        "-o",
        "app.o",
    ];
    run(work, way, &words);
    made.insert(
        "app.o".to_owned(),
        fs::read(directory.join("app.o")).expect("the export"),
    );
    made
}

fn run(work: &Workshop, way: &Way, words: &[&str]) {
    let program = work.command(words);
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "umask $0; exec \"$@\"", way.umask]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env_remove("SOURCE_DATE_EPOCH")
        .envs(way.environment.iter().copied());
    let output = command
        .current_dir(work.path(way.directory))
        .stdin(Stdio::null())
        .output()
        .expect("the shell runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words:?}: {said}", way.name);
}

#[test]
fn ten_ways_give_the_same_bytes() {
    let work = Workshop::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    symlink(examples, work.path("examples")).expect("a link");
    let first = artifacts(&work, &WAYS[0]);
    assert_eq!(first.len(), 3 + 1 + 1 + 1 + 2 + 1 + 1, "{:?}", first.keys());
    for way in &WAYS[1..] {
        let again = artifacts(&work, way);
        assert!(first.keys().eq(again.keys()), "{}: {:?}", way.name, again.keys());
        for (name, bytes) in &first {
            assert!(again[name] == *bytes, "{}: {name} differs", way.name);
        }
    }
}

/// Whether these bytes are somewhere in those.
fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn paths_are_in_debug_info_alone_and_can_be_mapped() {
    let work = Workshop::new();
    work.write(
        "secret-place/k.mlir",
        fs::read(example("saxpy.mlir")).expect("the example"),
    );
    let input = work.path("secret-place/k.mlir").display().to_string();
    let prefix = format!("{}=/src", work.path("secret-place").display());
    let compile = |target: &str, emit: &str, more: &[&str]| {
        let mut words = vec!["compile", &input, "-t", target, "-e", emit, "-o", "k"];
        words.extend(more);
        work.run(&words).quiet();
        work.read("k")
    };
    for (target, emit) in [
        ("sm_90", "ptx"),
        ("sm_90", "cubin"),
        ("sm_90", "llvm"),
        ("sm_90", "bitcode"),
        ("sm_90", "mlir"),
        ("gfx942", "asm"),
        ("gfx942", "object"),
        ("gfx942", "hsaco"),
    ] {
        let plain = compile(target, emit, &[]);
        assert!(!contains(&plain, "secret-place"), "{target} {emit}");
        if emit == "mlir" {
            continue;
        }
        let debug = compile(target, emit, &["--debug", "line-tables"]);
        assert!(
            contains(&debug, "secret-place"),
            "{target} {emit}: debug info names its source"
        );
        let mapped = compile(target, emit, &["--debug", "line-tables", "--debug-prefix-map", &prefix]);
        assert!(!contains(&mapped, "secret-place"), "{target} {emit}");
        if matches!(emit, "ptx" | "llvm" | "asm") {
            let text = String::from_utf8_lossy(&mapped).into_owned();
            assert!(text.contains("/src"), "{target} {emit}:\n{text}");
        }
    }
}

#[test]
fn the_last_prefix_that_fits_counts_in_llvm_ir_too() {
    let work = Workshop::new();
    work.write(
        "k.ll",
        "define ptx_kernel void @k(ptr %p) !dbg !4 { store i32 1, ptr %p, !dbg !5 ret void, !dbg !5 }
         !llvm.dbg.cu = !{!0}
         !llvm.module.flags = !{!2}
         !0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
         !1 = !DIFile(filename: \"a.cu\", directory: \"/home/me/src\")
         !2 = !{i32 2, !\"Debug Info Version\", i32 3}
         !3 = !DISubroutineType(types: !{null})
         !4 = distinct !DISubprogram(name: \"k\", file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
         !5 = !DILocation(line: 2, scope: !4)\n",
    );
    let arguments = [
        "compile",
        "k.ll",
        "-t",
        "sm_90",
        "-e",
        "llvm",
        "--debug",
        "line-tables",
        "-o",
        "k.out.ll",
    ];
    let maps = [
        "--debug-prefix-map",
        "/home/me=/first",
        "--debug-prefix-map",
        "/home=/second,/nowhere=/third",
    ];
    work.run(&[&arguments[..], &maps[..]].concat()).quiet();
    let text = work.text("k.out.ll");
    assert!(text.contains("directory: \"/second/me/src\""), "{text}");
    assert!(!text.contains("/first") && !text.contains("/home"), "{text}");
}
