//! The result of an inspection. Its fields are those of the JSON document, which `docs/inspect.md` describes.

use serde::Serialize;

use crate::FileKind;
use crate::image::cubin::DeviceFunction;
use crate::image::producer::Producer;
use crate::image::ptx_entries::PtxEntry;
use crate::image::resource::{KernelResources, Parameter};

/// What is in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The file's name, as it was given.
    pub file: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Bytes of the file that are device code, with the containers around it and the padding in them.
    pub device_bytes: u64,
    /// The containers, outer ones first. The first is the file itself, unless that is an image.
    pub containers: Vec<Container>,
    /// The images, in the order of the file.
    pub images: Vec<Image>,
}

impl Inspection {
    /// What could not be read: a place, and what is wrong there.
    pub fn problems(&self) -> impl Iterator<Item = (String, &str)> {
        let containers = self
            .containers
            .iter()
            .enumerate()
            .filter_map(|(index, container)| Some((self.container_name(index), container.error.as_deref()?)));
        let images = self
            .images
            .iter()
            .filter_map(|image| Some((self.image_name(image), image.error.as_deref()?)));
        containers.chain(images)
    }

    /// A container in words: `fat binary at 0x768 in .nv_fatbin`.
    #[must_use]
    pub fn container_name(&self, index: usize) -> String {
        let Some(container) = self.containers.get(index) else {
            return String::new();
        };
        let mut name = match container.kind {
            FileKind::Unknown => "device section".to_owned(),
            kind => kind.name().to_owned(),
        };
        if let (Some(offset), Some(_)) = (container.offset, container.parent) {
            name.push_str(&format!(" at {offset:#x}"));
        }
        for label in self.labels(Some(index)) {
            name.push_str(&format!(" in {label}"));
        }
        name
    }

    /// An image in words: `image 2, cubin for sm_90 at 0x7c8 in .nv_fatbin`.
    #[must_use]
    pub fn image_name(&self, image: &Image) -> String {
        let mut name = format!("image {}, {}", image.number, image.kind.name());
        if let Some(target) = &image.target {
            name.push_str(&format!(" for {target}"));
        }
        if let Some(offset) = image.offset.filter(|_| image.container.is_some()) {
            name.push_str(&format!(" at {offset:#x}"));
        }
        for label in image
            .label
            .iter()
            .map(String::as_str)
            .chain(self.labels(image.container))
        {
            name.push_str(&format!(" in {label}"));
        }
        name
    }

    /// The labels of a container and those around it, inner ones first.
    fn labels(&self, container: Option<usize>) -> impl Iterator<Item = &str> {
        let start = container.and_then(|index| self.containers.get(index));
        std::iter::successors(start, |container| self.containers.get(container.parent?))
            .filter_map(|container| container.label.as_deref())
    }
}

/// Something that holds images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Container {
    /// What it is; unknown for the contents of a section that holds device code of no known form.
    pub kind: FileKind,
    /// The container around it, as an index into [`Inspection::containers`].
    pub parent: Option<usize>,
    /// The ELF section, archive member or bundle entry that it lies in.
    pub label: Option<String>,
    /// Where it starts in the file, in bytes; `None` inside of something compressed.
    pub offset: Option<u64>,
    /// Its size as stored, in bytes.
    pub bytes: u64,
    /// How it is compressed as a whole.
    pub compression: Option<Compression>,
    /// Its size when decompressed, if it is compressed.
    pub uncompressed_bytes: Option<u64>,
    /// Version of its format, where formats have versions.
    pub version: Option<u32>,
    /// Host files: the machine, `x86-64`.
    pub machine: Option<String>,
    /// Host files: the sections with their sizes.
    pub sections: Vec<SectionSize>,
    /// What is unusual about it, and no error.
    pub remarks: Vec<String>,
    /// Why it, or what follows in it, cannot be read.
    pub error: Option<String>,
}

impl Container {
    /// One without details.
    pub(super) fn new(kind: FileKind, bytes: usize) -> Self {
        Self {
            kind,
            parent: None,
            label: None,
            offset: None,
            bytes: bytes as u64,
            compression: None,
            uncompressed_bytes: None,
            version: None,
            machine: None,
            sections: Vec::new(),
            remarks: Vec::new(),
            error: None,
        }
    }
}

