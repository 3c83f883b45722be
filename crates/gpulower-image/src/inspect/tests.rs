//! Inspections of small files that are put together here.

use super::*;
use crate::{
    FileKind,
    container::{
        bundle::{self, BundleImage, BundleOptions},
        fatbin::{self, Content},
    },
};
use gpulower_testing::nvidia;

fn one(bytes: &[u8]) -> Inspection {
    inspect("file", bytes).unwrap()
}

fn ptx_fatbin(compression: fatbin::Compression) -> Vec<u8> {
    let text = nvidia::rich_module("7.8", "sm_80");
    let image = fatbin::Image {
        compression,
        identifier: Some("a.mlir"),
        options: "-O3",
        ..fatbin::Image::new(Content::Ptx(&text), "sm_80").unwrap()
    };
    fatbin::write(&[image]).unwrap()
}

#[test]
fn ptx_alone() {
    let text = nvidia::rich_module("7.8", "sm_80");
    let found = one(text.as_bytes());
    assert!(found.containers.is_empty());
    assert_eq!(found.device_bytes, found.bytes);
    let [image] = found.images.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((image.kind, image.target.as_deref()), (FileKind::Ptx, Some("sm_80")));
    assert_eq!((image.ptx_isa.as_deref(), image.offset), (Some("7.8"), Some(0)));
    let names: Vec<&str> = image.kernels.iter().map(crate::inspect::Kernel::name).collect();
    assert_eq!(names, ["plain", "shared_memory", "local_memory", "spilling"]);
    assert_eq!(found.problems().count(), 0);
}

#[test]
fn fat_binaries_of_every_compression() {
    let text = nvidia::rich_module("7.8", "sm_80");
    for (compression, expected) in [
        (fatbin::Compression::None, None),
        (fatbin::Compression::Lz4, Some(Compression::Lz4)),
        (fatbin::ZSTD_DEFAULT, Some(Compression::Zstd)),
    ] {
        let bytes = ptx_fatbin(compression);
        let mut seen = Vec::new();
        let found = inspect_with("file", &bytes, &mut |image, bytes| {
            seen.push((image.number, bytes.to_vec()))
        })
        .unwrap();
        assert_eq!(seen, [(1, text.clone().into_bytes())]);
        let [container] = found.containers.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((container.kind, container.offset), (FileKind::FatBinary, Some(0)));
        let [image] = found.images.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((image.compression, image.container), (expected, Some(0)));
        assert_eq!(
            (image.identifier.as_deref(), image.options.as_deref()),
            (Some("a.mlir"), Some("-O3"))
        );
        let offset = usize::try_from(image.offset.unwrap()).unwrap();
        let end = offset as u64 + image.stored_bytes.unwrap();
        assert_eq!(end.next_multiple_of(8), bytes.len() as u64);
        if expected.is_none() {
            assert!(bytes[offset..].starts_with(text.as_bytes()));
        } else {
            assert!(image.stored_bytes < Some(image.bytes) && image.bytes == text.len() as u64 + 1);
        }
    }
}

#[test]
fn text_bundles() {
    let images = [BundleImage::hip(&"gfx942".parse().unwrap(), b"define void @f()\n")];
    let text = bundle::write(&images, &BundleOptions::text(bundle::Comment::Semicolon)).unwrap();
    let found = one(&text);
    assert_eq!(found.containers[0].kind, FileKind::TextBundle);
    let [image] = found.images.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((image.kind, image.target.as_deref()), (FileKind::Text, Some("gfx942")));
    let found = one(&text[..90]);
    assert!(found.containers[0].error.is_some(), "{found:?}");
}

#[test]
fn a_damaged_container_does_not_hide_the_next() {
    let good = ptx_fatbin(fatbin::Compression::None);
    let mut bytes = good.clone();
    bytes.extend([0; 24]);
    let broken = bytes.len();
    bytes.extend(&good);
    // The size of the second one's entries.
    bytes[broken + 8..broken + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    bytes.extend([0; 8]);
    let third = bytes.len();
    bytes.extend(&good);
    bytes.extend([0; 40]);
    let found = one(&bytes);
    let places: Vec<_> = found
        .containers
        .iter()
        .map(|container| container.offset.unwrap())
        .collect();
    assert_eq!(places, [0, broken as u64, third as u64]);
    assert_eq!(found.images.len(), 2);
    let problems: Vec<(String, &str)> = found.problems().collect();
    let [(_, problem)] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert!(
        problem.starts_with("truncated fat binary: the entries needs"),
        "{problem}"
    );
}

#[test]
fn containers_in_containers_end() {
    let mut bytes = b"BC\xc0\xde".to_vec();
    for _ in 0..20 {
        let images = [BundleImage::hip(&"gfx942".parse().unwrap(), &bytes)];
        bytes = bundle::write(&images, &BundleOptions::packed()).unwrap();
    }
    let found = one(&bytes);
    let problems: Vec<(String, &str)> = found.problems().collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].1, "not read: more than 12 containers in one another");
}

#[test]
fn refusals_say_what_to_do() {
    for (bytes, expected) in [
        (&b""[..], "the file is empty"),
        (b"MZ", "it is a Windows program: only ELF files are read"),
        (b"\xcf\xfa\xed\xfe", "it is a macOS program"),
        (b"PK\x03\x04", "unpack it, and name a file in it"),
        (b"\x1f\x8b", "a gzip file: unpack it"),
        (b"!<thin>\n", "it is a thin archive, which holds the names"),
        (b"module {}", "it is MLIR or LLVM IR, which holds no images"),
        (b"nothing known", "it starts with [6e 6f 74 68 69 6e 67 20]"),
    ] {
        let message = inspect("x", bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn what_is_nothing_is_refused() {
    let message = inspect("x", b"nothing known").unwrap_err().to_string();
    assert!(message.contains("it is none of the files that are read"), "{message}");
}
