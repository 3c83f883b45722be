//! Linking device libraries to a fixpoint, and the check that nothing is left unresolved.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use inkwell::module::Linkage;

use super::{DeviceError, DeviceJob, Refusal, UnresolvedSymbol, control};
use crate::{
    bridge::LlvmError,
    bridge::llvm::{DeviceContext, DeviceModule, UndefinedSymbol, is_called_as_in_c},
    error::ErrorKind,
    image::symbols::{DRIVER_FUNCTIONS, LinkInterface},
    options::ResolvedVendor,
    target::{Target, Vendor},
    toolkit::ToolkitError,
};

/// The bytes of a library, with a name for messages.
#[derive(Clone, Debug)]
pub struct LoadedLibrary {
    /// Path or given name.
    pub name: String,
    /// Bitcode or textual LLVM IR.
    pub bytes: Arc<[u8]>,
    /// What [`LoadedLibrary::part`] gave.
    parts: Arc<Mutex<Parts>>,
}

/// Bitcode, by the text of the module that asked for it.
type Parts = BTreeMap<String, Arc<[u8]>>;

impl LoadedLibrary {
    /// Parts that are kept: modules of one program mostly need the same functions.
    const MOST_PARTS: usize = 64;

    /// A library, of which nothing was asked yet.
    pub fn new(name: String, bytes: Arc<[u8]>) -> Self {
        Self {
            name,
            bytes,
            parts: Arc::default(),
        }
    }

    /// What defines these functions in a vendor's library, and what that needs, for modules like `like`. To read which
    /// functions a library has takes ten times as long as to link a few of them.
    fn part(&self, symbols: &BTreeSet<String>, like: &DeviceModule<'_>) -> Result<Self, DeviceError> {
        let mut asking = format!(
            "target triple = \"{}\"\ntarget datalayout = \"{}\"\n",
            like.inkwell().get_triple().as_str().to_string_lossy(),
            like.data_layout()
        );
        for symbol in symbols {
            // Of whichever type: the library's takes its place.
            asking += &format!("declare void @\"{symbol}\"()\n");
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match parts.get(&asking) {
            Some(bytes) => bytes.clone(),
            None => {
                let context = DeviceContext::new();
                let module = context.parse(asking.as_bytes(), &self.name)?;
                link_one(&module, self)?;
                let bytes: Arc<[u8]> = module.to_exact_bitcode()?.into();
                if parts.len() >= Self::MOST_PARTS {
                    parts.clear();
                }
                parts.insert(asking, bytes.clone());
                bytes
            }
        };
        Ok(Self::new(self.name.clone(), bytes))
    }
}

/// A device library that a vendor provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VendorLibrary {
    /// NVIDIA's math library: `__nv_*`.
    Libdevice,
    /// AMD's math library: `__ocml_*`.
    Ocml,
    /// AMD's kernel library: `__ockl_*`.
    Ockl,
}

impl VendorLibrary {
    /// The library that defines a symbol, judged by the symbol's prefix.
    fn of(symbol: &str) -> Option<Self> {
        [
            ("__nv_", Self::Libdevice),
            ("__ocml_", Self::Ocml),
            ("__ockl_", Self::Ockl),
        ]
        .into_iter()
        .find_map(|(prefix, library)| symbol.starts_with(prefix).then_some(library))
    }

    const fn vendor(self) -> Vendor {
        match self {
            Self::Libdevice => Vendor::Nvidia,
            Self::Ocml | Self::Ockl => Vendor::Amd,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Libdevice => "NVIDIA's libdevice",
            Self::Ocml => "AMD's ocml",
            Self::Ockl => "AMD's ockl",
        }
    }
}

/// The heap on AMD's chips is ockl's, which HIP's headers put behind `malloc` and `free` in the same way.
const HEAP: &str = "
declare ptr addrspace(1) @__ockl_dm_alloc(i64)
declare void @__ockl_dm_dealloc(i64)
define ptr @malloc(i64 %size) {
  %memory = call ptr addrspace(1) @__ockl_dm_alloc(i64 %size)
  %generic = addrspacecast ptr addrspace(1) %memory to ptr
  ret ptr %generic
}
define void @free(ptr %memory) {
  %address = ptrtoint ptr %memory to i64
  call void @__ockl_dm_dealloc(i64 %address)
  ret void
}
";

