//! Inputs that ended the process, or kept it busy for minutes, before they were refused. `cargo xtask fuzz` found most.

use std::process::Command;

use super::support::{Run, Workshop, llvm_program};

/// Compiles a text to PTX, or for gfx942 to an object.
fn compile(name: &str, text: impl AsRef<[u8]>, target: &str) -> Run {
    let work = Workshop::new();
    work.write(name, text);
    let emit = if target.starts_with("gfx") { "object" } else { "ptx" };
    let run = work.run(&["compile", name, "-t", target, "-e", emit, "-o", "k"]);
    assert_eq!(run.status == 0, work.path("k").exists(), "{}", run.stderr);
    run
}

fn kernel(arguments: &str, body: &str) -> String {
    format!("gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{body}\ngpu.return }} }}\n")
}

#[test]
fn texts_that_nest_too_deeply() {
    let deep = |open: &str, inside: &str, close: &str| {
        let levels = 20_000;
        format!("{}{inside}{}", open.repeat(levels), close.repeat(levels))
    };
    let attribute = |text: String| format!("module attributes {{m.a = {text}}} {{}}\n");
    for text in [
        kernel(&format!("%a: {}", deep("tuple<", "i32", ">")), ""),
        kernel(&format!("%a: {}", deep("!llvm.struct<(", "i32", ")>")), ""),
        kernel(&format!("%a: memref<{}f32>", "1x".repeat(20_000)), ""),
        kernel(
            "",
            &format!("%c = arith.constant true\n{}", deep("scf.if %c {\n", "", "}\n")),
        ),
        attribute(deep("[", "", "]")),
        attribute(deep("{a = ", "1", "}")),
        attribute(format!("affine_map<(d0) -> ({})>", deep("(", "d0", ")"))),
        attribute(format!("affine_map<(d0) -> ({}d0)>", "-".repeat(20_000))),
        attribute(format!("affine_map<(d0) -> (d0{})>", " + d0 floordiv 2".repeat(20_000))),
        deep("module {", "", "}"),
    ] {
        compile("k.mlir", text, "sm_90")
            .failed(1)
            .says(&["error: input: it nests more than 1000 levels deep in line "]);
    }
    for text in [
        format!("@x = global {} zeroinitializer\n", deep("[1 x ", "i32", "]")),
        format!(
            "@g = global i8 0\n@x = global ptr {}\n",
            deep("getelementptr (i8, ptr ", "@g", ", i64 1)")
        ),
        format!("!0 = {}\n", deep("!{", "", "}")),
    ] {
        compile("k.ll", text, "sm_90")
            .failed(1)
            .says(&["error: input: it nests more than 1000 levels deep in line "]);
    }
}

#[test]
fn a_library_that_nests_too_deeply() {
    let work = Workshop::new();
    work.write("k.mlir", kernel("", ""));
    let text = format!(
        "@x = global {}i32{} undef\n",
        "[1 x ".repeat(20_000),
        "]".repeat(20_000)
    );
    work.write("deep.ll", text);
    work.run(&[
        "compile", "k.mlir", "-t", "sm_90", "-e", "ptx", "--link", "deep.ll", "-o", "k",
    ])
    .failed(1)
    .says(&["deep.ll:1:1: error: link", "nests more than 1000 levels deep in line 1"]);
    assert_eq!(work.files(""), ["deep.ll", "k.mlir"]);
}

/// What is allowed is compiled, or refused for another reason: there is room for it on the stack.
#[test]
fn texts_that_nest_as_deeply_as_may_be() {
    let text = |levels: usize, open: &str, close: &str| {
        let body = format!(
            "%c = arith.constant true\n{}{}",
            open.repeat(levels),
            close.repeat(levels)
        );
        kernel("", &body)
    };
    compile("k.mlir", text(900, "scf.if %c {\n", "}\n"), "sm_90").quiet();
    compile("k.mlir", text(900, "scf.if %c {\n", "}\n"), "gfx942").quiet();
    let tuple = format!("%a: {}i32{}", "tuple<".repeat(900), ">".repeat(900));
    compile("k.mlir", kernel(&tuple, ""), "sm_90")
        .failed(1)
        .says(&["error: lower"]);
    let array = format!("%a: {}i32{}", "!llvm.array<1 x ".repeat(480), ">".repeat(480));
    compile("k.mlir", kernel(&array, ""), "sm_90").quiet();
}

