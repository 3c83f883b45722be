//! Loops of PTX text for whose loads the registers are few that the PTX compiler aims at by itself.

use super::{
    ptx_entries::{PtxEntry, with_bodies},
    ptx_tokens::{Token, Tokens},
};
use crate::ReadError;

/// Loads of an iteration, as numbers; the PTX compiler puts four iterations into one of its own, and their loads first.
const LEAST_LOADS: u32 = 4;

/// Instructions of the longest loop that ptxas 13.0 was seen to unroll four times, in the PTX of 356 kernels.
const MOST_INSTRUCTIONS: usize = 32;

/// The counter's step that threads of a warp have in common: of loops whose iterations the threads of a block or a warp share, each
/// thread has few, and nothing was gained by more registers.
const SHARED_STEP: u64 = 128;

/// The kernels with a short loop that reads memory: without branches, with [`LEAST_LOADS`] loads or more from global memory and an end
/// that is compared with a counter of constant steps below [`SHARED_STEP`], and not kept from being unrolled.
///
/// # Errors
///
/// As [`super::ptx_entries::entries`].
pub fn with_short_loops_of_loads(ptx: &[u8]) -> Result<Vec<PtxEntry>, ReadError> {
    let mut found = Vec::new();
    for (entry, body) in with_bodies(ptx)? {
        if has_short_loop_of_loads(ptx.get(body..).unwrap_or_default())? {
            found.push(entry);
        }
    }
    Ok(found)
}

/// An instruction: the predicate, if it has one, its name, and the words of its operands.
#[derive(Default)]
struct Instruction<'text> {
    predicate: Option<&'text [u8]>,
    name: &'text [u8],
    operands: Vec<&'text [u8]>,
}

impl<'text> Instruction<'text> {
    fn is(&self, prefix: &str) -> bool {
        self.name.starts_with(prefix.as_bytes())
    }

    fn operand(&self, place: usize) -> Option<&'text [u8]> {
        self.operands.get(place).copied()
    }

    /// How many numbers it reads from global memory.
    fn loads(&self) -> u32 {
        let has = |part: &str| self.name.split(|&byte| byte == b'.').any(|of| of == part.as_bytes());
        match self.is("ld.global") {
            false => 0,
            true if has("v2") => 2,
            true if has("v4") => 4,
            true if has("v8") => 8,
            true => 1,
        }
    }

    /// Whether it adds a small constant to something, and `register` is the sum.
    fn counts(&self, register: &[u8]) -> bool {
        (self.is("add.") || self.is("sub."))
            && self.operand(0) == Some(register)
            && self
                .operand(2)
                .and_then(|step| std::str::from_utf8(step).ok()?.parse::<u64>().ok())
                .is_some_and(|step| step < SHARED_STEP)
    }
}

