//! `cargo xtask gpu`: the checks that need a GPU. What they need is built into one folder, which runs on another machine
//! without cargo, LLVM and CUDA's tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};

use crate::command::{Context, Failure, capture, run as run_command, shown, succeeds};
use crate::demo::{Example, examples};
use crate::env::{Workspace, set};
use crate::{integrations, wheel};

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// The NVIDIA chip.
    #[arg(long, default_value = "sm_90", global = true)]
    target: String,
    /// What the program of `runtime`, `session` and `differ` is built with.
    #[arg(long, default_value = "release", global = true)]
    profile: String,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which parts there are, what each checks, and by what.
    List,
    /// Build some parts into a folder, with `main.py`, for a machine with a GPU.
    Make {
        /// The folder.
        directory: PathBuf,
        /// Their names; all of them, if there is none.
        parts: Vec<String>,
    },
    /// Build some parts, and run them here.
    Run {
        /// Their names; all of them, if there is none.
        parts: Vec<String>,
    },
}

/// The checks, in Python, with `main.py`, which runs them and says what there is.
const SCRIPTS: &str = "scripts/gpu";

/// What is checked on a GPU, as `main.py` has it.
const PARTS: [&str; 16] = [
    "examples",
    "fatbins",
    "lowering",
    "subgroups",
    "math",
    "small-numbers",
    "containers",
    "link",
    "runtime",
    "run",
    "session",
    "differ",
    "export",
    "openmp",
    "python",
    "integrations",
];

/// Compilers that exports are finished with (`scripts/gpu/export.py`).
const CLANGS: [&str; 3] = ["clang-16", "clang-19", "clang-22"];

/// How many expressions there are of each kind of `small-numbers`.
const EXPRESSIONS: &str = "640";

/// A chip whose code no other one runs that the checks are for.
const OTHER_CHIP: &str = "sm_80";

/// The chip whose devices `scripts/gpu/containers.py` knows.
const CONTAINERS_FOR: &str = "sm_90";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    match &options.action {
        Some(Action::Make { directory, parts }) => {
            make(workspace, directory, options, parts)?;
            println!(
                "Copy {} to the machine with the GPU, and run `python3 main.py` in it.",
                directory.display()
            );
            Ok(())
        }
        Some(Action::List) => run_command(&mut main(workspace, &workspace.root.join(SCRIPTS), &["--list".into()])),
        None => here(workspace, options, &[]),
        Some(Action::Run { parts }) => here(workspace, options, parts),
    }
}

/// Builds parts, all of them if none is named, and runs them on this machine.
fn here(workspace: &Workspace, options: &Options, parts: &[String]) -> Result<(), Failure> {
    if !succeeds(Command::new("nvidia-smi").arg("-L")) {
        return Err(Failure::new(
            "`nvidia-smi -L` finds no NVIDIA GPU on this machine; `cargo xtask gpu make DIRECTORY` makes a folder for \
                     a machine that has one",
        ));
    }
    let directory = workspace.root.join("target/gpu");
    make(workspace, &directory, options, parts)?;
    run_command(&mut main(workspace, &directory, parts))
}

/// What runs the checks of a folder.
fn main(workspace: &Workspace, directory: &Path, arguments: &[String]) -> Command {
    let mut command = workspace.command("python3");
    command.arg(directory.join("main.py")).args(arguments);
    command
}

/// Fills the folder, with a line for each part.
fn make(workspace: &Workspace, directory: &Path, options: &Options, parts: &[String]) -> Result<(), Failure> {
    if let Some(part) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(Failure::new(format!(
            "there is no part {part}: `cargo xtask gpu list` names them"
        )));
    }
    fs::create_dir_all(directory).context(|| format!("create {}", directory.display()))?;
    let directory = fs::canonicalize(directory).context(|| format!("find {}", directory.display()))?;
    let maker = Maker {
        workspace,
        gpulower: gpulower(workspace)?,
        directory: &directory,
        target: &options.target,
        profile: &options.profile,
        parts,
    };
    maker.scripts()?;
    for name in PARTS {
        if maker.wants(name) {
            match maker.commands(name)? {
                Ok(commands) => maker.part(name, commands)?,
                Err(why) => println!("absent {name}: {why}"),
            }
        }
    }
    Ok(())
}

