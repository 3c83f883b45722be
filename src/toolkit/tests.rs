//! Layouts of toolkits in temporary folders, and the real one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A folder with these files, one byte each; names below a `bin` are executable.
fn tree(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    add(folder.path(), files);
    folder
}

fn add(folder: &Path, files: &[&str]) {
    for file in files {
        let path = folder.join(file);
        let parent = path.parent().expect("a file in a folder");
        fs::create_dir_all(parent).expect("a folder");
        fs::write(&path, "x").expect("a file");
        if parent.ends_with("bin") {
            set_mode(&path, 0o755);
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

fn found(search: &Search, kind: PartKind) -> Option<PathBuf> {
    Toolkit::discover(search).find(kind).map(Path::to_path_buf)
}

fn message(search: &Search, kind: PartKind) -> String {
    Toolkit::discover(search)
        .require(kind)
        .expect_err("the part is missing")
        .to_string()
}

fn variables<'a>(values: &'a [(&'a str, &'a Path)]) -> impl Fn(&str) -> Option<OsString> + 'a {
    move |name| {
        let value = values.iter().find(|(known, _)| *known == name);
        value.map(|(_, path)| path.as_os_str().to_owned())
    }
}

#[test]
fn every_kind_has_a_part_even_when_nothing_is_searched() {
    let toolkit = Toolkit::discover(&Search::nowhere());
    let kinds: Vec<_> = toolkit.parts().map(|part| part.kind).collect();
    assert_eq!(kinds, PartKind::ALL);
    for part in toolkit.parts() {
        assert!(part.found.is_none());
        assert!(part.advice().is_some());
        assert!(!part.enables().is_empty());
    }
    let message = message(&Search::nowhere(), PartKind::Ocml);
    assert!(message.contains("No place to look was given"), "{message}");
}

#[test]
fn an_installation_of_nvidias_is_found_through_each_variable_in_order() {
    let files = ["bin/ptxas", "nvvm/libdevice/libdevice.10.bc"];
    let [home, path, root] = [tree(&files), tree(&files), tree(&files)];
    let all = [
        ("CUDA_ROOT", root.path()),
        ("CUDA_PATH", path.path()),
        ("CUDA_HOME", home.path()),
    ];
    for (count, first) in [(3, &home), (2, &path), (1, &root)] {
        let lookup = variables(&all[..count]);
        let search = Search::from_variables(lookup);
        assert_eq!(found(&search, PartKind::Ptxas), Some(first.path().join("bin/ptxas")));
        assert_eq!(
            found(&search, PartKind::Libdevice),
            Some(first.path().join("nvvm/libdevice/libdevice.10.bc"))
        );
    }
}

#[test]
fn a_relative_variable_counts_as_unset() {
    let paths = [
        ("CUDA_HOME", Path::new(".")),
        ("ROCM_PATH", Path::new("rocm")),
        ("VIRTUAL_ENV", Path::new("venv")),
    ];
    assert_eq!(
        Search::from_variables(variables(&paths)),
        Search::from_variables(|_| None)
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let search = Search::from_variables(|_| Some(OsString::new()));
    assert_eq!(search, Search::default());
}

#[test]
fn libraries_are_found_in_each_variation_of_the_directory() {
    let multiarch = if cfg!(target_arch = "aarch64") {
        ["targets/sbsa-linux/lib", "lib/aarch64-linux-gnu"]
    } else {
        ["targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"]
    };
    for directory in ["lib", "lib64"].into_iter().chain(multiarch) {
        let library = format!("{directory}/libnvJitLink.so.12");
        let archive = format!("{directory}/libnvptxcompiler_static.a");
        let folder = tree(&[&library, &archive]);
        let search = Search::nowhere().add_cuda_root(folder.path());
        let toolkit = Toolkit::discover(&search);
        assert_eq!(
            toolkit.require(PartKind::NvJitLink).expect("the library"),
            folder.path().join(&library)
        );
        assert_eq!(
            toolkit.require(PartKind::NvPtxCompiler).expect("the archive"),
            folder.path().join(&archive)
        );
    }
}

#[test]
fn the_newer_library_of_one_root_wins() {
    let folder = tree(&["lib64/libnvJitLink.so.12", "lib/libnvJitLink.so.13"]);
    let search = Search::nowhere().add_cuda_root(folder.path());
    assert_eq!(
        found(&search, PartKind::NvJitLink),
        Some(folder.path().join("lib/libnvJitLink.so.13"))
    );
}

#[test]
fn wheels_of_cuda_13_and_of_cuda_12_are_found() {
    let thirteen = tree(&[
        "nvidia/cu13/bin/ptxas",
        "nvidia/cu13/lib/libnvJitLink.so.13",
        "nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
        "nvidia/cublas/lib/libcublas.so",
    ]);
    let search = Search::nowhere().add_site_packages(thirteen.path());
    let tree13 = thirteen.path().join("nvidia/cu13");
    assert_eq!(found(&search, PartKind::Ptxas), Some(tree13.join("bin/ptxas")));
    assert_eq!(
        found(&search, PartKind::NvJitLink),
        Some(tree13.join("lib/libnvJitLink.so.13"))
    );

    let twelve = tree(&[
        "nvidia/cuda_nvcc/bin/ptxas",
        "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
        "nvidia/nvjitlink/lib/libnvJitLink.so.12",
        "nvidia/cuda_runtime/lib/libcudart.so.12",
    ]);
    let search = Search::nowhere().add_site_packages(twelve.path());
    let nvidia = twelve.path().join("nvidia");
    for (kind, path) in [
        (PartKind::Ptxas, "cuda_nvcc/bin/ptxas"),
        (PartKind::Libdevice, "cuda_nvcc/nvvm/libdevice/libdevice.10.bc"),
        (PartKind::NvJitLink, "nvjitlink/lib/libnvJitLink.so.12"),
        (PartKind::Cudart, "cuda_runtime/lib/libcudart.so.12"),
    ] {
        assert_eq!(found(&search, kind), Some(nvidia.join(path)));
    }
}

#[test]
fn a_folder_of_wheels_may_be_given_as_the_toolkit() {
    let folder = tree(&["nvidia/cu13/bin/ptxas"]);
    let ptxas = folder.path().join("nvidia/cu13/bin/ptxas");
    for given in ["", "nvidia", "nvidia/cu13"] {
        let search = Search::nowhere().with_cuda(folder.path().join(given));
        assert_eq!(found(&search, PartKind::Ptxas), Some(ptxas.clone()));
    }
}

#[test]
fn an_active_virtual_environment_is_searched() {
    let folder = tree(&["lib/python3.11/site-packages/nvidia/cu13/bin/ptxas"]);
    let lookup = [("VIRTUAL_ENV", folder.path())];
    let search = Search::from_variables(variables(&lookup));
    let site = folder.path().join("lib/python3.11/site-packages");
    assert_eq!(
        found(&search, PartKind::Ptxas),
        Some(site.join("nvidia/cu13/bin/ptxas"))
    );
}

#[test]
fn default_prefixes_are_searched_the_newest_release_first() {
    let system = tree(&[
        "usr/local/cuda-12.9/bin/ptxas",
        "usr/local/cuda-12.10/bin/ptxas",
        "opt/cuda/bin/nvlink",
    ]);
    let search = Search::default().with_system_root(system.path());
    assert_eq!(
        found(&search, PartKind::Ptxas),
        Some(system.path().join("usr/local/cuda-12.10/bin/ptxas"))
    );
    assert_eq!(
        found(&search, PartKind::Nvlink),
        Some(system.path().join("opt/cuda/bin/nvlink"))
    );
    add(system.path(), &["usr/local/cuda/bin/ptxas"]);
    assert_eq!(
        found(&search, PartKind::Ptxas),
        Some(system.path().join("usr/local/cuda/bin/ptxas"))
    );
}

#[test]
fn debians_packages_are_found() {
    let library = if cfg!(target_arch = "aarch64") {
        "usr/lib/aarch64-linux-gnu/libcudart.so.11.0"
    } else {
        "usr/lib/x86_64-linux-gnu/libcudart.so.11.0"
    };
    let system = tree(&[
        "usr/lib/nvidia-cuda-toolkit/bin/ptxas",
        "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc",
        library,
    ]);
    let search = Search::default().with_system_root(system.path());
    for (kind, path) in [
        (PartKind::Ptxas, "usr/lib/nvidia-cuda-toolkit/bin/ptxas"),
        (
            PartKind::Libdevice,
            "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc",
        ),
        (PartKind::Cudart, library),
    ] {
        assert_eq!(found(&search, kind), Some(system.path().join(path)));
    }
}

#[test]
fn programs_are_found_in_path_and_so_is_the_toolkit_around_them() {
    let folder = tree(&["bin/ptxas", "nvvm/libdevice/libdevice.10.bc"]);
    let plain = tree(&["tools/nvlink"]);
    set_mode(&plain.path().join("tools/nvlink"), 0o755);
    let directories = [
        PathBuf::from("relative"),
        plain.path().join("tools"),
        folder.path().join("bin"),
    ];
    let path = std::env::join_paths(directories).expect("no separator in a name");
    let search = Search::nowhere().with_path(&path);
    let toolkit = Toolkit::discover(&search);
    assert_eq!(
        toolkit.find(PartKind::Libdevice),
        Some(folder.path().join("nvvm/libdevice/libdevice.10.bc").as_path())
    );
    assert_eq!(
        toolkit.find(PartKind::Nvlink),
        Some(plain.path().join("tools/nvlink").as_path())
    );
    let part = toolkit.part(PartKind::Ptxas).expect("a part for each kind");
    assert_eq!(part.origin, Some(Origin::Path));
}

#[test]
fn a_given_toolkit_is_the_only_one() {
    let complete = tree(&["bin/ptxas"]);
    let lookup = [("CUDA_HOME", complete.path())];
    let search = Search::from_variables(variables(&lookup)).with_cuda("/nowhere/cuda");
    assert_eq!(
        message(&search, PartKind::Ptxas),
        "the toolkit that was given, /nowhere/cuda, has no ptxas; it is needed for PTX to cubin in a child process.\n\
         Tried:\n  /nowhere/cuda (given): no such directory\n\
         Give the root of a complete toolkit, or none to have the usual places searched. To get the part: install \
         the wheel nvidia-cuda-nvcc from PyPI into an active virtual environment, or Debian's package \
         nvidia-cuda-toolkit (non-free), or the CUDA toolkit, and set CUDA_HOME to it"
    );
}

#[test]
fn a_missing_part_lists_every_place() {
    let empty = tree(&[]);
    let lookup = [("CUDA_PATH", empty.path())];
    let search = Search::from_variables(variables(&lookup)).with_system_root(empty.path());
    let message = message(&search, PartKind::Libdevice);
    let root = empty.path().display();
    for line in [
        "libdevice.10.bc was not found; it is needed for math functions (exp, erf, pow, ...) in NVIDIA kernels"
            .to_owned(),
        format!("  {root}/nvvm/libdevice/libdevice.10.bc (CUDA_PATH): no such file"),
        format!("  {root}/libdevice/libdevice.10.bc (CUDA_PATH): no such file"),
        format!("  {root}/usr/local/cuda (default): no such directory"),
        format!("  {root}/usr/lib/nvidia-cuda-toolkit (default): no such directory"),
        "the wheel nvidia-nvvm".to_owned(),
    ] {
        assert!(message.contains(&line), "{line}\nis not in:\n{message}");
    }
}

#[test]
fn useless_files_are_passed_over_with_the_reason() {
    let folder = tree(&["bin/ptxas", "bin/nvlink/x", "nvvm/libdevice/libdevice.10.bc"]);
    set_mode(&folder.path().join("bin/ptxas"), 0o644);
    fs::write(folder.path().join("nvvm/libdevice/libdevice.10.bc"), "").expect("a file");
    let search = Search::nowhere().add_cuda_root(folder.path());
    for (kind, reason) in [
        (PartKind::Ptxas, "bin/ptxas (configured): not executable"),
        (PartKind::Nvlink, "bin/nvlink (configured): not a file"),
        (PartKind::Libdevice, "libdevice.10.bc (configured): an empty file"),
    ] {
        let message = message(&search, kind);
        assert!(message.contains(reason), "{reason}\nis not in:\n{message}");
    }
    let file = folder.path().join("bin/ptxas");
    let search = Search::nowhere().with_cuda(file);
    let message = message(&search, PartKind::Ptxas);
    assert!(message.contains("(given): not a directory"), "{message}");
}

#[test]
fn rocm_is_found_through_each_variable_in_order() {
    let rocm = ["amdgcn/bitcode/ocml.bc", "amdgcn/bitcode/ockl.bc"];
    let [path, root, home] = [tree(&rocm), tree(&rocm), tree(&rocm)];
    let bitcode = tree(&["ocml.bc", "ockl.bc"]);
    let all = [
        ("ROCM_HOME", home.path()),
        ("ROCM_ROOT", root.path()),
        ("ROCM_PATH", path.path()),
        ("HIP_DEVICE_LIB_PATH", bitcode.path()),
    ];
    let below = |folder: &tempfile::TempDir| folder.path().join("amdgcn/bitcode");
    for (count, expected) in [
        (4, bitcode.path().to_path_buf()),
        (3, below(&path)),
        (2, below(&root)),
        (1, below(&home)),
    ] {
        let search = Search::from_variables(variables(&all[..count]));
        let toolkit = Toolkit::discover(&search);
        assert_eq!(toolkit.require(PartKind::Ocml).expect("ocml"), expected.join("ocml.bc"));
        assert_eq!(toolkit.require(PartKind::Ockl).expect("ockl"), expected.join("ockl.bc"));
    }
}

#[test]
fn rocm_is_found_in_each_layout() {
    for directory in [
        "opt/rocm/amdgcn/bitcode",
        "opt/rocm-6.4.1/amdgcn/bitcode",
        "opt/rocm-6.4.1/lib/llvm/lib/clang/19/lib/amdgcn/bitcode",
        "opt/rocm-5.7.0/llvm/lib/clang/17.0.0/lib/amdgcn/bitcode",
        "usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode",
        "usr/lib64/amdgcn/bitcode",
    ] {
        let system = tree(&[&format!("{directory}/ocml.bc")]);
        let search = Search::default().with_system_root(system.path());
        assert_eq!(
            found(&search, PartKind::Ocml),
            Some(system.path().join(directory).join("ocml.bc"))
        );
    }
}

#[test]
fn amds_libraries_come_from_one_directory() {
    let system = tree(&[
        "opt/rocm-7.0/amdgcn/bitcode/ockl.bc",
        "opt/rocm-6.4/amdgcn/bitcode/ocml.bc",
        "opt/rocm-6.4/amdgcn/bitcode/ockl.bc",
        "opt/rocm-6.3/amdgcn/bitcode/ocml.bc",
        "opt/rocm-6.3/amdgcn/bitcode/hip.bc",
    ]);
    let search = Search::default().with_system_root(system.path());
    let chosen = system.path().join("opt/rocm-6.4/amdgcn/bitcode");
    assert_eq!(found(&search, PartKind::Ocml), Some(chosen.join("ocml.bc")));
    assert_eq!(found(&search, PartKind::Ockl), Some(chosen.join("ockl.bc")));
    assert_eq!(found(&search, PartKind::Hip), None);
    let toolkit = Toolkit::discover(&search);
    let ocml = toolkit.part(PartKind::Ocml).expect("a part for each kind");
    let passed_over = system.path().join("opt/rocm-7.0/amdgcn/bitcode/ocml.bc");
    assert!(ocml.tried.iter().any(|tried| tried.path == passed_over));
}

#[test]
fn a_given_rocm_is_the_only_one() {
    let folder = tree(&["amdgcn/bitcode/ockl.bc"]);
    let search = Search::default().with_rocm(folder.path());
    let message = message(&search, PartKind::Ocml);
    let root = folder.path().display();
    for part in [
        format!("the toolkit that was given, {root}, has no ocml.bc"),
        format!("  {root}/amdgcn/bitcode/ocml.bc (given): no such file"),
        "Debian's package rocm-device-libs".to_owned(),
        "set ROCM_PATH".to_owned(),
    ] {
        assert!(message.contains(&part), "{part}\nis not in:\n{message}");
    }
    assert!(!message.contains("/opt/rocm"), "{message}");
}

#[test]
fn the_search_leaves_a_record_also_when_it_succeeds() {
    let folder = tree(&["bin/ptxas"]);
    let lookup = [("CUDA_HOME", Path::new("/nowhere/cuda")), ("CUDA_PATH", folder.path())];
    let toolkit = Toolkit::discover(&Search::from_variables(variables(&lookup)));
    let part = toolkit.part(PartKind::Ptxas).expect("a part for each kind");
    assert_eq!(part.origin, Some(Origin::Variable("CUDA_PATH")));
    assert_eq!(part.advice(), None);
    let record: Vec<_> = part.tried.iter().map(ToString::to_string).collect();
    assert_eq!(record, ["/nowhere/cuda (CUDA_HOME): no such directory"]);
}

/// The CUDA tree of the checkout, or the one that GPULOWER_CUDA names.
fn real_cuda() -> PathBuf {
    std::env::var_os("GPULOWER_CUDA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join(".toolkit/cuda"),
        PathBuf::from,
    )
}

#[test]
fn the_real_cuda_tree_is_complete() {
    let root = real_cuda();
    assert!(
        root.is_dir(),
        "{} is missing: run `cargo xtask setup`, or set GPULOWER_CUDA to a CUDA toolkit",
        root.display()
    );
    let toolkit = Toolkit::discover(&Search::nowhere().with_cuda(&root));
    for kind in PartKind::ALL {
        if kind.vendor() == Vendor::Nvidia {
            toolkit.require(kind).expect("a part of the CUDA tree");
        }
    }
    let version = tool_version(toolkit.require(PartKind::Ptxas).expect("ptxas")).expect("its version");
    assert!(version.release() >= (12, 0), "{version}");
    assert!(
        version
            .build
            .starts_with(&format!("{}.{}.", version.major, version.minor))
    );
    for kind in PartKind::ALL.into_iter().filter(|kind| kind.is_program()) {
        tool_version(toolkit.require(kind).expect("a program")).expect("its version");
    }
}

#[test]
fn the_real_device_libraries_of_amd_are_found() {
    let search = Search::from_variables(|name| std::env::var_os(name));
    let toolkit = Toolkit::discover(&search);
    for kind in [PartKind::Ocml, PartKind::Ockl] {
        let path = toolkit
            .require(kind)
            .expect("run `cargo xtask setup` to install rocm-device-libs");
        assert!(path.is_file());
    }
}

#[test]
fn clangs_are_found_once_each_and_look_for_tools_beside_themselves_first() {
    let folder = tree(&[
        "llvm/bin/clang",
        "llvm/bin/clang-linker-wrapper",
        "bin/clang-22",
        "bin/clang-format-22",
        "bin/clang-linker-wrapper",
        "bin/ld.lld",
    ]);
    let path = |name: &str| folder.path().join(name);
    for link in ["bin/clang", "bin/clang-19"] {
        std::os::unix::fs::symlink(path("llvm/bin/clang"), path(link)).expect("a link");
    }
    fs::write(path("bin/clang-21"), "x").expect("a file that nobody may execute");
    let search = Search::nowhere().with_path(path("bin").as_os_str());
    let found = clangs(&search);
    let paths: Vec<&Path> = found.iter().map(|clang| clang.path.as_path()).collect();
    assert_eq!(paths, [path("bin/clang"), path("bin/clang-22")]);
    let [linked, own] = found.as_slice() else {
        panic!("{found:?}")
    };
    let wrapper = linked.tool("clang-linker-wrapper").expect("a wrapper");
    assert_eq!(wrapper, path("llvm/bin/clang-linker-wrapper"));
    assert!(linked.is_own(&wrapper));
    let borrowed = linked.tool("ld.lld").expect("lld");
    assert!(!linked.is_own(&borrowed), "{borrowed:?}");
    assert!(own.is_own(&own.tool("ld.lld").expect("lld")));
    assert_eq!(own.tool("clang-nvlink-wrapper"), None);
    assert_eq!(program_in_path(&search, "clang-22"), Some(path("bin/clang-22")));
    assert_eq!(program_in_path(&search, "clang-21"), None);
}

#[test]
fn names_of_a_compiler_cache_are_clangs_of_their_own() {
    let folder = tree(&["bin/ccache"]);
    let path = |name: &str| folder.path().join(name);
    for link in ["clang-16", "clang-19"] {
        fs::create_dir_all(path("masquerade")).expect("a folder");
        std::os::unix::fs::symlink(path("bin/ccache"), path("masquerade").join(link)).expect("a link");
    }
    let found = clangs(&Search::nowhere().with_path(path("masquerade").as_os_str()));
    let paths: Vec<&Path> = found.iter().map(|clang| clang.path.as_path()).collect();
    assert_eq!(paths, [path("masquerade/clang-19"), path("masquerade/clang-16")]);
}

#[test]
fn every_cuda_toolkit_is_listed_once() {
    let system = tree(&[
        "usr/local/cuda-13.0/bin/ptxas",
        "usr/local/cuda-13.0/bin/nvlink",
        "usr/local/cuda-13.0/bin/fatbinary",
        "usr/local/cuda-12.4/bin/nvlink",
        "opt/cuda/lib64/libcudart.so.12",
    ]);
    let path = |name: &str| system.path().join(name);
    std::os::unix::fs::symlink(path("usr/local/cuda-13.0"), path("usr/local/cuda")).expect("a link");
    let wheels = tree(&["nvidia/cuda_nvcc/bin/ptxas", "nvidia/cuda_nvcc/bin/fatbinary"]);
    let search = Search::nowhere()
        .with_system_root(system.path())
        .add_site_packages(wheels.path());
    let found: Vec<(PathBuf, [bool; 3])> = cuda_installations(&search)
        .into_iter()
        .map(|one| {
            let programs = [&one.ptxas, &one.nvlink, &one.fatbinary].map(Option::is_some);
            (one.root, programs)
        })
        .collect();
    assert_eq!(
        found,
        [
            (wheels.path().join("nvidia/cuda_nvcc"), [true, false, true]),
            (path("usr/local/cuda"), [true, true, true]),
            (path("usr/local/cuda-12.4"), [false, true, false]),
        ]
    );
}
