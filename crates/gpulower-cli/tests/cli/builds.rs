//! At home in a build and at a terminal: several inputs, dependencies, files of arguments, nvcc's spellings, completions.

use std::process::{Command, Stdio};

use super::support::{Run, Workshop, example};

#[test]
fn several_inputs() {
    let work = Workshop::new();
    let (saxpy, gelu) = (example("saxpy.mlir"), example("gelu.mlir"));
    work.write(
        "both.mlir",
        "gpu.module @a { gpu.func @k() kernel { gpu.return } }\ngpu.module @b { gpu.func @k() kernel { gpu.return } }",
    );
    work.run(&[
        "compile",
        &saxpy,
        &gelu,
        "both.mlir",
        "-t",
        "sm_90,gfx942",
        "-o",
        "out/",
    ])
    .quiet();
    let files = [
        "both.a.gfx942.hsaco",
        "both.a.sm_90.cubin",
        "both.b.gfx942.hsaco",
        "both.b.sm_90.cubin",
        "gelu.gfx942.hsaco",
        "gelu.sm_90.cubin",
        "saxpy.gfx942.hsaco",
        "saxpy.sm_90.cubin",
    ];
    assert_eq!(work.files("out"), files);
    work.run(&["compile", &saxpy, &gelu, "-t", "sm_90", "-o", "k.cubin"])
        .failed(2)
        .says(&["2 artifacts do not fit into k.cubin: of "]);
    work.run(&["compile", &saxpy, &saxpy, "-t", "sm_90", "-o", "out/"])
        .failed(2)
        .says(&["is named twice"]);
    // A message is about the right one.
    work.write("bad.mlir", "gpu.module @m {\n  gpu.func @k( kernel {\n");
    work.run(&["compile", &saxpy, "bad.mlir", "-t", "sm_90", "-o", "none/"])
        .failed(1)
        .says(&[
            "bad.mlir:2:15: error: input: ",
            "  gpu.func @k( kernel {\n              ^",
        ]);
    assert!(!work.path("none").exists());
}

#[test]
fn several_inputs_become_one_image() {
    let work = Workshop::new();
    work.write("a.mlir", "gpu.module @a { func.func private @f(i32) -> i32\n gpu.func @k(%p: memref<1xi32>) kernel { %0 = arith.constant 0 : index\n %1 = arith.constant 1 : i32\n %2 = func.call @f(%1) : (i32) -> i32\n memref.store %2, %p[%0] : memref<1xi32>\n gpu.return } }");
    work.write(
        "b.mlir",
        "gpu.module @b { func.func @f(%x: i32) -> i32 { %0 = arith.addi %x, %x : i32\n return %0 : i32 } }",
    );
    work.run(&[
        "compile",
        "a.mlir",
        "b.mlir",
        "--device-link",
        "-t",
        "sm_90",
        "-o",
        "k.cubin",
    ])
    .quiet();
    assert!(work.read("k.cubin").starts_with(b"\x7fELF"));
}

/// As ninja and make read it: a rule for what was made, with the library and the toolkit.
#[test]
fn dependencies() {
    let work = Workshop::new();
    let input = example("user_library.mlir");
    let library = example("lib/scale_and_shift.ll");
    let compile = ["compile", &input, "-l", &library, "-t", "sm_90"];
    work.run(&[&compile[..], &["-MD", "-o", "k.cubin"]].concat()).quiet();
    let rule = work.text("k.d");
    let rest = rule.strip_prefix("k.cubin: \\\n").unwrap_or_else(|| panic!("{rule}"));
    for file in [&*input, &*library, "libdevice.10.bc", "bin/ptxas"] {
        assert!(rest.contains(file), "no {file} in {rule}");
    }
    let make = Command::new("make")
        .args(["-r", "-n", "-p", "-f", "k.d"])
        .current_dir(work.path(""))
        .output()
        .expect("make is needed: apt-get install make");
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    work.run(&[&compile[..], &["-MF", "other.d", "-o", "out/"]].concat())
        .quiet();
    assert!(work.text("other.d").starts_with("out/user_library.sm_90.cubin: "));

    let listed = work.run(&[&compile[..], &["--print-inputs"]].concat()).quiet().output();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[..2], [input.as_str(), library.as_str()]);
    assert!(lines.iter().any(|line| line.ends_with("libdevice.10.bc")), "{listed}");
    assert!(!listed.contains("ocml"), "{listed}");
}

