//! `gpulower-serialize`: `gpu.module`s to `gpu.binary`s, in place of upstream's `gpu-module-to-binary`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Identifier,
        attribute::{ArrayAttribute, DenseI64ArrayAttribute, StringAttribute},
        operation::{OperationBuilder, OperationLike, OperationRef},
    },
};
use regex_lite::Regex;

use super::{
    amd_words, builder, built, collect_option,
    kernel_table::kernel_table,
    lower::{POSITIONS, VARIANT_OF},
    option, options_of, read_options, read_switch, report, search, with_default,
};
use crate::{
    bridge::{
        edit::{Edits, Exclusive},
        external_pass::{DiagnosticEmitted, NamedPass, OptionValues, PassOption},
        mlir::{
            ObjectFormat, Severity, context_of, emit, gpu_object, is_threaded, operations_below, string_value,
            symbol_attribute_name,
        },
    },
    compiler::{Compiler, Emit, Finished, Targets, attribute, gpu_modules_below, symbol_name, target_attributes},
    device::lower::name_of,
    options::Options,
    read_file::MOST_BYTES,
    report::Artifact,
    stage_files::{Overrides, StageFiles},
    target::Target,
    toolkit::Toolkit,
};

/// The pass.
pub(super) struct Serialize;

/// The same pass under the name of upstream's, for those who run an `mlir-opt` with a pipeline of their own.
pub(super) struct ModuleToBinary;

/// What is said about a `gpu.launch`, which has no `gpu.module` yet.
pub(super) const NOT_OUTLINED: &str =
    "this gpu.launch is not compiled: run gpu-kernel-outlining first, which gives it a gpu.module";

/// What to serialize to, and with what.
#[derive(Debug)]
pub(super) struct Serialization {
    format: ObjectFormat,
    options: Options,
    /// ELF section for the embedded bytes.
    section: Option<String>,
    toolkit: Option<String>,
    cuda: Option<String>,
    rocm: Option<String>,
    threads: Option<usize>,
    /// Whether what the vendor's tool says is to be shown.
    verbose: bool,
    /// Whether it is kept with the objects, whatever their targets' attributes say.
    collect: bool,
    /// Whether objects say what is known of their kernels: MLIR 19 has no attribute for it.
    kernel_table: bool,
    dump_dir: Option<PathBuf>,
    override_dir: Option<PathBuf>,
}

impl Serialization {
    pub(super) fn read(values: &OptionValues) -> Result<Self, String> {
        let format = match values.get("format") {
            "offloading" | "llvm" => ObjectFormat::Offload,
            "assembly" | "isa" => ObjectFormat::Assembly,
            "binary" | "bin" => ObjectFormat::Binary,
            "fatbinary" | "fatbin" => ObjectFormat::Fatbin,
            other => {
                return Err(format!(
                    "option 'format' cannot be '{other}': expected offloading|llvm, assembly|isa, binary|bin or fatbinary|fatbin"
                ));
            }
        };
        let mut options = read_options(Serialize::ARGUMENT, values)?;
        let words = values.get("opts");
        if !words.is_empty() {
            options.set("ptxas-options", words).map_err(|error| error.to_string())?;
        }
        let threads = match values.get("threads") {
            "" => None,
            text => Some(
                text.parse()
                    .ok()
                    .filter(|threads| *threads > 0)
                    .ok_or_else(|| format!("option 'threads' cannot be '{text}': expected a number above 0"))?,
            ),
        };
        let path = |name| Some(values.get(name).to_owned()).filter(|path| !path.is_empty());
        Ok(Self {
            verbose: words.split_whitespace().any(|word| matches!(word, "-v" | "--verbose")),
            collect: read_switch(values, attribute::COLLECT)?,
            format,
            options,
            section: path("section"),
            toolkit: path("toolkit"),
            cuda: path("cuda"),
            rocm: path("rocm"),
            threads,
            kernel_table: values.get("kernel-table") == "true" || read_switch(values, "kernel-table")?,
            dump_dir: path("dump-dir").map(PathBuf::from),
            override_dir: path("override-dir").map(PathBuf::from),
        })
    }

    /// Drops what the targets' attributes carry already.
    pub(super) fn leave_to_targets(&mut self) {
        self.options.libraries.clear();
        self.options.ptx_compiler = None;
    }

