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
mod split;
mod whole;
mod write;

use std::collections::HashMap;
use std::fmt::Display;

use part::Part;
use whole::Merger;

use crate::target::{CudaRelease, NvidiaArch};

/// Kernels that are called otherwise in the whole: the name in the part, and that in the whole.
pub type Renaming<'a> = &'a [(&'a str, &'a str)];

/// Why cubins were not joined. No caller tells reasons apart: what cannot be joined is compiled together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be joined{}: {problem}", named(.parts), if parts.len() == 1 { " with others" } else { "" })]
pub struct CubinJoinError {
    /// The parts concerned, numbered from 0 in the order in which they were given.
    pub parts: Vec<usize>,
    problem: String,
}

fn named(parts: &[usize]) -> String {
    match parts {
        [] => "cubins".to_owned(),
        [part] => format!("cubin {part}"),
        [first, rest @ ..] => rest
            .iter()
            .fold(format!("cubins {first}"), |text, part| format!("{text} and {part}")),
    }
}

impl CubinJoinError {
    fn new(parts: impl Into<Vec<usize>>, problem: impl Into<String>) -> Self {
        Self {
            parts: parts.into(),
            problem: problem.into(),
        }
    }

    /// Something of which it is not known what becomes of it.
    fn unknown(part: usize, what: impl Display) -> Self {
        Self::new([part], format!("it is not known how {what} is joined"))
    }

    /// Parts that were compiled with other options, for another chip or by another tool; or which set the module as a whole to
    /// other things.
    fn differs(part: usize, what: impl Display) -> Self {
        Self::new([part], format!("its {what} is not the same"))
    }

    /// A name that two parts define.
    fn twice(first: usize, second: usize, name: &str) -> Self {
        Self::new([first, second], format!("both have `{name}`"))
    }

    /// The error with parts numbered from the other end of `count`.
    fn reversed(mut self, count: usize) -> Self {
        self.parts.reverse();
        for part in &mut self.parts {
            *part = count.saturating_sub(*part + 1);
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
    let mut read = Vec::with_capacity(parts.len());
    for (index, (file, renaming)) in parts.iter().enumerate() {
        let part = Part::read(file, index)?;
        check_part(&part, file, index)?;
        read.push((TakenApart(part), *renaming));
    }
    let read: Vec<_> = read.iter().map(|(part, renaming)| (part, *renaming)).collect();
    join_checked(&read)
}

/// A cubin that was taken apart, by any thread. It may be several parts, under other names.
#[derive(Debug)]
pub struct TakenApart<'a>(Part<'a>);

impl<'a> TakenApart<'a> {
    /// Takes a cubin apart.
    ///
    /// # Errors
    ///
    /// [`CubinJoinError`], as if it was the first part.
    pub fn read(cubin: &'a [u8]) -> Result<Self, CubinJoinError> {
        Part::read(cubin, 0).map(Self)
    }

