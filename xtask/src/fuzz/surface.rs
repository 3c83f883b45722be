//! The ways in: which inputs there are, and how one is made from a seed.

use clap::ValueEnum;
use fastrand::Rng;
use serde_json::{Value, json};

use super::mutate::{self, Language, one_of};
use super::seeds::{OptionSeed, Seed, Seeds};

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Surface {
    /// MLIR to PTX, LLVM IR and cubins.
    MlirNvidia,
    /// MLIR to AMD objects, assembly and hsacos.
    MlirAmd,
    /// One operation in a kernel, with anything as operands and attributes.
    Operations,
    /// MLIR through the passes of gpulower-opt.
    Passes,
    /// Pass pipelines.
    Pipelines,
    /// Whole programs through the export.
    Export,
    /// MLIR bytecode.
    MlirBytecode,
    /// Device LLVM IR, text.
    LlvmIr,
    /// Device bitcode.
    Bitcode,
    /// Libraries, bitcode and text.
    Libraries,
    /// PTX.
    Ptx,
    /// Names of targets.
    Targets,
    /// Names and values of options.
    Options,
    /// Files that `gpulower inspect` reads.
    Containers,
}

/// One input: what the driver is told, and the files with their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub job: Value,
    pub files: Vec<(String, Vec<u8>)>,
}

/// Time that an input has in a worker process.
const WORKER_SECONDS: &str = "30";

/// Memory that an input has in a worker process.
const WORKER_MEBIBYTES: &str = "2048";

const NVIDIA: &[&str] = &[
    "sm_50",
    "sm_70",
    "sm_75",
    "sm_80",
    "sm_90",
    "sm_90a",
    "sm_100a",
    "sm_120",
    "compute_80",
];
const AMD: &[&str] = &[
    "gfx906",
    "gfx90a",
    "gfx90a:xnack+",
    "gfx942",
    "gfx950",
    "gfx1030",
    "gfx1100",
    "gfx1201",
    "gfx9-4-generic",
];

const TARGETS: &[&str] = &[
    "sm_90,gfx942",
    "sm_90a",
    "compute_90",
    "sm_100f",
    "gfx90a:xnack+:sramecc-",
    "gfx9-4-generic",
    "gfx11-generic",
    "sm_52",
    "native",
    "gfx1250",
];

const PIPELINES: &[&str] = &[
    "builtin.module(gpulower-to-binary{targets=sm_90 format=isa})",
    "builtin.module(gpulower-to-binary{targets=gfx942 format=llvm})",
    "builtin.module(gpulower-attach-targets{targets=sm_80,gfx1100 O=2},gpulower-lower)",
    "builtin.module(gpulower-attach-targets{targets=sm_90 fast=true ftz=true},gpulower-serialize{format=isa})",
    "builtin.module(gpulower-attach-targets{targets=gfx90a wave-size=64},gpulower-serialize{format=isa})",
    "builtin.module(gpulower-embed-offload{targets=gfx942 finish-with=clang-22,rocm})",
    "builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=64}))",
    "builtin.module(gpu.module(gpulower-expand-gpu{amd=true chipset=gfx942 subgroup-size=64}))",
    "builtin.module(gpulower-host-to-llvm{kernel-index-bitwidth=64})",
];

/// Passes with an option, whose value is put at the `%`.
const PASS_OPTIONS: &[&str] = &[
    "builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=%}))",
    "builtin.module(gpu.module(gpulower-expand-gpu{subgroup-size=%}))",
    "builtin.module(gpu.module(gpulower-expand-gpu{capability=%}))",
    "builtin.module(gpu.module(gpulower-expand-gpu-blocks{amd=true chipset=% subgroup-size=64}))",
    "builtin.module(gpulower-to-binary{targets=% format=isa})",
    "builtin.module(gpulower-to-binary{targets=sm_90 format=%})",
    "builtin.module(gpulower-attach-targets{targets=gfx942 O=% wave-size=%},gpulower-serialize{format=isa})",
    "builtin.module(gpulower-attach-targets{targets=sm_90 index-bitwidth=% interleave=%},gpulower-serialize{format=isa})",
];

/// Values at the ends of what numbers can be, and what is no number.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "31",
    "32",
    "63",
    "64",
    "65",
    "-1",
    "2147483647",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999",
    "1e9",
    "0x20",
    "",
    "true",
    "gfx942",
    "gfx99999999999",
    "sm_90",
    "sm_0",
    "sm_99999999999",
];

