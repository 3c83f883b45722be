//! What libomptarget of each release does with kernels that were not compiled for its device runtime, as those of gpulower:
//! how they are called, and which images it loads.
//!
//! | release | a kernel without an execution mode | before its arguments | sizes of a launch | dynamic shared memory |
//! |---|---|---|---|---|
//! | 15 | is taken for one with a main thread: 32 threads more than asked for | nothing | x | none |
//! | 16, 17 | as asked for, up to what device and kernel permit: more is cut off | nothing | x | below 48 KiB |
//! | 18 | as asked for | a pointer | x | below 48 KiB |
//! | 19 | as asked for | a pointer, where the caller's version is 3 | x | below 48 KiB |
//! | 20, 21 | as asked for | as 19 | x, y, z | below 48 KiB: with more, 21 launches nothing, without a word |
//! | 22 | as asked for | as 19 | x, y, z | what the device has |
//! | 23 | as asked for, where a flag says so | as 19 | x, y, z from version 3 on | what the device has, from version 3 on |
//!
//! Every argument takes eight bytes: for CUDA it does not matter up to 18 and in 23, and matters between; for AMD it matters up
//! to 22.
//!
//! From the sources of libomptarget and its plugins of 15.0.6, 16.0.6, 17.0.6, 18.1.8, 19.1.7, 21.1.8, 22.1.8 and 23.1.1; 20 is
//! taken to be as its neighbours.

use super::release::{ClangRelease, ReleaseList};
use crate::target::{CodeObjectVersion, CudaRelease, Target, TargetError};

/// From this many bytes of dynamic shared memory on a kernel has to be permitted to have them, which only some releases do.
pub const USUAL_SHARED_MEMORY: u64 = 48 << 10;
/// Bytes that each argument of a kernel takes.
pub const ARGUMENT_SIZE: u64 = 8;

/// Flag in the field `Flags` of `KernelArgsTy` by which clang 23 takes the sizes of a launch as they are; nothing to older ones.
pub const FLAG_STRICT: u64 = 1 << 6;
/// What `ArgTypes` says of an argument that is handed over as it is: a parameter of the kernel, and a literal.
pub const LITERAL_ARGUMENT: u64 = 0x120;

/// The string of an offload binary that says how the kernels of its image are called, for the check of the file. Clang passes
/// over it.
pub const CALL_KEY: &str = "gpulower-openmp";

/// How kernels are called, so that libomptarget of every release of a set gives them what they expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct KernelCall {
    /// Whether a pointer of libomptarget's own comes before the arguments of a kernel.
    pub leading_pointer: bool,
    /// Whether grids and blocks may have more than one dimension.
    pub multidimensional: bool,
    /// Whether a kernel may have [`USUAL_SHARED_MEMORY`] and more.
    pub large_shared_memory: bool,
}

impl KernelCall {
    /// For the releases of one object.
    #[must_use]
    pub fn of(releases: &[ClangRelease]) -> Self {
        let all = |oldest: u8| releases.iter().all(|release| release.number() >= oldest);
        Self {
            leading_pointer: all(18),
            multidimensional: all(20),
            large_shared_memory: all(22),
        }
    }

    /// Field `Version` of the structure `KernelArgsTy` that describes a launch. From version 3 on every release from 18 on adds
    /// the pointer. (18 does it whatever the version, and says nothing to one that is newer than its own.)
    #[must_use]
    pub const fn version(self) -> u32 {
        if self.leading_pointer { 3 } else { 2 }
    }

