//! Which kernels of a PTX module can be compiled apart, and the text of each.
//!
//! What a kernel needs is found by name, as [`super::ptx_symbols`] finds it; judging the text is the compiler's work.
//!
//! - Functions and shared memory are a kernel's own: `ptxas` gives each kernel a copy of a function that it calls, and
//!   shared memory of its own under the same name. Each component has those that it needs.
//! - Variables in global and constant memory, textures, and functions that the module only declares (`vprintf`) are at
//!   positions that the code of kernels has in it. Kernels that need any are one component. So are kernels that call a
//!   function by its address, or could pass one on, and those that name another kernel.
//! - A declaration of dynamic shared memory gives each kernel of the module a section, whether it uses it or not: each
//!   component has it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;

use super::ptx_tokens::{Token, Tokens};
use crate::ReadError;

/// Kernels that are compiled together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PtxComponent<'text> {
    /// What the kernels are and need, by the place in the module.
    statements: BTreeMap<usize, &'text str>,
    /// Their names, in the order of the text.
    pub kernels: Vec<&'text str>,
}

impl<'text> PtxComponent<'text> {
    /// A text that is one component.
    #[cfg(test)]
    pub(super) fn whole(text: &'text str, kernels: &[&'text str]) -> Self {
        Self {
            statements: BTreeMap::from([(0, text)]),
            kernels: kernels.to_vec(),
        }
    }

    /// A PTX module of these kernels, and of what they need.
    #[must_use]
    pub fn text(&self) -> String {
        let statements = self.statements.values();
        let mut text = String::with_capacity(statements.clone().map(|statement| statement.len() + 1).sum());
        for statement in statements {
            text.push_str(statement);
            text.push('\n');
        }
        text
    }
}

/// Divides `ptx` into components, in the order of the first kernel of each. A module without kernels has none.
///
/// # Errors
///
/// [`ReadError`] where the module must be compiled as a whole.
pub fn components(ptx: &str) -> Result<Vec<PtxComponent<'_>>, ReadError> {
    let mut reader = Reader::new(ptx)?;
    let mut statements = Vec::new();
    while let Some(statement) = reader.statement()? {
        statements.push(statement);
    }
    Ok(Module::new(&statements).components())
}

/// What a statement outside of functions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It belongs to every component.
    Everywhere,
    Kernel,
    /// A function with a body.
    Function,
    /// A function, or a kernel, without one.
    Declaration,
    Shared,
    /// Shared memory whose size the host gives.
    DynamicShared,
    /// A variable in global or constant memory.
    Variable,
}

#[derive(Debug)]
struct Statement<'text> {
    text: &'text str,
    kind: Kind,
    /// What it declares. One statement can declare several variables.
    names: Vec<&'text str>,
    /// Words in it that may be names of others.
    words: Vec<&'text str>,
    /// Whether it calls functions by their addresses.
    calls_by_address: bool,
}

struct Reader<'text> {
    tokens: Tokens<'text>,
    text: &'text str,
    /// The token that comes next, and where it starts; `None` at the end.
    ahead: Option<(Token<'text>, usize)>,
    /// Where the token that was taken last starts.
    last: usize,
}

impl<'text> Reader<'text> {
    fn new(text: &'text str) -> Result<Self, ReadError> {
        let mut reader = Self {
            tokens: Tokens::new(text.as_bytes()),
            text,
            ahead: None,
            last: 0,
        };
        reader.take()?;
        Ok(reader)
    }

    fn error(&self, problem: &str) -> ReadError {
        refused(self.tokens.start, problem)
    }