/// An image: what a GPU's loader, or a compiler on its behalf, takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Its number in the file, from 1.
    pub number: usize,
    /// What it is.
    pub kind: FileKind,
    /// The container it lies in, as an index into [`Inspection::containers`].
    pub container: Option<usize>,
    /// The ELF section, archive member or bundle entry that it lies in, where that is not its container's.
    pub label: Option<String>,
    /// What it is for: `sm_90a`, `gfx90a:xnack-`. What the container says, for loaders go by that, or else what the
    /// image says of itself.
    pub target: Option<String>,
    /// Where it starts in the file, in bytes; `None` inside of something compressed. It is the compressed form that lies
    /// there, if the image is compressed.
    pub offset: Option<u64>,
    /// Its size as stored, in bytes; `None` inside of something compressed.
    pub stored_bytes: Option<u64>,
    /// Its size when decompressed, in bytes.
    pub bytes: u64,
    /// How it is compressed.
    pub compression: Option<Compression>,
    /// PTX: version of the instruction set.
    pub ptx_isa: Option<String>,
    /// Cubins: `e_ident[EI_ABIVERSION]`.
    pub abi_version: Option<u8>,
    /// AMD: version of the code object.
    pub code_object_version: Option<u32>,
    /// The tool that made it, if it says so.
    pub producer: Option<Producer>,
    /// Fat binaries: the identifier beside it, usually the name of a source file.
    pub identifier: Option<String>,
    /// Fat binaries: the options for the driver's compiler.
    pub options: Option<String>,
    /// Debug information.
    pub debug: DebugInfo,
    /// Whether it holds NVIDIA's intermediate "Mercury" code, which the driver finishes.
    pub mercury: bool,
    /// Whether it has to be linked before it can be loaded.
    pub relocatable: bool,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Functions in a cubin that kernels call.
    pub device_functions: Vec<DeviceFunction>,
    /// AMD: symbols that it uses and does not define.
    pub undefined: Vec<String>,
    /// ELF images: the sections with their sizes.
    pub sections: Vec<SectionSize>,
    /// What is unusual about it, and no error.
    pub remarks: Vec<String>,
    /// Why it, or a part of it, cannot be read. Offsets count from the start of the image, decompressed.
    pub error: Option<String>,
}

impl Image {
    /// One without details.
    pub(super) fn new(kind: FileKind, bytes: usize) -> Self {
        Self {
            number: 0,
            kind,
            container: None,
            label: None,
            target: None,
            offset: None,
            stored_bytes: Some(bytes as u64),
            bytes: bytes as u64,
            compression: None,
            ptx_isa: None,
            abi_version: None,
            code_object_version: None,
            producer: None,
            identifier: None,
            options: None,
            debug: DebugInfo::None,
            mercury: false,
            relocatable: false,
            kernels: Vec::new(),
            device_functions: Vec::new(),
            undefined: Vec::new(),
            sections: Vec::new(),
            remarks: Vec::new(),
            error: None,
        }
    }
}

/// A way to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Compression {
    /// An LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
    /// A zlib stream.
    Zlib,
}

impl Compression {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Zlib => "zlib",
        }
    }
}

/// How much debug information an image has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebugInfo {
    /// None.
    #[default]
    None,
    /// Line tables alone.
    Lines,
    /// Types and variables too.
    Full,
}

/// One kernel: what machine code needs, or what PTX declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Kernel {
    /// Of a cubin or an AMDGPU code object.
    Machine(Box<KernelResources>),
    /// Of PTX.
    Ptx(Box<PtxEntry>),
}

impl Kernel {
    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Machine(kernel) => &kernel.name,
            Self::Ptx(kernel) => &kernel.name,
        }
    }

    /// The kernel's parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        match self {
            Self::Machine(kernel) => &kernel.parameters,
            Self::Ptx(kernel) => &kernel.parameters,
        }
    }
}

/// The size of one section of an ELF file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SectionSize {
    /// Its name.
    pub name: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Whether it takes that space in the file; otherwise in memory alone.
    pub in_file: bool,
    /// Host files: whether it holds device code.
    pub device: bool,
}
