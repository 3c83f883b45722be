//! Joins executable cubins: of kernels that were compiled apart, the cubin that `ptxas` would have written of all together.
//!
//! The code of a kernel is the same in both, and its sections are its own. What remains is to put names, sections and
//! symbols in the order in which `ptxas` enters them, to change what refers to them by index, and to merge what a module has
//! once. None of this is documented: it was found by comparing what `ptxas` of CUDA 11.8 to 13.5 makes of the same PTX.
//!
//! Each part is first put together from its own pieces alone. If that is not, byte for byte, the part itself, it has
//! something that is unknown here, and is refused. So are parts that define the same name, and parts that disagree on what a
//! module has once. A kernel that was refused can still be compiled together with the others.

mod contents;
mod lines;
mod names;
mod order;
mod part;
mod whole;
mod write;

use std::collections::HashMap;

use crate::ReadError;
use part::Part;
use whole::Merger;

/// Kernels that are called otherwise in the whole: the name in the part, and that in the whole.
pub type Renaming<'a> = &'a [(&'a str, &'a str)];

/// Why cubins were not joined.
///
/// Parts are numbered from 0, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubinJoinError {
    /// There was nothing to join.
    #[error("no cubins to join")]
    NoParts,
    /// No ELF file, or a damaged one.
    #[error("cubin {part} cannot be joined with others: {error}")]
    Elf {
        /// Which part.
        part: usize,
        /// What is wrong with it.
        error: ReadError,
    },
    /// A relocatable cubin, which a linker joins.
    #[error("cubin {part} is not an executable one: relocatable cubins are joined by a linker")]
    NotExecutable {
        /// Which part.
        part: usize,
    },
    /// Something of which it is not known what becomes of it.
    #[error("cubin {part} cannot be joined with others: it is not known how {what} is joined")]
    Unknown {
        /// Which part.
        part: usize,
        /// What it has.
        what: String,
    },
    /// A part that is not what its own pieces make.
    #[error("cubin {part} cannot be joined with others: it has something that is not known, at offset {offset:#x}")]
    NotReproduced {
        /// Which part.
        part: usize,
        /// The first byte that would be another.
        offset: usize,
    },
    /// Parts that have variables, or addresses of functions. Code has their positions in it.
    #[error("cubins {first} and {second} cannot be joined: both have section `{section}`")]
    Variables {
        /// The section.
        section: String,
        /// Which part has it.
        first: usize,
        /// Which other part has it.
        second: usize,
    },
    /// A kernel cannot be called that.
    #[error("a kernel cannot be called `{}`", .name.escape_debug())]
    Name {
        /// The name.
        name: String,
    },
    /// A name that two parts define.
    #[error("cubins {first} and {second} cannot be joined: both have `{name}`")]
    Twice {
        /// The name.
        name: String,
        /// Which part has it.
        first: usize,
        /// Which other part has it.
        second: usize,
    },
    /// Parts that were compiled with other options, for another chip or by another tool; or which set the module as a whole to
    /// other things.
    #[error("cubin {part} cannot be joined with others: its {what} is not the same")]
    Differs {
        /// Which part.
        part: usize,
        /// What is not the same.
        what: String,
    },
    /// A name that should be in the table of names.
    #[error("cubins cannot be joined: the name `{name}` is not among the names")]
    Nameless {
        /// The name.
        name: String,
    },
    /// A kernel has some ten sections; a file has up to 65,279 where nothing more is done about it.
    #[error("cubins cannot be joined: they have more than 65,279 sections together")]
    TooManySections,
}

impl CubinJoinError {
    /// The error of a part that was looked at alone.
    fn at(mut self, index: usize) -> Self {
        if let Self::Elf { part, .. } | Self::Unknown { part, .. } | Self::Differs { part, .. } = &mut self {
            *part = index;
        }
        self
    }