/// Whether a module for AMD's chips calls the heap, by the types that it has in C.
fn needs_heap(module: &DeviceModule<'_>, undefined: &[UndefinedSymbol]) -> bool {
    let mut wanted = [("malloc", "ptr (i64)"), ("free", "void (ptr)")]
        .into_iter()
        .filter(|(name, _)| undefined.iter().any(|symbol| symbol.name == *name))
        .peekable();
    wanted.peek().is_some()
        && wanted.all(|(name, kind)| {
            let function = module.inkwell().get_function(name);
            function.is_some_and(|function| function.get_type().print_to_string().to_string() == kind)
        })
}

/// Functions of C's mathematical library that both vendors' libraries have under names of their own, by what they take and give;
/// `T` is `double`, and `float` for the names with an `f` behind them.
const MATH_OF_C: &[(&str, &str)] = &[
    (
        "T (T)",
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 fabs floor j0 j1 lgamma log log10 \
         log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc y0 y1",
    ),
    (
        "T (T, T)",
        "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder",
    ),
    ("T (T, T, T)", "fma"),
    ("T (T, i32)", "ldexp scalbn"),
    ("i32 (T)", "ilogb"),
];

/// The vendor's name for a function of C's mathematical library that is declared as C declares it.
fn math_of_c(name: &str, kind: &str, vendor: Vendor) -> Option<String> {
    let of_c = |base: &str, number: &str| {
        MATH_OF_C
            .iter()
            .any(|(kinds, names)| names.split(' ').any(|name| name == base) && kinds.replace('T', number) == kind)
    };
    let (base, is_double) = if of_c(name, "double") {
        (name, true)
    } else {
        (name.strip_suffix('f').filter(|base| of_c(base, "float"))?, false)
    };
    Some(match vendor {
        Vendor::Nvidia => format!("__nv_{name}"),
        Vendor::Amd => format!("__ocml_{base}_{}", if is_double { "f64" } else { "f32" }),
    })
}

/// Lets calls of C's mathematical library that nothing defines be calls of the vendor's, as clang's headers for CUDA and HIP do.
fn take_math_from_vendor(module: &DeviceModule<'_>, undefined: &[UndefinedSymbol], vendor: Vendor) {
    let module = module.inkwell();
    for symbol in undefined {
        let Some(function) = module.get_function(&symbol.name) else {
            continue;
        };
        // A call by another convention than the library's would be undefined.
        if function.get_call_conventions() != 0 || !is_called_as_in_c(function) {
            continue;
        }
        let kind = function.get_type().print_to_string().to_string();
        let Some(name) = math_of_c(&symbol.name, &kind, vendor) else {
            continue;
        };
        match module.get_function(&name) {
            Some(existing) => {
                let [old, new] = [function, existing].map(|function| function.as_global_value().as_pointer_value());
                old.replace_all_uses_with(new);
            }
            None => function.as_global_value().set_name(&name),
        }
    }
}

/// Device variables that a host may look up: they stay visible.
pub(super) fn visible_variables(module: &DeviceModule<'_>) -> Vec<String> {
    module
        .inkwell()
        .get_globals()
        .filter(|global| !global.is_declaration() && is_offered(global.get_linkage()))
        .filter_map(|global| global.get_name().to_str().ok().map(str::to_owned))
        .collect()
}

/// Whether others may count on a definition. One that is `linkonce` they have themselves.
const fn is_offered(linkage: Linkage) -> bool {
    matches!(linkage, Linkage::External | Linkage::WeakAny | Linkage::WeakODR)
}

/// What a module defines that is not offered to others, each with the reason.
pub(super) fn hidden(module: &DeviceModule<'_>) -> Vec<String> {
    let module = module.inkwell();
    let functions = module
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0);
    let variables = module.get_globals().filter(|global| !global.is_declaration());
    functions
        .map(|function| {
            (
                function.get_name().to_string_lossy().into_owned(),
                function.get_linkage(),
            )
        })
        .chain(variables.map(|global| (global.get_name().to_string_lossy().into_owned(), global.get_linkage())))
        .filter(|(_, linkage)| !is_offered(*linkage))
        .map(|(name, linkage)| {
            let reason = match linkage {
                Linkage::Private => "private",
                Linkage::LinkOnceAny | Linkage::LinkOnceODR => "linkonce",
                Linkage::AvailableExternally => "available elsewhere",
                _ => "internal",
            };
            format!("{name}: {reason}")
        })
        .collect()
}

/// Functions of the module that objects of a later link need; all of them, where it has no kernel and is a library itself.
pub(super) fn offered_functions(module: &DeviceModule<'_>, others: &LinkInterface) -> Vec<String> {
    let is_library = !super::has_kernel(module);
    module
        .inkwell()
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0 && is_offered(function.get_linkage()))
        .filter_map(|function| function.get_name().to_str().ok().map(str::to_owned))
        .filter(|name| is_library || others.opaque || others.needed.contains(name))
        .collect()
}

