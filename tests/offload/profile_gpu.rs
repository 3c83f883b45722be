//! Device code: what is said otherwise to older back ends, seen in the assembly that they make.

use inkwell::intrinsics::Intrinsic;

use super::{
    super::{
        old_clangs::{AMD, Clangs, NVIDIA, SYNTAXES, X86, raw_bitcode, source, text_for, written},
        profile_table::all_intrinsics,
    },
    *,
};

fn assert_has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

/// An intrinsic that is called once, and what it becomes in the PTX of clang 16 and 19.
#[rustfmt::skip]
const NVPTX: &[(&str, &[&str])] = &[
    ("void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", &["bar.sync", "\t0;"]),
    ("void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 3)", &["bar.sync", " 3;"]),
    ("void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)", &["bar.sync", "64;"]),
    ("void @llvm.nvvm.barrier.cta.sync.all(i32 2)", &["barrier.sync"]),
    ("void @llvm.nvvm.barrier.cta.sync.count(i32 2, i32 32)", &["barrier.sync", "32;"]),
    ("float @llvm.nvvm.fabs.f32(float %f)", &["abs.f32"]),
    ("double @llvm.nvvm.fabs.f64(double %d)", &["abs.f64"]),
    ("float @llvm.nvvm.fabs.ftz.f32(float %f)", &["abs.ftz.f32"]),
    ("float @llvm.nvvm.ex2.approx.f32(float %f)", &["ex2.approx.f32"]),
    ("float @llvm.nvvm.ex2.approx.ftz.f32(float %f)", &["ex2.approx.ftz.f32"]),
    ("half @llvm.nvvm.ex2.approx.f16(half %h)", &["ex2.approx.f16"]),
    ("<2 x half> @llvm.nvvm.ex2.approx.v2f16(<2 x half> %h2)", &["ex2.approx.f16x2"]),
    ("i32 @llvm.nvvm.activemask()", &["activemask.b32"]),
    ("float @llvm.nvvm.div.full(float %f, float %f)", &["div."]),
    ("void @llvm.nvvm.cp.async.ca.shared.global.4.s(ptr addrspace(3) %s, ptr addrspace(1) %g, i32 %i)",
        &["cp.async.ca.shared.global [%", ", 4, %"]),
    ("void @llvm.nvvm.cp.async.ca.shared.global.8.s(ptr addrspace(3) %s, ptr addrspace(1) %g, i32 %i)",
        &["cp.async.ca.shared.global [%", ", 8, %"]),
    ("void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) %s, ptr addrspace(1) %g, i32 %i)",
        &["cp.async.cg.shared.global [%", ", 16, %"]),
];

/// The same for AMD's assembly.
#[rustfmt::skip]
const AMDGPU: &[(&str, &[&str])] = &[
    ("i32 @llvm.amdgcn.readfirstlane.i32(i32 %i)", &["v_readfirstlane_b32 s"]),
    ("float @llvm.amdgcn.readfirstlane.f32(float %f)", &["v_readfirstlane_b32 s"]),
    ("half @llvm.amdgcn.readfirstlane.f16(half %h)", &["v_readfirstlane_b32 s"]),
    ("i64 @llvm.amdgcn.readlane.i64(i64 %l, i32 3)", &["v_readlane_b32 s", ", 3"]),
    ("i32 @llvm.amdgcn.writelane.i32(i32 7, i32 2, i32 %i)", &["v_writelane_b32 v"]),
    ("i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %i, i32 1, i32 15, i32 15, i1 false)", &["quad_perm:[1,0,0,0]"]),
    ("double @llvm.amdgcn.update.dpp.f64(double 0.0, double %d, i32 1, i32 15, i32 15, i1 false)", &["quad_perm:[1,0,0,0]"]),
    ("float @llvm.ldexp.f32.i32(float %f, i32 %i)", &["v_ldexp_f32"]),
    ("double @llvm.ldexp.f64.i32(double %d, i32 %i)", &["v_ldexp_f64"]),
    ("half @llvm.ldexp.f16.i32(half %h, i32 %i)", &["v_ldexp_f16"]),
    ("float @llvm.maximum.f32(float %f, float 1.0)", &["v_cmp_", "v_cndmask"]),
];