#[test]
fn aliases_that_stand_for_too_much() {
    let mut text = "!a0 = i32\n".to_owned();
    for index in 1..40 {
        text.push_str(&format!("!a{index} = !llvm.struct<(!a{0}, !a{0})>\n", index - 1));
    }
    text.push_str(&kernel("%a: !a39", ""));
    compile("k.mlir", text, "sm_90")
        .failed(1)
        .says(&["k.mlir:20:1: error: input: an alias in line 20 stands for more than 1048576"]);
}

/// MLIR's verifiers of these operations ask what they get for its bits or its dimensions, and crash where there are none.
#[test]
fn types_that_verifiers_take_for_granted() {
    let bits = "whose elements are not integers or floats of at least one bit";
    let copy = |element: &str| {
        kernel(
            &format!("%a: memref<?x{element}>, %b: memref<64x{element}, #gpu.address_space<workgroup>>, %i: index"),
            &format!(
                "%c = nvgpu.device_async_copy %a[%i], %b[%i], 4 \
                 : memref<?x{element}> to memref<64x{element}, #gpu.address_space<workgroup>>"
            ),
        )
    };
    let matrix = |element: &str| {
        kernel(
            &format!("%a: memref<4x{element}, 3>, %i: index"),
            &format!(
                "%r = nvgpu.ldmatrix %a[%i] {{numTiles = 4 : i32, transpose = false}} \
                 : memref<4x{element}, 3> -> vector<4x1x{element}>"
            ),
        )
    };
    let map = |tensor: &str| {
        format!(
            "!nvgpu.tensormap.descriptor<tensor = {tensor}, swizzle = swizzle_128b, l2promo = none, oob = zero, \
             interleave = none>"
        )
    };
    let accumulator = "!nvgpu.warpgroup.accumulator<fragmented = vector<64xf32>>";
    let from_global = |element: &str| format!("%a: memref<128x{element}, 1>, %b: memref<128x{element}, 3>, %i: index");
    for (text, reason) in [
        (copy("index"), bits),
        (copy("i0"), bits),
        (copy("vector<4xf32>"), bits),
        (matrix("index"), bits),
        (matrix("i0"), bits),
        (
            format!(
                "func.func @f(%a: memref<*xindex>, %n: index) {{\n\
                 %m = nvgpu.tma.create.descriptor %a box[%n, %n] : memref<*xindex> -> {}\nreturn }}\n{}",
                map("memref<32x64xindex, 3>"),
                kernel("", "")
            ),
            bits,
        ),
        (
            kernel(
                &format!(
                    "%m: {0}, %b: memref<f32, 3>, %g: !nvgpu.mbarrier.group<memorySpace = 3>, %i: index",
                    map("memref<f32, 3>")
                ),
                &format!(
                    "nvgpu.tma.async.load %m[], %g[%i] to %b \
                     : {}, !nvgpu.mbarrier.group<memorySpace = 3> -> memref<f32, 3>",
                    map("memref<f32, 3>")
                ),
            ),
            "which has no dimensions",
        ),
        (
            kernel(
                "",
                &format!("%i = nvgpu.warpgroup.mma.init.accumulator -> {accumulator}"),
            ),
            "which does not have two dimensions",
        ),
        (
            kernel(
                "%a: !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>>, %m: memref<64xf32>",
                "nvgpu.warpgroup.mma.store %a, %m \
                 : !nvgpu.warpgroup.accumulator<fragmented = vector<64x8xf32>> to memref<64xf32>",
            ),
            "'memref<64xf32>', which does not have two dimensions",
        ),
        (
            kernel("%a: index", "%r = amdgpu.dpp %a %a row_shl(1) : index"),
            "'index', which is not an integer or a float of at least one bit",
        ),
        (
            kernel(
                &from_global("f32"),
                "amdgpu.gather_to_lds %a[%i], %b[%i] : index, memref<128xf32, 1>, memref<128xf32, 3>",
            ),
            "'index', which is not an integer or a float of at least one bit",
        ),
        (
            kernel(
                "%a: memref<128xindex, 3>, %i: index",
                "%r = amdgpu.transpose_load %a[%i] : memref<128xindex, 3> -> vector<4xindex>",
            ),
            bits,
        ),
        (
            kernel(
                &from_global("index"),
                "%r = amdgpu.make_dma_base %a[%i], %b[%i] \
                 : memref<128xindex, 1>, memref<128xindex, 3> -> !amdgpu.tdm_base<f32>",
            ),
            bits,
        ),
        (
            kernel(
                "%b: !amdgpu.tdm_base<index>",
                "%d = amdgpu.make_dma_descriptor %b globalSize [1, 2] globalStride [2, 1] sharedSize [1, 2] \
                 : !amdgpu.tdm_base<index> -> !amdgpu.tdm_descriptor",
            ),
            bits,
        ),
    ] {
        compile("k.mlir", text, "sm_90")
            .failed(1)
            .says(&["k.mlir:2:", "error: input: '", "' op cannot use '", reason]);
    }
}

