//! What a PTX module defines for others and needs of them, as a linker will see it.
//!
//! Declarations are read, bodies are searched for names; judging the text is the compiler's work. Source of the rules:
//! NVIDIA's "Parallel Thread Execution ISA", section "Linking Directives". Observed with ptxas 13.0.88: an `.extern`
//! variable is a reference even if nothing uses it, an `.extern` function only if something does; a kernel needs no
//! `.visible` to be found by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::ptx_tokens::{Token, Tokens};
use super::symbols::{Definition, LinkSymbols, SymbolKind};
use crate::ReadError;

/// Reads the symbols of `ptx`.
///
/// # Errors
///
/// [`ReadError`] where a body, a comment, a string or a declaration does not end.
pub fn symbols(ptx: &[u8]) -> Result<LinkSymbols<'_>, ReadError> {
    let mut reader = Reader {
        tokens: Tokens::new(ptx),
        module: Module::default(),
    };
    let mut linkage = Linkage::Private;
    while let Some(token) = reader.tokens.token()? {
        let Token::Word(word) = token else {
            match token {
                Token::Punctuation(b'{') => reader.tokens.braces(|_| {})?,
                Token::Punctuation(b';') => linkage = Linkage::Private,
                _ => {}
            }
            continue;
        };
        match word {
            b".extern" => linkage = Linkage::Extern,
            b".visible" => linkage = Linkage::Visible,
            b".weak" => linkage = Linkage::Weak,
            b".common" => linkage = Linkage::Common,
            b".func" => reader.function(linkage, SymbolKind::Function)?,
            b".entry" => reader.function(linkage, SymbolKind::Kernel)?,
            b".shared" => reader.variables(linkage, true)?,
            b".global" | b".const" | b".tex" => reader.variables(linkage, false)?,
            b".alias" => reader.alias(linkage)?,
            _ => continue,
        }
        if !matches!(word, b".extern" | b".visible" | b".weak" | b".common") {
            linkage = Linkage::Private;
        }
    }
    Ok(reader.module.finish())
}

/// The linking directive in front of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// None.
    Private,
    Extern,
    Visible,
    Weak,
    Common,
}

/// What the module declares.
#[derive(Default)]
struct Module<'text> {
    defined: BTreeMap<&'text str, Definition>,
    /// Names that are defined here and not seen elsewhere.
    private: BTreeSet<&'text str>,
    /// Functions that are declared, with the functions that use them.
    declared: BTreeMap<&'text str, BTreeSet<&'text str>>,
    /// Variables that are declared, likewise.
    variables: BTreeMap<&'text str, BTreeSet<&'text str>>,
}

impl<'text> Module<'text> {
    fn define(&mut self, name: &'text str, kind: SymbolKind, linkage: Linkage) {
        if linkage == Linkage::Private && kind != SymbolKind::Kernel {
            self.private.insert(name);
            return;
        }
        let mergeable = matches!(linkage, Linkage::Weak | Linkage::Common);
        self.defined.insert(name, Definition { kind, mergeable });
    }

    /// Notes that `user` names `name`, if that is something declared: PTX declares before it uses.
    fn uses(&mut self, name: &'text str, user: &'text str) {
        for declared in [&mut self.declared, &mut self.variables] {
            if let Some(users) = declared.get_mut(name) {
                users.insert(user);
            }
        }
    }

    fn finish(mut self) -> LinkSymbols<'text> {
        // A function that nothing calls leaves no trace in the object.
        self.declared.retain(|_, users| !users.is_empty());
        let mut needed = self.declared;
        needed.append(&mut self.variables);
        needed.retain(|name, _| !self.defined.contains_key(name) && !self.private.contains(name));
        LinkSymbols {
            defined: self.defined,
            needed,
        }
    }
}

struct Reader<'text> {
    tokens: Tokens<'text>,
    module: Module<'text>,
}

/// The name that a word is, if it is one: neither a directive nor a number.
fn name(word: &[u8]) -> Option<&str> {
    let first = word.first()?;
    (*first != b'.' && !first.is_ascii_digit())
        .then(|| std::str::from_utf8(word).ok())
        .flatten()
}

impl<'text> Reader<'text> {
    fn error(&self, problem: impl Display) -> ReadError {
        self.tokens.error(problem)
    }

