//! `cargo xtask test`: everything that has to hold before a change goes in. The continuous integration runs the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};

use crate::amd;
use crate::command::{Failure, run as run_command, shown, succeeds};
use crate::env::Workspace;
use crate::fuzz::Surface;
use crate::integrations;
use crate::servers;
use crate::setup::{self, Purpose};
use crate::soak;
use crate::wheel;

#[derive(Debug, Args)]
pub struct Options {
    /// Do not look for missing packages and wheels first.
    #[arg(long)]
    no_setup: bool,
    /// Which parts to run; all of them when none is named.
    #[arg(value_enum)]
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Formatting.
    Fmt,
    /// clippy, with warnings denied.
    Clippy,
    /// Documentation, with warnings denied.
    Doc,
    /// Rust tests.
    Rust,
    /// What needs no LLVM, built for AArch64.
    Cross,
    /// lit tests of the two command-line tools.
    Lit,
    /// The C library, in programs in C, C++ and Python.
    C,
    /// What is read of what other releases write.
    Inputs,
    /// Kernels for AMD chips, executed instruction by instruction.
    Amd,
    /// The shared cache, on real servers.
    Cache,
    /// The Python package: its wheel, in an environment of its own.
    Python,
    /// The Debian package, the tarball and the wheel, and the tutorial, in an empty root: after the parts `c` and `python`, which build them.
    Dist,
    /// Compilers that others wrote, on top of gpulower; a project built by Bazel and BuildGrid.
    Integrations,
    /// The short form of `cargo xtask soak`.
    Soak,
    /// A few damaged inputs of every kind.
    Fuzz,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !options.no_setup {
        setup::run(workspace, Purpose::Test)?;
    }
    for part in Part::value_variants() {
        if options.wants(*part) {
            for mut command in commands(*part, workspace)? {
                step(&mut command)?;
            }
        }
    }
    Ok(())
}

