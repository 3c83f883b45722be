//! The oracle is the PTX compiler: what it makes of a kernel with and without a bound.

use std::fmt::Write;

use super::{super::kernels::PtxCode, *};
use crate::{
    interrupt::Interrupt,
    serialize::{
        nvidia::{NvidiaParts, PtxToCubin},
        nvidia_options::PtxOptions,
    },
};
use gpulower_testing::nvidia::part;

/// A kernel that adds up so many sums at once, of eight values in each turn.
fn kernel(name: &str, sums: usize, properties: &str) -> String {
    const VALUES: usize = 8;
    let mut text = format!(
        ".visible .entry {name}(.param .u64 {name}_p, .param .u64 {name}_q, .param .u32 {name}_n)\n{properties}\n{{\n\
         .reg .pred %p;\n.reg .f32 %f<{}>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [{name}_p];\nld.param.u64 %rd2, [{name}_q];\nld.param.u32 %r2, [{name}_n];\n\
         mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\nmov.u32 %r1, 0;\n",
        sums + VALUES
    );
    let mut line = |line: String| writeln!(text, "{line}").expect("writes");
    (0..sums).for_each(|sum| line(format!("mov.f32 %f{sum}, 0f00000000;")));
    line("again:".to_owned());
    (0..VALUES).for_each(|value| line(format!("ld.global.f32 %f{}, [%rd1+{}];", sums + value, 4096 * value)));
    for sum in 0..sums {
        let (one, other) = (sums + sum % VALUES, sums + (sum + 1) % VALUES);
        line(format!("fma.rn.f32 %f{sum}, %f{one}, %f{other}, %f{sum};"));
    }
    line("add.u64 %rd1, %rd1, 128;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, %r2;\n@%p bra again;".to_owned());
    (0..sums).for_each(|sum| line(format!("st.global.f32 [%rd2+{}], %f{sum};", 4096 * sum)));
    line("ret;\n}".to_owned());
    text
}

/// So many of these sums take 72 registers of a chip that has 64 for each of its threads, sm_75; ptxas 13.0 spills none with 64. (For
/// chips with 32 it keeps to these in kernels as simple as this.)
const SLIGHTLY_TOO_MANY: usize = 50;
const BOUND: &str = ".maxnreg 64";

fn module(chip: &str, kernels: &[String]) -> String {
    format!(".version 8.0\n.target {chip}\n.address_size 64\n{}", kernels.concat())
}

struct Bench {
    compilers: PtxToCubin,
    options: PtxOptions,
    chip: &'static str,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new(chip: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let parts = NvidiaParts {
            nvptxcompiler_archive: Some(part("lib/libnvptxcompiler_static.a")),
            ptxas: Some(part("bin/ptxas")),
            cache_dir: Some(directory.path().to_owned()),
            ..NvidiaParts::default()
        };
        Self {
            compilers: PtxToCubin::new(parts),
            options: PtxOptions::default(),
            chip,
            _directory: directory,
        }
    }

    fn ours(&self, ptx: &str) -> Cubin {
        let work = PtxWork {
            compiler: &self.compilers,
            cache: None,
            module: "m",
            chip: self.chip,
            options: &self.options,
            choice: None,
            at_once: false,
            interrupt: &Interrupt::default(),
            told: &|_, _| {},
        };
        work.cubin(PtxCode::Text(ptx), Helpers::None).expect("compiles").cubin
    }

    /// What the PTX compiler makes of it alone.
    fn theirs(&self, ptx: &str) -> Cubin {
        self.compilers
            .compile_until(ptx, self.chip, &self.options, None, &Interrupt::default())
            .expect("compiles")
    }
}

fn bound(kernel: &str, registers: u32) -> Bound {
    Bound {
        kernel: kernel.to_owned(),
        registers,
        spills: 0,
        waiting: None,
    }
}

fn resources(cubin: &Cubin, name: &str) -> KernelResources {
    let kernels = cubin.info().expect("reads").kernels;
    kernels
        .into_iter()
        .find(|kernel| kernel.name == name)
        .expect("is there")
}

fn registers(cubin: &Cubin, name: &str) -> u32 {
    let kernel = resources(cubin, name);
    assert_eq!(spilled(&kernel), 0, "{kernel:?}");
    kernel.registers.expect("are known")
}

