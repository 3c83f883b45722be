use super::*;
use crate::{
    compiler::{context, parse},
    device::lower::name_of,
};
use melior::ir::{
    BlockLike, Module,
    operation::{OperationLike, OperationPrintingFlags},
};

fn found(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut scanner = Scanner {
        text: text.as_bytes(),
        at: 0,
    };
    let mut all = Vec::new();
    while let Some((_, name)) = scanner.next_operation() {
        all.push((name, scanner.properties().into_iter().map(|(name, _)| name).collect()));
    }
    all
}

#[test]
fn names_of_properties_are_found_behind_any_value() {
    let text = r#"// "a.b"() <{no}>
            "a.b"(%0, %1)[^bb1, ^bb2] <{map = affine_map<(d0) -> (d0)>, set = affine_set<(d0) : (d0 >= 0)>, "q w" = "}>, x",
              unit, type = (memref<?xf32>) -> (), list = [#x<1>, {y = 2}]}> ({ "c.d"() <{z}> : () -> () }) : () -> ()
            "e.f"() {"g" = "h"} : () -> ()
            %2 = "i.j"() <{}> : () -> i32"#;
    assert_eq!(
        found(text),
        [
            ("a.b", vec!["map", "set", "q w", "unit", "type", "list"]),
            ("c.d", vec!["z"]),
            ("i.j", vec![]),
        ]
    );
    // What is cut off ends.
    for end in 0..text.len() {
        found(&text[..end]);
    }
}

fn first_function<'c>(module: &Module<'c>) -> String {
    let gpu_module = module.body().first_operation().expect("an operation");
    use melior::ir::RegionLike;
    let block = gpu_module.region(0).expect("a region").first_block().expect("a block");
    let function = block.first_operation().expect("a function");
    assert_eq!(name_of(&function), "gpu.func");
    function.to_string()
}

#[test]
fn kernels_of_mlir_23_are_kernels() {
    let context = context();
    // As MLIR 23.0.0git writes it.
    let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = (memref<?xi32>) -> (), kernel, known_block_size = array<i32: 256, 1, 1>, workgroup_attributions = 1 : i64}> ({
    ^bb0(%arg0: memref<?xi32>, %arg1: memref<256xi32, #gpu.address_space<workgroup>>):
      "gpu.return"() : () -> ()
    }) {sym_name = "k", workgroup_attrib_attrs = []} : () -> ()
  }) : () -> ()
}) : () -> ()"#;
    let text = String::from_utf8_lossy(text).replace(", workgroup_attrib_attrs = []", "");
    let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
    let function = first_function(&module);
    assert!(
        function.contains(" kernel ") && function.contains("workgroup(%"),
        "{function}"
    );
    assert!(function.contains("known_block_size"), "{function}");
    // Where there is none, the number is left out, and MLIR's lowering of a reduction would crash.
    let text = text
        .replace(", workgroup_attributions = 1 : i64", "")
        .replace(", %arg1: memref<256xi32, #gpu.address_space<workgroup>>", "");
    let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
    let flags = OperationPrintingFlags::new().print_generic_operation_form();
    let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
    assert!(generic.contains("workgroup_attributions = 0 : i64"), "{generic}");
}

#[test]
fn what_would_be_lost_is_refused_with_its_place() {
    let context = context();
    let text = "\"builtin.module\"() ({\n  \"gpu.module\"() <{sym_name = \"m\", color = 3 : i32}> ({}) : () -> ()\n}) : () -> ()";
    let error = parse(&context, "k.mlir", text.as_bytes())
        .map(drop)
        .expect_err("is refused");
    let place = error.location().map(ToString::to_string);
    assert_eq!(place.as_deref(), Some("k.mlir:2:3"));
    let text = error.to_string();
    assert!(
        text.starts_with("gpu.module has no property 'color' in MLIR 22"),
        "{text}"
    );
}