/// Found by `cargo xtask fuzz`: MLIR translates the operation, and has no function to put it into.
#[test]
fn operations_outside_of_functions() {
    let text = "gpu.module @m {\ngpu.func @k() kernel { gpu.return }\ngpu.barrier\n}\n";
    for target in ["sm_90", "gfx942"] {
        compile("k.mlir", text, target).failed(1).says(&[
            "k.mlir:3:1: error: lower, module m",
            "gpu.barrier stands outside of a function: move it into one",
        ]);
    }
    let text = "gpu.module @m {\nmemref.global @g : memref<4xf32>\nllvm.mlir.global_ctors ctors = [], priorities = [], \
                data = []\ngpu.func @k() kernel { gpu.return }\n}\n";
    compile("k.mlir", text, "gfx942").quiet();
}

/// Found by `cargo xtask fuzz --surface operations`: MLIR translates them to what crashes LLVM.
#[test]
fn types_that_llvm_or_a_gpu_does_not_have() {
    for (arguments, body, reason) in [
        (
            "",
            "%r = \"llvm.intr.vscale\"() : () -> vector<4xindex>",
            "k.mlir:2:6: error: lower, module m, target {}: a value of type vector<4xindex>, which LLVM does not have",
        ),
        (
            "%a: i0",
            "%r = arith.minsi %a, %a : i0",
            "a value of type i0, which LLVM does not have, cannot be lowered: use another type",
        ),
        (
            "",
            "%r = \"llvm.intr.coro.align\"() : () -> !llvm.token",
            "k.mlir:2:6: error: lower, module m, target {}: cannot lower llvm.intr.coro.align for {}",
        ),
        (
            "%a: f80, %p: !llvm.ptr",
            "%r = llvm.fadd %a, %a : f80\nllvm.store %r, %p : f80, !llvm.ptr",
            "k.mlir:2:6: error: lower, module m, target {}: cannot lower llvm.fadd with 'f80': no GPU computes with it",
        ),
    ] {
        for target in ["sm_90", "gfx942"] {
            compile("k.mlir", kernel(arguments, body), target)
                .failed(1)
                .says(&[&reason.replace("{}", target)]);
        }
    }
}

