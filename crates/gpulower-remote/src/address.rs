//! A URL that says where a shared cache is, and how it is used.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use gpulower_cache::SettingError;
use url::Url;

/// What an address is, for messages.
const EXAMPLES: &str = "expected a URL such as s3://bucket/prefix, redis://host:6379/0/prefix or webdavs://host/folder";

/// Where a shared cache is, and how it is used: `SCHEME://[USER:PASSWORD@]HOST[:PORT][/PATH][?NAME=VALUE&...]`.
///
/// | value | meaning |
/// |---|---|
/// | `deadline=2s` | the most time for one operation |
/// | `upload-limit=10s` | how long the end of a process waits for uploads |
/// | `read-only=true` | no write is sent |
/// | `wait=5s` | how long to wait for results that other machines are making |
/// | `ttl=30d` | after which time Redis and memcached forget an entry |
/// | `region=`, `endpoint=`, `account=` | of S3, GCS and Azure |
///
/// Printing it leaves credentials out.
#[derive(Clone)]
pub struct Address {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// Without slashes at its ends.
    pub(crate) path: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) upload_limit: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) read_only: bool,
    /// What else was said.
    pub(crate) values: BTreeMap<String, String>,
}

impl Address {
    /// The address without credentials and values.
    #[must_use]
    pub fn place(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let slash = if self.path.is_empty() { "" } else { "/" };
        format!("{}://{}{port}{slash}{}", self.scheme, self.host, self.path)
    }

    /// The same, for reading alone.
    #[must_use]
    pub const fn read_only(mut self, read_only: bool) -> Self {
        self.read_only |= read_only;
        self
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.place())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({self})")
    }
}

impl FromStr for Address {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        // The text is in no message: it may have a password in it.
        let url = Url::parse(text).map_err(no_url)?;
        let decoded = |text: &str| percent_decoded(text).ok_or_else(|| no_url("its user or password"));
        let user = match url.username() {
            "" => None,
            user => Some(decoded(user)?),
        };
        let mut address = Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port(),
            path: decoded(url.path().trim_matches('/'))?,
            user,
            password: url.password().map(decoded).transpose()?,
            deadline: None,
            upload_limit: None,
            wait: None,
            ttl: None,
            read_only: false,
            values: BTreeMap::new(),
        };
        for (name, value) in url.query_pairs() {
            let time = || Some(time(&value).ok_or_else(|| wrong_value(&name, "a time, such as 500ms, 2s, 5m or 30d")));
            match &*name {
                "deadline" => address.deadline = time().transpose()?,
                "upload-limit" => address.upload_limit = time().transpose()?,
                "wait" => address.wait = time().transpose()?,
                "ttl" => address.ttl = time().transpose()?,
                "read-only" => {
                    address.read_only = value.parse().map_err(|_| wrong_value(&name, "true or false"))?;
                }
                "region" | "endpoint" | "account" => {
                    address.values.insert(name.into_owned(), value.into_owned());
                }
                _ => {
                    return Err(SettingError::new(format!(
                        "the address of the shared cache says '{name}': expected deadline, upload-limit, read-only, wait, ttl, \
                         region, endpoint or account"
                    )));
                }
            }
        }
        if address.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return Err(wrong_value("deadline", "more than nothing"));
        }
        Ok(address)
    }
}

/// A number with a unit.
fn time(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

/// `%40` and its like. `None` where it is no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.split_first_chunk::<2>()) {
            (b'%', Some((digits, after))) => {
                let digits = std::str::from_utf8(digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = after;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn no_url(why: impl fmt::Display) -> SettingError {
    SettingError::new(format!("the address of the shared cache is no URL: {why}; {EXAMPLES}"))
}

fn wrong_value(name: &str, expected: &str) -> SettingError {
    SettingError::new(format!(
        "'{name}' in the address of the shared cache: expected {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_it_all() {
        let address: Address = "rediss://me:p%40ss@cache.example:7000/3/team/a?deadline=500ms&read-only=true&ttl=30d"
            .parse()
            .expect("an address");
        assert_eq!(address.place(), "rediss://cache.example:7000/3/team/a");
        assert_eq!(address.password.as_deref(), Some("p@ss"));
        assert_eq!(address.deadline, Some(Duration::from_millis(500)));
        assert_eq!(address.ttl, Some(Duration::from_secs(30 * 24 * 3600)));
        assert!(address.read_only);
        for shown in [format!("{address}"), format!("{address:?}")] {
            assert!(
                !shown.contains("p@ss") && !shown.contains("p%40ss") && !shown.contains("me"),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_secrets() {
        let cases = [
            ("hunter2", "no URL"),
            ("redis://u:hunter2@[/x", "no URL"),
            ("redis://u:hunter2@host/?deadline=hunter2", "'deadline' in the address"),
            ("redis://u:hunter2@host/?deadline=0s", "more than nothing"),
            ("redis://u:hunter2@host/?read-only=hunter2", "true or false"),
            ("redis://u:hunter2@host/?password=hunter2", "says 'password'"),
            ("redis://u:hunter2%ff@host/", "its user or password"),
        ];
        for (text, expected) in cases {
            let message = text.parse::<Address>().expect_err("refused").to_string();
            assert!(
                message.contains(expected) && !message.contains("hunter2"),
                "{text}: {message}"
            );
        }
    }
}
