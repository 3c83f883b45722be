//! The oracle is the text that is not divided, since it ends with an alias.

use std::path::Path;

use melior::ir::{RegionLike, operation::OperationLike};

use super::*;
use crate::{
    Compiler,
    compiler::{
        Emit, Targets,
        input::context,
        pool::{Pool, Threads},
        requests::symbol_name,
    },
    report::Artifact,
    target::Target,
};

fn modules(text: &str) -> Result<Vec<Vec<Found<'_>>>, InDoubt> {
    super::modules(text, Helpers::None)
}

fn targets() -> Targets {
    Targets::List(Target::parse_list("sm_90").expect("a target"))
}

/// What comes of a text, errors included; of artifacts what does not depend on the cache.
fn compile(compiler: &Compiler, text: &str) -> Result<Vec<Artifact>, String> {
    let compilation = compiler.compile_source("k.mlir", text.as_bytes(), targets(), Emit::Ptx);
    let artifacts = compilation.map(|compilation| compilation.artifacts);
    artifacts.map_err(|failure| failure.to_string())
}

fn undivided(text: &str) -> String {
    format!("{text}\n#at_the_end = 0 : i32\n")
}

#[track_caller]
fn assert_as_undivided(compiler: &Compiler, text: &str) {
    let ordinary = Compiler::builder().build();
    assert!(modules(&undivided(text)).is_err());
    let seen = |result: Result<Vec<Artifact>, String>| {
        result.map(|artifacts| {
            let seen = |artifact: Artifact| {
                let text = String::from_utf8(artifact.bytes).expect("PTX");
                let warnings: Vec<String> = artifact.warnings.iter().map(|warning| format!("{warning:?}")).collect();
                (artifact.module, text, artifact.signatures, warnings)
            };
            artifacts.into_iter().map(seen).collect::<Vec<_>>()
        })
    };
    assert_eq!(
        seen(compile(compiler, text)),
        seen(compile(&ordinary, &undivided(text))),
        "{text}"
    );
}

fn cached(cache: &Cache) -> Compiler {
    Compiler::builder().cache(cache.clone()).build()
}

fn kernel(name: &str, value: usize) -> String {
    format!(
        "  gpu.func @{name}(%p: memref<?xf32>) kernel attributes {{known_block_size = array<i32: {value}, 1, 1>}} {{
    %t = gpu.thread_id x // {{ \"
    %c = arith.constant {value}.5 : f32
    memref.store %c, %p[%t] : memref<?xf32>
    gpu.return
  }}\n"
    )
}

fn module(kernels: &[String]) -> String {
    format!("gpu.module @many {{\n{}}}\n", kernels.concat())
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count)
        .map(|number| kernel(&format!("k{number}"), number))
        .collect()
}

/// The kernels that would not be parsed.
fn left_out(text: &str, cache: Option<&Cache>) -> Vec<String> {
    left_out_by(Helpers::None, text, cache)
}

fn left_out_by(helpers: Helpers<'_>, text: &str, cache: Option<&Cache>) -> Vec<String> {
    let readers = Readers {
        helpers,
        contexts: &Contexts::new(4),
        cache,
    };
    let Some((rest, texts)) = ModuleText::divide("k.mlir", text, readers) else {
        return Vec::new();
    };
    assert_eq!(rest.lines().count(), text.lines().count());
    let is_kept = |(one, other): (&str, &str)| one == other || one.trim().is_empty();
    assert!(rest.lines().zip(text.lines()).all(is_kept));
    let functions = texts.into_iter().flat_map(|text| text.functions);
    let is_out = |function: &FunctionOfText| !matches!(function.state, State::Parsed);
    functions.filter(is_out).map(|function| function.name).collect()
}

fn keys(text: &str) -> Vec<Option<Key>> {
    let modules = modules(text).expect("is divided");
    modules.iter().flatten().map(|function| function.key).collect()
}

#[test]
fn a_name_does_not_matter_and_everything_else_does() {
    let key = |text: &str| keys(text)[0];
    let plain = module(&[kernel("k", 1)]);
    assert!(key(&plain).is_some());
    assert_eq!(
        key(&plain),
        key(&module(&[kernel("other", 1)]).replace("@many", "@few"))
    );
    let others = [
        module(&[kernel("k", 2)]),
        plain.replace("store", "Store"),
        plain.replace("@many", "@many [#nvvm.target<chip = \"sm_90\">]"),
        format!("module {{ {plain} }}"),
        format!("module attributes {{a.b}} {{ {plain} }}"),
    ];
    let all: HashSet<Option<Key>> = others.iter().chain([&plain]).map(|text| key(text)).collect();
    assert_eq!(all.len(), 6);
    // Aliases count by what they stand for, through others as well.
    let uses = plain.replace("memref<?xf32>", "memref<?xf32, #two>");
    let aliases = |one: &str| {
        key(&format!(
            "#one = {one}\n#two = affine_map<(d0) -> (d0)>\n!t = tuple<#one>\n{uses}"
        ))
    };
    let chained = |one: &str| key(&format!("#one = {one}\n#two = #foo.bar<a, #one>\n{uses}"));
    assert_eq!(aliases("1 : i32"), aliases("2 : i32"));
    assert_ne!(aliases("1 : i32"), chained("1 : i32"));
    assert_ne!(chained("1 : i32"), chained("2 : i32"));
}