/// What this release writes is read whatever it says: properties that are attributes, and others.
#[test]
fn generic_text_of_this_release_stays_as_it_is() {
    let context = context();
    let text = "gpu.module @m { llvm.func @k(%p: !llvm.ptr, %i: i64) -> i64 attributes {gpu.kernel, nvvm.kernel} {
            %q = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
            %v = llvm.load %q : !llvm.ptr -> i64
            %w = llvm.mul %v, %i overflow<nsw> : i64
            %x = llvm.call @k(%q, %w) : (!llvm.ptr, i64) -> i64
            llvm.return %x : i64 } }";
    let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
    let flags = OperationPrintingFlags::new().print_generic_operation_form();
    let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
    assert!(
        generic.contains("overflowFlags") && generic.contains("noWrapFlags"),
        "{generic}"
    );
    assert_eq!(bring_over(&context, generic.as_bytes()), Ok(None));
    // MLIR 19 does not say which operands of a call are arguments.
    let older = generic.replace(
        "op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>, ",
        "",
    );
    let older = older.replace(
        ", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>",
        "",
    );
    assert!(!older.contains("op_bundle_sizes"), "{older}");
    let module = parse(&context, "k.mlir", older.as_bytes()).expect("parses");
    let again = module.as_operation().to_string();
    assert!(
        again.contains("llvm.call @k(%2") || again.contains("llvm.call @k(%0"),
        "{again}"
    );
}

/// The operations of a module in custom form, as it is read.
fn read(text: &str) -> String {
    let context = context();
    let module = parse(&context, "k.mlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    module.as_operation().to_string()
}

/// Read as they stand, these would be other operations: `maxs` as `maximumf`, `mins` as `maxu`, `assign` as `andi`.
#[test]
fn kinds_of_atomic_operations_have_other_numbers_before_mlir_22() {
    let older = [
        "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori",
        "andi", "maxnumf", "minnumf",
    ];
    for (number, kind) in older.iter().enumerate() {
        let is_float = kind.ends_with('f');
        let value = if is_float { "f32" } else { "i32" };
        let text = |end: &str| {
            format!(
                    "\"builtin.module\"() ({{ \"gpu.module\"() <{{sym_name = \"m\"}}> ({{
                    \"gpu.func\"() <{{function_type = (memref<{value}>, {value}) -> ()}}> ({{
                    ^bb0(%p: memref<{value}>, %v: {value}):
                      %0 = \"memref.atomic_rmw\"(%v, %p) <{{kind = {number} : i64}}> : ({value}, memref<{value}>) -> {value}
                      \"gpu.return\"() : () -> ()
                    }}) {{gpu.kernel, sym_name = \"k\", workgroup_attributions = 0 : i64}} : () -> ()
                    {end}}}) : () -> () }}) : () -> ()"
                )
        };
        let module = read(&text("\"gpu.module_end\"() : () -> ()\n"));
        assert!(
            module.contains(&format!("memref.atomic_rmw {kind} ")),
            "{kind}: {module}"
        );
    }
}

