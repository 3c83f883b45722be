//! The plan of a compilation as something to look at: every phase, what it takes, what it leaves, and who does it.

use super::{
    Compiler, InputKind, Targets,
    content::Content,
    context,
    emit::Emit,
    gpu_modules,
    identical::first_of_each,
    plan::{self, Step},
    request::Request,
    requests::{ReadSource, read_source},
    with_deep_stack, worker,
};
use crate::{
    cache::Key,
    error::{Error, Failure},
    options::Library,
    report::Format,
    stage::Stage,
    target::Target,
};

/// What a compilation will do. Nothing of it has been done but reading the input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The phases, each behind those that it takes something from.
    pub phases: Vec<Phase>,
    /// The artifacts that come out, in order.
    pub artifacts: Vec<PlannedOutput>,
}

/// One phase of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phase {
    /// The stage. The times of a compilation are reported under the same name.
    pub stage: Stage,
    /// Places of the phases whose results it takes.
    pub inputs: Vec<usize>,
    /// Files that it reads besides: the input, libraries.
    pub reads: Vec<String>,
    /// What it leaves.
    pub result: &'static str,
    /// The module, except for what concerns the whole input.
    pub module: Option<String>,
    /// The targets.
    pub targets: Vec<Target>,
    /// Who does it, and where that is, if it is not part of this library.
    pub tool: String,
}

/// An artifact that is to come out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedOutput {
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: String,
    /// What it is.
    pub format: Format,
    /// Targets of its images.
    pub targets: Vec<Target>,
    /// Place of the phase that makes it.
    pub phase: usize,
}

