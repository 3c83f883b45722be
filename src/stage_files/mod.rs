//! `--dump-dir` and `--override-dir`: what the stages make, as files to read, edit and give back.

mod reproduce;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt::Display,
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use inkwell::module::Module;

use crate::{
    options::Options,
    read_file::read_file,
    report::{Artifact, Format},
    stage::{Checkpoint, StageListener, Subject},
    target::{Target, Vendor},
    toolkit::Toolkit,
};
use reproduce::{Reproduction, with_ptx_of};

/// A listener that writes what each stage made, and takes what was edited.
#[derive(Debug)]
pub struct StageFiles {
    most_bytes: u64,
    dump: Option<PathBuf>,
    overrides: Option<Overrides>,
    reproduction: Reproduction,
}

/// What is in a directory that edited files are taken from.
#[derive(Debug)]
pub struct Overrides {
    directory: PathBuf,
    present: BTreeSet<OsString>,
    /// Names of files that replaced a stage, under the module and target they belong to.
    used: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl StageFiles {
    /// Makes the directory to write to. What is taken are files of at most `most_bytes`. The first line of a
    /// file is a command that repeats the next stage with these options and this toolkit.
    ///
    /// # Errors
    ///
    /// The directory cannot be made.
    pub fn new(
        dump: Option<PathBuf>,
        overrides: Option<Overrides>,
        most_bytes: u64,
        options: Options,
        toolkit: &Toolkit,
    ) -> io::Result<Self> {
        if let Some(path) = &dump {
            fs::create_dir_all(path)
                .map_err(|error| within(format_args!("cannot make the directory {}", path.display()), &error))?;
        }
        Ok(Self {
            most_bytes,
            dump,
            overrides,
            reproduction: Reproduction::new(options, toolkit),
        })
    }

    /// Takes the edited text of a stage, and writes what the compilation goes on with.
    fn stage(
        &self,
        subject: Subject<'_>,
        checkpoint: Checkpoint,
        text: impl FnOnce() -> String,
    ) -> Result<Option<Vec<u8>>, String> {
        let name = file_name(subject, checkpoint);
        let edited = match &self.overrides {
            Some(overrides) => overrides.take(&stem(subject.module, subject.target), &name, self.most_bytes)?,
            None => None,
        };
        if let Some(directory) = &self.dump {
            let bytes = match &edited {
                Some(bytes) => bytes.clone(),
                None => {
                    let text = text();
                    let header = self.reproduction.header(subject, checkpoint, &name, &text);
                    [header, text].concat().into_bytes()
                }
            };
            write_file(&directory.join(name), &bytes).map_err(|error| error.to_string())?;
        }
        Ok(edited)
    }

    /// Names the PTX ISA that was written in the end in the files of earlier stages.
    fn correct_ptx(&self, subject: Subject<'_>, ptx: &str) -> Result<(), String> {
        let Some(directory) = &self.dump else {
            return Ok(());
        };
        for checkpoint in [Checkpoint::Linked, Checkpoint::Optimized] {
            let path = directory.join(file_name(subject, checkpoint));
            // An edited file may be bitcode, which has no first line.
            if let Some(text) = fs::read_to_string(&path).ok().and_then(|text| with_ptx_of(&text, ptx)) {
                write_file(&path, text.as_bytes()).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Writes a result beside the stages.
    ///
    /// # Errors
    ///
    /// One if the file cannot be written.
    pub fn write_artifact(&self, artifact: &Artifact) -> io::Result<()> {
        let Some(directory) = &self.dump else {
            return Ok(());
        };
        let stem = artifact_stem(&artifact.module, &artifact.targets(), artifact.format);
        let name = format!("{stem}.5-result.{}", artifact.format.extension());
        write_file(&directory.join(name), &artifact.bytes)
    }

    /// Which edited files did nothing, in words.
    pub fn unused(&self) -> Vec<String> {
        self.overrides.iter().flat_map(Overrides::warnings).collect()
    }
}

impl Overrides {
    /// Looks what is there to take.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn find(directory: PathBuf) -> io::Result<Self> {
        let names = fs::read_dir(&directory).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect::<Result<BTreeSet<_>, _>>()
        });
        match names {
            Ok(present) => Ok(Self {
                directory,
                present,
                used: Mutex::default(),
            }),
            Err(error) => {
                let what = format_args!("cannot read the directory {} of --override-dir", directory.display());
                Err(within(what, &error))
            }
        }
    }

    fn take(&self, stem: &str, name: &str, most_bytes: u64) -> Result<Option<Vec<u8>>, String> {
        if !self.present.contains(name.as_ref() as &std::ffi::OsStr) {
            return Ok(None);
        }
        let path = self.directory.join(name);
        let bytes = read_file(&path, most_bytes).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.entry(stem.to_owned()).or_default().insert(name.to_owned());
        Ok(Some(bytes))
    }

    fn warnings(&self) -> Vec<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |name: &Path| self.directory.join(name).display().to_string();
        let unmatched = self
            .present
            .iter()
            .filter(|name| !used.values().flatten().any(|used| *name == used.as_str()))
            .map(|name| {
                format!(
                    "{} replaced nothing: no stage of this compilation has its name",
                    place(name.as_ref())
                )
            });
        // Names of one module and target sort in the order of the stages.
        let overtaken = used.values().filter_map(|names| names.last().map(|last| (names, last)));
        let overtaken = overtaken.flat_map(|(names, last)| {
            names.iter().filter(move |name| *name != last).map(move |name| {
                format!(
                    "{} has no effect on the result: {last} replaces a later stage",
                    place(name.as_ref())
                )
            })
        });
        unmatched.chain(overtaken).collect()
    }
}

