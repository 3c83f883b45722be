//! Line tables (DWARF 2 to 4): those of the source, and those of the PTX text that the file has.

use super::CubinJoinError;
use super::part::Part;

/// The PTX text of a module, with a zero after each line.
const TEXT: &str = ".nv_debug_ptx_txt";

/// What a table without lines has since CUDA 13.2: the end of a sequence.
const END: [u8; 3] = [0, 1, 1];

/// A section of which every part has a piece at another place than in the part.
#[derive(Debug, Default, Clone)]
pub(super) struct Moved {
    pub contents: Vec<u8>,
    /// For each part, how far its bytes are moved, from which position on.
    moves: Vec<Vec<(u64, u64)>>,
}

impl Moved {
    /// Contents that nothing refers to by position.
    pub(super) fn new(contents: Vec<u8>) -> Self {
        let moves = Vec::new();
        Self { contents, moves }
    }

    /// Of a single part, what is moved how far.
    pub(super) fn of_one(moves: Vec<(u64, u64)>) -> Self {
        let (contents, moves) = (Vec::new(), vec![moves]);
        Self { contents, moves }
    }

    /// Where byte `offset` of a part is.
    pub(super) fn position(&self, part: usize, offset: u64) -> u64 {
        let moves = self.moves.get(part).map_or(&[] as &[_], Vec::as_slice);
        let last = moves.iter().rev().find(|(from, _)| *from <= offset);
        offset.wrapping_add(last.map_or(0, |(_, by)| *by))
    }
}

/// Where the call frames of each part are. Their contents are not known here.
pub(super) fn frames(parts: &[&Part<'_>], name: &str) -> Moved {
    let mut start = 0u64;
    let mut moves = Vec::with_capacity(parts.len());
    for part in parts {
        moves.push(vec![(0, start)]);
        let section = part.sections.iter().find(|section| section.name == name);
        start = start.saturating_add(section.map_or(0, |section| section.size));
    }
    let contents = Vec::new();
    Moved { contents, moves }
}

/// The lines of a part's PTX.
struct Text<'a> {
    lines: Vec<&'a [u8]>,
    /// How many there are before the first function.
    head: usize,
}

/// The PTX texts of the parts in one, and how far the lines of each part are moved; `None` if there are none.
pub(super) fn texts(parts: &[&Part<'_>]) -> Option<(Vec<u8>, Vec<usize>)> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        let section = part.sections.iter().find(|section| section.name == TEXT)?;
        let lines: Vec<&[u8]> = section.contents.strip_suffix(b"\0")?.split(|&byte| byte == 0).collect();
        let has_function = |line: &&[u8]| line.windows(6).any(|word| word == b".entry" || word == b".func ");
        let head = lines.iter().position(has_function).unwrap_or(lines.len());
        texts.push(Text { lines, head });
    }
    // What the parts start with is there once.
    let first = texts.first()?;
    let mut head = first.head;
    for text in &texts {
        let same = first
            .lines
            .iter()
            .zip(&text.lines)
            .take_while(|(one, other)| one == other)
            .count();
        head = head.min(same).min(text.head);
    }
    let mut whole: Vec<&[u8]> = first.lines.get(..head)?.to_vec();
    let mut moved = vec![0; parts.len()];
    for (text, moved) in texts.iter().zip(&mut moved).rev() {
        *moved = whole.len() - head;
        whole.extend(text.lines.get(head..)?);
    }
    let mut text = whole.join(&0);
    text.push(0);
    Some((text, moved))
}

/// The table `name` of all parts, with lines of each part moved by `lines`; `None` if no part has one.
pub(super) fn table(parts: &[&Part<'_>], name: &str, lines: &[usize]) -> Result<Option<Moved>, CubinJoinError> {
    let mut table = Moved::default();
    let mut header: Option<&[u8]> = None;
    let mut is_empty = false;
    for (index, part) in parts.iter().enumerate() {
        table.moves.push(Vec::new());
        let Some(section) = part.sections.iter().find(|section| section.name == name) else {
            continue;
        };
        let unknown = || CubinJoinError::unknown(index, format_args!("section `{name}`"));
        let program = Program::read(section.contents).ok_or_else(unknown)?;
        match header {
            None => {
                header = Some(program.header);
                table.contents.extend_from_slice(program.header);
            }
            // Its length is that of the part; the names of source files have to be the same.
            Some(header) if header.get(4..) == program.header.get(4..) => {}
            Some(_) => {
                let what = format_args!("header of section `{name}`");
                return Err(CubinJoinError::differs(index, what));
            }
        }
        if program.code == END && parts.len() > 1 {
            is_empty |= table.contents.len() == program.header.len();
            continue;
        }
        let by = lines.get(index).copied().unwrap_or(0);
        let moves = program.append(&mut table.contents, by).ok_or_else(unknown)?;
        if let Some(last) = table.moves.last_mut() {
            *last = moves;
        }
    }
    if is_empty && header.is_some_and(|header| header.len() == table.contents.len()) {
        table.contents.extend_from_slice(&END);
    }
    let size = u32::try_from(table.contents.len().saturating_sub(4)).unwrap_or(u32::MAX);
    if let Some(length) = table.contents.first_chunk_mut::<4>() {
        *length = size.to_le_bytes();
    }
    Ok(header.is_some().then_some(table))
}

/// A line number program and its header.
struct Program<'a> {
    header: &'a [u8],
    code: &'a [u8],
    /// How many operands the standard instructions have, from 1 on.
    operands: &'a [u8],
}

