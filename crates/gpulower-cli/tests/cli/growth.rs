//! Inputs whose size made the time grow with its square, or faster. `cargo xtask growth` measures; here they come to an end.

use super::support::Workshop;

/// A kernel with one piece of text after the other.
fn kernel(count: usize, piece: impl Fn(usize) -> String) -> String {
    let body: String = (0..count).map(piece).collect();
    format!(
        "gpu.module @m {{\ngpu.func @k(%x: f32) kernel {{\n%c0 = arith.constant 0 : index\n{body}gpu.return\n}}\n}}\n"
    )
}

/// 89 s, when each name was looked for from the first on.
#[test]
fn thousands_of_buffers_of_a_workgroup() {
    const TYPE: &str = "memref<1xf32, #gpu.address_space<workgroup>>";
    let work = Workshop::new();
    work.write(
        "k.mlir",
        kernel(3000, |i| {
            format!("%a{i} = memref.alloc() : {TYPE}\nmemref.store %x, %a{i}[%c0] : {TYPE}\n")
        }),
    );
    work.run(&["compile", "k.mlir", "-t", "sm_90", "-e", "mlir", "-o", "k.out"])
        .quiet();
    assert_eq!(work.text("k.out").matches("llvm.mlir.global ").count(), 3000);
}

/// Loads that are combined into one value, in one block: the SLP vectorizer alone took most of a minute for 8000.
#[test]
fn a_large_block_does_without_passes_and_says_so() {
    let function = |count: usize| {
        let body: String = (0..count)
            .map(|i| {
                format!(
                    "%p{i} = getelementptr i32, ptr %a, i64 {i}\n%l{i} = load i32, ptr %p{i}\n%v{} = xor i32 %v{i}, %l{i}\n",
                    i + 1
                )
            })
            .collect();
        format!("define i32 @f(ptr %a, i32 %v0) {{\n{body}ret i32 %v{count}\n}}\n")
    };
    let left_out = |count: usize| -> Vec<String> {
        let work = Workshop::new();
        work.write("f.ll", function(count));
        let arguments = [
            "compile",
            "f.ll",
            "-t",
            "gfx942",
            "-e",
            "object",
            "-o",
            "f.o",
            "--report=json",
        ];
        let report = work.run(&arguments).quiet().json();
        let decisions = report["artifacts"][0]["decisions"]
            .as_array()
            .expect("decisions")
            .iter();
        decisions
            .map(|decision| decision["choice"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(left_out(100), [""; 0]);
    assert_eq!(
        left_out(1500),
        [
            "LLVM's GPU Load and Store Vectorizer for f",
            "LLVM's SLPVectorizerPass for f"
        ]
    );
}

/// 900 took 47 s: each pass over loops goes through the innermost one as often as there are loops around it.
#[test]
fn a_deep_nest_of_loops_does_without_passes_and_says_so() {
    let nest = |count: usize| {
        let opened: String = (0..count)
            .map(|i| format!("scf.for %i{i} = %c0 to %n step %c1 {{\nmemref.store %x, %m[%i{i}] : memref<?xf32>\n"))
            .collect();
        format!(
            "gpu.module @m {{\ngpu.func @k(%x: f32, %m: memref<?xf32>, %n: index) kernel {{\n%c0 = arith.constant 0 : index\n\
             %c1 = arith.constant 1 : index\n{opened}{}gpu.return\n}}\n}}\n",
            "}\n".repeat(count)
        )
    };
    let work = Workshop::new();
    for (count, target, emit, is_told) in [
        (60, "gfx942", "asm", false),
        (70, "gfx942", "hsaco", true),
        (70, "sm_90", "ptx", true),
        (300, "gfx942", "hsaco", true),
    ] {
        work.write("k.mlir", nest(count));
        let arguments = [
            "compile",
            "k.mlir",
            "-t",
            target,
            "-e",
            emit,
            "-o",
            "k.out",
            "--report=json",
        ];
        let report = work.run(&arguments).json();
        let told = report["artifacts"][0]["decisions"]
            .as_array()
            .expect("decisions")
            .iter()
            .any(|decision| decision["choice"] == "LLVM's passes but the simplest for k");
        assert_eq!(told, is_told, "{count} loops for {target}");
    }
}

/// Asked to stop in the midst of this, nvPTXCompiler 13.0 breaks the heap ("double free or corruption"): it is not asked.
#[test]
fn a_time_limit_does_not_break_nvptxcompiler() {
    let chain = "mul.rn.f32 %f2, %f2, %f1;\n".repeat(20_000);
    let work = Workshop::new();
    work.write(
        "k.ptx",
        format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .f32 x)\n{{\n\
             .reg .f32 %f<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\nld.param.f32 %f1, [x];\nmov.f32 %f2, %f1;\n\
             {chain}st.global.f32 [%rd1], %f2;\nret;\n}}\n"
        ),
    );
    let arguments = ["compile", "k.ptx", "-t", "sm_90", "-e", "cubin", "-o", "k"];
    work.run(&[&arguments[..], &["--ptx-compiler=nvptxcompiler", "--time-limit=0.4"]].concat())
        .failed(1)
        .says(&["not done within the time limit of 400ms"]);
    assert_eq!(work.files(""), ["k.ptx"]);
}

#[test]
fn what_has_no_end_is_refused() {
    let work = Workshop::new();
    for arguments in [
        &[
            "compile",
            "/dev/zero",
            "-t",
            "sm_90",
            "-e",
            "ptx",
            "-o",
            "k",
            "--input-limit=1",
        ][..],
        &["inspect", "/dev/zero", "--input-limit=1"],
    ] {
        work.run(arguments)
            .failed(1)
            .says(&["cannot read /dev/zero: it has more than 1048576 bytes; raise the limit with --input-limit=MIB"]);
    }
    let long = format!(
        "// {}\ngpu.module @m {{ gpu.func @k() kernel {{ gpu.return }} }}\n",
        "x".repeat(1 << 20)
    );
    let compile = |limit: &str| {
        work.run_with_input(
            &[
                "compile",
                "-",
                "-t",
                "sm_90",
                "-e",
                "ptx",
                "-o",
                "k",
                "--input-limit",
                limit,
            ],
            long.as_bytes(),
        )
    };
    compile("2").quiet();
}
