//! What is read of the seeds of the fuzz targets (`fuzz/corpus/`), whole and damaged, and what is written of it again, is what
//! it was. Whether it is right is for the tests with the vendors' tools (`tests/tools/`); this notices any change, in a second.
//!
//! After a change that is meant: `GPULOWER_BLESS=1 cargo test -p gpulower-image --lib seeds`.

use std::{
    fmt::{Debug, Write as _},
    fs,
    path::{Path, PathBuf},
};

use gpulower_testing::nvidia;
use md5::{Digest as _, Md5};

use crate::{
    container::{
        archive,
        bundle::{self, BundleId, BundleImage, BundleOptions, Comment, CompressionMethod, CompressionVersion},
        fatbin::{self, Compression},
        offload_binary,
    },
    image::{
        cubin, elf::Elf, hsaco::Hsaco, hsaco_attributes, join_cubin, join_object, lto_ir, producer, ptx, ptx_canonical,
        ptx_components, ptx_entries, ptx_log, ptx_sizes, ptx_symbols, symbols::LinkSymbols,
    },
    inspect,
    occupancy::{Occupancy, picture, unit_facts},
    offload::{
        check,
        layout::{ImageForm, LayoutSet, choose, newest_offload_binary, numbering, refusal},
        release::ClangRelease,
        runtime::Runtime,
    },
    pack::{Pack, PackFormat},
    target::{
        CodeObjectVersion, ComputeCapability, CudaRelease, Device, NvccFlags, NvidiaArch, PtxIsa, PtxPolicy, Target,
        TargetError, TargetPlan,
    },
};

/// Where each seed is damaged: at every so many bytes, so that a kind takes no more than its share of a second.
const PLACES: usize = 30;

