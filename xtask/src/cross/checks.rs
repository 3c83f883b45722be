//! What the programs, the C library and the wheel of another processor do under qemu, beside those of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::ValueEnum;

use super::emulator::{Emulator, entries};
use super::{CRATES, Cross, TARGETS, readers};
use crate::command::{Context, Failure, capture, run as run_command, shown};
use crate::demo::{Example, examples};
use crate::wheels::{self, Machine};

/// A part of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The readers' tests.
    Readers,
    /// The examples, whose files are those that this machine's programs make.
    Bytes,
    /// The lit tests.
    Lit,
    /// The library's own tests.
    Library,
    /// Crashes, signals and stacks, in processes of their own.
    Crashes,
    /// The C library in a program in C.
    C,
    /// The wheel in Python.
    Wheel,
}

/// `build`: this machine's programs too, where they are compared.
pub fn run(cross: &Cross<'_>, parts: &[Part], build: bool) -> Result<(), Failure> {
    let cuda = cross.workspace.toolkit().join("aarch64-cuda");
    if !wheels::is_current_for(Machine::AArch64, &cuda) {
        wheels::install_for(Machine::AArch64, &cuda)?;
    }
    let emulator = Emulator::new(cross.below_target("cross/aarch64")?.join("qemu"), &cross.sysroot)?;
    let bin = cross.prefix()?.join("bin");
    let site = Site {
        cross,
        programs: emulator.wrapped("bin", &[bin.join("gpulower"), bin.join("gpulower-opt")])?,
        cuda: emulator.cuda(&cuda, &cross.workspace.wheel_cuda())?,
        emulator,
    };
    site.emulator.check(cross.workspace, &bin.join("gpulower"))?;
    for part in Part::value_variants() {
        if !parts.is_empty() && !parts.contains(part) {
            continue;
        }
        let start = Instant::now();
        match part {
            Part::Readers => readers(cross.workspace, true).iter_mut().try_for_each(run_command)?,
            Part::Bytes => {
                let mut native = cross.workspace.cargo("build");
                if build {
                    run_command(native.args(["--workspace", "--locked"]).args(TARGETS))?;
                }
                site.bytes()?;
            }
            Part::Lit => run_command(&mut site.lit()?)?,
            Part::Library => run_command(&mut site.library())?,
            Part::Crashes => run_command(&mut site.crashes())?,
            Part::C => site.c_library()?,
            Part::Wheel => site.wheel()?,
        }
        println!("cross: {part:?} took {} s", start.elapsed().as_secs());
    }
    Ok(())
}

/// How the examples are compiled for a chip: by LLVM alone, by each of NVIDIA's compilers of PTX, by lld.
const FORMS: [(&str, &[&str]); 10] = [
    ("sm_90", &["--emit", "llvm"]),
    ("sm_90", &["--emit", "ptx"]),
    ("sm_90", &["--emit", "cubin", "--ptx-compiler", "nvptxcompiler"]),
    ("sm_90", &["--emit", "cubin", "--ptx-compiler", "ptxas"]),
    ("sm_90", &["--emit", "cubin", "--ptx-compiler", "nvjitlink"]),
    ("sm_90", &["--emit", "fatbin", "--compress", "zstd"]),
    ("gfx942", &["--emit", "bitcode"]),
    ("gfx942", &["--emit", "asm"]),
    ("gfx942", &["--emit", "hsaco"]),
    ("gfx942", &["--emit", "offload"]),
];

struct Site<'a> {
    cross: &'a Cross<'a>,
    emulator: Emulator,
    /// Scripts with the names of the programs.
    programs: PathBuf,
    /// NVIDIA's tree for that processor, with scripts for its programs.
    cuda: PathBuf,
}

