//! What is said of every chip, release and name, and of files with everything in them, is what it was.

use md5::{Digest as _, Md5};

use crate::{
    elf_tests::{Section, elf},
    image::{
        resource::KernelResources,
        symbols::{FunctionRegisters, SymbolKind, is_provided_by_driver},
    },
    inspect::Compression,
    occupancy::{Occupancy, picture, unit_facts},
    offload::{
        layout::{EntryLayout, ImageForm, language},
        openmp::{KernelCall, refused_image},
        release::ClangRelease,
        runtime::Runtime,
    },
    recorded_tests::Ptxas,
    seeds_tests::{Told, short, told},
    target::{
        AmdTarget, CodeObjectVersion, ComputeCapability, CudaRelease, NvidiaArch, NvidiaTarget, PtxIsa, PtxPolicy,
        Suffix, Target,
        selection::{LoadableImage, cubin_links, select_for_link},
    },
};

fn digest(told: &Told) -> String {
    short(Md5::new_with_prefix(&told.0))
}

#[test]
fn names() {
    let mut told = Told::default();
    for kind in [SymbolKind::Kernel, SymbolKind::Function, SymbolKind::Variable] {
        told.line("kind", kind.name());
    }
    for compression in [Compression::Lz4, Compression::Zstd, Compression::Zlib] {
        told.line("compression", compression.name());
    }
    for runtime in Runtime::ALL {
        let named = Runtime::named(runtime.language());
        told.line("runtime", (runtime.prefix(), runtime.name(), named, language(runtime)));
        for layout in [
            EntryLayout::Clang15,
            EntryLayout::Clang18,
            EntryLayout::Clang20,
            EntryLayout::Clang21,
        ] {
            told.line(
                "layout",
                (layout.symbol_prefix(), layout.section(runtime), layout.has_flag_bits()),
            );
        }
    }
    for number in 0..6 {
        told.line("version", CodeObjectVersion::from_abi_version(number));
    }
    for form in [
        ImageForm::RelocatableCubin,
        ImageForm::LinkedCubin,
        ImageForm::Ptx,
        ImageForm::Bitcode,
        ImageForm::AmdObject(CodeObjectVersion::V5),
        ImageForm::AmdLinked,
    ] {
        told.line("form", (form.to_string(), form.image_kind()));
    }
    for name in [
        "malloc",
        "cnpLaunch",
        "cnp",
        "cnplaunch",
        "__cuda_syscall_x",
        "cuda",
        "Xcnp",
        "C",
    ] {
        told.line(name, is_provided_by_driver(name));
    }
    told.line("versions of PTX", PtxIsa::all_of_llvm());
    for text in ["all", "sm_80", "compute_80"] {
        let policy: Result<PtxPolicy, _> = serde_json::from_value(text.into());
        told.line(
            text,
            policy
                .map(|policy| serde_json::to_value(policy).expect("text"))
                .map_err(|error| error.to_string()),
        );
    }
    let registers = |vector, accumulation, scalar| FunctionRegisters {
        vector,
        accumulation,
        scalar,
    };
    assert_eq!(registers(1, 5, 3).max(registers(4, 2, 6)), registers(4, 5, 6));
    assert_eq!(digest(&told), "acfcb20bbd66");
}

#[test]
fn releases() {
    let mut told = Told::default();
    for release in ClangRelease::all() {
        for name in ["plain", "pointer", "pointer,xyz", "pointer,xyz,shared", "shared"] {
            let call = KernelCall::named(name);
            told.line(
                name,
                call.map(|call| (call.name(), call.version(), call.serves(release), call.refusal(release))),
            );
        }
        for target in ["sm_80", "sm_90", "sm_100", "gfx90a", "gfx1100"] {
            let target: Target = target.parse().expect("a target");
            for version in [
                None,
                Some(CodeObjectVersion::V4),
                Some(CodeObjectVersion::V5),
                Some(CodeObjectVersion::V6),
            ] {
                for cuda in [CudaRelease::new(12, 4), CudaRelease::new(13, 0)] {
                    told.line("refused", refused_image(release, &target, Some(cuda), version));
                }
            }
        }
    }
    assert_eq!(digest(&told), "9bc627c0e5d7");
}

