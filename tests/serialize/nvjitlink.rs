//! nvJitLink itself; linking with it is tested in `device_link`.

use crate::bridge::nvjitlink::{Input, InputKind, NvJitLink};
use crate::bridge::vendor_error::VendorError;
use gpulower_testing::nvidia::{part, store_kernel};

fn library() -> NvJitLink {
    NvJitLink::open(&part("lib/libnvJitLink.so.13")).unwrap()
}

fn options(more: &[&str]) -> Vec<String> {
    ["-arch=sm_90"].iter().chain(more).map(ToString::to_string).collect()
}

fn failed(error: VendorError) -> (i32, String) {
    match error {
        VendorError::Failed { code, log, .. } => (code, log),
        other => panic!("{other:?}"),
    }
}

#[test]
fn links_two_modules_on_four_threads() {
    let library = library();
    assert!(library.version().is_some_and(|version| version >= (12, 4)));
    let one = store_kernel("7.8", "sm_90");
    let two = one.replace("store(", "second(");
    let inputs = [&one, &two].map(|text| Input {
        kind: InputKind::Ptx,
        bytes: text.as_bytes(),
        name: "kernels.ptx",
    });
    let first = library.link(&inputs, &options(&["-verbose"])).unwrap();
    assert!(first.info_log.contains("second"), "{}", first.info_log);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let again = library.link(&inputs, &options(&["-verbose"])).unwrap();
                assert_eq!(again.cubin, first.cubin);
            });
        }
    });
}

#[test]
fn a_crash_of_the_linker_is_an_error_and_the_next_call_works() {
    let library = library();
    let text = store_kernel("7.8", "sm_90");
    let input = Input {
        kind: InputKind::Ptx,
        bytes: text.as_bytes(),
        name: "kernels.ptx",
    };
    let link = || library.link(&[input], &options(&[]));
    let before = link().unwrap();
    for _ in 0..3 {
        let text = library.crash().unwrap_err().to_string();
        let expected = "nvJitLinkComplete crashed: invalid access to memory at 0x";
        assert!(text.starts_with(expected) && text.contains(" (SIGSEGV); "), "{text}");
        assert_eq!(link().unwrap().cubin, before.cubin);
    }
}

#[test]
fn errors_carry_log_and_code() {
    let library = library();
    let bad = store_kernel("7.8", "sm_90").replace("mov.u32", "mow.u32");
    let input = Input {
        kind: InputKind::Ptx,
        bytes: bad.as_bytes(),
        name: "bad.ptx",
    };
    let (code, log) = failed(library.link(&[input], &options(&[])).unwrap_err());
    assert_eq!(code, 4);
    assert!(log.contains("line 9"), "{log}");
    // A handle whose creation failed still gives its log.
    let error = library.link(&[input], &options(&["-bogus"])).unwrap_err();
    assert!(error.to_string().contains("(UNRECOGNIZED_OPTION)"), "{error}");
    let (code, log) = failed(error);
    assert_eq!(code, 1);
    assert!(log.contains("bogus"), "{log}");
    let (code, _) = failed(library.link(&[input], &["-arch=sm_70".to_owned()]).unwrap_err());
    assert_eq!(code, 17);
    let error = library.link(&[input], &["a\0b".to_owned()]).unwrap_err();
    assert_eq!(error.to_string(), "\"a\\0b\" contains a NUL byte at offset 1");
}

#[test]
fn an_executable_cubin_is_refused_before_its_kernels_are_lost() {
    let library = library();
    let text = store_kernel("7.8", "sm_90");
    let ptx = Input {
        kind: InputKind::Ptx,
        bytes: text.as_bytes(),
        name: "a.ptx",
    };
    let linked = library.link(&[ptx], &options(&[])).unwrap();
    let cubin = Input {
        kind: InputKind::Cubin,
        bytes: &linked.cubin,
        name: "a.cubin",
    };
    let error = library.link(&[ptx, cubin], &options(&[])).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("\"a.cubin\" is an executable cubin (ELF type 2)") && message.contains("ptxas -c"),
        "{message}"
    );
}

/// What `device_link` has to look out for.
#[test]
fn a_symbol_that_is_defined_twice_is_a_success() {
    let library = library();
    let text = store_kernel("7.8", "sm_90");
    let input = Input {
        kind: InputKind::Ptx,
        bytes: text.as_bytes(),
        name: "a.ptx",
    };
    assert!(library.link(&[input, input], &options(&[])).is_ok());
}
