//! The device modules of a program: which launch means which kernel, and names that stay unique when several modules and
//! several files become one program.
//!
//! The link of the device code joins everything that any clang or nvlink finds in the objects, and refuses (nvlink) or
//! confuses (HIP) two kernels of one name. So a kernel or visible variable `saxpy` becomes `saxpy__0123456789ab`: the
//! digits are a hash of the program (its unit's name and its whole text) and of the device module. Two modules of one
//! content have the same names, and are embedded once; a module with variables that are written to is never taken for
//! another.

use std::collections::BTreeMap;

use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Module, RegionLike,
        attribute::{IntegerAttribute, StringAttribute, TypeAttribute},
        operation::{Operation, OperationLike, OperationRef},
        r#type::MemRefType,
    },
};

use super::{
    error::{OffloadError, known},
    host::{HostOptions, Names, Support},
    launch_sizes,
    program::{Kernel, KernelModule, Program, Runtime, Variable},
    stub::{STUB, called, quoted},
};
use crate::{
    bridge::{
        edit::{Edits, copy_of_operation, edit, into_operations, module_around},
        mlir::{
            global_size, operations_below, parse_module, place_of, rename_symbol, set_attribute, shown,
            symbol_attribute_name, symbol_path,
        },
    },
    compiler::symbol_name,
    device::lower::name_of,
};

/// Hexadecimal digits of the hash in a name: 48 bits, so that a program of a thousand modules has two of one name with a
/// chance of 1 in 500 million.
const DIGITS: usize = 12;

/// Takes the device modules out of a program: renames kernels and variables, lets launches name them, leaves stand-ins
/// in the host's module, and gives a module with what has to be compiled.
pub(super) fn take<'c>(
    context: &'c Context,
    host: &mut Module<'c>,
    options: &HostOptions,
) -> Result<(Program, Module<'c>), OffloadError> {
    edit(host, |host, edits| take_from(context, host, edits, options))
}

