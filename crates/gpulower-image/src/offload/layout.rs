//! What the releases of clang expect of a host object: the layout of offload entries, the sections they are in, the
//! numbers of the languages, and the images that their linker wrappers take.
//!
//! A wrong layout is not diagnosed by anything: the link succeeds and no kernel is registered. The data are from clang's
//! own output and from programs that were linked with each of these releases and run.

use std::fmt;

use super::{
    openmp,
    release::{ClangRelease, ReleaseList},
    runtime::Runtime,
};
use crate::{
    container::offload_binary::{ImageKind, KindNumbering, OffloadKind},
    target::{CodeObjectVersion, TargetError},
};

/// How offload entries are laid out, named after the first release with the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryLayout {
    /// Clang 15, 16, 17: `{ptr address, ptr name, i64 size, i32 flags, i32 reserved}`, 32 bytes.
    ///
    /// Their wrappers compare the whole word of flags, and pass over a variable with more than the low three bits.
    Clang15,
    /// Clang 18, 19: the same with [`FLAG_CONSTANT`] and its like, and the last field for surfaces and textures.
    Clang18,
    /// Clang 20: `{i64 0, i16 version, i16 kind, i32 flags, ptr address, ptr name, i64 size, i64 data, ptr auxiliary}`,
    /// 56 bytes, in a section for each language.
    Clang20,
    /// Clang 21, 22, 23: the same in one section for all languages.
    Clang21,
}

/// Flag of an entry for a variable in constant memory; clang 18 and newer.
pub const FLAG_CONSTANT: u32 = 16;
/// The bits of an entry's flags that every release knows: what it is of (0 a kernel or plain variable, 1 a managed
/// variable, 2 a surface, 3 a texture).
pub const FLAG_TYPE_MASK: u32 = 7;
/// Field `version` of an entry of 56 bytes.
pub const ENTRY_VERSION: u16 = 1;
/// Alignment of entries, in bytes. Clang gives its own 1 up to release 20; sizes are multiples of 8, so that either can
/// stand next to the other.
pub const ENTRY_ALIGNMENT: u64 = 8;
/// The section with the entries of every language from clang 21 on.
pub const SHARED_SECTION: &str = "llvm_offload_entries";
/// The sections with entries of any release.
pub const ENTRY_SECTIONS: [&str; 4] = [
    EntryLayout::Clang15.section(Runtime::Cuda),
    EntryLayout::Clang15.section(Runtime::Hip),
    EntryLayout::Clang15.section(Runtime::OpenMp),
    SHARED_SECTION,
];

impl EntryLayout {
    /// The layout that a release reads.
    #[must_use]
    pub const fn of(release: ClangRelease) -> Self {
        match release.number() {
            ..=17 => Self::Clang15,
            18 | 19 => Self::Clang18,
            20 => Self::Clang20,
            21.. => Self::Clang21,
        }
    }

    /// Bytes of an entry.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::Clang15 | Self::Clang18 => 32,
            Self::Clang20 | Self::Clang21 => 56,
        }
    }

    /// Where in an entry the pointer to the address is.
    #[must_use]
    pub const fn address_offset(self) -> u64 {
        match self {
            Self::Clang15 | Self::Clang18 => 0,
            Self::Clang20 | Self::Clang21 => 16,
        }
    }

    /// Where in an entry the size (u64) is; the pointer to the name is in the 8 bytes before it.
    #[must_use]
    pub const fn size_offset(self) -> u64 {
        self.address_offset() + 16
    }

    /// Where in an entry the flags (u32) are.
    #[must_use]
    pub const fn flags_offset(self) -> u64 {
        match self {
            Self::Clang15 | Self::Clang18 => 24,
            Self::Clang20 | Self::Clang21 => 12,
        }
    }

    /// The section in which the entries of a runtime's kernels are.
    #[must_use]
    pub const fn section(self, runtime: Runtime) -> &'static str {
        match (self, runtime) {
            (Self::Clang21, _) => SHARED_SECTION,
            (_, Runtime::Cuda) => "cuda_offloading_entries",
            (_, Runtime::Hip) => "hip_offloading_entries",
            (_, Runtime::OpenMp) => "omp_offloading_entries",
        }
    }

    /// Whether entries may have flags besides [`FLAG_TYPE_MASK`].
    #[must_use]
    pub const fn has_flag_bits(self) -> bool {
        !matches!(self, Self::Clang15)
    }

    /// What the symbols of entries begin with. Two layouts in one object need symbols of their own.
    #[must_use]
    pub const fn symbol_prefix(self) -> &'static str {
        match self {
            Self::Clang15 | Self::Clang18 => ".omp_offloading.entry.",
            Self::Clang20 => ".offloading.entry.clang20.",
            Self::Clang21 => ".offloading.entry.",
        }
    }
}

