//! `--report`.

use super::support::{Workshop, example};

#[test]
fn the_json_report_has_kernels_stages_and_decisions() {
    let work = Workshop::new();
    let report = work
        .run(&[
            "compile",
            &example("softmax.mlir"),
            "-t",
            "sm_90,gfx942",
            "-o",
            "out/",
            "--report=json",
        ])
        .quiet()
        .json();
    let artifacts = report["artifacts"].as_array().expect("artifacts");
    assert_eq!(artifacts.len(), 2);
    let [nvidia, amd] = [&artifacts[0], &artifacts[1]];
    assert_eq!(
        (nvidia["images"][0]["target"].as_str(), nvidia["format"].as_str()),
        (Some("sm_90"), Some("cubin"))
    );
    assert_eq!(nvidia["path"], "out/softmax.sm_90.cubin");
    assert_eq!(nvidia["bytes"], work.read("out/softmax.sm_90.cubin").len());
    let kernel = &nvidia["images"][0]["kernels"][0];
    assert_eq!(kernel["name"], "softmax");
    assert!(
        kernel["registers"].as_u64() > Some(8) && kernel["code_bytes"].as_u64() > Some(256),
        "{kernel}"
    );
    // Two reductions, with one f32 for each of eight warps.
    assert_eq!(
        (&kernel["shared_bytes"], &kernel["spill_store_bytes"]),
        (&64.into(), &0.into())
    );
    assert_eq!(nvidia["decisions"][0]["stage"], "ptx-to-cubin");
    assert_eq!(nvidia["decisions"][0]["outcome"], "used");
    let stages = nvidia["stages"].as_array().expect("stages");
    let names: Vec<_> = stages.iter().filter_map(|stage| stage["stage"].as_str()).collect();
    assert_eq!(
        names,
        ["lower", "translate", "link", "optimize", "code-gen", "ptx-to-cubin"]
    );
    assert!(stages.iter().all(|stage| stage["milliseconds"].is_f64()));
    let kernel = &amd["images"][0]["kernels"][0];
    assert!(
        kernel["vgprs"].is_u64() && kernel["sgprs"].is_u64() && kernel["registers"].is_null(),
        "{kernel}"
    );
    assert!(
        amd["images"][0]["tool"]
            .as_str()
            .is_some_and(|tool| tool.starts_with("lld 22."))
    );
}

#[test]
fn the_choice_of_a_compiler_is_logged() {
    let work = Workshop::new();
    // nvJitLink cannot make relocatable code; the other two can.
    let report = work
        .run(&[
            "compile",
            &example("transpose.mlir"),
            "-t",
            "sm_70",
            "-e",
            "cubin",
            "-o",
            "k",
            "--report=json",
        ])
        .failed(1)
        .json();
    let message = report["errors"][0]["message"].as_str().expect("a message").to_owned();
    for compiler in ["nvptxcompiler 13.", "ptxas 13.", "nvjitlink 13."] {
        assert!(message.contains(compiler), "{message}");
    }
}

