//! Writes and reads clang's offload bundles: code objects for several devices in one file, as HIP loads them.
//!
//! A bundle has a binary form (code objects, bitcode) and a text form (assembly, LLVM IR, preprocessed source); either may
//! be compressed. [`write()`] gives the bytes that `clang-offload-bundler` 22 gives for the same images; [`read`] and
//! [`read_all`] take apart whatever clang 14 to 22 wrote. The third form, sections of a host object, is read by
//! [`section_id`] and [`from_sections`].
//!
//! ```
//! use gpulower_image::container::bundle::{self, BundleImage, BundleOptions};
//!
//! let code_object = b"\x7fELF...";
//! let images = [BundleImage::host(), BundleImage::hip(&"gfx942".parse()?, code_object)];
//! let bytes = bundle::write(&images, &BundleOptions::default())?;
//! let bundle = bundle::read(&bytes)?;
//! let entry = bundle.find(&"hip-amdgcn-amd-amdhsa--gfx942".parse()?).expect("the entry that was written");
//! assert_eq!((entry.offset, entry.bytes), (4096, &code_object[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: clang/docs/ClangOffloadBundler.rst and clang/lib/Driver/OffloadBundler.cpp of LLVM 22.

use std::borrow::Cow;
use std::ops::Range;

pub use super::bundle_compressed::{CompressedHeader, Compression, CompressionMethod, CompressionVersion};
pub use super::bundle_error::{BundleError, BundleWriteError};
pub use super::bundle_id::{BundleId, BundleIdError, OffloadKind};
pub use super::bundle_text::Comment;
use super::{bundle_binary, bundle_compressed, bundle_text};
use crate::target::{AmdTarget, Target};

/// Alignment of the images in a bundle for HIP, in bytes: a page, so that a loader can map code objects where they are.
/// Clang passes it as `-bundle-align=4096` (clang/lib/Driver/ToolChains/HIPUtility.cpp).
pub const HIP_ALIGNMENT: u32 = 4096;

/// Magic of the binary form, and part of the marks of the others.
pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// An image to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleImage<'a> {
    /// What the entry is called. It is written as it stands, not normalised.
    pub id: BundleId,
    /// The content: a code object, bitcode, or text.
    pub bytes: &'a [u8],
}

impl<'a> BundleImage<'a> {
    /// The empty entry for the host with which bundles for HIP begin.
    #[must_use]
    pub fn host() -> Self {
        Self {
            id: BundleId::linux_host(),
            bytes: &[],
        }
    }

    /// A HIP code object for `target`.
    #[must_use]
    pub fn hip(target: &AmdTarget, bytes: &'a [u8]) -> Self {
        let id = BundleId::hip(target);
        Self { id, bytes }
    }
}

/// How the entries of a bundle are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BundleForm {
    /// A table of offsets, and the images behind it: `clang-offload-bundler -type=o`, `bc`, `gch` and `ast`.
    Binary,
    /// Text between comments.
    Text(Comment),
}

/// How a bundle is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleOptions {
    /// Form of the bundle.
    pub form: BundleForm,
    /// Binary form: where images may start, in bytes; a power of two up to [`MAX_ALIGNMENT`]. Offsets count from the
    /// start of the (uncompressed) bundle.
    pub alignment: u32,
    /// How the whole is compressed. Plain bundles are the ones that every HIP runtime loads.
    pub compression: Option<Compression>,
}

impl Default for BundleOptions {
    /// What clang writes for HIP: binary, aligned to [`HIP_ALIGNMENT`], not compressed.
    fn default() -> Self {
        Self {
            form: BundleForm::Binary,
            alignment: HIP_ALIGNMENT,
            compression: None,
        }
    }
}

impl BundleOptions {
    /// What `clang-offload-bundler` writes unless asked otherwise, for example for bitcode: binary, without padding.
    #[must_use]
    pub fn packed() -> Self {
        Self {
            alignment: 1,
            ..Self::default()
        }
    }

    /// Text between comments.
    #[must_use]
    pub fn text(comment: Comment) -> Self {
        Self {
            form: BundleForm::Text(comment),
            ..Self::packed()
        }
    }
}

/// Largest alignment that is written, in bytes: a huge page. More would only make the file longer.
pub const MAX_ALIGNMENT: u32 = 2 << 20;