#[test]
fn chips() {
    let mut told = Told::default();
    let mut kernel = KernelResources {
        name: "k".to_owned(),
        registers: Some(1),
        shared_bytes: 3000,
        ..KernelResources::default()
    };
    for target in Target::all() {
        told.line(&target.to_string(), unit_facts(&target));
        for registers in (1..=260).step_by(7) {
            kernel.registers = Some(registers);
            (kernel.vgprs, kernel.sgprs) = (Some(registers), Some(registers.min(110)));
            let occupancy = Occupancy::of(&target, &kernel, 1 + registers * 3, 0);
            told.line(
                "occupancy",
                occupancy.as_ref().map(|found| (found, found.percent(), picture(found))),
            );
        }
        if let Target::Nvidia(target) = &target {
            for number in [50, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120] {
                told.line(
                    "links",
                    [false, true].map(|specific| cubin_links(number, specific, target)),
                );
            }
        }
    }
    let suffixes = [Suffix::Plain, Suffix::ArchitectureSpecific, Suffix::FamilySpecific];
    let numbers = [50, 53, 72, 75, 80, 86, 87, 90, 100, 101, 103, 110, 120, 121];
    let archs: Vec<NvidiaArch> = suffixes
        .iter()
        .flat_map(|&suffix| numbers.map(|number| NvidiaArch { number, suffix }))
        .collect();
    for (index, &arch) in archs.iter().enumerate() {
        let runs = numbers.map(|number| arch.cubin_runs_on(ComputeCapability::new(number / 10, number % 10)));
        told.line("runs", runs);
        let other = archs[index / 2];
        let images = [
            LoadableImage::Ptx { arch, isa: (8, 0) },
            LoadableImage::Cubin { arch },
            LoadableImage::LtoIr { arch: other },
            LoadableImage::Cubin { arch: other },
        ];
        for target in NvidiaTarget::all() {
            let chosen = |images: &[LoadableImage]| select_for_link(&target, images);
            told.line(
                "chosen",
                (
                    chosen(&images),
                    chosen(&images[..2]),
                    chosen(&images[..1]),
                    chosen(&images[2..3]),
                ),
            );
        }
    }
    for target in AmdTarget::all() {
        told.line(
            "matrices",
            (
                target.has_mfma(),
                target.has_wmma(),
                target.wmma(),
                target.has_unified_registers(),
            ),
        );
    }
    assert!(NvidiaTarget::all().count() > 10);
    assert_eq!(digest(&told), "8fbc3b9c7e35");
}

/// Images of every kind, one after the other in a section, and in sections of their own.
#[test]
fn files_with_everything() {
    let corpus = |name: &str| {
        std::fs::read(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../fuzz/corpus")
                .join(name),
        )
        .expect("a seed")
    };
    let header = b"//\n// Generated by NVIDIA NVVM Compiler\n//\n".to_vec();
    let ptx = [header, corpus("ptx/sm_80.ptx"), vec![0; 9]].concat();
    let mut contents: Vec<Vec<u8>> = [
        "inspect/sm_80.cubin",
        "inspect/gfx1030.hsaco",
        "inspect/plain.fatbin",
        "inspect/zstd.fatbin",
        "inspect/small.bundle",
        "inspect/v3.ccob",
        "inspect/several.offload",
        "hsaco/gfx1030.o",
        "cubin/half-sm_80.cubin",
    ]
    .map(corpus)
    .to_vec();
    contents.extend([
        ptx.clone(),
        [&ptx[..40], b"no PTX\0"].concat(),
        b"BC\xc0\xde1234".to_vec(),
        b"MLIR".to_vec(),
    ]);
    for content in &mut contents {
        content.resize(content.len().next_multiple_of(16), 0);
    }
    contents.push(contents.concat());
    let mut told_all = Told::default();
    for name in [
        ".rodata",
        ".nv_fatbin",
        ".hip_fatbin",
        ".llvm.offloading",
        "__nv_relfatbin",
        ".llvmbc",
        "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx942",
        "__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu",
    ] {
        let sections: Vec<Section<'_>> = (0..contents.len())
            .map(|content| Section {
                name,
                kind: 1,
                link: 0,
                entry_size: 0,
                content,
            })
            .collect();
        let borrowed: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        told_all.0 += &told("inspect", &elf(62, &borrowed, &sections));
        for (content, section) in borrowed.iter().zip(sections) {
            let section = Section { content: 0, ..section };
            told_all.0 += &told("inspect", &elf(62, &[content], &[section]));
        }
    }
    assert_eq!(digest(&told_all), "070111d49f3a");
}

#[test]
fn clusters() {
    let mut ptxas = Ptxas::new("13.0", "sm_90a");
    let text = ".visible .entry k(.param .u64 p) .reqntid 64 .explicitcluster .reqnctapercluster 2, 1, 2 { ret; }\n\
                .visible .entry m(.param .u64 p) .maxntid 32 .explicitcluster .maxclusterrank 8 { barrier.sync 3; ret; }\n";
    let read = crate::image::cubin::read(&ptxas.cubin(text, &[])).expect("a cubin");
    // The last is compiled first.
    let [m, k] = read.kernels.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!((k.cluster, k.max_threads_per_block), (Some([2, 1, 2]), Some(64)));
    assert_eq!((m.max_cluster_rank, m.barriers), (Some(8), Some(4)));
}
