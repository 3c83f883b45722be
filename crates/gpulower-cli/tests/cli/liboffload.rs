//! LLVM's liboffload (`ol*` calls) of LLVM 22 with files of ours: its plugin for CUDA on the stand-in for NVIDIA's driver.

use super::{
    export::Site,
    openmp::{driver, library_folder},
    support::example,
};

/// The program that calls the library, with the header of Debian's package.
fn program(site: &Site) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/liboffload.c");
    let library = library_folder(22).join("libLLVMOffload.so.22.1").display().to_string();
    let headers = library_folder(22).join("../include").display().to_string();
    let options = ["-w", "-std=c11", "-I", &headers, source, &library, "-o", "ol"];
    let output = site.tool("cc", &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn ran(site: &Site, chip: &str, arguments: &str) -> (Option<i32>, String) {
    let libraries = library_folder(22);
    let run = format!("LD_LIBRARY_PATH={}:. CHIP={chip} ./ol {arguments}", libraries.display());
    let output = site.tool("sh", &["-c", &run]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn cubins_are_taken_for_the_devices_that_they_run_on() {
    let site = Site::new();
    driver(&site);
    program(&site);
    let app = example("app.mlir");
    for chip in ["sm_90", "sm_100", "sm_120", "gfx942"] {
        site.work.run(&["compile", &app, "--target", chip, "-o", chip]).quiet();
    }
    for (file, device, said) in [
        ("sm_90", "90", "valid"),
        ("sm_90", "100", "not valid"),
        ("sm_100", "100", "valid"),
        ("sm_100", "103", "valid"),
        ("sm_100", "90", "not valid"),
        ("sm_100", "120", "not valid"),
        ("sm_120", "120", "valid"),
        ("gfx942", "90", "not valid"),
    ] {
        let (status, log) = ran(&site, device, &format!("--valid {file}"));
        assert_eq!((status, log.trim_end()), (Some(0), said), "{file} for {device}");
    }
    for (file, device) in [("sm_90", "90"), ("sm_100", "100"), ("sm_100", "103")] {
        let (status, log) = ran(&site, device, file);
        assert_eq!(status, Some(0), "{file} for {device}: {log}");
        let launch = "launch saxpy grid 4 1 1 block 256 1 1 shared 0";
        assert!(log.contains(launch) && log.contains("0 wrong of 1000"), "{log}");
    }
}

/// PTX, fat binaries and offload binaries are no programs for it.
#[test]
fn other_forms_are_not_taken() {
    let site = Site::new();
    driver(&site);
    program(&site);
    for form in ["ptx", "fatbin", "offload"] {
        let options = ["--target", "sm_100", "--emit", form, "-o", form];
        site.work
            .run(&[&["compile", &example("app.mlir")[..]], &options[..]].concat())
            .quiet();
        let (status, log) = ran(&site, "100", &format!("--valid {form}"));
        assert_eq!((status, log.trim_end()), (Some(0), "not valid"), "{form}");
    }
}
