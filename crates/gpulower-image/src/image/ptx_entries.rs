//! The kernels of a PTX module: `.entry` directives with their parameters and launch limits.
//!
//! Only what stands outside of function bodies is read; judging the text is the compiler's work. Source of the rules:
//! NVIDIA's "Parallel Thread Execution ISA", sections "Kernel and Function Directives", "Performance-Tuning Directives"
//! and "Alignment" (a variable is aligned to its element's size, or to what `.align` says).

use serde::Serialize;
use std::fmt::Display;

use super::ptx_tokens::{Token, Tokens};
use super::resource::Parameter;
use crate::ReadError;

/// One kernel of a PTX module: what is fixed before a compiler gives it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PtxEntry {
    /// Name of the kernel.
    pub name: String,
    /// Size of the parameter block, in bytes.
    pub parameter_bytes: u32,
    /// The parameters, in order. `kind` is the PTX type: `u64`, `b8[40]`.
    pub parameters: Vec<Parameter>,
    /// Largest number of threads per block: the product of `.maxntid` or of `.reqntid`.
    pub max_threads_per_block: Option<u32>,
    /// `.reqntid`: the block shape that the kernel requires.
    pub required_block: Option<[u32; 3]>,
    /// `.maxnreg`: most 32-bit registers per thread.
    pub max_registers: Option<u32>,
    /// `.minnctapersm`: blocks that shall fit on one multiprocessor.
    pub min_blocks_per_multiprocessor: Option<u32>,
    /// `.reqnctapercluster`: the shape of the thread block cluster.
    pub cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`: most blocks per cluster.
    pub max_cluster_rank: Option<u32>,
}

/// Reads the kernels that `ptx` defines, in the order of the text. Kernels that are only declared are left out.
///
/// # Errors
///
/// [`ReadError`] where an `.entry`, a parameter or a limit does not have the documented form, or where a body or a
/// comment does not end.
pub fn entries(ptx: &[u8]) -> Result<Vec<PtxEntry>, ReadError> {
    Ok(with_bodies(ptx)?.into_iter().map(|(entry, _)| entry).collect())
}

/// The same with the place of the brace that begins the body of each: before it, further directives may stand.
///
/// # Errors
///
/// As [`entries`].
pub fn with_bodies(ptx: &[u8]) -> Result<Vec<(PtxEntry, usize)>, ReadError> {
    let mut reader = Reader {
        tokens: Tokens::new(ptx),
    };
    let mut entries = Vec::new();
    while let Some(token) = reader.tokens.token()? {
        match token {
            Token::Word(b".entry") => entries.extend(reader.entry()?),
            Token::Punctuation(b'{') => reader.tokens.braces(|_| {})?,
            _ => {}
        }
    }
    Ok(entries)
}

struct Reader<'text> {
    tokens: Tokens<'text>,
}

impl<'text> Reader<'text> {
    fn error(&self, problem: impl Display) -> ReadError {
        self.tokens.error(problem)
    }

    fn name(&mut self, wanted: &str) -> Result<String, ReadError> {
        match self.tokens.some(wanted)? {
            Token::Word(word) if word.first().is_some_and(|byte| *byte != b'.' && !byte.is_ascii_digit()) => {
                Ok(String::from_utf8_lossy(word).into_owned())
            }
            other => Err(self.error(format!("{other} where {wanted} is expected"))),
        }
    }

    fn punctuation(&mut self, expected: u8) -> Result<(), ReadError> {
        let expected = Token::Punctuation(expected);
        match self.tokens.some(&expected.to_string())? {
            token if token == expected => Ok(()),
            other => Err(self.error(format!("{other} where {expected} is expected"))),
        }
    }

    fn number(&mut self, what: &str) -> Result<u32, ReadError> {
        match self.tokens.some("a number")? {
            Token::Word(word) => number(word)
                .ok_or_else(|| self.error(format!("{} is no number of 32 bits, as {what} is", Token::Word(word)))),
            other => Err(self.error(format!("{other} where {what} is expected"))),
        }
    }

    /// Reads what follows `.entry`, and says where the body begins; `None` for a declaration.
    fn entry(&mut self) -> Result<Option<(PtxEntry, usize)>, ReadError> {
        let mut entry = PtxEntry {
            name: self.name("the name of a kernel")?,
            ..PtxEntry::default()
        };
        let mut token = self.tokens.some("the body of a kernel")?;
        if token == Token::Punctuation(b'(') {
            self.parameters(&mut entry)?;
            token = self.tokens.some("the body of a kernel")?;
        }
        loop {
            match token {
                Token::Punctuation(b'{') => {
                    let body = self.tokens.start;
                    self.tokens.braces(|_| {})?;
                    return Ok(Some((entry, body)));
                }
                Token::Punctuation(b';') => return Ok(None),
                Token::Word(word) if word.starts_with(b".") => token = self.limit(word, &mut entry)?,
                other => return Err(self.error(format!("{other} where the body of a kernel is expected"))),
            }
        }
    }

    /// Reads one directive between parameters and body, and returns the token after it.
    fn limit(&mut self, directive: &[u8], entry: &mut PtxEntry) -> Result<Token<'text>, ReadError> {
        match directive {
            b".maxntid" | b".reqntid" => {
                let (shape, next) = self.shape("a number of threads")?;
                let threads = shape
                    .iter()
                    .fold(1u32, |product, &extent| product.saturating_mul(extent));
                entry.max_threads_per_block = Some(threads);
                if directive == b".reqntid" {
                    entry.required_block = Some(shape);
                }
                return Ok(next);
            }
            b".reqnctapercluster" => {
                let (shape, next) = self.shape("a number of blocks")?;
                entry.cluster = Some(shape);
                return Ok(next);
            }
            b".maxnreg" => entry.max_registers = Some(self.number("a number of registers")?),
            b".minnctapersm" => entry.min_blocks_per_multiprocessor = Some(self.number("a number of blocks")?),
            b".maxclusterrank" => entry.max_cluster_rank = Some(self.number("a number of blocks")?),
            b".pragma" => {
                // Strings up to a semicolon, which ends the directive and not the kernel.
                while self.tokens.some("the end of .pragma")? != Token::Punctuation(b';') {}
            }
            // A directive of a later PTX ISA, with its operands, if any.
            _ => loop {
                match self.tokens.some("the body of a kernel")? {
                    Token::Word(word) if !word.starts_with(b".") => {}
                    Token::Punctuation(b',') => {}
                    next => return Ok(next),
                }
            },
        }
        self.tokens.some("the body of a kernel")
    }

    /// One to three numbers, missing ones being 1, and the token after them.
    fn shape(&mut self, what: &str) -> Result<([u32; 3], Token<'text>), ReadError> {
        let mut shape = [1; 3];
        let mut next = Token::Punctuation(b',');
        for extent in &mut shape {
            if next != Token::Punctuation(b',') {
                break;
            }
            *extent = self.number(what)?;
            next = self.tokens.some("the body of a kernel")?;
        }
        Ok((shape, next))
    }

    fn parameters(&mut self, entry: &mut PtxEntry) -> Result<(), ReadError> {
        let mut token = self.tokens.some("a parameter")?;
        while token != Token::Punctuation(b')') {
            if token != Token::Word(b".param") {
                return Err(self.error(format!("{token} where .param is expected")));
            }
            token = self.parameter(entry)?;
            if token == Token::Punctuation(b',') {
                token = self.tokens.some("a parameter")?;
            } else if token != Token::Punctuation(b')') {
                return Err(self.error(format!("{token} behind a parameter")));
            }
        }
        Ok(())
    }

    /// Reads what follows `.param`, and returns the token after it.
    fn parameter(&mut self, entry: &mut PtxEntry) -> Result<Token<'text>, ReadError> {
        let mut kind: Option<(&str, u32)> = None;
        let (mut elements, mut alignment, mut is_pointer) = (1u32, 1u32, false);
        let name = loop {
            match self.tokens.some("the name of a parameter")? {
                Token::Word(b".align") => {
                    let stated = self.number("an alignment")?;
                    if !stated.is_power_of_two() {
                        return Err(self.error(format!("alignment {stated} is no power of two")));
                    }
                    // Behind `.ptr` it is that of the memory pointed to.
                    if !is_pointer {
                        alignment = stated;
                    }
                }
                Token::Word(b".ptr") => is_pointer = true,
                Token::Word(b".v2") => elements = 2,
                Token::Word(b".v4") => elements = 4,
                Token::Word(word) if word.starts_with(b".") => kind = type_size(word).or(kind),
                Token::Word(word) if word.first().is_some_and(|first| !first.is_ascii_digit()) => {
                    break String::from_utf8_lossy(word).into_owned();
                }
                other => return Err(self.error(format!("{other} where the name of a parameter is expected"))),
            }
        };
        let Some((type_name, element)) = kind else {
            return Err(self.error(format!("parameter {name:?} has no type that is known")));
        };
        let vector = elements.saturating_mul(element);
        let mut size = Some(vector);
        let mut type_name = match elements {
            1 => type_name.to_owned(),
            _ => format!("v{elements}.{type_name}"),
        };
        let mut next = self.tokens.some("the end of a parameter")?;
        while next == Token::Punctuation(b'[') {
            let count = self.number("the length of an array")?;
            self.punctuation(b']')?;
            size = size.and_then(|size| size.checked_mul(count));
            type_name.push_str(&format!("[{count}]"));
            next = self.tokens.some("the end of a parameter")?;
        }
        let place = || {
            let offset = entry
                .parameter_bytes
                .checked_next_multiple_of(alignment.max(vector.max(1)))?;
            Some((offset, size?, offset.checked_add(size?)?))
        };
        let Some((offset, size, end)) = place() else {
            return Err(self.error(format!("the parameters up to {name:?} are larger than 4 GiB")));
        };
        entry.parameter_bytes = end;
        entry.parameters.push(Parameter {
            ordinal: u32::try_from(entry.parameters.len()).unwrap_or(u32::MAX),
            offset,
            size,
            kind: Some(type_name),
            name: Some(name),
        });
        Ok(next)
    }
}

/// Name without the dot and size in bytes of a fundamental type, or of an opaque one, of which a kernel gets a 64-bit
/// handle.
fn type_size(word: &[u8]) -> Option<(&'static str, u32)> {
    const TYPES: [(&str, u32); 25] = [
        (".u64", 8),
        (".u32", 4),
        (".f32", 4),
        (".b8", 1),
        (".f64", 8),
        (".b64", 8),
        (".b32", 4),
        (".s64", 8),
        (".s32", 4),
        (".u8", 1),
        (".s8", 1),
        (".u16", 2),
        (".s16", 2),
        (".b16", 2),
        (".f16", 2),
        (".bf16", 2),
        (".f16x2", 4),
        (".bf16x2", 4),
        (".tf32", 4),
        (".e4m3", 1),
        (".e5m2", 1),
        (".b128", 16),
        (".texref", 8),
        (".samplerref", 8),
        (".surfref", 8),
    ];
    let (name, size) = TYPES.iter().find(|(name, _)| name.as_bytes() == word)?;
    Some((name.strip_prefix('.').unwrap_or(name), *size))
}

/// A PTX integer literal: decimal, hexadecimal, octal or binary, with or without `U`.
fn number(word: &[u8]) -> Option<u32> {
    let word = std::str::from_utf8(word).ok()?;
    let word = word.strip_suffix('U').unwrap_or(word);
    let digits = |text: &str, radix| {
        let digits = text.bytes().next()?.is_ascii_alphanumeric();
        digits.then(|| u32::from_str_radix(text, radix).ok()).flatten()
    };
    if let Some(hexadecimal) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        digits(hexadecimal, 16)
    } else if let Some(binary) = word.strip_prefix("0b").or_else(|| word.strip_prefix("0B")) {
        digits(binary, 2)
    } else if let Some(octal) = word.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        digits(octal, 8)
    } else {
        digits(word, 10)
    }
}

#[cfg(test)]
#[path = "../../tests/private/ptx_entries.rs"]
mod tests;
