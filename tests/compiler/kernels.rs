//! The oracle is the PTX compiler: what it writes of the whole.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    super::kernel_groups::{split_by_kernel, text_of},
    *,
};
use gpulower_cache::{Remote, Store, testing::InMemory};
use gpulower_testing::nvidia::part;

use crate::{compiler::Executor, serialize::nvidia::NvidiaParts};

/// Compilers that keep nothing from one test to the next.
fn compilers(directory: &std::path::Path) -> PtxToCubin {
    PtxToCubin::new(NvidiaParts {
        nvptxcompiler_archive: Some(part("lib/libnvptxcompiler_static.a")),
        ptxas: Some(part("bin/ptxas")),
        nvjitlink: Some(part("lib/libnvJitLink.so.13")),
        cache_dir: Some(directory.to_owned()),
        notes: None,
    })
}

struct Bench {
    compilers: PtxToCubin,
    options: PtxOptions,
    choice: Option<PtxCompiler>,
    at_once: bool,
    chip: &'static str,
    cache: Option<Cache>,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self {
            compilers: compilers(directory.path()),
            options: PtxOptions::default(),
            choice: None,
            at_once: false,
            chip: "sm_90",
            cache: None,
            _directory: directory,
        }
    }

    fn with(&self, work: impl FnOnce(&PtxWork<'_>) -> Result<Option<MadeCubin>, Error>) -> Option<MadeCubin> {
        let work = work(&PtxWork {
            compiler: &self.compilers,
            cache: self.cache.as_ref(),
            module: "m",
            chip: self.chip,
            options: &self.options,
            choice: self.choice,
            at_once: self.at_once,
            told: &|_, _| {},
            interrupt: &Interrupt::default(),
        });
        work.expect("compiles")
    }

    fn joined(&self, ptx: &str) -> Option<MadeCubin> {
        self.with(|work| work.joined(&kernels_of(&work.components(ptx)), true, Helpers::None))
    }

    fn cubin(&self, ptx: &str) -> MadeCubin {
        self.with(|work| work.cubin(PtxCode::Text(ptx), Helpers::None).map(Some))
            .expect("a cubin")
    }

    /// What the compiler makes of the whole, on one thread.
    fn whole(&self, ptx: &str) -> Cubin {
        let compiled = self
            .compilers
            .compile_kernel(ptx, self.chip, &self.options, self.choice, &Interrupt::default());
        compiled.expect("compiles")
    }

    /// Of kernels that stand in one call.
    fn of_one_call(&self, ptx: &str) -> Option<MadeCubin> {
        let group = KernelPtx {
            content: Content::of(ptx),
            kernel: None,
            count: 2,
            traits: PtxTraits::of(ptx),
            text: Box::new(|| Some(ptx.to_owned())),
        };
        self.with(|work| work.joined(&[group], false, Helpers::None))
    }

    #[track_caller]
    fn assert_same(&self, ptx: &str) {
        let whole = self.whole(ptx);
        let joined = self.joined(ptx).expect("can be joined").cubin;
        assert!(
            joined.bytes == whole.bytes,
            "{}: joined and compiled together differ",
            self.chip
        );
        // Nobody reads bytes.
        let said = |cubin: Cubin| (cubin.log, cubin.compiler, cubin.version, cubin.decisions);
        assert_eq!(said(joined), said(whole));
    }
}

fn head(chip: &str) -> String {
    format!(".version 8.8\n.target {chip}\n.address_size 64\n")
}

fn sum(log: &mut String, name: &str, number: usize, body: &str) {
    let _ = write!(
        log,
        "\t// .globl {name}\n.visible .entry {name}(\n\t.param .u64 {name}_param_0 // @{name}\n)\n{{\n\
         .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .pred %p<2>;\n\
         .shared .align 16 .b8 __wg_{name}_0[256];\n\
         ld.param.u64 %rd1, [{name}_param_0]; mov.u32 %r1, %tid.x; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];\n\
         setp.gt.u32 %p1, %r1, {}; @%p1 bra $L__BB{number}_2;\n{body}\n$L__BB{number}_2:\n st.global.f32 [%rd1], %f1; ret;\n}}\n",
        number % 5
    );
}