#[test]
fn what_lowered_modules_of_other_releases_say() {
    let kernel =
        |body: &str| format!("gpu.module @m {{ llvm.func @k(%p: !llvm.ptr<3>, %i: i32) {{\n{body}\nllvm.return }} }}");
    // MLIR 19.
    let module = read(&kernel("%0 = rocdl.workitem.id.x {range = array<i32: 0, 256>} : i32"));
    assert!(module.contains("rocdl.workitem.id.x : i32"), "{module}");
    let module = read(&kernel(
        "%0 = \"rocdl.workgroup.dim.x\"() {range = array<i32: 1, 255>} : () -> i32",
    ));
    assert!(module.contains("rocdl.workgroup.dim.x : i32"), "{module}");
    for attributes in [
        "range = array<i32: -1, 256>, tag",
        "a.b = {c}, range = array<i32: 0, 256>",
        "a, range = array<i32: 0, 1>, tag",
    ] {
        let module = read(&kernel(&format!(
            "%0 = rocdl.workitem.id.x {{{attributes}}} : i32\nllvm.store %0, %p : i32, !llvm.ptr<3>\n\
                 %1 = rocdl.workitem.id.y {{range = array<i32: 0, 256>}} : i32"
        )));
        assert!(module.contains("llvm.store") && !module.contains("range"), "{module}");
        assert_eq!(
            module.matches("tag").count(),
            attributes.matches("tag").count(),
            "{module}"
        );
        assert_eq!(
            module.matches("a.b = {c}").count(),
            attributes.matches("a.b").count(),
            "{module}"
        );
    }
    let load = "%0 = nvvm.ldmatrix %p {layout = #nvvm.mma_layout<row>, num = 1 : i32} : (!llvm.ptr<3>) -> i32";
    let module = read(&kernel(load));
    assert!(
        module.contains("eltType = #nvvm.ld_st_matrix_elt_type<b16>") && module.contains("<m = 8, n = 8>"),
        "{module}"
    );
    let call = "%0 = \"llvm.call_intrinsic\"(%i) <{fastmathFlags = #llvm.fastmath<none>, intrin = \"llvm.ctpop.i32\"}> : \
                    (i32) -> i32";
    assert!(read(&kernel(call)).contains("llvm.call_intrinsic \"llvm.ctpop.i32\"(%"));
    for (operands, sizes, types, read_as) in [
        ("", "0, 0", "", "nvvm.barrier\n"),
        ("%i", "1, 0", "i32", "nvvm.barrier id = %arg1\n"),
        (
            "%i, %i",
            "1, 1",
            "i32, i32",
            "nvvm.barrier id = %arg1 number_of_threads = %arg1\n",
        ),
    ] {
        let text =
            format!("\"nvvm.barrier\"({operands}) <{{operandSegmentSizes = array<i32: {sizes}>}}> : ({types}) -> ()");
        let module = read(&kernel(&text));
        assert!(module.contains(read_as), "{module}");
    }
    // MLIR 23, with locations, which it does not read itself.
    for (words, read_as) in [
        ("nvvm.barrier loc(#loc3)", "nvvm.barrier\n"),
        ("nvvm.barrier id = %i loc(#loc3)", "nvvm.barrier id = %arg1\n"),
        (
            "nvvm.barrier id = %i number_of_threads = %i loc(\"a\":1:2)",
            "nvvm.barrier id = %arg1 number_of_threads = %arg1\n",
        ),
        ("nvvm.barrier {x.y} loc(\"a\":1:1)", "nvvm.barrier {x.y}\n"),
        (
            "nvvm.barrier id = %i {a = \"}\", b = {c}} loc(#loc3)",
            "nvvm.barrier id = %arg1 {a = \"}\", b = {c}}\n",
        ),
    ] {
        let module = read(&format!("{}\n#loc3 = loc(\"b\":1:2)\n", kernel(words)));
        assert!(module.contains(read_as), "{module}");
    }
}

