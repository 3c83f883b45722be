//! Attributes that change what an operation computes, by MLIR's own list of operations: docs/semantics.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpulower_testing::amd::run;
use serde_json::Value;

use super::input;
use crate::{bridge::mlir, device::lower::lower, options::Options, target::Target};

/// A dialect's operations, as MLIR's TableGen files have them: the names of their operands and of their attributes.
fn operations(file: &str) -> BTreeMap<String, (Vec<String>, BTreeSet<String>)> {
    let include = std::path::Path::new(env!("MLIR_SYS_220_PREFIX")).join("include");
    let path = include.join("mlir/Dialect").join(file);
    let path = path.to_str().expect("a path in UTF-8");
    let json = run(
        "llvm-tblgen",
        &["--dump-json", "-I", include.to_str().expect("a path in UTF-8"), path],
        b"",
    );
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    let instances = |class: &str| -> BTreeSet<&str> {
        json["!instanceof"][class]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let constraints: BTreeSet<&str> = instances("AttrConstraint")
        .union(&instances("Property"))
        .copied()
        .collect();
    let mut found = BTreeMap::new();
    for name in instances("Op") {
        let operation = &json[name];
        let dialect = json[operation["opDialect"]["def"].as_str().expect("a dialect")]["name"].as_str();
        let mut operands = Vec::new();
        let mut attributes = BTreeSet::new();
        for argument in operation["arguments"]["args"].as_array().into_iter().flatten() {
            let kind = argument[0]["def"].as_str().unwrap_or_default();
            let Some(name) = argument[1].as_str() else { continue };
            if constraints.contains(kind) {
                attributes.insert(name.to_owned());
            } else {
                operands.push(name.to_owned());
            }
        }
        let name = format!(
            "{}.{}",
            dialect.unwrap_or_default(),
            operation["opName"].as_str().unwrap_or_default()
        );
        found.insert(name, (operands, attributes));
    }
    assert!(!found.is_empty(), "{file}");
    found
}

const FILES: &[&str] = &[
    "Arith/IR/ArithOps.td",
    "Math/IR/MathOps.td",
    "MemRef/IR/MemRefOps.td",
    "Vector/IR/VectorOps.td",
    "GPU/IR/GPUOps.td",
    "NVGPU/IR/NVGPUOps.td",
    "AMDGPU/IR/AMDGPU.td",
];

/// A new operation with a rounding mode has to get a row in the table.
#[test]
fn operations_with_a_rounding_mode_are_those_of_the_table() {
    let rounding: Vec<String> = FILES
        .iter()
        .flat_map(|file| operations(file))
        .filter(|(_, (_, attributes))| attributes.iter().any(|name| name.to_lowercase().contains("rounding")))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(rounding, ["arith.scaling_truncf", "arith.truncf", "nvgpu.rcp"]);
}

/// What every operation that takes fast-math flags becomes, without any and with one.
#[test]
fn no_flag_appears_that_was_not_written() {
    for target in ["sm_90", "gfx942"] {
        for flags in ["none", "nnan"] {
            let mut text = String::from("gpu.module @m {\n");
            let mut names = Vec::new();
            for (name, (operands, attributes)) in FILES[..2].iter().flat_map(|file| operations(file)) {
                if attributes.contains("fastmath") && !name.contains("scaling") {
                    write_function(&mut text, &name, operands.len(), flags);
                    names.push(name);
                }
            }
            assert!(names.len() > 50, "{names:?}");
            text += "}\n";
            let lowered = lowered(target, &text);
            let flag = lowered
                .lines()
                .filter(|line| line.contains("fastmath<") && !line.contains("fastmath<none>"));
            if flags == "none" {
                let flagged: Vec<&str> = flag.collect();
                assert!(flagged.is_empty(), "{target}: {flagged:#?}");
            } else {
                assert!(flag.clone().count() > 10, "{target}: flags are lost\n{lowered}");
                let other: Vec<&str> = flag.filter(|line| !line.contains("fastmath<nnan>")).collect();
                assert!(other.is_empty(), "{target}: {other:#?}");
            }
        }
    }
}

fn write_function(text: &mut String, name: &str, operands: usize, flags: &str) {
    let (mut from, mut to) = (vec!["f32"; operands], vec!["f32"]);
    let mut attributes = format!("fastmath = #arith.fastmath<{flags}>");
    match name {
        "arith.extf" => from = vec!["f16"],
        "arith.truncf" => from = vec!["f64"],
        "arith.cmpf" => {
            to = vec!["i1"];
            attributes += ", predicate = 1 : i64";
        }
        "math.fpowi" => from = vec!["f32", "i32"],
        "math.sincos" => to = vec!["f32", "f32"],
        "math.isfinite" | "math.isinf" | "math.isnan" | "math.isnormal" => to = vec!["i1"],
        _ => {}
    }
    let arguments: Vec<String> = (0..operands)
        .map(|index| format!("%{index}: {}", from[index]))
        .collect();
    let values: Vec<String> = (0..operands).map(|index| format!("%{index}")).collect();
    let results: Vec<String> = (0..to.len()).map(|index| format!("%r#{index}")).collect();
    writeln!(
        text,
        "func.func @{}({}) -> ({to}) {{\n%r:{} = \"{name}\"({}) <{{{attributes}}}> : ({}) -> ({to})\nreturn {} : {to}\n}}",
        name.replace('.', "_"),
        arguments.join(", "),
        to.len(),
        values.join(", "),
        from.join(", "),
        results.join(", "),
        to = to.join(", "),
    )
    .expect("writes");
}

fn lowered(target: &str, text: &str) -> String {
    let context = input::context();
    let mut module = input::parse(&context, "flags.mlir", text.as_bytes()).expect("parses");
    let target: Target = target.parse().expect("a target");
    let resolved = Options::default().resolve(&target, None).expect("resolves");
    lower(&mut module, &resolved).expect("lowers");
    mlir::shown(&module.as_operation())
}
