//! From inputs to requests: which modules there are, and what each is to be compiled for.

use melior::{
    Context,
    ir::{
        BlockLike, Module,
        attribute::ArrayAttribute,
        operation::{OperationLike, OperationRef},
    },
};

use super::{
    Compiler,
    emit::Emit,
    input::{InputError, InputKind, check_nesting, check_sizes, parse},
    pipeline::{check_pipeline, refused},
    request::{Part, Request, SharedModule, Source},
    stack::with_deep_stack,
    targets::{PlannedGeneration, Targets},
};
use crate::{
    bridge::{
        edit::{CopyError, OwnedModule, copy_of},
        mlir::{
            context_of, has_operation, is_called, outermost_operations, place_of, string_value, symbol_attribute_name,
        },
    },
    device::{DeviceError, lower},
    error::{Error, Failure},
    options::DebugLevel,
    stage::Stage,
};

/// An input in the form in which compilation starts.
pub(super) enum ReadSource<'c> {
    /// MLIR, with what it launches outlined.
    Mlir(Module<'c>),
    /// LLVM IR or PTX, and its name.
    Device(String, Source<SharedModule<'c>>),
}

/// Reads one input.
pub(super) fn read_source<'c>(context: &'c Context, name: &str, bytes: &[u8]) -> Result<ReadSource<'c>, Error> {
    let failed = |error| Error::new(Stage::Input, error);
    let device = |source| ReadSource::Device(name.to_owned(), source);
    Ok(match InputKind::of(name, bytes).map_err(failed)? {
        InputKind::Mlir => {
            let module = parse(context, name, bytes).map_err(failed)?;
            let outlined = outline(context, &module)?;
            ReadSource::Mlir(outlined.unwrap_or(module))
        }
        InputKind::Llvm => {
            check_nesting(InputKind::Llvm, name, bytes).map_err(failed)?;
            device(Source::Llvm(bytes.into()))
        }
        InputKind::Ptx => {
            let text = std::str::from_utf8(bytes).map_err(|_| failed(InputError::UnknownFormat))?;
            check_sizes(bytes).map_err(failed)?;
            device(Source::Ptx(text.into()))
        }
    })
}

impl Compiler {
    /// The requests for an input that was read. `first` is the number of its first module. What was read is freed as it
    /// turns into requests.
    pub(super) fn requests_of_source<'c>(
        &self,
        first: usize,
        source: ReadSource<'c>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Failure> {
        match source {
            // It need not be copied.
            ReadSource::Mlir(module) if only_module(&module).is_some() => {
                self.requests_of_one(first, module, targets, emit)
            }
            ReadSource::Mlir(module) => self.requests_of_all(first, &module, targets, emit),
            ReadSource::Device(name, source) => {
                Ok(self.requests_of_device_source(first, source, &name, targets, emit)?)
            }
        }
    }

    /// With device linking, one request for each target and what is made for it.
    pub(super) fn joined<'c>(&self, requests: Vec<Request<'c>>) -> Vec<Request<'c>> {
        if self.options.device_link.is_none() {
            return requests;
        }
        let mut joined: Vec<Request<'c>> = Vec::new();
        for request in requests {
            let same = joined.iter_mut().find(|other| {
                other.target == request.target && other.products == request.products && other.options == request.options
            });
            match same {
                Some(other) => other.parts.extend(request.parts),
                None => joined.push(request),
            }
        }
        for request in &mut joined {
            request.link_ptx_as_objects();
            let names: Vec<&str> = request.parts.iter().map(|part| part.name.as_str()).collect();
            request.name = names.join("+");
        }
        joined
    }

    pub(super) fn requests_of_device_source<'c>(
        &self,
        index: usize,
        source: Source<SharedModule<'c>>,
        name: &str,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Error> {
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = stem.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-");
        let stem = stem.unwrap_or("kernels");
        let generations = targets
            .generations(source.kind(), emit, &self.options, None)
            .map_err(|error| error.in_module(name))?;
        Ok(requests_for(stem, index, &source, generations))
    }

    /// The requests for every `gpu.module` of a module.
    pub(super) fn requests_of_all<'c>(
        &self,
        first: usize,
        module: &Module<'c>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Failure> {
        let modules = gpu_modules(module);
        if modules.is_empty() {
            return Err(Error::new(Stage::Plan, InputError::NoModule).into());
        }
        let mut requests = Vec::new();
        let mut errors = Vec::new();
        for (index, operation) in (first..).zip(modules) {
            match self.requests(index, operation, targets, emit) {
                Ok(planned) => requests.extend(planned),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(requests)
        } else {
            Err(Failure { errors })
        }
    }

    /// The same for a module that has nothing but one `gpu.module`, which is used up.
    fn requests_of_one<'c>(
        &self,
        index: usize,
        module: Module<'c>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Failure> {
        let (name, generations) = match only_module(&module) {
            Some(operation) => self.planned(operation, targets, emit)?,
            None => return Err(Error::new(Stage::Plan, InputError::NoModule).into()),
        };
        // Debug info has the place of what is around a `gpu.module`.
        if generations
            .iter()
            .any(|generation| generation.options.debug != DebugLevel::None)
        {
            return self.requests_of_all(index, &module, targets, emit);
        }
        let module =
            OwnedModule::new(module).map_err(|open| Error::new(Stage::Plan, CopyError::Open(open)).in_module(&name))?;
        let source = Source::Mlir(SharedModule::new(module));
        Ok(requests_for(&name, index, &source, generations))
    }

    /// What a `gpu.module` is to be compiled for: the given targets, or those it names. `index` is its place in the
    /// input.
    pub(crate) fn requests<'c>(
        &self,
        index: usize,
        operation: OperationRef<'c, '_>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Error> {
        let (name, generations) = self.planned(operation, targets, emit)?;
        let copy = OwnedModule::around(operation).map_err(|error| Error::new(Stage::Plan, error).in_module(&name))?;
        let source = Source::Mlir(SharedModule::new(copy));
        Ok(requests_for(&name, index, &source, generations))
    }

    /// The name of a `gpu.module`, and what there is to be made of it.
    fn planned(
        &self,
        operation: OperationRef<'_, '_>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<(String, Vec<PlannedGeneration>), Error> {
        let name = symbol_name(operation);
        let generations = targets
            .generations(InputKind::Mlir, emit, &self.options, Some(operation))
            .map_err(|error| error.at(|| place_of(operation.location())).in_module(&name))?;
        Ok((name, generations))
    }
}

