//! nvFatbin with LTO-IR of nvcc, against `fatbinary`, `cuobjdump` and nvJitLink.

use std::path::Path;

use super::nvfatbin::{LtoEntry, LtoIr, load, write_with_lto};
use crate::FileKind;
use crate::bridge::nvfatbin::{Input, InputKind, NvFatbin};
use crate::bridge::nvjitlink::{self, NvJitLink};
use crate::bridge::vendor_error::VendorError;
use crate::container::fatbin::{self, Compression, Content, Image, ZSTD_DEFAULT};
use crate::image::cubin;
use crate::target::NvidiaArch;
use crate::toolkit::{Search, Toolkit};
use gpulower_testing::nvidia::{nvcc, part, relocatable_cubin, run, store_kernel, toolkit};

const SOURCE: &str = "extern \"C\" __device__ int thrice(int a) { return 3 * a; }\n\
                      extern \"C\" __global__ void k(int *p) { p[threadIdx.x] = thrice(p[threadIdx.x]); }\n";

/// LTO-IR of [`SOURCE`] for `90`, `90a`.
fn lto_ir(number: &str) -> Vec<u8> {
    let generate = format!("-gencode=arch=compute_{number},code=lto_{number}");
    nvcc(SOURCE, &["-dc", "-ltoir", &generate])
}

fn arch(name: &str) -> NvidiaArch {
    NvidiaArch::parse(name).unwrap()
}

fn plain<'a>(bytes: &'a [u8], name: &str) -> LtoIr<'a> {
    LtoIr {
        bytes,
        arch: arch(name),
        identifier: None,
        options: "",
        debug: false,
        compression: ZSTD_DEFAULT,
    }
}

fn library() -> NvFatbin {
    let toolkit = Toolkit::discover(&Search::nowhere().with_cuda(toolkit()));
    load(&toolkit).unwrap()
}

/// Runs NVIDIA's `fatbinary` on files and returns what it wrote.
fn fatbinary(directory: &Path, more: &[&str], images: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let out = directory.join("expected.fatbin");
    let mut arguments = vec![format!("--create={}", out.display()), "-64".to_owned()];
    arguments.extend(more.iter().map(ToString::to_string));
    for (index, (kind, sm, bytes)) in images.iter().enumerate() {
        let path = directory.join(format!("image{index}"));
        std::fs::write(&path, bytes).unwrap();
        arguments.push(format!("--image3=kind={kind},sm={sm},file={}", path.display()));
    }
    let arguments: Vec<&std::ffi::OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    run("fatbinary", &arguments);
    std::fs::read(out).unwrap()
}

#[test]
fn same_bytes_as_fatbinary() {
    let library = library();
    let directory = tempfile::tempdir().unwrap();
    for number in ["90", "90a", "100f"] {
        let chip = format!("sm_{number}");
        let lto = lto_ir(number);
        let isa = if number == "100f" { "8.8" } else { "8.0" };
        let cubin = relocatable_cubin(&store_kernel(isa, &chip), &chip);
        let files: [(&str, &str, &[u8]); 2] = [("nvvm", number, &lto), ("elf", number, &cubin)];
        for (flags, compression) in [
            (&["--compress=false"][..], Compression::None),
            (&["--compress-all"], ZSTD_DEFAULT),
            (
                &["--compress-all", "--compress-mode=size"],
                Compression::Zstd { level: 19 },
            ),
        ] {
            let flags = [flags, &["--ident=k.cu"]].concat();
            let expected = fatbinary(directory.path(), &flags, &files);
            let image = Image {
                compression,
                identifier: Some("k.cu"),
                ..Image::new(Content::Cubin(&cubin), &chip).unwrap()
            };
            let entries = [
                LtoEntry::LtoIr(LtoIr {
                    compression,
                    identifier: Some("k.cu"),
                    ..plain(&lto, &chip)
                }),
                LtoEntry::Image(image),
            ];
            let ours = write_with_lto(&library, &entries).unwrap();
            assert!(ours == expected, "{chip} {flags:?}");
        }
    }
}

