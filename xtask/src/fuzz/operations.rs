//! Every operation of the dialects that kernels are written in, with operands, results and attributes that need not fit it:
//! what MLIR's verifiers take for granted is not in the examples.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use fastrand::Rng;

use super::mutate::{MLIR_TYPES, one_of};
use crate::command::{Context, Failure};

/// The folders of MLIR's headers, below `mlir/Dialect`.
const DIALECTS: &[&str] = &[
    "AMDGPU/IR",
    "Affine/IR",
    "Arith/IR",
    "Complex/IR",
    "ControlFlow/IR",
    "Func/IR",
    "GPU/IR",
    "Index/IR",
    "LLVMIR",
    "Math/IR",
    "MemRef/IR",
    "NVGPU/IR",
    "SCF/IR",
    "Tensor/IR",
    "UB/IR",
    "Vector/IR",
];

/// Types that a kernel seldom has, and those of its operations that are no operand of anything else.
const TYPES: &[&str] = &[
    "i0",
    "f32",
    "i32",
    "index",
    "vector<4xindex>",
    "vector<4xi0>",
    "vector<4x1xindex>",
    "vector<4x2xf16>",
    "vector<2x2xf16>",
    "vector<0xf32>",
    "vector<16x16xf32>",
    "memref<?xindex>",
    "memref<4xi0>",
    "memref<f32, 3>",
    "memref<64xindex, 3>",
    "memref<64xf16, 3>",
    "memref<64x64xf16, #gpu.address_space<workgroup>>",
    "memref<128xindex, 1>",
    "memref<128xf32, #gpu.address_space<global>>",
    "memref<128xf32, #amdgpu.address_space<fat_raw_buffer>>",
    "memref<4xcomplex<f32>>",
    "memref<4xvector<4xf32>>",
    "memref<2xmemref<?xf32>>",
    "memref<*xindex>",
    "tensor<*xf32>",
    "tensor<4xindex>",
    "complex<f64>",
    "!gpu.mma_matrix<16x16xf32, \"COp\">",
    "!gpu.mma_matrix<1x0xi8, \"BOp\">",
    "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>",
    "!nvgpu.mbarrier.token",
    "!nvgpu.tensormap.descriptor<tensor = memref<f32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>",
    "!nvgpu.tensormap.descriptor<tensor = memref<32x64xindex, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, \
     interleave = none>",
    "!nvgpu.warpgroup.descriptor<tensor = memref<64xi7, 3>>",
    "!nvgpu.warpgroup.accumulator<fragmented = vector<64xf32>>",
    "!nvgpu.warpgroup.accumulator<fragmented = vector<64x0xindex>>",
    "!amdgpu.tdm_base<f32>",
    "!amdgpu.tdm_gather_base<i32, i32>",
];

const ATTRIBUTES: &[&str] = &[
    "unit",
    "true",
    "0 : i32",
    "1 : i32",
    "4 : i64",
    "-1 : i64",
    "4294967295 : i32",
    "0 : index",
    "4 : index",
    "1 : i8",
    "1.5 : f32",
    "\"\"",
    "\"x\"",
    "[]",
    "[16, 8, 16]",
    "[0 : i64, 4 : i64]",
    "[[0], [1, 2]]",
    "array<i32>",
    "array<i32: 0, 1, -1>",
    "array<i32: 1, 1, 1, 1>",
    "array<i64>",
    "array<i64: 0>",
    "array<i64: 0, 1>",
    "array<i64: -9223372036854775808, 4>",
    "array<i1: true, false>",
    "dense<0> : tensor<2xi64>",
    "dense<1> : vector<4xi32>",
    "dense<> : tensor<0xi32>",
    "f32",
    "index",
    "vector<4xindex>",
    "memref<4xf32>",
    "tuple<>",
    "@k",
    "@m::@k",
    "@nothing",
    "affine_map<(d0) -> (d0)>",
    "affine_map<(d0, d1)[s0] -> (d0 floordiv s0, 0)>",
    "affine_map<() -> ()>",
    "[affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>]",
    "affine_set<(d0) : (d0 >= 0)>",
    "#gpu.address_space<workgroup>",
    "#gpu<dim x>",
    "#gpu<all_reduce_op add>",
    "#nvvm.mma_layout<row>",
    "#nvvm.mma_type<s4>",
    "#nvvm.shape<m = 16, n = 8, k = 0>",
    "#llvm.linkage<external>",
    "#llvm.fastmath<fast>",
    "#arith.fastmath<nnan>",
    "#vector.kind<mul>",
    "#amdgpu<dpp_perm row_shl>",
    "{}",
    "{x = 1}",
];

