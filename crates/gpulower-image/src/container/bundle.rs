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
//!
//! # The binary form
//!
//! All numbers are little endian, of 64 bits:
//!
//! | bytes | content |
//! |---|---|
//! | 24 | `__CLANG_OFFLOAD_BUNDLE__` |
//! | 8 | number of entries |
//! | 24 + length, for each entry | offset of its image from the start of the bundle, its size, length of its id, the id |
//! | | the images, each at its offset |
//!
//! # The compressed form
//!
//! A header that begins with `CCOB`, and a zlib or zstd stream. All numbers are
//! little endian.
//!
//! | | version 1 | version 2 | version 3 |
//! |---|---|---|---|
//! | magic, version, method | 4 + 2 + 2 bytes | the same | the same |
//! | size with this header | - | 4 bytes | 8 bytes |
//! | size without compression | 4 bytes | 4 bytes | 8 bytes |
//! | hash | 8 bytes | 8 bytes | 8 bytes |
//! | written by clang | 18 | 19 to 21 | 22 |
//!
//! The hash is the first half of the MD5 of the bundle without compression (`llvm::MD5::MD5Result::low`); clang only
//! reports it, here it has to be right. Version 1 does not say where it ends: its stream does.
//!
//! # The text form
//!
//! Each entry lies between two comments, which name it.
//!
//! ```text
//! (empty line)
//! ; __CLANG_OFFLOAD_BUNDLE____START__ <id>
//! <text>
//! ; __CLANG_OFFLOAD_BUNDLE____END__ <id>
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;

use md5::{Digest, Md5};

use super::WriteError;
pub use super::bundle_id::{BundleId, OffloadKind};
use crate::target::{AmdTarget, Target};
use crate::{ReadError, ReadProblem};

/// Alignment of the images in a bundle for HIP, in bytes: a page, so that a loader can map code objects where they are.
/// Clang passes it as `-bundle-align=4096` (clang/lib/Driver/ToolChains/HIPUtility.cpp).
pub const HIP_ALIGNMENT: u32 = 4096;

/// Magic of the binary form, and part of the marks of the others.
const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

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
/// [`WriteError`]: no images, two that no loader could choose between, or an option or an image that the form cannot
/// express.
pub fn write(images: &[BundleImage<'_>], options: &BundleOptions) -> Result<Vec<u8>, WriteError> {
    check_images(images)?;
    let bytes = match options.form {
        BundleForm::Binary => write_binary(images, options.alignment)?,
        BundleForm::Text(comment) => write_text(images, comment)?,
    };
    match options.compression {
        None => Ok(bytes),
        Some(compression) => compress(&bytes, compression),
    }
}

/// Refuses what clang refuses: no images, the same entry twice, and two of one AMD chip of which one leaves a feature open
/// that the other sets.
fn check_images(images: &[BundleImage<'_>]) -> Result<(), WriteError> {
    if images.is_empty() {
        return Err(WriteError::Empty("a bundle needs at least one image"));
    }
    for (index, first) in images.iter().enumerate() {
        for second in images.iter().skip(index + 1) {
            let (first, second) = (&first.id, &second.id);
            if first.means_same(second) {
                return Err(WriteError::Refused(format!(
                    "the bundle entries '{first}' and '{second}' are the same: no loader could choose between them"
                )));
            }
            if first.kind().means_same(second.kind())
                && let (Some(one @ Target::Amd(_)), Some(other @ Target::Amd(_))) = (first.target(), second.target())
            {
                Target::check_one_binary(&[one, other])?;
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
    entries: Vec<Place>,
}

/// Where the name and the image of an entry lie in the content of a bundle. The readers have checked both.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    id: Range<usize>,
    bytes: Range<usize>,
}

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleEntry<'a> {
    /// Its name as it is written.
    pub id: &'a str,
    /// What the name means, if it can be understood.
    pub parsed: Result<BundleId, ReadError>,
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
    bytes.starts_with(MAGIC) || bytes.starts_with(COMPRESSED_MAGIC)
}

/// Whether `bytes` begin as a bundle in comments of a text does.
pub(crate) fn is_text_bundle(bytes: &[u8]) -> bool {
    comment_of(bytes).is_some()
}

/// Reads a file that is one bundle and nothing else but zeros at its end.
///
/// # Errors
///
/// [`ReadError`], which names the offset.
pub fn read(bytes: &[u8]) -> Result<Bundle<'_>, ReadError> {
    let mut budget = default_budget(bytes);
    let bundle = read_at(bytes, 0, &mut budget)?;
    match skip_padding(bytes, bundle.size)? {
        None => Ok(bundle),
        Some(offset) => Err(damaged(
            "the end of the bundle",
            offset,
            "another bundle follows, of which there should be one only".to_owned(),
        )),
    }
}

/// Reads the bundle at the start of `bytes`; whatever follows it is not looked at.
///
/// `budget` is what a compressed bundle may have when decompressed, in bytes, and is lowered by what it has.
///
/// # Errors
///
/// As [`read`].
pub fn read_first<'data>(bytes: &'data [u8], budget: &mut u64) -> Result<Bundle<'data>, ReadError> {
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
/// [`ReadError`], which names the offset; also if there is no bundle at all.
pub fn read_all(bytes: &[u8]) -> Result<Vec<Bundle<'_>>, ReadError> {
    read_all_within(bytes, default_budget(bytes))
}

