//! PTX that LLVM made of the parts of a module, put together as LLVM would have made it of the whole.
//!
//! LLVM numbers functions and calls across a module, and the numbers are in names: `$L__BB7_2`, `__local_depot7`,
//! `callseq 12`, `prototype_12`. Everything else in the text of a function is a matter of that function.

use std::{borrow::Cow, collections::HashMap};

use crate::bridge::split::Global;

/// Or why texts were not put together.
type JoinResult<T> = Result<T, String>;

/// Something that the module did not have.
fn unknown(name: &str) -> String {
    format!("a part has {name}, which was not in the module")
}

/// A line that is not of the expected form.
fn unexpected(line: &str) -> String {
    format!("a part has an unexpected line: {line}")
}

/// Two parts disagree on something.
fn differs(what: &str) -> String {
    format!("the parts have different texts for {what}")
}

/// Numbers that are not those of the function.
fn numbers(function: &str) -> String {
    format!("the numbers in {function} are not as expected")
}

/// The functions and variables of a module in order, by their names in PTX.
pub(super) struct Order(HashMap<String, usize>);

impl Order {
    pub(super) fn new(globals: &[Global]) -> JoinResult<Self> {
        let mut order = HashMap::new();
        for (position, global) in globals.iter().enumerate() {
            let name = in_ptx(&global.name);
            if order.insert(name.clone().into_owned(), position).is_some() {
                return Err(format!("the module has two names that are {name} in PTX"));
            }
        }
        Ok(Self(order))
    }

    /// The position of a function or variable, by its name in LLVM IR or in PTX.
    pub(super) fn of(&self, name: &str) -> JoinResult<usize> {
        let position = self.0.get(in_ptx(name).as_ref()).copied();
        position.ok_or_else(|| unknown(name))
    }
}

/// A name as code generation writes it (LLVM's NVPTXAssignValidGlobalNames).
fn in_ptx(name: &str) -> Cow<'_, str> {
    if name.contains(['.', '@']) {
        Cow::Owned(name.replace(['.', '@'], "_$_"))
    } else {
        Cow::Borrowed(name)
    }
}

/// Something with its place in the module.
struct Placed<'t> {
    position: usize,
    name: &'t str,
    text: &'t str,
}

struct Function<'t> {
    placed: Placed<'t>,
    /// The comment before a function that others can call.
    comment: &'t str,
    /// Its number in its part.
    number: usize,
    /// The number of its first call in its part, and how many there are.
    calls: (usize, usize),
}

/// The text of one part.
struct Part<'t> {
    header: &'t str,
    declarations: Vec<Placed<'t>>,
    variables: Vec<Placed<'t>>,
    functions: Vec<Function<'t>>,
}

/// A function in PTX, with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FunctionText {
    pub name: String,
    comment: String,
    /// Comments about variables that it alone has, before all functions.
    demoted: String,
    /// The declaration of dynamic shared memory, if it uses any: each kernel has its own, under one name.
    dynamic: String,
    /// With numbers that start at 0.
    text: String,
    calls: usize,
}

impl FunctionText {
    /// The same with another text for `name`, which must be in nothing else's name.
    pub(crate) fn renamed(&self, from: &str, to: &str) -> Self {
        let renamed = |text: &str| text.replace(from, to);
        Self {
            name: renamed(&self.name),
            comment: renamed(&self.comment),
            demoted: renamed(&self.demoted),
            dynamic: renamed(&self.dynamic),
            text: renamed(&self.text),
            calls: self.calls,
        }
    }
}

