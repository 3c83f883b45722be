//! Images that were compiled, shared by all modules of a session with the same content.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::error::SessionError;
use crate::{cache::Key, report::Artifact};

/// What one content was compiled to.
#[derive(Debug)]
pub(super) struct Image {
    pub content: Key,
    pub artifact: Artifact,
    /// Variables and functions that it defines.
    pub definitions: Vec<String>,
}

/// The images that are in use. They are not kept alive here: what no module and no handle has is forgotten.
#[derive(Debug, Default)]
pub(super) struct Images {
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_content: HashMap<Key, Arc<Slot>>,
    /// How many there may be before those that are empty are looked for.
    sweep_at: usize,
}

/// Locked while its content is compiled, so that whoever wants the same waits for it.
type Slot = Mutex<Weak<Image>>;

impl Images {
    /// The image of a content, and whether it had to be compiled.
    pub(super) fn get_or_compile(
        &self,
        content: Key,
        compile: impl FnOnce() -> Result<Image, SessionError>,
    ) -> Result<(Arc<Image>, bool), SessionError> {
        let slot = lock(&self.slots).slot(content);
        let mut slot = lock(&slot);
        if let Some(image) = slot.upgrade() {
            return Ok((image, false));
        }
        let image = Arc::new(compile()?);
        *slot = Arc::downgrade(&image);
        Ok((image, true))
    }
}

impl Slots {
    fn slot(&mut self, content: Key) -> Arc<Slot> {
        const FEW: usize = 64;
        // Each sweep waits for as many new contents as the last one left: a constant cost for each.
        if self.by_content.len() >= self.sweep_at.max(FEW) {
            self.by_content.retain(|_, slot| {
                // A slot that somebody else has is being filled.
                Arc::strong_count(slot) > 1 || lock(slot).strong_count() > 0
            });
            self.sweep_at = 2 * self.by_content.len();
        }
        Arc::clone(self.by_content.entry(content).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
