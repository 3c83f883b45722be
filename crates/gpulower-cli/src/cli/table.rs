//! Columns of text that fit the terminal, or 80 columns.

use std::io::{IsTerminal, stdout};

/// The width that tables are made for where there is no terminal.
pub const WIDTH: usize = 80;

/// The width of the terminal, if it is one that tables can be made for.
pub fn width() -> usize {
    let terminal = stdout()
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(stdout()).ok());
    let columns = terminal.flatten().map_or(0, |size| usize::from(size.ws_col));
    match columns {
        // Lines of text are hard to read beyond that.
        40..=160 => columns,
        161.. => 160,
        _ => WIDTH,
    }
}

/// Rows as aligned columns: the first `left` flush left, the others flush right. Where the rows are wider than
/// [`width`], cells of the first column are cut in the middle.
pub fn aligned(mut rows: Vec<Vec<String>>, left: usize) -> String {
    let widest = |rows: &[Vec<String>], column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(|column| widest(&rows, column)).collect();
    let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(total.saturating_sub(width())).max(8).min(*first);
        for cell in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *cell = cut(cell, *first);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The text in at most `width` characters: names of kernels differ at both ends, so the middle goes.
fn cut(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(3);
    let tail = kept / 2;
    let head: String = text.chars().take(kept - tail).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}...{tail}")
}

/// Words on lines of at most [`width`] columns, every line after `indent` spaces.
pub fn wrapped(text: &str, indent: usize) -> String {
    let most = width();
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > most {
            lines.push('\n');
            column = 0;
        }
        if column == 0 {
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    if column > 0 {
        lines.push('\n');
    }
    lines
}

/// A name, and words beside it on lines of at most [`WIDTH`] columns.
pub fn hanging(name: &str, words: &str) -> String {
    let indent = name.chars().count();
    let text = wrapped(words, indent);
    format!("{name}{}", text.get(indent..).unwrap_or("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![row(&["kernel", "target", "code"]), row(&["saxpy", "gfx942", "5"])];
        assert_eq!(aligned(rows, 2), "kernel  target  code\nsaxpy   gfx942     5\n");
    }

    #[test]
    fn long_names_are_cut_to_the_width() {
        let name = format!("head{}tail", "x".repeat(100));
        let text = aligned(vec![row(&[&name, "sm_90", "123"])], 2);
        assert_eq!(text.trim_end().chars().count(), WIDTH);
        assert!(
            text.starts_with("head") && text.contains("...") && text.contains("tail  sm_90  123"),
            "{text}"
        );
    }

    #[test]
    fn words_are_wrapped_and_indented() {
        let text = wrapped(&"word ".repeat(20), 2);
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.lines()
                .all(|line| line.starts_with("  word") && line.len() <= WIDTH)
        );
        assert_eq!(wrapped("", 2), "");
    }
}