/// The language of a runtime's host code.
#[must_use]
pub const fn language(runtime: Runtime) -> OffloadKind {
    match runtime {
        Runtime::Cuda => OffloadKind::Cuda,
        Runtime::Hip => OffloadKind::Hip,
        Runtime::OpenMp => OffloadKind::OpenMp,
    }
}

/// How a release numbers the languages.
#[must_use]
pub const fn numbering(release: ClangRelease) -> KindNumbering {
    match release.number() {
        ..=20 => KindNumbering::Sequential,
        21.. => KindNumbering::BitMask,
    }
}

/// The newest version of the offload binary that a release reads.
#[must_use]
pub const fn newest_offload_binary(release: ClangRelease) -> u32 {
    if release.number() >= 23 { 2 } else { 1 }
}

/// What an image is to a linker wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageForm {
    /// A cubin that nvlink can link (`ptxas -c`).
    RelocatableCubin,
    /// A linked cubin.
    LinkedCubin,
    /// PTX text.
    Ptx,
    /// LLVM bitcode.
    Bitcode,
    /// A relocatable ELF object for AMD's GPUs, of a version of the code object.
    AmdObject(CodeObjectVersion),
    /// A linked code object (`.hsaco`).
    AmdLinked,
}

impl ImageForm {
    /// What the offload binary says of such an image. Clang 15 to 19 name the temporary file after it, and nvlink takes a
    /// cubin that is not named so for a host object.
    #[must_use]
    pub const fn image_kind(self) -> ImageKind {
        match self {
            Self::RelocatableCubin | Self::LinkedCubin => ImageKind::Cubin,
            Self::Ptx => ImageKind::Ptx,
            Self::Bitcode => ImageKind::Bitcode,
            Self::AmdObject(_) | Self::AmdLinked => ImageKind::Object,
        }
    }
}

impl fmt::Display for ImageForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RelocatableCubin => formatter.write_str("relocatable cubin"),
            Self::LinkedCubin => formatter.write_str("linked cubin"),
            Self::Ptx => formatter.write_str("PTX"),
            Self::Bitcode => formatter.write_str("bitcode"),
            Self::AmdObject(version) => write!(formatter, "relocatable code object of version {version}"),
            Self::AmdLinked => formatter.write_str("linked code object"),
        }
    }
}

/// Why a release does not take images of a form; none if it takes them.
#[must_use]
pub fn refusal(release: ClangRelease, form: ImageForm) -> Option<&'static str> {
    let number = release.number();
    match form {
        ImageForm::Ptx if number == 15 => {
            Some("its nvlink takes the PTX for a host object and drops it without a word")
        }
        ImageForm::Ptx if number >= 20 => Some("its clang-nvlink-wrapper takes no PTX (\"Unsupported file type\")"),
        ImageForm::LinkedCubin if number >= 19 => {
            Some("its clang-nvlink-wrapper takes relocatable cubins only (made by `ptxas -c`)")
        }
        ImageForm::LinkedCubin => Some("its nvlink passes over linked cubins without a word"),
        ImageForm::AmdLinked => Some("its link of a linked code object gives an empty one, without a word"),
        ImageForm::AmdObject(CodeObjectVersion::V4) if number >= 21 => Some("it does not take code object version 4"),
        ImageForm::AmdObject(CodeObjectVersion::V6) if number <= 18 => {
            Some("its lld does not know code object version 6 (\"unknown abi version\")")
        }
        _ => None,
    }
}

