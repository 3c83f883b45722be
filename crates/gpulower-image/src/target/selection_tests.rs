//! Tests of the choice of an image. The table is `selection_cases.json`, which a program on a GPU can read as well.

use super::*;

/// A row: `known` says where the expectation comes from, "H200" where it was observed with driver 580.159.
#[derive(Debug, serde::Deserialize)]
struct Case {
    device: String,
    driver: Option<String>,
    #[serde(default)]
    bare: bool,
    images: Vec<String>,
    expect: String,
    known: String,
}

/// Reads `cubin sm_90`, `relocatable sm_90`, `ptx sm_80 7.0`, `lto sm_90`, `amd gfx90a:xnack+`, `relocatable gfx90a`.
fn image(text: &str) -> LoadableImage {
    let words: Vec<&str> = text.split(' ').collect();
    let arch = |name: &str| NvidiaArch::parse(name).expect(text);
    let relocatable = words[0] == "relocatable";
    match words.as_slice() {
        ["cubin", name] => LoadableImage::Cubin { arch: arch(name) },
        // To a driver it is a cubin like others.
        ["relocatable", name] if name.starts_with("sm_") => LoadableImage::Cubin { arch: arch(name) },
        ["lto", name] => LoadableImage::LtoIr { arch: arch(name) },
        ["ptx", name, isa] => {
            let (major, minor) = isa.split_once('.').unwrap();
            let isa = (major.parse().unwrap(), minor.parse().unwrap());
            LoadableImage::Ptx { arch: arch(name), isa }
        }
        ["amd" | "relocatable", target] => LoadableImage::CodeObject {
            target: (*target).to_owned(),
            relocatable,
        },
        _ => panic!("{text}"),
    }
}

fn chosen(device: &str, driver: Option<&str>, images: &[&str]) -> Result<Choice, LoadError> {
    let images: Vec<LoadableImage> = images.iter().map(|text| image(text)).collect();
    select(
        device.parse().expect(device),
        driver.map(|isa| isa.parse().expect(isa)),
        &images,
    )
}

#[test]
fn the_table_holds() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("selection_cases.json")).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        assert!(
            ["H200", "manual", "source", "assumed"].contains(&case.known.as_str()),
            "{case:?}"
        );
        let images: Vec<LoadableImage> = case.images.iter().map(|text| image(text)).collect();
        let device: Device = case.device.parse().expect(&case.device);
        let driver = case.driver.as_ref().map(|isa| isa.parse().expect(isa));
        let choice = match (case.bare, images.as_slice()) {
            (true, [image]) => select_bare(device, driver, image),
            (true, _) => panic!("one image: {case:?}"),
            (false, images) => select(device, driver, images),
        };
        let text = match choice {
            Ok(Choice::Image { index }) => format!("image {index}"),
            Ok(Choice::CompilePtx {
                index,
                needs_driver: Some(release),
                ..
            }) => format!("compile {index} from CUDA {release}"),
            Ok(Choice::CompilePtx { index, .. }) => format!("compile {index}"),
            Err(error) => {
                assert_eq!(error.device, device);
                assert_eq!(error.passed_over.len(), images.len(), "{case:?}");
                assert!(
                    error.passed_over.iter().all(|image| !image.reason.is_empty()),
                    "{error}"
                );
                format!("error {}", error.failure.code())
            }
        };
        assert_eq!(text, case.expect, "{case:?}");
    }
}

#[test]
fn ptx_is_compiled_from_an_isa_on() {
    assert_eq!(
        chosen("sm_86", None, &["cubin sm_90", "ptx sm_80 7.1"]),
        Ok(Choice::CompilePtx {
            index: 1,
            isa: (7, 1),
            needs_driver: Some(CudaRelease::new(11, 1)),
        })
    );
}