/// A kernel that calls an intrinsic with what it finds in memory, and keeps the result.
fn kernel(convention: &str, call: &str) -> String {
    let (result, rest) = call.split_once(" @").expect(call);
    let (name, arguments) = rest.split_once('(').expect(call);
    let types: Vec<String> = split(arguments.trim_end_matches(')'))
        .iter()
        .map(|part| type_of(part))
        .collect();
    let (keep, value) = match result {
        "void" => (String::new(), String::new()),
        _ => (
            format!("  store volatile {result} %r, ptr addrspace(1) %g\n"),
            "%r = ".to_owned(),
        ),
    };
    let loads: String = [
        ("f", "float"),
        ("d", "double"),
        ("h", "half"),
        ("h2", "<2 x half>"),
        ("i", "i32"),
        ("l", "i64"),
    ]
    .map(|(name, kind)| format!("  %{name} = load volatile {kind}, ptr addrspace(1) %g\n"))
    .concat();
    format!(
        "declare {result} @{name}({})\n\
         define {convention} void @k(ptr addrspace(1) %g, ptr addrspace(3) %s) {{\n{loads}  {value}call {call}\n{keep}  ret void\n}}",
        types.join(", ")
    )
}

/// The arguments of a call.
fn split(arguments: &str) -> Vec<&str> {
    arguments.split(", ").filter(|part| !part.is_empty()).collect()
}

/// An argument without its value.
fn type_of(argument: &str) -> String {
    argument.rsplit_once(' ').map_or(argument, |(kind, _)| kind).to_owned()
}

#[test]
fn nvptx_intrinsics_have_their_older_names() {
    let clangs = Clangs::new();
    for (call, words) in NVPTX {
        for clang in [16, 19] {
            assert_has(&clangs.assembly(clang, NVIDIA, &kernel("ptx_kernel", call)), words);
        }
    }
    // Newer releases take the older names for the newer ones.
    let text = source(NVIDIA, &kernel("ptx_kernel", NVPTX[0].0));
    for syntax in SYNTAXES {
        let for_16 = written(&text, 16, syntax).expect("written");
        let read = clangs.read(22, NVIDIA, &for_16.bytes).expect("reads");
        assert_has(&read, &["@llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"]);
    }
    // As it is, clang 19 takes it for a function of somebody's.
    let raw = raw_bitcode(&source(
        NVIDIA,
        "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n\
        define ptx_kernel void @k() {\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  ret void\n}",
    ));
    let raw = clangs.compile(19, NVIDIA, &raw, "-S").expect("compiles");
    assert_has(
        &String::from_utf8_lossy(&raw),
        &["call.uni", "llvm.nvvm.barrier.cta.sync.aligned.all"],
    );
}

#[test]
fn amdgpu_intrinsics_work_on_words() {
    let clangs = Clangs::new();
    for (call, words) in AMDGPU {
        for clang in [16, 19] {
            assert_has(&clangs.assembly(clang, AMD, &kernel("amdgpu_kernel", call)), words);
        }
    }
    let both = clangs.assembly(
        16,
        AMD,
        &kernel("amdgpu_kernel", "double @llvm.amdgcn.readfirstlane.f64(double %d)"),
    );
    assert_eq!(both.matches("v_readfirstlane_b32").count(), 2, "{both}");
}