    fn toolkit(&self) -> Toolkit {
        let mut search = search();
        if let Some(root) = self.cuda.as_ref().or(self.toolkit.as_ref()) {
            search = search.with_cuda(Path::new(root));
        }
        if let Some(root) = self.rocm.as_ref().or(self.toolkit.as_ref()) {
            search = search.with_rocm(Path::new(root));
        }
        Toolkit::discover(&search)
    }

    /// The options, with what the words of `opts` mean where all targets are AMD's.
    fn options_for(&self, modules: &[OperationRef<'_, '_>]) -> Result<Options, String> {
        let mut options = self.options.clone();
        let attributes = modules.iter().flat_map(|module| target_attributes(*module));
        // What is no target is an error of its own, later.
        let targets: Vec<Target> = attributes
            .filter_map(|one| Some(attribute::read(one, &Options::default()).ok()?.0))
            .collect();
        if !targets.is_empty() && targets.iter().all(|target| matches!(target, Target::Amd(_))) {
            let words = std::mem::take(&mut options.ptxas_options);
            amd_words::apply(&words, &targets, &mut options, modules)?;
        }
        Ok(options)
    }

    fn stage_files(&self, options: &Options, toolkit: &Toolkit) -> Result<Option<Arc<StageFiles>>, String> {
        if self.dump_dir.is_none() && self.override_dir.is_none() {
            return Ok(None);
        }
        let overrides = self.override_dir.clone().map(Overrides::find).transpose();
        let files = overrides.and_then(|overrides| {
            StageFiles::new(self.dump_dir.clone(), overrides, MOST_BYTES, options.clone(), toolkit)
        });
        files
            .map(|files| Some(Arc::new(files)))
            .map_err(|error| error.to_string())
    }

    fn compiler(&self, options: Options, toolkit: Toolkit, files: Option<&Arc<StageFiles>>) -> Compiler {
        let mut builder = builder().options(options).toolkit(toolkit);
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if let Some(files) = files {
            builder = builder.listener(Arc::clone(files) as _);
        }
        built(builder)
    }

    const fn emit(&self) -> Emit {
        match self.format {
            ObjectFormat::Offload => Emit::Bitcode,
            ObjectFormat::Assembly => Emit::Asm,
            ObjectFormat::Binary => Emit::Binary,
            ObjectFormat::Fatbin => Emit::Fatbin,
        }
    }

    /// Serializes the `gpu.module`s inside `root` whose names match, for all targets at once, and puts `gpu.binary`s in
    /// their places.
    /// `pass`: the name of the one that does it.
    pub(super) fn apply(
        &self,
        root: &mut Exclusive<'_, '_>,
        names: Option<&Regex>,
        pass: &str,
    ) -> Result<(), DiagnosticEmitted> {
        root.edit(|root, edits| self.replace_modules(root, edits, names, pass))
    }

