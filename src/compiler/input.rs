//! What the input is, and reading it.

use std::path::{Path, PathBuf};

use melior::{Context, dialect::DialectRegistry, ir::Module, utility::register_all_passes};

use super::{
    bytecode, nesting,
    stack::{STACK_BYTES, on_deep_stack},
};
use crate::{
    FileKind,
    bridge::{
        LlvmError,
        mlir::{MlirDiagnostic, capture_diagnostics, context_without_threads, parse_module},
        opt_main::register_dialects,
        other_releases::mlir_text::{self, LostProperty},
    },
    device::lower::DIALECTS,
    error::Location,
    image::ptx_sizes::largest_sizes,
};

/// Why an input cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("the input is empty")]
    Empty,
    /// The text is not UTF-8 and the bytes are no format that is known.
    #[error("the input is neither text nor MLIR bytecode nor LLVM bitcode; expected .mlir, .mlirbc, .ll, .bc or .ptx")]
    UnknownFormat,
    /// A text of other bytes than UTF-8's.
    #[error("the text is not UTF-8: it has a byte 0x{byte:02x}; write the file as UTF-8, comments included")]
    NotUtf8 {
        /// The first byte that is wrong.
        byte: u8,
        /// Where.
        location: Location,
    },
    /// MLIR refused it.
    #[error("{}", first_message(.0))]
    Mlir(Vec<MlirDiagnostic>),
    /// It nests too deeply to be parsed.
    #[error("{reason}")]
    Nesting {
        /// What is too much.
        reason: String,
        /// Where.
        location: Location,
    },
    /// Bytecode that MLIR's reader must not see.
    #[error("{reason}")]
    Bytecode {
        /// What is wrong with it.
        reason: String,
        /// The beginning of the input.
        location: Location,
    },
    /// It says something that MLIR 22 would pass over.
    #[error(
        "{operation} has no property '{property}' in MLIR 22: the text is in generic form, and from another release; print it \
         in custom form (without --mlir-print-op-generic), or write bytecode of version 4"
    )]
    OtherRelease {
        /// The operation.
        operation: String,
        /// What it does not have.
        property: String,
        /// Where the operation is.
        location: Location,
    },
    /// A fatal error or a crash while MLIR parsed it.
    #[error("{error}")]
    Fatal {
        /// What it was.
        error: LlvmError,
        /// The beginning of the input: where in it MLIR was is not known.
        location: Location,
    },
    /// What is to be known of a launch is not in the module.
    #[error("{reason}")]
    Launch {
        /// What, and why.
        reason: String,
        /// The launch.
        location: Option<Location>,
    },
    /// There is no stack to work on.
    #[error(
        "there is no memory for a stack of {} MiB, which reading and compiling need: {reason}; raise the limit of the address \
         space (ulimit -v), compile less at once, or on a machine with more memory",
        STACK_BYTES >> 20
    )]
    Stack {
        /// What the system said.
        reason: String,
    },
    /// There is nothing to compile.
    #[error(
        "the input holds no gpu.module and no gpu.launch; put kernels into a gpu.module, or give device LLVM IR or PTX"
    )]
    NoModule,
    /// Nothing says what to compile for.
    #[error(
        "no target: the module has no target attribute and none was given (--target sm_90, gpulower-attach-targets{{targets=sm_90}}, or a targets argument)"
    )]
    NoTarget {
        /// Where the module is.
        location: Option<Location>,
    },
    /// A target attribute of neither `#nvvm.target` nor `#rocdl.target`.
    #[error("cannot compile for the target {attribute}: expected #nvvm.target<...> or #rocdl.target<...>")]
    UnknownTargetAttribute {
        /// The attribute as MLIR prints it.
        attribute: String,
    },
    /// PTX that would take all memory.
    #[error(
        "the PTX declares {count} registers at once, and more than {MOST_PTX_REGISTERS} are not handed to NVIDIA's \
         compilers: lower the number in its .reg directives"
    )]
    PtxRegisters {
        /// How many.
        count: u64,
    },
    /// PTX that would take minutes.
    #[error(
        "the PTX declares an array of {count} dimensions, and more than {MOST_PTX_DIMENSIONS} are not handed to NVIDIA's \
         compilers: declare one dimension of the whole size"
    )]
    PtxDimensions {
        /// How many.
        count: u64,
    },
    /// PTX for another vendor's target.
    #[error("PTX cannot be compiled for {target}: it is NVIDIA's; name an sm_* target")]
    PtxForAmd {
        /// The target.
        target: String,
    },
}

