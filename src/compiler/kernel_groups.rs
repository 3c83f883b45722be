//! Several kernels in one call of the PTX compiler, which costs some milliseconds and megabytes beside them, and what each became.

use std::ops::Range;

use super::kernels::{Content, KernelPtx};
use crate::{
    image::{
        join_cubin::{self, TakenApart, split},
        ptx_canonical::{PLACEHOLDER, together},
        ptx_components::{AddedFunctions, declares_variables},
    },
    serialize::nvidia::{Cubin, PtxCompiler},
    target::NvidiaArch,
};

/// A call of the PTX compiler that has several kernels has no more text. What a call costs beside them, some 4 ms, is little for so
/// much, and its memory grows with the text.
const MOST_BYTES_OF_A_CALL: usize = 64 << 10;

/// Nor more kernels: their entries in the cache are made one within the other.
const MOST_KERNELS_OF_A_CALL: usize = 64;

/// What the PTX compiler says of the size of variables, before what it says of kernels.
const NO_VARIABLES: &str = " 0 bytes gmem";

/// What decides which kernels stand in a call.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct PtxTraits {
    /// How long the text is: what is long takes long.
    pub bytes: usize,
    /// What the PTX compiler adds to the kernel.
    pub adds: AddedFunctions,
    /// Whether there are variables outside of functions.
    pub has_variables: bool,
    /// Whether more of the text than the kernel is its own: functions, which others may have as well, or a word that is called like
    /// the kernel. So is the number of a block in its cluster: in the cubin, code that asks for it looks as if it used shared memory.
    stands_alone: bool,
}

impl PtxTraits {
    /// Of the canonical text of a kernel.
    pub(super) fn of(text: &str) -> Self {
        let after_name = text.split(PLACEHOLDER).skip(1);
        let names = after_name.filter(|after| !after.starts_with('_'));
        Self {
            bytes: text.len(),
            adds: AddedFunctions::of(text),
            has_variables: declares_variables(text),
            stands_alone: text.contains(".func") || text.contains("%cluster") || names.count() > 1,
        }
    }

    fn may_stand_with(self, others: AddedFunctions) -> bool {
        !self.stands_alone && !self.has_variables && others.may_stand_with(self.adds)
    }
}

/// Which of `kernels` stand in a call: fewer towards the end, so that `threads` threads end at about the same time. What becomes of a
/// kernel does not depend on that ([`AddedFunctions`]).
pub(super) fn groups(kernels: &[&KernelPtx<'_>], threads: usize) -> Vec<Range<usize>> {
    let mut left: usize = kernels.iter().map(|kernel| kernel.traits.bytes).sum();
    let mut groups = Vec::new();
    let mut begin = 0;
    while let Some(first) = kernels.get(begin) {
        let most = match threads {
            1 => MOST_BYTES_OF_A_CALL,
            _ => (left / (2 * threads)).min(MOST_BYTES_OF_A_CALL),
        };
        let PtxTraits {
            mut bytes, mut adds, ..
        } = first.traits;
        let mut end = begin + 1;
        while let Some(KernelPtx { traits, .. }) = kernels.get(end)
            && first.traits.may_stand_with(AddedFunctions::Nothing)
            && traits.may_stand_with(adds)
            && bytes + traits.bytes <= most
            && end - begin < MOST_KERNELS_OF_A_CALL
        {
            bytes += traits.bytes;
            adds = adds.max(traits.adds);
            end += 1;
        }
        left -= bytes;
        groups.push(begin..end);
        begin = end;
    }
    groups
}

/// The kernels in one text, with their names.
pub(super) fn text_of(kernels: &[&KernelPtx<'_>]) -> Option<String> {
    let texts: Option<Vec<String>> = kernels.iter().map(|kernel| (kernel.text)()).collect();
    let names: Option<Vec<&str>> = kernels.iter().map(|kernel| kernel.kernel.as_deref()).collect();
    together(texts?.iter().map(String::as_str).zip(names?))
}

/// The same kernels as one that is compiled.
pub(super) fn of_several<'a>(kernels: &'a [&'a KernelPtx<'a>]) -> KernelPtx<'a> {
    let traits = kernels.iter().map(|kernel| kernel.traits);
    KernelPtx {
        count: kernels.len(),
        traits: PtxTraits {
            bytes: traits.clone().map(|traits| traits.bytes).sum(),
            adds: traits.map(|traits| traits.adds).max().unwrap_or_default(),
            has_variables: false,
            stands_alone: true,
        },
        content: Content::of_all(kernels.iter().copied()),
        kernel: None,
        text: Box::new(|| text_of(kernels)),
    }
}