/// Writes a bundle that holds `images` in that order.
///
/// # Errors
///
/// [`BundleWriteError`]: no images, two that no loader could choose between, or an option or an image that the form cannot
/// express.
pub fn write(images: &[BundleImage<'_>], options: &BundleOptions) -> Result<Vec<u8>, BundleWriteError> {
    check_images(images)?;
    let bytes = match options.form {
        BundleForm::Binary => bundle_binary::write(images, options.alignment)?,
        BundleForm::Text(comment) => bundle_text::write(images, comment)?,
    };
    match options.compression {
        None => Ok(bytes),
        Some(compression) => bundle_compressed::compress(&bytes, compression),
    }
}

/// Refuses what clang refuses: no images, the same entry twice, and two of one AMD chip of which one leaves a feature open
/// that the other sets.
fn check_images(images: &[BundleImage<'_>]) -> Result<(), BundleWriteError> {
    if images.is_empty() {
        return Err(BundleWriteError::Empty);
    }
    for (index, first) in images.iter().enumerate() {
        for second in images.iter().skip(index + 1) {
            let (first, second) = (&first.id, &second.id);
            if first.means_same(second) {
                let (first, second) = (first.to_string(), second.to_string());
                return Err(BundleWriteError::Duplicate { first, second });
            }
            if first.kind().means_same(second.kind())
                && let (Some(one @ Target::Amd(_)), Some(other @ Target::Amd(_))) = (first.target(), second.target())
            {
                Target::check_one_binary(&[one, other]).map_err(BundleWriteError::Ambiguous)?;
            }
        }
    }
    Ok(())
}

/// A bundle, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle<'data> {
    /// Where it starts, in bytes from the start of what was read.
    pub offset: u64,
    /// How many bytes it takes there, up to the end of its last image. For a compressed bundle that is not the size of
    /// [`content`](Self::content).
    pub size: u64,
    /// Form of the bundle.
    pub form: BundleForm,
    /// How it was compressed, if it was.
    pub compression: Option<CompressedHeader>,
    /// The bundle without compression.
    pub content: Cow<'data, [u8]>,
    pub(super) entries: Vec<Place>,
}

/// Where the name and the image of an entry lie in the content of a bundle. The readers have checked both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub id: Range<usize>,
    pub bytes: Range<usize>,
}

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleEntry<'a> {
    /// Its name as it is written.
    pub id: &'a str,
    /// What the name means, if it can be understood.
    pub parsed: Result<BundleId, BundleIdError>,
    /// Where the image starts, in bytes from the start of the bundle without compression.
    pub offset: u64,
    /// The image.
    pub bytes: &'a [u8],
}

impl<'a> BundleEntry<'a> {
    fn new(id: &'a str, offset: u64, bytes: &'a [u8]) -> Self {
        Self {
            id,
            parsed: id.parse(),
            offset,
            bytes,
        }
    }

    /// Whether the entry is the host's.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.parsed.as_ref().is_ok_and(|id| id.kind() == OffloadKind::Host)
    }

    /// Whether the entry only stands for the host object in whose section it lies: one zero byte.
    #[must_use]
    pub fn is_host_placeholder(&self) -> bool {
        self.is_host() && self.bytes == [0]
    }
}

impl Bundle<'_> {
    /// The entries, in the order of the file.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = BundleEntry<'_>> {
        self.entries.iter().map(|place| {
            let id = self.content.get(place.id.clone()).unwrap_or_default();
            let bytes = self.content.get(place.bytes.clone()).unwrap_or_default();
            BundleEntry::new(
                std::str::from_utf8(id).unwrap_or_default(),
                place.bytes.start as u64,
                bytes,
            )
        })
    }

    /// The entry that `clang-offload-bundler -unbundle -targets=<wanted>` extracts, by [`BundleId::serves`]; one that
    /// means exactly what is wanted before any other.
    #[must_use]
    pub fn find(&self, wanted: &BundleId) -> Option<BundleEntry<'_>> {
        let by = |accepts: fn(&BundleId, &BundleId) -> bool| {
            self.entries()
                .find(|entry| entry.parsed.as_ref().is_ok_and(|id| accepts(id, wanted)))
        };
        by(BundleId::means_same).or_else(|| by(BundleId::serves))
    }
}

/// Whether `bytes` begin as a bundle of any form does.
#[must_use]
pub fn is_bundle(bytes: &[u8]) -> bool {
    is_binary_bundle(bytes) || is_text_bundle(bytes)
}

/// Whether `bytes` begin as a binary bundle does, compressed or not.
pub(crate) fn is_binary_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(bundle_compressed::MAGIC)
}

/// Whether `bytes` begin as a bundle in comments of a text does.
pub(crate) fn is_text_bundle(bytes: &[u8]) -> bool {
    bundle_text::comment_of(bytes).is_some()
}

/// Reads a file that is one bundle and nothing else but zeros at its end.
///
/// # Errors
///
/// [`BundleError`], which names the offset.
pub fn read(bytes: &[u8]) -> Result<Bundle<'_>, BundleError> {
    let mut budget = default_budget(bytes);
    let bundle = read_at(bytes, 0, &mut budget)?;
    match skip_padding(bytes, bundle.size)? {
        None => Ok(bundle),
        Some(offset) => Err(BundleError::Damaged {
            what: "the end of the bundle",
            offset,
            problem: "another bundle follows, of which there should be one only".to_owned(),
        }),
    }
}

/// Reads the bundle at the start of `bytes`; whatever follows it is not looked at.
///
/// `budget` is what a compressed bundle may have when decompressed, in bytes, and is lowered by what it has.
///
/// # Errors
///
/// As [`read`].
pub fn read_first<'data>(bytes: &'data [u8], budget: &mut u64) -> Result<Bundle<'data>, BundleError> {
    read_at(bytes, 0, budget)
}

