//! `cargo xtask demo`: compiles the kernels under `examples/` with the real program and prints what came out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Deserialize;

use crate::command::{Context, Failure, capture, run as run_command, shown};
use crate::env::Workspace;
use crate::setup::{self, Purpose, Ready};

#[derive(Debug, Args)]
pub struct Options {
    /// Do not look for missing packages and wheels first.
    #[arg(long)]
    no_setup: bool,
    /// The NVIDIA chip, for the examples that can be compiled for it.
    #[arg(long, default_value = "sm_90")]
    nvidia: String,
    /// The AMD chip, for the examples that can be compiled for it.
    #[arg(long, default_value = "gfx942")]
    amd: String,
}

/// Where the demo writes what it compiled, below the checkout.
const OUTPUT: &str = ".demo";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let ready = if options.no_setup {
        Ready {
            cuda: Some(workspace.wheel_cuda()).filter(|path| path.is_dir()),
        }
    } else {
        setup::run(workspace, Purpose::Demo)?
    };
    run_command(workspace.cargo("build").args(["--bins", "--locked"]))?;
    let program = workspace.binaries()?.join("gpulower");
    let folder = workspace.root.join(OUTPUT);
    fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;

    let mut artifacts = Vec::new();
    let mut failures = Vec::new();
    for example in examples(&workspace.root.join("examples"))? {
        for job in jobs(&example, options, ready.cuda.is_some()) {
            match compile(workspace, &program, &job) {
                Ok(compiled) => artifacts.extend(compiled),
                Err(failure) => failures.push((job, failure)),
            }
        }
    }
    print!("\n{}", kernel_table(&artifacts));
    print!("\n{}", stage_table(&artifacts));
    println!("\nThe files are in {OUTPUT}/.");
    if ready.cuda.is_none() {
        println!(
            "There is no CUDA tree, so NVIDIA kernels end as PTX and LLVM IR; `cargo xtask setup` says how to get one."
        );
    }
    let mut fatal = false;
    for (job, failure) in &failures {
        // Without a CUDA tree there is no libdevice either, and the kernels that need it cannot be made.
        let expected =
            ready.cuda.is_none() && job.vendor == Vendor::Nvidia && failure.to_string().contains("libdevice");
        fatal |= !expected;
        eprintln!("\n{} for {}: {failure}", job.name, job.target);
    }
    if fatal {
        return Err(Failure::new("not every example could be compiled"));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    fn of(target: &str) -> Self {
        if target.starts_with("gfx") {
            Self::Amd
        } else {
            Self::Nvidia
        }
    }
}

/// One file under `examples/`, with what its header says.
#[derive(Debug, PartialEq, Eq)]
pub struct Example {
    pub path: PathBuf,
    pub name: String,
    /// From `// gpulower-targets: sm_90,gfx942`: what it can be compiled for. Empty when there is no such line.
    targets: Vec<String>,
    /// From `// gpulower-link: lib/f.ll`: libraries to link, relative to the file.
    pub libraries: Vec<PathBuf>,
}

impl Example {
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let libraries = header(&text, "gpulower-link");
        Ok(Self {
            name: path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default(),
            targets: header(&text, "gpulower-targets"),
            libraries: libraries.iter().map(|name| folder.join(name)).collect(),
            path,
        })
    }

    /// Whether it can be compiled for a chip.
    pub fn allows(&self, wanted: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| target == wanted)
    }

    /// The wanted chip when the example allows it, else the first of that vendor that it names.
    fn target(&self, vendor: Vendor, wanted: &str) -> Option<String> {
        if self.allows(wanted) {
            return Some(wanted.to_owned());
        }
        let mut own = self.targets.iter().filter(|target| Vendor::of(target) == vendor);
        own.next().cloned()
    }
}

