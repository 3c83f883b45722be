//! What the host side of a program and the images of its kernels have to agree on, as plain data.
//!
//! [`host::lower`](super::host::lower) makes a [`Program`] together with the host code. Whatever makes a file of it
//! (offload entries and embedded images for some clang, or a constructor that registers everything) reads it:
//!
//! | for each | it emits | from |
//! |---|---|---|
//! | kernel in [`Program::kernels`] | an entry, or a call of `__cudaRegisterFunction` | address [`Kernel::handle`], name [`Kernel::name`], size 0, flags 0 |
//! | variable in [`Program::variables`] | an entry, or a call of `__cudaRegisterVar` | address [`Variable::shadow`], name [`Variable::name`], [`Variable::size`], the constant bit from [`Variable::constant`] |
//! | module in [`Program::modules`] | the images of one operation of `HostProgram::device` | the operation named [`KernelModule::symbol`] |
//!
//! Every symbol named here is defined in the host code, and every kernel and variable in the device module that it names.

pub use super::runtime::Runtime;
use super::triple::HostTriple;

/// A program: host code and what it launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The runtime that the host code calls.
    pub runtime: Runtime,
    /// What the host code is compiled for.
    pub triple: HostTriple,
    /// The device modules, each once, in the order of the source. Identical modules of the source are one here.
    pub modules: Vec<KernelModule>,
    /// The kernels that are launched, by module and then in the order of the first launch. All have to be registered.
    pub kernels: Vec<Kernel>,
    /// Global variables of the device modules that other code may refer to. All have to be registered.
    pub variables: Vec<Variable>,
    /// Functions that the host code calls and does not define, apart from the GPU runtime's: the C library's, libm's, or
    /// the user's own. In alphabetical order.
    pub external_functions: Vec<String>,
    /// Whether the host code defines `main`.
    pub has_main: bool,
}

/// One device module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// The symbol of the `gpu.module` or `gpu.binary` in `HostProgram::device`, which is that of the source.
    pub symbol: String,
    /// Further modules of the source that are identical, and use this one's kernels.
    pub aliases: Vec<String>,
    /// Whether it is compiled already: a `gpu.binary` with `gpu.object`s, whose kernels have the names that they have.
    pub compiled: bool,
}

/// A kernel that the host launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Index of its module in [`Program::modules`].
    pub module: usize,
    /// Its name in the source, which messages of the running program use.
    pub source_name: String,
    /// Its name in the device code, under which it is registered. Unique in every program that it may be linked into,
    /// unless the source's names were to be kept.
    pub name: String,
    /// The host function that launches it. Hidden.
    pub stub: String,
    /// The symbol whose address stands for the kernel in calls of the runtime: the stub for CUDA; for HIP a constant
    /// that holds the stub's address, as clang makes it. Hidden.
    pub handle: String,
    /// Whether some launch has clusters, which needs the runtime of CUDA 11.8 or newer.
    pub clusters: bool,
}

/// A global variable of the device, visible outside of its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Index of its module in [`Program::modules`].
    pub module: usize,
    /// Its name in the source.
    pub source_name: String,
    /// Its name in the device code, under which it is registered; unique as a kernel's.
    pub name: String,
    /// The host's variable whose address stands for it, as in `cudaMemcpyToSymbol`. It has the variable's size, and its
    /// content means nothing. Hidden, unless the source's names were to be kept.
    pub shadow: String,
    /// Bytes.
    pub size: u64,
    /// Whether it is in constant memory (what CUDA calls `__constant__`; not whether it is ever written).
    pub constant: bool,
}

impl Program {
    /// The kernels of one module.
    pub fn kernels_of(&self, module: usize) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter().filter(move |kernel| kernel.module == module)
    }

    /// The variables of one module.
    pub fn variables_of(&self, module: usize) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(move |variable| variable.module == module)
    }
}
