//! Archives that LLVM's archiver makes.

use super::*;
use gpulower_testing::amd::tool;

/// An archive of two files made by `llvm-ar` in one dialect.
fn archive(format: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let long = "a_file_with_a_name_of_more_than_sixteen_characters.txt";
    std::fs::write(directory.path().join("short.o"), "odd").unwrap();
    std::fs::write(directory.path().join(long), "contents").unwrap();
    let status = std::process::Command::new(tool("llvm-ar"))
        .args([&format!("--format={format}"), "crS", "out.a", "short.o", long])
        .current_dir(directory.path())
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::read(directory.path().join("out.a")).unwrap()
}

#[test]
fn both_dialects_of_llvm_ar() {
    for format in ["gnu", "bsd"] {
        let bytes = archive(format);
        let (members, error) = read(&bytes);
        assert_eq!(error, None);
        let [short, long] = members.as_slice() else {
            panic!("{members:?}");
        };
        assert_eq!((short.name.as_str(), short.contents), ("short.o", &b"odd"[..]));
        assert_eq!(long.name, "a_file_with_a_name_of_more_than_sixteen_characters.txt");
        assert_eq!(long.contents, b"contents");
        for member in &members {
            let offset = usize::try_from(member.offset).unwrap();
            assert!(bytes[offset..].starts_with(member.contents));
        }
    }
}

#[test]
fn damage_keeps_what_came_before_it() {
    let good = archive("gnu");
    let second = read(&good).0[1].offset;
    let cut = &good[..usize::try_from(second).unwrap() + 3];
    let (members, error) = read(cut);
    assert_eq!(members.len(), 1);
    let message = error.unwrap().to_string();
    let header = second - 60;
    assert_eq!(
        message,
        format!("damaged archive: a member at offset {header:#x}: it has 8 bytes, and 3 are left")
    );
    let refusal = |from: &str, to: &str| {
        let changed = String::from_utf8(good.clone()).unwrap().replacen(from, to, 1);
        read(changed.as_bytes()).1.unwrap().to_string()
    };
    let message = refusal("`\n", "??");
    assert!(
        message.ends_with("a member's header at offset 0x8: it does not end with its mark"),
        "{message}"
    );
    let message = refusal("8         `\n", "x         `\n");
    assert!(message.ends_with("its size is no decimal number"), "{message}");
    let message = refusal("/0  ", "/900");
    assert!(
        message.ends_with("it lies outside of the table of long names"),
        "{message}"
    );
    let message = read(&[MAGIC, b"#1/9      "].concat()).1.unwrap().to_string();
    assert!(message.contains("10 bytes are left of 60"), "{message}");
    let mut bsd = archive("bsd");
    bsd[MAGIC.len() + 3..][..4].copy_from_slice(b"9999");
    let message = read(&bsd).1.unwrap().to_string();
    assert!(message.contains("it is longer than the member"), "{message}");
}

#[test]
fn other_files_are_refused() {
    assert_eq!(
        read(b"text").1.unwrap().to_string(),
        "not an archive: it does not start with !<arch>"
    );
    let message = read(b"!<thin>\nrest").1.unwrap().to_string();
    assert!(
        message.starts_with("a thin archive holds the names of its members"),
        "{message}"
    );
}

#[test]
fn every_truncation_and_every_wrong_byte_is_survived() {
    for good in [archive("gnu"), archive("bsd")] {
        for length in 0..good.len() {
            let _ = read(&good[..length]);
        }
        let mut changed = good.clone();
        for position in 0..good.len() {
            for value in [0, b'9', b'/', b'\n', 0xff] {
                changed[position] = value;
                let (members, _) = read(&changed);
                let names: usize = members.iter().map(|member| member.name.len()).sum();
                assert!(names <= 3 * good.len());
            }
            changed[position] = good[position];
        }
    }
}

#[test]
fn names_have_no_more_bytes_than_the_file() {
    let file = |size: usize| {
        let header = |name: &str, size: usize| format!("{name:<48}{size:<10}`\n");
        let names = "n".repeat(size) + "/\n";
        let padding = if size.is_multiple_of(2) { "" } else { "\n" };
        format!(
            "!<arch>\n{}{names}{padding}{}",
            header("//", names.len()),
            header("/0", 0).repeat(2)
        )
    };
    let exact = file(191);
    assert_eq!(exact.len(), 2 * 191);
    assert_eq!((read(exact.as_bytes()).0.len(), read(exact.as_bytes()).1), (2, None));
    let over = file(192);
    let (members, error) = read(over.as_bytes());
    assert_eq!(members.len(), 1);
    assert!(error.expect("too many").to_string().ends_with("the names overlap"));
}