fn take_from<'c, 'b>(
    context: &'c Context,
    host: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    options: &HostOptions,
) -> Result<(Program, Module<'c>), OffloadError> {
    let launches = launches(host)?;
    if launches.is_empty() && options.support == Support::Included {
        return Err(OffloadError::new(
            "the module has no host code that launches a kernel: expected gpu.launch or gpu.launch_func in a func.func \
             (kernels alone are compiled with `gpulower compile`)",
        ));
    }
    let containers = containers(host);
    let modules: Vec<String> = containers.iter().map(|(name, _)| format!("@{name}")).collect();
    for launch in &launches {
        let Some((_, container)) = containers.iter().find(|(name, _)| *name == launch.module) else {
            return Err(launch.refused("there is no gpu.module or gpu.binary of that name", &modules));
        };
        let kernels = kernels_of(*container);
        if name_of(container) == "gpu.module" && !kernels.iter().any(|(name, _)| *name == launch.kernel) {
            let kernels: Vec<String> = kernels.into_iter().map(|(name, _)| name).collect();
            return Err(launch.refused("its gpu.module has no kernel of that name", &kernels));
        }
        let kernel = kernels.iter().find(|(name, _)| *name == launch.kernel);
        if let Some(reason) =
            launch_sizes::refusal(launch.operation, kernel.map(|(_, kernel)| *kernel), options.runtime)
        {
            let problem = format!("@{}::@{} cannot be launched so: {reason}", launch.module, launch.kernel);
            return Err(OffloadError::new(problem).at(place_of(launch.operation.location())));
        }
    }

    let unit = unit_digest(host, options);
    let mut program = Program {
        runtime: options.runtime,
        triple: options.triple.clone(),
        modules: Vec::new(),
        kernels: Vec::new(),
        variables: Vec::new(),
        external_functions: Vec::new(),
        has_main: false,
    };
    let device = Module::new(host.location());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut digests: Vec<blake3::Hash> = Vec::new();
    for (symbol, container) in &containers {
        let compiled = name_of(container) == "gpu.binary";
        let digest = digest(context, *container, &unit)?;
        if let Some(first) = digests.iter().position(|other| *other == digest) {
            if let Some(module) = program.modules.get_mut(first) {
                module.aliases.push(symbol.clone());
            }
            places.insert(symbol.clone(), first);
            continue;
        }
        let place = program.modules.len();
        digests.push(digest);
        places.insert(symbol.clone(), place);
        if !compiled {
            let rename = |definition: OperationRef<'_, '_>, name: &str| {
                let new = device_name(options, name, &digest);
                if new == name || rename_symbol(definition, *container, &new) {
                    Ok(new)
                } else {
                    Err(OffloadError::internal(format!("{name} cannot be renamed in {symbol}")))
                }
            };
            let variables = visible_variables(*container);
            for (name, definition) in kernels_of(*container) {
                rename(definition, &name)?;
            }
            for (name, definition) in variables {
                let size = global_size(definition).ok_or_else(|| {
                    OffloadError::new(format!(
                        "the size of the global variable {name} of the device module {symbol} is not known; make it private, or \
                         give it a type of fixed size"
                    ))
                    .at(place_of(definition.location()))
                })?;
                let new = rename(definition, &name)?;
                program.variables.push(Variable {
                    module: place,
                    source_name: name,
                    shadow: new.clone(),
                    name: new,
                    size,
                    constant: is_in(definition, &["4", "constant"]),
                });
            }
        }
        program.modules.push(KernelModule {
            symbol: symbol.clone(),
            aliases: Vec::new(),
            compiled,
        });
        device.body().append_operation(copy_of_operation(*container)?);
    }
    for launch in &launches {
        let Some(&place) = places.get(&launch.module) else {
            continue;
        };
        let (Some(module), Some(digest)) = (program.modules.get(place), digests.get(place)) else {
            continue;
        };
        if !program
            .kernels_of(place)
            .any(|kernel| kernel.source_name == launch.kernel)
        {
            let added = kernel(options, place, &launch.kernel, module.compiled, digest);
            program.kernels.push(added);
        }
    }
    program.kernels.sort_by_key(|kernel| kernel.module);
    // Where each module is loaded on its own, kernels are found by their stubs.
    if !options.modules_apart || options.names == Names::Keep {
        refuse_duplicates(&program)?;
    }
    refuse_taken(host, &program)?;

    for launch in &launches {
        let kernel = places.get(&launch.module).and_then(|place| {
            program
                .kernels
                .iter()
                .find(|kernel| kernel.module == *place && kernel.source_name == launch.kernel)
        });
        if let Some(kernel) = kernel {
            let reference = format!("@{}::@{}", quoted(&launch.module), quoted(called(kernel)));
            let attribute = Attribute::parse(context, &reference)
                .ok_or_else(|| OffloadError::internal(format!("{reference} cannot be parsed")))?;
            set_attribute(launch.operation, "kernel", attribute);
        }
    }
    for (symbol, container) in containers {
        edits.replace(container, stand_in(context, &symbol)?);
    }
    Ok((program, device))
}

/// One `gpu.launch_func`.
struct Launch<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    module: String,
    kernel: String,
}

impl Launch<'_, '_> {
    fn refused(&self, problem: &str, there_is: &[String]) -> OffloadError {
        let (module, kernel) = (&self.module, &self.kernel);
        OffloadError::new(format!(
            "@{module}::@{kernel} is launched, and {problem}{}",
            known(there_is)
        ))
        .at(place_of(self.operation.location()))
    }
}

fn launches<'c, 'a>(host: OperationRef<'c, 'a>) -> Result<Vec<Launch<'c, 'a>>, OffloadError> {
    let mut launches = Vec::new();
    for (index, operation) in operations_below(host).into_iter().enumerate() {
        match name_of(&operation).as_str() {
            "builtin.module" if index > 0 => {
                let problem =
                    "a module inside of the host's module cannot be exported; move what it holds into the outer module";
                return Err(OffloadError::new(problem).at(place_of(operation.location())));
            }
            "gpu.launch_func" => {}
            _ => continue,
        }
        let path = operation.attribute("kernel").ok().and_then(symbol_path);
        let Some([module, kernel]) = path.and_then(|path| <[String; 2]>::try_from(path).ok()) else {
            return Err(OffloadError::internal("a launch names no kernel".to_owned()));
        };
        launches.push(Launch {
            operation,
            module,
            kernel,
        });
    }
    Ok(launches)
}

