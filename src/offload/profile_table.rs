//! What clang 15 to 22 read of the LLVM IR that LLVM 22 writes. Seen with LLVM 15.0.6, 16.0.6, 17.0.6, 18.1.8, 19.1.7,
//! 20.1.8, 21.1.8 and 22.1.8: each row as a small module, and the names in their headers.
//!
//! These lists say what is allowed: what is in none of them is read by clang 22 alone.

use std::{collections::HashMap, sync::LazyLock};

use super::profile::IrSyntax;

/// The release whose LLVM writes: it reads everything that it writes, and so do newer ones.
pub const WRITER: u8 = 22;
/// In place of a release: nobody reads it.
pub const NEVER: u8 = u8::MAX;

/// Something that is neither an instruction nor an attribute nor another name.
#[derive(Clone, Copy, Debug)]
pub struct Construct {
    /// In words.
    pub name: &'static str,
    /// The first release that reads it as text.
    pub text: u8,
    /// The first release that reads it as bitcode, and takes it for what it is.
    pub bitcode: u8,
    /// What is done for older releases.
    pub remedy: &'static str,
}

const fn row(name: &'static str, text: u8, bitcode: u8, remedy: &'static str) -> Construct {
    Construct {
        name,
        text,
        bitcode,
        remedy,
    }
}

/// What is none of the other kinds.
#[rustfmt::skip]
pub const CONSTRUCTS: &[Construct] = &[
    // Flags and hints.
    row("zext nneg", 18, 18, "cleared"),
    row("or disjoint", 18, 18, "cleared"),
    row("uitofp nneg", 19, 18, "cleared"),
    row("trunc nuw", 19, 18, "cleared"),
    row("fptrunc with fast-math flags", 20, 18, "cleared"),
    row("fast-math flags on structures", 20, 20, "cleared"),
    row("icmp samesign", 20, 20, "cleared"),
    // As bitcode up to 18, every flag reads as `inbounds`.
    row("getelementptr nuw", 19, 19, "cleared, and inbounds with it where there is none"),
    // A location that a release does not know is one that it has under another name: bitcode with
    // `memory(readwrite, errnomem: none)` reads as "touches no other memory", with `target_mem` alone as `memory(none)`.
    row("memory(errnomem)", 21, 21, "other memory, which is more than is true"),
    row("memory(target_mem)", 22, 22, "other memory where that is more than is true, or no attribute"),
    row("profiles with their source", 22, 22, "left out"),
    row("assumptions about attributes", 22, 22, "left out"),
    row("lifetime without size", 22, 22, "left out"),
    row("debug information", 19, 22, "left out"),
    row("frame-pointer=reserved", 19, 19, "all"),
    row("frame-pointer=non-leaf-no-reserve", 22, 22, "non-leaf"),
    // Constants.
    row("vectors of one number as splat", 18, 15, "written in full"),
    row("getelementptr in a constant of bitcode", 15, 19,
        "an instruction, or arithmetic with integers in initial values: up to 18 it silently reads as undef"),
    row("getelementptr in metadata", 19, 19, "refused"),
    row("ptrauth", 22, 22, "refused"),
    row("one number as a vector", 22, 22, "refused"),
    row("a constant of a new kind", 22, 22, "refused"),
    // Instructions and types.
    row("ptrtoaddr", 22, 22, "ptrtoint where that means the same"),
    row("atomicrmw on vectors", 19, 19, "a loop of compare-and-swap"),
    row("atomic load or store of a vector", 22, 22, "refused"),
    row("code_model", 18, 18, "refused"),
    row("target types", 16, 16, "refused"),
    row("scalable vectors", 22, 22, "refused"),
    row("an unknown intrinsic", NEVER, NEVER, "LLVM 22 does not have it"),
    // What back ends do.
    row("ordered loads, stores and fences on NVPTX", 20, 20, "memory barriers around relaxed ones"),
    row("ordered compare-and-swap on NVPTX", 21, 21, "memory barriers around relaxed ones: older ones ignore the order"),
    row("arithmetic with bfloat on NVPTX", 17, 17, "older ones cannot compile it"),
    row("arithmetic with bfloat on AMDGPU", 16, 16, "older ones cannot compile it"),
    row("llvm.roundeven on AMDGPU", 16, 16, "llvm.rint: older ones cannot compile it"),
    row("llvm.maximum and llvm.minimum on NVPTX", 19, 19, "comparisons: older ones use max.NaN, which PTX has not for all"),
    row("llvm.maximum and llvm.minimum on AMDGPU", 19, 19, "comparisons: older ones cannot compile it"),
    row("llvm.maximum and llvm.minimum on x86-64", 17, 17, "comparisons: older ones cannot compile it"),
    row("the flag amdhsa_code_object_version", 19, 19, "called amdgpu_code_object_version"),
    row("code object version 5", 17, 17,
        "older ones make version 4, where kernels get other hidden arguments; compile for code object version 4"),
    row("code object version 6", 19, 19, "compile for code object version 5"),
    row("no code object version", 22, 22,
        "every release makes its own default of it; set the module flag amdhsa_code_object_version"),
];

