//! A root that has nothing but Debian's smallest system, and programs that run in it as in a container: without a network, and
//! without anything of this system but the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Context, Failure, printed, run as run_command, succeeds};

/// What a root has besides Debian's essential packages and what these need: how packages get there, and Python, which tries
/// the wheel and the C library.
const PACKAGES: [&str; 5] = ["apt", "libffi8", "libstdc++6", "python3-venv", "xz-utils"];

/// A folder that is a root.
#[derive(Debug)]
pub struct Root(PathBuf);

impl Root {
    /// Made of the files of this system's packages: no network is needed, and it takes seconds.
    pub fn of_this_system(folder: &Path) -> Result<Self, Failure> {
        if folder.exists() {
            fs::remove_dir_all(folder).context(|| format!("remove {}", folder.display()))?;
        }
        let packages = closure(&installed()?)?;
        let mut files = files_of(&packages)?;
        // Where these are links to the same below /usr, no package has the links, and what they lead to comes later.
        for name in ["bin", "sbin", "lib", "lib64"] {
            files.insert(format!("/{name}"));
            let below = folder.join("usr").join(name);
            fs::create_dir_all(&below).context(|| format!("make {}", below.display()))?;
        }
        let dpkg = folder.join("var/lib/dpkg");
        // A script of base-files makes /opt; a system in a container may lack /mnt.
        for made in [&dpkg, &folder.join("opt"), &folder.join("mnt")] {
            fs::create_dir_all(made).context(|| format!("make {}", made.display()))?;
        }
        let list = folder.with_extension("files");
        let text: String = files.iter().fold(String::new(), |mut text, file| {
            let _ = writeln!(text, "{}", file.trim_start_matches('/'));
            text
        });
        fs::write(&list, text).context(|| format!("write {}", list.display()))?;
        let mut copy = Command::new("bash");
        copy.args([
            "-o",
            "pipefail",
            "-ec",
            "tar -C / --no-recursion --verbatim-files-from --ignore-failed-read -cf - -T \"$1\" | tar -C \"$2\" -xf -",
            "bash",
        ])
        .arg(&list)
        .arg(folder);
        run_command(&mut copy)?;
        fs::remove_file(&list).context(|| format!("remove {}", list.display()))?;
        let status = printed(Command::new("dpkg-query").arg("--status").args(&packages))?;
        fs::write(dpkg.join("status"), status).context(|| "write what dpkg knows".to_owned())?;
        for name in ["passwd", "group"] {
            // Otherwise a script of base-passwd puts them there.
            let file = folder.join("etc").join(name);
            fs::copy(format!("/usr/share/base-passwd/{name}.master"), &file)
                .context(|| format!("write {}", file.display()))?;
        }
        let root = Self(folder.into());
        // What scripts of the packages have made, and what dpkg would do at the first chance.
        root.run("ldconfig; dpkg --configure --pending")?;
        Ok(root)
    }

    /// Of a release of Debian, from its archive: needs root, a network, and debootstrap. One that is there is taken.
    pub fn of_release(folder: &Path, release: &str) -> Result<Self, Failure> {
        if !folder.join("usr/bin/python3").exists() {
            let mut bootstrap = Command::new("debootstrap");
            bootstrap
                .args([
                    "--variant=minbase",
                    &format!("--include={}", PACKAGES.join(",")),
                    release,
                ])
                .arg(folder);
            run_command(&mut bootstrap)?;
        }
        Ok(Self(folder.into()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a script of the shell inside.
    pub fn run(&self, script: &str) -> Result<(), Failure> {
        run_command(&mut self.command(script, None)?)
    }

    /// What runs a script of the shell inside, as root of the root. Without root's rights here, the kernel has to allow namespaces
    /// to everybody. A folder of this system is seen there as [`MOUNTED`].
    pub fn command(&self, script: &str, mounted: Option<&Path>) -> Result<Command, Failure> {
        const APART: [&str; 4] = ["--net", "--pid", "--mount", "--fork"];
        const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];
        let mut inside = Command::new("unshare");
        // Root of a container may have no right to do it as itself.
        if !succeeds(Command::new("unshare").args(APART).arg("true")) {
            if !succeeds(Command::new("unshare").args(AS_ROOT).args(APART).arg("true")) {
                return Err(Failure::new(
                    "unshare --user --net --pid --mount is not allowed here: a root is run in namespaces of its own, which need \
                     root's rights, or a kernel that allows them to everybody",
                ));
            }
            inside.args(AS_ROOT);
        }
        inside
            .args(APART)
            .args(["sh", "-ec", INSIDE, "sh"])
            .arg(&self.0)
            .arg(script)
            .arg(mounted.unwrap_or(Path::new("")))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8");
        Ok(inside)
    }

    /// The files inside, without what its package manager and Python write down.
    pub fn files(&self) -> Result<BTreeSet<String>, Failure> {
        let listed = printed(Command::new("find").arg(&self.0).args(["-xdev", "-printf", "%P\\n"]))?;
        let is_noted = |path: &str| {
            ["var/lib/dpkg", "var/lib/apt", "var/log", "var/cache", "proc", "dev"]
                .iter()
                .any(|of| path.starts_with(of))
                || path.contains("__pycache__")
        };
        let files = listed.lines().filter(|path| !is_noted(path));
        Ok(files.map(str::to_owned).collect())
    }
}

/// Where a folder of this system is in a root: below it nobody looks for anything unasked.
pub const MOUNTED: &str = "/mnt";

/// `/proc` is how lld reads objects in memory; of `/dev` no more than `null` is used.
const INSIDE: &str = "mount --rbind /dev \"$1/dev\"; mount -t proc proc \"$1/proc\"; \
    test -z \"$3\" || mount --rbind \"$3\" \"$1/mnt\"; exec chroot \"$1\" /bin/sh -ec \"$2\"";

/// A package that is installed: its name as dpkg's files have it, whether every system has it, and what it needs.
#[derive(Debug)]
struct Package {
    file_name: String,
    is_essential: bool,
    /// Each is met by any of the names.
    needs: Vec<Vec<String>>,
}

/// The packages of this system by name, and by the names that they provide.
fn installed() -> Result<BTreeMap<String, Package>, Failure> {
    let format = "${binary:Package}\\t${Essential}\\t${Pre-Depends}, ${Depends}\\t${Package}, ${Provides}\\t${db:Status-Status}\\t\
                  ${Architecture}\\n";
    let native = printed(Command::new("dpkg").arg("--print-architecture"))?;
    let listed = printed(Command::new("dpkg-query").args(["-W", "-f", format]))?;
    Ok(read_packages(&listed, native.trim()))
}

fn read_packages(listed: &str, native: &str) -> BTreeMap<String, Package> {
    let mut packages = BTreeMap::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file_name, essential, needs, names, "installed", architecture] = fields[..] else {
            continue;
        };
        if architecture != native && architecture != "all" {
            continue;
        }
        for (place, name) in names
            .split(',')
            .map(bare)
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
        {
            let needs = needs.split(',').filter(|need| !need.trim().is_empty());
            let package = Package {
                file_name: file_name.to_owned(),
                is_essential: essential == "yes",
                needs: needs
                    .map(|need| need.split('|').map(|name| bare(name).to_owned()).collect())
                    .collect(),
            };
            // Its own name comes first: it goes before what others provide.
            if place == 0 {
                packages.insert(name.to_owned(), package);
            } else {
                packages.entry(name.to_owned()).or_insert(package);
            }
        }
    }
    packages
}

