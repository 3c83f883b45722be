//! The bundle writer and reader against `clang-offload-bundler` 22, in both directions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpulower_image::container::bundle::{
    Bundle, BundleForm, BundleId, BundleImage, BundleOptions, Comment, Compression, CompressionMethod,
    CompressionVersion, OffloadKind, from_sections, read, read_all, write,
};
use gpulower_image::image::elf::Elf;
use gpulower_testing::amd;

/// Every type that `-type` of the tool takes for bundling, and the form that it gives.
const TYPES: [&str; 11] = ["o", "bc", "gch", "ast", "ll", "s", "d", "i", "ii", "cui", "hipi"];

const VERSIONS: [CompressionVersion; 3] = [CompressionVersion::V1, CompressionVersion::V2, CompressionVersion::V3];

fn form(kind: &str) -> BundleForm {
    Comment::of_type(kind).map_or(BundleForm::Binary, BundleForm::Text)
}

fn id(text: &str) -> BundleId {
    text.parse().unwrap()
}

/// A folder with the tool.
struct Bundler {
    directory: tempfile::TempDir,
    tool: PathBuf,
}

impl Bundler {
    fn new() -> Self {
        let bin =
            std::env::var_os("GPULOWER_LLVM_BIN").map_or_else(|| PathBuf::from("/usr/lib/llvm-22/bin"), PathBuf::from);
        let tool = bin.join("clang-offload-bundler");
        assert!(
            tool.exists(),
            "this test needs `clang-offload-bundler` of LLVM 22, and {} does not exist: install the package \
             clang-tools-22, or set GPULOWER_LLVM_BIN to the directory of the tools",
            tool.display()
        );
        let directory = tempfile::tempdir().unwrap();
        Self { directory, tool }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn try_run(&self, environment: &[(&str, &str)], arguments: &[String]) -> Output {
        let mut command = Command::new(&self.tool);
        for name in ["COMPRESS", "COMPRESSION_LEVEL", "VERBOSE", "IGNORE_ENV_VAR"] {
            command.env_remove(format!("OFFLOAD_BUNDLER_{name}"));
        }
        command.env_remove("COMPRESSED_BUNDLE_FORMAT_VERSION");
        command.envs(environment.iter().copied()).args(arguments);
        command.output().unwrap()
    }

    fn run(&self, environment: &[(&str, &str)], arguments: &[String]) -> String {
        let output = self.try_run(environment, arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {message}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the tool bundles of `images`.
    fn bundle(&self, kind: &str, more: &[&str], environment: &[(&str, &str)], images: &[(&str, &[u8])]) -> Vec<u8> {
        let out = self.path("bundled");
        let ids: Vec<&str> = images.iter().map(|(id, _)| *id).collect();
        let mut arguments = vec![
            format!("-type={kind}"),
            format!("-targets={}", ids.join(",")),
            format!("-output={}", out.display()),
        ];
        arguments.extend(more.iter().map(ToString::to_string));
        for (index, (_, bytes)) in images.iter().enumerate() {
            let input = self.file(&format!("input{index}"), bytes);
            arguments.push(format!("-input={}", input.display()));
        }
        self.run(environment, &arguments);
        std::fs::read(out).unwrap()
    }

    fn list(&self, kind: &str, bundle: &[u8]) -> BTreeSet<String> {
        let input = self.file("bundle", bundle);
        let arguments = [
            format!("-type={kind}"),
            "-list".to_owned(),
            format!("-input={}", input.display()),
        ];
        self.run(&[], &arguments).lines().map(str::to_owned).collect()
    }

    /// What the tool extracts for the ids, or what it says about why not.
    fn unbundle(&self, kind: &str, bundle: &[u8], ids: &[&str]) -> Result<Vec<Vec<u8>>, String> {
        let input = self.file("bundle", bundle);
        let outputs: Vec<PathBuf> = (0..ids.len())
            .map(|index| self.path(&format!("output{index}")))
            .collect();
        let mut arguments = vec![
            format!("-type={kind}"),
            "-unbundle".to_owned(),
            format!("-targets={}", ids.join(",")),
            format!("-input={}", input.display()),
        ];
        arguments.extend(outputs.iter().map(|output| format!("-output={}", output.display())));
        let output = self.try_run(&[], &arguments);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(outputs.iter().map(|path| std::fs::read(path).unwrap()).collect())
    }
}

/// Entries that clang writes for HIP, two of them with real code objects.
fn hip_images() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("host-x86_64-unknown-linux-gnu-", Vec::new()),
        (
            "hipv4-amdgcn-amd-amdhsa--gfx942",
            amd::hsaco(amd::KERNELS, "gfx942", "", 5),
        ),
        (
            "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
            amd::hsaco(amd::KERNELS, "gfx90a", "-xnack", 5),
        ),
        ("hip-amdgcn-amd-amdhsa--gfx9-4-generic", b"odd".to_vec()),
    ]
}

fn text_images() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "host-x86_64-unknown-linux-gnu-",
            b"define void @host() { ret void }\n".to_vec(),
        ),
        ("hipv4-amdgcn-amd-amdhsa--gfx942", b"no line break at the end".to_vec()),
        ("hip-amdgcn-amd-amdhsa--gfx1100", Vec::new()),
        (
            "openmp-amdgcn-amd-amdhsa--gfx906",
            b"\n\n; \xff\xfe __CLANG_OFFLOAD_BUNDLE__ \r\n\0\n".to_vec(),
        ),
    ]
}