    fn replace_modules<'c, 'b>(
        &self,
        root: OperationRef<'c, 'b>,
        edits: &mut Edits<'c, 'b>,
        names: Option<&Regex>,
        pass: &str,
    ) -> Result<(), DiagnosticEmitted> {
        if name_of(&root) == "gpu.module" {
            let message =
                format!("{pass} cannot replace the operation it runs on: run it on the module around the gpu.module");
            emit(root.location(), Severity::Error, &message);
            return Err(DiagnosticEmitted);
        }
        let context = context_of(root.context());
        for launch in operations_below(root)
            .into_iter()
            .filter(|operation| name_of(operation) == "gpu.launch")
        {
            emit(launch.location(), Severity::Warning, NOT_OUTLINED);
        }
        let fail = |message: String| {
            emit(root.location(), Severity::Error, &message);
            DiagnosticEmitted
        };
        let toolkit = self.toolkit();
        let modules: Vec<OperationRef<'_, '_>> = gpu_modules_below(root)
            .into_iter()
            .filter(|module| names.is_none_or(|names| names.is_match(&symbol_name(*module))))
            .collect();
        let options = self.options_for(&modules).map_err(fail)?;
        let files = self.stage_files(&options, &toolkit).map_err(fail)?;
        let compiler = self.compiler(options, toolkit, files.as_ref());
        let mut requests = Vec::new();
        let mut failed = false;
        for (index, module) in modules.iter().enumerate() {
            match compiler.requests(index, *module, &Targets::Attributes, self.emit()) {
                Ok(planned) => requests.extend(planned),
                Err(error) => {
                    report(&error, module.location());
                    failed = true;
                }
            }
        }
        if failed {
            return Err(DiagnosticEmitted);
        }
        for (index, module) in modules.iter().enumerate() {
            let targets: Vec<_> = requests
                .iter()
                .filter(|request| request.module == index)
                .map(|request| request.target)
                .collect();
            if let Err(error) = Target::check_one_binary(&targets) {
                emit(module.location(), Severity::Error, &error.to_string());
                return Err(DiagnosticEmitted);
            }
        }
        let finished = compiler.run_requests(is_threaded(context), requests, self.emit(), &compiler.reporter());
        for warning in files.iter().flat_map(|files| files.unused()) {
            emit(root.location(), Severity::Warning, &warning);
        }
        let mut binaries: BTreeMap<String, Binary<'_, '_>> = BTreeMap::new();
        for Finished {
            module: index,
            position,
            result,
            ..
        } in finished
        {
            let Some(module) = modules.get(index).copied() else {
                continue;
            };
            match result {
                Ok(artifact) => {
                    if let Some(files) = &files {
                        files
                            .write_artifact(&artifact)
                            .map_err(|error| fail(error.to_string()))?;
                    }
                    self.show(&artifact, module);
                    let target = target_attributes(module).get(position).copied();
                    let position = positions(module).get(position).copied().unwrap_or(position);
                    let object = self.object(context, target, &artifact);
                    let binary = binaries.entry(binary_key(module)).or_insert_with(|| Binary {
                        place: module,
                        objects: Vec::new(),
                    });
                    binary.objects.push((position, object));
                }
                Err(error) => {
                    report(&error, module.location());
                    failed = true;
                }
            }
        }
        if failed {
            return Err(DiagnosticEmitted);
        }
        for (_, mut binary) in binaries {
            binary.objects.sort_by_key(|(position, _)| *position);
            let objects: Vec<Attribute<'_>> = binary.objects.into_iter().map(|(_, object)| object).collect();
            place_binary(context, binary.place, &objects)?;
        }
        for module in modules {
            edits.remove(module);
        }
        Ok(())
    }

    fn object<'c>(&self, context: &'c Context, target: Option<Attribute<'c>>, artifact: &Artifact) -> Attribute<'c> {
        let mut properties = Vec::new();
        if self.format == ObjectFormat::Assembly {
            let level = artifact.optimization.number();
            properties.push(format!("O = {level} : i32"));
        }
        if let Some(policy) = &artifact.include_ptx {
            let policy = attribute::quoted(&policy.to_string());
            properties.push(format!("include_ptx = {policy}"));
        }
        if let Some(section) = &self.section {
            properties.push(format!("section = {}", attribute::quoted(section)));
        }
        if self.collect || target.is_some_and(attribute::collects_diagnostics) {
            let logs: Vec<&str> = artifact.images.iter().map(|image| image.log.trim_end()).collect();
            let log = logs.join("\n");
            if !log.is_empty() {
                properties.push(format!("ISACompilerLog = {}", attribute::quoted(&log)));
            }
        }
        let properties = (!properties.is_empty())
            .then(|| Attribute::parse(context, &format!("{{{}}}", properties.join(", "))))
            .flatten();
        let target = target.unwrap_or_else(|| Attribute::unit(context));
        gpu_object(
            context,
            target,
            self.format,
            &artifact.bytes,
            properties,
            self.kernel_table.then(|| kernel_table(context, artifact)).flatten(),
        )
    }

    /// Passes on warnings, and what the vendor's tool said when asked for.
    fn show(&self, artifact: &Artifact, module: OperationRef<'_, '_>) {
        for warning in &artifact.warnings {
            let text = match warning.target {
                Some(target) => format!("target {target}: {}", warning.message),
                None => warning.message.clone(),
            };
            emit(module.location(), Severity::Warning, &text);
        }
        for image in &artifact.images {
            if self.verbose && !image.log.is_empty() {
                emit(module.location(), Severity::Remark, image.log.trim_end());
            }
        }
    }
}