/// Everything that the readers of a kind say of a file.
pub(crate) fn told(kind: &str, bytes: &[u8]) -> String {
    let mut told = Told::default();
    let text = String::from_utf8_lossy(bytes);
    match kind {
        "elf" => match Elf::parse(bytes) {
            Ok(elf) => {
                told.line("header", elf.header());
                for section in elf.sections() {
                    told.line(section.name, (section, elf.contents(section)));
                }
                for kind in [2, 11] {
                    for symbol in elf.symbols(kind).unwrap_or_default() {
                        let is = (symbol.is_undefined(), symbol.is_weak(), symbol.is_local());
                        told.line("symbol", (symbol, is));
                    }
                }
                told.line("notes", elf.notes());
                for symbols in [LinkSymbols::of_cubin(&elf), LinkSymbols::of_amd_object(&elf)] {
                    told.line(
                        "kernels",
                        symbols.as_ref().map(|found| found.kernels().collect::<Vec<_>>()),
                    );
                    told.line("symbols", symbols);
                }
                told.line("producer", (producer::of_cubin(&elf), producer::of_comment(&elf)));
            }
            Err(error) => told.line("error", error.to_string()),
        },
        "cubin" => {
            let read = cubin::read(bytes);
            told.line("chip", read.as_ref().map(cubin::CubinInfo::chip));
            for kernel in read.iter().flat_map(|read| &read.kernels) {
                for chip in ["sm_52", "sm_75", "sm_80", "sm_86", "sm_90", "sm_120"] {
                    let target: Target = chip.parse().expect(chip);
                    for (threads, dynamic) in [(32, 0), (160, 0), (200, 20_000), (1024, 100)] {
                        let occupancy = Occupancy::of(&target, kernel, threads, dynamic);
                        told.line(chip, occupancy.as_ref().map(|found| (found.percent(), picture(found))));
                        told.line(chip, occupancy);
                    }
                }
            }
            told.line("cubin", &read);
            if let Ok(mut read) = read {
                read.add_log(&ptx_log::parse(LOG));
                told.line("with a log", read.kernels);
            }
            told.line("joins", join_cubin::check(bytes));
            let renamed = [("k", "other")];
            told.line("joined", join_cubin::join_renamed(&[(bytes, &[]), (bytes, &renamed)]));
            told.line(
                "twice",
                join_cubin::join(&[bytes, bytes]).map_err(|error| error.to_string()),
            );
        }
        "hsaco" => {
            match Hsaco::read(bytes) {
                Ok(read) => {
                    for kernel in read.resources() {
                        told.line("kernel", kernel);
                        for target in ["gfx1030", "gfx942"] {
                            let target: Target = target.parse().expect(target);
                            told.line("facts", unit_facts(&target));
                            for threads in [64, 200, 1024] {
                                told.line("occupancy", Occupancy::of(&target, kernel, threads, 1000));
                            }
                            let usual = Occupancy::usual(&target, kernel);
                            told.line("picture", usual.as_ref().map(picture));
                        }
                    }
                    told.line("hsaco", read);
                }
                Err(error) => told.line("error", error.to_string()),
            }
            told.line("attributes", hsaco_attributes::kernel_metadata(bytes));
            let renamed = [("k", "other")];
            told.line("joined", join_object::join(&[(bytes, &[]), (bytes, &renamed)]));
        }
        "ptx" => {
            told.line("header", ptx::header(&text));
            told.line("producer", producer::of_ptx(&text));
            told.line("entries", ptx_entries::entries(bytes));
            told.line("symbols", ptx_symbols::symbols(bytes));
            told.line("sizes", ptx_sizes::largest_sizes(bytes));
            told.line("variables", ptx_components::declares_variables(&text));
            let components = ptx_components::components(&text);
            let parts = components.iter().flatten();
            told.line("canonical", parts.map(ptx_canonical::canonical).collect::<Vec<_>>());
            told.line("components", components);
        }
        "ptx_log" => {
            let log = ptx_log::parse(&text);
            told.line("k", log.function("k"));
            told.line("log", log);
            told.line("without times", ptx_log::without_times(&text));
            told.line("all", ptx_log::parse(LOG));
        }
        "fatbin" => match fatbin::read(bytes) {
            Ok(read) => {
                for entry in &read.entries {
                    told.line("is", (entry.is_debug(), entry.is_mercury(), entry.is_obfuscated()));
                    told.line("payload", entry.payload());
                }
                told.line("fatbin", read);
            }
            Err(error) => told.line("error", error.to_string()),
        },
        "bundle" => {
            told.line("is one", bundle::is_bundle(bytes));
            match bundle::read_all_within(bytes, 1 << 20) {
                Ok(bundles) => {
                    for bundle in &bundles {
                        for entry in bundle.entries() {
                            told.line("is", (entry.is_host(), entry.is_host_placeholder()));
                            told.line("found", entry.id.parse().ok().and_then(|id| bundle.find(&id)));
                        }
                    }
                    told.line("bundles", bundles);
                }
                Err(error) => told.line("error", error.to_string()),
            }
            if let Ok(id) = text.parse::<bundle::BundleId>() {
                told.line(
                    "id",
                    (id.triple(), id.target_id(), id.target(), id.normalized().to_string()),
                );
            }
        }
        "offload_binary" => match offload_binary::read(bytes) {
            Ok(binaries) => {
                for entry in binaries.iter().flat_map(|binary| &binary.entries) {
                    told.line("is", (entry.triple(), entry.arch(), entry.string("include-ptx")));
                    told.line(
                        "kinds",
                        (
                            entry.image_kind.to_string(),
                            entry.image_kind.number(),
                            entry.offload_kind.to_string(),
                        ),
                    );
                }
                told.line("binaries", binaries);
            }
            Err(error) => told.line("error", error.to_string()),
        },
        "archive" => {
            let (members, error) = archive::read(bytes);
            told.line("members", members);
            told.line("error", error.map(|error| error.to_string()));
        }
        "export_check" => {
            let report = check::check(bytes);
            told.line("complete", report.as_ref().map(|report| report.is_complete(&[])));
            let of = |release| {
                report
                    .as_ref()
                    .map(|report| (report.of(release), report.is_complete(&[release])))
            };
            ClangRelease::all().for_each(|release| told.line("of a release", of(release)));
            told.line("report", report);
        }
        "inspect" => {
            let inspection = inspect::inspect("input", bytes);
            if let Ok(inspection) = &inspection {
                told.line("problems", inspection.problems().collect::<Vec<_>>());
                told.line("names", inspect::file_names(inspection, "input"));
                let kernels = inspection.images.iter().flat_map(|image| &image.kernels);
                told.line(
                    "parameters",
                    kernels.map(inspect::Kernel::parameters).collect::<Vec<_>>(),
                );
                let (images, containers) = (&inspection.images, inspection.containers.len());
                told.line(
                    "images",
                    images
                        .iter()
                        .map(|image| inspection.image_name(image))
                        .collect::<Vec<_>>(),
                );
                told.line(
                    "containers",
                    (0..containers)
                        .map(|index| inspection.container_name(index))
                        .collect::<Vec<_>>(),
                );
                for device in ["sm_86", "sm_90", "gfx1030", "gfx942:sramecc+:xnack-"] {
                    let device: Device = device.parse().expect(device);
                    told.line(
                        "answer",
                        inspect::device::answer(inspection, device, PtxIsa::new(9, 0).ok()),
                    );
                }
                told.line(
                    "json",
                    serde_json::to_string(inspection).map_err(|error| error.to_string()),
                );
            }
            told.line("inspection", inspection.map_err(|error| error.to_string()));
            let mut pack = Pack::default();
            told.line("added", pack.add("input", bytes, None));
            told.line("pack", &pack);
            for format in [PackFormat::Fatbin, PackFormat::Bundle, PackFormat::Offload] {
                for compression in [Compression::None, Compression::Lz4, fatbin::ZSTD_DEFAULT] {
                    let packed = pack.write(format, compression).map_err(|error| error.to_string());
                    told.line("packed", packed);
                }
            }
        }
        "specs" => specs(&mut told, &text),
        "lto_ir" => told.line("arch", lto_ir::arch(bytes)),
        other => panic!("nothing reads {other}"),
    }
    told.0
}

