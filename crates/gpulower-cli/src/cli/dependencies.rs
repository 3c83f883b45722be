//! `--depfile` and `--print-inputs`: the files that a compilation depends on.

use std::path::{Path, PathBuf};

use gpulower::{
    Artifact, Library, Options, Target, Toolkit, compiler::PlannedOutput, options::PtxCompiler, target::Vendor,
    toolkit::PartKind,
};

/// What a compilation may read. Vendors' parts are among it whether they are needed or not: a build is right after an update of
/// the toolkit, at the price of being done once more.
#[derive(Debug)]
pub struct Dependencies {
    files: Vec<PathBuf>,
    nvidia: Vec<PathBuf>,
    amd: Vec<PathBuf>,
}

impl Dependencies {
    /// `others`: files of arguments, of stages, and what more the command reads.
    pub fn new(inputs: &[PathBuf], others: &[PathBuf], options: &Options, toolkit: &Toolkit) -> Self {
        let objects = options.device_link.iter().flat_map(|link| &link.objects);
        let libraries = options
            .libraries
            .iter()
            .chain(objects)
            .filter_map(|library| match library {
                Library::File(path) => Some(path),
                _ => None,
            });
        let found = |kinds: &[PartKind]| {
            kinds
                .iter()
                .filter_map(|kind| Some(toolkit.find(*kind)?.to_owned()))
                .collect()
        };
        let inputs = inputs.iter().filter(|input| *input != Path::new("-"));
        let mut nvidia = vec![PartKind::Libdevice];
        nvidia.extend(match options.ptx_compiler {
            Some(PtxCompiler::NvPtxCompiler) => vec![PartKind::NvPtxCompiler],
            Some(PtxCompiler::Ptxas) => vec![PartKind::Ptxas],
            Some(PtxCompiler::NvJitLink) => vec![PartKind::NvJitLink],
            _ => vec![PartKind::NvPtxCompiler, PartKind::Ptxas, PartKind::NvJitLink],
        });
        if options.device_link.is_some() && !nvidia.contains(&PartKind::NvJitLink) {
            nvidia.push(PartKind::NvJitLink);
        }
        Self {
            files: inputs.chain(libraries).chain(others).cloned().collect(),
            nvidia: found(&nvidia),
            amd: found(&[PartKind::Ocml, PartKind::Ockl]),
        }
    }

    /// All of them, each once. `planned`: what is known of the libraries that modules name.
    fn all<'a>(&'a self, planned: &'a [PlannedOutput], targets: &[Target]) -> Vec<&'a Path> {
        let of = |vendor| targets.iter().any(|target| target.vendor() == vendor);
        let parts = |vendor, parts: &'a [PathBuf]| parts.iter().filter(move |_| of(vendor));
        let named = planned.iter().flat_map(|output| &output.reads);
        let mut all: Vec<&Path> = Vec::new();
        for path in self
            .files
            .iter()
            .chain(named)
            .chain(parts(Vendor::Nvidia, &self.nvidia))
            .chain(parts(Vendor::Amd, &self.amd))
        {
            if !all.contains(&path.as_path()) {
                all.push(path);
            }
        }
        all
    }

    /// One on each line.
    pub fn lines(&self, planned: &[PlannedOutput]) -> String {
        let targets: Vec<Target> = planned.iter().flat_map(|output| output.targets.clone()).collect();
        let all = self.all(planned, &targets);
        all.iter().map(|path| format!("{}\n", path.display())).collect()
    }

    /// A rule in the language of make, as ninja reads it, too.
    pub fn makefile(&self, paths: &[Option<PathBuf>], artifacts: &[Artifact], planned: &[PlannedOutput]) -> String {
        let targets: Vec<Target> = artifacts.iter().flat_map(Artifact::targets).collect();
        let made: Vec<String> = paths.iter().flatten().map(|path| quoted(path)).collect();
        let all: Vec<String> = self.all(planned, &targets).into_iter().map(quoted).collect();
        let made = if made.is_empty() {
            "-".to_owned()
        } else {
            made.join(" ")
        };
        format!("{made}: \\\n  {}\n", all.join(" \\\n  "))
    }
}

/// A path as make reads it.
fn quoted(path: &Path) -> String {
    let mut text = String::new();
    for character in path.to_string_lossy().chars() {
        match character {
            ' ' | '#' => text.extend(['\\', character]),
            '$' => text.push_str("$$"),
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_make_wants_it() {
        assert_eq!(quoted(Path::new("a b/$c#d")), "a\\ b/$$c\\#d");
    }
}
