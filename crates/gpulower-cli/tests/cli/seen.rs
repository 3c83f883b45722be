//! What a user gets to see: the HTML report in a browser, a trace, disassembly, all about one chip.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::support::{Workshop, example};

/// Runs a browser without a window on a page, and gives what it prints.
fn browse(work: &Workshop, page: &str, arguments: &[&str]) -> String {
    let profile = work.path("profile");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1500,1700",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}{page}", work.path("").display()))
        .output()
        .expect("chromium draws reports in this test: install Debian's package chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The `<section>`s of the code of a target, each a column.
fn columns<'a>(dom: &'a str, target: &str) -> Vec<&'a str> {
    let start = dom
        .find(&format!("<h2>Code of softmax for {target}</h2>"))
        .expect("the code");
    let code = &dom[start..];
    let end = code.find("</div>").expect("its end");
    code[..end].split("<section>").skip(1).collect()
}

#[test]
fn the_html_report_in_a_browser() {
    let work = Workshop::new();
    work.write(
        "softmax.mlir",
        std::fs::read(example("softmax.mlir")).expect("an example"),
    );
    work.run(&[
        "compile",
        "softmax.mlir",
        "-t",
        "sm_90,gfx942",
        "-o",
        "out/",
        "--report=html",
        "--report-file",
        "report.html",
    ])
    .quiet();
    let page = work.text("report.html");
    for other in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(other), "the page refers to something else: {other}");
    }
    // Line 26 loads an element: the script marks it in each column.
    let dom = browse(&work, "report.html#26", &["--dump-dom"]);
    let nvidia = columns(&dom, "sm_90");
    assert_eq!(nvidia.len(), 3, "source, PTX, SASS");
    for (column, code) in nvidia.iter().zip(["memref.load", "ld.global", "LDG"]) {
        let marked: Vec<&str> = column.split("<span ").filter(|line| line.contains(" at\"")).collect();
        assert!(marked.iter().any(|line| line.contains(code)), "no {code} in {marked:?}");
        assert!(
            marked.iter().all(|line| line.contains("data-line=\"26\"")),
            "{marked:?}"
        );
    }
    let amd = columns(&dom, "gfx942");
    assert_eq!(amd.len(), 2, "source, assembly");
    assert!(amd[1].contains("global_load_dword"));
    assert!(
        dom.contains("blocks of 256 threads that fit") && dom.contains(" — the limit</text>"),
        "no picture"
    );
    assert!(dom.contains("<td>softmax</td><td>gfx942</td>"));
    assert!(dom.contains("ptx-to-cubin: nvptxcompiler 13") && dom.contains("used"));
    let picture = pictures().unwrap_or_else(|| work.path("")).join("report.png");
    browse(
        &work,
        "report.html#26",
        &[&format!("--screenshot={}", picture.display())],
    );
    let png = std::fs::read(&picture).expect("a picture");
    assert!(png.starts_with(b"\x89PNG"));
    assert_eq!(png[16..24], [0, 0, 5, 220, 0, 0, 6, 164], "1500 by 1700");
    // White alone is some 8 KB.
    assert!(png.len() > 50_000, "there is nothing to see in {} bytes", png.len());
}

/// Where pictures are to be kept for somebody to look at.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("GPULOWER_PICTURES").map(PathBuf::from)
}