impl Compiler {
    /// What [`Compiler::compile_sources`] would do with the same arguments.
    ///
    /// # Errors
    ///
    /// Whatever it would refuse before it starts: an unreadable input, targets, formats and options that do not fit.
    pub fn plan_sources(
        &self,
        inputs: &[(&str, &[u8])],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Plan, Failure> {
        let targets = targets.into();
        worker::reading(self, inputs, |inputs| {
            with_deep_stack(|| self.plan_of_sources(inputs, &targets, emit))
        })
    }

    fn plan_of_sources(&self, inputs: &[(&str, &[u8])], targets: &Targets, emit: Emit) -> Result<Plan, Failure> {
        let context = context();
        let mut counts = Vec::new();
        let mut requests = Vec::new();
        let mut next = 0;
        for (name, bytes) in inputs {
            let source = read_source(&context, name, bytes)?;
            counts.push(match &source {
                ReadSource::Mlir(module) => gpu_modules(module).len(),
                ReadSource::Device(..) => 1,
            });
            let more = self.requests_of_source(next, source, targets, emit)?;
            next = more.iter().map(|request| request.module + 1).max().unwrap_or(next);
            requests.extend(more);
        }
        let requests = self.joined(requests);
        let mut phases = Vec::new();
        // The phase that leaves each module of the inputs.
        let mut modules = Vec::new();
        for ((name, bytes), count) in inputs.iter().zip(counts) {
            let kind = InputKind::of(name, bytes).map_err(|error| Error::new(Stage::Input, error))?;
            phases.push(Phase {
                stage: Stage::Input,
                inputs: Vec::new(),
                reads: vec![(*name).to_owned()],
                result: kind.name(),
                module: None,
                targets: Vec::new(),
                tool: if kind == InputKind::Mlir {
                    llvm_part("MLIR")
                } else {
                    own_part()
                },
            });
            modules.extend(std::iter::repeat_n(phases.len() - 1, count));
        }
        self.plan(phases, &modules, &requests, emit)
    }

    fn plan(
        &self,
        mut phases: Vec<Phase>,
        modules: &[usize],
        requests: &[Request<'_>],
        emit: Emit,
    ) -> Result<Plan, Failure> {
        // For each request the phases that leave its products.
        let mut made: Vec<Vec<usize>> = Vec::new();
        let contents: Vec<Option<Key>> = requests.iter().map(|request| Some(Content::of(request))).collect();
        for (request, first) in requests.iter().zip(first_of_each(requests, &contents)) {
            if let Some(phases) = made.get(first) {
                made.push(phases.clone());
                continue;
            }
            let planned = |error: Error| error.in_module(&request.name).for_target(&request.target);
            request
                .options
                .resolve(&request.target, None)
                .map_err(|error| planned(Error::new(Stage::Plan, error)))?;
            let steps = plan::steps(request).map_err(|cause| planned(Error::new(Stage::Plan, cause)))?;
            // What is joined comes from all inputs.
            let inputs: Vec<usize> = if request.options.device_link.is_some() {
                let mut all = modules.to_vec();
                all.dedup();
                all
            } else {
                modules.get(request.module).copied().into_iter().collect()
            };
            made.push(self.add_steps(&mut phases, &inputs, request, &steps));
        }
        let mut artifacts = Vec::new();
        for artifact in plan::artifacts(requests, emit) {
            let parts: Vec<(usize, Target)> = artifact
                .images
                .iter()
                .filter_map(|(request, product)| {
                    let phase = made.get(*request)?.get(*product)?;
                    Some((*phase, requests.get(*request)?.products.get(*product)?.target))
                })
                .collect();
            let targets: Vec<Target> = parts.iter().map(|(_, target)| *target).collect();
            let Some(request) = artifact.images.first().and_then(|(request, _)| requests.get(*request)) else {
                continue;
            };
            let mut phase = parts.first().map_or(0, |(phase, _)| *phase);
            if artifact.format.is_container() {
                phases.push(Phase {
                    stage: Stage::Container,
                    inputs: parts.iter().map(|(phase, _)| *phase).collect(),
                    reads: Vec::new(),
                    result: artifact.format.title(),
                    module: Some(request.name.clone()),
                    targets: targets.clone(),
                    tool: own_part(),
                });
                phase = phases.len() - 1;
            }
            artifacts.push(PlannedOutput {
                module: request.name.clone(),
                format: artifact.format,
                targets,
                phase,
            });
        }
        Ok(Plan { phases, artifacts })
    }

    /// Adds the phases of one request; returns those that leave its products.
    fn add_steps(
        &self,
        phases: &mut Vec<Phase>,
        inputs: &[usize],
        request: &Request<'_>,
        steps: &[Step],
    ) -> Vec<usize> {
        let mut code = inputs.to_vec();
        let mut made = Vec::new();
        for step in steps {
            let (mut last, target) = match step {
                Step::PtxToCubin(product)
                | Step::LinkObject(product)
                | Step::DeviceLink(product)
                | Step::Keep(product) => (code.clone(), product.target),
                _ => (code.clone(), request.target),
            };
            for (stage, result) in step.phases(request.input(), request.target.vendor()) {
                phases.push(Phase {
                    stage,
                    inputs: last.clone(),
                    reads: match (stage, &request.options.device_link) {
                        (Stage::Link, _) => names(&request.options.libraries),
                        (Stage::DeviceLink, Some(link)) => names(&link.objects),
                        _ => Vec::new(),
                    },
                    result,
                    module: Some(request.name.clone()),
                    targets: vec![target],
                    tool: self.tool_of(stage, request),
                });
                last = vec![phases.len() - 1];
            }
            match step {
                Step::PtxToCubin(_) | Step::LinkObject(_) | Step::DeviceLink(_) | Step::Keep(_) => {
                    made.extend(last.first())
                }
                _ => code = last,
            }
        }
        made
    }

    fn tool_of(&self, stage: Stage, request: &Request<'_>) -> String {
        match stage {
            Stage::Lower => llvm_part("MLIR"),
            Stage::PtxToCubin => match self.ptx_to_cubin.first(request.options.ptx_compiler) {
                Some((compiler, path)) => format!("{compiler} ({})", path.display()),
                None => "no PTX compiler was found".to_owned(),
            },
            Stage::LinkObject => llvm_part("lld"),
            Stage::DeviceLink => match request.target {
                Target::Amd(_) => llvm_part("lld"),
                Target::Nvidia(_) => "nvJitLink".to_owned(),
            },
            _ => llvm_part("LLVM"),
        }
    }
}

/// A part of LLVM that is linked into this library.
pub(super) fn llvm_part(name: &str) -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{name} {major}.{minor}.{patch}")
}

fn names(libraries: &[Library]) -> Vec<String> {
    libraries.iter().map(Library::name).collect()
}

fn own_part() -> String {
    format!("gpulower {}", env!("CARGO_PKG_VERSION"))
}
