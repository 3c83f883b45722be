//! What the tests with real tools share: a folder with runtime libraries that write down what is registered and launched,
//! device images, host code, and the way to finish it.

use std::{ffi::OsString, fs, path::PathBuf, process::Command};

use super::{
    embed::{self, ChipImage},
    entries::{self, tests::program},
    ir_text::IrText,
    layout::{ImageForm, LayoutSet, choose},
    program::{Program, Runtime},
    release::{FATBINARY_SCRIPT, FinishWith},
};
use crate::target::CodeObjectVersion;

const DATA_LAYOUT: &str = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";

fn cuda_root() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.toolkit/cuda"));
    let root = std::env::var_os("GPULOWER_CUDA").map_or_else(default, PathBuf::from);
    assert!(
        root.join("bin/nvlink").is_file(),
        "these tests need a CUDA toolkit at {}",
        root.display()
    );
    root
}

/// A folder with the runtime libraries and everything that a test makes.
pub(super) struct FinishingSite {
    folder: tempfile::TempDir,
}

impl FinishingSite {
    pub(super) fn new() -> Self {
        let site = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/offload/registration.c");
        for (prefix, library) in [("cuda", "libcudart.so"), ("hip", "libamdhip64.so")] {
            site.run(
                "cc",
                &["-shared", "-fPIC", &format!("-DPREFIX={prefix}"), source, "-o", library],
            );
        }
        fs::create_dir(site.path("path")).expect("a folder");
        let script = site.path("path/fatbinary");
        fs::write(&script, FATBINARY_SCRIPT).expect("the script");
        site.run("chmod", &["+x", "path/fatbinary"]);
        site
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect(name);
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect(name)
    }