    fn take(&mut self) -> Result<Option<Token<'text>>, ReadError> {
        let next = self.tokens.next().map_err(|problem| self.error(problem))?;
        let taken = std::mem::replace(&mut self.ahead, next.map(|token| (token, self.tokens.start)));
        if let Some((_, start)) = taken {
            self.last = start;
        }
        Ok(taken.map(|(token, _)| token))
    }

    /// The next statement outside of functions; `None` at the end.
    fn statement(&mut self) -> Result<Option<Statement<'text>>, ReadError> {
        let Some((first, start)) = self.ahead else {
            return Ok(None);
        };
        let Token::Word(directive @ [b'.', ..]) = first else {
            return Err(self.error("a statement does not start with a directive"));
        };
        let mut statement = Statement {
            text: "",
            kind: Kind::Everywhere,
            names: Vec::new(),
            words: Vec::new(),
            calls_by_address: false,
        };
        match directive {
            b".version" | b".target" | b".address_size" | b".file" => self.line()?,
            _ => self.declaration(&mut statement)?,
        }
        // A line ends before the next directive, a declaration with a semicolon or a brace.
        let end = match statement.kind {
            Kind::Everywhere => self.ahead.map_or(self.tokens.start, |(_, start)| start),
            _ => self.last + 1,
        };
        statement.text = self.text.get(start..end).unwrap_or_default().trim_end();
        Ok(Some(statement))
    }

    /// A directive and what follows it, up to the next.
    fn line(&mut self) -> Result<(), ReadError> {
        self.take()?;
        while let Some((token, _)) = self.ahead {
            if matches!(token, Token::Word([b'.', ..])) {
                break;
            }
            self.take()?;
        }
        Ok(())
    }

    /// A function or variables, up to the brace or semicolon that ends them.
    fn declaration(&mut self, statement: &mut Statement<'text>) -> Result<(), ReadError> {
        let mut kind = None;
        let (mut is_external, mut is_dynamic_shared) = (false, false);
        let (mut has_body, mut is_pragma, mut is_value) = (false, false, false);
        let mut depth = 0usize;
        while let Some(token) = self.take()? {
            let is_code = matches!(kind, Some(Kind::Kernel | Kind::Function));
            match token {
                Token::Word(word) if word.starts_with(b".") => {
                    statement.calls_by_address |= matches!(word, b".callprototype" | b".calltargets");
                    if depth == 0 {
                        is_external |= word == b".extern";
                        is_pragma |= word == b".pragma";
                        kind = match (kind, kind_of(word)) {
                            (None, Some(found)) => found,
                            (None, None) => return Err(self.unknown(word)),
                            (kind, _) => kind,
                        };
                    }
                }
                Token::Word(word) => {
                    let word = std::str::from_utf8(word).unwrap_or_default();
                    let is_name = depth == 0 && !word.starts_with(|first: char| first.is_ascii_digit());
                    let declares = if is_code { statement.names.is_empty() } else { !is_value };
                    if is_name && declares {
                        statement.names.push(word);
                    } else {
                        statement.words.push(word);
                    }
                }
                Token::Punctuation(b'{' | b'(' | b'[') => {
                    has_body |= depth == 0 && token == Token::Punctuation(b'{');
                    depth += 1;
                }
                Token::Punctuation(b'}' | b')' | b']') => {
                    depth = depth
                        .checked_sub(1)
                        .ok_or_else(|| self.error("a bracket closes nothing"))?;
                    if depth == 0 && is_code && has_body {
                        break;
                    }
                }
                Token::Punctuation(b'=') if depth == 0 => is_value = true,
                Token::Punctuation(b',') if depth == 0 => is_value = false,
                // A pragma between the parameters of a kernel and its body has a semicolon of its own.
                Token::Punctuation(b';') if depth == 0 && !(is_code && std::mem::take(&mut is_pragma)) => break,
                _ => {}
            }
            if self.ahead.is_none() {
                return Err(self.error("the text ends in a declaration"));
            }
        }
        is_dynamic_shared |= kind == Some(Kind::Shared) && is_external;
        statement.kind = match kind.ok_or_else(|| self.error("a declaration of nothing"))? {
            Kind::Kernel | Kind::Function if !has_body => Kind::Declaration,
            _ if is_dynamic_shared => Kind::DynamicShared,
            kind => kind,
        };
        Ok(())
    }

    /// Something that is not known to leave kernels independent: a later directive, debug information.
    fn unknown(&self, directive: &[u8]) -> ReadError {
        let directive = Token::Word(directive);
        refused(
            self.last,
            format_args!("it is not known whether {directive} belongs to one kernel"),
        )
    }
}

/// Whether PTX may declare variables outside of functions.
#[must_use]
pub fn declares_variables(ptx: &str) -> bool {
    const SPACES: [&[u8]; 5] = [b".global", b".const", b".tex", b".shared", b".local"];
    let mut tokens = Tokens::new(ptx.as_bytes());
    let mut depth = 0_usize;
    loop {
        match tokens.next() {
            Ok(Some(Token::Punctuation(b'{' | b'('))) => depth += 1,
            Ok(Some(Token::Punctuation(b'}' | b')'))) => depth = depth.saturating_sub(1),
            Ok(Some(Token::Word(word))) if depth == 0 && SPACES.contains(&word) => return true,
            Ok(Some(_)) => {}
            Ok(None) => return false,
            // What cannot be read may have some.
            Err(_) => return true,
        }
    }
}

