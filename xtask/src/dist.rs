//! `cargo xtask dist`: what is given to people, in target/dist: a Debian package, a tarball, the wheel. With `--try`, each is
//! installed, used and removed in a root that has nothing but Debian's smallest system. The tests try what they have built.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use gpulower_testing::pages::{self, Session};

use crate::command::{Context, Failure, printed, quoted, run as run_command};
use crate::env::Workspace;
use crate::root::{MOUNTED, Root};
use crate::setup::{self, Purpose};
use crate::{install, wheel};

#[derive(Debug, Args)]
pub struct Options {
    /// With the profile `dev`: quicker to make, larger.
    #[arg(long)]
    dev: bool,
    /// Of what the tests have built with the profile `dev`.
    #[arg(long, hide = true, requires = "dev")]
    built: bool,
    /// The folder to write to.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// Try each in an empty root, made of the files of this system's packages.
    #[arg(long = "try")]
    is_tried: bool,
    /// Or in one of this release of Debian, such as `stable`: needs root and debootstrap.
    #[arg(long, requires = "is_tried")]
    release: Option<String>,
    /// Try what is there already.
    #[arg(long, requires = "is_tried")]
    keep: bool,
}

/// What needs libraries of the system.
const BINARIES: [&str; 3] = ["bin/gpulower", "bin/gpulower-opt", "lib/libgpulower.so.1"];

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let out = workspace.root.join(&options.out);
    if !options.keep {
        make(workspace, options, &out)?;
    }
    if options.is_tried {
        // Beside it: a release takes a while to make.
        let root = match &options.release {
            None => Root::of_this_system(&out.with_extension("root"))?,
            Some(release) => Root::of_release(&out.with_extension(release), release)?,
        };
        try_all(workspace, &out, &root)?;
    }
    Ok(())
}

fn make(workspace: &Workspace, options: &Options, out: &Path) -> Result<(), Failure> {
    if !options.built {
        setup::run(workspace, Purpose::Demo)?;
        let mut build = workspace.cargo("build");
        build.args(["--locked", "-p", "gpulower-c", "-p", "gpulower-cli"]);
        if !options.dev {
            build.arg("--release");
        }
        run_command(&mut build)?;
    }
    if out.exists() {
        fs::remove_dir_all(out).context(|| format!("remove {}", out.display()))?;
    }
    let stage = out.join("stage");
    let prefix = stage.join("usr");
    let profile = if options.dev { "debug" } else { "release" };
    let built = workspace.binaries()?.with_file_name(profile);
    install::lay_out(workspace, &built, &built.join("libgpulower_c.so"), &prefix)?;
    for file in BINARIES {
        run_command(Command::new("strip").arg("--strip-unneeded").arg(prefix.join(file)))?;
    }
    install::document(&prefix)?;
    let documents = prefix.join("share/doc/gpulower");
    copy(&workspace.root.join("docs/install.md"), &documents.join("README.md"))?;
    // Where Debian's packages have theirs.
    copy(&workspace.root.join("LICENSE"), &documents.join("copyright"))?;
    let version = version(workspace)?;
    // How hard xz tries: what is for tests alone is to be made quickly.
    let level = if options.dev { 0 } else { 3 };
    let tarball = tarball(&prefix, out, &version, level)?;
    let package = debian_package(&stage, out, &version, level)?;
    fs::remove_dir_all(&stage).context(|| format!("remove {}", stage.display()))?;
    if options.built {
        let made = wheel::tested(workspace)?;
        copy(&made, &out.join(made.file_name().unwrap_or_default()))?;
    } else {
        wheel::make(workspace, options.dev, out)?;
    }
    for file in [tarball, package] {
        println!("dist: {}, {} MB", file.display(), size(&file) >> 20);
    }
    Ok(())
}

/// The version of the crate `gpulower`.
fn version(workspace: &Workspace) -> Result<String, Failure> {
    let manifest = workspace.root.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).context(|| format!("read {}", manifest.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.map(|rest| rest.trim_end_matches('"').to_owned());
    version.ok_or_else(|| Failure::new(format!("{} has no version", manifest.display())))
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to)
        .map(drop)
        .context(|| format!("copy {} to {}", from.display(), to.display()))
}

fn folder_name(version: &str) -> String {
    format!("gpulower-{version}-{}-linux", std::env::consts::ARCH)
}

/// Everything below one folder, to be unpacked anywhere.
fn tarball(prefix: &Path, out: &Path, version: &str, level: u32) -> Result<PathBuf, Failure> {
    let file = out.join(format!("{}.tar.xz", folder_name(version)));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
        .arg(format!("--transform=flags=r;s,^\\.,{},", folder_name(version)))
        .args(["-I", &format!("xz -T0 -{level}"), "-C"])
        .arg(prefix)
        .arg("-cf")
        .arg(&file)
        .arg(".");
    run_command(&mut tar)?;
    Ok(file)
}