/// The values of `// NAME: a, b` in the comment lines of a file.
fn header(text: &str, name: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("//")?.trim().strip_prefix(name)?.strip_prefix(':'))
        .flat_map(|values| values.split([',', ' ']))
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The examples in a folder, by name.
pub fn examples(folder: &Path) -> Result<Vec<Example>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).context(|| format!("read {}", folder.display()))? {
        let path = entry.context(|| format!("read {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "mlir") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Failure::new(format!("no .mlir file in {}", folder.display())));
    }
    paths.sort();
    paths.into_iter().map(Example::read).collect()
}

/// One run of `gpulower compile`.
#[derive(Debug)]
struct Job {
    name: String,
    input: PathBuf,
    libraries: Vec<PathBuf>,
    vendor: Vendor,
    target: String,
    emit: &'static str,
    extension: &'static str,
}

fn jobs(example: &Example, options: &Options, cuda: bool) -> Vec<Job> {
    let nvidia: &[(&str, &str)] = if cuda {
        &[("cubin", "cubin")]
    } else {
        &[("ptx", "ptx"), ("llvm", "ll")]
    };
    let plan = [
        (Vendor::Nvidia, &options.nvidia, nvidia),
        (Vendor::Amd, &options.amd, &[("hsaco", "hsaco")]),
    ];
    let mut jobs = Vec::new();
    for (vendor, wanted, formats) in plan {
        let Some(target) = example.target(vendor, wanted) else {
            continue;
        };
        jobs.extend(formats.iter().map(|&(emit, extension)| Job {
            name: example.name.clone(),
            input: example.path.clone(),
            libraries: example.libraries.clone(),
            vendor,
            target: target.clone(),
            emit,
            extension,
        }));
    }
    jobs
}

impl Job {
    fn command(&self, workspace: &Workspace, program: &Path) -> Command {
        let mut command = workspace.command(program);
        // What is shown is to be compiled.
        command.arg("compile").arg(&self.input).arg("--no-cache");
        for library in &self.libraries {
            command.arg("--link").arg(library);
        }
        let output = format!("{OUTPUT}/{}.{}.{}", self.name, self.target, self.extension);
        command
            .args(["--target", &self.target, "--emit", self.emit])
            .args(["-o", &output, "--report=json"]);
        command
    }
}

fn compile(workspace: &Workspace, program: &Path, job: &Job) -> Result<Vec<Artifact>, Failure> {
    let mut command = job.command(workspace, program);
    let output = capture(&mut command)?;
    if !output.status.success() {
        return Err(Failure::new(format!(
            "`{}` failed ({})\n{}",
            shown(&command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )));
    }
    let report: Report =
        serde_json::from_slice(&output.stdout).context(|| format!("read the report of `{}`", shown(&command)))?;
    Ok(report.artifacts)
}

/// What `gpulower compile --report=json` prints. A field that is absent is shown as `-`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Report {
    artifacts: Vec<Artifact>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Artifact {
    module: Option<String>,
    format: Option<String>,
    stages: Vec<Stage>,
    images: Vec<Image>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Image {
    target: Option<String>,
    format: Option<String>,
    kernels: Vec<Kernel>,
}

impl Artifact {
    fn targets(&self) -> Option<String> {
        let targets: Vec<&str> = self.images.iter().filter_map(|image| image.target.as_deref()).collect();
        (!targets.is_empty()).then(|| targets.join(","))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stage {
    stage: Option<String>,
    milliseconds: Option<f64>,
}

/// Resources of a kernel; sizes in bytes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kernel {
    name: Option<String>,
    /// NVIDIA: registers of a thread.
    registers: Option<u64>,
    /// AMD: vector, accumulation and scalar registers of a wave.
    vgprs: Option<u64>,
    agprs: Option<u64>,
    sgprs: Option<u64>,
    /// NVIDIA: bytes stored to and loaded from memory by spilling.
    spill_store_bytes: Option<u64>,
    spill_load_bytes: Option<u64>,
    /// AMD: spilled registers.
    spilled_sgprs: Option<u64>,
    spilled_vgprs: Option<u64>,
    shared_bytes: Option<u64>,
    scratch_bytes: Option<u64>,
    code_bytes: Option<u64>,
}

impl Kernel {
    fn registers(&self) -> String {
        if let Some(registers) = self.registers {
            return registers.to_string();
        }
        let kinds = [("v", self.vgprs), ("a", self.agprs), ("s", self.sgprs)];
        let known: Vec<_> = kinds
            .iter()
            .filter_map(|(kind, count)| Some(format!("{kind}{}", (*count)?)))
            .collect();
        if known.is_empty() {
            "-".to_owned()
        } else {
            known.join(" ")
        }
    }
}

impl Kernel {
    /// Bytes for NVIDIA, registers for AMD: what each vendor's tools record.
    fn spills(&self) -> Option<String> {
        if let Some(bytes) = self.spill_store_bytes.max(self.spill_load_bytes) {
            return Some(bytes.to_string());
        }
        let registers = self.spilled_sgprs.unwrap_or(0) + self.spilled_vgprs?;
        Some(if registers == 0 {
            "0".to_owned()
        } else {
            format!("{registers} regs")
        })
    }
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn kernel_table(artifacts: &[Artifact]) -> String {
    let head = [
        "kernel",
        "target",
        "format",
        "registers",
        "spills",
        "shared B",
        "scratch B",
        "code B",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for image in artifacts.iter().flat_map(|artifact| &artifact.images) {
        for kernel in &image.kernels {
            rows.push(vec![
                or_dash(kernel.name.as_ref()),
                or_dash(image.target.as_ref()),
                or_dash(image.format.as_ref()),
                kernel.registers(),
                or_dash(kernel.spills()),
                or_dash(kernel.shared_bytes),
                or_dash(kernel.scratch_bytes),
                or_dash(kernel.code_bytes),
            ]);
        }
    }
    aligned(&rows, 3)
}

/// Milliseconds by stage; the stages stand in the order in which they first appear.
fn stage_table(artifacts: &[Artifact]) -> String {
    let mut stages: Vec<&str> = Vec::new();
    for stage in artifacts.iter().flat_map(|artifact| &artifact.stages) {
        let name = stage.stage.as_deref().unwrap_or("-");
        if !stages.contains(&name) {
            stages.push(name);
        }
    }
    let head = ["module (ms)", "target", "format"].into_iter();
    let head = head.chain(stages.iter().copied()).chain(["sum"]);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for artifact in artifacts {
        let mut times: BTreeMap<&str, f64> = BTreeMap::new();
        for stage in &artifact.stages {
            let name = stage.stage.as_deref().unwrap_or("-");
            *times.entry(name).or_default() += stage.milliseconds.unwrap_or_default();
        }
        let mut row = vec![
            or_dash(artifact.module.as_ref()),
            or_dash(artifact.targets()),
            or_dash(artifact.format.as_ref()),
        ];
        let cell = |time: Option<&f64>| or_dash(time.map(|time| format!("{time:.1}")));
        row.extend(stages.iter().map(|stage| cell(times.get(stage))));
        row.push(cell(times.values().copied().reduce(|a, b| a + b).as_ref()));
        rows.push(row);
    }
    aligned(&rows, 3)
}

/// Columns of equal width: the first `left` flush left, the numbers flush right.
fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column < left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(targets: &[&str]) -> Example {
        Example {
            path: "examples/a.mlir".into(),
            name: "a".into(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            libraries: vec!["examples/lib/f.ll".into()],
        }
    }

    fn options() -> Options {
        Options {
            no_setup: true,
            nvidia: "sm_90".into(),
            amd: "gfx942".into(),
        }
    }

    fn planned(targets: &[&str], cuda: bool) -> Vec<(String, &'static str)> {
        let jobs = jobs(&example(targets), &options(), cuda);
        jobs.into_iter().map(|job| (job.target, job.emit)).collect()
    }

    #[test]
    fn the_header_names_targets_and_libraries() {
        let text =
            "// gpulower-targets: sm_90a, gfx942\n// gpulower-link: lib/f.ll\n// gpulower-linked: no\nmodule {}\n";
        assert_eq!(header(text, "gpulower-targets"), ["sm_90a", "gfx942"]);
        assert_eq!(header(text, "gpulower-link"), ["lib/f.ll"]);
        assert!(header(text, "gpulower-other").is_empty());
    }

    #[test]
    fn each_example_is_compiled_for_what_it_allows() {
        let both = [("sm_90".to_owned(), "cubin"), ("gfx942".to_owned(), "hsaco")];
        assert_eq!(planned(&[], true), both);
        assert_eq!(planned(&["sm_80", "sm_90", "gfx90a", "gfx942"], true), both);
        assert_eq!(planned(&["sm_90a"], true), [("sm_90a".to_owned(), "cubin")]);
        assert_eq!(planned(&["gfx90a"], true), [("gfx90a".to_owned(), "hsaco")]);
    }

    #[test]
    fn without_cuda_ptx_and_llvm_ir_are_made() {
        let expected = [("sm_90", "ptx"), ("sm_90", "llvm"), ("gfx942", "hsaco")];
        assert_eq!(
            planned(&[], false),
            expected.map(|(target, emit)| (target.to_owned(), emit))
        );
    }

    #[test]
    fn the_command_line_names_everything() {
        let workspace = Workspace {
            root: "/checkout".into(),
            llvm: "/llvm".into(),
        };
        let job = &jobs(&example(&["sm_90"]), &options(), true)[0];
        assert_eq!(
            shown(&job.command(&workspace, Path::new("gpulower"))),
            "gpulower compile examples/a.mlir --no-cache --link examples/lib/f.ll --target sm_90 --emit cubin \
             -o .demo/a.sm_90.cubin --report=json"
        );
    }

    #[test]
    fn a_report_becomes_two_tables() {
        let json = r#"{"artifacts": [
            {"module": "m", "format": "cubin", "bytes": 5000,
             "stages": [{"stage": "translate", "milliseconds": 1.25}, {"stage": "ptxas", "milliseconds": 20}],
             "images": [{"target": "sm_90", "format": "cubin",
             "kernels": [{"name": "saxpy", "registers": 12, "sgprs": null, "spill_store_bytes": 4,
                          "spill_load_bytes": 8, "spilled_vgprs": null, "code_bytes": 384}]}]},
            {"format": "hsaco", "images": [{"target": "gfx942", "format": "hsaco",
             "kernels": [{"name": "saxpy", "registers": null, "vgprs": 4, "agprs": 0, "sgprs": 10,
                          "spill_store_bytes": null, "spilled_sgprs": 0, "spilled_vgprs": 3}]}]}]}"#;
        let report: Report = serde_json::from_str(json).unwrap();
        assert_eq!(
            kernel_table(&report.artifacts),
            "\
kernel  target  format  registers  spills  shared B  scratch B  code B
saxpy   sm_90   cubin          12       8         -          -     384
saxpy   gfx942  hsaco   v4 a0 s10  3 regs         -          -       -
"
        );
        assert_eq!(
            stage_table(&report.artifacts),
            "\
module (ms)  target  format  translate  ptxas   sum
m            sm_90   cubin         1.2   20.0  21.2
-            gfx942  hsaco           -      -     -
"
        );
    }
}