#[test]
fn what_is_in_doubt_is_not_divided() {
    let two = module(&numbered(2));
    assert!(modules(&two).is_ok());
    let change = |from: &str, to: &str| two.replacen(from, to, 1);
    for text in [
        undivided(&two),
        change("%t =", "%t = gpu.launch"),
        change("gpu.return", "gpu.return loc(\"here\")"),
        change("@k2", "@k1"),
        change("@k2", "@\"k2\""),
        change("  gpu.func", "  memref.global \"private\" @v : memref<f32>\n  gpu.func"),
        change("  gpu.func", "  func.func private @declared()\n  gpu.func"),
        change("memref<?xf32>)", "memref<?xf32, #gpu.address_space<workgroup // }\n>>)"),
        change("memref<?xf32>)", "memref<?xf32, #gpu.address_space <workgroup>>)"),
        change("gpu.return", "gpu.return }"),
        change("gpu.return", "gpu.return ("),
        change("gpu.return", "gpu.return \"\n\""),
        change("gpu.return", "gpu.return \\"),
        format!("{two} {{-# dialect_resources: {{}} #-}}"),
        format!("func.func @host() {{ return }}\n{two}"),
        two.trim_end().trim_end_matches('}').to_owned(),
        format!("module {{ {two}"),
        format!("{two}{}", two.replace("@many", "@few")),
        change("gpu.return", "%w = vector.splat %f : vector<2xf32>"),
        format!("#a = 1 : i32\n#a = 2 : i32\n{two}"),
    ] {
        assert!(modules(&text).is_err(), "{text}");
    }
}

/// Who names a kernel, or may, has to see it.
#[test]
fn kernels_that_others_name_and_that_name_others_are_parsed() {
    let string = kernel("k1", 1).replace(
        "gpu.return",
        "%s = \"gpu.x\"() {a = \"} @k9 {\"} : () -> i32 gpu.return",
    );
    let called = "  func.func private @f() {\n    func.return\n  }\n".to_owned();
    let calls = kernel("k3", 3).replace("gpu.return", "func.call @f() : () -> () gpu.return");
    let named = format!(
        "#a = @k5\n{}",
        module(&[string, kernel("k2", 2), calls, called, kernel("k4", 4), kernel("k5", 5)])
    );
    let has: Vec<bool> = keys(&named).iter().map(Option::is_some).collect();
    assert_eq!(has, [false, true, false, false, true, false]);
}

/// A name that lowering may declare, and a dialect that is loaded when it is parsed.
#[test]
fn kernels_with_names_of_libraries_and_words_of_other_dialects_are_parsed() {
    let foreign = kernel("k3", 3).replace("gpu.return", "%z = arith.constant {tosa.x} 1 : i32 gpu.return");
    let text = module(&[kernel("__nv_expf", 1), kernel("malloc", 2), foreign, kernel("k4", 4)]);
    let has: Vec<bool> = keys(&text).iter().map(Option::is_some).collect();
    assert_eq!(has, [false, false, false, true]);
}

/// Every kernel in turn is the one that changed; the others are not parsed.
#[test]
fn what_is_known_is_not_parsed() {
    let cache = Cache::builder().build();
    let kernels = numbered(5);
    let text = module(&kernels);
    assert_as_undivided(&cached(&cache), &text);
    assert_eq!(left_out(&text, Some(&cache)), ["k1", "k2", "k3", "k4", "k5"]);
    for place in 0..kernels.len() {
        let mut changed = kernels.clone();
        changed[place] = changed[place]
            .replace(".5 : f32", ".25 : f32")
            .replace("@k", "@changed");
        changed.rotate_left(place);
        let text = module(&changed);
        assert_eq!(left_out(&text, Some(&cache)).len(), 4);
        assert_as_undivided(&cached(&cache), &text);
    }
    // A text of several modules would be parsed once for each, where something is not known after all.
    let two = module(&kernels) + &module(&kernels[1..4]).replace("@many", "@few");
    assert_eq!(left_out(&two, Some(&cache)), [""; 0]);
    assert_as_undivided(&cached(&cache), &two);
    // For another target nothing is known.
    let other = Targets::List(Target::parse_list("sm_80,gfx942").expect("targets"));
    let ptx = |compiler: Compiler, text: &str| {
        let made = compiler.compile_source("k.mlir", text.as_bytes(), other.clone(), Emit::Asm);
        let bytes = |artifact: Artifact| artifact.bytes;
        made.expect("compiles")
            .artifacts
            .into_iter()
            .map(bytes)
            .collect::<Vec<_>>()
    };
    assert!(ptx(cached(&cache), &text) == ptx(Compiler::builder().build(), &undivided(&text)));
    for emit in [Emit::Mlir, Emit::Llvm] {
        let made = |compiler: Compiler, text: &str| {
            let made = compiler.compile_source("k.mlir", text.as_bytes(), targets(), emit);
            made.expect("compiles").artifacts.remove(0).bytes
        };
        assert!(made(cached(&cache), &text) == made(Compiler::builder().build(), &undivided(&text)));
    }
}