/// What MLIR 19 to 21 write in custom form, and what MLIR 22 writes of it.
#[test]
fn words_of_custom_form_that_changed() {
    let vector = "!llvm.vec<4 x ptr<1>>";
    for (body, read_as) in [
        (
            "%v = vector.splat %f : vector<4xf32>",
            vec!["vector.broadcast %arg0 : f32 to vector<4xf32>"],
        ),
        (
            "%v = vector.splat %f : vector<4xf32> loc(\"a\":1:2)\n%e = vector.extractelement %v[%i : i32] {a.b} : vector<4xf32>",
            vec![
                "arith.index_castui %arg1 : i32 to index",
                "vector.extract %0[%1] : f32 from vector<4xf32>",
            ],
        ),
        (
            "%v = vector.splat %f : vector<f32>\n%w = vector.insertelement %f, %v[] : vector<f32>\n\
                 %e = vector.extractelement %w[] : vector<f32>",
            vec![
                "vector.insert %arg0, %0 [] : f32 into vector<f32>",
                "vector.extract %1[] : f32 from vector<f32>",
            ],
        ),
        (
            "gpu.printf \"a, \\\" %b %f\" %f, %i : f32, i32\ngpu.printf \"gpu.printf %f\"",
            vec![
                "gpu.printf \"a, \\22 %b %f\", %arg0, %arg1 : f32, i32",
                "gpu.printf \"gpu.printf %f\"\n",
            ],
        ),
        (
            "gpu.printf \"%f\" {a.b = \"}\"} %f : f32",
            vec!["gpu.printf \"%f\" {a.b = \"}\"}, %arg0 : f32"],
        ),
        ("gpu.printf \"%f\"%f : f32", vec!["gpu.printf \"%f\", %arg0 : f32"]),
        (
            "%s = llvm.alloca %i x i32 : (i32) -> !llvm.ptr\nllvm.intr.lifetime.start 4, %s : !llvm.ptr\n\
                 llvm.intr.lifetime.end -1, %s : !llvm.ptr",
            vec!["llvm.intr.lifetime.start %0 : ", "llvm.intr.lifetime.end %0 : "],
        ),
        (
            "%s = llvm.alloca %i x i32 : (i32) -> !llvm.ptr\n\
                 \"llvm.intr.lifetime.start\"(%s) <{size = 4 : i64}> : (!llvm.ptr) -> ()",
            vec!["llvm.intr.lifetime.start %0 : "],
        ),
        // LLVM 22 has them for whole allocations alone.
        (
            "llvm.intr.lifetime.start 4, %q : !llvm.ptr",
            vec!["kernel {\n      gpu.return"],
        ),
        (
            "nvvm.mbarrier.init.shared %p, %i : !llvm.ptr<3>, i32\n%t = nvvm.mbarrier.arrive.shared %p : !llvm.ptr<3> -> i64",
            vec!["nvvm.mbarrier.init %arg3, %arg1 : ", "nvvm.mbarrier.arrive %arg3 : "],
        ),
        (
            "\"nvvm.mbarrier.inval.shared\"(%p) : (!llvm.ptr<3>) -> ()",
            vec!["nvvm.mbarrier.inval %arg3 : "],
        ),
        (
            "nvvm.cp.async.mbarrier.arrive.shared %p {noinc = true} : !llvm.ptr<3>",
            vec!["nvvm.cp.async.mbarrier.arrive %arg3 {noinc = true} : "],
        ),
        (
            "%b = arith.constant true\n%v = nvvm.vote.ballot.sync %i, %b : i32",
            vec!["nvvm.vote.sync  ballot %arg1, %true -> i32"],
        ),
        (
            "%b = arith.constant true\n%v = \"nvvm.vote.ballot.sync\"(%i, %b) : (i32, i1) -> i32",
            vec!["nvvm.vote.sync  ballot %arg1, %true -> i32"],
        ),
        (
            "nvvm.prefetch.tensormap %q : !llvm.ptr",
            vec!["nvvm.prefetch tensormap, %arg2 : "],
        ),
        (
            "\"nvvm.prefetch.tensormap\"(%q) : (!llvm.ptr) -> ()",
            vec!["nvvm.prefetch tensormap, %arg2 : "],
        ),
        (
            "rocdl.waitcnt 7\n\"rocdl.waitcnt\"() {bitfield = 8 : i32} : () -> ()",
            vec!["rocdl.s.waitcnt 7\n", "rocdl.s.waitcnt 8\n"],
        ),
        (
            &format!(
                "%l = llvm.load %q : !llvm.ptr -> {vector}\n%m = llvm.load %q : !llvm.ptr -> !llvm.vec<? x 2 x i32>"
            ),
            vec!["-> vector<4x!llvm.ptr<1>>\n", "-> vector<[2]xi32>\n"],
        ),
        (
            "%l = llvm.load %q : !llvm.ptr -> !llvm.struct<(vec<2 x ptr>, array<4 x vec<? x 2 x ptr<3>>>, i32, vec<2 x i8>)>",
            vec!["-> !llvm.struct<(vector<2x!llvm.ptr>, array<4 x vector<[2]x!llvm.ptr<3>>>, i32, vector<2xi8>)>\n"],
        ),
        (
            "%a = vector.splat %f : vector<1xf32>\n%c = vector.splat %f : vector<16xf32>\n\
                 %d = amdgpu.mfma %f * %f + %c { abid = 0 : i32, k = 2 : i32, m = 32 : i32, n = 32 : i32 } blgp = none : f32, f32, vector<16xf32>",
            vec!["amdgpu.mfma 32x32x2 %arg0 * %arg0 + %1 blgp ="],
        ),
        (
            "%h = arith.constant dense<0.0> : vector<16xf16>\n%c = vector.splat %f : vector<8xf32>\n\
                 %d = amdgpu.wmma %h * %h + %c : vector<16xf16>, vector<16xf16>, vector<8xf32>\n\
                 %e = \"amdgpu.wmma\"(%h, %h, %c) : (vector<16xf16>, vector<16xf16>, vector<8xf32>) -> vector<8xf32>",
            vec![
                "amdgpu.wmma 16x16x16 %cst * %cst + %0",
                "amdgpu.wmma 16x16x16 %cst * %cst + %0",
            ],
        ),
    ] {
        let text = format!(
            "gpu.module @m {{ gpu.func @k(%f: f32, %i: i32, %q: !llvm.ptr, %p: !llvm.ptr<3>) kernel {{\n{body}\ngpu.return }} }}"
        );
        let module = read(&text);
        for words in read_as {
            assert!(module.contains(words), "{words}: {module}");
        }
    }
    let effects = "#llvm.memory_effects<other = none, argMem = readwrite, inaccessibleMem = read>";
    let module = read(&format!("llvm.func @f() attributes {{memory_effects = {effects}}}"));
    assert!(
        module.contains("inaccessibleMem = read, errnoMem = none, targetMem0 = read, targetMem1 = read>"),
        "{module}"
    );
}

