//! The CUDA toolkits with programs that finish exported programs.

use std::fs;
use std::path::PathBuf;

use super::cuda::program_roots;
use super::part::PartKind;
use super::probe::{Probe, Root};
use super::search::{Origin, Search};

/// A CUDA toolkit with some of the programs that clang starts to finish an exported program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaInstallation {
    /// Its root, below which the programs are in `bin`.
    pub root: PathBuf,
    /// What named the place.
    pub origin: Origin,
    /// `ptxas`.
    pub ptxas: Option<PathBuf>,
    /// `nvlink`.
    pub nvlink: Option<PathBuf>,
    /// `fatbinary`.
    pub fatbinary: Option<PathBuf>,
}

/// The toolkits in the places where parts of CUDA are looked for, each once, in that order.
#[must_use]
pub fn cuda_installations(search: &Search) -> Vec<CudaInstallation> {
    let mut found: Vec<CudaInstallation> = Vec::new();
    let mut seen = Vec::new();
    for root in program_roots(search) {
        let program = |kind: PartKind| find(&root, kind);
        let installation = CudaInstallation {
            ptxas: program(PartKind::Ptxas),
            nvlink: program(PartKind::Nvlink),
            fatbinary: program(PartKind::Fatbinary),
            root: root.path.clone(),
            origin: root.origin,
        };
        let programs = [&installation.nvlink, &installation.fatbinary, &installation.ptxas];
        let Some(first) = programs.into_iter().flatten().next() else {
            continue;
        };
        // `/usr/local/cuda` is a link to `/usr/local/cuda-13.0`.
        let real = fs::canonicalize(first).unwrap_or_else(|_| first.clone());
        if !seen.contains(&real) {
            seen.push(real);
            found.push(installation);
        }
    }
    found
}

fn find(root: &Root, kind: PartKind) -> Option<PathBuf> {
    let mut probe = Probe::new(kind);
    probe.root(root, &[PathBuf::from("bin").join(kind.name())]);
    probe.finish().found
}