/// A kernel that every target compiles.
const KERNEL: &str = "gpu.module @m { gpu.func @k(%p: memref<?xf32>, %v: f32) kernel {
  %i = gpu.global_id x
  memref.store %v, %p[%i] : memref<?xf32>
  gpu.return } }";

impl Surface {
    pub fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Whether its inputs are for the compiler itself: damaged kernels, libraries and PTX.
    pub const fn compiles(self) -> bool {
        match self {
            Self::MlirNvidia
            | Self::MlirAmd
            | Self::Operations
            | Self::MlirBytecode
            | Self::LlvmIr
            | Self::Bitcode
            | Self::Libraries
            | Self::Ptx => true,
            Self::Passes | Self::Pipelines | Self::Export | Self::Targets | Self::Options | Self::Containers => false,
        }
    }

    /// The input of a number: always the same for the same seed.
    pub fn input(self, seeds: &Seeds, seed: u64, number: u64) -> Input {
        let mut rng = Rng::with_seed(seed);
        let stream = rng.u64(..) ^ (self as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.rotate_left(32);
        let rng = &mut Rng::with_seed(stream);
        rng.u64(..);
        match self {
            Self::MlirNvidia => {
                let bytes = mlir(rng, seeds, &seeds.mlir, Vendor::Nvidia);
                let emit = one_of(rng, &["ptx", "ptx", "ptx", "ptx", "llvm", "mlir", "cubin", "fatbin"]);
                let target = one_of(rng, NVIDIA);
                compile(
                    target,
                    emit,
                    some_options(rng, &seeds.options, target, emit),
                    vec![("input.mlir", bytes)],
                )
            }
            Self::MlirAmd => {
                let bytes = mlir(rng, seeds, &seeds.mlir, Vendor::Amd);
                let emit = one_of(rng, &["object", "asm", "hsaco", "hsaco", "llvm", "bundle", "offload"]);
                let target = one_of(rng, AMD);
                compile(
                    target,
                    emit,
                    some_options(rng, &seeds.options, target, emit),
                    vec![("input.mlir", bytes)],
                )
            }
            Self::Operations => {
                let operation = &seeds.operations[rng.usize(0..seeds.operations.len())];
                let bytes = operation.kernel(rng).into_bytes();
                let (target, emit) = Vendor::any(rng).target(rng);
                compile(target, emit, Vec::new(), vec![("input.mlir", bytes)])
            }
            Self::Passes => {
                let pipeline = one_of(rng, PIPELINES);
                let pipeline = with_pass_options(rng, &seeds.options, pipeline);
                let vendor = match pipeline.contains("gfx") {
                    true => Vendor::Amd,
                    false => Vendor::Nvidia,
                };
                let bytes = mlir(rng, seeds, &seeds.mlir, vendor);
                passes(&pipeline, bytes)
            }
            Self::Pipelines => {
                if rng.bool() {
                    let pipeline = one_of(rng, PASS_OPTIONS).replace('%', one_of(rng, VALUES));
                    return passes(&pipeline, KERNEL.as_bytes().to_vec());
                }
                let (pipeline, other) = (one_of(rng, PIPELINES), one_of(rng, PIPELINES));
                let pipeline = with_pass_options(rng, &seeds.options, pipeline);
                let pipeline = mutate::text(rng, Language::Other, &pipeline, other, &seeds.other_words);
                passes(&pipeline, KERNEL.as_bytes().to_vec())
            }
            Self::Export => export(rng, seeds),
            Self::MlirBytecode => {
                let vendor = Vendor::any(rng);
                let bytes = damaged(rng, &seeds.bytecode);
                for_vendor(rng, seeds, vendor, ("input.mlirbc", bytes))
            }
            Self::LlvmIr => {
                let vendor = Vendor::any(rng);
                let bytes = llvm(rng, seeds, vendor);
                for_vendor(rng, seeds, vendor, ("input.ll", bytes))
            }
            Self::Bitcode => {
                let vendor = Vendor::any(rng);
                let (seed, other) = (pick_for(rng, &seeds.bitcode, vendor), pick(rng, &seeds.bitcode));
                let bytes = mutate::bytes(rng, &seed.bytes, &other.bytes);
                for_vendor(rng, seeds, vendor, ("input.bc", bytes))
            }
            Self::Libraries => libraries(rng, seeds),
            Self::Ptx => {
                let (seed, other) = (pick(rng, &seeds.ptx), pick(rng, &seeds.ptx));
                let text = mutate::text(rng, Language::Other, &seed.text(), &other.text(), &seeds.other_words);
                let target = one_of(rng, &["sm_80", "sm_90", "sm_90a", "sm_100a"]);
                compile(target, "cubin", Vec::new(), vec![("input.ptx", text.into_bytes())])
            }
            Self::Targets => {
                let all: Vec<&str> = [TARGETS, NVIDIA, AMD].concat();
                let (target, other) = (one_of(rng, &all), one_of(rng, &all));
                let target = mutate::text(rng, Language::Other, target, other, &seeds.other_words);
                let emit = one_of(rng, &["llvm", "binary", "ptx", "object"]);
                compile(
                    &target,
                    emit,
                    Vec::new(),
                    vec![("input.mlir", KERNEL.as_bytes().to_vec())],
                )
            }
            Self::Options => {
                let target = one_of(rng, &[NVIDIA, AMD].concat());
                let mut options = some_options(rng, &seeds.options, target, "binary");
                for (name, value) in &mut options {
                    let text = if rng.u8(0..8) == 0 { name } else { value };
                    *text = mutate::text(rng, Language::Other, text, "0\n-1\ntrue", &seeds.other_words);
                }
                compile(
                    target,
                    "binary",
                    options,
                    vec![("input.mlir", KERNEL.as_bytes().to_vec())],
                )
            }
            Self::Containers => Input::new(
                json!({ "action": "inspect" }),
                vec![("input", damaged(rng, &seeds.containers))],
            ),
        }
    }
}

impl Input {
    /// The input with further options.
    pub fn with_options(mut self, options: &[(String, String)]) -> Self {
        if let Some(Value::Array(listed)) = self.job.get_mut("options") {
            listed.extend(options.iter().map(|pair| json!(pair)));
        }
        self
    }