#[test]
fn a_few_registers_too_many_are_given_up() {
    let bench = Bench::new("sm_75");
    let ptx = module("sm_75", &[kernel("k", SLIGHTLY_TOO_MANY, "")]);
    assert_eq!(registers(&bench.theirs(&ptx), "k"), 72);
    assert_eq!(registers(&bench.ours(&ptx), "k"), 64);
    // As with the bound, to the byte.
    let bounded = module("sm_75", &[kernel("k", SLIGHTLY_TOO_MANY, BOUND)]);
    assert!(bench.ours(&ptx).bytes == bench.theirs(&bounded).bytes);
}

/// A kernel that adds up columns, four numbers in each turn of its loop, as interleaving makes it, and keeps as many others as it is
/// told.
fn loading(others: usize, properties: &str) -> String {
    let mut before = String::new();
    let mut behind = String::new();
    for other in 0..others {
        let place = 4096 * other;
        writeln!(before, "ld.global.f32 %s{other}, [%rd2+{place}];").expect("writes");
        writeln!(
            behind,
            "add.f32 %s{other}, %s{other}, %f0;\nst.global.f32 [%rd2+{place}], %s{other};"
        )
        .expect("writes");
    }
    format!(
        ".visible .entry k(.param .u64 k_p, .param .u64 k_q, .param .u64 k_n, .param .u64 k_s)\n{properties}\n{{\n.reg .pred %p;\n\
         .reg .f32 %f<9>;\n.reg .f32 %s<200>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<19>;\nld.param.u64 %rd1, [k_p];\n\
         ld.param.u64 %rd2, [k_q];\nld.param.u64 %rd3, [k_n];\nld.param.u64 %rd4, [k_s];\nmov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd6, %r1, 4;\nadd.s64 %rd1, %rd1, %rd6;\nadd.s64 %rd2, %rd2, %rd6;\nmov.f32 %f0, 0f00000000;\n\
         mov.u64 %rd5, 0;\nsetp.lt.s64 %p, %rd3, 1;\n@%p bra none;\n{before}\
         again:\nld.global.f32 %f1, [%rd1];\nadd.s64 %rd7, %rd1, %rd4;\nld.global.f32 %f2, [%rd7];\nadd.s64 %rd8, %rd7, %rd4;\n\
         ld.global.f32 %f3, [%rd8];\nadd.s64 %rd9, %rd8, %rd4;\nld.global.f32 %f4, [%rd9];\nadd.f32 %f5, %f0, %f1;\n\
         add.f32 %f6, %f5, %f2;\nadd.f32 %f7, %f6, %f3;\nadd.f32 %f0, %f7, %f4;\nadd.s64 %rd5, %rd5, 4;\n\
         add.s64 %rd1, %rd9, %rd4;\nsetp.lt.s64 %p, %rd5, %rd3;\n@%p bra again;\n\
         {behind}st.global.f32 [%rd2], %f0;\nnone:\nret;\n}}\n"
    )
}

#[test]
fn loops_with_many_loads_may_have_more_registers() {
    let bench = Bench::new("sm_90");
    let ptx = module("sm_90", &[loading(8, "")]);
    assert!(registers(&bench.theirs(&ptx), "k") <= 32);
    assert!(registers(&bench.ours(&ptx), "k") > 32);
    let bounded = module("sm_90", &[loading(8, ".maxnreg 64")]);
    assert!(bench.ours(&ptx).bytes == bench.theirs(&bounded).bytes);
    // What says something itself, what would spill, and other chips' kernels, are left alone.
    for (chip, text) in [
        ("sm_90", loading(8, ".maxnreg 128")),
        ("sm_90", loading(100, "")),
        ("sm_86", loading(8, "")),
    ] {
        let (bench, ptx) = (Bench::new(chip), module(chip, &[text]));
        assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes, "{ptx}");
    }
}

/// A kernel whose loop uses 32 numbers of an iteration four times each, and counts in steps of its own.
fn waiting(step: u32, properties: &str) -> String {
    waiting_and_keeping(0, step, properties)
}

