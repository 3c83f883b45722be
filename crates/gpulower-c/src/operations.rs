//! The calls that do the work. Each comes to an [`Outcome`], whatever happens.

use std::path::Path;

use gpulower::{
    CancellationToken, Compiler, Emit, ErrorKind, Failure, Library, Options, Search, Stage, Target, Toolkit,
    compiler::InputKind,
    inspect::{device, inspect_with},
    offload::{ExportForm, ExportOptions, HostTriple, Names, export_source},
    options::{Compression, DebugLevel, DeviceLink, FpContract},
    pack::{Pack, PackFormat},
    serialize::{
        device_link::{self, LinkInput, LinkOptions, LinkedImage, LtoOptions},
        nvidia_options::PtxOptions,
    },
    target::Device,
};
use serde_json::{Map, Value, json};

use crate::{
    outcome::{Outcome, Product, compiled, json as to_json, name_of, problems},
    problem::Problem,
    request::Request,
};

/// What an operation came to, or what keeps it from starting.
type Attempt = Result<Outcome, Vec<Problem>>;

impl From<Problem> for Vec<Problem> {
    fn from(problem: Problem) -> Self {
        vec![problem]
    }
}

fn finish(operation: &str, attempt: Attempt) -> Outcome {
    attempt.unwrap_or_else(|errors| Outcome::failed(operation, errors))
}

fn failed(failure: &Failure) -> Vec<Problem> {
    problems(failure)
}

/// The compiler for one request.
fn prepared(compiler: &Compiler, request: &Request, token: Option<&CancellationToken>) -> Result<Compiler, Problem> {
    let compiler = compiler.with_options(request.options(compiler.options())?);
    Ok(match token {
        Some(token) => compiler.with_cancellation(token),
        None => compiler,
    })
}

pub(crate) fn compile(compiler: &Compiler, request: &Request, token: Option<&CancellationToken>) -> Outcome {
    let attempt = || -> Attempt {
        let compiler = prepared(compiler, request, token)?;
        let (sources, emit) = (request.sources()?, request.emit.unwrap_or(Emit::Binary));
        Ok(compiled(match request.keep_going {
            true => compiler.compile_many(&sources, &request.targets, emit),
            false => vec![compiler.compile_sources(&sources, &request.targets, emit)],
        }))
    };
    finish("compile", attempt())
}

pub(crate) fn plan(compiler: &Compiler, request: &Request) -> Outcome {
    let attempt = || -> Attempt {
        let compiler = prepared(compiler, request, None)?;
        let emit = request.emit.unwrap_or(Emit::Binary);
        let plan = compiler
            .plan_sources(&request.sources()?, &request.targets, emit)
            .map_err(|failure| failed(&failure))?;
        let phases: Vec<Value> = plan
            .phases
            .iter()
            .map(|phase| {
                json!({
                    "stage": phase.stage, "inputs": phase.inputs, "reads": phase.reads, "result": phase.result,
                    "module": phase.module, "targets": phase.targets, "tool": phase.tool,
                })
            })
            .collect();
        let artifacts: Vec<Value> = plan
            .artifacts
            .iter()
            .zip(&plan.made_by)
            .map(|(output, phase)| {
                json!({
                    "module": output.module, "format": output.format, "targets": output.targets, "phase": phase,
                })
            })
            .collect();
        let fields = [("phases", Value::Array(phases)), ("artifacts", Value::Array(artifacts))];
        Ok(Outcome::new(
            "plan",
            fields_of(fields),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        ))
    };
    finish("plan", attempt())
}

