//! Innermost loops of PTX text: how long they are, what they read, and how they count.

use std::collections::{HashMap, HashSet};

use super::{
    ptx_entries::with_bodies,
    ptx_tokens::{Token, Tokens},
};
use crate::ReadError;

/// A loop without another in it: what stands between a label and a branch that goes back there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtxLoop {
    /// Instructions, with the branch at the end.
    pub instructions: usize,
    /// Whether there are no other branches, labels and calls in it.
    pub is_one_block: bool,
    /// Numbers that it reads from global memory in each iteration: four of a `.v4`.
    pub loads: u32,
    /// The instructions that do so.
    pub load_instructions: usize,
    /// Whether it reads from global memory at a place that it has read from there in the same iteration.
    pub gathers: bool,
    /// What is added to the counter that its end is compared with, or computed of, without a sign. `None` where that is no
    /// constant.
    pub step: Option<u64>,
    /// Whether the PTX compiler may unroll it: `.pragma "nounroll"` forbids it.
    pub may_be_unrolled: bool,
}

/// The innermost loops of each kernel, by the kernel's name, in the order of the text.
///
/// # Errors
///
/// As [`super::ptx_entries::entries`].
pub fn innermost_loops(ptx: &[u8]) -> Result<Vec<(String, Vec<PtxLoop>)>, ReadError> {
    let kernels = with_bodies(ptx)?.into_iter();
    kernels
        .map(|(entry, body)| Ok((entry.name, loops(ptx.get(body..).unwrap_or_default())?)))
        .collect()
}

/// How many loops an instruction is in, on average, in text that somebody has written: loops that overlap could be as long as the text,
/// all of them. What is more is left out.
pub(super) const MOST_LOOPS_AROUND: usize = 8;

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

    /// The constant that it adds to something or takes away. LLVM compares with a sign as without one, both numbers with their
    /// highest bit turned over.
    fn step(&self) -> Option<u64> {
        let step = self.operand(2).filter(|_| self.is("add.") || self.is("sub."))?;
        let step: u64 = std::str::from_utf8(step).ok()?.parse().ok()?;
        [0, 1 << 31, 1 << 63]
            .into_iter()
            .map(|highest| step.abs_diff(highest))
            .min()
    }

    /// Whether it compares integers.
    fn compares_integers(&self) -> bool {
        let kind = self.name.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
        self.is("setp.") && [b's', b'u', b'b'].iter().any(|&first| kind.first() == Some(&first))
    }
}

