//! The loops of a kernel: how many instructions, bytes and loads under way an iteration has, in PTX and in AMD's machine code.

use std::collections::HashMap;

use crate::bridge::disassemble::Disassembler;

/// A step of a kernel: an instruction, and the step that it may jump to.
#[derive(Debug, Default)]
struct Step {
    text: String,
    goes_to: Option<usize>,
}

/// What is executed together: an iteration of an innermost loop, or everything outside of these.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Body {
    /// Instructions, in the time that a simple one takes.
    pub instructions: f64,
    /// Operations on floating-point numbers.
    pub floats: u32,
    /// Stores and atomic operations on global memory.
    pub stores: u32,
    /// Loads of global memory.
    pub loads: u32,
    /// Bytes of global memory that are read and written.
    pub bytes: u32,
    /// The most bytes of loads that are under way at once in a thread.
    pub under_way: u32,
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shape {
    /// Innermost loops, in their order.
    pub loops: Vec<Body>,
    /// The rest.
    pub outside: Body,
}

impl Shape {
    /// From the text of a function in PTX.
    pub(super) fn of_ptx(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut labels = HashMap::new();
        for line in text.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with('$')) {
                labels.insert(label, steps.len());
            } else if line.ends_with(';') && !line.starts_with(['.', '/']) {
                steps.push(line.trim_end_matches(';'));
            }
        }
        let step = |text: &str| Step {
            text: text.to_owned(),
            goes_to: opcode(text)
                .starts_with("bra")
                .then(|| labels.get(text.split_whitespace().next_back()?).copied())
                .flatten(),
        };
        let steps: Vec<Step> = steps.into_iter().map(step).collect();
        Self::of_steps(&steps, ptx_kind, false)
    }

    /// From AMD's machine code.
    pub(super) fn of_amd(disassembler: &mut Disassembler, mut code: &[u8]) -> Self {
        let (mut at, mut places, mut steps, mut jumps) = (0_i64, HashMap::new(), Vec::new(), Vec::new());
        while !code.is_empty() {
            let (size, text) = disassembler.instruction(code).unwrap_or((4, String::new()));
            let text = text.trim().to_owned();
            places.insert(at, steps.len());
            at = at.saturating_add(i64::try_from(size).unwrap_or(i64::MAX));
            if text.starts_with("s_cbranch") || text.starts_with("s_branch") {
                // In words of four bytes, from the instruction behind it.
                let words = text
                    .split_whitespace()
                    .next_back()
                    .and_then(|word| word.parse::<u16>().ok());
                jumps.push((steps.len(), at + 4 * i64::from(words.unwrap_or(0).cast_signed())));
            }
            steps.push(Step { text, goes_to: None });
            code = code.get(size..).unwrap_or_default();
        }
        for (step, place) in jumps {
            if let Some(step) = steps.get_mut(step) {
                step.goes_to = places.get(&place).copied();
            }
        }
        Self::of_steps(&steps, amd_kind, true)
    }

    /// `waits`: instructions say for which loads they wait; otherwise whatever uses the result does.
    fn of_steps(steps: &[Step], kind: fn(&str) -> Kind, waits: bool) -> Self {
        let mut loops: Vec<(usize, usize)> = Vec::new();
        for (end, step) in steps.iter().enumerate() {
            let Some(start) = step.goes_to.filter(|start| *start <= end) else {
                continue;
            };
            match loops.iter_mut().find(|(other, _)| *other == start) {
                Some((_, last)) => *last = end,
                None => loops.push((start, end)),
            }
        }
        let contains = |outer: &(usize, usize), inner: &(usize, usize)| outer.0 <= inner.0 && inner.1 <= outer.1;
        let mut innermost: Vec<(usize, usize)> = loops
            .iter()
            .filter(|one| !loops.iter().any(|other| other != *one && contains(one, other)))
            .copied()
            .collect();
        innermost.sort_unstable();
        let of = |range: &(usize, usize)| body(steps.get(range.0..=range.1).unwrap_or_default().iter(), kind, waits);
        let is_outside = |index: usize| !innermost.iter().any(|range| (range.0..=range.1).contains(&index));
        let rest = steps.iter().enumerate().filter(|(index, _)| is_outside(*index));
        Self {
            outside: body(rest.map(|(_, step)| step), kind, waits),
            loops: innermost.iter().map(of).collect(),
        }
    }
}

/// What an instruction does.
enum Kind {
    /// So many bytes of global memory.
    Load(u32),
    Store(u32),
    Float(f64),
    /// Waits until so many loads are under way.
    Wait(usize),
    Other(f64),
    /// No instruction of the machine.
    Nothing,
}