/// Links the user's and the vendor's libraries until no more symbols can be resolved; what is left is an error.
///
/// A library is opened only when a symbol may be in it, and gives only the definitions that are needed. What `others`
/// define is left to the link with them.
pub(super) fn link(
    module: &DeviceModule<'_>,
    job: &DeviceJob<'_>,
    others: &LinkInterface,
) -> Result<bool, DeviceError> {
    let target = &job.resolved.target;
    // `tanh.approx`: "Introduced in PTX ISA version 7.0 ... Requires sm_75 or higher" (PTX ISA, 9.7.3.21).
    let has_tanh = matches!(job.resolved.vendor, ResolvedVendor::Nvidia { ptx, .. } if ptx.major >= 7)
        && target.as_nvidia().is_some_and(|chip| chip.number() >= 75);
    module.call_math_functions(has_tanh)?;
    let unprovided_symbols = |module: &DeviceModule<'_>| unprovided_symbols(module, target, others);
    let mut undefined = unprovided_symbols(module)?;
    let mut missing: Option<(VendorLibrary, ToolkitError)> = None;
    let mut linked = false;
    while !undefined.is_empty() {
        for library in job.libraries {
            link_one(module, library)?;
        }
        let is_amd = target.vendor() == Vendor::Amd;
        if !job.libraries.is_empty() {
            if is_amd {
                module.leave_generic_memory()?;
            }
            module.call_math_functions(has_tanh)?;
        }
        if is_amd && needs_heap(module, &unprovided_symbols(module)?) {
            let heap = LoadedLibrary::new("the heap of AMD's chips".to_owned(), HEAP.as_bytes().into());
            link_one(module, &heap)?;
        }
        if !others.opaque {
            take_math_from_vendor(module, &unprovided_symbols(module)?, target.vendor());
        }
        // What is defined elsewhere is called.
        if job.resolved.optimization.number() > 0 && !others.opaque && others.defined.is_empty() {
            module.simplify_library_calls()?;
        }
        if is_amd
            && module
                .undefined_symbols()?
                .iter()
                .any(|symbol| symbol.name.starts_with("__oclc_"))
        {
            // A library of the user's may consult them, as AMD's own do.
            control::define_constants(module, job.resolved);
        }
        let needed = unprovided_symbols(module)?;
        for which in needed_vendor_libraries(&needed, target) {
            match (job.vendor_library)(which) {
                Ok(library) => {
                    if is_amd {
                        // Before the library: only-needed linking would drop constants that nothing refers to yet.
                        control::define_constants(module, job.resolved);
                    }
                    link_one(module, &library.part(&functions_of(module, &needed), module)?)?;
                }
                Err(error) => {
                    missing.get_or_insert((which, error));
                }
            }
        }
        let rest = unprovided_symbols(module)?;
        if rest == undefined {
            break;
        }
        linked = true;
        undefined = rest;
    }
    if others.opaque {
        // What is not for a library of the vendor's to define may be in an object that does not tell.
        undefined.retain(|symbol| VendorLibrary::of(&symbol.name).is_some());
    } else if !undefined.is_empty() {
        module.resolve_weak(&others.defined);
        undefined = unprovided_symbols(module)?;
    }
    if undefined.is_empty() {
        return Ok(linked);
    }
    let mut symbols: Vec<UnresolvedSymbol> = undefined
        .into_iter()
        .map(|symbol| UnresolvedSymbol {
            location: (job.locate)(&symbol.name),
            advice: advice(&symbol.name, target),
            name: symbol.name,
            kernels: symbol.kernels,
        })
        .collect();
    match missing {
        Some((library, source)) => {
            symbols.retain(|symbol| VendorLibrary::of(&symbol.name) == Some(library));
            for symbol in &mut symbols {
                symbol.advice = format!("{} was not found, which may define it", library.name());
            }
            Err(DeviceError::LibraryMissing { symbols, source })
        }
        None => Err(DeviceError::Unresolved(symbols)),
    }
}

fn link_one(module: &DeviceModule<'_>, library: &LoadedLibrary) -> Result<(), DeviceError> {
    module
        .link_library(&library.bytes, &library.name)
        .map_err(|error| match error {
            LlvmError::Refused(reason) => {
                let message = format!("cannot link the library {}: {reason}", library.name);
                Refusal::new(ErrorKind::Link, message).into()
            }
            fatal => fatal.into(),
        })
}

