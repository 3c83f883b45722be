//! The plan of a compilation as something to look at: every phase, what it takes, what it leaves, and who does it.

use super::{
    Compiler, InputKind, Targets, context,
    emit::Emit,
    input::parse,
    outline,
    plan::{self, Step},
    request::{Request, Source},
};
use crate::{
    bridge::mlir::OwnedModule,
    error::{Error, Failure},
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
    /// What [`Compiler::compile_source`] would do with the same arguments.
    ///
    /// # Errors
    ///
    /// Whatever it would refuse before it starts: an unreadable input, targets, formats and options that do not fit.
    pub fn plan_source(
        &self,
        name: &str,
        bytes: &[u8],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Plan, Failure> {
        let targets = targets.into();
        let input = |error| Error::new(Stage::Input, error);
        let kind = InputKind::of(name, bytes).map_err(input)?;
        let mut phases = vec![Phase {
            stage: Stage::Input,
            inputs: Vec::new(),
            reads: vec![name.to_owned()],
            result: kind.name(),
            module: None,
            targets: Vec::new(),
            tool: match kind {
                InputKind::Mlir => llvm_part("MLIR"),
                InputKind::Llvm | InputKind::Ptx => own_part(),
            },
        }];
        match kind {
            InputKind::Mlir => {
                let context = context();
                let module = parse(&context, name, bytes).map_err(input)?;
                let outlined = outline(&context, &module)?;
                if outlined.is_some() {
                    phases.push(Phase {
                        stage: Stage::Plan,
                        inputs: vec![0],
                        reads: Vec::new(),
                        result: "MLIR with gpu.launch outlined",
                        module: None,
                        targets: Vec::new(),
                        tool: llvm_part("MLIR"),
                    });
                }
                let module = outlined.as_ref().map_or(&module, OwnedModule::module);
                let requests = self.requests_of_all(module, &targets, emit)?;
                self.plan(phases, &requests, emit)
            }
            InputKind::Llvm | InputKind::Ptx => {
                let source = if kind == InputKind::Ptx {
                    Source::Ptx(String::from_utf8_lossy(bytes).into())
                } else {
                    Source::Llvm(bytes.into())
                };
                let requests = self.requests_of_device_source(source, name, &targets, emit)?;
                self.plan(phases, &requests, emit)
            }
        }
    }

    fn plan(&self, mut phases: Vec<Phase>, requests: &[Request<'_>], emit: Emit) -> Result<Plan, Failure> {
        let whole_input = phases.len() - 1;
        // For each request the phases that leave its products.
        let mut made: Vec<Vec<usize>> = Vec::new();
        for (request, first) in requests.iter().zip(super::first_of_each(requests)) {
            if let Some(phases) = made.get(first) {
                made.push(phases.clone());
                continue;
            }
            let planned = |error: Error| error.in_module(&request.name).for_target(&request.target);
            request
                .options
                .resolve(&request.target, None)
                .map_err(|error| planned(Error::new(Stage::Plan, error)))?;
            let steps = plan::steps(request.source.kind(), &request.target, &request.products)
                .map_err(|cause| planned(Error::new(Stage::Plan, cause)))?;
            made.push(self.add_steps(&mut phases, whole_input, request, &steps));
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
            let mut phase = parts.first().map_or(whole_input, |(phase, _)| *phase);
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
    fn add_steps(&self, phases: &mut Vec<Phase>, input: usize, request: &Request<'_>, steps: &[Step]) -> Vec<usize> {
        let mut code = input;
        let mut made = Vec::new();
        for step in steps {
            let (mut last, target) = match step {
                Step::PtxToCubin(product) | Step::LinkObject(product) | Step::Keep(product) => (code, product.target),
                _ => (code, request.target),
            };
            for (stage, result) in step.phases(request.source.kind(), request.target.vendor()) {
                phases.push(Phase {
                    stage,
                    inputs: vec![last],
                    reads: if stage == Stage::Link {
                        request.options.libraries.iter().map(|library| library.name()).collect()
                    } else {
                        Vec::new()
                    },
                    result,
                    module: Some(request.name.clone()),
                    targets: vec![target],
                    tool: self.tool_of(stage, request),
                });
                last = phases.len() - 1;
            }
            match step {
                Step::PtxToCubin(_) | Step::LinkObject(_) | Step::Keep(_) => made.push(last),
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
            _ => llvm_part("LLVM"),
        }
    }
}

/// A part of LLVM that is linked into this library.
pub(super) fn llvm_part(name: &str) -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{name} {major}.{minor}.{patch}")
}

fn own_part() -> String {
    format!("gpulower {}", env!("CARGO_PKG_VERSION"))
}