/// An operation, as far as its class in C++ says what it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    name: String,
    attributes: Vec<String>,
    operands: Count,
    results: Count,
    regions: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Exactly(usize),
    AtLeast(usize),
}

/// The operations in the headers below an installation's `include` folder, but for those that end a block elsewhere.
pub fn all(include: &Path) -> Result<Vec<Operation>, Failure> {
    let mut operations = Vec::new();
    for dialect in DIALECTS {
        let folder = include.join("mlir/Dialect").join(dialect);
        let entries = fs::read_dir(&folder).context(|| format!("list {}", folder.display()))?;
        let mut headers = Vec::new();
        for entry in entries {
            let path = entry.context(|| format!("list {}", folder.display()))?.path();
            if path
                .file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.ends_with(".h.inc"))
            {
                headers.push(path);
            }
        }
        headers.sort();
        for header in headers {
            let text = fs::read_to_string(&header).context(|| format!("read {}", header.display()))?;
            operations.extend(in_header(&text));
        }
    }
    Ok(operations)
}

/// The operations that a header of TableGen's defines.
fn in_header(text: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut traits = "";
    let mut attributes = Vec::new();
    let mut is_next = false;
    for line in text.lines() {
        if line.starts_with("class ") && line.contains(": public ::mlir::Op<") {
            traits = line;
            attributes = Vec::new();
        } else if line.contains("attrNames[] = {") {
            attributes = line.split("StringRef(\"").skip(1).filter_map(until_quote).collect();
        } else if is_next && let Some(name) = line.split("StringLiteral(\"").nth(1).and_then(until_quote) {
            if traits.contains("OpTrait::ZeroSuccessors") && !traits.contains("OpTrait::IsTerminator") {
                operations.push(Operation {
                    name,
                    attributes: std::mem::take(&mut attributes),
                    operands: Count::of(traits, "Operand"),
                    results: Count::of(traits, "Result"),
                    regions: Count::of(traits, "Region"),
                });
            }
            traits = "";
        }
        is_next = line.contains("getOperationName()");
    }
    operations
}

fn until_quote(text: &str) -> Option<String> {
    text.split_once('"').map(|(name, _)| name.to_owned())
}

impl Count {
    /// From traits such as `ZeroOperands`, `OneResult`, `NOperands<3>` and `AtLeastNOperands<1>`.
    fn of(traits: &str, what: &str) -> Self {
        let number = |prefix: &str| {
            let (_, rest) = traits.split_once(&format!("OpTrait::{prefix}{what}s<"))?;
            rest.split_once('>')?.0.parse().ok()
        };
        if traits.contains(&format!("OpTrait::Zero{what}s")) {
            Self::Exactly(0)
        } else if traits.contains(&format!("OpTrait::One{what}")) {
            Self::Exactly(1)
        } else if let Some(count) = number("N") {
            Self::Exactly(count)
        } else {
            Self::AtLeast(number("AtLeastN").unwrap_or(0))
        }
    }

    fn choose(self, rng: &mut Rng) -> usize {
        match self {
            // Verifiers look at the number first.
            Self::Exactly(count) => count,
            Self::AtLeast(count) => count + rng.usize(0..4),
        }
    }
}

