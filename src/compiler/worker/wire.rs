//! A request as plain data.

use melior::Context;
use serde::{Deserialize, Serialize};

use crate::{
    bridge::{LlvmError, edit::OwnedModule, mlir::bytecode},
    compiler::{
        input::{InputError, parse},
        request::{Part, Product, Request, SharedModule, Source},
    },
    error::Error,
    options::{Library, Options},
    stage::Stage,
    target::{PtxPolicy, Target},
};

/// What a worker has to know of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireRequest {
    name: String,
    parts: Vec<(String, WireSource)>,
    target: Target,
    products: Vec<Product>,
    pub options: Options,
    notes: Vec<String>,
    /// How many threads it may be carried out on.
    pub threads: usize,
}

#[derive(Debug, Serialize, Deserialize)]
enum WireSource {
    /// MLIR bytecode, with locations.
    Mlir(Vec<u8>),
    Llvm(Vec<u8>),
    Ptx(String),
}

impl WireRequest {
    pub fn of(request: &Request<'_>, threads: usize) -> Result<Self, LlvmError> {
        let parts = request.parts.iter().map(|part| {
            let source = match &part.source {
                Source::Mlir(module) => WireSource::Mlir(bytecode(module.lock().module())?),
                Source::Llvm(bytes) => WireSource::Llvm(bytes.to_vec()),
                Source::Ptx(text) => WireSource::Ptx(text.to_string()),
            };
            Ok((part.name.clone(), source))
        });
        let mut options = request.options.clone();
        options.libraries.iter_mut().for_each(read_here);
        if let Some(link) = &mut options.device_link {
            link.objects.iter_mut().for_each(read_here);
        }
        Ok(Self {
            name: request.name.clone(),
            parts: parts.collect::<Result<_, LlvmError>>()?,
            target: request.target,
            products: request.products.clone(),
            options,
            notes: request.notes.clone(),
            threads,
        })
    }

    pub fn into_request(self, context: &Context) -> Result<Request<'_>, Error> {
        let name = self.name;
        let target = self.target;
        let parts = self.parts.into_iter().map(|(part, source)| {
            let source = match source {
                WireSource::Mlir(bytes) => {
                    let failed =
                        |error: InputError| Error::new(Stage::Input, error).in_module(&name).for_target(&target);
                    let module = parse(context, &part, &bytes).map_err(failed)?;
                    let module = OwnedModule::new(module).map_err(|open| failed(InputError::Mlir(vec![open])))?;
                    Source::Mlir(SharedModule::new(module))
                }
                WireSource::Llvm(bytes) => Source::Llvm(bytes.into()),
                WireSource::Ptx(text) => Source::Ptx(text.into()),
            };
            Ok(Part { name: part, source })
        });
        let parts = parts.collect::<Result<_, Error>>()?;
        Ok(Request {
            name,
            module: 0,
            parts,
            target,
            products: self.products,
            options: self.options,
            include_ptx: PtxPolicy::default(),
            notes: self.notes,
            position: 0,
        })
    }
}

/// A file that is named by a relative path is read here: the worker may have another current directory. Where it cannot be
/// read, the worker says so.
fn read_here(library: &mut Library) {
    let Library::File(path) = library else { return };
    if path.is_absolute() {
        return;
    }
    if let Ok(bytes) = std::fs::read(&path) {
        *library = Library::Memory {
            name: library.name(),
            bytes: bytes.into(),
        };
    }
}