/// An operation that no release wrote so is refused, and not passed over.
#[test]
fn removed_operations_in_another_form_are_refused() {
    let context = context();
    for words in [
        "%v = \"vector.splat\"(%f, %f) : (f32, f32) -> vector<4xf32>",
        "%v = \"vector.extractelement\"(%f) : (f32) -> f32",
        "%v = vector.splat %f : vector<2xf32>\n%e = \"vector.extractelement\"(%v) : (vector<2xf32>) -> f32",
    ] {
        let text = format!("gpu.module @m {{ gpu.func @k(%f: f32) kernel {{ {words}\n gpu.return }} }}");
        let error = parse(&context, "k.mlir", text.as_bytes())
            .map(drop)
            .expect_err("is refused");
        assert!(error.to_string().contains("vector."), "{error}");
    }
}

#[test]
fn what_is_no_word_of_another_release_stays() {
    for text in [
        "\"a.b\"() {s = \"rocdl.x {range = array<i32: 0, 1>}\"} : () -> ()",
        "// rocdl.x {range = array<i32: 0, 1>}\n",
        "\"a.b\"() {range = array<i32: 0, 1>} : () -> ()",
        "rocdl.x {range = array<i32: 0, %0>}",
        "rocdl.x {range = array<i32: 0>}",
        "rocdl.x {range = array<i32: 0, 1> : i32}",
        "rocdl.x {range = array<i32: 0, 1, 2>}",
        "rocdl.x {tag} : i32 [a, range = array<i32: 0, 1>]",
        "rocdl.x {a = {b, range = array<i32: 0, 1>}}",
        "nvvm.barrier id = %0\n\"x.y\"() : () -> () loc(unknown)",
        "nvvm.barrier {x.y}\n\"x.y\"() : () -> () loc(unknown)",
        "%0 = nvvm.barrier #nvvm.reduction<and> %i -> i32 loc(unknown)",
        "gpu.printf \"a\", %0 : i32",
        "gpu.printf \"a\"\n}",
        "gpu.printf \"a\"\n%c = gpu.thread_id x",
        "gpu.func @nvvm.mbarrier.x.shared (%a: i32)",
        "%nvvm.mbarrier.a.shared = a.b",
        "{rocdl.waitcnt = 1}",
        "// gpu.printf \"a\" %0",
        "my.gpu.printf \"a\" %0",
        "nvvm.mbarrier.init %0, %1 : !llvm.ptr<3>, i32",
        "#llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>",
        "amdgpu.mfma 32x32x2 %0 * %0 + %1 {m = 1 : i32, n = 1 : i32, k = 1 : i32}",
        "amdgpu.wmma %0 * %0 + %1 : vector<16xi4>, vector<16xi4>, vector<8xi32>",
        "!llvm.vec<4 x",
    ] {
        assert_eq!(respell(text.as_bytes()), None, "{text}");
    }
}

