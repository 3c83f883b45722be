//! What is said about modules that do not load, and kernels that are not there.

use super::*;
use crate::bridge::driver::Status;
use gpulower_image::target::Vendor;

fn failed(code: i32, name: &str, text: &str) -> DriverError {
    DriverError::Failed {
        call: "loading a module",
        status: Status {
            vendor: Vendor::Nvidia,
            code,
            name: name.to_owned(),
            text: text.to_owned(),
        },
    }
}

fn jit(source: DriverError, errors: &str) -> String {
    ModuleError::Jit {
        name: "k.ptx".to_owned(),
        image: "image 1, PTX for sm_90".to_owned(),
        log: Box::new(JitLog {
            info: String::new(),
            errors: errors.to_owned(),
        }),
        source: Box::new(source),
    }
    .to_string()
}

#[test]
fn the_compilers_log_is_in_the_message() {
    let source = failed(218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed");
    assert_eq!(
        jit(
            source,
            "ptxas application ptx input, line 7; fatal: Parsing error\nptxas fatal: Ptx assembly aborted"
        ),
        "the driver does not compile image 1, PTX for sm_90 of k.ptx: loading a module returned CUDA_ERROR_INVALID_PTX (218): a \
         PTX JIT compilation failed\n  ptxas application ptx input, line 7; fatal: Parsing error\n  ptxas fatal: Ptx assembly \
         aborted"
    );
    let text = jit(
        failed(
            221,
            "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
            "PTX JIT compiler library not found",
        ),
        "",
    );
    assert!(text.contains("libnvidia-ptxjitcompiler.so.1"), "{text}");
    assert!(jit(failed(223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", ""), "").contains("CUDA_DISABLE_PTX_JIT"));
}

#[test]
fn a_kernel_that_is_not_there_is_answered_with_those_that_are() {
    let text = |wanted: &str, kernels: &[&str]| {
        ModuleError::NoSuchKernel {
            module: "app".to_owned(),
            kernel: wanted.to_owned(),
            kernels: kernels.iter().map(|name| (*name).to_owned()).collect(),
        }
        .to_string()
    };
    assert_eq!(
        text("saxpi", &["gelu", "saxpy"]),
        "app has no kernel \"saxpi\": did you mean saxpy?"
    );
    assert_eq!(
        text("softmax", &["gelu", "saxpy"]),
        "app has no kernel \"softmax\": it has gelu, saxpy"
    );
    assert_eq!(text("k", &[]), "app has no kernel \"k\": it has none at all");
    let many: Vec<String> = (0..20).map(|index| format!("kernel_number_{index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(text("softmax", &many).ends_with("kernel_number_7 and 12 more"));
}

#[test]
fn the_other_errors_name_the_module() {
    assert_eq!(
        ModuleError::KernelLeftOut {
            module: "app".to_owned(),
            kernel: "k".to_owned()
        }
        .to_string(),
        "the driver left kernel \"k\" of app out: it needs a symbol that the module does not define; link it first (`gpulower \
         link`)"
    );
    assert_eq!(
        ModuleError::NoSuchVariable {
            module: "app".to_owned(),
            variable: "table".to_owned()
        }
        .to_string(),
        "app has no global variable \"table\" that a host can see: it has to be visible outside of its module"
    );
    assert_eq!(
        ModuleError::Refused {
            name: "app".to_owned(),
            image: "image 1, cubin for sm_90".to_owned(),
            source: Box::new(failed(
                200,
                "CUDA_ERROR_INVALID_IMAGE",
                "device kernel image is invalid"
            )),
        }
        .to_string(),
        "the driver does not load image 1, cubin for sm_90 of app: loading a module returned CUDA_ERROR_INVALID_IMAGE (200): \
         device kernel image is invalid"
    );
}
