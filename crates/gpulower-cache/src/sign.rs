//! Keys: who made an entry.

use std::{fmt, fs, io, os::unix::fs::OpenOptionsExt, path::Path, str::FromStr};

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};

/// Begins a secret key in a file, so that nobody takes one for the other.
const SECRET: &str = "gpulower-secret-";

/// Begins a public key.
const PUBLIC: &str = "gpulower-key-";

/// A key to sign entries with (ed25519). What it prints is its public half.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// A new key.
    ///
    /// # Errors
    ///
    /// [`SettingError`] where the system has no random numbers.
    pub fn generate() -> Result<Self, SettingError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| SettingError(format!("no random numbers: {error}")))?;
        Ok(Self::of_bytes(bytes))
    }

    pub(crate) fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&bytes))
    }

    /// Reads one from a file that [`SecretKey::write`] wrote.
    ///
    /// # Errors
    ///
    /// [`SettingError`] where the file cannot be read, or has something else in it. Its content is in no message.
    pub fn read(path: &Path) -> Result<Self, SettingError> {
        let text = fs::read_to_string(path).map_err(|error| SettingError::file(path, &error))?;
        let bytes = digits(text.trim(), SECRET).ok_or_else(|| {
            let path = path.display();
            SettingError(format!(
                "{path} has no secret key in it; make one with `gpulower cache keygen`"
            ))
        })?;
        Ok(Self::of_bytes(bytes))
    }

    /// Writes it into a new file that the user alone may read.
    ///
    /// # Errors
    ///
    /// [`SettingError`] where there is one already, or it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SettingError> {
        use std::io::Write;
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let text = format!("{SECRET}{}\n", blake3::Hash::from_bytes(self.0.to_bytes()).to_hex());
        let written = file.and_then(|mut file| {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            // A part of a key would keep the next one from being written.
            written.inspect_err(|_| drop(fs::remove_file(path)))
        });
        written.map_err(|error| SettingError::file(path, &error))
    }

    /// What others need to check its signatures.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the secret half of {}", self.public())
    }
}

/// What signatures are checked with. Printed and read as `gpulower-key-` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    pub(crate) fn of_bytes(bytes: &[u8; 32]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes).ok().map(|_| Self(*bytes))
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        // Strict: weak keys and signatures in other forms are refused.
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PUBLIC}{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for PublicKey {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        digits(text.trim(), PUBLIC)
            .and_then(|bytes| Self::of_bytes(&bytes))
            .ok_or_else(|| {
                SettingError(format!(
                    "expected a public key: {PUBLIC} and 64 hexadecimal digits, as `gpulower cache keygen` prints it"
                ))
            })
    }
}

fn digits(text: &str, prefix: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(text.strip_prefix(prefix)?).ok()?;
    Some(*hash.as_bytes())
}

/// A setting of a shared cache that cannot be used: its address, or a key. No message has a secret in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

impl SettingError {
    /// An error; `message` is what is wrong.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The file of a key cannot be read or written.
    fn file(path: &Path, error: &io::Error) -> Self {
        Self(format!("the key {}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("gpulower-keys-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let path = folder.join("key");
        let key = SecretKey::generate().expect("random");
        key.write(&path).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(SecretKey::read(&path).expect("read").public(), key.public());
        assert_eq!(
            key.public().to_string().parse::<PublicKey>().expect("read"),
            key.public()
        );
        assert!(key.write(&path).is_err(), "a key that exists is not overwritten");
        assert_ne!(SecretKey::generate().expect("random").public(), key.public());
        // Nothing of the secret is shown.
        let secret = fs::read_to_string(&path).expect("read");
        let shown = format!("{key:?}");
        assert!(!shown.contains(secret.trim().trim_start_matches(SECRET)), "{shown}");
        fs::write(&path, "gpulower-secret-0123").expect("written");
        let message = SecretKey::read(&path).expect_err("short").to_string();
        assert!(message.contains("keygen") && !message.contains("0123"), "{message}");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        for wrong in ["", "gpulower-key-", "gpulower-key-00", "gpulower-secret-00"] {
            assert!(wrong.parse::<PublicKey>().is_err(), "{wrong}");
        }
    }
}