    /// The value of [`CALL_KEY`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.leading_pointer, self.multidimensional, self.large_shared_memory) {
            (false, ..) => "plain",
            (true, false, _) => "pointer",
            (true, true, false) => "pointer,xyz",
            (true, true, true) => "pointer,xyz,shared",
        }
    }

    /// The call with a name of [`KernelCall::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let of = |leading_pointer, multidimensional, large_shared_memory| Self {
            leading_pointer,
            multidimensional,
            large_shared_memory,
        };
        let all = [
            of(false, false, false),
            of(true, false, false),
            of(true, true, false),
            of(true, true, true),
        ];
        all.into_iter().find(|call| call.name() == name)
    }

    /// Why libomptarget of a release does not call kernels so; none if it does.
    #[must_use]
    pub fn refusal(self, release: ClangRelease) -> Option<&'static str> {
        let number = release.number();
        if self.serves(release) {
            None
        } else if number <= 15 {
            Some("it launches kernels that have no execution mode with 32 threads more than they are asked for")
        } else if self.leading_pointer && number <= 17 {
            Some("its libomptarget puts no pointer before the arguments of a kernel, and these kernels expect one")
        } else if !self.leading_pointer {
            Some(
                "its libomptarget puts a pointer before the arguments of a kernel, or forgets sizes of its launch, and these \
                 kernels expect none",
            )
        } else if self.multidimensional && number <= 19 {
            Some("its libomptarget launches in one dimension alone, and this program may ask for more")
        } else {
            Some(
                "its libomptarget launches nothing with 48 KiB of dynamic shared memory, and this program may ask for that",
            )
        }
    }

    /// Whether libomptarget of a release calls kernels so, asked for or not.
    #[must_use]
    pub const fn serves(self, release: ClangRelease) -> bool {
        let number = release.number();
        let arguments = match number {
            ..=15 => false,
            16 | 17 => !self.leading_pointer,
            18 | 23.. => self.leading_pointer,
            19..=22 => true,
        };
        arguments && (!self.multidimensional || number >= 20) && (!self.large_shared_memory || number >= 22)
    }
}

/// Refuses releases that do not launch such kernels as they are asked to, and those that exclude each other.
///
/// # Errors
///
/// [`TargetError`]: clang 15; and 16 or 17 together with 18 or 23.
pub fn check_releases(releases: &[ClangRelease]) -> Result<(), TargetError> {
    let some = |numbers: &[u8]| -> Vec<ClangRelease> {
        let wanted = |release: &ClangRelease| numbers.contains(&release.number());
        releases.iter().copied().filter(wanted).collect()
    };
    if !some(&[15]).is_empty() {
        return Err(TargetError::unsupported(
            "libomptarget of clang 15 launches kernels that have no execution mode with 32 threads more than they are asked \
             for; the oldest that launches them as they are is that of clang 16",
        ));
    }
    let (old, others) = (some(&[16, 17]), some(&[18, 23]));
    if !old.is_empty() && !others.is_empty() {
        return Err(TargetError::unsupported(format!(
            "no object for OpenMP serves {} and {} at once: libomptarget of the latter puts a pointer of its own before the \
             arguments of a kernel, or else forgets sizes of its launch, and those of 16 and 17 put none there; export once for \
             each",
            ReleaseList(&old),
            ReleaseList(&others)
        )));
    }
    Ok(())
}

