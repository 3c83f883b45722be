//! `cargo xtask inputs`: what is read of what other releases of MLIR and LLVM write, as a table in docs/inputs.md.
//!
//! The releases that are there, and those of Debian's packages, print the examples in every form, as they are and lowered by
//! their own passes; their clangs compile tests/inputs/kernels.cl, and releases of rustc, which have LLVMs of their own,
//! tests/inputs/kernels.rs; NVRTC compiles tests/inputs/kernels.cu to PTX. Each file is compiled by `gpulower`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, capture, run as run_command};
use crate::env::Workspace;
use crate::integrations;
use crate::packages::{CLANG_14, CLANG_15, MLIR_19};

#[derive(Debug, Args)]
pub struct Options {
    /// Fail where the table in docs/inputs.md says otherwise, and do not write it.
    #[arg(long)]
    check: bool,
    /// Leave out what is not among the test command's packages: clang 14 and 15, releases of rustc (by rustup, below target/inputs:
    /// 500 MB), NVRTC (by pip: 200 MB).
    #[arg(long)]
    few: bool,
    /// Take `gpulower` as it was built.
    #[arg(long)]
    no_build: bool,
}

/// The forms of MLIR: the end of a file's name, and the flags of `mlir-opt`.
const FORMS: [(&str, &str, &[&str]); 6] = [
    ("custom text", "custom.mlir", &[]),
    ("with locations", "custom-locations.mlir", &["--mlir-print-debuginfo"]),
    ("generic text", "generic.mlir", &["--mlir-print-op-generic"]),
    (
        "with locations",
        "generic-locations.mlir",
        &["--mlir-print-op-generic", "--mlir-print-debuginfo"],
    ),
    ("bytecode", "bytecode.mlirbc", &["--emit-bytecode"]),
    (
        "bytecode, version 4",
        "bytecode-v4.mlirbc",
        &["--emit-bytecode", "--emit-bytecode-version=4"],
    ),
];