fn body<'s>(steps: impl Iterator<Item = &'s Step>, kind: fn(&str) -> Kind, waits: bool) -> Body {
    let mut body = Body::default();
    let mut under_way: Vec<(u32, Vec<&str>)> = Vec::new();
    for step in steps {
        let kind = kind(&step.text);
        let (results, used) = registers(&step.text);
        match kind {
            Kind::Wait(left) => drop(under_way.drain(..under_way.len().saturating_sub(left))),
            _ if waits => {}
            _ => {
                // What was loaded before the one that is used has come, too.
                let of = |(_, results): &(u32, Vec<&str>)| results.iter().any(|result| used.contains(result));
                if let Some(last) = under_way.iter().rposition(of) {
                    under_way.drain(..=last);
                }
            }
        }
        body.instructions += match kind {
            Kind::Load(bytes) => {
                body.loads += 1;
                body.bytes += bytes;
                under_way.push((bytes, results));
                let all = under_way.iter().map(|(bytes, _)| bytes).sum();
                body.under_way = body.under_way.max(all);
                1.0
            }
            Kind::Store(bytes) => {
                body.stores += 1;
                body.bytes += bytes;
                1.0
            }
            Kind::Float(cost) => {
                body.floats += 1;
                cost
            }
            Kind::Other(cost) => cost,
            Kind::Wait(_) => 1.0,
            Kind::Nothing => 0.0,
        };
    }
    body
}

/// The operation, without the condition before it.
fn opcode(text: &str) -> &str {
    let mut words = text.split_whitespace();
    match words.next() {
        Some(word) if word.starts_with('@') => words.next().unwrap_or_default(),
        word => word.unwrap_or_default(),
    }
}

/// The registers of PTX that an instruction writes, and those that it reads.
fn registers(text: &str) -> (Vec<&str>, Vec<&str>) {
    let condition_and_rest = text
        .strip_prefix('@')
        .and_then(|rest| rest.split_once(char::is_whitespace));
    let (condition, rest) = condition_and_rest.unwrap_or(("", text));
    let (operation, operands) = rest.trim_start().split_once(char::is_whitespace).unwrap_or_default();
    let operands = operands.trim_start();
    let end = match operands.starts_with('{') {
        true => operands.find('}'),
        false => operands.find(','),
    };
    let (to, from) = operands.split_at(end.unwrap_or(operands.len()));
    let mut used = names(from);
    used.extend(names(condition));
    if operation.starts_with("st.") || operation.starts_with("red.") {
        used.extend(names(to));
        return (Vec::new(), used);
    }
    (names(to), used)
}

fn names(text: &str) -> Vec<&str> {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '%' || character == '_';
    let words = text.split(|character| !is_of_name(character));
    words.filter(|word| word.starts_with('%')).collect()
}

/// How much longer than a simple one an instruction takes: doubles have half of the units or fewer, special functions a quarter.
fn cost(operation: &str) -> f64 {
    let is_double = operation.contains("f64");
    let is_division = ["div", "sqrt", "rem"].iter().any(|name| operation.contains(name));
    let is_special = ["ex2", "exp", "lg2", "log", "sin", "cos", "rcp", "rsq", "tanh"]
        .iter()
        .any(|name| operation.contains(name));
    let one = match (is_division, is_special) {
        // Their sequences have about so many instructions.
        (true, _) => 10.0,
        (false, true) => 4.0,
        (false, false) => 1.0,
    };
    if is_double { 2.0 * one } else { one }
}

fn ptx_kind(text: &str) -> Kind {
    const FLOATS: [&str; 13] = [
        "add", "sub", "mul", "fma", "div", "sqrt", "ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "tanh",
    ];
    let operation = opcode(text);
    let mut parts = operation.split('.');
    let name = parts.next().unwrap_or_default();
    let has = |part: &str| operation.split('.').any(|other| other == part);
    let is_elsewhere = ["shared", "param", "const", "local"].iter().any(|space| has(space));
    let bytes = || {
        let bits = operation.rsplit('.').next().unwrap_or_default();
        let bits: u32 = bits
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .parse()
            .unwrap_or(32);
        let values = [("v2", 2), ("v4", 4), ("v8", 8)]
            .into_iter()
            .find(|(part, _)| has(part));
        values.map_or(1, |(_, count)| count) * bits / 8
    };
    match name {
        "" => Kind::Nothing,
        // Copies of values and of addresses are registers of the same name in the end.
        "mov" | "cvta" => Kind::Nothing,
        "ld" if !is_elsewhere => Kind::Load(bytes()),
        "st" | "atom" | "red" if !is_elsewhere => Kind::Store(bytes()),
        _ if FLOATS.contains(&name) && (operation.contains(".f") || operation.contains(".bf")) => {
            Kind::Float(cost(operation))
        }
        "mma" | "wmma" | "wgmma" => Kind::Float(8.0),
        _ => Kind::Other(if operation.ends_with("64") {
            2.0
        } else {
            cost(operation)
        }),
    }
}

