//! Vectors in textual LLVM IR: `splat (i32 1)`, which LLVM 17 and older do not read, in full.

/// The text with every `splat` written in full; none if the length of one cannot be found.
///
/// The length is in a type in front: `<4 x i32> splat (i32 1)`, or earlier in the line, as in
/// `add <4 x i32> %a, splat (i32 1)`.
#[must_use]
pub fn written_in_full(text: &str) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.contains("splat (") {
            write_line(line, &mut written)?;
        } else {
            written.push_str(line);
        }
    }
    Some(written)
}

fn write_line(line: &str, written: &mut String) -> Option<()> {
    // Vector types of this line: length and element.
    let mut vectors: Vec<(usize, &str)> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = token(rest, first);
        let (word, behind) = rest.split_at_checked(length)?;
        if word == "splat" && behind.starts_with(" (") {
            let (number, behind) = behind.strip_prefix(" (")?.split_once(')')?;
            let (element, _) = number.rsplit_once(' ')?;
            let (length, _) = vectors.iter().rev().find(|(_, known)| *known == element)?;
            written.push('<');
            written.push_str(&vec![number; *length].join(", "));
            written.push('>');
            rest = behind;
            continue;
        }
        if first == '<' {
            vectors.extend(vector_type(rest));
        }
        written.push_str(word);
        rest = behind;
    }
    Some(())
}

/// The length in bytes of the token at the start. Strings and comments are one token each, and so are names with what marks
/// them as such.
fn token(rest: &str, first: char) -> usize {
    let named = matches!(first, '%' | '@' | '!' | '$' | '#');
    let after = if named { &rest[1..] } else { rest };
    let in_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-' | '$');
    let length = match after.chars().next() {
        Some('"') => after[1..].find('"').map_or(after.len(), |end| end + 2),
        Some(';') if !named => after.len(),
        Some(next) if in_word(next) => after.find(|next| !in_word(next)).unwrap_or(after.len()),
        Some(next) if !named => next.len_utf8(),
        _ => 0,
    };
    length + usize::from(named)
}

/// Length and element of a vector type at the start, such as `<4 x i32>`.
fn vector_type(rest: &str) -> Option<(usize, &str)> {
    let (inner, _) = rest.strip_prefix('<')?.split_once('>')?;
    let (length, element) = inner.split_once(" x ")?;
    Some((length.parse().ok()?, element))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(line: &str) -> String {
        written_in_full(line).expect(line)
    }

    #[test]
    fn the_length_comes_from_the_type() {
        assert_eq!(
            full("@v = constant <2 x i16> splat (i16 -1)\n"),
            "@v = constant <2 x i16> <i16 -1, i16 -1>\n"
        );
        assert_eq!(
            full("  %a = add <4 x i32> %b, splat (i32 7)\n"),
            "  %a = add <4 x i32> %b, <i32 7, i32 7, i32 7, i32 7>\n"
        );
        assert_eq!(
            full("  %a = phi <2 x half> [ splat (half 0xH3C00), %b ], [ %c, %d ]"),
            "  %a = phi <2 x half> [ <half 0xH3C00, half 0xH3C00>, %b ], [ %c, %d ]"
        );
        assert_eq!(
            full("call void @f(<3 x i1> splat (i1 true), <2 x float> splat (float 1.000000e+00), <3 x i1> %x)"),
            "call void @f(<3 x i1> <i1 true, i1 true, i1 true>, <2 x float> <float 1.000000e+00, float 1.000000e+00>, \
             <3 x i1> %x)"
        );
        // Of two lengths the last before it counts.
        assert_eq!(
            full("  %x = bitcast <2 x i8> %a to <1 x i16>\n  %y = icmp eq <2 x i8> %a, splat (i8 1)"),
            "  %x = bitcast <2 x i8> %a to <1 x i16>\n  %y = icmp eq <2 x i8> %a, <i8 1, i8 1>"
        );
    }

    #[test]
    fn strings_names_and_comments_stay() {
        for line in [
            "@\"splat (i32 1)\" = global i32 0 ; <2 x i32> splat (i32 1)\n",
            "@s = constant [13 x i8] c\"splat (i32 1)\"\n",
            "!0 = !{!\"<2 x i32> splat (i32 1)\"}\n",
            "  call void @splat (i32 1)\n",
            "  %splat = add i32 %a, 1 ; splat (i32 1)\n",
        ] {
            assert_eq!(full(line), line);
        }
    }

    #[test]
    fn without_a_type_there_is_no_text() {
        assert_eq!(written_in_full("  ret <2 x i32> splat (i64 1)"), None);
    }
}