/// Found by `cargo xtask fuzz --surface libraries`: LLVM divides by the size of a type that has none.
#[test]
fn values_of_target_types() {
    let kind = "target(\"amdgcn.named.barrier\", 0)";
    for (target, convention) in [("sm_80", "ptx_kernel"), ("gfx942", "amdgpu_kernel")] {
        let text = format!("define {convention} void @k(ptr %p) {{\n%x = load {kind}, ptr %p\nret void }}\n");
        compile("k.ll", text, target)
            .failed(1)
            .says(&["the function k works with a value of type x86_fp80, ppc_fp128 or target(...)"]);
    }
}

/// Found by `cargo xtask fuzz --surface operations`: LLVM selects an instruction that it cannot write.
#[test]
fn halves_of_a_barrier_on_chips_without() {
    let text = kernel(
        "",
        "\"rocdl.s.barrier.signal\"() <{id = 1 : i32}> : () -> ()\nrocdl.s.barrier.wait id = 1",
    );
    compile("k.mlir", &text, "gfx1201").quiet();
    for target in ["gfx942", "gfx1100"] {
        compile("k.mlir", &text, target).failed(1).says(&[
            "the intrinsic llvm.amdgcn.s.barrier.",
            &format!(" in a module for {target}: it is of gfx12 and newer; use llvm.amdgcn.s.barrier, or gpu.barrier"),
        ]);
    }
}

/// Found by `cargo xtask fuzz --surface operations`: MLIR's translation reads operands that there are none of.
#[test]
fn an_operation_without_its_operands() {
    let text = kernel("", "%r = \"rocdl.mfma.scale.f32.32x32x64.f8f6f4\"() : () -> i16");
    compile("k.mlir", text, "gfx950")
        .failed(1)
        .says(&["k.mlir:2:6: error: input: 'rocdl.mfma.scale.f32.32x32x64.f8f6f4' op needs its matrices as operands"]);
}

/// Found by `cargo xtask fuzz --workers`: MLIR's reader writes beyond its tables, and the heap is broken.
#[test]
fn bytecode_whose_tables_are_too_small() {
    let bytecode = include_bytes!("breaks_the_heap.mlirbc");
    compile("k.mlirbc", bytecode, "sm_90").failed(1).says(&[
        "k.mlirbc:1:1: error: input: the bytecode is damaged: a group of attributes has 756 entries, where the table has \
         room for 62",
    ]);
}

/// Found by `cargo xtask fuzz --surface mlir-bytecode`: MLIR's reader tries for ever to read one of its attributes.
#[test]
fn bytecode_with_an_attribute_inside_of_itself() {
    let bytecode = include_bytes!("refers_to_itself.mlirbc");
    compile("k.mlirbc", bytecode, "sm_90")
        .failed(1)
        .says(&["error: input: an attribute or a type of the bytecode refers to itself"]);
}

