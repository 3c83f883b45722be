//! An entry as the bytes that a store keeps: a header, who signed it, the content, compressed where that helps.
//!
//! ```text
//! magic 16 | key 32 | content's length 8 | encoding 1 | signed 1 | BLAKE3 of all that and the payload 32
//! signed: public key 32 | ed25519 signature 64, over a prefix and the hash
//! payload
//! ```

use std::borrow::Cow;

use crate::{Id, PublicKey, SecretKey};

/// Starts every entry. Another format is another line.
const MAGIC: &[u8; 16] = b"gpulower shared\n";

/// The folder of this format: versions do not meet.
const FOLDER: &str = "1";

const HEAD_BYTES: usize = 16 + 32 + 8 + 1 + 1;
const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 32 + 64;

/// Nothing that is signed for another purpose is an entry.
const SIGNED: &[u8] = b"gpulower shared cache entry 1\n";

/// The most bytes that an entry may have, compressed or not: 256 MiB.
pub const MOST_BYTES: u64 = 256 << 20;

/// zstd's own default is 3: it is what costs less than the network.
const LEVEL: i32 = 3;

const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// What may be wrong with bytes that a store had under the name of an entry.
const NO_ENTRY: &str = "it does not begin as an entry";
const OTHER_KEY: &str = "it is the entry of another key";
const CHANGED: &str = "it is not what was written";
const NOT_DECOMPRESSED: &str = "its content cannot be decompressed";
const UNSIGNED: &str = "it is not signed, and signatures are asked for";
const WRONG_SIGNATURE: &str = "its signature is wrong";

/// The name of an entry in a store.
pub(crate) fn name(id: &Id) -> String {
    let digits = blake3::Hash::from_bytes(*id).to_hex();
    let (folder, rest) = digits.split_at(2);
    format!("{FOLDER}/{folder}/{rest}")
}

/// The name under which a machine says that it is making an entry.
pub(crate) fn claim_name(id: &Id) -> String {
    format!("claims/{}", blake3::Hash::from_bytes(*id).to_hex())
}

/// What all names of entries begin with.
pub(crate) const fn folder() -> &'static str {
    "1/"
}

/// What all names of claims begin with.
pub(crate) const CLAIMS: &str = "claims/";

/// The key of a name.
pub(crate) fn id(name: &str) -> Option<Id> {
    let (folder, rest) = name.strip_prefix(folder())?.split_once('/')?;
    let hash = blake3::Hash::from_hex(format!("{folder}{rest}")).ok()?;
    (folder.len() == 2).then_some(*hash.as_bytes())
}

/// An entry as bytes.
pub(crate) fn encode(id: &Id, content: &[u8], key: Option<&SecretKey>) -> Vec<u8> {
    let compressed = zstd::bulk::compress(content, LEVEL)
        .ok()
        .filter(|bytes| bytes.len() < content.len());
    let (encoding, payload) = match &compressed {
        Some(bytes) => (ZSTD, bytes.as_slice()),
        None => (RAW, content),
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES + HASH_BYTES + SIGNATURE_BYTES + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&[encoding, u8::from(key.is_some())]);
    let hash = hash(&bytes, payload);
    bytes.extend_from_slice(&hash);
    if let Some(key) = key {
        bytes.extend_from_slice(key.public().as_bytes());
        bytes.extend_from_slice(&key.sign(&[SIGNED, &hash].concat()));
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The content of an entry, or what is wrong with it. With `accepted` keys, one of them has to have signed it; that is checked before anything is
/// decompressed.
pub(crate) fn decode(id: &Id, bytes: &[u8], accepted: &[PublicKey]) -> Result<Vec<u8>, Cow<'static, str>> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(NO_ENTRY)?;
    let rest_of = head.strip_prefix(MAGIC).ok_or(NO_ENTRY)?;
    let (owner, rest_of) = rest_of.split_at_checked(id.len()).ok_or(NO_ENTRY)?;
    let (length, kinds) = rest_of.split_at_checked(8).ok_or(NO_ENTRY)?;
    let &[encoding, signed] = kinds else {
        return Err(NO_ENTRY.into());
    };
    if owner != id {
        return Err(OTHER_KEY.into());
    }
    let (told, rest) = rest.split_at_checked(HASH_BYTES).ok_or(CHANGED)?;
    let (signature, payload) = match signed {
        0 => (None, rest),
        1 => {
            let (signature, payload) = rest.split_at_checked(SIGNATURE_BYTES).ok_or(CHANGED)?;
            (Some(signature), payload)
        }
        _ => return Err(NO_ENTRY.into()),
    };
    if hash(head, payload) != told {
        return Err(CHANGED.into());
    }
    if !accepted.is_empty() {
        check_signature(told, signature, accepted)?;
    }
    let length = <[u8; 8]>::try_from(length).map_or(u64::MAX, u64::from_le_bytes);
    let content = match encoding {
        RAW => payload.to_vec(),
        ZSTD if length <= MOST_BYTES => {
            let length = usize::try_from(length).map_err(|_| NOT_DECOMPRESSED)?;
            zstd::bulk::decompress(payload, length).map_err(|_| NOT_DECOMPRESSED)?
        }
        _ => return Err(NOT_DECOMPRESSED.into()),
    };
    match content.len() as u64 == length {
        true => Ok(content),
        false => Err(NOT_DECOMPRESSED.into()),
    }
}

fn check_signature(hash: &[u8], signature: Option<&[u8]>, accepted: &[PublicKey]) -> Result<(), Cow<'static, str>> {
    let signature = signature.ok_or(UNSIGNED)?;
    let (key, signature) = signature.split_first_chunk::<32>().ok_or(WRONG_SIGNATURE)?;
    let signature = signature.first_chunk::<64>().ok_or(WRONG_SIGNATURE)?;
    let key = PublicKey::of_bytes(key).ok_or(WRONG_SIGNATURE)?;
    if !accepted.contains(&key) {
        return Err(format!("it is signed with {key}, which is not accepted").into());
    }
    match key.verifies(&[SIGNED, hash].concat(), signature) {
        true => Ok(()),
        false => Err(WRONG_SIGNATURE.into()),
    }
}

