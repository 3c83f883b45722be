//! Code soon, and better code later: what is added is compiled with `speed=fast`, and at the session's own speed on another
//! thread. The better image takes the name when somebody looks the module up and it is there, so that the launch after that
//! is the first one to use it.

use std::collections::BTreeMap;

use super::{Pending, SessionError};
use crate::{
    image::{
        elf::{Elf, SHT_SYMTAB},
        ptx_components::declares_variables,
    },
    report::{Artifact, Format},
};

/// Compilations of better images, and what went wrong with those that are over.
#[derive(Debug, Default)]
pub(super) struct Better {
    /// By name, with the generation of the module that is to be replaced.
    waiting: BTreeMap<String, (u64, Pending)>,
    failed: Vec<SessionError>,
}

impl Better {
    pub(super) fn expect(&mut self, name: &str, generation: u64, pending: Pending) -> Option<(u64, Pending)> {
        // Two threads may add the same name: the later code stays.
        if self.waiting.get(name).is_some_and(|(later, _)| *later > generation) {
            return Some((generation, pending));
        }
        self.waiting.insert(name.to_owned(), (generation, pending))
    }

    /// Nobody waits for it any more.
    pub(super) fn forget(&mut self, name: &str) -> Option<(u64, Pending)> {
        self.waiting.remove(name)
    }

    /// What has been compiled for a name.
    pub(super) fn ready(&mut self, name: &str) -> Option<(u64, Pending)> {
        let (_, pending) = self.waiting.get_mut(name)?;
        pending.is_ready().then(|| self.waiting.remove(name)).flatten()
    }

    /// All that is compiled, or will be.
    pub(super) fn all(&mut self) -> BTreeMap<String, (u64, Pending)> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn fail(&mut self, error: SessionError) {
        self.failed.push(error);
    }

    pub(super) fn failures(&mut self) -> Vec<SessionError> {
        std::mem::take(&mut self.failed)
    }
}

/// Whether an image may have variables, whose values another image would not have. Of containers it is not looked for.
pub(super) fn has_variables(artifact: &Artifact) -> bool {
    /// `STT_OBJECT`.
    const OBJECT: u8 = 1;
    let in_elf = || {
        let elf = Elf::parse(&artifact.bytes).ok()?;
        let symbols = elf.symbols(SHT_SYMTAB).ok()?;
        let mut objects = symbols.iter().filter(|symbol| symbol.kind == OBJECT);
        Some(objects.any(|symbol| {
            let section = elf.sections().get(usize::from(symbol.section));
            let name = section.map_or("", |section| section.name);
            // Shared memory of blocks is new in every launch; an hsaco has its kernels' descriptors among its objects.
            !symbol.is_undefined() && !name.starts_with(".nv.shared") && !symbol.name.ends_with(".kd")
        }))
    };
    match artifact.format {
        Format::Ptx => std::str::from_utf8(&artifact.bytes).map_or(true, declares_variables),
        Format::Cubin | Format::Hsaco => in_elf().unwrap_or(true),
        _ => true,
    }
}