/// The program, built unless the variable `GPULOWER` names one.
fn gpulower(workspace: &Workspace) -> Result<PathBuf, Failure> {
    if let Some(named) = set("GPULOWER") {
        return Ok(named.into());
    }
    run_command(workspace.cargo("build").args(["--bins", "--locked"]))?;
    Ok(workspace.binaries()?.join("gpulower"))
}

struct Maker<'a> {
    workspace: &'a Workspace,
    gpulower: PathBuf,
    directory: &'a Path,
    target: &'a str,
    profile: &'a str,
    parts: &'a [String],
}

impl Maker<'_> {
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }

    /// What makes a part, or why it cannot be made.
    fn commands(&self, part: &str) -> Result<Result<Vec<Command>, String>, Failure> {
        let examples = |folder, emit| -> Result<Vec<Command>, Failure> {
            let mut kernels = examples(&self.workspace.root.join("examples"))?;
            kernels.retain(|example| example.allows(self.target));
            Ok(self.examples(&kernels, folder, emit))
        };
        Ok(Ok(match part {
            "examples" => examples("examples", "cubin")?,
            "fatbins" => examples("fatbins", "fatbin")?,
            "lowering" => vec![
                self.folder(part),
                self.compile("scripts/gpu/lowering.mlir", "lowering/lowering.cubin", &[]),
            ],
            "subgroups" => vec![
                self.folder(part),
                self.compile("tests/amd/kernels/subgroups.mlir", "subgroups/subgroups.cubin", &[]),
                self.compile("scripts/gpu/orderings.mlir", "subgroups/orderings.cubin", &[]),
            ],
            "math" => vec![self.script("accuracy.py", part)],
            "small-numbers" if !succeeds(Command::new("python3").args(["-c", "import numpy, ml_dtypes"])) => {
                return Ok(Err("python3 has no numpy, or no ml_dtypes".to_owned()));
            }
            "small-numbers" => {
                let mut make = self.script("small_numbers.py", part);
                make.args(["--count", EXPRESSIONS]);
                vec![make]
            }
            "containers" if self.target != CONTAINERS_FOR => {
                return Ok(Err(format!(
                    "what is expected is written down for {CONTAINERS_FOR} alone"
                )));
            }
            "containers" => vec![self.script("containers.py", part)],
            "link" => self.link(),
            "runtime" => self.runtime().into_iter().chain(self.checks()).collect(),
            "run" => vec![self.script("run.py", part)],
            // One program for all three.
            "session" if self.wants("runtime") => Vec::new(),
            "session" => self.checks(),
            "differ" => {
                let made = self.wants("runtime") || self.wants("session");
                let checks = if made { Vec::new() } else { self.checks() };
                checks.into_iter().chain([self.script("differ.py", part)]).collect()
            }
            "export" => {
                let is_missing = |clang: &&&str| !succeeds(Command::new(clang).arg("--version"));
                if let Some(missing) = CLANGS.iter().find(is_missing) {
                    return Ok(Err(format!(
                        "there is no {missing}, and {} are needed",
                        CLANGS.join(", ")
                    )));
                }
                vec![self.script("export.py", part)]
            }
            "openmp" if set("OPENMP").is_none() => {
                return Ok(Err("OPENMP names no folder of libomptarget.so".to_owned()));
            }
            "openmp" => vec![self.script("openmp.py", part)],
            "python" => vec![self.with_wheel("python.py", part)?],
            "integrations" => {
                integrations::packages(self.workspace)?;
                let mut build = self.workspace.cargo("build");
                build.args(["--locked", "-p", "gpulower-tensor"]);
                let mut make = self.with_wheel("integrations.py", part)?;
                make.env("GPULOWER_TENSOR", self.workspace.binaries()?.join("gpulower-tensor"));
                vec![build, make]
            }
            _ => unreachable!("a part of PARTS"),
        }))
    }

    /// A script that takes the Python package along.
    fn with_wheel(&self, script: &str, part: &str) -> Result<Command, Failure> {
        let wheels = self.workspace.root.join("target/gpu-wheels");
        // One package for both.
        if part == "python" || !self.wants("python") {
            wheel::make(self.workspace, true, &wheels)?;
        }
        let mut command = self.script(script, part);
        command.arg("--wheel").arg(wheel::only(&wheels)?);
        Ok(command)
    }

    /// Runs the commands of a part, and says so in a line; what they print is shown where one fails.
    fn part(&self, name: &str, commands: Vec<Command>) -> Result<(), Failure> {
        for mut command in commands {
            let output = capture(&mut command)?;
            if !output.status.success() {
                return Err(Failure::new(format!(
                    "{name}: `{}` failed ({})\n{}{}",
                    shown(&command),
                    output.status,
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr).trim_end()
                )));
            }
        }
        println!("made   {name}");
        Ok(())
    }

    fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.workspace.command(program);
        command.env("GPULOWER", &self.gpulower);
        command
    }

    /// `main.py`, and what it starts.
    fn scripts(&self) -> Result<(), Failure> {
        let scripts = self.workspace.root.join(SCRIPTS);
        for entry in fs::read_dir(&scripts).context(|| format!("read {}", scripts.display()))? {
            let from = entry.context(|| format!("read {}", scripts.display()))?.path();
            if from.extension().is_some_and(|extension| extension == "py") {
                let to = self.directory.join(from.file_name().unwrap_or_default());
                fs::copy(&from, &to).context(|| format!("copy {} to {}", from.display(), to.display()))?;
            }
        }
        Ok(())
    }

    /// A cubin, or a container that is loaded as one.
    fn compile(&self, input: impl AsRef<Path>, output: &str, more: &[&str]) -> Command {
        let mut command = self.program(&self.gpulower);
        command.arg("compile").arg(input.as_ref());
        command
            .args(["--target", self.target, "-o"])
            .arg(self.directory.join(output));
        command.args(if more.contains(&"--emit") {
            &[][..]
        } else {
            &["--emit", "cubin"]
        });
        command.args(more);
        command
    }

    /// Each kernel in a form, under the name that `examples.py` looks for.
    fn examples(&self, kernels: &[Example], folder: &str, emit: &str) -> Vec<Command> {
        let mut commands = vec![self.folder(folder)];
        commands.extend(kernels.iter().map(|example| {
            let output = format!("{folder}/{}.cubin", example.name);
            let mut command = self.compile(&example.path, &output, &["--emit", emit]);
            for library in &example.libraries {
                command.arg("--link").arg(library);
            }
            command
        }));
        commands
    }

    fn folder(&self, name: &str) -> Command {
        let mut command = Command::new("mkdir");
        command.arg("-p").arg(self.directory.join(name));
        command
    }

    /// A script of ours that fills the folder of a part with its action `make`.
    fn script(&self, script: &str, part: &str) -> Command {
        let mut command = self.program("python3");
        command.arg(Path::new(SCRIPTS).join(script)).arg("make");
        command.arg(self.directory.join(part)).args(["--target", self.target]);
        command
    }

    fn link(&self) -> Vec<Command> {
        let folder = "examples/device_link";
        let joined = self.compile(format!("{folder}/joined.mlir"), "link/joined.cubin", &["--device-link"]);
        let mut linked = self.program(&self.gpulower);
        linked
            .arg("link")
            .args(["kernels.ptx", "functions.ptx"].map(|name| format!("{folder}/{name}")))
            .args(["--target", self.target, "-o"])
            .arg(self.directory.join("link/linked.cubin"));
        vec![self.folder("link"), joined, linked]
    }

    /// The program that drives GPUs, with LLVM in it: without symbols, and packed.
    fn checks(&self) -> Vec<Command> {
        let mut build = self.workspace.cargo("build");
        build.args(["--locked", "--package", "gpulower-checks", "--profile", self.profile]);
        let target = set("CARGO_TARGET_DIR").map_or_else(|| self.workspace.root.join("target"), PathBuf::from);
        let to = self.directory.join("gpulower-checks");
        let mut strip = Command::new("strip");
        let built = if self.profile == "dev" { "debug" } else { self.profile };
        strip.arg("-o").arg(&to).arg(target.join(built).join("gpulower-checks"));
        let mut pack = Command::new("xz");
        pack.args(["-f", "-T0"]).arg(to);
        vec![build, strip, pack]
    }

    /// The images that the runtime is checked with.
    fn runtime(&self) -> Vec<Command> {
        const KERNELS: &str = "crates/gpulower-checks/src/runtime";
        let cuda = set("GPULOWER_CUDA").map_or_else(|| self.workspace.wheel_cuda(), PathBuf::from);
        let mut commands = vec![self.folder("runtime")];
        for (chip, output) in [(self.target, "plain.cubin"), (OTHER_CHIP, "other.cubin")] {
            let mut ptxas = self.program(cuda.join("bin/ptxas"));
            ptxas.arg(format!("-arch={chip}")).arg(format!("{KERNELS}/plain.ptx"));
            ptxas.arg("-o").arg(self.directory.join("runtime").join(output));
            commands.push(ptxas);
        }
        commands.push(self.compile("examples/saxpy.mlir", "runtime/saxpy.cubin", &[]));
        commands.push(self.compile(format!("{KERNELS}/strided.mlir"), "runtime/strided.cubin", &[]));
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace {
            root: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
            llvm: "/nowhere".into(),
        }
    }

    #[test]
    fn an_example_is_compiled_under_its_kernels_name() {
        let workspace = workspace();
        let maker = Maker {
            workspace: &workspace,
            gpulower: "gpulower".into(),
            directory: Path::new("/out"),
            target: "sm_90",
            profile: "release",
            parts: &[],
        };
        let all = examples(&workspace.root.join("examples")).unwrap();
        let chosen: Vec<Example> = all
            .into_iter()
            .filter(|example| example.name == "user_library")
            .collect();
        let commands = maker.examples(&chosen, "fatbins", "fatbin");
        let text = shown(&commands[1]);
        assert!(
            text.contains("--target sm_90 -o /out/fatbins/user_library.cubin --emit fatbin --link ")
                && text.ends_with("lib/scale_and_shift.ll"),
            "{text}"
        );
    }

    /// A folder without parts.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace();
        let maker = Maker {
            workspace: &workspace,
            gpulower: "gpulower".into(),
            directory: folder.path(),
            target: "sm_90",
            profile: "release",
            parts: &[],
        };
        maker.scripts().unwrap();
        folder
    }

    fn output(folder: &Path, arguments: &[&str]) -> (bool, String) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let output = capture(&mut main(&workspace(), folder, &arguments)).unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), text)
    }

    #[test]
    fn the_list_is_what_main_py_runs() {
        let (_, list) = output(folder().path(), &["--list"]);
        let words = |line: &str, at| line.split_whitespace().nth(at).map(str::to_owned);
        let names: Vec<_> = list.lines().filter_map(|line| words(line, 0)).collect();
        assert_eq!(names, PARTS);
        for by in list.lines().filter_map(|line| line.split_whitespace().next_back()) {
            assert!(workspace().root.join(by).exists(), "{by}");
        }
    }

    #[test]
    fn main_py_unpacks_the_program() {
        let folder = folder();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        let program = folder.path().join("gpulower-checks");
        fs::write(&program, "#!/bin/sh\necho checked $# \"$1\"\n").unwrap();
        run_command(Command::new("xz").arg(&program)).unwrap();
        let (right, text) = output(folder.path(), &["runtime", "session"]);
        let lines = "ok     runtime        checked 2 runtime\nok     session        checked 1 session\n";
        assert_eq!((right, text), (true, format!("{lines}2 of 2 parts are right\n")));
    }

    #[test]
    fn main_py_fails_where_there_is_nothing_to_run() {
        let folder = folder();
        let (right, text) = output(folder.path(), &[]);
        assert!(
            !right && text.contains("absent math: there is no math here") && text.ends_with("0 of 0 parts are right\n"),
            "{text}"
        );
    }

    /// A part that fails is named, with what it said; so is a check of it.
    #[test]
    fn main_py_says_what_failed() {
        let folder = folder();
        fs::create_dir(folder.path().join("export")).unwrap();
        for (name, text) in [("right", "echo all right"), ("wrong", "echo no such device\nexit 3")] {
            fs::write(folder.path().join("export").join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        }
        let (right, text) = output(folder.path(), &["export"]);
        assert!(
            !right && text.starts_with("FAILED export         exit status 1;"),
            "{text}"
        );
        for line in [
            "ok     right              all right",
            "FAILED wrong              exit status 3 (expected 0), said: no such device",
            "1 of 2 programs are right",
        ] {
            assert!(text.contains(&format!("\n    {line}\n")), "{text}");
        }
    }
}
