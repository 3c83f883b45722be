//! Where artifacts go, and writing them so that a failure leaves nothing behind.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use gpulower::{Artifact, Emit, Format, Target, compiler::PlannedOutput, stage_files::artifact_stem};
use tempfile::{Builder, NamedTempFile};

use super::{Failed, message::Problem, to_stdout};

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
            Some(path) if path == Path::new("-") => Self::Stdout,
            Some(path) if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
                Self::Directory(path.to_owned())
            }
            Some(path) => Self::File(path.to_owned()),
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

    fn check_count(&self, names: &[String]) -> Result<(), Failed> {
        if names.len() < 2 || !self.holds_one() {
            return Ok(());
        }
        Err(Failed::Usage(format!(
            "{} artifacts do not fit into {}: {}\n  Name a directory, such as -o out/, or compile for one target and \
             one module at a time.",
            names.len(),
            self.shown(),
            names.join(", ")
        )))
    }

    /// The path of each artifact, in order; `None` is the standard output.
    pub fn paths(&self, artifacts: &[ArtifactName]) -> Result<Vec<Option<PathBuf>>, Failed> {
        let names = file_names(artifacts);
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
    module: String,
    targets: Vec<Target>,
    format: Format,
}

impl From<&Artifact> for ArtifactName {
    fn from(artifact: &Artifact) -> Self {
        Self {
            module: artifact.module.clone(),
            targets: artifact.targets(),
            format: artifact.format,
        }
    }
}

impl From<&PlannedOutput> for ArtifactName {
    fn from(output: &PlannedOutput) -> Self {
        Self {
            module: output.module.clone(),
            targets: output.targets.clone(),
            format: output.format,
        }
    }
}

impl ArtifactName {
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

/// `MODULE.TARGET.EXTENSION` for each artifact, or `MODULE.EXTENSION` for a container, with a number where two modules
/// have one name.
fn file_names(artifacts: &[ArtifactName]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for artifact in artifacts {
        let stem = artifact.stem();
        let extension = artifact.format.extension();
        let numbers = std::iter::once(String::new()).chain((2..).map(|number: usize| format!(".{number}")));
        let free = numbers
            .map(|number| format!("{stem}{number}.{extension}"))
            .find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

/// Whether two paths are the same existing file.
pub fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

impl Destination {
    /// Writes every artifact to its path.
    pub fn write(&self, artifacts: &[Artifact], paths: &[Option<PathBuf>], input: &Path) -> Result<(), Failed> {
        let files: Vec<(&Path, &[u8])> = artifacts
            .iter()
            .zip(paths)
            .filter_map(|(artifact, path)| Some((path.as_deref()?, artifact.bytes.as_slice())))
            .collect();
        let directory = match self {
            Self::Directory(directory) => Some(directory.as_path()),
            Self::Stdout | Self::File(_) => None,
        };
        write_files(&files, directory, input)?;
        for (artifact, path) in artifacts.iter().zip(paths) {
            if path.is_none() {
                to_stdout(&artifact.bytes)?;
            }
        }
        Ok(())
    }
}

/// Writes files, all of them or none, into a directory that is made if it is not there. None of them may be the input.
pub fn write_files(files: &[(&Path, &[u8])], directory: Option<&Path>, input: &Path) -> Result<(), Failed> {
    let new = directory.filter(|directory| !directory.as_os_str().is_empty() && !directory.is_dir());
    if let Some(directory) = new {
        fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    }
    let result = write_all(files, input);
    if let (Err(_), Some(directory)) = (&result, new) {
        // It is empty again.
        let _ = fs::remove_dir(directory);
    }
    result
}

/// All files are complete in temporary files beside their places before the first one takes its name; when one cannot be
/// written none is.
fn write_all(files: &[(&Path, &[u8])], input: &Path) -> Result<(), Failed> {
    let mut pending = Vec::new();
    for &(path, bytes) in files {
        if same_file(path, input) {
            return Err(Failed::Usage(format!(
                "{} is the input; name another file with -o",
                path.display()
            )));
        }
        pending.push((PendingFile::prepare(path, bytes)?, path));
    }
    let mut written = Vec::new();
    for (file, path) in pending {
        if let Err(problem) = file.finish() {
            for path in written {
                // The problem that counts is the first one.
                let _ = fs::remove_file(path);
            }
            return Err(problem.into());
        }
        written.push(path);
    }
    Ok(())
}

/// Writes one file, whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    PendingFile::prepare(path, bytes)?.finish()
}

/// A file that is complete and has not got its name yet.
enum PendingFile<'a> {
    /// Takes the place of an earlier file, or of none.
    Renamed(NamedTempFile, PathBuf),
    /// A device or pipe, which must not be replaced.
    InPlace(PathBuf, &'a [u8]),
}

impl<'a> PendingFile<'a> {
    fn prepare(path: &Path, bytes: &'a [u8]) -> Result<Self, Problem> {
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Ok(Self::InPlace(path.to_owned(), bytes));
        }
        // Through a symbolic link, so that the link stays one.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let write = || -> io::Result<NamedTempFile> {
            // What the process's umask leaves of 0666, as for any other file; the default is for its owner alone.
            let mut file = Builder::new()
                .prefix(".gpulower-")
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(directory)?;
            file.write_all(bytes)?;
            Ok(file)
        };
        match write() {
            Ok(file) => Ok(Self::Renamed(file, path)),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    fn finish(self) -> Result<(), Problem> {
        match self {
            Self::Renamed(file, path) => file
                .persist(&path)
                .map(drop)
                .map_err(|error| cannot_write(&path, &error.error)),
            Self::InPlace(path, bytes) => File::options()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(bytes))
                .map_err(|error| cannot_write(&path, &error)),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Problem {
    let reason = error.to_string();
    // The temporary file's name, which tempfile adds, would only confuse.
    let reason = reason.split(" at path ").next().unwrap_or_default();
    Problem::output(format!("cannot write {}: {reason}", path.display()))
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
            "2 artifacts do not fit into a.bin: for sm_90, for gfx942\n  Name a directory, such as -o out/, or compile \
             for one target and one module at a time."
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

    #[test]
    fn a_file_takes_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.bin");
        let pending = PendingFile::prepare(&path, b"abc").expect("written");
        assert!(!path.exists());
        pending.finish().expect("renamed");
        assert_eq!(fs::read(&path).expect("the file"), b"abc");
        let entries = fs::read_dir(directory.path()).expect("the directory");
        assert_eq!(entries.count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_and_a_device_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        let link = directory.path().join("link");
        fs::write(&file, b"old").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_file(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).expect("the file"), b"new");
        write_file(Path::new("/dev/null"), b"new").expect("written");
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let refusal = write_file(Path::new("/dev/null/a"), b"").expect_err("refused");
        let message = refusal.message();
        assert!(message.starts_with("cannot write /dev/null/a: "), "{message}");
    }
}
