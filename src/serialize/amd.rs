//! Linking of AMDGPU objects to a code object that a loader accepts (`.hsaco`), with lld in this process.
//!
//! No file is written: inputs are anonymous files in memory, the output comes through a pipe. The result
//! is byte for byte what a spawned `ld.lld` writes for the same objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io;

use super::{amd_pipe, link_error::DeviceLinkError};
use crate::bridge::{lld, memfd, watch};
use crate::image::elf::{EM_AMDGPU, ET_REL, Elf, SHT_SYMTAB};
use crate::{FileKind, error::ErrorKind};

/// The options with which clang 22 links for `amdgcn-amd-amdhsa` (seen with `clang -###`), but for
/// `-plugin-opt=mcpu=`, which concerns bitcode inputs only. One thread, as [`lld::link`] asks for; all
/// errors, not the first twenty.
const OPTIONS: [&str; 4] = ["--no-undefined", "-shared", "--threads=1", "--error-limit=0"];

/// One input of a link.
#[derive(Debug, Clone, Copy)]
pub struct NamedObject<'data> {
    /// Name for messages: a path, or what the object was compiled from.
    pub name: &'data str,
    /// A relocatable AMDGPU ELF object, or an archive (`ar`) of such objects.
    pub bytes: &'data [u8],
}

/// A linked code object.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LinkedHsaco {
    /// The code object (ELF `ET_DYN`).
    pub bytes: Vec<u8>,
    /// What lld warned about.
    pub warnings: Vec<String>,
}

/// The error for symbols that nothing defines, each with the inputs that use it.
fn undefined<S: Display, U: Display>(symbols: &BTreeMap<S, BTreeSet<U>>) -> DeviceLinkError {
    let joined = |users: &BTreeSet<U>| users.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let list: Vec<String> = symbols
        .iter()
        .map(|(name, users)| match users.is_empty() {
            true => format!("`{name}`"),
            false => format!("`{name}` (used by {})", joined(users)),
        })
        .collect();
    let (s, them) = if list.len() == 1 { ("", "it") } else { ("s", "them") };
    let list = list.join(", ");
    DeviceLinkError::new(
        ErrorKind::Symbols,
        format!(
            "undefined symbol{s} in the AMDGPU link: {list}; link the device library or object that defines {them}"
        ),
    )
}

/// Links one object; `name` is its name for messages.
///
/// # Errors
///
/// As [`link_objects`].
pub fn link_object(name: &str, bytes: &[u8]) -> Result<LinkedHsaco, DeviceLinkError> {
    link_objects(&[NamedObject { name, bytes }])
}

/// Links objects and archives, in the order given. Of an archive only those members take part that define
/// something which is used. All objects have to be for the same target.
///
/// Blocks while another link runs in this process: lld can do one at a time.
///
/// # Errors
///
/// [`DeviceLinkError`]. Undefined symbols are all listed, before lld runs if there is no archive.
pub fn link_objects(inputs: &[NamedObject<'_>]) -> Result<LinkedHsaco, DeviceLinkError> {
    if inputs.is_empty() {
        return Err(DeviceLinkError::link("nothing to link: no AMDGPU object was given"));
    }
    let mut table = SymbolTable::default();
    for input in inputs {
        table.add(input)?;
    }
    table.check()?;

    let io = |what: &'static str| {
        move |error: io::Error| DeviceLinkError::link(format!("cannot {what} for the AMDGPU link: {error}"))
    };
    let mut files: Vec<File> = Vec::with_capacity(inputs.len());
    for input in inputs {
        let file = memfd::with_bytes("gpulower-object", input.bytes).map_err(io("make a file in memory"))?;
        files.push(file);
    }
    let paths: Vec<String> = files
        .iter()
        .map(|file| memfd::path(file).display().to_string())
        .collect();
    let _span = tracing::debug_span!("tool", name = "lld", inputs = inputs.len()).entered();
    let (result, bytes) = amd_pipe::capture(|output| {
        let mut arguments: Vec<&str> = OPTIONS.to_vec();
        arguments.extend(paths.iter().map(String::as_str));
        arguments.extend(["-o", output]);
        watch::uninterruptible("lld", || lld::link(&arguments))
    })
    .map_err(io("read lld's output through a pipe"))?;

    let names: Vec<(&str, &str)> = paths
        .iter()
        .map(String::as_str)
        .zip(inputs.iter().map(|input| input.name))
        .collect();
    match result {
        Ok(text) => {
            let warnings = messages(&rename(&text, &names));
            tracing::debug!(inputs = inputs.len(), bytes = bytes.len(), "linked AMDGPU objects");
            Ok(LinkedHsaco { bytes, warnings })
        }
        Err(error) => {
            let text = rename(&error.into_text(), &names);
            if let Some(symbols) = undefined_symbols(&text) {
                return Err(undefined(&symbols));
            }
            Err(DeviceLinkError::Tool {
                tool: "lld".to_owned(),
                inputs: inputs.iter().map(|input| input.name.to_owned()).collect(),
                log: messages(&text).join("\n"),
            })
        }
    }
}