impl<'a> Program<'a> {
    fn read(table: &'a [u8]) -> Option<Self> {
        let version = u16::from_le_bytes(*table.get(4..)?.first_chunk()?);
        let length = u32::from_le_bytes(*table.get(6..)?.first_chunk()?);
        let (header, code) = table.split_at_checked(usize::try_from(length).ok()?.checked_add(10)?)?;
        // Smallest instruction, for version 4 operations for each, whether lines are statements, two numbers about lines.
        let first = if version >= 4 { 15 } else { 14 };
        let count = usize::from(*header.get(first)?).checked_sub(1)?;
        let operands = header.get(first + 1..)?.get(..count)?;
        (2..=4).contains(&version).then_some(Self { header, code, operands })
    }

    /// Appends the program with lines moved by `by`, and says how far its bytes are moved. Each sequence starts with the
    /// address of a function, and a line relative to 1.
    fn append(&self, table: &mut Vec<u8>, by: usize) -> Option<Vec<(u64, u64)>> {
        let mut moves = Vec::new();
        let mut reader = self.code;
        let mut is_at_start = true;
        let moved = |position: usize, table: &[u8]| {
            let old = (self.header.len() + position) as u64;
            (old, (table.len() as u64).wrapping_sub(old))
        };
        while let Some((&opcode, rest)) = reader.split_first() {
            let position = self.code.len() - reader.len();
            if is_at_start
                && moves
                    .last()
                    .is_none_or(|&(old, _)| old != (self.header.len() + position) as u64)
            {
                moves.push(moved(position, table));
            }
            let mut after = rest;
            match opcode {
                0 => {
                    let size = usize::try_from(unsigned(&mut after)?).ok()?;
                    let (instruction, next) = after.split_at_checked(size)?;
                    after = next;
                    // The end of a sequence.
                    is_at_start |= instruction == [1];
                }
                // The first line of a sequence.
                3 if is_at_start => {
                    let line = signed(&mut after)?.checked_add(i64::try_from(by).ok()?)?;
                    table.push(opcode);
                    write_signed(table, line);
                    is_at_start = false;
                    reader = after;
                    continue;
                }
                9 => after = after.get(2..)?,
                _ => match self.operands.get(usize::from(opcode) - 1) {
                    Some(operands) => {
                        for _ in 0..*operands {
                            unsigned(&mut after)?;
                        }
                    }
                    // It changes the line, which was not set.
                    None if is_at_start && by > 0 => return None,
                    None => {}
                },
            }
            table.extend_from_slice(reader.get(..reader.len() - after.len())?);
            reader = after;
        }
        Some(moves)
    }
}

/// An LEB128 number, which is taken from `bytes`.
fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let size = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (number, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    let digits = number.iter().rev();
    (size <= 9).then(|| digits.fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}

fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let before = bytes.len();
    let value = i64::try_from(unsigned(bytes)?).ok()?;
    let bits = 7 * u32::try_from(before - bytes.len()).ok()?;
    Some(value << (64 - bits) >> (64 - bits))
}

fn write_signed(bytes: &mut Vec<u8>, mut value: i64) {
    loop {
        let digit = (value & 0x7f) as u8;
        value >>= 7;
        let is_last = value == if digit & 0x40 == 0 { 0 } else { -1 };
        bytes.push(if is_last { digit } else { digit | 0x80 });
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for value in [0, 1, 63, 64, -1, -64, -65, 8191, 8192, 1_000_000, -1_000_000] {
            let mut bytes = Vec::new();
            write_signed(&mut bytes, value);
            let mut rest = bytes.as_slice();
            assert_eq!(signed(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
        assert_eq!(unsigned(&mut [0x80].as_slice()), None);
        assert_eq!(unsigned(&mut [0xff; 20].as_slice()), None);
    }
}
