//! The way through a file: containers are opened, images described, and everything is noted where it lies.

use super::describe::{self, state_target};
use super::limits::Limits;
use super::model::{Container, Image, Inspection};
use crate::{FileKind, ReadError, read::start};

/// Inspects a whole file.
pub(super) fn file(name: &str, bytes: &[u8], see: &mut dyn FnMut(&Image, &[u8])) -> Result<Inspection, ReadError> {
    let Some(kind) = kind_of(bytes) else {
        return Err(refusal(bytes));
    };
    let mut walk = Walk {
        inspection: Inspection {
            file: name.to_owned(),
            bytes: bytes.len() as u64,
            device_bytes: 0,
            containers: Vec::new(),
            images: Vec::new(),
        },
        limits: Limits::of(bytes),
        see,
    };
    let place = Place {
        offset: Some(0),
        ..Place::default()
    };
    walk.kind(kind, bytes, &place);
    Ok(walk.inspection)
}

/// The kind of bytes, if it is one that is read: source code is not.
pub(super) fn kind_of(bytes: &[u8]) -> Option<FileKind> {
    match FileKind::of(bytes) {
        FileKind::MlirBytecode | FileKind::LlvmIr | FileKind::Text | FileKind::ThinArchive | FileKind::Unknown => None,
        kind => Some(kind),
    }
}

/// What holds no images yet.
const SOURCE: &str = "MLIR or LLVM IR, which holds no images: compile it first, with `gpulower compile`";

/// Whether a file looks like MLIR or LLVM IR as text.
fn is_source(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "module",
        "builtin.module",
        "gpu.module",
        "func.func",
        "llvm.func",
        "define ",
        "target ",
        "#map",
    ];
    let text = bytes
        .get(..bytes.len().min(1 << 16))
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    text.lines()
        .map(str::trim_start)
        .any(|line| BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)))
}

/// Why a file of no such kind is refused.
fn refusal(bytes: &[u8]) -> ReadError {
    let not_read = |what: &str| ReadError::not_read(format!("it is {what}"));
    match bytes {
        [] => ReadError::other_format("the file is empty"),
        [b'M', b'Z', ..] => not_read("a Windows program: only ELF files are read"),
        [0xcf, 0xfa, 0xed, 0xfe, ..] => not_read("a macOS program: only ELF files are read"),
        [b'P', b'K', 3, 4, ..] => not_read("a zip file, as a Python wheel is: unpack it, and name a file in it"),
        [0x1f, 0x8b, ..] => not_read("a gzip file: unpack it"),
        _ if FileKind::of(bytes) == FileKind::ThinArchive => not_read(
            "a thin archive, which holds the names of its members and none of their bytes: name the object files, or \
             make a full archive of it with llvm-ar cqsL FULL.a THIN.a",
        ),
        [b'M', b'L', 0xef, b'R', ..] => not_read(SOURCE),
        _ if is_source(bytes) => not_read(SOURCE),
        _ => ReadError::other_format(format!(
            "it is none of the files that are read: it starts with [{}]. Read are cubin, PTX, fat binary, AMDGPU code \
             object, offload bundle, offload binary, LLVM bitcode, and 64-bit little-endian ELF files and ar archives \
             which hold any of them",
            start(bytes, 8)
        )),
    }
}

/// Where a piece of the file lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'a> {
    /// The container around it.
    pub(super) container: Option<usize>,
    /// The section, member or bundle entry.
    pub(super) label: Option<&'a str>,
    /// Its offset in the file, unless it was decompressed.
    pub(super) offset: Option<u64>,
    /// How many containers are around it.
    pub(super) depth: usize,
    /// The target that the container states.
    pub(super) target: Option<&'a str>,
    /// Whether a container of device code is around it.
    pub(super) in_device_code: bool,
}

impl Place<'_> {
    /// The offset in the file of something at an offset from here.
    pub(super) fn at(&self, offset: u64) -> Option<u64> {
        self.offset?.checked_add(offset)
    }
}

pub(super) struct Walk<'see> {
    pub(super) inspection: Inspection,
    pub(super) limits: Limits,
    see: &'see mut dyn FnMut(&Image, &[u8]),
}