#[test]
fn kernels_say_their_bounds_to_every_release() {
    let clangs = Clangs::new();
    let body = "define ptx_kernel void @k(ptr addrspace(1) %g) \"nvvm.maxntid\"=\"32,2,3\" \"nvvm.minctasm\"=\"2\" \
                \"nvvm.maxnreg\"=\"64\" {\n  store i32 1, ptr addrspace(1) %g\n  ret void\n}\n\
                define ptx_kernel void @l(ptr addrspace(1) %g) \"nvvm.reqntid\"=\"64\" {\n  ret void\n}";
    for clang in [16, 19, 22] {
        let ptx = clangs.assembly(clang, NVIDIA, body);
        assert_has(
            &ptx,
            &[
                ".entry k(",
                ".maxntid 32, 2, 3",
                ".minnctapersm 2",
                ".maxnreg 64",
                ".entry l(",
                ".reqntid 64",
            ],
        );
    }
    // What is written for an old release says it to new ones too.
    let for_15 = written(&source(NVIDIA, body), 15, IrSyntax::Bitcode).expect("written");
    let ptx = clangs.compile(22, NVIDIA, &for_15.bytes, "-S").expect("compiles");
    assert_has(
        &String::from_utf8_lossy(&ptx),
        &[".maxntid 32, 2, 3", ".minnctapersm 2", ".maxnreg 64", ".reqntid 64"],
    );
    // As it is, clang 19 does not see it.
    let raw = clangs
        .compile(19, NVIDIA, &raw_bitcode(&source(NVIDIA, body)), "-S")
        .expect("compiles");
    assert!(!String::from_utf8_lossy(&raw).contains(".maxntid"));
}

#[test]
fn clusters_and_parameters_in_constant_memory_are_annotated_where_that_is_known() {
    let cluster =
        "define ptx_kernel void @k() \"nvvm.cluster_dim\"=\"2,1,1\" \"nvvm.maxclusterrank\"=\"8\" {\n ret void\n}";
    assert_has(
        &text_for(NVIDIA, cluster, 20),
        &[
            "!\"cluster_dim_x\", i32 2}",
            "!\"cluster_dim_y\", i32 1}",
            "!\"maxclusterrank\", i32 8}",
        ],
    );
    let constant = "define ptx_kernel void @k(ptr %a, ptr byval(i32) \"nvvm.grid_constant\" %b) {\n ret void\n}";
    for oldest in [19, 21] {
        assert_has(
            &text_for(NVIDIA, constant, oldest),
            &["!\"grid_constant\", !", "= !{i32 2}"],
        );
    }
    let bound = "define ptx_kernel void @k() \"nvvm.maxclusterrank\"=\"8\" {\n ret void\n}";
    let written = written(&source(NVIDIA, bound), 17, IrSyntax::Text).expect("written");
    assert_eq!(
        written.notes,
        ["the attribute nvvm.maxclusterrank was left out, which clang 17 does not know"]
    );
}

#[test]
fn accesses_stay_in_order_on_nvptx() {
    let clangs = Clangs::new();
    let body = |operation: &str| {
        format!(
            "define ptx_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %v) {{\n  store i32 1, ptr addrspace(1) %q\n\
             {operation}\n  store i32 2, ptr addrspace(1) %q\n  ret void\n}}"
        )
    };
    for (operation, older, from_20) in [
        ("fence seq_cst", &["membar.sys"][..], &["fence.sc.sys"][..]),
        (
            "fence syncscope(\"block\") acq_rel",
            &["membar.cta"],
            &["fence.acq_rel.cta"],
        ),
        ("fence syncscope(\"device\") acquire", &["membar.gl"], &["fence"]),
        (
            "%r = load atomic i32, ptr addrspace(1) %p acquire, align 4",
            &["ld.volatile", "membar.sys"],
            &["ld.acquire"],
        ),
        (
            "store atomic i32 %v, ptr addrspace(1) %p release, align 4",
            &["membar.sys", "st.volatile"],
            &["st.release"],
        ),
        (
            "%r = cmpxchg ptr addrspace(1) %p, i32 1, i32 2 acq_rel monotonic",
            &["membar.sys", "cas.b32", "membar.sys"],
            &["acq_rel"],
        ),
        (
            "%r = cmpxchg ptr addrspace(1) %p, i32 1, i32 2 syncscope(\"block\") acquire monotonic",
            &["cas.b32", "membar.cta"],
            &["acquire"],
        ),
        (
            "%r = atomicrmw fmax ptr addrspace(1) %p, float 1.0 acq_rel",
            &["membar.sys", "cas.b32", "membar.sys"],
            &["acq_rel"],
        ),
    ] {
        let body = body(operation);
        for clang in [16, 19] {
            let ptx = clangs.assembly(clang, NVIDIA, &body);
            let mut rest = ptx.as_str();
            for words in older {
                let at = rest
                    .find(words)
                    .unwrap_or_else(|| panic!("{operation}: no {words} in this place in\n{ptx}"));
                rest = &rest[at + words.len()..];
            }
        }
        assert_has(&clangs.assembly(22, NVIDIA, &body), from_20);
    }
    // What LLVM 22 itself makes relaxed gets no barriers either.
    let add = clangs.assembly(
        16,
        NVIDIA,
        &body("%r = atomicrmw add ptr addrspace(1) %p, i32 1 acq_rel"),
    );
    assert!(!add.contains("membar"), "{add}");
}

