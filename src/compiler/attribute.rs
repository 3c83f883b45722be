//! Target attributes: from `#nvvm.target` and `#rocdl.target` to targets and options, and back.
//!
//! Options beyond what upstream's attributes have travel in the `flags` dictionary, under the names of
//! [`crate::options::DESCRIPTIONS`].

use std::path::PathBuf;

use melior::{
    Context,
    ir::{
        Attribute,
        attribute::{ArrayAttribute, DictionaryAttribute},
        operation::{OperationLike, OperationRef},
    },
};

use crate::{
    bridge::mlir::{TargetAttribute, TargetDialect, capture_diagnostics, read_blob, shown, string_value},
    error::Cause,
    options::{DebugLevel, Library, OptimizationLevel, OptionDescription, OptionError, Options, Speed},
    target::{AmdTarget, NvidiaKind, NvidiaTarget, Target},
};

use super::InputError;

/// Flag of an `#nvvm.target` whose chip is a virtual architecture: LLVM and MLIR have no name for compute_90.
const VIRTUAL: &str = "virtual";

/// Upstream's flag of an `#nvvm.target` for what the PTX compiler says: it is kept with the object.
pub(crate) const COLLECT: &str = "collect-compiler-diagnostics";

/// Whether a target attribute has the flag [`COLLECT`].
pub(crate) fn collects_diagnostics(attribute: Attribute<'_>) -> bool {
    TargetAttribute::read(attribute)
        .and_then(|parameters| DictionaryAttribute::try_from(parameters.flags?).ok())
        .is_some_and(|flags| flags.element_by_name(COLLECT).is_some())
}

/// Attribute of a `gpu.module` that was lowered with debug info: its level, for the stages that follow.
pub const DEBUG: &str = "gpulower.debug";

/// The options with the debug level that a module was lowered with, unless they ask for one themselves.
pub fn with_debug_of<'c>(module: OperationRef<'c, '_>, options: &Options) -> Result<Options, OptionError> {
    let mut options = options.clone();
    if options.debug == DebugLevel::None
        && let Some(level) = module.attribute(DEBUG).ok().and_then(string_value)
    {
        options.set("debug", &level)?;
    }
    Ok(options)
}

/// What a target attribute asks for, under the compiler's own options, which win.
pub(crate) fn read(attribute: Attribute<'_>, base: &Options) -> Result<(Target, Options), Cause> {
    let Some(parameters) = TargetAttribute::read(attribute) else {
        return Err(InputError::UnknownTargetAttribute {
            attribute: shown(&attribute),
        }
        .into());
    };
    let mut options = Options::default();
    options.set("O", &parameters.optimization.to_string())?;
    let flags = parameters
        .flags
        .and_then(|flags| DictionaryAttribute::try_from(flags).ok());
    let target = match parameters.dialect {
        TargetDialect::Nvvm => {
            let chip = NvidiaTarget::from_llvm(&parameters.chip, &parameters.features)?;
            let is_virtual = flags
                .as_ref()
                .is_some_and(|flags| flags.element_by_name(VIRTUAL).is_some());
            Target::Nvidia(if is_virtual {
                chip.with_kind(NvidiaKind::Virtual)
            } else {
                chip
            })
        }
        TargetDialect::Rocdl => {
            let chip = AmdTarget::from_llvm(&parameters.chip, &parameters.features)?;
            if let Some(feature) = chip.other.first() {
                return Err(OptionError::NotHonoured {
                    name: "features",
                    target: chip.target.to_string(),
                    reason: format!("the feature '{feature}' is none of a target ID (xnack, sramecc) or the wave size"),
                }
                .into());
            }
            options.wave_size = chip.wave_size;
            // Upstream's default of 600 for every chip is more than older ROCm loads: it counts only when it is
            // another version, and generic targets have 6 anyway.
            if let Some(abi) = parameters.abi.as_deref()
                && abi != "600"
            {
                options.set("code-object-version", abi)?;
            }
            Target::Amd(chip.target)
        }
    };
    if parameters.triple != target.triple() && !is_newer_triple(&parameters.triple, &target) {
        return Err(OptionError::NotHonoured {
            name: "triple",
            target: target.to_string(),
            reason: format!(
                "it would be '{}'; gpulower compiles for {}",
                parameters.triple,
                target.triple()
            ),
        }
        .into());
    }
    if let Some(flags) = flags {
        for (name, value) in (0..flags.len()).filter_map(|index| flags.element(index).ok()) {
            let name = name.as_string_ref();
            set_flag(&mut options, &target, name.as_str().unwrap_or_default(), value)?;
        }
    }
    // What the caller asks for wins over the attribute; libraries and words for the PTX compiler add up.
    options.carry_over(base);
    if options.speed == Speed::Fast && base.optimization.is_none() {
        // Every attribute has a level: upstream's default and what the speed stands for are not asked for.
        let is_open = matches!(
            options.optimization,
            Some(OptimizationLevel::O1 | OptimizationLevel::O2)
        );
        options.optimization = options.optimization.filter(|_| base.speed != Speed::Fast && !is_open);
    }
    options.device_link.clone_from(&base.device_link);
    options.libraries.clone_from(&base.libraries);
    if let Some(link) = parameters.link {
        options.libraries.extend(libraries(link)?);
    }
    Ok((target, options))
}