/// Whether a cubin of several kernels, made for `chip` by this version of a compiler, can be split as a rule. nvJitLink links.
pub(super) fn can_be_split(chip: &str, compiler: PtxCompiler, version: &str) -> bool {
    let known = NvidiaArch::parse(chip).zip(version.parse().ok());
    compiler != PtxCompiler::NvJitLink && known.is_some_and(|(arch, release)| join_cubin::can_be_split(arch, release))
}

/// What one call made of several kernels, as what a call for each would have made. `None` where that is not known.
pub(super) fn split_by_kernel(cubin: &Cubin, chip: &str, kernels: &[&KernelPtx<'_>]) -> Option<Vec<Cubin>> {
    let names: Option<Vec<&str>> = kernels.iter().map(|kernel| kernel.kernel.as_deref()).collect();
    let names = names?;
    if !can_be_split(chip, cubin.compiler, &cubin.version) || TakenApart::read(&cubin.bytes).ok()?.mixes_functions() {
        return None;
    }
    let logs = logs_of_each(&cubin.log, &names)?;
    let renaming: Vec<(&str, &str)> = names.iter().map(|name| (*name, PLACEHOLDER)).collect();
    let cubins = split(&cubin.bytes, &renaming)
        .inspect_err(|reason| tracing::debug!(%reason, "kernels are compiled alone"))
        .ok()?;
    let of_each = cubins.into_iter().zip(logs).map(|(bytes, log)| Cubin {
        bytes,
        log,
        ..cubin.clone()
    });
    Some(of_each.collect())
}

/// What is said of each kernel, which is called [`PLACEHOLDER`] there: the compiler says it of the last one first. `None` where it says
/// something else.
fn logs_of_each(log: &str, names: &[&str]) -> Option<Vec<String>> {
    const START: &str = "ptxas info    : Compiling entry function '";
    const PROPERTIES: &str = "ptxas info    : Function properties for ";
    let mut lines = log.lines().peekable();
    let variables = lines.next().filter(|line| line.ends_with(NO_VARIABLES))?;
    let mut logs = Vec::with_capacity(names.len());
    for name in names.iter().rev() {
        let chip = lines
            .next()?
            .strip_prefix(START)?
            .strip_prefix(name)?
            .strip_prefix('\'')?;
        let mut own = format!("{variables}\n{START}{PLACEHOLDER}'{chip}");
        while let Some(line) = lines.next_if(|line| !line.starts_with(START)) {
            own.push('\n');
            match line.strip_prefix(PROPERTIES) {
                Some(of) if of == *name => own.extend([PROPERTIES, PLACEHOLDER]),
                Some(_) => return None,
                None if line.contains(" bytes stack frame, ") || line.starts_with("ptxas info    : Used ") => {
                    own.push_str(line);
                }
                None => return None,
            }
        }
        logs.push(own);
    }
    logs.reverse();
    lines.next().is_none().then_some(logs)
}

/// The opposite, of kernels or of several under their own names: what the compiler says of all first, the size of variables, and then
/// the rest, of the last kernel first.
pub(super) fn log_of_all(parts: &[(Option<&str>, &str)]) -> String {
    let mut variables = "";
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (kernel, log) in parts.iter().rev() {
        let named = |log: &str| match kernel {
            Some(name) => log.replace(PLACEHOLDER, name),
            None => log.to_owned(),
        };
        let line = log
            .lines()
            .find(|line| line.contains(" bytes gmem"))
            .unwrap_or_default();
        let (first, rest) = log.split_once(line).unwrap_or(("", log));
        before.push(named(first.trim_end_matches('\n')));
        after.push(named(rest.trim_start_matches('\n')));
        // One part at most has variables.
        if variables.is_empty() || variables.ends_with(NO_VARIABLES) {
            variables = line;
        }
    }
    let texts = before
        .iter()
        .map(|text| &**text)
        .chain([variables])
        .chain(after.iter().map(|text| &**text));
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}