fn images_of(kind: &str) -> Vec<(&'static str, Vec<u8>)> {
    if Comment::of_type(kind).is_some() {
        text_images()
    } else {
        hip_images()
    }
}

fn borrowed<'a>(images: &'a [(&'a str, Vec<u8>)]) -> Vec<(&'a str, &'a [u8])> {
    images.iter().map(|(id, bytes)| (*id, bytes.as_slice())).collect()
}

fn ours(images: &[(&str, Vec<u8>)], options: &BundleOptions) -> Vec<u8> {
    let images: Vec<BundleImage<'_>> = images
        .iter()
        .map(|(text, bytes)| BundleImage { id: id(text), bytes })
        .collect();
    write(&images, options).unwrap()
}

/// The entries of a bundle in the order of the file.
fn entries(bundle: &Bundle<'_>) -> Vec<(String, Vec<u8>)> {
    bundle
        .entries()
        .map(|entry| (entry.id.to_owned(), entry.bytes.to_vec()))
        .collect()
}

fn owned(images: &[(&str, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    images
        .iter()
        .map(|(id, bytes)| ((*id).to_owned(), bytes.clone()))
        .collect()
}

fn with(kind: &str, alignment: u32, compression: Option<Compression>) -> BundleOptions {
    BundleOptions {
        form: form(kind),
        alignment,
        compression,
    }
}

#[test]
fn same_bytes_as_the_tool_for_every_type_and_alignment() {
    let bundler = Bundler::new();
    for kind in TYPES {
        let images = images_of(kind);
        for alignment in [1, 8, 4096] {
            let align = format!("-bundle-align={alignment}");
            let expected = bundler.bundle(kind, &[&align], &[], &borrowed(&images));
            let bytes = ours(&images, &with(kind, alignment, None));
            assert!(bytes == expected, "{kind}, aligned to {alignment}");
            let bundle = read(&expected).unwrap();
            assert_eq!(entries(&bundle), owned(&images), "{kind}");
            assert_eq!((bundle.form, bundle.compression, bundle.offset), (form(kind), None, 0));
            assert_eq!(bundle.size, expected.len() as u64);
        }
    }
}

#[test]
fn hip_bundles_are_those_of_clang() {
    let target = "gfx942".parse().unwrap();
    let object = amd::hsaco(amd::KERNELS, "gfx942", "", 5);
    let bytes = write(
        &[BundleImage::host(), BundleImage::hip(&target, &object)],
        &BundleOptions::default(),
    )
    .unwrap();
    // The ids and the alignment that clang's driver passes for `-x hip --offload-arch=gfx942`.
    let bundler = Bundler::new();
    let images: [(&str, &[u8]); 2] = [
        ("host-x86_64-unknown-linux-gnu", &[]),
        ("hipv4-amdgcn-amd-amdhsa--gfx942", &object),
    ];
    assert!(bytes == bundler.bundle("o", &["-bundle-align=4096"], &[], &images));

    let bundle = read(&bytes).unwrap();
    let offsets: Vec<u64> = bundle.entries().map(|entry| entry.offset).collect();
    assert_eq!(offsets, [4096, 4096]);
    let host = bundle.entries().next().unwrap();
    assert!(host.is_host() && !host.is_host_placeholder() && host.bytes.is_empty());
    let entry = bundle.find(&id("hip-amdgcn-amd-amdhsa-unknown-gfx942:xnack+")).unwrap();
    assert_eq!(entry.bytes, object);
    assert_eq!(bundle.find(&id("hip-amdgcn-amd-amdhsa--gfx950")), None);
}

#[test]
fn an_exact_entry_is_found_before_one_that_also_serves() {
    let images = [
        ("openmp-amdgcn-amd-amdhsa--gfx90a", b"open".to_vec()),
        ("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", b"on".to_vec()),
        ("hip-amdgcn-amd-amdhsa--gfx90a:xnack-", b"off".to_vec()),
    ];
    let bytes = ours(&images, &BundleOptions::packed());
    let bundle = read(&bytes).unwrap();
    let found = |wanted| bundle.find(&id(wanted)).map(|entry| entry.bytes.to_vec());
    assert_eq!(found("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"), Some(b"off".to_vec()));
    assert_eq!(
        found("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+"),
        Some(b"on".to_vec())
    );
    assert_eq!(found("openmp-amdgcn-amd-amdhsa--gfx90a:xnack-"), Some(b"open".to_vec()));
    assert_eq!(found("hipv4-amdgcn-amd-amdhsa--gfx90a"), None);
}

#[test]
fn the_tool_reads_what_we_write() {
    let bundler = Bundler::new();
    let mut compressions = vec![None];
    for version in VERSIONS {
        for (method, level) in [(CompressionMethod::Zlib, 6), (CompressionMethod::Zstd, 3)] {
            let compression = Compression { version, method, level };
            compressions.push(Some(compression));
        }
    }
    for kind in ["o", "bc", "ll", "s", "i"] {
        let images = images_of(kind);
        let ids: Vec<&str> = images.iter().map(|(id, _)| *id).collect();
        for compression in &compressions {
            let bytes = ours(&images, &with(kind, 4096, *compression));
            let listed = bundler.list(kind, &bytes);
            assert_eq!(
                listed,
                ids.iter().map(ToString::to_string).collect(),
                "{kind}, {compression:?}"
            );
            let extracted = bundler.unbundle(kind, &bytes, &ids).unwrap();
            let expected: Vec<Vec<u8>> = images.iter().map(|(_, bytes)| bytes.clone()).collect();
            assert!(extracted == expected, "{kind}, {compression:?}");
        }
    }
}

#[test]
fn we_read_what_the_tool_compresses() {
    let bundler = Bundler::new();
    for kind in ["o", "bc", "ll", "s", "i"] {
        let images = images_of(kind);
        let plain = bundler.bundle(kind, &["-bundle-align=4096"], &[], &borrowed(&images));
        let environments: [(&[(&str, &str)], _); 3] = [
            (&[], CompressionVersion::V3),
            (&[("COMPRESSED_BUNDLE_FORMAT_VERSION", "2")], CompressionVersion::V2),
            (&[("COMPRESSED_BUNDLE_FORMAT_VERSION", "3")], CompressionVersion::V3),
        ];
        for (environment, version) in environments {
            for level in [None, Some(1), Some(3), Some(9), Some(19), Some(22)] {
                let option = level.map(|level| format!("-compression-level={level}"));
                let mut options = vec!["-bundle-align=4096", "-compress"];
                options.extend(option.as_deref());
                let bytes = bundler.bundle(kind, &options, environment, &borrowed(&images));
                let bundle = read(&bytes).unwrap();
                let header = bundle.compression.unwrap();
                assert_eq!((header.version, header.method), (version, CompressionMethod::Zstd));
                assert_eq!(header.uncompressed_size, plain.len() as u64);
                assert_eq!((bundle.form, bundle.size), (form(kind), bytes.len() as u64));
                assert!(bundle.content == plain, "{kind}, {version:?}, level {level:?}");
                assert_eq!(entries(&bundle), owned(&images));

                let level = level.unwrap_or_else(|| Compression::default().level);
                let compression = Compression {
                    version,
                    method: CompressionMethod::Zstd,
                    level,
                };
                let ours = ours(&images, &with(kind, 4096, Some(compression)));
                // Which bytes zstd gives is up to its version: the tool's may be another one than ours. At the levels that
                // search least, versions 1.5.4 and 1.5.7 agree on images as small as these.
                if level <= 3 {
                    assert!(
                        ours == bytes,
                        "{kind}, {version:?}, level {level}: other bytes than the tool's; is its libzstd (see ldd) far \
                         from version 1.5.7?"
                    );
                }
                let (our_header, their_header) = (header_without_size(&ours), header_without_size(&bytes));
                assert_eq!(our_header, their_header, "{kind}, {version:?}, level {level}");
            }
        }
    }
}

/// The header of a compressed bundle without its size, and the beginning of its zstd frame: magic, descriptor, and the
/// first byte of the size.
fn header_without_size(bytes: &[u8]) -> Vec<u8> {
    let (size, frame) = if bytes[4] == 2 { (8..12, 24) } else { (8..16, 32) };
    let mut header = bytes[..frame + 6].to_vec();
    header.drain(size);
    header
}

#[test]
fn every_version_and_method_is_read_as_written() {
    let images = hip_images();
    let plain = ours(&images, &BundleOptions::default());
    for version in VERSIONS {
        for (method, levels) in [
            (CompressionMethod::Zlib, vec![0, 1, 6, 9]),
            (CompressionMethod::Zstd, vec![-5, 1, 3, 22]),
        ] {
            for level in levels {
                let compression = Compression { version, method, level };
                let bytes = ours(&images, &with("o", 4096, Some(compression)));
                let bundle = read(&bytes).unwrap();
                let header = bundle.compression.unwrap();
                assert_eq!((header.version, header.method), (version, method));
                assert_eq!(header.uncompressed_size, plain.len() as u64);
                assert_eq!(bundle.size, bytes.len() as u64);
                assert!(bundle.content == plain);
            }
        }
    }
}

#[test]
fn images_share_what_they_have_in_common() {
    // Bytes that do not compress, twice: farther apart than zstd looks back at this level without long distance matching.
    let mut state = 1u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(4 << 20)
    .collect();
    let images = [
        BundleImage::hip(&"gfx942".parse().unwrap(), &bytes),
        BundleImage::hip(&"gfx950".parse().unwrap(), &bytes),
    ];
    let compressed = write(&images, &with("o", 4096, Some(Compression::default()))).unwrap();
    assert!(compressed.len() < 5 << 20, "{}", compressed.len());
    assert!(read(&compressed).unwrap().entries().all(|entry| entry.bytes == bytes));
}

#[test]
fn bundles_behind_one_another_are_a_sequence() {
    let images = hip_images();
    let mut bytes = Vec::new();
    let mut starts = Vec::new();
    let mut options = vec![BundleOptions::default(), BundleOptions::packed()];
    for version in VERSIONS {
        for (method, level) in [(CompressionMethod::Zlib, 6), (CompressionMethod::Zstd, 3)] {
            options.push(with("o", 4096, Some(Compression { version, method, level })));
        }
    }
    for options in &options {
        starts.push(bytes.len() as u64);
        bytes.extend(ours(&images, options));
        // Some touch, some are aligned as a linker does.
        if starts.len() % 2 == 0 {
            bytes.resize(bytes.len().next_multiple_of(4096), 0);
        }
    }
    let bundles = read_all(&bytes).unwrap();
    assert_eq!(bundles.iter().map(|bundle| bundle.offset).collect::<Vec<_>>(), starts);
    for bundle in &bundles {
        assert_eq!(entries(bundle), owned(&images));
    }
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.contains("another bundle follows"), "{error}");
}

#[test]
fn ids_are_normalised_as_the_tool_does() {
    let bundler = Bundler::new();
    let hosts = [
        "host-x86_64-unknown-linux-gnu",
        "host-x86_64-unknown-linux-gnu-",
        "host-x86_64-unknown-linux--",
        "host-x86_64--linux-",
        "host-x86_64-pc-linux-gnu",
        "host-aarch64-unknown-linux-musl",
    ];
    let devices = [
        "hip-amdgcn-amd-amdhsa--gfx90a",
        "hipv4-amdgcn-amd-amdhsa-unknown-gfx90a:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "openmp-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
        "hip-spirv64-amd-amdhsa--amdgcnspirv",
        "openmp-nvptx64-nvidia-cuda--sm_80",
        "openmp-x86_64-unknown-linux-gnu",
    ];
    for host in hosts {
        for device in devices {
            let bytes = bundler.bundle("bc", &[], &[], &[(host, b"host"), (device, b"device")]);
            let bundle = read(&bytes).unwrap();
            for (entry, written) in bundle.entries().zip([host, device]) {
                assert_eq!(entry.id, id(written).normalized());
                assert!(entry.parsed.unwrap().means_same(&id(written)), "{written}");
            }
        }
    }
}

#[test]
fn an_id_serves_where_the_tool_extracts() {
    let bundler = Bundler::new();
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx90a",
        "hipv4-amdgcn-amd-amdhsa--gfx90a",
        "openmp-amdgcn-amd-amdhsa--gfx90a",
        "hip-amdgcn-amd-amdhsa-unknown-gfx90a",
        "hip-amdgcn-unknown-amdhsa--gfx90a",
        "hip-amdgcn-amd-amdhsa--gfx942",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "hip-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+",
        "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
        "host-x86_64-unknown-linux-gnu",
        "host-x86_64-unknown-linux--",
        "host-x86_64-pc-linux-gnu-",
    ];
    for stored in ids {
        let images = [(stored, b"stored".to_vec())];
        let bytes = ours(&images, &BundleOptions::packed());
        for wanted in ids {
            let extracted = bundler.unbundle("bc", &bytes, &[wanted]);
            assert_eq!(
                id(stored).serves(&id(wanted)),
                extracted.is_ok(),
                "{stored} for {wanted}: {extracted:?}"
            );
        }
    }
}

#[test]
fn sections_of_a_host_object_are_read() {
    let bundler = Bundler::new();
    let host = amd::run(
        "llc",
        &["-mtriple=x86_64-unknown-linux-gnu", "-filetype=obj", "-o", "-", "-"],
        b"define void @f() { ret void }",
    );
    let device = amd::object(amd::KERNELS, "gfx90a", "", 5);
    let ids = ["host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--gfx90a"];
    let bytes = bundler.bundle("o", &[], &[], &[(ids[0], &host), (ids[1], &device)]);
    let elf = Elf::parse(&bytes).unwrap();
    let sections = elf.sections().iter();
    let entries = from_sections(sections.map(|section| (section.name, elf.contents(section).unwrap())));
    assert_eq!(entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), ids);
    assert!(entries[0].is_host_placeholder() && !entries[1].is_host_placeholder());
    assert_eq!(entries[1].bytes, device);
    assert_eq!(entries[1].parsed.as_ref().unwrap().kind(), OffloadKind::Hip);
    assert_eq!(bundler.list("o", &bytes), ids.map(str::to_owned).into());
}

