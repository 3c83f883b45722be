use super::*;

fn id(text: &str) -> BundleId {
    text.parse().unwrap()
}

#[test]
fn every_form_is_read_and_printed_back() {
    use OffloadKind::{Cuda, Hip, HipV4, Host, OpenMp, Sycl};
    let cases = [
        ("host-x86_64-unknown-linux", Host, "x86_64-unknown-linux", None),
        ("host-x86_64-unknown-linux-gnu", Host, "x86_64-unknown-linux-gnu", None),
        ("host-x86_64-unknown-linux-gnu-", Host, "x86_64-unknown-linux-gnu", None),
        ("host-x86_64-unknown-linux--", Host, "x86_64-unknown-linux", None),
        ("host-x86_64--linux--", Host, "x86_64--linux", None),
        (
            "hip-amdgcn-amd-amdhsa--gfx90a",
            Hip,
            "amdgcn-amd-amdhsa",
            Some("gfx90a"),
        ),
        ("hip-amdgcn-amd-amdhsa-gfx90a", Hip, "amdgcn-amd-amdhsa", Some("gfx90a")),
        (
            "hip-amdgcn-amd-amdhsa-unknown-gfx90a",
            Hip,
            "amdgcn-amd-amdhsa-unknown",
            Some("gfx90a"),
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
            Hip,
            "amdgcn-amd-amdhsa",
            Some("gfx9-4-generic"),
        ),
        (
            "hip-amdgcn-amd-amdhsa-gfx9-4-generic",
            Hip,
            "amdgcn-amd-amdhsa",
            Some("gfx9-4-generic"),
        ),
        (
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
            Hip,
            "spirv64-amd-amdhsa",
            Some("amdgcnspirv"),
        ),
        (
            "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
            HipV4,
            "amdgcn-amd-amdhsa",
            Some("gfx90a:xnack-"),
        ),
        (
            "hipv4-amdgcn-amd-amdhsa-gfx90a:xnack-",
            HipV4,
            "amdgcn-amd-amdhsa",
            Some("gfx90a:xnack-"),
        ),
        (
            "hipv4-amdgcn-amd-amdhsa-gfx90a:xnack--",
            HipV4,
            "amdgcn-amd-amdhsa",
            Some("gfx90a:xnack-"),
        ),
        (
            "hipv4-amdgcn-amd-amdhsa-gfx90a:xnack+-",
            HipV4,
            "amdgcn-amd-amdhsa",
            Some("gfx90a:xnack+"),
        ),
        (
            "openmp-amdgcn-amd-amdhsa--gfx906",
            OpenMp,
            "amdgcn-amd-amdhsa",
            Some("gfx906"),
        ),
        (
            "openmp-nvptx64-nvidia-cuda-sm_80-",
            OpenMp,
            "nvptx64-nvidia-cuda",
            Some("sm_80"),
        ),
        ("openmp-x86_64-pc-windows-msvc-", OpenMp, "x86_64-pc-windows-msvc", None),
        (
            "cuda-nvptx64-nvidia-cuda-sm_80",
            Cuda,
            "nvptx64-nvidia-cuda",
            Some("sm_80"),
        ),
        (
            "cuda-nvptx64-nvidia-cuda--sm_90a",
            Cuda,
            "nvptx64-nvidia-cuda",
            Some("sm_90a"),
        ),
        ("sycl-spir64-unknown-unknown", Sycl, "spir64-unknown-unknown", None),
    ];
    for (text, kind, triple, target) in cases {
        let id = id(text);
        assert_eq!(
            (id.kind(), id.triple(), id.target_id()),
            (kind, triple, target),
            "{text}"
        );
        assert_eq!((id.to_string().as_str(), id.as_str()), (text, text));
        assert!(id.means_same(&super::tests::id(&id.normalized())), "{text}");
    }
}

