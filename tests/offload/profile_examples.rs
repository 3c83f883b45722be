//! The examples of this repository: their kernels and a whole host program, written for older releases of clang and
//! compiled by them.

use std::path::{Path, PathBuf};

use super::{
    super::{
        host::{HostOptions, lower},
        old_clangs::{AMD, ARM, Clangs, INSTALLED, NVIDIA, SYNTAXES, X86, release},
        program::Runtime,
    },
    *,
};
use gpulower_testing as testing;

use crate::{
    Compiler, Emit, Library, Options, Search, Target, Toolkit, bridge::llvm::DeviceContext, compiler,
    target::CodeObjectVersion,
};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = std::fs::read_dir(&folder).expect("the examples");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mlir"))
        .collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

/// The modules of an example that are for a target, as the compiler writes them; none if the example is not for it.
fn bitcode(path: &Path, target: &str, version: Option<CodeObjectVersion>) -> Vec<(String, Vec<u8>)> {
    let source = std::fs::read_to_string(path).expect("an example");
    let line = |key: &str| source.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let targets = line("// gpulower-targets:").expect("targets");
    if !targets.split(',').any(|name| name.trim() == target) {
        return Vec::new();
    }
    let library = line("// gpulower-link:").map(|name| Library::File(path.with_file_name("").join(name)));
    let options = Options {
        libraries: library.into_iter().collect(),
        code_object_version: version,
        ..Options::default()
    };
    let search = Search::from_variables(|name| std::env::var_os(name)).with_cuda(testing::nvidia::toolkit());
    let compiler = Compiler::builder()
        .options(options)
        .toolkit(Toolkit::discover(&search))
        .build();
    let target: Target = target.parse().expect("a target");
    let name = path.display().to_string();
    let compilation = compiler
        .compile_source(&name, source.as_bytes(), &[target], Emit::Bitcode)
        .unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let artifacts = compilation.artifacts.into_iter();
    artifacts
        .map(|artifact| (format!("{name}, {}", artifact.module), artifact.bytes))
        .collect()
}

/// Writes a module for `oldest` in both forms, and has installed releases from there on compile it: the oldest one both
/// forms, the others bitcode. Returns the assembly.
fn compiles(clangs: &Clangs, triple: &str, name: &str, module: &[u8], oldest: u8) -> Vec<String> {
    let mut results = Vec::new();
    let readers: Vec<u8> = INSTALLED.into_iter().filter(|clang| *clang >= oldest).collect();
    for syntax in SYNTAXES {
        let context = DeviceContext::new();
        let module = context.parse(module, name).expect(name);
        let written = write(&module, release(oldest), syntax).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(written.notes, [] as [&str; 0], "{name} for {oldest}");
        let count = if syntax == IrSyntax::Text { 1 } else { readers.len() };
        for (index, clang) in readers.iter().take(count).enumerate() {
            let compile = |output| {
                let compiled = clangs.compile(*clang, triple, &written.bytes, output);
                compiled.unwrap_or_else(|error| panic!("{name} for {oldest}, {syntax:?}: {error}"))
            };
            let read = clangs.read(*clang, triple, &written.bytes);
            read.unwrap_or_else(|error| panic!("{name} for {oldest}, {syntax:?}: {error}"));
            results.push(String::from_utf8_lossy(&compile("-S")).into_owned());
            // PTX has no objects.
            if index == 0 && triple != NVIDIA {
                assert!(compile("-c").starts_with(b"\x7fELF"), "{name}");
            }
        }
    }
    results
}

#[test]
fn kernels_for_nvidia() {
    let clangs = Clangs::new();
    let mut kernels = 0;
    for path in examples() {
        for (name, module) in bitcode(&path, "sm_80", None) {
            for oldest in [16, 19] {
                for ptx in compiles(&clangs, NVIDIA, &name, &module, oldest) {
                    // Everything is resolved, and the bounds of blocks are known.
                    assert!(
                        !ptx.contains(".extern .func") && !ptx.contains("llvm.nvvm"),
                        "{name}: {ptx}"
                    );
                    assert!(ptx.contains(".reqntid "), "{name}: {ptx}");
                    kernels += ptx.matches(".entry ").count();
                    clangs.assemble(&ptx);
                }
            }
        }
    }
    assert!(kernels > 50, "{kernels} kernels");
}

#[test]
fn kernels_for_amd() {
    let clangs = Clangs::new();
    for path in examples() {
        for (oldest, version) in [(16, CodeObjectVersion::V4), (19, CodeObjectVersion::V5)] {
            for (name, module) in bitcode(&path, "gfx90a", Some(version)) {
                for assembly in compiles(&clangs, AMD, &name, &module, oldest) {
                    assert!(!assembly.contains("llvm.amdgcn"), "{name}: {assembly}");
                    let number = if oldest == 16 {
                        "  - 1\n  - 1\n"
                    } else {
                        "  - 1\n  - 2\n"
                    };
                    assert!(
                        assembly.contains(&format!("amdhsa.version:\n{number}")),
                        "{name}: {assembly}"
                    );
                }
            }
        }
    }
}

/// That the test of kernels can fail.
#[test]
fn clang_16_does_not_compile_kernels_as_they_are() {
    let clangs = Clangs::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/histogram.mlir");
    let [(_, module)] = &bitcode(&path, "sm_80", None)[..] else {
        panic!("one module");
    };
    assert!(clangs.read(16, NVIDIA, module).is_err());
}

#[test]
fn a_host_program() {
    let clangs = Clangs::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/app.mlir");
    let source = std::fs::read_to_string(path).expect("the example");
    let mlir = compiler::context();
    let module = melior::ir::Module::parse(&mlir, &source).expect("parses");
    for (triple, runtime) in [(X86, Runtime::Cuda), (ARM, Runtime::Hip)] {
        let options = HostOptions::new(runtime, triple.parse().expect("a host"), "app.mlir");
        let program = lower(&module, &options).unwrap_or_else(|error| panic!("{error}"));
        let context = DeviceContext::new();
        let host = program.translate(&context).expect("translates");
        let machine = TargetMachine::new(triple, "", "", 2, false).expect("a machine");
        for pipeline in ["default<O0>", "default<O2>"] {
            host.run_passes(&machine, pipeline).expect("optimises");
            let bitcode = host.to_bitcode().expect("written");
            for oldest in [16, 19, 22] {
                for assembly in compiles(&clangs, triple, "app.mlir", &bitcode, oldest) {
                    let call = format!("{}LaunchKernel", runtime.prefix());
                    assert!(assembly.contains(&call) && assembly.contains("main"), "{assembly}");
                }
            }
        }
    }
}
