//! What is damaged: the examples, the inputs of the lit tests, the seeds of the readers' fuzz targets, and what the
//! compiler makes of the examples.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use serde::Deserialize;

use super::mutate::Vocabulary;
use super::operations::{self, Operation};
use crate::command::{Context, Failure, capture};
use crate::env::Workspace;

/// A seed and its name.
#[derive(Debug, Clone)]
pub struct Seed {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Seed {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// An option of the library's, as `gpulower-checks fuzz --options` lists them.
#[derive(Debug, Clone, Deserialize)]
pub struct OptionSeed {
    pub name: String,
    pub examples: Vec<String>,
    /// The vendor whose targets alone have it.
    pub only: Option<String>,
    pub passes: Vec<String>,
    /// Whether only a caller may say it, and not a module.
    pub is_the_callers: bool,
}

impl OptionSeed {
    /// One of its values.
    pub fn value(&self, rng: &mut Rng) -> String {
        self.examples[rng.usize(0..self.examples.len())].clone()
    }
}

/// Everything that there is to damage.
pub struct Seeds {
    pub options: Vec<OptionSeed>,
    pub mlir: Vec<Seed>,
    pub programs: Vec<Seed>,
    pub bytecode: Vec<Seed>,
    pub llvm: Vec<Seed>,
    pub bitcode: Vec<Seed>,
    pub libraries: Vec<Seed>,
    pub ptx: Vec<Seed>,
    pub containers: Vec<Seed>,
    pub operations: Vec<Operation>,
    pub mlir_words: Vocabulary,
    pub llvm_words: Vocabulary,
    pub other_words: Vocabulary,
}

impl Seeds {
    /// Reads them. Those that have to be made are in a folder; unless they are `made` there already, `programs` make them.
    pub fn gather(workspace: &Workspace, programs: &Path, folder: &Path, made: bool) -> Result<Self, Failure> {
        let root = &workspace.root;
        let program = programs.join("gpulower-checks");
        let options = capture(workspace.command(program).args(["fuzz", "--options"]))?;
        let options = serde_json::from_slice(&options.stdout).context(|| "read the list of options".to_owned())?;
        let folder = folder.join("seeds");
        if !(made && folder.exists()) {
            fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
            Makers {
                workspace,
                programs,
                folder: &folder,
            }
            .all()?;
        }
        let made = read_all(&sorted(&folder)?)?;
        let mut mlir = Vec::new();
        for file in files_below(&root.join("examples"), "mlir")?
            .into_iter()
            .chain(files_below(&root.join("tests/lit"), "mlir")?)
        {
            mlir.extend(parts(&read(&file)?));
        }
        let programs = mlir
            .iter()
            .filter(|seed| seed.text().contains("gpu.launch"))
            .cloned()
            .collect();
        let with = |extension: &str| -> Vec<Seed> {
            let matching = made.iter().filter(|seed| seed.name.ends_with(extension));
            matching.cloned().collect()
        };
        let mut libraries = read_all(&files_below(&root.join("tests/lit/Inputs"), "ll")?)?;
        libraries.extend(read_all(&files_below(&root.join("examples/lib"), "ll")?)?);
        libraries.extend(with(".library.bc"));
        let mut llvm = with(".ll");
        llvm.extend(libraries.iter().filter(|seed| seed.name.ends_with(".ll")).cloned());
        let mut ptx = with(".ptx");
        ptx.extend(read_all(&files_below(&root.join("examples"), "ptx")?)?);
        let corpus = root.join("fuzz/corpus");
        let mut containers = Vec::new();
        for kind in sorted(&corpus)? {
            // Texts of options and logs are no files that anybody inspects.
            if !["specs", "ptx_log"].contains(&name_of(&kind).as_str()) {
                containers.extend(read_all(&sorted(&kind)?)?);
            }
        }
        let words = |seeds: &[Seed]| {
            let texts: Vec<String> = seeds.iter().map(Seed::text).collect();
            Vocabulary::of(texts.iter().map(String::as_str))
        };
        let seeds = Self {
            options,
            mlir_words: words(&mlir),
            llvm_words: words(&llvm),
            other_words: words(&ptx),
            programs,
            bytecode: with(".mlirbc"),
            bitcode: with(".bc"),
            mlir,
            llvm,
            libraries,
            ptx,
            containers,
            operations: operations::all(&workspace.llvm.join("include"))?,
        };
        for (what, seeds) in [
            ("MLIR", &seeds.mlir),
            ("host programs", &seeds.programs),
            ("MLIR bytecode", &seeds.bytecode),
            ("LLVM IR", &seeds.llvm),
            ("bitcode", &seeds.bitcode),
            ("libraries", &seeds.libraries),
            ("PTX", &seeds.ptx),
            ("containers", &seeds.containers),
        ] {
            if seeds.is_empty() {
                return Err(Failure::new(format!("there is no seed for {what}")));
            }
        }
        if seeds.operations.is_empty() {
            return Err(Failure::new("MLIR's headers define no operation"));
        }
        Ok(seeds)
    }
}

/// The parts of a lit test, or a whole file, without the lines for lit.
fn parts(seed: &Seed) -> Vec<Seed> {
    let text = seed.text();
    let parts = text.split("// -----").enumerate().map(|(index, part)| {
        let lines = part.lines().filter(|line| !line.trim_start().starts_with("//"));
        Seed {
            name: format!("{}-{index}", seed.name),
            bytes: lines.collect::<Vec<_>>().join("\n").into_bytes(),
        }
    });
    parts.filter(|part| !part.bytes.trim_ascii().is_empty()).collect()
}

/// Makes seeds with the programs of this checkout and LLVM's.
struct Makers<'a> {
    workspace: &'a Workspace,
    programs: &'a Path,
    folder: &'a Path,
}

impl Makers<'_> {
    fn all(&self) -> Result<(), Failure> {
        let Self { programs, folder, .. } = self;
        for example in sorted(&self.workspace.root.join("examples"))? {
            if example.extension() != Some(OsStr::new("mlir")) {
                continue;
            }
            let stem = example.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = read(&example)?.text();
            for (vendor, target) in [("sm_", "sm_90"), ("gfx", "gfx942")] {
                let named = text
                    .lines()
                    .find_map(|line| line.strip_prefix("// gpulower-targets:"))
                    .is_some_and(|targets| targets.contains(vendor));
                // Kernels with libraries of their own are seeds as MLIR.
                if !named || text.contains("// gpulower-link:") {
                    continue;
                }
                for (emit, extension) in [("llvm", "ll"), ("bitcode", "bc"), ("ptx", "ptx")] {
                    if emit == "ptx" && vendor == "gfx" {
                        continue;
                    }
                    let output = folder.join(format!("{stem}.{target}.{extension}"));
                    let mut command = self.workspace.command(programs.join("gpulower"));
                    command
                        .arg("compile")
                        .arg(&example)
                        .args(["--target", target, "--emit", emit, "-o"])
                        .arg(&output);
                    self.make(&mut command)?;
                }
            }
            let mut command = self.workspace.command(programs.join("gpulower-opt"));
            command
                .arg(&example)
                .args(["--emit-bytecode", "-o"])
                .arg(folder.join(format!("{stem}.mlirbc")));
            self.make(&mut command)?;
        }
        for library in files_below(&self.workspace.root.join("tests/lit/Inputs"), "ll")? {
            let output = folder.join(format!("{}.library.bc", name_of(&library)));
            let mut command = self.workspace.command(self.workspace.llvm.join("bin/llvm-as"));
            command.arg(&library).arg("-o").arg(output);
            self.make(&mut command)?;
        }
        Ok(())
    }

    fn make(&self, command: &mut std::process::Command) -> Result<(), Failure> {
        let output = capture(command)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "cannot make a seed: {}\n{}",
                crate::command::shown(command),
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Seed, Failure> {
    Ok(Seed {
        name: name_of(path),
        bytes: fs::read(path).context(|| format!("read {}", path.display()))?,
    })
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Seed>, Failure> {
    paths.iter().map(|path| read(path)).collect()
}

/// What is in a folder, by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).context(|| format!("list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn files_below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in sorted(folder)? {
        if path.is_dir() {
            found.extend(files_below(&path, extension)?);
        } else if path.extension() == Some(OsStr::new(extension)) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lit_test_is_taken_apart() {
        let seed = Seed {
            name: "a.mlir".to_owned(),
            bytes: b"// RUN: x\n\nmodule {}\n// -----\n// CHECK: y\nmodule @b {}\n// -----\n// nothing\n".to_vec(),
        };
        let parts: Vec<(String, String)> = parts(&seed)
            .iter()
            .map(|part| (part.name.clone(), part.text().trim().to_owned()))
            .collect();
        let expected = [("a.mlir-0", "module {}"), ("a.mlir-1", "module @b {}")];
        assert_eq!(parts, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
