//! The oracle is the module that is compiled as a whole.

use std::sync::Arc;

use super::*;
use gpulower_testing::nvidia;

use crate::{
    compiler::{CompilerBuilder, Emit, components::PLACEHOLDER},
    report::Artifact,
    stage::{Checkpoint, StageListener},
    toolkit::{Search, Toolkit},
};

/// A listener that wants to see the optimised module sees a whole one.
struct Whole;

impl StageListener for Whole {
    fn checkpoints(&self) -> &[Checkpoint] {
        &[Checkpoint::Optimized]
    }
}

fn builder() -> CompilerBuilder {
    Compiler::builder().toolkit(Toolkit::discover(&Search::nowhere().with_cuda(nvidia::toolkit())))
}

fn compile(builder: CompilerBuilder, text: &str, emit: Emit) -> Artifact {
    compile_for("sm_90", builder, text, emit)
}

fn compile_for(target: &str, builder: CompilerBuilder, text: &str, emit: Emit) -> Artifact {
    let targets = Target::parse_list(target).expect("a target");
    let compilation = builder
        .build()
        .compile_source("k.mlir", text.as_bytes(), &targets, emit);
    compilation.expect("compiles").artifacts.remove(0)
}

fn whole(text: &str) -> Artifact {
    compile(builder().listener(Arc::new(Whole)), text, Emit::Ptx)
}

/// How many kernels were known, if it was said.
fn known(artifact: &Artifact) -> Option<&str> {
    let said = artifact.decisions.iter().find(|decision| decision.choice == "PTX");
    said.map(|decision| decision.outcome.as_str())
}

#[track_caller]
fn assert_same(one: &Artifact, other: &Artifact) {
    let text = |artifact: &Artifact| String::from_utf8(artifact.bytes.clone()).expect("text");
    let (one_text, other_text) = (text(one), text(other));
    // Nobody reads megabytes.
    let differs = one_text
        .lines()
        .zip(other_text.lines())
        .find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one_text.len(), other_text.len());
    assert_eq!(one.signatures, other.signatures);
}

/// The five kernels of `scripts/compare/five.mlir`, each so many times.
fn kernels(times: usize) -> Vec<String> {
    let five = include_str!("../../scripts/compare/five.mlir");
    let (_, five) = five.split_once("gpu.module @module_SEED {").expect("a module");
    let (five, _) = five.rsplit_once('}').expect("its end");
    let of_seed = |seed: usize| {
        let text = five.replace("SEED", &seed.to_string());
        let mut kernels: Vec<String> = text
            .split("  gpu.func ")
            .map(|rest| format!("  gpu.func {rest}"))
            .collect();
        kernels.remove(0);
        kernels
    };
    (1..=times).flat_map(of_seed).collect()
}

fn module(kernels: &[String]) -> String {
    format!("gpu.module @many {{\n{}}}\n", kernels.concat())
}

#[test]
fn kernels_that_are_compiled_apart_are_those_of_the_whole() {
    let text = module(&kernels(13));
    let whole = whole(&text);
    for threads in [1, 3] {
        assert_same(&compile(builder().threads(threads), &text, Emit::Ptx), &whole);
    }
    let cache = Cache::builder().build();
    let cold = compile(builder().cache(cache.clone()), &text, Emit::Ptx);
    assert_same(&cold, &whole);
    assert_eq!(known(&cold), None);
}

/// Without a cache, several kernels go to the PTX compiler in one call: how many depends on the threads.
#[test]
fn several_kernels_in_one_call_are_those_of_the_whole() {
    let text = module(&kernels(13));
    let machine_code = |threads| compile(builder().threads(threads), &text, Emit::Cubin).bytes;
    let whole = compile(builder().listener(Arc::new(Whole)), &text, Emit::Cubin).bytes;
    for threads in [1, 2, 3] {
        assert!(machine_code(threads) == whole, "{threads} threads");
    }
}