/// What names of targets, policies, devices and nvcc's flags mean.
fn specs(told: &mut Told, text: &str) {
    told.line("arch", NvidiaArch::parse(text));
    told.line("versions", (text.parse::<PtxIsa>(), text.parse::<CudaRelease>()));
    told.line(
        "device",
        text.parse::<Device>()
            .map(|device| (device.to_string(), device.own_target())),
    );
    let policy = text.parse::<PtxPolicy>();
    told.line(
        "policy",
        policy
            .as_ref()
            .map(|policy| (policy.to_string(), policy.to_identifier())),
    );
    told.line("identifier", PtxPolicy::from_identifier(text));
    let targets = Target::parse_list(text).map_err(|error| error.to_string());
    for target in targets.iter().flatten() {
        told.line(&target.to_string(), unit_facts(target));
    }
    if let Ok(targets) = &targets {
        let policies = [PtxPolicy::None, PtxPolicy::Newest, PtxPolicy::All].map(Some);
        for policy in policies.iter().chain([&None, &policy.ok()]) {
            let plan = TargetPlan::from_targets(targets, policy.as_ref());
            told.line("plan", plan.map_err(|error| error.to_string()));
        }
    }
    told.line("targets", targets);
    let mut flags = NvccFlags::default();
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("a", rest)) if !rest.starts_with("rch") => flags.arch.push(rest.to_owned()),
            Some(("c", rest)) if !rest.starts_with("ode") => flags.code.push(rest.to_owned()),
            _ => flags.gencode.push(line.to_owned()),
        }
    }
    let words = |error: TargetError| error.to_string();
    told.line("flags", (flags.is_empty(), flags.arch().map_err(words)));
    for cuda in [CudaRelease::new(11, 8), CudaRelease::new(13, 0)] {
        for devices in [&[][..], &[ComputeCapability::new(9, 0), ComputeCapability::new(8, 6)]] {
            told.line("nvcc", flags.plan(None, cuda, devices).map_err(words));
        }
    }
}

