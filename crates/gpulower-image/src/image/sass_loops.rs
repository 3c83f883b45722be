//! Innermost loops of the machine code of `sm_90`: how long a warp takes for an iteration, and how much of that it waits for memory.
//!
//! An instruction has 16 bytes. Besides what it does, it says how many cycles pass before the next one, on which of six barriers it
//! waits, and at which barrier its own result is announced. That is enough to follow a warp. NVIDIA does not document the bits. The
//! control bits are those that Jia and others describe for Volta ("Dissecting the NVIDIA Volta GPU Architecture via
//! Microbenchmarking", 2018); opcodes and branches are compared with `nvdisasm` by a test. Branches are encoded otherwise before
//! `sm_90`.

use super::{elf::Elf, ptx_loops::MOST_LOOPS_AROUND};
use crate::{ReadError, target::Target};

/// An innermost loop. Times are estimates, for comparing two versions of one kernel: caches and other warps are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SassLoop {
    /// Instructions, with the branch at the end.
    pub instructions: usize,
    /// Instructions that read global or generic memory.
    pub loads: usize,
    /// Whether the threads of a block wait for each other in it: no number of registers lets loads pass that.
    pub has_barrier: bool,
    /// Cycles of an iteration of a warp that is alone on its multiprocessor.
    pub cycles: u64,
    /// What [`cycles`](Self::cycles) would be if everything from memory were waited for at once, and once.
    pub cycles_with_one_wait: u64,
}

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// Opcodes, the low twelve bits.
const BRANCH: u64 = 0x947;
const LOAD: u64 = 0x980;
const LOAD_GLOBAL: u64 = 0x981;
const LOAD_SHARED: u64 = 0x984;
const BARRIER: u64 = 0xb1d;

/// Barriers of a warp. A field with another number names none.
const BARRIERS: usize = 6;

/// Cycles until a result is there: of global memory that no cache holds, of shared memory, and of slow units such as those for roots.
/// Assumed, of the right size; what is compared with them was chosen with them (docs/lab/code-quality.md).
const FROM_GLOBAL: u64 = 500;
const FROM_SHARED: u64 = 30;
const FROM_UNIT: u64 = 20;

/// Cycles until the operands of an instruction have been read, and their registers may be written. Assumed as well.
const OPERANDS: u64 = 12;

/// Iterations that are followed; the last is measured, in which what earlier ones left is under way.
const ITERATIONS: usize = 3;

/// Whether the loops of a chip's machine code can be read.
#[must_use]
pub fn is_known(target: &Target) -> bool {
    matches!(target.chip(), "sm_90" | "sm_90a")
}

/// The innermost loops of a kernel or function in a cubin for such a chip, in the order of the code. None where it has no code.
///
/// # Errors
///
/// [`ReadError`] where the file is no ELF file.
pub fn innermost_loops(cubin: &[u8], function: &str) -> Result<Vec<SassLoop>, ReadError> {
    let elf = Elf::parse(cubin)?;
    let name = format!(".text.{function}");
    let section = elf.sections().iter().find(|section| section.name == name);
    let code = section.map(|section| elf.contents(section)).transpose()?;
    Ok(loops(code.unwrap_or_default()))
}

/// What is to be known of an instruction.
#[derive(Clone, Copy)]
struct Instruction {
    opcode: u64,
    /// The destination of a branch, in bytes from the begin of the code.
    target: Option<i64>,
    /// Cycles before the next instruction.
    stall: u64,
    /// Barriers: of the result, of the operands, and, as bits, those that it waits for.
    result: usize,
    operands: usize,
    waits: u64,
}

impl Instruction {
    fn decode(place: usize, bytes: [u8; INSTRUCTION]) -> Self {
        let word = u128::from_le_bytes(bytes);
        let field = |from: u32, bits: u32| (word >> from) as u64 & ((1 << bits) - 1);
        let opcode = field(0, 12);
        Self {
            opcode,
            target: (opcode == BRANCH).then(|| {
                // A number of 56 bits in two parts, in units of four bytes, from the next instruction on.
                let offset = ((field(34, 48) << 8 | field(16, 8)) << 8).cast_signed() >> 8;
                let next = i64::try_from(place + INSTRUCTION).unwrap_or(i64::MAX);
                next.saturating_add(offset.saturating_mul(4))
            }),
            stall: field(105, 4).max(1),
            result: field(110, 3) as usize,
            operands: field(113, 3) as usize,
            waits: field(116, 6),
        }
    }

    fn is_load(&self) -> bool {
        [LOAD, LOAD_GLOBAL].contains(&self.opcode)
    }

    /// Cycles until its result is there, if a barrier announces it.
    fn latency(&self) -> u64 {
        match self.opcode {
            LOAD | LOAD_GLOBAL => FROM_GLOBAL,
            LOAD_SHARED => FROM_SHARED,
            _ => FROM_UNIT,
        }
    }
}

