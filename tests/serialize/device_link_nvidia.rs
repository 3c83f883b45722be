//! Tests with nvJitLink, ptxas and nvcc.

use super::super::{LinkInput, LinkOptions, LinkedImage, LtoOptions, interface, link as link_inputs};
use super::*;
use crate::serialize::nvidia::NvidiaParts;
use crate::serialize::nvidia_options::PtxOptions;
use crate::target::Target;
use gpulower_testing::nvidia::{LINKED_KERNELS, nvcc, part, relocatable_cubin, run};

/// What [`LINKED_KERNELS`] needs.
const DEFINITIONS: &str = ".version 7.8\n.target sm_90\n.address_size 64\n\
    .visible .global .align 4 .b32 counter = 100;\n.visible .global .align 4 .b32 never_read = 1;\n\
    .visible .func (.param .b32 r) scale(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; \
      mul.lo.s32 %r1, %r1, 7; st.param.b32 [r], %r1; ret; }\n\
    .visible .func (.param .b32 r) in_table(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; \
      add.s32 %r1, %r1, 7; st.param.b32 [r], %r1; ret; }\n\
    .visible .entry reader(.param .u64 p) { .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; \
      ld.global.u32 %r1, [counter]; st.global.u32 [%rd1], %r1; ret; }\n";

/// The functions of [`DEFINITIONS`] alone, in CUDA C++.
const SOURCE: &str = "extern \"C\" __device__ int scale(int x) { return x * 7; }\n\
    extern \"C\" __device__ int in_table(int x) { return x + 7; }\n\
    extern \"C\" { __device__ int counter = 100; __device__ int never_read = 1; }\n";

const LTO: [&str; 4] = ["-dc", "-ltoir", "-gencode", "arch=compute_90,code=lto_90"];

fn tools() -> PtxToCubin {
    PtxToCubin::new(NvidiaParts {
        nvjitlink: Some(part("lib/libnvJitLink.so.13")),
        ..NvidiaParts::default()
    })
}

fn link_for(chip: &str, options: &LinkOptions, files: &[(&str, &[u8])]) -> Result<LinkedImage, DeviceLinkError> {
    let target: Target = chip.parse().unwrap();
    let inputs: Vec<LinkInput<'_>> = files
        .iter()
        .map(|(name, bytes)| LinkInput::detect(name, bytes))
        .collect::<Result<_, _>>()?;
    link_inputs(&inputs, &target, options, &tools())
}

fn link(files: &[(&str, &[u8])]) -> Result<LinkedImage, DeviceLinkError> {
    link_for("sm_90", &LinkOptions::default(), files)
}

fn refused(files: &[(&str, &[u8])]) -> String {
    link(files).unwrap_err().to_string()
}