/// Found by `cargo xtask fuzz --surface passes`: the outer one was replaced, and the inner one with it.
#[test]
fn a_module_inside_of_a_gpu_module() {
    let text = "gpu.module @outer {\ngpu.module @inner { gpu.func @k() kernel { gpu.return } }\n}\n";
    let reason = "module outer, target sm_90: the gpu.module inner stands inside of a gpu.module: put it beside that";
    compile("k.mlir", text, "sm_90")
        .failed(1)
        .says(&["k.mlir:2:1: error: lower, ", reason]);
    let work = Workshop::new();
    work.write("k.mlir", text);
    for passes in [
        "gpulower-lower",
        "gpulower-serialize{format=isa}",
        "gpulower-to-binary{format=isa}",
    ] {
        let pipeline = format!("--pass-pipeline=builtin.module(gpulower-attach-targets{{targets=sm_90}},{passes})");
        let output = Command::new(env!("CARGO_BIN_EXE_gpulower-opt"))
            .args([pipeline.as_str(), "k.mlir"])
            .current_dir(work.path(""))
            .output()
            .expect("gpulower-opt starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("k.mlir:2:1: error: ") && said.contains(reason), "{said}");
    }
}

/// Files of words may name others, and may be pipes, which can be read once.
#[test]
fn pipelines_in_files_of_words() {
    let work = Workshop::new();
    work.write("k.mlir", "func.func @f() { %0 = arith.constant 0 : i32\nreturn }\n");
    let deep = "builtin.module(".repeat(100_000);
    work.write("deep", format!("--pass-pipeline={deep}"));
    work.write("outer", "--no-implicit-module @inner");
    work.write("inner", "'@deep' @outer");
    work.write(
        "sixteen",
        "\u{feff}@deep"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>(),
    );
    let run = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_gpulower-opt")]);
        let output = command.current_dir(work.path("")).output().expect("bash starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            said,
        )
    };
    for file in ["deep", "outer", "sixteen"] {
        let (status, _, said) = run(&format!("$0 @{file} k.mlir"));
        assert_eq!(status, Some(1), "{file}: {said}");
        assert!(
            said.contains("more than 64 brackets inside of each other"),
            "{file}: {said}"
        );
    }
    let (status, text, said) = run("$0 @<(echo --canonicalize) k.mlir");
    assert_eq!(status, Some(0), "{said}");
    assert!(text.contains("@f") && !text.contains("arith.constant"), "{text}");
}

/// MLIR's parser of this type asks `index` for its bits: a crash of the process that it happens in, but for `contain`.
#[test]
fn a_crash_of_mlir() {
    let text = kernel("%a: !amdgpu.tdm_gather_base<index, i32>", "");
    compile("k.mlir", text, "gfx942").failed(1).says(&[
        "k.mlir:1:1: error: input: LLVM or MLIR crashed: invalid access to memory at 0x0 (SIGSEGV); what it worked on is \
         lost; report the input to its authors, and compile what you do not trust with isolation=worker",
    ]);
}

#[test]
fn ptx_with_more_dimensions_than_there_is_time_for() {
    let text = |dimensions: usize| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.global .b8 x{};\n.visible .entry k() {{ ret; }}\n",
            "[1]".repeat(dimensions)
        )
    };
    let work = Workshop::new();
    work.write("k.ptx", text(1001));
    work.run(&["compile", "k.ptx", "-t", "sm_90", "-e", "cubin", "-o", "k"])
        .failed(1)
        .says(&[
            "the PTX declares an array of 1001 dimensions, and more than 1000 are not handed to NVIDIA's compilers",
        ]);
    work.write("k.ptx", text(100));
    work.run(&["compile", "k.ptx", "-t", "sm_90", "-e", "cubin", "-o", "k"])
        .quiet();
}

#[test]
fn an_array_of_index() {
    let text =
        "gpu.module @m { gpu.func @k() kernel attributes {known_block_size = array<index: 256, 1, 1>} { gpu.return } }";
    compile("k.mlir", text, "gfx942")
        .failed(1)
        .says(&["k.mlir:1:1: error: input: an array of index in line 1"]);
}

#[test]
fn names_that_are_empty_or_no_text() {
    let named = |module: &str, function: &str| {
        format!("gpu.module @\"{module}\" {{ gpu.func @\"{function}\"() kernel {{ gpu.return }} }}")
    };
    for target in ["sm_90", "gfx942"] {
        compile("k.mlir", named("", "k"), target).quiet();
        compile("k.mlir", named("\\FF\\00", "k"), target).quiet();
        // LLVM decides what it makes of a kernel without a name, or of one with such a name.
        for function in ["", "\\FF", "a\\00b"] {
            let run = compile("k.mlir", named("m", function), target);
            assert!([0, 1].contains(&run.status), "{}", run.stderr);
        }
    }
    // A diagnostic that quotes such a name.
    let text = "gpu.module @m { func.func @\"\\FF\"() { %a = arith.constant 1 : i32 func.return %a : i32 } }";
    compile("k.mlir", text, "sm_90").failed(1).says(&["error: input: "]);
}

