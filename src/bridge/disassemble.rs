//! LLVM's disassembler.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

use llvm_sys::disassembler::{
    LLVMCreateDisasmCPUFeatures, LLVMDisasmContextRef, LLVMDisasmDispose, LLVMDisasmInstruction,
    LLVMSymbolLookupCallback,
};

use super::contain::LlvmError;

/// Longest instruction, in bytes: more than any of AMD's or NVIDIA's has.
const LONGEST_CODE: usize = 64;
/// Longest instruction as text, in bytes; LLVM cuts what is longer.
const LONGEST_TEXT: usize = 512;

unsafe extern "C-unwind" {
    fn gpulowerInitializeTargets();
}

/// A disassembler for one chip, used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Disassembler {
    raw: LLVMDisasmContextRef,
}

/// Finds no symbols: operands stay numbers.
extern "C" fn no_symbol(_: *mut c_void, _: u64, reference: *mut u64, _: u64, _: *mut *const c_char) -> *const c_char {
    if !reference.is_null() {
        // SAFETY: LLVM gives a pointer to a number that it reads back; 0 is `LLVMDisassembler_ReferenceType_InOut_None`.
        unsafe { *reference = 0 };
    }
    std::ptr::null()
}

impl Disassembler {
    /// Makes a disassembler. Chip and features have to be valid: LLVM would print a warning and go on.
    ///
    /// # Errors
    ///
    /// [`LlvmError::Refused`] if LLVM has no disassembler for the triple.
    pub(crate) fn new(triple: &str, chip: &str, features: &str) -> Result<Self, LlvmError> {
        let text =
            |text: &str| CString::new(text).map_err(|_| LlvmError::Refused(format!("{text:?} contains a NUL byte")));
        let (triple_text, chip, features) = (text(triple)?, text(chip)?, text(features)?);
        let lookup: LLVMSymbolLookupCallback = Some(no_symbol);
        // SAFETY: the strings are alive during the call, and neither callback is given any state.
        let raw = unsafe {
            gpulowerInitializeTargets();
            LLVMCreateDisasmCPUFeatures(
                triple_text.as_ptr(),
                chip.as_ptr(),
                features.as_ptr(),
                null_mut(),
                0,
                None,
                lookup,
            )
        };
        if raw.is_null() {
            return Err(LlvmError::Refused(format!("LLVM has no disassembler for {triple}")));
        }
        Ok(Self { raw })
    }

    /// The first instruction of `code`: how many bytes it has, and its text. `None` for bytes that are no instruction.
    pub(crate) fn instruction(&mut self, code: &[u8]) -> Option<(usize, String)> {
        let mut text: [c_char; LONGEST_TEXT] = [0; LONGEST_TEXT];
        let mut bytes = code.get(..LONGEST_CODE).unwrap_or(code).to_vec();
        // SAFETY: the disassembler is alive and borrowed exclusively; it reads `bytes.len()` bytes and writes at most
        // `LONGEST_TEXT` characters with a NUL.
        let size = unsafe {
            LLVMDisasmInstruction(
                self.raw,
                bytes.as_mut_ptr(),
                bytes.len() as u64,
                0,
                text.as_mut_ptr(),
                LONGEST_TEXT,
            )
        };
        if size == 0 || size > code.len() {
            return None;
        }
        // SAFETY: LLVM has written a text that ends with a NUL within the array, which was zero before.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        Some((size, text.to_string_lossy().into_owned()))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: made by `new`, disposed of once.
        unsafe { LLVMDisasmDispose(self.raw) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_a_size_and_a_text() {
        let mut disassembler = Disassembler::new("amdgcn-amd-amdhsa", "gfx942", "").expect("a disassembler");
        // scratch_store_dword off, a33, s32 offset:8
        let code = [0x08, 0x40, 0x70, 0xdc, 0x00, 0x21, 0xa0, 0x00, 0xff];
        let (size, text) = disassembler.instruction(&code).expect("an instruction");
        assert_eq!(size, 8);
        assert!(text.contains("a33, s32 offset:8"), "{text}");
        assert_eq!(disassembler.instruction(&[]), None);
        assert_eq!(disassembler.instruction(&[0xff; 3]), None);
        assert!(Disassembler::new("nonsense-a-b", "", "").is_err());
        assert!(Disassembler::new("a\0b", "", "").is_err());
    }
}