/// The operations directly inside of a module or a `gpu.module`.
pub(super) fn body<'c, 'a>(operation: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut found = Vec::new();
    let mut next = operation
        .region(0)
        .ok()
        .and_then(|region| region.first_block())
        .and_then(|block| block.first_operation());
    while let Some(operation) = next {
        found.push(operation);
        next = operation.next_in_block();
    }
    found
}

/// The device modules, by name, in order.
fn containers<'c, 'a>(host: OperationRef<'c, 'a>) -> Vec<(String, OperationRef<'c, 'a>)> {
    body(host)
        .into_iter()
        .filter(|operation| matches!(name_of(operation).as_str(), "gpu.module" | "gpu.binary"))
        .map(|operation| (symbol_name(operation), operation))
        .collect()
}

/// The kernels that a `gpu.module` defines.
fn kernels_of<'c, 'a>(container: OperationRef<'c, 'a>) -> Vec<(String, OperationRef<'c, 'a>)> {
    if name_of(&container) != "gpu.module" {
        return Vec::new();
    }
    body(container)
        .into_iter()
        .filter(|operation| {
            ["gpu.kernel", "nvvm.kernel", "rocdl.kernel"]
                .iter()
                .any(|mark| operation.has_attribute(mark))
        })
        .map(|operation| (symbol_name(operation), operation))
        .collect()
}

fn globals<'c, 'a>(container: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    body(container)
        .into_iter()
        .filter(|operation| {
            matches!(name_of(operation).as_str(), "memref.global" | "llvm.mlir.global")
                // Memory of a workgroup or a thread is nobody else's.
                && !is_in(*operation, &["3", "5", "workgroup", "private"])
        })
        .collect()
}

/// The variables of a `gpu.module` that are visible outside of it, which `device` keeps visible.
fn visible_variables<'c, 'a>(container: OperationRef<'c, 'a>) -> Vec<(String, OperationRef<'c, 'a>)> {
    globals(container)
        .into_iter()
        .filter(|operation| {
            let text = |name: &str| {
                operation
                    .attribute(name)
                    .map(|value| value.to_string())
                    .unwrap_or_default()
            };
            if name_of(operation) == "memref.global" {
                let visible = !matches!(text("sym_visibility").as_str(), "\"private\"" | "\"nested\"");
                visible && operation.has_attribute("initial_value")
            } else {
                let defined = operation.has_attribute("value")
                    || operation.region(0).is_ok_and(|region| region.first_block().is_some());
                defined && text("linkage").contains("external") && text("sym_visibility") != "\"private\""
            }
        })
        .map(|operation| (symbol_name(operation), operation))
        .collect()
}

/// Whether a global variable is in one of some address spaces, given by number and by name.
fn is_in(global: OperationRef<'_, '_>, spaces: &[&str]) -> bool {
    let memory = global
        .attribute("type")
        .ok()
        .and_then(|kind| TypeAttribute::try_from(kind).ok())
        .and_then(|kind| MemRefType::try_from(kind.value()).ok())
        .and_then(|kind| kind.memory_space());
    let number = |attribute: Attribute<'_>| {
        IntegerAttribute::try_from(attribute).map_or_else(|_| shown(&attribute), |number| number.value().to_string())
    };
    let space = match memory {
        Some(space) => number(space),
        None => global.attribute("addr_space").map(number).unwrap_or_default(),
    };
    spaces
        .iter()
        .any(|wanted| space == *wanted || space == format!("#gpu.address_space<{wanted}>"))
}

fn unit_digest(host: OperationRef<'_, '_>, options: &HostOptions) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(options.unit.as_bytes());
    hasher.update(&[0]);
    hasher.update(shown(&host).as_bytes());
    hasher.finalize()
}