/// Undefined symbols that neither the target's runtime nor another object provides.
fn unprovided_symbols(
    module: &DeviceModule<'_>,
    target: &Target,
    others: &LinkInterface,
) -> Result<Vec<UndefinedSymbol>, LlvmError> {
    let mut symbols = module.undefined_symbols()?;
    symbols.retain(|symbol| !others.defined.contains(&symbol.name));
    if target.vendor() == Vendor::Nvidia {
        symbols.retain(|symbol| !DRIVER_FUNCTIONS.contains(&symbol.name.as_str()));
    }
    Ok(symbols)
}

/// The functions among these symbols that a library may define.
fn functions_of(module: &DeviceModule<'_>, undefined: &[UndefinedSymbol]) -> BTreeSet<String> {
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let names = undefined.iter().map(|symbol| &symbol.name);
    names
        .filter(|name| is_plain(name) && module.inkwell().get_function(name).is_some())
        .cloned()
        .collect()
}

fn needed_vendor_libraries(undefined: &[UndefinedSymbol], target: &Target) -> Vec<VendorLibrary> {
    let mut libraries: Vec<VendorLibrary> = undefined
        .iter()
        .filter_map(|symbol| VendorLibrary::of(&symbol.name))
        .filter(|library| library.vendor() == target.vendor())
        .collect();
    libraries.sort();
    libraries.dedup();
    libraries
}

fn advice(symbol: &str, target: &Target) -> String {
    match VendorLibrary::of(symbol) {
        Some(library) if library.vendor() == target.vendor() => format!(
            "{} does not define it; check the spelling, or give a library that does",
            library.name()
        ),
        Some(library) => format!(
            "{} defines it, which is not for {} chips; lower the module for this vendor from its math or gpu dialect form",
            library.name(),
            target.vendor()
        ),
        None if symbol.starts_with("__oclc_") => {
            "a control constant of AMD's device libraries that gpulower does not know; define it in a library of yours"
                .to_owned()
        }
        None if ["malloc", "free"].contains(&symbol) => {
            "the heap of AMD's chips is `ptr malloc(i64)` and `void free(ptr)`; declare it so, or define it in a library of yours"
                .to_owned()
        }
        None if symbol.starts_with("llvm.") => {
            "LLVM 22 has no intrinsic of this name; check the spelling, or the version of LLVM it was written for"
                .to_owned()
        }
        None => {
            "give the bitcode library that defines it (-l FILE, the pass option l=, or Options::libraries)".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "
@table = internal constant [2 x float] [float 1.0, float 2.0]
define internal float @of_table(i64 %i) {
  %at = getelementptr float, ptr @table, i64 %i
  %value = load float, ptr %at
  ret float %value
}
define float @__nv_second(float %x) {
  %y = call float @of_table(i64 1)
  %z = fadd float %x, %y
  ret float %z
}
define float @__nv_first(float %x) {
  %y = call float @__nv_second(float %x)
  ret float %y
}
define float @__nv_other(float %x) {
  ret float %x
}
";

    const USER: &str = "target triple = \"nvptx64-nvidia-cuda\"
declare float @__nv_first(float)
declare float @__nv_missing(float)
declare void @\"7up\"()
define ptx_kernel void @k(ptr %p) {
  call void @\"7up\"()
  %x = load float, ptr %p
  %y = call float @__nv_first(float %x)
  %z = call float @__nv_missing(float %y)
  store float %z, ptr %p
  ret void
}
";

    #[test]
    fn a_part_of_a_library_gives_what_the_whole_gives() {
        let library = LoadedLibrary::new("a library".to_owned(), LIBRARY.as_bytes().into());
        let context = DeviceContext::new();
        let linked = |from: &LoadedLibrary| {
            let module = context.parse(USER.as_bytes(), "m").expect("parses");
            link_one(&module, from).expect("links");
            module.to_text().expect("prints")
        };
        let user = context.parse(USER.as_bytes(), "m").expect("parses");
        let undefined = user.undefined_symbols().expect("they are found");
        let needed = functions_of(&user, &undefined);
        let part = library.part(&needed, &user).expect("there is one");
        assert_eq!(linked(&part), linked(&library));
        let whole = context.parse(&part.bytes, "part").and_then(|module| module.to_text());
        let whole = whole.expect("it is bitcode");
        assert!(whole.contains("@of_table") && !whole.contains("@__nv_other"), "{whole}");
        let again = library.clone().part(&needed, &user).expect("there is one");
        assert!(Arc::ptr_eq(&part.bytes, &again.bytes), "it was made anew");
    }
}
