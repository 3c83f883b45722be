//! Bytes as one piece in what is kept: serde takes a `Vec<u8>` for a list of numbers, each of which it writes and reads on its
//! own. For `#[serde(with = "stored_bytes")]`.

use std::fmt;

use serde::{Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Bytes;
    impl de::Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("bytes")
        }

        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
    deserializer.deserialize_byte_buf(Bytes)
}

/// The same for images and their bytes.
pub(super) mod of_images {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::report::Image;

    type Images = Vec<(Image, Vec<u8>)>;

    #[derive(Serialize)]
    struct Borrowed<'a>(#[serde(serialize_with = "super::serialize")] &'a [u8]);

    #[derive(Deserialize)]
    struct Owned(#[serde(deserialize_with = "super::deserialize")] Vec<u8>);

    pub(in crate::compiler) fn serialize<S: Serializer>(
        images: &[(Image, Vec<u8>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(images.iter().map(|(image, bytes)| (image, Borrowed(bytes))))
    }

    pub(in crate::compiler) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Images, D::Error> {
        let images = Vec::<(Image, Owned)>::deserialize(deserializer)?;
        Ok(images.into_iter().map(|(image, Owned(bytes))| (image, bytes)).collect())
    }
}
