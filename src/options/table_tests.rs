use std::{env, fs, path::Path};

use super::*;

#[test]
fn rows_are_sound() {
    let mut names: Vec<&str> = DESCRIPTIONS.iter().flat_map(|option| option.names).copied().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name stands for one option");
    for option in DESCRIPTIONS {
        let name = option.name();
        let mut seen = Vec::new();
        for value in option.examples {
            let mut options = Options::default();
            options.set(name, value).expect("an example is a value");
            let encoded = option.encode(&options);
            assert!(!seen.contains(&encoded), "{name}={value} is encoded like another value");
            seen.push(encoded);
            let mut other = Options::default();
            other.carry_over(&options);
            assert_eq!(other, options, "{name}={value}");
        }
        let is_first_given = |value: &&str| {
            let mut options = Options::default();
            options.set(name, value).is_ok() && option.is_given(&options)
        };
        assert!(
            option.examples.iter().any(is_first_given),
            "{name} has an example that is not its default"
        );
        assert!(
            option.values == "WORDS" || Options::default().set(name, "sparkle").is_err(),
            "{name} refuses nothing"
        );
    }
}

#[test]
fn the_documentation_has_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/options.md");
    let text = fs::read_to_string(&path).expect("read");
    let (before, rest) = text
        .split_once("<!-- from src/options/table.rs -->\n")
        .expect("its beginning is marked");
    let (_, after) = rest.split_once("<!-- until here -->").expect("its end is marked");
    let generated = format!(
        "{before}<!-- from src/options/table.rs -->\n{}<!-- until here -->{after}",
        tables()
    );
    if env::var_os("GPULOWER_BLESS").is_some() {
        fs::write(&path, generated).expect("written");
    } else {
        assert!(
            text == generated,
            "docs/options.md is not what the table says: run this test with GPULOWER_BLESS=1"
        );
    }
}

fn tables() -> String {
    let code = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = "| option | values | default | NVIDIA | AMD |\n|---|---|---|---|---|\n".to_owned();
    for option in DESCRIPTIONS {
        let values = match option.meaning {
            "" if option.values == "true|false" => "switch".to_owned(),
            "" => code(option.examples),
            meaning => meaning.to_owned(),
        };
        let amd = if option.amd.is_empty() { "the same" } else { option.amd };
        text += &format!(
            "| {} | {values} | {} | {} | {amd} |\n",
            code(option.names),
            option.default,
            option.nvidia
        );
    }
    text += "| libraries | files | none | `--link FILE` (repeated), the pass option `l=A,B`, `Options::libraries` (files or bytes) | the same |\n";
    text += "\n| pass | options |\n|---|---|\n";
    for pass in [ATTACH, LOWER, SERIALIZE, EMBED] {
        let names: Vec<&str> = OptionDescription::of_pass(pass)
            .flat_map(|option| option.names)
            .copied()
            .collect();
        text += &format!("| `{pass}` | {} |\n", code(&names));
    }
    text
}
