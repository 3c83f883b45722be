//! Carrying out requests, and putting artifacts together from what they made.

use melior::Context;

use super::{
    Compiler, container,
    emit::Emit,
    identical::first_of_each,
    job, plan, pool,
    request::{Origin, Outcome, Request},
};
use crate::{
    bridge::mlir::is_threaded,
    error::{Error, Failure},
    report::{Artifact, Compilation},
    stage::Stage,
};

/// One result of a compilation.
pub(crate) struct Finished {
    /// Which module of the input it is of.
    pub module: usize,
    /// The first of the module's target attributes that asked for it.
    pub position: usize,
    /// What came out.
    pub result: Result<Artifact, Error>,
}

pub(super) fn collect(finished: Vec<Finished>) -> Result<Compilation, Failure> {
    let mut artifacts = Vec::new();
    let mut errors = Vec::new();
    for Finished { result, .. } in finished {
        match result {
            Ok(artifact) => artifacts.push(artifact),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(Compilation { artifacts })
    } else {
        Err(Failure { errors })
    }
}

impl Compiler {
    /// Carries out requests whose operations live in `context`; results are in the order of the requests.
    pub(crate) fn run(&self, context: &Context, requests: Vec<Request<'_>>, emit: Emit) -> Vec<Finished> {
        // The embedder may have switched the context's threads off: its operations stay on this one then.
        let threads = if is_threaded(context) { self.threads } else { 0 };
        self.run_on(threads, requests, emit)
    }

    /// Carries out requests on `threads` threads, or on this one if there are to be none, and puts the artifacts
    /// together.
    pub(super) fn run_on(&self, threads: usize, requests: Vec<Request<'_>>, emit: Emit) -> Vec<Finished> {
        let planned = plan::artifacts(&requests, emit);
        let origins: Vec<Origin> = requests.iter().map(Request::origin).collect();
        let firsts = first_of_each(&requests);
        let jobs: Vec<(usize, Request<'_>)> = requests
            .into_iter()
            .enumerate()
            .filter(|(index, _)| firsts.get(*index) == Some(index))
            .collect();
        let places: Vec<usize> = jobs.iter().map(|(index, _)| *index).collect();
        let carry_out = |(_, request): (usize, Request<'_>)| job::run(self, request);
        let results: Vec<Result<Result<Outcome, Error>, String>> = if threads == 0 {
            jobs.into_iter().map(|job| Ok(carry_out(job))).collect()
        } else {
            pool::run(threads, jobs, carry_out)
        };
        let mut finished = Vec::new();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; origins.len()];
        for (place, result) in places.into_iter().zip(results) {
            let Some(origin) = origins.get(place) else { continue };
            let result = result.unwrap_or_else(|panic| {
                Err(Error::new(Stage::Plan, crate::error::Cause::Internal(panic))
                    .in_module(&origin.name)
                    .for_target(&origin.target))
            });
            match result {
                Ok(outcome) => {
                    for (twin, slot) in outcomes.iter_mut().enumerate() {
                        if firsts.get(twin) == Some(&place)
                            && let Some(other) = origins.get(twin)
                        {
                            *slot = Some(if twin == place {
                                outcome.clone()
                            } else {
                                outcome.shared_with(&origin.name, &other.name)
                            });
                        }
                    }
                }
                Err(error) => finished.push(Finished {
                    module: origin.module,
                    position: origin.position,
                    result: Err(error),
                }),
            }
        }
        for artifact in &planned {
            let Some(result) = container::assemble(artifact, &origins, &outcomes) else {
                continue;
            };
            finished.push(Finished {
                module: artifact.module,
                position: artifact.position,
                result,
            });
        }
        finished
    }
}
