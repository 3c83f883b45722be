use std::sync::Arc;

use super::*;
use crate::{
    options::DESCRIPTIONS,
    stage::{Checkpoint, StageListener, Subject},
    target::Target,
};

const KERNEL: &str = "gpu.module @m {
  gpu.func @k(%p: memref<8xf32>, %v: f32) kernel {
    %i = gpu.thread_id x
    memref.store %v, %p[%i] : memref<8xf32>
    gpu.return
  }
}";

fn targets() -> Targets {
    Targets::List(Target::parse_list("sm_90").expect("a target"))
}

fn compile(compiler: &Compiler, text: &str) -> Vec<Artifact> {
    let compilation = compiler.compile_source("k.mlir", text.as_bytes(), targets(), Emit::Ptx);
    compilation.expect("compiles").artifacts
}

fn is_taken(artifacts: &[Artifact]) -> bool {
    artifacts
        .iter()
        .all(|artifact| artifact.decisions.iter().any(|decision| decision.stage == Stage::Cache))
}

#[test]
fn compilers_share_a_cache_in_memory() {
    let cache = Cache::builder().build();
    let compiler = || Compiler::builder().cache(cache.clone()).build();
    let first = compile(&compiler(), KERNEL);
    let second = compile(&compiler(), KERNEL);
    assert!(!is_taken(&first) && is_taken(&second));
    assert_eq!(first[0].bytes, second[0].bytes);
    assert_eq!(first[0].signatures, second[0].signatures);
    assert!(second[0].stages.is_empty());
}

/// The image of a large artifact is kept once, with its module; where it is gone, the artifact is made again.
#[test]
fn a_large_artifact_is_kept_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = || Cache::builder().directory(directory.path().join("cache")).build();
    let compiler = || Compiler::builder().cache(cache()).build();
    let large = KERNEL.replace("@k", &format!("@k{}", "a".repeat(LEAST_BYTES_ELSEWHERE / 2)));
    let first = compile(&compiler(), &large);
    let bytes = first[0].bytes.len() as u64;
    assert!(bytes > LEAST_BYTES_ELSEWHERE as u64 && !is_taken(&first));
    let holders = || {
        let paths = cache().keys().expect("keys").into_iter();
        let paths = paths.map(|key| cache().path(&key).expect("a path"));
        let is_large = |path: &std::path::PathBuf| path.metadata().expect("a file").len() > bytes;
        paths.filter(is_large).collect::<Vec<_>>()
    };
    assert_eq!(holders().len(), 1);
    let second = compile(&compiler(), &large);
    assert!(is_taken(&second) && second[0].bytes == first[0].bytes);
    std::fs::remove_file(&holders()[0]).expect("is removed");
    let third = compile(&compiler(), &large);
    assert!(!is_taken(&third) && third[0].bytes == first[0].bytes);
    assert_eq!(holders().len(), 1);
    // In memory as well, and in both.
    let in_memory = Compiler::builder().cache(Cache::builder().build()).build();
    compile(&in_memory, &large);
    let known = compile(&in_memory, &large);
    assert!(is_taken(&known) && known[0].bytes == first[0].bytes);
}

#[test]
fn one_of_two_inputs_is_known() {
    let compiler = Compiler::builder().cache(Cache::builder().build()).build();
    let other = KERNEL.replace("@m", "@n").replace("@k", "@l");
    compile(&compiler, KERNEL);
    let inputs: [(&str, &[u8]); 2] = [("b.mlir", other.as_bytes()), ("k.mlir", KERNEL.as_bytes())];
    let both = compiler
        .compile_sources(&inputs, targets(), Emit::Ptx)
        .expect("compiles");
    let modules: Vec<(&str, bool)> = both
        .artifacts
        .iter()
        .map(|artifact| (artifact.module.as_str(), is_taken(std::slice::from_ref(artifact))))
        .collect();
    assert_eq!(modules, [("n", false), ("m", true)]);
}

#[test]
fn every_option_is_in_the_key_but_those_that_change_no_result() {
    let key = |options: Options| {
        let compiler = Compiler::builder()
            .options(options)
            .cache(Cache::builder().build())
            .build();
        compiler.source_key("k.mlir", KERNEL.as_bytes(), &targets(), Emit::Ptx)
    };
    let plain = key(Options::default());
    assert!(plain.is_some());
    for option in DESCRIPTIONS {
        let mut keys = vec![plain];
        for value in option.examples {
            let mut options = Options::default();
            options.set(option.name(), value).expect("a value");
            let is_given = option.is_given(&options);
            let key = key(options);
            assert_eq!(
                keys.contains(&key),
                !(is_given && option.rules.changes_result),
                "{}={value}",
                option.name()
            );
            keys.push(key);
        }
    }
}

#[test]
fn values_that_look_alike_as_text_have_keys_of_their_own() {
    let key = |options: Options| {
        let compiler = Compiler::builder()
            .options(options)
            .cache(Cache::builder().build())
            .build();
        compiler.source_key("k.mlir", KERNEL.as_bytes(), &targets(), Emit::Ptx)
    };
    let map = |entries: &[(&str, &str)]| Options {
        debug_prefix_map: entries
            .iter()
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect(),
        ..Options::default()
    };
    let words = |words: &[&str]| Options {
        ptxas_options: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Options::default()
    };
    assert_ne!(key(map(&[("a", "b,c=d")])), key(map(&[("a", "b"), ("c", "d")])));
    assert_ne!(key(map(&[("a=b", "c")])), key(map(&[("a", "b=c")])));
    assert_ne!(key(words(&["-a -b"])), key(words(&["-a", "-b"])));
}