#[test]
fn vectors_that_llvm_takes_minutes_for() {
    let text = |kind: &str| {
        let body = format!("%c = arith.constant 0 : index\nmemref.store %v, %p[%c] : memref<?x{kind}>");
        kernel(&format!("%v: {kind}, %p: memref<?x{kind}>"), &body)
    };
    for kind in [
        "vector<65536xi8>",
        "vector<70000x2xf32>",
        "vector<9223372036854775807x2xi1>",
    ] {
        compile("k.mlir", text(kind), "gfx942").failed(1).says(&[
            &format!("error: lower, module m, target gfx942: {kind} is too large"),
            "at most 4096 elements in their last dimension and 65536 in all",
        ]);
    }
    compile("k.mlir", text("vector<64x64xf32>"), "sm_90").quiet();
}

/// A kernel that loads and stores one value.
fn copying(value: &str, kernel: &str) -> String {
    format!(
        "define {kernel} @k(ptr %p, ptr %q) {{\n%v = load {value}, ptr %q\nstore {value} %v, ptr %p\nret void\n}}\n"
    )
}

/// LLVM's AMDGPU back end crashes on 65536 elements or members, and takes minutes for fewer.
#[test]
fn values_of_llvm_ir_that_llvm_crashes_on() {
    let text = |value: &str| copying(value, "amdgpu_kernel void");
    for (value, what, most) in [
        ("<65536 x i8>", "a vector of 65536 elements", 4096),
        ("[2 x <4097 x i32>]", "a vector of 4097 elements", 4096),
        ("[65536 x i8]", "an array or a structure of 65536 members", 4096),
        (
            "{[64 x [64 x i8]], i8}",
            "an array or a structure of 4097 members",
            4096,
        ),
        (
            "[4294967296 x [4294967296 x i8]]",
            "an array or a structure of 18446744073709551615 members",
            4096,
        ),
        ("i65536", "an integer of 65536 bits", 2048),
    ] {
        let refusal = [
            &format!("error: link, module k, target gfx942: the function k works with {what} at once"),
            &format!("is given at most {most}: work on parts of it in a loop, or leave it in memory")[..],
        ];
        compile("k.ll", text(value), "gfx942").failed(1).says(&refusal);
        compile("k.bc", bitcode(&text(value)), "gfx942")
            .failed(1)
            .says(&refusal);
    }
    for value in ["<64 x i8>", "[64 x i8]", "i512"] {
        compile("k.ll", text(value), "gfx942").quiet();
        compile("k.bc", bitcode(&text(value)), "gfx942").quiet();
    }
    let parameter = "define ptx_kernel void @k(<4097 x i8> %v) { ret void }";
    compile("k.ll", parameter, "sm_90")
        .failed(1)
        .says(&["the function k works with a vector of 4097 elements at once"]);
    // In memory a value may be as large as it likes.
    let in_memory = "@table = addrspace(1) global [1000000 x i8] zeroinitializer
        define amdgpu_kernel void @k(ptr addrspace(1) %p) {
        %a = getelementptr [1000000 x i8], ptr addrspace(1) @table, i64 0, i64 70000
        %v = load i8, ptr addrspace(1) %a
        store i8 %v, ptr addrspace(1) %p
        ret void }";
    compile("k.ll", in_memory, "gfx942").quiet();
}

