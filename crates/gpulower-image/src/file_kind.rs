//! What bytes are, told by their beginning: one name and one test for each format that this project reads or writes.

use serde::Serialize;

use crate::{
    container::{archive, bundle, fatbin, offload_binary},
    image::{
        elf::{EM_AMDGPU, EM_CUDA, ET_DYN, ET_REL, Elf},
        lto_ir, ptx,
    },
};

/// How much of a text is looked at, in bytes.
const TEXT_HEAD: usize = 64 * 1024;

table! {
    /// What bytes are.
    ///
    /// Two enums beside it say something else: [`offload_binary::ImageKind`] is what a file *states* about an image, in numbers
    /// of its own, and [`ImageForm`](crate::offload::layout::ImageForm) is what an image is to clang's linker, which
    /// distinguishes versions of code objects.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum FileKind: (&'static str, &'static str) {
        /// MLIR bytecode. MLIR as text has no mark of its own: it is [`Text`](Self::Text).
        MlirBytecode = ("MLIR bytecode", "mlirbc");
        /// LLVM IR as text.
        LlvmIr = ("LLVM IR", "ll");
        /// LLVM bitcode, with or without a wrapper.
        Bitcode = ("bitcode", "bc");
        /// PTX text.
        Ptx = ("PTX", "ptx");
        /// NVIDIA's IR for link-time optimisation. Only NVIDIA's tools read it.
        LtoIr = ("LTO-IR", "ltoir");
        /// SPIR-V, little-endian.
        SpirV = ("SPIR-V", "spv");
        /// Other text: MLIR, assembly.
        Text = ("text", "txt");
        /// NVIDIA machine code, linked or relocatable.
        Cubin = ("cubin", "cubin");
        /// An AMDGPU code object that was linked.
        Hsaco = ("hsaco", "hsaco");
        /// An AMDGPU code object that was not.
        AmdObject = ("object", "o");
        /// NVIDIA's fat binary.
        FatBinary = ("fat binary", "fatbin");
        /// Clang's offload bundle, binary, compressed or not.
        Bundle = ("offload bundle", "hipfb");
        /// Clang's offload bundle as text, comments around assembly or LLVM IR.
        TextBundle = ("text offload bundle", "hipfb");
        /// LLVM's offload binary.
        OffloadBinary = ("offload binary", "offload");
        /// An `ar` archive.
        Archive = ("archive", "a");
        /// An `ar` archive that holds the names of its members and none of their bytes.
        ThinArchive = ("thin archive", "a");
        /// A relocatable object for a CPU.
        HostObject = ("host object", "o");
        /// A program for a CPU.
        Executable = ("executable", "bin");
        /// A shared library for a CPU.
        SharedLibrary = ("shared library", "so");
        /// None of these.
        Unknown = ("unknown", "bin");
    }
}

impl FileKind {
    /// The kind of `bytes`, from their first bytes, an ELF header, and of text the first 64 KiB.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if let Some(kind) = Self::of_binary_ir(bytes) {
            return kind;
        }
        match bytes {
            [0x7f, b'E', b'L', b'F', ..] => of_elf(bytes),
            [0x03, 0x02, 0x23, 0x07, ..] => Self::SpirV,
            _ if bytes.starts_with(&lto_ir::MAGIC) => Self::LtoIr,
            _ if bytes.starts_with(archive::MAGIC) => Self::Archive,
            _ if bytes.starts_with(archive::THIN_MAGIC) => Self::ThinArchive,
            _ => Self::of_container(bytes).unwrap_or_else(|| of_text(bytes)),
        }
    }

    /// MLIR bytecode or LLVM bitcode, as far as the first bytes tell: a text need not be looked at for that.
    #[must_use]
    pub fn of_binary_ir(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'B', b'C', 0xc0, 0xde, ..] | [0xde, 0xc0, 0x17, 0x0b, ..] => Some(Self::Bitcode),
            [b'M', b'L', 0xef, b'R', ..] => Some(Self::MlirBytecode),
            _ => None,
        }
    }

    /// The container of device images that begins here, of those that may lie one after the other.
    pub(crate) fn of_container(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(&fatbin::MAGIC) {
            Some(Self::FatBinary)
        } else if bytes.starts_with(&offload_binary::MAGIC) {
            Some(Self::OffloadBinary)
        } else {
            bundle::is_binary_bundle(bytes).then_some(Self::Bundle)
        }
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The usual extension of such a file, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        self.row().1
    }

    /// Whether it is a file for a CPU that the linker has made or takes.
    #[must_use]
    pub const fn is_host(self) -> bool {
        matches!(self, Self::HostObject) || self.is_linked_host()
    }

    /// Whether it is a file for a CPU with which the linker is done.
    #[must_use]
    pub const fn is_linked_host(self) -> bool {
        matches!(self, Self::Executable | Self::SharedLibrary)
    }
}

