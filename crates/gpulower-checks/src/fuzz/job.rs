//! One input, and what becomes of it.

use std::sync::Arc;

use gpulower::{
    Compilation, Emit, Failure, Library, Options, Target,
    compiler::{context, parse, prepare},
    inspect::inspect,
    melior::pass::PassManager,
    offload::{ExportForm, ExportOptions, export_source},
    passes::parse_pipeline,
};
use serde::{Deserialize, Serialize};

use super::workers::Workers;

/// One input. The parts that an action does not need are empty.
#[derive(Debug, Deserialize)]
pub struct Job {
    action: Action,
    #[serde(default)]
    pub targets: String,
    #[serde(default)]
    pub emit: String,
    #[serde(default)]
    pub options: Vec<(String, String)>,
    #[serde(default)]
    pipeline: String,
    #[serde(default)]
    finish_with: String,
    /// Whether to compile in worker processes.
    #[serde(default)]
    workers: bool,
    /// The input, and libraries after it.
    pub files: Vec<File>,
}

/// A file of an input.
#[derive(Debug, Deserialize)]
pub struct File {
    pub name: String,
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    /// `gpulower compile`
    Compile,
    /// `gpulower-opt`, a pipeline that has our passes in it
    Passes,
    /// `gpulower export`
    Export,
    /// `gpulower inspect`
    Inspect,
}

/// How an input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Accepted,
    Refused,
    /// In this process, which goes on.
    Crashed,
    /// By its time limit.
    Stopped,
    /// With its worker.
    Lost,
}

/// What became of an input.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub outcome: Outcome,
    /// Where it was refused.
    pub stage: String,
    pub message: String,
}

impl Answer {
    pub const fn accepted() -> Self {
        Self {
            outcome: Outcome::Accepted,
            stage: String::new(),
            message: String::new(),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        // As LlvmError::Crashed and the errors of NVIDIA's libraries say it.
        let crashed = refusal.message.contains(" crashed: ");
        Self {
            outcome: if crashed { Outcome::Crashed } else { Outcome::Refused },
            stage: refusal.stage.to_owned(),
            message: refusal.message,
        }
    }
}

/// Why an input was refused.
pub struct Refusal {
    stage: &'static str,
    message: String,
}

pub fn refused(stage: &'static str) -> impl Fn(&dyn std::fmt::Display) -> Refusal {
    move |error| Refusal {
        stage,
        message: error.to_string(),
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self {
            stage: failure.errors.first().map_or("none", |error| error.stage.name()),
            message: failure.to_string(),
        }
    }
}

impl Job {
    /// Carries the input out.
    pub fn run(&self, files: &[Vec<u8>], workers: &mut Workers) -> Answer {
        let result = match self.action {
            Action::Compile if self.workers => workers.compile(self, files),
            Action::Compile => self.compile(files, workers),
            Action::Passes => self.passes(files),
            Action::Export => self.export(files, workers),
            Action::Inspect => self.inspect(files),
        };
        result.unwrap_or_else(Answer::from)
    }

    pub fn input<'a>(&'a self, files: &'a [Vec<u8>]) -> (&'a str, &'a [u8]) {
        let name = self.files.first().map_or("", |file| file.name.as_str());
        (name, files.first().map_or(&[][..], Vec::as_slice))
    }

    pub fn options(&self, files: &[Vec<u8>]) -> Result<Options, Refusal> {
        let mut options = Options::default();
        for (name, value) in &self.options {
            options.set(name, value).map_err(|error| refused("options")(&error))?;
        }
        options.libraries = self
            .files
            .iter()
            .zip(files)
            .skip(1)
            .map(|(file, bytes)| Library::Memory {
                name: file.name.clone(),
                bytes: Arc::from(bytes.as_slice()),
            })
            .collect();
        Ok(options)
    }

    pub fn emit(&self) -> Result<Emit, Refusal> {
        self.emit.parse().map_err(|error| refused("emit")(&error))
    }

    pub fn targets(&self) -> Result<Vec<Target>, Refusal> {
        if self.targets.is_empty() {
            return Ok(Vec::new());
        }
        Target::parse_list(&self.targets).map_err(|error| refused("targets")(&error))
    }

    fn compile(&self, files: &[Vec<u8>], workers: &Workers) -> Result<Answer, Refusal> {
        let (name, bytes) = self.input(files);
        let compiler = workers.compiler(self.options(files)?);
        let made = compiler.compile_source(name, bytes, &self.targets()?, self.emit()?)?;
        self.read_again(&made)?;
        Ok(Answer::accepted())
    }

    /// Reads what we made, as `inspect` would.
    pub fn read_again(&self, made: &Compilation) -> Result<(), Refusal> {
        let (name, _) = self.input(&[]);
        for artifact in &made.artifacts {
            if !matches!(self.emit.as_str(), "llvm" | "mlir" | "asm" | "bitcode") {
                inspect(name, &artifact.bytes).map_err(|error| refused("inspect-result")(&error))?;
            }
        }
        Ok(())
    }

    fn passes(&self, files: &[Vec<u8>]) -> Result<Answer, Refusal> {
        let (name, bytes) = self.input(files);
        let context = context();
        prepare(&context);
        // The diagnostics are the refusal; nothing may print them.
        context.attach_diagnostic_handler(|_| true);
        let mut module = parse(&context, name, bytes).map_err(|error| refused("input")(&error))?;
        let manager = PassManager::new(&context);
        parse_pipeline(manager.as_operation_pass_manager(), &self.pipeline)
            .map_err(|error| refused("pipeline")(&error))?;
        manager.run(&mut module).map_err(|error| refused("passes")(&error))?;
        Ok(Answer::accepted())
    }

    fn export(&self, files: &[Vec<u8>], workers: &Workers) -> Result<Answer, Refusal> {
        let triple = "x86_64-unknown-linux-gnu"
            .parse()
            .map_err(|error| refused("host-triple")(&error))?;
        let finish_with = match self.finish_with.as_str() {
            "" => None,
            list => Some(list.parse().map_err(|error| refused("finish-with")(&error))?),
        };
        let (name, bytes) = self.input(files);
        let form = ExportForm::named(&self.emit, finish_with).map_err(|error| refused("emit")(&error))?;
        let options = ExportOptions::new(form, "fuzz", triple);
        let compiler = workers.compiler(self.options(files)?);
        export_source(&compiler, name, bytes, &self.targets()?, &options)?;
        Ok(Answer::accepted())
    }

    fn inspect(&self, files: &[Vec<u8>]) -> Result<Answer, Refusal> {
        let (name, bytes) = self.input(files);
        let inspection = inspect(name, bytes).map_err(|error| refused("inspect")(&error))?;
        serde_json::to_string(&inspection).map_err(|error| refused("json")(&error))?;
        Ok(Answer::accepted())
    }
}