impl Site<'_> {
    /// Compiles every example here and under qemu, and compares the files.
    fn bytes(&self) -> Result<(), Failure> {
        let workspace = self.cross.workspace;
        let native = workspace.binaries()?.join("gpulower");
        let emulated = self.programs.join("gpulower");
        let folder = self.cross.below_target("cross/aarch64")?.join("bytes");
        let (mut same, mut differing) = (0, Vec::new());
        let examples = examples(&workspace.root.join("examples"))?;
        for (chip, form) in FORMS {
            let examples: Vec<&Example> = examples.iter().filter(|example| example.allows(chip)).collect();
            let here = compiled(workspace.command(&native), &examples, chip, form, &folder.join("here"))?;
            let mut command = workspace.command(&emulated);
            command.env("CUDA_HOME", &self.cuda);
            let there = compiled(command, &examples, chip, form, &folder.join("there"))?;
            let names: BTreeSet<&PathBuf> = here.keys().chain(there.keys()).collect();
            for name in names {
                if here.get(name) == there.get(name) {
                    same += 1;
                } else {
                    differing.push(format!("{} ({})", name.display(), form.join(" ")));
                }
            }
        }
        println!("cross: {same} files of the examples have the same bytes");
        match differing.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "other bytes than on this machine: {}",
                differing.join(", ")
            ))),
        }
    }

    fn lit(&self) -> Result<Command, Failure> {
        let mut command = crate::check::lit(self.cross.workspace)?;
        command
            .env("GPULOWER_BIN_DIR", &self.programs)
            .env("GPULOWER_CUDA", &self.cuda);
        Ok(command)
    }

    /// cargo's tests, with all that they start under qemu.
    fn tests(&self, what: &[&str]) -> Command {
        let mut command = self.cross.cargo("test");
        command.args(CRATES).args(what);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", self.emulator.runner());
        command.env("CUDA_HOME", &self.cuda).env("GPULOWER_CUDA", &self.cuda);
        command
    }

    fn library(&self) -> Command {
        self.tests(&["--lib", "--no-fail-fast"])
    }

    fn crashes(&self) -> Command {
        self.tests(&["--test", "crashes"])
    }

    /// The calls of `tests/c/calls.c`, by a program that the cross compiler makes.
    fn c_library(&self) -> Result<(), Failure> {
        let (root, prefix) = (&self.cross.workspace.root, self.cross.prefix()?);
        let program = self.cross.below_target("cross/aarch64")?.join("calls");
        let mut compiler = Command::new("aarch64-linux-gnu-gcc");
        compiler
            .arg("-I")
            .arg(prefix.join("include"))
            .arg(root.join("crates/gpulower-c/tests/c/calls.c"))
            .arg("-o")
            .arg(&program)
            .arg(prefix.join("lib/libgpulower.so"))
            .args(["-lpthread", "-lm", "-Wl,--allow-shlib-undefined", "-Wl,-rpath"])
            .arg(prefix.join("lib"));
        run_command(&mut compiler)?;
        let mut run = self.cross.workspace.command(self.emulator.runner());
        run_command(run.arg(&program).env("CUDA_HOME", &self.cuda))
    }

    /// The wheel, installed by a pip that runs in the Python of that processor, and refuses wheels of others; a kernel compiled by
    /// it, and a crash of MLIR's.
    fn wheel(&self) -> Result<(), Failure> {
        let folder = self.cross.below_target("cross/aarch64")?.join("package");
        if folder.exists() {
            fs::remove_dir_all(&folder).context(|| format!("remove {}", folder.display()))?;
        }
        let mut pip = Command::new(wheels::python_with_pip().ok_or_else(wheels::no_python)?);
        let pip = capture(pip.args(["-c", "import pip; print(pip.__path__[0][:-len('/pip')])"]))?;
        let python = |path: &Path| {
            let mut command = self.cross.workspace.command(self.emulator.runner());
            command.arg(self.cross.sysroot.join("usr/bin/python3"));
            command.env("PYTHONPATH", path).env("CUDA_HOME", &self.cuda);
            command
        };
        let mut install = python(Path::new(String::from_utf8_lossy(&pip.stdout).trim()));
        install.args("-m pip install --no-index --no-deps --no-compile --target".split(' '));
        run_command(install.arg(&folder).args(entries(&self.cross.wheels()?)?))?;
        run_command(python(&folder).args(["-c", WHEEL, "examples/saxpy.mlir"]))
    }
}

const WHEEL: &str = "
import importlib.metadata, pathlib, platform, sys, gpulower
assert platform.machine() == 'aarch64', platform.machine()
assert importlib.metadata.version('gpulower') == gpulower.__version__
artifact = gpulower.compile(pathlib.Path(sys.argv[1]), target='sm_90')
print(artifact.kernel('saxpy').registers, 'registers,', len(artifact), 'bytes by', artifact.tool)
crashes = 'gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }'
try:
    gpulower.compile(crashes, target='sm_90')
except gpulower.CrashError as error:
    assert 'SIGSEGV' in str(error), error
else:
    raise AssertionError('that crashes')
again = gpulower.compile(pathlib.Path(sys.argv[1]), target='sm_90')
assert again == artifact
";

/// Compiles examples in one process, which qemu translates once; gives the files that were written, by name.
fn compiled(
    mut command: Command,
    examples: &[&Example],
    chip: &str,
    form: &[&str],
    folder: &Path,
) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
    command.args(["compile", "--no-cache"]);
    for example in examples {
        command.arg(&example.path);
        for library in &example.libraries {
            command.arg("--link").arg(library);
        }
    }
    command.args(["--target", chip]).args(form).arg("-o").arg(folder);
    let said = capture(&mut command)?;
    if !said.status.success() {
        let errors = String::from_utf8_lossy(&said.stderr);
        return Err(Failure::new(format!("`{}` failed: {}", shown(&command), errors.trim())));
    }
    let mut files = BTreeMap::new();
    for path in entries(folder)? {
        let bytes = fs::read(&path).context(|| format!("read {}", path.display()))?;
        files.insert(path.file_name().unwrap_or_default().into(), bytes);
    }
    Ok(files)
}
