//! What goes wrong around the compiler: tools that fail, hang or lie, disks that are full, file handles that run out.
//! Each is told clearly, and leaves nothing behind: no artifact, no temporary file, no process.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
};

use super::support::{Run, Workshop, cuda, example};

/// A toolkit in `work` that is the real one but for its `ptxas`, which is this script; `$REAL` is the real one.
fn toolkit_with(work: &Workshop, script: &str) {
    let real = cuda();
    for part in fs::read_dir(&real).expect("the toolkit") {
        let part = part.expect("a part of it");
        if part.file_name() != "bin" {
            fs::create_dir_all(work.path("cuda")).expect("a directory");
            symlink(part.path(), work.path("cuda").join(part.file_name())).expect("a link");
        }
    }
    let real = real.join("bin/ptxas");
    work.write(
        "cuda/bin/ptxas",
        format!("#!/bin/sh\nREAL={}\n{script}\n", real.display()),
    );
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(work.path("cuda/bin/ptxas"), mode).expect("executable");
}

/// For scripts: answers `--version` truthfully, and goes on otherwise.
const VERSION: &str = "[ \"$1\" = --version ] && exec \"$REAL\" --version\n";

/// Compiles with the toolkit of [`toolkit_with`], in a directory for temporary files of its own.
fn compile(work: &Workshop, more: &[&str]) -> Run {
    let saxpy = example("saxpy.mlir");
    let mut arguments = vec!["compile", &saxpy, "-t", "sm_90", "--cuda", "cuda", "-o", "k.cubin"];
    arguments.extend(["--ptx-compiler", "ptxas"]);
    arguments.extend(more);
    fs::create_dir_all(work.path("tmp")).expect("a directory");
    let output = work.command(&arguments).env("TMPDIR", work.path("tmp")).output();
    let run = Run::of(output.expect("the program runs"));
    assert_eq!(work.files("tmp"), Vec::<String>::new(), "temporary files are left");
    run
}

/// A failed compilation left what was there before.
fn nothing_new(work: &Workshop, others: &[&str]) {
    let mut expected = ["cuda", "tmp"].to_vec();
    expected.extend(others);
    expected.sort_unstable();
    assert_eq!(work.files(""), expected);
}

#[test]
fn a_wrapper_around_ptxas_is_as_good_as_ptxas() {
    let work = Workshop::new();
    toolkit_with(&work, "exec \"$REAL\" \"$@\"");
    compile(&work, &[]).quiet();
    assert!(work.read("k.cubin").starts_with(b"\x7fELF"));
}

#[test]
fn a_ptxas_that_fails_is_quoted() {
    let work = Workshop::new();
    toolkit_with(&work, &format!("{VERSION}echo 'license server is down' >&2; exit 3"));
    compile(&work, &[]).failed(1).says(&[
        "error: ptx-to-cubin, module saxpy, target sm_90: ",
        "license server is down",
    ]);
    nothing_new(&work, &[]);
}

#[test]
fn a_ptxas_that_prints_garbage_is_found_out() {
    for (script, messages) in [
        (
            "echo garbage",
            ["wrote 8 bytes that are no ELF file", "is it NVIDIA's ptxas?"],
        ),
        ("exit 0", ["wrote 0 bytes that are no ELF file", "It printed: nothing"]),
        (
            "printf '\\177ELF and no more'",
            ["the cubin cannot be read", "ptx-to-cubin"],
        ),
        (
            "\"$REAL\" \"$@\" >whole && head -c 700 whole; rm whole",
            ["the cubin cannot be read", "ptx-to-cubin"],
        ),
    ] {
        let work = Workshop::new();
        toolkit_with(&work, &format!("{VERSION}{script}"));
        compile(&work, &[]).failed(1).says(&messages);
        nothing_new(&work, &[]);
    }
}