/// A hash of a device module in its program, the same for modules that are the same but for their names.
fn digest(
    context: &Context,
    container: OperationRef<'_, '_>,
    unit: &blake3::Hash,
) -> Result<blake3::Hash, OffloadError> {
    let attribute = symbol_attribute_name();
    // Two modules with a variable each are not one module with one variable; what is compiled has its names for good.
    let is_one_of_its_kind = name_of(&container) == "gpu.binary"
        || globals(container)
            .into_iter()
            .any(|global| !global.has_attribute("constant"));
    let text = if is_one_of_its_kind {
        shown(&container)
    } else {
        let around = module_around(container)?;
        let Some(copy) = around.body().first_operation() else {
            return Ok(*unit);
        };
        set_attribute(copy, attribute, StringAttribute::new(context, "kernels").into());
        shown(&copy)
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(unit.as_bytes());
    hasher.update(text.as_bytes());
    Ok(hasher.finalize())
}

fn device_name(options: &HostOptions, name: &str, digest: &blake3::Hash) -> String {
    match options.names {
        Names::Unique => {
            let digits: String = digest.to_hex().chars().take(DIGITS).collect();
            format!("{name}__{digits}")
        }
        Names::Keep => name.to_owned(),
    }
}

fn kernel(options: &HostOptions, module: usize, name: &str, compiled: bool, digest: &blake3::Hash) -> Kernel {
    let device_name = if compiled {
        name.to_owned()
    } else {
        device_name(options, name, digest)
    };
    let own = match compiled && options.modules_apart {
        // What is compiled has its name for good, and others may have the same.
        true => self::device_name(options, name, digest),
        false => device_name.clone(),
    };
    let stub = format!("{STUB}{own}");
    Kernel {
        module,
        source_name: name.to_owned(),
        handle: match options.runtime {
            Runtime::Cuda | Runtime::OpenMp => stub.clone(),
            Runtime::Hip => own,
        },
        name: device_name,
        stub,
        clusters: false,
    }
}

fn refuse_duplicates(program: &Program) -> Result<(), OffloadError> {
    let kernels = program.kernels.iter().map(|kernel| (&kernel.name, kernel.module));
    let variables = program
        .variables
        .iter()
        .map(|variable| (&variable.name, variable.module));
    let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
    for (name, module) in kernels.chain(variables) {
        if let Some(first) = seen.insert(name, module) {
            let symbol = |index: usize| program.modules.get(index).map_or("", |module| module.symbol.as_str());
            let (first, second) = (symbol(first), symbol(module));
            return Err(OffloadError::new(format!(
                "{name} is defined by the device modules {first} and {second}, which are linked into one program; rename one \
                 of them, do not ask for the names to be kept, or, where they were compiled before, keep them as gpu.modules \
                 or export a program that registers itself"
            ))
            .clash());
        }
    }
    Ok(())
}

/// Refuses host symbols with the names of stubs, handles or shadows.
fn refuse_taken(host: OperationRef<'_, '_>, program: &Program) -> Result<(), OffloadError> {
    let defined: BTreeMap<String, OperationRef<'_, '_>> = body(host)
        .into_iter()
        .filter(|operation| !matches!(name_of(operation).as_str(), "gpu.module" | "gpu.binary"))
        .filter(|operation| operation.has_attribute(symbol_attribute_name()))
        .map(|operation| (symbol_name(operation), operation))
        .collect();
    let kernels = program.kernels.iter().flat_map(|kernel| {
        let purpose = format!("the kernel {}", kernel.source_name);
        [(&kernel.stub, purpose.clone()), (&kernel.handle, purpose)]
    });
    let variables = program.variables.iter().map(|variable| {
        let purpose = format!("the device variable {}", variable.source_name);
        (&variable.shadow, purpose)
    });
    for (symbol, purpose) in kernels.chain(variables) {
        if let Some(operation) = defined.get(symbol) {
            let problem = format!("the host code defines {symbol}, which has to stand for {purpose}; rename it");
            return Err(OffloadError::new(problem).at(place_of(operation.location())).clash());
        }
    }
    Ok(())
}

/// A `gpu.binary` for the place of a device module: the launches in host code refer to it, and MLIR looks no further.
fn stand_in<'c>(context: &'c Context, symbol: &str) -> Result<Operation<'c>, OffloadError> {
    let text = format!("gpu.binary @{} [#gpu.object<#nvvm.target, bin = \"\">]", quoted(symbol));
    let parsed = parse_module(context, "stand-in", text.as_bytes()).ok();
    parsed
        .and_then(|module| into_operations(module).ok()?.into_iter().next())
        .ok_or_else(|| OffloadError::internal(format!("{text} cannot be parsed")))
}
