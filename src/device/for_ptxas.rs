//! What LLVM's PTX says in a way that ptxas does not take, or makes something else of.

use std::ops::Range;

use super::{
    constant_choices::{self, TruthValue},
    lost_negations::{self, Registers},
    narrow_stores::{self, Instruction},
    odd_parameters, small_extremes, wrapping_negations,
};

/// Another text for a part of a text.
struct Edit {
    range: Range<usize>,
    text: String,
}

/// The text with everything changed, in one pass over its lines. What a line is about shows in its first letter.
pub(super) fn rewritten(text: String) -> String {
    let mut edits = Vec::new();
    let mut body = 0;
    let (mut stores, mut negations, mut truths) = (Vec::new(), Vec::new(), Vec::new());
    let loses_negations = lost_negations::may_be_lost(&text);
    let mut is_users = false;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let range = end..end + line.len();
        end = range.end;
        let change = match line.trim_start().as_bytes().first() {
            // A body begins; the lines of inline assembly are the user's.
            Some(b'{') if !is_users && line == "{\n" => {
                edits.extend(narrow_stores_of(&text, body..range.start, std::mem::take(&mut stores)));
                edits.extend(lost_negations_of(
                    &text,
                    body..range.start,
                    std::mem::take(&mut negations),
                ));
                edits.extend(truth_values_of(&text, body..range.start, std::mem::take(&mut truths)));
                body = range.end;
                None
            }
            Some(b'/') => {
                is_users = line.contains("begin inline asm") || (is_users && !line.contains("end inline asm"));
                None
            }
            Some(b'@' | b's') if Instruction::parse(line).is_some_and(|one| one.is_narrow_store()) => {
                stores.push(range.clone());
                None
            }
            Some(b'n' | b's')
                if loses_negations && !is_users && (line.contains("neg.s32") || line.contains("sub.s32")) =>
            {
                negations.push(range.clone());
                None
            }
            Some(b's') if line.starts_with("\tselp.b") && !is_users && TruthValue::parse(line).is_some() => {
                truths.push(range.clone());
                None
            }
            Some(b's') => constant_choices::by_bits(line),
            Some(b'n') => wrapping_negations::as_difference(line),
            Some(b'm') => small_extremes::widened(line),
            Some(b'.') => odd_parameters::widened(line),
            _ => None,
        };
        edits.extend(change.map(|text| Edit { range, text }));
    }
    edits.extend(narrow_stores_of(&text, body..end, stores));
    edits.extend(lost_negations_of(&text, body..end, negations));
    edits.extend(truth_values_of(&text, body..end, truths));
    applied(text, edits)
}

/// Few bodies have any, of which few are of floats.
fn narrow_stores_of(text: &str, body: Range<usize>, stores: Vec<Range<usize>>) -> Vec<Edit> {
    if stores.is_empty() {
        return Vec::new();
    }
    let floats = narrow_stores::floats(text.get(body).unwrap_or_default());
    let edit = |range: Range<usize>| {
        let text = narrow_stores::through_untyped_registers(text.get(range.clone())?, &floats)?;
        Some(Edit { range, text })
    };
    stores.into_iter().filter_map(edit).collect()
}

/// Negations that a minimum or maximum gets. Few bodies have one.
fn lost_negations_of(text: &str, body: Range<usize>, negations: Vec<Range<usize>>) -> Vec<Edit> {
    let body = text.get(body).unwrap_or_default();
    if negations.is_empty() || !(body.contains("max.s32") || body.contains("min.s32")) {
        return Vec::new();
    }
    let registers = Registers::of(body);
    let edit = |range: Range<usize>| {
        let text = registers.as_complement(text.get(range.clone())?)?;
        Some(Edit { range, text })
    };
    negations.into_iter().filter_map(edit).collect()
}

/// Choices between 1 and 0 whose bits are taken for a float. Many bodies have such choices, hardly one such a use.
fn truth_values_of(text: &str, body: Range<usize>, truths: Vec<Range<usize>>) -> Vec<Edit> {
    if truths.is_empty() {
        return Vec::new();
    }
    let floats = constant_choices::bits_of_floats(text.get(body).unwrap_or_default());
    let edit = |range: Range<usize>| {
        let text = TruthValue::parse(text.get(range.clone())?)?.as_bits(&floats)?;
        Some(Edit { range, text })
    };
    truths.into_iter().filter_map(edit).collect()
}

