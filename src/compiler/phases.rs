//! The plan of a compilation as something to look at: every phase, what it takes, what it leaves, and who does it.

use std::path::PathBuf;

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
    /// For each artifact the place of the phase that makes it.
    pub made_by: Vec<usize>,
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
    /// The place of the input that it comes of; `None` where several were joined.
    pub input: Option<usize>,
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: String,
    /// What it is.
    pub format: Format,
    /// Targets of its images.
    pub targets: Vec<Target>,
    /// Files of libraries and objects that may be linked into it.
    pub reads: Vec<PathBuf>,
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

    /// What comes out of requests. `input_of`: the input that a module is of.
    pub(super) fn outputs(
        requests: &[Request<'_>],
        emit: Emit,
        input_of: impl Fn(usize) -> Option<usize>,
    ) -> Vec<PlannedOutput> {
        let output = |artifact: plan::PlannedArtifact| {
            let request = requests.get(artifact.images.first()?.0)?;
            let targets = artifact
                .images
                .iter()
                .filter_map(|(request, product)| Some(requests.get(*request)?.products.get(*product)?.target));
            Some(PlannedOutput {
                input: input_of(request.module),
                module: request.name.clone(),
                format: artifact.format,
                targets: targets.collect(),
                reads: request.linked_files(),
            })
        };
        plan::artifacts(requests, emit).into_iter().filter_map(output).collect()
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
        let is_joined = self.options.device_link.is_some() && inputs.len() > 1;
        // The phases of the inputs come first.
        let input_of = |module: usize| modules.get(module).copied().filter(|_| !is_joined);
        self.plan(phases, &modules, &requests, emit, &input_of)
    }

    fn plan(
        &self,
        mut phases: Vec<Phase>,
        modules: &[usize],
        requests: &[Request<'_>],
        emit: Emit,
        input_of: &dyn Fn(usize) -> Option<usize>,
    ) -> Result<Plan, Failure> {
        self.refuse(requests, emit, input_of)?;
        // For each request the phases that leave its products.
        let mut made: Vec<Vec<usize>> = Vec::new();
        let contents: Vec<Option<Key>> = requests.iter().map(|request| Some(Content::of(request))).collect();
        for (request, first) in requests.iter().zip(first_of_each(requests, &contents)) {
            if let Some(phases) = made.get(first) {
                made.push(phases.clone());
                continue;
            }
            let planned = |error: Error| error.in_module(&request.name).for_target(&request.target);
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
        let artifacts = Self::outputs(requests, emit, input_of);
        let mut made_by = Vec::new();
        for (artifact, output) in plan::artifacts(requests, emit).iter().zip(&artifacts) {
            let parts = artifact.images.iter();
            let parts: Vec<usize> = parts
                .filter_map(|(request, product)| made.get(*request)?.get(*product).copied())
                .collect();
            made_by.push(match output.format.is_container() {
                false => parts.first().copied().unwrap_or_default(),
                true => {
                    phases.push(Phase {
                        stage: Stage::Container,
                        inputs: parts,
                        reads: Vec::new(),
                        result: output.format.title(),
                        module: Some(output.module.clone()),
                        targets: output.targets.clone(),
                        tool: own_part(),
                    });
                    phases.len() - 1
                }
            });
        }
        Ok(Plan {
            phases,
            artifacts,
            made_by,
        })
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