/// Words of nvcc's flags and of targets, of which every two are put together.
const SPECS: &[&str] = &[
    "aall",
    "aall-major",
    "anative",
    "asm_80",
    "asm_90a",
    "acompute_75",
    "asm_100f",
    "asm_52",
    "asm_99",
    "csm_80",
    "csm_86",
    "ccompute_80",
    "csm_90a,compute_90a",
    "clto_80",
    "arch=compute_80,code=sm_86",
    "arch=compute_80,code=[sm_80,compute_80]",
    "arch=compute_90a,code=sm_90",
    "arch=compute_100f,code=sm_103",
    "arch=compute_90,code=compute_80",
    "arch=sm_80,code=sm_80",
    "sm_80,sm_90",
    "sm_90a,compute_90",
    "compute_80+ptx75",
    "sm_100f,gfx942",
    "gfx90a:xnack+:sramecc-",
    "gfx11-generic,gfx1100",
    "gfx9-4-generic,gfx942",
    "8.6",
    "13.0",
    "all",
    "newest",
    "none",
    "compute_80,newest",
    "gfx942:sramecc+",
];

/// What ids of bundles mean to each other, and releases of clang; bundles and fat binaries of every form.
fn bundles() -> String {
    const IDS: [&str; 12] = [
        "host-x86_64-unknown-linux-gnu-",
        "host-x86_64-unknown-linux-gnu",
        "hip-amdgcn-amd-amdhsa--gfx942",
        "hipv4-amdgcn-amd-amdhsa--gfx942",
        "hipv4-amdgcn-amd-amdhsa-unknown-gfx942",
        "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+:sramecc-",
        "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc-:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "openmp-amdgcn-amd-amdhsa--gfx942",
        "openmp-nvptx64-nvidia-cuda--sm_80",
        "sycl-spir64-unknown-unknown-unknown-",
    ];
    let mut told = Told::default();
    let ids: Vec<BundleId> = IDS.iter().filter_map(|id| id.parse().ok()).collect();
    for one in &ids {
        for other in &ids {
            told.line(
                &one.to_string(),
                (other.to_string(), one.means_same(other), one.serves(other)),
            );
        }
    }
    for release in ClangRelease::all() {
        told.line("binaries", (newest_offload_binary(release), numbering(release)));
        for form in [
            ImageForm::RelocatableCubin,
            ImageForm::LinkedCubin,
            ImageForm::Ptx,
            ImageForm::AmdLinked,
            ImageForm::AmdObject(CodeObjectVersion::V5),
            ImageForm::AmdObject(CodeObjectVersion::V6),
            ImageForm::Bitcode,
        ] {
            told.line("refused", refusal(release, form));
        }
        for other in ClangRelease::all() {
            for runtime in [Runtime::Cuda, Runtime::Hip, Runtime::OpenMp] {
                let layouts = choose(&[release, other], runtime);
                told.line("serves", layouts.as_ref().map(LayoutSet::serves));
                told.line("layouts", layouts.map_err(|error| error.to_string()));
            }
        }
    }
    for (debug, identifier, options) in [
        (true, None, " -O3 --compile-only \n"),
        (false, Some("id"), "-O1"),
        (true, Some(""), ""),
    ] {
        let ptx = nvidia::store_kernel("7.8", "sm_80");
        let image = fatbin::Image::new(fatbin::Content::Ptx(&ptx), "sm_80").expect("a chip");
        for compression in [Compression::None, Compression::Lz4, fatbin::ZSTD_DEFAULT] {
            let image = fatbin::Image {
                debug,
                identifier,
                options,
                compression,
                ..image
            };
            let written = fatbin::write(&[image, image]).expect("a driver could load it");
            told.0 += &self::told("fatbin", &written);
            told.0 += &self::told("inspect", &written);
            // Every byte of the container's and the first entry's headers, and kinds of images.
            for place in 0..128 {
                for bits in [0x01, 0x20, 0x80, 0xa0] {
                    let mut changed = written.clone();
                    changed[place] ^= bits;
                    told.0 += &self::told("fatbin", &changed);
                }
            }
            for kind in 0..0x48 {
                let mut changed = written.clone();
                changed[16] = kind;
                told.0 += &self::told("fatbin", &changed);
                if compression == Compression::None {
                    told.0 += &self::told("inspect", &changed);
                }
            }
        }
    }
    let images: Vec<BundleImage<'_>> = [&IDS[..1], &IDS[8..11], &IDS[5..6]]
        .concat()
        .iter()
        .filter_map(|id| {
            Some(BundleImage {
                id: id.parse().ok()?,
                bytes: id.as_bytes(),
            })
        })
        .collect();
    let texts = ["ll", "s", "d", "i", "ii", "cui", "hipi", "o"].map(Comment::of_type);
    let mut forms: Vec<BundleOptions> = texts.into_iter().flatten().map(BundleOptions::text).collect();
    forms.extend([BundleOptions::default(), BundleOptions::packed()]);
    for version in [CompressionVersion::V1, CompressionVersion::V2, CompressionVersion::V3] {
        // What zlib's method gives depends on the implementation that flate2 has in a build of the whole workspace.
        let compression = Some(bundle::Compression {
            version,
            method: CompressionMethod::Zstd,
            level: 3,
        });
        forms.push(BundleOptions {
            compression,
            ..BundleOptions::packed()
        });
    }
    for form in &forms {
        match bundle::write(&images, form) {
            Ok(bytes) => {
                told.line("written", &bytes);
                told.0 += &self::told("bundle", &[&bytes[..], &bytes].concat());
                told.0 += &damaged("bundle", &bytes);
            }
            Err(error) => told.line("refused", error.to_string()),
        }
    }
    told.0
}