    /// Whether a kernel of it has several of the functions that `ptxas` adds, for divisions, say, and another kernel has one of them,
    /// too: its code may be another than that of it alone ([`super::ptx_components::AddedFunctions`]).
    pub fn mixes_functions(&self) -> bool {
        // Which functions the code of each kernel has, and how many kernels have each.
        let mut of_section: HashMap<u16, Vec<&str>> = HashMap::new();
        let mut kernels_with: HashMap<&str, usize> = HashMap::new();
        for symbol in &self.0.symbols {
            if let Some((_, function)) = names::internal_number(symbol.name) {
                of_section.entry(symbol.section).or_default().push(function);
                *kernels_with.entry(function).or_default() += 1;
            }
        }
        let mut of_several = of_section.values().filter(|functions| functions.len() > 1).flatten();
        of_several.any(|function| kernels_with.get(function).is_some_and(|count| *count > 1))
    }
}

/// The opposite of [`join_renamed`]: of a cubin of several kernels, the cubin of each kernel alone, under another name. `kernels` are
/// all kernels in the order of the PTX, each with that name.
///
/// Each is one for which [`check`] finds nothing, and joined they are `cubin`, byte for byte. That each is what `ptxas` would have
/// written of the kernel alone holds where [`can_be_split`] says so.
///
/// # Errors
///
/// [`CubinJoinError`]: each kernel has to be compiled alone.
pub fn split(cubin: &[u8], kernels: Renaming<'_>) -> Result<Vec<Vec<u8>>, CubinJoinError> {
    let part = Part::read(cubin, 0)?;
    let split = split::Split::new(&part)?;
    if !split
        .kernels
        .iter()
        .rev()
        .copied()
        .eq(kernels.iter().map(|(name, _)| *name))
    {
        return Err(CubinJoinError::new([0], "its kernels are others, or in another order"));
    }
    let mut cubins = Vec::with_capacity(kernels.len());
    for (number, (_, name)) in kernels.iter().rev().enumerate() {
        cubins.push(split.kernel(number, name)?);
    }
    cubins.reverse();
    let back: Vec<[(&str, &str); 1]> = kernels.iter().map(|(from, to)| [(*to, *from)]).collect();
    let parts: Vec<(&[u8], Renaming<'_>)> = cubins
        .iter()
        .zip(&back)
        .map(|(cubin, back)| (cubin.as_slice(), back.as_slice()))
        .collect();
    if join_renamed(&parts)? != cubin {
        return Err(CubinJoinError::new(
            [0],
            "its kernels do not make the same cubin when they are joined again",
        ));
    }
    Ok(cubins)
}

/// Whether a cubin of several kernels for `arch`, by `ptxas` of `release`, as a rule says what it takes to [`split`] it. For `sm_100`
/// and `sm_110` to `sm_121` it has of some things only that a kernel needs them; up to CUDA 12.3 it has names that say nothing, and
/// up to 12.5 a kernel for `sm_90` is marked in another way where it is alone. (Compared with `ptxas` of 12.1 to 13.0.)
#[must_use]
pub fn can_be_split(arch: NvidiaArch, release: CudaRelease) -> bool {
    matches!(arch.number, ..100 | 103) && release >= CudaRelease::new(12, 6)
}

/// Whether a cubin can be joined with others as far as that is a matter of itself: [`join_checked`] takes what was looked at
/// once, by any thread.
///
/// # Errors
///
/// [`CubinJoinError`].
pub fn check(cubin: &[u8]) -> Result<(), CubinJoinError> {
    check_part(&Part::read(cubin, 0)?, cubin, 0)
}

/// Like [`join_renamed`], of cubins for each of which [`check`] found nothing. Of others something may be lost.
///
/// # Errors
///
/// [`CubinJoinError`].
pub fn join_checked(parts: &[(&TakenApart<'_>, Renaming<'_>)]) -> Result<Vec<u8>, CubinJoinError> {
    // `ptxas` compiles the last kernel of a module first.
    let last_first = parts.iter().rev().map(|(part, renaming)| (&part.0, *renaming));
    let (last_first, renamings): (Vec<&Part<'_>>, Vec<Renaming<'_>>) = last_first.unzip();
    join_in_order(&last_first, &renamings).map_err(|error| error.reversed(parts.len()))
}

fn join_in_order(parts: &[&Part<'_>], renamings: &[Renaming<'_>]) -> Result<Vec<u8>, CubinJoinError> {
    check_variables(parts)?;
    check_kernels(parts, renamings)?;
    write::write(&Merger::new(parts, renamings)?.merge()?)
}

/// Checks that nothing of a part is lost or changed when it is put together again.
fn check_part(part: &Part<'_>, file: &[u8], index: usize) -> Result<(), CubinJoinError> {
    let merge = || write::write(&Merger::new(&[part], &[])?.merge()?);
    let again = merge().map_err(|error| CubinJoinError {
        parts: vec![index],
        ..error
    })?;
    if again == file {
        return Ok(());
    }
    let same = again.iter().zip(file).take_while(|(one, other)| one == other).count();
    let problem = format!("it has something that is not known, at offset {same:#x}");
    Err(CubinJoinError::new([index], problem))
}

fn check_kernels(parts: &[&Part<'_>], renamings: &[Renaming<'_>]) -> Result<(), CubinJoinError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
    for &(_, to) in renamings.iter().copied().flatten() {
        if to.is_empty() || names::is_shared(to) || !to.bytes().all(is_name) {
            let problem = format!("a kernel cannot be called `{}`", to.escape_debug());
            return Err(CubinJoinError::new([], problem));
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
                return Err(CubinJoinError::twice(first, second, name));
            }
        }
    }
    Ok(())
}

fn check_variables(parts: &[&Part<'_>]) -> Result<(), CubinJoinError> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (second, part) in parts.iter().enumerate() {
        for section in part.sections.iter().filter(|section| names::is_data(section.name)) {
            if let Some(first) = owners.insert(section.name, second) {
                // Code has the positions of variables, and of functions whose address is taken, in it.
                return Err(CubinJoinError::twice(first, second, section.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
