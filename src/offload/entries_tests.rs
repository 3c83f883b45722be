use super::super::{
    layout::choose,
    program::{Kernel, KernelModule, Variable},
    release::FinishWith,
};
use super::*;

/// A program with the kernel `axpy` and the constant `table`.
pub(crate) fn program(runtime: Runtime) -> Program {
    let stub = "__device_stub__axpy".to_owned();
    Program {
        runtime,
        triple: "x86_64-unknown-linux-gnu".parse().expect("a host"),
        modules: vec![KernelModule {
            symbol: "kernels".to_owned(),
            aliases: Vec::new(),
            compiled: false,
        }],
        kernels: vec![Kernel {
            module: 0,
            source_name: "axpy".to_owned(),
            name: "axpy".to_owned(),
            handle: match runtime {
                Runtime::Cuda | Runtime::OpenMp => stub.clone(),
                Runtime::Hip => "axpy".to_owned(),
            },
            stub,
            clusters: false,
        }],
        variables: vec![Variable {
            module: 0,
            source_name: "table".to_owned(),
            name: "table".to_owned(),
            shadow: "table".to_owned(),
            size: 16,
            constant: true,
        }],
        external_functions: Vec::new(),
        has_main: true,
    }
}

fn entries(list: &str, program: &Program) -> Result<String, OffloadError> {
    let layouts = choose(list.parse::<FinishWith>().expect(list).clangs(), program.runtime).expect(list);
    let mut module = IrText::default();
    add(&mut module, program, &layouts)?;
    Ok(module.finish(&program.triple, ""))
}

fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|other| other == *line), "{line}\n{text}");
    }
}

#[test]
fn two_layouts_stand_next_to_each_other() {
    let text = entries("15..19,21..23", &program(Runtime::Cuda)).expect("entries");
    assert_lines(
        &text,
        &[
            "declare void @\"__device_stub__axpy\"()",
            "@\"table\" = external global [16 x i8]",
            "@\".omp_offloading.entry.axpy\" = weak constant { ptr, ptr, i64, i32, i32 } { ptr @\"__device_stub__axpy\", ptr \
             @\".offloading.entry_name.0\", i64 0, i32 0, i32 0 }, section \"cuda_offloading_entries\", align 8",
            // Clang 15 to 17 know no flag for constants.
            "@\".omp_offloading.entry.table\" = weak constant { ptr, ptr, i64, i32, i32 } { ptr @\"table\", ptr \
             @\".offloading.entry_name.1\", i64 16, i32 0, i32 0 }, section \"cuda_offloading_entries\", align 8",
            "@\".offloading.entry.table\" = weak constant { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr } { i64 0, i16 1, \
             i16 2, i32 16, ptr @\"table\", ptr @\".offloading.entry_name.1\", i64 16, i64 0, ptr null }, section \
             \"llvm_offload_entries\", align 8",
            "@llvm.used = appending global [4 x ptr] [ptr @\".omp_offloading.entry.axpy\", ptr \
             @\".offloading.entry.axpy\", ptr @\".omp_offloading.entry.table\", ptr @\".offloading.entry.table\"], section \
             \"llvm.metadata\"",
            "!llvm.offloading.symbols = !{!1, !2}",
        ],
    );
}

#[test]
fn flags_sections_and_kinds_are_those_of_the_release() {
    for (list, runtime, parts) in [
        (
            "17",
            Runtime::Cuda,
            [
                "i64 16, i32 0, i32 0 }, section \"cuda_offloading_entries\"",
                "ptr, ptr, i64, i32, i32",
            ],
        ),
        (
            "19",
            Runtime::Cuda,
            [
                "i64 16, i32 16, i32 0 }, section \"cuda_offloading_entries\"",
                "ptr, ptr, i64, i32, i32",
            ],
        ),
        (
            "19",
            Runtime::Hip,
            [
                "section \"hip_offloading_entries\"",
                "@\"axpy\" = external constant ptr, align 8",
            ],
        ),
        (
            "20",
            Runtime::Hip,
            [
                "section \"hip_offloading_entries\"",
                "i16 1, i16 3, i32 0, ptr @\"axpy\"",
            ],
        ),
        (
            "23",
            Runtime::Hip,
            [
                "section \"llvm_offload_entries\"",
                "i16 1, i16 4, i32 16, ptr @\"table\"",
            ],
        ),
        (
            "20..23",
            Runtime::Cuda,
            [
                "@\".offloading.entry.clang20.axpy\" = weak",
                "@\".offloading.entry.axpy\" = weak",
            ],
        ),
    ] {
        let text = entries(list, &program(runtime)).expect(list);
        for part in parts {
            assert!(text.contains(part), "{list}: {part}\n{text}");
        }
        let symbols = text.contains("llvm.offloading.symbols");
        assert_eq!(symbols, list.ends_with("23"), "{text}");
    }
}

#[test]
fn what_no_entry_expresses_is_refused() {
    let mut empty = program(Runtime::Cuda);
    empty.variables.iter_mut().for_each(|variable| variable.size = 0);
    let error = entries("19", &empty).expect_err("no bytes").to_string();
    assert_eq!(
        error,
        "the global variable table has no bytes and cannot be registered: an offload entry of size 0 stands for a kernel; \
         make it private, or give it a type with a size"
    );
    let mut nul = program(Runtime::Cuda);
    nul.kernels
        .iter_mut()
        .for_each(|kernel| kernel.name = "a\0b".to_owned());
    let error = entries("19", &nul).expect_err("NUL").to_string();
    assert_eq!(
        error,
        "the name \"a\\0b\" has a NUL byte and cannot be registered: rename it"
    );
    let layouts = choose("19".parse::<FinishWith>().expect("19").clangs(), Runtime::Hip).expect("19");
    let error = add(&mut IrText::default(), &program(Runtime::Cuda), &layouts)
        .expect_err("other")
        .to_string();
    assert!(
        error.starts_with("internal error: layouts for Hip with a program for Cuda"),
        "{error}"
    );
}