/// What `ptxas` printed of kernels.
const LOG: &str = "\
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 8 registers, used 1 barriers, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'spilling' for 'sm_80'
ptxas info    : Function properties for spilling
    160 bytes stack frame, 140 bytes spill stores, 148 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers, 8 bytes lmem, 360 bytes cmem[0]
";

/// What divides a module into kernels, and what holds them together.
const PTX: &str = r#".version 8.0
.target sm_90, debug
.address_size 64
.func (.param .b32 r) twice(.param .b32 x);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .b8 tile[64], other_tile[4];
.global .align 4 .b32 counter = 1, limit = {7, (3)}, after;
.global .align 8 .u64 table[3] = {counter, (twice), missing}, last = counter;
.extern .global .align 4 .b32 far[], farther[4];
.visible .const .b32 unused[2][3] = {{1, 2, 3}, {4, 5, 6}};
.func (.param .b32 r) twice(.param .b32 x) { ret; }
.visible .entry a(.param .u64 p, .param .align 8 .b8 s[40]) .maxntid 32, 1, 1 .pragma "nounroll"; { call (r), twice, (x); ret; }
// comment of b }
/* and
   of more { */
.entry b(.param .u64 p) .reqntid 64 .minnctapersm 2 .maxnreg 40 { { st.shared.u32 [tile], 1; } ld.global.b32 r, [limit]; ret; }
.weak .entry c() .explicitcluster .reqnctapercluster 2, 1, 1 { p: .callprototype ()_ (); call %rd1, (), p; ret; }
.entry d() { .reg .b32 %r<70>; .local .align 16 .b8 depot[256]; call (r), vprintf, (a, b); $L: bra $L; ret; }
"#;

#[derive(Default)]
pub(crate) struct Told(pub(crate) String);