/// What one object for a set of releases has: one layout, or two that are read by different releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutSet {
    /// The runtime.
    pub runtime: Runtime,
    /// The releases that the object is for, oldest first.
    pub releases: Vec<ClangRelease>,
    /// The layouts of its entries, oldest first, each in a section of its own.
    pub layouts: Vec<EntryLayout>,
    /// How languages are numbered in its images, and in its entries of 56 bytes.
    pub numbering: KindNumbering,
}

fn advice(section: &str) -> &'static str {
    match section {
        "cuda_offloading_entries" | "omp_offloading_entries" => {
            " (one object can be for clang 15 to 19 and 21 to 23, another for 20 to 23)"
        }
        _ => " (one object can be for clang 15 to 19)",
    }
}

/// The layouts of one object for all of `releases`.
///
/// # Errors
///
/// [`TargetError`]: HIP up to 20 and from 21 on exclude each other, as do 15 to 19 and 20; and what [`openmp`] says.
pub fn choose(releases: &[ClangRelease], runtime: Runtime) -> Result<LayoutSet, TargetError> {
    let mut releases = releases.to_vec();
    releases.sort_unstable();
    releases.dedup();
    let Some(&newest) = releases.last() else {
        return Err(TargetError::unsupported(
            "no release of clang is named: an object is made for one or more of clang 15 to 23",
        ));
    };
    if runtime == Runtime::OpenMp {
        openmp::check_releases(&releases)?;
    }
    let part = |wanted: &dyn Fn(u8) -> bool| -> Vec<ClangRelease> {
        releases
            .iter()
            .copied()
            .filter(|release| wanted(release.number()))
            .collect()
    };
    let (old, new) = (part(&|number| number <= 20), part(&|number| number > 20));
    if runtime == Runtime::Hip && !old.is_empty() && !new.is_empty() {
        return Err(TargetError::unsupported(format!(
            "no object for HIP serves {} and {} at once: an image's language HIP is number 3 up to clang 20 and 4 from clang \
             21 on, and the others register nothing; export once for each",
            ReleaseList(&old),
            ReleaseList(&new)
        )));
    }
    let short = part(&|number| number <= 19);
    if !short.is_empty() && old.last().is_some_and(|release| release.number() == 20) {
        let section = EntryLayout::Clang20.section(runtime);
        return Err(TargetError::unsupported(format!(
            "no object serves {} and clang 20 at once: both read entries from the section {section}, with 32 bytes each up to \
             clang 19 and 56 from clang 20 on; export twice{}",
            ReleaseList(&short),
            advice(section)
        )));
    }
    let mut layouts: Vec<EntryLayout> = releases.iter().copied().map(EntryLayout::of).collect();
    layouts.dedup();
    // 18 and 19 read what is for 15.
    if layouts.starts_with(&[EntryLayout::Clang15, EntryLayout::Clang18]) {
        layouts.remove(1);
    }
    Ok(LayoutSet {
        runtime,
        layouts,
        numbering: numbering(newest),
        releases,
    })
}

impl LayoutSet {
    /// Every release that reads an object with these layouts, asked for or not.
    #[must_use]
    pub fn serves(&self) -> Vec<ClangRelease> {
        ClangRelease::all()
            .filter(|release| self.is_read_by(*release))
            .collect()
    }

    fn is_read_by(&self, release: ClangRelease) -> bool {
        let layout = EntryLayout::of(release);
        let readable = self.layouts.contains(&layout)
            || (layout == EntryLayout::Clang18 && self.layouts.contains(&EntryLayout::Clang15));
        readable
            && match self.runtime {
                Runtime::Cuda => true,
                Runtime::Hip => self.numbering == numbering(release),
                Runtime::OpenMp => openmp::KernelCall::of(&self.releases).serves(release),
            }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
