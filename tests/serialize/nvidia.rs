//! The choice among NVIDIA's compilers, with the real ones.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::nvidia::{NvidiaParts, Outcome, PtxCompiler, PtxOptions, PtxToCubin, SerializeError};
use gpulower_testing::nvidia::{part, rich_module, store_kernel};

const LONG: Duration = Duration::from_secs(120);

fn parts(cache: &Path) -> NvidiaParts {
    NvidiaParts {
        nvptxcompiler_archive: Some(part("lib/libnvptxcompiler_static.a")),
        ptxas: Some(part("bin/ptxas")),
        nvjitlink: Some(part("lib/libnvJitLink.so.13")),
        cache_dir: Some(cache.to_owned()),
        notes: None,
    }
}

fn with<T>(test: impl FnOnce(NvidiaParts) -> T) -> T {
    let cache = tempfile::tempdir().unwrap();
    test(parts(cache.path()))
}

#[test]
fn all_three_compile_and_tell_spills() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let ptx = rich_module("7.8", "sm_90");
        for compiler in PtxCompiler::ALL {
            let version = compilers.version(compiler).unwrap().to_owned();
            let cubin = compilers
                .compile(&ptx, "sm_90", &PtxOptions::default(), Some(compiler), LONG)
                .unwrap();
            assert_eq!((cubin.compiler, &cubin.version), (compiler, &version));
            assert_eq!(cubin.decisions.len(), 1);
            assert!(!cubin.log.contains("Compile time"), "{}", cubin.log);
            let info = cubin.info().unwrap();
            assert_eq!((info.chip().as_str(), info.kernels.len()), ("sm_90", 4));
            for kernel in &info.kernels {
                let spills = Some(kernel.name == "spilling");
                assert_eq!(kernel.spills(), spills, "{compiler}: {}", cubin.log);
            }
        }
        let first = compilers
            .compile(&ptx, "sm_90", &PtxOptions::default(), None, LONG)
            .unwrap();
        assert_eq!(first.compiler, PtxCompiler::NvPtxCompiler);
    });
}

/// NVIDIA's compilers look at source files that PTX names.
#[test]
fn when_a_source_was_changed_is_not_in_a_cubin() {
    with(|parts| {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("k.mlir");
        let ptx = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.loc 1 3 1\nret;\n}}\n.file 1 {source:?}\n"
        );
        let options = PtxOptions {
            line_info: true,
            ..PtxOptions::default()
        };
        let compilers = PtxToCubin::new(parts);
        for compiler in PtxCompiler::ALL {
            let compile = || {
                compilers
                    .compile(&ptx, "sm_90", &options, Some(compiler), LONG)
                    .unwrap()
                    .bytes
            };
            std::fs::write(&source, "one").unwrap();
            let with_one = compile();
            std::fs::write(&source, "another").unwrap();
            let file = std::fs::File::options().append(true).open(&source).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH + LONG).unwrap();
            assert!(with_one == compile(), "{compiler}");
            std::fs::remove_file(&source).unwrap();
            assert!(with_one == compile(), "{compiler} without");
        }
    });
}

#[test]
fn options_act() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let ptx = rich_module("7.8", "sm_80").replace(".maxntid 256, 1, 1\n.maxnreg 24\n", "");
        for compiler in PtxCompiler::ALL {
            let compile = |options: PtxOptions| compilers.compile(&ptx, "sm_80", &options, Some(compiler), LONG);
            let free = compile(PtxOptions::default()).unwrap();
            let registers = |cubin: &super::nvidia::Cubin| {
                let info = cubin.info().unwrap();
                let kernel = info.kernels.iter().find(|kernel| kernel.name == "spilling").unwrap();
                kernel.registers.unwrap()
            };
            assert!(registers(&free) > 24);
            let limited = PtxOptions {
                max_registers: Some(24),
                ..PtxOptions::default()
            };
            assert!(registers(&compile(limited).unwrap()) <= 24);
            for opt_level in 0..3 {
                let options = PtxOptions {
                    opt_level,
                    ..PtxOptions::default()
                };
                compile(options).unwrap();
            }
            let debug = PtxOptions {
                opt_level: 0,
                device_debug: true,
                ..PtxOptions::default()
            };
            assert!(compile(debug).unwrap().bytes != free.bytes);
            let relocatable = compile(PtxOptions {
                relocatable: true,
                ..PtxOptions::default()
            });
            if compiler == PtxCompiler::NvJitLink {
                let text = relocatable.unwrap_err().to_string();
                assert!(text.contains("cannot give relocatable code"), "{text}");
            } else {
                assert!(relocatable.unwrap().info().unwrap().relocatable);
            }
            let unknown = PtxOptions {
                extra: vec!["--no-such-option".to_owned()],
                ..PtxOptions::default()
            };
            let text = compile(unknown).unwrap_err().to_string();
            assert!(text.contains("no-such-option"), "{text}");
        }
    });
}

