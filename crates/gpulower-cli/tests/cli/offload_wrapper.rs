//! Programs finished without clang's linker wrapper: `llvm-offload-wrapper` of LLVM 22 makes the registration of an image, and a
//! linker of the system's does the rest.

use super::{
    export::Site,
    openmp::{driver, libraries},
    support::{example, llvm_program},
};

const HOST: &str = "--triple=x86_64-unknown-linux-gnu";

/// A command with a program of LLVM's in it.
fn llvm(site: &Site, program: &str, arguments: &[&str]) {
    let output = site.tool(&llvm_program(program).display().to_string(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes `wrapper.o`, the registration of a container.
fn wrap(site: &Site, kind: &str, container: &str) {
    llvm(
        site,
        "llvm-offload-wrapper",
        &["--kind", kind, HOST, container, "-o", "wrapper.bc"],
    );
    llvm(site, "clang", &["-w", "-c", "-fPIE", "wrapper.bc", "-o", "wrapper.o"]);
}

/// Wraps the container that has the device code of `app.o`, and links and runs the program.
fn finish(site: &Site, kind: &str, container: &str, libraries: &str) {
    wrap(site, kind, container);
    let ran = site.finish(&format!("cc app.o wrapper.o {libraries} -lm -o app"), "", "app");
    ran.succeeded(&["saxpy", "turn_blocks"], kind);
}

#[test]
fn programs_for_cuda() {
    let site = Site::new();
    let with = ["-t", "sm_80", "--finish-with", "clang-22,cuda-13.0", "-o", "app.o"];
    site.export(&[&[&example("app.mlir")[..]], &with[..]].concat());
    llvm(
        &site,
        "llvm-offload-binary",
        &["app.o", "--image=file=app.cubin,kind=cuda"],
    );
    site.work
        .run(&["pack", "app.cubin", "--emit", "fatbin", "-o", "app.fatbin"])
        .quiet();
    finish(&site, "cuda", "app.fatbin", "-L\"$CUDA_ROOT/lib64\" -lcudart");
}

/// The objects in the file are to be linked first, as clang's wrapper does.
#[test]
fn programs_for_hip() {
    let site = Site::new();
    let with = ["-t", "gfx90a,gfx942", "--finish-with", "clang-22,rocm", "-o", "app.o"];
    site.export(&[&[&example("app.mlir")[..]], &with[..]].concat());
    for chip in ["gfx90a", "gfx942"] {
        let (object, image) = (format!("{chip}.o"), format!("{chip}.hsaco"));
        llvm(
            &site,
            "llvm-offload-binary",
            &["app.o", &format!("--image=file={object},arch={chip}")],
        );
        site.work
            .run(&["link", &object, "--target", chip, "-o", &image])
            .quiet();
    }
    let images = ["gfx90a.hsaco", "gfx942.hsaco"];
    let options = ["--emit", "bundle", "-o", "app.bundle"];
    site.work.run(&[&["pack"], &images[..], &options[..]].concat()).quiet();
    finish(&site, "hip", "app.bundle", "-L\"$ROCM_PATH/lib\" -lamdhip64");
}

/// Run with libomptarget, over the stand-in for NVIDIA's driver.
#[test]
fn programs_for_openmp() {
    let site = Site::new();
    driver(&site);
    let with = [
        "--kind",
        "openmp",
        "-t",
        "sm_100",
        "--finish-with",
        "clang-22,cuda-13.0",
    ];
    site.export(&[&[&example("app.mlir")[..]], &with[..], &["-o", "app.o"]].concat());
    let image = |file: &str| format!("--image=file={file},kind=openmp,triple=nvptx64-nvidia-cuda,arch=sm_100");
    llvm(&site, "llvm-offload-binary", &["app.o", &image("app.cubin")]);
    site.work
        .run(&["link", "app.cubin", "-t", "sm_100", "-o", "linked.cubin"])
        .quiet();
    llvm(
        &site,
        "llvm-offload-binary",
        &["-o", "app.offload", &image("linked.cubin")],
    );
    wrap(&site, "openmp", "app.offload");
    let folder = libraries(&site, 22);
    let commands = format!(
        "cc app.o wrapper.o -L{folder} -lomptarget -lomp -lm -o app\nLD_LIBRARY_PATH={folder}:. CHIP=100 LEADING=1 ./app"
    );
    let output = site.tool("sh", &["-ec", &commands]);
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{log}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for kernel in ["saxpy grid 3907 1 1 block 256", "turn_blocks grid 3907 1 1 block 256"] {
        assert!(log.contains(&format!("launch {kernel}")), "{log}");
    }
}