/// Reads bundles that lie behind one another with nothing but zeros between them, as the linker leaves them in
/// `.hip_fatbin` and as rocBLAS ships them (ROCm/llvm-project#448).
///
/// All that is decompressed must stay below 64 MiB and 1024 times the size of `bytes`, which genuine code objects are far
/// from: a small file cannot take the memory of the machine. [`read_all_within`] sets another limit.
///
/// # Errors
///
/// [`BundleError`], which names the offset; also if there is no bundle at all.
pub fn read_all(bytes: &[u8]) -> Result<Vec<Bundle<'_>>, BundleError> {
    read_all_within(bytes, default_budget(bytes))
}

/// [`read_all`] with a limit of one's own: the most bytes that decompressed bundles may have together.
///
/// # Errors
///
/// As [`read_all`].
pub fn read_all_within(bytes: &[u8], mut budget: u64) -> Result<Vec<Bundle<'_>>, BundleError> {
    let mut bundles = Vec::new();
    let mut next = Some(0);
    while let Some(offset) = next {
        let bundle = read_at(bytes, offset, &mut budget)?;
        next = skip_padding(bytes, offset.saturating_add(bundle.size))?;
        bundles.push(bundle);
    }
    Ok(bundles)
}

/// What decompressed bundles may have together, in bytes, unless the caller says otherwise.
fn default_budget(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).saturating_mul(1024).saturating_add(64 << 20)
}

/// Where the next bundle starts behind the zeros at `offset`, if one does.
fn skip_padding(bytes: &[u8], offset: u64) -> Result<Option<u64>, BundleError> {
    let rest = tail(bytes, offset);
    let Some(padding) = rest.iter().position(|&byte| byte != 0) else {
        return Ok(None);
    };
    let next = offset.saturating_add(padding as u64);
    if is_bundle(tail(bytes, next)) {
        return Ok(Some(next));
    }
    Err(BundleError::Damaged {
        what: "the end of the bundle",
        offset: next,
        problem: "neither zeros nor another bundle follow".to_owned(),
    })
}

/// What lies from `offset` on; nothing if that is behind the end.
pub(super) fn tail(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset)
        .ok()
        .and_then(|offset| bytes.get(offset..))
        .unwrap_or_default()
}

fn read_at<'data>(bytes: &'data [u8], offset: u64, budget: &mut u64) -> Result<Bundle<'data>, BundleError> {
    let rest = tail(bytes, offset);
    if rest.starts_with(bundle_compressed::MAGIC) {
        let (header, size, content) = bundle_compressed::decompress(rest, offset, budget)?;
        let inside = |source| BundleError::Compressed {
            offset,
            source: Box::new(source),
        };
        let (form, used, entries) = read_plain(&content, 0).map_err(inside)?;
        if let Some(offset) = skip_padding(&content, used).map_err(inside)? {
            return Err(inside(BundleError::Damaged {
                what: "the end of the bundle",
                offset,
                problem: "another bundle follows, of which there should be one only".to_owned(),
            }));
        }
        return Ok(Bundle {
            offset,
            size,
            form,
            compression: Some(header),
            content: Cow::Owned(content),
            entries,
        });
    }
    let (form, size, entries) = read_plain(rest, offset)?;
    let content = usize::try_from(size).ok().and_then(|size| rest.get(..size));
    Ok(Bundle {
        offset,
        size,
        form,
        compression: None,
        content: Cow::Borrowed(content.unwrap_or(rest)),
        entries,
    })
}

/// Reads a bundle without compression at the start of `bytes`: its form, size and entries. `base` is where `bytes` start in
/// the file, for messages.
fn read_plain(bytes: &[u8], base: u64) -> Result<(BundleForm, u64, Vec<Place>), BundleError> {
    if bytes.starts_with(MAGIC) {
        let (size, entries) = bundle_binary::read(bytes, base)?;
        return Ok((BundleForm::Binary, size, entries));
    }
    if let Some(comment) = bundle_text::comment_of(bytes) {
        let (size, entries) = bundle_text::read(bytes, base, comment)?;
        return Ok((BundleForm::Text(comment), size, entries));
    }
    let start = bytes.get(..bytes.len().min(MAGIC.len())).unwrap_or_default();
    Err(BundleError::NotBundle {
        offset: base,
        start: start.escape_ascii().to_string(),
    })
}

/// Name of the entry that a section of a host object holds: what follows `__CLANG_OFFLOAD_BUNDLE__` in its name. `None` if
/// the section holds none.
#[must_use]
pub fn section_id(section: &str) -> Option<&str> {
    let magic = std::str::from_utf8(MAGIC).unwrap_or_default();
    section.strip_prefix(magic).filter(|id| !id.is_empty())
}

/// The entries of a bundle that clang wrote as sections of a host object (`-type=o`), from the names and contents of the
/// object's sections. The offsets are 0: each entry is the whole of its section. The host's is a placeholder of one byte
/// ([`BundleEntry::is_host_placeholder`]), which stands for the object without these sections.
pub fn from_sections<'a>(sections: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<BundleEntry<'a>> {
    sections
        .into_iter()
        .filter_map(|(name, bytes)| Some(BundleEntry::new(section_id(name)?, 0, bytes)))
        .collect()
}
