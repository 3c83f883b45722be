//! The fat binary writer against `fatbinary`, both against `cuobjdump`, and the reader against damage.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpulower_image::container::fatbin::{Compression, Content, Image, ZSTD_DEFAULT, read, read_first, write};
use gpulower_image::target::Suffix;
use gpulower_image::{FileKind, ReadProblem};
use gpulower_testing::nvidia::{assemble, part, rich_module, run, store_kernel};

fn cubin(ptx: &str, chip: &str) -> Vec<u8> {
    assemble(ptx, &[&format!("--gpu-name={chip}")]).cubin
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

/// The text of the first PTX entry: `fatbinary` removes comments and indentation before it stores PTX.
fn stored_ptx(fatbin: &[u8]) -> String {
    let fatbin = read(fatbin).unwrap();
    let entry = fatbin.entries.iter().find(|entry| entry.kind == FileKind::Ptx).unwrap();
    String::from_utf8(entry.payload().unwrap().into_owned()).unwrap()
}

#[test]
fn same_bytes_as_fatbinary() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        ("7.8", "sm_80", "80"),
        ("7.8", "sm_90", "90"),
        ("8.0", "sm_90a", "90a"),
        ("8.6", "sm_100a", "100a"),
        ("8.8", "sm_100f", "100f"),
        ("8.7", "sm_120", "120"),
    ];
    for (version, chip, sm) in cases {
        let ptx = rich_module(version, chip);
        let cubin = cubin(&ptx, chip);
        let files: [(&str, &str, &[u8]); 2] = [("elf", sm, &cubin), ("ptx", sm, ptx.as_bytes())];
        for (flags, compression) in [
            (&["--compress=false"][..], Compression::None),
            (&["--compress-all"], ZSTD_DEFAULT),
            (
                &["--compress-all", "--compress-mode=size"],
                Compression::Zstd { level: 19 },
            ),
        ] {
            for (more, identifier, options) in [
                (&[][..], None, ""),
                (
                    &["--ident=kernels.mlir", "--cmdline=-O3 -v"],
                    Some("kernels.mlir"),
                    "-O3 -v",
                ),
            ] {
                let expected = fatbinary(directory.path(), &[flags, more].concat(), &files);
                let text = stored_ptx(&expected);
                let image = |content| Image {
                    identifier,
                    options,
                    compression,
                    ..Image::new(content, chip).unwrap()
                };
                let ours = write(&[image(Content::Cubin(&cubin)), image(Content::Ptx(&text))]).unwrap();
                assert!(ours == expected, "{chip} {flags:?} {more:?}");
            }
        }
    }
}