/// The name in `name:any (>= 1.2)`.
fn bare(name: &str) -> &str {
    let name = name.trim();
    name.split([' ', ':', '(']).next().unwrap_or(name)
}

/// The essential packages, [`PACKAGES`], and all that they need.
fn closure(installed: &BTreeMap<String, Package>) -> Result<BTreeSet<String>, Failure> {
    let essential = installed.iter().filter(|(_, package)| package.is_essential);
    let mut names: Vec<&str> = essential.map(|(name, _)| name.as_str()).chain(PACKAGES).collect();
    let mut packages = BTreeSet::new();
    while let Some(name) = names.pop() {
        let package = installed.get(name);
        let package = package.ok_or_else(|| {
            Failure::new(format!(
                "{name} is not installed, of which an empty root is made (Debian: apt-get install {name})"
            ))
        })?;
        if packages.insert(package.file_name.clone()) {
            for need in &package.needs {
                let met = need.iter().find(|name| installed.contains_key(*name)).or(need.first());
                names.extend(met.map(String::as_str));
            }
        }
    }
    Ok(packages)
}

/// The files of packages that are there, and what dpkg keeps about the packages.
fn files_of(packages: &BTreeSet<String>) -> Result<BTreeSet<String>, Failure> {
    let listed = printed(Command::new("dpkg-query").arg("--listfiles").args(packages))?;
    // Systems in containers often lack documentation that a package has.
    let is_there = |path: &&str| path.starts_with('/') && Path::new(path).symlink_metadata().is_ok();
    let mut files: BTreeSet<String> = listed.lines().filter(is_there).map(str::to_owned).collect();
    let folder = Path::new("/var/lib/dpkg/info");
    for entry in fs::read_dir(folder)
        .context(|| format!("list {}", folder.display()))?
        .flatten()
    {
        let path = entry.path();
        if path
            .file_stem()
            .is_some_and(|stem| packages.contains(&*stem.to_string_lossy()))
        {
            files.insert(path.to_string_lossy().into_owned());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_needs_is_followed() {
        let mut listed = "base\tyes\tawk, libc6 (>= 2.36)\tbase, \tinstalled\tamd64\n\
                          mawk\t\t, libc6:any | libc6.1\tmawk, awk, other (= 1)\tinstalled\tamd64\n\
                          libc6:amd64\t\t, \tlibc6, \tinstalled\tamd64\n\
                          libc6:i386\t\t, \tlibc6, \tinstalled\ti386\n\
                          gone\tyes\t, \tgone, \tconfig-files\tamd64\n\
                          unneeded\t\t, \tunneeded, \tinstalled\tall\n"
            .to_owned();
        let missing = closure(&read_packages(&listed, "amd64")).unwrap_err().to_string();
        assert!(missing.contains("apt-get install"), "{missing}");
        for name in PACKAGES {
            let _ = writeln!(listed, "{name}\t\t, absent | base\t{name}, \tinstalled\tamd64");
        }
        let packages = closure(&read_packages(&listed, "amd64")).unwrap();
        let others: Vec<&str> = packages
            .iter()
            .map(String::as_str)
            .filter(|name| !PACKAGES.contains(name))
            .collect();
        assert_eq!(others, ["base", "libc6:amd64", "mawk"]);
    }
}
