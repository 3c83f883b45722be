//! The list of functions against what MLIR's conversion calls.

use std::collections::BTreeMap;

use gpulower_testing::amd::run;

use super::*;

#[test]
fn every_function_that_mlir_calls_is_there_with_its_type() {
    let lowered = run(
        "mlir-opt",
        &["--convert-async-to-llvm", "--convert-func-to-llvm"],
        b"func.func @f() { %t = async.runtime.create : !async.token return }",
    );
    let lowered = String::from_utf8(lowered).expect("text");
    let own: BTreeMap<_, _> = signatures()
        .into_iter()
        .map(|(name, kinds, result)| (name, (kinds, result)))
        .collect();
    let rust = |kind: &str| match kind {
        "!llvm.ptr" => "*mut c_void",
        "i1" => "bool",
        "i64" => "i64",
        "" => "",
        other => panic!("{other}"),
    };
    let mut seen = 0;
    for line in lowered
        .lines()
        .filter_map(|line| line.trim().strip_prefix("llvm.func @mlirAsyncRuntim"))
    {
        let (name, rest) = line.split_once('(').expect("a function");
        let (arguments, result) = rest.split_once(')').expect("arguments");
        let result = result.trim_start_matches(" -> ").split(' ').next().unwrap_or_default();
        let result = if result.starts_with("attributes") { "" } else { result };
        let name = format!("mlirAsyncRuntim{name}");
        let arguments: Vec<&str> = arguments
            .split(", ")
            .filter(|kind| !kind.is_empty())
            .map(rust)
            .collect();
        assert_eq!(own.get(name.as_str()), Some(&(arguments, rust(result))), "{name}");
        seen += 1;
    }
    assert_eq!(seen, own.len(), "{lowered}");
}

#[test]
fn values_are_aligned_as_vectors_of_their_size_are() {
    for (bytes, alignment) in [(0, 16), (1, 16), (24, 32), (64, 64), (128, 128), (100_000, 4096)] {
        let storage = Storage::new(bytes).expect("memory");
        assert_eq!(storage.start.as_ptr().addr() % alignment, 0, "{bytes}");
    }
    assert!(Storage::new(-1).is_err());
}