#[test]
fn a_register_limit_that_does_not_act_is_an_error() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let limited = PtxOptions {
            max_registers: Some(24),
            ..PtxOptions::default()
        };
        // The kernel states a block size, and ptxas then ignores the limit without a word.
        let ptx = rich_module("7.8", "sm_80").replace(".maxnreg 24\n", "");
        for compiler in PtxCompiler::ALL {
            let error = compilers
                .compile(&ptx, "sm_80", &limited, Some(compiler), LONG)
                .unwrap_err();
            let text = error.to_string();
            assert!(text.contains("gave kernel \"spilling\""), "{text}");
            assert!(
                text.contains("above the limit of 24") && text.contains("nvvm.maxnreg"),
                "{text}"
            );
        }
        let stated = rich_module("7.8", "sm_80");
        compilers.compile(&stated, "sm_80", &limited, None, LONG).unwrap();
    });
}

#[test]
fn what_is_missing_is_passed_over_and_told() {
    with(|mut parts| {
        parts.nvptxcompiler_archive = None;
        parts.ptxas = Some(PathBuf::from("/nowhere/ptxas"));
        let ptx = store_kernel("7.8", "sm_90");
        let compilers = PtxToCubin::new(parts.clone());
        let cubin = compilers
            .compile(&ptx, "sm_90", &PtxOptions::default(), None, LONG)
            .unwrap();
        assert_eq!(cubin.compiler, PtxCompiler::NvJitLink);
        let [first, second, third] = cubin.decisions.as_slice() else {
            panic!("{:?}", cubin.decisions);
        };
        assert_eq!(first.to_string(), "nvptxcompiler: not available: the toolkit has none");
        assert!(
            second.to_string().contains("/nowhere/ptxas could not be started"),
            "{second}"
        );
        assert_eq!(third.outcome, Outcome::Used);

        parts.nvjitlink = None;
        let error = PtxToCubin::new(parts)
            .compile(&ptx, "sm_90", &PtxOptions::default(), None, LONG)
            .unwrap_err();
        assert_eq!(error.decisions().len(), 3);
        let text = error.to_string();
        assert!(text.contains("no PTX compiler could be used for sm_90"), "{text}");
        assert!(
            text.contains("nvidia-cuda-nvcc") && text.contains("or emit PTX"),
            "{text}"
        );
    });
}

#[test]
fn dropped_chips_and_new_ptx_are_told_with_advice() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let compile = |version: &str, chip: &str| {
            let ptx = store_kernel(version, chip);
            compilers
                .compile(&ptx, chip, &PtxOptions::default(), None, LONG)
                .unwrap_err()
        };
        let error = compile("6.0", "sm_70");
        assert_eq!(error.decisions().len(), 3, "all were asked: {error}");
        let text = error.to_string();
        assert!(text.contains("no PTX compiler at hand knows sm_70"), "{text}");
        assert!(text.contains("use a CUDA 12 toolkit, or emit PTX"), "{text}");
        let text = compile("8.6", "sm_101a").to_string();
        assert!(
            text.contains("knows sm_101a") && text.contains("calls this chip sm_110"),
            "{text}"
        );

        let error = compile("9.9", "sm_90");
        let text = error.to_string();
        assert!(
            text.contains("is version 9.9, and") && text.contains(" (newest: "),
            "{text}"
        );
        assert!(!text.contains("newest: 9.9"), "{text}");
        assert_eq!(error.decisions().len(), 3, "{error}");
        assert!(error.to_string().contains("lower the PTX version"), "{error}");
    });
}

