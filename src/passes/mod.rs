//! The MLIR passes: thin adaptors between pass options and IR on one side, and the compiler on the other.
//!
//! | pass | does |
//! |---|---|
//! | `gpulower-attach-targets` | puts target attributes on `gpu.module`s |
//! | `gpulower-lower` | brings `gpu.module`s into the dialects of their targets |
//! | `gpulower-serialize` | turns `gpu.module`s into `gpu.binary`s |
//! | `gpulower-to-binary` | all three |
//! | `gpulower-embed-offload` | brings a program's host code into the LLVM dialect, with its kernels embedded |

mod attach_targets;
mod embed_offload;
mod kernel_table;
mod lower;
mod serialize;
mod to_binary;

use std::{
    path::PathBuf,
    sync::{Once, OnceLock},
};

use melior::ir::Location;

use crate::{
    bridge::{
        external_pass::{self, DiagnosticEmitted, OptionValues, PassOption},
        mlir::{Severity, emit, parse_location},
        mlir_passes::register_patterns,
    },
    cache::Cache,
    error::Error,
    options::{Library, Options},
    toolkit::Search,
};

/// What passes take from the tool they run in, since pipeline strings cannot say everything.
#[derive(Debug, Default)]
pub struct Environment {
    /// Where toolkits are looked for when the pass option `toolkit` does not say.
    pub search: Search,
    /// Directory for what is made once for each toolkit.
    pub cache_directory: Option<PathBuf>,
    /// Where results are kept, if they are.
    pub cache: Option<Cache>,
}

/// MLIR's pass registry is one for the whole process, and so is what its passes find here.
static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();

/// Registers the passes with MLIR under their names; the first call's environment is the one that counts.
pub fn register(environment: Environment) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = ENVIRONMENT.set(environment);
        register_patterns();
        external_pass::register::<attach_targets::AttachTargets>();
        external_pass::register::<lower::Lower>();
        external_pass::register::<serialize::Serialize>();
        external_pass::register::<to_binary::ToBinary>();
        external_pass::register::<embed_offload::EmbedOffload>();
    });
}

fn environment() -> &'static Environment {
    ENVIRONMENT.get_or_init(Environment::default)
}

/// A pass option that sets an entry of [`Options`]; an empty value leaves it as it is.
const fn option(name: &'static str, help: &'static str) -> PassOption {
    PassOption {
        name,
        help,
        default: "",
    }
}

/// Sets the options among `names` that a pipeline string gives.
fn read_options(options: &mut Options, values: &OptionValues, names: &[&str]) -> Result<(), String> {
    for name in names {
        let value = values.get(name);
        if !value.is_empty() {
            options.set(name, value).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The comma-separated paths of `l`.
fn read_libraries(values: &OptionValues) -> impl Iterator<Item = Library> {
    values
        .get("l")
        .split(',')
        .map(str::trim)
        .filter(|path| !path.is_empty())
        .map(|path| Library::File(PathBuf::from(path)))
}

/// Reports a failure at the place it names, or at `fallback`.
fn report(error: &Error, fallback: Location<'_>) -> DiagnosticEmitted {
    let context = fallback.context();
    let location = match &error.location {
        Some(location) => parse_location(crate::bridge::mlir::context_of(context), location),
        None => fallback,
    };
    // The location is the diagnostic's: the message need not repeat it.
    let message = error.to_string();
    let message = error
        .location
        .as_ref()
        .and_then(|_| {
            message
                .find(&format!("{}, ", error.stage))
                .map(|start| &message[start..])
        })
        .unwrap_or(&message);
    emit(location, Severity::Error, message);
    DiagnosticEmitted
}