/// The same values by other ways: a library, and MLIR's own dialect for LLVM.
#[test]
fn large_values_in_libraries_and_in_mlir() {
    let work = Workshop::new();
    work.write(
        "k.mlir",
        "gpu.module @m { func.func private @f(!llvm.ptr)
           gpu.func @k(%p: !llvm.ptr) kernel { func.call @f(%p) : (!llvm.ptr) -> () gpu.return } }",
    );
    let library = copying("[65536 x i8]", "void")
        .replace("@k(ptr %p, ptr %q)", "@f(ptr %p)")
        .replace("%q", "%p");
    for (name, bytes) in [("f.ll", library.clone().into_bytes()), ("f.bc", bitcode(&library))] {
        work.write(name, bytes);
        work.run(&[
            "compile", "k.mlir", "-t", "gfx942", "-e", "object", "--link", name, "-o", "k",
        ])
        .failed(1)
        .says(&[
            "error: link, module m, target gfx942: the function f works with an array or a structure of 65536 members",
        ]);
    }
    let body = "%v = llvm.load %q : !llvm.ptr -> !llvm.array<65536 x i8>\nllvm.store %v, %p : !llvm.array<65536 x i8>, !llvm.ptr";
    compile("k.mlir", kernel("%p: !llvm.ptr, %q: !llvm.ptr", body), "gfx942")
        .failed(1)
        .says(&[
            "error: link, module m, target gfx942: the function k works with an array or a structure of 65536 members",
        ]);
}

/// LLVM IR as bitcode, by LLVM's own assembler.
fn bitcode(text: &str) -> Vec<u8> {
    let work = Workshop::new();
    work.write("k.ll", text);
    let mut command = Command::new(llvm_program("llvm-as"));
    command.args(["k.ll", "-o", "k.bc"]).current_dir(work.path(""));
    let output = command.output().expect("llvm-as runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    work.read("k.bc")
}

#[test]
fn initial_values_that_fill_memory() {
    let global = |size: &str, value: &str| {
        format!(
            "gpu.module @m {{ memref.global @g : memref<{size}xi8>{value}\ngpu.func @k() kernel {{ gpu.return }} }}"
        )
    };
    for size in ["268435457", "4000000000", "9223372036854775807"] {
        compile("k.mlir", global(size, " = dense<1>"), "sm_90")
            .failed(1)
            .says(&[
                &format!("error: lower, module m, target sm_90: g has an initial value of {size} bytes"),
                "at most 268435456 can be compiled",
            ]);
    }
    // Nobody has to write down the contents of this one.
    compile("k.mlir", global("4000000000", " = uninitialized"), "sm_90").quiet();
}

#[test]
fn more_memory_than_there_is() {
    let text = "gpu.module @m { llvm.func @k(%p: !llvm.ptr) attributes {nvvm.kernel} {
        %c = llvm.mlir.constant(dense<1> : tensor<9223372036854775807xi8>) : !llvm.array<9223372036854775807 x i8>
        llvm.store %c, %p : !llvm.array<9223372036854775807 x i8>, !llvm.ptr
        llvm.return } }";
    compile("k.mlir", text, "sm_90")
        .failed(1)
        .says(&["error: translate, module m, target sm_90: LLVM fatal error: out of memory"]);
}

#[test]
fn ptx_with_more_registers_than_memory() {
    let work = Workshop::new();
    let ptx = |count: u64| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<{count}>; \
             mov.b32 %r1, 1; ret; }}\n"
        )
    };
    work.write("k.ptx", ptx(4_294_967_295));
    work.run(&["compile", "k.ptx", "-t", "sm_90", "-e", "cubin", "-o", "k"])
        .failed(1)
        .says(&[
            "error: input: the PTX declares 4294967295 registers at once",
            "lower the number",
        ]);
    work.write("k.ptx", ptx(1000));
    work.run(&["compile", "k.ptx", "-t", "sm_90", "-e", "cubin", "-o", "k"])
        .quiet();
}