/// [`read_all`] with a limit of one's own: the most bytes that decompressed bundles may have together.
///
/// # Errors
///
/// As [`read_all`].
pub fn read_all_within(bytes: &[u8], mut budget: u64) -> Result<Vec<Bundle<'_>>, ReadError> {
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
fn skip_padding(bytes: &[u8], offset: u64) -> Result<Option<u64>, ReadError> {
    let rest = tail(bytes, offset);
    let Some(padding) = rest.iter().position(|&byte| byte != 0) else {
        return Ok(None);
    };
    let next = offset.saturating_add(padding as u64);
    if is_bundle(tail(bytes, next)) {
        return Ok(Some(next));
    }
    Err(damaged(
        "the end of the bundle",
        next,
        "neither zeros nor another bundle follow".to_owned(),
    ))
}

/// What lies from `offset` on; nothing if that is behind the end.
fn tail(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset)
        .ok()
        .and_then(|offset| bytes.get(offset..))
        .unwrap_or_default()
}

fn read_at<'data>(bytes: &'data [u8], offset: u64, budget: &mut u64) -> Result<Bundle<'data>, ReadError> {
    let rest = tail(bytes, offset);
    if rest.starts_with(COMPRESSED_MAGIC) {
        let (header, size, content) = decompress(rest, offset, budget)?;
        let inside = |error: ReadError| {
            let place = format!("in the bundle compressed at offset {offset:#x}");
            error.within(place, None)
        };
        let (form, used, entries) = read_plain(&content, 0).map_err(inside)?;
        if let Some(offset) = skip_padding(&content, used).map_err(inside)? {
            return Err(inside(damaged(
                "the end of the bundle",
                offset,
                "another bundle follows, of which there should be one only".to_owned(),
            )));
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
fn read_plain(bytes: &[u8], base: u64) -> Result<(BundleForm, u64, Vec<Place>), ReadError> {
    if bytes.starts_with(MAGIC) {
        let (size, entries) = read_binary(bytes, base)?;
        return Ok((BundleForm::Binary, size, entries));
    }
    if let Some(comment) = comment_of(bytes) {
        let (size, entries) = read_text(bytes, base, comment)?;
        return Ok((BundleForm::Text(comment), size, entries));
    }
    let start = bytes.get(..bytes.len().min(MAGIC.len())).unwrap_or_default();
    let start = start.escape_ascii();
    let message = format!(
        "not an offload bundle: at offset {base:#x} there is \"{start}\" instead of __CLANG_OFFLOAD_BUNDLE__, CCOB or a \
         comment with __CLANG_OFFLOAD_BUNDLE____START__"
    );
    Err(ReadError::other_format(message).at(base))
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

fn damaged(what: &str, offset: u64, problem: impl fmt::Display) -> ReadError {
    ReadError::damaged("offload bundle", what, offset, problem)
}

fn truncated(what: &str, offset: u64, size: u64, end: u64) -> ReadError {
    ReadError::truncated("offload bundle", what, offset, size, format!("file ends at {end:#x}"))
}

/// Bytes of an entry in the table, without its id.
const ENTRY_SIZE: usize = 24;

fn write_binary(images: &[BundleImage<'_>], alignment: u32) -> Result<Vec<u8>, WriteError> {
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(WriteError::Refused(format!(
            "images of a bundle cannot be aligned to {alignment} bytes: give a power of two from 1 to 2097152"
        )));
    }
    let aligned = |offset: usize| offset.next_multiple_of(alignment as usize);
    let table: usize = images.iter().map(|image| ENTRY_SIZE + image.id.as_str().len()).sum();
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend((images.len() as u64).to_le_bytes());
    let mut end = MAGIC.len() + 8 + table;
    for image in images {
        // An empty image is aligned, too.
        let start = aligned(end);
        bytes.extend((start as u64).to_le_bytes());
        bytes.extend((image.bytes.len() as u64).to_le_bytes());
        bytes.extend((image.id.as_str().len() as u64).to_le_bytes());
        bytes.extend(image.id.as_str().as_bytes());
        end = start + image.bytes.len();
    }
    bytes.reserve_exact(end.saturating_sub(bytes.len()));
    for image in images {
        bytes.resize(aligned(bytes.len()), 0);
        bytes.extend(image.bytes);
    }
    Ok(bytes)
}

/// Reads the bundle at the start of `bytes`, which lie at `base` of the file: its size, and its entries.
fn read_binary(bytes: &[u8], base: u64) -> Result<(u64, Vec<Place>), ReadError> {
    let mut table = Table {
        bytes,
        base,
        position: MAGIC.len(),
    };
    let count_at = table.offset();
    let count = table.number("the number of entries")?;
    let possible = (bytes.len().saturating_sub(table.position) / ENTRY_SIZE) as u64;
    if count > possible {
        return Err(damaged(
            "the number of entries",
            count_at,
            format!("{count} entries are stated, but the file has room for {possible} at most"),
        ));
    }

    let mut ids = HashSet::new();
    let mut entries: Vec<(u64, Place)> = Vec::new();
    for _ in 0..count {
        let entry_at = table.offset();
        let start = table.number("an entry")?;
        let size = table.number("an entry")?;
        let id_size = table.number("an entry")?;
        let id_at = table.offset();
        let id = table.take("the id of an entry", id_size)?;
        let text = bytes.get(id.clone()).unwrap_or_default();
        let damaged_id = |problem: String| damaged("the id of an entry", id_at, problem);
        match std::str::from_utf8(text) {
            Err(_) => return Err(damaged_id("it is not UTF-8".to_owned())),
            Ok("") => return Err(damaged_id("it is empty".to_owned())),
            Ok(text) if !ids.insert(text) => {
                return Err(damaged_id(format!("'{}' came before", text.escape_debug())));
            }
            Ok(_) => {}
        }
        let image = range(start, size)
            .filter(|image| image.end <= bytes.len())
            .ok_or_else(|| truncated("the image of an entry", base.saturating_add(start), size, table.end()))?;
        entries.push((entry_at, Place { id, bytes: image }));
    }
    check_overlaps(&entries, table.position, base)?;
    let ends = entries.iter().map(|(_, place)| place.bytes.end);
    let size = ends.max().unwrap_or(0).max(table.position);
    Ok((size as u64, entries.into_iter().map(|(_, place)| place).collect()))
}

/// Refuses images that share bytes with the table, which ends at `table_end`, or with one another.
fn check_overlaps(entries: &[(u64, Place)], table_end: usize, base: u64) -> Result<(), ReadError> {
    let mut by_start: Vec<&(u64, Place)> = entries.iter().collect();
    by_start.sort_by_key(|(_, place)| (place.bytes.start, place.bytes.end));
    let mut taken = table_end;
    for (entry_at, place) in by_start {
        if place.bytes.start < taken {
            let owner = if taken == table_end {
                "the table of entries"
            } else {
                "the image of another entry"
            };
            return Err(damaged(
                "an entry",
                *entry_at,
                format!(
                    "its image at {:#x} lies in {owner}, which ends at {:#x}",
                    base.saturating_add(place.bytes.start as u64),
                    base.saturating_add(taken as u64)
                ),
            ));
        }
        taken = taken.max(place.bytes.end);
    }
    Ok(())
}

fn range(start: u64, size: u64) -> Option<Range<usize>> {
    let end = start.checked_add(size)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Reads the table from front to back.
struct Table<'data> {
    bytes: &'data [u8],
    /// Where the bytes start in the file.
    base: u64,
    position: usize,
}

impl Table<'_> {
    /// The position in the file.
    fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    /// The end of the file.
    fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    fn take(&mut self, what: &'static str, size: u64) -> Result<Range<usize>, ReadError> {
        let taken = range(self.position as u64, size)
            .filter(|taken| taken.end <= self.bytes.len())
            .ok_or_else(|| truncated(what, self.offset(), size, self.end()))?;
        self.position = taken.end;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u64, ReadError> {
        let taken = self.take(what, 8)?;
        let bytes = self.bytes.get(taken).and_then(|bytes| bytes.first_chunk::<8>());
        Ok(u64::from_le_bytes(bytes.copied().unwrap_or_default()))
    }
}

/// First bytes of a compressed bundle.
const COMPRESSED_MAGIC: &[u8] = b"CCOB";

/// Version of the header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "u16")]
#[non_exhaustive]
pub enum CompressionVersion {
    /// Written by clang 18, read by 18 and later.
    V1,
    /// Written by clang 19 to 21, read by 19 and later.
    V2,
    /// Written by clang 22, read by 20 and later: the first for 4 GiB and more. HIP runtimes learned it late
    /// (llvm/llvm-project#152600).
    V3,
}

impl CompressionVersion {
    /// The version as a number, as the header has it.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    const fn header_size(self) -> u64 {
        match self {
            Self::V1 => 20,
            Self::V2 => 24,
            Self::V3 => 32,
        }
    }
}

impl From<CompressionVersion> for u16 {
    fn from(version: CompressionVersion) -> Self {
        version.number()
    }
}

/// What compressed a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CompressionMethod {
    /// zlib, which clang uses where it was built without zstd.
    Zlib,
    /// zstd.
    Zstd,
}

impl CompressionMethod {
    const fn number(self) -> u16 {
        match self {
            Self::Zlib => 0,
            Self::Zstd => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for CompressionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a bundle is to be compressed. The default is clang 22's: version 3, zstd at level 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Version of the header.
    pub version: CompressionVersion,
    /// The compressor.
    pub method: CompressionMethod,
    /// Its level: 0 to 9 for zlib, -131072 to 22 for zstd.
    pub level: i32,
}

impl Default for Compression {
    fn default() -> Self {
        Self {
            version: CompressionVersion::V3,
            method: CompressionMethod::Zstd,
            level: 3,
        }
    }
}

/// What the header of a compressed bundle says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct CompressedHeader {
    /// Version of the header.
    pub version: CompressionVersion,
    /// The compressor.
    pub method: CompressionMethod,
    /// Size of the bundle without compression, in bytes.
    pub uncompressed_size: u64,
    /// First half of the MD5 of the bundle without compression.
    pub hash: u64,
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = Md5::digest(bytes);
    u64::from_le_bytes(digest.first_chunk::<8>().copied().unwrap_or_default())
}

fn compress(bundle: &[u8], compression: Compression) -> Result<Vec<u8>, WriteError> {
    let Compression { version, method, level } = compression;
    let levels = match method {
        CompressionMethod::Zlib => 0..=9,
        CompressionMethod::Zstd => zstd::compression_level_range(),
    };
    if !levels.contains(&level) {
        let (name, least, most) = (method.name(), levels.start(), levels.end());
        return Err(WriteError::Refused(format!(
            "{name} has no compression level {level}: give one from {least} to {most}"
        )));
    }
    let stream = match method {
        CompressionMethod::Zlib => compress_zlib(bundle, level),
        CompressionMethod::Zstd => compress_zstd(bundle, level),
    }
    .map_err(|error| WriteError::Refused(format!("compressing the bundle: {error}")))?;

    let uncompressed_size = bundle.len() as u64;
    let size = version.header_size() + stream.len() as u64;
    let short = |bytes: u64| u32::try_from(bytes).map_err(|_| too_large(version, bytes));
    let mut bytes = COMPRESSED_MAGIC.to_vec();
    bytes.extend(version.number().to_le_bytes());
    bytes.extend(method.number().to_le_bytes());
    match version {
        CompressionVersion::V1 => bytes.extend(short(uncompressed_size)?.to_le_bytes()),
        CompressionVersion::V2 => {
            bytes.extend(short(size)?.to_le_bytes());
            bytes.extend(short(uncompressed_size)?.to_le_bytes());
        }
        CompressionVersion::V3 => {
            bytes.extend(size.to_le_bytes());
            bytes.extend(uncompressed_size.to_le_bytes());
        }
    }
    bytes.extend(hash(bundle).to_le_bytes());
    bytes.extend(stream);
    Ok(bytes)
}

/// Compressed bundles of version 1 and 2 have sizes of 32 bits.
pub(super) fn too_large(version: CompressionVersion, bytes: u64) -> WriteError {
    let version = version.number();
    WriteError::Refused(format!(
        "the bundle has {bytes} bytes, more than version {version} of compressed bundles can say: use version 3"
    ))
}

fn compress_zlib(bundle: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let level = flate2::Compression::new(u32::try_from(level).unwrap_or_default());
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(bundle)?;
    encoder.finish()
}

/// As LLVM does it (llvm/lib/Support/Compression.cpp): in one go, and with long distance matching, by which the images for
/// similar devices share what they have in common.
fn compress_zstd(bundle: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::EnableLongDistanceMatching(true))?;
    compressor.compress(bundle)
}

/// Decompresses the bundle at the start of `bytes`, which lie at `base` of the file: its header, its size in the file, and
/// what came out. `budget` is what may come out, in bytes, and is lowered by what does.
fn decompress(bytes: &[u8], base: u64, budget: &mut u64) -> Result<(CompressedHeader, u64, Vec<u8>), ReadError> {
    let (header, stated_size) = read_header(bytes, base)?;
    let header_size = header.version.header_size();
    let end = usize::try_from(stated_size.unwrap_or(bytes.len() as u64)).ok();
    let stream = end
        .and_then(|end| bytes.get(..end))
        .ok_or_else(|| {
            truncated(
                "a compressed bundle",
                base,
                stated_size.unwrap_or_default(),
                base.saturating_add(bytes.len() as u64),
            )
        })
        .map(|bundle| tail(bundle, header_size))?;

    if header.uncompressed_size > *budget {
        let (size, limit) = (header.uncompressed_size, *budget);
        let message = format!(
            "the offload bundle compressed at offset {base:#x} says that it has {size} bytes; at most {limit} more are \
             decompressed of this file"
        );
        return Err(ReadError::new(ReadProblem::TooLarge, message).at(base));
    }
    let stream_at = base.saturating_add(header_size);
    let stream_damaged = |problem: String| damaged("a compressed bundle", stream_at, problem);
    let failed = |error: std::io::Error| stream_damaged(format!("{}: {error}", header.method));
    // The buffer grows with what really comes out, whatever size is stated.
    let most = header.uncompressed_size.saturating_add(1);
    let mut content = Vec::new();
    let used = match header.method {
        CompressionMethod::Zlib => {
            let mut decoder = flate2::bufread::ZlibDecoder::new(stream);
            (&mut decoder).take(most).read_to_end(&mut content).map_err(failed)?;
            decoder.total_in()
        }
        CompressionMethod::Zstd => {
            // Where the first frame ends; version 1 says so nowhere else.
            let used = zstd::zstd_safe::find_frame_compressed_size(stream)
                .map_err(|code| stream_damaged(format!("zstd: {}", zstd::zstd_safe::get_error_name(code))))?;
            let frame = stream.get(..used).unwrap_or(stream);
            let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(failed)?;
            decoder
                .window_log_max(window_log(header.uncompressed_size))
                .map_err(failed)?;
            decoder.take(most).read_to_end(&mut content).map_err(failed)?;
            used as u64
        }
    };
    if content.len() as u64 != header.uncompressed_size {
        let stated = header.uncompressed_size;
        return Err(stream_damaged(format!(
            "it does not decompress to the {stated} bytes that are stated"
        )));
    }
    if stated_size.is_some() && used < stream.len() as u64 {
        let rest = stream.len() as u64 - used;
        return Err(stream_damaged(format!(
            "{rest} bytes follow the {} stream",
            header.method
        )));
    }
    let computed = hash(&content);
    if computed != header.hash {
        let stored = header.hash;
        let message = format!(
            "damaged offload bundle: what was compressed at offset {base:#x} has the hash {computed:016x}, but \
             {stored:016x} is stored"
        );
        return Err(ReadError::new(ReadProblem::Damaged, message).at(base));
    }
    *budget = budget.saturating_sub(content.len() as u64);
    Ok((header, header_size.saturating_add(used), content))
}

/// The largest window, as a power of two, that a frame of `size` bytes may ask zstd to allocate: what holds it all, within
/// 16 MiB (a frame that was written before its size was known) and 128 MiB (zstd's own limit).
fn window_log(size: u64) -> u32 {
    (u64::BITS - size.leading_zeros()).clamp(24, 27)
}

/// Reads a header, and the size of the compressed bundle where the header states it.
fn read_header(bytes: &[u8], base: u64) -> Result<(CompressedHeader, Option<u64>), ReadError> {
    let end = base.saturating_add(bytes.len() as u64);
    let header_truncated = |size| truncated("the header of a compressed bundle", base, size, end);
    let header_damaged =
        |at: u64, problem: String| damaged("the header of a compressed bundle", base.saturating_add(at), problem);
    let short = |at| {
        tail(bytes, at)
            .first_chunk::<2>()
            .map(|bytes| u16::from_le_bytes(*bytes))
    };
    let word = |at| {
        let bytes = tail(bytes, at).first_chunk::<4>();
        bytes.map(|bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    let long = |at| {
        tail(bytes, at)
            .first_chunk::<8>()
            .map(|bytes| u64::from_le_bytes(*bytes))
    };

    let (version, method) = short(4).zip(short(6)).ok_or_else(|| header_truncated(8))?;
    let version = match version {
        1 => CompressionVersion::V1,
        2 => CompressionVersion::V2,
        3 => CompressionVersion::V3,
        other => {
            return Err(header_damaged(
                4,
                format!("version {other} is not known (1, 2 and 3 are)"),
            ));
        }
    };
    let method = match method {
        0 => CompressionMethod::Zlib,
        1 => CompressionMethod::Zstd,
        other => {
            let problem = format!("compression method {other} is not known (0, zlib, and 1, zstd, are)");
            return Err(header_damaged(6, problem));
        }
    };
    let header_size = version.header_size();
    let (size, uncompressed_size, hash) = match version {
        CompressionVersion::V1 => (Some(None), word(8), long(12)),
        CompressionVersion::V2 => (word(8).map(Some), word(12), long(16)),
        CompressionVersion::V3 => (long(8).map(Some), long(16), long(24)),
    };
    let (Some(size), Some(uncompressed_size), Some(hash)) = (size, uncompressed_size, hash) else {
        return Err(header_truncated(header_size));
    };
    if let Some(size) = size.filter(|&size| size < header_size) {
        let problem = format!("the compressed bundle is said to have {size} bytes, less than its header");
        return Err(header_damaged(8, problem));
    }
    let header = CompressedHeader {
        version,
        method,
        uncompressed_size,
        hash,
    };
    Ok((header, size))
}

/// What begins a comment in the language of a text bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[non_exhaustive]
pub enum Comment {
    /// `;`: LLVM IR.
    #[serde(rename = ";")]
    Semicolon,
    /// `#`: assembly and dependencies.
    #[serde(rename = "#")]
    Hash,
    /// `//`: preprocessed source.
    #[serde(rename = "//")]
    Slashes,
}

impl Comment {
    const ALL: [Self; 3] = [Self::Semicolon, Self::Hash, Self::Slashes];

    /// What begins the comment.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Semicolon => ";",
            Self::Hash => "#",
            Self::Slashes => "//",
        }
    }

    /// The comment for a file type of `clang-offload-bundler`, which is also the extension of such files: `ll`, `s`, `d`,
    /// `i`, `ii`, `cui`, `hipi`. The other types are binary.
    #[must_use]
    pub fn of_type(extension: &str) -> Option<Self> {
        match extension {
            "ll" => Some(Self::Semicolon),
            "s" | "d" => Some(Self::Hash),
            "i" | "ii" | "cui" | "hipi" => Some(Self::Slashes),
            _ => None,
        }
    }

    /// The line break and the beginning of the comment that opens an entry.
    fn start(self) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____START__ ", self.prefix()).into_bytes()
    }

    /// The line break and the beginning of the comment that closes an entry.
    fn end(self) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____END__ ", self.prefix()).into_bytes()
    }
}