impl InputError {
    /// Where the problem is.
    pub fn location(&self) -> Option<&Location> {
        match self {
            Self::Mlir(diagnostics) => diagnostics.first().map(|diagnostic| &diagnostic.location),
            Self::NoTarget { location } | Self::Launch { location, .. } => location.as_ref(),
            Self::NotUtf8 { location, .. }
            | Self::Nesting { location, .. }
            | Self::Bytecode { location, .. }
            | Self::OtherRelease { location, .. }
            | Self::Fatal { location, .. } => Some(location),
            _ => None,
        }
    }
}

/// Most registers in one declaration of PTX. A compiler gives each value of a kernel one of its own: a kernel of a
/// million instructions needs as many. ptxas 13.0.88 takes 33 MiB for these, and 153 MiB for sixteen times as many.
pub const MOST_PTX_REGISTERS: u64 = 1 << 20;

/// Most dimensions of an array in PTX: as many as anything else may nest. ptxas 13.0.88 takes 0.3 s for these, 48 s for five
/// times as many, and crashes in the end.
pub const MOST_PTX_DIMENSIONS: u64 = 1000;

/// Why bytes are no text. `end`: how many are UTF-8.
fn not_text(name: &str, bytes: &[u8], end: usize) -> InputError {
    let (Some(before), Some(&byte)) = (bytes.get(..end), bytes.get(end)) else {
        return InputError::UnknownFormat;
    };
    // A text in another encoding has lines, and no control characters but those that part them and words.
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if !bytes.contains(&b'\n') || bytes.iter().any(is_control) {
        return InputError::UnknownFormat;
    }
    InputError::NotUtf8 {
        byte,
        location: Location::after(name, before),
    }
}

fn first_message(diagnostics: &[MlirDiagnostic]) -> String {
    diagnostics
        .first()
        .map_or_else(|| "MLIR refused the input".to_owned(), |first| first.message.clone())
}

/// The language of an input, whether as text or in binary form. [`FileKind`] says what the bytes are; only a name tells
/// MLIR as text from other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// MLIR, text or bytecode.
    Mlir,
    /// LLVM IR, text or bitcode.
    Llvm,
    /// PTX.
    Ptx,
}

impl InputKind {
    /// Tells the kind from the file's name and its bytes; the bytes win where they are unmistakable.
    pub fn of(name: &str, bytes: &[u8]) -> Result<Self, InputError> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(InputError::Empty);
        }
        let kind = FileKind::of(bytes);
        match kind {
            FileKind::MlirBytecode => return Ok(Self::Mlir),
            FileKind::Bitcode => return Ok(Self::Llvm),
            _ => {}
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(not_text(name, bytes, error.valid_up_to()));
        }
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        Ok(match extension {
            "mlir" | "mlirbc" => Self::Mlir,
            "ll" | "bc" => Self::Llvm,
            "ptx" => Self::Ptx,
            _ => match kind {
                FileKind::Ptx => Self::Ptx,
                FileKind::LlvmIr => Self::Llvm,
                _ => Self::Mlir,
            },
        })
    }

    /// Whether a file is to be compiled before it is linked. Any text might be MLIR: it has to be called so.
    pub fn is_to_be_compiled(name: &str, bytes: &[u8]) -> bool {
        let extension = Path::new(name).extension();
        let named = extension.is_some_and(|extension| extension == "mlir" || extension == "ll");
        let is_text = std::str::from_utf8(bytes).is_ok();
        matches!(Self::of(name, bytes), Ok(Self::Mlir | Self::Llvm)) && (named || !is_text)
    }

    /// The kind in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mlir => "MLIR",
            Self::Llvm => "LLVM IR",
            Self::Ptx => "PTX",
        }
    }
}

pub(super) fn is_bytecode(bytes: &[u8]) -> bool {
    FileKind::of_binary_ir(bytes) == Some(FileKind::MlirBytecode)
}

/// A context with everything that lowering needs. Several threads may use it; MLIR starts none of its own in it.
pub fn context() -> Context {
    register_all_passes();
    let registry = DialectRegistry::new();
    register_dialects(&registry);
    let context = context_without_threads(&registry);
    load_dialects(&context);
    context
}

/// Makes an embedder's context fit: dialects, translations and passes that lowering needs.
pub fn prepare(context: &Context) {
    register_all_passes();
    let registry = DialectRegistry::new();
    register_dialects(&registry);
    context.append_dialect_registry(&registry);
    load_dialects(context);
}

fn load_dialects(context: &Context) {
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
}

