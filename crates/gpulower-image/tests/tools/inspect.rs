//! Inspections of small files, without NVIDIA's tools; those with them are in `nvidia_tests`.

use gpulower_image::FileKind;
use gpulower_image::container::bundle::{self, BundleImage, BundleOptions};
use gpulower_image::container::fatbin::{self, Content};
use gpulower_image::inspect::{Compression, Inspection, inspect, inspect_with};
use gpulower_testing::{amd, nvidia};

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
    let names: Vec<&str> = image
        .kernels
        .iter()
        .map(gpulower_image::inspect::Kernel::name)
        .collect();
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
fn bundles_of_code_objects() {
    let first = amd::hsaco(amd::KERNELS, "gfx90a", "-xnack", 5);
    let second = amd::hsaco(amd::KERNELS, "gfx1100", "", 6);
    let images = [
        BundleImage::host(),
        BundleImage::hip(&"gfx90a:xnack-".parse().unwrap(), &first),
        BundleImage::hip(&"gfx1100".parse().unwrap(), &second),
    ];
    let plain = bundle::write(&images, &BundleOptions::default()).unwrap();
    let compressed = BundleOptions {
        compression: Some(bundle::Compression::default()),
        ..BundleOptions::default()
    };
    let compressed = bundle::write(&images, &compressed).unwrap();
    for (bytes, compression) in [(&plain, None), (&compressed, Some(Compression::Zstd))] {
        let mut seen = Vec::new();
        let found = inspect_with("file", bytes, &mut |_, bytes| seen.push(bytes.to_vec())).unwrap();
        assert!(seen == [first.clone(), second.clone()]);
        let [container] = found.containers.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((container.kind, container.compression), (FileKind::Bundle, compression));
        assert_eq!(container.version, compression.map(|_| 3));
        let targets: Vec<_> = found
            .images
            .iter()
            .map(|image| image.target.as_deref().unwrap())
            .collect();
        assert_eq!(targets, ["gfx90a:xnack-", "gfx1100"]);
        let [one, other] = found.images.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(one.offset, compression.is_none().then_some(4096));
        assert_eq!((one.code_object_version, other.code_object_version), (Some(5), Some(6)));
        assert_eq!(
            (one.kind, one.kernels.len(), one.remarks.len()),
            (FileKind::Hsaco, 3, 0)
        );
        assert_eq!(one.label.as_deref(), Some("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"));
        assert!(one.producer.is_some());
        assert!(
            one.sections
                .iter()
                .any(|section| section.name == ".text" && section.bytes > 0)
        );
    }
}

#[test]
fn an_object_that_is_not_linked() {
    let found = one(&amd::object(amd::UNDEFINED, "gfx942", "", 5));
    let [image] = found.images.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((image.kind, image.relocatable), (FileKind::AmdObject, true));
    assert_eq!(image.undefined, ["missing_a", "missing_b"]);
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
fn a_damaged_image_does_not_hide_the_next() {
    let mut first = amd::hsaco(amd::KERNELS, "gfx90a", "", 5);
    let second = amd::hsaco(amd::KERNELS, "gfx942", "", 5);
    first.truncate(200);
    let images = [
        BundleImage::hip(&"gfx90a".parse().unwrap(), &first),
        BundleImage::hip(&"gfx942".parse().unwrap(), &second),
        BundleImage::hip(&"gfx1100".parse().unwrap(), b"nothing"),
    ];
    let found = one(&bundle::write(&images, &BundleOptions::default()).unwrap());
    assert_eq!(found.images.len(), 3);
    assert_eq!(found.images[1].kernels.len(), 3);
    let problems: Vec<(String, &str)> = found.problems().collect();
    let [(first, reason), (third, unknown)] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert_eq!(
        first,
        "image 1, hsaco for gfx90a at 0x1000 in hipv4-amdgcn-amd-amdhsa--gfx90a"
    );
    assert!(reason.starts_with("truncated ELF file"), "{reason}");
    assert!(third.starts_with("image 3, unknown for gfx1100"), "{third}");
    assert_eq!(
        *unknown,
        "of no kind that is read: it starts with [6e 6f 74 68 69 6e 67]"
    );
}

#[test]
fn the_container_counts_where_it_contradicts_the_image() {
    let code = amd::hsaco(amd::KERNELS, "gfx90a", "", 5);
    let images = [BundleImage::hip(&"gfx942".parse().unwrap(), &code)];
    let found = one(&bundle::write(&images, &BundleOptions::default()).unwrap());
    assert_eq!(found.images[0].target.as_deref(), Some("gfx942"));
    let remark = &found.images[0].remarks[0];
    assert!(remark.contains("for gfx942, and the image says gfx90a"), "{remark}");
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

#[test]
fn every_truncation_and_every_wrong_byte_is_survived() {
    let code = amd::hsaco("define amdgpu_kernel void @k() { ret void }", "gfx942", "", 5);
    let images = [BundleImage::host(), BundleImage::hip(&"gfx942".parse().unwrap(), &code)];
    let packed = bundle::write(&images, &BundleOptions::packed()).unwrap();
    let compressed = BundleOptions {
        compression: Some(bundle::Compression::default()),
        ..BundleOptions::packed()
    };
    let compressed = bundle::write(&images, &compressed).unwrap();
    let fat = ptx_fatbin(fatbin::ZSTD_DEFAULT);
    for good in [code, packed, compressed, fat] {
        for length in 0..good.len() {
            let _ = inspect("x", &good[..length]);
        }
        let mut changed = good.clone();
        for position in 0..good.len() {
            for value in [0, 0xff, good[position] ^ 0x21] {
                changed[position] = value;
                let _ = inspect("x", &changed);
            }
            changed[position] = good[position];
        }
    }
}
