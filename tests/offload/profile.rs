//! Small modules, one for each thing that some release does not read.

use super::{
    super::old_clangs::{AMD, ARM, Clangs, INSTALLED, NVIDIA, SYNTAXES, X86, raw_bitcode, source, text_for, written},
    *,
};

/// What clang 16 makes of the bitcode that LLVM 22 writes of it.
#[derive(Clone, Copy, PartialEq)]
enum Raw {
    Refuses,
    /// Reads it as something that says this.
    Misreads(&'static str),
    /// Reads it, and loses only what helps.
    Reads,
}
use Raw::{Misreads, Reads, Refuses};

struct Micro {
    /// What text has if a release reads it.
    words: &'static str,
    /// What it is in the table.
    kind: Kind,
    name: &'static str,
    raw: Raw,
    /// Definitions; `#` stands for a number of the module's own.
    text: &'static str,
}

const fn micro(words: &'static str, kind: Kind, name: &'static str, raw: Raw, text: &'static str) -> Micro {
    Micro {
        words,
        kind,
        name,
        raw,
        text,
    }
}

#[rustfmt::skip]
const MICROS: &[Micro] = &[
    micro("zext nneg", Kind::Construct, "zext nneg", Refuses,
        "define i64 @f#(i32 %a) {\n %r = zext nneg i32 %a to i64\n ret i64 %r\n}"),
    micro("or disjoint", Kind::Construct, "or disjoint", Reads,
        "define i32 @f#(i32 %a) {\n %r = or disjoint i32 %a, 1\n ret i32 %r\n}"),
    micro("uitofp nneg", Kind::Construct, "uitofp nneg", Refuses,
        "define float @f#(i32 %a) {\n %r = uitofp nneg i32 %a to float\n ret float %r\n}"),
    micro("trunc nuw", Kind::Construct, "trunc nuw", Refuses,
        "define i8 @f#(i32 %a) {\n %r = trunc nuw i32 %a to i8\n ret i8 %r\n}"),
    micro("fptrunc nnan", Kind::Construct, "fptrunc with fast-math flags", Refuses,
        "define float @f#(double %a) {\n %r = fptrunc nnan double %a to float\n ret float %r\n}"),
    micro("call nnan { float, float }", Kind::Construct, "fast-math flags on structures", Refuses,
        "declare { float, float } @g#()\n\
         define void @f#() {\n %r = call nnan { float, float } @g#()\n ret void\n}"),
    micro("icmp samesign", Kind::Construct, "icmp samesign", Refuses,
        "define i1 @f#(i32 %a) {\n %r = icmp samesign ult i32 %a, 7\n ret i1 %r\n}"),
    micro("getelementptr nuw i16", Kind::Construct, "getelementptr nuw", Misreads("getelementptr inbounds i16"),
        "define ptr @f#(ptr %a, i64 %i) {\n %r = getelementptr nuw i16, ptr %a, i64 %i\n ret ptr %r\n}"),
    micro("inrange", Kind::Construct, "getelementptr nuw", Misreads("@g# = global ptr undef"),
        "@t# = global [9 x i32] zeroinitializer\n\
         @g# = global ptr getelementptr inrange(-8, 8) ([9 x i32], ptr @t#, i64 0, i64 6)"),
    micro("errnomem: none", Kind::Construct, "memory(errnomem)",
        Misreads("memory(argmem: readwrite, inaccessiblemem: readwrite)"),
        "declare void @f#() memory(readwrite, errnomem: none)\ndefine void @g#() {\n call void @f#()\n ret void\n}"),
    micro("target_mem0: write", Kind::Construct, "memory(target_mem)", Misreads("memory(none)"),
        "declare void @f#() memory(target_mem0: write)\ndefine void @g#() {\n call void @f#()\n ret void\n}"),
    micro("!\"expected\"", Kind::Construct, "profiles with their source", Reads,
        "define i32 @f#(i1 %c) {\n br i1 %c, label %a, label %b, !prof !1#\na:\n ret i32 1\nb:\n ret i32 2\n}\n\
         !1# = !{!\"branch_weights\", !\"expected\", i32 1, i32 20}"),
    micro("[ \"align\"", Kind::Construct, "assumptions about attributes", Reads,
        "declare void @llvm.assume(i1)\n\
         define void @f#(ptr %c) {\n call void @llvm.assume(i1 true) [ \"align\"(ptr %c, i64 16) ]\n ret void\n}"),
    micro("llvm.lifetime.start", Kind::Construct, "lifetime without size", Refuses,
        "declare void @llvm.lifetime.start.p0(ptr)\ndeclare void @use#(ptr)\n\
         define void @f#() {\n %a = alloca i32\n call void @llvm.lifetime.start.p0(ptr %a)\n\
         call void @use#(ptr %a)\n ret void\n}"),
    micro("splat (i32 5)", Kind::Construct, "vectors of one number as splat", Reads,
        "define <4 x i32> @f#(<4 x i32> %a) {\n %r = add <4 x i32> %a, splat (i32 5)\n ret <4 x i32> %r\n}"),
    micro("ptrtoaddr", Kind::Construct, "ptrtoaddr", Refuses,
        "define i64 @f#(ptr %a) {\n %r = ptrtoaddr ptr %a to i64\n ret i64 %r\n}\n\
         @t# = global i8 0\n@g# = global i64 ptrtoaddr (ptr @t# to i64)"),
    micro("atomicrmw fadd", Kind::Construct, "atomicrmw on vectors", Refuses,
        "define void @f#(ptr %a, <2 x half> %b) {\n %r = atomicrmw fadd ptr %a, <2 x half> %b seq_cst\n ret void\n}"),
    micro("atomicrmw uinc_wrap", Kind::AtomicOperation, "uinc_wrap", Reads,
        "define i32 @f#(ptr %a) {\n %r = atomicrmw uinc_wrap ptr %a, i32 9 seq_cst\n ret i32 %r\n}"),
    micro("atomicrmw usub_cond", Kind::AtomicOperation, "usub_cond", Refuses,
        "define i32 @f#(ptr %a) {\n %r = atomicrmw usub_cond ptr %a, i32 9 seq_cst\n ret i32 %r\n}"),
    micro("atomicrmw fmaximum", Kind::AtomicOperation, "fmaximum", Refuses,
        "define float @f#(ptr %a) {\n %r = atomicrmw fmaximum ptr %a, float 9.0 seq_cst\n ret float %r\n}"),
    micro("nofpclass(nan)", Kind::Attribute, "nofpclass", Refuses,
        "define float @f#(float nofpclass(nan) %a) {\n ret float %a\n}"),
    micro("optdebug", Kind::Attribute, "optdebug", Refuses, "define void @f#() optdebug {\n ret void\n}"),
    micro("dead_on_unwind", Kind::Attribute, "dead_on_unwind", Refuses,
        "define void @f#(ptr dead_on_unwind %a) {\n ret void\n}"),
    micro("writable", Kind::Attribute, "writable", Refuses,
        "define void @f#(ptr writable dereferenceable(4) %a) {\n ret void\n}"),
    micro("range(i32 0, 5)", Kind::Attribute, "range", Refuses,
        "declare i32 @g#()\ndefine i32 @f#() {\n %r = call range(i32 0, 5) i32 @g#()\n ret i32 %r\n}"),
    micro("initializes((0, 4))", Kind::Attribute, "initializes", Refuses,
        "define void @f#(ptr initializes((0, 4)) %a) {\n store i32 1, ptr %a\n ret void\n}"),
    micro("captures(none)", Kind::Attribute, "captures", Refuses,
        "define void @f#(ptr captures(none) %a) {\n ret void\n}"),
    micro("noext", Kind::Attribute, "noext", Refuses, "define void @f#(i32 noext %a) {\n ret void\n}"),
    micro("nodivergencesource", Kind::Attribute, "nodivergencesource", Refuses,
        "declare void @g#()\ndefine void @f#() {\n call void @g#() nodivergencesource\n ret void\n}"),
    micro("coro_elide_safe", Kind::Attribute, "coro_elide_safe", Refuses,
        "declare void @g#()\ndefine void @f#() {\n call void @g#() coro_elide_safe\n ret void\n}"),
    micro("sanitize_type", Kind::Attribute, "sanitize_type", Refuses, "define void @f#() sanitize_type {\n ret void\n}"),
    micro("dead_on_return", Kind::Attribute, "dead_on_return", Refuses,
        "define void @f#(ptr dead_on_return %a) {\n ret void\n}"),
    micro("nocreateundeforpoison", Kind::Attribute, "nocreateundeforpoison", Refuses,
        "declare float @llvm.sqrt.f32(float)\n\
         define float @f#(float %a) {\n %r = call float @llvm.sqrt.f32(float %a)\n ret float %r\n}"),
    micro("hybrid_patchable", Kind::Attribute, "hybrid_patchable", Refuses,
        "define void @f#() hybrid_patchable {\n ret void\n}"),
    micro("memory(argmem: readwrite)", Kind::Attribute, "memory", Reads,
        "define void @f#(ptr %a) memory(argmem: readwrite) {\n store i32 1, ptr %a\n ret void\n}"),
    micro("!noalias.addrspace", Kind::Metadata, "noalias.addrspace", Reads,
        "define i32 @f#(ptr %a) {\n %r = load i32, ptr %a, !noalias.addrspace !1#\n ret i32 %r\n}\n\
         !1# = !{i32 5, i32 6}"),
];

impl Micro {
    fn text(&self, number: usize) -> String {
        self.text.replace('#', &number.to_string())
    }
}

/// Everything at once.
fn everything() -> String {
    let mut lines: Vec<String> = Vec::new();
    for (number, micro) in MICROS.iter().enumerate() {
        lines.extend(micro.text(number).lines().map(str::to_owned));
    }
    // Declarations of intrinsics are the same in several.
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| !line.starts_with("declare") || seen.insert(line.clone()));
    lines.join("\n")
}