/// ELF, by its machine and type. What is cut off before these is taken for a host object, whose reader says so.
fn of_elf(bytes: &[u8]) -> FileKind {
    let field = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes);
    match (field(18), field(16)) {
        (Some(EM_CUDA), _) => FileKind::Cubin,
        (Some(EM_AMDGPU), Some(ET_REL)) => FileKind::AmdObject,
        (Some(EM_AMDGPU), _) => FileKind::Hsaco,
        (_, Some(ET_DYN)) if Elf::parse(bytes).is_ok_and(|elf| elf.is_position_independent_program()) => {
            FileKind::Executable
        }
        (_, Some(ET_DYN)) => FileKind::SharedLibrary,
        (None, _) | (_, Some(ET_REL)) => FileKind::HostObject,
        _ => FileKind::Executable,
    }
}

/// Text, by its first directive or by lines that only one language has.
fn of_text(bytes: &[u8]) -> FileKind {
    let head = bytes.get(..TEXT_HEAD).unwrap_or(bytes);
    let (text, is_text) = match std::str::from_utf8(head) {
        Ok(text) => (text, !text.is_empty()),
        // A character may be cut off by the end of the head, but not by the end of the bytes.
        Err(error) => {
            let valid = head.get(..error.valid_up_to()).unwrap_or_default();
            let is_cut = error.error_len().is_none() && head.len() < bytes.len();
            (std::str::from_utf8(valid).unwrap_or_default(), is_cut)
        }
    };
    if bundle::is_text_bundle(bytes) {
        FileKind::TextBundle
    } else if ptx::header(text).version.is_some() {
        FileKind::Ptx
    } else if !is_text || text.contains('\0') {
        FileKind::Unknown
    } else if text.lines().any(is_line_of_llvm_ir) {
        FileKind::LlvmIr
    } else {
        FileKind::Text
    }
}

fn is_line_of_llvm_ir(line: &str) -> bool {
    const STARTS: [&str; 6] = [
        "; ModuleID",
        "source_filename",
        "target triple",
        "target datalayout",
        "define ",
        "declare ",
    ];
    STARTS.iter().any(|start| line.starts_with(start)) || line.starts_with('@') && line.contains(" = ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_their_first_bytes() {
        for (bytes, kind) in [
            (&b"\x50\xed\x55\xba"[..], FileKind::FatBinary),
            (b"__CLANG_OFFLOAD_BUNDLE__\x01", FileKind::Bundle),
            (b"CCOB\x03", FileKind::Bundle),
            (b"\n; __CLANG_OFFLOAD_BUNDLE____START__ host-", FileKind::TextBundle),
            (b"\x10\xff\x10\xad", FileKind::OffloadBinary),
            (b"!<arch>\n", FileKind::Archive),
            (b"!<thin>\n", FileKind::ThinArchive),
            (b"BC\xc0\xde", FileKind::Bitcode),
            (b"\xde\xc0\x17\x0b", FileKind::Bitcode),
            (b"ML\xefR\x0d", FileKind::MlirBytecode),
            (b"\xedCN\x7f", FileKind::LtoIr),
            (b"\x03\x02\x23\x07", FileKind::SpirV),
            (b"// \xff?", FileKind::Unknown),
            (b"// a\n.version 7.0 // \xff", FileKind::Ptx),
            (b"; a comment\ndefine void @f() {", FileKind::LlvmIr),
            (b"@x = constant i32 1\n", FileKind::LlvmIr),
            (b"func.func\n@x() { return }", FileKind::Text),
            (b"module {}", FileKind::Text),
            (b"a\0b", FileKind::Unknown),
            (b"\x7fELF", FileKind::HostObject),
            (b"", FileKind::Unknown),
        ] {
            assert_eq!(FileKind::of(bytes), kind, "{bytes:?}");
        }
        let elf = |machine: u16, elf_type: u16| {
            let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
            bytes.resize(16, 0);
            bytes.extend(elf_type.to_le_bytes());
            bytes.extend(machine.to_le_bytes());
            FileKind::of(&bytes)
        };
        assert_eq!((elf(190, 1), elf(190, 2)), (FileKind::Cubin, FileKind::Cubin));
        assert_eq!((elf(224, 1), elf(224, 3)), (FileKind::AmdObject, FileKind::Hsaco));
        assert_eq!((elf(62, 1), elf(62, 2)), (FileKind::HostObject, FileKind::Executable));
        assert_eq!(elf(62, 3), FileKind::SharedLibrary);
    }

    #[test]
    fn a_long_text_is_told_by_its_head() {
        let mut text = b"; ModuleID = 'k'\n".to_vec();
        // The head ends within a character.
        text.resize(TEXT_HEAD - 1, b' ');
        text.extend("é".as_bytes());
        assert_eq!(FileKind::of(&text), FileKind::LlvmIr);
        text.truncate(TEXT_HEAD);
        assert_eq!(FileKind::of(&text), FileKind::Unknown);
    }
}
