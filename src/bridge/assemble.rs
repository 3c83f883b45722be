//! LLVM's assembler: from assembly text to an object.

use std::ffi::c_void;

use super::contain::{Bytes, Collected, LlvmError, Outcome};

unsafe extern "C-unwind" {
    fn gpulowerAssemble(
        triple: Bytes,
        chip: Bytes,
        features: Bytes,
        name: Bytes,
        text: Bytes,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    ) -> Outcome;
}

/// Assembles `text` for a chip with LLVM's feature string; `name` is for messages, which give line and column.
pub(crate) fn assemble(triple: &str, chip: &str, features: &str, name: &str, text: &str) -> Result<Vec<u8>, LlvmError> {
    let mut output = Collected::default();
    let bytes = |text: &str| Bytes::new(text.as_bytes());
    // SAFETY: the strings are alive during the call, and the sink matches the closure.
    unsafe {
        gpulowerAssemble(
            bytes(triple),
            bytes(chip),
            bytes(features),
            bytes(name),
            bytes(text),
            output.closure(),
            Collected::sink,
        )
    }
    .into_result()?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: &str = "amdgcn-amd-amdhsa";

    #[test]
    fn text_becomes_an_object() {
        let object = assemble(TRIPLE, "gfx942", "", "k.s", "\t.text\nk:\n\ts_endpgm\n").expect("assembled");
        assert!(object.starts_with(b"\x7fELF"));
        // s_endpgm of AMD's "MI300 Instruction Set Architecture": SOPP opcode 1.
        assert!(object.windows(4).any(|word| word == [0x00, 0x00, 0x81, 0xbf]));
    }

    #[test]
    fn wrong_text_is_refused_with_its_place() {
        let error = assemble(TRIPLE, "gfx942", "", "k.s", "\ts_endpgm\n\tnot_an_instruction\n").expect_err("refused");
        assert!(
            error.to_string().starts_with("k.s:2:2: error: invalid instruction"),
            "{error}"
        );
    }

    #[test]
    fn what_the_context_finds_is_said_too() {
        let error = assemble(TRIPLE, "gfx942", "", "k.s", "k:\n\ts_endpgm\nk:\n").expect_err("refused");
        assert!(
            error
                .to_string()
                .starts_with("k.s:3:1: error: symbol 'k' is already defined"),
            "{error}"
        );
    }

    #[test]
    fn text_for_another_chip_is_refused() {
        let text = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx90a\"\n";
        let error = assemble(TRIPLE, "gfx942", "", "k.s", text).expect_err("refused");
        assert!(error.to_string().contains("gfx90a"), "{error}");
    }
}