/// AMD's triple as LLVM 23 writes it: `amdgpu9.42-amd-amdhsa` for gfx942, or `amdgpu-amd-amdhsa` for every chip.
fn is_newer_triple(triple: &str, target: &Target) -> bool {
    let version = triple
        .strip_prefix("amdgpu")
        .and_then(|rest| rest.strip_suffix("-amd-amdhsa"));
    let Some(version) = version.filter(|_| matches!(target, Target::Amd(_))) else {
        return false;
    };
    version.is_empty() || target.chip().strip_prefix("gfx") == Some(&version.replacen('.', "", 1))
}

/// One entry of the `flags` dictionary, in upstream's spelling or ours.
fn set_flag(options: &mut Options, target: &Target, name: &str, value: Attribute<'_>) -> Result<(), Cause> {
    let text = match string_value(value) {
        Some(text) => text,
        None => {
            let text = shown(&value);
            if text == "unit" { String::new() } else { text }
        }
    };
    let text = text.split(" : ").next().unwrap_or_default();
    let amd = matches!(target, Target::Amd(_));
    // A module does not say how far it is trusted.
    if let Some(option) = OptionDescription::named(name).filter(|option| option.rules.is_the_callers) {
        return Err(OptionError::NotHonoured {
            name: option.name(),
            target: target.to_string(),
            reason: "it is for the caller to say, not for a module's target attribute; take it out of `flags`"
                .to_owned(),
        }
        .into());
    }
    match name {
        VIRTUAL | COLLECT if !amd => {}
        "ptxas-cmd-options" => options.set("ptxas-options", text)?,
        "wave64" if amd => options.wave_size = Some(64),
        "no_wave64" if amd => options.wave_size = Some(32),
        "unsafe_sqrt" if amd => options.prec_sqrt = Some(false),
        // Upstream has two more flags for parts of `fast`; LLVM can be told all or nothing per module.
        "unsafe_math" | "finite_only" if amd => options.fast = true,
        _ => options.set(name, text)?,
    }
    Ok(())
}

/// Libraries of a `link` array: paths, or bytes in memory.
fn libraries(link: Attribute<'_>) -> Result<Vec<Library>, Cause> {
    let array = ArrayAttribute::try_from(link).map_err(|_| InputError::UnknownTargetAttribute {
        attribute: shown(&link),
    })?;
    let mut libraries = Vec::new();
    for index in 0..array.len() {
        let Ok(entry) = array.element(index) else { continue };
        if let Some(path) = string_value(entry) {
            libraries.push(Library::File(PathBuf::from(path)));
        } else if let Some(bytes) = read_blob(entry) {
            libraries.push(Library::Memory {
                name: format!("library {index} of the target's link attribute"),
                bytes: bytes.into(),
            });
        } else {
            return Err(InputError::UnknownTargetAttribute {
                attribute: shown(&link),
            }
            .into());
        }
    }
    Ok(libraries)
}