#[test]
fn copies_are_parsed_once() {
    let mut kernels = numbered(3);
    kernels.extend((1..=3).map(|number| kernel(&format!("copy{number}"), number)));
    let text = module(&kernels);
    assert_eq!(left_out(&text, None), ["copy1", "copy2", "copy3"]);
    assert_as_undivided(&Compiler::builder().build(), &text);
    assert_as_undivided(&cached(&Cache::builder().build()), &text);
    // What makes the copies wrong makes the first of them wrong: the error is that of the whole.
    for (from, to) in [
        ("memref.store", "memref.stare"),
        ("kernel attributes", "attributes"),
        ("%p[%t]", "%p[%t, %t]"),
    ] {
        let wrong = text.replace(from, to);
        assert_as_undivided(&Compiler::builder().build(), &wrong);
        assert_as_undivided(&cached(&Cache::builder().build()), &wrong);
    }
}

/// Kernels that are so long that several threads parse them.
fn long(count: usize) -> Vec<String> {
    let comment = format!("// {{ \" {}\n", "-".repeat(LEAST_BYTES_APART / count));
    let long = |kernel: String| kernel.replacen("// { \"\n", &comment, 1);
    numbered(count).into_iter().map(long).collect()
}

#[test]
fn several_threads_parse_what_is_not_known() {
    let threads = |cache: Option<&Cache>| {
        let builder = Compiler::builder().threads(4);
        match cache {
            Some(cache) => builder.cache(cache.clone()).build(),
            None => builder.build(),
        }
    };
    let pool = Pool::new(Threads::Own(4));
    let mut kernels = long(9);
    kernels.push(
        kernel("copy", 1).replacen(
            "// { \"\n",
            kernels[0]
                .split("gpu.thread_id x ")
                .nth(1)
                .expect("a comment")
                .split_inclusive('\n')
                .next()
                .expect("a line"),
            1,
        ),
    );
    kernels.push("  func.func @helper() { return }\n".to_owned());
    kernels.push(kernel("calls", 11).replace("gpu.return", "func.call @helper() : () -> () gpu.return"));
    let text = format!("#nothing = 1 : i32\nmodule {{ {} }}", module(&kernels));
    let parsed = |names: Vec<String>| (names.len(), names.last().cloned());
    assert_eq!(parsed(left_out(&text, None)), (1, Some("copy".to_owned())));
    assert_eq!(
        parsed(left_out_by(Helpers::Own(&pool), &text, None)),
        (10, Some("copy".to_owned()))
    );
    assert_as_undivided(&threads(None), &text);
    // What is known is known of them all.
    let cache = Cache::builder().build();
    assert_as_undivided(&threads(Some(&cache)), &text);
    assert_eq!(left_out(&text, Some(&cache)).len(), 10);
    assert_as_undivided(&cached(&cache), &text);
    // What is wrong with a kernel, or is not compiled apart, is so for the whole.
    for (from, to) in [
        ("memref.store", "memref.stare"),
        ("%p[%t]", "%p[%t, %t]"),
        ("array<i32: 3, 1, 1>", "array<i32: 3, 1>"),
        (
            "gpu.return",
            "%b = arith.constant true cf.assert %b, \"never\" gpu.return",
        ),
        ("@helper() {", "@helper() { %c = arith.constant 1 : f32"),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text);
        assert_as_undivided(&threads(None), &wrong);
        assert_as_undivided(&threads(Some(&Cache::builder().build())), &wrong);
        assert_as_undivided(&threads(Some(&cache)), &wrong);
    }
}

