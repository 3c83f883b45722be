//! What the entries of a clang offload bundle are called: `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.

use std::fmt;
use std::str::FromStr;

use crate::ReadError;
use crate::target::{AmdTarget, Target};

/// Longest id that is read, in bytes. Ids are names of sections and parts of command lines: a kind, a triple and a
/// target ID have less than a tenth of it.
pub(super) const MAX_LENGTH: usize = 1024;

/// Who launches what lies in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OffloadKind {
    /// The host's own code. In a HIP bundle it is an empty entry.
    Host,
    /// HIP; means the same as [`Self::HipV4`].
    Hip,
    /// HIP, as clang writes it for code objects of version 4 and later.
    HipV4,
    /// OpenMP.
    OpenMp,
    /// CUDA. Clang's bundler refuses it; other tools have written it.
    Cuda,
    /// SYCL, as Intel's bundler writes it.
    Sycl,
}

impl OffloadKind {
    const ALL: [Self; 6] = [Self::Host, Self::Hip, Self::HipV4, Self::OpenMp, Self::Cuda, Self::Sycl];

    /// The kind as ids begin with it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Hip => "hip",
            Self::HipV4 => "hipv4",
            Self::OpenMp => "openmp",
            Self::Cuda => "cuda",
            Self::Sycl => "sycl",
        }
    }

    /// Whether both mean the same: `hip` and `hipv4` do (clang 19 and later).
    #[must_use]
    pub fn means_same(self, other: Self) -> bool {
        let plain = |kind| if kind == Self::HipV4 { Self::Hip } else { kind };
        plain(self) == plain(other)
    }
}

impl fmt::Display for OffloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of an entry: the kind of offloading, a target triple, and for a device the target ID.
///
/// Read with [`str::parse`] in every form that clang 14 to 22 have written: triples of three and of four components, with
/// and without the `-` that ends an id without a target ID. Printed exactly as it was read; [`normalized`] is the form
/// that clang 17 and later write. `==` compares the text, [`means_same`] the meaning.
///
/// [`normalized`]: Self::normalized
/// [`means_same`]: Self::means_same
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct BundleId {
    #[serde(rename = "id")]
    text: String,
    kind: OffloadKind,
    triple: String,
    target: Option<String>,
}

impl BundleId {
    /// The id that clang 22 writes for `kind`, a triple and a target ID: [`normalized`](Self::normalized).
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the parts do not make an id.
    pub fn new(kind: OffloadKind, triple: &str, target: Option<&str>) -> Result<Self, ReadError> {
        let dashes = "-".repeat(4_usize.saturating_sub(triple.split('-').count()));
        let written: Self = format!("{kind}-{triple}{dashes}-{}", target.unwrap_or_default()).parse()?;
        written.normalized().parse()
    }

    /// `host-x86_64-unknown-linux-gnu-`: the empty first entry of a bundle that clang writes for HIP on Linux. No loader
    /// looks at its triple.
    #[must_use]
    pub fn linux_host() -> Self {
        let triple = "x86_64-unknown-linux-gnu".to_owned();
        Self {
            text: format!("host-{triple}-"),
            kind: OffloadKind::Host,
            triple,
            target: None,
        }
    }

    /// The id of a HIP code object for `target`: `hipv4-amdgcn-amd-amdhsa--gfx942`.
    #[must_use]
    pub fn hip(target: &AmdTarget) -> Self {
        let triple = "amdgcn-amd-amdhsa".to_owned();
        Self {
            text: format!("hipv4-{triple}--{target}"),
            kind: OffloadKind::HipV4,
            triple,
            target: Some(target.to_string()),
        }
    }

    /// The id as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The kind of offloading.
    #[must_use]
    pub const fn kind(&self) -> OffloadKind {
        self.kind
    }

    /// The triple as it was written, of three or four components: `amdgcn-amd-amdhsa`, `x86_64-unknown-linux-gnu`.
    #[must_use]
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// The target ID as it was written: `gfx90a:xnack-`, `sm_80`, `amdgcnspirv`.
    #[must_use]
    pub fn target_id(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// The target ID as a chip of the tables, if it is one.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        self.target_id()?.parse().ok()
    }

    /// The id as clang 17 to 22 write it: four components, of which an empty one is `unknown` (but the last one of
    /// `amdhsa`, which is left empty), then `-` and the target ID.
    ///
    /// Source: `OffloadTargetInfo::str` in clang/lib/Driver/OffloadBundler.cpp.
    #[must_use]
    pub fn normalized(&self) -> String {
        let [arch, vendor, system, environment] = self.components();
        let environment = if system.starts_with("amdhsa") { "" } else { environment };
        format!(
            "{}-{arch}-{vendor}-{system}-{environment}-{}",
            self.kind,
            self.target_id().unwrap_or_default()
        )
    }