fn first(micro: &Micro, syntax: IrSyntax) -> u8 {
    let profile = Profile {
        oldest: ClangRelease::NEWEST,
        syntax,
        target: IrTarget::Host,
    };
    profile.first(micro.kind, micro.name)
}

#[test]
fn every_row_is_kept_from_its_first_release_on() {
    for (number, micro) in MICROS.iter().enumerate() {
        for oldest in 15..=23 {
            let text = text_for(X86, &micro.text(number), oldest);
            let kept = text.contains(micro.words);
            assert_eq!(
                kept,
                oldest >= first(micro, IrSyntax::Text),
                "{} for clang {oldest}:\n{text}",
                micro.words
            );
        }
    }
}

#[test]
fn installed_releases_read_and_compile_every_row() {
    let clangs = Clangs::new();
    for triple in [X86, ARM] {
        let text = source(triple, &everything());
        for oldest in 15..=22 {
            for syntax in SYNTAXES {
                let written = written(&text, oldest, syntax).unwrap_or_else(|error| panic!("{error}"));
                let readers = INSTALLED.into_iter().filter(|clang| *clang >= oldest);
                for (index, clang) in readers.enumerate() {
                    let context = format!("{triple}, for {oldest}, {syntax:?}");
                    clangs.read(clang, triple, &written.bytes).expect(&context);
                    if index == 0 {
                        clangs.compile(clang, triple, &written.bytes, "-c").expect(&context);
                    }
                }
            }
        }
    }
}