#[test]
fn the_table_fits_a_terminal() {
    let work = Workshop::new();
    let table = work
        .run(&[
            "compile",
            &example("softmax.mlir"),
            "-t",
            "sm_90,gfx942",
            "-o",
            "out/",
            "--report=table",
        ])
        .quiet()
        .output();
    assert!(
        table.starts_with("kernel   target   registers  spills  shared  scratch  code   occupancy\nsoftmax  sm_90"),
        "{table}"
    );
    for text in [
        "gfx942  v",
        "out/softmax.gfx942.hsaco",
        "ptx-to-cubin",
        "nvptxcompiler 13.",
        "; sum ",
    ] {
        assert!(table.contains(text), "no {text:?} in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_report_goes_to_a_file_beside_an_artifact_on_the_standard_output() {
    let work = Workshop::new();
    let arguments = [
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-o",
        "-",
        "--report=json",
        "--report-file",
        "r.json",
    ];
    let run = work.run(&arguments).quiet();
    assert!(run.stdout.starts_with(b"\x7fELF"));
    let report: serde_json::Value = serde_json::from_slice(&work.read("r.json")).expect("JSON");
    assert!(report["artifacts"][0]["path"].is_null());
    assert_eq!(report["artifacts"][0]["images"][0]["kernels"][0]["name"], "saxpy");
}

#[test]
fn failures_are_reported_too() {
    let work = Workshop::new();
    let run = work
        .run(&[
            "compile",
            &example("user_library.mlir"),
            "-t",
            "sm_90,gfx942",
            "-o",
            "out/",
            "--report=json",
        ])
        .failed(1)
        .says(&["error: link, module user_library"]);
    let errors = run.json()["errors"].as_array().expect("errors").clone();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0]["stage"], "link");
    assert_eq!(
        (&errors[0]["module"], &errors[1]["target"]),
        (&"user_library".into(), &"gfx942".into())
    );
    assert_eq!(errors[0]["kernels"][0], "user_library");
    assert!(
        errors[0]["location"]
            .as_str()
            .is_some_and(|location| location.contains("user_library.mlir"))
    );
    assert!(
        errors[0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("scale_and_shift"))
    );
    assert!(work.files("").is_empty());
}

/// Every report fits the schema that is published, which lists every field.
#[test]
fn reports_fit_their_schema() {
    const VALIDATE: &str = r#"
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit("python3-jsonschema is needed: cargo xtask setup, or apt-get install python3-jsonschema")

def closed(schema):
    # What is not listed would be undocumented.
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        schema = {key: closed(value) for key, value in schema.items()}
    return [closed(value) for value in schema] if isinstance(schema, list) else schema

schema = closed(json.load(open(sys.argv[1])))
jsonschema.Draft202012Validator.check_schema(schema)
for name in sys.argv[2:]:
    jsonschema.validate(json.load(open(name)), schema, cls=jsonschema.Draft202012Validator)
"#;
    let work = Workshop::new();
    work.write("bad.mlir", "gpu.module @m {\n  gpu.func @k( kernel {\n");
    let saxpy = example("saxpy.mlir");
    let runs: [(&str, i32, &[&str]); 7] = [
        ("binary.json", 0, &[&saxpy, "-t", "sm_90,gfx942", "-o", "out/"]),
        (
            "fatbin.json",
            0,
            &[&saxpy, "-t", "sm_90", "-e", "fatbin", "-o", "k.fatbin"],
        ),
        ("ptx.json", 0, &[&saxpy, "-t", "sm_90", "-e", "ptx", "-o", "-"]),
        (
            "spills.json",
            0,
            &[
                &example("softmax.mlir"),
                "-t",
                "sm_90",
                "--max-registers=24",
                "-o",
                "k.cubin",
            ],
        ),
        (
            "symbols.json",
            1,
            &[&example("user_library.mlir"), "-t", "sm_90", "-o", "k"],
        ),
        ("input.json", 1, &["bad.mlir", "-t", "sm_90", "-o", "k"]),
        (
            "both.json",
            1,
            &[&saxpy, &example("user_library.mlir"), "-t", "sm_90", "-o", "out/", "-k"],
        ),
    ];
    for (name, status, arguments) in &runs {
        let arguments = [&["compile"], *arguments, &["--report=json", "--report-file", name]].concat();
        work.run(&arguments).failed(*status);
    }
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
    let output = std::process::Command::new("python3")
        .args(["-c", VALIDATE, schema])
        .args(runs.iter().map(|(name, ..)| *name))
        .current_dir(work.path(""))
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let spills: serde_json::Value = serde_json::from_slice(&work.read("spills.json")).expect("JSON");
    assert!(spills["artifacts"][0]["warnings"][0]["message"].is_string(), "{spills}");
}