fn names(image: &LinkedImage) -> Vec<&str> {
    let mut names: Vec<&str> = image.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn ptx_and_relocatable_cubins_link_in_any_mixture() {
    let users = relocatable_cubin(LINKED_KERNELS, "sm_90");
    let definitions = relocatable_cubin(DEFINITIONS, "sm_90");
    let mut images = Vec::new();
    for files in [
        [
            ("users.ptx", LINKED_KERNELS.as_bytes()),
            ("definitions.ptx", DEFINITIONS.as_bytes()),
        ],
        [("users.cubin", &users), ("definitions.ptx", DEFINITIONS.as_bytes())],
        [
            ("users.ptx", LINKED_KERNELS.as_bytes()),
            ("definitions.cubin", &definitions),
        ],
        [("users.cubin", &users), ("definitions.cubin", &definitions)],
    ] {
        let image = link(&files).unwrap();
        assert_eq!(names(&image), ["hidden_kernel", "reader", "user"]);
        assert_eq!(image.inputs, files.map(|(name, _)| name));
        assert!(image.tool.starts_with("nvJitLink 1"), "{}", image.tool);
        assert!(!image.log.contains("Compile time"));
        images.push(image.bytes);
    }
    // The tool's note names its inputs; the code is the same.
    let text = |bytes: &[u8]| {
        let elf = Elf::parse(bytes).unwrap();
        let section = *elf
            .sections()
            .iter()
            .find(|section| section.name == ".text.user")
            .unwrap();
        elf.contents(&section).unwrap().to_vec()
    };
    assert!(images.iter().all(|image| text(image) == text(&images[0])));
}

#[test]
fn the_image_is_what_nvlink_makes() {
    let users = relocatable_cubin(LINKED_KERNELS, "sm_90");
    let definitions = relocatable_cubin(DEFINITIONS, "sm_90");
    let image = link(&[("users.cubin", &users), ("definitions.cubin", &definitions)]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("users.cubin"), &users).unwrap();
    std::fs::write(path("definitions.cubin"), &definitions).unwrap();
    let (one, other, out) = (path("users.cubin"), path("definitions.cubin"), path("out.cubin"));
    run(
        "nvlink",
        &[
            "-arch=sm_90".as_ref(),
            one.as_ref(),
            other.as_ref(),
            "-o".as_ref(),
            out.as_ref(),
        ],
    );
    let theirs = std::fs::read(out).unwrap();
    let (ours, theirs) = (Elf::parse(&image.bytes).unwrap(), Elf::parse(&theirs).unwrap());
    assert_eq!(ours.sections().len(), theirs.sections().len());
    for (our, their) in ours.sections().iter().zip(theirs.sections()) {
        if our.name != ".note.nv.tkinfo" {
            assert_eq!(our.name, their.name);
            assert_eq!(
                ours.contents(our).unwrap(),
                theirs.contents(their).unwrap(),
                "{}",
                our.name
            );
        }
    }
}

#[test]
fn resources_and_spills_are_read_from_image_and_log() {
    let spilling = gpulower_testing::nvidia::rich_module("8.0", "sm_90");
    let image = link(&[("rich.ptx", spilling.as_bytes())]).unwrap();
    let spills: Vec<(&str, bool)> = image
        .kernels
        .iter()
        .map(|kernel| {
            (
                kernel.name.as_str(),
                kernel.spill_store_bytes.is_some_and(|bytes| bytes > 0),
            )
        })
        .collect();
    assert!(
        spills.contains(&("spilling", true)) && spills.contains(&("plain", false)),
        "{spills:?}"
    );
    assert!(image.log.contains("bytes spill stores"), "{}", image.log);
}

#[test]
fn duplicates_are_refused_though_nvjitlink_would_succeed() {
    let definitions = relocatable_cubin(DEFINITIONS, "sm_90");
    let pairs: [[(&str, &[u8]); 2]; 3] = [
        [("a.ptx", DEFINITIONS.as_bytes()), ("b.ptx", DEFINITIONS.as_bytes())],
        [("a.ptx", DEFINITIONS.as_bytes()), ("b.ptx", &definitions)],
        [("a.ptx", &definitions), ("b.ptx", &definitions)],
    ];
    for files in pairs {
        assert_eq!(
            refused(&files),
            "5 symbols are defined more than once:\n  variable counter in a.ptx and b.ptx\n  \
             function in_table in a.ptx and b.ptx\n  variable never_read in a.ptx and b.ptx\n  \
             kernel reader in a.ptx and b.ptx\n  function scale in a.ptx and b.ptx\n\
             Keep one definition and declare it elsewhere, or make those private that only their own file uses."
        );
    }
}

#[test]
fn what_nothing_defines_is_listed_with_who_needs_it() {
    let users = relocatable_cubin(LINKED_KERNELS, "sm_90");
    let expected = |table: &str, file: &str| {
        format!(
            "4 unresolved symbols:\n  counter (needed by user of {file})\n  in_table (needed by {table} of {file})\n  \
             never_read (needed by {file})\n  scale (needed by offered, user of {file})\n\
             Give the file that defines them."
        )
    };
    assert_eq!(refused(&[("k.cubin", &users)]), expected(".nv.global.init", "k.cubin"));
    assert_eq!(
        refused(&[("k.ptx", LINKED_KERNELS.as_bytes())]),
        expected("table", "k.ptx")
    );
}

#[test]
fn lto_ir_links_with_everything_else() {
    let lto = nvcc(SOURCE, &LTO);
    let users = relocatable_cubin(LINKED_KERNELS, "sm_90");
    for (name, bytes) in [("users.ptx", LINKED_KERNELS.as_bytes()), ("users.cubin", &users)] {
        let image = link(&[(name, bytes), ("functions.ltoir", &lto)]).unwrap();
        assert_eq!(names(&image), ["hidden_kernel", "user"]);
    }
    let kernels = "extern \"C\" __device__ int scale(int);\n\
        extern \"C\" __global__ void from_lto(int *p) { *p = scale(*p); }\n";
    let kernels = nvcc(kernels, &LTO);
    let options = LinkOptions {
        lto: LtoOptions {
            flush_denormals: Some(true),
            precise_division: Some(false),
            precise_square_root: Some(false),
            contract: Some(false),
        },
        ..LinkOptions::default()
    };
    let files = [("kernels.ltoir", kernels.as_slice()), ("functions.ltoir", &lto)];
    let image = link_for("sm_90", &options, &files).unwrap();
    assert_eq!(names(&image), ["from_lto"]);
    // Scrambled in the host object of `nvcc -dc`, from which it is taken.
    let object = nvcc(SOURCE, &["-dc", "-gencode", "arch=compute_90,code=lto_90"]);
    let image = link(&[("kernels.ltoir", &kernels), ("functions.o", &object)]).unwrap();
    assert_eq!(image.inputs, ["kernels.ltoir", "functions.o(LTO-IR sm_90)"]);
    let inputs = [LinkInput::detect("functions.ltoir", &lto).unwrap()];
    assert!(interface(&inputs, &"sm_90".parse().unwrap()).unwrap().opaque);
}

#[test]
fn lto_ir_hides_neither_duplicates_nor_missing_symbols() {
    let lto = nvcc(SOURCE, &LTO);
    let definitions = relocatable_cubin(DEFINITIONS, "sm_90");
    let function = nvcc(
        "extern \"C\" __device__ int scale(int x) { return x * 8; }\n\
         extern \"C\" __global__ void from_lto(int *p) { *p = scale(*p); }\n",
        &LTO,
    );
    // Variables are known before the link, functions the linker reports and succeeds.
    let text = refused(&[("a.ltoir", &lto), ("b.cubin", &definitions)]);
    assert!(text.contains("variable counter in a.ltoir and b.cubin"), "{text}");
    let alone = nvcc("extern \"C\" __device__ int scale(int x) { return x * 8; }\n", &LTO);
    let text = refused(&[("a.ltoir", &alone), ("b.cubin", &definitions)]);
    assert!(text.contains("function scale in a.ltoir and b.cubin"), "{text}");
    let text = refused(&[("a.ltoir", &function), ("b.ltoir", &lto)]);
    assert!(text.contains("symbol scale in a.ltoir and b.ltoir"), "{text}");
    let users = "extern \"C\" __device__ int missing(int); extern \"C\" __device__ int elsewhere;\n\
        extern \"C\" __global__ void k(int *p) { *p = missing(*p) + elsewhere; }\n";
    let users = nvcc(users, &LTO);
    let text = refused(&[("a.ltoir", &users), ("b.ltoir", &lto)]);
    assert!(text.contains("missing (needed by k of a.ltoir)"), "{text}");
    let text = refused(&[("a.ptx", LINKED_KERNELS.as_bytes()), ("b.ltoir", &function)]);
    assert!(
        text.contains("counter (needed by user of a.ptx)") && text.contains("in_table (needed by table of a.ptx)"),
        "{text}"
    );
}

#[test]
fn objects_of_nvcc_and_the_device_runtime_link() {
    let object = nvcc(SOURCE, &["-dc", "-arch=sm_90"]);
    let image = link(&[("users.ptx", LINKED_KERNELS.as_bytes()), ("functions.o", &object)]).unwrap();
    assert_eq!(image.inputs, ["users.ptx", "functions.o(cubin sm_90)"]);
    // A kernel that allocates through the device runtime, which calls what the driver provides.
    let runtime = std::fs::read(part("lib/libcudadevrt.a")).unwrap();
    let kernel = nvcc(
        "#include <cuda_runtime.h>\nextern \"C\" __global__ void k(void **p) { cudaMalloc(p, 16); }\n",
        &["-dc", "-arch=sm_90"],
    );
    let text = refused(&[("k.o", &kernel)]);
    assert!(
        text.contains("__cudaCDP2Malloc (needed by k of k.o(cubin sm_90))"),
        "{text}"
    );
    let image = link(&[("k.o", &kernel), ("libcudadevrt.a", &runtime)]).unwrap();
    assert_eq!(image.inputs.len(), 2);
    // What is not needed stays out.
    let definitions = relocatable_cubin(DEFINITIONS, "sm_90");
    let image = link(&[("d.cubin", &definitions), ("libcudadevrt.a", &runtime)]).unwrap();
    assert_eq!(image.inputs, ["d.cubin"]);
    let linked = nvcc(SOURCE, &["-c", "-arch=sm_90"]);
    let text = refused(&[("linked.o", &linked)]);
    assert!(
        text.contains("the device code in the host object is linked already"),
        "{text}"
    );
}

#[test]
fn the_tools_refusals_are_passed_on() {
    let bad = DEFINITIONS.replace("mul.lo.s32", "mul.la.s32");
    let text = refused(&[("bad.ptx", bad.as_bytes())]);
    assert!(
        text.starts_with("nvJitLink 1") && text.contains("could not link bad.ptx: ptxas"),
        "{text}"
    );
    assert!(text.contains("line 6"), "{text}");
    let text = refused(&[("bad.ptx", b".version 7.8\n.target sm_90\n.func f() {")]);
    assert!(text.starts_with("bad.ptx cannot be linked: PTX: line 3"), "{text}");
    let text = refused(&[("bad.ltoir", b"\xed\x43\x4e\x7f nonsense")]);
    assert!(text.contains("could not link bad.ltoir"), "{text}");
    assert_eq!(refused(&[]), "nothing to link: no input was given");
    let functions = &DEFINITIONS[..DEFINITIONS.find(".visible .entry").unwrap()];
    assert!(refused(&[("f.ptx", functions.as_bytes())]).starts_with("none of the inputs holds a kernel"));
    let error = link_for(
        "compute_90",
        &LinkOptions::default(),
        &[("f.ptx", DEFINITIONS.as_bytes())],
    )
    .unwrap_err();
    assert!(error.to_string().contains("name a chip, such as sm_90"), "{error}");
}

#[test]
fn a_limit_on_registers_that_does_not_act_is_refused() {
    let limited = |limit, bytes: &[u8]| {
        let options = LinkOptions {
            ptx: PtxOptions {
                max_registers: Some(limit),
                ..PtxOptions::default()
            },
            ..LinkOptions::default()
        };
        link_for("sm_90", &options, &[("rich", bytes)]).map(drop)
    };
    let ptx = gpulower_testing::nvidia::rich_module("8.0", "sm_90").replace(".maxntid 256, 1, 1\n.maxnreg 24", "");
    assert!(limited(32, ptx.as_bytes()).is_ok());
    let compiled = relocatable_cubin(&ptx, "sm_90");
    let text = limited(32, &compiled).unwrap_err().to_string();
    assert!(
        text.starts_with("kernel spilling uses ") && text.contains(" registers, and 32 were asked for at most"),
        "{text}"
    );
}

#[test]
fn without_nvjitlink_the_error_says_what_to_install() {
    let target: Target = "sm_90".parse().unwrap();
    let inputs = [LinkInput::detect("a.ptx", DEFINITIONS.as_bytes()).unwrap()];
    let none = PtxToCubin::new(NvidiaParts::default());
    let error = link_inputs(&inputs, &target, &LinkOptions::default(), &none).unwrap_err();
    assert_eq!(
        error.to_string(),
        "linking for NVIDIA GPUs needs nvJitLink, which cannot be used: the toolkit has none; install the Python wheel \
         nvidia-nvjitlink or a CUDA toolkit from 12.0 on, or name its directory"
    );
    // The symbols are checked all the same, before any tool is needed.
    let inputs = [LinkInput::detect("a.ptx", LINKED_KERNELS.as_bytes()).unwrap()];
    let error = link_inputs(&inputs, &target, &LinkOptions::default(), &none).unwrap_err();
    assert!(
        matches!(
            error,
            DeviceLinkError::Refused {
                kind: ErrorKind::Symbols,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_interface_is_known_without_linking() {
    let target: Target = "sm_90".parse().unwrap();
    let inputs = [LinkInput::detect("k.ptx", LINKED_KERNELS.as_bytes()).unwrap()];
    let interface = interface(&inputs, &target).unwrap();
    assert!(interface.defined.contains("offered") && interface.needed.contains("scale") && !interface.opaque);
    assert!(!interface.defined.contains("private_function"));
}