/// How many functions `ptxas` adds to the code of a kernel: those for what the fast path of a division or of a root leaves.
///
/// Each kernel gets copies of its own. But where it gets several, their order is that in which the kernels of the text first needed
/// them, and so may be the registers that they use: what such a kernel becomes depends on what it stands with (`ptxas` of CUDA 12.4 and
/// 13.0, kernels at random for `sm_75` to `sm_120`: 9 of 2,463; of 5,244 that got one function none).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum AddedFunctions {
    /// None.
    #[default]
    Nothing,
    /// One, for each of the kernels.
    One,
    /// More than one for a kernel.
    Several,
}

impl AddedFunctions {
    /// Of the text of a kernel. There are more operations that are such functions, on some chips:
    /// [`super::join_cubin::TakenApart::mixes_functions`] tells.
    #[must_use]
    pub fn of(ptx: &str) -> Self {
        const OPERATIONS: [&str; 4] = ["div.", "rem.", "rcp.", "sqrt."];
        const IN_PLACE: [&str; 6] = ["approx", "full", "s32", "u32", "b32", "f16"];
        let adds = |operation: &&str| {
            let kind = OPERATIONS.iter().find_map(|of| operation.strip_prefix(of));
            kind.is_some_and(|kind| !IN_PLACE.iter().any(|of| kind.starts_with(of)))
                || operation.starts_with("rsqrt.approx.f64")
        };
        let mut first = None;
        let statements = ptx.split(['\n', ';', '{']);
        for operation in statements.filter_map(operation_of).filter(adds) {
            match first {
                None => first = Some(operation),
                Some(first) if first == operation => {}
                Some(_) => return Self::Several,
            }
        }
        first.map_or(Self::Nothing, |_| Self::One)
    }

    /// Whether kernels that get so many become in one text what each becomes alone.
    #[must_use]
    pub fn may_stand_with(self, other: Self) -> bool {
        self.min(other) == Self::Nothing || self.max(other) == Self::One
    }
}

/// The operation of a statement: `div.rn.f32`. It may have a label in front (`$L__BB0_1:`), and a predicate (`@%p1`).
fn operation_of(statement: &str) -> Option<&str> {
    let mut words = statement.split_ascii_whitespace();
    words.find(|word| !word.starts_with('@') && !word.ends_with(':'))
}

fn refused(offset: usize, problem: impl Display) -> ReadError {
    ReadError::not_read(format!("PTX: offset {offset:#x}: {problem}")).at(offset as u64)
}

/// What a directive in front of a name makes of it: nothing yet, for linkage. `None` for directives that are not known.
fn kind_of(directive: &[u8]) -> Option<Option<Kind>> {
    Some(match directive {
        b".extern" | b".visible" | b".weak" | b".common" => None,
        b".entry" => Some(Kind::Kernel),
        b".func" => Some(Kind::Function),
        b".global" | b".const" | b".tex" => Some(Kind::Variable),
        b".shared" => Some(Kind::Shared),
        _ => return None,
    })
}

/// The statements of a module, and what each needs.
struct Module<'m, 'text> {
    statements: &'m [Statement<'text>],
    /// The statements that declare a name.
    declared: HashMap<&'text str, Vec<usize>>,
    /// The statements that belong to every component.
    common: Vec<usize>,
    /// Whether functions are called by their addresses anywhere.
    calls_by_address: bool,
}