    /// Runs a tool in the folder; CUDA's tools and the script are in its PATH.
    fn try_run(&self, tool: &str, arguments: &[&str]) -> Result<String, String> {
        let root = cuda_root();
        let mut path = OsString::from(format!("{}:{}/bin:", self.path("path").display(), root.display()));
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = Command::new(tool)
            .args(arguments)
            .current_dir(self.folder.path())
            // clang-linker-wrapper leaves files behind.
            .env("TMPDIR", self.folder.path())
            .env("PATH", path)
            .env("CUDA_ROOT", &root)
            .env("LD_LIBRARY_PATH", self.folder.path())
            .output()
            .unwrap_or_else(|error| panic!("{tool} could not be run: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(format!(
                "{tool} {arguments:?}: {}{}",
                text(&output.stdout),
                text(&output.stderr)
            )),
        }
    }

    pub(super) fn run(&self, tool: &str, arguments: &[&str]) -> String {
        self.try_run(tool, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A relocatable cubin with a kernel and a constant.
    pub(super) fn cubin(&self, unit: &str, chip: &str) -> String {
        let (ptx, cubin) = (format!("{unit}.{chip}.ptx"), format!("{unit}.{chip}.cubin"));
        self.write(&ptx, ptx_text(unit, chip));
        self.run("ptxas", &["-c", &format!("-arch={chip}"), &ptx, "-o", &cubin]);
        cubin
    }

    pub(super) fn amd_object(&self, unit: &str, chip: &str, version: CodeObjectVersion) -> String {
        let (text, object) = (format!("{unit}.{chip}.ll"), format!("{unit}.{chip}.o"));
        self.write(
            &text,
            format!(
                "target triple = \"amdgcn-amd-amdhsa\"\n\
                 @table{unit} = protected addrspace(4) externally_initialized constant [16 x i8] zeroinitializer, align 4\n\
                 define protected amdgpu_kernel void @axpy{unit}(ptr addrspace(1) %p) {{\n\
                 \x20 store i32 7, ptr addrspace(1) %p\n  ret void\n}}\n\
                 !llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !\"amdhsa_code_object_version\", i32 {}}}\n",
                version.module_flag()
            ),
        );
        self.run(
            "/usr/lib/llvm-22/bin/llc",
            &[
                "-filetype=obj",
                "-relocation-model=pic",
                &format!("-mcpu={chip}"),
                &text,
                "-o",
                &object,
            ],
        );
        object
    }

    /// Links the host code of a unit with what the module adds, as IR, and makes an object of it.
    pub(super) fn object(&self, unit: &str, program: &Program, module: &IrText) -> String {
        let (host, parts, linked) = (
            format!("{unit}.host.ll"),
            format!("{unit}.parts.ll"),
            format!("{unit}.ll"),
        );
        self.write(&host, host_text(unit, program));
        self.write(&parts, module.finish(&program.triple, DATA_LAYOUT));
        self.run("/usr/lib/llvm-22/bin/llvm-link", &["-S", &host, &parts, "-o", &linked]);
        let object = format!("{unit}.host.o");
        self.run(
            "/usr/lib/llvm-22/bin/llc",
            &["-filetype=obj", "-relocation-model=pic", &linked, "-o", &object],
        );
        object
    }

    /// Finishes with a release of clang.
    pub(super) fn link(
        &self,
        clang: &str,
        inputs: &[&str],
        options: &[&str],
        runtime: Runtime,
    ) -> Result<String, String> {
        let library = match runtime {
            Runtime::Cuda | Runtime::OpenMp => "-lcudart",
            Runtime::Hip => "-lamdhip64",
        };
        let mut arguments = inputs.to_vec();
        arguments.extend(["--offload-link", "-o", "app", "-L.", library]);
        arguments.extend(options);
        self.try_run(clang, &arguments)
    }

    /// Finishes with a release of clang and runs the program.
    pub(super) fn finish(
        &self,
        clang: &str,
        inputs: &[&str],
        options: &[&str],
        runtime: Runtime,
    ) -> Result<String, String> {
        self.link(clang, inputs, options, runtime)?;
        self.try_run("./app", &[])
    }
}

pub(super) fn ptx_text(unit: &str, chip: &str) -> String {
    format!(
        ".version 7.8\n.target {chip}\n.address_size 64\n.visible .const .align 4 .b8 table{unit}[16];\n\
         .visible .entry axpy{unit}(.param .u64 p) {{\n  .reg .b64 %rd<3>;\n  .reg .b32 %r<2>;\n\
         \x20 ld.param.u64 %rd1, [p];\n  cvta.to.global.u64 %rd2, %rd1;\n  ld.const.u32 %r1, [table{unit}];\n\
         \x20 st.global.u32 [%rd2], %r1;\n  ret;\n}}\n"
    )
}

/// Host code: the stub, what stands for the kernel and the variable, and a `main` (unit "") that launches every unit.
fn host_text(unit: &str, program: &Program) -> String {
    let prefix = program.runtime.prefix();
    let (handle, definition) = match program.runtime {
        Runtime::Cuda | Runtime::OpenMp => (format!("__device_stub__axpy{unit}"), String::new()),
        Runtime::Hip => (
            format!("axpy{unit}"),
            format!("@axpy{unit} = hidden constant ptr @__device_stub__axpy{unit}, align 8"),
        ),
    };
    let mut text = format!(
        "target datalayout = \"{DATA_LAYOUT}\"\ntarget triple = \"{}\"\n{definition}\n\
         @table{unit} = hidden global [16 x i8] zeroinitializer, align 16\n\
         declare i32 @{prefix}LaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)\n\
         define hidden void @__device_stub__axpy{unit}() {{\n\
         \x20 %status = call i32 @{prefix}LaunchKernel(ptr @{handle}, i64 4294967298, i32 1, i64 4294967328, i32 1, ptr null, \
         i64 0, ptr null)\n  ret void\n}}\n\
         define void @run{unit}() {{\n  call void @__device_stub__axpy{unit}()\n  ret void\n}}\n",
        program.triple
    );
    if unit.is_empty() {
        text.push_str(
            "declare extern_weak void @run_b()\ndefine i32 @main() {\n  call void @run()\n\
             \x20 %some = icmp ne ptr @run_b, null\n  br i1 %some, label %more, label %done\n\
             more:\n  call void @run_b()\n  br label %done\ndone:\n  ret i32 0\n}\n",
        );
    }
    text
}

/// The program of a unit: kernel `axpy`, variable `table`, with the unit behind the names.
pub(super) fn unit_program(unit: &str, runtime: Runtime) -> Program {
    let mut program = program(runtime);
    for kernel in &mut program.kernels {
        for name in [&mut kernel.name, &mut kernel.stub, &mut kernel.handle] {
            name.push_str(unit);
        }
    }
    for variable in &mut program.variables {
        variable.name.push_str(unit);
        variable.shadow.push_str(unit);
    }
    program
}

pub(super) fn layouts(list: &str, runtime: Runtime) -> LayoutSet {
    choose(list.parse::<FinishWith>().expect(list).clangs(), runtime).expect(list)
}

/// The object of a unit for some releases.
pub(super) fn export(
    site: &FinishingSite,
    unit: &str,
    layouts: &LayoutSet,
    images: &[(&str, ImageForm, &str)],
) -> String {
    let program = unit_program(unit, layouts.runtime);
    let contents: Vec<Vec<u8>> = images.iter().map(|(_, _, file)| site.read(file)).collect();
    let images: Vec<ChipImage<'_>> = images
        .iter()
        .zip(&contents)
        .map(|(&(target, form, _), bytes)| ChipImage {
            target: target.parse().expect(target),
            form,
            bytes,
        })
        .collect();
    let mut module = IrText::default();
    entries::add(&mut module, &program, layouts).expect("entries");
    embed::add(&mut module, &images, layouts).expect("images");
    site.object(unit, &program, &module)
}
