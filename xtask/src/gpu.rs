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
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which parts there are, what each checks, and by what.
    List,
    /// Build some parts into a folder, with `run.sh`, for a machine with a GPU.
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

/// What is checked on a GPU: each part's name, what it is about, and the file that checks it.
const PARTS: [(&str, &str, &str); 13] = [
    (
        "examples",
        "the kernels of examples/, against NumPy",
        "scripts/check_on_gpu.py",
    ),
    ("fatbins", "the same from fat binaries", "scripts/check_on_gpu.py"),
    (
        "lowering",
        "what gpulower lowers by itself",
        "scripts/check_lowering_on_gpu.py",
    ),
    (
        "subgroups",
        "shuffles, scans, the last block of a grid",
        "scripts/check_subgroups_on_gpu.py",
    ),
    (
        "math",
        "every operation of the math dialect, in ULP",
        "scripts/check_math_on_gpu.py",
    ),
    (
        "containers",
        "which image of a fat binary the driver takes",
        "scripts/check_containers_on_gpu.py",
    ),
    ("link", "device linking", "scripts/check_device_link_on_gpu.py"),
    (
        "runtime",
        "loading and launching",
        "crates/gpulower-checks/src/runtime/",
    ),
    ("run", "whole programs", "scripts/check_run_on_gpu.sh"),
    (
        "session",
        "sessions, and MLIR's operations for newer chips",
        "crates/gpulower-checks/src/session/",
    ),
    (
        "export",
        "programs that clang and cc finished",
        "scripts/export_on_gpu/make.sh",
    ),
    (
        "python",
        "the Python package with cupy, torch, cuda.core",
        "scripts/check_python_on_gpu.sh",
    ),
    (
        "integrations",
        "Triton, numba-cuda-mlir, xDSL, the tensor crate",
        "scripts/check_integrations_on_gpu.sh",
    ),
];

/// Compilers that exports are finished with (`scripts/export_on_gpu/make.sh`).
const CLANGS: [&str; 3] = ["clang-16", "clang-19", "clang-22"];

/// What `run.sh` starts on the machine with the GPU.
const SCRIPTS: [&str; 9] = [
    "check_on_gpu.py",
    "check_lowering_on_gpu.py",
    "check_subgroups_on_gpu.py",
    "check_math_on_gpu.py",
    "check_containers_on_gpu.py",
    "check_device_link_on_gpu.py",
    "check_run_on_gpu.sh",
    "check_python_on_gpu.sh",
    "check_integrations_on_gpu.sh",
];

/// A chip whose code no other one runs that the checks are for.
const OTHER_CHIP: &str = "sm_80";

/// The chip whose devices `check_containers_on_gpu.py` knows.
const CONTAINERS_FOR: &str = "sm_90";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    match &options.action {
        Some(Action::Make { directory, parts }) => {
            make(workspace, directory, &options.target, parts)?;
            println!(
                "Copy {} to the machine with the GPU, and run its run.sh.",
                directory.display()
            );
            Ok(())
        }
        Some(Action::List) => {
            for (name, what, by) in PARTS {
                println!("{name:<12} {what:<48} {by}");
            }
            Ok(())
        }
        None => here(workspace, &options.target, &[]),
        Some(Action::Run { parts }) => here(workspace, &options.target, parts),
    }
}

/// Builds parts, all of them if none is named, and runs them on this machine.
fn here(workspace: &Workspace, target: &str, parts: &[String]) -> Result<(), Failure> {
    if !succeeds(Command::new("nvidia-smi").arg("-L")) {
        return Err(Failure::new(
            "`nvidia-smi -L` finds no NVIDIA GPU on this machine; `cargo xtask gpu make DIRECTORY` makes a folder for \
                     a machine that has one",
        ));
    }
    let directory = workspace.root.join("target/gpu");
    make(workspace, &directory, target, parts)?;
    run_command(Command::new(directory.join("run.sh")).args(parts))
}

