//! The layouts in which CUDA comes: NVIDIA's installer, Debian's packages, wheels, conda.

use std::path::{Path, PathBuf};

use super::part::{Part, PartKind};
use super::probe::{Probe, Root, directory, versions};
use super::search::{CUDA_VARIABLES, Origin, Search};
use crate::target::Vendor;

/// Directories of programs below a root.
const PROGRAM_DIRECTORIES: [&str; 1] = ["bin"];

/// Directories of libraries below a root: NVIDIA's installer has `lib64` (a link to `targets/...`), the wheels and
/// conda have `lib`, Debian has the multiarch directory below `/usr/lib`.
const LIBRARY_DIRECTORIES: [&str; 4] = if cfg!(target_arch = "aarch64") {
    ["lib64", "lib", "targets/sbsa-linux/lib", "lib/aarch64-linux-gnu"]
} else {
    ["lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"]
};

/// Directories of libdevice below a root: everywhere but in Debian's `/usr/lib/nvidia-cuda-toolkit` it is below `nvvm`.
const LIBDEVICE_DIRECTORIES: [&str; 2] = ["nvvm/libdevice", "libdevice"];

/// Default prefixes below the root of the system, after NVIDIA's `/usr/local/cuda` and `/usr/local/cuda-*`.
/// `/usr/lib/cuda` and `/usr/lib/nvidia-cuda-toolkit` are Debian's, which has the libraries below `/usr/lib` itself.
const DEFAULT_PREFIXES: [&str; 4] = ["opt/cuda", "usr/lib/nvidia-cuda-toolkit", "usr/lib/cuda", "usr"];

/// Looks for every part of CUDA.
pub(super) fn discover(search: &Search) -> Vec<Part> {
    let roots = roots(search);
    let nvidia = PartKind::ALL.into_iter().filter(|kind| kind.vendor() == Vendor::Nvidia);
    nvidia
        .map(|kind| {
            let mut probe = Probe::new(kind);
            let relative = relative_paths(kind);
            for root in &roots {
                // Wheels of CUDA 12 are one folder for each component beside each other.
                let component = component_of_wheel(root, kind);
                if probe.root(component.as_ref().unwrap_or(root), &relative) {
                    break;
                }
            }
            if search.explicit_cuda().is_none() && kind.is_program() {
                for directory in search.path() {
                    let root = Root::new(directory, Origin::Path);
                    if probe.root(&root, &[kind.name().into()]) {
                        break;
                    }
                }
            }
            probe.finish()
        })
        .collect()
}

/// Every directory that may have programs in `bin`, in order.
pub(super) fn program_roots(search: &Search) -> Vec<Root> {
    let roots = roots(search).into_iter();
    roots
        .map(|root| component_of_wheel(&root, PartKind::Ptxas).unwrap_or(root))
        .collect()
}

/// Every directory to look into, in order.
fn roots(search: &Search) -> Vec<Root> {
    let mut roots = Vec::new();
    if let Some(given) = search.explicit_cuda() {
        roots.push(Root::new(given, Origin::Given));
        roots.extend(wheel_roots(given, Origin::Given));
        return roots;
    }
    for (name, value) in search.values(&CUDA_VARIABLES) {
        roots.push(Root::new(value, Origin::Variable(name)));
        roots.extend(wheel_roots(value, Origin::Variable(name)));
    }
    for root in search.cuda_roots() {
        roots.push(Root::new(root, Origin::Added));
        roots.extend(wheel_roots(root, Origin::Added));
    }
    for folder in search.site_packages() {
        let below = wheel_roots(folder, Origin::Wheels);
        if below.is_empty() {
            // Named, so it has to appear among the places that were tried.
            roots.push(Root::new(folder.join("nvidia"), Origin::Wheels));
        }
        roots.extend(below);
    }
    for (name, prefix) in search.python_prefixes() {
        // An active conda environment has CUDA's programs and libraries in its own bin and lib.
        roots.push(Root::new(prefix, Origin::Variable(name)));
        for python in versions(&prefix.join("lib"), "python3") {
            let folder = python.join("site-packages");
            roots.extend(wheel_roots(&folder, Origin::Wheels));
        }
    }
    if let Some(system) = search.system_root() {
        roots.push(Root::new(system.join("usr/local/cuda"), Origin::Default));
        let installed = versions(&system.join("usr/local"), "cuda-");
        roots.extend(installed.into_iter().map(|path| Root::new(path, Origin::Default)));
        let others = DEFAULT_PREFIXES.iter().map(|prefix| system.join(prefix));
        roots.extend(others.map(|path| Root::new(path, Origin::Default)));
    }
    // A toolkit whose bin directory is in PATH is meant to be used, all of it.
    for directory in search.path() {
        if let Some(root) = toolkit_of_program_directory(directory) {
            roots.push(Root::new(root, Origin::Path));
        }
    }
    roots
}