/// Most texts have nothing to change.
fn applied(text: String, mut edits: Vec<Edit>) -> String {
    if edits.is_empty() {
        return text;
    }
    edits.sort_by_key(|edit| edit.range.start);
    let mut result = String::with_capacity(text.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut copied = 0;
    for edit in edits {
        result.push_str(text.get(copied..edit.range.start).unwrap_or_default());
        result.push_str(&edit.text);
        copied = edit.range.end;
    }
    result.push_str(text.get(copied..).unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(lines: &str) -> String {
        format!(
            ".visible .entry k()\n{{\n\t.reg .b16 \t%rs<4>;\n\t.reg .b32 \t%r<5>;\n\t.reg .b64 \t%rd<9>;\n\n{lines}\tret;\n}}\n"
        )
    }

    #[test]
    fn every_rule_applies_in_one_text() {
        let text = format!(
            "k(\n\t.param .u4 b\n)\n{}",
            body(
                "\tadd.rn.f64 \t%rd4, %rd3, %rd3;\n\tneg.s16 \t%rs2, %rs1;\n\tst.global.b32 \t[%rd2], %rd4;\n\
                 \tmax.s16 \t%rs3, %rs2, %rs1;\n\tselp.f32 \t%r2, 0f3F800000, 0f80000000, %p1;\n"
            )
        );
        let changed = rewritten(text);
        for part in [
            "\t.param .u8 b\n",
            "\tsub.u16 \t%rs2, 0, %rs1;\n\t{ .reg .b64 %low0; mov.b64 %low0, %rd4; st.global.b32 \t[%rd2], %low0; }\n\t{ .reg .b32 %wide<2>;",
            "\tselp.b32 \t%r2, 0x3F800000, 0x80000000, %p1;\n\tret;\n}\n",
        ] {
            assert!(changed.contains(part), "{part} in {changed}");
        }
    }

    #[test]
    fn the_low_half_of_a_float_is_moved_first() {
        let changed = rewritten(body(
            "\tselp.f64 \t%rd4, %rd3, 0d0000000000000000, %p1;\n\tst.global.b32 \t[%rd4+4], %rd4;\n",
        ));
        assert!(
            changed.contains("\t{ .reg .b64 %low0; mov.b64 %low0, %rd4; st.global.b32 \t[%rd4+4], %low0; }\n"),
            "{changed}"
        );
    }

    #[test]
    fn so_is_what_a_block_further_down_makes_and_what_is_stored_in_vectors() {
        let changed = rewritten(body(
            "\t@%p1 st.shared.v2.b8 \t[%r1], {%rs1, %rs11};\n\tadd.rn.f16 \t%rs1, %rs2, %rs3;\n",
        ));
        assert!(
            changed.contains(
                "\t{ .reg .b16 %low0; mov.b16 %low0, %rs1; @%p1 st.shared.v2.b8 \t[%r1], {%low0, %rs11}; }\n"
            ),
            "{changed}"
        );
    }

    #[test]
    fn braces_of_inline_assembly_end_no_body() {
        let changed = rewritten(body(
            "\t// begin inline asm\n{\nadd.rn.f64 %rd4, %rd3, %rd3;\n}\n\t// end inline asm\n\tst.global.b32 \t[%rd2], %rd4;\n",
        ));
        assert!(
            changed.contains("mov.b64 %low0, %rd4; st.global.b32 \t[%rd2], %low0; }\n"),
            "{changed}"
        );
    }

    #[test]
    fn integers_and_whole_floats_are_left_alone() {
        for lines in [
            "\tadd.s64 \t%rd4, %rd3, 1;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tadd.rn.f64 \t%rd4, %rd3, %rd3;\n\tst.global.b64 \t[%rd2], %rd4;\n",
            "\tcvt.rzi.s64.f64 \t%rd4, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tadd.rn.f64 \t%rd2, %rd3, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tsetp.lt.f64 \t%p4, %rd3, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
        ] {
            assert_eq!(rewritten(body(lines)), body(lines));
        }
    }

    #[test]
    fn registers_are_of_one_body() {
        let first = body("\tadd.rn.f64 \t%rd4, %rd3, %rd3;\n");
        let second = body("\tst.global.b32 \t[%rd2], %rd4;\n");
        let text = format!("{first}{second}");
        assert_eq!(rewritten(text.clone()), text);
    }
}
