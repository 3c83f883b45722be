//! Device images in a host module, where clang's linker wrapper finds them.

use super::{
    error::OffloadError,
    ir_text::{IrText, bytes},
    layout::{ImageForm, LayoutSet, language, refusal},
    openmp::{CALL_KEY, KernelCall},
    runtime::Runtime,
};
use crate::{
    container::{
        host_sections::{LLVM_OFFLOADING_ALIGN, LLVM_OFFLOADING_SECTION, SHT_LLVM_OFFLOADING},
        offload_binary::{self, Image},
    },
    target::Target,
};

/// An image of one device module for one chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipImage<'a> {
    /// What it was made for.
    pub target: Target,
    /// What it is.
    pub form: ImageForm,
    /// The image.
    pub bytes: &'a [u8],
}

/// Adds the images as offload binaries of version 1, which every release reads, one for each image.
///
/// The section's type and its mark for the linker to drop it come from its name and from `!exclude`;
/// `!llvm.embedded.objects` is for links of bitcode. Identical images are added once.
///
/// # Errors
///
/// [`OffloadError`]: no images, or one that a release of the set would not use.
pub fn add(module: &mut IrText, images: &[ChipImage<'_>], layouts: &LayoutSet) -> Result<(), OffloadError> {
    let content = binaries(images, layouts)?;
    let name = "@llvm.embedded.object";
    module.define(&format!(
        "{name} = private constant [{} x i8] c\"{}\", section \"{LLVM_OFFLOADING_SECTION}\", align \
         {LLVM_OFFLOADING_ALIGN}, !exclude !0",
        content.len(),
        bytes(&content)
    ));
    module.keep_in_compiler(name.to_owned());
    module.embedded(name.to_owned(), LLVM_OFFLOADING_SECTION);
    Ok(())
}

/// The same as assembly, for where IR cannot say that the linker has to drop the section: MLIR's LLVM dialect has no
/// `!exclude`.
///
/// # Errors
///
/// As [`add`].
pub fn assembly(images: &[ChipImage<'_>], layouts: &LayoutSet) -> Result<String, OffloadError> {
    let content = binaries(images, layouts)?;
    let mut text = format!(
        ".section {LLVM_OFFLOADING_SECTION},\"e\",@{SHT_LLVM_OFFLOADING:#x}\n.p2align {}\n",
        LLVM_OFFLOADING_ALIGN.trailing_zeros()
    );
    for line in content.chunks(64) {
        let bytes: Vec<String> = line.iter().map(ToString::to_string).collect();
        text.push_str(&format!(".byte {}\n", bytes.join(",")));
    }
    text.push_str(".text\n");
    Ok(text)
}

/// The offload binaries, one after the other.
fn binaries(images: &[ChipImage<'_>], layouts: &LayoutSet) -> Result<Vec<u8>, OffloadError> {
    for image in images {
        let refused = layouts
            .releases
            .iter()
            .find_map(|release| Some((*release, refusal(*release, image.form)?)));
        if let Some((release, reason)) = refused {
            let (form, target) = (image.form, image.target);
            return Err(OffloadError::new(format!(
                "the {form} for {target} cannot be embedded for {release}: {reason}"
            )));
        }
    }
    let names: Vec<String> = images.iter().map(|image| arch(&image.target)).collect();
    let mut binaries: Vec<Image<'_>> = Vec::new();
    for (image, arch) in images.iter().zip(&names) {
        let mut binary = Image::new(
            image.form.image_kind(),
            language(layouts.runtime),
            layouts.numbering,
            image.target.triple(),
            arch,
            image.bytes,
        )?;
        if layouts.runtime == Runtime::OpenMp {
            binary
                .strings
                .push((CALL_KEY, KernelCall::of(&layouts.releases).name()));
        }
        if !binaries.contains(&binary) {
            binaries.push(binary);
        }
    }
    Ok(offload_binary::write(&binaries)?)
}

/// What clang calls a target: `sm_90a`, `gfx90a:xnack+`.
fn arch(target: &Target) -> String {
    match target {
        Target::Nvidia(nvidia) => nvidia.chip().to_owned(),
        Target::Amd(amd) => amd.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{layout::choose, release::FinishWith};
    use super::*;

    fn embed(list: &str, runtime: Runtime, images: &[(&str, ImageForm, &[u8])]) -> Result<String, OffloadError> {
        let layouts = choose(list.parse::<FinishWith>().expect(list).clangs(), runtime).expect(list);
        let images: Vec<_> = images
            .iter()
            .map(|&(target, form, bytes)| ChipImage {
                target: target.parse().expect(target),
                form,
                bytes,
            })
            .collect();
        let mut module = IrText::default();
        add(&mut module, &images, &layouts)?;
        Ok(module.finish(&"x86_64-unknown-linux-gnu".parse().expect("a host"), ""))
    }

    #[test]
    fn each_image_is_a_binary_of_version_1_and_identical_ones_are_one() {
        let cubin = ImageForm::RelocatableCubin;
        let text = embed(
            "15..19,21..23",
            Runtime::Cuda,
            &[("sm_80", cubin, b"a"), ("sm_90a", cubin, b"b"), ("sm_80", cubin, b"a")],
        )
        .expect("embedded");
        let line = text
            .lines()
            .find(|line| line.starts_with("@llvm.embedded.object"))
            .expect("the object");
        assert!(
            line.ends_with("section \".llvm.offloading\", align 8, !exclude !0"),
            "{line}"
        );
        assert_eq!(line.matches("\\10\\FF\\10\\AD\\01\\00\\00\\00").count(), 2, "{line}");
        assert!(line.contains("sm_90a"), "{line}");
        assert!(text.contains("!llvm.embedded.objects = !{!1}"), "{text}");
    }

    #[test]
    fn images_that_a_release_would_drop_are_refused() {
        for (list, runtime, target, form, message) in [
            (
                "19,21",
                Runtime::Cuda,
                "sm_80",
                ImageForm::Ptx,
                "the PTX for sm_80 cannot be embedded for clang 21: its clang-nvlink-wrapper takes no PTX",
            ),
            (
                "18..19",
                Runtime::Cuda,
                "sm_80",
                ImageForm::LinkedCubin,
                "the linked cubin for sm_80 cannot be embedded for clang 18: its nvlink passes over linked cubins",
            ),
            (
                "22",
                Runtime::Hip,
                "gfx90a:xnack-",
                ImageForm::AmdLinked,
                "the linked code object for gfx90a:xnack- cannot be embedded for clang 22: its link",
            ),
        ] {
            let error = embed(list, runtime, &[(target, form, b"x")])
                .expect_err(list)
                .to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = embed("22", Runtime::Hip, &[]).expect_err("none").to_string();
        assert!(error.contains("there is none to write"), "{error}");
    }
}