impl Walk<'_> {
    /// Whatever lies in a container for images.
    pub(super) fn content(&mut self, bytes: &[u8], place: &Place<'_>) {
        match kind_of(bytes) {
            Some(kind) => self.kind(kind, bytes, place),
            None => {
                let image = describe::image(FileKind::Unknown, bytes);
                self.add_image(image, bytes, place);
            }
        }
    }

    fn kind(&mut self, kind: FileKind, bytes: &[u8], place: &Place<'_>) {
        if !place.in_device_code && !kind.is_host() && kind != FileKind::Archive {
            self.inspection.device_bytes = self.inspection.device_bytes.saturating_add(bytes.len() as u64);
        }
        let inside = Place {
            in_device_code: true,
            ..*place
        };
        match kind {
            _ if kind.is_host() => self.host_elf(bytes, place),
            FileKind::Archive => self.archive(bytes, place),
            FileKind::FatBinary | FileKind::Bundle | FileKind::OffloadBinary => {
                self.sequence(bytes, &inside);
            }
            FileKind::TextBundle => self.text_bundle(bytes, &inside),
            _ => {
                if let Err(error) = self.limits.part(bytes.len(), place.depth) {
                    return self.unread_image(kind, bytes.len(), error, place);
                }
                let image = describe::image(kind, bytes);
                self.list_image(image, bytes, place);
            }
        }
    }

    /// Lists an image that was described, and hands it over.
    pub(super) fn add_image(&mut self, image: Image, bytes: &[u8], place: &Place<'_>) {
        match self.limits.part(bytes.len(), place.depth) {
            Ok(()) => self.list_image(image, bytes, place),
            Err(error) => self.unread_image(image.kind, bytes.len(), error, place),
        }
    }

    fn list_image(&mut self, mut image: Image, bytes: &[u8], place: &Place<'_>) {
        self.put(&mut image, place);
        (self.see)(&image, bytes);
        self.inspection.images.push(image);
    }

    /// Lists an image whose bytes could not be had.
    pub(super) fn add_unread(&mut self, mut image: Image, place: &Place<'_>) {
        if let Err(error) = self.limits.part(0, place.depth) {
            return self.unread_image(image.kind, 0, error, place);
        }
        self.put(&mut image, place);
        self.inspection.images.push(image);
    }

    /// Lists that images are not read, once for each container.
    fn unread_image(&mut self, kind: FileKind, bytes: usize, error: String, place: &Place<'_>) {
        let before = self.inspection.images.last();
        if before.is_some_and(|before| before.container == place.container && before.error.as_ref() == Some(&error)) {
            return;
        }
        let mut image = Image::new(kind, bytes);
        image.error = Some(error);
        self.put(&mut image, place);
        self.inspection.images.push(image);
    }

    fn put(&self, image: &mut Image, place: &Place<'_>) {
        image.number = self.inspection.images.len() + 1;
        image.container = place.container;
        image.label = place.label.map(str::to_owned);
        image.offset = place.offset;
        image.stored_bytes = image.stored_bytes.filter(|_| place.offset.is_some());
        if let Some(stated) = place.target {
            state_target(image, stated);
        }
    }

    /// Lists a container, and says where its contents lie. `None` if the limits are reached.
    pub(super) fn add_container<'a>(
        &mut self,
        mut container: Container,
        read: usize,
        place: &Place<'a>,
    ) -> Option<Place<'a>> {
        let limit = self.limits.part(read, place.depth);
        if let Err(error) = &limit {
            let before = self.inspection.containers.last();
            if before.is_some_and(|before| before.error.as_ref() == Some(error)) {
                return None;
            }
            container.error = Some(error.clone());
        }
        container.parent = place.container;
        container.label = place.label.map(str::to_owned);
        container.offset = place.offset;
        self.inspection.containers.push(container);
        limit.ok().map(|()| Place {
            container: Some(self.inspection.containers.len() - 1),
            label: None,
            depth: place.depth + 1,
            target: None,
            ..*place
        })
    }

    /// Notes what is wrong with a container that is listed.
    pub(super) fn container_error(&mut self, place: &Place<'_>, error: String) {
        let container = place
            .container
            .and_then(|index| self.inspection.containers.get_mut(index));
        if let Some(container) = container {
            container.error.get_or_insert(error);
        }
    }
}