fn fields_of<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(crate) fn link(compiler: &Compiler, request: &Request, token: Option<&CancellationToken>) -> Outcome {
    let attempt = || -> Attempt {
        let sources = request.sources()?;
        let [target] = request.targets[..] else {
            return Err(Problem::argument("a link has one target: set \"target\" to one").into());
        };
        if sources
            .iter()
            .any(|(name, bytes)| InputKind::is_to_be_compiled(name, bytes))
        {
            return compile_and_link(compiler, request, &target, token);
        }
        let options = link_options(&request.options(compiler.options())?)?;
        let wrong = |error: device_link::DeviceLinkError| failed(&gpulower::Error::from(error).into());
        let inputs: Vec<LinkInput<'_>> = sources
            .iter()
            .map(|(name, bytes)| LinkInput::detect(name, bytes))
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        let linked = device_link::link(&inputs, &target, &options, compiler.ptx_to_cubin()).map_err(wrong)?;
        Ok(linked_outcome(linked, &target))
    };
    finish("link", attempt())
}

fn linked_outcome(linked: LinkedImage, target: &Target) -> Outcome {
    let format = match target {
        Target::Nvidia(_) => "cubin",
        Target::Amd(_) => "hsaco",
    };
    let fields = fields_of([
        ("target", to_json(target)),
        ("format", format.into()),
        ("bytes", linked.bytes.len().into()),
        ("tool", linked.tool.into()),
        ("inputs", to_json(&linked.inputs)),
        ("kernels", to_json(&linked.kernels)),
        ("log", linked.log.into()),
    ]);
    let warn = |message: &String| Problem {
        code: None,
        ..Problem::new(Stage::DeviceLink, ErrorKind::Link, message)
    };
    let warnings = linked.warnings.iter().map(warn).collect();
    let product = Product::new(linked.bytes, "", format, &target.to_string(), None);
    Outcome::new("link", fields, vec![product], Vec::new(), warnings)
}

/// Joins MLIR and LLVM IR before it is optimised, and links the other inputs with what comes of it.
fn compile_and_link(
    compiler: &Compiler,
    request: &Request,
    target: &Target,
    token: Option<&CancellationToken>,
) -> Attempt {
    let mut options = request.options(compiler.options())?;
    let (ir, objects): (Vec<_>, Vec<_>) = request
        .sources()?
        .into_iter()
        .partition(|(name, bytes)| InputKind::is_to_be_compiled(name, bytes));
    let objects = objects.into_iter().map(|(name, bytes)| Library::Memory {
        name: name.to_owned(),
        bytes: bytes.into(),
    });
    let mut device_link = options.device_link.take().unwrap_or_else(DeviceLink::default);
    device_link.objects.extend(objects);
    options.device_link = Some(device_link);
    let compiler = compiler.with_options(options);
    let compiler = match token {
        Some(token) => compiler.with_cancellation(token),
        None => compiler,
    };
    Ok(compiled(vec![compiler.compile_sources(&ir, &[*target], Emit::Binary)]))
}

/// What the options mean for code that is linked. What has no meaning there is refused.
fn link_options(options: &Options) -> Result<LinkOptions, Problem> {
    const MEANT: [&str; 8] = [
        "O",
        "max-registers",
        "debug",
        "ptxas-options",
        "ftz",
        "prec-div",
        "prec-sqrt",
        "fp-contract",
    ];
    let refuse = |message: String| Err(Problem::new(Stage::DeviceLink, ErrorKind::Option, message));
    if let Some((name, _)) = options.to_pairs().into_iter().find(|(name, _)| !MEANT.contains(name)) {
        return refuse(format!(
            "option '{name}' has no meaning in a link of compiled code: leave it out"
        ));
    }
    let default = PtxOptions::default();
    Ok(LinkOptions {
        ptx: PtxOptions {
            opt_level: options.optimization.map_or(default.opt_level, |level| level.number()),
            max_registers: options.max_registers,
            line_info: options.debug == DebugLevel::LineTables,
            device_debug: options.debug == DebugLevel::Full,
            extra: options.ptxas_options.clone(),
            ..default
        },
        lto: LtoOptions {
            flush_denormals: options.ftz,
            precise_division: options.prec_div,
            precise_square_root: options.prec_sqrt,
            contract: options.fp_contract.map(|contract| contract != FpContract::Off),
        },
    })
}