#[test]
fn targets_are_chips_of_the_tables() {
    let target = |text| id(text).target().map(|target| target.to_string());
    let amd = target("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+");
    assert_eq!(amd.as_deref(), Some("gfx90a:sramecc+:xnack-"));
    assert_eq!(target("cuda-nvptx64-nvidia-cuda-sm_80").as_deref(), Some("sm_80"));
    assert_eq!(target("hip-spirv64-amd-amdhsa--amdgcnspirv"), None);
    assert_eq!(target("host-x86_64-unknown-linux-gnu-"), None);
}

#[test]
fn made_ids_are_those_of_clang_22() {
    let made = |kind, triple, target| BundleId::new(kind, triple, target).unwrap().to_string();
    assert_eq!(
        made(OffloadKind::Host, "x86_64-unknown-linux-gnu", None),
        "host-x86_64-unknown-linux-gnu-"
    );
    assert_eq!(
        made(OffloadKind::Host, "x86_64-unknown-linux", None),
        "host-x86_64-unknown-linux-unknown-"
    );
    let gfx = Some("gfx90a:xnack-");
    let expected = "hip-amdgcn-amd-amdhsa--gfx90a:xnack-";
    assert_eq!(made(OffloadKind::Hip, "amdgcn-amd-amdhsa", gfx), expected);
    assert_eq!(made(OffloadKind::Hip, "amdgcn-amd-amdhsa-", gfx), expected);
    let nvidia = made(OffloadKind::OpenMp, "nvptx64-nvidia-cuda", Some("sm_80"));
    assert_eq!(nvidia, "openmp-nvptx64-nvidia-cuda-unknown-sm_80");
    assert_eq!(BundleId::linux_host(), id("host-x86_64-unknown-linux-gnu-"));
    let target = "gfx90a:xnack-".parse().unwrap();
    assert_eq!(BundleId::hip(&target), id("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"));
    assert!(BundleId::new(OffloadKind::Host, "wasm32-wasi", None).is_err());
}

#[test]
fn meaning_is_compared_not_text() {
    let same = [
        (
            "hip-amdgcn-amd-amdhsa--gfx90a",
            "hipv4-amdgcn-amd-amdhsa-unknown-gfx90a",
        ),
        ("hip-amdgcn-amd-amdhsa-gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a"),
        (
            "hip-amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+",
            "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        ),
        ("host-x86_64-unknown-linux", "host-x86_64-unknown-linux--"),
    ];
    for (one, other) in same {
        assert!(id(one).means_same(&id(other)) && id(one) != id(other), "{one}, {other}");
    }
    let different = [
        ("hip-amdgcn-amd-amdhsa--gfx90a", "openmp-amdgcn-amd-amdhsa--gfx90a"),
        ("hip-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"),
        ("hip-amdgcn-amd-amdhsa--gfx90a", "hip-spirv64-amd-amdhsa--gfx90a"),
        ("host-x86_64-unknown-linux-gnu", "host-x86_64-unknown-linux-musl"),
    ];
    for (one, other) in different {
        assert!(!id(one).means_same(&id(other)), "{one}, {other}");
    }
}

#[test]
fn what_is_no_id_is_refused() {
    let message = |text: &str| text.parse::<BundleId>().unwrap_err().to_string();
    assert!(message("").contains("'' is not the id of a bundle entry: it has to be 1 to 1024 visible ASCII"));
    assert!(message("host-a b-c-d\n").contains("'host-a b-c-d\\n' is not the id"));
    assert!(message(&"x".repeat(1025)).len() < 200);
    assert!(message("gfx90a").contains("'gfx90a' is no kind of offloading (host, hip, hipv4, openmp, cuda and sycl"));
    for short in ["hip", "hip-amdgcn", "hip-amdgcn-amd", "hip---", "hip--amd-amdhsa"] {
        assert!(
            message(short).contains("an architecture, a vendor and a system, as in hipv4"),
            "{short}"
        );
    }
}