    /// The error with parts numbered from the other end of `parts`.
    fn reversed(mut self, parts: usize) -> Self {
        let reverse = |part: &mut usize| *part = parts.saturating_sub(*part + 1);
        match &mut self {
            Self::Elf { part, .. }
            | Self::NotExecutable { part }
            | Self::Unknown { part, .. }
            | Self::NotReproduced { part, .. }
            | Self::Differs { part, .. } => reverse(part),
            Self::Variables { first, second, .. } | Self::Twice { first, second, .. } => {
                reverse(first);
                reverse(second);
                std::mem::swap(first, second);
            }
            Self::NoParts | Self::Name { .. } | Self::Nameless { .. } | Self::TooManySections => {}
        }
        self
    }
}

/// The cubin of all kernels of `parts`, which are in the order of their PTX.
///
/// The parts have to be components of a module as [`super::ptx_components`] finds them: a cubin does not tell whether a
/// function is called by an address that another part could have passed on. For the same bytes as those of `ptxas`, each part
/// is one kernel; a part with variables may be anywhere, at the price of another order of names.
///
/// # Errors
///
/// [`CubinJoinError`]: what cannot be joined has to be compiled together.
pub fn join(parts: &[&[u8]]) -> Result<Vec<u8>, CubinJoinError> {
    let parts: Vec<_> = parts.iter().map(|&part| (part, &[] as Renaming<'_>)).collect();
    join_renamed(&parts)
}

/// Like [`join`], with other names for kernels.
///
/// # Errors
///
/// [`CubinJoinError`].
pub fn join_renamed(parts: &[(&[u8], Renaming<'_>)]) -> Result<Vec<u8>, CubinJoinError> {
    // `ptxas` compiles the last kernel of a module first.
    let last_first: Vec<_> = parts.iter().rev().copied().collect();
    join_in_order(&last_first).map_err(|error| error.reversed(parts.len()))
}

fn join_in_order(files: &[(&[u8], Renaming<'_>)]) -> Result<Vec<u8>, CubinJoinError> {
    let mut parts = Vec::with_capacity(files.len());
    for (index, (file, _)) in files.iter().enumerate() {
        let part = Part::read(file, index)?;
        check(&part, file, index)?;
        parts.push(part);
    }
    check_variables(&parts)?;
    let renamings: Vec<Renaming<'_>> = files.iter().map(|(_, renaming)| *renaming).collect();
    check_kernels(&parts, &renamings)?;
    write::write(&Merger::new(&parts, &renamings)?.merge()?)
}

/// Checks that nothing of a part is lost or changed when it is put together again.
fn check(part: &Part<'_>, file: &[u8], index: usize) -> Result<(), CubinJoinError> {
    let merge = || write::write(&Merger::new(std::slice::from_ref(part), &[])?.merge()?);
    let again = merge().map_err(|error| error.at(index))?;
    if again == file {
        return Ok(());
    }
    let same = again.iter().zip(file).take_while(|(one, other)| one == other).count();
    Err(CubinJoinError::NotReproduced {
        part: index,
        offset: same,
    })
}

fn check_kernels(parts: &[Part<'_>], renamings: &[Renaming<'_>]) -> Result<(), CubinJoinError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
    for &(_, to) in renamings.iter().copied().flatten() {
        if to.is_empty() || names::is_shared(to) || !to.bytes().all(is_name) {
            return Err(CubinJoinError::Name { name: to.to_owned() });
        }
    }
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (second, (part, renaming)) in parts.iter().zip(renamings).enumerate() {
        for kernel in part.kernels() {
            let name = renaming
                .iter()
                .find_map(|&(from, to)| (from == kernel).then_some(to))
                .unwrap_or(kernel);
            if let Some(first) = owners.insert(name, second) {
                let name = name.to_owned();
                return Err(CubinJoinError::Twice { name, first, second });
            }
        }
    }
    Ok(())
}

fn check_variables(parts: &[Part<'_>]) -> Result<(), CubinJoinError> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (second, part) in parts.iter().enumerate() {
        for section in part.sections.iter().filter(|section| names::is_data(section.name)) {
            if let Some(first) = owners.insert(section.name, second) {
                return Err(CubinJoinError::Variables {
                    section: section.name.to_owned(),
                    first,
                    second,
                });
            }
        }
    }
    Ok(())
}