pub(crate) fn pack(compiler: &Compiler, request: &Request) -> Outcome {
    let attempt = || -> Attempt {
        request.sources()?;
        let format = match request.emit {
            Some(Emit::Fatbin) => PackFormat::Fatbin,
            Some(Emit::Bundle) => PackFormat::Bundle,
            Some(Emit::Offload) => PackFormat::Offload,
            _ => return Err(Problem::argument("set \"emit\" to fatbin, bundle or offload").into()),
        };
        let options = request.options(compiler.options())?;
        let mut pack = Pack::default();
        for input in &request.inputs {
            pack.add(&input.name, &input.bytes, input.target.as_deref())
                .map_err(|error| failed(&gpulower::Error::from(error).into()))?;
        }
        let bytes = pack
            .write(format, options.compression.unwrap_or(Compression::None))
            .map_err(|error| failed(&gpulower::Error::from(error).into()))?;
        let members = pack.members();
        let targets: Vec<&str> = members.iter().map(|member| member.target.as_str()).collect();
        let images = members.iter().map(|member| {
            json!({"input": member.input, "kind": member.kind.name(), "target": member.target, "bytes": member.bytes.len()})
        });
        let name = request.emit.map_or("", Emit::name);
        let fields = [
            ("format", name.into()),
            ("bytes", bytes.len().into()),
            ("images", images.collect()),
        ];
        let product = Product::new(bytes, "", name, &targets.join(", "), None);
        Ok(Outcome::new(
            "pack",
            fields_of(fields),
            vec![product],
            Vec::new(),
            Vec::new(),
        ))
    };
    finish("pack", attempt())
}

pub(crate) fn inspect(name: &str, bytes: &[u8], devices: &str) -> Outcome {
    let attempt = || -> Attempt {
        let names = devices.split(',').map(str::trim).filter(|name| !name.is_empty());
        let devices: Vec<Device> = names
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|error: gpulower::target::TargetError| failed(&gpulower::Error::from(error).into()))?;
        let mut products = Vec::new();
        let mut see = |image: &gpulower::inspect::Image, bytes: &[u8]| {
            let target = image.target.as_deref().unwrap_or_default();
            products.push(Product::new(bytes.to_vec(), "", &name_of(&image.kind), target, Some(0)));
        };
        let problem = |message: String| Problem::new(Stage::Input, ErrorKind::Image, message);
        let inspection = inspect_with(name, bytes, &mut see).map_err(|error| problem(format!("{name}: {error}")))?;
        let errors: Vec<Problem> = inspection
            .problems()
            .map(|(place, what)| problem(format!("{name}: {place}: {what}")))
            .collect();
        let answers: Vec<_> = devices
            .iter()
            .map(|device| device::answer(&inspection, *device, None))
            .collect();
        let fields = [("inspection", to_json(&inspection)), ("devices", to_json(&answers))];
        Ok(Outcome::new("inspect", fields_of(fields), products, errors, Vec::new()))
    };
    finish("inspect", attempt())
}