/// The function of the CMake package: nothing is done twice, and what a kernel was made of makes it again.
#[test]
fn cmake() {
    use std::{fs, time::Duration};

    let work = Workshop::new();
    let package = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../gpulower-c/package/gpulower-kernels.cmake"
    );
    fs::copy(example("user_library.mlir"), work.path("with space.mlir")).expect("copied");
    fs::copy(example("lib/scale_and_shift.ll"), work.path("library.ll")).expect("copied");
    fs::copy(example("saxpy.mlir"), work.path("saxpy.mlir")).expect("copied");
    let (program, cuda) = (env!("CARGO_BIN_EXE_gpulower"), super::support::cuda());
    work.write(
        "CMakeLists.txt",
        format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(p NONE)\nset(gpulower_PROGRAM {program})\ninclude({package})\n\
             gpulower_add_kernels(one SOURCES \"with space.mlir\" TARGETS sm_80 sm_90 LINK library.ll CUDA {cuda} OPTIONS --hermetic)\n\
             gpulower_add_kernels(two SOURCES saxpy.mlir TARGETS gfx942 EMIT bundle OPTIONS --no-cache)\n\
             add_custom_target(all_kernels ALL)\nadd_dependencies(all_kernels one two)\n",
            cuda = cuda.display()
        ),
    );
    let cmake = |arguments: &[&str]| {
        let mut command = Command::new("cmake");
        let output = command.args(arguments).current_dir(work.path("")).output();
        let output = output.expect("cmake is needed: apt-get install cmake");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text.matches("Compiling kernels").count()
    };
    cmake(&["-S", ".", "-B", "build", "-G", "Unix Makefiles"]);
    assert_eq!(cmake(&["--build", "build"]), 2);
    assert_eq!(work.files("build/one"), ["with space.fatbin", "with space.fatbin.d"]);
    assert_eq!(work.files("build/two"), ["saxpy.bundle", "saxpy.bundle.d"]);
    assert_eq!(cmake(&["--build", "build"]), 0);
    // What the command of the build does not name, but what was read.
    let later = fs::metadata(work.path("build/one/with space.fatbin")).and_then(|made| made.modified());
    let later = later.expect("made") + Duration::from_secs(2);
    let library = fs::File::options().append(true).open(work.path("library.ll"));
    library.and_then(|file| file.set_modified(later)).expect("touched");
    assert_eq!(cmake(&["--build", "build"]), 1);
}

/// A build machine that has nothing of this one's: another folder, no home, other variables, another number of threads.
#[test]
fn hermetic() {
    use std::{collections::BTreeSet, fs};

    let folders = [Workshop::new(), Workshop::new()];
    let mut made = Vec::new();
    for (work, threads) in folders.iter().zip(["1", "3"]) {
        let place = |name: &str| work.path("a project").join(name);
        fs::create_dir_all(place("cuda/bin")).expect("a folder");
        fs::create_dir_all(place("cuda/nvvm/libdevice")).expect("a folder");
        for part in ["bin/ptxas", "nvvm/libdevice/libdevice.10.bc"] {
            fs::copy(super::support::cuda().join(part), place("cuda").join(part)).expect("the toolkit of the tests");
        }
        fs::copy(example("user_library.mlir"), place("k.mlir")).expect("copied");
        fs::copy(example("lib/scale_and_shift.ll"), place("library.ll")).expect("copied");
        let arguments = "k.mlir -l library.ll -t sm_90 --cuda cuda --hermetic --ptx-compiler=ptxas -lineinfo\n";
        fs::write(place("arguments"), arguments).expect("written");
        let compile = |more: &[&str]| {
            let words = [&["compile", "@arguments", "-j", threads], more].concat();
            let mut command = work.command(&words);
            command.current_dir(place(""));
            // What is around is not to be seen.
            for name in ["CUDA_PATH", "XDG_CACHE_HOME", "ROCM_PATH", "GPULOWER_CACHE_SIGN_KEY"] {
                command.env(name, "/nonexistent");
            }
            command.env("GPULOWER_CACHE_REMOTE", "nonsense://");
            command.env("HOME", work.path("home")).env_remove("GPULOWER_CACHE");
            command
        };
        let run = |more: &[&str]| Run::of(compile(more).stdin(Stdio::null()).output().expect("the program runs"));
        let listed = run(&["--print-inputs"]).quiet().output();
        let listed: BTreeSet<&str> = listed.lines().collect();
        let named = [
            "arguments",
            "cuda/bin/ptxas",
            "cuda/nvvm/libdevice/libdevice.10.bc",
            "k.mlir",
            "library.ll",
        ];
        assert_eq!(listed, BTreeSet::from(named));
        for form in ["cubin", "fatbin", "ptx", "offload"] {
            run(&["-e", form, "-o", &format!("k.{form}"), "-MD"]).quiet();
            made.push((form, fs::read(place(&format!("k.{form}"))).expect("made")));
        }
        let rule = fs::read_to_string(place("k.d")).expect("made");
        assert!(named.iter().all(|file| rule.contains(&format!(" {file}"))), "{rule}");
        assert!(!work.path("home").exists(), "a home");

        run(&["--cache-remote", "redis://localhost/0", "-o", "x"])
            .failed(1)
            .says(&["--hermetic reads no credentials"]);
    }
    let (first, second) = made.split_at(made.len() / 2);
    for ((form, first), (_, second)) in first.iter().zip(second) {
        assert!(first == second, "{form} differs by folder");
    }
    // A toolkit is named or missing.
    folders[0]
        .run(&["compile", &example("gelu.mlir"), "-t", "sm_90", "-o", "k", "--hermetic"])
        .failed(1)
        .says(&["no PTX compiler could be used", "the toolkit has none"]);
}

