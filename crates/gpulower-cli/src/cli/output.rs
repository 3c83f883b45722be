//! Where artifacts go: what `-o` means, and the names of files in a directory.

use std::path::{Path, PathBuf};

use gpulower::{
    Artifact, Emit, Format, Target,
    compiler::PlannedOutput,
    stage_files::{artifact_stem, safe_name},
};

use super::{
    Failed,
    write::{is_stdout, means_directory},
};

/// Where the result is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The standard output.
    Stdout,
    /// One file.
    File(PathBuf),
    /// A file for each artifact in this directory.
    Directory(PathBuf),
}

impl Destination {
    /// What `-o` means: `-` is the standard output, an existing directory or a name that ends with `/` a directory,
    /// and nothing at all the current directory.
    pub fn of(output: Option<&Path>) -> Self {
        match output {
            None => Self::Directory(PathBuf::new()),
            Some(path) if is_stdout(path) => Self::Stdout,
            Some(path) if path.is_dir() || means_directory(path) => Self::Directory(path.to_owned()),
            Some(path) => Self::File(path.to_owned()),
        }
    }

    /// The directory that files go to; none is the current one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Stdout | Self::File(_) => None,
        }
    }

    fn holds_one(&self) -> bool {
        !matches!(self, Self::Directory(_))
    }

    fn shown(&self) -> String {
        match self {
            Self::Stdout => "the standard output".to_owned(),
            Self::File(path) | Self::Directory(path) => path.display().to_string(),
        }
    }

    /// Refuses, before anything is compiled, several targets for one file, where each module makes an artifact for each.
    pub fn check_targets(&self, targets: &[Target], emit: Emit) -> Result<(), Failed> {
        if emit.is_container() {
            return Ok(());
        }
        let names: Vec<String> = targets.iter().map(|target| format!("for {target}")).collect();
        self.check_count(&names)
    }

    pub fn check_count(&self, names: &[String]) -> Result<(), Failed> {
        if names.len() < 2 || !self.holds_one() {
            return Ok(());
        }
        const NAMED: usize = 3;
        let named = names.get(..NAMED).unwrap_or(names).join(", ");
        let others = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Err(Failed::Usage(format!(
            "{} artifacts do not fit into {}: {named}{others}\n  Name a directory, such as -o out/, compile for one target and one \
             module at a time, or put several targets of NVIDIA's into one file with --emit fatbin.",
            names.len(),
            self.shown(),
        )))
    }

    /// The path of each artifact, in order; `None` is the standard output. `input_stem`: what the names of an input's artifacts
    /// begin with.
    pub fn paths(
        &self,
        artifacts: &[ArtifactName],
        input_stem: impl Fn(usize) -> Option<String>,
    ) -> Result<Vec<Option<PathBuf>>, Failed> {
        let name = |artifact: &ArtifactName| {
            let name = format!("{}.{}", artifact.stem(), artifact.format.extension());
            match artifact.input.and_then(&input_stem) {
                Some(stem) if stem != safe_name(&artifact.module) => format!("{}.{name}", safe_name(&stem)),
                _ => name,
            }
        };
        let names: Vec<String> = artifacts.iter().map(name).collect();
        self.check_count(&names)?;
        Ok(names
            .into_iter()
            .map(|name| match self {
                Self::Stdout => None,
                Self::File(path) => Some(path.clone()),
                Self::Directory(directory) => Some(directory.join(name)),
            })
            .collect())
    }
}

/// What the name of an artifact's file is made of.
#[derive(Clone, Debug)]
pub struct ArtifactName {
    /// The place of the input that it is of.
    input: Option<usize>,
    module: String,
    targets: Vec<Target>,
    format: Format,
}

impl From<&Artifact> for ArtifactName {
    fn from(artifact: &Artifact) -> Self {
        Self {
            input: artifact.input.as_ref().map(|input| input.index),
            module: artifact.module.clone(),
            targets: artifact.targets(),
            format: artifact.format,
        }
    }
}

impl From<&PlannedOutput> for ArtifactName {
    fn from(output: &PlannedOutput) -> Self {
        Self {
            input: output.input,
            module: output.module.clone(),
            targets: output.targets.clone(),
            format: output.format,
        }
    }
}

impl ArtifactName {
    /// The same of another format.
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The names of artifacts.
    pub fn all<'a, T: 'a>(artifacts: &'a [T]) -> Vec<Self>
    where
        Self: From<&'a T>,
    {
        artifacts.iter().map(Self::from).collect()
    }

    /// The file's name without its extension: `MODULE.TARGET`, or `MODULE` for a container.
    pub fn stem(&self) -> String {
        artifact_stem(&self.module, &self.targets, self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        name.parse().expect("a target")
    }

    #[test]
    fn the_name_says_what_the_destination_is() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(Destination::of(None), Destination::Directory("".into()));
        assert_eq!(Destination::of(Some(Path::new("-"))), Destination::Stdout);
        assert_eq!(
            Destination::of(Some(Path::new("a.ptx"))),
            Destination::File("a.ptx".into())
        );
        // Paths are compared by their parts, for which these are `-` and `new`.
        assert_eq!(
            Destination::of(Some(Path::new("-/"))),
            Destination::Directory("-/".into())
        );
        for name in ["new/.", "new/.."] {
            assert_eq!(
                Destination::of(Some(Path::new(name))),
                Destination::Directory(name.into())
            );
        }
        assert_eq!(
            Destination::of(Some(Path::new("new/"))),
            Destination::Directory("new/".into())
        );
        assert_eq!(
            Destination::of(Some(directory.path())),
            Destination::Directory(directory.path().to_owned())
        );
    }

    #[test]
    fn several_artifacts_need_a_directory() {
        let targets = [target("sm_90"), target("gfx942")];
        let Err(Failed::Usage(text)) = Destination::File("a.bin".into()).check_targets(&targets, Emit::Binary) else {
            panic!("refused");
        };
        assert_eq!(
            text,
            "2 artifacts do not fit into a.bin: for sm_90, for gfx942\n  Name a directory, such as -o out/, compile for one \
             target and one module at a time, or put several targets of NVIDIA's into one file with --emit fatbin."
        );
        assert!(
            Destination::File("a.bin".into())
                .check_targets(&targets[..1], Emit::Binary)
                .is_ok()
        );
        assert!(
            Destination::Directory("".into())
                .check_targets(&targets, Emit::Binary)
                .is_ok()
        );
    }
}
