//! Kernel metadata in the form MLIR puts it into `#gpu.kernel_metadata<..., metadata = {...}>`.

use super::hsaco::{Hsaco, HsacoKernel};
use crate::ReadError;

/// Value of one metadata attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataValue {
    /// A 64-bit integer attribute (`14 : i64`).
    Int(i64),
    /// A dense array of 32-bit integers (`array<i32: 64, 2, 1>`).
    IntArray(Vec<i64>),
    /// A string attribute. MLIR 22 writes none.
    Str(String),
}

/// Attributes of one kernel, by name, in alphabetical order.
pub type KernelAttributes = Vec<(String, MetadataValue)>;

/// What MLIR 22 writes for a number that the metadata does not have (`agpr_count` on gfx11, for example):
/// `AMDGPUKernelMetaData::KInvalidValue` in `llvm/Frontend/Offloading/Utility.h`, the largest `u32`.
const ABSENT: i64 = u32::MAX as i64;

/// The kernels of a code object with the attributes that MLIR 22 gives them in the kernel table of a
/// `#gpu.object`: the same names, values and order as `mlir::ROCDL::getAMDHSAKernelsELFMetadata`
/// (`mlir/lib/Target/LLVM/ROCDL/Utils.cpp`) prints them. Sorted by kernel name, as the table is.
///
/// A number which the metadata does not have is 4294967295 and an absent shape is (-1, -1, -1), as in
/// MLIR 22; use [`Hsaco`] where the difference matters.
///
/// # Errors
///
/// [`ReadError`] where MLIR would leave the attributes out without a word.
pub fn kernel_metadata(bytes: &[u8]) -> Result<Vec<(String, KernelAttributes)>, ReadError> {
    let mut kernels: Vec<_> = Hsaco::read(bytes)?
        .kernels
        .iter()
        .map(|kernel| (kernel.resources.name.clone(), attributes(kernel)))
        .collect();
    kernels.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(kernels)
}

fn attributes(kernel: &HsacoKernel) -> KernelAttributes {
    let usage = &kernel.resources;
    let number = |value: Option<u32>| MetadataValue::Int(value.map_or(ABSENT, i64::from));
    // MLIR keeps the low 32 bits of a size.
    let size = |value: u64| MetadataValue::Int((value & 0xffff_ffff) as i64);
    let shape = |value: Option<[u32; 3]>| {
        let shape = value.unwrap_or([u32::MAX; 3]);
        MetadataValue::IntArray(shape.map(|extent| i64::from(extent.cast_signed())).to_vec())
    };
    [
        ("agpr_count", number(usage.agprs)),
        ("group_segment_fixed_size", size(usage.shared_bytes)),
        ("max_flat_workgroup_size", number(usage.max_threads_per_block)),
        ("private_segment_fixed_size", size(usage.scratch_bytes)),
        ("reqd_workgroup_size", shape(usage.required_block)),
        ("sgpr_count", number(usage.sgprs)),
        ("sgpr_spill_count", number(usage.spilled_sgprs)),
        ("vgpr_count", number(usage.vgprs)),
        ("vgpr_spill_count", number(usage.spilled_vgprs)),
        ("wavefront_size", number(usage.wavefront_size)),
        ("workgroup_size_hint", shape(kernel.block_hint)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpulower_testing::amd::{hsaco, run, tool};

    const MODULE: &str = r#"
module attributes {gpu.container_module} {
  gpu.module @m [#rocdl.target<chip="CHIP", abi="500">] {
    llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<256 x f32>
    llvm.func @plain(%x: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
    llvm.func @fixed(%x: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 2, 1>} {
      %0 = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %1 = llvm.load volatile %x : !llvm.ptr<1> -> f32
      llvm.store volatile %1, %0 : f32, !llvm.ptr<3>
      llvm.return
    }
  }
}
"#;

    /// The attributes as MLIR prints them.
    fn print(attributes: &KernelAttributes) -> String {
        let attributes: Vec<String> = attributes
            .iter()
            .map(|(name, value)| match value {
                MetadataValue::Int(value) => format!("{name} = {value} : i64"),
                MetadataValue::IntArray(values) => {
                    let values: Vec<String> = values.iter().map(i64::to_string).collect();
                    format!("{name} = array<i32: {}>", values.join(", "))
                }
                MetadataValue::Str(value) => format!("{name} = {value:?}"),
            })
            .collect();
        format!("metadata = {{{}}}", attributes.join(", "))
    }

    /// Bytes of the `bin = "..."` string of an MLIR attribute.
    fn binary(text: &str) -> Vec<u8> {
        let text = text.split_once("bin = \"").unwrap().1;
        let mut bytes = Vec::new();
        let mut characters = text.bytes();
        loop {
            match characters.next().unwrap() {
                b'"' => return bytes,
                b'\\' => match characters.next().unwrap() {
                    b'\\' => bytes.push(b'\\'),
                    high => {
                        let digits = [high, characters.next().unwrap()];
                        let digits = std::str::from_utf8(&digits).unwrap();
                        bytes.push(u8::from_str_radix(digits, 16).unwrap());
                    }
                },
                byte => bytes.push(byte),
            }
        }
    }

    #[test]
    fn attributes_are_those_that_mlir_writes() {
        // MLIR runs `llvm/bin/ld.lld` of a ROCm tree: one with LLVM's own lld in it.
        let rocm = tempfile::tempdir().unwrap();
        let programs = rocm.path().join("llvm/bin");
        std::fs::create_dir_all(&programs).unwrap();
        std::os::unix::fs::symlink(tool("ld.lld"), programs.join("ld.lld")).unwrap();
        let pass = format!("--gpu-module-to-binary=format=fatbin toolkit={}", rocm.path().display());
        for chip in ["gfx90a", "gfx942", "gfx1100"] {
            let module = MODULE.replace("CHIP", chip);
            let text = run("mlir-opt", &[&pass], module.as_bytes());
            let text = String::from_utf8(text).unwrap();
            let kernels = kernel_metadata(&binary(&text)).unwrap();
            let names: Vec<&str> = kernels.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["fixed", "plain"]);
            for (name, attributes) in &kernels {
                let printed = print(attributes);
                let (_, expected) = text.split_once(&format!("#gpu.kernel_metadata<\"{name}\"")).unwrap();
                let expected = &expected[expected.find("metadata = ").unwrap()..];
                assert!(
                    expected.starts_with(&printed),
                    "{chip} {name}: {printed}\nMLIR: {}",
                    &expected[..400]
                );
            }
        }
    }

    #[test]
    fn hints_and_absent_values() {
        let file = hsaco(gpulower_testing::amd::KERNELS, "gfx1100", "", 6);
        let kernels = kernel_metadata(&file).unwrap();
        let (name, attributes) = &kernels[1];
        assert_eq!(name, "scratch");
        let get = |wanted: &str| &attributes.iter().find(|(key, _)| key == wanted).unwrap().1;
        assert_eq!(get("agpr_count"), &MetadataValue::Int(4_294_967_295));
        assert_eq!(get("workgroup_size_hint"), &MetadataValue::IntArray(vec![32, 4, 1]));
        assert!(kernel_metadata(b"text").is_err());
    }
}