/// Fills the folder, with a line for each part.
fn make(workspace: &Workspace, directory: &Path, target: &str, parts: &[String]) -> Result<(), Failure> {
    let unknown = |part: &&String| PARTS.iter().all(|(name, ..)| name != part);
    if let Some(part) = parts.iter().find(unknown) {
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
        target,
        parts,
    };
    maker.scripts()?;
    for (name, ..) in PARTS {
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
            "examples" => examples("cubins", "cubin")?,
            "fatbins" => examples("fatbins", "fatbin")?,
            "lowering" => vec![self.compile("scripts/lowering.mlir", "lowering.cubin", &[])],
            "subgroups" => vec![
                self.compile("tests/amd/kernels/subgroups.mlir", "subgroups.cubin", &[]),
                self.compile("scripts/orderings.mlir", "orderings.cubin", &[]),
            ],
            "math" => vec![self.script("scripts/check_math_on_gpu.py", "math", &[self.target])],
            "containers" if self.target != CONTAINERS_FOR => {
                return Ok(Err(format!(
                    "what is expected is written down for {CONTAINERS_FOR} alone"
                )));
            }
            "containers" => vec![self.script("scripts/check_containers_on_gpu.py", "containers", &[])],
            "link" => self.link(),
            "runtime" => self.runtime().into_iter().chain(self.checks()).collect(),
            "run" => vec![self.script("scripts/check_run_on_gpu.sh", "run", &[self.target])],
            // One program for both.
            "session" if self.wants("runtime") => Vec::new(),
            "session" => self.checks(),
            "export" => {
                let is_missing = |clang: &&&str| !succeeds(Command::new(clang).arg("--version"));
                if let Some(missing) = CLANGS.iter().find(is_missing) {
                    return Ok(Err(format!(
                        "there is no {missing}, and {} are needed",
                        CLANGS.join(", ")
                    )));
                }
                vec![self.export()]
            }
            "python" => vec![self.with_wheel("scripts/check_python_on_gpu.sh", "python")?],
            "integrations" => {
                integrations::packages(self.workspace)?;
                let mut build = self.workspace.cargo("build");
                build.args(["--locked", "-p", "gpulower-tensor"]);
                let mut make = self.with_wheel("scripts/check_integrations_on_gpu.sh", "integrations")?;
                make.env("GPULOWER_TENSOR", self.workspace.binaries()?.join("gpulower-tensor"));
                vec![build, make]
            }
            _ => unreachable!("a part of PARTS"),
        }))
    }

    /// A script that takes the Python package along.
    fn with_wheel(&self, script: &str, folder: &str) -> Result<Command, Failure> {
        let wheels = self.workspace.root.join("target/gpu-wheels");
        wheel::make(self.workspace, true, &wheels)?;
        let wheel = wheel::only(&wheels)?;
        Ok(self.script(script, folder, &[&wheel.display().to_string()]))
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

    /// `run.sh`, and the scripts that it starts.
    fn scripts(&self) -> Result<(), Failure> {
        let scripts = self.directory.join("scripts");
        fs::create_dir_all(&scripts).context(|| format!("create {}", scripts.display()))?;
        let copies = SCRIPTS.iter().map(|name| (*name, scripts.join(name)));
        for (name, to) in copies.chain([("run_on_gpu.sh", self.directory.join("run.sh"))]) {
            let from = self.workspace.root.join("scripts").join(name);
            fs::copy(&from, &to).context(|| format!("copy {} to {}", from.display(), to.display()))?;
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

    /// Each kernel in a form, under the name that `check_on_gpu.py` looks for.
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

    /// A script of ours that fills a folder with its action `make`.
    fn script(&self, script: &str, folder: &str, more: &[&str]) -> Command {
        let mut command = match Path::new(script).extension().is_some_and(|extension| extension == "py") {
            true => {
                let mut python = self.program("python3");
                python.arg(script);
                python
            }
            false => self.program(self.workspace.root.join(script)),
        };
        command.arg("make").arg(self.directory.join(folder)).args(more);
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
        build.args(["--release", "--locked", "--package", "gpulower-checks"]);
        let target = set("CARGO_TARGET_DIR").map_or_else(|| self.workspace.root.join("target"), PathBuf::from);
        let to = self.directory.join("gpulower-checks");
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&to).arg(target.join("release/gpulower-checks"));
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

    fn export(&self) -> Command {
        let mut command = self.program("scripts/export_on_gpu/make.sh");
        let cuda = set("CUDA_ROOT").unwrap_or_else(|| self.workspace.wheel_cuda().into());
        command
            .env("CUDA_ROOT", cuda)
            .arg(self.directory.join("export"))
            .arg(self.target)
            .arg(&self.gpulower);
        command
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

    #[test]
    fn everything_that_is_run_is_copied() {
        let workspace = workspace();
        let folder = tempfile::tempdir().unwrap();
        let maker = Maker {
            workspace: &workspace,
            gpulower: "gpulower".into(),
            directory: folder.path(),
            target: "sm_90",
            parts: &[],
        };
        maker.scripts().unwrap();
        let script = fs::read_to_string(folder.path().join("run.sh")).unwrap();
        let named: Vec<&str> = script
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("scripts/"))
            .collect();
        assert_eq!(named.len(), SCRIPTS.len() + 1, "the examples are run twice: {named:?}");
        for name in named {
            assert!(folder.path().join("scripts").join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn the_list_is_what_run_sh_runs() {
        let root = workspace().root;
        let script = fs::read_to_string(root.join("scripts/run_on_gpu.sh")).unwrap();
        let run: Vec<&str> = script
            .lines()
            .filter_map(|line| line.strip_prefix("part ")?.split(' ').next())
            .collect();
        assert_eq!(run, PARTS.map(|(name, ..)| name));
        for (name, _, by) in PARTS {
            assert!(root.join(by).exists(), "{name}: {by}");
        }
    }

    #[test]
    fn run_sh_unpacks_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("run.sh");
        fs::copy(workspace().root.join("scripts/run_on_gpu.sh"), &script).unwrap();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        let program = folder.path().join("gpulower-checks");
        fs::write(&program, "#!/bin/sh\necho checked \"$@\"\n").unwrap();
        run_command(Command::new("xz").arg(&program)).unwrap();
        let output = capture(Command::new(&script).args(["runtime", "session"])).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            text,
            "ok     runtime      checked runtime runtime\nok     session      checked session\n2 of 2 parts are right\n"
        );
    }

    #[test]
    fn run_sh_fails_where_there_is_nothing_to_run() {
        let workspace = workspace();
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("run.sh");
        fs::copy(workspace.root.join("scripts/run_on_gpu.sh"), &script).unwrap();
        let output = capture(&mut Command::new(&script)).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{text}");
        assert!(
            text.contains("absent math: there is no math here") && text.ends_with("0 of 0 parts are right\n"),
            "{text}"
        );
        // A part that fails is named, with what it said.
        fs::create_dir(folder.path().join("export")).unwrap();
        fs::write(
            folder.path().join("export/run.sh"),
            "#!/bin/sh\necho no such device\nexit 3\n",
        )
        .unwrap();
        run_command(Command::new("chmod").arg("+x").arg(folder.path().join("export/run.sh"))).unwrap();
        let output = capture(Command::new(&script).arg("export")).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{text}");
        assert!(
            text.starts_with("FAILED export       exit status 3;") && text.contains("\n    no such device\n"),
            "{text}"
        );
    }
}
