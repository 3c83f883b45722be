//! The functions of a host program as LLVM IR: its entry, its constructors and destructors.

use std::ffi::CString;

use inkwell::types::{AnyType, AnyTypeEnum};
use inkwell::values::AsValueRef;
use llvm_sys::{
    LLVMLinkage,
    core::{
        LLVMConstIntGetZExtValue, LLVMDeleteGlobal, LLVMGetInitializer, LLVMGetNamedGlobal, LLVMGetNumOperands,
        LLVMGetOperand, LLVMGetValueName2, LLVMIsAConstantInt, LLVMIsAFunction, LLVMSetLinkage,
    },
    prelude::LLVMValueRef,
};

use super::{engine::Returns, llvm::DeviceModule};

/// A function that could be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It takes nothing and returns this.
    Callable(Returns),
    /// It takes arguments, or returns something else: its type as LLVM prints it.
    Other(String),
}

/// The names of the functions that a module defines and others may see, in its order.
pub(crate) fn defined_functions(module: &DeviceModule<'_>) -> Vec<String> {
    module
        .inkwell()
        .get_functions()
        .filter(|function| function.count_basic_blocks() > 0)
        .filter(|function| function.get_linkage() != inkwell::module::Linkage::Internal)
        .map(|function| function.get_name().to_string_lossy().into_owned())
        .collect()
}

/// The function of a name, which becomes visible; `None` if the module does not define it.
pub(crate) fn entry(module: &DeviceModule<'_>, name: &str) -> Option<Entry> {
    let function = module.inkwell().get_function(name)?;
    if function.count_basic_blocks() == 0 {
        return None;
    }
    // SAFETY: the function is alive.
    unsafe { LLVMSetLinkage(function.as_value_ref(), LLVMLinkage::LLVMExternalLinkage) };
    let kind = function.get_type();
    let other = || Entry::Other(kind.print_to_string().to_string());
    if kind.count_param_types() > 0 || kind.is_var_arg() {
        return Some(other());
    }
    let Some(returned) = kind.get_return_type() else {
        return Some(Entry::Callable(Returns::Nothing));
    };
    Some(match returned.as_any_type_enum() {
        AnyTypeEnum::IntType(integer) if integer.get_bit_width() == 32 => Entry::Callable(Returns::I32),
        AnyTypeEnum::IntType(integer) if integer.get_bit_width() == 64 => Entry::Callable(Returns::I64),
        AnyTypeEnum::FloatType(float) if float == float.get_context().f32_type() => Entry::Callable(Returns::F32),
        AnyTypeEnum::FloatType(float) if float == float.get_context().f64_type() => Entry::Callable(Returns::F64),
        _ => other(),
    })
}

/// Takes the constructors out of a module, those of the lowest priority number first, and makes them visible. Whoever links
/// the module calls them.
pub(crate) fn take_constructors(module: &DeviceModule<'_>) -> Vec<String> {
    take(module, "llvm.global_ctors")
}

/// As [`take_constructors`]: the destructors, in the order in which they have to be called.
pub(crate) fn take_destructors(module: &DeviceModule<'_>) -> Vec<String> {
    let mut names = take(module, "llvm.global_dtors");
    names.reverse();
    names
}

fn take(module: &DeviceModule<'_>, list: &str) -> Vec<String> {
    let Ok(list) = CString::new(list) else {
        return Vec::new();
    };
    let mut found: Vec<(u64, String)> = Vec::new();
    // SAFETY: the module is alive; the list is an array of structures of a priority, a function and data (LLVM's language
    // reference, and its verifier), which is looked at before it is deleted; nothing refers to it.
    unsafe {
        let global = LLVMGetNamedGlobal(module.inkwell().as_mut_ptr(), list.as_ptr());
        if global.is_null() {
            return Vec::new();
        }
        let entries = LLVMGetInitializer(global);
        for index in 0..operand_count(entries) {
            let entry = LLVMGetOperand(entries, index);
            if operand_count(entry) < 2 {
                continue;
            }
            let (priority, function) = (LLVMGetOperand(entry, 0), LLVMGetOperand(entry, 1));
            if LLVMIsAConstantInt(priority).is_null() || LLVMIsAFunction(function).is_null() {
                continue;
            }
            LLVMSetLinkage(function, LLVMLinkage::LLVMExternalLinkage);
            found.push((LLVMConstIntGetZExtValue(priority), name_of(function)));
        }
        LLVMDeleteGlobal(global);
    }
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().map(|(_, name)| name).collect()
}

/// # Safety
///
/// The value is alive, or null.
unsafe fn operand_count(value: LLVMValueRef) -> u32 {
    if value.is_null() {
        return 0;
    }
    // SAFETY: forwarded to the caller.
    u32::try_from(unsafe { LLVMGetNumOperands(value) }).unwrap_or(0)
}

/// # Safety
///
/// The value is alive.
unsafe fn name_of(value: LLVMValueRef) -> String {
    let mut length = 0;
    // SAFETY: the name belongs to the value, has the length that is written, and is copied.
    unsafe {
        let name = LLVMGetValueName2(value, &raw mut length);
        String::from_utf8_lossy(std::slice::from_raw_parts(name.cast(), length)).into_owned()
    }
}