/// Why libomptarget of a release does not load images for a target that are linked with a CUDA toolkit, or of a version of
/// the code object; none if it loads them.
#[must_use]
pub fn refused_image(
    release: ClangRelease,
    target: &Target,
    cuda: Option<CudaRelease>,
    version: Option<CodeObjectVersion>,
) -> Option<String> {
    let number = release.number();
    match target {
        Target::Nvidia(target) => {
            let (chip, sm) = (target.chip(), target.number());
            let is_new = cuda.is_some_and(|cuda| cuda.major >= 13);
            if matches!(number, 18..=20) && is_new {
                Some(format!(
                    "libomptarget of {release} does not know the ELF header that cubins have from CUDA 13 on (\"unsupported \
                     NVPTX architecture\"): finish with CUDA 12"
                ))
            } else if matches!(number, 21..) && is_new && sm < 100 {
                Some(format!(
                    "libomptarget of {release} takes the ELF header that cubins have from CUDA 13 on for sm_100 and newer \
                     alone, not for {chip} (\"unsupported NVPTX architecture\"): finish with CUDA 12"
                ))
            } else if matches!(number, 18 | 19) && sm > 90 {
                Some(format!(
                    "libomptarget of {release} knows chips up to sm_90, and not {chip} (\"unsupported NVPTX architecture\")"
                ))
            } else {
                None
            }
        }
        Target::Amd(_) if number <= 16 => Some(format!(
            "libomptarget of {release} tells kernels of code object version 5 nothing of their sizes; finish with clang 17 or \
             newer"
        )),
        Target::Amd(_) => match (version, number) {
            (Some(CodeObjectVersion::V6), ..=18) => {
                Some(format!("libomptarget of {release} does not know code object version 6"))
            }
            (Some(CodeObjectVersion::V4), _) => Some(
                "kernels are told their sizes as code object version 5 has them, and these are of version 4".to_owned(),
            ),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{layout::choose, release::FinishWith, runtime::Runtime};
    use super::*;

    fn releases(list: &str) -> Vec<ClangRelease> {
        list.parse::<FinishWith>().expect(list).clangs().to_vec()
    }

    #[test]
    fn a_call_serves_the_releases_that_understand_it() {
        for (list, version, multidimensional, serves) in [
            ("16", 2, false, "16,17,19"),
            ("16,17,19", 2, false, "16,17,19"),
            ("16,22", 2, false, "16,17,19,21,22"),
            ("18", 3, false, "18,19"),
            ("18,22", 3, false, "18,19,21..23"),
            ("19", 3, false, "18,19"),
            ("20", 3, true, "20"),
            ("21", 3, true, "21..23"),
            ("22", 3, true, "22..23"),
            ("20..23", 3, true, "20..23"),
        ] {
            let set = choose(&releases(list), Runtime::OpenMp).expect(list);
            let call = KernelCall::of(&set.releases);
            assert_eq!(
                (call.version(), call.multidimensional),
                (version, multidimensional),
                "{list}"
            );
            assert_eq!(set.serves(), releases(serves), "{list}: {:?}", set.layouts);
        }
    }

    #[test]
    fn what_libomptarget_cannot_do_is_refused() {
        for (list, message) in [
            (
                "15",
                "libomptarget of clang 15 launches kernels that have no execution mode with 32 threads more",
            ),
            ("16,18", "no object for OpenMP serves clang 16 and clang 18 at once"),
            ("17,23", "no object for OpenMP serves clang 17 and clang 23 at once"),
            ("19,20", "no object serves clang 19 and clang 20 at once"),
        ] {
            let error = choose(&releases(list), Runtime::OpenMp).expect_err(list).to_string();
            assert!(error.starts_with(message), "{list}: {error}");
        }
    }

    #[test]
    fn images_that_libomptarget_does_not_load_are_known() {
        let cuda = |major, minor| Some(CudaRelease::new(major, minor));
        for (release, target, cuda, refused) in [
            (19, "sm_90", cuda(12, 4), None),
            (19, "sm_90", cuda(13, 0), Some("from CUDA 13 on")),
            (22, "sm_90", cuda(12, 4), None),
            (
                22,
                "sm_90",
                cuda(13, 0),
                Some("for sm_100 and newer alone, not for sm_90"),
            ),
            (22, "sm_100", cuda(13, 0), None),
            (16, "sm_90", cuda(13, 0), None),
            (19, "sm_100", cuda(12, 8), Some("knows chips up to sm_90")),
            (16, "gfx90a", None, Some("nothing of their sizes")),
            (17, "gfx90a", None, None),
        ] {
            let release = ClangRelease::new(release).expect("a release");
            let target = target.parse().expect(target);
            let found = refused_image(release, &target, cuda, None);
            match (refused, &found) {
                (None, None) => {}
                (Some(part), Some(text)) if text.contains(part) => {}
                _ => panic!("{release} {target:?}: {found:?}"),
            }
        }
    }
}
