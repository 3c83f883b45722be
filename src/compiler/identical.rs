//! Modules that are the same but for their names: they are compiled once.

use std::collections::HashMap;

use super::request::{Product, Request};
use crate::{cache::Key, target::Target};

/// For each request the first one that gives the same images: itself, where there is none before it, or where its content
/// was not identified.
pub(super) fn first_of_each(requests: &[Request<'_>], contents: &[Option<Key>]) -> Vec<usize> {
    // For each target and what is made: the requests with these options, by what they compile.
    type Compiled = (Target, Vec<Product>, Key);
    let mut seen: HashMap<Compiled, Vec<usize>> = HashMap::new();
    requests
        .iter()
        .zip(contents)
        .enumerate()
        .map(|(index, (request, content))| {
            let Some(content) = content else { return index };
            let key = (request.target, request.products.clone(), *content);
            let candidates = seen.entry(key).or_default();
            let first = candidates.iter().copied().find(|candidate| {
                requests
                    .get(*candidate)
                    .is_some_and(|other| other.options == request.options)
            });
            first.unwrap_or_else(|| {
                candidates.push(index);
                index
            })
        })
        .collect()
}