/// MLIR 22 translates the sizes of work groups to calls that return 64 bits, whatever their type is.
#[test]
fn sizes_of_work_groups_with_32_bit_indices_on_amd() {
    let work = Workshop::new();
    let body = "%b = gpu.block_dim x\n%g = gpu.grid_dim y\n%s = arith.addi %b, %g : index
        %i = arith.index_cast %s : index to i32\nmemref.store %i, %p[%b] : memref<?xi32>";
    work.write("k.mlir", kernel("%p: memref<?xi32>", body));
    let arguments = ["compile", "k.mlir", "-t", "gfx942", "--index-bitwidth", "32", "-o", "k"];
    work.run(&[&arguments[..], &["-e", "hsaco"]].concat()).quiet();
    work.run(&[&arguments[..], &["-e", "mlir"]].concat()).quiet();
    let text = work.text("k");
    for expected in ["rocdl.workgroup.dim.x", "rocdl.grid.dim.y", ": i64\n", "llvm.trunc"] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

#[test]
fn a_dimension_that_a_memref_does_not_have() {
    for dimension in ["-1", "1", "9223372036854775807"] {
        let body = format!(
            "%c = arith.constant {dimension} : index\n%n = memref.dim %p, %c : memref<?xindex>
             %z = arith.constant 0 : index\nmemref.store %n, %p[%z] : memref<?xindex>"
        );
        compile("k.mlir", kernel("%p: memref<?xindex>", &body), "sm_75")
            .failed(1)
            .says(&[
                "k.mlir:3:6: error: lower, module m, target sm_75: ",
                &format!("memref.dim asks for dimension {dimension}, which the memref does not have"),
            ]);
    }
}

/// The buffer comes with the expansion of the reduction, and MLIR's conversion crashes on it.
#[test]
fn a_reduction_of_floats_that_llvm_does_not_have() {
    let body = "%t = gpu.thread_id x\n%v = memref.load %p[%t] : memref<?xf32>
        %a = arith.truncf %v : f32 to tf32
        %b = gpu.all_reduce %a uniform {
        ^bb0(%x: tf32, %y: tf32):
          %z = arith.mulf %x, %y : tf32
          gpu.yield %z : tf32
        } : (tf32) -> tf32
        %w = arith.extf %b : tf32 to f32
        memref.store %w, %p[%t] : memref<?xf32>";
    for target in ["sm_75", "gfx942"] {
        compile("k.mlir", kernel("%p: memref<?xf32>", body), target)
            .failed(1)
            .says(&[
                &format!("k.mlir:1:17: error: lower, module m, target {target}: "),
                "a kernel has a buffer of type memref<32xtf32, 3>, whose elements have no type in LLVM",
            ]);
    }
}

/// LLVM's parser would print what is wrong with it.
#[test]
fn llvm_ir_with_debug_info_that_is_not_valid() {
    let text =
        "define ptx_kernel void @k(ptr %p) { %a = add i32 %b, 1 %b = add i32 %a, 1 store i32 %b, ptr %p ret void }
        !llvm.module.flags = !{!0}\n!0 = !{i32 2, !\"Debug Info Version\", i32 3}\n";
    let run = compile("k.ll", text, "sm_90").failed(1).says(&[
        "k.ll: error: input, module k, target sm_90: ",
        "Instruction does not dominate all uses!",
    ]);
    assert!(run.stderr.starts_with("k.ll: error: "), "{}", run.stderr);
}

#[test]
fn a_buffer_of_a_type_that_llvm_does_not_have() {
    for buffers in [
        "workgroup(%b: memref<16xtf32, 3>)",
        "private(%b: memref<4xvector<2xtf32>, 5>)",
    ] {
        let text = format!("gpu.module @m {{ gpu.func @k() {buffers} kernel {{ gpu.return }} }}");
        for target in ["sm_90", "gfx942"] {
            compile("k.mlir", &text, target).failed(1).says(&[
                "k.mlir:1:17: error: lower, module m, target ",
                "whose elements have no type in LLVM",
            ]);
        }
    }
    let text = "gpu.module @m { gpu.func @k() workgroup(%b: memref<16xf8E4M3FN, 3>) kernel { gpu.return } }";
    compile("k.mlir", text, "sm_90").quiet();
}