    /// The input as one for worker processes, with limits of time and memory.
    pub fn in_workers(mut self) -> Self {
        self.job["workers"] = json!(true);
        let limits = [
            ("isolation", "worker"),
            ("time-limit", WORKER_SECONDS),
            ("memory-limit", WORKER_MEBIBYTES),
        ];
        self.with_options(&limits.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    fn new(mut job: Value, files: Vec<(&str, Vec<u8>)>) -> Self {
        let listed: Vec<Value> = files
            .iter()
            .map(|(name, bytes)| json!({ "name": name, "bytes": bytes.len() }))
            .collect();
        job["files"] = Value::Array(listed);
        Self {
            job,
            files: files
                .into_iter()
                .map(|(name, bytes)| (name.to_owned(), bytes))
                .collect(),
        }
    }
}

fn pick<'a>(rng: &mut Rng, seeds: &'a [Seed]) -> &'a Seed {
    &seeds[rng.usize(0..seeds.len())]
}

/// The vendor whose chips a seed is for, as far as that is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    fn any(rng: &mut Rng) -> Self {
        one_of(rng, &[Self::Nvidia, Self::Amd])
    }

    /// A target of the vendor, and a form of output.
    fn target(self, rng: &mut Rng) -> (&'static str, &'static str) {
        match self {
            Self::Nvidia => (one_of(rng, NVIDIA), "ptx"),
            Self::Amd => (one_of(rng, AMD), "object"),
        }
    }

    fn suits(self, seed: &Seed) -> bool {
        let foreign = match self {
            Self::Nvidia => ["amdgpu.", "rocdl.", "mfma", ".gfx"],
            Self::Amd => ["nvgpu.", "nvvm.", "mma.sync", ".sm_"],
        };
        let text = seed.text();
        !foreign
            .iter()
            .any(|word| text.contains(word) || seed.name.contains(word))
    }
}

/// A seed for the vendor, if some tries find one.
fn pick_for<'a>(rng: &mut Rng, seeds: &'a [Seed], vendor: Vendor) -> &'a Seed {
    let mut seed = pick(rng, seeds);
    for _ in 0..8 {
        if vendor.suits(seed) {
            break;
        }
        seed = pick(rng, seeds);
    }
    seed
}

fn damaged(rng: &mut Rng, seeds: &[Seed]) -> Vec<u8> {
    let (seed, other) = (pick(rng, seeds), pick(rng, seeds));
    mutate::bytes(rng, &seed.bytes, &other.bytes)
}

fn mlir(rng: &mut Rng, seeds: &Seeds, from: &[Seed], vendor: Vendor) -> Vec<u8> {
    let (seed, other) = (pick_for(rng, from, vendor), pick(rng, &seeds.mlir));
    mutate::text(rng, Language::Mlir, &seed.text(), &other.text(), &seeds.mlir_words).into_bytes()
}

