//! Programs that register themselves: fat binaries or bundles in their proper sections, and a constructor that hands them,
//! the kernels and the variables to the runtime. No clang is needed to finish them, and it is the form that carries PTX.

use std::fmt::Write;

use super::{
    entries,
    error::OffloadError,
    ir_text::{IrText, bytes, symbol},
    program::{Program, Runtime},
};
use crate::container::host_sections as sections;

/// When the constructor runs: as the one that clang's linker wrapper makes from release 19 on.
///
/// Before every constructor of C++ and Rust, so that those may launch kernels, but not among the first 101, which belong
/// to the implementation. What `atexit` is given so early runs late: after the destructors of the user's objects, which
/// may still free memory of the device. (Clang's objects without relocatable device code have 65535 and neither.)
pub const PRIORITY: u32 = 101;

struct Names {
    data_section: &'static str,
    data_alignment: u64,
    wrapper_section: &'static str,
    magic: u32,
    prefix: &'static str,
}

const fn names(runtime: Runtime) -> Names {
    match runtime {
        Runtime::Cuda | Runtime::OpenMp => Names {
            data_section: sections::NV_FATBIN_SECTION,
            data_alignment: sections::NV_FATBIN_ALIGN,
            wrapper_section: sections::NV_WRAPPER_SECTION,
            magic: sections::NV_WRAPPER_MAGIC,
            prefix: "__cuda",
        },
        Runtime::Hip => Names {
            data_section: sections::HIP_FATBIN_SECTION,
            data_alignment: sections::HIP_FATBIN_ALIGN,
            wrapper_section: sections::HIP_WRAPPER_SECTION,
            magic: sections::HIP_WRAPPER_MAGIC,
            prefix: "__hip",
        },
    }
}

/// Adds the registration of a program for CUDA or HIP. `binaries` are the fat binaries (CUDA) or bundles (HIP) of its modules, in their
/// order.
///
/// Everything is internal, so that several such objects link into one program. Each module is registered on its own: a
/// fat binary has one image for each chip.
///
/// # Errors
///
/// [`OffloadError`].
pub fn add(module: &mut IrText, program: &Program, binaries: &[&[u8]]) -> Result<(), OffloadError> {
    entries::check(program)?;
    if binaries.len() != program.modules.len() {
        let (binaries, modules) = (binaries.len(), program.modules.len());
        return Err(OffloadError::internal(format!(
            "{binaries} fat binaries or bundles for {modules} device modules"
        )));
    }
    entries::declare(module, program);
    let Names { prefix, .. } = names(program.runtime);
    module.define(&format!(
        "declare ptr @{prefix}RegisterFatBinary(ptr)\n\
         declare void @{prefix}UnregisterFatBinary(ptr)\n\
         declare void @{prefix}RegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)\n\
         declare void @{prefix}RegisterVar(ptr, ptr, ptr, ptr, i32, i64, i32, i32)\n\
         declare i32 @atexit(ptr)"
    ));
    if program.runtime == Runtime::Cuda {
        module.define("declare void @__cudaRegisterFatBinaryEnd(ptr)");
    }

    let (mut register, mut unregister) = (String::new(), String::new());
    for (index, content) in binaries.iter().enumerate() {
        data(module, program.runtime, index, content);
        calls(module, program, index, &mut register);
        // The last one first.
        let call = format!(
            "  %h{index} = load ptr, ptr @.gpulower.handle.{index}, align 8\n\
             \x20 call void @{prefix}UnregisterFatBinary(ptr %h{index})\n"
        );
        unregister.insert_str(0, &call);
    }
    module.define(&format!(
        "define internal void @.gpulower.unregister() {{\n{unregister}  ret void\n}}\n\
         define internal void @.gpulower.register() {{\n{register}\
         \x20 %ignored = call i32 @atexit(ptr @.gpulower.unregister)\n  ret void\n}}"
    ));
    module.constructor(PRIORITY, "@.gpulower.register".to_owned());
    Ok(())
}

/// The binary of a module, the wrapper that points to it, and a place for what the runtime returns.
fn data(module: &mut IrText, runtime: Runtime, index: usize, content: &[u8]) {
    let Names {
        data_section,
        data_alignment,
        wrapper_section,
        magic,
        ..
    } = names(runtime);
    let (version, alignment) = (sections::WRAPPER_VERSION, sections::WRAPPER_ALIGN);
    module.define(&format!(
        "@.gpulower.binary.{index} = internal constant [{} x i8] c\"{}\", section \"{data_section}\", align {data_alignment}\n\
         @.gpulower.wrapper.{index} = internal constant {{ i32, i32, ptr, ptr }} {{ i32 {magic}, i32 {version}, \
         ptr @.gpulower.binary.{index}, ptr null }}, section \"{wrapper_section}\", align {alignment}\n\
         @.gpulower.handle.{index} = internal global ptr null, align 8",
        content.len(),
        bytes(content),
    ));
}

