//! The binary form of [`super::bundle`]. All numbers are little endian, of 64 bits:
//!
//! | bytes | content |
//! |---|---|
//! | 24 | `__CLANG_OFFLOAD_BUNDLE__` |
//! | 8 | number of entries |
//! | 24 + length, for each entry | offset of its image from the start of the bundle, its size, length of its id, the id |
//! | | the images, each at its offset |

use std::collections::HashSet;
use std::ops::Range;

use super::bundle::{BundleImage, MAGIC, MAX_ALIGNMENT, Place};
use super::bundle_error::{BundleError, BundleWriteError};

/// Bytes of an entry in the table, without its id.
const ENTRY_SIZE: usize = 24;

pub(super) fn write(images: &[BundleImage<'_>], alignment: u32) -> Result<Vec<u8>, BundleWriteError> {
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(BundleWriteError::Alignment { alignment });
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
pub(super) fn read(bytes: &[u8], base: u64) -> Result<(u64, Vec<Place>), BundleError> {
    let mut table = Table {
        bytes,
        base,
        position: MAGIC.len(),
    };
    let count_at = table.offset();
    let count = table.number("the number of entries")?;
    let possible = (bytes.len().saturating_sub(table.position) / ENTRY_SIZE) as u64;
    if count > possible {
        return Err(BundleError::Damaged {
            what: "the number of entries",
            offset: count_at,
            problem: format!("{count} entries are stated, but the file has room for {possible} at most"),
        });
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
        let damaged_id = |problem: String| BundleError::Damaged {
            what: "the id of an entry",
            offset: id_at,
            problem,
        };
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
            .ok_or(BundleError::Truncated {
                what: "the image of an entry",
                offset: base.saturating_add(start),
                size,
                end: table.end(),
            })?;
        entries.push((entry_at, Place { id, bytes: image }));
    }
    check_overlaps(&entries, table.position, base)?;
    let ends = entries.iter().map(|(_, place)| place.bytes.end);
    let size = ends.max().unwrap_or(0).max(table.position);
    Ok((size as u64, entries.into_iter().map(|(_, place)| place).collect()))
}

/// Refuses images that share bytes with the table, which ends at `table_end`, or with one another.
fn check_overlaps(entries: &[(u64, Place)], table_end: usize, base: u64) -> Result<(), BundleError> {
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
            return Err(BundleError::Damaged {
                what: "an entry",
                offset: *entry_at,
                problem: format!(
                    "its image at {:#x} lies in {owner}, which ends at {:#x}",
                    base.saturating_add(place.bytes.start as u64),
                    base.saturating_add(taken as u64)
                ),
            });
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

    fn take(&mut self, what: &'static str, size: u64) -> Result<Range<usize>, BundleError> {
        let taken = range(self.position as u64, size)
            .filter(|taken| taken.end <= self.bytes.len())
            .ok_or(BundleError::Truncated {
                what,
                offset: self.offset(),
                size,
                end: self.end(),
            })?;
        self.position = taken.end;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u64, BundleError> {
        let taken = self.take(what, 8)?;
        let bytes = self.bytes.get(taken).and_then(|bytes| bytes.first_chunk::<8>());
        Ok(u64::from_le_bytes(bytes.copied().unwrap_or_default()))
    }
}
