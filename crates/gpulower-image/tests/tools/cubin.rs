//! The cubin reader against `cuobjdump`, and against damaged files.

use std::collections::BTreeMap;
use std::path::Path;

use gpulower_image::image::cubin::{CubinInfo, read};
use gpulower_image::image::ptx_log;
use gpulower_testing::nvidia::{self, recursive_module, rich_module, run, store_kernel};

fn assemble(ptx: &str, chip: &str, more: &[&str]) -> nvidia::Assembled {
    let chip = format!("--gpu-name={chip}");
    let mut options = vec![chip.as_str(), "-v"];
    options.extend(more);
    nvidia::assemble(ptx, &options)
}

/// `cuobjdump -res-usage`: for each function its numbers by name.
fn usage(cubin: &Path) -> BTreeMap<String, BTreeMap<String, u64>> {
    let text = run("cuobjdump", &["-res-usage".as_ref(), cubin.as_ref()]);
    let mut found = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(rest) = line.trim().strip_prefix("Function ") {
            name = Some(rest.trim_end_matches(':').to_owned());
        } else if let Some(name) = name.take() {
            let numbers = line
                .split_whitespace()
                .filter_map(|word| word.split_once(':'))
                .map(|(key, number)| (key.to_owned(), number.parse().unwrap()))
                .collect();
            found.insert(name, numbers);
        }
    }
    found
}

fn check_against_cuobjdump(cubin: &[u8], read: &CubinInfo) {
    let file = tempfile::Builder::new().suffix(".cubin").tempfile().unwrap();
    std::fs::write(file.path(), cubin).unwrap();
    let expected = usage(file.path());
    assert_eq!(expected.len(), read.kernels.len(), "{expected:?}");
    for kernel in &read.kernels {
        let expected = &expected[&kernel.name];
        let shared = kernel.shared_bytes + kernel.reserved_shared_bytes;
        assert_eq!(Some(expected["REG"]), kernel.registers.map(u64::from), "{kernel:?}");
        assert_eq!(expected["STACK"], kernel.scratch_bytes, "{kernel:?}");
        assert_eq!(expected["SHARED"], shared, "{kernel:?}");
        for bank in &kernel.constant_banks {
            assert_eq!(expected[&format!("CONSTANT[{}]", bank.bank)], bank.bytes, "{kernel:?}");
        }
        assert!(!kernel.constant_banks.is_empty());
    }
}

#[test]
fn every_kernel_matches_cuobjdump_and_the_log() {
    let cases = [
        ("7.8", "sm_75", "sm_75"),
        ("7.8", "sm_80", "sm_80"),
        ("7.8", "sm_80", "sm_89"),
        ("7.8", "sm_90", "sm_90"),
        ("8.0", "sm_90a", "sm_90a"),
        ("8.6", "sm_100a", "sm_100a"),
        ("8.8", "sm_100f", "sm_103f"),
        ("8.7", "sm_120", "sm_120"),
    ];
    for (version, target, chip) in cases {
        let assembled = assemble(&rich_module(version, target), chip, &[]);
        let log = ptx_log::parse(&assembled.log);
        let mut cubin = read(&assembled.cubin).unwrap();
        check_against_cuobjdump(&assembled.cubin, &cubin);
        cubin.add_log(&log);
        assert_eq!(cubin.chip(), chip.trim_end_matches('f'));
        assert_eq!(cubin.mercury, cubin.arch >= 100, "{chip}");
        assert!(!cubin.relocatable);
        assert_eq!(cubin.kernels.len(), 4);
        for kernel in &cubin.kernels {
            let logged = log.function(&kernel.name).unwrap();
            assert_eq!(kernel.registers, logged.registers);
            assert_eq!(kernel.shared_bytes, u64::from(logged.shared.unwrap_or(0)));
            assert_eq!(kernel.scratch_bytes, u64::from(logged.stack_frame.unwrap()));
            assert_eq!(kernel.spills(), Some(kernel.name == "spilling"));
            assert!(kernel.code_bytes.unwrap() > 0);
            assert_eq!(kernel.dynamic_stack, None);
        }
        let named = |name: &str| cubin.kernels.iter().find(|kernel| kernel.name == name).unwrap();
        let plain = named("plain");
        assert_eq!(plain.max_threads_per_block, Some(256));
        let parameters: Vec<_> = plain
            .parameters
            .iter()
            .map(|parameter| (parameter.ordinal, parameter.offset, parameter.size))
            .collect();
        assert_eq!(parameters, [(0, 0, 8), (1, 8, 4), (2, 16, 40)]);
        assert_eq!(plain.parameter_bytes, Some(56));
        assert_eq!(named("shared_memory").required_block, Some([64, 1, 1]));
        assert_eq!(named("shared_memory").shared_bytes, 2176);
        let reserved = if cubin.arch >= 90 { 1024 } else { 0 };
        assert_eq!(named("shared_memory").reserved_shared_bytes, reserved);
        assert_eq!(plain.reserved_shared_bytes, 0);
        assert_eq!(
            cubin
                .constant_banks
                .iter()
                .map(|bank| (bank.bank, bank.bytes))
                .collect::<Vec<_>>(),
            [(3, 256)],
            "{chip}"
        );
    }
}

#[test]
fn clusters_large_parameters_and_relocatable_code() {
    let text = store_kernel("8.1", "sm_90")
        .replace("(.param .u64 p)", "(.param .u64 p, .param .align 4 .b8 large[8000])")
        .replacen(" {\n", "\n.reqnctapercluster 2, 1, 1\n{\n", 1);
    let cubin = read(&assemble(&text, "sm_90", &["-c"]).cubin).unwrap();
    assert!(cubin.relocatable);
    let kernel = &cubin.kernels[0];
    assert_eq!(kernel.cluster, Some([2, 1, 1]));
    assert_eq!((kernel.parameters[1].offset, kernel.parameters[1].size), (8, 8000));
    assert_eq!(kernel.parameter_bytes, Some(8008));
}

#[test]
fn recursion_is_told() {
    let assembled = assemble(&recursive_module(), "sm_80", &[]);
    let cubin = read(&assembled.cubin).unwrap();
    check_against_cuobjdump(&assembled.cubin, &cubin);
    assert_eq!(cubin.kernels[0].dynamic_stack, Some(true));
    assert!(cubin.device_functions[0].frame_bytes > 0);
}

#[test]
fn damaged_files_give_errors_that_name_the_place() {
    let good = assemble(&rich_module("7.8", "sm_90"), "sm_90", &[]).cubin;
    let whole = read(&good).unwrap();
    let mut errors = 0;
    for length in 0..good.len() {
        match read(&good[..length]) {
            // What lies behind the last section is not read.
            Ok(cubin) => assert_eq!(cubin, whole),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("offset 0x") || text.starts_with("not an ELF file"),
                    "{text}"
                );
                errors += 1;
            }
        }
    }
    assert!(errors > 1000, "{errors}");
    // Any byte may be wrong: an answer or an error, never a panic.
    let mut changed = good.clone();
    for position in 0..good.len() {
        for value in [0xff, good[position] ^ 0x05] {
            changed[position] = value;
            let _ = read(&changed);
        }
        changed[position] = good[position];
    }
}

#[test]
fn other_files_are_refused() {
    let own = std::fs::read("/proc/self/exe").unwrap();
    let text = read(&own).unwrap_err().to_string();
    assert!(text.starts_with("not a cubin: an ELF file for machine"), "{text}");
    let text = read(b".version 7.8").unwrap_err().to_string();
    assert!(text.starts_with("not an ELF file"), "{text}");
}
