//! Words of a shell's command line, for commands that people are shown.

use std::fmt::Write;

/// A word as a shell reads it. What would control a terminal is written with escapes (`$'...'`: bash, zsh, ksh, busybox).
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./+,:=@".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    if word.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || word.chars().all(char::is_alphanumeric) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = "$'".to_owned();
    for character in word.chars() {
        match character {
            '\'' | '\\' => text.extend(['\\', character]),
            ' '..='~' => text.push(character),
            letter if letter.is_alphanumeric() => text.push(letter),
            other => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    // Three digits: what follows is not taken for one.
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_word_that_was_meant() {
        for word in [
            "",
            "plain-1.o",
            "it's",
            "a b",
            "$(touch x)`y`",
            "größe",
            "a\u{1b}[31m\n1'\\",
            "\u{9b}1\u{202e}2",
            "-n",
        ] {
            let quoted = quoted(word);
            assert!(!quoted.contains(|character: char| character.is_control()), "{quoted}");
            let script = format!("printf %s {quoted}");
            let output = std::process::Command::new("bash")
                .args(["-c", &script])
                .output()
                .expect("bash");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word, "{script}");
        }
    }
}
