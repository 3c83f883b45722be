//! Containers of images, one after the other as linkers leave them in sections: fat binaries, bundles, offload binaries.

use super::describe::{self, state_target};
use super::model::{Compression, Container, DebugInfo, Image};
use super::walk::{Place, Walk, kind_of};
use crate::container::bundle::{self, Bundle, BundleForm, CompressionMethod};
use crate::container::fatbin::{self, Compression as FatbinCompression, Entry};
use crate::container::offload_binary::{self, BodyCompression};
use crate::{FileKind, read::start};

/// Where the next container is looked for behind a damaged one: all of them start at multiples of this.
const ALIGNMENT: usize = 8;

impl Walk<'_> {
    /// Containers that lie one behind the other with zeros between them.
    pub(super) fn sequence(&mut self, bytes: &[u8], place: &Place<'_>) {
        let mut position = 0usize;
        while let Some((padding, rest)) = bytes.get(position..).and_then(|rest| Some((zeros(rest)?, rest))) {
            position += padding;
            let rest = rest.get(padding..).unwrap_or_default();
            let there = Place {
                offset: place.at(position as u64),
                ..*place
            };
            let result = match FileKind::of_container(rest) {
                Some(FileKind::FatBinary) => self.fat_binary(rest, &there),
                Some(FileKind::Bundle) => self.bundle(rest, &there),
                Some(FileKind::OffloadBinary) => self.offload_binary(rest, &there),
                _ => Err(Damaged {
                    kind: FileKind::Unknown,
                    error: format!(
                        "neither fat binary nor offload bundle nor offload binary: it starts with [{}]",
                        start(rest, 8)
                    ),
                }),
            };
            position += match result {
                Ok(size) => size.max(1),
                Err(damaged) => {
                    // What was tried in vain counts as read: many damaged parts do not make it long.
                    let limit = self.limits.read(rest.len());
                    let next = next_container(rest, position);
                    let mut container = Container::new(damaged.kind, next);
                    container.error = Some(damaged.error);
                    self.add_container(container, 0, &there);
                    if limit.is_err() {
                        return;
                    }
                    next
                }
            };
        }
    }

    fn fat_binary(&mut self, bytes: &[u8], place: &Place<'_>) -> Result<usize, Damaged> {
        let fatbin = fatbin::read_first(bytes).map_err(Damaged::of(FileKind::FatBinary))?;
        let container = Container::new(FileKind::FatBinary, fatbin.size);
        if let Some(inside) = self.add_container(container, fatbin.size, place) {
            for entry in &fatbin.entries {
                self.fat_binary_entry(entry, &inside);
            }
        }
        Ok(fatbin.size)
    }

    fn fat_binary_entry(&mut self, entry: &Entry<'_>, place: &Place<'_>) {
        let there = Place {
            offset: place.at(entry.payload_offset),
            ..*place
        };
        let kind = entry.kind;
        let compression = match entry.compression {
            FatbinCompression::None => None,
            FatbinCompression::Lz4 => Some(Compression::Lz4),
            _ => Some(Compression::Zstd),
        };
        let packed = compression.is_some();
        // Scrambled before it was compressed: no tool but NVIDIA's gets further.
        let opaque = entry.is_obfuscated();
        let budget = if packed && !opaque {
            self.limits.unpack(entry.uncompressed_size)
        } else {
            Ok(())
        };
        let payload = budget.and_then(|()| {
            if opaque {
                Ok(entry.stored.into())
            } else {
                entry.payload().map_err(|error| error.to_string())
            }
        });
        let (mut image, payload) = match payload {
            Ok(payload) => (describe::image(kind, &payload), Some(payload)),
            Err(error) => {
                let mut image = Image::new(kind, 0);
                image.error = Some(error);
                (image, None)
            }
        };
        state_target(&mut image, &entry.arch.to_string());
        image.stored_bytes = Some(entry.stored.len() as u64);
        if packed {
            image.bytes = entry.uncompressed_size;
        }
        image.compression = compression;
        image.identifier = entry.identifier.map(str::to_owned);
        image.options = entry
            .options
            .map(trimmed)
            .filter(|options| !options.is_empty())
            .map(str::to_owned);
        image.mercury |= entry.is_mercury();
        // nvcc stores PTX of relocatable device code with the option that ptxas takes for it.
        let compile_only = |options: &str| options.split_whitespace().any(|option| option == "--compile-only");
        image.relocatable |= image.options.as_deref().is_some_and(compile_only);
        if entry.is_debug() && image.debug == DebugInfo::None {
            image.debug = DebugInfo::Full;
        }
        if opaque {
            image
                .remarks
                .push("it is scrambled: only NVIDIA's tools read it".to_owned());
        }
        if kind == FileKind::Unknown {
            image.error = Some("an entry of a kind that is not known".to_owned());
        }
        match payload {
            Some(payload) => self.add_image(image, &payload, &there),
            None => self.add_unread(image, &there),
        }
    }

    fn bundle(&mut self, bytes: &[u8], place: &Place<'_>) -> Result<usize, Damaged> {
        let mut budget = self.limits.unpacked_left();
        let bundle = bundle::read_first(bytes, &mut budget).map_err(Damaged::of(FileKind::Bundle))?;
        let size = usize::try_from(bundle.size).unwrap_or(usize::MAX).min(bytes.len());
        self.open_bundle(&bundle, size, place);
        Ok(size)
    }

    /// A bundle as text, which is a file of its own.
    pub(super) fn text_bundle(&mut self, bytes: &[u8], place: &Place<'_>) {
        let mut budget = self.limits.unpacked_left();
        match bundle::read_first(bytes, &mut budget) {
            Ok(bundle) => self.open_bundle(&bundle, bytes.len(), place),
            Err(error) => {
                let mut container = Container::new(FileKind::TextBundle, bytes.len());
                container.error = Some(error.to_string());
                self.add_container(container, bytes.len(), place);
            }
        }
    }

    fn open_bundle(&mut self, bundle: &Bundle<'_>, size: usize, place: &Place<'_>) {
        let is_text = matches!(bundle.form, BundleForm::Text(_));
        let kind = if is_text {
            FileKind::TextBundle
        } else {
            FileKind::Bundle
        };
        let mut container = Container::new(kind, size);
        if let Some(header) = &bundle.compression {
            container.version = Some(header.version.number().into());
            container.uncompressed_bytes = Some(header.uncompressed_size);
            container.compression = Some(match header.method {
                CompressionMethod::Zlib => Compression::Zlib,
                _ => Compression::Zstd,
            });
            if let Err(error) = self.limits.unpack(header.uncompressed_size) {
                container.error = Some(error);
            }
        }
        let is_compressed = bundle.compression.is_some();
        let Some(inside) = self.add_container(container, size, place) else {
            return;
        };
        for entry in bundle.entries() {
            if entry.is_host() && (entry.bytes.is_empty() || entry.is_host_placeholder()) {
                continue;
            }
            let there = Place {
                label: Some(entry.id),
                offset: inside.at(entry.offset).filter(|_| !is_compressed),
                target: entry.parsed.as_ref().ok().and_then(|id| id.target_id()),
                ..inside
            };
            if is_text && kind_of(entry.bytes).is_none() {
                self.add_image(describe::image(FileKind::Text, entry.bytes), entry.bytes, &there);
            } else {
                self.content(entry.bytes, &there);
            }
        }
    }
}

