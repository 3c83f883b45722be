//! What a piece of a file is, told by its first bytes.

use super::InspectError;
use crate::container::{archive, bundle};
use crate::image::hsaco_flags::EM_AMDGPU;
use crate::image::ptx;

/// How much of a text is looked at.
const TEXT_HEAD: usize = 64 * 1024;
/// `EM_CUDA` (`llvm/BinaryFormat/ELF.h`).
const EM_CUDA: u16 = 190;

/// The forms that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// ELF for NVIDIA GPUs.
    Cubin,
    /// ELF for AMD GPUs.
    AmdElf,
    /// ELF for something else.
    HostElf,
    /// NVIDIA's fat binary.
    FatBinary,
    /// Clang's offload bundle, not compressed.
    Bundle,
    /// Clang's offload bundle, compressed.
    CompressedBundle,
    /// Clang's offload bundle in comments of a text.
    TextBundle,
    /// LLVM's offload binary.
    OffloadBinary,
    /// An `ar` archive.
    Archive,
    /// LLVM bitcode, with or without a wrapper.
    Bitcode,
    /// NVIDIA's IR for link-time optimisation.
    LtoIr,
    /// PTX text.
    Ptx,
    /// SPIR-V, little-endian.
    SpirV,
}

/// First bytes of containers, which may lie one after the other.
pub(super) const CONTAINERS: [(Form, &[u8]); 4] = [
    (Form::FatBinary, &[0x50, 0xed, 0x55, 0xba]),
    (Form::OffloadBinary, &[0x10, 0xff, 0x10, 0xad]),
    (Form::Bundle, b"__CLANG_OFFLOAD_BUNDLE__"),
    (Form::CompressedBundle, b"CCOB"),
];

impl Form {
    /// The form of `bytes`; `None` if it is none of these.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if let Some((form, _)) = CONTAINERS.iter().find(|(_, magic)| bytes.starts_with(magic)) {
            return Some(*form);
        }
        match bytes {
            [0x7f, b'E', b'L', b'F', ..] => Some(match machine(bytes) {
                Some(EM_CUDA) => Self::Cubin,
                Some(EM_AMDGPU) => Self::AmdElf,
                _ => Self::HostElf,
            }),
            [b'B', b'C', 0xc0, 0xde, ..] | [0xde, 0xc0, 0x17, 0x0b, ..] => Some(Self::Bitcode),
            [0xed, 0x43, 0x4e, 0x7f, ..] => Some(Self::LtoIr),
            [0x03, 0x02, 0x23, 0x07, ..] => Some(Self::SpirV),
            _ if bytes.starts_with(archive::MAGIC) => Some(Self::Archive),
            // The binary forms were told above.
            _ if bundle::is_bundle(bytes) => Some(Self::TextBundle),
            _ => is_ptx(bytes).then_some(Self::Ptx),
        }
    }

    /// Why a file without a form is refused.
    pub(super) fn refusal(bytes: &[u8]) -> InspectError {
        let not_read = |what, advice| InspectError::NotRead { what, advice };
        match bytes {
            [] => InspectError::Empty,
            [b'M', b'Z', ..] => not_read("a Windows program", "only ELF files are read"),
            [0xcf, 0xfa, 0xed, 0xfe, ..] => not_read("a macOS program", "only ELF files are read"),
            [b'P', b'K', 3, 4, ..] => not_read("a zip file, as a Python wheel is", "unpack it, and name a file in it"),
            [0x1f, 0x8b, ..] => not_read("a gzip file", "unpack it"),
            _ if bytes.starts_with(archive::THIN_MAGIC) => not_read(
                "a thin archive, which holds the names of its members and none of their bytes",
                "name the object files, or make a full archive of it with llvm-ar cqsL FULL.a THIN.a",
            ),
            _ => InspectError::Unrecognized { start: start(bytes) },
        }
    }
}

/// The first bytes in hexadecimal.
pub(super) fn start(bytes: &[u8]) -> String {
    let start: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    start.join(" ")
}

/// `e_machine`.
fn machine(elf: &[u8]) -> Option<u16> {
    elf.get(18..)?.first_chunk().copied().map(u16::from_le_bytes)
}

fn is_ptx(bytes: &[u8]) -> bool {
    let head = bytes.get(..TEXT_HEAD).unwrap_or(bytes);
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default(),
    };
    ptx::header(text).version.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_by_their_first_bytes() {
        for (bytes, form) in [
            (&b"\x50\xed\x55\xba"[..], Some(Form::FatBinary)),
            (b"__CLANG_OFFLOAD_BUNDLE__\x01", Some(Form::Bundle)),
            (b"CCOB\x03", Some(Form::CompressedBundle)),
            (b"\n; __CLANG_OFFLOAD_BUNDLE____START__ host-", Some(Form::TextBundle)),
            (b"\x10\xff\x10\xad", Some(Form::OffloadBinary)),
            (b"!<arch>\n", Some(Form::Archive)),
            (b"BC\xc0\xde", Some(Form::Bitcode)),
            (b"\xde\xc0\x17\x0b", Some(Form::Bitcode)),
            (b"\xedCN\x7f", Some(Form::LtoIr)),
            (b"\x03\x02\x23\x07", Some(Form::SpirV)),
            (b"// \xff?", None),
            (b"// a\n.version 7.0 // \xff", Some(Form::Ptx)),
            (b"\x7fELF", Some(Form::HostElf)),
            (b"", None),
            (b"text", None),
        ] {
            assert_eq!(Form::of(bytes), form, "{bytes:?}");
        }
        let elf = |machine: u16| {
            let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
            bytes.resize(18, 0);
            bytes.extend(machine.to_le_bytes());
            Form::of(&bytes)
        };
        assert_eq!(elf(190), Some(Form::Cubin));
        assert_eq!(elf(224), Some(Form::AmdElf));
        assert_eq!(elf(62), Some(Form::HostElf));
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (bytes, expected) in [
            (&b""[..], "the file is empty"),
            (b"MZ", "it is a Windows program: only ELF files are read"),
            (b"\xcf\xfa\xed\xfe", "it is a macOS program"),
            (b"PK\x03\x04", "unpack it, and name a file in it"),
            (b"\x1f\x8b", "a gzip file: unpack it"),
            (b"!<thin>\n", "it is a thin archive, which holds the names"),
            (b"module {}", "it starts with [6d 6f 64 75 6c 65 20 7b]"),
        ] {
            let message = Form::refusal(bytes).to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
