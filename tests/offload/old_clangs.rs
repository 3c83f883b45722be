//! What the tests of the profiles share: modules from text, and the releases of clang that read what was written.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    error::OffloadError,
    profile::{IrSyntax, Written, write},
    release::ClangRelease,
};
use crate::bridge::{llvm::DeviceContext, target_machine::TargetMachine};

/// The releases that `cargo xtask setup` installs.
pub(super) const INSTALLED: [u8; 3] = [16, 19, 22];

pub(super) const SYNTAXES: [IrSyntax; 2] = [IrSyntax::Text, IrSyntax::Bitcode];

pub(super) const X86: &str = "x86_64-unknown-linux-gnu";
pub(super) const ARM: &str = "aarch64-unknown-linux-gnu";
pub(super) const NVIDIA: &str = "nvptx64-nvidia-cuda";
pub(super) const AMD: &str = "amdgcn-amd-amdhsa";

/// Flags with which clang compiles for a target: chips and PTX versions that clang 16 has.
pub(super) fn flags(triple: &str) -> Vec<String> {
    let mut flags = vec![format!("--target={triple}"), "-Werror".to_owned()];
    let more: &[&str] = match triple {
        NVIDIA => &[
            "-march=sm_80",
            "-nocudalib",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx78",
        ],
        AMD => &["-mcpu=gfx90a", "-nogpulib"],
        _ => &["-fPIC"],
    };
    flags.extend(more.iter().map(ToString::to_string));
    flags
}

/// A module of this text, with triple and data layout.
pub(super) fn source(triple: &str, body: &str) -> String {
    let layout = TargetMachine::new(triple, "", "", 2, false)
        .expect(triple)
        .data_layout();
    let flags = match triple {
        AMD => "!llvm.module.flags = !{!900}\n!900 = !{i32 1, !\"amdhsa_code_object_version\", i32 400}\n",
        _ => "",
    };
    format!("target datalayout = \"{layout}\"\ntarget triple = \"{triple}\"\n{body}\n{flags}")
}

/// Writes a module of this text for a release.
pub(super) fn written(text: &str, oldest: u8, syntax: IrSyntax) -> Result<Written, OffloadError> {
    let context = DeviceContext::new();
    let module = context
        .parse(text.as_bytes(), "test.ll")
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    write(&module, release(oldest), syntax)
}

pub(super) fn release(number: u8) -> ClangRelease {
    ClangRelease::new(u32::from(number)).expect("a release")
}

/// The text for a release, of what stands below triple and data layout.
pub(super) fn text_for(triple: &str, body: &str, oldest: u8) -> String {
    let written =
        written(&source(triple, body), oldest, IrSyntax::Text).unwrap_or_else(|error| panic!("{error}\n{body}"));
    String::from_utf8(written.bytes).expect("text")
}

/// The bitcode of LLVM 22, as it is.
pub(super) fn raw_bitcode(text: &str) -> Vec<u8> {
    let context = DeviceContext::new();
    context
        .parse(text.as_bytes(), "test.ll")
        .expect(text)
        .to_bitcode()
        .expect("written")
}

/// A folder for the files of a test, and the compilers.
pub(super) struct Clangs {
    folder: tempfile::TempDir,
}

impl Clangs {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, clang: u8, arguments: &[&str]) -> Result<(), String> {
        let program = format!("clang-{clang}");
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(self.folder())
            // clang-linker-wrapper leaves files behind.
            .env("TMPDIR", self.folder())
            .output()
            .unwrap_or_else(|error| panic!("{program} cannot be run ({error}): run `cargo xtask setup`"));
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{program} {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    fn input(&self, ir: &[u8]) -> PathBuf {
        let path = self.folder().join("input");
        fs::write(&path, ir).expect("writes");
        path
    }

    /// What a release reads, verified, in its own words.
    ///
    /// Without its driver, which would tell it to skip LLVM's verifier.
    pub(super) fn read(&self, clang: u8, triple: &str, ir: &[u8]) -> Result<String, String> {
        let input = self.input(ir);
        let input = input.to_string_lossy();
        self.run(
            clang,
            &[
                "-cc1",
                "-triple",
                triple,
                "-Werror",
                "-x",
                "ir",
                &input,
                "-emit-llvm",
                "-o",
                "read.ll",
            ],
        )?;
        Ok(fs::read_to_string(self.folder().join("read.ll")).expect("text"))
    }

    /// What a release reads, in its own words, valid or not.
    pub(super) fn read_unverified(&self, clang: u8, text: &str) -> String {
        let input = self.input(text.as_bytes());
        let input = input.to_string_lossy();
        let arguments = [
            "-cc1",
            "-disable-llvm-verifier",
            "-x",
            "ir",
            &*input,
            "-emit-llvm",
            "-o",
            "read.ll",
        ];
        self.run(clang, &arguments).unwrap_or_else(|error| panic!("{error}"));
        fs::read_to_string(self.folder().join("read.ll")).expect("text")
    }

    /// What a release compiles it to: an object (`-c`) or assembly (`-S`).
    pub(super) fn compile(&self, clang: u8, triple: &str, ir: &[u8], output: &str) -> Result<Vec<u8>, String> {
        let input = self.input(ir);
        let input = input.to_string_lossy();
        let flags = flags(triple);
        let mut arguments = vec!["-x", "ir", &*input, "-O2", output, "-o", "output"];
        arguments.extend(flags.iter().map(String::as_str));
        self.run(clang, &arguments)?;
        Ok(fs::read(self.folder().join("output")).expect("a file"))
    }

    /// The exit status of a program for this machine.
    pub(super) fn run_program(&self, clang: u8, ir: &[u8], optimization: &str) -> Result<i32, String> {
        let input = self.input(ir);
        let input = input.to_string_lossy();
        self.run(
            clang,
            &[
                "-x",
                "ir",
                &input,
                optimization,
                "-Wno-override-module",
                "-o",
                "program",
                "-lm",
            ],
        )?;
        let program = self.folder().join("program");
        let status = Command::new(&program).status();
        status
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
            .code()
            .ok_or_else(|| "killed by a signal".to_owned())
    }

    /// Has `ptxas` take PTX.
    pub(super) fn assemble(&self, ptx: &str) {
        let input = self.input(ptx.as_bytes());
        let ptxas = gpulower_testing::nvidia::toolkit().join("bin/ptxas");
        let output = Command::new(&ptxas)
            .arg("-arch=sm_80")
            .arg(&input)
            .args(["-o", "/dev/null"])
            .output()
            .unwrap_or_else(|error| panic!("{} cannot be run ({error}): run `cargo xtask setup`", ptxas.display()));
        assert!(
            output.status.success(),
            "{}\n{ptx}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The assembly that a release compiles text to, which is written for it.
    pub(super) fn assembly(&self, clang: u8, triple: &str, body: &str) -> String {
        let text = source(triple, body);
        let [text, bitcode] = SYNTAXES.map(|syntax| {
            let written = written(&text, clang, syntax).unwrap_or_else(|error| panic!("{error}"));
            let assembly = self
                .compile(clang, triple, &written.bytes, "-S")
                .unwrap_or_else(|error| panic!("{error}"));
            let assembly = String::from_utf8(assembly).expect("text");
            // The name of the module is in a comment.
            let lines = assembly.lines().filter(|line| !line.contains(".file"));
            lines.collect::<Vec<_>>().join("\n")
        });
        assert_eq!(text, bitcode, "clang {clang} makes the same of text and bitcode");
        text
    }
}