#[test]
fn wrong_ptx_ends_the_search() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let ptx = store_kernel("7.8", "sm_90").replace("mov.u32", "mow.u32");
        let error = compilers
            .compile(&ptx, "sm_90", &PtxOptions::default(), None, LONG)
            .unwrap_err();
        assert_eq!(error.decisions().len(), 1);
        assert_eq!(error.decisions()[0].outcome, Outcome::Failed);
        let text = error.to_string();
        assert!(text.starts_with("nvptxcompiler 13."), "{text}");
        assert!(text.contains("line 9") && text.contains("'mow'"), "{text}");
        for compiler in PtxCompiler::ALL {
            for wrong in [ptx.as_str(), "", "hello", "a\0b"] {
                let error = compilers
                    .compile(wrong, "sm_90", &PtxOptions::default(), Some(compiler), LONG)
                    .unwrap_err();
                assert!(matches!(error, SerializeError::Compile { .. }), "{error:?}");
            }
        }
    });
}

#[test]
fn the_time_limit_holds() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let ptx = store_kernel("7.8", "sm_90");
        for compiler in [PtxCompiler::NvPtxCompiler, PtxCompiler::Ptxas] {
            let error = compilers
                .compile(&ptx, "sm_90", &PtxOptions::default(), Some(compiler), Duration::ZERO)
                .unwrap_err();
            assert!(matches!(error, SerializeError::Timeout { .. }), "{error:?}");
            assert!(error.to_string().contains("raise the time limit"), "{error}");
        }
    });
}

#[test]
fn threads_share_one_value() {
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        let ptx = rich_module("8.0", "sm_90a");
        let compile = |compiler| {
            let options = PtxOptions::default();
            compilers
                .compile(&ptx, "sm_90a", &options, Some(compiler), LONG)
                .unwrap()
        };
        for compiler in PtxCompiler::ALL {
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| compile(compiler))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(results.iter().all(|result| *result == results[0]));
        }
    });
}

/// Large PTX is compiled on several threads. The machine code of each kernel is what one thread makes, and the cubin is the
/// same each time.
#[test]
fn large_ptx_is_compiled_on_threads_to_the_same_code() {
    use std::fmt::Write;

    let mut ptx = ".version 7.8\n.target sm_90\n.address_size 64\n".to_owned();
    for kernel in 0..40 {
        writeln!(
            ptx,
            ".visible .entry k{kernel}(.param .u64 p) {{ .reg .f32 %f<4>; .reg .b64 %d<3>;"
        )
        .unwrap();
        writeln!(
            ptx,
            "ld.param.u64 %d1, [p]; cvta.to.global.u64 %d2, %d1; ld.global.f32 %f1, [%d2];"
        )
        .unwrap();
        for step in 0..150 {
            writeln!(
                ptx,
                "fma.rn.f32 %f1, %f1, 0f3F8{:05X}, 0f3F000000;",
                kernel * 150 + step
            )
            .unwrap();
        }
        writeln!(ptx, "st.global.f32 [%d2], %f1; ret; }}").unwrap();
    }
    assert!(ptx.len() >= super::nvidia::SPLIT_PTX_BYTES, "{}", ptx.len());
    let code = |cubin: &[u8]| -> Vec<(String, Vec<u8>)> {
        let elf = crate::image::elf::Elf::parse(cubin).unwrap();
        let kernels = elf
            .sections()
            .iter()
            .filter(|section| section.name.starts_with(".text."));
        let mut code: Vec<_> = kernels
            .map(|section| (section.name.to_owned(), elf.contents(section).unwrap().to_vec()))
            .collect();
        code.sort();
        code
    };
    with(|parts| {
        let compilers = PtxToCubin::new(parts);
        for compiler in [PtxCompiler::NvPtxCompiler, PtxCompiler::Ptxas] {
            let compile = |extra: &[&str]| {
                let options = PtxOptions {
                    extra: extra.iter().map(|&option| option.to_owned()).collect(),
                    ..PtxOptions::default()
                };
                compilers
                    .compile(&ptx, "sm_90", &options, Some(compiler), LONG)
                    .unwrap()
                    .bytes
            };
            let split = compile(&[]);
            assert!(
                split.windows(15).any(|window| window == b"split-compile 4"),
                "the note with the options"
            );
            assert!(split == compile(&[]), "the same each time");
            let whole = compile(&["--split-compile=1"]);
            assert_eq!(code(&split).len(), 40);
            assert!(code(&split) == code(&whole), "{compiler}");
        }
    });
}
