//! What a launch has to know of a kernel, read from its image.

use serde::Serialize;

use gpulower_image::image::resource::Parameter;
use gpulower_image::inspect;

/// A kernel as its image describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct KernelInterface {
    /// Its name.
    pub name: String,
    /// The parameters that a launch gives, in order: those that AMD's runtime fills in are left out. `None` if the image does
    /// not say.
    pub parameters: Option<Vec<Parameter>>,
    /// The shape of block that it requires.
    pub required_block: Option<[u32; 3]>,
    /// Most threads of a block that it was compiled for.
    pub max_threads_per_block: Option<u32>,
    /// The shape of cluster that it requires.
    pub cluster: Option<[u32; 3]>,
    /// Most blocks of a cluster that it was compiled for.
    pub max_cluster_blocks: Option<u32>,
    /// Bytes of shared memory that it declares; `None` for PTX, of which the compiler decides.
    pub shared_bytes: Option<u64>,
}

impl From<&inspect::Kernel> for KernelInterface {
    fn from(kernel: &inspect::Kernel) -> Self {
        let name = kernel.name().to_owned();
        let given = |parameter: &&Parameter| {
            // "User Guide for AMDGPU Backend", "Code Object Metadata": the value kinds of hidden arguments.
            let hidden = parameter
                .kind
                .as_deref()
                .is_some_and(|kind| kind.starts_with("hidden_"));
            !hidden
        };
        let parameters: Vec<Parameter> = kernel.parameters().iter().filter(given).cloned().collect();
        match kernel {
            inspect::Kernel::Machine(kernel) => {
                let untold = kernel.parameters.is_empty() && kernel.parameter_bytes.is_some_and(|bytes| bytes > 0);
                Self {
                    name,
                    parameters: (!untold).then_some(parameters),
                    required_block: kernel.required_block,
                    max_threads_per_block: kernel.max_threads_per_block,
                    cluster: fixed(kernel.cluster),
                    max_cluster_blocks: kernel.max_cluster_rank.filter(|&rank| rank > 0),
                    shared_bytes: Some(kernel.shared_bytes),
                }
            }
            inspect::Kernel::Ptx(kernel) => Self {
                name,
                parameters: Some(parameters),
                required_block: kernel.required_block,
                max_threads_per_block: kernel.max_threads_per_block,
                cluster: fixed(kernel.cluster),
                max_cluster_blocks: kernel.max_cluster_rank,
                shared_bytes: None,
            },
        }
    }
}

/// A shape of cluster that is one: kernels that leave it to the launch may state zeros.
fn fixed(cluster: Option<[u32; 3]>) -> Option<[u32; 3]> {
    cluster.filter(|cluster| !cluster.contains(&0))
}
