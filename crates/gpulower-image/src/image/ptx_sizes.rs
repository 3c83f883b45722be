//! Sizes in PTX that NVIDIA's compilers take too much time or memory for.

use super::ptx_tokens::{Token, Tokens};

/// The largest sizes of a text. Text that is not PTX has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PtxSizes {
    /// The largest number in declarations of the form `.reg .b32 %r<N>;`, which stands for N registers.
    ///
    /// The compilers make a table of all of them: some digits of text are gigabytes of memory.
    pub registers: u64,
    /// The most dimensions of an array, as in `.global .b8 x[2][4];`.
    ///
    /// The compilers' time grows with the third power of their number: 0.3 s for 1,000, 48 s for 5,000 (13.0.88).
    pub dimensions: u64,
}

/// The largest sizes of a text.
pub fn largest_sizes(text: &[u8]) -> PtxSizes {
    let mut tokens = Tokens::new(text);
    let mut most = PtxSizes::default();
    let mut declares = false;
    let mut after_bracket = false;
    let mut after_dimension = false;
    let mut dimensions = 0;
    while let Ok(Some(token)) = tokens.next() {
        match token {
            Token::Punctuation(b'[') => {
                dimensions = if after_dimension { dimensions + 1 } else { 1 };
                most.dimensions = most.dimensions.max(dimensions);
            }
            Token::Word(b".reg") => declares = true,
            Token::Punctuation(b';') => declares = false,
            Token::Word(word) if declares && after_bracket => {
                let number = std::str::from_utf8(word).ok();
                // A number that does not fit is more than any that does.
                let number = number.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                let number = number.map_or(0, |word| word.parse().unwrap_or(u64::MAX));
                most.registers = most.registers.max(number);
            }
            _ => {}
        }
        after_bracket = token_is(&token, b'<');
        after_dimension = token_is(&token, b']');
    }
    most
}

fn token_is(token: &Token<'_>, mark: u8) -> bool {
    matches!(token, Token::Punctuation(byte) if *byte == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_declaration_counts() {
        for (text, registers) in [
            ("", 0),
            (".reg .b32 %r<4>;", 4),
            (".reg .b32 %r<4>; .reg .f64 %fd< 4294967295 >, %q<7>;", 4_294_967_295),
            (".reg .b32 %r<99999999999999999999>;", u64::MAX),
            (".reg .v4 .f32 %a, %b; setp.lt.u64 p, a, 4096;", 0),
            ("// .reg .b32 %r<9>;", 0),
        ] {
            assert_eq!(largest_sizes(text.as_bytes()).registers, registers, "{text}");
        }
    }

    #[test]
    fn the_most_dimensions_count() {
        for (text, dimensions) in [
            ("", 0),
            (".global .b8 x[4];", 1),
            (".global .b8 x[4] [2][]; ld.global.u8 %r, [x];", 3),
            ("ld.global.u8 %r, [x]; // [1][2]", 1),
        ] {
            assert_eq!(largest_sizes(text.as_bytes()).dimensions, dimensions, "{text}");
        }
    }
}
