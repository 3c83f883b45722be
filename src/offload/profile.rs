//! LLVM IR for older releases of clang: a module is changed until a release reads it, and every newer one, with the meaning
//! that it has here.
//!
//! `profile_table` says what each release reads. What it does not read is left out where it is a
//! hint, said otherwise where that can be done, and refused where not. The order of things is in `bridge/cpp/downgrade.cpp`.

use std::{collections::BTreeSet, fmt};

use super::{
    debug_text,
    error::OffloadError,
    profile_table::{self as table, IrTarget, NEVER, WRITER},
    release::ClangRelease,
    splat,
};
use crate::bridge::{
    downgrade::{Finding, Kind},
    llvm::DeviceModule,
    target_machine::TargetMachine,
};

/// How LLVM IR is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrSyntax {
    /// Text, as in `.ll` files.
    Text,
    /// Bitcode, as in `.bc` files.
    Bitcode,
}

/// IR that an older release reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// What was left out and may be missed, in sentences.
    pub notes: Vec<String>,
}

/// Something that cannot be said to a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it is.
    pub what: String,
    /// The first release that reads it; none if no release does.
    pub first: Option<u8>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        match self.first {
            Some(first) => write!(formatter, ", which clang {first} is the first to read"),
            None => Ok(()),
        }
    }
}

/// Something in the module has no equivalent in the oldest release that has to read it.
fn unreadable(oldest: ClangRelease, refusals: &[Refusal]) -> OffloadError {
    let (list, advice) = (list(refusals), advice(refusals));
    OffloadError::new(format!(
        "this module cannot be written as LLVM IR for {oldest}: it has {list}{advice}"
    ))
}

fn list(refusals: &[Refusal]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = refusals.iter().take(SHOWN).map(ToString::to_string).collect();
    if refusals.len() > SHOWN {
        text.push(format!("{} more", refusals.len() - SHOWN));
    }
    text.join("; ")
}

fn advice(refusals: &[Refusal]) -> String {
    let firsts: Option<Vec<u8>> = refusals.iter().map(|refusal| refusal.first).collect();
    match firsts.and_then(|firsts| firsts.into_iter().max()) {
        Some(newest) => {
            format!(". Finish with clang {newest} or newer, or let machine code cross instead of LLVM IR (an object)")
        }
        None => ". Let machine code cross instead of LLVM IR (an object)".to_owned(),
    }
}

/// Who reads what is written.
#[derive(Clone, Copy, Debug)]
struct Profile {
    oldest: ClangRelease,
    syntax: IrSyntax,
    target: IrTarget,
}

impl Profile {
    /// The first release that knows a name.
    fn first(self, kind: Kind, name: &str) -> u8 {
        match kind {
            Kind::AddressSpace => table::address_space(name, self.target),
            // With a GCC of 9.4 or newer beside it, clang calls functions for atomic operations on AArch64, and 16 and 19 have
            // no code for these two then ("Cannot select: AtomicLoadUIncWrap").
            Kind::AtomicOperation if self.target == IrTarget::AArch64Host && name.ends_with("_wrap") => WRITER,
            Kind::AtomicOperation => table::first_in(table::ATOMIC_OPERATIONS, name),
            Kind::Attribute => match table::first_in(table::TEXT_ATTRIBUTES, name) {
                WRITER => table::first_in(table::ATTRIBUTES, name),
                _ if self.syntax == IrSyntax::Bitcode => NEVER,
                first => first,
            },
            Kind::Bundle => table::first_in(table::BUNDLES, name),
            Kind::CallingConvention => convention(name).map_or(WRITER, |(_, first)| first),
            Kind::Construct => table::construct(name, self.syntax),
            Kind::Instruction => table::first_in(table::INSTRUCTIONS, name),
            Kind::Intrinsic => table::intrinsic(name),
            Kind::Metadata => table::first_in(table::METADATA, name),
        }
    }

    fn knows(self, kind: Kind, name: &str) -> bool {
        self.first(kind, name) <= self.oldest.number()
    }

    fn refusal(self, finding: &Finding) -> Refusal {
        let name = &finding.name;
        let mut what = match finding.kind {
            Kind::AddressSpace => format!("pointers to address space {name}"),
            Kind::AtomicOperation => format!("atomicrmw {name} of more than 64 bits"),
            Kind::Attribute => format!("the attribute {name}"),
            Kind::Bundle => format!("operand bundles {name:?}"),
            Kind::CallingConvention => format!(
                "the calling convention {}",
                convention(name).map_or(name.as_str(), |(name, _)| name)
            ),
            Kind::Construct => name.clone(),
            Kind::Instruction => format!("the instruction {name}"),
            Kind::Intrinsic => format!("the intrinsic {name}"),
            Kind::Metadata => format!("metadata !{name}"),
        };
        if !finding.place.is_empty() {
            what.push_str(&format!(" in {}", finding.place));
        }
        let construct = table::CONSTRUCTS.iter().find(|construct| construct.name == *name);
        if let Some(construct) = construct.filter(|construct| construct.remedy != "refused") {
            what.push_str(&format!(" ({})", construct.remedy));
        }
        let first = self.first(finding.kind, name);
        Refusal {
            what,
            first: (first != NEVER).then_some(first),
        }
    }