fn loops(code: &[u8]) -> Vec<SassLoop> {
    let (code, _) = code.as_chunks::<INSTRUCTION>();
    let instructions: Vec<Instruction> = code
        .iter()
        .enumerate()
        .map(|(place, &bytes)| Instruction::decode(place * INSTRUCTION, bytes))
        .collect();
    let mut loops = Vec::new();
    let mut inner = None;
    let mut left = MOST_LOOPS_AROUND * instructions.len();
    for (place, instruction) in instructions.iter().enumerate() {
        let target = instruction.target.and_then(|target| usize::try_from(target).ok());
        // Behind the last instruction of a function stands a branch to itself.
        let Some(begin) = target.map(|target| target / INSTRUCTION).filter(|&begin| begin < place) else {
            continue;
        };
        if inner.is_none_or(|inner| inner < begin)
            && let Some(body) = instructions.get(begin..=place)
            && let Some(rest) = left.checked_sub(body.len())
        {
            loops.push(described(body));
            left = rest;
        }
        inner = inner.max(Some(begin));
    }
    loops
}

fn described(body: &[Instruction]) -> SassLoop {
    let loads = body.iter().filter(|instruction| instruction.is_load()).count();
    let issued: u64 = body.iter().map(|instruction| instruction.stall).sum();
    SassLoop {
        instructions: body.len(),
        loads,
        has_barrier: body.iter().any(|instruction| instruction.opcode == BARRIER),
        cycles: cycles(body),
        cycles_with_one_wait: issued + if loads > 0 { FROM_GLOBAL } else { FROM_SHARED },
    }
}

/// Follows one warp.
fn cycles(body: &[Instruction]) -> u64 {
    let mut ready = [0; BARRIERS];
    let (mut now, mut begin) = (0u64, 0);
    for _ in 0..ITERATIONS {
        begin = now;
        for instruction in body {
            for (barrier, ready) in ready.iter().enumerate() {
                if instruction.waits >> barrier & 1 == 1 {
                    now = now.max(*ready);
                }
            }
            for (barrier, latency) in [
                (instruction.result, instruction.latency()),
                (instruction.operands, OPERANDS),
            ] {
                if let Some(ready) = ready.get_mut(barrier) {
                    *ready = (*ready).max(now + latency);
                }
            }
            now += instruction.stall;
        }
    }
    now - begin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction with its opcode, the cycles behind it, the barrier of its result, and those it waits for.
    fn instruction(opcode: u64, stall: u128, result: u128, waits: u128) -> [u8; INSTRUCTION] {
        (u128::from(opcode) | stall << 105 | result << 110 | 7 << 113 | waits << 116).to_le_bytes()
    }

    /// A branch over so many instructions, counted from the next.
    fn branch(instructions: i64) -> [u8; INSTRUCTION] {
        let offset = (instructions * 4).cast_unsigned();
        let fields = u128::from(offset & 0xff) << 16 | u128::from(offset >> 8 & 0xffff_ffff_ffff) << 34;
        (u128::from_le_bytes(instruction(BRANCH, 5, 7, 0)) | fields).to_le_bytes()
    }

    const ADD: u64 = 0x221;

    #[test]
    fn loads_that_are_waited_for_one_by_one_take_longer() {
        let load = |barrier| instruction(LOAD_GLOBAL, 2, barrier, 0);
        let used = |waits| instruction(ADD, 4, 7, waits);
        let one_by_one = [used(0), load(0), used(1), load(0), used(1), branch(-5)].concat();
        let at_once = [used(0), load(0), load(1), used(1), used(2), branch(-5)].concat();
        let expected = SassLoop {
            instructions: 5,
            loads: 2,
            has_barrier: false,
            cycles: 2 * (FROM_GLOBAL + 4) + 5,
            cycles_with_one_wait: FROM_GLOBAL + 2 + 2 + 4 + 4 + 5,
        };
        assert_eq!(loops(&one_by_one), [expected]);
        // The second comes two cycles later, while the first is being used.
        let expected = SassLoop {
            cycles: FROM_GLOBAL + 4 + 4 + 5,
            ..expected
        };
        assert_eq!(loops(&at_once), [expected]);
        let barrier = [load(0), instruction(BARRIER, 4, 7, 1), branch(-3)].concat();
        assert!(matches!(loops(&barrier)[..], [SassLoop { has_barrier: true, .. }]));
    }

    #[test]
    fn inner_loops_alone_are_found() {
        let add = instruction(ADD, 4, 7, 0);
        let code = [
            add,
            add,
            branch(-2),
            add,
            branch(-5),
            branch(-1),
            branch(0),
            branch(1),
            add,
        ]
        .concat();
        let inner = SassLoop {
            instructions: 2,
            loads: 0,
            has_barrier: false,
            cycles: 9,
            cycles_with_one_wait: 9 + FROM_SHARED,
        };
        assert_eq!(loops(&code), [inner]);
        assert_eq!(loops(&code[..40]), []);
        assert_eq!(loops(&branch(-3)), []);
    }

    #[test]
    fn what_is_no_cubin_is_an_error() {
        assert!(innermost_loops(b"", "k").is_err());
    }
}