#[test]
fn code_object_versions_are_what_the_ir_says() {
    let clangs = Clangs::new();
    let with = |version: &str| {
        source(
            AMD,
            "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n store i32 1, ptr addrspace(1) %p\n ret void\n}",
        )
        .replace("i32 400", version)
    };
    for (version, oldest, clang, words) in [
        ("i32 400", 16, 16, "amdhsa.version:\n  - 1\n  - 1"),
        ("i32 400", 16, 19, ".amdhsa_code_object_version 4"),
        ("i32 400", 16, 22, ".amdhsa_code_object_version 4"),
        ("i32 500", 17, 19, ".amdhsa_code_object_version 5"),
        ("i32 500", 17, 22, ".amdhsa_code_object_version 5"),
        ("i32 500", 22, 22, ".amdhsa_code_object_version 5"),
        ("i32 600", 19, 19, ".amdhsa_code_object_version 6"),
    ] {
        for syntax in SYNTAXES {
            let written = written(&with(version), oldest, syntax).expect(version);
            let assembly = clangs.compile(clang, AMD, &written.bytes, "-S").expect(version);
            assert_has(&String::from_utf8_lossy(&assembly), &[words]);
        }
    }
    for (version, oldest, words) in [
        (
            "i32 500",
            16,
            "code object version 5 (older ones make version 4, where kernels get other hidden arguments; compile \
                         for code object version 4), which clang 17 is the first to read",
        ),
        (
            "i32 600",
            18,
            "code object version 6 (compile for code object version 5), which clang 19 is the first to read",
        ),
    ] {
        let error = written(&with(version), oldest, IrSyntax::Bitcode)
            .expect_err(version)
            .to_string();
        assert_has(&error, &[words]);
    }
    let none = with("i32 400").replace("!llvm.module.flags", "!other");
    let error = written(&none, 19, IrSyntax::Text).expect_err("refused").to_string();
    assert_has(
        &error,
        &[
            "no code object version (every release makes its own default of it; set the module flag \
                          amdhsa_code_object_version)",
        ],
    );
}

#[test]
fn what_the_amdgpu_optimizer_found_out_is_found_out_again() {
    let body = "define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {\n %r = load i32, ptr addrspace(1) %p, !amdgpu.noclobber !0\n\
                ret void\n}\nattributes #0 = { \"amdgpu-no-queue-ptr\" \"amdgpu-flat-work-group-size\"=\"64,64\" \
                \"uniform-work-group-size\"=\"true\" }\n!0 = !{}";
    let written = written(&source(AMD, body), 19, IrSyntax::Text).expect("written");
    let text = String::from_utf8(written.bytes).expect("text");
    assert_has(
        &text,
        &["\"amdgpu-flat-work-group-size\"=\"64,64\" \"uniform-work-group-size\"=\"true\""],
    );
    assert!(!text.contains("queue-ptr") && !text.contains("noclobber"), "{text}");
    assert!(written.notes.is_empty());
}