/// What is added in each iteration to what the end of a loop is compared with, or to what that is computed of.
fn step(instructions: &[Instruction<'_>]) -> Option<u64> {
    let (mut made, mut compared) = (HashMap::new(), HashMap::new());
    for instruction in instructions {
        if let Some(result) = instruction.operand(0) {
            made.entry(result).or_insert(instruction);
            if instruction.compares_integers() {
                compared.insert(result, instruction);
            }
        }
    }
    let branches = instructions.iter().rev().filter(|instruction| instruction.is("bra"));
    let comparisons = branches.filter_map(|branch| compared.get(branch.predicate?));
    // What was seen for one condition and has no step has none for another.
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for comparison in comparisons {
        let mut waiting: Vec<&[u8]> = comparison.operands.iter().skip(1).rev().copied().collect();
        while let Some(register) = waiting.pop() {
            let Some(made) = made.get(register).filter(|_| seen.insert(register)) else {
                continue;
            };
            match made.step() {
                Some(step) => return Some(step),
                None => waiting.extend(made.operands.iter().skip(1).rev()),
            }
        }
    }
    None
}

/// Whether an address of a load is computed of what another one has read before it.
fn gathers(instructions: &[Instruction<'_>]) -> bool {
    let mut read: HashSet<&[u8]> = HashSet::new();
    instructions.iter().any(|instruction| {
        let results = (instruction.loads() as usize).max(1).min(instruction.operands.len());
        let (results, of) = instruction.operands.split_at(results);
        let depends = of.iter().any(|operand| read.contains(operand));
        if depends || instruction.loads() > 0 {
            read.extend(results);
        }
        depends && instruction.loads() > 0
    })
}

/// What a loop is made of: the instructions from its label to the branch that goes back there.
fn described(instructions: &[Instruction<'_>], is_one_block: bool, may_be_unrolled: bool) -> PtxLoop {
    PtxLoop {
        instructions: instructions.len(),
        is_one_block,
        loads: instructions.iter().map(Instruction::loads).sum(),
        load_instructions: instructions
            .iter()
            .filter(|instruction| instruction.loads() > 0)
            .count(),
        gathers: gathers(instructions),
        step: step(instructions),
        may_be_unrolled,
    }
}

/// Of a body; `text` begins with its brace.
fn loops(text: &[u8]) -> Result<Vec<PtxLoop>, ReadError> {
    let mut tokens = Tokens::new(text);
    let mut loops = Vec::new();
    let mut depth = 0usize;
    let mut instructions: Vec<Instruction<'_>> = Vec::new();
    // Where the last label of each name is, and where the last block, the last `nounroll` and the last loop begin.
    let mut labels: HashMap<&[u8], usize> = HashMap::new();
    let (mut block, mut kept, mut inner) = (0, None, None);
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
            Token::Text(b"nounroll") => kept = Some(instructions.len()),
            Token::Punctuation(b':') => {
                block = instructions.len();
                labels.extend(words.pop().map(|label| (label, block)));
                words.clear();
            }
            Token::Punctuation(b';') => {
                let mut words = std::mem::take(&mut words).into_iter();
                let instruction = Instruction {
                    predicate: predicate.take(),
                    name: words.next().unwrap_or_default(),
                    operands: words.collect(),
                };
                if instruction.name.starts_with(b".") {
                    continue;
                }
                let begin = instruction.operand(0).and_then(|label| labels.get(label)).copied();
                let ends = ["bra", "brx", "call"].iter().any(|name| instruction.is(name));
                let begin = begin.filter(|_| instruction.is("bra"));
                instructions.push(instruction);
                if let Some(begin) = begin {
                    let may_be_unrolled = kept.is_none_or(|kept| kept < begin);
                    if inner.is_none_or(|inner| inner < begin) {
                        loops.push((begin..instructions.len(), block == begin, may_be_unrolled));
                    }
                    inner = inner.max(Some(begin));
                }
                if ends {
                    block = instructions.len();
                }
            }
            _ => {}
        }
    }
    let mut left = MOST_LOOPS_AROUND * instructions.len();
    let bodies = loops.into_iter().filter_map(|(range, is_one_block, may_be_unrolled)| {
        let body = instructions.get(range)?;
        left = left.checked_sub(body.len())?;
        Some(described(body, is_one_block, may_be_unrolled))
    });
    Ok(bodies.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<9>;\n$L1: // loop\n\
        \tld.global.nc.v2.b32 {%r1, %r2}, [%rd1+-8];\n\tld.global.b32 %r3, [%rd1];\n\tld.global.f32 %f1, [%rd1+4];\n\
        \tadd.s64 \t%rd2, %rd2, -4;\n\tadd.s64 %rd1, %rd1, %rd4;\n\tsetp.ne.s64 %p1, %rd2, 0;\n\t@%p1 bra \t$L1;\n\tret;\n}\n";

    const LOOP: PtxLoop = PtxLoop {
        instructions: 7,
        is_one_block: true,
        loads: 4,
        load_instructions: 3,
        gathers: false,
        step: Some(4),
        may_be_unrolled: true,
    };

    fn loops_with(from: &str, to: &str) -> Vec<PtxLoop> {
        let text = TEXT.replace(from, to);
        assert!(from.is_empty() || text != TEXT, "{from}");
        let mut kernels = innermost_loops(text.as_bytes()).expect("reads");
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
        // By way of another register, and where the end is in the middle.
        let later = "sub.s64 %rd5, %rd7, %rd2;\n\tsetp.ne.s64 %p1, %rd5, 0";
        let longer = PtxLoop {
            instructions: 8,
            ..LOOP
        };
        assert_eq!(loops_with("setp.ne.s64 %p1, %rd2, 0", later), [longer]);
        let turned = "add.s64 %rd5, %rd2, 9223372036854775804;\n\tsetp.ne.s64 %p1, %rd5, 0";
        assert_eq!(loops_with("setp.ne.s64 %p1, %rd2, 0", turned), [longer]);
        assert_eq!(loops_with("setp.ne.s64 %p1, %rd2", "setp.ne.f64 %p1, %rd2"), [stepless]);
        let in_the_middle = PtxLoop {
            is_one_block: false,
            ..longer
        };
        assert_eq!(
            loops_with("@%p1 bra \t$L1", "@%p1 bra $L9;\n\tbra.uni $L1"),
            [in_the_middle]
        );
        assert_eq!(
            loops_with("ld.global.f32", "ld.shared.f32"),
            [PtxLoop {
                loads: 3,
                load_instructions: 2,
                ..LOOP
            }]
        );
        assert_eq!(
            loops_with(".v2.b32 {%r1, %r2}", ".v4.b32 {%r1, %r2, %r8, %r9}"),
            [PtxLoop { loads: 6, ..LOOP }]
        );
        let gathering = PtxLoop {
            instructions: 9,
            gathers: true,
            ..LOOP
        };
        let of_what_was_read = "mul.wide.s32 %rd6, %r2, 4;\n\tadd.s64 %rd7, %rd8, %rd6;\n\tld.global.b32 %r3, [%rd7]";
        assert_eq!(loops_with("ld.global.b32 %r3, [%rd1]", of_what_was_read), [gathering]);
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
    fn branches_labels_and_calls_divide_a_loop() {
        assert_eq!(loops_with("bra \t$L1", "bra \t$L2"), []);
        let divided = PtxLoop {
            is_one_block: false,
            ..LOOP
        };
        let longer = PtxLoop {
            instructions: LOOP.instructions + 1,
            ..divided
        };
        assert_eq!(loops_with("\tadd.s64 \t%rd2", "$L3:\n\tadd.s64 \t%rd2"), [divided]);
        for instruction in ["@%p2 bra $L3", "brx.idx %r1, targets", "call.uni f, ()"] {
            let with = format!("\t{instruction};\n\tadd.s64 \t%rd2");
            assert_eq!(loops_with("\tadd.s64 \t%rd2", &with), [longer], "{instruction}");
        }
        // What comes before the label is not in it.
        assert_eq!(
            loops_with("$L1: // loop", "ld.global.b32 %r9, [%rd1];\nbra $L1;\n$L0:\n$L1:"),
            [LOOP]
        );
    }

    #[test]
    fn of_loops_in_loops_the_inner_ones_count() {
        let outer = "\tret;";
        assert_eq!(loops_with(outer, "\tbra $L1;\n\tret;"), [LOOP]);
        assert_eq!(loops_with("$L1: // loop", "$L0:\n$L1:"), [LOOP]);
        let next = "$L2:\n\tld.global.f32 %f2, [%rd5];\n\tbra $L2;\n\tbra $L1;\n\tret;";
        let second = PtxLoop {
            instructions: 2,
            is_one_block: true,
            loads: 1,
            load_instructions: 1,
            gathers: false,
            step: None,
            may_be_unrolled: true,
        };
        assert_eq!(loops_with(outer, next), [LOOP, second]);
    }

    #[test]
    fn loops_may_overlap_but_not_all_of_them() {
        let second = "$L2:\n\tadd.s64 %rd1";
        let behind = "\t@%p1 bra \t$L1;\n\tbra $L2";
        let text = TEXT
            .replace("\tadd.s64 %rd1", second)
            .replace("\t@%p1 bra \t$L1", behind);
        let kernels = innermost_loops(text.as_bytes()).expect("reads");
        assert_eq!(kernels[0].1.len(), 2);
        const MANY: usize = 1000;
        let labels: String = (0..MANY).map(|at| format!("$M{at}: add.s32 %r7, %r7, 1;\n")).collect();
        let branches: String = (0..MANY).map(|at| format!("@%p1 bra $M{at};\n")).collect();
        let text = TEXT.replace("$L1: // loop", &format!("{labels}{branches}$L1:"));
        let kernels = innermost_loops(text.as_bytes()).expect("reads");
        assert!(kernels[0].1.len() < MANY);
    }

    /// Each definition is looked at once for all of the ends.
    #[test]
    fn long_chains_with_many_ends_are_read() {
        const LENGTH: usize = 20_000;
        let chain: String = (1..LENGTH)
            .map(|at| {
                format!(
                    "xor.b32 %r{at}, %r{}, %r0;\nsetp.eq.s32 %p{at}, %r{at}, 7;\n@%p{at} bra $L9;\n",
                    at - 1
                )
            })
            .collect();
        let text = TEXT.replace("\tadd.s64 %rd1", &format!("{chain}\tadd.s64 %rd1"));
        let kernels = innermost_loops(text.as_bytes()).expect("reads");
        assert_eq!(kernels[0].1[0].step, Some(4));
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert!(innermost_loops(TEXT.trim_end_matches("}\n").as_bytes()).is_err());
    }
}
