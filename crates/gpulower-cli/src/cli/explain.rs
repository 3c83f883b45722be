//! `gpulower --explain E0401`.

use gpulower::ErrorKind;

use super::{Failed, text_to_stdout};

pub fn run(code: Option<&str>) -> Result<(), Failed> {
    let Some(code) = code else {
        return Err(Failed::Usage("name a command, such as compile".to_owned()));
    };
    let Some(kind) = ErrorKind::ALL
        .into_iter()
        .find(|kind| kind.code().eq_ignore_ascii_case(code))
    else {
        let codes: Vec<String> = ErrorKind::ALL
            .iter()
            .map(|kind| format!("  {}  {}", kind.code(), kind.meaning()))
            .collect();
        return Err(Failed::Usage(format!(
            "there is no code '{code}'. The codes are:\n{}",
            codes.join("\n")
        )));
    };
    let mut text = format!("{}: {}\n", kind.code(), kind.meaning());
    if !kind.advice().is_empty() {
        text.push_str(&format!("\nWhat to do: {}\n", kind.advice().replace('`', "")));
    }
    text_to_stdout(&text)
}
