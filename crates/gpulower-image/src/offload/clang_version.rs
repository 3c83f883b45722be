//! Which release a clang is, by what it says of itself.

use std::fmt;

use super::release::ClangRelease;
use crate::target::TargetError;

/// Who made a clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClangMaker {
    /// LLVM itself, or a distribution: `Debian clang`, `Ubuntu clang`, `Homebrew clang`, plain `clang`. The name stands
    /// before `clang`, and is empty for LLVM.
    Llvm(String),
    /// AMD, with the release of ROCm if that is named.
    Amd(Option<String>),
    /// Apple.
    Apple,
}

impl fmt::Display for ClangMaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Llvm(name) if name.is_empty() => formatter.write_str("LLVM"),
            Self::Llvm(name) => formatter.write_str(name),
            Self::Amd(Some(rocm)) => write!(formatter, "AMD, ROCm {rocm}"),
            Self::Amd(None) => formatter.write_str("AMD"),
            Self::Apple => formatter.write_str("Apple"),
        }
    }
}

/// The version of a clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClangVersion {
    /// Who made it.
    pub maker: ClangMaker,
    /// 19 in 19.1.7.
    pub major: u32,
    /// The whole version, such as 19.1.7 or 20.0.0git.
    pub version: String,
    /// Whether it was built between two releases.
    pub between_releases: bool,
}

fn of_rocm(rocm: Option<&str>) -> String {
    rocm.as_ref()
        .map_or_else(String::new, |rocm| format!(" of ROCm {rocm}"))
}

impl ClangVersion {
    /// Reads what `clang --version` prints; none if there is no such line in it.
    ///
    /// ```
    /// use gpulower_image::offload::clang_version::ClangVersion;
    ///
    /// let version = ClangVersion::parse("Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu\n");
    /// assert_eq!(version.map(|version| version.major), Some(19));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.lines().find_map(Self::of_line)
    }

    fn of_line(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once("clang version ")?;
        let version = rest.split_whitespace().next()?;
        let end = version.find(|c: char| c != '.' && !c.is_ascii_digit());
        let (numbers, suffix) = version.split_at(end.unwrap_or(version.len()));
        let mut parts = numbers.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor: Option<u32> = parts.next().and_then(|minor| minor.parse().ok());
        let maker = match name.trim() {
            "Apple" => ClangMaker::Apple,
            "AMD" => ClangMaker::Amd(rocm(rest)),
            name => ClangMaker::Llvm(name.to_owned()),
        };
        Some(Self {
            maker,
            major,
            version: version.to_owned(),
            // Releases have been called N.1 since 18, and N.0 before; what comes before a release is called N.0.
            between_releases: suffix.contains("git") || suffix.contains("rc") || (major >= 18 && minor == Some(0)),
        })
    }
}

/// The 6.0.2 of `(https://github.com/RadeonOpenCompute/llvm-project roc-6.0.2 24012 af27734ed982)`.
fn rocm(rest: &str) -> Option<String> {
    let words = rest.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    words
        .filter_map(|word| word.strip_prefix("roc-"))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

impl ClangRelease {
    /// The release that a clang is, by what it prints when asked with `--version`.
    ///
    /// # Errors
    ///
    /// [`TargetError`]: no clang, too old or new, or one whose number does not tell what it reads.
    pub fn of_version_text(text: &str) -> Result<Self, TargetError> {
        let Some(found) = ClangVersion::parse(text) else {
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            let said: String = line.chars().take(200).collect();
            return Err(TargetError::unsupported(format!(
                "it does not say a version of clang; it says: {said}"
            )));
        };
        let version = found.version;
        match found.maker {
            ClangMaker::Apple => Err(TargetError::unsupported(format!(
                "it is Apple clang {version}, whose numbers are Apple's own, and which has no clang-linker-wrapper: use LLVM's \
                 clang 15 to 23 on Linux"
            ))),
            ClangMaker::Amd(rocm) => Err(TargetError::unsupported(format!(
                "it is AMD's fork of clang, {version}{}, taken from LLVM's main branch between two releases: its number does not \
         tell which layout of offload entries it reads, and a wrong one registers no kernel without a word; name the \
         release to export for yourself, try the program, or use LLVM's own clang (or --emit self, which needs no clang)",
                of_rocm(rocm.as_deref())
            ))),
            ClangMaker::Llvm(_) => {
                let release = Self::new(found.major)?;
                match found.between_releases {
                    true => Err(TargetError::unsupported(format!(
                        "it is clang {version}, made between two releases: which layout of offload entries it reads cannot be told by the \
                         number; name the release to export for yourself, and try the program"
                    ))),
                    false => Ok(release),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_every_maker_are_told() {
        for (text, number, maker) in [
            (
                "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu\nThread model: posix\n",
                19,
                "Debian",
            ),
            (
                "Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu\n",
                18,
                "Ubuntu",
            ),
            ("Ubuntu clang version 15.0.7\n", 15, "Ubuntu"),
            ("clang version 17.0.6 (Fedora 17.0.6-2.fc39)\n", 17, "LLVM"),
            (
                "clang version 22.1.0 (https://github.com/llvm/llvm-project.git 4434dabb69916856b824f68a64b029c67175e532)",
                22,
                "LLVM",
            ),
            ("Homebrew clang version 21.1.8\n", 21, "Homebrew"),
            ("warning: something\nclang version 16.0.6\n", 16, "LLVM"),
        ] {
            assert_eq!(
                ClangRelease::of_version_text(text).map(ClangRelease::number),
                Ok(number),
                "{text}"
            );
            assert_eq!(ClangVersion::parse(text).expect(text).maker.to_string(), maker);
        }
    }

    #[test]
    fn other_clangs_are_refused_with_the_reason() {
        for (text, message) in [
            (
                "AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project roc-6.0.2 24012 \
                 af27734ed982b52a9f1be0f035ac91726fc697e4)\nTarget: x86_64-unknown-linux-gnu\n",
                "it is AMD's fork of clang, 17.0.0 of ROCm 6.0.2, taken from LLVM's main branch between two releases",
            ),
            (
                "AMD clang version 16.0.3 (CLANG: AOCC_4.1.0-Build#270 2023_07_10)",
                "it is AMD's fork of clang, 16.0.3, taken from",
            ),
            (
                "Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23.4.0\n",
                "it is Apple clang 15.0.0, whose numbers are Apple's own",
            ),
            (
                "clang version 20.0.0git (https://github.com/intel/llvm 1234)",
                "it is clang 20.0.0git, made between two releases",
            ),
            (
                "Ubuntu clang version 21.0.0 (++20250228103412+9b81dc8dfee9-1~exp1~20250228103428.1107)",
                "it is clang 21.0.0, made between two releases",
            ),
            ("clang version 20.1.0-rc2", "it is clang 20.1.0-rc2, made between"),
            ("Debian clang version 14.0.6", "clang 14 cannot finish the program"),
            ("clang version 24.1.0", "clang 24 is not known"),
            (
                "Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (2024.0.0.20231017)\n",
                "it does not say a version of clang; it says: Intel(R) oneAPI",
            ),
            ("", "it does not say a version of clang; it says: nothing"),
            (
                "clang version x",
                "it does not say a version of clang; it says: clang version x",
            ),
        ] {
            let error = ClangRelease::of_version_text(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