/// The commands of one part, in order.
fn commands(part: Part, workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    let cargo = |subcommand: &str, arguments: &[&str]| {
        let mut command = workspace.cargo(subcommand);
        command.args(arguments);
        command
    };
    Ok(match part {
        Part::Fmt => vec![cargo("fmt", &["--all", "--check"])],
        Part::Clippy => vec![cargo(
            "clippy",
            &["--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        )],
        Part::Doc => {
            let mut doc = cargo("doc", &["--workspace", "--no-deps", "--locked"]);
            doc.env("RUSTDOCFLAGS", "-D warnings");
            vec![doc]
        }
        Part::Rust => vec![
            cargo("test", &["--workspace", "--locked"]),
            // The seeds of the fuzz targets.
            cargo(
                "test",
                &[
                    "--manifest-path",
                    "fuzz/Cargo.toml",
                    "--target-dir",
                    "target/fuzz",
                    "--locked",
                ],
            ),
        ],
        Part::Cross => vec![cargo("xtask", &["cross", "aarch64", "--readers"])],
        Part::Lit => vec![workspace.build_everything(), lit(workspace)?],
        // Through cargo: see `short_fuzz`.
        Part::C => vec![cargo("xtask", &["c"])],
        Part::Inputs => vec![cargo("xtask", &["inputs", "--few"])],
        Part::Amd => amd::test(workspace)?,
        Part::Cache => vec![servers::test(workspace)],
        Part::Python => wheel::test(workspace)?,
        Part::Dist => vec![cargo(
            "xtask",
            &["dist", "--dev", "--built", "--try", "--out", "target/dist-tried"],
        )],
        Part::Integrations => integrations::test(workspace)?,
        Part::Soak => soak::short(workspace)?,
        Part::Fuzz => vec![short_fuzz(workspace), short_fuzz_in_workers(workspace)],
    })
}

/// The same inputs every time, of the surfaces on which a process has no way to die that is known. Damaged bitcode and
/// MLIR bytecode can end it (docs/reliability.md): `cargo xtask fuzz` tries them, too.
///
/// Through cargo, not by the path of this program: the builds of the parts before may have replaced it.
fn short_fuzz(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("xtask");
    command.args(["fuzz", "--seed", "1", "--inputs", "30"]);
    for surface in SHORT_FUZZ {
        command.args(["--surface", &surface.name()]);
    }
    command
}

/// The same inputs every time, in processes that may die of them: this is not to end the one that embeds the library.
fn short_fuzz_in_workers(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("xtask");
    command.args(["fuzz", "--seed", "1", "--inputs", "10", "--workers", "--no-build"]);
    command
}

const SHORT_FUZZ: &[Surface] = &[
    Surface::MlirNvidia,
    Surface::MlirAmd,
    Surface::Operations,
    Surface::Passes,
    Surface::Pipelines,
    Surface::Export,
    Surface::LlvmIr,
    Surface::Ptx,
    Surface::Targets,
    Surface::Options,
    Surface::Containers,
];

/// The lit tests, with the programs of this build.
pub fn lit(workspace: &Workspace) -> Result<Command, Failure> {
    let tests = workspace.root.join("tests/lit");
    if !tests.join("lit.cfg.py").is_file() {
        return Err(Failure::new(format!(
            "there are no lit tests: {} is missing",
            tests.join("lit.cfg.py").display()
        )));
    }
    let program = lit_program(&workspace.llvm)?;
    let mut command = workspace.command(program);
    command
        .args(["-sv", "tests/lit"])
        .env("GPULOWER_BIN_DIR", workspace.binaries()?);
    Ok(command)
}

/// LLVM's test runner: Debian's `llvm-22-tools` has it beside the tools, other installations have it in PATH.
fn lit_program(llvm: &Path) -> Result<PathBuf, Failure> {
    let mut candidates = vec![llvm.join("bin/lit"), llvm.join("bin/llvm-lit")];
    candidates.retain(|path| path.is_file());
    candidates.push("lit".into());
    candidates
        .into_iter()
        .find(|program| succeeds(Command::new(program).arg("--version")))
        .ok_or_else(|| {
            Failure::new(format!(
                "lit is neither {0}/bin/lit nor {0}/bin/llvm-lit nor in PATH; it is in Debian's llvm-22-tools, \
                 and on PyPI as `lit`",
                llvm.display()
            ))
        })
}

fn step(command: &mut Command) -> Result<(), Failure> {
    let mut text = shown(command);
    // A person does not type the path of the cargo that runs this program.
    if let Some((first, rest)) = text.split_once(' ')
        && first.ends_with("/cargo")
    {
        text = format!("cargo {rest}");
    }
    println!("\n== {text}");
    run_command(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(parts: &[Part]) -> Options {
        Options {
            no_setup: true,
            parts: parts.to_vec(),
        }
    }

    fn workspace(root: &Path) -> Workspace {
        Workspace {
            root: root.into(),
            llvm: "/nowhere".into(),
        }
    }

    #[test]
    fn without_names_every_part_runs() {
        for part in Part::value_variants() {
            assert!(options(&[]).wants(*part));
        }
        assert!(options(&[Part::Doc]).wants(Part::Doc));
        assert!(!options(&[Part::Doc]).wants(Part::Lit));
    }

    #[test]
    fn warnings_are_denied_and_the_lock_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let clippy = commands(Part::Clippy, &workspace(folder.path())).unwrap();
        assert!(shown(&clippy[0]).ends_with("clippy --workspace --all-targets --locked -- -D warnings"));
        let doc = commands(Part::Doc, &workspace(folder.path())).unwrap();
        assert!(
            doc[0]
                .get_envs()
                .any(|(name, value)| name == "RUSTDOCFLAGS" && value == Some("-D warnings".as_ref()))
        );
    }

    #[test]
    fn the_short_soak_covers_memory_and_failures() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let commands = commands(Part::Soak, &workspace(&root)).unwrap();
        let shown: Vec<String> = commands.iter().map(shown).collect();
        assert!(
            shown.iter().any(|command| command.contains(" soak memory --compiles")),
            "{shown:?}"
        );
        assert!(
            shown.iter().any(|command| command.contains(" soak mixed --compiles")),
            "{shown:?}"
        );
    }

    #[test]
    fn the_short_fuzz_is_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let fuzz = commands(Part::Fuzz, &workspace(folder.path())).unwrap();
        let text = shown(&fuzz[0]);
        assert!(
            text.contains(" fuzz --seed 1 --inputs 30 --surface mlir-nvidia "),
            "{text}"
        );
        assert!(!text.contains("bytecode") && !text.contains("bitcode"), "{text}");
        let text = shown(&fuzz[1]);
        assert!(text.contains(" fuzz --seed 1 --inputs 10 --workers"), "{text}");
    }

    /// The file that this process was started from is another, or none, once a part has built the workspace.
    #[test]
    fn no_part_starts_the_file_of_this_process() {
        let folder = tempfile::tempdir().unwrap();
        let this = std::env::current_exe().unwrap();
        for part in [Part::Fmt, Part::Clippy, Part::Doc, Part::Rust, Part::Fuzz] {
            for command in commands(part, &workspace(folder.path())).unwrap() {
                assert_ne!(Path::new(command.get_program()), this, "{}", shown(&command));
            }
        }
    }

    #[test]
    fn missing_lit_tests_are_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let message = commands(Part::Lit, &workspace(folder.path())).unwrap_err().to_string();
        assert!(message.contains("there are no lit tests"), "{message}");
    }
}