impl Operation {
    /// A kernel with this operation in it, in MLIR's generic syntax.
    pub fn kernel(&self, rng: &mut Rng) -> String {
        // Verifiers compare types with each other: few of them fit more often than many.
        let types = [any_type(rng), any_type(rng), "index"];
        let mut choose_types = |count: Count| -> Vec<&str> {
            let count = count.choose(rng);
            let any = |rng: &mut Rng| match rng.u8(0..4) {
                0 => any_type(rng),
                _ => one_of(rng, &types),
            };
            (0..count).map(|_| any(rng)).collect()
        };
        let operands = choose_types(self.operands);
        let results = choose_types(self.results);
        let regions = self.regions.choose(rng).min(3);
        let arguments: Vec<String> = (0..)
            .zip(&operands)
            .map(|(index, kind)| format!("%a{index}: {kind}"))
            .collect();
        let values: Vec<String> = (0..operands.len()).map(|index| format!("%a{index}")).collect();
        let mut properties = Vec::new();
        for name in &self.attributes {
            if name == "operandSegmentSizes" {
                properties.push(format!("{name} = {}", segments(rng, operands.len())));
            } else if rng.u8(0..4) > 0 {
                properties.push(format!("{name} = {}", one_of(rng, ATTRIBUTES)));
            }
        }
        let properties = match properties.is_empty() {
            true => String::new(),
            false => format!(" <{{{}}}>", properties.join(", ")),
        };
        let regions = match regions {
            0 => String::new(),
            count => format!(" ({})", vec!["{}"; count].join(", ")),
        };
        let result = match results.len() {
            0 => String::new(),
            count => format!("%r:{count} = "),
        };
        format!(
            "gpu.module @m {{ gpu.func @k({}) kernel {{\n  {result}\"{}\"({}){properties}{regions} : ({}) -> ({})\n  \
             gpu.return }} }}\n",
            arguments.join(", "),
            self.name,
            values.join(", "),
            operands.join(", "),
            results.join(", "),
        )
    }
}

fn any_type(rng: &mut Rng) -> &'static str {
    match rng.bool() {
        true => one_of(rng, TYPES),
        false => one_of(rng, MLIR_TYPES),
    }
}

/// How operands are divided among what an operation calls them.
fn segments(rng: &mut Rng, mut operands: usize) -> String {
    let mut sizes = Vec::new();
    for _ in 0..rng.usize(1..8) {
        let size = rng.usize(0..=operands.min(2));
        operands -= size;
        sizes.push(size.to_string());
    }
    sizes.push(operands.to_string());
    format!("array<i32: {}>", sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"
class LdMatrixOp : public ::mlir::Op<LdMatrixOp, ::mlir::OpTrait::ZeroRegions, ::mlir::OpTrait::OneResult, ::mlir::OpTrait::OneTypedResult<::mlir::VectorType>::Impl, ::mlir::OpTrait::ZeroSuccessors, ::mlir::OpTrait::AtLeastNOperands<1>::Impl> {
    static ::llvm::StringRef attrNames[] = {::llvm::StringRef("numTiles"), ::llvm::StringRef("transpose")};
  static constexpr ::llvm::StringLiteral getOperationName() {
    return ::llvm::StringLiteral("nvgpu.ldmatrix");
class ReturnOp : public ::mlir::Op<ReturnOp, ::mlir::OpTrait::ZeroSuccessors, ::mlir::OpTrait::IsTerminator> {
  static constexpr ::llvm::StringLiteral getOperationName() {
    return ::llvm::StringLiteral("gpu.return");
"#;

    #[test]
    fn headers_say_what_an_operation_looks_like() {
        let expected = Operation {
            name: "nvgpu.ldmatrix".to_owned(),
            attributes: vec!["numTiles".to_owned(), "transpose".to_owned()],
            operands: Count::AtLeast(1),
            results: Count::Exactly(1),
            regions: Count::Exactly(0),
        };
        assert_eq!(in_header(HEADER), [expected]);
        assert_eq!(Count::of("OpTrait::NOperands<3>::Impl", "Operand"), Count::Exactly(3));
    }

    #[test]
    fn kernels_are_generic_syntax() {
        let operation = in_header(HEADER).remove(0);
        let kernel = operation.kernel(&mut Rng::with_seed(7));
        assert!(kernel.contains("%r:1 = \"nvgpu.ldmatrix\"(%a0"), "{kernel}");
        assert_eq!(kernel, operation.kernel(&mut Rng::with_seed(7)));
    }
}
