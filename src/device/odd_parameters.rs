//! Parameters of kernels that are integers of other widths than 8, 16, 32 and 64 bits.
//!
//! LLVM's NVPTX back end writes the width of such a parameter as its type: `.param .u4`, `.param .u24`, which PTX does not have.
//! (LLVM 22, `emitFunctionParamList` in NVPTXAsmPrinter.cpp.) The code reads as many bytes as such a value has in memory, which
//! is what a launch passes: the parameter is declared with them.

/// Declares parameters with types that PTX has.
pub(super) fn widened(text: String) -> String {
    const WORD: &str = "\t.param .u";
    if !text.lines().any(|line| odd_width(line, WORD).is_some()) {
        return text;
    }
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match odd_width(line, WORD) {
            Some((bits, rest)) if bits <= 64 => {
                result += &format!("{WORD}{}{rest}", bits.next_power_of_two().max(8));
            }
            // In memory it has a multiple of 16 bytes, aligned so.
            Some((bits, rest)) => {
                let bytes = bits.div_ceil(8).next_multiple_of(16);
                let name = rest.trim_start().trim_end();
                let (name, comma) = name.strip_suffix(',').map_or((name, ""), |name| (name, ","));
                result += &format!("\t.param .align 16 .b8 {name}[{bytes}]{comma}\n");
            }
            None => result += line,
        }
    }
    result
}

/// The width of a parameter that PTX has no type for, and what follows it.
fn odd_width<'t>(line: &'t str, word: &str) -> Option<(u32, &'t str)> {
    let rest = line.strip_prefix(word)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (digits, rest) = rest.split_at(end);
    let bits: u32 = digits.parse().ok()?;
    (![8, 16, 32, 64].contains(&bits)).then_some((bits, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_odd_widths_change() {
        let text = "k(\n\t.param .u64 .ptr .align 1 a,\n\t.param .u4 b,\n\t.param .u24 c,\n\t.param .u100 d,\n\t.param .u65 e\n)\n";
        assert_eq!(
            widened(text.to_owned()),
            "k(\n\t.param .u64 .ptr .align 1 a,\n\t.param .u8 b,\n\t.param .u32 c,\n\t.param .align 16 .b8 d[16],\n\
             \t.param .align 16 .b8 e[16]\n)\n"
        );
    }
}