const BODIES: [&str; 5] = [
    "add.f32 %f1, %f1, %f1;",
    "div.rn.f32 %f1, %f1, %f2;",
    "mov.u32 %r2, __wg_NAME_0; st.shared.f32 [%r2+4], %f1; bar.sync 0; ld.shared.f32 %f1, [%r2+8];",
    ".local .align 16 .b8 __local_depotNUMBER[64]; mov.u64 %rd2, __local_depotNUMBER; and.b32 %r2, %r1, 15; \
     mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd2, %rd3; st.local.f32 [%rd3], %f1; ld.local.f32 %f1, [%rd2+16];",
    "sqrt.rn.f32 %f1, %f2; div.rn.f32 %f1, %f1, %f2;",
];

/// A module of so many kernels, with names of many forms, some of which are equal but for their names.
fn module(chip: &str, kernels: usize) -> String {
    let mut text = head(chip);
    for number in 0..kernels {
        let forms = [
            "k",
            "gelu_",
            "_Z4axpyPf_",
            "z$",
            "A_kernel_with_a_name_that_is_much_longer_than_that_of_others_",
        ];
        let name = format!("{}{}", forms[number * 7 % forms.len()], number * 13 % 101);
        let body = BODIES[number * 3 % BODIES.len()]
            .replace("NAME", &name)
            .replace("NUMBER", &number.to_string());
        sum(&mut text, &name, number, &body);
    }
    text
}

#[test]
fn kernels_are_joined_to_what_the_compiler_makes_of_the_whole() {
    let mut bench = Bench::new();
    for chip in ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"] {
        bench.chip = chip;
        bench.assert_same(&module(chip, 23));
    }
    bench.chip = "sm_86";
    bench.choice = Some(PtxCompiler::Ptxas);
    bench.assert_same(&module("sm_86", 7));
    bench.options = PtxOptions {
        opt_level: 1,
        max_registers: Some(64),
        extra: vec!["--def-load-cache=cg".to_owned()],
        ..PtxOptions::default()
    };
    bench.assert_same(&module("sm_86", 7));
}

/// Each call of the compiler costs time of its own.
#[test]
fn kernels_stand_in_one_call_where_nothing_is_gained_apart() {
    let mut bench = Bench::new();
    let mut kernels = String::new();
    let mut without_last = String::new();
    for (number, body) in BODIES.iter().enumerate() {
        let name = format!("k{number}");
        let body = body.replace("NAME", &name).replace("NUMBER", &number.to_string());
        without_last.clone_from(&kernels);
        sum(&mut kernels, &name, number, &body);
    }
    let different = head("sm_90") + &kernels;
    let (joined, at_once) = (bench.joined(&different).expect("joined"), bench.cubin(&different));
    assert_eq!((joined.kernels, at_once.kernels), (BODIES.len(), BODIES.len()));
    assert!(joined.cubin == at_once.cubin);
    // Two of the kernels divide, and one of them has a root, too: what it becomes beside the other may be something else.
    assert!(bench.of_one_call(&different).is_none());
    // One function for each is no matter.
    for number in [5, 6] {
        sum(&mut without_last, &format!("k{number}"), number + 2, BODIES[1]);
    }
    sum(&mut without_last, "k7", 4, "sqrt.rn.f32 %f1, %f2;");
    let one_each = head("sm_90") + &without_last;
    let of_one_call = bench.of_one_call(&one_each).expect("joined");
    assert!(of_one_call.cubin == bench.joined(&one_each).expect("joined").cubin);
    // The order of names would be another.
    let with_table = head("sm_90") + ".global .align 4 .f32 table[2];\n" + &kernels;
    let with_table = with_table.replacen("st.global.f32", "ld.global.f32 %f1, [table]; st.global.f32", 1);
    assert_eq!(bench.cubin(&with_table).kernels, BODIES.len());
    // What is the same is compiled once, and what may be known is looked for.
    assert_eq!(bench.cubin(&module("sm_90", 40)).kernels, 40);
    bench.cache = Some(Cache::builder().build());
    assert_eq!(bench.cubin(&different).kernels, BODIES.len());
    // In a hurry not even then.
    bench.at_once = true;
    assert_eq!(bench.cubin(&different).kernels, 1);
}