/// `ptxas` makes other code for `sm_80` of the second kernel where it stands with the first, whose reciprocal needs the same function.
#[test]
fn kernels_that_share_a_function_are_what_they_are_alone() {
    let pair = |seed: usize| {
        format!(
            "  gpu.func @first_{seed}(%p: memref<?xf32>, %q: memref<?xf64>) kernel {{
    %t = gpu.thread_id x
    %c = arith.constant {seed}.5 : f32
    memref.store %c, %p[%t] : memref<?xf32>
    %one = arith.constant 1.0 : f64
    %d = memref.load %q[%t] : memref<?xf64>
    %r = arith.divf %one, %d : f64
    memref.store %r, %q[%t] : memref<?xf64>
    gpu.return
  }}
  gpu.func @second_{seed}(%p: memref<?xf32>, %q: memref<?xf64>) kernel {{
    %t = gpu.thread_id x
    %i = arith.constant {seed} : index
    %c = arith.constant {seed}.25 : f32
    %one = arith.constant 1.0 : f64
    %v = memref.load %p[%t] : memref<?xf32>
    %d = memref.load %q[%t] : memref<?xf64>
    %a = math.sqrt %d : f64
    %b = arith.divf %v, %v : f32
    %e = math.sqrt %a : f64
    %r = arith.divf %one, %e : f64
    memref.store %b, %p[%t] : memref<?xf32>
    memref.store %r, %q[%t] : memref<?xf64>
    memref.store %c, %p[%i] : memref<?xf32>
    gpu.return
  }}
"
        )
    };
    for pairs in [1, 60] {
        let text = module(&(1..=pairs).map(pair).collect::<Vec<_>>());
        let bytes = |builder| compile_for("sm_80", builder, &text, Emit::Cubin).bytes;
        let apart = bytes(builder().cache(Cache::builder().build()).threads(1));
        for threads in [1, 2, 3] {
            assert!(bytes(builder().threads(threads)) == apart, "{pairs}, {threads} threads");
        }
    }
}

/// What is known of a module that was compiled before: with other kernels, in another order, under other names.
#[test]
fn one_kernel_that_changed_is_compiled_alone() {
    let cache = Cache::builder().build();
    let compile = |text: &str| compile(builder().cache(cache.clone()), text, Emit::Ptx);
    let mut kernels = kernels(2);
    compile(&module(&kernels));
    kernels[2] = kernels[2].replace("softmax_1", "renamed");
    kernels[1] = kernels[1].replace("arith.constant 0.5", "arith.constant 0.25") + "// a comment\n";
    kernels.reverse();
    let text = module(&kernels).replace("@many", "@another");
    let again = compile(&text);
    let said = known(&again).expect("most are known");
    assert_eq!(said, "9 of 10 kernels taken from the cache");
    assert_same(&again, &whole(&text));
}

/// Entries are lost one by one: what depends on one that is left is made anew.
#[test]
fn any_entry_may_be_missing() {
    let mut kernels = amd_kernels(3);
    let text = module(&kernels);
    kernels.reverse();
    let other = module(&kernels);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = || Cache::builder().directory(folder.path()).memory_bytes(0).build();
    let compile = |emit: Emit, cache: Option<Cache>, text: &str| {
        let builder = cache.into_iter().fold(builder(), CompilerBuilder::cache);
        compile(builder, text, emit).bytes
    };
    let emits = [Emit::Ptx, Emit::Cubin];
    let expected = emits.map(|emit| compile(emit, None, &other));
    compile(Emit::Cubin, Some(cache()), &text);
    let paths = |cache: Cache| {
        let keys = cache.keys().expect("keys").into_iter();
        keys.filter_map(|key| cache.path(&key)).collect::<Vec<_>>()
    };
    let entries: Vec<_> = paths(cache())
        .into_iter()
        .map(|path| (std::fs::read(&path).expect("an entry"), path))
        .collect();
    // What is known of texts, heads and functions, machine code, the module and the input.
    assert_eq!(entries.len(), 3 * 4 + 2);
    for (_, missing) in &entries {
        for (emit, expected) in emits.into_iter().zip(&expected) {
            for path in paths(cache()) {
                std::fs::remove_file(path).expect("removed");
            }
            for (bytes, path) in entries.iter().filter(|(_, path)| path != missing) {
                std::fs::write(path, bytes).expect("written");
            }
            assert!(&compile(emit, Some(cache()), &other) == expected, "{emit:?}");
        }
    }
}

#[test]
fn copies_under_other_names_are_compiled_once() {
    let five = kernels(1);
    let mut copies = five.clone();
    for copy in 2..6 {
        copies.extend(five.iter().map(|kernel| kernel.replace("_1(", &format!("_{copy}("))));
    }
    let text = module(&copies);
    assert_same(&compile(builder(), &text, Emit::Ptx), &whole(&text));
    let cache = Cache::builder().build();
    compile(builder().cache(cache.clone()), &text, Emit::Cubin);
    // PTX and machine code of five kernels, the module and the input.
    assert_eq!(cache.statistics().stored, 12);
    let uncached = compile(builder(), &text, Emit::Cubin);
    let cubin = compile(builder().cache(cache), &(text + "// comment"), Emit::Cubin);
    assert!(cubin.bytes == uncached.bytes);
    assert_eq!(cubin.images[0].kernels.len(), 25);
}

