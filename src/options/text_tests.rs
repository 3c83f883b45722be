use std::time::Duration;

use super::*;
use crate::options::Compression;

fn options(pairs: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in pairs {
        options.set(name, value).expect("a valid option");
    }
    options
}

#[test]
fn every_described_option_survives_the_textual_form() {
    let values = [
        ("O", "1"),
        ("speed", "fast"),
        ("input-optimized", "true"),
        ("llvm-passes", "function(sroa,early-cse)"),
        ("fast", "true"),
        ("ftz", "false"),
        ("prec-sqrt", "false"),
        ("prec-div", "true"),
        ("fp-contract", "off"),
        ("max-registers", "64"),
        ("wave-size", "32"),
        ("coarse-grained-memory", "true"),
        ("code-object-version", "6"),
        ("debug", "line-tables"),
        ("debug-prefix-map", "/home/me/=,/a=/b"),
        ("ptx", "8.3"),
        ("ptx-compiler", "ptxas"),
        ("ptxas-options", "-v --def-load-cache=cg"),
        ("include-ptx", "newest"),
        ("compress", "zstd"),
        ("index-bitwidth", "32"),
        ("bare-pointers", "true"),
        ("interleave", "8"),
        ("spill-warning", "16"),
        ("time-limit", "30"),
        ("memory-limit", "2048"),
        ("isolation", "worker"),
    ];
    let described: Vec<&str> = DESCRIPTIONS.iter().map(OptionDescription::name).collect();
    let listed: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, listed, "the test covers every option");
    let set = options(&values);
    let pairs = set.to_pairs();
    let again: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(options(&again), set);
    assert_eq!(again, values);
}

#[test]
fn wrong_names_and_values_are_refused() {
    let mut options = Options::default();
    let message = |result: Result<(), OptionError>| result.expect_err("refused").to_string();
    assert_eq!(
        message(options.set("max-register", "3")),
        "unknown option 'max-register' (did you mean max-registers?)"
    );
    assert_eq!(
        message(options.set("O", "4")),
        "option 'O' cannot be '4': expected 0|1|2|3"
    );
    assert_eq!(
        message(options.set("debug", "yes")),
        "option 'debug' cannot be 'yes': expected none|line-tables|full"
    );
    for value in ["", "/a", "=/b", "/a=/b,"] {
        let expected = format!("option 'debug-prefix-map' cannot be '{value}': expected `OLD=NEW`, ");
        assert!(message(options.set("debug-prefix-map", value)).starts_with(&expected));
    }
    for value in [
        "print",
        "function(dot-cfg)",
        "view-callgraph",
        "cgscc(print<x>,inline)",
        "sroa<modify-cfg,print>",
        "function<eager-inv(print)",
        "mergefunc",
        "trigger-crash-module",
    ] {
        let expected =
            format!("option 'llvm-passes' cannot be '{value}': expected optimizations, as `opt -passes` takes them");
        assert_eq!(message(options.set("llvm-passes", value)), expected);
    }
    assert!(options.set("llvm-passes", &"function(".repeat(100)).is_err());
    assert_eq!(
        message(options.set("max-registers", "0")),
        "option 'max-registers' cannot be '0': expected a number from 1 to 2147483647"
    );
    for wrong in ["0", "-1", "soon", "inf", "NaN"] {
        assert_eq!(
            message(options.set("time-limit", wrong)),
            format!("option 'time-limit' cannot be '{wrong}': expected seconds above 0, such as 30 or 0.5")
        );
    }
    assert_eq!(
        message(options.set("memory-limit", "0")),
        "option 'memory-limit' cannot be '0': expected MiB above 0, or bytes with a `B` behind the number"
    );
    assert_eq!(
        message(options.set("isolation", "jail")),
        "option 'isolation' cannot be 'jail': expected in-process|worker"
    );
}

#[test]
fn whatever_the_value_its_text_is_read_as_the_same() {
    // A generator of our own, so that a failure comes again.
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    const PIECES: [&str; 14] = [
        "a", "=", ",", "\\", " ", "\"", "'", "\"\"", "\t", "\n", "\0", "ä", "\u{2003}", "-v",
    ];
    for _ in 0..20_000 {
        let mut text = || (0..random(5)).map(|_| PIECES[random(14) as usize]).collect::<String>();
        let words = [text(), text(), text()];
        let map = [(format!("x{}", text()), text()), (format!("={}", text()), text())];
        let count = random(4) as usize;
        let seconds = random(u64::MAX).checked_shr(random(64) as u32).unwrap_or_default();
        let limit = Duration::new(seconds, random(1_000_000_000) as u32);
        let set = Options {
            ptxas_options: words.into_iter().take(count).collect(),
            debug_prefix_map: map.into_iter().take(count).collect(),
            time_limit: Some(limit).filter(|limit| !limit.is_zero()),
            memory_limit: Some(random(u64::MAX)).filter(|limit| *limit > 0),
            compression: Some(Compression::Zstd {
                level: random(22) as i32 + 1,
            }),
            ..Options::default()
        };
        let pairs = set.to_pairs();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(options(&pairs), set, "{pairs:?}");
    }
    let longest = Options {
        time_limit: Some(Duration::MAX),
        memory_limit: Some(u64::MAX),
        ..Options::default()
    };
    let pairs = longest.to_pairs();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(options(&pairs), longest);
}

#[test]
fn a_backslash_that_escapes_nothing_stands_for_itself() {
    let set = options(&[
        ("debug-prefix-map", r"C:\src=/src"),
        ("ptxas-options", r"-Da=\x  a\ b ''"),
    ]);
    assert_eq!(set.debug_prefix_map, [(r"C:\src".to_owned(), "/src".to_owned())]);
    assert_eq!(set.ptxas_options, [r"-Da=\x", "a b", "''"]);
}