/// Kernels that are the same but for their names, and the names sort otherwise than the kernels.
#[test]
fn a_kernel_is_compiled_once_whatever_its_names_are() {
    let mut bench = Bench::new();
    bench.cache = Some(Cache::builder().build());
    let mut text = head("sm_90");
    for (number, name) in [
        "zz",
        "m",
        "a_very_long_name_indeed_which_is_longer_than_any_other",
        "text",
        "A$",
    ]
    .into_iter()
    .enumerate()
    {
        sum(&mut text, name, 5 * number, BODIES[2].replace("NAME", name).as_str());
        sum(&mut text, &format!("{name}_division"), 5 * number, BODIES[1]);
    }
    bench.assert_same(&text);
    let statistics = bench.cache.as_ref().expect("a cache").statistics();
    assert_eq!(statistics.stored, 2);
    // In another module, in another order, with comments.
    let mut other = head("sm_90");
    for name in ["of_another_module", "zz"] {
        sum(&mut other, name, 0, &(BODIES[1].to_owned() + " // a comment"));
    }
    let made = bench.cubin(&other);
    assert_eq!((made.kernels, made.known), (2, 2));
    assert!(made.cubin == bench.whole(&other));
    // And alone.
    let mut alone = head("sm_90");
    sum(&mut alone, "alone", 10, BODIES[1]);
    let made = bench.cubin(&alone);
    assert_eq!((made.kernels, made.known), (1, 1));
    assert!(made.cubin == bench.whole(&alone));
}

#[test]
fn what_is_known_of_the_kernels_is_said() {
    let mut bench = Bench::new();
    bench.cache = Some(Cache::builder().build());
    let two = module("sm_90", 2);
    assert!(bench.cubin(&two).taken().is_none());
    assert_eq!(
        bench.cubin(&two).taken().expect("known").outcome,
        "taken from the cache"
    );
    let three = bench.cubin(&module("sm_90", 3));
    assert_eq!(
        three.taken().expect("known").outcome,
        "2 of 3 kernels taken from the cache"
    );
    bench.cache = None;
    assert!(three.cubin == bench.whole(&module("sm_90", 3)));
}

#[test]
fn a_module_of_one_kernel_or_with_places_is_compiled_as_a_whole() {
    let mut bench = Bench::new();
    assert!(bench.joined(&module("sm_90", 1)).is_none());
    assert!(
        bench
            .joined(&(module("sm_90", 2) + ".file 1 \"a.mlir\"\n").replace("ret;", ".loc 1 2 3\nret;"))
            .is_none()
    );
    bench.options.relocatable = true;
    assert!(bench.joined(&module("sm_90", 2)).is_none());
    bench.options = PtxOptions {
        line_info: true,
        ..PtxOptions::default()
    };
    assert!(bench.joined(&module("sm_90", 2)).is_none());
}

/// Kernels that share a variable stay together, beside others.
#[test]
fn what_cannot_be_joined_is_compiled_as_a_whole() {
    let bench = Bench::new();
    let mut text = head("sm_90") + ".global .align 4 .f32 common = 0f3F800000;\n.global .align 4 .f32 of_one;\n";
    for (number, name) in ["free", "one", "two", "free_too"].into_iter().enumerate() {
        let body = if name.starts_with("free") {
            BODIES[0]
        } else {
            "ld.global.f32 %f1, [common];"
        };
        sum(&mut text, name, number, body);
    }
    let joined = bench.joined(&text).expect("is joined").cubin;
    let (joined, whole) = (
        joined.info().expect("is read"),
        bench.whole(&text).info().expect("is read"),
    );
    assert_eq!(joined.global_bytes, whole.global_bytes);
    let mut kernels = [joined.kernels, whole.kernels];
    kernels
        .iter_mut()
        .for_each(|kernels| kernels.sort_by(|one, other| one.name.cmp(&other.name)));
    assert_eq!(kernels[0], kernels[1]);
    // A texture is nothing that the joiner knows.
    let mut texture = head("sm_90") + ".global .texref texture;\n";
    sum(&mut texture, "free", 0, BODIES[0]);
    sum(
        &mut texture,
        "reads",
        1,
        "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [texture, {%r1}];",
    );
    assert!(bench.joined(&texture).is_none());
    assert!(bench.cubin(&texture).cubin == bench.whole(&texture));
}