#[test]
fn nvjitlink_and_cuobjdump_read_it() {
    let library = library();
    assert!(library.version() >= Some((12, 4)));
    let jit = NvJitLink::open(&part("lib/libnvJitLink.so.13")).unwrap();
    let lto = lto_ir("90");
    let ptx = store_kernel("7.8", "sm_80");
    for compression in [Compression::None, Compression::Lz4, ZSTD_DEFAULT] {
        let entries = [
            LtoEntry::LtoIr(LtoIr {
                compression,
                options: "-ftz=1",
                ..plain(&lto, "sm_90")
            }),
            LtoEntry::Image(Image::new(Content::Ptx(&ptx), "sm_80").unwrap()),
        ];
        let bytes = write_with_lto(&library, &entries).unwrap();
        let read = fatbin::read(&bytes).unwrap();
        let [first, second] = &read.entries[..] else {
            panic!("{read:?}");
        };
        assert_eq!((first.kind, second.kind), (FileKind::LtoIr, FileKind::Ptx));
        assert_eq!((first.arch, first.options), (arch("sm_90"), Some("-ftz=1")));
        assert_eq!(first.is_obfuscated(), compression != Compression::None);
        if compression == Compression::None {
            assert!(first.payload().unwrap().starts_with(&lto));
        }
        let input = nvjitlink::Input {
            kind: nvjitlink::InputKind::Fatbin,
            bytes: &bytes,
            name: "k.fatbin",
        };
        let linked = jit
            .link(&[input], &["-arch=sm_90".to_owned(), "-lto".to_owned()])
            .unwrap();
        let names: Vec<_> = cubin::read(&linked.cubin).unwrap().kernels;
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(names[0].name, "k");

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.fatbin");
        std::fs::write(&path, &bytes).unwrap();
        let listed = run("cuobjdump", &["-all".as_ref(), path.as_ref()]);
        assert!(
            listed.contains("nvvm code") && listed.contains("nvvmOptions = -ftz=1"),
            "{listed}"
        );
        let listed = run("cuobjdump", &["-lptx".as_ref(), path.as_ref()]);
        assert!(listed.contains("sm_80.ptx"), "{listed}");
    }
}

#[test]
fn the_library_itself_makes_all_kinds() {
    let library = library();
    let lto = lto_ir("90");
    let ptx = store_kernel("7.8", "sm_90");
    let cubin = relocatable_cubin(&ptx, "sm_90");
    let input = |kind, bytes| Input {
        kind,
        bytes,
        arch: "90",
        identifier: "",
        options: "",
    };
    let inputs = [
        input(InputKind::Cubin, &cubin),
        input(InputKind::Ptx, ptx.as_bytes()),
        input(InputKind::LtoIr, &lto),
    ];
    let bytes = library.create(&inputs, &["-compress=false"]).unwrap();
    let read = fatbin::read(&bytes).unwrap();
    let kinds: Vec<_> = read.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [FileKind::Cubin, FileKind::Ptx, FileKind::LtoIr]);
    assert!(*read.entries[0].payload().unwrap() == *cubin);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(library.create(&inputs, &["-compress=false"]).unwrap() == bytes));
        }
    });

    let failed = |inputs: &[Input<'_>], options: &[&str]| match library.create(inputs, options).unwrap_err() {
        VendorError::Failed { call, name, .. } => (call, name),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        failed(&[], &["-bogus"]),
        ("nvFatbinCreate".to_owned(), "UNRECOGNIZED_OPTION")
    );
    let wrong = Input {
        arch: "80",
        ..inputs[0]
    };
    assert_eq!(
        failed(&[wrong], &[]),
        ("nvFatbinAddCubin for 80".to_owned(), "ELF_ARCH_MISMATCH")
    );
    let wrong = Input {
        arch: "gfx942",
        ..inputs[2]
    };
    assert_eq!(failed(&[wrong], &[]).1, "INVALID_ARCH");
    let error = library.create(&[], &["a\0b"]).unwrap_err();
    assert_eq!(error.to_string(), "\"a\\0b\" contains a NUL byte at offset 1");
}