#[test]
fn a_ptxas_that_is_killed_is_told() {
    let work = Workshop::new();
    toolkit_with(&work, &format!("{VERSION}kill -9 $$"));
    compile(&work, &[]).failed(1).says(&["signal: 9 (SIGKILL)"]);
    nothing_new(&work, &[]);
}

#[test]
fn a_ptxas_without_memory_is_told() {
    let work = Workshop::new();
    toolkit_with(&work, &format!("{VERSION}ulimit -v 20000; exec \"$REAL\" \"$@\""));
    let run = compile(&work, &[]).failed(1);
    assert!(
        run.stderr.contains("saxpy.mlir:6:1: error: ptx-to-cubin, module saxpy"),
        "{}",
        run.stderr
    );
    nothing_new(&work, &[]);
}

#[test]
fn a_ptxas_that_hangs_is_stopped() {
    let work = Workshop::new();
    toolkit_with(&work, &format!("{VERSION}echo $$ >pid; exec sleep 1000"));
    compile(&work, &["--time-limit", "1"]).failed(1).says(&[
        "ptx-to-cubin, module saxpy, target sm_90: not done within the time limit of 1s",
        "raise the limit (time-limit)",
    ]);
    let process = work.text("pid");
    let process = Path::new("/proc").join(process.trim());
    assert!(!process.exists(), "{} is still there", process.display());
    nothing_new(&work, &["pid"]);
}

#[test]
fn a_ptxas_that_changes_under_way_is_believed_each_time() {
    let work = Workshop::new();
    // It says that it is CUDA 11.0's, which has no sm_90, from its second answer on.
    toolkit_with(
        &work,
        "if [ \"$1\" = --version ]; then
           [ -e asked ] && echo 'Cuda compilation tools, release 11.0, V11.0.1' && exit
           touch asked; fi
         exec \"$REAL\" \"$@\"",
    );
    compile(&work, &[]).quiet();
    let first = work.read("k.cubin");
    compile(&work, &[])
        .failed(1)
        .says(&["the tool at hand reads up to PTX 7.0", "sm_90"]);
    assert!(work.read("k.cubin") == first, "the earlier artifact stays as it was");
    nothing_new(&work, &["asked", "k.cubin"]);
}

#[test]
fn half_a_ptxas_is_passed_over_or_told() {
    for (contents, mode, message) in [
        (&b""[..], 0o755, "ptxas"),
        (b"\x7fELF\x02\x01\x01 and no more", 0o755, "ptxas"),
        (
            b"#!/bin/sh\nexit 0\n",
            0o644,
            "ptxas: not available: the toolkit has none",
        ),
    ] {
        let work = Workshop::new();
        toolkit_with(&work, "");
        work.write("cuda/bin/ptxas", contents);
        fs::set_permissions(work.path("cuda/bin/ptxas"), fs::Permissions::from_mode(mode)).expect("a mode");
        let run = compile(&work, &[]).failed(1).says(&["error: ", message]);
        assert!(run.stderr.contains("sm_90"), "{}", run.stderr);
        nothing_new(&work, &[]);
    }
}

/// Runs a shell command in a mount namespace of its own, where `$1` is the program and `disk` a file system of 64 KiB.
fn on_a_small_disk(work: &Workshop, options: &str, script: &str) -> Run {
    fs::create_dir_all(work.path("disk")).expect("a directory");
    let script = format!("mount -t tmpfs -o size=64k,{options} tmpfs disk || exit 99\n{script}");
    let output = shell(work, &["unshare", "-rm", "/bin/sh", "-c", &script, "sh"]);
    let run = Run::of(output);
    assert_ne!(
        run.status, 99,
        "this test needs a mount namespace (unshare -rm, of util-linux): {}",
        run.stderr
    );
    run
}

/// Runs words with the program as the last one, in the directory and the environment of the tests.
fn shell(work: &Workshop, words: &[&str]) -> Output {
    let program = work.command(&[]);
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg(program.get_program())
        .current_dir(work.path(""));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).output().expect("the shell runs")
}

