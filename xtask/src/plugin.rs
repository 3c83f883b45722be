//! The pass plugin in stock `mlir-opt`s: the same as `gpulower-opt`, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::c_library::run_page;
use crate::command::{Context, Failure, capture, run as run_command, shown};
use crate::env::Workspace;
use crate::packages::MLIR_19;

/// Pipelines, with what they are run on. The last ones are refused.
const CASES: &[(&str, &str)] = &[
    ("saxpy", "gpulower-to-binary{targets=sm_90,gfx942 format=bin}"),
    (
        "softmax",
        "gpulower-to-binary{targets=sm_80,sm_90 format=fatbin compress=zstd module=soft.*}",
    ),
    (
        "reduction",
        "gpulower-to-binary{targets=gfx90a,gfx1100 format=isa section=code}",
    ),
    ("app", "gpulower-to-binary{targets=sm_90 format=isa module=nothing}"),
    (
        "matmul_tiled",
        "nvvm-attach-target{chip=sm_90 O=3},gpulower-serialize{format=isa}",
    ),
    (
        "transpose",
        "rocdl-attach-target{chip=gfx942 O=1},nvvm-attach-target{chip=sm_80},gpulower-serialize{format=offloading}",
    ),
    ("histogram", "gpulower-serialize"),
    ("histogram", "gpulower-to-binary{targets=sm_90 format=exe}"),
    ("plugin_refusals", "gpulower-to-binary{targets=sm_90,gfx942 format=isa}"),
    ("plugin_refusals", "gpu.module(gpulower-serialize)"),
];

/// An `mlir-opt`, and where its headers and libraries are.
struct Host {
    name: &'static str,
    prefix: PathBuf,
    libraries: PathBuf,
    /// Whether all of its output is that of `gpulower-opt`. Another release prints other things in another way: of it, the
    /// bytes of the objects are compared.
    same: bool,
}

/// Builds the plugin with the installed library and runs it in each host.
pub fn test(workspace: &Workspace, prefix: &Path, folder: &Path) -> Result<(), Failure> {
    let old = MLIR_19.unpacked(workspace)?.join("usr/lib");
    let hosts = [
        Host {
            name: "22",
            prefix: workspace.llvm.clone(),
            libraries: workspace.llvm.join("lib"),
            same: true,
        },
        Host {
            name: "19",
            prefix: old.join("llvm-19"),
            libraries: old.join("x86_64-linux-gnu"),
            same: false,
        },
    ];
    // As docs/plugin.md says, in the host that it is about.
    let page = folder.join("plugin-page");
    fs::create_dir_all(&page).context(|| format!("make {}", page.display()))?;
    let input = page.join("kernels.mlir");
    fs::copy(workspace.root.join("examples/saxpy.mlir"), &input).context(|| format!("write {}", input.display()))?;
    run_page(workspace, "docs/plugin.md", prefix, &page)?;
    for host in &hosts {
        let build = folder.join(format!("plugin-{}", host.name));
        let mut configure = workspace.command("cmake");
        configure.args(["-S", "crates/gpulower-c/plugin", "-B"]).arg(&build);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        configure.arg(format!("-DMLIR_PREFIX={}", host.prefix.display()));
        run_command(&mut configure)?;
        run_command(workspace.command("cmake").arg("--build").arg(&build))?;
        for (input, pipeline) in CASES {
            host.compare(workspace, prefix, &build.join("gpulower-plugin.so"), input, pipeline)?;
        }
        println!(
            "MLIR {}: the plugin gives what gpulower-opt gives in {} cases",
            host.name,
            CASES.len()
        );
    }
    Ok(())
}

impl Host {
    fn compare(
        &self,
        workspace: &Workspace,
        prefix: &Path,
        plugin: &Path,
        input: &str,
        pipeline: &str,
    ) -> Result<(), Failure> {
        let example = workspace.root.join(format!("examples/{input}.mlir"));
        let refusals = workspace.root.join(format!("crates/gpulower-c/plugin/{input}.mlir"));
        let input = if example.exists() { example } else { refusals };
        // What MLIR 19 does not read is left out for both.
        let pipeline = match self.same {
            true => pipeline.to_owned(),
            false => pipeline.replace("format=", "kernel-table=false format="),
        };
        let run = |mut command: Command| -> Result<(Output, String), Failure> {
            command.arg(&input).arg("--mlir-print-debuginfo");
            command.arg(format!("--pass-pipeline=builtin.module({pipeline})"));
            command
                .env("GPULOWER_CACHE", "off")
                .env("CUDA_HOME", workspace.wheel_cuda());
            Ok((capture(&mut command)?, shown(&command)))
        };
        let (ours, _) = run(Command::new(prefix.join("bin/gpulower-opt")))?;
        let mut host = Command::new(self.prefix.join("bin/mlir-opt"));
        host.arg(format!("--load-pass-plugin={}", plugin.display()));
        host.env("LD_LIBRARY_PATH", &self.libraries);
        let (theirs, command) = run(host)?;
        // Of an option that cannot be read gpulower-opt shows the place in the command line, too.
        let refusal = "option 'format' cannot be 'exe': expected ";
        let says =
            |output: &Output| !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(refusal);
        let differs = if pipeline.contains("=exe") {
            !says(&ours) || !says(&theirs)
        } else if self.same {
            ours != theirs
        } else {
            ours.status != theirs.status
                || objects(&ours.stdout) != objects(&theirs.stdout)
                // MLIR 19 stops at the first operation on which a pass fails.
                || errors(&ours.stderr).is_empty() != errors(&theirs.stderr).is_empty()
                || !errors(&ours.stderr).starts_with(&errors(&theirs.stderr))
        };
        if differs {
            let file = |name: &str, bytes: &[u8]| {
                let path = plugin.with_file_name(name);
                fs::write(&path, bytes).context(|| format!("write {}", path.display()))
            };
            file("ours", &ours.stdout)?;
            file("theirs", &theirs.stdout)?;
            return Err(Failure::new(format!(
                "`{command}` ({}) is not what gpulower-opt does ({}):\n{}\n{}\nwhat they write: {}",
                theirs.status,
                ours.status,
                String::from_utf8_lossy(&theirs.stderr),
                String::from_utf8_lossy(&ours.stderr),
                plugin.with_file_name("").display(),
            )));
        }
        Ok(())
    }
}

/// The strings with the bytes of the objects.
fn objects(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let binaries = text.lines().filter(|line| line.trim_start().starts_with("gpu.binary"));
    let strings = binaries.flat_map(|line| line.split('"').map(str::to_owned).collect::<Vec<_>>());
    strings.filter(|string| string.len() > 200).collect()
}

/// The messages, and where in the file they are.
fn errors(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text
        .lines()
        .filter(|line| line.contains("error: ") || line.contains("warning: "));
    lines.map(str::to_owned).collect()
}