/// What is done with an example before it is printed.
struct Level {
    /// In names of files.
    name: &'static str,
    words: &'static str,
    /// In every release.
    pipeline: &'static str,
    target: &'static str,
    /// What it is not for: operations of the other vendor, and calls of a library, which become calls of C wrappers.
    foreign: [&'static str; 2],
}

const LEVELS: [Level; 3] = [
    Level {
        name: "gpu",
        words: "`gpu`",
        pipeline: "builtin.module()",
        target: "sm_90",
        foreign: [""; 2],
    },
    Level {
        name: "lowered",
        words: "lowered for NVIDIA",
        pipeline: "builtin.module(gpu-kernel-outlining,lower-affine,convert-vector-to-scf,convert-nvgpu-to-nvvm,\
             gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,reconcile-unrealized-casts))",
        target: "sm_90",
        foreign: ["matmul_mfma", "user_library"],
    },
    Level {
        name: "lowered-amd",
        words: "lowered for AMD",
        pipeline: "builtin.module(gpu-kernel-outlining,lower-affine,convert-vector-to-scf,\
             gpu.module(convert-amdgpu-to-rocdl{chipset=gfx942},convert-scf-to-cf,convert-gpu-to-rocdl{chipset=gfx942},\
             reconcile-unrealized-casts))",
        target: "gfx942",
        foreign: ["matmul_nvgpu", "user_library"],
    },
];

/// Releases of rustc: the major version of their LLVM, the toolchain, and whether there is the hierarchy of `Sized`.
const RUSTS: [(&str, &str, bool); 5] = [
    ("17", "1.73.0", false),
    ("18", "1.78.0", false),
    ("20", "1.87.0", false),
    ("21", "1.91.0", true),
    ("23", "1.99.1", true),
];

/// Releases of NVRTC: the Python package.
const NVRTCS: [(&str, &str); 5] = [
    ("11.8", "nvidia-cuda-nvrtc-cu11==11.8.89"),
    ("12.1", "nvidia-cuda-nvrtc-cu12==12.1.105"),
    ("12.6", "nvidia-cuda-nvrtc-cu12==12.6.85"),
    ("12.9", "nvidia-cuda-nvrtc-cu12==12.9.86"),
    ("13.0", "nvidia-cuda-nvrtc==13.0.88"),
];

/// Where the table stands.
const PAGE: &str = "docs/inputs.md";
const BEGIN: &str = "<!-- measured -->\n";
const END: &str = "<!-- end -->\n";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !options.no_build {
        run_command(&mut workspace.build_everything())?;
    }
    let measure = Measure {
        gpulower: workspace.binaries()?.join("gpulower"),
        folder: workspace.root.join("target/inputs"),
        workspace,
    };
    let mut lines = vec![
        format!(
            "| {} |",
            ["MLIR", "level"]
                .into_iter()
                .chain(FORMS.map(|form| form.0))
                .collect::<Vec<_>>()
                .join(" | ")
        ),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    let old = MLIR_19.unpacked(workspace)?.join("usr/lib");
    lines.extend(measure.mlir("19", &old.join("llvm-19/bin/mlir-opt"), &old.join("x86_64-linux-gnu"))?);
    lines.extend(measure.mlir("22", &workspace.llvm.join("bin/mlir-opt"), &workspace.llvm.join("lib"))?);
    lines.extend(measure.wheel()?);
    lines.push(String::new());
    lines.push("| LLVM | text | bitcode |".to_owned());
    lines.push("|---|---|---|".to_owned());
    let usual = Path::new("/usr/lib");
    let mut clangs = vec![
        ("16", usual.join("llvm-16")),
        ("19", usual.join("llvm-19")),
        ("22", workspace.llvm.clone()),
    ];
    if !options.few {
        clangs.insert(0, ("15", CLANG_15.unpacked(workspace)?.join("usr/lib/llvm-15")));
        clangs.insert(0, ("14", CLANG_14.unpacked(workspace)?.join("usr/lib/llvm-14")));
    }
    let mut of_llvm = Vec::new();
    for (release, prefix) in clangs {
        of_llvm.push((release, measure.clang(release, &prefix)?));
    }
    if !options.few {
        for (release, toolchain, has_hierarchy) in RUSTS {
            of_llvm.push((release, measure.rustc(release, toolchain, has_hierarchy)?));
        }
    }
    of_llvm.sort_by_key(|(release, _)| *release);
    lines.extend(of_llvm.into_iter().map(|(_, line)| line));
    if !options.few {
        lines.push(String::new());
        lines.push("| NVRTC | PTX ISA | compiled |".to_owned());
        lines.push("|---|---|---|".to_owned());
        for (release, package) in NVRTCS {
            lines.push(measure.nvrtc(release, package)?);
        }
    }
    compare_or_write(&workspace.root.join(PAGE), &lines, options)
}

/// With `few`, the lines that were measured have to be among those of the page.
fn compare_or_write(page: &Path, lines: &[String], options: &Options) -> Result<(), Failure> {
    for line in lines {
        println!("{line}");
    }
    let text = fs::read_to_string(page).context(|| format!("read {}", page.display()))?;
    let parts = text
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let Some((before, (table, after))) = parts else {
        return Err(Failure::new(format!("{} has no place for the table", page.display())));
    };
    if options.check || options.few {
        let differing: Vec<&String> = lines
            .iter()
            .filter(|line| !table.lines().any(|known| known == *line))
            .collect();
        return match differing.as_slice() {
            [] => Ok(()),
            _ => Err(Failure::new(format!(
                "{PAGE} says otherwise than these lines, which were measured (`cargo xtask inputs` writes them): {differing:#?}"
            ))),
        };
    }
    let text = format!("{before}{BEGIN}{}\n{END}{after}", lines.join("\n"));
    fs::write(page, text).context(|| format!("write {}", page.display()))
}

struct Measure<'a> {
    workspace: &'a Workspace,
    gpulower: PathBuf,
    folder: PathBuf,
}