pub(crate) fn export(compiler: &Compiler, request: &Request, token: Option<&CancellationToken>) -> Outcome {
    let attempt = || -> Attempt {
        let compiler = prepared(compiler, request, token)?;
        let sources = request.sources()?;
        let [(name, bytes)] = sources[..] else {
            return Err(Problem::argument("an export has one input, a whole program").into());
        };
        let settings = &request.export;
        let triple = match &settings.host_triple {
            Some(triple) => triple.clone(),
            None => default_triple()?,
        };
        let unit = Path::new(name)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let unit = settings.unit.clone().or(unit).unwrap_or_default();
        let toolkit = |root: &std::path::PathBuf| Toolkit::discover(&Search::nowhere().with_cuda(root));
        let name_of_form = settings.form.as_deref().unwrap_or("obj");
        let form = ExportForm::named(name_of_form, settings.finish_with.clone())
            .map_err(|error| Problem::new(Stage::Export, ErrorKind::Option, error.to_string()))?;
        let file = format!("app.{}", form.extension());
        let options = ExportOptions {
            names: if settings.keep_names {
                Names::Keep
            } else {
                Names::Unique
            },
            further_toolkits: settings.further_toolkits.iter().map(toolkit).collect(),
            ..ExportOptions::new(form, unit, triple)
        };
        let exported =
            export_source(&compiler, name, bytes, &request.targets, &options).map_err(|failure| failed(&failure))?;
        let images: Vec<Value> = exported
            .images
            .iter()
            .map(|image| {
                json!({
                    "module": image.module, "target": image.target, "form": image.form.to_string(),
                    "bytes": image.bytes, "tool": image.tool,
                })
            })
            .collect();
        let named = |(source, name): (&String, &String)| json!({"source_name": source, "name": name});
        let kernels = exported
            .program
            .kernels
            .iter()
            .map(|kernel| named((&kernel.source_name, &kernel.name)));
        let variables = exported
            .program
            .variables
            .iter()
            .map(|one| named((&one.source_name, &one.name)));
        let fields = fields_of([
            ("form", name_of_form.into()),
            ("bytes", exported.bytes.len().into()),
            ("images", Value::Array(images)),
            ("kernels", kernels.collect()),
            ("variables", variables.collect()),
            ("notes", to_json(&exported.notes)),
            ("commands", exported.finish.commands(&file, "app").into()),
        ]);
        let warnings = exported
            .warnings
            .iter()
            .map(|warning| Problem::warning(warning, Some(0)))
            .collect();
        let targets: Vec<String> = request.targets.iter().map(ToString::to_string).collect();
        let product = Product::new(exported.bytes, "", name_of_form, &targets.join(", "), Some(0));
        Ok(Outcome::new("export", fields, vec![product], Vec::new(), warnings))
    };
    finish("export", attempt())
}

/// Runs a pass. The text of its errors and warnings is that of the diagnostics that a pass manager would show at their places.
pub(crate) fn run_pass(compiler: &Compiler, request: &Request, token: Option<&CancellationToken>) -> Outcome {
    let attempt = || -> Attempt {
        let sources = request.sources()?;
        let [(name, bytes)] = sources[..] else {
            return Err(Problem::argument("a pass has one input, a module").into());
        };
        let Some(pass) = &request.pass else {
            return Err(Problem::argument("set \"pass\" to the name of a pass").into());
        };
        let compiler = match token {
            Some(token) => compiler.with_cancellation(token),
            None => compiler.clone(),
        };
        let options: Vec<(&str, &str)> = request
            .pass_options
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let transformed =
            gpulower::passes::run(&compiler, pass, &options, name, bytes).map_err(|failure| -> Vec<Problem> {
                let diagnostic = |error: &gpulower::Error| Problem {
                    text: error.without_place().to_string().into(),
                    ..Problem::from(error)
                };
                failure.errors.iter().map(diagnostic).collect()
            })?;
        let diagnostic = |warning: &gpulower::Warning| Problem {
            text: (&warning.message).into(),
            ..Problem::warning(warning, Some(0))
        };
        let warnings = transformed.warnings.iter().map(diagnostic).collect();
        let fields = fields_of([("pass", pass.as_str().into())]);
        let product = Product::new(transformed.text.into_bytes(), "", "mlir", "", Some(0));
        Ok(Outcome::new("run_pass", fields, vec![product], Vec::new(), warnings))
    };
    finish("run_pass", attempt())
}

fn default_triple() -> Result<HostTriple, Problem> {
    "x86_64-unknown-linux-gnu"
        .parse()
        .map_err(|error: gpulower::offload::OffloadError| {
            Problem::new(Stage::Export, ErrorKind::Internal, error.to_string())
        })
}

pub(crate) fn toolkit(compiler: &Compiler) -> Outcome {
    let parts: Vec<_> = compiler.toolkit().parts().map(to_json).collect();
    Outcome::new(
        "toolkit",
        fields_of([("parts", parts.into())]),
        Vec::new(),
        Vec::new(),
        Vec::new(),
    )
}
