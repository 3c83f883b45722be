//! Inputs in memory: those that are known come from the cache, the others are compiled together.

use std::sync::Arc;

use melior::Context;

use super::{
    Compiler, Finished, Targets,
    cached::KeptImage,
    emit::Emit,
    input::InputKind,
    module_text::{ModuleText, Readers},
    pool::Helpers,
    refuse::one_of_each,
    request::{Part, Request, Source},
    requests::read_source,
    with_deep_stack, worker,
};
use crate::{
    bridge::mlir::is_threaded,
    cache::Key,
    error::{Error, Failure},
    options::{DebugLevel, Isolation, Options, Speed},
    progress::Reporter,
    report::{Artifact, Compilation, InputId, Warning},
    stage::{Stage, Subject},
};

/// What happens to the other inputs when one cannot be read or planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnError {
    /// Nothing is compiled.
    Stop,
    /// They are compiled.
    KeepGoing,
}

/// What one call asks for.
struct Call<'a> {
    targets: &'a Targets,
    emit: Emit,
    on_error: OnError,
    reporter: &'a Reporter,
}

/// An input with its place among those of the call.
type Numbered<'a> = (usize, (&'a str, &'a [u8]));

/// What became of one input.
#[derive(Default)]
pub(super) struct OfInput {
    pub(super) artifacts: Vec<Artifact>,
    pub(super) errors: Vec<Error>,
    /// Where the bytes of each artifact are kept, as far as that is known.
    kept: Vec<Option<KeptImage>>,
    /// Whether a module of the input names libraries, in its target attributes: files that the input's key is not over.
    names_libraries: bool,
}

impl OfInput {
    fn failed(errors: Vec<Error>) -> Self {
        Self {
            errors,
            ..Self::default()
        }
    }

    /// Says which input it is of.
    fn of(mut self, id: &InputId) -> Self {
        for artifact in &mut self.artifacts {
            artifact.input = Some(id.clone());
        }
        for error in &mut self.errors {
            error.input = Some(id.clone());
        }
        self
    }

    pub(super) fn into_result(self) -> Result<Compilation, Failure> {
        if !self.errors.is_empty() {
            return Err(Failure { errors: self.errors });
        }
        Ok(Compilation {
            artifacts: self.artifacts,
            warnings: Vec::new(),
        })
    }
}