#[test]
fn errors_are_those_of_the_whole() {
    let bench = Bench::new();
    let text = module("sm_90", 4).replacen("div.rn.f32", "dvi.rn.f32", 1);
    let fails = |work: &PtxWork<'_>| {
        work.cubin(PtxCode::Text(&text), Helpers::None)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let compilers = compilers(directory.path());
    let whole = compilers.compile_kernel(&text, "sm_90", &bench.options, None, &Interrupt::default());
    let whole = whole.expect_err("refused").to_string();
    let interrupt = Interrupt::default();
    let work = PtxWork {
        compiler: &bench.compilers,
        cache: None,
        module: "m",
        chip: "sm_90",
        options: &bench.options,
        choice: None,
        at_once: false,
        told: &|_, _| {},
        interrupt: &interrupt,
    };
    let text_of_error = fails(&work);
    assert!(text_of_error.contains(&whole), "{text_of_error}\n{whole}");
    // Time that is over, or a cancelled compilation, is what is said.
    let over = Interrupt::after(Duration::ZERO);
    let late = fails(&PtxWork {
        told: &|_, _| {},
        interrupt: &over,
        ..work
    });
    assert!(late.contains("limit"), "{late}");
}

/// The pieces may be carried out in any order, by any number of threads.
#[test]
fn the_bytes_are_the_same_for_every_number_of_threads() {
    struct Backwards(usize);
    impl Executor for Backwards {
        fn for_each(&self, pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
            let next = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..self.0 {
                    scope.spawn(|| {
                        while let Some(index) =
                            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < pieces)
                        {
                            piece(pieces - 1 - index);
                        }
                    });
                }
            });
        }
    }
    let bench = Bench::new();
    let text = module("sm_90", 16);
    let whole = bench.whole(&text);
    for threads in [1, 2, 5] {
        let executor = Backwards(threads);
        let made =
            bench.with(|work| work.joined(&kernels_of(&work.components(&text)), true, Helpers::Theirs(&executor)));
        assert!(made.expect("is joined").cubin == whole, "{threads} threads");
    }
}

/// Kernels that are kept stand in one call as well.
#[test]
fn what_one_call_made_of_several_kernels_is_told_apart() {
    let bench = Bench::new();
    for chip in ["sm_75", "sm_80", "sm_90", "sm_90a"] {
        let mut text = head(chip);
        for (number, body) in BODIES.iter().take(4).enumerate() {
            let name = format!("k{number}");
            sum(
                &mut text,
                &name,
                number,
                &body.replace("NAME", &name).replace("NUMBER", &number.to_string()),
            );
        }
        let components = components(&text).expect("components");
        let kernels = kernels_of(&components);
        let kernels: Vec<&KernelPtx<'_>> = kernels.iter().collect();
        let compile = |text: &str| {
            let compiled = bench
                .compilers
                .compile_kernel(text, chip, &bench.options, None, &Interrupt::default());
            compiled.expect("compiles")
        };
        let together = compile(&text_of(&kernels).expect("a text"));
        let each = split_by_kernel(&together, chip, &kernels).expect("told apart");
        let alone: Vec<Cubin> = kernels
            .iter()
            .map(|kernel| compile(&(kernel.text)().expect("a text")))
            .collect();
        assert!(each == alone, "{chip}");
    }
}

/// Threads that compile the same module: one of them compiles a kernel, whoever is first.
#[test]
fn who_waits_for_a_kernel_finds_those_that_were_made_with_it() {
    let mut bench = Bench::new();
    bench.cache = Some(Cache::builder().build());
    let mut text = head("sm_90");
    for number in 0..12 {
        let body = format!("add.f32 %f1, %f1, 0f4{number:X}800000;");
        sum(&mut text, &format!("k{number}"), 0, &body);
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(bench.cubin(&text).kernels, 12));
        }
    });
    assert_eq!(bench.cache.as_ref().expect("a cache").statistics().stored, 12);
    assert!(bench.cubin(&text).cubin == bench.whole(&text));
}

