//! The header is what the sources say.

use std::{fs, path::Path};

const SOURCES: [&str; 9] = [
    "src/problem.rs",
    "src/bridge/mod.rs",
    "src/bridge/library.rs",
    "src/bridge/callbacks.rs",
    "src/bridge/config.rs",
    "src/bridge/request.rs",
    "src/bridge/compiler.rs",
    "src/bridge/result.rs",
    "src/bridge/error.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn made() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("a configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root().join(source));
    }
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    // What is the caller's part is a paragraph of its own in Rust.
    let text = String::from_utf8(text).expect("UTF-8");
    text.replace("// # Safety\n", "// The caller sees to it that:\n")
}

#[test]
fn the_header_is_up_to_date() {
    let path = root().join("include/gpulower.h");
    let made = made();
    if std::env::var_os("GPULOWER_BLESS").is_some() {
        fs::write(&path, &made).expect("written");
    }
    let header = fs::read_to_string(&path).expect("include/gpulower.h");
    assert!(
        header == made,
        "include/gpulower.h is not what src/bridge says: GPULOWER_BLESS=1 cargo test -p gpulower-c header"
    );
}