#[test]
fn names_of_others_are_no_html() {
    let work = Workshop::new();
    let text = std::fs::read_to_string(example("saxpy.mlir")).expect("an example");
    let name = "x<script>alert(1)</script>&\".mlir";
    work.write("in.mlir", text.replace("// saxpy:", "// <b>\u{202e}saxpy</b>:"));
    std::fs::rename(work.path("in.mlir"), work.path("evil.mlir")).expect("renamed");
    std::os::unix::fs::symlink("evil.mlir", work.path(&name.replace('/', "_"))).expect("a link");
    let input = name.replace('/', "_");
    let run = work.run(&["compile", &input, "-t", "gfx942", "-o", "k.hsaco", "--report=html"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = run.output();
    assert_eq!(page.matches("<script>").count(), 1, "ours");
    assert!(page.contains("x&lt;script&gt;alert(1)&lt;_script&gt;&amp;&quot;.mlir"));
    assert!(page.contains("&lt;b&gt;\\u{202e}saxpy&lt;/b&gt;"));
}

/// The events of a trace by their names, once they were seen to be well formed.
fn trace(work: &Workshop, file: &str) -> Vec<String> {
    let document: Value = serde_json::from_slice(&work.read(file)).expect("JSON");
    let events = document["traceEvents"].as_array().expect("events");
    let mut open: HashMap<u64, Vec<&str>> = HashMap::new();
    let mut last = 0.0;
    for event in events.iter().filter(|event| event["name"] != "process_name") {
        let thread = event["tid"].as_u64().expect("a thread");
        let name = event["name"].as_str().expect("a name");
        let spans = open.entry(thread).or_default();
        match event["ph"].as_str() {
            Some("B") => spans.push(name),
            Some("E") => assert_eq!(spans.pop(), Some(name), "what ends is what began last on its thread"),
            _ => {}
        }
        if let Some(time) = event["ts"].as_f64() {
            assert!(time + 1000.0 >= last, "{event}");
            last = time;
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    events
        .iter()
        .map(|event| {
            format!(
                "{} {}",
                event["cat"].as_str().unwrap_or("-"),
                event["name"].as_str().unwrap_or("-")
            )
        })
        .collect()
}

#[test]
fn a_trace_has_stages_kernels_tools_and_the_cache() {
    let work = Workshop::new();
    let input = example("app.mlir");
    let arguments = [
        "--trace",
        "t.json",
        "compile",
        &input,
        "-t",
        "sm_90,gfx942",
        "-o",
        "out/",
        "-j2",
    ];
    let run = |arguments: &[&str]| {
        let output = work
            .command(arguments)
            .env_remove("GPULOWER_CACHE")
            .env("XDG_CACHE_HOME", work.path("cache"))
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&arguments);
    let events = trace(&work, "t.json");
    for event in [
        "stage lower",
        "stage optimize",
        "stage code-gen",
        "stage ptx-to-cubin",
        "stage link-object",
        "stage output",
        "kernel saxpy",
        "kernel turn_blocks",
        "tool nvptxcompiler",
        "tool lld",
        "job kernels for gfx942",
        "- thread_name",
    ] {
        assert!(events.iter().any(|name| name == event), "no {event:?} in {events:?}");
    }
    assert!(events.iter().any(|name| name.ends_with(" cache miss")));
    run(&arguments);
    let events = trace(&work, "t.json");
    assert!(events.iter().any(|name| name.ends_with(" cache hit")), "{events:?}");
    assert!(!events.iter().any(|name| name.starts_with("tool ")), "{events:?}");
    // What fails is traced as well, and a trace takes the place of nothing else.
    work.write("bad.mlir", "gpu.module @m { nonsense }");
    let bad = [
        "--trace", "bad.json", "compile", "bad.mlir", "-t", "sm_90", "-e", "ptx", "-o", "k",
    ];
    work.run(&bad).failed(1);
    assert!(!trace(&work, "bad.json").is_empty() || work.path("bad.json").is_file());
    let own = ["--trace", "bad.mlir", "compile", "bad.mlir", "-t", "sm_90", "-o", "k"];
    work.run(&own)
        .failed(2)
        .says(&["--trace bad.mlir: the file is there and is no trace"]);
    assert_eq!(work.text("bad.mlir"), "gpu.module @m { nonsense }");
    for place in ["none/t.json", "folder"] {
        work.write("folder/file", "");
        work.run(&["--trace", place, "targets"])
            .failed(1)
            .says(&[&format!("cannot write {place}")]);
    }
    // What has no end is not read, and no output is the trace.
    work.run(&["--trace", "/dev/zero", "targets"]).failed(0);
    let two = [
        "--trace", "k.ptx", "compile", "bad.mlir", "-t", "sm_90", "-e", "ptx", "-o", "./k.ptx",
    ];
    work.run(&two).failed(2).says(&["two outputs would both be ./k.ptx"]);
}

#[test]
fn machine_code_as_text() {
    let work = Workshop::new();
    let input = example("saxpy.mlir");
    work.run(&["compile", &input, "-t", "sm_80,sm_90", "-e", "sass", "-o", "out/"])
        .quiet();
    assert_eq!(work.files("out"), ["saxpy.sm_80.sass", "saxpy.sm_90.sass"]);
    let sass = work.text("out/saxpy.sm_90.sass");
    assert!(
        sass.contains("FFMA") && sass.contains("EXIT") && !sass.contains("//## File"),
        "{sass}"
    );
    let lines = [
        "compile",
        &input,
        "-t",
        "sm_90",
        "-e",
        "sass",
        "-o",
        "-",
        "--debug=line-tables",
    ];
    assert!(work.run(&lines).quiet().output().contains("saxpy.mlir\", line 19"));
    work.run(&["compile", &input, "-t", "gfx942", "-e", "sass", "-o", "k"])
        .failed(1)
        .says(&["cubin does not exist for gfx942"]);

    work.run(&[
        "compile",
        &input,
        "-t",
        "sm_80,sm_90",
        "-e",
        "fatbin",
        "--include-ptx=none",
        "-o",
        "k.fatbin",
    ])
    .quiet();
    let all = work.run(&["inspect", "k.fatbin", "--disassemble"]).quiet().output();
    assert!(
        all.starts_with("// image 1: ") && all.matches("EXIT").count() >= 2,
        "{all}"
    );
    let one = work
        .run(&["inspect", "k.fatbin", "--disassemble", "--image", "2"])
        .quiet()
        .output();
    assert!(one.contains("sm_90") && !one.contains("// image"), "{one}");
    work.run(&["compile", &input, "-t", "gfx942", "-o", "k.hsaco"]).quiet();
    let amd = work.run(&["inspect", "k.hsaco", "--disassemble"]).quiet().output();
    assert!(amd.contains("k.hsaco:") && amd.contains("s_endpgm"), "{amd}");
    let ptx = work
        .run_with_input(&["inspect", "-", "--disassemble"], b"not code")
        .failed(1);
    assert!(ptx.stderr.contains("<stdin>"), "{}", ptx.stderr);
}

#[test]
fn without_nvdisasm_nothing_is_begun() {
    let work = Workshop::new();
    let arguments = [
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "sass",
        "-o",
        "k.sass",
    ];
    let output = work
        .command(&arguments)
        .env("CUDA_HOME", work.path("nowhere"))
        .env("PATH", work.path("nowhere"))
        .args(["--cuda".as_ref(), work.path("").as_os_str()])
        .output()
        .expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("SASS is shown by NVIDIA's nvdisasm: "), "{message}");
    assert!(message.contains("nvidia-cuda-nvdisasm"), "{message}");
    assert!(!work.path("k.sass").exists());
}

#[test]
fn all_about_one_target() {
    let work = Workshop::new();
    let page = |name: &str| work.run(&["targets", name]).quiet().output();
    let nvidia = page("sm_90");
    for text in [
        "sm_90\n",
        "NVIDIA, compute capability 9.0",
        "ISA 7.8 and later",
        "11.8 and later",
        "nvptxcompiler 13.",
        "9.0, 10.0",
        "sm_90a",
        "64 warps of 32 threads, 32 blocks",
        "228 KiB",
    ] {
        assert!(nvidia.contains(text), "no {text:?} in\n{nvidia}");
    }
    let amd = page("gfx942");
    for text in [
        "AMD, ISA 9.4.2",
        "gfx9-4-generic",
        "mfma",
        "sramecc",
        "64 KiB",
        "of LDS",
        "lld (built in)",
    ] {
        assert!(amd.contains(text), "no {text:?} in\n{amd}");
    }
    for text in [
        nvidia,
        amd,
        page("gfx1100"),
        page("sm_20"),
        page("compute_90"),
        page("gfx11-generic"),
    ] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let json = work.run(&["targets", "sm_90", "--json"]).quiet().json();
    assert_eq!(json["target"], "sm_90");
    work.run(&["targets", "sm_91"]).failed(1).says(&["sm_91"]);
}

#[test]
fn what_programs_are_needed_is_said() {
    for program in ["chromium", "tmux"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| Path::new(&folder).join(program).is_file());
        assert!(found, "{program} is missing: install Debian's package of that name");
    }
}
