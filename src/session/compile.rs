//! From a source to an image: nothing is lowered whose content the session knows.

use std::sync::Arc;

use melior::{
    Context,
    ir::{
        Module,
        operation::{OperationLike, OperationPrintingFlags},
    },
};

use super::{
    content::{self, SourceHash, definitions},
    error::{SessionError, UndefinedSymbol, undefined_symbols},
    image::{Image, Images},
};
use crate::{
    compiler::{
        Compiler, Content, Contexts, Emit, InputError, InputKind, gpu_modules, outline, parse, symbol_name,
        with_deep_stack, worker,
    },
    error::{Cause, Error, Failure},
    report::{Artifact, Compilation},
    stage::Stage,
    target::Target,
};

/// A module as it was given.
#[derive(Clone, Debug)]
pub(super) struct Source {
    kind: Option<InputKind>,
    bytes: Vec<u8>,
    pub hash: SourceHash,
}

impl Source {
    /// Bytes of whatever kind.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        Self {
            kind: None,
            bytes: bytes.to_vec(),
            hash: SourceHash::of(bytes),
        }
    }

    /// A module of somebody's own context: its text is what goes on, with the places that it knows.
    pub(super) fn module(module: &Module<'_>) -> Self {
        let flags = OperationPrintingFlags::new()
            .print_generic_operation_form()
            .enable_debug_info(true, false);
        let text = module.as_operation().to_string_with_flags(flags).unwrap_or_default();
        Self {
            kind: Some(InputKind::Mlir),
            ..Self::bytes(text.as_bytes())
        }
    }
}

/// An image, and how it was come by.
#[derive(Debug)]
pub(super) struct Compiled {
    pub source: SourceHash,
    pub image: Arc<Image>,
    /// Whether it was compiled for this.
    pub fresh: bool,
}

/// Compiles for one target; images are shared.
pub(super) struct SessionCompiler {
    pub compiler: Arc<Compiler>,
    pub target: Target,
    pub emit: Emit,
    /// What contents begin with.
    begun: Content,
    images: Images,
    contexts: Contexts,
}

impl SessionCompiler {
    /// `threads` is how many compilations are expected at once.
    pub(super) fn new(compiler: Arc<Compiler>, target: Target, emit: Emit, threads: usize) -> Self {
        Self {
            begun: content::begin(&compiler, &target, emit),
            compiler,
            target,
            emit,
            images: Images::default(),
            contexts: Contexts::new(threads),
        }
    }

    /// The image of a source.
    pub(super) fn compile(&self, name: &str, source: &Source) -> Result<Compiled, SessionError> {
        let failed = |error: InputError| Failure::from(Error::new(Stage::Input, error).in_module(name));
        let kind = match source.kind {
            Some(kind) => kind,
            None => InputKind::of(name, &source.bytes).map_err(failed)?,
        };
        let is_fatal =
            |error: &SessionError| matches!(error, SessionError::Compile(failure) if failure.is_fatal_in_mlir());
        let (image, fresh) = match kind {
            InputKind::Mlir => worker::reading(&self.compiler, &[(name, &source.bytes)], |inputs| {
                let bytes = inputs.first().map_or(source.bytes.as_slice(), |(_, bytes)| *bytes);
                self.contexts.with(source.bytes.len(), is_fatal, |context| {
                    with_deep_stack(|| self.compile_mlir(context, name, bytes))
                })
            })?,
            InputKind::Llvm | InputKind::Ptx => {
                let content = self.begun.clone().device_source(kind, &source.bytes).finish();
                self.images.get_or_compile(content, || {
                    let compilation = self
                        .compiler
                        .compile_source(name, &source.bytes, &[self.target], self.emit)?;
                    Ok(Image {
                        content,
                        artifact: only(name, compilation)?,
                        definitions: Vec::new(),
                    })
                })?
            }
        };
        Ok(Compiled {
            source: source.hash,
            image,
            fresh,
        })
    }

    fn compile_mlir(&self, context: &Context, name: &str, bytes: &[u8]) -> Result<(Arc<Image>, bool), SessionError> {
        let input = |error: InputError| Failure::from(Error::new(Stage::Input, error).in_module(name));
        let parsed = parse(context, name, bytes).map_err(input)?;
        let outlined = outline(context, &parsed).map_err(Failure::from)?;
        let module = outlined.unwrap_or(parsed);
        let content = {
            let modules = gpu_modules(&module);
            if modules.len() > 1 && self.compiler.options().device_link.is_none() {
                return Err(SessionError::SeveralModules {
                    name: name.to_owned(),
                    modules: modules.into_iter().map(symbol_name).collect(),
                });
            }
            content::of_modules(&self.begun, &modules)
        };
        self.images.get_or_compile(content, || {
            let compilation = self.compiler.compile(&module, &[self.target], self.emit)?;
            Ok(Image {
                content,
                artifact: only(name, compilation)?,
                definitions: definitions(&module),
            })
        })
    }
}

/// The one artifact of a compilation.
fn only(name: &str, compilation: Compilation) -> Result<Artifact, SessionError> {
    let mut artifacts = compilation.artifacts.into_iter();
    match (artifacts.next(), artifacts.next()) {
        (Some(artifact), None) => Ok(artifact),
        (None, _) => Err(Failure::from(Error::new(Stage::Plan, InputError::NoModule).in_module(name)).into()),
        (Some(first), Some(second)) => Err(SessionError::SeveralModules {
            name: name.to_owned(),
            modules: [first, second]
                .into_iter()
                .chain(artifacts)
                .map(|artifact| artifact.module)
                .collect(),
        }),
    }
}

/// Says of symbols that are undefined which module of the session, if any, defines them.
pub(super) fn explain(name: &str, error: SessionError, defined_by: impl Fn(&str) -> Option<String>) -> SessionError {
    let SessionError::Compile(failure) = error else {
        return error;
    };
    let symbols: Vec<UndefinedSymbol> = undefined_symbols(&failure)
        .into_iter()
        .map(|symbol| UndefinedSymbol {
            name: symbol.name.clone(),
            defined_by: defined_by(&symbol.name),
        })
        .collect();
    if symbols.is_empty() {
        return failure.into();
    }
    SessionError::Undefined {
        module: name.to_owned(),
        symbols,
        failure,
    }
}

/// A panic as a failure of the compilation.
pub(super) fn internal(name: &str, panic: &(dyn std::any::Any + Send)) -> SessionError {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic".to_owned());
    Failure::from(Error::new(Stage::Plan, Cause::Internal(text)).in_module(name)).into()
}
