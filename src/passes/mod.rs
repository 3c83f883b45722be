//! The MLIR passes: thin adaptors between pass options and IR on one side, and the compiler on the other.
//!
//! | pass | does |
//! |---|---|
//! | `gpulower-attach-targets` | puts target attributes on `gpu.module`s |
//! | `gpulower-lower` | brings `gpu.module`s into the dialects of their targets |
//! | `gpulower-serialize` | turns `gpu.module`s into `gpu.binary`s |
//! | `gpulower-to-binary` | all three |
//! | `gpulower-embed-offload` | brings a program's host code into the LLVM dialect, with its kernels embedded |

mod amd_words;
mod attach_targets;
mod embed_offload;
mod kernel_table;
mod lower;
mod run;
mod serialize;
mod to_binary;

use std::{
    borrow::Cow,
    path::PathBuf,
    sync::{Once, OnceLock},
};

use melior::ir::Location;

pub use crate::compiler::pipeline::{check_pipeline, parse_pipeline};
pub use run::{PassDescription, Transformed, descriptions, run};

use crate::{
    bridge::{
        external_pass::{self, DiagnosticEmitted, OptionValues, PassOption},
        mlir::{Severity, emit, location_of},
        mlir_passes::register_patterns,
    },
    cache::Cache,
    compiler::{Compiler, CompilerBuilder, attribute},
    error::Error,
    options::{Library, OptionDescription, Options},
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
        register_patterns(OptionDescription::expected);
        external_pass::register::<attach_targets::AttachTargets>();
        external_pass::register::<lower::Lower>();
        external_pass::register::<serialize::Serialize>();
        external_pass::register::<to_binary::ToBinary>();
        external_pass::register::<embed_offload::EmbedOffload>();
    });
}

/// As [`register`], and puts `gpulower-serialize` in the place of upstream's `gpu-module-to-binary`, in every pipeline
/// string. It has to come before upstream's passes are registered.
pub fn register_in_place_of_upstreams(environment: Environment) {
    static ONCE: Once = Once::new();
    ONCE.call_once(external_pass::register_in_place::<serialize::ModuleToBinary>);
    register(environment);
}

fn environment() -> &'static Environment {
    ENVIRONMENT.get_or_init(Environment::default)
}

/// Where toolkits are looked for.
fn search() -> Search {
    match run::compiler_of_call() {
        Some(compiler) => compiler.toolkit().search().clone(),
        None => environment().search.clone(),
    }
}

/// The compiler to be: that of the call that runs the pass, or one with what the tool has.
fn builder() -> CompilerBuilder {
    if let Some(compiler) = run::compiler_of_call() {
        return compiler.to_builder();
    }
    let environment = environment();
    let mut builder = Compiler::builder();
    if let Some(directory) = &environment.cache_directory {
        builder = builder.cache_directory(directory.clone());
    }
    builder.cache(environment.cache.clone())
}

/// Builds it, to end when the call that runs the pass is to end.
fn built(builder: CompilerBuilder) -> Compiler {
    let compiler = builder.build();
    match run::compiler_of_call() {
        Some(call) => compiler.with_cancellation_of(&call),
        None => compiler,
    }
}

/// A pass option that is none of [`Options`]; an empty value is one that was not given.
const fn option(name: &'static str, help: &'static str) -> PassOption {
    with_default(name, help, "")
}

const fn with_default(name: &'static str, help: &'static str, default: &'static str) -> PassOption {
    PassOption {
        name,
        help: Cow::Borrowed(help),
        default,
    }
}

/// What upstream's `nvvm-attach-target` has under this name.
const fn collect_option() -> PassOption {
    option(
        attribute::COLLECT,
        "Keep what the PTX compiler says as ISACompilerLog in the properties of the gpu.object (NVIDIA): false|true",
    )
}

/// An option that is off unless it is on.
fn read_switch(values: &OptionValues, name: &str) -> Result<bool, String> {
    match values.get(name) {
        "" | "false" => Ok(false),
        "true" => Ok(true),
        other => Err(format!("option '{name}' cannot be '{other}': expected false or true")),
    }
}

/// The options of a pass: its own, and those of [`Options`] that it has by the table.
fn options_of(pass: &str, own: &[PassOption]) -> Vec<PassOption> {
    let from_table = OptionDescription::of_pass(pass).flat_map(|option| {
        let help = match option.names {
            [_] => format!("{}: {}", option.help(), option.values),
            names => format!("{}: {} ({})", option.help(), option.values, names.join(", ")),
        };
        option.names.iter().map(move |name| PassOption {
            name,
            help: Cow::Owned(help.clone()),
            default: "",
        })
    });
    own.iter().cloned().chain(from_table).collect()
}

/// Those of [`Options`] that a pipeline string gives; libraries too. An empty value leaves an option as it is.
fn read_options(pass: &str, values: &OptionValues) -> Result<Options, String> {
    let mut options = Options::default();
    for name in OptionDescription::of_pass(pass).flat_map(|option| option.names) {
        let value = values.get(name);
        if !value.is_empty() {
            options.set(name, value).map_err(|error| error.to_string())?;
        }
    }
    options.libraries.extend(read_libraries(values));
    Ok(options)
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
        Some(location) => location_of(crate::bridge::mlir::context_of(context), location),
        None => fallback,
    };
    // The place is the diagnostic's: the message does not repeat it.
    run::keep(error);
    emit(location, Severity::Error, &error.without_place().to_string());
    DiagnosticEmitted
}
