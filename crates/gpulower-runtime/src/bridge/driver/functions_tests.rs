//! The tables against the vendors' headers, with clang as the judge.

use std::mem::{offset_of, size_of};

use super::*;
use gpulower_testing::{amd, nvidia};

/// One function as the tables have it.
type Declaration = (&'static str, &'static str, &'static [&'static str]);

fn declarations() -> impl Iterator<Item = &'static Declaration> {
    Functions::DECLARATIONS
        .iter()
        .chain(CudaFunctions::DECLARATIONS)
        .chain(HipFunctions::DECLARATIONS)
}

/// A type of the tables as CUDA's header names it.
fn cuda_type(rust: &str) -> String {
    if let Some(pointee) = rust.strip_prefix("*mut ") {
        return format!("{} *", cuda_type(pointee));
    }
    if let Some(pointee) = rust.strip_prefix("*const ") {
        return format!("const {} *", cuda_type(pointee));
    }
    match rust {
        "Code" => "CUresult",
        "DeviceNumber" => "CUdevice",
        "Address" => "CUdeviceptr",
        "Context" => "CUcontext",
        "Stream" => "CUstream",
        "Event" => "CUevent",
        "Module" => "CUmodule",
        "Function" => "CUfunction",
        "DeviceAttribute" => "CUdevice_attribute",
        "FunctionAttribute" => "CUfunction_attribute",
        "JitOption" => "CUjit_option",
        "LaunchConfiguration" => "CUlaunchConfig",
        "c_int" => "int",
        "c_uint" | "u32" => "unsigned int",
        "c_char" => "char",
        "c_void" => "void",
        "TensorMap" => "CUtensorMap",
        "TensorType" => "CUtensorMapDataType",
        "TensorInterleave" => "CUtensorMapInterleave",
        "TensorSwizzle" => "CUtensorMapSwizzle",
        "TensorPromotion" => "CUtensorMapL2promotion",
        "TensorFill" => "CUtensorMapFloatOOBfill",
        "usize" => "size_t",
        "u8" => "unsigned char",
        "u16" => "unsigned short",
        "u64" => "cuuint64_t",
        "f32" => "float",
        other => panic!("no name for {other}"),
    }
    .replace("const const", "const")
}

#[test]
fn cudas_functions_are_declared_so_in_cuda_h() {
    let mut program = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <stddef.h>\n".to_owned();
    let mut count = 0;
    for (name, _, types) in declarations().filter(|(cuda, ..)| !cuda.is_empty()) {
        let types: Vec<String> = types.iter().map(|name| cuda_type(name)).collect();
        let types = if types.is_empty() {
            "void".to_owned()
        } else {
            types.join(", ")
        };
        program.push_str(&format!(
            "_Static_assert(__builtin_types_compatible_p(__typeof__({name}), CUresult({types})), \"{name}\");\n"
        ));
        count += 1;
    }
    assert!(count > 50, "{count}");
    for (size, what) in [
        (size_of::<LaunchConfiguration>(), "sizeof(CUlaunchConfig)".to_owned()),
        (size_of::<LaunchAttribute>(), "sizeof(CUlaunchAttribute)".to_owned()),
        (
            offset_of!(LaunchConfiguration, shared_bytes),
            "offsetof(CUlaunchConfig, sharedMemBytes)".to_owned(),
        ),
        (
            offset_of!(LaunchConfiguration, stream),
            "offsetof(CUlaunchConfig, hStream)".to_owned(),
        ),
        (
            offset_of!(LaunchConfiguration, attributes),
            "offsetof(CUlaunchConfig, attrs)".to_owned(),
        ),
        (
            offset_of!(LaunchConfiguration, attribute_count),
            "offsetof(CUlaunchConfig, numAttrs)".to_owned(),
        ),
        (
            offset_of!(LaunchAttribute, value),
            "offsetof(CUlaunchAttribute, value.clusterDim.x)".to_owned(),
        ),
    ] {
        program.push_str(&format!("_Static_assert({size} == {what}, \"{what}\");\n"));
    }
    let include = format!("-I{}", nvidia::toolkit().join("include").display());
    amd::run("clang", &["-fsyntax-only", "-xc", &include, "-"], program.as_bytes());
}

/// Debian's `libamdhip64-dev` has the header; `cargo xtask setup` does not install it.
#[test]
#[ignore = "needs HIP's headers: name their directory in GPULOWER_HIP_INCLUDE"]
fn hips_functions_are_declared_so_in_hip_runtime_api_h() {
    let include = std::env::var("GPULOWER_HIP_INCLUDE").expect("GPULOWER_HIP_INCLUDE names no directory");
    let mut program =
        "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n#include <stddef.h>\n".to_owned();
    for (_, name, types) in declarations().filter(|(_, hip, _)| !hip.is_empty()) {
        let mut arguments = Vec::new();
        for rust in *types {
            // A call converts pointers of any kind; a number of another size is an error, and so is one for a pointer.
            let (c, variable) = match *rust {
                "DeviceAttribute" => ("hipDeviceAttribute_t", "device_attribute"),
                "FunctionAttribute" => ("hipFunction_attribute", "function_attribute"),
                "CopyKind" => ("hipMemcpyKind", "copy_kind"),
                "DeviceNumber" | "c_int" => ("int", "number"),
                "c_uint" | "u32" => ("unsigned int", "unsigned_number"),
                "usize" => ("size_t", "size"),
                "u8" => ("unsigned char", "byte"),
                "u16" => ("unsigned short", "half"),
                _ => ("void *", "pointer"),
            };
            program.push_str(&format!("extern {c} {variable};\n"));
            arguments.push(variable);
        }
        program.push_str(&format!(
            "void call_{name}(void) {{ {name}({}); }}\n",
            arguments.join(", ")
        ));
    }
    let include = format!("-I{include}");
    // hipMemsetD32Async takes its 32 bits as an int.
    let strict = ["-Werror=conversion", "-Werror=int-conversion", "-Wno-sign-conversion"];
    // Functions of releases later than the header's are not in it.
    let later = "-Wno-error=implicit-function-declaration";
    amd::run(
        "clang",
        &[&["-fsyntax-only", "-xc", &include, later], &strict[..], &["-"]].concat(),
        program.as_bytes(),
    );
}