    /// Architecture, vendor, system and environment. What is left out is `unknown`, which means the same.
    fn components(&self) -> [&str; 4] {
        let mut components = ["unknown"; 4];
        for (slot, component) in components.iter_mut().zip(self.triple.splitn(4, '-')) {
            if !component.is_empty() {
                *slot = component;
            }
        }
        components
    }

    fn means_same_platform(&self, other: &Self) -> bool {
        self.kind.means_same(other.kind) && self.components() == other.components()
    }

    /// Whether both name the same entry, however they are written: `hip` is `hipv4`, an empty component is `unknown`, and
    /// the features of a target ID have no order.
    #[must_use]
    pub fn means_same(&self, other: &Self) -> bool {
        self.means_same_platform(other) && target_parts(self.target_id()) == target_parts(other.target_id())
    }

    /// Whether `clang-offload-bundler -unbundle` takes an entry with this id for `wanted`: the same platform and chip,
    /// and no feature that is set here is open or different there.
    ///
    /// Source: `isCodeObjectCompatible` in clang/lib/Driver/OffloadBundler.cpp.
    #[must_use]
    pub fn serves(&self, wanted: &Self) -> bool {
        let ((chip, features), (wanted_chip, wanted_features)) =
            (target_parts(self.target_id()), target_parts(wanted.target_id()));
        self.means_same_platform(wanted)
            && chip == wanted_chip
            && features.iter().all(|feature| wanted_features.contains(feature))
    }
}

/// Chip and features of a target ID, the features in alphabetical order.
fn target_parts(target: Option<&str>) -> (&str, Vec<&str>) {
    let mut parts = target.unwrap_or_default().split(':');
    let chip = parts.next().unwrap_or_default();
    let mut features: Vec<&str> = parts.collect();
    features.sort_unstable();
    (chip, features)
}

impl fmt::Display for BundleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for BundleId {
    type Err = ReadError;

    fn from_str(text: &str) -> Result<Self, ReadError> {
        if text.is_empty() || text.len() > MAX_LENGTH || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let id: String = text.chars().take(80).flat_map(char::escape_default).collect();
            return Err(no_id(
                &id,
                format!("it has to be 1 to {MAX_LENGTH} visible ASCII characters"),
            ));
        }
        let (kind_name, rest) = text.split_once('-').unwrap_or((text, ""));
        let kind = OffloadKind::ALL
            .into_iter()
            .find(|kind| kind.name() == kind_name)
            .ok_or_else(|| {
                let kinds = "host, hip, hipv4, openmp, cuda and sycl are";
                no_id(text, format!("'{kind_name}' is no kind of offloading ({kinds})"))
            })?;
        let mut parts = rest.splitn(4, '-');
        let (Some(arch), Some(vendor), Some(system)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(no_id(
                text,
                "the kind has to be followed by an architecture, a vendor and a system, as in \
                 hipv4-amdgcn-amd-amdhsa--gfx90a",
            ));
        };
        if arch.is_empty() || system.is_empty() {
            return Err(no_id(
                text,
                "the kind has to be followed by an architecture, a vendor and a system, as in \
                 hipv4-amdgcn-amd-amdhsa--gfx90a",
            ));
        }
        let rest = parts.next().unwrap_or_default();
        // Of three components, the triple is followed by the target ID at once: clang up to 16 read it so. Later ones take
        // it for the fourth component and end it with a dash.
        let (environment, target) = if is_chip(rest) {
            let ended = match rest.strip_suffix('-') {
                // The dash may be the sign of the last feature.
                Some(before) if !rest.contains(':') || before.ends_with(['+', '-']) => before,
                _ => rest,
            };
            ("", ended)
        } else {
            rest.split_once('-').unwrap_or((rest, ""))
        };
        let mut triple = format!("{arch}-{vendor}-{system}");
        if !environment.is_empty() {
            triple.push('-');
            triple.push_str(environment);
        }
        Ok(Self {
            text: text.to_owned(),
            kind,
            triple,
            target: (!target.is_empty()).then(|| target.to_owned()),
        })
    }
}

fn no_id(id: &str, problem: impl fmt::Display) -> ReadError {
    ReadError::other_format(format!("'{id}' is not the id of a bundle entry: {problem}"))
}

/// Whether `text` begins as the target ID of a GPU does, and not as the fourth component of a triple.
fn is_chip(text: &str) -> bool {
    let numbered = |prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    numbered("gfx") || numbered("sm_") || numbered("compute_") || text.starts_with("amdgcnspirv")
}

#[cfg(test)]
#[path = "bundle_id_tests.rs"]
mod tests;
