//! Shuffles against a model: what they are lowered to is executed here, lane by lane.

use std::{collections::HashMap, fmt::Write};

use super::input;
use crate::{bridge::mlir, device::lower::lower, options::Options, target::Target};

/// A value that no instruction gave: what an inactive lane's register holds.
const GARBAGE: u128 = 0xDEAD_BEEF;

/// What a subgroup does, by the vendors' manuals.
#[derive(Clone, Copy)]
struct Wave {
    target: &'static str,
    lanes: usize,
    /// Lanes that `ds_bpermute` reaches.
    reach: usize,
}

const WAVES: &[Wave] = &[
    wave("sm_90", 32, 32),
    wave("gfx942", 64, 64),
    wave("gfx1030", 64, 32),
    wave("gfx1100", 32, 32),
    wave("gfx1100", 64, 32),
    wave("gfx1201", 64, 64),
];

const fn wave(target: &'static str, lanes: usize, reach: usize) -> Wave {
    Wave { target, lanes, reach }
}

/// A value of each lane: one number, or a pair.
type Lanes = Vec<[u128; 2]>;

/// Lowers a module of functions, and returns their bodies' lines by name.
fn lowered(wave: Wave, functions: &str) -> HashMap<String, Vec<Operation>> {
    let context = input::context();
    let text = format!("gpu.module @m {{\n{functions}}}\n");
    let mut module = input::parse(&context, "shuffles.mlir", text.as_bytes()).expect("parses");
    let target: Target = wave.target.parse().expect("a target");
    let mut options = Options::default();
    if let Target::Amd(_) = target {
        options.set("wave-size", &wave.lanes.to_string()).expect("an option");
    }
    let resolved = options.resolve(&target, None).expect("resolves");
    lower(&mut module, &resolved).expect("lowers");
    let mut bodies = HashMap::new();
    let mut name = String::new();
    let mut slots = HashMap::new();
    for line in mlir::shown(&module.as_operation()).lines() {
        let line = line.trim();
        if let Some((_, rest)) = line.split_once("llvm.func @") {
            name = rest.split('(').next().unwrap_or_default().to_owned();
            bodies.insert(name.clone(), Vec::new());
            slots = (0..3).map(|index| (format!("arg{index}"), index)).collect();
        } else if let Some(body) = bodies.get_mut(&name)
            && (line.starts_with('%') || line.starts_with("llvm.return"))
        {
            body.push(read(line, &mut slots));
        }
    }
    bodies
}

/// The `%` names in a line.
fn names(line: &str) -> Vec<&str> {
    let part = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    line.split('%').skip(1).map(|text| &text[..part(text)]).collect()
}

/// Bits of the type at the end of a line.
fn bits(line: &str, name: &str) -> u32 {
    if name == "llvm.icmp" {
        return 1;
    }
    let end = line
        .trim_end_matches(')')
        .rsplit([' ', '>'])
        .find_map(|word| word.strip_prefix('i')?.parse().ok());
    end.unwrap_or_else(|| panic!("no type: {line}"))
}