/// The header of a text, and its functions in order. An error where it has anything besides: functions that are not defined,
/// variables that several functions can use, but for dynamic shared memory.
pub(crate) fn cut(text: &str) -> JoinResult<(String, Vec<FunctionText>)> {
    let names = text.lines().filter_map(|line| {
        is_function(line).then(|| line.trim_end_matches(['(', ')', ';']).split_whitespace().next_back())?
    });
    let demoted = text.lines().filter_map(demoted_name);
    let dynamic = text.lines().filter_map(dynamic_name);
    let order = names.chain(demoted).chain(dynamic).enumerate();
    let order = Order(order.map(|(position, name)| (name.to_owned(), position)).collect());
    let part = Reader { text, order: &order }.part()?;
    if let Some(declared) = part.declarations.first() {
        return Err(unknown(declared.name));
    }
    let mut functions = Vec::with_capacity(part.functions.len());
    for function in &part.functions {
        let mut text = String::with_capacity(function.placed.text.len());
        renumber(function, 0, 0, &mut text)?;
        functions.push(FunctionText {
            name: function.placed.name.to_owned(),
            comment: function.comment.to_owned(),
            demoted: String::new(),
            dynamic: String::new(),
            text,
            calls: function.calls.1,
        });
    }
    for variable in &part.variables {
        let uses = |function: &&mut FunctionText| has_word(&function.text, variable.name);
        if dynamic_name(variable.text.trim_end()).is_some() {
            for function in functions.iter_mut().filter(uses) {
                function.dynamic.push_str(variable.text);
            }
            continue;
        }
        let owner = functions
            .iter_mut()
            .find(uses)
            .filter(|_| demoted_name(variable.text.trim_end()).is_some());
        let owner = owner.ok_or_else(|| unknown(variable.name))?;
        owner.demoted.push_str(variable.text);
    }
    Ok((part.header.to_owned(), functions))
}

/// A module of these functions. An error where they have variables whose order in the module is not known.
pub(crate) fn assemble(header: &str, functions: &[FunctionText]) -> JoinResult<String> {
    let mut dynamic = functions.iter().map(|function| function.dynamic.as_str());
    let dynamic = dynamic.find(|text| !text.is_empty()).unwrap_or_default();
    let is_ordered = |function: &FunctionText| {
        let is_the_same = function.dynamic.is_empty() || function.dynamic == dynamic;
        is_the_same && (dynamic.is_empty() || function.demoted.is_empty())
    };
    if !functions.iter().all(is_ordered) {
        return Err(differs("dynamic shared memory"));
    }
    let mut text = String::with_capacity(functions.iter().map(|function| function.text.len() + 128).sum());
    text.push_str(header);
    text.push_str(functions.first().map_or("", |function| &function.comment));
    text.push_str(dynamic);
    for function in functions {
        text.push_str(&function.demoted);
    }
    text.push('\n');
    let mut call = 0;
    for (number, function) in functions.iter().enumerate() {
        if number > 0 {
            text.push_str(&function.comment);
        }
        let placed = Function {
            placed: Placed {
                position: number,
                name: &function.name,
                text: &function.text,
            },
            comment: &function.comment,
            number: 0,
            calls: (0, function.calls),
        };
        renumber(&placed, number, call, &mut text)?;
        call += function.calls;
    }
    Ok(text)
}

/// Whether a name is in a text, and not as a part of another.
fn has_word(text: &str, name: &str) -> bool {
    let is_other = |byte: Option<u8>| !byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$%.".contains(&byte));
    text.match_indices(name).any(|(start, _)| {
        let before = start.checked_sub(1).and_then(|index| text.as_bytes().get(index));
        is_other(before.copied()) && is_other(text.as_bytes().get(start + name.len()).copied())
    })
}

/// Dynamic shared memory, which is declared outside of functions.
fn dynamic_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(".extern .shared ")?.strip_suffix("[];")?;
    rest.split_whitespace().next_back()
}

/// What is left of a variable that one function alone has.
fn demoted_name(line: &str) -> Option<&str> {
    line.strip_prefix("// ")?.strip_suffix(" has been demoted")
}