    /// Reads what follows `.func` or `.entry`: `(results) NAME (parameters) directives`, then a body or `;`.
    fn function(&mut self, linkage: Linkage, kind: SymbolKind) -> Result<(), ReadError> {
        let mut function: Option<&'text str> = None;
        let mut depth = 0usize;
        loop {
            match self.tokens.some("the body of a function")? {
                Token::Punctuation(b'(') => depth += 1,
                Token::Punctuation(b')') => depth = depth.saturating_sub(1),
                Token::Word(word) if depth == 0 && function.is_none() => function = name(word),
                // Directives between parameters and body may hold a string that ends with a semicolon.
                Token::Word(b".pragma") if depth == 0 => while self.tokens.some("`;`")? != Token::Punctuation(b';') {},
                Token::Punctuation(end @ (b'{' | b';')) => {
                    let Some(function) = function else {
                        return Err(self.error("a function without a name"));
                    };
                    if end == b'{' {
                        self.module.define(function, kind, linkage);
                        return self.tokens.braces(|word| {
                            if let Some(used) = name(word) {
                                self.module.uses(used, function);
                            }
                        });
                    }
                    self.module.declared.entry(function).or_default();
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// Reads what follows a state space: `.align N .type NAME[N] = {...}, NAME;`.
    fn variables(&mut self, linkage: Linkage, shared: bool) -> Result<(), ReadError> {
        let mut variable: Option<&'text str> = None;
        let mut initialiser = false;
        let mut depth = 0usize;
        loop {
            match self.tokens.some("the end of a variable")? {
                Token::Punctuation(b'{' | b'(' | b'[') => depth += 1,
                Token::Punctuation(b'}' | b')' | b']') => depth = depth.saturating_sub(1),
                Token::Punctuation(b'=') => initialiser = true,
                Token::Punctuation(b',') if depth == 0 => (variable, initialiser) = (None, false),
                Token::Punctuation(b';') => return Ok(()),
                Token::Word(word) => {
                    let Some(found) = name(word) else { continue };
                    match variable {
                        Some(variable) if initialiser => self.module.uses(found, variable),
                        None if depth == 0 => {
                            variable = Some(found);
                            match linkage {
                                // Dynamic shared memory, whose size the launch gives.
                                Linkage::Extern if shared => {}
                                Linkage::Extern => {
                                    self.module.variables.entry(found).or_default();
                                }
                                _ => self.module.define(found, SymbolKind::Variable, linkage),
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// Reads `.alias NAME, FUNCTION;`: the name is a second one of a function of this module.
    fn alias(&mut self, linkage: Linkage) -> Result<(), ReadError> {
        let mut alias: Option<&'text str> = None;
        loop {
            match self.tokens.some("the end of .alias")? {
                Token::Punctuation(b';') => break,
                Token::Word(word) if alias.is_none() => alias = name(word),
                _ => {}
            }
        }
        if let Some(alias) = alias {
            let linkage = match linkage {
                // The directive stands at the function's declaration.
                Linkage::Private => Linkage::Weak,
                linkage => linkage,
            };
            self.module.define(alias, SymbolKind::Function, linkage);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::elf::Elf;
    use gpulower_testing::nvidia::{LINKED_KERNELS, recursive_module, relocatable_cubin, rich_module};

    #[test]
    fn the_text_says_what_its_object_says() {
        for ptx in [
            LINKED_KERNELS.to_owned(),
            rich_module("7.8", "sm_90"),
            recursive_module().replace("sm_80", "sm_90"),
        ] {
            let cubin = relocatable_cubin(&ptx, "sm_90");
            let object = LinkSymbols::of_cubin(&Elf::parse(&cubin).unwrap()).unwrap();
            let text = symbols(ptx.as_bytes()).unwrap();
            assert_eq!(text.defined, object.defined);
            let names = |symbols: &LinkSymbols<'_>| symbols.needed.keys().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(names(&text), names(&object));
        }
        let text = symbols(LINKED_KERNELS.as_bytes()).unwrap();
        let users = |name: &str| text.needed[name].iter().copied().collect::<Vec<_>>();
        assert_eq!(users("scale"), ["offered", "user"]);
        assert_eq!(users("counter"), ["user"]);
        assert_eq!(users("in_table"), ["table"]);
        assert_eq!(users("never_read"), Vec::<&str>::new());
    }

    #[test]
    fn what_stands_elsewhere_is_no_symbol() {
        let text = "// .visible .func a() {}\n.version 7.8\n.target sm_90\n.file 1 \"a;{b\"\n\
            .pragma \"nounroll\";\n.section .debug_str { info: .b8 1 }\n\
            .func .attribute(.unified(1, 2)) (.param .b32 r) private_one (.param .b32 x) .noreturn { bra L; L: ret; }\n\
            .extern .func unused();\n\
            .visible .global .attribute(.managed) .align 4 .u32 one[2] = {1, 2}, two = 3;\n\
            .visible .func outer() .pragma \"x\"; { call private_one; }\n\
            .visible .func outer2();\n.weak .func w() { ret; }";
        let symbols = symbols(text.as_bytes()).unwrap();
        let names: Vec<&str> = symbols.defined.keys().copied().collect();
        assert_eq!(names, ["one", "outer", "two", "w"]);
        assert!(symbols.defined["w"].mergeable);
        assert!(symbols.needed.is_empty());
    }

    #[test]
    fn an_unfinished_text_is_refused_with_its_place() {
        let refusal = |text: &str| symbols(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refusal(".version 7.8\n.func f() {\n ret;"),
            "PTX: line 3, offset 0x1e: the text ends where the end of a body is expected"
        );
        assert!(refusal(".visible .global .u32 x").contains("the end of a variable is expected"));
        assert!(refusal(".func (.param .b32 r);").contains("a function without a name"));
        assert!(refusal("/* open").contains("a comment has no end"));
        assert!(refusal(".alias a, b").contains("the end of .alias is expected"));
    }

    #[test]
    fn truncated_and_changed_texts_are_survived() {
        let text = LINKED_KERNELS.as_bytes();
        for length in 0..text.len() {
            let _ = symbols(&text[..length]);
        }
        let mut changed = text.to_vec();
        for index in 0..text.len() {
            changed[index] = [0, b'{', b';', b'"', 0xff][index % 5];
            let _ = symbols(&changed);
            changed[index] = text[index];
        }
    }
}