/// Names with the first release that knows them.
pub type Names = &'static [(u8, &'static [&'static str])];

/// Attributes; `annotation` is what a key of `!nvvm.annotations` stands for.
#[rustfmt::skip]
pub const ATTRIBUTES: Names = &[
    (15, &[
        "align", "alignstack", "allocalign", "allockind", "allocptr", "allocsize", "alwaysinline", "builtin", "byref",
        "byval", "cold", "convergent", "dereferenceable", "dereferenceable_or_null", "disable_sanitizer_instrumentation",
        "elementtype", "fn_ret_thunk_extern", "hot", "immarg", "inalloca", "inlinehint", "inreg", "jumptable", "minsize",
        "mustprogress", "naked", "nest", "noalias", "nobuiltin", "nocallback", "nocf_check", "noduplicate", "nofree",
        "noimplicitfloat", "noinline", "nomerge", "nonlazybind", "nonnull", "noprofile", "norecurse", "noredzone",
        "noreturn", "nosanitize_bounds", "nosanitize_coverage", "nosync", "noundef", "nounwind", "null_pointer_is_valid",
        "optforfuzzing", "optnone", "optsize", "preallocated", "presplitcoroutine", "readnone", "readonly", "returned",
        "returns_twice", "safestack", "sanitize_address", "sanitize_hwaddress", "sanitize_memory", "sanitize_memtag",
        "sanitize_thread", "shadowcallstack", "signext", "speculatable", "speculative_load_hardening", "sret", "ssp",
        "sspreq", "sspstrong", "strictfp", "swiftasync", "swifterror", "swiftself", "uwtable", "vscale_range",
        "willreturn", "writeonly", "zeroext",
        // Of the texts that begin with amdgpu-, those that users write; what the optimizer found out is found out again.
        "amdgpu-dx10-clamp", "amdgpu-flat-work-group-size", "amdgpu-gds-size", "amdgpu-ieee", "amdgpu-num-sgpr",
        "amdgpu-num-vgpr", "amdgpu-unsafe-fp-atomics", "amdgpu-waves-per-eu",
        "annotation maxntidx", "annotation reqntidx", "annotation minctasm", "annotation maxnreg",
    ]),
    (16, &["memory", "skipprofile"]),
    (17, &["nofpclass"]),
    (18, &["coro_only_destroy_when_complete", "dead_on_unwind", "optdebug", "writable", "annotation maxclusterrank"]),
    (19, &["initializes", "range", "sanitize_numerical_stability", "annotation grid_constant"]),
    (20, &[
        "captures", "coro_elide_safe", "nodivergencesource", "noext", "sanitize_realtime", "sanitize_realtime_blocking",
        "sanitize_type", "annotation cluster_dim_x",
    ]),
    (21, &[
        "dead_on_return", "nvvm.cluster_dim", "nvvm.maxclusterrank", "nvvm.maxnreg", "nvvm.maxntid", "nvvm.minctasm",
        "nvvm.reqntid",
    ]),
];

/// An attribute that is read as text only: LLVM 22 does not read the bitcode that it writes of it.
pub const TEXT_ATTRIBUTES: Names = &[(19, &["hybrid_patchable"])];

/// Operations of `atomicrmw`.
pub const ATOMIC_OPERATIONS: Names = &[
    (
        15,
        &[
            "xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin", "fadd", "fsub", "fmax",
            "fmin",
        ],
    ),
    (16, &["uinc_wrap", "udec_wrap"]),
    (20, &["usub_cond", "usub_sat"]),
    (21, &["fmaximum", "fminimum"]),
];

/// Tags of operand bundles. Those of `llvm.assume` are not among them: see "assumptions about attributes".
pub const BUNDLES: Names = &[
    (
        15,
        &[
            "deopt",
            "funclet",
            "gc-transition",
            "cfguardtarget",
            "preallocated",
            "gc-live",
            "clang.arc.attachedcall",
            "ptrauth",
        ],
    ),
    (16, &["kcfi"]),
    (18, &["convergencectrl"]),
];

/// Calling conventions by number, with what textual IR calls them. Readers take an unknown number without a word.
#[rustfmt::skip]
pub const CALLING_CONVENTIONS: &[(u8, &str, u8)] = &[
    (0, "ccc", 15), (8, "fastcc", 15), (9, "coldcc", 15), (10, "ghccc", 15), (13, "anyregcc", 15),
    (14, "preserve_mostcc", 15), (15, "preserve_allcc", 15), (16, "swiftcc", 15), (17, "cxx_fast_tlscc", 15),
    (18, "tailcc", 15), (19, "cfguard_checkcc", 15), (20, "swifttailcc", 15), (21, "preserve_nonecc", 19),
    (71, "ptx_kernel", 15), (72, "ptx_device", 15), (75, "spir_func", 15), (76, "spir_kernel", 15),
    (77, "intel_ocl_bicc", 15), (78, "x86_64_sysvcc", 15), (79, "win64cc", 15), (80, "x86_vectorcallcc", 15),
    (91, "amdgpu_kernel", 15), (92, "x86_regcallcc", 15), (97, "aarch64_vector_pcs", 15), (100, "amdgpu_gfx", 15),
    (104, "amdgpu_cs_chain", 17), (105, "amdgpu_cs_chain_preserve", 17),
];

/// Instructions and constant expressions.
#[rustfmt::skip]
pub const INSTRUCTIONS: Names = &[
    (15, &[
        "ret", "br", "switch", "indirectbr", "invoke", "resume", "unreachable", "cleanupret", "catchret", "catchswitch",
        "callbr", "fneg", "add", "fadd", "sub", "fsub", "mul", "fmul", "udiv", "sdiv", "fdiv", "urem", "srem", "frem",
        "shl", "lshr", "ashr", "and", "or", "xor", "alloca", "load", "store", "getelementptr", "fence", "cmpxchg",
        "atomicrmw", "trunc", "zext", "sext", "fptoui", "fptosi", "uitofp", "sitofp", "fptrunc", "fpext", "ptrtoint",
        "inttoptr", "bitcast", "addrspacecast", "cleanuppad", "catchpad", "icmp", "fcmp", "phi", "call", "select",
        "va_arg", "extractelement", "insertelement", "shufflevector", "extractvalue", "insertvalue", "landingpad",
        "freeze",
    ]),
];

/// Kinds of metadata on instructions, functions and globals.
#[rustfmt::skip]
pub const METADATA: Names = &[
    (15, &[
        "absolute_symbol", "alias.scope", "align", "annotation", "associated", "callback", "callees", "callsite", "dbg",
        "dereferenceable", "dereferenceable_or_null", "exclude", "fpmath", "func_sanitize", "invariant.group",
        "invariant.load", "irr_loop", "llvm.access.group", "llvm.loop", "llvm.preserve.access.index", "make.implicit",
        "memprof", "noalias", "nonnull", "nontemporal", "nosanitize", "noundef", "prof", "range", "section_prefix",
        "tbaa", "tbaa.struct", "type", "unpredictable", "vcall_visibility",
        // These have no number of their own in LLVM.
        "max_work_group_size", "reqd_work_group_size", "srcloc", "vec_type_hint", "work_group_size_hint",
    ]),
    (16, &["DIAssignID", "kcfi_type", "pcsections"]),
    (18, &["coro.outside.frame"]),
    (19, &["mmra"]),
    (20, &[
        "noalias.addrspace", "amdgpu.ignore.denormal.mode", "amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory",
    ]),
];

/// Intrinsics on some types that are older than on others.
pub const TYPED_INTRINSICS: Names = &[(
    15,
    &[
        "llvm.amdgcn.update.dpp.i32",
        "llvm.ptrmask.p0.i64",
        "llvm.ptrmask.p1.i64",
        "llvm.ptrmask.p3.i32",
        "llvm.ptrmask.p3.i64",
    ],
)];

/// Intrinsics in general: releases in brackets, and names without `llvm.` below.
const INTRINSICS: &str = include_str!("intrinsics.txt");

/// What the IR is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrTarget {
    /// Host code for x86-64.
    Host,
    /// Host code for AArch64.
    AArch64Host,
    /// NVIDIA's GPUs.
    Nvptx,
    /// AMD's GPUs.
    Amdgpu,
}