impl Compiler {
    /// Takes what is known of each input from the cache, compiles the rest, and keeps that. With device linking and
    /// [`OnError::Stop`], all artifacts are those of the first input.
    pub(super) fn compile_inputs(
        &self,
        inputs: &[(&str, &[u8])],
        targets: &Targets,
        emit: Emit,
        on_error: OnError,
    ) -> Vec<OfInput> {
        let reporter = self.reporter();
        let is_linked = self.options.device_link.is_some();
        let key = |(name, bytes): (&str, &[u8])| match is_linked {
            true => None,
            false => self.source_key(name, bytes, targets, emit),
        };
        let mut results: Vec<Option<OfInput>> = Vec::new();
        let mut unknown: Vec<Numbered<'_>> = Vec::new();
        let keys: Vec<Option<Key>> = inputs.iter().map(|input| key(*input)).collect();
        for (index, (input, known)) in inputs.iter().zip(self.known_artifacts(&keys)).enumerate() {
            match &known {
                Some(artifacts) => report_known(&reporter, artifacts),
                None => unknown.push((index, *input)),
            }
            results.push(known.map(|artifacts| {
                let known = OfInput {
                    artifacts,
                    ..OfInput::default()
                };
                known.of(&id(&(index, *input)))
            }));
        }
        let call = Call {
            targets,
            emit,
            on_error,
            reporter: &reporter,
        };
        // Where all inputs fail together, because LLVM crashed while one was read, halves are tried: in the end the one that is to
        // blame is alone.
        let (mut compiled, mut waiting) = (Vec::new(), vec![unknown.as_slice()]);
        while let Some(inputs) = waiting.pop().filter(|inputs| !inputs.is_empty()) {
            let ids: Vec<InputId> = inputs.iter().map(id).collect();
            let sources: Vec<(&str, &[u8])> = inputs.iter().map(|(_, input)| *input).collect();
            let results = worker::reading(self, &sources, |sources| {
                with_deep_stack(|| self.read_and_run(sources, &ids, &call))
            });
            match (results, inputs) {
                (Ok(results), _) => compiled.extend(inputs.iter().map(|(index, _)| *index).zip(results)),
                (Err::<_, Failure>(failure), [only]) => {
                    compiled.push((only.0, OfInput::failed(failure.errors).of(&id(only))));
                }
                // Of several inputs the errors say themselves which they are about, as far as that is known.
                (Err(failure), [first, _, ..]) if on_error == OnError::Stop => {
                    compiled.push((first.0, OfInput::failed(failure.errors)));
                }
                (Err(_), _) => {
                    let (front, back) = inputs.split_at(inputs.len() / 2);
                    waiting.extend([back, front]);
                }
            }
        }
        for (index, result) in compiled {
            if result.errors.is_empty()
                && !result.names_libraries
                && let (Some(before), Some(input)) = (keys.get(index), inputs.get(index))
            {
                self.keep_artifacts(*before, key(*input), &result.artifacts, &result.kept);
            }
            if let Some(slot) = results.get_mut(index) {
                *slot = Some(result);
            }
        }
        results.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Does work on so many bytes of MLIR in a context of this compiler's.
    pub(crate) fn in_context<R>(
        &self,
        bytes: usize,
        work: impl FnOnce(&melior::Context) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.contexts.with(bytes, Failure::is_fatal_in_mlir, work)
    }

    /// What became of each input; or why nothing became of any.
    fn read_and_run(
        &self,
        inputs: &[(&str, &[u8])],
        ids: &[InputId],
        call: &Call<'_>,
    ) -> Result<Vec<OfInput>, Failure> {
        let emit = call.emit;
        // What was joined is of no input alone.
        let is_joined = self.options.device_link.is_some() && call.on_error == OnError::Stop && ids.len() > 1;
        let bytes = inputs.iter().map(|(_, bytes)| bytes.len()).sum();
        let is_fatal = |stopped: &Result<Vec<OfInput>, Failure>| match stopped {
            Ok(results) => results
                .iter()
                .flat_map(|result| &result.errors)
                .any(Error::is_fatal_in_mlir),
            Err(failure) => failure.is_fatal_in_mlir(),
        };
        let in_context = self.contexts.with(bytes, is_fatal, |context| {
            let Read {
                mut requests,
                ends,
                mut results,
            } = self.read(context, inputs, ids, call).map_err(Err)?;
            let input_of = |module| ends.partition_point(|end| *end <= module);
            let output_of = |module| Some(ids.get(input_of(module))?.index).filter(|_| !is_joined);
            match call.on_error {
                OnError::Stop => self.refuse(&requests, emit, output_of).map_err(Err)?,
                OnError::KeepGoing => {
                    requests.retain(|request| {
                        match (self.refusal(request), results.get_mut(input_of(request.module))) {
                            (Some(error), Some(result)) => {
                                result.errors.push(error);
                                false
                            }
                            _ => true,
                        }
                    });
                    for result in &mut results {
                        result.errors = one_of_each(std::mem::take(&mut result.errors));
                    }
                    self.ask_gate(&requests, emit, output_of)
                        .map_err(|error| Err(error.into()))?;
                }
            }
            for request in &requests {
                if request.options.libraries != self.options.libraries
                    && let Some(result) = results.get_mut(input_of(request.module))
                {
                    result.names_libraries = true;
                }
            }
            for Finished {
                module, result, kept, ..
            } in self.run_requests(is_threaded(context), requests, emit, call.reporter)
            {
                let Some(of_input) = results.get_mut(input_of(module)) else {
                    continue;
                };
                match result {
                    Ok(artifact) => {
                        of_input.artifacts.push(artifact);
                        of_input.kept.push(kept);
                    }
                    Err(error) => of_input.errors.push(error),
                }
            }
            // What was left half done stays in the context.
            match results.iter().all(|result| result.errors.is_empty()) {
                true => Ok(results),
                false => Err(Ok(results)),
            }
        });
        let results = in_context.or_else(|stopped| stopped)?;
        Ok(match is_joined {
            true => results,
            false => results.into_iter().zip(ids).map(|(result, id)| result.of(id)).collect(),
        })
    }

    /// Reads inputs and plans what to do with them.
    fn read<'c>(
        &self,
        context: &'c Context,
        inputs: &[(&str, &[u8])],
        ids: &[InputId],
        call: &Call<'_>,
    ) -> Result<Read<'c>, Failure> {
        let Call {
            targets,
            emit,
            on_error,
            ..
        } = *call;
        let mut read = Read::default();
        let mut next = 0;
        for ((name, bytes), id) in inputs.iter().zip(ids) {
            let read_all = || {
                let source = read_source(context, name, bytes).map_err(Failure::from)?;
                self.requests_of_source(next, source, targets, emit)
            };
            let planned = match self.requests_of_parts(context, next, (name, bytes), call) {
                Ok(Some(requests)) => Ok(requests),
                Ok(None) => read_all(),
                Err(failure) => Err(failure),
            };
            let result = match planned {
                Ok(more) => {
                    next = more.iter().map(|request| request.module + 1).max().unwrap_or(next);
                    let more = match on_error {
                        OnError::KeepGoing => self.joined(more),
                        OnError::Stop => more,
                    };
                    read.requests.extend(more);
                    OfInput::default()
                }
                // The context cannot be used any more.
                Err(failure) if failure.is_fatal_in_mlir() => {
                    let errors = OfInput::failed(failure.errors).of(id).errors;
                    return Err(Failure { errors });
                }
                Err(failure) => OfInput::failed(failure.errors).of(id),
            };
            read.ends.push(next);
            read.results.push(result);
        }
        if on_error == OnError::Stop {
            let errors: Vec<Error> = read
                .results
                .iter_mut()
                .flat_map(|result| std::mem::take(&mut result.errors))
                .collect();
            if !errors.is_empty() {
                return Err(Failure {
                    errors: one_of_each(errors),
                });
            }
            read.requests = self.joined(read.requests);
        }
        Ok(read)
    }

    /// The requests for a text of which what is known need not be read. `None` where all of it has to be, errors included.
    fn requests_of_parts<'c>(
        &self,
        context: &'c Context,
        first: usize,
        (name, bytes): (&str, &[u8]),
        call: &Call<'_>,
    ) -> Result<Option<Vec<Request<'c>>>, Failure> {
        let Options { isolation, debug, .. } = &self.options;
        let is_plain = (*isolation, *debug) == (Isolation::InProcess, DebugLevel::None)
            && self.options.speed != Speed::Best
            && self.options.device_link.is_none()
            && !matches!(call.emit, Emit::Mlir | Emit::Llvm | Emit::Bitcode);
        if !is_plain || !matches!(InputKind::of(name, bytes), Ok(InputKind::Mlir)) {
            return Ok(None);
        }
        let cache = self.known_kernels();
        let divided = std::str::from_utf8(bytes).ok();
        let is_watched = self.listeners.iter().any(|listener| !listener.checkpoints().is_empty());
        let readers = Readers {
            // Who watches the stages sees the module as a whole.
            helpers: if is_watched { Helpers::None } else { self.pool.helpers() },
            contexts: &self.contexts,
            cache,
        };
        let Some((rest, texts)) = divided.and_then(|text| ModuleText::divide(name, text, readers)) else {
            return Ok(None);
        };
        let texts: Vec<Arc<ModuleText>> = texts.into_iter().map(Arc::new).collect();
        let is_partial = texts.iter().any(|text| text.is_partial());
        if !is_partial && cache.is_none() {
            return Ok(None);
        }
        let mut requests = match read_source(context, name, rest.as_bytes()).map_err(Failure::from) {
            Ok(source) => match self.requests_of_source(first, source, call.targets, call.emit) {
                Ok(requests) => requests,
                Err(_) => return Ok(None),
            },
            Err(failure) if failure.is_fatal_in_mlir() => return Err(failure),
            Err(_) => return Ok(None),
        };
        for request in &mut requests {
            let is_apart = request.options.debug == DebugLevel::None && request.options.speed != Speed::Best;
            let text = texts.get(request.module - first).filter(|_| is_apart);
            let [
                Part {
                    source: Source::Mlir(module),
                    ..
                },
            ] = request.parts.as_mut_slice()
            else {
                return Ok(None);
            };
            if let Some(text) = text {
                module.set_text(text);
            }
            // What the content of a part is told by is what its kernels are.
            let is_whole = texts.get(request.module - first).is_some_and(|text| !text.is_partial());
            if !is_whole && (text.is_none() || module.components().is_none()) {
                return Ok(None);
            }
        }
        Ok(Some(requests))
    }

    /// Adds what went wrong with the cache, which cost time and nothing else.
    pub(super) fn with_cache_warnings(&self, mut compilation: Compilation) -> Compilation {
        let problems = self.results.iter().flat_map(crate::cache::Cache::take_problems);
        compilation.warnings.extend(problems.map(|problem| Warning {
            stage: Stage::Cache,
            module: None,
            target: None,
            location: None,
            message: problem.to_string(),
        }));
        compilation
    }
}

fn id((index, (name, _)): &Numbered<'_>) -> InputId {
    InputId {
        index: *index,
        name: (*name).to_owned(),
    }
}

/// Inputs that were read.
#[derive(Default)]
struct Read<'c> {
    requests: Vec<Request<'c>>,
    /// For each input the number after that of its last module.
    ends: Vec<usize>,
    /// For each input what is wrong with it already.
    results: Vec<OfInput>,
}

/// What was taken from the cache as a whole.
fn report_known(reporter: &Reporter, artifacts: &[Artifact]) {
    let images = || {
        artifacts
            .iter()
            .flat_map(|artifact| artifact.images.iter().map(|image| (&artifact.module, &image.target)))
    };
    tracing::debug!(what = "an input", artifacts = artifacts.len(), "cache hit");
    reporter.planned(images().count());
    for (module, target) in images() {
        reporter.finished(Subject { module, target }, true, false);
    }
}
