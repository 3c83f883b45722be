//! `--dump-dir` and `--override-dir`: what the stages make, as files to read, edit and give back.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use gpulower::inkwell::module::Module;
use gpulower::{Artifact, Checkpoint, StageListener, Subject, target::Vendor};

use super::{
    message::{self, Problem},
    output::{ArtifactName, stem},
    reproduce::{Reproduction, with_ptx_of},
    write::write_file,
};

/// Writes what each stage made, and takes what was edited.
#[derive(Debug)]
pub struct StageFiles {
    dump: Option<PathBuf>,
    overrides: Option<Overrides>,
    reproduction: Reproduction,
}

#[derive(Debug)]
struct Overrides {
    directory: PathBuf,
    present: BTreeSet<OsString>,
    /// Names of files that replaced a stage, under the module and target they belong to.
    used: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl StageFiles {
    /// Makes the directory to write to, and looks what is there to take.
    pub fn new(dump: Option<PathBuf>, overrides: Option<PathBuf>, reproduction: Reproduction) -> Result<Self, Problem> {
        if let Some(directory) = &dump {
            fs::create_dir_all(directory).map_err(|error| {
                Problem::output(format!("cannot make the directory {}: {error}", directory.display()))
            })?;
        }
        Ok(Self {
            dump,
            overrides: overrides.map(Overrides::find).transpose()?,
            reproduction,
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
            Some(overrides) => overrides.take(&stem(subject.module, subject.target), &name)?,
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
            write_file(&directory.join(name), &bytes).map_err(|problem| problem.message().to_owned())?;
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
                write_file(&path, text.as_bytes()).map_err(|problem| problem.message().to_owned())?;
            }
        }
        Ok(())
    }

    /// Writes the results beside the stages.
    pub fn write_artifacts(&self, artifacts: &[Artifact]) -> Result<(), Problem> {
        let Some(directory) = &self.dump else {
            return Ok(());
        };
        artifacts.iter().try_for_each(|artifact| {
            let stem = ArtifactName::from(artifact).stem();
            let name = format!("{stem}.5-result.{}", artifact.format.extension());
            write_file(&directory.join(name), &artifact.bytes)
        })
    }

    /// Says which edited files did nothing.
    pub fn warn_about_unused(&self) {
        for warning in self.overrides.iter().flat_map(Overrides::warnings) {
            message::warn(&warning);
        }
    }
}

impl Overrides {
    fn find(directory: PathBuf) -> Result<Self, Problem> {
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
            Err(error) => Err(Problem::plan(format!(
                "cannot read the directory {} of --override-dir: {error}",
                directory.display()
            ))),
        }
    }

    fn take(&self, stem: &str, name: &str) -> Result<Option<Vec<u8>>, String> {
        if !self.present.contains(name.as_ref() as &std::ffi::OsStr) {
            return Ok(None);
        }
        let path = self.directory.join(name);
        let bytes = super::input::read(&path).map_err(|problem| problem.message().to_owned())?;
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