#[test]
fn targets_formats_names_and_libraries_are_in_the_key() {
    let compiler = |options| {
        Compiler::builder()
            .options(options)
            .cache(Cache::builder().build())
            .build()
    };
    let with = |bytes: &[u8]| Options {
        libraries: vec![Library::Memory {
            name: "l".to_owned(),
            bytes: bytes.into(),
        }],
        ..Options::default()
    };
    let plain = compiler(Options::default());
    let key =
        |compiler: &Compiler, name, text: &str, emit| compiler.source_key(name, text.as_bytes(), &targets(), emit);
    let asserts = "cf.assert";
    let mut keys = vec![
        key(&plain, "k.mlir", KERNEL, Emit::Ptx),
        key(&plain, "k.mlir", KERNEL, Emit::Llvm),
        key(&plain, "k.ll", KERNEL, Emit::Ptx),
        key(&plain, "k.mlir", "", Emit::Ptx),
        key(&compiler(with(b"one")), "k.mlir", KERNEL, Emit::Ptx),
        key(&compiler(with(b"two")), "k.mlir", KERNEL, Emit::Ptx),
        key(&plain, "a/k.mlir", asserts, Emit::Ptx),
        key(&plain, "b/k.mlir", asserts, Emit::Ptx),
        plain.source_key("k.mlir", KERNEL.as_bytes(), &Targets::Attributes, Emit::Ptx),
    ];
    assert!(keys.iter().all(Option::is_some));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 9);
    // Where the file lies is not in the output.
    assert_eq!(
        key(&plain, "a/k.mlir", KERNEL, Emit::Ptx),
        key(&plain, "b/k.mlir", KERNEL, Emit::Ptx)
    );
}

struct Watcher(&'static [Checkpoint]);

impl StageListener for Watcher {
    fn checkpoints(&self) -> &[Checkpoint] {
        self.0
    }

    fn lowered(&self, _: Subject<'_>, _: &dyn Fn() -> String) -> Result<Option<String>, String> {
        Ok(None)
    }
}

#[test]
fn a_listener_that_may_change_something_sees_every_compilation() {
    let cache = Cache::builder().build();
    let with = |wanted| {
        Compiler::builder()
            .cache(cache.clone())
            .listener(Arc::new(Watcher(wanted)))
            .build()
    };
    compile(&with(&[]), KERNEL);
    assert!(is_taken(&compile(&with(&[]), KERNEL)));
    assert!(!is_taken(&compile(&with(&[Checkpoint::Lowered]), KERNEL)));
}

#[test]
fn failures_are_not_kept() {
    let cache = Cache::builder().build();
    let compiler = Compiler::builder().cache(cache.clone()).build();
    for _ in 0..2 {
        let failure = compiler.compile_source("k.mlir", b"gpu.module @m { }", targets(), Emit::Ptx);
        assert!(failure.is_err());
    }
    assert_eq!(cache.statistics().stored, 0);
}

fn kept<'a>() -> Kept<'a, u32> {
    Kept {
        is_claimed: true,
        what: "a number",
        module: "m",
        same: |known, made| known == made,
        may_be_kept: |_| true,
    }
}

#[test]
fn what_differs_from_the_cache_is_an_error_when_verifying() {
    let cache = Cache::builder().verify(true).build();
    let key = machine_code_key("test", &[]);
    let make = |number| {
        get_or_make(
            Some(&cache),
            || Some(key),
            &kept(),
            &|| false,
            Cache::get,
            || Ok(number),
        )
        .map(|made| made.value)
    };
    assert_eq!(make(1).expect("made"), 1);
    assert_eq!(make(1).expect("made again"), 1);
    let error = make(2).expect_err("differs").to_string();
    assert!(
        error.starts_with(
            "cache: the cache holds a number that differs from what is compiled now, for module m: entry "
        ) && error.contains("gpulower cache clear"),
        "{error}"
    );
}

#[test]
fn what_was_made_while_a_tool_changed_is_not_kept() {
    let cache = Cache::builder().build();
    let asked = std::cell::Cell::new(0_u8);
    let key = || {
        asked.set(asked.get() + 1);
        Some(machine_code_key("test", &[("tool", &[asked.get()])]))
    };
    get_or_make(Some(&cache), key, &kept(), &|| false, Cache::get, || Ok(1)).expect("made");
    assert_eq!((asked.get(), cache.statistics().stored), (2, 0));
}

#[test]
fn an_entry_of_another_shape_is_made_anew_and_told() {
    let cache = Cache::builder().build();
    let key = machine_code_key("test", &[]);
    cache.put(&key, Vec::new());
    let made = get_or_make(Some(&cache), || Some(key), &kept(), &|| false, Cache::get, || Ok(1)).expect("made");
    assert_eq!((made.value, made.from), (1, None));
    let told = cache.take_problems();
    assert!(told.len() == 1 && told[0].to_string().contains("is not what this version writes"));
}