#[test]
fn the_code_of_a_kernel_is_the_same_alone() {
    for kernel in kernels(1) {
        let alone = module(std::slice::from_ref(&kernel));
        let (_, functions) = cut_ptx(std::str::from_utf8(&whole(&alone).bytes).expect("text")).expect("one function");
        let all = whole(&module(&kernels(1)));
        let (_, among) = cut_ptx(std::str::from_utf8(&all.bytes).expect("text")).expect("five functions");
        assert!(among.contains(&functions[0]), "{}", functions[0].name);
    }
}

#[test]
fn functions_stay_with_the_kernels_that_call_them() {
    let mut text = kernels(1);
    text.push(
        "func.func private @helper(%x: f32) -> f32 { %r = math.exp %x : f32 func.return %r : f32 }
         gpu.func @one(%p: memref<4xf32>, %x: f32) kernel { %c = arith.constant 1 : index
           %r = func.call @helper(%x) : (f32) -> f32
           memref.store %r, %p[%c] : memref<4xf32> gpu.return }\n"
            .to_owned(),
    );
    text.push(kernels(2).remove(5));
    let text = module(&text);
    let cache = Cache::builder().build();
    assert_same(
        &compile(builder().cache(cache.clone()), &text, Emit::Ptx),
        &whole(&text),
    );
    let again = text.replace("@many", "@another") + "// comment";
    assert_same(&compile(builder().cache(cache), &again, Emit::Ptx), &whole(&text));
}

/// Each kernel has dynamic shared memory of its own, and all of it has one name.
#[test]
fn kernels_with_dynamic_shared_memory_are_apart() {
    let memory = "memref<?xi8, #gpu.address_space<workgroup>>";
    let kernel = |number: usize| {
        let tile = format!("memref<{number}xf32, #gpu.address_space<workgroup>>");
        format!(
            "  gpu.func @reverse_{number}(%x: memref<?xf32>) kernel {{
    %t = gpu.thread_id x
    %zero = arith.constant 0 : index
    %last = arith.constant {} : index
    %bytes = gpu.dynamic_shared_memory : {memory}
    %tile = memref.view %bytes[%zero][] : {memory} to {tile}
    %mine = memref.load %x[%t] : memref<?xf32>
    memref.store %mine, %tile[%t] : {tile}
    gpu.barrier
    %other = arith.subi %last, %t : index
    %theirs = memref.load %tile[%other] : {tile}
    memref.store %theirs, %x[%t] : memref<?xf32>
    gpu.return
  }}\n",
            number - 1
        )
    };
    let others = kernels(1);
    let mut kernels: Vec<String> = vec![kernel(32), kernel(64), kernel(96)];
    let (text, cache) = (module(&kernels), Cache::builder().build());
    let ptx = |text: &str| compile(builder().cache(cache.clone()), text, Emit::Ptx);
    assert_same(&ptx(&text), &whole(&text));
    kernels.push(kernel(128));
    let text = module(&kernels);
    let again = ptx(&text);
    assert_eq!(known(&again), Some("3 of 4 kernels taken from the cache"));
    assert_same(&again, &whole(&text));
    // A variable of a kernel and dynamic shared memory: which comes first is not known.
    kernels.push(
        kernel(256)
            .replace(
                "reverse_256(%x: memref<?xf32>)",
                "own(%x: memref<?xf32>) workgroup(%own: memref<256xf32, #gpu.address_space<workgroup>>)",
            )
            .replace("%tile[%t]", "%own[%t]")
            .replace("%tile[%other]", "%own[%other]"),
    );
    let text = module(&kernels);
    assert_same(&ptx(&text), &whole(&text));
    // For ptxas a kernel of the same module has dynamic shared memory, whether it uses it or not.
    kernels[0].clone_from(&others[0]);
    let text = module(&kernels[..3]);
    let cubin = |builder: CompilerBuilder| compile(builder, &text, Emit::Binary).bytes;
    assert_eq!(cubin(builder().cache(cache.clone())), cubin(builder()));
}