#[test]
fn kernels_with_functions_have_a_call_each() {
    let traits = |text: &str| {
        PtxTraits::of(&format!(
            ".entry gpulower_kernel(.param .u64 gpulower_kernel_param_0) {{ {text} }}"
        ))
    };
    let group = |texts: &[&str]| {
        let kernel = |text: &&str| KernelPtx {
            content: Content::of(text),
            kernel: Some("k".to_owned()),
            count: 1,
            traits: traits(text),
            text: Box::new(|| None),
        };
        let kernels: Vec<KernelPtx<'_>> = texts.iter().map(kernel).collect();
        let groups = groups(&kernels.iter().collect::<Vec<_>>(), 1);
        groups.iter().map(ExactSizeIterator::len).collect::<Vec<_>>()
    };
    assert_eq!(group(&["ret;", "add.f32 a, b, c;", "div.rn.f32 a, b, c;"]), [3]);
    for own in [
        "} .func f() { ret; ",
        "mov.u32 r, %cluster_ctarank;",
        "gpulower_kernel;",
        "} .global .f32 t; .entry e() { ",
    ] {
        assert_eq!(group(&["ret;", own, "exit;", "ret;"]), [1, 1, 2], "{own}");
        assert_eq!(group(&[own, "ret;"]), [1, 1], "{own}");
    }
    assert_eq!(group(&["ret;"; 100]), [64, 36]);
    // A function that two kernels call is in the text of each.
    let mut bench = Bench::new();
    bench.cache = Some(Cache::builder().build());
    let mut text = head("sm_90")
        + ".func (.param .f32 r) half(.param .f32 x) { .reg .f32 %f<2>; ld.param.f32 %f1, [x]; \
           mul.f32 %f1, %f1, 0f3F000000; st.param.f32 [r], %f1; ret; }\n";
    for name in ["one", "two"] {
        sum(
            &mut text,
            name,
            name.len() + usize::from(name == "one"),
            "call (%f1), half, (%f1);",
        );
    }
    let made = bench.cubin(&text);
    assert_eq!(made.kernels, 2);
    assert!(made.cubin == bench.whole(&text));
}

/// One machine says of one kernel that it makes it; another one that waits for that compiles none of those in the same call.
#[test]
fn a_machine_that_waits_for_a_kernel_finds_those_of_its_call() {
    let stores = [Arc::new(InMemory::default()), Arc::new(InMemory::default())];
    let machine = |store: &Arc<InMemory>| {
        let remote = Remote::builder(Arc::clone(store) as Arc<dyn Store>).wait(Duration::from_secs(60));
        Some(Cache::builder().remote(remote.build()).build())
    };
    let claims = |store: &InMemory| -> Vec<String> {
        let requests = store.take_requests().into_iter();
        let put = requests.filter_map(|request| Some(request.strip_prefix("put ")?.to_owned()));
        put.filter(|name| name.starts_with("claims/")).collect()
    };
    let mut bench = Bench::new();
    let mut text = head("sm_90");
    for number in 0..5 {
        let body = format!("add.f32 %f1, %f1, 0f4{number:X}800000;");
        sum(&mut text, &format!("k{number}"), 0, &body);
    }
    bench.cache = machine(&stores[0]);
    let made = bench.cubin(&text).cubin;
    bench.cache.as_ref().expect("a cache").finish();
    let claimed = claims(&stores[0]);
    let [claim] = claimed.as_slice() else {
        panic!("{claimed:?}")
    };

    // Somebody makes it, but is not done.
    let soon = Instant::now() + Duration::from_secs(60);
    stores[1].put(claim, Vec::new(), true, soon).expect("put");
    assert_eq!(claims(&stores[1]), claimed);
    bench.cache = machine(&stores[1]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bench.cubin(&text).cubin);
        while claims(&stores[1]).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for entry in stores[0].list("", soon).expect("listed") {
            let bytes = stores[0]
                .get(&entry.name, u64::MAX, soon)
                .expect("got")
                .expect("is there");
            stores[1].put(&entry.name, bytes, false, soon).expect("put");
        }
        assert!(waits.join().expect("compiles") == made);
    });
    let statistics = bench.cache.as_ref().expect("a cache").statistics();
    assert_eq!((statistics.remote.uploaded, statistics.stored), (0, 0));
}