fn llvm(rng: &mut Rng, seeds: &Seeds, vendor: Vendor) -> Vec<u8> {
    let (seed, other) = (pick_for(rng, &seeds.llvm, vendor), pick(rng, &seeds.llvm));
    mutate::text(rng, Language::LlvmIr, &seed.text(), &other.text(), &seeds.llvm_words).into_bytes()
}

/// Options that the vendor's targets can honour for a form of output, most of the time.
fn some_options(rng: &mut Rng, known: &[OptionSeed], target: &str, emit: &str) -> Vec<(String, String)> {
    let vendor = if target.starts_with("gfx") { "AMD" } else { "NVIDIA" };
    let of_containers: &[&str] = match emit {
        "fatbin" => &[],
        "bundle" => &["include-ptx"],
        _ => &["compress", "include-ptx"],
    };
    let count = one_of(rng, &[0, 0, 1, 2, 4]);
    let mut options = Vec::new();
    for _ in 0..count {
        let option = &known[rng.usize(0..known.len())];
        let fits = option.only.as_deref().is_none_or(|only| only == vendor)
            && !option.is_the_callers
            && !of_containers.contains(&option.name.as_str());
        if fits || rng.u8(0..16) == 0 {
            options.push((option.name.clone(), option.value(rng)));
        }
    }
    options
}

/// A pipeline with an option of one of its passes, or with another value of one that it has.
fn with_pass_options(rng: &mut Rng, known: &[OptionSeed], pipeline: &str) -> String {
    let option = &known[rng.usize(0..known.len())];
    let name = &option.name;
    let value = match rng.u8(0..4) {
        0 => one_of(
            rng,
            &["0", "1", "7", "48", "-1", "4294967295", "18446744073709551616", ""],
        )
        .to_owned(),
        _ => option.value(rng),
    };
    let given = format!("{name}=\"{value}\"");
    if let Some((before, after)) = pipeline.split_once(&format!("{name}=")) {
        let end = after.find([' ', '}']).unwrap_or(after.len());
        return format!("{before}{given}{}", &after[end..]);
    }
    let pass = option
        .passes
        .iter()
        .find_map(|pass| pipeline.find(&format!("{pass}{{")));
    // A pass that is two in one has the options of both.
    let place = pass.or_else(|| pipeline.find("gpulower-to-binary{"));
    match place.and_then(|place| Some(place + pipeline[place..].find('{')? + 1)) {
        Some(place) => format!("{}{given} {}", &pipeline[..place], &pipeline[place..]),
        None => pipeline.to_owned(),
    }
}

fn compile(target: &str, emit: &str, options: Vec<(String, String)>, files: Vec<(&str, Vec<u8>)>) -> Input {
    let job = json!({ "action": "compile", "targets": target, "emit": emit, "options": options });
    Input::new(job, files)
}

fn for_vendor(rng: &mut Rng, seeds: &Seeds, vendor: Vendor, file: (&str, Vec<u8>)) -> Input {
    let (target, emit) = vendor.target(rng);
    compile(
        target,
        emit,
        some_options(rng, &seeds.options, target, emit),
        vec![file],
    )
}

fn passes(pipeline: &str, bytes: Vec<u8>) -> Input {
    let job = json!({ "action": "passes", "pipeline": pipeline });
    Input::new(job, vec![("input.mlir", bytes)])
}

fn export(rng: &mut Rng, seeds: &Seeds) -> Input {
    let (target, finish_with) = one_of(
        rng,
        &[
            ("sm_80", "clang-19,cuda-12.4"),
            ("sm_90", "clang-22,cuda-12.8"),
            ("gfx942", "clang-22,rocm"),
            ("gfx90a,gfx1100", "clang-17,rocm"),
        ],
    );
    // A `self` form has nothing to be finished with.
    let (emit, finish_with) = match rng.u8(0..8) {
        0 => ("self", ""),
        _ => (one_of(rng, &["obj", "bc", "ll"]), finish_with),
    };
    let vendor = match target.starts_with("gfx") {
        true => Vendor::Amd,
        false => Vendor::Nvidia,
    };
    let job = json!({
        "action": "export", "targets": target, "emit": emit, "finish_with": finish_with, "options": some_options(rng, &seeds.options, target, emit),
    });
    Input::new(job, vec![("input.mlir", mlir(rng, seeds, &seeds.programs, vendor))])
}

