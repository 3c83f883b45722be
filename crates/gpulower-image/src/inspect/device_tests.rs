use super::super::model::{DebugInfo, Kernel, SectionSize};
use super::*;

fn device(name: &str) -> Device {
    name.parse().unwrap()
}

fn image(kind: FileKind, target: &str) -> Image {
    Image {
        target: Some(target.to_owned()),
        ptx_isa: (kind == FileKind::Ptx).then(|| "7.0".to_owned()),
        debug: DebugInfo::None,
        kernels: vec![Kernel::Machine(Box::default())],
        ..Image::new(kind, 100)
    }
}

/// A file with these containers, and images in them.
fn file(containers: &[(FileKind, Option<usize>)], images: Vec<(Option<usize>, Image)>) -> Inspection {
    let containers = containers.iter().map(|&(kind, parent)| Container {
        parent,
        offset: Some(0),
        ..Container::new(kind, 100)
    });
    let images = images.into_iter().enumerate().map(|(index, (container, image))| Image {
        number: index + 1,
        container,
        ..image
    });
    Inspection {
        file: "file".to_owned(),
        bytes: 100,
        device_bytes: 100,
        containers: containers.collect(),
        images: images.collect(),
    }
}

fn outcome(inspection: &Inspection, name: &str) -> Outcome {
    let mut modules = answer(inspection, device(name), None).modules;
    assert_eq!(modules.len(), 1, "{modules:?}");
    modules.remove(0).outcome
}