/// The texts as one.
pub(super) fn join_ptx(texts: &[String], order: &Order) -> JoinResult<String> {
    let mut header = None;
    let (mut declarations, mut variables, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for text in texts {
        let part = Reader { text, order }.part()?;
        if *header.get_or_insert(part.header) != part.header {
            return Err(differs("the target"));
        }
        declarations.extend(part.declarations);
        variables.extend(part.variables);
        functions.extend(part.functions);
    }
    functions.sort_by_key(|function| function.placed.position);
    let repeated = functions.windows(2).find_map(|pair| match pair {
        [one, other] if one.placed.position == other.placed.position => Some(one.placed.name),
        _ => None,
    });
    if let Some(name) = repeated {
        // It was to be inlined.
        return Err(differs(name));
    }
    let mut joined = String::with_capacity(texts.iter().map(String::len).sum());
    joined.push_str(header.unwrap_or_default());
    // LLVM writes what belongs to no function within the first one, behind its comment.
    joined.push_str(functions.first().map_or("", |function| function.comment));
    for placed in once(declarations)?.iter().chain(&once(variables)?) {
        joined.push_str(placed.text);
    }
    joined.push('\n');
    let mut call = 0;
    for (number, function) in functions.iter().enumerate() {
        if number > 0 {
            joined.push_str(function.comment);
        }
        renumber(function, number, call, &mut joined)?;
        call += function.calls.1;
    }
    Ok(joined)
}

/// In the order of the module, each once.
fn once(mut placed: Vec<Placed<'_>>) -> JoinResult<Vec<Placed<'_>>> {
    placed.sort_by_key(|placed| placed.position);
    for pair in placed.windows(2) {
        if let [one, other] = pair
            && one.position == other.position
            && one.text != other.text
        {
            return Err(differs(one.name));
        }
    }
    placed.dedup_by_key(|placed| placed.position);
    Ok(placed)
}

/// Writes a function with its number, and that of its first call, in the whole module.
fn renumber(function: &Function<'_>, number: usize, call: usize, output: &mut String) -> JoinResult<()> {
    let failed = || numbers(function.placed.name);
    let names = [
        ("$L__BB", function.number, 1, number),
        ("__local_depot", function.number, 1, number),
        ("// callseq ", function.calls.0, function.calls.1, call),
        ("prototype_", function.calls.0, function.calls.1, call),
    ];
    for (line, is_code) in code_lines(function.placed.text) {
        let mut line = Cow::Borrowed(line);
        if is_code {
            for (name, old, count, new) in names {
                if line.contains(name) {
                    line = Cow::Owned(replace(&line, name, old..old + count, new).ok_or_else(failed)?);
                }
            }
        }
        output.push_str(&line);
    }
    Ok(())
}

/// Replaces the numbers behind `name`, which are of the range `old`, by those from `new` on.
fn replace(line: &str, name: &str, old: std::ops::Range<usize>, new: usize) -> Option<String> {
    let mut pieces = line.split(name);
    let mut replaced = pieces.next()?.to_owned();
    for piece in pieces {
        let digits = digits(piece);
        let number: usize = digits.parse().ok()?;
        replaced.push_str(name);
        if !old.contains(&number) {
            return None;
        }
        replaced.push_str(&(number - old.start + new).to_string());
        replaced.push_str(piece.get(digits.len()..)?);
    }
    Some(replaced)
}

fn digits(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The lines, each with its end, and whether LLVM wrote it: the lines of inline assembly are the user's.
fn code_lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut in_assembly = false;
    text.split_inclusive('\n').map(move |line| {
        match line.trim() {
            "// begin inline asm" => in_assembly = true,
            "// end inline asm" => in_assembly = false,
            _ => {}
        }
        (line, !in_assembly)
    })
}

/// Takes a text apart from its beginning.
struct Reader<'t, 'o> {
    text: &'t str,
    order: &'o Order,
}

impl<'t> Reader<'t, '_> {
    fn part(mut self) -> JoinResult<Part<'t>> {
        let header_end = self
            .text
            .find("\n.address_size 64\n\n")
            .ok_or_else(|| unexpected(self.first_line()))?;
        let header = self.take(header_end + "\n.address_size 64\n\n".len());
        let mut comment = self.comment();
        let (mut declarations, mut variables) = (Vec::new(), Vec::new());
        loop {
            let line = self.first_line();
            if line == "\n" {
                self.take(line.len());
                break;
            } else if is_function(line) {
                declarations.push(self.declaration()?);
            } else {
                variables.push(self.variable()?);
            }
        }
        let mut functions = Vec::new();
        let mut call = 0;
        while !self.text.is_empty() {
            let placed = self.function()?;
            let calls = calls(placed.text, call).ok_or_else(|| numbers(placed.name))?;
            functions.push(Function {
                placed,
                comment,
                number: functions.len(),
                calls: (call, calls),
            });
            call += calls;
            comment = self.comment();
        }
        Ok(Part {
            header,
            declarations,
            variables,
            functions,
        })
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.text.split_at(length);
        self.text = rest;
        taken
    }

    fn first_line(&self) -> &'t str {
        self.text.split_inclusive('\n').next().unwrap_or_default()
    }

    fn comment(&mut self) -> &'t str {
        let line = self.first_line();
        let length = if line.starts_with("\t// .globl\t") {
            line.len()
        } else {
            0
        };
        self.take(length)
    }

    fn place(&self, name: Option<&'t str>, text: &'t str) -> JoinResult<Placed<'t>> {
        let name = name
            .filter(|name| !name.is_empty())
            .ok_or_else(|| unexpected(text.lines().next().unwrap_or_default()))?;
        Ok(Placed {
            position: self.order.of(name)?,
            name,
            text,
        })
    }

    /// ".extern .func NAME", parameters on lines of their own, and the line that ends with a semicolon.
    fn declaration(&mut self) -> JoinResult<Placed<'t>> {
        let name = self.first_line().split_whitespace().next_back();
        let end = self.text.find(";\n").map_or(self.text.len(), |end| end + 2);
        let text = self.take(end);
        self.place(name.map(|name| name.trim_end_matches("()")), text)
    }

    /// ".global .align 4 .b8 NAME[8] = {1, 2};", or what is left of a variable that one function alone has.
    fn variable(&mut self) -> JoinResult<Placed<'t>> {
        let line = self.first_line();
        let demoted = line.strip_suffix('\n').and_then(demoted_name);
        let defined = line
            .strip_suffix(";\n")
            .filter(|rest| rest.starts_with('.'))
            .and_then(|rest| rest.split(" = ").next())
            .and_then(|rest| rest.split_whitespace().next_back())
            .and_then(|name| name.split('[').next());
        let text = self.take(line.len());
        self.place(demoted.or(defined), text)
    }

    /// ".visible .entry NAME(", up to the brace at the beginning of a line that closes it.
    fn function(&mut self) -> JoinResult<Placed<'t>> {
        let line = self.first_line();
        if !is_function(line) {
            return Err(unexpected(line.trim_end()));
        }
        let head = line.trim_end().trim_end_matches(')').trim_end_matches('(');
        let name = head.split_whitespace().next_back();
        let mut length = 0;
        let closed = code_lines(self.text).any(|(line, is_code)| {
            length += line.len();
            is_code && line == "}\n"
        });
        if !closed {
            return Err(unexpected(line.trim_end()));
        }
        let text = self.take(length);
        self.place(name, text)
    }
}

fn is_function(line: &str) -> bool {
    let start = [".visible ", ".extern ", ".weak "]
        .iter()
        .find_map(|linkage| line.strip_prefix(linkage))
        .unwrap_or(line);
    start.starts_with(".entry ") || start.starts_with(".func ")
}

/// The number of calls of a function whose first has the number `first`; `None` if their numbers do not follow each other.
fn calls(text: &str, first: usize) -> Option<usize> {
    let mut numbers = Vec::new();
    for (line, is_code) in code_lines(text) {
        if let Some(rest) = line.trim_start().strip_prefix("{ // callseq ").filter(|_| is_code) {
            numbers.push(digits(rest).parse::<usize>().ok()?);
        }
    }
    numbers.sort_unstable();
    let follow = numbers
        .iter()
        .zip(first..)
        .all(|(&number, expected)| number == expected);
    follow.then_some(numbers.len())
}

#[cfg(test)]
#[path = "join_ptx_tests.rs"]
mod tests;
