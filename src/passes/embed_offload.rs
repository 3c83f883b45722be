//! `gpulower-embed-offload`: host code that launches kernels into the LLVM dialect, with launch stubs, offload entries and
//! embedded images.

use std::{path::Path, sync::OnceLock};

use melior::ir::{Location, operation::OperationLike};

use super::{builder, built, option, options_of, read_options, report, search, with_default};
use crate::{
    bridge::{
        edit::Exclusive,
        external_pass::{DiagnosticEmitted, NamedPass, OptionValues, PassOption},
        mlir::{Severity, emit, location_of, place_of},
    },
    offload::{ExportForm, ExportOptions, HostTriple, Names, Runtime, export::export_module},
    options::Options,
    target::Target,
    toolkit::{Search, Toolkit},
};

/// The pass.
pub(super) struct EmbedOffload;

/// What to embed, and how.
pub(super) struct Embedding {
    export: ExportOptions,
    named: bool,
    kind: Option<Runtime>,
    targets: Vec<Target>,
    options: Options,
    search: Search,
}

impl NamedPass for EmbedOffload {
    const ARGUMENT: &'static str = "gpulower-embed-offload";
    const DESCRIPTION: &'static str =
        "Bring a program's host code into the LLVM dialect, with launch stubs, offload entries and embedded images";
    type Options = Embedding;

    fn options() -> &'static [PassOption] {
        static OPTIONS: OnceLock<Vec<PassOption>> = OnceLock::new();
        OPTIONS.get_or_init(|| {
            let own = [
                option(
                    "finish-with",
                    "What finishes the program: clang-15 to clang-23 and a CUDA toolkit or rocm, such as 'clang-19,cuda-12.4'",
                ),
                option(
                    "kind",
                    "cuda|hip|openmp: whose runtime the host code calls (default: that of the targets)",
                ),
                option(
                    "targets",
                    "What to compile gpu.modules for (default: their target attributes)",
                ),
                with_default(
                    "self-registering",
                    "true|false: a constructor registers the kernels, and no clang is needed",
                    "false",
                ),
                with_default(
                    "host-triple",
                    "The machine that the program runs on",
                    "x86_64-unknown-linux-gnu",
                ),
                option(
                    "name",
                    "What the program is called, a part of its kernels' names (default: the file of the module's location)",
                ),
                with_default(
                    "keep-names",
                    "true|false: leave the names of kernels and device variables as they are",
                    "false",
                ),
                option("cuda", "Root of the CUDA toolkit to use (default: searched for)"),
                option("rocm", "Root of the ROCm toolkit to use"),
                option(
                    "ptxas-of",
                    "Roots of further CUDA toolkits whose ptxas may be used, comma-separated",
                ),
                option("l", "Bitcode libraries to link, comma-separated paths"),
            ];
            options_of(Self::ARGUMENT, &own)
        })
    }

    fn parse(values: &OptionValues) -> Result<Embedding, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let given = |name| Some(values.get(name)).filter(|value| !value.is_empty());
        let switch = |name: &'static str| match values.get(name) {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("option '{name}' cannot be '{other}': expected true or false")),
        };
        let kind = match given("kind") {
            None => None,
            Some(name) => Some(
                Runtime::named(name)
                    .ok_or_else(|| format!("option 'kind' cannot be '{name}': expected cuda, hip or openmp"))?,
            ),
        };
        let triple: HostTriple = values.get("host-triple").parse().map_err(|error| text(&error))?;
        let finish_with = match given("finish-with") {
            Some(list) => Some(list.parse().map_err(|error| text(&error))?),
            None => None,
        };
        let form = if switch("self-registering")? { "self" } else { "obj" };
        let form = ExportForm::named(form, finish_with).map_err(|error| text(&error))?;
        let mut export = ExportOptions::new(form, values.get("name"), triple);
        if switch("keep-names")? {
            export.names = Names::Keep;
        }
        export.further_toolkits = values
            .get("ptxas-of")
            .split(',')
            .filter(|root| !root.is_empty())
            .map(|root| Toolkit::discover(&Search::nowhere().with_cuda(Path::new(root))))
            .collect();
        let targets = match given("targets") {
            Some(list) => Target::parse_list(list).map_err(|error| text(&error))?,
            None => Vec::new(),
        };
        let options = read_options(Self::ARGUMENT, values)?;
        let mut search = search();
        if let Some(root) = given("cuda") {
            search = search.with_cuda(Path::new(root));
        }
        if let Some(root) = given("rocm") {
            search = search.with_rocm(Path::new(root));
        }
        Ok(Embedding {
            named: given("name").is_some(),
            export,
            kind,
            targets,
            options,
            search,
        })
    }

    fn can_schedule_on(operation_name: &str) -> bool {
        operation_name == "builtin.module"
    }

    fn run(options: &Embedding, mut operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        options.apply(&mut operation)
    }
}

impl Embedding {
    fn apply(&self, root: &mut Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        let location = root.get().location();
        let copy = root.copy_of_module().map_err(|reason| {
            emit(location, Severity::Error, &reason);
            DiagnosticEmitted
        })?;
        let toolkit = Toolkit::discover(&self.search);
        let compiler = built(builder().options(self.options.clone()).toolkit(toolkit));
        let mut export = self.export.clone();
        if !self.named {
            export.unit = unit_of(location);
        }
        export.runtime = self.kind;
        let exported = export_module(&compiler, &copy, &self.targets, &export).map_err(|failure| {
            for error in &failure.errors {
                report(error, location);
            }
            DiagnosticEmitted
        })?;
        for warning in &exported.warnings {
            let place = warning.location.as_ref();
            let place = place.map_or(location, |place| {
                location_of(crate::bridge::mlir::context_of(location.context()), place)
            });
            emit(place, Severity::Warning, &warning.message);
        }
        for note in &exported.notes {
            emit(location, Severity::Remark, note);
        }
        root.replace_contents(exported.module);
        Ok(())
    }
}

/// The file in a location, without its folders.
fn unit_of(location: Location<'_>) -> String {
    let place = place_of(location);
    let file = place.file().unwrap_or("module");
    file.rsplit('/').next().unwrap_or(file).to_owned()
}
