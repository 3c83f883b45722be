//! The machines that host code is made for.

use std::{fmt, str::FromStr};

use super::error::OffloadError;

/// A processor that host code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostArchitecture {
    /// x86-64 with the System V calling convention.
    X86_64,
    /// AArch64, little endian, with the AAPCS64 calling convention.
    AArch64,
}

/// The triple of a host: Linux on x86-64 or AArch64.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostTriple {
    architecture: HostArchitecture,
    text: String,
}

impl HostTriple {
    /// The processor.
    pub const fn architecture(&self) -> HostArchitecture {
        self.architecture
    }

    /// The triple as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for HostTriple {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for HostTriple {
    type Err = OffloadError;

    fn from_str(text: &str) -> Result<Self, OffloadError> {
        let refused = |reason| {
            OffloadError::new(format!(
                "cannot export for the host {text:?}: {reason}; name a Linux on x86-64 or AArch64, such as \
                 x86_64-unknown-linux-gnu"
            ))
        };
        let mut parts = text.split('-');
        let architecture = match parts.next() {
            Some("x86_64" | "amd64") => HostArchitecture::X86_64,
            Some("aarch64" | "arm64") => HostArchitecture::AArch64,
            _ => return Err(refused("its processor is neither x86-64 nor AArch64 (little endian)")),
        };
        let rest: Vec<&str> = parts.collect();
        if !rest.contains(&"linux") {
            return Err(refused("its system is not Linux"));
        }
        // Environments with pointers of 32 bits: gnux32, muslx32, gnu_ilp32.
        let environment = rest.last().copied().unwrap_or_default();
        if environment.ends_with("x32") || environment.ends_with("ilp32") {
            return Err(refused("its pointers have 32 bits"));
        }
        if environment.starts_with("android") {
            return Err(refused("neither CUDA nor HIP has a runtime for Android"));
        }
        Ok(Self {
            architecture,
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_on_two_processors() {
        for (text, architecture) in [
            ("x86_64-unknown-linux-gnu", HostArchitecture::X86_64),
            ("x86_64-pc-linux-musl", HostArchitecture::X86_64),
            ("x86_64-linux-gnu", HostArchitecture::X86_64),
            ("aarch64-unknown-linux-gnu", HostArchitecture::AArch64),
        ] {
            let triple: HostTriple = text.parse().expect("a host");
            assert_eq!(triple.architecture(), architecture, "{text}");
            assert_eq!(triple.to_string(), text);
        }
    }

    #[test]
    fn other_hosts_are_refused_with_a_reason() {
        for (text, reason) in [
            (
                "riscv64-unknown-linux-gnu",
                "its processor is neither x86-64 nor AArch64",
            ),
            (
                "aarch64_be-unknown-linux-gnu",
                "its processor is neither x86-64 nor AArch64",
            ),
            ("", "its processor is neither x86-64 nor AArch64"),
            ("x86_64-pc-windows-msvc", "its system is not Linux"),
            ("arm64-apple-darwin", "its system is not Linux"),
            ("x86_64-unknown-linux-gnux32", "its pointers have 32 bits"),
            ("aarch64-linux-gnu_ilp32", "its pointers have 32 bits"),
            (
                "aarch64-linux-android21",
                "neither CUDA nor HIP has a runtime for Android",
            ),
        ] {
            let message = text.parse::<HostTriple>().expect_err("refused").to_string();
            assert!(
                message.starts_with(&format!("cannot export for the host {text:?}: {reason}")),
                "{message}"
            );
            assert!(
                message.ends_with("name a Linux on x86-64 or AArch64, such as x86_64-unknown-linux-gnu"),
                "{message}"
            );
        }
    }
}
