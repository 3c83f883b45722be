//! What a check finds.

use std::{collections::BTreeSet, fmt};

use serde::{Serialize, Serializer};

use super::super::{layout::ImageForm, openmp::KernelCall, release::ClangRelease, runtime::Runtime};
use crate::FileKind;
use crate::container::offload_binary::{ImageKind, OffloadKindNumber};

/// An offload entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundEntry {
    /// Its section.
    pub section: String,
    /// Size of the entry, 32 or 56 bytes.
    pub bytes: u64,
    /// The name of the kernel or variable.
    pub name: String,
    /// Bytes of the variable; 0 for a kernel.
    pub size: u64,
    /// Flags.
    pub flags: u32,
    /// The number of the language, in an entry of 56 bytes.
    pub kind: Option<u16>,
    /// Whether it has an address.
    pub has_address: bool,
    /// Whether it survives a link with `--gc-sections` and lld. In a finished program that is past.
    pub retained: bool,
}

impl FoundEntry {
    /// Whether it stands for a kernel; else for a variable.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        self.size == 0
    }
}

/// A device image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundImage {
    /// Version of the offload binary; none in a fat binary or bundle.
    pub version: Option<u32>,
    /// The number of the language there.
    pub kind: Option<OffloadKindNumber>,
    /// What the offload binary says that the image is.
    #[serde(serialize_with = "as_text")]
    pub marked: Option<ImageKind>,
    /// The triple there.
    pub triple: Option<String>,
    /// What it is for, as the file says it.
    pub arch: String,
    /// How libomptarget has to call its kernels, where the file says it.
    pub call: Option<KernelCall>,
    /// What it is, if it is any of those.
    #[serde(serialize_with = "as_text")]
    pub form: Option<ImageForm>,
    /// The chip that machine code says it was made for.
    pub made_for: Option<String>,
    /// What it defines, if that can be read.
    pub symbols: Option<ImageSymbols>,
}

/// What a device image defines for the host and for other images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImageSymbols {
    /// Kernels.
    pub kernels: BTreeSet<String>,
    /// Variables that the host may refer to by name.
    pub variables: BTreeSet<String>,
    /// What no other image of the same link may define.
    #[serde(skip)]
    pub unique: BTreeSet<String>,
}

/// What one release of clang, or the finished program itself, registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Registered {
    /// The kernels.
    pub kernels: Vec<String>,
    /// The variables.
    pub variables: Vec<String>,
    /// The kernels that have entries and are not registered.
    pub missing_kernels: Vec<String>,
    /// The variables that have entries and are not registered.
    pub missing_variables: Vec<String>,
    /// Why others are not registered, or fail when they are launched.
    pub problems: Vec<String>,
}

impl Registered {
    /// Whether everything that has an entry is registered, and nothing is wrong with it.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.missing_kernels.is_empty() && self.missing_variables.is_empty() && self.problems.is_empty()
    }
}

/// A release of clang and what it registers.
pub type OfRelease = (ClangRelease, Registered);

/// What there is to say of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it is: a host file, an archive, or LLVM IR for text and bitcode alike.
    pub kind: FileKind,
    /// The entries; of an archive those of all members.
    pub entries: Vec<FoundEntry>,
    /// The images for clang's linker wrapper, or for the runtime in a finished program.
    pub images: Vec<FoundImage>,
    /// The runtimes with which the file registers fat binaries or bundles by itself: it is a finished program, or an
    /// object that needs no clang.
    pub registers_itself: Vec<Runtime>,
    /// What is wrong whatever the release.
    pub problems: Vec<String>,
    /// What is to be heeded when the file is linked, or has not been looked into.
    pub notes: Vec<String>,
    /// For each release what it registers; empty for a finished program and for an object that needs no clang.
    pub releases: Vec<OfRelease>,
    /// What a finished program registers of its entries.
    pub finished: Option<Registered>,
    /// The members of an archive that have entries or images.
    pub members: Vec<String>,
}

impl Report {
    /// What a release registers; none where the file needs no clang.
    #[must_use]
    pub fn of(&self, release: ClangRelease) -> Option<&Registered> {
        let found = self.releases.iter().find(|(other, _)| *other == release);
        found.map(|(_, registered)| registered)
    }

    /// Whether everything is registered: by each release of `wanted`, or if that is empty by some release. A file that
    /// needs no clang does it by itself, whatever is wanted.
    #[must_use]
    pub fn is_complete(&self, wanted: &[ClangRelease]) -> bool {
        let complete = |release: &ClangRelease| self.of(*release).is_some_and(Registered::is_complete);
        let by_clang = match wanted {
            _ if self.releases.is_empty() => true,
            [] => self.releases.iter().any(|(_, registered)| registered.is_complete()),
            wanted => wanted.iter().all(complete),
        };
        self.problems.is_empty() && by_clang && self.finished.as_ref().is_none_or(Registered::is_complete)
    }
}

fn as_text<T: fmt::Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
