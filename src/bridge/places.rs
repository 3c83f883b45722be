//! Where calls of intrinsics stand, by their debug info.

use std::{collections::BTreeMap, ffi::c_char};

use inkwell::values::AsValueRef;
use llvm_sys::{
    core::{
        LLVMGetCalledValue, LLVMGetDebugLocColumn, LLVMGetDebugLocDirectory, LLVMGetDebugLocFilename,
        LLVMGetDebugLocLine, LLVMGetValueName2, LLVMIsACallInst,
    },
    prelude::LLVMValueRef,
};

use super::llvm::DeviceModule;
use crate::error::Location;

/// The place of the first call of each intrinsic.
pub(crate) fn of_intrinsics(module: &DeviceModule<'_>) -> BTreeMap<String, Location> {
    let mut places = BTreeMap::new();
    let functions = module.inkwell().get_functions();
    let blocks = functions.flat_map(|function| function.get_basic_blocks());
    for instruction in blocks.flat_map(|block| block.get_instructions()) {
        let instruction = instruction.as_value_ref();
        if let Some(name) = intrinsic(instruction)
            && let Some(place) = place(instruction)
        {
            places.entry(name).or_insert(place);
        }
    }
    places
}

/// The intrinsic that an instruction calls.
fn intrinsic(instruction: LLVMValueRef) -> Option<String> {
    let mut length = 0;
    // SAFETY: the instruction is alive; what is called is a value of the module, whose name has that length.
    let name = unsafe {
        if LLVMIsACallInst(instruction).is_null() {
            return None;
        }
        let name = LLVMGetValueName2(LLVMGetCalledValue(instruction), &raw mut length);
        text(name, length)
    };
    name.starts_with("llvm.").then_some(name)
}

fn place(instruction: LLVMValueRef) -> Option<Location> {
    let (mut length, mut directory_length) = (0, 0);
    // SAFETY: the instruction is alive. Without debug info the line is 0, and the texts are null.
    let (line, column, file, directory) = unsafe {
        let line = LLVMGetDebugLocLine(instruction);
        if line == 0 {
            return None;
        }
        let file = LLVMGetDebugLocFilename(instruction, &raw mut length);
        let directory = LLVMGetDebugLocDirectory(instruction, &raw mut directory_length);
        let (file, directory) = (text(file, length as usize), text(directory, directory_length as usize));
        (line, LLVMGetDebugLocColumn(instruction), file, directory)
    };
    let path = match directory.is_empty() || file.starts_with('/') {
        true => file,
        false => format!("{directory}/{file}"),
    };
    Some(Location::in_file(&path, line, column))
}

/// # Safety
///
/// What is not null has so many bytes.
unsafe fn text(start: *const c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: forwarded to the caller.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}
