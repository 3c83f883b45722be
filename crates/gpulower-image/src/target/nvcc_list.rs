//! Lists as nvcc 13.0 reads them from one argument, with its quotes and brackets.

/// A character that opens something and is not followed by what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stray(pub char);

/// Splits an argument at its commas, those within double quotes excepted, and within square brackets where the option takes
/// them. Quotes and brackets are dropped, blanks around an item too, and empty items.
///
/// Observed with nvcc 13.0.88: brackets may be nested and stand anywhere, a lone `]` is text, a backslash is text but before
/// a quote within quotes, and the only blanks are space and tab.
pub(super) fn split(argument: &str, brackets: bool) -> Result<Vec<String>, Stray> {
    let (mut items, mut item) = (Vec::new(), String::new());
    let (mut quoted, mut depth) = (false, 0_usize);
    let mut characters = argument.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                item.push('"');
            }
            '"' => quoted = !quoted,
            '[' if brackets && !quoted => depth += 1,
            ']' if brackets && !quoted && depth > 0 => depth -= 1,
            ',' if !quoted && depth == 0 => items.push(std::mem::take(&mut item)),
            other => item.push(other),
        }
    }
    items.push(item);
    if quoted {
        return Err(Stray('"'));
    }
    if depth > 0 {
        return Err(Stray('['));
    }
    let blank = [' ', '\t'];
    Ok(items
        .iter()
        .map(|item| item.trim_matches(blank))
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_brackets_hold_together() {
        for (argument, items) in [
            ("a=b,c=[d,e]", vec!["a=b", "c=d,e"]),
            ("a=\"b,c\", d", vec!["a=b,c", "d"]),
            ("a=[b,[c,\"d\"]]", vec!["a=b,c,d"]),
            ("a=\"[b,c]\"", vec!["a=[b,c]"]),
            ("a=b]", vec!["a=b]"]),
            (",, a\t,,", vec!["a"]),
            ("a\\,b", vec!["a\\", "b"]),
            ("\"a\\\"b\"", vec!["a\"b"]),
            ("", vec![]),
        ] {
            let items: Vec<String> = items.into_iter().map(str::to_owned).collect();
            assert_eq!(split(argument, true), Ok(items), "{argument}");
        }
        assert_eq!(split("[a,b]", false), Ok(vec!["[a".to_owned(), "b]".to_owned()]));
    }

    #[test]
    fn what_is_left_open_is_named() {
        for (argument, stray) in [
            ("[a", '['),
            ("a[[b]", '['),
            ("\"a", '"'),
            ("\\\"a\\\"", '"'),
            ("[\"a],b\"", '['),
        ] {
            assert_eq!(split(argument, true), Err(Stray(stray)), "{argument}");
        }
    }
}
