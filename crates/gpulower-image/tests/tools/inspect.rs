//! Inspections of small files, without NVIDIA's tools; those with them are in `inspect_nvidia`, and those of files that are put together by hand in `src/inspect/tests.rs`.

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
