//! What is said of images, compared with what clang 16, 19 and 22 make of the same object.

use super::{
    super::{
        entries,
        finishing_site::{FinishingSite, export, layouts, ptx_text, unit_program},
        ir_text::{IrText, bytes},
        layout::{ImageForm, LayoutSet, numbering},
        release::ClangRelease,
        runtime::Runtime,
    },
    Report, check,
    tests::problem,
};
use crate::{
    container::offload_binary::{self, Image, ImageKind, OffloadKindNumber},
    target::CodeObjectVersion,
};

pub(super) const CLANGS: [(&str, u32); 3] = [("clang-16", 16), ("clang-19", 19), ("clang-22", 22)];

/// An image as an offload binary has it: what it says that it is, triple, chip, and the file with it.
type Embedded<'a> = (ImageKind, &'a str, &'a str, &'a str);

const NVPTX: &str = "nvptx64-nvidia-cuda";
const AMDGCN: &str = "amdgcn-amd-amdhsa";

/// The object of the unit without a name with these images, whatever clang thinks of them.
fn embed(site: &FinishingSite, set: &LayoutSet, images: &[Embedded<'_>]) -> String {
    let number = match (
        set.runtime,
        numbering(set.releases[0]) == numbering(ClangRelease::NEWEST),
    ) {
        (Runtime::Cuda, _) => 2,
        (Runtime::Hip, false) => 3,
        (Runtime::Hip, true) => 4,
        (Runtime::OpenMp, _) => 1,
    };
    let contents: Vec<Vec<u8>> = images.iter().map(|(_, _, _, file)| site.read(file)).collect();
    let images: Vec<Image<'_>> = images
        .iter()
        .zip(&contents)
        .map(|(&(kind, triple, arch, _), bytes)| Image {
            kind,
            offload_kind: OffloadKindNumber(number),
            flags: 0,
            strings: vec![("arch", arch), ("triple", triple)],
            bytes,
        })
        .collect();
    embed_content(site, set, &offload_binary::write(&images).expect("offload binaries"))
}

/// The same with a section that has these bytes.
fn embed_content(site: &FinishingSite, set: &LayoutSet, content: &[u8]) -> String {
    let program = unit_program("", set.runtime);
    let mut module = IrText::default();
    entries::add(&mut module, &program, set).expect("entries");
    module.define(&format!(
        "@llvm.embedded.object = private constant [{} x i8] c\"{}\", section \".llvm.offloading\", align 8, !exclude !0",
        content.len(),
        bytes(content)
    ));
    module.keep_in_compiler("@llvm.embedded.object".to_owned());
    site.object("", &program, &module)
}

fn complete(report: &Report, release: u32) -> bool {
    let release = ClangRelease::new(release).expect("a release");
    report.is_complete(&[release])
}

/// The releases that link the object, of which the program registers and launches the kernel.
fn finishing(site: &FinishingSite, object: &str, runtime: Runtime) -> Vec<u32> {
    let finishes = |clang: &str| {
        let log = site.finish(clang, &[object], &[], runtime);
        log.is_ok_and(|log| log.lines().any(|line| line == "launch axpy grid 2 block 32"))
    };
    let clangs = CLANGS.iter().filter(|(clang, _)| finishes(clang));
    clangs.map(|(_, release)| *release).collect()
}

/// What the check says and what clang does are the same, and these.
fn assert_agrees(site: &FinishingSite, object: &str, runtime: Runtime, expected: &[u32], context: &str) -> Report {
    let report = check(&site.read(object)).expect(context);
    let said: Vec<u32> = CLANGS
        .iter()
        .map(|(_, release)| *release)
        .filter(|release| complete(&report, *release))
        .collect();
    assert_eq!(said, expected, "{context}: {report:#?}");
    assert_eq!(finishing(site, object, runtime), expected, "{context}");
    report
}

#[test]
fn nvidias_images_are_taken_as_the_check_says() {
    let site = FinishingSite::new();
    let set = layouts("15..19,21..23", Runtime::Cuda);
    let (sm_80, sm_90) = (&*site.cubin("", "sm_80"), &*site.cubin("", "sm_90"));
    let other = &*site.cubin("_b", "sm_80");
    site.write("k.ptx", ptx_text("", "sm_80"));
    let (cubin, object) = (ImageKind::Cubin, ImageKind::Object);
    for (images, expected, reason) in [
        (&[(cubin, NVPTX, "sm_80", sm_80)][..], &[16, 19, 22][..], ""),
        (&[(object, NVPTX, "sm_80", sm_80)], &[16, 19, 22], ""),
        (
            &[(ImageKind::Bitcode, NVPTX, "sm_80", sm_80)],
            &[22],
            "the relocatable cubin for sm_80 is not taken: the offload binary says that it is of the kind `bitcode` instead \
             of `cubin`, which clang up to 19 believe",
        ),
        (&[(ImageKind::Ptx, NVPTX, "sm_80", "k.ptx")], &[16, 19], ""),
        (
            &[(object, NVPTX, "sm_80", "k.ptx")],
            &[],
            "the PTX for sm_80 is not taken: the offload binary says that it is of the kind `object` instead of `PTX`",
        ),
        (
            &[(cubin, "nvptx64", "sm_80", sm_80)],
            &[],
            "the relocatable cubin for sm_80 is not taken: its triple is \"nvptx64\" instead of nvptx64-nvidia-cuda",
        ),
        (
            &[(cubin, NVPTX, "", sm_80)],
            &[],
            "is not taken: \"\" is no chip for CUDA that is known",
        ),
        (
            &[(cubin, NVPTX, "sm_80", sm_90)],
            &[],
            "the relocatable cubin for sm_80 is not taken: it was made for sm_90",
        ),
        (
            &[(cubin, NVPTX, "sm_90", sm_80)],
            &[],
            "the relocatable cubin for sm_90 is not taken: it was made for sm_80",
        ),
        (
            &[(cubin, NVPTX, "sm_80", sm_80), (cubin, NVPTX, "sm_90", sm_90)],
            &[16, 19, 22],
            "",
        ),
        // Two modules for one chip are linked; one of them has the kernel.
        (
            &[(cubin, NVPTX, "sm_80", sm_80), (cubin, NVPTX, "sm_80", other)],
            &[16, 19, 22],
            "",
        ),
        (
            &[(cubin, NVPTX, "sm_80", sm_80), (cubin, NVPTX, "sm_80", sm_80)],
            &[],
            "several images for sm_80 define axpy, table: the device link takes one definition",
        ),
    ] {
        let context = format!("{images:?}");
        let file = embed(&site, &set, images);
        let report = assert_agrees(&site, &file, Runtime::Cuda, expected, &context);
        assert!(
            problem(&report, 16).contains(reason) || problem(&report, 19).contains(reason),
            "{report:#?}"
        );
    }
    // One image is of no form that is known.
    site.write("text", "some text");
    let file = embed(&site, &set, &[(object, NVPTX, "sm_80", "text")]);
    let report = assert_agrees(&site, &file, Runtime::Cuda, &[], "text");
    assert!(
        problem(&report, 22)
            .contains("the image for sm_80 is neither a cubin, nor PTX, bitcode or an object for AMD's"),
        "{report:#?}"
    );
}

#[test]
fn amds_images_are_taken_as_the_check_says() {
    let site = FinishingSite::new();
    let (v5, v6) = (CodeObjectVersion::V5, CodeObjectVersion::V6);
    let cases = [
        ("gfx90a", v5, &[16, 19, 22][..], ""),
        ("gfx90a", v6, &[19, 22], "its lld does not know code object version 6"),
        (
            "gfx942",
            v5,
            &[19, 22],
            "the relocatable code object of version 5 for gfx942 is not taken: clang 16 does not know the chip, which clang \
             17 and newer do",
        ),
    ];
    for (chip, version, expected, reason) in cases {
        let object = site.amd_object("", chip, version);
        let image = (ImageKind::Object, AMDGCN, chip, &*object);
        let mut said = String::new();
        for (list, clangs) in [("15..19", &[16, 19][..]), ("21..23", &[22])] {
            let file = embed(&site, &layouts(list, Runtime::Hip), &[image]);
            let expected: Vec<u32> = expected
                .iter()
                .copied()
                .filter(|release| clangs.contains(release))
                .collect();
            let context = format!("{chip} {version} {list}");
            let report = assert_agrees(&site, &file, Runtime::Hip, &expected, &context);
            said.extend([16, 19, 22].map(|release| problem(&report, release)));
        }
        assert!(said.contains(reason), "{said}");
    }
    let object = site.amd_object("", "gfx90a", v5);
    let set = layouts("21..23", Runtime::Hip);
    let file = embed(&site, &set, &[(ImageKind::Object, AMDGCN, "gfx90a:xnack+", &object)]);
    assert_agrees(&site, &file, Runtime::Hip, &[22], "xnack");
    let file = embed(&site, &set, &[(ImageKind::Object, AMDGCN, "gfx1", &object)]);
    let report = assert_agrees(&site, &file, Runtime::Hip, &[], "an unknown chip");
    assert!(
        problem(&report, 22).contains("\"gfx1\" is no chip for HIP that is known"),
        "{report:#?}"
    );
}

/// What no exit status shows: the link succeeds and the kernel is registered, and no device finds it.
#[test]
fn kernels_that_no_device_finds_are_named() {
    let site = FinishingSite::new();
    let set = layouts("21..23", Runtime::Hip);
    let version = CodeObjectVersion::V5;
    site.amd_object("", "gfx90a", version);
    let text = String::from_utf8(site.read(".gfx90a.ll")).expect("text");
    site.write("hidden.ll", text.replace("define protected", "define hidden"));
    let llc = [
        "-filetype=obj",
        "-relocation-model=pic",
        "-mcpu=gfx90a",
        "hidden.ll",
        "-o",
        "hidden.o",
    ];
    site.run("/usr/lib/llvm-22/bin/llc", &llc);
    let object = export(
        &site,
        "",
        &set,
        &[("gfx90a", ImageForm::AmdObject(version), "hidden.o")],
    );
    let report = check(&site.read(&object)).expect("an object");
    assert_eq!(
        problem(&report, 22),
        "axpy is registered, and the image for gfx90a does not define it for others to see, a kernel as NAME.kd"
    );
    site.link("clang-22", &[&object], &[], Runtime::Hip).expect("linked");
    let finished = check(&site.read("app")).expect("app").finished.expect("finished");
    assert!(
        finished
            .problems
            .join("")
            .starts_with("axpy is registered, and the image for"),
        "{finished:?}"
    );
    // With the chip of another name the link succeeds, too.
    let other = site.amd_object("", "gfx1030", version);
    let object = embed(&site, &set, &[(ImageKind::Object, AMDGCN, "gfx90a", &other)]);
    site.link("clang-22", &[&object], &[], Runtime::Hip).expect("linked");
    let report = check(&site.read(&object)).expect("an object");
    assert!(
        problem(&report, 22).contains("for gfx90a is not taken: it was made for gfx1030"),
        "{report:#?}"
    );
}

#[test]
fn numbers_of_languages_and_versions_of_binaries_are_told() {
    let site = FinishingSite::new();
    let object = site.amd_object("", "gfx90a", CodeObjectVersion::V5);
    let image = ("gfx90a", ImageForm::AmdObject(CodeObjectVersion::V5), &*object);
    // HIP's number for clang up to 20 is OpenMP and CUDA to newer ones.
    let file = export(&site, "", &layouts("20", Runtime::Hip), &[image]);
    let report = check(&site.read(&file)).expect("an object");
    assert!(complete(&report, 20), "{report:#?}");
    let text = problem(&report, 22);
    assert!(
        text.contains("it looks for entries in the section llvm_offload_entries"),
        "{text}"
    );
    let cubin = site.read(&site.cubin("", "sm_80"));
    let set = layouts("15..19,21..23", Runtime::Cuda);
    let file = embed_content(&site, &set, &version_2(&cubin));
    let report = assert_agrees(&site, &file, Runtime::Cuda, &[], "version 2");
    assert!(complete(&report, 23), "{report:#?}");
    let text = problem(&report, 22);
    assert!(
        text.contains("it reads offload binaries up to version 1, and there is one of version 2"),
        "{text}"
    );
}

/// An offload binary as LLVM 23 writes it.
fn version_2(cubin: &[u8]) -> Vec<u8> {
    let strings = b"arch\0sm_80\0triple\0nvptx64-nvidia-cuda\0";
    // Header, entry, two string entries.
    let text = 32 + 40 + 2 * 24;
    let image = (text + strings.len()).next_multiple_of(8);
    let size = (image + cubin.len()).next_multiple_of(8);
    let mut binary = offload_binary::MAGIC.to_vec();
    binary.extend(2u32.to_le_bytes());
    let mut numbers = |values: &[usize]| binary.extend(values.iter().flat_map(|value| (*value as u64).to_le_bytes()));
    // Kind of the image 3 and of the language 2, flags 0.
    numbers(&[size, 32, 1, 3 | 2 << 16, 72, 2, image, cubin.len()]);
    numbers(&[text, text + 5, 5, text + 11, text + 18, 19]);
    binary.extend(strings);
    binary.resize(image, 0);
    binary.extend(cubin);
    binary.resize(size, 0);
    binary
}