/// The same, while it keeps so many other numbers.
fn waiting_and_keeping(others: usize, step: u32, properties: &str) -> String {
    const LOADS: usize = 32;
    let (mut body, mut before, mut behind) = (String::new(), String::new(), String::new());
    for other in 0..others {
        writeln!(before, "ld.global.f32 %k{other}, [%rd2+{}];", 4096 * other).expect("writes");
        writeln!(
            behind,
            "add.f32 %k{other}, %k{other}, %s0;\nst.global.f32 [%rd2+{}], %k{other};",
            4096 * other
        )
        .expect("writes");
    }
    let mut line = |line: String| writeln!(body, "{line}").expect("writes");
    (0..LOADS).for_each(|load| line(format!("ld.global.f32 %f{load}, [%rd1+{}];", 128 * load)));
    for load in 0..LOADS {
        line(format!(
            "fma.rn.f32 %s0, %f{load}, %f{load}, %s0;\nmax.f32 %s1, %s1, %f{load};"
        ));
        line(format!("min.f32 %s2, %s2, %f{load};\nadd.f32 %s3, %s3, %f{load};"));
    }
    format!(
        ".visible .entry k(.param .u64 k_p, .param .u64 k_q, .param .u32 k_n)\n{properties}\n{{\n.reg .pred %p;\n\
         .reg .f32 %f<{LOADS}>;\n.reg .f32 %s<4>;\n.reg .f32 %k<200>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [k_p];\n\
         ld.param.u64 %rd2, [k_q];\nld.param.u32 %r2, [k_n];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd3, %r0, 4;\n\
         add.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\nmov.u32 %r1, 0;\nmov.f32 %s0, 0f00000000;\n\
         mov.f32 %s1, %s0;\nmov.f32 %s2, %s0;\nmov.f32 %s3, %s0;\n{before}again:\n.pragma \"nounroll\";\n{body}\
         add.u64 %rd1, %rd1, 4096;\nadd.u32 %r1, %r1, {step};\nsetp.lt.u32 %p, %r1, %r2;\n@%p bra again;\n{behind}\
         st.global.f32 [%rd2], %s0;\nst.global.f32 [%rd2+4096], %s1;\nst.global.f32 [%rd2+8192], %s2;\n\
         st.global.f32 [%rd2+12288], %s3;\nret;\n}}\n"
    )
}

#[test]
fn loops_that_wait_may_have_more_registers() {
    let bench = Bench::new("sm_90");
    for (block, bound) in [("", 64), (".reqntid 1024", 64), (".maxntid 256", 64)] {
        let ptx = module("sm_90", &[waiting(32, block)]);
        assert_eq!(registers(&bench.theirs(&ptx), "k"), 32, "{block}");
        assert!(registers(&bench.ours(&ptx), "k") > 40, "{block}");
        let bounded = module("sm_90", &[waiting(32, &format!("{block}\n.maxnreg {bound}"))]);
        assert!(bench.ours(&ptx).bytes == bench.theirs(&bounded).bytes, "{block}");
    }
    // What is launched with blocks of 800 threads, perhaps, can be launched with them afterwards.
    for (block, more) in [("", false), (".maxntid 256", true)] {
        let ptx = module("sm_90", &[waiting_and_keeping(56, 32, block)]);
        let (theirs, ours) = (registers(&bench.theirs(&ptx), "k"), registers(&bench.ours(&ptx), "k"));
        assert!(theirs > 64 && theirs < 100, "{theirs}");
        assert_eq!(ours > theirs, more, "{block} {theirs} {ours}");
    }
    // Alone in a module, and beside others.
    let ptx = module("sm_90", &[waiting(32, ""), kernel("few", 8, "")]);
    assert!(registers(&bench.ours(&ptx), "k") > 40);
    let gathers = waiting(32, "").replace(
        "ld.global.f32 %f1, [%rd1+128];",
        "cvt.rzi.s64.f32 %rd3, %f0;\nadd.s64 %rd3, %rd3, %rd1;\nld.global.f32 %f1, [%rd3];",
    );
    let with_barrier = waiting(32, "").replace("add.u64 %rd1, %rd1, 4096;", "bar.sync 0;\nadd.u64 %rd1, %rd1, 4096;");
    // Iterations that threads share, places that depend on what is read, barriers, blocks that run together, what has a bound, and chips whose
    // code is not read.
    for (chip, text) in [
        ("sm_90", gathers),
        ("sm_90", with_barrier),
        ("sm_90", waiting(256, "")),
        ("sm_90", waiting(32, ".reqntid 64\n.reqnctapercluster 8")),
        ("sm_90", waiting(32, ".maxnreg 32")),
        ("sm_80", waiting(32, "")),
    ] {
        let (bench, ptx) = (Bench::new(chip), module(chip, &[text]));
        assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes, "{ptx}");
    }
}

