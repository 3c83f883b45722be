//! The layouts in which ROCm's device libraries come: AMD's packages, Debian's, clang's resource directory.

use std::path::Path;

use super::part::{Part, PartKind};
use super::probe::{Probe, Root, directory, versions};
use super::search::{Origin, ROCM_VARIABLES, Search};
use crate::target::Vendor;

/// Where the bitcode files are below a ROCm.
const BITCODE: &str = "amdgcn/bitcode";

/// Where they are below the root of the system when a distribution packages them.
const DEFAULT_DIRECTORIES: [&str; 5] = [
    // Debian and Ubuntu, rocm-device-libs: the multiarch directory.
    if cfg!(target_arch = "aarch64") {
        "usr/lib/aarch64-linux-gnu/amdgcn/bitcode"
    } else {
        "usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
    },
    // Fedora and Arch.
    "usr/lib64/amdgcn/bitcode",
    "usr/lib/amdgcn/bitcode",
    "usr/share/amdgcn/bitcode",
    "usr/amdgcn/bitcode",
];

/// Looks for every part of ROCm, all of them in one directory: the libraries call each other.
pub(super) fn discover(search: &Search) -> Vec<Part> {
    let mut directories = directories(search);
    let with_math = directories.iter().position(has_math_library);
    // What comes after it is not looked at; what comes before is, and shows why it was passed over.
    directories.truncate(with_math.map_or(directories.len(), |position| position + 1));
    let amd = PartKind::ALL.into_iter().filter(|kind| kind.vendor() == Vendor::Amd);
    amd.map(|kind| {
        let mut probe = Probe::new(kind);
        for (position, root) in directories.iter().enumerate() {
            let incomplete = with_math.is_some_and(|chosen| position < chosen);
            if incomplete && root.path.join(kind.name()).exists() {
                continue;
            }
            if probe.root(root, &[kind.name().into()]) {
                break;
            }
        }
        probe.finish()
    })
    .collect()
}

fn has_math_library(root: &Root) -> bool {
    let mut probe = Probe::new(PartKind::Ocml);
    probe.root(root, &[PartKind::Ocml.name().into()])
}

/// Every directory that may hold the bitcode files, in order.
fn directories(search: &Search) -> Vec<Root> {
    if let Some(given) = search.explicit_rocm() {
        return below(given, Origin::Given);
    }
    let mut found = Vec::new();
    for (name, value) in search.values(&ROCM_VARIABLES) {
        found.extend(below(value, Origin::Variable(name)));
    }
    for root in search.rocm_roots() {
        found.extend(below(root, Origin::Added));
    }
    if let Some(system) = search.system_root() {
        found.extend(below(&system.join("opt/rocm"), Origin::Default));
        for root in versions(&system.join("opt"), "rocm-") {
            found.extend(below(&root, Origin::Default));
        }
        let packaged = DEFAULT_DIRECTORIES.iter().map(|path| system.join(path));
        found.extend(packaged.map(|path| Root::new(path, Origin::Default)));
        for llvm in versions(&system.join("usr/lib"), "llvm-") {
            found.extend(in_clang(&llvm, Origin::Default));
        }
    }
    found
}

/// The directories of one ROCm; what is named may be the directory of the bitcode files itself.
fn below(root: &Path, origin: Origin) -> Vec<Root> {
    let named = Root::new(root, origin);
    if directory(root).is_err() || has_math_library(&named) {
        return vec![named];
    }
    let mut found = vec![Root::new(root.join(BITCODE), origin)];
    // ROCm 6 keeps its clang below lib/llvm, ROCm 5 below llvm.
    for llvm in ["lib/llvm", "llvm"] {
        found.extend(in_clang(&root.join(llvm), origin));
    }
    found
}

/// The directories of bitcode files among the resources of the clangs of one LLVM.
fn in_clang(llvm: &Path, origin: Origin) -> Vec<Root> {
    let resources = versions(&llvm.join("lib/clang"), "");
    let places = resources
        .iter()
        .flat_map(|resource| [resource.join("lib").join(BITCODE), resource.join(BITCODE)]);
    places
        .filter(|path| directory(path).is_ok())
        .map(|path| Root::new(path, origin))
        .collect()
}