impl Told {
    pub(crate) fn line(&mut self, name: &str, value: impl Debug) {
        writeln!(self.0, "{name}: {value:?}").expect("a string grows");
    }
}

pub(crate) fn short(digest: Md5) -> String {
    let bytes = digest.finalize();
    bytes.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What is told of damaged copies of a file.
fn damaged(kind: &str, good: &[u8]) -> String {
    damaged_by(&|bytes| told(kind, bytes), good, PLACES)
}

/// What is told of damaged copies of a file: cut off, and with a byte that is another, at places all over it, but not in what zstd
/// compressed: its decoder for x86-64 notices other damages than that in C.
pub(crate) fn damaged_by(told: &dyn Fn(&[u8]) -> String, good: &[u8], places: usize) -> String {
    const ZSTD: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
    let compressed = good.windows(ZSTD.len()).position(|bytes| bytes == ZSTD);
    let compressed = compressed.unwrap_or(good.len());
    let mut digest = Md5::new();
    for place in (0..good.len()).step_by((good.len() / places).max(1)) {
        digest.update(told(&good[..place]));
        if place >= compressed {
            continue;
        }
        let mut changed = good.to_vec();
        for value in [good[place] ^ 0x01, good[place].wrapping_add(0x10), 0xff] {
            changed[place] = value;
            digest.update(told(&changed));
        }
    }
    short(digest)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the checkout has seeds")
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    files.sort();
    files
}

#[test]
fn seeds_are_read_as_before() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = root.join("tests/seeds.txt");
    let expected = fs::read_to_string(&list).unwrap_or_default();
    let mut now = String::new();
    for folder in files(&root.join("../../fuzz/corpus")) {
        let kind = folder
            .file_name()
            .expect("it has a name")
            .to_string_lossy()
            .into_owned();
        for file in files(&folder) {
            let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
            let bytes = fs::read(&file).expect("seeds can be read");
            let told = told(&kind, &bytes);
            let whole = short(Md5::new_with_prefix(&told));
            let line = format!("{kind}/{name} {whole} {}\n", damaged(&kind, &bytes));
            if !expected.contains(&line) && std::env::var_os("GPULOWER_BLESS").is_none() {
                let words: String = told.chars().take(4000).collect();
                panic!("{kind}/{name}, or a damaged copy of it, is read as something else: {line}{words}");
            }
            now += &line;
        }
    }
    let mut digest = Md5::new();
    for one in SPECS {
        for other in SPECS {
            digest.update(told("specs", format!("{one}\n{other}").as_bytes()));
        }
        digest.update(told("specs", one.as_bytes()));
    }
    digest.update(bundles());
    for text in [
        nvidia::rich_module("9.0", "sm_90"),
        nvidia::recursive_module(),
        nvidia::store_kernel("7.8", "sm_80"),
        PTX.to_owned(),
    ] {
        digest.update(told("ptx", text.as_bytes()));
        digest.update(damaged("ptx", text.as_bytes()));
    }
    // Tags and values of the head of LTO-IR: sm_90a.
    let mut lto_ir = [&lto_ir::MAGIC[..], &[0; 12], &[0x28, 0, 0, 0], &[0; 4]].concat();
    lto_ir.extend([1, 0, 0x84, 3, 0x20, 0, 1, 0, 0, 0, 0, 0, 9, 0, 9, 0]);
    assert_eq!(lto_ir::arch(&lto_ir), Some((90, true)));
    digest.update(damaged("lto_ir", &lto_ir));
    let line = format!("specs, pairs of {} {}\n", SPECS.len(), short(digest));
    assert!(
        expected.contains(&line) || std::env::var_os("GPULOWER_BLESS").is_some(),
        "{line}"
    );
    now += &line;
    if expected != now && std::env::var_os("GPULOWER_BLESS").is_some() {
        fs::write(&list, &now).expect("the checkout can be written to");
    }
    assert!(now.lines().count() > 50, "{now}");
}
