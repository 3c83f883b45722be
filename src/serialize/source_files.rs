//! What NVIDIA's compilers write about source files.

use std::borrow::Cow;

/// A time and a size that are not asked for: ptxas takes zeros for none.
const TIME_AND_SIZE: &str = ", 1, 0";

/// PTX whose `.file` directives say when the files were changed. Where they do not, ptxas and nvPTXCompiler 13.0.88 look whether
/// there is such a file in the current directory, and write its time and size into the cubin: its bytes would depend on when a
/// source was checked out.
pub(super) fn with_times(ptx: &str) -> Cow<'_, str> {
    if !ptx.lines().any(is_without_time) {
        return Cow::Borrowed(ptx);
    }
    let mut text = String::with_capacity(ptx.len() + 64);
    for line in ptx.split_inclusive('\n') {
        if is_without_time(line) {
            let directive = line.trim_end();
            text.push_str(directive);
            text.push_str(TIME_AND_SIZE);
            text.push_str(line.get(directive.len()..).unwrap_or_default());
        } else {
            text.push_str(line);
        }
    }
    Cow::Owned(text)
}

/// Whether a line is `.file 1 "name"`, and nothing else.
fn is_without_time(line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix(".file") else {
        return false;
    };
    let named = rest
        .trim_start()
        .trim_start_matches(|digit: char| digit.is_ascii_digit());
    let name = named
        .trim_start()
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    rest.starts_with([' ', '\t']) && name.is_some_and(|name| !name.contains('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_times() {
        let ptx = ".version 8.0\n\t.file\t1 \"a b.mlir\"\r\n .file 2 \"c\", 5, 6\n.file 3 \"d\"";
        let expected = ".version 8.0\n\t.file\t1 \"a b.mlir\", 1, 0\r\n .file 2 \"c\", 5, 6\n.file 3 \"d\", 1, 0";
        assert_eq!(with_times(ptx), expected);
        for other in [".version 8.0\n", "// .file 1 \"x\"\n", ".filed 1 \"x\"", ".file 1 \"x"] {
            assert!(matches!(with_times(other), Cow::Borrowed(_)), "{other}");
        }
    }
}