/// Writes one file, whole or not at all.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = || -> io::Result<()> {
        // What the process's umask leaves of 0666, as for any other file; the default is for its owner alone.
        let mut file = tempfile::Builder::new()
            .prefix(".gpulower-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| {
        // The temporary file's name, which tempfile adds, would only confuse.
        let text = error.to_string();
        let reason = text.split(" at path ").next().unwrap_or_default();
        within(format_args!("cannot write {}", path.display()), &reason)
    })
}

/// An error that says what was tried.
fn within(what: impl Display, error: &impl Display) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

/// `MODULE.TARGET`, safe as a file name. The colons of target IDs become `@`, as in clang on systems without colons in
/// file names.
pub fn stem(module: &str, target: &Target) -> String {
    format!("{}.{}", safe_name(module), safe_name(&target.to_string()))
}

/// The name of an artifact's file without its extension: `MODULE.TARGET`, or `MODULE` for a container.
pub fn artifact_stem(module: &str, targets: &[Target], format: Format) -> String {
    match targets {
        [target] if !format.is_container() => stem(module, target),
        _ => safe_name(module),
    }
}

/// The text as a part of a file's name.
pub fn safe_name(text: &str) -> String {
    let character = |character: char| match character {
        ':' => '@',
        '_' | '-' | '.' | '+' => character,
        _ if character.is_alphanumeric() => character,
        _ => '_',
    };
    // A leading dot would hide the file; the length is well below what file systems take.
    let text: String = text.chars().map(character).take(100).collect();
    text.trim_start_matches('.').to_owned()
}

/// `MODULE.TARGET.STAGE.EXTENSION`; the stages sort in their order.
fn file_name(subject: Subject<'_>, checkpoint: Checkpoint) -> String {
    let (number, extension) = match (checkpoint, subject.target.vendor()) {
        (Checkpoint::Lowered, _) => (0, "mlir"),
        (Checkpoint::Initial, _) => (1, "ll"),
        (Checkpoint::Linked, _) => (2, "ll"),
        (Checkpoint::Optimized, _) => (3, "ll"),
        (_, Vendor::Nvidia) => (4, "ptx"),
        (_, Vendor::Amd) => (4, "s"),
    };
    format!(
        "{}.{number}-{}.{extension}",
        stem(subject.module, subject.target),
        checkpoint.name()
    )
}

impl StageListener for StageFiles {
    fn checkpoints(&self) -> &[Checkpoint] {
        &[
            Checkpoint::Lowered,
            Checkpoint::Initial,
            Checkpoint::Linked,
            Checkpoint::Optimized,
            Checkpoint::Isa,
        ]
    }

    fn lowered(&self, subject: Subject<'_>, text: &dyn Fn() -> String) -> Result<Option<String>, String> {
        self.stage(subject, Checkpoint::Lowered, text)?
            .map(|bytes| utf8(subject, Checkpoint::Lowered, bytes))
            .transpose()
    }

    fn llvm(
        &self,
        subject: Subject<'_>,
        checkpoint: Checkpoint,
        module: &Module<'_>,
    ) -> Result<Option<Vec<u8>>, String> {
        self.stage(subject, checkpoint, || module.print_to_string().to_string())
    }

    fn isa(&self, subject: Subject<'_>, text: &str) -> Result<Option<String>, String> {
        self.correct_ptx(subject, text)?;
        self.stage(subject, Checkpoint::Isa, || text.to_owned())?
            .map(|bytes| utf8(subject, Checkpoint::Isa, bytes))
            .transpose()
    }
}

fn utf8(subject: Subject<'_>, checkpoint: Checkpoint, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", file_name(subject, checkpoint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_for_files() {
        for (module, target, name) in [
            ("saxpy", "sm_90a", "saxpy.sm_90a"),
            ("m", "gfx90a:sramecc+:xnack-", "m.gfx90a@sramecc+@xnack-"),
            ("../../etc/x y", "sm_90", "_.._etc_x_y.sm_90"),
        ] {
            assert_eq!(stem(module, &target.parse().expect("a target")), name);
        }
    }
}