impl Walk<'_> {
    fn offload_binary(&mut self, bytes: &[u8], place: &Place<'_>) -> Result<usize, Damaged> {
        let kind = FileKind::OffloadBinary;
        if let Some(size) = inflated_size(bytes) {
            self.limits.unpack(size).map_err(Damaged::of(kind))?;
        }
        let binary = offload_binary::read_first(bytes).map_err(Damaged::of(kind))?;
        let size = usize::try_from(binary.size).unwrap_or(usize::MAX).min(bytes.len());
        let mut container = Container::new(FileKind::OffloadBinary, size);
        container.version = Some(binary.version);
        container.compression = match binary.compression {
            BodyCompression::None => None,
            BodyCompression::Zstd => Some(Compression::Zstd),
            BodyCompression::Zlib => Some(Compression::Zlib),
        };
        let is_compressed = container.compression.is_some();
        container.uncompressed_bytes = is_compressed.then_some(binary.inflated_size);
        let Some(inside) = self.add_container(container, size, place) else {
            return Ok(size);
        };
        for entry in &binary.entries {
            // An entry may be there for its strings alone.
            if entry.image.is_empty() {
                continue;
            }
            let label = [&entry.offload_kind.to_string(), entry.triple().unwrap_or_default()].join(" ");
            let there = Place {
                label: Some(label.trim()),
                offset: inside.at(entry.image_offset).filter(|_| !is_compressed),
                target: entry.arch().filter(|arch| !arch.is_empty()),
                ..inside
            };
            self.content(&entry.image, &there);
        }
        Ok(size)
    }
}

/// The size that a compressed offload binary states: the last field of a header of version 3.
fn inflated_size(bytes: &[u8]) -> Option<u64> {
    let version = bytes.get(4..)?.first_chunk().copied().map(u32::from_le_bytes)?;
    let size = bytes.get(32..)?.first_chunk().copied().map(u64::from_le_bytes)?;
    (version >= 3).then_some(size)
}

/// Why a container could not be opened.
pub(super) struct Damaged {
    pub(super) kind: FileKind,
    pub(super) error: String,
}

impl Damaged {
    pub(super) fn of<E: std::fmt::Display>(kind: FileKind) -> impl Fn(E) -> Self {
        move |error| Self {
            kind,
            error: error.to_string(),
        }
    }
}

/// Options are stored with a NUL, and often with blanks at their end.
fn trimmed(options: &str) -> &str {
    options.trim_matches(|character: char| character == '\0' || character.is_whitespace())
}

/// How many zeros come first; `None` if nothing else comes.
fn zeros(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte != 0)
}

/// Where the next container may start behind something damaged at `position`: at a magic number, or at the end.
fn next_container(bytes: &[u8], position: usize) -> usize {
    (ALIGNMENT - position % ALIGNMENT..bytes.len())
        .step_by(ALIGNMENT)
        .find(|&position| {
            bytes
                .get(position..)
                .is_some_and(|rest| FileKind::of_container(rest).is_some())
        })
        .unwrap_or(bytes.len())
}