#[test]
fn a_full_disk_keeps_what_was_there() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    // The first artifact fits, and the second does not: neither is left, and an older one is as it was.
    let run = on_a_small_disk(
        &work,
        "mode=755",
        &format!(
            "echo old >disk/saxpy.sm_90.ptx; head -c 50000 /dev/zero >disk/filler
             \"$1\" compile {saxpy} -t sm_80,sm_90,gfx942 -e bundle -o disk/k.bundle; first=$?
             \"$1\" compile {saxpy} -t sm_80,sm_90,sm_75,sm_86,sm_89,sm_70,sm_100 -e ptx -o disk/; second=$?
             ls -A disk; cat disk/saxpy.sm_90.ptx; exit $((first * 10 + second))"
        ),
    );
    let run = run
        .failed(11)
        .says(&["error: output: cannot write ", "No space left on device"]);
    assert_eq!(run.output(), "filler\nsaxpy.sm_90.ptx\nold\n", "{}", run.stderr);
}

#[test]
fn a_full_disk_keeps_no_part_of_a_key() {
    let work = Workshop::new();
    let script =
        "dd if=/dev/zero of=disk/filler 2>&-; \"$1\" cache keygen disk/ours.key; status=$?; ls -A disk; exit $status";
    let run = on_a_small_disk(&work, "mode=755", script).failed(1);
    let run = run.says(&["the key disk/ours.key: No space left on device"]);
    assert_eq!(run.output(), "filler\n", "{}", run.stderr);
}

#[test]
fn a_trace_for_which_there_is_no_room_is_refused_before_anything_is_made() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let script = format!(
        "dd if=/dev/zero of=disk/filler 2>&-
         \"$1\" compile {saxpy} -t sm_90 -e ptx -o k.ptx --trace disk/trace.json; status=$?
         ls -A disk; exit $status"
    );
    let run = on_a_small_disk(&work, "mode=755", &script).failed(1);
    let run = run.says(&["cannot write disk/trace.json: No space left on device"]);
    assert_eq!(run.output(), "filler\n", "{}", run.stderr);
    assert_eq!(work.files(""), ["disk"]);
}

#[test]
fn a_disk_for_reading_alone_is_told() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let script = format!("\"$1\" compile {saxpy} -t sm_90 -e ptx -o disk/k.ptx");
    on_a_small_disk(&work, "ro", &script)
        .failed(1)
        .says(&["error: output: cannot write disk/k.ptx: Read-only file system"]);
}

#[test]
fn a_device_that_is_full_is_told() {
    let work = Workshop::new();
    work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "/dev/full",
    ])
    .failed(1)
    .says(&["error: output: cannot write /dev/full: No space left on device"]);
    let script = format!(
        "exec \"$1\" compile {} -t sm_90 -e ptx -o - >/dev/full",
        example("saxpy.mlir")
    );
    let run = Run::of(shell(&work, &["/bin/sh", "-c", &script, "sh"]));
    run.failed(1).says(&["error: output: ", "No space left on device"]);
}

#[test]
fn too_few_file_handles_are_told() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let mut succeeded = Vec::new();
    for handles in 4..=24 {
        fs::create_dir_all(work.path("tmp")).expect("a directory");
        let script = format!(
            "ulimit -n {handles}; export TMPDIR=$PWD/tmp
             exec \"$1\" compile {saxpy} -t sm_90 -e cubin --ptx-compiler ptxas -j 2 -o k.cubin"
        );
        let run = Run::of(shell(&work, &["/bin/sh", "-c", &script, "sh"]));
        match run.status {
            0 => succeeded.push(work.read("k.cubin")),
            // The loader of the program itself may be the first to run out.
            127 if run.stderr.contains("cannot open shared object file") => {}
            status => {
                assert_eq!(status, 1, "{handles} handles: {}", run.stderr);
                let told = ["Too many open files", "os error 24", "cannot"];
                assert!(
                    told.iter().any(|text| run.stderr.contains(text)),
                    "{handles}: {}",
                    run.stderr
                );
                assert!(!work.path("k.cubin").exists(), "{handles} handles");
            }
        }
        let _ = fs::remove_file(work.path("k.cubin"));
        assert_eq!(work.files(""), ["tmp"], "{handles} handles");
        assert_eq!(work.files("tmp"), Vec::<String>::new(), "{handles} handles");
    }
    assert!(!succeeded.is_empty(), "24 handles are enough");
    assert!(succeeded.iter().all(|cubin| *cubin == succeeded[0]));
}

