//! The part `integrations` of the tests: compilers that others wrote, on top of gpulower (`integrations/`).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Context, Failure};
use crate::env::Workspace;
use crate::install;
use crate::wheels::python_environment;

/// What the tests need from PyPI.
const REQUIREMENTS: &str = "integrations/requirements.txt";

/// What BuildGrid needs from there.
const BUILDGRID: &str = "integrations/bazel/requirements.txt";

/// The integrations in Python, each with tests of its own.
const PACKAGES: [&str; 4] = ["triton", "numba", "xdsl", "flydsl"];

/// The commands, in order: what is tested is built, then each integration.
pub fn test(workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    let python = packages(workspace)?.join("bin/python");
    let mut build = workspace.cargo("build");
    build.args([
        "--locked",
        "-p",
        "gpulower-cli",
        "-p",
        "gpulower-c",
        "-p",
        "gpulower-python",
        "-p",
        "gpulower-tensor",
    ]);
    // As maturin does: an interpreter brings Python's symbols.
    build.env("PYO3_BUILD_EXTENSION_MODULE", "1");
    let mut commands = vec![build, workspace_again(workspace)];
    for package in PACKAGES {
        commands.push(in_python(workspace, &python, package)?);
    }
    let mut tensor = in_python(workspace, &python, "tensor")?;
    tensor.env("GPULOWER_TENSOR", workspace.binaries()?.join("gpulower-tensor"));
    commands.push(tensor);
    commands.extend(in_cpp(workspace));
    commands.push(by_bazel(workspace)?);
    Ok(commands)
}

/// Builds an example with Bazel, in its sandboxes and by a BuildGrid with two workers.
fn by_bazel(workspace: &Workspace) -> Result<Command, Failure> {
    let environment = python_environment(workspace, "buildgrid", "BuildGrid (170 MB)", BUILDGRID)?;
    let mut check = workspace.command(environment.join("bin/python"));
    check
        .arg("integrations/bazel/check.py")
        .arg(folder(workspace).join("prefix/bin/gpulower"))
        .arg(workspace.wheel_cuda())
        .arg(folder(workspace).join("bazel"));
    Ok(check)
}

