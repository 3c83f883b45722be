//! An entry as a file: a header that names its key and tells the content's hash, then the content.

use super::key::Key;

/// Starts every entry. A change of the format is another line.
const MAGIC: &[u8; 16] = b"gpulower cache1\n";

/// Magic, key, length of the content (little endian), its BLAKE3 hash.
const HEADER_BYTES: usize = 16 + 32 + 8 + 32;

/// The header of an entry. The hash covers key and content.
pub(super) fn header(key: &Key, content: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(MAGIC);
    header[16..48].copy_from_slice(key.as_bytes());
    header[48..56].copy_from_slice(&(content.len() as u64).to_le_bytes());
    header[56..].copy_from_slice(hash(key, content).as_bytes());
    header
}

/// The content of an entry, if the file is a whole entry for the key; else what is wrong with it.
pub(super) fn content<'f>(key: &Key, file: &'f [u8]) -> Result<&'f [u8], String> {
    let length_is_not = |expected: usize| Err(format!("it has {} bytes instead of {expected}", file.len()));
    let Some((header, content)) = file.split_at_checked(HEADER_BYTES) else {
        return length_is_not(HEADER_BYTES);
    };
    let (magic, rest) = header.split_at(16);
    let (owner, rest) = rest.split_at(32);
    let (length, digest) = rest.split_at(8);
    if magic != MAGIC {
        return Err("it does not begin as an entry".to_owned());
    }
    if owner != key.as_bytes() {
        return Err("it is the entry of another key".to_owned());
    }
    if length != (content.len() as u64).to_le_bytes() {
        let length = <[u8; 8]>::try_from(length).map_or(0, u64::from_le_bytes);
        return length_is_not(HEADER_BYTES.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)));
    }
    if digest != hash(key, content).as_bytes() {
        return Err("its content has changed since it was written".to_owned());
    }
    Ok(content)
}

fn hash(key: &Key, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::{super::key::KeyBuilder, *};

    fn key(name: &str) -> Key {
        KeyBuilder::new("test").field("name", name).finish()
    }

    fn file(key: &Key, bytes: &[u8]) -> Vec<u8> {
        [&header(key, bytes)[..], bytes].concat()
    }

    #[test]
    fn what_was_written_is_read() {
        let one = key("one");
        assert_eq!(content(&one, &file(&one, b"hello")), Ok(&b"hello"[..]));
        assert_eq!(content(&one, &file(&one, b"")), Ok(&b""[..]));
    }

    #[test]
    fn every_single_changed_byte_and_every_cut_is_seen() {
        let one = key("one");
        let whole = file(&one, b"hello");
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x40;
            assert!(content(&one, &changed).is_err(), "byte {place}");
            assert!(content(&one, &whole[..place]).is_err(), "cut at {place}");
        }
        assert!(content(&one, &[&whole[..], b"x"].concat()).is_err());
        assert_eq!(
            content(&key("two"), &whole),
            Err("it is the entry of another key".to_owned())
        );
    }
}
