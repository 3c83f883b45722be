//! A store in memory, for examples and tests.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use crate::{Listed, Refusal, Store, StoreError, Written};

/// Bytes under names, in this process alone. What it does can be spoilt.
#[derive(Debug, Default)]
pub struct InMemory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<String, Vec<u8>>,
    failure: Option<StoreError>,
    requests: Vec<String>,
}

impl InMemory {
    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has every operation fail from now on, or none.
    pub fn fail(&self, failure: Option<StoreError>) {
        self.with(|state| state.failure = failure);
    }

    /// Changes every value.
    pub fn change(&self, change: impl Fn(&mut Vec<u8>)) {
        self.with(|state| state.values.values_mut().for_each(change));
    }

    /// What was asked for since this was last called: `get NAME` and its like.
    #[must_use]
    pub fn take_requests(&self) -> Vec<String> {
        self.with(|state| std::mem::take(&mut state.requests))
    }

    fn request<T>(&self, what: &str, name: &str, answer: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        self.with(|state| {
            state.requests.push(format!("{what} {name}"));
            match &state.failure {
                Some(failure) => Err(failure.clone()),
                None => Ok(answer(state)),
            }
        })
    }
}

impl Store for InMemory {
    fn place(&self) -> &str {
        "memory:"
    }

    fn get(&self, name: &str, most: u64, _: Instant) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.request("get", name, |state| state.values.get(name).cloned())?;
        match value {
            Some(value) if value.len() as u64 > most => Err(StoreError::new(Refusal::TooLarge, "too large")),
            value => Ok(value),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool, _: Instant) -> Result<Written, StoreError> {
        self.request("put", name, |state| {
            if only_new && state.values.contains_key(name) {
                return Written::Existed;
            }
            state.values.insert(name.to_owned(), bytes);
            Written::New
        })
    }

    fn is_conditional(&self) -> bool {
        true
    }

    fn remove(&self, name: &str, _: Instant) -> Result<(), StoreError> {
        self.request("remove", name, |state| {
            state.values.remove(name);
        })
    }

    fn list(&self, prefix: &str, _: Instant) -> Result<Vec<Listed>, StoreError> {
        self.request("list", prefix, |state| {
            let names = state.values.iter().filter(|(name, _)| name.starts_with(prefix));
            names
                .map(|(name, value)| Listed {
                    name: name.clone(),
                    bytes: value.len() as u64,
                    modified: Some(SystemTime::now()),
                })
                .collect()
        })
    }
}