#[test]
fn cuobjdump_extracts_the_same_bytes() {
    let ptx = rich_module("8.0", "sm_90a");
    let binary = cubin(&ptx, "sm_90a");
    for compression in [Compression::None, Compression::Lz4, ZSTD_DEFAULT] {
        let image = |content| Image {
            compression,
            ..Image::new(content, "sm_90a").unwrap()
        };
        let bytes = write(&[image(Content::Cubin(&binary)), image(Content::Ptx(&ptx))]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("k.fatbin");
        std::fs::write(&file, &bytes).unwrap();
        let listed = run("cuobjdump", &["-lelf".as_ref(), file.as_ref()]);
        assert!(listed.contains("sm_90a.cubin"), "{listed}");
        let listed = run("cuobjdump", &["-lptx".as_ref(), file.as_ref()]);
        assert!(listed.contains("sm_90a.ptx"), "{listed}");
        assert!(extract(directory.path(), "-xelf", ".cubin") == binary);
        assert_eq!(extract(directory.path(), "-xptx", ".ptx"), ptx.as_bytes());

        let fatbin = read(&bytes).unwrap();
        assert_eq!(fatbin.size, bytes.len());
        let [elf, text] = fatbin.entries.as_slice() else {
            panic!("{fatbin:?}");
        };
        assert!(*elf.payload().unwrap() == *binary);
        assert_eq!(*text.payload().unwrap(), *ptx.as_bytes());
        assert_eq!((elf.kind, text.kind), (FileKind::Cubin, FileKind::Ptx));
        assert_eq!((text.version, text.arch.suffix), ((8, 0), Suffix::ArchitectureSpecific));
        assert!(!elf.is_mercury() && !elf.is_debug() && !elf.is_obfuscated());
    }
}

fn extract(directory: &Path, option: &str, extension: &str) -> Vec<u8> {
    let output = Command::new(part("bin/cuobjdump"))
        .args([option, "all", "k.fatbin"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(extension))
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::read(&files[0]).unwrap()
}

#[test]
fn details_come_back() {
    let ptx = store_kernel("8.6", "sm_100a");
    let cubin = cubin(&ptx, "sm_100a");
    let image = |content| Image {
        identifier: Some("a.mlir"),
        options: "-O2",
        debug: true,
        ..Image::new(content, "sm_100a").unwrap()
    };
    let bytes = write(&[image(Content::Cubin(&cubin)), image(Content::Ptx(&ptx))]).unwrap();
    let fatbin = read(&bytes).unwrap();
    let [elf, text] = fatbin.entries.as_slice() else {
        panic!("{fatbin:?}");
    };
    assert!(elf.is_mercury() && elf.is_debug());
    assert_eq!(elf.compatibility.unwrap().len(), 36);
    assert_eq!((elf.identifier, elf.options), (Some("a.mlir"), None));
    assert_eq!((text.identifier, text.options), (Some("a.mlir"), Some("-O2")));
    assert_eq!(text.arch.to_string(), "sm_100a");
    // Containers may follow each other.
    let two = [bytes.clone(), bytes.clone()].concat();
    let first = read_first(&two).unwrap();
    assert_eq!(first.size, bytes.len());
    assert_eq!(read_first(&two[first.size..]).unwrap().entries.len(), 2);
    let error = read(&two).unwrap_err().to_string();
    assert!(error.contains(&format!("offset {:#x}", bytes.len())), "{error}");
}

#[test]
fn wrong_images_are_refused() {
    let ptx = store_kernel("7.8", "sm_90");
    let binary = cubin(&ptx, "sm_90");
    let refused = |content, chip: &str| {
        Image::new(content, chip)
            .and_then(|image| write(&[image]))
            .unwrap_err()
            .to_string()
    };
    let text = refused(Content::Ptx(&ptx), "sm_80");
    assert!(
        text.contains("PTX module for sm_90 cannot be stored as sm_80"),
        "{text}"
    );
    let text = refused(Content::Cubin(&binary), "sm_80");
    assert!(text.contains("cubin for sm_90 cannot be stored as sm_80"), "{text}");
    let accelerated = cubin(&store_kernel("8.0", "sm_90a"), "sm_90a");
    let text = refused(Content::Cubin(&accelerated), "sm_90");
    assert!(text.contains("cubin for sm_90a cannot be stored as sm_90"), "{text}");
    let text = refused(Content::Cubin(b"nothing"), "sm_90");
    assert!(text.contains("the cubin for sm_90: not an ELF file"), "{text}");
    let text = refused(Content::Ptx("hello"), "sm_90");
    assert!(text.contains("does not begin with .version"), "{text}");
    let with_nul = ptx.replace("ret", "r\0t");
    let text = refused(Content::Ptx(&with_nul), "sm_90");
    assert_eq!(text, "the PTX for sm_90 contains a NUL byte");
    let text = refused(Content::Ptx(&ptx), "gfx942");
    assert!(text.contains("`gfx942` is no NVIDIA architecture"), "{text}");
}

#[test]
fn every_truncation_and_every_wrong_byte_is_survived() {
    let ptx = store_kernel("7.8", "sm_90");
    let binary = cubin(&ptx, "sm_90");
    for compression in [Compression::None, Compression::Lz4, ZSTD_DEFAULT] {
        let image = |content| Image {
            compression,
            identifier: Some("name"),
            ..Image::new(content, "sm_90").unwrap()
        };
        let good = write(&[image(Content::Cubin(&binary)), image(Content::Ptx(&ptx))]).unwrap();
        for length in 0..good.len() {
            let error = read(&good[..length]).unwrap_err();
            let named = match error.problem {
                ReadProblem::OtherFormat => length < 4,
                ReadProblem::Truncated => error.to_string().contains("at offset 0x"),
                _ => false,
            };
            assert!(named, "{length}: {error}");
        }
        let mut changed = good.clone();
        for position in 0..good.len() {
            for value in [0xff, good[position] ^ 0x11] {
                changed[position] = value;
                if let Ok(fatbin) = read(&changed) {
                    for entry in &fatbin.entries {
                        let _ = entry.payload();
                    }
                }
            }
            changed[position] = good[position];
        }
    }
}

#[test]
fn sizes_that_cannot_be_true_allocate_nothing() {
    let ptx = store_kernel("7.8", "sm_90");
    for compression in [Compression::Lz4, ZSTD_DEFAULT] {
        let image = Image {
            compression,
            ..Image::new(Content::Ptx(&ptx), "sm_90").unwrap()
        };
        let mut bytes = write(&[image]).unwrap();
        for size in [u64::MAX, 1 << 29, 1] {
            bytes[16 + 0x38..16 + 0x40].copy_from_slice(&size.to_le_bytes());
            let error = read(&bytes).unwrap().entries[0].payload().unwrap_err().to_string();
            assert!(
                error.starts_with("damaged fat binary: a compressed image at offset 0x"),
                "{error}"
            );
        }
    }
    let error = read(b"\x7fELF").unwrap_err().to_string();
    assert_eq!(
        error,
        "not a fat binary: it starts with [7f 45 4c 46] instead of [50 ed 55 ba]"
    );
}