/// `text` begins with the brace of the body.
fn has_short_loop_of_loads(text: &[u8]) -> Result<bool, ReadError> {
    let mut tokens = Tokens::new(text);
    let mut depth = 0usize;
    // The block that is being read, from its label on; none behind a branch.
    let mut block: Option<(&[u8], Vec<Instruction<'_>>)> = None;
    let mut words: Vec<&[u8]> = Vec::new();
    let mut is_predicate = false;
    let mut predicate = None;
    while let Some(token) = tokens.token()? {
        match token {
            Token::Punctuation(b'{') => depth += 1,
            Token::Punctuation(b'}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            Token::Punctuation(b'@') => is_predicate = true,
            Token::Word(word) if is_predicate => {
                predicate = Some(word);
                is_predicate = false;
            }
            Token::Word(word) => words.push(word),
            Token::Text(b"nounroll") => block = None,
            Token::Punctuation(b':') => {
                block = words.pop().map(|label| (label, Vec::new()));
                words.clear();
            }
            Token::Punctuation(b';') => {
                let mut words = std::mem::take(&mut words).into_iter();
                let instruction = Instruction {
                    predicate: predicate.take(),
                    name: words.next().unwrap_or_default(),
                    operands: words.collect(),
                };
                if instruction.is("bra") {
                    if let Some((label, instructions)) = block.take()
                        && instruction.operand(0) == Some(label)
                        && is_short_and_loads(&instructions, instruction.predicate)
                    {
                        return Ok(true);
                    }
                } else if instruction.is("call") {
                    block = None;
                } else if let Some((_, instructions)) = &mut block {
                    instructions.push(instruction);
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Of the instructions of a loop before the branch, which is taken on `condition`.
fn is_short_and_loads(instructions: &[Instruction<'_>], condition: Option<&[u8]>) -> bool {
    let loads: u32 = instructions.iter().map(Instruction::loads).sum();
    if loads < LEAST_LOADS || instructions.len() >= MOST_INSTRUCTIONS {
        return false;
    }
    let compared = instructions
        .iter()
        .rev()
        .find(|instruction| instruction.is("setp") && instruction.operand(0) == condition);
    compared.is_some_and(|compared| {
        let numbers = compared.operands.iter().skip(1);
        numbers
            .into_iter()
            .any(|number| instructions.iter().any(|instruction| instruction.counts(number)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of four loads, with parts to be replaced.
    const LOOP: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<9>;\n$L1: // loop\n\
        \tld.global.nc.v2.b32 {%r1, %r2}, [%rd1+-8];\n\tld.global.b32 %r3, [%rd1];\n\tld.global.f32 %f1, [%rd1+4];\n\
        \tadd.s64 \t%rd2, %rd2, -4;\n\tadd.s64 %rd1, %rd1, %rd4;\n\tsetp.ne.s64 %p1, %rd2, 0;\n\t@%p1 bra \t$L1;\n\tret;\n}\n";

    fn is_found(from: &str, to: &str) -> bool {
        let text = LOOP.replace(from, to);
        assert!(from.is_empty() || text != LOOP, "{from}");
        let found = with_short_loops_of_loads(text.as_bytes()).expect("reads");
        found.iter().any(|entry| entry.name == "k")
    }

    #[test]
    fn short_loops_that_load_are_found() {
        assert!(is_found("", ""));
        assert!(is_found("@%p1", "@!%p1"));
        // Instructions before the loop are not in it, nor is what is behind.
        assert!(is_found(
            "$L1: // loop",
            "ld.global.b32 %r9, [%rd1];\nbra $L1;\n$L0:\n$L1:"
        ));
    }

    #[test]
    fn others_are_not() {
        for (from, to) in [
            // A step that is not known, or that threads share, and fewer loads.
            ("%rd2, %rd2, -4", "%rd2, %rd2, %rd5"),
            ("%rd2, %rd2, -4", "%rd2, %rd2, 128"),
            ("ld.global.f32", "ld.shared.f32"),
            // It goes elsewhere, has a branch or a call in it, or shall not be unrolled.
            ("bra \t$L1", "bra \t$L2"),
            ("\tadd.s64 \t%rd2", "\t@%p2 bra $L3;\n\tadd.s64 \t%rd2"),
            ("\tadd.s64 \t%rd2", "$L3:\n\tadd.s64 \t%rd2"),
            ("\tadd.s64 \t%rd2", "\tcall.uni f, ();\n\tadd.s64 \t%rd2"),
            ("\tadd.s64 \t%rd2", "\t.pragma \"nounroll\";\n\tadd.s64 \t%rd2"),
            ("setp.ne.s64 %p1", "setp.ne.s64 %p2"),
        ] {
            assert!(!is_found(from, to), "{to}");
        }
        // Six instructions and the branch are there.
        let longer = |more: usize| "\tadd.f32 %f1, %f1, %f1;\n".repeat(more) + "\tadd.s64 \t%rd2";
        assert!(is_found("\tadd.s64 \t%rd2", &longer(MOST_INSTRUCTIONS - 7)));
        assert!(!is_found("\tadd.s64 \t%rd2", &longer(MOST_INSTRUCTIONS - 6)));
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert!(with_short_loops_of_loads(LOOP.trim_end_matches("}\n").as_bytes()).is_err());
    }
}
