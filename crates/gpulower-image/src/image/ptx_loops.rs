//! Loops of PTX text that are one block: how long they are, what they read, and how they count.

use super::{
    ptx_entries::with_bodies,
    ptx_tokens::{Token, Tokens},
};
use crate::ReadError;

/// A loop without branches and calls in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtxLoop {
    /// Instructions, with the branch at the end.
    pub instructions: usize,
    /// Numbers that it reads from global memory in each iteration: four of a `.v4`.
    pub loads: u32,
    /// What is added to the counter that its end is compared with, without a sign. `None` where that is no constant.
    pub step: Option<u64>,
    /// Whether the PTX compiler may unroll it: `.pragma "nounroll"` forbids it.
    pub may_be_unrolled: bool,
}

/// The loops of each kernel that are one block, by the kernel's name, in the order of the text.
///
/// # Errors
///
/// As [`super::ptx_entries::entries`].
pub fn loops_of_one_block(ptx: &[u8]) -> Result<Vec<(String, Vec<PtxLoop>)>, ReadError> {
    let kernels = with_bodies(ptx)?.into_iter();
    kernels
        .map(|(entry, body)| Ok((entry.name, loops(ptx.get(body..).unwrap_or_default())?)))
        .collect()
}

/// An instruction: the predicate, if it has one, its name, and the words of its operands.
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

    /// The constant that it adds to something or takes away, if `register` is the result.
    fn step_of(&self, register: &[u8]) -> Option<u64> {
        let counts = (self.is("add.") || self.is("sub.")) && self.operand(0) == Some(register);
        let step = self.operand(2).filter(|_| counts)?;
        std::str::from_utf8(step).ok()?.parse().ok()
    }
}

/// The block that is being read, from its label on.
struct Block<'text> {
    label: &'text [u8],
    instructions: Vec<Instruction<'text>>,
    may_be_unrolled: bool,
}

impl<'text> Block<'text> {
    /// What it is with a branch to its own label at its end, which is taken on `condition`.
    fn into_loop(self, condition: Option<&[u8]>) -> PtxLoop {
        let instructions = &self.instructions;
        let compared = instructions
            .iter()
            .rev()
            .find(|instruction| instruction.is("setp") && instruction.operand(0) == condition);
        let numbers = compared.map_or(&[][..], |compared| compared.operands.get(1..).unwrap_or_default());
        PtxLoop {
            instructions: instructions.len() + 1,
            loads: instructions.iter().map(Instruction::loads).sum(),
            step: numbers
                .iter()
                .find_map(|number| instructions.iter().find_map(|instruction| instruction.step_of(number))),
            may_be_unrolled: self.may_be_unrolled,
        }
    }
}

/// Of a body; `text` begins with its brace.
fn loops<'text>(text: &'text [u8]) -> Result<Vec<PtxLoop>, ReadError> {
    let mut tokens = Tokens::new(text);
    let mut loops = Vec::new();
    let mut depth = 0usize;
    // None behind a branch.
    let mut block: Option<Block<'text>> = None;
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
            Token::Text(b"nounroll") => {
                if let Some(block) = &mut block {
                    block.may_be_unrolled = false;
                }
            }
            Token::Punctuation(b':') => {
                block = words.pop().map(|label| Block {
                    label,
                    instructions: Vec::new(),
                    may_be_unrolled: true,
                });
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
                    let ended = block.take();
                    let own = ended.filter(|block| instruction.operand(0) == Some(block.label));
                    loops.extend(own.map(|block| block.into_loop(instruction.predicate)));
                } else if instruction.is("call") {
                    block = None;
                } else if let Some(block) = &mut block
                    && !instruction.name.starts_with(b".")
                {
                    block.instructions.push(instruction);
                }
            }
            _ => {}
        }
    }
    Ok(loops)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<9>;\n$L1: // loop\n\
        \tld.global.nc.v2.b32 {%r1, %r2}, [%rd1+-8];\n\tld.global.b32 %r3, [%rd1];\n\tld.global.f32 %f1, [%rd1+4];\n\
        \tadd.s64 \t%rd2, %rd2, -4;\n\tadd.s64 %rd1, %rd1, %rd4;\n\tsetp.ne.s64 %p1, %rd2, 0;\n\t@%p1 bra \t$L1;\n\tret;\n}\n";

    const LOOP: PtxLoop = PtxLoop {
        instructions: 7,
        loads: 4,
        step: Some(4),
        may_be_unrolled: true,
    };

    fn loops_with(from: &str, to: &str) -> Vec<PtxLoop> {
        let text = TEXT.replace(from, to);
        assert!(from.is_empty() || text != TEXT, "{from}");
        let mut kernels = loops_of_one_block(text.as_bytes()).expect("reads");
        assert!(matches!(kernels.as_slice(), [(name, _)] if name == "k"));
        kernels.remove(0).1
    }

    #[test]
    fn loops_are_described() {
        assert_eq!(loops_with("", ""), [LOOP]);
        assert_eq!(loops_with("@%p1", "@!%p1"), [LOOP]);
        // Of which nobody knows the step, or that has none.
        let stepless = PtxLoop { step: None, ..LOOP };
        assert_eq!(loops_with("%rd2, %rd2, -4", "%rd2, %rd2, %rd5"), [stepless]);
        assert_eq!(loops_with("setp.ne.s64 %p1", "setp.ne.s64 %p2"), [stepless]);
        assert_eq!(loops_with("%rd2, %rd2, -4", "%rd2, %rd2, 0f3F800000"), [stepless]);
        assert_eq!(
            loops_with("ld.global.f32", "ld.shared.f32"),
            [PtxLoop { loads: 3, ..LOOP }]
        );
        assert_eq!(
            loops_with(".v2.b32 {%r1, %r2}", ".v4.b32 {%r1, %r2, %r8, %r9}"),
            [PtxLoop { loads: 6, ..LOOP }]
        );
        let kept = PtxLoop {
            may_be_unrolled: false,
            ..LOOP
        };
        assert_eq!(
            loops_with("\tadd.s64 \t%rd2", "\t.pragma \"nounroll\";\n\tadd.s64 \t%rd2"),
            [kept]
        );
    }

    #[test]
    fn what_is_not_one_block_is_none() {
        for (from, to) in [
            ("bra \t$L1", "bra \t$L2"),
            ("\tadd.s64 \t%rd2", "\t@%p2 bra $L3;\n\tadd.s64 \t%rd2"),
            ("\tadd.s64 \t%rd2", "$L3:\n\tadd.s64 \t%rd2"),
            ("\tadd.s64 \t%rd2", "\tcall.uni f, ();\n\tadd.s64 \t%rd2"),
        ] {
            assert_eq!(loops_with(from, to), [], "{to}");
        }
        // What comes before the label is not in it.
        assert_eq!(
            loops_with("$L1: // loop", "ld.global.b32 %r9, [%rd1];\nbra $L1;\n$L0:\n$L1:"),
            [LOOP]
        );
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert!(loops_of_one_block(TEXT.trim_end_matches("}\n").as_bytes()).is_err());
    }
}