fn amd_kind(text: &str) -> Kind {
    let operation = opcode(text);
    let is_global = ["global_", "flat_", "buffer_"]
        .iter()
        .any(|space| operation.starts_with(space));
    let bytes = || {
        let words = [("x2", 8), ("x3", 12), ("x4", 16), ("b64", 8), ("b96", 12), ("b128", 16)];
        let bytes = words
            .into_iter()
            .find(|(end, _)| operation.ends_with(end))
            .map(|(_, bytes)| bytes);
        let small = operation.contains("byte") || operation.contains("short") || operation.contains("16");
        bytes.unwrap_or(if small { 2 } else { 4 })
    };
    let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_hexdigit()).parse().unwrap_or(0);
    match operation {
        "" | "s_nop" | "s_delay_alu" => Kind::Nothing,
        "s_waitcnt" => match text.split_once("vmcnt(") {
            Some((_, rest)) => Kind::Wait(number(rest.split(')').next().unwrap_or_default())),
            None => Kind::Other(1.0),
        },
        "s_wait_loadcnt" => {
            let count = text.split_whitespace().next_back().unwrap_or_default();
            Kind::Wait(usize::from_str_radix(count.trim_start_matches("0x"), 16).unwrap_or(0))
        }
        _ if is_global && operation.contains("load") => Kind::Load(bytes()),
        _ if is_global => Kind::Store(bytes()),
        _ if operation.starts_with("v_mfma") || operation.starts_with("v_wmma") => Kind::Float(8.0),
        // What is compared, converted or moved is no work of its own.
        _ if operation.starts_with("v_") && ["_f32", "_f64", "_f16"].iter().any(|kind| operation.contains(kind)) => {
            match ["v_cmp", "v_cvt", "v_mov"]
                .iter()
                .any(|other| operation.starts_with(other))
            {
                true => Kind::Other(1.0),
                false => Kind::Float(cost(operation)),
            }
        }
        // The scalar unit is another one.
        _ if operation.starts_with("s_") => Kind::Other(0.25),
        _ => Kind::Other(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_loads_and_what_is_under_way_are_read() {
        let shape = Shape::of_ptx(
            "\tld.param.b64 \t%rd1, [k_param_0];\n$L__BB0_1:\n\tld.global.b32 \t%r6, [%rd30];\n\tadd.s64 \t%rd21, %rd30, %rd8;\n\
             \tld.global.v2.b32 \t{%r7, %r9}, [%rd21];\n\tadd.rn.f32 \t%r8, %r27, %r6;\n\tld.global.b32 \t%r10, [%rd22];\n\
             \tst.shared.b32 \t[%rd22], %r7;\n\t@%p5 bra \t$L__BB0_1;\n\tst.global.b16 \t[%rd2], %rs1;\n\tret;\n",
        );
        let [body] = shape.loops.as_slice() else {
            panic!("one loop: {shape:?}")
        };
        assert_eq!((body.loads, body.bytes, body.floats, body.stores), (3, 16, 1, 0));
        // The first load has come before the third begins; the two of the pair count once each.
        assert_eq!(body.under_way, 12);
        assert_eq!((shape.outside.stores, shape.outside.bytes), (1, 2));
    }

    #[test]
    fn an_outer_loop_is_no_innermost_one() {
        let shape = Shape::of_ptx(
            "$L__BB0_1:\n\tadd.rn.f32 %r1, %r1, %r2;\n$L__BB0_2:\n\tfma.rn.f32 %r1, %r1, %r2, %r3;\n\t@%p1 bra $L__BB0_2;\n\
             \t@%p2 bra.uni $L__BB0_1;\n",
        );
        assert_eq!(shape.loops.len(), 1);
        assert_eq!((shape.loops[0].floats, shape.outside.floats), (1, 1));
    }

    #[test]
    fn waits_of_amd_say_what_is_under_way() {
        let step = |text: &str, goes_to| Step {
            text: text.to_owned(),
            goes_to,
        };
        let steps = [
            step("global_load_dword v8, v[4:5], off", None),
            step("global_load_dwordx4 v[9:12], v[6:7], off", None),
            step("s_waitcnt vmcnt(1)", None),
            step("v_add_f32_e32 v1, v1, v8", None),
            step("global_load_dword v8, v[4:5], off", None),
            step("s_cbranch_execnz 65522", Some(0)),
        ];
        let shape = Shape::of_steps(&steps, amd_kind, true);
        assert_eq!(
            (shape.loops[0].loads, shape.loops[0].under_way, shape.loops[0].floats),
            (3, 20, 1)
        );
    }
}