/// Parses MLIR, text or bytecode.
pub fn parse<'c>(context: &'c Context, name: &str, bytes: &[u8]) -> Result<Module<'c>, InputError> {
    let beginning = || Location::in_file(name, 1, 1);
    check_nesting(InputKind::Mlir, name, bytes)?;
    if is_bytecode(bytes) {
        bytecode::check(bytes).map_err(|reason| InputError::Bytecode {
            reason,
            location: beginning(),
        })?;
    }
    let brought = match is_bytecode(bytes) {
        true => None,
        false => mlir_text::bring_over(context, bytes).map_err(|lost| lost_property(name, bytes, lost))?,
    };
    let bytes = brought.as_deref().unwrap_or(bytes);
    let (module, diagnostics) = on_deep_stack(|| capture_diagnostics(context, || parse_module(context, name, bytes)))?;
    module.map_err(|error| match error {
        LlvmError::Refused(_) => {
            let mut errors: Vec<_> = diagnostics
                .into_iter()
                .filter(|diagnostic| diagnostic.is_error)
                .collect();
            if let (Some(first), Some(advice)) = (errors.first_mut(), bytecode::advice(bytes)) {
                first.message.push_str(&advice);
            }
            InputError::Mlir(errors)
        }
        error => InputError::Fatal {
            error,
            location: beginning(),
        },
    })
}

fn lost_property(name: &str, text: &[u8], lost: LostProperty) -> InputError {
    let before = text.get(..lost.at).unwrap_or_default();
    InputError::OtherRelease {
        operation: lost.operation,
        property: lost.property,
        location: Location::after(name, before),
    }
}

/// Refuses PTX that NVIDIA's compilers take too much time or memory for.
pub(super) fn check_sizes(ptx: &[u8]) -> Result<(), InputError> {
    let sizes = largest_sizes(ptx);
    if sizes.registers > MOST_PTX_REGISTERS {
        return Err(InputError::PtxRegisters { count: sizes.registers });
    }
    if sizes.dimensions > MOST_PTX_DIMENSIONS {
        return Err(InputError::PtxDimensions {
            count: sizes.dimensions,
        });
    }
    Ok(())
}

/// Refuses a text that nests too deeply to be parsed.
pub(super) fn check_nesting(language: InputKind, name: &str, bytes: &[u8]) -> Result<(), InputError> {
    if FileKind::of_binary_ir(bytes).is_some() {
        return Ok(());
    }
    nesting::check(language, bytes).map_err(|excess| InputError::Nesting {
        reason: excess.reason,
        location: Location::in_file(name, u32::try_from(excess.line).unwrap_or(u32::MAX), 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loading a dialect while another thread works in the context is a data race: everything has to be loaded before.
    #[test]
    fn lowering_loads_no_further_dialect() {
        let context = context();
        let loaded = context.loaded_dialect_count();
        let kernel = "gpu.module @m { gpu.func @k(%p: memref<?xf32>) kernel {
              %i = gpu.global_id x
              %v = memref.load %p[%i] : memref<?xf32>
              %e = math.exp %v : f32
              memref.store %e, %p[%i] : memref<?xf32>
              gpu.return } }";
        for target in ["sm_90", "gfx942", "gfx1100"] {
            for debug in ["none", "line-tables"] {
                let mut options = crate::options::Options::default();
                options.set("debug", debug).expect("a valid option");
                let resolved = options
                    .resolve(&target.parse().expect("a target"), None)
                    .expect("resolves");
                let mut module = parse(&context, "k.mlir", kernel.as_bytes()).expect("parses");
                crate::device::lower::lower(&mut module, &resolved).expect("lowers");
            }
        }
        assert_eq!(context.loaded_dialect_count(), loaded);
    }

    #[test]
    fn kinds_are_told_from_bytes_then_names() {
        for (name, bytes, kind) in [
            ("k.mlir", &b"gpu.module @m {}"[..], InputKind::Mlir),
            ("-", b"ML\xefR\x0d", InputKind::Mlir),
            ("-", b"BC\xc0\xde\x35", InputKind::Llvm),
            ("-", b"; a comment\ndefine void @f() {", InputKind::Llvm),
            ("-", b"//\n.version 8.0\n.target sm_90", InputKind::Ptx),
            ("-", b"module {}", InputKind::Mlir),
            ("k.ptx", b"// nothing yet", InputKind::Ptx),
        ] {
            assert_eq!(InputKind::of(name, bytes).expect("known"), kind, "{name}");
        }
    }

    #[test]
    fn an_empty_or_binary_input_is_refused() {
        let message = |bytes: &[u8]| InputKind::of("x", bytes).expect_err("refused").to_string();
        assert_eq!(message(b" \n"), "the input is empty");
        assert!(message(b"\x7fELF\xff\xfe").starts_with("the input is neither text nor MLIR bytecode"));
    }
}