/// The stack on which an input is read is mapped: where it cannot be, that is an error like others. Steps of 20 MiB cannot
/// miss limits that leave room for the program and none for 64 MiB more.
#[test]
fn too_little_address_space_for_a_stack_is_told() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let mut told = 0;
    let mut succeeded = false;
    for mebibytes in (100..=2000).step_by(20) {
        let script = format!(
            "ulimit -c 0; ulimit -v {}; exec \"$1\" compile {saxpy} -t sm_90 -e ptx -j 2 -o k.ptx",
            mebibytes << 10
        );
        let output = shell(&work, &["/bin/sh", "-c", &script, "sh"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Other memory that cannot be had may end the program, which is its own process.
        assert!(!stderr.contains("panicked"), "{mebibytes} MiB: {stderr}");
        if stderr.contains("there is no memory for a stack of 64 MiB, which reading and compiling need: ") {
            assert_eq!(output.status.code(), Some(1), "{mebibytes} MiB: {stderr}");
            assert!(stderr.contains("raise the limit of the address space"), "{stderr}");
            assert_eq!(work.files(""), Vec::<String>::new(), "{mebibytes} MiB");
            told += 1;
        }
        succeeded = output.status.success();
        if succeeded {
            assert_eq!(work.files(""), ["k.ptx"], "{mebibytes} MiB");
            break;
        }
    }
    assert!(told > 0, "it was never told");
    assert!(succeeded, "2 GiB are enough");
}

/// A program of the current directory that gives itself away.
fn trap(work: &Workshop, name: &str) {
    work.write(name, "#!/bin/sh\necho $0 >>ran\nexit 1\n");
    fs::set_permissions(work.path(name), fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn nothing_of_the_current_directory_is_run_because_it_lies_there() {
    let work = Workshop::new();
    for name in ["ptxas", "bin/ptxas", "clang", "clang-19", "bin/clang", "cuda/bin/ptxas"] {
        trap(&work, name);
    }
    for (name, value) in [
        ("PATH", ""),
        ("PATH", ":"),
        ("PATH", ".:bin::/nonexistent"),
        ("CUDA_HOME", "."),
        ("CUDA_PATH", "cuda"),
        ("CUDA_ROOT", "./cuda"),
        ("VIRTUAL_ENV", "."),
    ] {
        for arguments in [
            &["doctor"][..],
            &[
                "compile",
                &example("saxpy.mlir"),
                "-t",
                "sm_90",
                "-e",
                "cubin",
                "--ptx-compiler",
                "ptxas",
                "-o",
                "k",
            ],
            &[
                "export",
                &example("app.mlir"),
                "-t",
                "sm_90",
                "--finish-with",
                "clang,cuda-13.0",
                "-o",
                "k",
            ],
        ] {
            let mut command = work.command(arguments);
            command.env_remove("CUDA_HOME").env(name, value);
            command.output().expect("the program runs");
        }
        assert!(!work.path("ran").exists(), "{name}={value}: {}", work.text("ran"));
    }
    // The trap is one: named, it is run.
    let mut command = work.command(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "--ptx-compiler",
        "ptxas",
    ]);
    command
        .args(["-o", "k", "--cuda", "cuda"])
        .output()
        .expect("the program runs");
    assert!(work.path("ran").exists());
}
