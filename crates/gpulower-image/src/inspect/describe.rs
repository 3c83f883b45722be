//! One image, described from its bytes.

use super::elf_image;
use super::model::{DebugInfo, Image, Kernel};
use crate::image::{lto_ir, producer, ptx, ptx_entries};
use crate::target::NvidiaArch;
use crate::{FileKind, read::start};

/// Describes an image that is said to be of a kind. What is wrong with it stands in [`Image::error`].
pub(super) fn image(kind: FileKind, bytes: &[u8]) -> Image {
    let mut image = Image::new(kind, bytes.len());
    let result = match kind {
        FileKind::Cubin => elf_image::cubin(bytes, &mut image),
        FileKind::Hsaco | FileKind::AmdObject => elf_image::amd(bytes, &mut image),
        FileKind::Ptx => ptx_text(bytes, &mut image),
        FileKind::Bitcode | FileKind::Text | FileKind::SpirV => Ok(()),
        FileKind::LtoIr => {
            image.target =
                lto_ir::arch(bytes).map(|(number, specific)| format!("sm_{number}{}", if specific { "a" } else { "" }));
            Ok(())
        }
        _ => Err(format!("of no kind that is read: it starts with [{}]", start(bytes, 8))),
    };
    if let Err(error) = result {
        image.error = Some(error);
    }
    image
}

fn ptx_text(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let header = ptx::header(&text);
    let Some((major, minor)) = header.version else {
        return Err("PTX that does not begin with .version".to_owned());
    };
    image.ptx_isa = Some(format!("{major}.{minor}"));
    image.target = header.target;
    image.debug = if header.debug { DebugInfo::Full } else { DebugInfo::None };
    image.producer = producer::of_ptx(&text);
    let entries = ptx_entries::entries(bytes).map_err(|error| error.to_string())?;
    image.kernels = entries.into_iter().map(|entry| Kernel::Ptx(Box::new(entry))).collect();
    Ok(())
}

/// Puts what the container says about its target in the place of what the image says: loaders go by the former. A
/// difference is noted.
pub(super) fn state_target(image: &mut Image, stated: &str) {
    if let Some(own) = image.target.take()
        && differ(&own, stated)
    {
        image.remarks.push(format!(
            "the container says that it is for {stated}, and the image says {own}: loaders go by the container"
        ));
    }
    image.target = Some(stated.to_owned());
}

/// Whether two targets are of different chips, or settle a feature differently. A cubin cannot say that it is
/// family-specific, and PTX for sm_80 may be stored for a later chip's suffix, so that of NVIDIA's only numbers count.
fn differ(own: &str, stated: &str) -> bool {
    match (NvidiaArch::parse(own), NvidiaArch::parse(stated)) {
        (Some(own), Some(stated)) => own.number != stated.number,
        _ => {
            let features = |target: &str| -> Vec<String> {
                let mut parts: Vec<String> = target.split(':').map(str::to_owned).collect();
                parts.sort();
                parts
            };
            features(own) != features(stated)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_the_container_contradicts_is_noted() {
        for (own, stated, noted) in [
            ("sm_100", "sm_100f", false),
            ("sm_90", "sm_80", true),
            ("gfx90a:sramecc+:xnack-", "gfx90a:xnack-:sramecc+", false),
            ("gfx90a", "gfx90a:xnack-", true),
            ("gfx942", "gfx90a", true),
        ] {
            let mut image = Image::new(FileKind::Cubin, 0);
            image.target = Some(own.to_owned());
            state_target(&mut image, stated);
            assert_eq!(image.target.as_deref(), Some(stated));
            assert_eq!(!image.remarks.is_empty(), noted, "{own} {stated}");
        }
    }

    #[test]
    fn what_is_no_image_says_so() {
        let message = image(FileKind::Unknown, b"text").error.unwrap();
        assert_eq!(message, "of no kind that is read: it starts with [74 65 78 74]");
        let message = image(FileKind::Ptx, b"text").error.unwrap();
        assert_eq!(message, "PTX that does not begin with .version");
        let message = image(FileKind::Cubin, b"text").error.unwrap();
        assert!(message.starts_with("not an ELF file"), "{message}");
    }
}