fn failure(inspection: &Inspection, name: &str) -> (u32, String) {
    match outcome(inspection, name) {
        Outcome::Fails { code, reasons, .. } => {
            let reasons: Vec<String> = reasons
                .iter()
                .map(|reason| format!("{:?} {}", reason.image.unwrap_or(0), reason.reason))
                .collect();
            (code, reasons.join("; "))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fat_binary_has_one_choice() {
    let fatbin = [(FileKind::FatBinary, None)];
    let images = vec![
        (Some(0), image(FileKind::Cubin, "sm_80")),
        (Some(0), image(FileKind::Cubin, "sm_90")),
        (Some(0), image(FileKind::Ptx, "sm_80")),
    ];
    let file = file(&fatbin, images);
    assert_eq!(outcome(&file, "sm_86"), Outcome::Loads { image: 1 });
    assert_eq!(outcome(&file, "9.0"), Outcome::Loads { image: 2 });
    let compiled = Outcome::CompilesPtx {
        image: 3,
        ptx_isa: "7.0".to_owned(),
        needs_driver_of_cuda: Some("11.0".to_owned()),
    };
    assert_eq!(outcome(&file, "sm_120"), compiled);
    let (code, reasons) = failure(&file, "sm_75");
    assert_eq!(code, 209);
    assert!(reasons.starts_with("1 machine code for sm_80 runs on 8.0"), "{reasons}");
    let old = answer(&file, device("sm_120"), Some("6.5".parse().unwrap()));
    assert!(
        matches!(old.modules[0].outcome, Outcome::Fails { code: 222, .. }),
        "{old:?}"
    );
    assert_eq!(old.failures().count(), 1);
}

#[test]
fn every_fat_binary_of_an_executable_answers_for_itself() {
    let host = [
        (FileKind::Executable, None),
        (FileKind::FatBinary, Some(0)),
        (FileKind::FatBinary, Some(0)),
        (FileKind::Bundle, Some(0)),
    ];
    let images = vec![
        (Some(1), image(FileKind::Cubin, "sm_80")),
        (Some(2), image(FileKind::Cubin, "sm_90")),
        (Some(3), image(FileKind::Hsaco, "gfx942")),
    ];
    let file = file(&host, images);
    let answer_for = |name| answer(&file, device(name), None);
    let nvidia = answer_for("sm_80");
    assert_eq!(nvidia.modules.len(), 2, "the bundle is not for NVIDIA");
    assert_eq!(nvidia.failures().count(), 1);
    let amd = answer_for("gfx942");
    assert_eq!(amd.modules.len(), 1);
    assert_eq!(amd.modules[0].outcome, Outcome::Loads { image: 3 });
}

#[test]
fn offload_binaries_of_one_section_are_chosen_from_together() {
    let binaries = [(FileKind::OffloadBinary, None), (FileKind::OffloadBinary, None)];
    let images = vec![
        (Some(0), image(FileKind::Cubin, "sm_80")),
        (Some(1), image(FileKind::Cubin, "sm_90")),
    ];
    let file = file(&binaries, images);
    assert_eq!(outcome(&file, "sm_90"), Outcome::Loads { image: 2 });
}

#[test]
fn bare_images_answer_alone() {
    let images = vec![(None, image(FileKind::Ptx, "sm_90"))];
    assert_eq!(failure(&file(&[], images), "sm_80").0, 218);
    let images = vec![(None, image(FileKind::Hsaco, "gfx90a:xnack-"))];
    assert_eq!(failure(&file(&[], images), "gfx90a:xnack+").0, 209);
}

#[test]
fn link_inputs_are_no_failure() {
    let mut cubin = image(FileKind::Cubin, "sm_90");
    cubin.relocatable = true;
    let images = vec![(Some(0), cubin), (Some(0), image(FileKind::LtoIr, "sm_90"))];
    let mut host = file(&[(FileKind::FatBinary, None)], images);
    host.containers[0].label = Some("__nv_relfatbin".to_owned());
    assert_eq!(outcome(&host, "sm_90"), Outcome::LinkFirst);
    // Given to a driver, the cubin is linked by it; LTO-IR is not.
    host.containers[0].label = None;
    assert_eq!(outcome(&host, "sm_90"), Outcome::Loads { image: 1 });
    host.images.remove(0);
    assert_eq!(outcome(&host, "sm_90"), Outcome::LinkFirst);
}

#[test]
fn damage_is_an_invalid_image() {
    let mut cubin = image(FileKind::Cubin, "sm_90");
    cubin.error = Some("truncated".to_owned());
    let sound = image(FileKind::Cubin, "sm_80");
    let damaged = file(&[(FileKind::FatBinary, None)], vec![(Some(0), cubin), (Some(0), sound)]);
    let (code, reasons) = failure(&damaged, "sm_90");
    assert_eq!(code, 200);
    assert_eq!(reasons, "1 the loader would choose it, and it is damaged: truncated");
    assert_eq!(outcome(&damaged, "sm_80"), Outcome::Loads { image: 2 });

    let mut container = file(&[(FileKind::FatBinary, None)], Vec::new());
    container.containers[0].error = Some("cut off".to_owned());
    assert_eq!(failure(&container, "sm_90"), (200, "0 cut off".to_owned()));
}

#[test]
fn what_no_loader_takes_says_so() {
    let images = vec![
        (Some(0), image(FileKind::SpirV, "amdgcnspirv")),
        (Some(0), image(FileKind::Hsaco, "gfx942")),
    ];
    let (_, reasons) = failure(&file(&[(FileKind::Bundle, None)], images), "gfx90a");
    assert!(reasons.starts_with("1 it is SPIR-V"), "{reasons}");
}

#[test]
fn a_cubin_without_kernels_and_variables_is_not_loaded() {
    let mut cubin = image(FileKind::Cubin, "sm_75");
    cubin.kernels.clear();
    let images = |cubin: &Image| vec![(Some(0), cubin.clone())];
    let fatbin = [(FileKind::FatBinary, None)];
    assert_eq!(outcome(&file(&fatbin, images(&cubin)), "sm_90"), Outcome::Empty);
    cubin.sections.push(SectionSize {
        name: ".nv.global".to_owned(),
        bytes: 4,
        in_file: false,
        device: false,
    });
    assert_eq!(failure(&file(&fatbin, images(&cubin)), "sm_90").0, 209);
}