/// The calls that register one module.
fn calls(module: &mut IrText, program: &Program, index: usize, text: &mut String) {
    let Names { prefix, .. } = names(program.runtime);
    let _ = writeln!(
        text,
        "  %h{index} = call ptr @{prefix}RegisterFatBinary(ptr @.gpulower.wrapper.{index})\n\
         \x20 store ptr %h{index}, ptr @.gpulower.handle.{index}, align 8"
    );
    for kernel in program.kernels_of(index) {
        let (handle, name) = (
            symbol(&kernel.handle),
            module.string(".gpulower.name", &kernel.name, ""),
        );
        // -1: no limit of threads.
        let _ = writeln!(
            text,
            "  call void @{prefix}RegisterFunction(ptr %h{index}, ptr {handle}, ptr {name}, ptr {name}, i32 -1, ptr null, \
             ptr null, ptr null, ptr null, ptr null)"
        );
    }
    for variable in program.variables_of(index) {
        let (shadow, name) = (
            symbol(&variable.shadow),
            module.string(".gpulower.name", &variable.name, ""),
        );
        let (size, constant) = (variable.size, u8::from(variable.constant));
        let _ = writeln!(
            text,
            "  call void @{prefix}RegisterVar(ptr %h{index}, ptr {shadow}, ptr {name}, ptr {name}, i32 0, i64 {size}, i32 \
             {constant}, i32 0)"
        );
    }
    if program.runtime == Runtime::Cuda {
        let _ = writeln!(text, "  call void @__cudaRegisterFatBinaryEnd(ptr %h{index})");
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::tests::program;
    use super::*;

    fn register(program: &Program, binaries: &[&[u8]]) -> Result<String, OffloadError> {
        let mut module = IrText::default();
        add(&mut module, program, binaries)?;
        Ok(module.finish(&program.triple, ""))
    }

    #[test]
    fn each_runtime_has_its_sections_and_calls() {
        for (runtime, lines) in [
            (
                Runtime::Cuda,
                [
                    "@.gpulower.binary.0 = internal constant [2 x i8] c\"\\01x\", section \".nv_fatbin\", align 8",
                    "@.gpulower.wrapper.0 = internal constant { i32, i32, ptr, ptr } { i32 1180844977, i32 1, ptr \
                     @.gpulower.binary.0, ptr null }, section \".nvFatBinSegment\", align 8",
                    "  call void @__cudaRegisterVar(ptr %h0, ptr @\"table\", ptr @\".gpulower.name.1\", ptr \
                     @\".gpulower.name.1\", i32 0, i64 16, i32 1, i32 0)",
                ],
            ),
            (
                Runtime::Hip,
                [
                    "@.gpulower.binary.0 = internal constant [2 x i8] c\"\\01x\", section \".hip_fatbin\", align 4096",
                    "@.gpulower.wrapper.0 = internal constant { i32, i32, ptr, ptr } { i32 1212764230, i32 1, ptr \
                     @.gpulower.binary.0, ptr null }, section \".hipFatBinSegment\", align 8",
                    "  call void @__hipRegisterFunction(ptr %h0, ptr @\"axpy\", ptr @\".gpulower.name.0\", ptr \
                     @\".gpulower.name.0\", i32 -1, ptr null, ptr null, ptr null, ptr null, ptr null)",
                ],
            ),
        ] {
            let text = register(&program(runtime), &[b"\x01x"]).expect("registered");
            for line in lines {
                assert!(text.lines().any(|other| other == line), "{line}\n{text}");
            }
            assert_eq!(
                text.contains("RegisterFatBinaryEnd"),
                runtime == Runtime::Cuda,
                "{text}"
            );
            assert!(text.contains("i32 101, ptr @.gpulower.register"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_registered_is_refused() {
        let mut empty = program(Runtime::Cuda);
        let error = register(&empty, &[]).expect_err("no binary").to_string();
        assert!(
            error.contains("0 fat binaries or bundles for 1 device modules"),
            "{error}"
        );
        empty.variables.iter_mut().for_each(|variable| variable.size = 0);
        let error = register(&empty, &[b"x"]).expect_err("no bytes").to_string();
        assert!(error.starts_with("the global variable table has no bytes"), "{error}");
    }
}