#[test]
fn every_reason_is_a_sentence() {
    let reason = |device: &str, image: &str| {
        let error = chosen(device, Some("9.0"), &[image]).expect_err(image);
        error.passed_over[0].reason.clone()
    };
    for (device, image, expected) in [
        ("8.6", "cubin sm_90a", "sm_90a runs on 9.0 alone"),
        (
            "12.0",
            "cubin sm_100f",
            "sm_100f runs on 10.0 and later devices of its family",
        ),
        ("8.6", "cubin sm_87", "sm_87 is Tegra's and runs on 8.7 alone"),
        (
            "8.7",
            "cubin sm_80",
            "8.7 is a Tegra device, which runs machine code of its own chip alone",
        ),
        (
            "8.7",
            "cubin sm_90",
            "machine code for sm_90 runs on 9.0 and later devices of 9.x alone",
        ),
        (
            "9.0",
            "cubin sm_80",
            "machine code for sm_80 runs on 8.0 and later devices of 8.x alone",
        ),
        (
            "9.0",
            "ptx sm_100 8.6",
            "PTX of sm_100 compiles for 10.0 and later devices",
        ),
        ("10.0", "ptx sm_90a 8.0", "PTX of sm_90a compiles for 9.0 alone"),
        (
            "9.0",
            "ptx sm_120f 8.8",
            "PTX of sm_120f compiles for 12.0 and later devices of its family",
        ),
        (
            "9.0",
            "ptx sm_90 9.1",
            "PTX ISA 9.1 needs a driver of CUDA 13.1 or newer, and the driver reads up to 9.0",
        ),
        (
            "9.0",
            "ptx sm_90 9.9",
            "PTX ISA 9.9 needs a driver newer than all that are known, and the driver reads up to 9.0",
        ),
        (
            "9.0",
            "lto sm_90",
            "LTO-IR is the input of a link, and no driver loads it",
        ),
        ("9.0", "amd gfx942", "it is code for AMD"),
        ("gfx942", "cubin sm_90", "it is code for NVIDIA"),
        ("gfx942", "amd gfx90a", "gfx90a is another processor"),
        (
            "gfx908",
            "amd gfx9-4-generic:xnack+",
            "gfx9-4-generic stands for other processors",
        ),
        (
            "gfx90a:xnack-",
            "amd gfx90a:xnack+",
            "it needs xnack+, and the device has xnack-",
        ),
        (
            "gfx90a:xnack-",
            "amd gfx90a:sramecc-:xnack-",
            "it needs sramecc-, and the device's setting is not stated: ask about gfx90a:xnack-:sramecc-",
        ),
        (
            "gfx942",
            "relocatable gfx942",
            "it is relocatable, the input of a link that has not been done",
        ),
    ] {
        assert_eq!(reason(device, image), expected, "{image} on {device}");
    }
    assert!(reason("gfx942", "amd gfx803").starts_with("chip 'gfx803' is not supported"));
}

#[test]
fn errors_are_the_drivers() {
    assert_eq!(
        chosen("sm_86", None, &["cubin sm_90a", "ptx sm_90 7.8"])
            .unwrap_err()
            .to_string(),
        "nothing to load on 8.6: CUDA_ERROR_NO_BINARY_FOR_GPU (209, cudaErrorNoKernelImageForDevice); image 0, cubin \
         sm_90a: sm_90a runs on 9.0 alone; image 1, PTX sm_90: PTX of sm_90 compiles for 9.0 and later devices"
    );
    let bare =
        |text: &str| select_bare("9.0".parse().unwrap(), Some("9.0".parse().unwrap()), &image(text)).unwrap_err();
    assert!(
        bare("ptx sm_90 9.9")
            .to_string()
            .contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222, cudaErrorUnsupportedPtxVersion)")
    );
    assert!(
        bare("ptx sm_100 8.6")
            .to_string()
            .contains("CUDA_ERROR_INVALID_PTX (218, cudaErrorInvalidPtx)")
    );
    assert_eq!(
        chosen("gfx1100", None, &[]).unwrap_err().to_string(),
        "nothing to load on gfx1100: hipErrorNoBinaryForGpu (209, hipErrorInvalidImage for a bundle in recent releases); there is \
         no image"
    );
    assert_eq!(
        LoadError::invalid_image("9.0".parse().unwrap()).failure.name(),
        "CUDA_ERROR_INVALID_IMAGE"
    );
    assert_eq!(LoadFailure::InvalidImage.code(), 200);
    assert_eq!(LoadFailure::InvalidImage.runtime_name(), "cudaErrorInvalidKernelImage");
}

#[test]
fn tegra_is_linked_with_its_own_code_alone() {
    let images = [image("cubin sm_80"), image("ptx sm_80 7.0")];
    let chosen = |chip: &str| select_for_link(&chip.parse().expect(chip), &images);
    assert_eq!((chosen("sm_86"), chosen("sm_87")), (Some(0), Some(1)));
}
