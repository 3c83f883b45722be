//! Debian and Ubuntu packages: what is needed, what is missing, installing the difference.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::command::{Failure, capture, run};
use crate::env::Workspace;

/// LLVM, MLIR, clang and lld 22. Not asked for when the prefix variables name another installation.
pub const LLVM_PACKAGES: &[&str] = &[
    "llvm-22-dev",
    "llvm-22-tools",
    "libmlir-22-dev",
    "mlir-22-tools",
    "clang-22",
    "lld-22",
    "liblld-22-dev",
    // llvm-config names Polly's archives among the static libraries, so the linker wants them.
    "libpolly-22-dev",
];

/// What linking LLVM statically needs from the system, and the tools of the build.
pub const SYSTEM_PACKAGES: &[&str] = &[
    "zlib1g-dev",
    "libzstd-dev",
    "libxml2-dev",
    "g++",
    "python3",
    "python3-venv",
    // ocml and ockl, the device libraries of AMD's side.
    "rocm-device-libs",
];

/// What tests compare with: clang's offload bundler, and older releases of clang that finish what was exported. Their linker
/// wrappers are in clang-tools. And the tools of other people's builds that the documentation shows.
pub const TEST_PACKAGES: &[&str] = &[
    "clang-tools-22",
    "clang-16",
    "clang-tools-16",
    "lld-16",
    "clang-19",
    "clang-tools-19",
    "lld-19",
    "cmake",
    // 40 MB, and with a Java, which it needs, 156 MB.
    "bazel-bootstrap",
    "jq",
    // Services that a shared cache is on.
    "libnginx-mod-http-dav-ext",
    "make",
    "python3-jsonschema",
    // What is shown: reports in a browser, progress in a terminal, sockets that are not opened.
    "chromium",
    "strace",
    "tmux",
    "memcached",
    "nginx",
    "openssl",
    "redis-server",
    // Packages are made, and tried in a root that has it, too.
    "xz-utils",
    // The C library's memory is looked at, and it is opened beside other LLVMs and an MLIR. clang-format is for the sources in
    // C and C++.
    "clang-format-22",
    "libllvm19",
    "libllvm22",
    "libmlir-22",
    "pkg-config",
    "valgrind",
    // Programs for AArch64 hosts are linked and run.
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user",
];

/// True where packages can be installed with apt.
pub fn is_available() -> bool {
    Path::new("/usr/bin/apt-get").exists() && Path::new("/usr/bin/dpkg-query").exists()
}

/// Which of the packages are not installed, in the order given.
pub fn missing<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>, Failure> {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Package} ${Status}\\n"]).args(packages);
    // The exit status is 1 as soon as one of the packages is unknown; the others are still listed.
    let output = capture(&mut query)?;
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(not_installed(packages, &listing))
}

fn not_installed<'a>(packages: &[&'a str], listing: &str) -> Vec<&'a str> {
    let installed: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.strip_suffix(" install ok installed"))
        .collect();
    let missing = packages.iter().filter(|name| !installed.contains(*name));
    missing.copied().collect()
}

/// Installs the packages, asking for more rights through sudo where that is needed.
pub fn install(workspace: &Workspace, packages: &[&str]) -> Result<(), Failure> {
    let by_hand = format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    );
    let Some(elevation) = Elevation::find() else {
        return Err(Failure::new(format!(
            "packages are missing, and installing them needs root: there is no sudo here. Run as root:\n  {by_hand}"
        )));
    };
    println!("setup: installing {}", packages.join(" "));

    let mut update = elevation.apt_get();
    update.args(["update", "-q"]);
    if let Err(failure) = run(&mut update) {
        // One broken third-party source fails the update as a whole; the packages may still be there.
        eprintln!("setup: {failure}; trying to install all the same");
    }

    let mut policy = Command::new("apt-cache");
    policy.arg("policy").args(packages).env("LC_ALL", "C");
    let policy = capture(&mut policy)?;
    let unknown = without_candidate(packages, &String::from_utf8_lossy(&policy.stdout));
    if !unknown.is_empty() {
        return Err(Failure::new(unavailable(&unknown)));
    }

    let mut install = elevation.apt_get();
    install
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(packages);
    run(install.current_dir(&workspace.root))
        .map_err(|failure| Failure::new(format!("{failure}; by hand, as root:\n  {by_hand}")))
}

/// Which of the packages `apt-cache policy` gives no version for.
fn without_candidate<'a>(packages: &[&'a str], policy: &str) -> Vec<&'a str> {
    let mut available = BTreeSet::new();
    let mut current = "";
    for line in policy.lines() {
        if let Some(name) = line.strip_suffix(':')
            && !line.starts_with(' ')
        {
            current = name;
        } else if let Some(version) = line.trim().strip_prefix("Candidate: ")
            && version != "(none)"
        {
            available.insert(current);
        }
    }
    let unknown = packages.iter().filter(|name| !available.contains(*name));
    unknown.copied().collect()
}

fn unavailable(packages: &[&str]) -> String {
    let mut text = format!("the package sources of this system have no {}.", packages.join(" "));
    if packages.iter().any(|name| LLVM_PACKAGES.contains(name)) {
        text.push_str(
            "\nLLVM 22 is in Debian 12 (bookworm-security) and in newer releases; for others, https://apt.llvm.org \
             has packages of the same names:\n  \
             wget https://apt.llvm.org/llvm.sh && sudo bash llvm.sh 22\n\
             then run this command again.",
        );
    }
    text
}

/// How this process may install packages.
#[derive(Debug)]
enum Elevation {
    Root,
    Sudo,
}

impl Elevation {
    fn find() -> Option<Self> {
        let user = capture(Command::new("id").arg("-u")).ok()?;
        if user.stdout.trim_ascii() == b"0" {
            return Some(Self::Root);
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .any(|folder| folder.join("sudo").is_file())
            .then_some(Self::Sudo)
    }

    fn apt_get(&self) -> Command {
        let mut command = match self {
            Self::Root => Command::new("env"),
            Self::Sudo => {
                let mut command = Command::new("sudo");
                command.arg("env");
                command
            }
        };
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_and_unknown_packages_count_as_missing() {
        let listing = "mold install ok installed\nlld-22 deinstall ok config-files\n";
        assert_eq!(
            not_installed(&["mold", "lld-22", "clang-22"], listing),
            ["lld-22", "clang-22"]
        );
    }

    #[test]
    fn packages_without_a_candidate_are_found() {
        let policy =
            "mold:\n  Installed: (none)\n  Candidate: 1.10.1\nllvm-22-dev:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(
            without_candidate(&["mold", "llvm-22-dev", "clang-22"], policy),
            ["llvm-22-dev", "clang-22"]
        );
    }

    #[test]
    fn the_advice_for_llvm_names_its_own_archive() {
        assert!(unavailable(&["llvm-22-dev"]).contains("https://apt.llvm.org/llvm.sh"));
        assert!(!unavailable(&["mold"]).contains("apt.llvm.org"));
    }

    #[test]
    fn no_package_is_listed_twice() {
        let lists = [LLVM_PACKAGES, SYSTEM_PACKAGES, TEST_PACKAGES];
        let all: BTreeSet<_> = lists.into_iter().flatten().collect();
        assert_eq!(all.len(), lists.into_iter().map(<[_]>::len).sum::<usize>());
    }
}
