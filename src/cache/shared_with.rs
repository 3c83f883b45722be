//! Who else may write into a directory.

use std::{fmt, fs::Metadata, os::unix::fs::MetadataExt, str::FromStr};

use nix::unistd::{Group, User};

/// Whose entries in a directory are taken, besides one's own: by name or number, `user:NAME` or `group:NAME`.
///
/// Entries are executable code in the end. Everybody who is named can put code into the processes of those who read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWith {
    /// The directory is this user's, who alone writes into it; others read.
    User(u32),
    /// The directory is this group's, and its members write into it.
    Group(u32),
}

impl SharedWith {
    /// Whether a directory with these permissions is what was said.
    pub(super) fn fits(self, metadata: &Metadata) -> bool {
        match self {
            Self::User(user) => metadata.uid() == user && metadata.mode() & 0o022 == 0,
            Self::Group(group) => metadata.gid() == group && metadata.mode() & 0o002 == 0,
        }
    }

    /// Whether this process may write.
    pub(super) fn may_write(self) -> bool {
        match self {
            Self::User(user) => rustix::process::geteuid().as_raw() == user,
            Self::Group(_) => true,
        }
    }
}

impl fmt::Display for SharedWith {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(formatter, "user {user}, who alone may write there"),
            Self::Group(group) => write!(formatter, "group {group}, with nobody else writing there"),
        }
    }
}

impl FromStr for SharedWith {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or_default();
        let number = name.parse().ok();
        let found = match kind {
            "user" => {
                let named = || User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
                number.or_else(named).map(Self::User)
            }
            "group" => {
                let named = || Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
                number.or_else(named).map(Self::Group)
            }
            _ => return Err("expected user:NAME or group:NAME".to_owned()),
        };
        found.ok_or_else(|| format!("there is no {kind} called '{name}'"))
    }
}
