//! Where to look: paths that the caller names, values of conventional variables, default prefixes.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// What made a place one to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The caller named the toolkit; no other is looked at.
    Given,
    /// The value of this variable.
    Variable(&'static str),
    /// A root that the caller added.
    Added,
    /// A tree of NVIDIA's wheels below a folder of Python packages.
    Wheels,
    /// A directory of PATH.
    Path,
    /// A place where toolkits are installed by default.
    Default,
}

impl Origin {
    /// As text, with variables told from the rest.
    fn to_text(self) -> String {
        match self {
            Self::Variable(name) => format!("${name}"),
            other => other.to_string(),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let variables = CUDA_VARIABLES.iter().chain(&ROCM_VARIABLES).chain(&PYTHON_VARIABLES);
        [Self::Given, Self::Added, Self::Wheels, Self::Path, Self::Default]
            .into_iter()
            .chain(variables.map(|name| Self::Variable(name)))
            .find(|origin| origin.to_text() == text)
    }
}

impl serde::Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> serde::Deserialize<'de> for Origin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("no place to look at is called {text:?}")))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => formatter.write_str("given"),
            Self::Variable(name) => formatter.write_str(name),
            Self::Added => formatter.write_str("configured"),
            Self::Wheels => formatter.write_str("Python wheels"),
            Self::Path => formatter.write_str("PATH"),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// Where to look for the parts of CUDA and ROCm. Nothing is read from the environment here: a program hands in the
/// values of the variables with [`Search::from_variables`], an embedder may leave them out.
///
/// The order for CUDA: the given toolkit, alone; else CUDA_HOME, CUDA_PATH, CUDA_ROOT, added roots, wheels (added
/// folders, then VIRTUAL_ENV and CONDA_PREFIX), default prefixes, PATH. For ROCm: the given toolkit, alone; else
/// HIP_DEVICE_LIB_PATH, ROCM_PATH, ROCM_ROOT, ROCM_HOME, added roots, default prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    cuda: Option<PathBuf>,
    rocm: Option<PathBuf>,
    variables: Vec<(&'static str, PathBuf)>,
    cuda_roots: Vec<PathBuf>,
    rocm_roots: Vec<PathBuf>,
    site_packages: Vec<PathBuf>,
    python_prefixes: Vec<(&'static str, PathBuf)>,
    path: Vec<PathBuf>,
    system_root: Option<PathBuf>,
}

/// The variables that name a CUDA toolkit; the first one that has a part wins. MLIR's serializers read CUDA_ROOT
/// first (mlir/lib/Target/LLVM/NVVM/Target.cpp); CUDA_HOME and CUDA_PATH are what users set for everything else.
pub(super) const CUDA_VARIABLES: [&str; 3] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"];

/// The variables that name ROCm. HIP_DEVICE_LIB_PATH names the folder of the bitcode files itself and comes first, as
/// in clang (`RocmInstallationDetector`, clang/lib/Driver/ToolChains/AMDGPU.cpp).
pub(super) const ROCM_VARIABLES: [&str; 4] = ["HIP_DEVICE_LIB_PATH", "ROCM_PATH", "ROCM_ROOT", "ROCM_HOME"];

/// The variables that name a prefix with Python packages below `lib/python3.*/site-packages`.
const PYTHON_VARIABLES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

impl Default for Search {
    /// The default prefixes of the system alone.
    fn default() -> Self {
        Self {
            system_root: Some(PathBuf::from("/")),
            ..Self::nowhere()
        }
    }
}

impl Search {
    /// The variables that name a toolkit, of CUDA's and ROCm's.
    pub const VARIABLES: [&str; 7] = [
        CUDA_VARIABLES[0],
        CUDA_VARIABLES[1],
        CUDA_VARIABLES[2],
        ROCM_VARIABLES[0],
        ROCM_VARIABLES[1],
        ROCM_VARIABLES[2],
        ROCM_VARIABLES[3],
    ];

    /// Looks nowhere but where the other functions say.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            cuda: None,
            rocm: None,
            variables: Vec::new(),
            cuda_roots: Vec::new(),
            rocm_roots: Vec::new(),
            site_packages: Vec::new(),
            python_prefixes: Vec::new(),
            path: Vec::new(),
            system_root: None,
        }
    }