/// Lays out what was built, by this program: the build comes before.
pub fn lay_out(workspace: &Workspace) -> Result<(), Failure> {
    let built = workspace.binaries()?;
    let folder = folder(workspace);
    install::lay_out(
        workspace,
        &built,
        &built.join("libgpulower_c.so"),
        &folder.join("prefix"),
    )?;
    let package = folder.join("site/gpulower");
    fs::create_dir_all(&package).context(|| format!("make {}", package.display()))?;
    let sources = workspace.root.join("crates/gpulower-python/python/gpulower");
    for entry in fs::read_dir(&sources).context(|| format!("read {}", sources.display()))? {
        let path = entry.context(|| format!("read {}", sources.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            link(&path, &package.join(path.file_name().unwrap_or_default()))?;
        }
    }
    link(&built.join("lib_native.so"), &package.join("_native.abi3.so"))?;
    entry_point(&workspace.root.join("integrations/triton"), &folder.join("site"))
}

/// What `pip install integrations/triton` would leave: Triton finds the backend by it.
fn entry_point(sources: &Path, site: &Path) -> Result<(), Failure> {
    link(&sources.join("gpulower_triton"), &site.join("gpulower_triton"))?;
    let metadata = site.join("gpulower_triton-0.1.0.dist-info");
    fs::create_dir_all(&metadata).context(|| format!("make {}", metadata.display()))?;
    for (name, text) in [
        (
            "METADATA",
            "Metadata-Version: 2.1\nName: gpulower-triton\nVersion: 0.1.0\n",
        ),
        ("entry_points.txt", "[triton.backends]\ngpulower = gpulower_triton\n"),
    ] {
        fs::write(metadata.join(name), text).context(|| format!("write {name}"))?;
    }
    Ok(())
}

fn link(to: &Path, at: &Path) -> Result<(), Failure> {
    let _ = fs::remove_file(at);
    symlink(to, at).context(|| format!("make {}", at.display()))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("target/integrations")
}

/// Through cargo, not by the path of this program: the build before may have replaced it.
fn workspace_again(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("xtask");
    command.arg("lay-out-integrations");
    command
}

fn in_python(workspace: &Workspace, python: &Path, package: &str) -> Result<Command, Failure> {
    let site = folder(workspace).join("site");
    let executor = workspace.root.join("tests/amd");
    let path = std::env::join_paths([&site, &executor, &workspace.toolkit().join("amd")])
        .context(|| "put together PYTHONPATH".to_owned())?;
    let cuda = workspace.wheel_cuda();
    let mut command = workspace.command(python);
    command
        .current_dir(workspace.root.join("integrations").join(package))
        .args(["-m", "unittest", "--verbose"])
        .env("PYTHONPATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CUDA_HOME", &cuda)
        // numba-cuda-mlir opens the CUDA runtime when it is imported.
        .env("LD_LIBRARY_PATH", cuda.join("lib"))
        .env("GPULOWER_OPT", folder(workspace).join("prefix/bin/gpulower-opt"));
    Ok(command)
}

/// Configures, builds and runs the compiler in C++, and its optimizer driver with gpulower's plugin in it.
fn in_cpp(workspace: &Workspace) -> Vec<Command> {
    let build = folder(workspace).join("cpp");
    let sources = workspace.root.join("integrations/cpp");
    let mut configure = workspace.command("cmake");
    configure
        .arg("-S")
        .arg(&sources)
        .arg("-B")
        .arg(&build)
        .arg("-DCMAKE_BUILD_TYPE=Release")
        .arg(format!(
            "-DCMAKE_PREFIX_PATH={};{}",
            folder(workspace).join("prefix").display(),
            workspace.llvm.display()
        ));
    let build_in = |folder: &Path| {
        let mut make = workspace.command("cmake");
        make.arg("--build").arg(folder).args(["--parallel", "2"]);
        make
    };
    let prefix = folder(workspace).join("prefix");
    let plugin = folder(workspace).join("plugin");
    let mut configure_plugin = workspace.command("cmake");
    configure_plugin
        .arg("-S")
        .arg(prefix.join("share/gpulower/plugin"))
        .arg("-B")
        .arg(&plugin)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
        .arg(format!("-DMLIR_PREFIX={}", workspace.llvm.display()));
    let run = |targets: &str, output: &str| {
        let mut command = workspace.command(build.join("elementwise-compiler"));
        command
            .arg(sources.join("blend.mlir"))
            .args([targets])
            .arg(build.join(output))
            .env("CUDA_HOME", workspace.wheel_cuda());
        command
    };
    let mut inspect = workspace.command(folder(workspace).join("prefix/bin/gpulower"));
    inspect.arg("inspect").arg(build.join("blend.offload"));
    let mut through_plugin = workspace.command("python3");
    through_plugin
        .current_dir(&sources)
        .args(["-m", "unittest", "--verbose"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CUDA_HOME", workspace.wheel_cuda())
        .env("BUILD", &build)
        .env("PLUGIN", plugin.join("gpulower-plugin.so"));
    vec![
        configure,
        build_in(&build),
        run("sm_90", "blend.cubin"),
        run("gfx942", "blend.hsaco"),
        run("sm_90,gfx942", "blend.offload"),
        inspect,
        configure_plugin,
        build_in(&plugin),
        through_plugin,
    ]
}

/// The environment with others' compilers, made where it is missing or of other versions.
pub fn packages(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let what = "Triton, numba-cuda-mlir, xDSL and FlyDSL (340 MB)";
    python_environment(workspace, "integrations", what, REQUIREMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integration_has_tests_and_pins() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for package in PACKAGES {
            let tests = root
                .join("integrations")
                .join(package)
                .join(format!("test_{package}.py"));
            assert!(tests.is_file(), "{}", tests.display());
        }
        for file in [REQUIREMENTS, BUILDGRID] {
            let text = fs::read_to_string(root.join(file)).unwrap();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                assert!(line.contains("=="), "{line} has no version");
            }
        }
    }
}