impl Measure<'_> {
    fn examples(&self) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.workspace.root.join("examples");
        let entries = fs::read_dir(&folder).context(|| format!("read {}", folder.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut all: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "mlir"))
            .collect();
        all.sort();
        Ok(all)
    }

    fn fresh(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }

    /// The lines of an `mlir-opt`.
    fn mlir(&self, release: &str, program: &Path, libraries: &Path) -> Result<Vec<String>, Failure> {
        let folder = self.fresh(&format!("mlir-{release}"))?;
        for example in self.examples()? {
            let stem = example.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for Level {
                name: level, pipeline, ..
            } in &LEVELS
            {
                for (_, end, flags) in FORMS {
                    let output = folder.join(format!("{stem}.{level}.{end}"));
                    let mut print = Command::new(program);
                    print
                        .arg(&example)
                        .arg(format!("--pass-pipeline={pipeline}"))
                        .args(flags)
                        .arg("-o")
                        .arg(&output);
                    // What a release cannot read or lower is none of its files.
                    capture(print.env("LD_LIBRARY_PATH", libraries))?;
                }
            }
        }
        self.lines(release, &folder)
    }

    /// The lines of MLIR 23, which a Python package has.
    fn wheel(&self) -> Result<Vec<String>, Failure> {
        let python = integrations::packages(self.workspace)?;
        let folder = self.fresh("mlir-23")?;
        let mut print = self.workspace.command(python.join("bin/python"));
        print
            .arg("scripts/wheel_mlir.py")
            .arg(&folder)
            .args(LEVELS.map(|level| format!("{}={}", level.name, level.pipeline)))
            .arg("--")
            .args(self.examples()?);
        capture(&mut print)?;
        self.lines("23", &folder)
    }

    fn lines(&self, release: &str, folder: &Path) -> Result<Vec<String>, Failure> {
        LEVELS
            .iter()
            .map(|level| {
                let mut line = format!("| {release} | {} |", level.words);
                for (_, end, _) in FORMS {
                    let cell = self.count(folder, level, end)?;
                    line.push_str(&format!(" {cell} |"));
                }
                Ok(line)
            })
            .collect()
    }

    /// How many of the files with this end compile, of how many; and how many at the `gpu` level become the code that the
    /// example becomes.
    fn count(&self, folder: &Path, level: &Level, end: &str) -> Result<String, Failure> {
        let (mut all, mut compiled, mut same) = (0, 0, 0);
        for example in self.examples()? {
            let stem = example.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let file = folder.join(format!("{stem}.{}.{end}", level.name));
            if level.foreign.contains(&&*stem) || !file.exists() {
                continue;
            }
            let target = if stem == "matmul_mfma" { "gfx942" } else { level.target };
            all += 1;
            if let Some(code) = self.compile(&file, target)? {
                compiled += 1;
                same += usize::from(self.compile(&example, target)? == Some(code));
            }
        }
        let other = compiled - same;
        let is_same = level.name != "gpu" || other == 0;
        let note = if is_same {
            String::new()
        } else {
            format!(", {other} to other code")
        };
        Ok(format!("{compiled} of {all}{note}"))
    }

    /// The code of a file, without what names the place it came from.
    fn compile(&self, file: &Path, target: &str) -> Result<Option<String>, Failure> {
        let mut compile = Command::new(&self.gpulower);
        compile
            .arg("compile")
            .arg(file)
            .args(["-t", target, "--emit", "asm", "-o", "-"]);
        compile
            .env("GPULOWER_CACHE", "off")
            .env("CUDA_HOME", self.workspace.wheel_cuda());
        let library = self.workspace.root.join("examples/lib/scale_and_shift.ll");
        if file.to_string_lossy().contains("user_library") {
            compile.arg("-l").arg(library);
        }
        let output = capture(&mut compile)?;
        let error = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let first = error.lines().next().unwrap_or_default();
            eprintln!("{}: {first}", file.file_name().unwrap_or_default().to_string_lossy());
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The line of a release of rustc, which is installed for this alone.
    fn rustc(&self, release: &str, toolchain: &str, has_hierarchy: bool) -> Result<String, Failure> {
        let folder = self.fresh(&format!("rustc-{release}"))?;
        let home = self.folder.join("rustup");
        let mut install = Command::new("rustup");
        install.args([
            "toolchain",
            "install",
            toolchain,
            "--profile",
            "minimal",
            "--no-self-update",
        ]);
        run_command(install.env("RUSTUP_HOME", &home))?;
        let mut words = [Vec::new(), Vec::new()];
        for (triple, flags, target) in [
            ("nvptx64-nvidia-cuda", &["-Ctarget-cpu=sm_80"][..], "sm_90"),
            ("amdgcn-amd-amdhsa", &["-Ctarget-cpu=gfx90a", "--cfg=amd"], "gfx90a"),
        ] {
            let place = folder.join(target);
            let mut compile = self.workspace.command("rustc");
            // The library is not used, so no release needs it for the target.
            compile
                .env("RUSTUP_HOME", &home)
                .env("RUSTUP_TOOLCHAIN", toolchain)
                .env("RUSTC_BOOTSTRAP", "1");
            compile.arg("--target").arg(triple).args(flags);
            compile.args(has_hierarchy.then_some("--cfg=hierarchy"));
            compile
                .args(["--emit=llvm-ir,llvm-bc", "-O", "tests/inputs/kernels.rs", "--out-dir"])
                .arg(&place);
            // The oldest have no target of AMD's.
            let output = capture(&mut compile)?;
            if !output.status.success() {
                eprintln!("{}", String::from_utf8_lossy(&output.stderr));
                continue;
            }
            for (words, end) in words.iter_mut().zip(["ll", "bc"]) {
                if self.compile(&place.join(format!("kernels.{end}")), target)?.is_some() {
                    words.push(if target == "sm_90" { "NVIDIA" } else { "AMD" });
                }
            }
        }
        let [text, bitcode] = words.map(|words| match words.as_slice() {
            [] => "no".to_owned(),
            words => words.join(", "),
        });
        Ok(format!("| {release} (rustc {toolchain}) | {text} | {bitcode} |"))
    }

    /// The line of a release of NVIDIA's compiler at run time, which is installed for this alone.
    fn nvrtc(&self, release: &str, package: &str) -> Result<String, Failure> {
        let folder = self.folder.join(format!("nvrtc-{release}"));
        if !folder.exists() {
            // What an interruption leaves is not taken for the whole.
            let part = folder.with_extension("part");
            let mut install = Command::new("python3");
            install
                .args(["-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target"])
                .arg(&part);
            run_command(install.arg(package))?;
            fs::rename(&part, &folder).context(|| format!("name {}", folder.display()))?;
        }
        let ptx = folder.join("kernels.ptx");
        let mut compile = self.workspace.command("python3");
        compile
            .args(["scripts/nvrtc_ptx.py"])
            .arg(&folder)
            .arg("tests/inputs/kernels.cu")
            .arg(&ptx);
        run_command(&mut compile)?;
        let text = fs::read_to_string(&ptx).context(|| format!("read {}", ptx.display()))?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix(".version "))
            .unwrap_or("?");
        let mut chips = Vec::new();
        for chip in ["sm_80", "sm_90"] {
            let mut cubin = Command::new(&self.gpulower);
            cubin
                .arg("compile")
                .arg(&ptx)
                .args(["-t", chip, "--emit", "cubin", "-o"])
                .arg(folder.join("kernels.cubin"));
            cubin
                .env("GPULOWER_CACHE", "off")
                .env("CUDA_HOME", self.workspace.wheel_cuda());
            let output = capture(&mut cubin)?;
            match output.status.success() {
                true => chips.push(chip),
                false => eprintln!("{release}: {}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        Ok(format!("| {release} | {version} | {} |", chips.join(", ")))
    }

    /// The line of a clang: text and bitcode for both vendors.
    fn clang(&self, release: &str, prefix: &Path) -> Result<String, Failure> {
        let folder = self.fresh(&format!("clang-{release}"))?;
        let mut line = format!("| {release} |");
        for (flag, end) in [("-S", "ll"), ("-c", "bc")] {
            let mut compiled = Vec::new();
            for (triple, flags, target) in [
                ("nvptx64-nvidia-cuda", &[][..], "sm_90"),
                ("amdgcn-amd-amdhsa", &["-mcpu=gfx90a"], "gfx90a"),
            ] {
                let output = folder.join(format!("kernels.{target}.{end}"));
                let mut compile = self.workspace.command(prefix.join("bin/clang"));
                compile.arg(format!("--target={triple}")).args(flags).args([
                    "-x",
                    "cl",
                    "-cl-std=CL2.0",
                    "-cl-no-stdinc",
                    "-O1",
                    "-nogpulib",
                ]);
                compile
                    .args(["-emit-llvm", flag, "tests/inputs/kernels.cl", "-o"])
                    .arg(&output);
                compile.env("LD_LIBRARY_PATH", prefix.with_file_name("x86_64-linux-gnu"));
                run_command(&mut compile)?;
                if self.compile(&output, target)?.is_some() {
                    compiled.push(if target == "sm_90" { "NVIDIA" } else { "AMD" });
                }
            }
            let words = if compiled.is_empty() {
                "no".to_owned()
            } else {
                compiled.join(", ")
            };
            line.push_str(&format!(" {words} |"));
        }
        Ok(line)
    }
}