/// A kernel that is known stands beside something wrong: the error is at its place, and says what it says without a cache.
#[test]
fn errors_are_those_of_the_whole() {
    let cache = Cache::builder().build();
    let kernels = numbered(3);
    assert_as_undivided(&cached(&cache), &module(&kernels));
    for (from, to) in [
        ("memref.store", "memref.stare"),
        ("%p[%t]", "%p[%u]"),
        ("array<i32: 3, 1, 1>", "array<i32: 3, 1>"),
        ("%t = gpu.thread_id x", "%t = gpu.thread_id w"),
        ("gpu.return", "\"gpu.no_such_thing\"() : () -> () gpu.return"),
        ("gpu.return", "llvm.call @nobody() : () -> () gpu.return"),
        ("@k3", "@k2"),
        ("gpu.return", "} // gpu.return"),
    ] {
        let mut wrong = kernels.clone();
        wrong[2] = wrong[2].replace(from, to);
        let text = module(&wrong);
        assert_as_undivided(&cached(&cache), &text);
        let error = compile(&cached(&cache), &text).expect_err("is refused");
        if error.contains("k.mlir:") {
            let line = error
                .split("k.mlir:")
                .nth(1)
                .and_then(|rest| rest.split(':').next())
                .expect("a line");
            let line: usize = line.trim_matches('"').parse().expect("a number");
            assert!((14..=20).contains(&line), "{error}");
        }
    }
    // A module is refused for what is around its kernels.
    let refused = module(&kernels).replace("@many", "@many [#nvvm.target<chip = 3>]");
    assert_as_undivided(&cached(&cache), &refused);
}

/// Random edits, one after the other, with a cache that has seen those before.
#[test]
fn edits_in_any_order_give_what_the_whole_gives() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let cache = Cache::builder().build();
    let mut aliases = 1;
    let mut kernels = numbered(4);
    kernels.push(kernel("k5", 5).replace("memref<?xf32>", "memref<?xf32, #space>"));
    kernels.push(
        kernel("k6", 6).replace("gpu.return", "func.call @f() : () -> () gpu.return")
            + "  func.func private @f() {\n    func.return\n  }\n",
    );
    let mut known = 0;
    for step in 0..30 {
        let (place, other) = (random(kernels.len()), random(kernels.len()));
        match random(9) {
            0 => kernels[place] = kernels[place].replace(".5 : f32", &format!("{step}.5 : f32")),
            1 => kernels.swap(place, other),
            2 => kernels.push(kernels[place].replace("@k", &format!("@k{step}_"))),
            3 => kernels.push(kernels[place].clone()),
            4 => drop(kernels.remove(place)),
            5 => kernels[place] += "  // } @k1 \"\n",
            6 => aliases = 1 + random(3),
            7 => kernels[place] = kernels[place].replace("%p[%t]", "%p[%u]"),
            _ => kernels[place] = kernels[place].replace("{ \"", "} /* @k2"),
        }
        let space = format!("#one = {aliases}\n#space = {aliases}\n");
        let text = format!("{space}{}", module(&kernels));
        known += left_out(&text, Some(&cache)).len();
        assert_as_undivided(&cached(&cache), &text);
        assert_as_undivided(&Compiler::builder().build(), &text);
        if compile(&cached(&cache), &text).is_err() || kernels.len() > 8 {
            kernels = numbered(5);
        }
    }
    assert!(known > 30, "{known}");
}

/// Everything that is here for other tests: MLIR finds the functions that were told from the text, and no others.
#[test]
fn functions_are_those_that_are_parsed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec!["tests", "examples", "scripts", "integrations"];
    let mut left: Vec<_> = folders.drain(..).map(|folder| root.join(folder)).collect();
    let context = context();
    let mut divided = 0;
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                std::fs::read_dir(path)
                    .expect("a folder")
                    .flatten()
                    .map(|entry| entry.path()),
            );
            continue;
        }
        let is_mlir = path.extension().is_some_and(|extension| extension == "mlir");
        let Some(text) = is_mlir.then(|| std::fs::read_to_string(&path).ok()).flatten() else {
            continue;
        };
        let (Ok(told), Ok(module)) = (modules(&text), parse(&context, "k.mlir", text.as_bytes())) else {
            continue;
        };
        let names = |operation: melior::ir::operation::OperationRef<'_, '_>| {
            let mut names = Vec::new();
            let mut next = operation
                .region(0)
                .ok()
                .and_then(|region| region.first_block()?.first_operation());
            while let Some(function) = next {
                names.push(symbol_name(function));
                next = function.next_in_block();
            }
            names
        };
        let parsed: Vec<Vec<String>> = gpu_modules(&module).into_iter().map(names).collect();
        let told: Vec<Vec<&str>> = told
            .iter()
            .map(|functions| functions.iter().map(|function| function.name).collect())
            .collect();
        assert_eq!(parsed, told, "{}", path.display());
        divided += 1;
    }
    assert!(divided > 50, "{divided}");
}