fn debian_package(stage: &Path, out: &Path, version: &str, level: u32) -> Result<PathBuf, Failure> {
    let prefix = stage.join("usr");
    let architecture = printed(Command::new("dpkg").arg("--print-architecture"))?;
    let mut needed = BTreeSet::new();
    let mut glibc = (2, 0);
    for file in BINARIES {
        let said = printed(Command::new("readelf").args(["-W", "-d", "-V"]).arg(prefix.join(file)))?;
        glibc = glibc.max(newest_glibc(&said));
        needed.extend(libraries(&said));
    }
    let mut packages = BTreeSet::from([format!("libc6 (>= {}.{})", glibc.0, glibc.1)]);
    for library in &needed {
        let package = owner(library)?;
        if package != "libc6" {
            packages.insert(package);
        }
    }
    let packages: Vec<String> = packages.into_iter().collect();
    let used = printed(Command::new("du").args(["-sk"]).arg(&prefix))?;
    let kilobytes = used.split_whitespace().next().unwrap_or("0");
    let control = control(version, architecture.trim(), &packages.join(", "), kilobytes);
    let folder = stage.join("DEBIAN");
    fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
    fs::write(folder.join("control"), control).context(|| "write the control file".to_owned())?;
    let file = out.join(format!("gpulower_{version}_{}.deb", architecture.trim()));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", &format!("-z{level}"), "--build"])
        .arg(stage)
        .arg(&file);
    run_command(build.env("SOURCE_DATE_EPOCH", "0"))?;
    Ok(file)
}

/// Nothing is run when it is installed or removed: there are no scripts.
fn control(version: &str, architecture: &str, depends: &str, kilobytes: &str) -> String {
    format!(
        "Package: gpulower\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: gpulower's maintainers \
         <maintainers@gpulower.invalid>\nSection: devel\nPriority: optional\nInstalled-Size: {kilobytes}\nDepends: {depends}\n\
         Suggests: nvidia-cuda-toolkit, rocm-device-libs\nDescription: GPU kernels in MLIR, LLVM IR and PTX to machine code\n The \
         programs gpulower and gpulower-opt, and the library libgpulower with its headers.\n LLVM, MLIR and lld are in them.\n"
    )
}

/// The shared libraries that `readelf -d` lists, without the loader.
fn libraries(said: &str) -> impl Iterator<Item = String> + '_ {
    let names = said.lines().filter(|line| line.contains("(NEEDED)"));
    names
        .filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()))
        .filter(|name| !name.starts_with("ld-linux"))
}

/// The newest version of glibc's symbols that `readelf -V` lists.
fn newest_glibc(said: &str) -> (u32, u32) {
    let versions = said.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max().unwrap_or((2, 0))
}

/// The package that has a shared library.
fn owner(library: &str) -> Result<String, Failure> {
    let cache = printed(Command::new("/sbin/ldconfig").arg("-p"))?;
    let line = cache
        .lines()
        .find(|line| line.trim().starts_with(&format!("{library} ")));
    let path = line.and_then(|line| line.split("=> ").nth(1));
    let path = path.ok_or_else(|| Failure::new(format!("no {library} is installed here")))?;
    let real = fs::canonicalize(path).context(|| format!("follow {path}"))?;
    // Debian's usr-merge: the package may know the file without /usr.
    let known = [
        real.clone(),
        Path::new("/").join(real.strip_prefix("/usr").unwrap_or(&real)),
    ];
    for path in known {
        if let Ok(found) = printed(Command::new("dpkg-query").arg("-S").arg(&path))
            && let Some(package) = found.split([':', ',']).next()
        {
            return Ok(package.to_owned());
        }
    }
    Err(Failure::new(format!("no package has {}", real.display())))
}

/// What is tried in a root, by the words of docs/install.md.
struct Trial {
    what: &'static str,
    /// The files of this ending are in `/dist`.
    ending: &'static str,
    /// Install it, and use it.
    steps: &'static str,
    /// Whether the programs are then in PATH, and the tutorial can be followed.
    is_in_path: bool,
    remove: &'static str,
}

const TRIALS: &[Trial] = &[
    Trial {
        what: "the Debian package",
        ending: ".deb",
        steps: "apt-get -qq -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 install -y /dist/gpulower_*.deb
         use /usr/bin /usr/share/gpulower/examples/saxpy.mlir
         python3 -c 'import ctypes; ctypes.CDLL(\"libgpulower.so.1\")'",
        is_in_path: true,
        remove: "apt-get -qq -o Dpkg::Use-Pty=0 remove -y gpulower",
    },
    Trial {
        what: "the tarball",
        ending: ".tar.xz",
        steps: "mkdir /opt/tried; tar -xJf /dist/gpulower-*.tar.xz -C /opt/tried
         use /opt/tried/*/bin /opt/tried/*/share/gpulower/examples/saxpy.mlir
         python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' /opt/tried/*/lib/libgpulower.so.1",
        is_in_path: false,
        remove: "rm -r /opt/tried",
    },
    Trial {
        what: "the wheel",
        ending: ".whl",
        steps:
        "python3 -m venv /opt/tried; /opt/tried/bin/pip install --quiet --no-index /dist/gpulower-*.whl
         printf 'gpu.module @m { gpu.func @k() kernel { gpu.return } }' > /tmp/k.mlir
         use /opt/tried/bin /tmp/k.mlir
         /opt/tried/bin/python -c 'import gpulower; print(gpulower.compile(open(\"/tmp/k.mlir\").read(), \"gfx942\", cache=False))'",
        is_in_path: false,
        remove: "/opt/tried/bin/pip uninstall --quiet --yes gpulower; test ! -e /opt/tried/bin/gpulower
         test -z \"$(find /opt/tried -ipath '*/site-packages/gpulower*')\"
         rm -r /opt/tried /tmp/k.mlir",
    },
];