/// The target attribute for a target and options, as MLIR text.
///
/// Everything that differs from the defaults is written, so that `read` gives the same back. `collect`: with the flag
/// `collect-compiler-diagnostics`, for NVIDIA's.
pub fn text(target: &Target, options: &Options, collect: bool) -> Result<String, OptionError> {
    let resolved = options.resolve(target, None)?;
    let level = resolved.optimization.number();
    // With a level that is asked for, this is all that the speed stands for.
    let spelled = (options.speed == Speed::Fast && options.optimization.is_some()).then(|| Options {
        speed: Speed::default(),
        interleave: Some(resolved.interleave),
        ..options.clone()
    });
    let options = spelled.as_ref().unwrap_or(options);
    let mut flags: Vec<String> = options
        .to_pairs()
        .into_iter()
        .filter(|(name, value)| match *name {
            "O" | "ptx" | "wave-size" => false,
            // `abi` has it, but version 6 there cannot be told from upstream's default.
            "code-object-version" => value == "6",
            name => OptionDescription::named(name).is_none_or(|option| !option.rules.is_the_callers),
        })
        .map(|(name, value)| match (name, value.as_str()) {
            ("fast" | "ftz", "true") => name.to_owned(),
            _ => format!("{} = {}", quoted(name), quoted(&value)),
        })
        .collect();
    if target.as_nvidia().is_some_and(NvidiaTarget::is_virtual) {
        flags.push(VIRTUAL.to_owned());
    }
    if collect && target.as_nvidia().is_some() {
        flags.push(quoted(COLLECT));
    }
    let mut parameters = vec![format!("O = {level}")];
    parameters.push(format!("chip = {}", quoted(target.chip())));
    match target {
        Target::Nvidia(chip) => {
            let ptx = options.ptx.or(chip.explicit_ptx());
            if let Some(ptx) = ptx {
                parameters.push(format!("features = {}", quoted(&ptx.llvm_feature())));
            }
        }
        Target::Amd(chip) => {
            let version = chip.resolve_code_object_version(options.code_object_version)?;
            let features = chip.llvm_features(options.wave_size)?;
            parameters.push(format!("features = {}", quoted(&features)));
            parameters.push(format!("abi = {}", quoted(&version.module_flag().to_string())));
        }
    }
    if !flags.is_empty() {
        parameters.push(format!("flags = {{{}}}", flags.join(", ")));
    }
    let links: Vec<String> = options
        .libraries
        .iter()
        .filter_map(|library| match library {
            Library::File(path) => Some(quoted(&path.display().to_string())),
            Library::Memory { .. } => None,
        })
        .collect();
    if !links.is_empty() {
        parameters.push(format!("link = [{}]", links.join(", ")));
    }
    let dialect = match target {
        Target::Nvidia(_) => "nvvm",
        Target::Amd(_) => "rocdl",
    };
    Ok(format!("#{dialect}.target<{}>", parameters.join(", ")))
}

/// The target attribute for a target and options.
pub(crate) fn make<'c>(
    context: &'c Context,
    target: &Target,
    options: &Options,
    collect: bool,
) -> Result<Attribute<'c>, Cause> {
    let text = text(target, options, collect)?;
    let (attribute, diagnostics) = capture_diagnostics(context, || Attribute::parse(context, &text));
    attribute.ok_or_else(|| {
        let reason: Vec<String> = diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
        Cause::Internal(format!(
            "MLIR does not read the target attribute {text}: {}",
            reason.join("; ")
        ))
    })
}

/// A string in MLIR's syntax.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            0x20..=0x7e => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:02X}")),
        }
    }
    quoted.push('"');
    quoted
}