/// The global symbols of all inputs.
#[derive(Default)]
struct SymbolTable<'data> {
    defined: BTreeSet<&'data str>,
    used: BTreeMap<&'data str, BTreeSet<&'data str>>,
    sections: BTreeSet<&'data str>,
    has_archive: bool,
}

impl<'data> SymbolTable<'data> {
    fn add(&mut self, input: &NamedObject<'data>) -> Result<(), DeviceLinkError> {
        let refused = |problem: &dyn Display| {
            DeviceLinkError::link(format!("`{}` cannot be linked for AMDGPU: {problem}", input.name))
        };
        let not_an_object = |problem: &str| refused(&problem);
        match FileKind::of(input.bytes) {
            FileKind::Archive => {
                self.has_archive = true;
                return Ok(());
            }
            FileKind::ThinArchive => {
                return Err(not_an_object(
                    "it is a thin archive, which only names other files; make a regular one (llvm-ar without --thin)",
                ));
            }
            FileKind::Bitcode => {
                return Err(not_an_object(
                    "it is LLVM bitcode; link it into the kernel module before code generation",
                ));
            }
            _ => {}
        }
        let elf = Elf::parse(input.bytes).map_err(|error| refused(&error))?;
        let header = elf.header();
        if header.machine != EM_AMDGPU {
            let machine = header.machine;
            return Err(not_an_object(&format!(
                "it is ELF for machine {machine}, not for AMDGPU (224)"
            )));
        }
        if header.kind != ET_REL {
            let kind = header.kind;
            return Err(not_an_object(&format!(
                "its ELF type is {kind}; only relocatable objects (type 1) can be linked"
            )));
        }
        for symbol in elf.symbols(SHT_SYMTAB).map_err(|error| refused(&error))? {
            if symbol.is_local() {
                continue;
            }
            if !symbol.is_undefined() {
                self.defined.insert(symbol.name);
            } else if !symbol.is_weak() {
                self.used.entry(symbol.name).or_default().insert(input.name);
            }
        }
        self.sections.extend(elf.sections().iter().map(|section| section.name));
        Ok(())
    }

    fn check(&self) -> Result<(), DeviceLinkError> {
        if self.has_archive {
            // Which members an archive contributes is for lld to find out.
            return Ok(());
        }
        let mut symbols = self.used.clone();
        symbols.retain(|name, _| {
            !self.defined.contains(*name) && !is_made_by_linker(name, |section| self.sections.contains(section))
        });
        if symbols.is_empty() {
            Ok(())
        } else {
            Err(undefined(&symbols))
        }
    }
}