#[test]
fn a_real_driver_bundle_is_read() {
    let bundler = Bundler::new();
    let source = bundler.file("k.hip", b"__attribute__((global)) void k(int *p) { *p = 1; }\n");
    let clang = amd::tool("clang");
    let compile = |more: &[&str], out: &Path| {
        let mut command = Command::new(&clang);
        command.args([
            "-x",
            "hip",
            "--cuda-device-only",
            "-nogpulib",
            "-nogpuinc",
            "--gpu-bundle-output",
        ]);
        command.args(["--offload-arch=gfx942", "--offload-arch=gfx90a:xnack-", "-O1"]);
        let output = command.args(more).arg(&source).arg("-o").arg(out).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(out).unwrap()
    };
    for (more, compressed) in [(&[][..], false), (&["--offload-compress"][..], true)] {
        let bytes = compile(more, &bundler.path("k.hipfb"));
        let bundle = read(&bytes).unwrap();
        assert_eq!(bundle.compression.is_some(), compressed);
        let found: Vec<(String, bool)> = bundle
            .entries()
            .map(|entry| (entry.parsed.unwrap().to_string(), entry.bytes.starts_with(b"\x7fELF")))
            .collect();
        let expected = [
            ("host-x86_64-unknown-linux-gnu-", false),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx942", true),
        ];
        let expected = expected.map(|(id, elf)| (id.to_owned(), elf));
        let sorted = |mut entries: Vec<(String, bool)>| {
            entries.get_mut(1..).unwrap_or_default().sort();
            entries
        };
        assert_eq!(sorted(found), expected);
        assert!(bundle.entries().all(|entry| entry.offset % 4096 == 0));
        // We write the same from the same images.
        let images: Vec<BundleImage<'_>> = bundle
            .entries()
            .map(|entry| BundleImage {
                id: entry.parsed.unwrap(),
                bytes: entry.bytes,
            })
            .collect();
        assert!(bundle.content == write(&images, &BundleOptions::default()).unwrap());
    }
}