/// That the test above can fail, and that the misreadings which are guarded against are real.
#[test]
fn clang_16_refuses_or_misreads_what_llvm_22_writes() {
    let clangs = Clangs::new();
    for (number, micro) in MICROS.iter().enumerate() {
        let bitcode = raw_bitcode(&source(X86, &micro.text(number)));
        let read = clangs.read(16, X86, &bitcode);
        match micro.raw {
            Refuses => assert!(read.is_err(), "{}: {read:?}", micro.words),
            Misreads(words) => {
                let words = words.replace('#', &number.to_string());
                let text = read.unwrap_or_else(|error| panic!("{}: {error}", micro.words));
                assert!(text.contains(&words), "{}: {text}", micro.words);
            }
            Reads => assert!(read.is_ok(), "{}: {read:?}", micro.words),
        }
    }
}

const ADDRESSES: &str = "
@table = global [16 x i32] zeroinitializer
@plain = global ptr getelementptr ([16 x i32], ptr @table, i64 0, i64 4)
@sure = global { i8, [2 x ptr] } { i8 1, [2 x ptr] [ptr @table, ptr getelementptr inbounds nuw (i32, ptr @table, i64 3)] }
@before = global ptr getelementptr nuw (i8, ptr @table, i64 -4)
@difference = global i64 ptrtoint (ptr getelementptr nusw (i8, ptr @table, i64 7) to i64)
@same = alias i32, getelementptr nuw (i32, ptr @table, i64 2)
";