/// Errors and warnings name the kernels as they are called.
#[test]
fn the_whole_reports() {
    let mut all = kernels(1);
    all.push("  gpu.func @wrong() kernel { \"gpu.no_such_thing\"() : () -> () gpu.return }\n".to_owned());
    let compile = |builder: CompilerBuilder| {
        let targets = Target::parse_list("sm_90").expect("a target");
        let result = builder
            .build()
            .compile_source("k.mlir", module(&all).as_bytes(), &targets, Emit::Ptx);
        result.expect_err("refused").to_string()
    };
    let expected = compile(builder().listener(Arc::new(Whole)));
    assert_eq!(compile(builder().cache(Cache::builder().build())), expected);
    assert!(!expected.contains(PLACEHOLDER), "{expected}");
}

/// The key of machine code is known with the PTX of a kernel: what is known is joined without reading any.
#[test]
fn machine_code_of_a_nameless_kernel_has_a_key() {
    let header = "//\n.version 8.0\n.target sm_90\n.address_size 64\n\n";
    let piece = |number: usize| {
        let name = numbered(number);
        let text = format!(
            "{header}\t// .globl\t{name}\n\n.visible .entry {name}(\n\t.param .u64 {name}_param_0\n)\n{{\n$L__BB0_1:\n\tret;\n}}\n"
        );
        let (header, functions) = cut_ptx(&text).expect("one function");
        Piece::new(&header, functions, Vec::new(), Some(&name)).renamed(&name, NAMELESS)
    };
    let [one, other] = [piece(0), piece(17)].map(|piece| piece.alone.expect("it can be compiled on its own"));
    assert_eq!(one.content, other.content);
    assert_eq!(one.kernel.as_deref(), Some(NAMELESS));
}

/// Kernels without functions of a library that are not always inlined: those belong to all of them.
fn amd_kernels(count: usize) -> Vec<String> {
    let kernel = |number: usize| {
        let tile = "#gpu.address_space<workgroup>";
        let shared = format!(
            "memref.store %r, %tile[%t] : memref<64xf32, {tile}> gpu.barrier
             %s = memref.load %tile[%c] : memref<64xf32, {tile}>"
        );
        let (memory, body) = match number % 3 {
            0 => (format!("workgroup(%tile: memref<64xf32, {tile}>)"), shared),
            1 => (String::new(), "%s = arith.divf %r, %x : f32".to_owned()),
            _ => (String::new(), "%s = math.sqrt %r : f32".to_owned()),
        };
        format!(
            "  gpu.func @k{number}(%p: memref<?xf32>, %x: f32) {memory} kernel {{
             %t = gpu.thread_id x %c = arith.constant {number} : index %f = arith.constant {number}.5 : f32
             %v = memref.load %p[%t] : memref<?xf32> %r = arith.mulf %v, %f : f32
             {body} memref.store %s, %p[%t] : memref<?xf32> gpu.return }}\n"
        )
    };
    (1..=count).map(kernel).collect()
}

/// The oracle is LLVM's object of the whole, and what lld makes of it.
#[test]
fn objects_of_kernels_are_joined_to_that_of_the_whole() {
    for chip in ["gfx90a", "gfx1100"] {
        let compile = |builder: CompilerBuilder, text: &str, emit| {
            let targets = Target::parse_list(chip).expect("a target");
            let compilation = builder
                .build()
                .compile_source("k.mlir", text.as_bytes(), &targets, emit);
            compilation.expect("compiles").artifacts.remove(0)
        };
        let mut kernels = amd_kernels(12);
        kernels.push(kernels[4].replace("@k5(", "@copy("));
        let text = module(&kernels);
        for emit in [Emit::Object, Emit::Binary] {
            let whole = compile(builder().listener(Arc::new(Whole)), &text, emit);
            for threads in [1, 3] {
                let apart = compile(builder().threads(threads), &text, emit);
                assert!(apart.bytes == whole.bytes, "{chip}, {threads} threads");
                assert_eq!(
                    (apart.signatures, &apart.images[0].kernels),
                    (whole.signatures.clone(), &whole.images[0].kernels)
                );
            }
        }
        let cache = Cache::builder().build();
        compile(builder().cache(cache.clone()), &text, Emit::Binary);
        kernels[2] = kernels[2].replace("3.5 : f32", "4.5 : f32");
        kernels.reverse();
        let changed = module(&kernels);
        let again = compile(builder().cache(cache), &changed, Emit::Binary);
        assert!(again.bytes == compile(builder().listener(Arc::new(Whole)), &changed, Emit::Binary).bytes);
        let said = again.decisions.iter().find(|decision| decision.choice == "object");
        assert_eq!(
            said.expect("most are known").outcome,
            "12 of 13 kernels taken from the cache"
        );
    }
}