/// Instructions, and loads of global memory, of the innermost loops that NVIDIA's disassembler shows.
fn disassembled(cubin: &Cubin) -> Vec<(usize, usize)> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("k.cubin");
    std::fs::write(&file, &cubin.bytes).expect("writes");
    let output = std::process::Command::new(part("bin/nvdisasm"))
        .arg("-c")
        .arg(&file)
        .output();
    let output = output.expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("is text");
    let (mut labels, mut code, mut loops) = (HashMap::new(), Vec::new(), Vec::new());
    let mut inner = None;
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label.to_owned(), code.len());
        } else if line.starts_with("/*") && line.ends_with(';') {
            code.push(line);
            let label = line.split_once("BRA `(").and_then(|(_, label)| label.split(')').next());
            let begin = label.and_then(|label| labels.get(label)).copied();
            if let Some(begin) = begin.filter(|&begin| begin + 1 < code.len()) {
                let body = &code[begin..];
                let loads = body.iter().filter(|line| line.contains(" LDG.")).count();
                loops.extend(inner.is_none_or(|inner| inner < begin).then_some((body.len(), loads)));
                inner = inner.max(Some(begin));
            }
        }
    }
    loops
}

#[test]
fn loops_of_machine_code_are_those_of_the_disassembler() {
    let bench = Bench::new("sm_90");
    for text in [
        waiting(32, ""),
        waiting(1, ".maxnreg 64"),
        loading(8, ""),
        loading(60, ""),
        kernel("k", 50, ""),
    ] {
        let cubin = bench.theirs(&module("sm_90", &[text]));
        let found = sass_loops::innermost_loops(&cubin.bytes, "k").expect("reads");
        let found: Vec<(usize, usize)> = found.iter().map(|found| (found.instructions, found.loads)).collect();
        assert!(!found.is_empty());
        assert_eq!(found, disassembled(&cubin));
    }
}

/// So many sums are spilled with all the registers that there are.
const FAR_TOO_MANY: usize = 400;

#[test]
fn what_spills_with_few_registers_gets_those_that_its_block_has_room_for() {
    let bench = Bench::new("sm_90");
    for (block, least, most) in [
        (".reqntid 64", 32, 255),
        (".maxntid 128, 2, 1", 32, 255),
        (".reqntid 512", 64, 128),
    ] {
        let one = |name: &str, bound: &str| kernel(name, FAR_TOO_MANY, &format!("{block}\n{bound}"));
        let ptx = module("sm_90", &[one("k", "")]);
        let (theirs, ours) = (resources(&bench.theirs(&ptx), "k"), resources(&bench.ours(&ptx), "k"));
        assert_eq!((theirs.registers, ours.registers), (Some(least), Some(most)), "{block}");
        assert!(spilled(&ours) < spilled(&theirs), "{block}");
        let bound = format!(".maxnreg {most}");
        let bounded = module("sm_90", &[one("k", &bound)]);
        assert!(bench.ours(&ptx).bytes == bench.theirs(&bounded).bytes, "{block}");
        // In a module with others, too, and lines.
        for line_info in [false, true] {
            let mut bench = Bench::new("sm_90");
            bench.options.line_info = line_info;
            let ours = bench.ours(&module("sm_90", &[kernel("few", 8, ""), one("k", "")]));
            assert_eq!(resources(&ours, "k").registers, Some(most), "{block} {line_info}");
        }
    }
    // There is no room for more, the kernel says something itself, blocks run together, or it has all that there are.
    for properties in [
        ".reqntid 1024",
        ".reqntid 64\n.maxnreg 40",
        ".reqntid 64\n.reqnctapercluster 8",
        ".reqntid 64\n.maxclusterrank 8",
        "",
    ] {
        let ptx = module("sm_90", &[kernel("k", FAR_TOO_MANY, properties)]);
        assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes, "{properties}");
    }
}

#[test]
fn what_says_something_of_its_registers_is_left_alone() {
    let mut bench = Bench::new("sm_75");
    for properties in [
        ".maxnreg 80",
        ".maxnreg 80 // see (1)",
        ".maxntid 256\n.minnctapersm 1 // {",
    ] {
        let ptx = module("sm_75", &[kernel("k", SLIGHTLY_TOO_MANY, properties)]);
        assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes, "{properties}");
    }
    let ptx = module("sm_75", &[kernel("k", SLIGHTLY_TOO_MANY, "")]);
    bench.options.max_registers = Some(128);
    assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes);
    bench.options.max_registers = None;
    bench.options.extra = vec!["--maxrregcount=128".to_owned()];
    assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes);
    bench.options.extra = Vec::new();
    bench.options.opt_level = 2;
    assert!(bench.ours(&ptx).bytes == bench.theirs(&ptx).bytes);
}