/// A barrier's attributes are passed over once.
#[test]
fn respelling_takes_linear_time() {
    for part in [
        "nvvm.barrier {",
        "nvvm.barrier id = ",
        "rocdl.x {range = array<i32: 0, ",
        "{",
        "a, range = array<i32: 0, 1>",
        "gpu.printf \"",
        "llvm.intr.lifetime.",
        "nvvm.mbarrier.",
        "nvvm.vote.ballot.sync ",
        "!llvm.vec<",
        "amdgpu.mfma %",
        "#llvm.memory_effects<",
    ] {
        let text = format!("rocdl.{} {{{}loc(", "x".repeat(1 << 20), part.repeat(1 << 17));
        respell(text.as_bytes());
    }
}

/// The kinds of custom text are words, whatever ends the module.
#[test]
fn kinds_in_custom_text_stay() {
    let module = read(
            "gpu.module @m { gpu.func @k(%p: memref<4xi32>, %v: i32) kernel {
               %c = arith.constant 0 : index
               %0 = memref.atomic_rmw andi %v, %p[%c] : (i32, memref<4xi32>) -> i32
               %1 = \"memref.atomic_rmw\"(%v, %p, %c) {kind = 2 : i64} : (i32, memref<4xi32>, index) -> i32 loc(\"a\":1:1)
               %2 = affine.parallel (%i) = (0) to (4) reduce (\"muli\") -> (i32) { affine.yield %v : i32 }
               gpu.return }
             \"gpu.module_end\"() : () -> () }",
        );
    for words in ["atomic_rmw andi ", "atomic_rmw assign ", "reduce (\"muli\")"] {
        assert!(module.contains(words), "{words}: {module}");
    }
}

#[test]
fn vectors_of_other_releases() {
    let function = |body: &str| {
        format!(
            "gpu.module @m {{ gpu.func @k(%v: vector<2x4xf32>, %a: vector<2xf32>, %b: vector<2xf32>, %f: f32) {{\n{body}\ngpu.return }} }}"
        )
    };
    // MLIR 19.
    let module = read(&function(
        "%0 = \"vector.multi_reduction\"(%v, %a) <{kind = #vector.kind<add>, reduction_dims = [1]}> : \
             (vector<2x4xf32>, vector<2xf32>) -> vector<2xf32>\n%1 = arith.addf %0, %a : vector<2xf32>",
    ));
    assert!(
        module.contains("vector.multi_reduction <add>, %arg0, %arg1 [1]"),
        "{module}"
    );
    // What is no list of numbers is left for MLIR to refuse.
    for dimensions in ["[unit]", "[\"x\"]", "[1 : i32, 0]", "[1 : si64]"] {
        let text = function(&format!(
            "%0 = \"vector.multi_reduction\"(%v, %a) <{{kind = #vector.kind<add>, reduction_dims = {dimensions}}}> : \
                 (vector<2x4xf32>, vector<2xf32>) -> vector<2xf32>"
        ));
        let context = context();
        let error = parse(&context, "k.mlir", text.as_bytes())
            .map(drop)
            .expect_err("is refused");
        assert!(error.to_string().contains("reduction_dims"), "{error}");
    }
    // MLIR 23.
    let contract = |flags: &str| {
        function(&format!(
            "%0 = \"vector.contract\"(%a, %b, %f) <{{fastmath = #arith.fastmath<{flags}>, indexing_maps = \
                 [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], \
                 iterator_types = [#vector.iterator_type<reduction>], kind = #vector.kind<add>}}> : \
                 (vector<2xf32>, vector<2xf32>, f32) -> f32"
        ))
    };
    assert!(read(&contract("none")).contains("vector.contract"));
    let context = context();
    let error = parse(&context, "k.mlir", contract("fast").as_bytes())
        .map(drop)
        .expect_err("is lost");
    assert!(error.to_string().contains("no property 'fastmath'"), "{error}");
}

#[test]
fn the_end_of_a_module_of_mlir_19_is_passed_over() {
    let context = context();
    let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = () -> ()}> ({
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
    "gpu.module_end"() : () -> ()
  }) : () -> ()
}) : () -> ()"#;
    let module = parse(&context, "k.mlir", text).expect("parses");
    assert!(first_function(&module).contains(" kernel"));
}