fn write_text(images: &[BundleImage<'_>], comment: Comment) -> Result<Vec<u8>, WriteError> {
    let (start, end) = (comment.start(), comment.end());
    let mut bytes = Vec::new();
    for image in images {
        let text = bytes.len();
        bytes.extend(&start);
        bytes.extend(image.id.as_str().as_bytes());
        bytes.push(b'\n');
        let text = text + start.len() + image.id.as_str().len() + 1;
        bytes.extend(image.bytes);
        // The line break before the text belongs to a mark that the text begins with.
        let written = bytes.get(text - 1..).unwrap_or_default();
        if let Some(offset) = find(written, &start).or_else(|| find(written, &end)) {
            let id = &image.id;
            return Err(WriteError::Refused(format!(
                "the text for '{id}' has a line that marks an entry of a bundle at offset {offset:#x}: bundles do not nest"
            )));
        }
        bytes.extend(&end);
        bytes.extend(image.id.as_str().as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The comment of the text bundle that `bytes` begin with, if they do.
fn comment_of(bytes: &[u8]) -> Option<Comment> {
    Comment::ALL
        .into_iter()
        .find(|comment| bytes.starts_with(&comment.start()))
}

/// Reads the bundle at the start of `bytes`, which lie at `base` of the file: its size, and its entries.
fn read_text(bytes: &[u8], base: u64, comment: Comment) -> Result<(u64, Vec<Place>), ReadError> {
    let text = Text { bytes, base };
    let (start, end) = (comment.start(), comment.end());
    let (mut ids, mut entries) = (HashSet::new(), Vec::new());
    let mut position = 0;
    while text.tail(position).starts_with(&start) {
        let (id, content) = text.id(position + start.len())?;
        let length = find(text.tail(content), &end).ok_or_else(|| {
            let problem = format!("no line `{}` follows", end.trim_ascii().escape_ascii());
            text.damaged("an entry", position, problem)
        })?;
        // The line break before the closing comment is not the text's.
        let close = content.saturating_add(length);
        let image = content..close;
        if let Some(nested) = find(text.bytes.get(image.clone()).unwrap_or_default(), &start) {
            let problem = format!(
                "another one starts in it at {:#x}",
                text.offset(content.saturating_add(nested))
            );
            return Err(text.damaged("an entry", position, problem));
        }
        let (closing_id, next) = text.id(close.saturating_add(end.len()))?;
        if text.bytes.get(id.clone()) != text.bytes.get(closing_id.clone()) {
            let written = text.bytes.get(closing_id.clone()).unwrap_or_default().escape_ascii();
            return Err(text.damaged("an entry", position, format!("it is closed as '{written}'")));
        }
        if !ids.insert(text.bytes.get(id.clone())) {
            return Err(text.damaged("an entry", position, "its id came before".to_owned()));
        }
        entries.push(Place { id, bytes: image });
        position = next;
    }
    let rest = text.tail(position);
    let end = if rest.iter().all(u8::is_ascii_whitespace) {
        bytes.len()
    } else {
        position
    };
    Ok((end as u64, entries))
}

/// A text bundle, and where it starts in the file.
struct Text<'data> {
    bytes: &'data [u8],
    base: u64,
}

impl<'data> Text<'data> {
    fn tail(&self, position: usize) -> &'data [u8] {
        self.bytes.get(position..).unwrap_or_default()
    }

    fn offset(&self, position: usize) -> u64 {
        self.base.saturating_add(position as u64)
    }

    fn damaged(&self, what: &'static str, position: usize, problem: String) -> ReadError {
        damaged(what, self.offset(position), problem)
    }

    /// The id from `position` to the end of the line, and where the next line starts.
    fn id(&self, position: usize) -> Result<(Range<usize>, usize), ReadError> {
        let damaged = |problem: &str| self.damaged("the id of an entry", position, problem.to_owned());
        let rest = self.tail(position);
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| damaged("its line does not end"))?;
        let line = rest.get(..length).unwrap_or_default();
        match std::str::from_utf8(line) {
            Err(_) => Err(damaged("it is not UTF-8")),
            Ok("") => Err(damaged("it is empty")),
            Ok(_) => Ok((
                position..position.saturating_add(length),
                position.saturating_add(length + 1),
            )),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_proportion_to_the_file() {
        assert_eq!(
            [0, (1 << 24) - 1, 1 << 24, 1 << 25, 1 << 60].map(window_log),
            [24, 24, 25, 26, 27]
        );
        assert_eq!(default_budget(b"ab"), 2048 + (64 << 20));
    }
}