/// A `gpu.binary` in the making.
struct Binary<'c, 'a> {
    place: OperationRef<'c, 'a>,
    objects: Vec<(usize, Attribute<'c>)>,
}

/// Modules with the same key end in one binary: variants of one module, inside the same parent.
fn binary_key(module: OperationRef<'_, '_>) -> String {
    let original = module
        .attribute(VARIANT_OF)
        .ok()
        .and_then(string_value)
        .unwrap_or_else(|| symbol_name(module));
    let mut path = Vec::new();
    let mut parent = module.parent_operation();
    while let Some(operation) = parent {
        path.push(format!("{:p}", operation.to_raw().ptr));
        parent = operation.parent_operation();
    }
    format!("{}/{original}", path.concat())
}

/// Where the targets of a variant stand among all targets of its module.
fn positions(module: OperationRef<'_, '_>) -> Vec<usize> {
    let Some(positions) = module
        .attribute(POSITIONS)
        .ok()
        .and_then(|attribute| DenseI64ArrayAttribute::try_from(attribute).ok())
    else {
        return Vec::new();
    };
    (0..positions.len())
        .filter_map(|index| positions.element(index).ok())
        .filter_map(|position| usize::try_from(position).ok())
        .collect()
}

fn place_binary<'c>(
    context: &'c Context,
    module: OperationRef<'c, '_>,
    objects: &[Attribute<'c>],
) -> Result<(), DiagnosticEmitted> {
    let mut attributes = vec![
        (
            Identifier::new(context, symbol_attribute_name()),
            StringAttribute::new(context, &symbol_name(module)).into(),
        ),
        (
            Identifier::new(context, "objects"),
            ArrayAttribute::new(context, objects).into(),
        ),
    ];
    // The operation's printer takes the attribute for granted, as its C++ builder does.
    let handler = module
        .attribute("offloadingHandler")
        .ok()
        .or_else(|| Attribute::parse(context, "#gpu.select_object"));
    attributes.extend(handler.map(|handler| (Identifier::new(context, "offloadingHandler"), handler)));
    match OperationBuilder::new("gpu.binary", module.location())
        .add_attributes(&attributes)
        .build()
    {
        Ok(binary) => {
            if let Some(block) = module.block() {
                block.insert_operation_before(module, binary);
            }
            Ok(())
        }
        Err(error) => {
            let text = format!("internal error: the gpu.binary cannot be built: {error}");
            emit(module.location(), Severity::Error, &text);
            Err(DiagnosticEmitted)
        }
    }
}

impl NamedPass for Serialize {
    const ARGUMENT: &'static str = "gpulower-serialize";
    const DESCRIPTION: &'static str =
        "Serialize gpu.modules to gpu.binaries; takes the options of gpu-module-to-binary";
    type Options = Serialization;

    fn options() -> &'static [PassOption] {
        static OPTIONS: OnceLock<Vec<PassOption>> = OnceLock::new();
        OPTIONS.get_or_init(|| {
            let own = [
                with_default(
                    "format",
                    "offloading|llvm, assembly|isa, binary|bin, or fatbinary|fatbin",
                    "fatbin",
                ),
                option(
                    "toolkit",
                    "Root of the CUDA or ROCm toolkit to use, for either vendor (default: searched for)",
                ),
                option("cuda", "Root of the CUDA toolkit to use"),
                option("rocm", "Root of the ROCm toolkit to use"),
                option("l", "Bitcode libraries to link, comma-separated paths"),
                option(
                    "opts",
                    "Options for the PTX compiler (NVIDIA); -g, --amdgpu-num-vgpr=N, --amdgpu-waves-per-eu=N (AMD)",
                ),
                collect_option(),
                option("section", "ELF section in which the binary is embedded"),
                option("threads", "Threads to use at most (default: one for each processor)"),
                with_default(
                    "kernel-table",
                    "false: leave out what is known of the kernels, which MLIR 19 does not read",
                    "true",
                ),
                option("dump-dir", "Directory to write to what each stage makes"),
                option(
                    "override-dir",
                    "Directory of files from such a directory, edited, to go on with",
                ),
            ];
            options_of(Self::ARGUMENT, &own)
        })
    }

    fn parse(values: &OptionValues) -> Result<Serialization, String> {
        Serialization::read(values)
    }

    fn can_schedule_on(_operation_name: &str) -> bool {
        true
    }

    fn run(options: &Serialization, mut operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        options.apply(&mut operation, None, Self::ARGUMENT)
    }
}

impl NamedPass for ModuleToBinary {
    const ARGUMENT: &'static str = "gpu-module-to-binary";
    const DESCRIPTION: &'static str = "What gpulower-serialize does, under the name that upstream's pass has";
    type Options = Serialization;

    fn options() -> &'static [PassOption] {
        Serialize::options()
    }

    fn parse(values: &OptionValues) -> Result<Serialization, String> {
        Serialization::read(values)
    }

    fn can_schedule_on(operation_name: &str) -> bool {
        Serialize::can_schedule_on(operation_name)
    }

    fn run(options: &Serialization, operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        Serialize::run(options, operation)
    }
}