    /// The default prefixes, and the conventional variables as `lookup` knows them. An empty value counts as unset, and so
    /// does a relative one: what lies in the current directory is not run because it lies there.
    #[must_use]
    pub fn from_variables(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let value = |name: &&'static str| {
            let value = PathBuf::from(lookup(name)?);
            value.is_absolute().then_some((*name, value))
        };
        let path = lookup("PATH").unwrap_or_default();
        Self {
            variables: Self::VARIABLES.iter().filter_map(value).collect(),
            python_prefixes: PYTHON_VARIABLES.iter().filter_map(value).collect(),
            ..Self::default()
        }
        .with_path(&path)
    }

    /// Uses this CUDA toolkit and no other: a part that it lacks is missing. A folder of Python packages is a
    /// toolkit too.
    #[must_use]
    pub fn with_cuda(mut self, root: impl Into<PathBuf>) -> Self {
        self.cuda = Some(root.into());
        self
    }

    /// Uses this ROCm and no other; the folder of the bitcode files itself is accepted as well.
    #[must_use]
    pub fn with_rocm(mut self, root: impl Into<PathBuf>) -> Self {
        self.rocm = Some(root.into());
        self
    }

    /// Looks into this CUDA toolkit as well, after the variables.
    #[must_use]
    pub fn add_cuda_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.cuda_roots.push(root.into());
        self
    }

    /// Looks into this ROCm as well, after the variables.
    #[must_use]
    pub fn add_rocm_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.rocm_roots.push(root.into());
        self
    }

    /// Looks for NVIDIA's wheels in this folder of Python packages, which holds a folder `nvidia`.
    #[must_use]
    pub fn add_site_packages(mut self, folder: impl Into<PathBuf>) -> Self {
        self.site_packages.push(folder.into());
        self
    }

    /// Looks for programs in these directories, separated as in the variable PATH. Relative ones are left out.
    #[must_use]
    pub fn with_path(mut self, path: &OsStr) -> Self {
        // What a relative directory means depends on the directory of the process, which is nobody's decision here.
        self.path = std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .collect();
        self
    }

    /// Looks for the default prefixes below this directory instead of `/`: an image of another system.
    #[must_use]
    pub fn with_system_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.system_root = Some(root.into());
        self
    }

    /// The CUDA toolkit that the caller named.
    #[must_use]
    pub fn explicit_cuda(&self) -> Option<&Path> {
        self.cuda.as_deref()
    }

    /// The ROCm that the caller named.
    #[must_use]
    pub fn explicit_rocm(&self) -> Option<&Path> {
        self.rocm.as_deref()
    }

    /// The values of those of these variables that are set, in the order of `names`.
    pub(super) fn values<'a>(&'a self, names: &'a [&'static str]) -> impl Iterator<Item = (&'static str, &'a Path)> {
        names.iter().filter_map(|name| {
            let (name, value) = self.variables.iter().find(|(known, _)| known == name)?;
            Some((*name, value.as_path()))
        })
    }

    pub(super) fn cuda_roots(&self) -> &[PathBuf] {
        &self.cuda_roots
    }

    pub(super) fn rocm_roots(&self) -> &[PathBuf] {
        &self.rocm_roots
    }

    pub(super) fn site_packages(&self) -> &[PathBuf] {
        &self.site_packages
    }

    pub(super) fn python_prefixes(&self) -> &[(&'static str, PathBuf)] {
        &self.python_prefixes
    }

    pub(super) fn path(&self) -> &[PathBuf] {
        &self.path
    }

    pub(super) fn system_root(&self) -> Option<&Path> {
        self.system_root.as_deref()
    }
}