/// A kernel that calls what the library defines, and the damaged library.
fn libraries(rng: &mut Rng, seeds: &Seeds) -> Input {
    let library = pick(rng, &seeds.libraries);
    let other = pick(rng, &seeds.libraries);
    let is_text = library.name.ends_with(".ll");
    let (name, bytes) = match is_text {
        true => (
            "library.ll",
            mutate::text(rng, Language::LlvmIr, &library.text(), &other.text(), &seeds.llvm_words).into_bytes(),
        ),
        false => ("library.bc", mutate::bytes(rng, &library.bytes, &other.bytes)),
    };
    let stem = library.name.split('.').next().unwrap_or_default();
    let function = match stem {
        "calls_back" => "middle",
        "calls_libdevice" | "calls_ocml" => "outer",
        "oclc" => "isa_version",
        other => other,
    };
    let kind = match function {
        "isa_version" => "() -> i32",
        _ => "(f32) -> f32",
    };
    let argument = if kind.starts_with("()") { "" } else { "%v" };
    let result = kind.rsplit(' ').next().unwrap_or_default();
    let kernel = format!(
        "gpu.module @m {{ func.func private @{function}{kind}
           gpu.func @k(%p: memref<?xf32>, %q: memref<?x{result}>) kernel {{
             %i = gpu.global_id x
             %v = memref.load %p[%i] : memref<?xf32>
             %a = func.call @{function}({argument}) : {kind}
             memref.store %a, %q[%i] : memref<?x{result}>
             gpu.return }} }}"
    );
    let vendor = match library.text().contains("__ocml") || stem == "oclc" {
        true => Vendor::Amd,
        false if stem == "calls_libdevice" => Vendor::Nvidia,
        false => Vendor::any(rng),
    };
    let (target, emit) = vendor.target(rng);
    compile(
        target,
        emit,
        Vec::new(),
        vec![("input.mlir", kernel.into_bytes()), (name, bytes)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_added_to_those_of_an_input() {
        let input = compile("sm_90", "ptx", vec![("O".to_owned(), "0".to_owned())], Vec::new());
        let input = input.with_options(&[("ftz".to_owned(), "true".to_owned())]);
        assert_eq!(input.job["options"], json!([["O", "0"], ["ftz", "true"]]));
        // `inspect` has none.
        let input = Input::new(json!({ "action": "inspect" }), vec![("a", vec![1, 2])]);
        let again = input.clone().with_options(&[("ftz".to_owned(), "true".to_owned())]);
        assert_eq!(input, again);
        assert_eq!(input.job["files"], json!([{ "name": "a", "bytes": 2 }]));
    }

    #[test]
    fn inputs_for_workers_are_limited() {
        let input = compile("sm_90", "ptx", vec![("O".to_owned(), "0".to_owned())], Vec::new()).in_workers();
        assert_eq!(input.job["workers"], true);
        let options = input.job["options"].to_string();
        assert!(
            options.contains(r#"["O","0"],["isolation","worker"]"#) && options.contains("time-limit"),
            "{options}"
        );
    }

    #[test]
    fn passes_get_options_that_they_have() {
        let known = [OptionSeed {
            name: "index-bitwidth".to_owned(),
            examples: vec!["32".to_owned()],
            only: None,
            passes: vec!["gpulower-lower".to_owned()],
            is_the_callers: false,
        }];
        let some = |pipeline| -> Vec<String> {
            let mut rng = Rng::with_seed(1);
            (0..20).map(|_| with_pass_options(&mut rng, &known, pipeline)).collect()
        };
        assert!(some("a(gpulower-lower{O=1})").contains(&"a(gpulower-lower{index-bitwidth=\"32\" O=1})".to_owned()));
        assert!(some("b{index-bitwidth=64 x}").contains(&"b{index-bitwidth=\"32\" x}".to_owned()));
        assert_eq!(some("c{d=1}")[0], "c{d=1}");
    }

    #[test]
    fn the_vendor_is_told_from_the_words_of_a_seed() {
        let seed = |name: &str, text: &str| Seed {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        assert!(Vendor::Amd.suits(&seed("a.mlir", "amdgpu.mfma")));
        assert!(!Vendor::Nvidia.suits(&seed("a.mlir", "amdgpu.mfma")));
        assert!(!Vendor::Amd.suits(&seed("a.sm_90.bc", "")));
        assert!(Vendor::Nvidia.suits(&seed("a.sm_90.bc", "")));
    }
}