    fn note(self, kind: Kind, name: &str) -> String {
        let oldest = self.oldest;
        match kind {
            Kind::Construct => format!("{name} was left out: {oldest} does not read that of LLVM 22"),
            Kind::Attribute if name.starts_with("sanitize_") => format!(
                "the attribute {name} was left out, which {oldest} does not know: the code will not be instrumented for it"
            ),
            Kind::Attribute => format!("the attribute {name} was left out, which {oldest} does not know"),
            _ => format!("metadata !{name} was left out, which {oldest} may not know"),
        }
    }
}

fn convention(number: &str) -> Option<(&'static str, u8)> {
    let number: u8 = number.parse().ok()?;
    table::CALLING_CONVENTIONS
        .iter()
        .find(|(known, ..)| *known == number)
        .map(|(_, name, first)| (*name, *first))
}

/// Writes a module for `oldest` and every newer release up to clang 23.
///
/// This changes the module, also where it fails: it has to be the caller's own, and is good for nothing afterwards.
///
/// # Errors
///
/// [`OffloadError`], which lists what carries meaning and cannot be said to `oldest`.
pub(crate) fn write(
    module: &DeviceModule<'_>,
    oldest: ClangRelease,
    syntax: IrSyntax,
) -> Result<Written, OffloadError> {
    let target = check_target(module, oldest)?;
    let profile = Profile { oldest, syntax, target };
    let findings = module.downgrade(&|kind, name| profile.knows(kind, name))?;
    let (refused, left_out): (Vec<Finding>, Vec<Finding>) = findings.into_iter().partition(|finding| finding.refused);
    if !refused.is_empty() {
        // One place is enough for each.
        let mut seen = BTreeSet::new();
        let firsts = refused
            .iter()
            .filter(|finding| seen.insert((finding.kind, &finding.name)));
        let refusals: Vec<Refusal> = firsts.map(|finding| profile.refusal(finding)).collect();
        return Err(unreadable(oldest, &refusals));
    }
    let mut notes: Vec<String> = Vec::new();
    for finding in left_out {
        let note = profile.note(finding.kind, &finding.name);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let bytes = match syntax {
        IrSyntax::Bitcode => module.to_bitcode()?,
        IrSyntax::Text => text(module, profile, &mut notes)?.into_bytes(),
    };
    Ok(Written { bytes, notes })
}

fn check_target(module: &DeviceModule<'_>, oldest: ClangRelease) -> Result<IrTarget, OffloadError> {
    let triple = module.inkwell().get_triple().as_str().to_string_lossy().into_owned();
    let layout = module.data_layout();
    for (what, value) in [("target triple", &triple), ("data layout", &layout)] {
        if value.is_empty() {
            return Err(OffloadError::new(format!(
                "the module has no {what}, which every clang needs, and each would take its own: give it one \
                 (DeviceModule::set_target)"
            )));
        }
    }
    let target = match IrTarget::of(&triple) {
        Some(target) => target,
        None if oldest.number() >= WRITER => return Ok(IrTarget::Host),
        None => {
            return Err(OffloadError::new(format!(
                "what older releases of clang read is known for x86_64, aarch64, nvptx64 and amdgcn, not for {triple}: finish \
                 with clang 22 or newer"
            )));
        }
    };
    let expected = TargetMachine::new(&triple, "", "", 2, false)?.data_layout();
    if layout != expected {
        return Err(OffloadError::new(format!(
            "the module has the data layout {layout:?}, and LLVM 22 gives {triple} {expected:?}, which clang 15 to 23 take: \
             give it that one (DeviceModule::set_target)"
        )));
    }
    Ok(target)
}

fn text(module: &DeviceModule<'_>, profile: Profile, notes: &mut Vec<String>) -> Result<String, OffloadError> {
    let mut text = module.to_text()?;
    if profile.oldest.number() < WRITER && !debug_text::is_plain(&text) {
        module.strip_debug_info()?;
        notes.push(profile.note(Kind::Construct, "debug information"));
        text = module.to_text()?;
    }
    const SPLAT: &str = "vectors of one number as splat";
    if profile.knows(Kind::Construct, SPLAT) {
        return Ok(text);
    }
    splat::written_in_full(&text).ok_or_else(|| {
        let refusal = Refusal {
            what: SPLAT.to_owned(),
            first: Some(profile.first(Kind::Construct, SPLAT)),
        };
        unreadable(profile.oldest, &[refusal])
    })
}

#[cfg(test)]
#[path = "../../tests/offload/profile_examples.rs"]
mod example_tests;
#[cfg(test)]
#[path = "../../tests/offload/profile_gpu.rs"]
mod gpu_tests;
#[cfg(test)]
#[path = "../../tests/offload/profile.rs"]
mod tests;
