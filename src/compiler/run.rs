//! Carrying out requests, and putting artifacts together from what they made.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use super::{
    Compiler,
    cached::KeptImage,
    container,
    content::Content,
    emit::Emit,
    identical::first_of_each,
    plan,
    request::{Origin, Outcome, Request},
};
use crate::{
    cache::Key,
    error::{Error, Failure},
    options::Library,
    progress::Reporter,
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
    /// Where its bytes are kept.
    pub kept: Option<KeptImage>,
}

pub(super) fn collect(finished: impl IntoIterator<Item = Finished>) -> Result<Compilation, Failure> {
    let mut artifacts = Vec::new();
    let mut errors = Vec::new();
    for Finished { result, .. } in finished {
        match result {
            Ok(artifact) => artifacts.push(artifact),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(Compilation {
            artifacts,
            warnings: Vec::new(),
        })
    } else {
        Err(Failure { errors })
    }
}

impl Compiler {
    /// Carries out requests, and puts the artifacts together, in the order of the requests. On this thread alone where they
    /// `may_leave` it not: the embedder may have switched the threads of their context off.
    pub(crate) fn run_requests(
        &self,
        may_leave: bool,
        mut requests: Vec<Request<'_>>,
        emit: Emit,
        reporter: &Reporter,
    ) -> Vec<Finished> {
        let planned = plan::artifacts(&requests, emit);
        let origins: Vec<Origin> = requests.iter().map(Request::origin).collect();
        read_libraries(&mut requests);
        // What is compiled has to be known where something may be the same.
        let contents: Vec<Option<Key>> = if requests.len() > 1 || self.keeps_results() {
            let identified = self.pool.run(may_leave, requests.iter_mut().collect(), |request, _| {
                Content::of(request)
            });
            identified.into_iter().map(Result::ok).collect()
        } else {
            requests.iter().map(|_| None).collect()
        };
        let firsts = first_of_each(&requests, &contents);
        let jobs: Vec<(usize, Request<'_>, Option<Key>)> = requests
            .into_iter()
            .zip(contents)
            .enumerate()
            .map(|(index, (request, content))| (index, request, content))
            .filter(|(index, ..)| firsts.get(*index) == Some(index))
            .collect();
        let places: Vec<usize> = jobs.iter().map(|(index, ..)| *index).collect();
        reporter.planned(jobs.len());
        let ahead = self.ahead(jobs.iter().map(|(_, request, content)| (request, content.as_ref())));
        let jobs = jobs.into_iter().enumerate().collect();
        let results = self
            .pool
            .run(may_leave, jobs, |(number, (index, request, content)), helpers| {
                let subject = origins.get(index).map(Origin::subject);
                subject.inspect(|subject| reporter.begun(*subject));
                let result = self.carry_out(
                    request,
                    content.as_ref(),
                    ahead.as_ref().map(|ahead| (ahead, number)),
                    helpers,
                );
                let from_cache = result.as_ref().is_ok_and(Outcome::is_from_cache);
                subject.inspect(|subject| reporter.finished(*subject, from_cache, result.is_err()));
                result
            });
        let mut finished = Vec::new();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; origins.len()];
        for (place, result) in places.into_iter().zip(results) {
            let Some(origin) = origins.get(place) else { continue };
            let result = result.unwrap_or_else(|error| {
                Err(Error::new(Stage::Plan, error)
                    .in_module(&origin.name)
                    .for_target(&origin.target))
            });
            match result {
                Ok(outcome) => {
                    for (twin, slot) in outcomes.iter_mut().enumerate() {
                        if firsts.get(twin) == Some(&place)
                            && twin != place
                            && let Some(other) = origins.get(twin)
                        {
                            *slot = Some(outcome.shared_with(&origin.name, &other.name));
                        }
                    }
                    if let Some(slot) = outcomes.get_mut(place) {
                        *slot = Some(outcome);
                    }
                }
                Err(error) => finished.push(Finished {
                    module: origin.module,
                    position: origin.position,
                    result: Err(error),
                    kept: None,
                }),
            }
        }
        let mut uses: HashMap<(usize, usize), usize> = HashMap::new();
        for image in planned.iter().flat_map(|artifact| &artifact.images) {
            *uses.entry(*image).or_default() += 1;
        }
        for artifact in &planned {
            for image in &artifact.images {
                uses.entry(*image).and_modify(|uses| *uses -= 1);
            }
            let is_last = artifact.images.first().is_none_or(|image| uses.get(image) == Some(&0));
            let Some(result) = container::assemble(artifact, &origins, &mut outcomes, is_last) else {
                continue;
            };
            finished.push(Finished {
                module: artifact.module,
                position: artifact.position,
                result,
                kept: match artifact.images.as_slice() {
                    [(request, product)] if !artifact.format.is_container() => {
                        let outcome = outcomes.get(*request).and_then(Option::as_ref);
                        outcome.and_then(|outcome| Some((outcome.kept?, *product)))
                    }
                    _ => None,
                },
            });
        }
        finished
    }
}

/// Reads the libraries that are files, each once. One that cannot be read stays a file: the request that needs it fails
/// with the reason.
fn read_libraries(requests: &mut [Request<'_>]) {
    let mut known: HashMap<PathBuf, Option<Arc<[u8]>>> = HashMap::new();
    for request in requests {
        let linked = request
            .options
            .device_link
            .iter_mut()
            .flat_map(|link| &mut link.objects);
        for library in request.options.libraries.iter_mut().chain(linked) {
            let Library::File(path) = &*library else { continue };
            let bytes = known.entry(path.clone()).or_insert_with(|| {
                crate::read_file::read_file(path, crate::read_file::MOST_BYTES)
                    .ok()
                    .map(Arc::from)
            });
            if let Some(bytes) = bytes {
                *library = Library::Memory {
                    name: library.name(),
                    bytes: Arc::clone(bytes),
                };
            }
        }
    }
}