impl IrTarget {
    /// The target of a triple; none for others than these.
    #[must_use]
    pub fn of(triple: &str) -> Option<Self> {
        match triple.split('-').next() {
            Some("x86_64") => Some(Self::Host),
            Some("aarch64") => Some(Self::AArch64Host),
            Some("nvptx64") => Some(Self::Nvptx),
            Some("amdgcn") => Some(Self::Amdgpu),
            _ => None,
        }
    }
}

/// The first release that knows an address space.
#[must_use]
pub fn address_space(number: &str, target: IrTarget) -> u8 {
    match (target, number) {
        // Those of segments, and of pointers of 32 bits (Microsoft's), on x86.
        (_, "0") | (IrTarget::Host | IrTarget::AArch64Host, "256" | "257" | "258" | "270" | "271" | "272") => 15,
        (IrTarget::Nvptx, "1" | "3" | "4" | "5" | "101") => 15,
        (IrTarget::Nvptx, "6" | "7") => 21,
        (IrTarget::Amdgpu, "1" | "2" | "3" | "4" | "5" | "6") => 15,
        (IrTarget::Amdgpu, "8") => 17,
        (IrTarget::Amdgpu, "7" | "9") => 18,
        _ => WRITER,
    }
}

/// The first release in the list that knows a name; the writer's if it is not in the list.
#[must_use]
pub fn first_in(names: Names, name: &str) -> u8 {
    names
        .iter()
        .find(|(_, known)| known.contains(&name))
        .map_or(WRITER, |(release, _)| *release)
}