fn hash(head: &[u8], payload: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Id = [3; 32];

    fn key(seed: u8) -> SecretKey {
        SecretKey::of_bytes([seed; 32])
    }

    #[test]
    fn what_was_written_is_read() {
        let long = b"the same again and again ".repeat(1000);
        for content in [&b""[..], b"short", &long] {
            for signer in [None, Some(key(1))] {
                let bytes = encode(&ID, content, signer.as_ref());
                assert_eq!(decode(&ID, &bytes, &[]).as_deref(), Ok(content));
            }
        }
        assert!(encode(&ID, &long, None).len() < 500);
    }

    #[test]
    fn every_single_changed_byte_and_every_cut_is_seen() {
        let signer = key(1);
        for content in [&b"hello"[..], &b"hello ".repeat(50)] {
            let whole = encode(&ID, content, Some(&signer));
            for place in 0..whole.len() {
                let mut changed = whole.clone();
                changed[place] ^= 0x40;
                assert!(decode(&ID, &changed, &[signer.public()]).is_err(), "byte {place}");
                assert!(
                    decode(&ID, &whole[..place], &[signer.public()]).is_err(),
                    "cut at {place}"
                );
            }
            assert!(decode(&ID, &[&whole[..], b"x"].concat(), &[]).is_err());
            assert_eq!(decode(&[4; 32], &whole, &[]), Err(OTHER_KEY.into()));
        }
    }

    #[test]
    fn only_accepted_signatures_are_taken() {
        let (ours, theirs) = (key(1), key(2));
        let accepted = [ours.public()];
        let signed = |key: &SecretKey| encode(&ID, b"content", Some(key));
        assert!(decode(&ID, &signed(&ours), &accepted).is_ok());
        assert_eq!(
            decode(&ID, &signed(&theirs), &accepted),
            Err(format!("it is signed with {}, which is not accepted", theirs.public()).into())
        );
        assert_eq!(
            decode(&ID, &encode(&ID, b"content", None), &accepted),
            Err(UNSIGNED.into())
        );
        // The signature of another entry, and our name over a stranger's.
        let other = encode(&ID, b"another", Some(&ours));
        let start = HEAD_BYTES + HASH_BYTES;
        let mut forged = signed(&theirs);
        forged[start..start + SIGNATURE_BYTES].copy_from_slice(&other[start..start + SIGNATURE_BYTES]);
        assert_eq!(decode(&ID, &forged, &accepted), Err(WRONG_SIGNATURE.into()));
        let mut forged = signed(&theirs);
        forged[start..start + 32].copy_from_slice(ours.public().as_bytes());
        assert_eq!(decode(&ID, &forged, &accepted), Err(WRONG_SIGNATURE.into()));
    }

    #[test]
    fn a_length_that_is_not_true_is_refused() {
        let content = b"again and again ".repeat(100);
        let mut bytes = encode(&ID, &content, None);
        for length in [0, content.len() as u64 - 1, content.len() as u64 + 1, u64::MAX] {
            bytes[48..56].copy_from_slice(&length.to_le_bytes());
            let (head, rest) = bytes.split_at(HEAD_BYTES);
            let told = hash(head, &rest[HASH_BYTES..]);
            bytes[HEAD_BYTES..HEAD_BYTES + HASH_BYTES].copy_from_slice(&told);
            assert_eq!(decode(&ID, &bytes, &[]), Err(NOT_DECOMPRESSED.into()), "{length}");
        }
    }

    #[test]
    fn names_are_keys() {
        assert_eq!(id(&name(&ID)), Some(ID));
        for wrong in ["", "1/", "1/03", "claims/03", "1/0303/03", "2/03/03"] {
            assert_eq!(id(wrong), None, "{wrong}");
        }
    }
}
