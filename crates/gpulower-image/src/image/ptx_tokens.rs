//! Words, strings and punctuation of PTX text, without its comments.

use std::fmt;

use crate::{ReadError, ReadProblem};

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'text> {
    /// A directive (`.entry`), a name, an instruction (`ld.param.u64`) or a number.
    Word(&'text [u8]),
    /// A string, without its quotes.
    Text(&'text [u8]),
    /// Any other byte.
    Punctuation(u8),
}

impl fmt::Display for Token<'_> {
    /// Short and without control characters, for messages.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match self {
            Self::Word(bytes) | Self::Text(bytes) => bytes,
            Self::Punctuation(byte) => std::slice::from_ref(byte),
        };
        let shown = bytes.get(..40).unwrap_or(bytes);
        write!(formatter, "'{}'", shown.escape_ascii())?;
        formatter.write_str(if shown.len() < bytes.len() { "..." } else { "" })
    }
}

/// The tokens of a text, one after the other.
pub(super) struct Tokens<'text> {
    text: &'text [u8],
    /// Where the token that was read last starts.
    pub(super) start: usize,
    position: usize,
}

impl<'text> Tokens<'text> {
    pub(super) fn new(text: &'text [u8]) -> Self {
        Self {
            text,
            start: 0,
            position: 0,
        }
    }

    /// The next token; `None` at the end of the text, or at the NUL which ends it in a container.
    pub(super) fn next(&mut self) -> Result<Option<Token<'text>>, &'static str> {
        self.skip_blank()?;
        self.start = self.position;
        let rest = self.rest();
        let (token, size) = match rest.first() {
            None | Some(0) => return Ok(None),
            Some(b'"') => {
                let text = rest.get(1..).unwrap_or_default();
                // PTX has no escapes in strings.
                let end = find(text, |byte| byte == b'"').ok_or("a string has no end")?;
                (Token::Text(text.get(..end).unwrap_or_default()), end + 2)
            }
            Some(&byte) if is_word(byte) => {
                let end = find(rest, |byte| !is_word(byte)).unwrap_or(rest.len());
                (Token::Word(rest.get(..end).unwrap_or_default()), end)
            }
            Some(&byte) => (Token::Punctuation(byte), 1),
        };
        self.position += size;
        Ok(Some(token))
    }

    /// The same, where text that does not end is an error of the whole.
    pub(super) fn token(&mut self) -> Result<Option<Token<'text>>, ReadError> {
        match self.next() {
            Ok(token) => Ok(token),
            Err(problem) => Err(self.error(problem)),
        }
    }

    /// The next token, which there has to be.
    pub(super) fn some(&mut self, wanted: &str) -> Result<Token<'text>, ReadError> {
        match self.token()? {
            Some(token) => Ok(token),
            None => Err(self.error(format!("the text ends where {wanted} is expected"))),
        }
    }

    /// Skips to the brace that closes the one just read, and gives the words on the way.
    pub(super) fn braces(&mut self, mut word: impl FnMut(&'text [u8])) -> Result<(), ReadError> {
        let mut depth = 1usize;
        while depth > 0 {
            match self.some("the end of a body")? {
                Token::Punctuation(b'{') => depth += 1,
                Token::Punctuation(b'}') => depth -= 1,
                Token::Word(found) => word(found),
                _ => {}
            }
        }
        Ok(())
    }

    /// What is wrong at the token that was read last.
    pub(super) fn error(&self, problem: impl fmt::Display) -> ReadError {
        let before = self.text.get(..self.start).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let message = format!("PTX: line {line}, offset {:#x}: {problem}", self.start);
        ReadError::new(ReadProblem::Damaged, message).at(self.start as u64)
    }

    fn rest(&self) -> &'text [u8] {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn skip_blank(&mut self) -> Result<(), &'static str> {
        loop {
            let rest = self.rest();
            self.start = self.position;
            self.position += match rest {
                [b'/', b'/', ..] => find(rest, |byte| byte == b'\n').unwrap_or(rest.len()),
                [b'/', b'*', comment @ ..] => {
                    let end = comment.windows(2).position(|pair| pair == b"*/");
                    end.ok_or("a comment has no end")? + 4
                }
                [first, ..] if first.is_ascii_whitespace() => {
                    find(rest, |byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
                }
                _ => return Ok(()),
            };
        }
    }
}

fn find(text: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    text.iter().position(|&byte| wanted(byte))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}