#[test]
fn constant_addresses_are_not_lost() {
    let clangs = Clangs::new();
    let text = source(X86, ADDRESSES);
    // Clang 16 refuses an alias of nothing.
    let raw: Vec<&str> = text.lines().filter(|line| !line.contains("alias")).collect();
    let lost = clangs.read(16, X86, &raw_bitcode(&raw.join("\n"))).expect("reads");
    assert!(lost.contains("@plain = global ptr undef"), "{lost}");
    for (oldest, clang) in [(15, 16), (16, 16), (18, 19), (19, 19), (16, 22)] {
        for syntax in SYNTAXES {
            let written = written(&text, oldest, syntax).expect("written");
            let read = clangs.read(clang, X86, &written.bytes).expect("reads");
            assert!(!read.contains("undef"), "{read}");
            let assembly = clangs.compile(clang, X86, &written.bytes, "-S").expect("compiles");
            let assembly = String::from_utf8(assembly).expect("text");
            for words in ["table+16", "table+12", "table-4", "table+7", "table+8"] {
                assert!(
                    assembly.contains(words),
                    "{words} for {oldest}, {syntax:?}:\n{assembly}"
                );
            }
        }
    }
    // Nothing claims more than before.
    for oldest in [16, 18] {
        let text = text_for(X86, ADDRESSES, oldest);
        for words in [
            "getelementptr ([16 x i32], ptr @table, i64 0, i64 4)",
            "@before = global ptr getelementptr (i8, ptr @table, i64 -4)",
            "getelementptr inbounds (i32, ptr @table, i64 3)",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        assert!(!text.contains("nuw") && !text.contains("nusw"), "{text}");
    }
}

/// What the rewritten forms do, in a program that checks it.
#[test]
fn a_program_does_the_same_with_every_release() {
    let clangs = Clangs::new();
    let text = source(X86, include_str!("profile_program.ll"));
    for oldest in 15..=22 {
        for syntax in SYNTAXES {
            let written = written(&text, oldest, syntax).unwrap_or_else(|error| panic!("{error}"));
            for clang in INSTALLED.into_iter().filter(|clang| *clang >= oldest) {
                for optimization in ["-O0", "-O2"] {
                    let status = clangs.run_program(clang, &written.bytes, optimization);
                    assert_eq!(
                        status,
                        Ok(0),
                        "for {oldest}, {syntax:?}, clang {clang} {optimization}: the failed check"
                    );
                }
            }
        }
    }
}

#[test]
fn effects_on_memory_never_shrink() {
    let clangs = Clangs::new();
    // What a function does, and what clang 16 may believe of it.
    for (effects, belief) in [
        ("memory(none)", "memory(none)"),
        ("memory(read)", "memory(read)"),
        ("memory(argmem: readwrite)", "memory(argmem: readwrite)"),
        ("memory(inaccessiblemem: write)", "memory(inaccessiblemem: write)"),
        ("memory(readwrite, argmem: none)", "memory(readwrite, argmem: none)"),
        ("memory(readwrite, errnomem: none)", ""),
        (
            "memory(errnomem: write)",
            "memory(write, argmem: none, inaccessiblemem: none)",
        ),
        (
            "memory(argmem: read, errnomem: write)",
            "memory(write, argmem: read, inaccessiblemem: none)",
        ),
        ("memory(target_mem0: write)", ""),
        ("memory(inaccessiblemem: read, target_mem1: readwrite)", ""),
        ("memory(write, target_mem0: none, target_mem1: none)", "memory(write)"),
        ("memory(read, inaccessiblemem: none)", "memory(read)"),
    ] {
        let text = source(
            X86,
            &format!("declare void @f() {effects}\ndefine void @g() {{\n call void @f()\n ret void\n}}"),
        );
        for (oldest, clang) in [(16, 16), (16, 19), (20, 22), (16, 22)] {
            for syntax in SYNTAXES {
                let written = written(&text, oldest, syntax).expect("written");
                let read = clangs.read(clang, X86, &written.bytes).expect("reads");
                let found = read.split("memory(").nth(1).map_or(String::new(), |rest| {
                    format!("memory({})", rest.split(')').next().unwrap_or_default())
                });
                if clang < 21 {
                    assert_eq!(found, belief, "{effects} for {oldest}, {syntax:?}, read by {clang}");
                } else {
                    assert_eq!(
                        found.is_empty(),
                        belief.is_empty(),
                        "{effects} for {oldest}, read by {clang}: {found}"
                    );
                    assert!(found != "memory(none)" || effects == found, "{effects}: {found}");
                }
            }
        }
    }
}

#[test]
fn what_means_something_and_cannot_be_said_is_refused() {
    const END: &str = " or newer, or let machine code cross instead of LLVM IR (an object)";
    for (triple, oldest, text, message) in [
        (
            X86,
            16,
            "define preserve_nonecc void @f() {\n ret void\n}",
            "the calling convention preserve_nonecc in f, which clang 19 is the first to read. Finish with clang 19",
        ),
        (
            X86,
            21,
            "define cc 110 void @f() {\n ret void\n}",
            "the calling convention 110 in f, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            X86,
            17,
            "@g = global i32 0, code_model \"large\"",
            "code_model in g, which clang 18 is the first to read. Finish with clang 18",
        ),
        (
            X86,
            21,
            "@g = global i32 0\n@h = global ptr ptrauth (ptr @g, i32 0, i64 3)",
            "ptrauth in h, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            X86,
            15,
            "define target(\"spirv.Event\") @f(target(\"spirv.Event\") %a) {\n ret target(\"spirv.Event\") %a\n}",
            "target types in f, which clang 16 is the first to read. Finish with clang 16",
        ),
        (
            ARM,
            21,
            "define <vscale x 4 x i32> @f(<vscale x 4 x i32> %a) {\n ret <vscale x 4 x i32> %a\n}",
            "scalable vectors in f, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            X86,
            21,
            "define <2 x i16> @f(ptr %a) {\n %r = load atomic <2 x i16>, ptr %a monotonic, align 4\n ret <2 x i16> %r\n}",
            "atomic load or store of a vector in f, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            X86,
            15,
            "define void @f(ptr %a) {\n %r = atomicrmw uinc_wrap ptr %a, i128 9 seq_cst\n ret void\n}",
            "atomicrmw uinc_wrap of more than 64 bits in f, which clang 16 is the first to read. Finish with clang 16",
        ),
        (
            X86,
            21,
            "declare void @g()\n@d = global i8 0\n\
                   define void @f() {\n call void @g() [ \"deactivation-symbol\"(ptr @d) ]\n ret void\n}",
            "operand bundles \"deactivation-symbol\" in f, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            X86,
            19,
            "declare { float, float } @llvm.modf.f32(float)\n\
                   define { float, float } @f(float %a) {\n %r = call { float, float } @llvm.modf.f32(float %a)\n\
                   ret { float, float } %r\n}",
            "the intrinsic llvm.modf.f32 in f, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            NVIDIA,
            19,
            "declare { i32, i1 } @llvm.nvvm.elect.sync(i32)\n\
                      define void @f() {\n %r = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)\n ret void\n}",
            "the intrinsic llvm.nvvm.elect.sync in f, which clang 20 is the first to read. Finish with clang 20",
        ),
        (
            NVIDIA,
            20,
            "define void @f(ptr addrspace(7) %a) {\n ret void\n}",
            "pointers to address space 7 in f, which clang 21 is the first to read. Finish with clang 21",
        ),
        (
            NVIDIA,
            19,
            "define ptx_kernel void @k() \"nvvm.cluster_dim\"=\"2,1,1\" {\n ret void\n}",
            "the attribute nvvm.cluster_dim in k, which clang 21 is the first to read. Finish with clang 21",
        ),
        (
            NVIDIA,
            18,
            "define ptx_kernel void @k(ptr byval(i32) \"nvvm.grid_constant\" %a) {\n ret void\n}",
            "the attribute nvvm.grid_constant in k, which clang 22 is the first to read. Finish with clang 22",
        ),
        (
            NVIDIA,
            16,
            "define bfloat @f(bfloat %a) {\n %r = fadd bfloat %a, %a\n ret bfloat %r\n}",
            "arithmetic with bfloat on NVPTX in f (older ones cannot compile it), which clang 17 is the first to read. \
             Finish with clang 17",
        ),
        (
            AMD,
            16,
            "define void @f(ptr addrspace(8) %a) {\n ret void\n}",
            "pointers to address space 8 in f, which clang 17 is the first to read. Finish with clang 17",
        ),
        (
            X86,
            18,
            "@t = global i8 0\n!keep = !{!0}\n!0 = !{ptr getelementptr (i8, ptr @t, i64 1)}",
            "getelementptr in metadata, which clang 19 is the first to read. Finish with clang 19",
        ),
    ] {
        for syntax in SYNTAXES {
            let error = written(&source(triple, text), oldest, syntax)
                .expect_err(message)
                .to_string();
            let start = format!("this module cannot be written as LLVM IR for clang {oldest}: it has ");
            assert_eq!(error, format!("{start}{message}{END}"), "{text}");
        }
    }
}

#[test]
fn what_nobody_reads_is_refused_for_everybody() {
    let text = source(
        X86,
        "declare void @llvm.nothing.of.this.name()\ndefine void @f() {\n call void @llvm.nothing.of.this.name()\n ret void\n}",
    );
    let error = written(&text, 22, IrSyntax::Text).expect_err("refused").to_string();
    assert_eq!(
        error,
        "this module cannot be written as LLVM IR for clang 22: it has an unknown intrinsic in llvm.nothing.of.this.name \
         (LLVM 22 does not have it). Let machine code cross instead of LLVM IR (an object)"
    );
}

#[test]
fn several_refusals_are_one_message() {
    let functions: String = (0..7)
        .map(|number| format!("define cc {} void @f{number}() {{\n ret void\n}}\n", 110 + number))
        .collect();
    let error = written(&source(X86, &functions), 16, IrSyntax::Text)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("; 2 more. Finish with clang 22 or newer"), "{error}");
}