#[test]
fn what_gains_no_warps_or_spills_is_left_alone() {
    let bench = Bench::new("sm_75");
    let theirs = |properties: &str, sums: usize| {
        let ptx = module("sm_75", &[kernel("k", sums, properties)]);
        let theirs = bench.theirs(&ptx);
        assert!(bench.ours(&ptx).bytes == theirs.bytes, "{sums} {properties}");
        registers(&theirs, "k")
    };
    // Blocks of 96 threads fill 30 of 32 warps at most.
    assert_eq!(theirs(".reqntid 96", SLIGHTLY_TOO_MANY), 72);
    // With 64, 54 sums are spilled; 90 are much too many.
    assert_eq!(theirs("", 54), 72);
    assert!(theirs("", 90) > 80);
    assert!(theirs("", 20) < 64);
}

/// The others of a module have no part in it, whether what was made of them is taken apart or, with lines, not.
#[test]
fn kernels_become_the_same_alone_and_with_others() {
    for line_info in [false, true] {
        let mut bench = Bench::new("sm_75");
        bench.options.line_info = line_info;
        let kernels = |bound: &str| {
            module(
                "sm_75",
                &[
                    kernel("few", 8, ""),
                    kernel("k", SLIGHTLY_TOO_MANY, bound),
                    kernel("many", 54, ""),
                    kernel("l", SLIGHTLY_TOO_MANY + 1, bound),
                ],
            )
        };
        let ours = bench.ours(&kernels(""));
        // With lines, the text is in the cubin.
        if !line_info {
            assert!(ours.bytes == bench.theirs(&kernels(BOUND)).bytes);
        }
        assert_eq!(registers(&ours, "k"), 64, "{line_info}");
        assert_eq!(registers(&ours, "l"), 64, "{line_info}");
        assert_eq!(registers(&ours, "many"), 72, "{line_info}");
    }
}

#[test]
fn bounds_stand_between_parameters_and_body() {
    let ptx = ".visible .entry k2()\n{ ret; }\n.entry k(.param .align 8 .b8 k_p[16]) // k (1) {\n.maxntid 256, 1, 1\n{ ret; }\n.entry l { ret; }\n";
    let bound = |kernel: &str| bound(kernel, 32);
    let text = with_bounds(ptx, &[bound("k"), bound("l")]).expect("is PTX");
    assert!(
        text.contains("k_p[16]) // k (1) {\n.maxntid 256, 1, 1\n.maxnreg 32 { ret; }"),
        "{text}"
    );
    assert!(text.contains(".entry l .maxnreg 32 { ret; }"), "{text}");
    assert!(text.contains(".entry k2()\n{ ret; }"), "{text}");
    assert_eq!(with_bounds(ptx, &[bound("m")]), None);
}

/// What a kernel has after it asked for more, and how long it waits, depends on what it begins with.
#[test]
fn kernels_that_change_their_registers_are_left_alone() {
    let ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .func f() { setmaxnreg.inc.sync.aligned.u32 232; ret; }\n\
        .entry asks() { setmaxnreg.inc.sync.aligned.u32 232; ret; }\n\
        .entry calls() { call f; ret; }\n\
        .entry alone() { ret; }\n";
    let all = ["asks", "calls", "alone"].map(|name| bound(name, 32));
    assert_eq!(open_ones(ptx, all.to_vec()), [bound("alone", 32)]);
}

/// Else the kernel as it was would be kept for the next time.
#[test]
fn a_compilation_that_was_stopped_is_an_error() {
    let bench = Bench::new("sm_75");
    let ptx = module("sm_75", &[kernel("k", SLIGHTLY_TOO_MANY, "")]);
    let work = PtxWork {
        compiler: &bench.compilers,
        cache: None,
        module: "m",
        chip: bench.chip,
        options: &bench.options,
        choice: None,
        at_once: false,
        interrupt: &Interrupt::default(),
        told: &|_, _| {},
    };
    let stopped = |_: &str| {
        Err(SerializeError::Cancelled {
            chip: "sm_75".to_owned(),
            compiler: PtxCompiler::Ptxas,
            version: String::new(),
            decisions: Vec::new(),
        })
    };
    let made = work.with_better_bounds(&ptx, bench.theirs(&ptx), stopped);
    assert!(matches!(made, Err(SerializeError::Cancelled { .. })), "{made:?}");
}
