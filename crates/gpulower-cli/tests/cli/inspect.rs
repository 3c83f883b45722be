//! `gpulower inspect`.

use std::{path::PathBuf, process::Command};

use super::support::{Run, Workshop, cuda, example, llvm_program as llvm};

/// Runs somebody else's tool in a workshop, and returns what it printed.
fn tool(work: &Workshop, program: PathBuf, arguments: &[&str]) -> String {
    let output = Command::new(&program)
        .args(arguments)
        .current_dir(work.path(""))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn cuobjdump(work: &Workshop, arguments: &[&str]) -> String {
    tool(work, cuda().join("bin/cuobjdump"), arguments)
}

/// A workshop with cubins and PTX of the softmax kernel, and a fat binary of them made by NVIDIA's tool.
fn with_fatbin() -> Workshop {
    let work = Workshop::new();
    let softmax = example("softmax.mlir");
    for (target, format, file) in [
        ("sm_80", "cubin", "k80.cubin"),
        ("sm_90", "cubin", "k90.cubin"),
        ("sm_80", "ptx", "k80.ptx"),
    ] {
        work.run(&["compile", &softmax, "--target", target, "--emit", format, "-o", file])
            .quiet();
    }
    let images = [
        "--create=k.fatbin",
        "-64",
        "--ident=softmax.mlir",
        "--image3=kind=elf,sm=80,file=k80.cubin",
        "--image3=kind=elf,sm=90,file=k90.cubin",
        "--image3=kind=ptx,sm=80,file=k80.ptx",
    ];
    tool(&work, cuda().join("bin/fatbinary"), &images);
    work
}

#[track_caller]
fn fits(run: &Run) -> String {
    let text = run.output();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn images_and_kernels_of_a_fat_binary() {
    let work = with_fatbin();
    let text = fits(&work.run(&["inspect", "k.fatbin"]).quiet());
    assert!(text.starts_with("k.fatbin: fat binary, "), "{text}");
    assert!(text.contains(", 3 images\n"), "{text}");
    let row = |start: &str| {
        let row = text
            .lines()
            .find(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(start));
        row.unwrap_or_else(|| panic!("no {start:?} in\n{text}")).to_owned()
    };
    row("1 cubin sm_80 ABI 8");
    row("2 cubin sm_90 ABI 8");
    assert!(row("3 PTX sm_80 PTX 7.0").contains("zstd"));
    row("images 1, 2: made by ");
    row("images 1-3: called softmax.mlir");
    for image in ["1", "2", "3"] {
        row(&format!("softmax {image} "));
    }
    // Registers as NVIDIA's tool counts them.
    let usage = cuobjdump(&work, &["-res-usage", "-arch", "sm_90", "k.fatbin"]);
    let registers = usage
        .split_once("REG:")
        .expect("registers")
        .1
        .split_whitespace()
        .next()
        .expect("a number")
        .to_owned();
    assert!(
        row("softmax 2 ").split_whitespace().any(|cell| cell == registers),
        "{text}"
    );
}

#[test]
fn the_device_question() {
    let work = with_fatbin();
    let ask = |arguments: &[&str]| work.run(&[&["inspect", "k.fatbin"], arguments].concat());
    let text = fits(&ask(&["--device", "sm_86"]).quiet());
    assert!(text.ends_with("On 8.6:\n  loads image 1, cubin for sm_80\n"), "{text}");
    let text = fits(&ask(&["--device", "9.0,12.0"]).quiet());
    assert!(text.contains("On 9.0:\n  loads image 2, cubin for sm_90\n"), "{text}");
    let compiled =
        "On 12.0:\n  the driver compiles image 3, PTX for sm_80: PTX 7.0 needs a driver of CUDA\n  11.0 or newer\n";
    assert!(text.contains(compiled), "{text}");

    let run = ask(&["--device", "sm_75"])
        .failed(1)
        .says(&["k.fatbin: error: input: it does not load on 7.5"]);
    let text = fits(&run);
    for expected in [
        "nothing loads: CUDA_ERROR_NO_BINARY_FOR_GPU (209,",
        "image 1, cubin for sm_80: machine code for sm_80 runs on 8.0 and later",
        "image 3, PTX for sm_80: PTX of sm_80 compiles for 8.0 and later devices",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
    let run = ask(&["--device", "12.0", "--driver", "10.2"]).failed(1);
    assert!(
        run.output().contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222,"),
        "{}",
        run.output()
    );
    let run = ask(&["--device", "gfx942"]).failed(1);
    assert!(run.output().contains("hipErrorNoBinaryForGpu"), "{}", run.output());

    let json = ask(&["--device", "sm_120", "--json"]).quiet().json();
    let module = &json["devices"][0]["modules"][0];
    assert_eq!(module["outcome"], "compiles-ptx", "{json}");
    assert_eq!((&module["image"], &module["ptx_isa"]), (&3.into(), &"7.0".into()));
    assert_eq!(module["needs_driver_of_cuda"], "11.0");
    ask(&["--device", "sm_68"]).failed(2).says(&["'sm_68' is no device"]);
    ask(&["--driver", "12.4"]).failed(2).says(&["--device"]);
}

/// A machine with a GPU answers for it; one without says what is missing.
#[test]
fn the_device_that_is_here() {
    let work = with_fatbin();
    let run = work.run(&["inspect", "k.fatbin", "--device", "native"]);
    if run.stderr.is_empty() {
        assert!(
            run.output().contains("with a driver that reads PTX up to"),
            "{}",
            run.output()
        );
    } else if run.output().is_empty() {
        run.failed(1).says(&[
            "error: plan: --device native: ",
            "name a device, such as sm_90 or gfx942",
        ]);
    }
}

#[test]
fn extracted_files_are_those_that_went_in() {
    let work = with_fatbin();
    let run = work.run(&["inspect", "k.fatbin", "--extract", "-o", "out/"]).quiet();
    assert_eq!(run.output(), "out/k.sm_80.cubin\nout/k.sm_90.cubin\nout/k.sm_80.ptx\n");
    assert_eq!(work.files("out"), ["k.sm_80.cubin", "k.sm_80.ptx", "k.sm_90.cubin"]);
    assert!(work.read("out/k.sm_80.cubin") == work.read("k80.cubin"));
    assert!(work.read("out/k.sm_90.cubin") == work.read("k90.cubin"));
    // fatbinary takes comments and indentation out of PTX; cuobjdump extracts what is left.
    cuobjdump(&work, &["-xptx", "all", "k.fatbin"]);
    let theirs = work
        .files("")
        .into_iter()
        .find(|name| name.ends_with(".sm_80.ptx"))
        .expect("cuobjdump's file");
    assert_eq!(work.text("out/k.sm_80.ptx"), work.text(&theirs));

    // Nothing is written over, and all files or none are written.
    work.write("out/k.sm_90.cubin", "mine");
    std::fs::remove_file(work.path("out/k.sm_80.ptx")).expect("removed");
    work.run(&["inspect", "k.fatbin", "--extract", "-o", "out"])
        .failed(1)
        .says(&["out/k.sm_80.cubin is already there (and 1 more): --force writes over it"]);
    assert_eq!(work.files("out"), ["k.sm_80.cubin", "k.sm_90.cubin"]);
    assert_eq!(work.text("out/k.sm_90.cubin"), "mine");
    work.run(&["inspect", "k.fatbin", "--extract", "-o", "out", "--force"])
        .quiet();
    assert!(work.read("out/k.sm_90.cubin") == work.read("k90.cubin"));

    let run = work
        .run(&["inspect", "k.fatbin", "--extract", "--image", "2", "-o", "one.cubin"])
        .quiet();
    assert_eq!(run.output(), "one.cubin\n");
    assert!(work.read("one.cubin") == work.read("k90.cubin"));
    let run = work
        .run(&["inspect", "k.fatbin", "--extract", "--image", "1", "-o", "-"])
        .quiet();
    assert!(run.stdout == work.read("k80.cubin"));
    let json = work
        .run(&[
            "inspect",
            "k.fatbin",
            "--extract",
            "--image",
            "1,3",
            "-o",
            "j/",
            "--json",
        ])
        .quiet()
        .json();
    assert_eq!(json["extracted"][1]["path"], "j/k.sm_80.ptx", "{json}");
    assert_eq!(json["extracted"][1]["image"], 3);

    work.run(&["inspect", "k.fatbin", "--extract", "-o", "all.bin"])
        .failed(2)
        .says(&["3 images do not fit into one file: name a directory"]);
    work.run(&["inspect", "k.fatbin", "--image", "4"])
        .failed(2)
        .says(&["there is no image 4: the file has images 1 to 3"]);
    work.run(&["inspect", "k.fatbin", "-o", "x"])
        .failed(2)
        .says(&["--extract"]);
}

#[test]
fn the_document_has_the_fields_that_are_documented() {
    let work = with_fatbin();
    let json = work.run(&["inspect", "k.fatbin", "--json"]).quiet().json();
    assert_eq!((&json["schema"], &json["file"]), (&1.into(), &"k.fatbin".into()));
    assert_eq!(json["bytes"], json["device_bytes"]);
    let container = &json["containers"][0];
    assert_eq!(
        (&container["kind"], &container["offset"]),
        (&"fat-binary".into(), &0.into())
    );
    let image = &json["images"][2];
    for (field, value) in [
        ("number", 3.into()),
        ("kind", "ptx".into()),
        ("target", "sm_80".into()),
        ("container", 0.into()),
        ("compression", "zstd".into()),
        ("ptx_isa", "7.0".into()),
        ("identifier", "softmax.mlir".into()),
        ("debug", "none".into()),
        ("relocatable", false.into()),
        ("error", serde_json::Value::Null),
    ] {
        assert_eq!(image[field], value, "{field}: {image}");
    }
    assert!(image["stored_bytes"].as_u64() < image["bytes"].as_u64());
    let parameters = |image: usize| {
        let parameters = json["images"][image]["kernels"][0]["parameters"]
            .as_array()
            .expect("parameters")
            .clone();
        parameters
            .iter()
            .map(|one| (one["offset"].as_u64(), one["size"].as_u64()))
            .collect::<Vec<_>>()
    };
    assert!(!parameters(0).is_empty());
    assert_eq!(parameters(0), parameters(2), "PTX and machine code agree");
    assert!(json["images"][0]["kernels"][0]["registers"].is_u64());
    assert!(json["images"][0]["sections"][0]["name"].is_string());
    // What PTX does not know is not there.
    assert!(json["images"][2]["kernels"][0].get("shared_bytes").is_none());
    assert!(json.get("devices").is_none() && json.get("extracted").is_none());

    // The documentation names every field.
    let documentation = include_str!("../../../../docs/inspect.md");
    let mut fields = Vec::new();
    names(&json, &mut fields);
    for field in fields {
        assert!(
            documentation.contains(&format!("`{field}`")),
            "docs/inspect.md does not name {field}"
        );
    }
}

fn names(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                into.push(name.clone());
                names(value, into);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

#[test]
fn code_objects_in_bundles() {
    let work = Workshop::new();
    let gelu = example("saxpy.mlir");
    for target in ["gfx90a:xnack-", "gfx942"] {
        work.run(&[
            "compile",
            &gelu,
            "--target",
            target,
            "--emit",
            "hsaco",
            "-o",
            &format!("{}.hsaco", &target[..6]),
        ])
        .quiet();
    }
    work.write("empty", "");
    let bundler = |more: &[&str]| {
        let all = [
            &[
                "-type=o",
                "-bundle-align=4096",
                "-targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-,hipv4-amdgcn-amd-amdhsa--gfx942",
                "-input=empty",
                "-input=gfx90a.hsaco",
                "-input=gfx942.hsaco",
            ][..],
            more,
        ];
        tool(&work, llvm("clang-offload-bundler"), &all.concat());
    };
    bundler(&["-output=k.hipfb"]);
    bundler(&["-output=z.hipfb", "-compress"]);
    for file in ["k.hipfb", "z.hipfb"] {
        let run = work
            .run(&["inspect", file, "--parameters", "--device", "gfx90a:sramecc+:xnack-"])
            .quiet();
        let text = fits(&run);
        for expected in [
            "hsaco  gfx90a:xnack-  COV5",
            "hsaco  gfx942",
            "loads image 1, hsaco for gfx90a:xnack-",
            "global_buffer",
        ] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
        work.run(&["inspect", file, "--device", "gfx90a:xnack+"]).failed(1);
        work.run(&["inspect", file, "--extract", "-o", "out/", "--force"])
            .quiet();
        let stem = &file[..1];
        assert!(work.read(&format!("out/{stem}.gfx90a@xnack-.hsaco")) == work.read("gfx90a.hsaco"));
        assert!(work.read(&format!("out/{stem}.gfx942.hsaco")) == work.read("gfx942.hsaco"));
    }
    let text = work.run(&["inspect", "z.hipfb"]).quiet().output();
    assert!(text.contains("zstd of ") && text.contains(", version 3"), "{text}");
    // Registers as readelf shows them.
    let notes = tool(&work, llvm("llvm-readelf"), &["--notes", "gfx942.hsaco"]);
    let registers = notes
        .split_once(".vgpr_count:")
        .expect("registers")
        .1
        .split_whitespace()
        .next()
        .expect("a number")
        .to_owned();
    let json = work.run(&["inspect", "gfx942.hsaco", "--json"]).quiet().json();
    assert_eq!(json["images"][0]["kernels"][0]["vgprs"].to_string(), registers);
}

#[test]
fn host_files_explain_their_size() {
    let work = with_fatbin();
    work.write("s.s", ".section .nv_fatbin,\"a\"\n.p2align 3\n.incbin \"k.fatbin\"\n");
    work.write("h.c", "int host(void) { return 1; }\n");
    tool(&work, "gcc".into(), &["-c", "s.s", "-o", "s.o"]);
    tool(
        &work,
        "gcc".into(),
        &["-shared", "-fPIC", "h.c", "s.o", "-o", "libk.so"],
    );
    tool(&work, llvm("llvm-ar"), &["crS", "libk.a", "s.o"]);
    let text = fits(
        &work
            .run(&["inspect", "libk.so", "--sections", "--device", "sm_86"])
            .quiet(),
    );
    for expected in [
        "libk.so: shared library for x86-64, ",
        "are\ndevice code: 3 images",
        " in .nv_fatbin, ",
        ".nv_fatbin",
        "device code",
        "headers and padding",
        "loads image 1",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
    let listed = cuobjdump(&work, &["-lelf", "-lptx", "libk.so"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let json = work.run(&["inspect", "libk.so", "--json"]).quiet().json();
    let sections = json["containers"][0]["sections"].as_array().expect("sections");
    let device = sections
        .iter()
        .find(|section| section["device"] == true)
        .expect("the section");
    assert_eq!(device["bytes"], json["device_bytes"]);
    let text = work.run(&["inspect", "libk.a"]).quiet().output();
    assert!(
        text.contains("libk.a: archive, ") && text.contains(" in .nv_fatbin in s.o"),
        "{text}"
    );
    tool(&work, "gcc".into(), &["-c", "h.c", "-o", "h.o"]);
    let text = work.run(&["inspect", "h.o"]).quiet().output();
    assert!(
        text.contains("host object for x86-64, ") && text.contains("no image for a GPU"),
        "{text}"
    );
    work.run(&["inspect", "h.o", "--device", "sm_90"])
        .failed(1)
        .says(&["there is nothing to load on 9.0"]);
    work.run(&["inspect", "h.o", "--extract"])
        .failed(1)
        .says(&["there is no image to extract"]);
}

#[test]
fn the_standard_input_and_files_that_are_nothing() {
    let work = with_fatbin();
    let run = work.run_with_input(&["inspect", "-"], &work.read("k.fatbin")).quiet();
    assert!(run.output().starts_with("<stdin>: fat binary, "), "{}", run.output());
    work.run_with_input(&["inspect", "-", "--extract"], &work.read("k90.cubin"))
        .quiet();
    assert!(work.read("image.sm_90.cubin") == work.read("k90.cubin"));
    let softmax = example("softmax.mlir");
    work.run(&["inspect", &softmax])
        .failed(1)
        .says(&["error: input: it is MLIR or LLVM IR, which holds no images"]);
    work.run(&["inspect", "nothing"])
        .failed(1)
        .says(&["cannot read nothing: No such file"]);
    work.run(&["inspect", "."])
        .failed(1)
        .says(&["cannot read .: it is a directory; name a file in it"]);
    tool(&work, llvm("llvm-ar"), &["crST", "thin.a", "k90.cubin"]);
    work.run(&["inspect", "thin.a"])
        .failed(1)
        .says(&["it is a thin archive", "llvm-ar cqsL"]);
}

#[test]
fn damage_is_reported_beside_what_is_sound() {
    let work = with_fatbin();
    let mut bytes = work.read("k.fatbin");
    let whole = bytes.len();
    bytes.extend(work.read("k.fatbin"));
    bytes.truncate(whole + 500);
    work.write("two.fatbin", &bytes);
    let run = work.run(&["inspect", "two.fatbin"]).failed(1);
    assert!(run.output().contains(", 3 images"), "{}", run.output());
    run.says(&[
        "two.fatbin: error: input: fat binary",
        "truncated fat binary: the entries needs",
    ]);

    // The section header table of the first cubin.
    let mut bytes = work.read("k.fatbin");
    let json = work.run(&["inspect", "k.fatbin", "--json"]).quiet().json();
    let offset = usize::try_from(json["images"][0]["offset"].as_u64().expect("an offset")).expect("a small number");
    bytes[offset + 40..offset + 48].fill(0xff);
    work.write("hurt.fatbin", &bytes);
    let run = work
        .run(&["inspect", "hurt.fatbin", "--device", "sm_80,sm_90"])
        .failed(1);
    let text = fits(&run);
    assert!(text.contains("CUDA_ERROR_INVALID_IMAGE (200,"), "{text}");
    assert!(text.contains("loads image 2, cubin for sm_90"), "{text}");
    run.says(&[
        "hurt.fatbin: error: input: image 1, cubin for sm_80 at 0x",
        "it does not load on 8.0",
    ]);
}

#[test]
fn names_in_the_file_do_not_reach_the_terminal() {
    let work = Workshop::new();
    let target = "hip-amdgcn-amd-amdhsa--gfx942";
    work.write(
        "k.hipfb",
        format!("\n; __CLANG_OFFLOAD_BUNDLE____START__ {target}\ntext\n\n; __CLANG_OFFLOAD_BUNDLE____END__ {target}\n"),
    );
    work.run(&["inspect", "k.hipfb"]).quiet();
    // An archive member with an escape sequence for a name.
    let cubin = example("softmax.mlir");
    work.run(&["compile", &cubin, "--target", "sm_90", "--emit", "ptx", "-o", "k.ptx"])
        .quiet();
    let ptx = work.read("k.ptx");
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(
        format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            "\x1b[2J../../x/",
            0,
            0,
            0,
            644,
            ptx.len()
        )
        .into_bytes(),
    );
    archive.extend(&ptx);
    work.write("k.a", &archive);
    let text = work.run(&["inspect", "k.a"]).quiet().output();
    assert!(!text.contains('\x1b') && text.contains("\\u{1b}[2J"), "{text}");
    let run = work.run(&["inspect", "k.a", "--extract", "-o", "out/"]).quiet();
    assert_eq!(run.output(), "out/k.sm_90.ptx\n");
}