/// A request for each run of code generation for a module.
fn requests_for<'c>(
    name: &str,
    module: usize,
    source: &Source<SharedModule<'c>>,
    generations: Vec<PlannedGeneration>,
) -> Vec<Request<'c>> {
    let request = |generation: PlannedGeneration| Request {
        name: name.to_owned(),
        module,
        parts: vec![Part {
            name: name.to_owned(),
            source: source.clone(),
        }],
        target: generation.target,
        products: generation.products,
        options: generation.options,
        include_ptx: generation.include_ptx,
        notes: generation.notes,
        position: generation.position,
    };
    generations.into_iter().map(request).collect()
}

/// A copy of the module with its `gpu.launch` regions outlined to `gpu.module`s, if it has any.
pub(crate) fn outline<'c>(context: &'c Context, module: &Module<'c>) -> Result<Option<Module<'c>>, Error> {
    if !has_operation(module.as_operation(), "gpu.launch") {
        return Ok(None);
    }
    let mut copy = copy_of(module).map_err(|error| Error::new(Stage::Plan, error))?;
    lower::run(
        context,
        &mut copy,
        "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining)",
    )
    .map_err(|error| Error::new(Stage::Plan, error))?;
    Ok(Some(copy))
}

/// Runs a pipeline of MLIR's passes on a module, in MLIR's textual form: what a compiler does on the way to the `gpu` dialect. Unlike
/// a pass manager of melior's, it says what MLIR says of a failure, and where; and LLVM's fatal errors and crashes are failures, too,
/// after which the module is empty. The context is one of [`context`](crate::compiler::context), or was
/// [prepared](crate::compiler::prepare): every dialect, extension and pass of MLIR's is registered then, the transform dialect
/// and its interpreter among them.
///
/// # Errors
///
/// [`Failure`] of the stage `plan`: the pipeline's text, or what a pass reported.
///
/// ```
/// use gpulower::{ErrorKind, compiler};
///
/// let context = compiler::context();
/// let mut module = compiler::parse(&context, "m.mlir", b"gpu.module @m {}")?;
/// compiler::run_pipeline(&mut module, "builtin.module(canonicalize)")?;
/// for wrong in ["builtin.module(nothing)".to_owned(), "any(".repeat(1_000_000)] {
///     let failure = compiler::run_pipeline(&mut module, &wrong).expect_err("no pipeline");
///     assert_eq!(failure.errors[0].kind, ErrorKind::Option);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_pipeline(module: &mut Module<'_>, pipeline: &str) -> Result<(), Failure> {
    check_pipeline(pipeline)?;
    with_deep_stack(|| {
        let context = context_of(module.context());
        match lower::run(context, module, pipeline) {
            Ok(_) => Ok(()),
            // It is the caller's, and not ours.
            Err(DeviceError::Pipeline(reason)) => Err(refused(reason).into()),
            Err(error) => Err(Error::new(Stage::Plan, error).into()),
        }
    })
}

/// Every `gpu.module` of a module, those in modules inside of it included, in order.
pub(crate) fn gpu_modules<'c, 'a>(module: &'a Module<'c>) -> Vec<OperationRef<'c, 'a>> {
    gpu_modules_below(module.as_operation())
}

/// Every `gpu.module` inside an operation, or the operation itself, in order. One inside of another goes where that goes:
/// lowering refuses it.
pub(crate) fn gpu_modules_below<'c, 'a>(root: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut parent = root.parent_operation();
    while let Some(outer) = parent.filter(|outer| !is_called(outer, GPU_MODULE)) {
        parent = outer.parent_operation();
    }
    match parent {
        Some(_) => Vec::new(),
        None => outermost_operations(root, GPU_MODULE),
    }
}

/// What MLIR calls a module of kernels.
const GPU_MODULE: &str = "gpu.module";

/// The `gpu.module` of a module that has nothing else, and says nothing else.
fn only_module<'c, 'a>(module: &'a Module<'c>) -> Option<OperationRef<'c, 'a>> {
    let operation = module.body().first_operation()?;
    let is_alone = is_called(&operation, GPU_MODULE) && operation.next_in_block().is_none();
    (is_alone && module.as_operation().attributes().next().is_none()).then_some(operation)
}

/// The symbol's name of an operation, or a stand-in.
pub(crate) fn symbol_name(operation: OperationRef<'_, '_>) -> String {
    operation
        .attribute(symbol_attribute_name())
        .ok()
        .and_then(string_value)
        .unwrap_or_else(|| "kernels".to_owned())
}

/// The target attributes of a `gpu.module`.
pub(crate) fn target_attributes<'c>(operation: OperationRef<'c, '_>) -> Vec<melior::ir::Attribute<'c>> {
    let Some(targets) = operation
        .attribute("targets")
        .ok()
        .and_then(|attribute| ArrayAttribute::try_from(attribute).ok())
    else {
        return Vec::new();
    };
    (0..targets.len())
        .filter_map(|index| targets.element(index).ok())
        .collect()
}
