//! Lines of the PTX that LLVM writes: one instruction each.

/// The opcode and the operands of a line with one instruction that has no predicate.
pub(super) fn instruction(line: &str) -> Option<(&str, &str)> {
    let (opcode, operands) = line.trim().strip_suffix(';')?.split_once(char::is_whitespace)?;
    Some((opcode, operands.trim()))
}

/// The first of several operands, which may be several registers in braces, and the others.
pub(super) fn divided(operands: &str) -> Option<(&str, &str)> {
    let end = if operands.starts_with('{') {
        operands.find('}')?
    } else {
        0
    };
    let (first, others) = operands.split_at(end + operands.get(end..)?.find(',')?);
    Some((first.trim(), others.strip_prefix(',')?.trim()))
}

/// The registers and numbers among operands.
pub(super) fn registers(operands: &str) -> impl Iterator<Item = &str> {
    operands
        .split([',', '{', '}', ' '])
        .filter(|operand| !operand.is_empty())
}
