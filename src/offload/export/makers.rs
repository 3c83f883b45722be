//! Who makes the images here: the compiler, and a copy of it for every further toolkit, told apart by the release of its
//! ptxas.

use crate::{
    compiler::Compiler,
    offload::release::FinishWith,
    options::PtxCompiler,
    target::{CudaRelease, Target, Vendor},
    toolkit::Toolkit,
};

pub(super) struct Makers<'a> {
    first: &'a Compiler,
    /// With their releases. The first one's is there too, if it has a ptxas.
    others: Vec<Compiler>,
    releases: Vec<(CudaRelease, Option<usize>)>,
}

impl<'a> Makers<'a> {
    pub(super) fn new(first: &'a Compiler, toolkits: &[Toolkit]) -> Self {
        let others: Vec<Compiler> = toolkits
            .iter()
            .map(|toolkit| first.to_builder().toolkit(toolkit.clone()).build())
            .collect();
        let mut releases: Vec<(CudaRelease, Option<usize>)> = Vec::new();
        releases.extend(release_of(first).map(|release| (release, None)));
        for (index, other) in others.iter().enumerate() {
            releases.extend(release_of(other).map(|release| (release, Some(index))));
        }
        Self {
            first,
            others,
            releases,
        }
    }

    /// The compiler for what needs no particular release.
    pub(super) const fn first(&self) -> &'a Compiler {
        self.first
    }

    /// The releases of ptxas that there are here.
    pub(super) fn releases(&self) -> Vec<CudaRelease> {
        self.releases.iter().map(|(release, _)| *release).collect()
    }

    /// The compiler with the ptxas of a release.
    pub(super) fn with_ptxas(&self, wanted: CudaRelease) -> &Compiler {
        let found = self.releases.iter().find(|(release, _)| *release == wanted);
        found
            .and_then(|(_, index)| self.others.get((*index)?))
            .unwrap_or(self.first)
    }

    /// What finishes the program, with a CUDA release where none was named: that of the ptxas here, and a word about it.
    pub(super) fn with_cuda(&self, asked: &FinishWith, targets: &[Target]) -> (FinishWith, Option<String>) {
        let has_nvidia = targets.iter().any(|target| target.vendor() == Vendor::Nvidia);
        let unnamed = has_nvidia && asked.cudas().is_empty();
        match self.releases.first() {
            Some((release, _)) if unnamed => (
                asked.clone().with_cuda(*release),
                Some(format!(
                    "no CUDA toolkit was named: CUDA {release} or a newer one is assumed on the other machine, since that is the \
                     release of ptxas here; say --finish-with ...,cuda-12.4 if it is another"
                )),
            ),
            _ => (asked.clone(), None),
        }
    }
}

/// The CUDA release of the compiler that makes relocatable cubins.
fn release_of(compiler: &Compiler) -> Option<CudaRelease> {
    let makers = [PtxCompiler::NvPtxCompiler, PtxCompiler::Ptxas];
    let choice = compiler.options().ptx_compiler;
    makers
        .into_iter()
        .filter(|maker| choice.is_none_or(|choice| choice == *maker))
        .find_map(|maker| release_in(compiler.ptx_to_cubin().version(maker).ok()?))
}

/// The release in a version such as `13.0.88`, or in `ptxas 13.0.88`.
pub(super) fn release_in(version: &str) -> Option<CudaRelease> {
    let version = version.rsplit(' ').next()?;
    let mut numbers = version.split('.').map(str::parse::<u16>);
    Some(CudaRelease::new(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_versions() {
        assert_eq!(release_in("13.0.88"), Some(CudaRelease::new(13, 0)));
        assert_eq!(release_in("nvPTXCompiler 12.4"), Some(CudaRelease::new(12, 4)));
        assert_eq!(release_in("13"), None);
        assert_eq!(release_in("lld"), None);
    }
}
