//! Everything that a compilation writes: artifacts, report, dependencies. All of it is written, or nothing.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use gpulower::{
    Artifact, Emit, Format,
    cache::Cache,
    compiler::{Gate, PlannedOutput},
};

use super::{
    Failed,
    form::Form,
    message::Problem,
    output::{ArtifactName, Destination},
    report::{CodeOf, Report},
    write::{self, Output},
};

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Outputs {
    pub destination: Destination,
    pub inputs: Vec<PathBuf>,
    pub report: Option<Report>,
    pub depfile: Option<PathBuf>,
    /// What is made.
    pub form: Form,
}

impl Outputs {
    /// Refuses what is known to be impossible before the inputs are read.
    pub fn check_before(&self, is_joined: bool) -> Result<(), Failed> {
        let artifact = self.destination == Destination::Stdout;
        let report = self.report.as_ref().is_some_and(|report| report.file.is_none());
        let dependencies = self.depfile.as_deref().is_some_and(write::is_stdout);
        let all = [
            (artifact, "the artifact", "-o"),
            (report, "the report", "--report-file"),
            (dependencies, "the dependencies", "--depfile"),
        ];
        let mut to_stdout = all.iter().filter(|(goes_there, ..)| *goes_there);
        if let (Some((_, one, _)), Some((_, other, option))) = (to_stdout.next(), to_stdout.next()) {
            return Err(Failed::Usage(format!(
                "{one} and {other} cannot both go to the standard output; name a file with {option}"
            )));
        }
        if artifact || report || dependencies {
            let is_text = |emit| matches!(emit, Emit::Mlir | Emit::Llvm | Emit::Ptx | Emit::Asm);
            write::check_stdout(!artifact || self.form == Form::Sass || is_text(self.form.emit()))?;
        }
        if self.inputs.len() > 1 && !is_joined {
            let names: Vec<String> = self
                .inputs
                .iter()
                .map(|input| format!("of {}", input.display()))
                .collect();
            self.destination.check_count(&names)?;
        }
        match &self.destination {
            Destination::File(path) => self.check(&[path]),
            _ => self.check(&[]),
        }
    }

    /// Refuses to write these artifacts, or what is written beside them.
    fn check(&self, artifacts: &[&Path]) -> Result<(), Failed> {
        let report = self.report.as_ref().and_then(|report| report.file.as_deref());
        let depfile = self.depfile.as_deref().filter(|path| !write::is_stdout(path));
        let beside = report.into_iter().chain(depfile);
        let paths: Vec<&Path> = artifacts.iter().copied().chain(beside).collect();
        let inputs: Vec<&Path> = self.inputs.iter().map(PathBuf::as_path).collect();
        write::check(&paths, self.destination.directory(), &inputs)
    }

    /// The names of artifacts, as they are when they are finished.
    pub fn names<'a, T: 'a>(&self, artifacts: &'a [T]) -> Vec<ArtifactName>
    where
        ArtifactName: From<&'a T>,
    {
        let names = ArtifactName::all(artifacts).into_iter();
        match self.form {
            Form::Of(_) => names.collect(),
            Form::Sass => names.map(|name| name.with_format(Format::Sass)).collect(),
        }
    }

    /// The path of each artifact, which can be written; `None` is the standard output.
    pub fn paths(&self, artifacts: &[ArtifactName]) -> Result<Vec<Option<PathBuf>>, Failed> {
        let stem = |input: usize| {
            let stem = self.inputs.get(input).filter(|_| self.inputs.len() > 1)?.file_stem()?;
            Some(stem.to_string_lossy().into_owned())
        };
        let paths = self.destination.paths(artifacts, stem)?;
        let files: Vec<&Path> = paths.iter().flatten().map(PathBuf::as_path).collect();
        self.check(&files)?;
        Ok(paths)
    }

    /// The inputs, as a title.
    fn title(&self) -> String {
        let names = self.inputs.iter().map(|input| input.display().to_string());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Checks the paths of artifacts before they are compiled.
    pub fn gate(&self) -> (Gate, Asked) {
        let (outputs, asked) = (self.clone(), Asked::default());
        let slot = asked.clone();
        let gate = move |planned: &[PlannedOutput]| {
            let checked = outputs.paths(&outputs.names(planned)).map(|_| planned.to_vec());
            let result = checked
                .as_ref()
                .map(drop)
                .map_err(|_| "it cannot be written".to_owned());
            *slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(checked);
            result
        };
        (Arc::new(gate), asked)
    }

    /// Writes artifacts, report and dependencies. `dependencies`: what is in their file, for artifacts at these paths.
    pub fn write(
        &self,
        artifacts: &[Artifact],
        problems: &[Problem],
        cache: Option<&Cache>,
        code: &CodeOf<'_>,
        dependencies: impl FnOnce(&[Option<PathBuf>]) -> String,
    ) -> Result<(), Failed> {
        let paths = self.paths(&self.names(artifacts))?;
        let mut stdout = Vec::new();
        let mut files = Vec::new();
        for (artifact, path) in artifacts.iter().zip(&paths) {
            match path {
                Some(path) => files.push(Output::new(path, &artifact.bytes)),
                None => stdout.extend_from_slice(&artifact.bytes),
            }
        }
        let report = match &self.report {
            Some(report) => Some(report.text((artifacts, &paths), problems, cache, &self.title(), code)?),
            None => None,
        };
        if let (Some(report), Some(text)) = (&self.report, &report) {
            match &report.file {
                Some(path) => files.push(Output::new(path, text.as_bytes())),
                None => stdout.extend_from_slice(text.as_bytes()),
            }
        }
        let dependencies = dependencies(&paths);
        match &self.depfile {
            Some(path) if write::is_stdout(path) => stdout.extend_from_slice(dependencies.as_bytes()),
            Some(path) => files.push(Output::new(path, dependencies.as_bytes())),
            None => {}
        }
        write::write_all(&files, self.destination.directory(), &stdout)
    }
}

/// What a gate was told of, and whether it refused it.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Option<Answer>>>);

/// What was planned, or why it was refused.
type Answer = Result<Vec<PlannedOutput>, Failed>;

impl Asked {
    /// What was planned; nothing where the cache had everything.
    pub fn answer(&self) -> Answer {
        let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer.unwrap_or(Ok(Vec::new()))
    }
}