#[test]
fn what_nvfatbin_would_take_and_should_not_is_refused() {
    let library = library();
    let refused = |lto: LtoIr<'_>| {
        write_with_lto(&library, &[LtoEntry::LtoIr(lto)])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(plain(b"\x7fELF", "sm_90")),
        "what is given as LTO-IR for sm_90 starts with [7f 45 4c 46] instead of [ed 43 4e 7f]"
    );
    assert_eq!(
        refused(plain(b"", "sm_90")),
        "what is given as LTO-IR for sm_90 starts with [] instead of [ed 43 4e 7f]"
    );
    let lto = lto_ir("90");
    assert_eq!(
        refused(plain(&lto, "sm_80")),
        "LTO-IR for sm_90 cannot be stored as sm_80: make it with -arch=sm_80, or store it as sm_90"
    );
    assert!(refused(plain(&lto, "sm_90a")).starts_with("LTO-IR for sm_90 cannot be stored as sm_90a"));
    let specific = lto_ir("90a");
    assert!(refused(plain(&specific, "sm_90")).starts_with("LTO-IR for sm_90a cannot be stored as sm_90"));
    let bad = LtoIr {
        identifier: Some("a\0b"),
        ..plain(&lto, "sm_90")
    };
    assert_eq!(
        refused(bad),
        "the LTO-IR cannot be put into a fat binary: \"a\\0b\" contains a NUL byte at offset 1"
    );
    let image = Image::new(Content::Ptx("hello"), "sm_90").unwrap();
    let text = write_with_lto(&library, &[LtoEntry::Image(image)])
        .unwrap_err()
        .to_string();
    assert_eq!(text, "the PTX for sm_90 does not begin with .version and .target");
}

#[test]
fn a_crash_of_the_library_is_an_error_and_the_next_call_works() {
    let library = library();
    let lto = lto_ir("90a");
    let write = || write_with_lto(&library, &[LtoEntry::LtoIr(plain(&lto, "sm_90a"))]);
    let before = write().unwrap();
    for _ in 0..3 {
        let text = library.crash().unwrap_err().to_string();
        assert!(
            text.starts_with("nvFatbinSize crashed: invalid access to memory at 0x"),
            "{text}"
        );
        assert_eq!(write().unwrap(), before);
    }
}

#[test]
fn a_toolkit_without_nvfatbin_says_how_to_get_it() {
    let empty = tempfile::tempdir().unwrap();
    let toolkit = Toolkit::discover(&Search::nowhere().with_cuda(empty.path()));
    let text = load(&toolkit).unwrap_err().to_string();
    assert!(
        text.contains("has no libnvfatbin.so; it is needed for fat binaries with LTO-IR"),
        "{text}"
    );
    assert!(text.contains("libnvfatbin.so.13"), "{text}");
    assert!(text.contains("install the wheel nvidia-nvfatbin"), "{text}");
}

#[test]
fn nvcc_gives_the_same_entry() {
    // nvcc stores LTO-IR with options of its own, and nothing to compare but what is read.
    let bytes = nvcc(SOURCE, &["-dc", "-fatbin", "-gencode=arch=compute_90a,code=lto_90a"]);
    let read = fatbin::read(&bytes).unwrap();
    let entry = &read.entries[0];
    assert_eq!((entry.kind, entry.arch), (FileKind::LtoIr, arch("sm_90a")));
    let lto = lto_ir("90a");
    let ours = LtoIr {
        options: entry.options.unwrap(),
        ..plain(&lto, "sm_90a")
    };
    let ours = write_with_lto(&library(), &[LtoEntry::LtoIr(ours)]).unwrap();
    let ours = fatbin::read(&ours).unwrap();
    assert_eq!(
        (ours.entries[0].flags, ours.entries[0].version),
        (entry.flags, entry.version)
    );
}
