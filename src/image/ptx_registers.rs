//! How many registers PTX declares at once.

use super::ptx_tokens::{Token, Tokens};

/// The largest number in declarations of the form `.reg .b32 %r<N>;`, which stands for N registers.
///
/// NVIDIA's compilers make a table of all of them: some digits of text are gigabytes of memory. Text that is not PTX has
/// none.
pub fn most_declared(text: &[u8]) -> u64 {
    let mut tokens = Tokens::new(text);
    let mut most = 0;
    let mut declares = false;
    let mut after_bracket = false;
    while let Ok(Some(token)) = tokens.next() {
        match token {
            Token::Word(b".reg") => declares = true,
            Token::Punctuation(b';') => declares = false,
            Token::Word(word) if declares && after_bracket => {
                let number = std::str::from_utf8(word).ok();
                // A number that does not fit is more than any that does.
                let number = number.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                most = most.max(number.map_or(0, |word| word.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
        after_bracket = token_is(&token, b'<');
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
        for (text, most) in [
            ("", 0),
            (".reg .b32 %r<4>;", 4),
            (".reg .b32 %r<4>; .reg .f64 %fd< 4294967295 >, %q<7>;", 4_294_967_295),
            (".reg .b32 %r<99999999999999999999>;", u64::MAX),
            (".reg .v4 .f32 %a, %b; setp.lt.u64 p, a, 4096;", 0),
            ("// .reg .b32 %r<9>;", 0),
        ] {
            assert_eq!(most_declared(text.as_bytes()), most, "{text}");
        }
    }
}