/// A function that calls an intrinsic with zeroes, in the types that this LLVM gives it. None where there are no zeroes, or
/// more than one form.
fn call_with_zeroes(name: &str, number: usize) -> Option<String> {
    let context = inkwell::context::Context::create();
    let module = context.create_module("test");
    let intrinsic = Intrinsic::find(name).filter(|intrinsic| !intrinsic.is_overloaded())?;
    let declaration = intrinsic.get_declaration(&module, &[])?;
    // Such as `i32 (ptr, <4 x i16>)`.
    let kind = declaration.get_type().to_string();
    let (result, parameters) = kind.trim_matches('"').rsplit_once(" (")?;
    let parameters = parameters.strip_suffix(')')?;
    // Zero registers are too few, and a token is for one place.
    if result == "token" || name.contains("setmaxnreg") {
        return None;
    }
    let arguments: Option<Vec<String>> = split(parameters)
        .into_iter()
        .map(|kind| {
            let zero = match kind {
                "half" | "bfloat" | "float" | "double" => "0.0",
                "metadata" | "token" | "..." | "ppc_fp128" | "x86_fp80" | "fp128" => return None,
                _ if kind.starts_with("ptr") => "null",
                _ if kind.starts_with('<') => "zeroinitializer",
                _ => "0",
            };
            Some(format!("{kind} {zero}"))
        })
        .collect();
    Some(format!(
        "declare {result} @{name}({parameters})\ndefine void @f{number}() {{\n  call {result} @{name}({})\n  ret void\n}}\n",
        arguments?.join(", ")
    ))
}

/// Every intrinsic that the table gives to a release is one there, with the same types. Checked for those that have one form.
#[test]
fn installed_releases_have_the_intrinsics_of_the_table() {
    let clangs = Clangs::new();
    let mut checked = 0;
    for clang in [16, 19] {
        let names: Vec<String> = all_intrinsics()
            .filter(|(first, _)| *first <= clang)
            .map(|(_, name)| format!("llvm.{name}"))
            .collect();
        let calls: Vec<(&String, String)> = names
            .iter()
            .enumerate()
            .filter_map(|(number, name)| Some((name, call_with_zeroes(name, number)?)))
            .collect();
        let text: String = calls.iter().map(|(_, call)| call.as_str()).collect();
        let text = source(X86, &text);
        let read = clangs.read_unverified(clang, &text);
        for (name, _) in &calls {
            // Readers give the intrinsics that they know attributes.
            let declared = read
                .lines()
                .find(|line| line.starts_with("declare") && line.contains(&format!("@{name}(")))
                .unwrap_or_else(|| panic!("clang {clang} lost {name}"));
            assert!(
                declared.contains(" #"),
                "clang {clang} does not know {name}: {declared}"
            );
            checked += 1;
        }
        let errors = clangs.read(clang, X86, text.as_bytes()).err().unwrap_or_default();
        assert_eq!(errors, "", "clang {clang}");
    }
    assert!(checked > 1500, "{checked} intrinsics were checked");
}

/// That the test above can fail.
#[test]
fn an_intrinsic_in_a_newer_form_is_seen() {
    let clangs = Clangs::new();
    let text = source(
        X86,
        &call_with_zeroes("llvm.nvvm.barrier.cta.sync.aligned.all", 0).expect("an intrinsic"),
    );
    let read = clangs.read_unverified(19, &text);
    let declared = read
        .lines()
        .find(|line| line.starts_with("declare"))
        .expect("a declaration");
    assert!(!declared.contains(" #"), "{declared}");
    let text = source(
        X86,
        "declare i32 @llvm.abs.i32(i32)\ndefine void @f() {\n  call i32 @llvm.abs.i32(i32 0)\n  ret void\n}",
    );
    assert!(clangs.read(19, X86, text.as_bytes()).is_err());
}