#[test]
fn arguments_from_a_file() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    work.write("arguments", format!("'{saxpy}' -t sm_90\n-e ptx -o \"a b.ptx\"\n"));
    work.run(&["compile", "@arguments"]).quiet();
    assert!(work.text("a b.ptx").contains(".target sm_90"));
    work.run(&["compile", "@none"])
        .failed(2)
        .says(&["cannot read none, which '@' says holds arguments"]);
}

#[test]
fn nvccs_spellings() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let run = |arguments: &[&str]| work.run(&[&["compile", &*saxpy], arguments].concat()).quiet();
    run(&[
        "-arch=sm_90",
        "-ptx",
        "-lineinfo",
        "-use_fast_math",
        "-maxrregcount",
        "40",
        "-o",
        "k.ptx",
    ]);
    let ptx = work.text("k.ptx");
    for text in [".target sm_90", ".loc", ".maxnreg 40"] {
        assert!(ptx.contains(text), "no {text} in {ptx}");
    }
    run(&[
        "-arch=sm_90",
        "-cubin",
        "-Xptxas",
        "--warn-on-spills,-lineinfo",
        "-o",
        "k.cubin",
    ]);
    run(&["-arch=sm_90", "--fatbin", "-o", "k.fatbin"]);
    assert!(work.read("k.cubin").starts_with(b"\x7fELF"));
    // What ptxas says, where it was asked to say it.
    let run = work
        .run(&[
            "compile",
            &saxpy,
            "-arch=sm_90",
            "-cubin",
            "-Xptxas=-v",
            "-o",
            "k.cubin",
        ])
        .failed(0);
    assert!(
        run.stderr.contains("Used ") && run.stderr.contains(" registers"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_done_is_said_when_asked_for() {
    let work = Workshop::new();
    let run = work
        .run(&["compile", &example("saxpy.mlir"), "-t", "sm_90", "-o", "k.cubin", "-v"])
        .failed(0);
    run.says(&["# 0: ", "ptx-to-cubin", "output: cubin"]);
    assert_eq!(work.files(""), ["k.cubin"]);
}

#[test]
fn colours() {
    let work = Workshop::new();
    let arguments = ["compile", "none.mlir", "-t", "sm_90"];
    let escape = "\u{1b}[";
    assert!(!work.run(&arguments).failed(1).stderr.contains(escape), "no terminal");
    let run = work.run(&[&arguments[..], &["--color=always"]].concat()).failed(1);
    assert!(
        run.stderr.contains("\u{1b}[31merror:\u{1b}[0m input: "),
        "{:?}",
        run.stderr
    );
    let help = |arguments: &[&str]| work.run(arguments).quiet().output().contains(escape);
    assert!(!help(&["compile", "--help"]));
    assert!(help(&["compile", "--help", "--color", "always"]));
    // The log is for a file as much as for a terminal.
    let mut command = work.command(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
    ]);
    let output = command.env("GPULOWER_LOG", "debug").stdin(Stdio::null()).output();
    let run = Run::of(output.expect("the program runs"));
    assert!(
        run.stderr.contains("DEBUG") && !run.stderr.contains('\u{1b}'),
        "{:?}",
        run.stderr
    );
}

/// In a pseudo-terminal: colours, and no machine code.
#[test]
fn a_terminal() {
    let work = Workshop::new();
    let in_terminal = |arguments: &str| {
        let program = env!("CARGO_BIN_EXE_gpulower");
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", &format!("{program} {arguments}"), "/dev/null"]);
        command
            .current_dir(work.path(""))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
            .env("CUDA_HOME", super::support::cuda())
            .env("GPULOWER_CACHE", "off");
        let output = command.output().expect("script is needed: apt-get install bsdutils");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let saxpy = example("saxpy.mlir");
    let (status, text) = in_terminal(&format!("compile {saxpy} -t sm_90 -o -"));
    assert_eq!(status, Some(2), "{text}");
    assert!(
        text.contains("is a terminal: name a file with -o") && !text.contains("ELF"),
        "{text}"
    );
    let (status, text) = in_terminal(&format!("compile {saxpy} -t sm_90 -e ptx -o -"));
    assert!(status == Some(0) && text.contains(".visible .entry saxpy"), "{text}");
    // Names do nothing to it.
    work.write(
        "k.mlir",
        "gpu.module @m { gpu.func @\"k\\1B[31m\"() kernel { gpu.return } }",
    );
    let (status, text) = in_terminal("compile k.mlir -t gfx942 -e asm -o -");
    assert!(
        status == Some(0) && text.contains("k\\u{1b}[31m") && !text.contains('\u{1b}'),
        "{text:?}"
    );
    let (_, text) = in_terminal("compile none.mlir -t sm_90");
    assert!(text.contains("\u{1b}[31merror:"), "{text:?}");
}

#[test]
fn codes_are_explained() {
    let work = Workshop::new();
    let run = work
        .run(&["compile", &example("user_library.mlir"), "-t", "sm_90", "-o", "k"])
        .failed(1);
    let run = run.says(&["E0401: more with gpulower --explain E0401"]);
    assert_eq!(
        run.stderr.lines().last(),
        Some("E0401: more with gpulower --explain E0401")
    );
    let text = work.run(&["--explain", "e0401"]).quiet().output();
    assert!(
        text.starts_with("E0401: symbols that nothing defines") && text.contains("\nWhat to do: "),
        "{text}"
    );
    let run = work.run(&["--explain", "E0102"]).failed(2);
    run.says(&["there is no code 'E0102'", "  E0101  the input cannot be read"]);
}

/// Every option of `compile --help` is completed and described.
#[test]
fn completions_and_manual_pages() {
    let work = Workshop::new();
    let help = work.run(&["compile", "--help"]).quiet().output();
    let options: Vec<&str> = help
        .split([' ', '\n', '[', '='])
        .filter(|word| word.len() > 3 && word.starts_with("--") && word.ends_with(|end: char| end.is_alphanumeric()))
        .collect();
    assert!(
        options.contains(&"--wave-size") && options.contains(&"--keep-going"),
        "{options:?}"
    );
    work.write("completions.bash", work.run(&["completions", "bash"]).quiet().output());
    // What bash offers for the last of some words.
    const COMPLETE: &str = "source completions.bash
        offered() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _gpulower gpulower \"${@: -1}\" \"${@: -2:1}\"; echo ${COMPREPLY[@]}; }
        offered gpulower compile --wave; offered gpulower compile --emit cub; offered gpulower link --target sm_90; offered gpulower compile --debug fu";
    let bash = Command::new("bash")
        .args(["-c", COMPLETE])
        .current_dir(work.path(""))
        .output()
        .expect("bash");
    let expected = "--wave-size\ncubin\nsm_90 sm_90a\nfull\n";
    assert_eq!(
        String::from_utf8_lossy(&bash.stdout),
        expected,
        "{}",
        String::from_utf8_lossy(&bash.stderr)
    );
    for shell in ["zsh", "fish"] {
        let text = work.run(&["completions", shell]).quiet().output();
        assert!(text.contains("wave-size"), "{shell}");
    }
    work.run(&["man", "-o", "man1/"]).quiet();
    let page = work.text("man1/gpulower-compile.1").replace("\\-", "-");
    for option in options {
        assert!(page.contains(option), "the manual page lacks {option}");
    }
    assert!(work.files("man1").contains(&"gpulower.1".to_owned()));
    assert!(work.run(&["man"]).quiet().output().contains(".TH gpulower"));
}

#[test]
fn a_relative_variable_is_said_to_be_ignored() {
    let work = Workshop::new();
    let mut command = work.command(&[
        "compile",
        &example("transpose.mlir"),
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
    ]);
    let output = command.env("CUDA_HOME", "some/cuda").stdin(Stdio::null()).output();
    Run::of(output.expect("the program runs"))
        .failed(0)
        .says(&["warning: CUDA_HOME=some/cuda is ignored, since it is relative"]);
}
