//! `cargo xtask quality`: how fast kernels are that nobody tuned for, beside nvcc's, by `scripts/quality/`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::amd;
use crate::command::{Context, Failure, run as run_command};
use crate::env::Workspace;

/// Where the means are written, and where every case is.
const PAGE: &str = "docs/code-quality.md";
const CASES: &str = "docs/lab/code-quality.md";

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Compile every kernel with every compiler, and print registers and instructions: needs no GPU.
    Make {
        /// A folder for the cubins.
        directory: PathBuf,
        /// Other compilers or options, such as `two="gpulower --interleave=2"` or `before="OLD_GPULOWER"`.
        #[arg(long)]
        variant: Vec<String>,
        /// These kernels alone.
        #[arg(long, num_args = 1..)]
        only: Vec<String>,
    },
    /// Check and time what was made, on this machine's NVIDIA GPU: needs numpy and cupy. `scripts/quality/` and the folder are
    /// all that another machine needs.
    Time {
        /// The folder.
        directory: PathBuf,
        /// With the kernels that nobody looks at while working on the compiler.
        #[arg(long)]
        hidden: bool,
        /// How often each case is run.
        #[arg(long, default_value_t = 20)]
        rounds: u32,
        /// A file for the results, which `table` reads.
        #[arg(long)]
        table: Option<PathBuf>,
    },
    /// Compare with clang -O3, as hipcc runs it, on AMD chips: instructions, and those that the executor of `tests/amd` carries
    /// out. Needs no GPU.
    Amd {
        /// A folder for the code objects.
        directory: PathBuf,
        /// These kernels alone.
        #[arg(long, num_args = 1..)]
        only: Vec<String>,
        /// AMD's device libraries, for clang.
        #[arg(long, default_value = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")]
        libraries: PathBuf,
        /// Put the means into docs/code-quality.md, and kernels that execute more into docs/lab/code-quality.md.
        #[arg(long)]
        write: bool,
    },
    /// Put means into docs/code-quality.md, and every case into docs/lab/code-quality.md.
    Table {
        /// What `time --table` wrote.
        results: PathBuf,
    },
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let script = |name: &str| {
        let mut command = workspace.command("python3");
        command.arg(workspace.root.join("scripts/quality").join(name));
        command
    };
    let mut command = match &options.part {
        Part::Make {
            directory,
            variant,
            only,
        } => {
            let mut command = script("make.py");
            command
                .arg(directory)
                .arg("--gpulower")
                .arg(released(workspace)?)
                .arg("--nvcc")
                .arg(workspace.wheel_cuda().join("bin/nvcc"))
                .arg("--clang")
                .arg(workspace.llvm.join("bin/clang++"))
                .arg("--mlir-opt")
                .arg(workspace.llvm.join("bin/mlir-opt"))
                .env("CUDA_HOME", workspace.wheel_cuda());
            for variant in variant {
                command.arg("--variant").arg(variant);
            }
            if !only.is_empty() {
                command.arg("--only").args(only);
            }
            command
        }
        Part::Time {
            directory,
            hidden,
            rounds,
            table,
        } => {
            let mut command = script("time_on_gpu.py");
            command.arg(directory).args(["--rounds", &rounds.to_string()]);
            if *hidden {
                command.arg("--hidden");
            }
            if let Some(table) = table {
                command.arg("--table").arg(table);
            }
            command
        }
        Part::Amd {
            directory,
            only,
            libraries,
            write,
        } => {
            let mut command = amd::python(workspace)?;
            command
                .arg(workspace.root.join("scripts/quality/amd.py"))
                .arg(std::path::absolute(directory).context(|| format!("find {}", directory.display()))?)
                .arg("--gpulower")
                .arg(released(workspace)?)
                .arg("--llvm")
                .arg(&workspace.llvm)
                .arg("--libraries")
                .arg(libraries);
            if *write {
                command
                    .arg("--output")
                    .arg(workspace.root.join(PAGE))
                    .arg("--kernels")
                    .arg(workspace.root.join(CASES));
            }
            if !only.is_empty() {
                command.arg("--only").args(only);
            }
            command
        }
        Part::Table { results } => {
            let mut command = script("table.py");
            command
                .arg(results)
                .arg("--output")
                .arg(workspace.root.join(PAGE))
                .arg("--cases")
                .arg(workspace.root.join(CASES));
            command
        }
    };
    run_command(&mut command)
}

/// The compiler that is measured: built with optimisation.
fn released(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut build = workspace.cargo("build");
    build.args(["--release", "--package", "gpulower-cli"]);
    run_command(&mut build)?;
    Ok(workspace.binaries()?.with_file_name("release").join("gpulower"))
}