#[test]
fn a_module_without_a_target_is_refused() {
    let nothing = "define void @f() {\n ret void\n}";
    for (text, message) in [
        (
            nothing.to_owned(),
            "the module has no target triple, which every clang needs, and each would take its own",
        ),
        (
            format!("target triple = \"x86_64-unknown-linux-gnu\"\n{nothing}"),
            "the module has no data layout, which every clang needs",
        ),
        (
            format!("target datalayout = \"e-i64:64\"\ntarget triple = \"nvptx64-nvidia-cuda\"\n{nothing}"),
            "the module has the data layout \"e-",
        ),
        (
            format!("target datalayout = \"e-m:e-p:32:32\"\ntarget triple = \"riscv32-unknown-linux-gnu\"\n{nothing}"),
            "what older releases of clang read is known for x86_64, aarch64, nvptx64 and amdgcn, not for riscv32-unknown-linux-gnu",
        ),
    ] {
        for syntax in SYNTAXES {
            let error = written(&text, 21, syntax).expect_err(message).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}

const WITH_DEBUG_INFO: &str = "
define i32 @f(i32 %a) !dbg !3 {
  #dbg_value(i32 %a, !6, !DIExpression(), !7)
  ret i32 %a, !dbg !7
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!8}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: \"test\", isOptimized: false, emissionKind: FullDebug)
!1 = !DIFile(filename: \"f.c\", directory: \"/\")
!2 = !DISubroutineType(types: !5)
!3 = distinct !DISubprogram(name: \"f\", file: !1, line: 1, type: !2, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DIBasicType(name: \"int\", size: 32, encoding: DW_ATE_signed)
!5 = !{!4, !4}
!6 = !DILocalVariable(name: \"a\", arg: 1, scope: !3, file: !1, line: 1, type: !4)
!7 = !DILocation(line: 1, column: 2, scope: !3)
!8 = !{i32 2, !\"Debug Info Version\", i32 3}
";

#[test]
fn debug_information_stays_where_it_is_read() {
    let clangs = Clangs::new();
    let newer = WITH_DEBUG_INFO
        .replace(
            "column: 2, scope: !3",
            "column: 2, scope: !3, atomGroup: 1, atomRank: 1",
        )
        .replace("unit: !0,", "unit: !0, keyInstructions: true,");
    for (body, oldest, syntax, stays) in [
        (WITH_DEBUG_INFO, 18, IrSyntax::Text, false),
        (WITH_DEBUG_INFO, 19, IrSyntax::Text, true),
        (WITH_DEBUG_INFO, 19, IrSyntax::Bitcode, false),
        (WITH_DEBUG_INFO, 22, IrSyntax::Bitcode, true),
        (&newer, 19, IrSyntax::Text, false),
        (&newer, 22, IrSyntax::Text, true),
    ] {
        let written = written(&source(X86, body), oldest, syntax).expect("written");
        let note = format!("debug information was left out: clang {oldest} does not read that of LLVM 22");
        assert_eq!(written.notes, if stays { vec![] } else { vec![note] });
        for clang in INSTALLED.into_iter().filter(|clang| *clang >= oldest) {
            let read = clangs.read(clang, X86, &written.bytes).expect("reads");
            assert_eq!(
                read.contains("DILocalVariable"),
                stays,
                "for {oldest}, by {clang}:\n{read}"
            );
        }
    }
}

#[test]
fn what_may_be_missed_is_noted() {
    let text = source(
        X86,
        "define void @f() sanitize_realtime {\n ret void, !mine !0\n}\ndefine void @g() sanitize_realtime {\n ret void, !mine !0\n}\n!0 = !{}",
    );
    let written = written(&text, 19, IrSyntax::Bitcode).expect("written");
    assert_eq!(
        written.notes,
        [
            "metadata !mine was left out, which clang 19 may not know",
            "the attribute sanitize_realtime was left out, which clang 19 does not know: the code will not be instrumented \
             for it"
        ]
    );
}

#[test]
fn the_same_module_gives_the_same_bytes() {
    let text = source(X86, &everything());
    for oldest in [15, 18, 21] {
        for syntax in SYNTAXES {
            let bytes = || written(&text, oldest, syntax).expect("written").bytes;
            assert_eq!(bytes(), bytes());
        }
    }
}

#[test]
fn llvm_22_itself_loses_nothing() {
    let text = source(X86, &everything());
    let context = DeviceContext::new();
    let before = context
        .parse(text.as_bytes(), "test.ll")
        .expect("parses")
        .to_text()
        .expect("printed");
    let after = written(&text, 22, IrSyntax::Text).expect("written");
    // Intrinsics that are declared and not used are the one difference there may be.
    assert_eq!(String::from_utf8(after.bytes).expect("text"), before);
    assert!(after.notes.is_empty());
}

use crate::bridge::llvm::DeviceContext;