impl<'m, 'text> Module<'m, 'text> {
    fn new(statements: &'m [Statement<'text>]) -> Self {
        let mut declared: HashMap<&'text str, Vec<usize>> = HashMap::new();
        for (index, statement) in statements.iter().enumerate() {
            for name in &statement.names {
                declared.entry(name).or_default().push(index);
            }
        }
        let is_common = |statement: &Statement<'_>| matches!(statement.kind, Kind::Everywhere | Kind::DynamicShared);
        Self {
            statements,
            declared,
            common: (0..)
                .zip(statements)
                .filter(|(_, of)| is_common(of))
                .map(|(index, _)| index)
                .collect(),
            calls_by_address: statements.iter().any(|statement| statement.calls_by_address),
        }
    }

    fn components(&self) -> Vec<PtxComponent<'text>> {
        let kernels: Vec<usize> = self.of_kind(Kind::Kernel).collect();
        let mut unused: BTreeSet<usize> = self.of_kind(Kind::Variable).collect();
        // The kernels that are compiled together, and what they need; and the others.
        let mut together: Vec<(usize, BTreeSet<usize>)> = Vec::new();
        let mut alone: Vec<(usize, BTreeSet<usize>)> = Vec::new();
        let needs: Vec<BTreeSet<usize>> = kernels.iter().map(|&kernel| self.needed(kernel)).collect();
        let mut tied: BTreeSet<usize> = BTreeSet::new();
        for (&kernel, needed) in kernels.iter().zip(&needs) {
            if needed.iter().any(|&index| self.ties(kernel, index)) {
                tied.extend(needed.iter().filter(|index| kernels.binary_search(index).is_ok()));
            }
        }
        for (kernel, needed) in kernels.into_iter().zip(needs) {
            unused.retain(|variable| !needed.contains(variable));
            let group = if tied.contains(&kernel) {
                &mut together
            } else {
                &mut alone
            };
            group.push((kernel, needed));
        }
        if !unused.is_empty() {
            // The host may use them.
            if together.is_empty() && !alone.is_empty() {
                together.push(alone.remove(0));
            }
            together.iter_mut().for_each(|(_, needed)| needed.extend(&unused));
        }
        let mut groups: Vec<Vec<(usize, BTreeSet<usize>)>> = alone.into_iter().map(|kernel| vec![kernel]).collect();
        groups.push(together);
        groups.retain(|group| !group.is_empty());
        groups.sort_by_key(|group| group.first().map(|(kernel, _)| *kernel));
        groups.iter().map(|group| self.component(group)).collect()
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = usize> {
        let statements = self.statements.iter().enumerate();
        statements
            .filter(move |(_, statement)| statement.kind == kind)
            .map(|(index, _)| index)
    }

    /// The statements that `kernel` needs, itself among them.
    fn needed(&self, kernel: usize) -> BTreeSet<usize> {
        let mut needed = BTreeSet::from([kernel]);
        let mut open = vec![kernel];
        while let Some(statement) = open.pop().and_then(|index| self.statements.get(index)) {
            for word in statement.words.iter().chain(&statement.names) {
                for &index in self.declared.get(word).into_iter().flatten() {
                    if needed.insert(index) {
                        open.push(index);
                    }
                }
            }
        }
        needed
    }

    /// Whether `needed` ties `kernel` to others.
    fn ties(&self, kernel: usize, needed: usize) -> bool {
        let Some(statement) = self.statements.get(needed) else {
            return false;
        };
        match statement.kind {
            Kind::Everywhere | Kind::Shared | Kind::DynamicShared => false,
            Kind::Variable => true,
            Kind::Kernel => needed != kernel || statement.calls_by_address,
            Kind::Function => self.calls_by_address,
            // The function is in another module, if not in this one.
            Kind::Declaration => !statement.names.iter().any(|name| self.is_defined(name)),
        }
    }

    fn is_defined(&self, name: &str) -> bool {
        let statements = self.declared.get(name).into_iter().flatten();
        let mut kinds = statements.filter_map(|&index| Some(self.statements.get(index)?.kind));
        kinds.any(|kind| matches!(kind, Kind::Kernel | Kind::Function))
    }

    fn component(&self, group: &[(usize, BTreeSet<usize>)]) -> PtxComponent<'text> {
        let mut component = PtxComponent::default();
        for &index in self.common.iter().chain(group.iter().flat_map(|(_, needed)| needed)) {
            let Some(statement) = self.statements.get(index) else {
                continue;
            };
            component.statements.insert(index, statement.text);
        }
        let kernels = component
            .statements
            .keys()
            .filter_map(|&index| self.statements.get(index));
        let kernels = kernels.filter(|statement| statement.kind == Kind::Kernel);
        component.kernels = kernels
            .filter_map(|statement| statement.names.first().copied())
            .collect();
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90, debug\n.address_size 64\n";

    fn kernels(text: &str) -> Vec<Vec<String>> {
        let text = HEAD.to_owned() + text;
        let components = components(&text).unwrap();
        assert!(components.iter().all(|component| component.text().starts_with(HEAD)));
        let names = |component: &PtxComponent<'_>| component.kernels.iter().map(ToString::to_string).collect();
        components.iter().map(names).collect()
    }

    #[test]
    fn kernels_that_share_nothing_are_apart() {
        let text = ".func (.param .b32 r) twice(.param .b32 x);\n\
             .extern .shared .align 16 .b8 dynamic[];\n\
             .shared .align 4 .b8 tile[64], other_tile[4];\n\
             .func (.param .b32 r) twice(.param .b32 x) { ret; }\n\
             .visible .entry a(.param .u64 p) .maxntid 32, 1, 1 .pragma \"nounroll\"; { call (r), twice, (x); ret; }\n\
             // comment of b }\n\
             .entry b(.param .u64 p) { { st.shared.u32 [tile], 1; } ret; }\n\
             .entry c() { call (r), twice, (x); ret; }\n";
        let text = HEAD.to_owned() + text;
        let components = components(&text).unwrap();
        let names: Vec<&str> = components.iter().map(|component| component.kernels[0]).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let texts: Vec<String> = components.iter().map(PtxComponent::text).collect();
        let [a, b, c] = texts.as_slice() else { panic!() };
        assert_eq!(a.matches("twice").count(), 3);
        assert!(a.contains(".pragma") && a.contains("dynamic") && !a.contains("tile"));
        assert!(b.contains("tile[64]") && b.contains("dynamic") && !b.contains("twice"));
        assert!(c.contains("{ ret; }") && !c.contains("comment"));
    }

    #[test]
    fn exact_divisions_and_roots_add_functions() {
        let of = |operation: &str| AddedFunctions::of(&format!(".entry k() {{\n\t{operation} \t%r1, %r2;\n ret; }}"));
        for operation in [
            "div.rn.f32",
            "{ mov.b32 a, b; @%p1 rcp.rn.ftz.f32",
            "$L__BB0_1: sqrt.rn.f64",
            "div.s64",
            "rem.u16",
            "rsqrt.approx.f64",
        ] {
            assert_eq!(of(operation), AddedFunctions::One, "{operation}");
        }
        for operation in [
            "div.full.f32",
            "rcp.approx.ftz.f32",
            "sqrt.approx.f32",
            "div.u32",
            "rsqrt.approx.f32",
            "add.f32",
        ] {
            assert_eq!(of(operation), AddedFunctions::Nothing, "{operation}");
        }
        assert_eq!(of("div.s64 a;\n div.s64"), AddedFunctions::One);
        assert_eq!(of("div.s64 a;\n div.u64"), AddedFunctions::Several);
    }

    #[test]
    fn kernels_with_several_added_functions_stand_with_kernels_without() {
        use AddedFunctions::{Nothing, One, Several};
        assert!(Nothing.may_stand_with(Several) && Several.may_stand_with(Nothing));
        assert!(One.may_stand_with(One) && Nothing.may_stand_with(Nothing));
        assert!(!One.may_stand_with(Several) && !Several.may_stand_with(Several) && !Several.may_stand_with(One));
    }

    #[test]
    fn kernels_that_need_what_a_module_has_once_are_together() {
        let text = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
             .global .align 4 .b32 counter = 1, limit = 7;\n.visible .const .b32 unused = 5;\n\
             .entry free() { ret; }\n.entry counts() { ld.global.b32 r, [limit]; ret; }\n\
             .entry prints() { call (r), vprintf, (a, b); ret; }\n.entry free_too() { ret; }\n";
        assert_eq!(
            kernels(text),
            [vec!["free"], vec!["counts", "prints"], vec!["free_too"]]
        );
        // A variable that no kernel uses stays with one.
        assert_eq!(
            kernels(".global .b32 host;\n.entry a() { ret; } .entry b() { ret; }"),
            [["a"], ["b"]]
        );
        // An address of a function may reach every kernel that calls one by its address.
        let text = ".func f() { ret; }\n.entry stores() { mov.u64 %rd1, f; ret; }\n.entry free() { ret; }\n\
             .entry calls() { p: .callprototype ()_ (); call %rd1, (), p; ret; }\n";
        assert_eq!(kernels(text), [vec!["stores", "calls"], vec!["free"]]);
        assert_eq!(
            kernels(".entry a() { ret; } .entry b(.param .u64 a) { ret; }"),
            [["a", "b"]]
        );
        assert_eq!(kernels(""), Vec::<Vec<String>>::new());
    }

    #[test]
    fn variables_are_found_wherever_they_stand() {
        let kernel =
            ".visible .entry k(.param .u64 .ptr .global .align 1 p) { .local .b8 d[4]; { .shared .b8 t[4]; } ret; }";
        assert!(!declares_variables(kernel));
        for text in [
            "  .global .align 4 .f32 t[2];",
            ".visible\n .const .b32 c = 5;",
            "/* { */ .shared .b8 t[4];",
            "// {\n.local .b8 t[4];",
            ".file 1 \"a{b\"\n.extern .shared .b8 t[];",
            "/* never ends",
        ] {
            assert!(declares_variables(&format!("{kernel}\n{text}")), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_divided() {
        let error = |text: &str| components(&(HEAD.to_owned() + text)).unwrap_err().to_string();
        assert!(error(".section .debug_info { .b8 1 }").contains("'.section'"));
        assert!(error(".alias a, b;").contains("'.alias'"));
        assert!(error(".entry a() { ret;").contains("the text ends"));
        assert!(error(".entry a() } ret;").contains("closes nothing"));
        assert!(error(".shared .b32 a; entry").contains("does not start"));
    }
}
