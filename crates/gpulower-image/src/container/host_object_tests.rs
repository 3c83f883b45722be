//! What is refused; objects that tools see are in `tests/tools/host_object.rs`.

use super::*;
use crate::{
    container::{
        fatbin::{self, Content, Image},
        offload_binary::{ImageKind, KindNumbering, OffloadKind},
    },
    seeds_tests::{short, told},
};
use gpulower_testing::nvidia::store_kernel;
use md5::{Digest as _, Md5};

/// A bundle with one empty host entry, as far as the writer looks into it.
const BUNDLE: &[u8] =
    b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0\x35\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0host-";

fn offload_binaries() -> Vec<u8> {
    let image = |arch| {
        offload_binary::Image::new(
            ImageKind::Cubin,
            OffloadKind::Cuda,
            KindNumbering::BitMask,
            "nvptx64-nvidia-cuda",
            arch,
            b"a cubin",
        )
        .unwrap()
    };
    offload_binary::write(&[image("sm_80"), image("sm_90")]).unwrap()
}

fn cuda<'a>(bytes: &'a [u8], data: &'a str, wrapper: &'a str) -> DeviceCode<'a> {
    DeviceCode::Fatbin {
        bytes,
        data: HostSymbol::local(data),
        wrapper: HostSymbol::hidden(wrapper),
    }
}

fn hip<'a>(data: &'a str, wrapper: &'a str) -> DeviceCode<'a> {
    DeviceCode::HipBundle {
        bytes: BUNDLE,
        data: HostSymbol::local(data),
        wrapper: HostSymbol {
            name: wrapper,
            visibility: Visibility::Exported,
        },
    }
}

/// Device code of every kind.
fn everything(arch: HostArch) -> Vec<u8> {
    let ptx = store_kernel("7.8", "sm_90");
    let fatbin = fatbin::write(&[Image::new(Content::Ptx(&ptx), "sm_90").unwrap()]).unwrap();
    let offload = offload_binaries();
    let parts = [
        cuda(&fatbin, "fatbin", "fatbin_wrapper"),
        hip("bundle", "bundle_wrapper"),
        DeviceCode::Offload { bytes: &offload },
    ];
    let object = write(arch, &parts).unwrap();
    assert_eq!(write(arch, &parts).unwrap(), object, "the same bytes each time");
    object
}

#[test]
fn what_does_not_belong_there_is_refused() {
    let refused = |part| write(HostArch::X86_64, &[part]).unwrap_err().to_string();
    assert_eq!(
        write(HostArch::X86_64, &[]).unwrap_err().to_string(),
        "a host object needs device code: there is none to put into it"
    );
    assert_eq!(
        refused(cuda(b"\x7fELF", "data", "wrapper")),
        "what is to go into .nv_fatbin: not a fat binary: it starts with [7f 45 4c 46] instead of [50 ed 55 ba]"
    );
    assert_eq!(
        refused(DeviceCode::Offload { bytes: b"" }),
        "what is to go into .llvm.offloading: not an offload binary: at offset 0x0 there is [] instead of [10 ff 10 ad]"
    );
    let no_bundle = DeviceCode::HipBundle {
        bytes: b"\x7fELF",
        data: HostSymbol::local("data"),
        wrapper: HostSymbol::local("wrapper"),
    };
    assert_eq!(
        refused(no_bundle),
        "what is to go into .hip_fatbin is no offload bundle: it starts with neither __CLANG_OFFLOAD_BUNDLE__ nor CCOB"
    );
    assert_eq!(
        refused(hip("same", "same")),
        "two symbols of the host object are called \"same\""
    );
    for name in ["", "a\0b"] {
        let error = write(HostArch::X86_64, &[hip("data", name)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{name:?} cannot be the name of a symbol: it is empty or has a NUL byte")
        );
    }
}

/// What is read of objects for each processor.
#[test]
fn objects_are_as_before() {
    let mut digest = Md5::new();
    for arch in [HostArch::X86_64, HostArch::Aarch64] {
        digest.update(everything(arch));
        for kind in ["elf", "inspect", "export_check"] {
            digest.update(told(kind, &everything(arch)));
        }
    }
    assert_eq!(short(digest), "78ac882ed47c");
}