fn cut(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

/// One operation, read.
struct Operation {
    result: usize,
    name: String,
    /// What follows the name.
    detail: String,
    operands: Vec<usize>,
    bits: u32,
    constant: u128,
}

fn read(line: &str, slots: &mut HashMap<String, usize>) -> Operation {
    let mut slot = |name: &str| {
        let next = slots.len();
        *slots.entry(name.to_owned()).or_insert(next)
    };
    let (result, right) = line.split_once(" = ").unwrap_or(("", line));
    let end = right.find([' ', '(']).unwrap_or(right.len());
    let (name, detail) = right.split_at(end);
    let is_constant = name == "llvm.mlir.constant";
    let constant = match detail
        .trim_start_matches('(')
        .split([')', ' '])
        .next()
        .unwrap_or_default()
    {
        "true" if is_constant => 1,
        "false" if is_constant => 0,
        number if is_constant => number.parse::<i128>().unwrap_or_else(|_| panic!("a number: {line}")) as u128,
        _ => 0,
    };
    let has_bits = !result.is_empty() && (!line.ends_with('>') || name.starts_with("nvvm.read"));
    Operation {
        result: slot(result.trim_start_matches('%')),
        name: name.to_owned(),
        detail: detail.trim_start().to_owned(),
        operands: names(right).into_iter().map(&mut slot).collect(),
        bits: if has_bits { bits(line, name) } else { 128 },
        constant,
    }
}

/// Executes a function for the lanes that are active.
fn execute(wave: Wave, body: &[Operation], arguments: [&[u128]; 3], active: usize) -> Lanes {
    let numbers = |argument: &[u128]| argument.iter().map(|&number| [number, 0]).collect();
    let mut values: Vec<Lanes> = arguments.into_iter().map(numbers).collect();
    for operation in body {
        if operation.name == "llvm.return" {
            return values.swap_remove(operation.operands[0]);
        }
        let operands: Vec<&Lanes> = operation.operands.iter().map(|&slot| &values[slot]).collect();
        let mut lanes = vec![[GARBAGE; 2]; wave.lanes];
        for (lane, value) in lanes.iter_mut().enumerate().take(active) {
            *value = step(wave, operation, &operands, lane, active);
        }
        values.resize(values.len().max(operation.result + 1), Vec::new());
        values[operation.result] = lanes;
    }
    panic!("no return");
}

/// What one lane gets from an operation.
fn step(wave: Wave, operation: &Operation, operands: &[&Lanes], lane: usize, active: usize) -> [u128; 2] {
    let at = |index: usize| operands[index][lane][0];
    let second = || usize::from(operation.detail.contains("[1]"));
    let number = match operation.name.as_str() {
        "llvm.mlir.constant" => operation.constant,
        "llvm.mlir.undef" | "llvm.mlir.poison" => return [GARBAGE; 2],
        "llvm.add" => at(0).wrapping_add(at(1)),
        "llvm.sub" => at(0).wrapping_sub(at(1)),
        "llvm.and" => at(0) & at(1),
        "llvm.or" => at(0) | at(1),
        "llvm.xor" => at(0) ^ at(1),
        "llvm.shl" => at(0) << at(1),
        "llvm.lshr" => at(0) >> at(1),
        "llvm.zext" | "llvm.trunc" => at(0),
        "llvm.sext" => {
            assert!(at(0) < 64, "lane numbers alone, which are positive");
            at(0)
        }
        "llvm.intr.umin" => at(0).min(at(1)),
        "llvm.select" => at(if at(0) == 1 { 1 } else { 2 }),
        "llvm.icmp" if operation.detail.starts_with("\"ult\"") => return [(at(0) < at(1)).into(), 0],
        "llvm.icmp" if operation.detail.starts_with("\"ugt\"") => return [(at(0) > at(1)).into(), 0],
        "llvm.icmp" if operation.detail.starts_with("\"eq\"") => return [(at(0) == at(1)).into(), 0],
        "llvm.extractvalue" => return [operands[0][lane][second()], 0],
        "llvm.insertvalue" => {
            let mut pair = operands[1][lane];
            pair[second()] = at(0);
            return pair;
        }
        "nvvm.read.ptx.sreg.laneid" => lane as u128,
        "rocdl.mbcnt.lo" => at(1) + lane.min(32) as u128,
        "rocdl.mbcnt.hi" => at(1) + lane.saturating_sub(32) as u128,
        "rocdl.ds_bpermute" => {
            let from = (at(0) / 4) as usize % wave.reach + lane / wave.reach * wave.reach;
            if from < active { operands[1][from][0] } else { GARBAGE }
        }
        "rocdl.readlane" => operands[0][at(1) as usize % wave.lanes][0],
        "nvvm.shfl.sync" => return shfl(&operation.detail, operands, lane, active),
        other => panic!("an operation that is not expected here: {other}"),
    };
    [cut(number, operation.bits), 0]
}

/// `shfl.sync`, from the PTX ISA.
fn shfl(kind: &str, operands: &[&Lanes], lane: usize, active: usize) -> [u128; 2] {
    let [mask, b, c] = [0, 2, 3].map(|index| operands[index][lane][0]);
    assert!(mask >> lane & 1 == 1, "lane {lane} is not in its mask {mask:x}");
    assert!(mask >> active == 0, "lane {lane} waits for lanes that never come");
    for other in (0..active).filter(|other| mask >> other & 1 == 1) {
        assert_eq!(
            operands[0][other][0], mask,
            "lanes {lane} and {other} wait for different lanes"
        );
    }
    let (lane, b) = (lane as i64, (b & 31) as i64);
    let segment = (c >> 8 & 31) as i64;
    let low = lane & segment;
    let bound = low | (c & 31) as i64 & !segment;
    let (from, valid) = match kind.split(' ').next() {
        Some("up") => (lane - b, lane - b >= bound),
        Some("down") => (lane + b, lane + b <= bound),
        Some("bfly") => (lane ^ b, lane ^ b <= bound),
        Some("idx") => (low | b & !segment, (low | b & !segment) <= bound),
        _ => panic!("{kind}"),
    };
    let from = if valid { from as usize } else { lane as usize };
    [
        if mask >> from & 1 == 1 {
            operands[1][from][0]
        } else {
            GARBAGE
        },
        valid.into(),
    ]
}

/// The lane that a shuffle reads, if there is one (`mlir/include/mlir/Dialect/GPU/IR/GPUOps.td`, `gpu.shuffle`).
fn model(mode: &str, lane: usize, offset: u32, width: usize) -> Option<usize> {
    let lane = u32::try_from(lane).expect("a lane");
    let from = match mode {
        "xor" => lane ^ offset,
        "up" => lane.wrapping_sub(offset),
        "down" => lane.wrapping_add(offset),
        _ => offset,
    } as usize;
    ((lane as usize) < width && from < width).then_some(from)
}

fn check(wave: Wave, mode: &str, body: &[Operation], offset: u32, width: usize, bits: u32) {
    let value = |lane: usize| {
        cut(
            0x0123_4567_89AB_CDEF_0011_2233_4455_6677_u128.rotate_left(lane as u32 * 2) ^ lane as u128,
            bits,
        )
    };
    let all = |number: u128| vec![number; wave.lanes];
    // All lanes are here, or those that have to be.
    for active in [wave.lanes, width].into_iter().take(1 + usize::from(offset % 2 == 1)) {
        let mut own: Vec<u128> = (0..wave.lanes).map(value).collect();
        own[active..].fill(GARBAGE);
        let result = execute(wave, body, [&own, &all(offset.into()), &all(width as u128)], active);
        for (lane, &[got, valid]) in result.iter().enumerate().take(active) {
            let what = || {
                format!(
                    "{} lanes of {}: {mode} by {offset} of {width}, lane {lane}, {active} active",
                    wave.lanes, wave.target
                )
            };
            match model(mode, lane, offset, width) {
                Some(from) => assert_eq!((got, valid), (value(from), 1), "{}", what()),
                None => assert_eq!(valid, 0, "{}", what()),
            }
        }
    }
}

fn function(name: &str, mode: &str, bits: u32, offset: Option<u32>, width: Option<usize>) -> String {
    let mut text = format!("func.func @{name}(%v: i{bits}, %o: i32, %w: i32) -> (i{bits}, i1) {{\n");
    let mut operand = |name: &str, constant: Option<i64>| match constant {
        Some(value) => {
            writeln!(text, "%{name}c = arith.constant {value} : i32").expect("writes");
            format!("%{name}c")
        }
        None => format!("%{name}"),
    };
    let (offset, width) = (
        operand("o", offset.map(i64::from)),
        operand("w", width.map(|width| width as i64)),
    );
    writeln!(
        text,
        "%r, %ok = gpu.shuffle {mode} %v, {offset}, {width} : i{bits}\nreturn %r, %ok : i{bits}, i1\n}}"
    )
    .expect("writes");
    text
}

const MODES: [&str; 4] = ["xor", "up", "down", "idx"];

#[test]
fn shuffles_follow_the_model_whatever_is_known_of_them() {
    const OFFSETS: &[u32] = &[0, 1, 7, 16, 31, 32, 33, 64, 0x8000_0000, u32::MAX];
    for &wave in WAVES {
        let widths: Vec<usize> = [1, 2, 3, 5, 8, 10, 16, 17, 31, 32, 33, 42, 64]
            .into_iter()
            .filter(|&width| width <= wave.lanes)
            .collect();
        let mut text = String::new();
        for mode in MODES {
            text += &function(&format!("{mode}_"), mode, 32, None, None);
            for &width in &widths {
                text += &function(&format!("{mode}_w{width}"), mode, 32, None, Some(width));
            }
            for &offset in OFFSETS.iter().filter(|&&offset| offset < 70) {
                text += &function(&format!("{mode}_o{offset}"), mode, 32, Some(offset), None);
                text += &function(
                    &format!("{mode}_o{offset}_all"),
                    mode,
                    32,
                    Some(offset),
                    Some(wave.lanes),
                );
            }
        }
        let bodies = lowered(wave, &text);
        for mode in MODES {
            for width in 1..=wave.lanes {
                for offset in [1, 13, width as u32 - 1, width as u32] {
                    check(wave, mode, &bodies[&format!("{mode}_")], offset, width, 32);
                }
            }
            for &width in &widths {
                for &offset in OFFSETS {
                    check(wave, mode, &bodies[&format!("{mode}_w{width}")], offset, width, 32);
                }
            }
            for &offset in OFFSETS.iter().filter(|&&offset| offset < 70) {
                for width in [1, 3, 16, wave.lanes - 1, wave.lanes] {
                    check(wave, mode, &bodies[&format!("{mode}_o{offset}")], offset, width, 32);
                }
                check(
                    wave,
                    mode,
                    &bodies[&format!("{mode}_o{offset}_all")],
                    offset,
                    wave.lanes,
                    32,
                );
            }
        }
    }
}

#[test]
fn shuffles_move_integers_of_every_width() {
    for &wave in WAVES {
        let widths = [1, 7, 8, 16, 31, 33, 48, 64, 96, 100];
        let text: String = widths
            .iter()
            .map(|&bits| function(&format!("i{bits}"), "up", bits, Some(3), Some(20)))
            .collect();
        let bodies = lowered(wave, &text);
        for bits in widths {
            check(wave, "up", &bodies[&format!("i{bits}")], 3, 20, bits);
        }
    }
}
