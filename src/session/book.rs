//! Which modules a session has: names, generations, contents. Knows nothing of compilers and devices.

use std::collections::HashMap;

use super::content::SourceHash;
use crate::cache::Key;

/// The modules by name. `M` is whatever stands for one: dropping the book's last clone of it is what unloads it.
#[derive(Debug)]
pub(super) struct Book<M> {
    entries: HashMap<String, Entry<M>>,
    /// Generations given so far.
    last: u64,
}

/// What is known of one name.
#[derive(Debug)]
struct Entry<M> {
    source: SourceHash,
    content: Key,
    generation: u64,
    module: M,
}

/// What adding a module did to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The name is new.
    New,
    /// Another module of that name was replaced. Whoever holds a handle of it keeps it.
    Replaced,
    /// The module of that name is the same already: nothing was done.
    Unchanged,
}

impl<M: Clone> Book<M> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            last: 0,
        }
    }

    /// The module of that name.
    pub(super) fn get(&self, name: &str) -> Option<M> {
        self.entries.get(name).map(|entry| entry.module.clone())
    }

    /// The module of that name, if it was made from this very text.
    pub(super) fn made_from(&self, name: &str, source: SourceHash) -> Option<M> {
        let entry = self.entries.get(name).filter(|entry| entry.source == source)?;
        Some(entry.module.clone())
    }

    /// The module of that name, if it is this content already. The text that it came from last is remembered.
    pub(super) fn same(&mut self, name: &str, source: SourceHash, content: Key) -> Option<M> {
        let entry = self.entries.get_mut(name).filter(|entry| entry.content == content)?;
        entry.source = source;
        Some(entry.module.clone())
    }

    /// The number of the next module that is put in.
    pub(super) fn next_generation(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Puts a module in. What had the name before is returned, so that it is dropped where no lock is held.
    pub(super) fn put(
        &mut self,
        name: &str,
        source: SourceHash,
        content: Key,
        generation: u64,
        module: M,
    ) -> Option<M> {
        let entry = Entry {
            source,
            content,
            generation,
            module,
        };
        self.entries.insert(name.to_owned(), entry).map(|old| old.module)
    }

    /// Takes a module out.
    pub(super) fn remove(&mut self, name: &str) -> Option<M> {
        self.entries.remove(name).map(|entry| entry.module)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// All modules, in the order in which they were put in.
    pub(super) fn in_order(&self) -> Vec<M> {
        let mut entries: Vec<&Entry<M>> = self.entries.values().collect();
        entries.sort_by_key(|entry| entry.generation);
        entries.into_iter().map(|entry| entry.module.clone()).collect()
    }

    /// Replaces each module by another that stands for the same content, all or none: `make` is called for each, in order.
    /// What was there before is returned.
    pub(super) fn remake<E>(&mut self, mut make: impl FnMut(&M) -> Result<M, E>) -> Result<Vec<M>, E> {
        let mut entries: Vec<&mut Entry<M>> = self.entries.values_mut().collect();
        entries.sort_by_key(|entry| entry.generation);
        let made: Vec<M> = entries
            .iter()
            .map(|entry| make(&entry.module))
            .collect::<Result<_, E>>()?;
        Ok(entries
            .into_iter()
            .zip(made)
            .map(|(entry, module)| std::mem::replace(&mut entry.module, module))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cache::KeyBuilder;

    fn source(text: &str) -> SourceHash {
        SourceHash::of(text.as_bytes())
    }

    fn content(text: &str) -> Key {
        KeyBuilder::new(text).finish()
    }

    fn put(book: &mut Book<Arc<str>>, name: &str, text: &str) -> Option<Arc<str>> {
        let generation = book.next_generation();
        book.put(name, source(text), content(text), generation, text.into())
    }

    #[test]
    fn a_name_stands_for_its_latest_module() {
        let mut book = Book::new();
        assert!(put(&mut book, "a", "one").is_none());
        let old = book.get("a").expect("there");
        assert_eq!(put(&mut book, "a", "two").as_deref(), Some("one"));
        assert_eq!((&*old, book.get("a").as_deref()), ("one", Some("two")));
        assert_eq!(
            Arc::strong_count(&old),
            1,
            "the book keeps nothing of what was replaced"
        );
        assert_eq!(book.remove("a").as_deref(), Some("two"));
        assert!(book.get("a").is_none() && book.len() == 0);
    }

    #[test]
    fn the_same_content_is_found_whatever_text_it_came_from() {
        let mut book = Book::new();
        put(&mut book, "a", "text");
        assert!(book.made_from("a", source("text")).is_some());
        assert!(book.made_from("a", source("text ")).is_none());
        assert!(book.made_from("b", source("text")).is_none());
        assert!(book.same("a", source("text "), content("text")).is_some());
        assert!(book.made_from("a", source("text ")).is_some(), "the latest text counts");
        assert!(book.same("a", source("x"), content("x")).is_none());
        assert!(book.made_from("a", source("x")).is_none());
    }

    #[test]
    fn modules_are_listed_as_they_were_put_in() {
        let mut book = Book::new();
        for name in ["c", "a", "b"] {
            put(&mut book, name, name);
        }
        put(&mut book, "c", "again");
        let listed: Vec<String> = book.in_order().iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["a", "b", "again"]);
    }

    #[test]
    fn all_modules_are_remade_or_none() {
        let mut book = Book::new();
        for name in ["a", "b", "c"] {
            put(&mut book, name, name);
        }
        let mut seen = Vec::new();
        let failed = book.remake(|module| {
            seen.push(module.to_string());
            if &**module == "b" { Err("b") } else { Ok("new".into()) }
        });
        assert_eq!(failed, Err("b"));
        assert_eq!(seen, ["a", "b"], "in order, up to the failure");
        assert_eq!(book.get("a").as_deref(), Some("a"), "nothing changed");
        let old = book
            .remake(|module| Ok::<_, ()>(format!("{module} again").into()))
            .expect("works");
        assert_eq!(old.len(), 3);
        assert_eq!(book.get("c").as_deref(), Some("c again"));
    }
}