/// The toolkit around a directory of PATH with NVIDIA's compiler in it.
fn toolkit_of_program_directory(path: &Path) -> Option<&Path> {
    let compilers = ["nvcc", "ptxas"];
    if path.file_name()? == "bin" && compilers.iter().any(|name| path.join(name).is_file()) {
        path.parent()
    } else {
        None
    }
}

/// The toolkits that wheels make up below a folder of Python packages (or below its `nvidia`, or in one of those):
/// `nvidia/cu13` holds all of CUDA 13, `nvidia` itself the components of CUDA 12.
fn wheel_roots(folder: &Path, origin: Origin) -> Vec<Root> {
    let nvidia = if is_wheel_folder(folder) {
        folder.to_path_buf()
    } else {
        folder.join("nvidia")
    };
    if directory(&nvidia).is_err() {
        return Vec::new();
    }
    let mut roots: Vec<_> = versions(&nvidia, "cu")
        .into_iter()
        .filter(|path| is_release_folder(path))
        .map(|path| Root::new(path, origin))
        .collect();
    roots.push(Root::new(nvidia, origin));
    roots
}

/// True for `.../nvidia`, below which the wheels unpack.
fn is_wheel_folder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "nvidia")
}

/// True for `cu13` and the like, false for `cublas` and `cuda_nvcc`.
fn is_release_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let digits = name.and_then(|name| name.strip_prefix("cu"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The folder of the component wheel of CUDA 12 that holds a part; None where the root is no such collection.
fn component_of_wheel(root: &Root, kind: PartKind) -> Option<Root> {
    if !is_wheel_folder(&root.path) {
        return None;
    }
    let component = match kind {
        PartKind::NvJitLink => "nvjitlink",
        PartKind::NvPtxCompiler => "nvptxcompiler",
        PartKind::NvFatbin => "nvfatbin",
        PartKind::Cudart => "cuda_runtime",
        PartKind::Cuobjdump => "cuda_cuobjdump",
        PartKind::Nvdisasm => "cuda_nvdisasm",
        _ => "cuda_nvcc",
    };
    Some(Root::new(root.path.join(component), root.origin))
}

/// Where the part is below a root, the newest library first.
fn relative_paths(kind: PartKind) -> Vec<PathBuf> {
    let (directories, names): (&[&str], &[&str]) = match kind {
        PartKind::Libdevice => (&LIBDEVICE_DIRECTORIES, &["libdevice.10.bc"]),
        PartKind::NvJitLink => (&LIBRARY_DIRECTORIES, &["libnvJitLink.so.13", "libnvJitLink.so.12"]),
        PartKind::NvPtxCompiler => (&LIBRARY_DIRECTORIES, &["libnvptxcompiler_static.a"]),
        PartKind::NvFatbin => (&LIBRARY_DIRECTORIES, &["libnvfatbin.so.13", "libnvfatbin.so.12"]),
        PartKind::Cudart => (
            &LIBRARY_DIRECTORIES,
            &["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"],
        ),
        _ => return in_each(&PROGRAM_DIRECTORIES, &[kind.name()]),
    };
    in_each(directories, names)
}

fn in_each(directories: &[&str], names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .flat_map(|name| directories.iter().map(move |directory| Path::new(directory).join(name)))
        .collect()
}