/// Whether lld itself defines a symbol of this name in a link of objects that have these sections.
///
/// Source: `addReservedSymbols` in `lld/ELF/Writer.cpp`, and the bounds of sections whose name is a C
/// identifier. In doubt a name is left to lld, whose own check follows.
pub(super) fn is_made_by_linker(name: &str, has_section: impl Fn(&str) -> bool) -> bool {
    // Where LLVM's kernels that run constructors and destructors look for them.
    const ARRAYS: [&str; 4] = [
        "__init_array_start",
        "__init_array_end",
        "__fini_array_start",
        "__fini_array_end",
    ];
    let bounds = name.strip_prefix("__start_").or_else(|| name.strip_prefix("__stop_"));
    bounds.is_some_and(has_section)
        || ARRAYS.contains(&name)
        || matches!(
            name,
            "_DYNAMIC"
                | "_GLOBAL_OFFSET_TABLE_"
                | "__bss_start"
                | "__dso_handle"
                | "__ehdr_start"
                | "__executable_start"
                | "_edata"
                | "_end"
                | "_etext"
                | "edata"
                | "end"
                | "etext"
        )
}

/// Replaces the paths of the files in memory, wherever they occur, by the names of the inputs.
fn rename(text: &str, names: &[(&str, &str)]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/proc/self/fd/") {
        let (before, found) = rest.split_at(start);
        result.push_str(before);
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (prefix, tail) = found.split_at("/proc/self/fd/".len());
        let (path, after) = found.split_at(prefix.len() + digits(tail));
        let name = names.iter().find(|(known, _)| *known == path);
        result.push_str(name.map_or(path, |(_, name)| name));
        rest = after;
    }
    result.push_str(rest);
    result
}

/// Splits lld's text into messages, without the program's name. A message may have several lines.
fn messages(text: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match (line.strip_prefix("ld.lld: "), messages.last_mut()) {
            (None, Some(message)) => {
                message.push('\n');
                message.push_str(line);
            }
            (start, _) => messages.push(start.unwrap_or(line).to_owned()),
        }
    }
    messages
}

/// The symbols, if all that lld complains about is that they are undefined.
fn undefined_symbols(text: &str) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut symbols: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for message in messages(text) {
        if message.starts_with("warning: ") {
            continue;
        }
        // "error: undefined symbol: f", "error: undefined hidden symbol: f", followed by lines
        // ">>> referenced by a.o:(section)" or ">>> referenced by file.c" and ">>>   a.o:(section)".
        let mut lines = message.lines();
        let (kind, name) = lines.next()?.split_once("symbol: ")?;
        if !kind.starts_with("error: undefined ") {
            return None;
        }
        let users = symbols.entry(name.to_owned()).or_default();
        for line in lines {
            if let Some(user) = line.strip_prefix(">>> referenced by ") {
                users.insert(user.trim().to_owned());
            }
        }
    }
    (!symbols.is_empty()).then_some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_names_even_if_one_is_the_start_of_another() {
        let names = [("/proc/self/fd/1", "a.o"), ("/proc/self/fd/12", "b.o")];
        assert_eq!(
            rename(
                "/proc/self/fd/12: bad; /proc/self/fd/1(m.o): bad; /proc/self/fd/3",
                &names
            ),
            "b.o: bad; a.o(m.o): bad; /proc/self/fd/3"
        );
        assert_eq!(rename("", &names), "");
    }

    #[test]
    fn messages_keep_their_further_lines() {
        let text = "ld.lld: warning: one\n>>> more\nld.lld: warning: two\n\n";
        assert_eq!(messages(text), ["warning: one\n>>> more", "warning: two"]);
        assert_eq!(messages(""), Vec::<String>::new());
    }

    #[test]
    fn other_errors_beside_undefined_symbols_are_not_hidden() {
        let undefined = "ld.lld: error: undefined hidden symbol: f\n>>> referenced by a.o:(.text+0x4)\n";
        let symbols = undefined_symbols(undefined).unwrap();
        let expected = BTreeSet::from(["a.o:(.text+0x4)".to_owned()]);
        assert_eq!(symbols, BTreeMap::from([("f".to_owned(), expected)]));
        let both = format!("{undefined}ld.lld: error: incompatible mach: b.o\n");
        assert_eq!(undefined_symbols(&both), None);
        assert_eq!(undefined_symbols("ld.lld: warning: w\n"), None);
    }
}