/// The first release that reads a construct, as text or as bitcode.
#[must_use]
pub fn construct(name: &str, syntax: IrSyntax) -> u8 {
    let found = CONSTRUCTS.iter().find(|construct| construct.name == name);
    found.map_or(WRITER, |construct| match syntax {
        IrSyntax::Text => construct.text,
        IrSyntax::Bitcode => construct.bitcode,
    })
}

/// The first release that has an intrinsic in its present form. The name is a full one, or the part that is the same for
/// every type.
#[must_use]
pub fn intrinsic(name: &str) -> u8 {
    let typed = first_in(TYPED_INTRINSICS, name);
    if typed != WRITER {
        return typed;
    }
    static FIRST: LazyLock<HashMap<&str, u8>> =
        LazyLock::new(|| all_intrinsics().map(|(release, name)| (name, release)).collect());
    let short = name.strip_prefix("llvm.").unwrap_or_default();
    FIRST.get(short).copied().unwrap_or(WRITER)
}

/// Every intrinsic in the list: its first release, and its name without `llvm.`.
pub fn all_intrinsics() -> impl Iterator<Item = (u8, &'static str)> {
    INTRINSICS
        .split("\n[")
        .skip(1)
        .filter_map(|section| {
            let (release, names) = section.split_once(']')?;
            Some((release.parse().ok()?, names))
        })
        .flat_map(|(release, names)| names.split_whitespace().map(move |name| (release, name)))
}
