//! Parameters of kernels that are integers of other widths than 8, 16, 32 and 64 bits.
//!
//! LLVM's NVPTX back end writes the width of such a parameter as its type: `.param .u4`, `.param .u24`, which PTX does not have.
//! (LLVM 22, `emitFunctionParamList` in NVPTXAsmPrinter.cpp.) The code reads as many bytes as such a value has in memory, which
//! is what a launch passes: the parameter is declared with them.

/// Declares a parameter with a type that PTX has.
pub(super) fn widened(line: &str) -> Option<String> {
    const WORD: &str = "\t.param .u";
    let rest = line.strip_prefix(WORD)?;
    let (digits, rest) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit())?);
    let bits: u32 = digits.parse().ok()?;
    match bits {
        8 | 16 | 32 | 64 => None,
        0..64 => Some(format!("{WORD}{}{rest}", bits.next_power_of_two().max(8))),
        // In memory it has a multiple of 16 bytes, aligned so.
        _ => {
            let bytes = bits.div_ceil(8).next_multiple_of(16);
            let name = rest.trim();
            let (name, comma) = name.strip_suffix(',').map_or((name, ""), |name| (name, ","));
            Some(format!("\t.param .align 16 .b8 {name}[{bytes}]{comma}\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_odd_widths_change() {
        for (line, changed) in [
            ("\t.param .u64 .ptr .align 1 a,\n", None),
            ("\t.param .u4 b,\n", Some("\t.param .u8 b,\n")),
            ("\t.param .u24 c,\n", Some("\t.param .u32 c,\n")),
            ("\t.param .u100 d,\n", Some("\t.param .align 16 .b8 d[16],\n")),
            ("\t.param .u65 e\n", Some("\t.param .align 16 .b8 e[16]\n")),
        ] {
            assert_eq!(widened(line).as_deref(), changed);
        }
    }
}