/// Uses the programs as their users do, writes to /tmp alone, and leaves nothing.
const USE: &str = "
use() {
  export HOME=/tmp/home; mkdir $HOME
  $1/gpulower --version; $1/gpulower-opt --version | head -2
  $1/gpulower compile $2 --target sm_90 --emit ptx -o /tmp/k.ptx; grep -q 'visible .entry' /tmp/k.ptx
  $1/gpulower compile $2 --target gfx942 -o /tmp/k.hsaco --report=table; $1/gpulower inspect /tmp/k.hsaco > /dev/null
  rm -r /tmp/home /tmp/k.ptx /tmp/k.hsaco
}
";

fn try_all(workspace: &Workspace, out: &Path, root: &Root) -> Result<(), Failure> {
    for trial in TRIALS {
        let what = trial.what;
        let place = root.path().join("dist");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).context(|| format!("make {}", place.display()))?;
        let entries = fs::read_dir(out).context(|| format!("list {}", out.display()))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().ends_with(trial.ending) {
                copy(&entry.path(), &place.join(name))?;
            }
        }
        println!("dist: trying {what}");
        let before = root.files()?;
        root.run(&format!("{USE}{}", trial.steps))?;
        if trial.is_in_path {
            follow_tutorial(workspace, root)?;
        }
        root.run(trial.remove)?;
        let left: Vec<String> = root.files()?.difference(&before).cloned().collect();
        if !left.is_empty() {
            return Err(Failure::new(format!("{what} leaves files: {}", left.join(", "))));
        }
    }
    println!("dist: the package, the tarball and the wheel were installed, used and removed");
    Ok(())
}

/// Follows docs/tutorial.md word for word, with NVIDIA's toolkit and nothing else: every command, and what it prints.
fn follow_tutorial(workspace: &Workspace, root: &Root) -> Result<(), Failure> {
    const FOLDER: &str = "root/tutorial";
    let folder = root.path().join(FOLDER);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
    let cuda = workspace.wheel_cuda();
    let shell = |script: &str| {
        let script = quoted(script);
        let script = format!("cd /{FOLDER}; HOME=$PWD CUDA_HOME={MOUNTED} exec bash -o pipefail -c {script}");
        root.command(&script, Some(&cuda))
            .map_err(|failure| failure.to_string())
    };
    let session = Session {
        folder: &folder,
        shell: &shell,
        has_gpu: false,
    };
    let outcome = pages::run_page(&workspace.root.join("docs/tutorial.md"), &session);
    if !outcome.wrong.is_empty() || outcome.ran == 0 {
        return Err(Failure::new(format!("docs/tutorial.md:\n{}", outcome.wrong.join("\n"))));
    }
    let left_out = outcome.for_gpus.join("; ");
    println!(
        "dist: {} commands of the tutorial do what it says; for want of a GPU not run: {left_out}",
        outcome.ran
    );
    fs::remove_dir_all(&folder).context(|| format!("remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_needs_is_read_from_its_binaries() {
        let said = " 0x1 (NEEDED)  Shared library: [libz.so.1]\n 0x1 (NEEDED)  Shared library: [ld-linux-x86-64.so.2]\n\
                    0x0010:   Name: GLIBC_2.4  Flags: none\n Name: GLIBC_2.36\n Name: GLIBCXX_3.4.30\n";
        assert_eq!(libraries(said).collect::<Vec<_>>(), ["libz.so.1"]);
        assert_eq!(newest_glibc(said), (2, 36));
    }

    /// dpkg-deb reads what we write, and finds no script in it.
    #[test]
    fn dpkg_takes_the_package() {
        let stage = std::env::temp_dir().join(format!("gpulower-dist-{}", std::process::id()));
        let folder = stage.join("package/DEBIAN");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(
            folder.join("control"),
            control("0.1.0", "amd64", "libc6 (>= 2.36), zlib1g", "1"),
        )
        .expect("written");
        let file = stage.join("p.deb");
        let mut build = Command::new("dpkg-deb");
        build
            .args(["--root-owner-group", "-Znone", "--build"])
            .arg(stage.join("package"))
            .arg(&file);
        run_command(&mut build).expect("made");
        let said = printed(Command::new("dpkg-deb").arg("--info").arg(&file)).expect("read");
        assert!(said.contains("Depends: libc6 (>= 2.36), zlib1g"), "{said}");
        assert!(!said.contains("postinst") && !said.contains("prerm"), "{said}");
        fs::remove_dir_all(&stage).expect("removed");
    }
}
