//! Inputs in memory: those that are known come from the cache, the others are compiled together.

use std::collections::BTreeSet;

use super::{Compiler, Finished, Targets, emit::Emit, requests::read_sources, with_deep_stack, worker};
use crate::{
    cache::Key,
    error::{Error, Failure},
    report::{Artifact, Compilation, Warning},
    stage::Stage,
};

/// One result of several inputs.
pub(super) struct OfInput {
    /// Which input it is of.
    pub input: usize,
    /// Whether a module of the input names libraries, in its target attributes: files that the input's key is not over.
    pub names_libraries: bool,
    /// The result.
    pub finished: Finished,
}

impl Compiler {
    /// Takes what is known of each input from the cache, compiles the rest, and keeps that.
    pub(super) fn compile_unknown_sources(
        &self,
        inputs: &[(&str, &[u8])],
        targets: &Targets,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let key = |(name, bytes): &(&str, &[u8])| self.source_key(name, bytes, targets, emit);
        let keys: Vec<Option<Key>> = inputs.iter().map(key).collect();
        // For each input its artifacts, if they are known.
        let mut artifacts: Vec<Option<Vec<Artifact>>> = keys.iter().map(|key| self.known_artifacts(*key)).collect();
        let unknown: Vec<(usize, (&str, &[u8]))> = inputs
            .iter()
            .copied()
            .enumerate()
            .filter(|(index, _)| artifacts.get(*index).is_some_and(Option::is_none))
            .collect();
        if !unknown.is_empty() {
            let sources: Vec<(&str, &[u8])> = unknown.iter().map(|(_, input)| *input).collect();
            let mut errors = Vec::new();
            let mut not_to_be_kept = BTreeSet::new();
            for result in self.run_sources(&sources, targets, emit)? {
                let Some((index, _)) = unknown.get(result.input) else {
                    continue;
                };
                if result.names_libraries {
                    not_to_be_kept.insert(*index);
                }
                match (result.finished.result, artifacts.get_mut(*index)) {
                    (Ok(artifact), Some(slot)) => slot.get_or_insert_default().push(artifact),
                    (Ok(_), None) => {}
                    (Err(error), _) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(Failure { errors });
            }
            for (index, input) in unknown.iter().filter(|(index, _)| !not_to_be_kept.contains(index)) {
                if let (Some(Some(made)), Some(before)) = (artifacts.get(*index), keys.get(*index)) {
                    self.keep_artifacts(*before, key(input), made);
                }
            }
        }
        Ok(Compilation {
            artifacts: artifacts.into_iter().flatten().flatten().collect(),
            warnings: Vec::new(),
        })
    }

    /// Compiles inputs.
    pub(super) fn run_sources(
        &self,
        inputs: &[(&str, &[u8])],
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<OfInput>, Failure> {
        worker::reading(self, inputs, |inputs| {
            with_deep_stack(|| self.run_read(inputs, targets, emit))
        })
    }

    fn run_read(&self, inputs: &[(&str, &[u8])], targets: &Targets, emit: Emit) -> Result<Vec<OfInput>, Failure> {
        let bytes = inputs.iter().map(|(_, bytes)| bytes.len()).sum();
        let is_fatal = |stopped: &Result<Vec<OfInput>, Failure>| match stopped {
            Ok(results) => results
                .iter()
                .any(|result| result.finished.result.as_ref().is_err_and(Error::is_fatal_in_mlir)),
            Err(failure) => failure.is_fatal_in_mlir(),
        };
        let in_context = self.contexts.with(bytes, is_fatal, |context| {
            let sources = read_sources(context, inputs).map_err(|error| Err(error.into()))?;
            let (requests, ends) = self.requests_of_sources(sources, targets, emit).map_err(Err)?;
            let input_of = |module| ends.partition_point(|end| *end <= module);
            let naming_libraries: BTreeSet<usize> = requests
                .iter()
                .filter(|request| request.options.libraries != self.options.libraries)
                .map(|request| input_of(request.module))
                .collect();
            let finished = self.run(context, requests, emit);
            let failed = finished.iter().any(|finished| finished.result.is_err());
            let finished = finished
                .into_iter()
                .map(|finished| {
                    let input = input_of(finished.module);
                    OfInput {
                        input,
                        names_libraries: naming_libraries.contains(&input),
                        finished,
                    }
                })
                .collect();
            // What was left half done stays in the context.
            if failed { Err(Ok(finished)) } else { Ok(finished) }
        });
        in_context.or_else(|stopped| stopped)
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
