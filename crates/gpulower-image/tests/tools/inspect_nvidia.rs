//! Inspections of what nvcc, clang's bundler and gcc make, against what NVIDIA's and LLVM's tools say about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpulower_image::FileKind;
use gpulower_image::image::elf::Elf;
use gpulower_image::inspect::{DebugInfo, Image, Inspection, Kernel, inspect, inspect_with};
use gpulower_testing::{amd, nvidia};

const SOURCE: &str = r#"
__device__ int global[16];
__global__ void saxpy(float *x, float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
__global__ void __launch_bounds__(128) reverse(double *x) {
  __shared__ double s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[127 - threadIdx.x];
}
int main() { saxpy<<<1, 1>>>(0, 0, 1, 1); reverse<<<1, 1>>>(0); return 0; }
"#;

const CODE: [&str; 4] = [
    "-gencode",
    "arch=compute_80,code=[sm_80,sm_86,compute_80]",
    "-gencode",
    "arch=compute_90a,code=sm_90a",
];

/// A directory in which tools are run.
struct Work(tempfile::TempDir);

impl Work {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("k.cu"), SOURCE).unwrap();
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, program: PathBuf, arguments: &[&str]) -> String {
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(self.path())
            .env(
                "PATH",
                std::env::join_paths([nvidia::toolkit().join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap(),
            )
            .output()
            .unwrap_or_else(|error| panic!("{} could not be run: {error}", program.display()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{} {arguments:?}: {}{}",
            program.display(),
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn nvcc(&self, arguments: &[&str]) {
        let library = format!("-L{}", nvidia::toolkit().join("lib").display());
        self.run(nvidia::part("bin/nvcc"), &[&[library.as_str()], arguments].concat());
    }

    fn cuobjdump(&self, arguments: &[&str]) -> String {
        self.run(nvidia::part("bin/cuobjdump"), arguments)
    }

    fn inspect(&self, name: &str) -> Inspection {
        inspect(name, &self.read(name)).unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }

    /// The images that cuobjdump lists, as `sm_90a.cubin`, sorted.
    fn listed(&self, name: &str) -> Vec<String> {
        let text = self.cuobjdump(&["-lelf", "-lptx", name]);
        let names = text
            .lines()
            .filter_map(|line| Some(line.split_once(": ")?.1.splitn(3, '.').nth(2)?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// The images of an inspection in the same form.
fn names(inspection: &Inspection) -> Vec<String> {
    let images = inspection
        .images
        .iter()
        .filter(|image| matches!(image.kind, FileKind::Cubin | FileKind::Ptx));
    let name = |image: &Image| format!("{}.{}", image.target.as_deref().unwrap(), image.kind.extension());
    let mut names: Vec<String> = images.map(name).collect();
    names.sort();
    names
}

/// Registers, stack, shared memory and constant bank 0 of each function, from `cuobjdump -res-usage`.
fn resource_usage(text: &str) -> BTreeMap<String, [u64; 4]> {
    let mut usage = BTreeMap::new();
    let mut function = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Function ") {
            function = Some(name.trim_end_matches(':').to_owned());
        } else if let Some(name) = function.take() {
            let field = |key: &str| {
                let mut words = line.split_whitespace();
                words.find_map(|word| word.strip_prefix(key)?.parse().ok()).unwrap_or(0)
            };
            usage.insert(name, ["REG:", "STACK:", "SHARED:", "CONSTANT[0]:"].map(field));
        }
    }
    usage
}

fn no_problems(inspection: &Inspection) {
    let problems: Vec<_> = inspection.problems().collect();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn an_object_of_nvcc_has_what_cuobjdump_lists() {
    let work = Work::new();
    work.nvcc(&[&CODE[..], &["-c", "k.cu", "-o", "k.o"]].concat());
    let found = work.inspect("k.o");
    no_problems(&found);
    assert_eq!(names(&found), work.listed("k.o"));
    assert_eq!(found.containers[0].kind, FileKind::HostObject);
    assert_eq!(found.containers[0].machine.as_deref(), Some("x86-64"));
    let fatbin = &found.containers[1];
    assert_eq!(
        (fatbin.kind, fatbin.label.as_deref()),
        (FileKind::FatBinary, Some(".nv_fatbin"))
    );
    let section = found.containers[0]
        .sections
        .iter()
        .find(|section| section.device)
        .unwrap();
    assert_eq!((section.bytes, found.device_bytes), (fatbin.bytes, fatbin.bytes));
    // Registers and the rest, by architecture.
    for image in found.images.iter().filter(|image| image.kind == FileKind::Cubin) {
        let target = image.target.as_deref().unwrap();
        let usage = resource_usage(&work.cuobjdump(&["-res-usage", "-arch", target, "k.o"]));
        assert_eq!(image.kernels.len(), 2);
        for kernel in &image.kernels {
            let Kernel::Machine(kernel) = kernel else {
                panic!("{kernel:?}")
            };
            let bank = kernel.constant_banks.iter().find(|bank| bank.bank == 0).unwrap();
            let ours = [
                kernel.registers.unwrap().into(),
                kernel.scratch_bytes,
                kernel.shared_bytes + kernel.reserved_shared_bytes,
                bank.bytes,
            ];
            assert_eq!(usage[&kernel.name], ours, "{target} {}", kernel.name);
        }
        let producer = image.producer.as_ref().unwrap();
        assert_eq!(producer.name, "ptxas");
    }
    // PTX and cubins agree on parameters.
    let parameters = |image: &Image| -> BTreeMap<String, Vec<(u32, u32)>> {
        let kernels = image.kernels.iter();
        kernels
            .map(|kernel| {
                let parameters = kernel.parameters().iter().map(|one| (one.offset, one.size));
                (kernel.name().to_owned(), parameters.collect())
            })
            .collect()
    };
    let ptx = found.images.iter().find(|image| image.kind == FileKind::Ptx).unwrap();
    assert_eq!(parameters(ptx), parameters(&found.images[0]));
}

#[test]
fn what_is_found_has_the_bytes_that_cuobjdump_extracts() {
    let work = Work::new();
    work.nvcc(&[&CODE[..], &["-Xfatbin", "-compress-all", "-c", "k.cu", "-o", "k.o"]].concat());
    let mut seen = Vec::new();
    let bytes = work.read("k.o");
    let found = inspect_with("k.o", &bytes, &mut |image, bytes| {
        seen.push((image.clone(), bytes.to_vec()))
    })
    .unwrap();
    assert_eq!(seen.len(), found.images.len());
    work.cuobjdump(&["-xelf", "all", "-xptx", "all", "k.o"]);
    for (image, bytes) in seen {
        assert!(image.compression.is_some(), "{image:?}");
        let end = format!("{}.{}", image.target.unwrap(), image.kind.extension());
        let file = std::fs::read_dir(work.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let file = file
            .into_iter()
            .find(|path| path.to_string_lossy().ends_with(&end))
            .unwrap();
        assert!(std::fs::read(&file).unwrap() == bytes, "{}", file.display());
    }
}

#[test]
fn executables_and_archives() {
    let work = Work::new();
    work.nvcc(&[&CODE[..], &["-c", "k.cu", "-o", "k.o"]].concat());
    work.nvcc(&["k.o", "-o", "k"]);
    let found = work.inspect("k");
    no_problems(&found);
    assert_eq!(found.containers[0].kind, FileKind::Executable);
    assert_eq!(names(&found), work.listed("k"));
    let share: u64 = found
        .containers
        .iter()
        .filter(|one| one.kind == FileKind::FatBinary)
        .map(|one| one.bytes)
        .sum();
    assert!(found.device_bytes >= share && found.device_bytes < found.bytes);

    work.nvcc(&[
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "-cudart",
        "shared",
        "k.cu",
        "-o",
        "libk.so",
    ]);
    assert_eq!(work.inspect("libk.so").containers[0].kind, FileKind::SharedLibrary);

    std::fs::write(work.path().join("readme.txt"), "not an object").unwrap();
    work.run(amd::tool("llvm-ar"), &["crS", "k.a", "readme.txt", "k.o"]);
    let found = work.inspect("k.a");
    no_problems(&found);
    assert_eq!(found.containers[0].kind, FileKind::Archive);
    assert_eq!(found.containers[1].label.as_deref(), Some("k.o"));
    assert_eq!(names(&found), work.listed("k.o"));
    let image = &found.images[0];
    let offset = usize::try_from(image.offset.unwrap()).unwrap();
    assert!(work.read("k.a")[offset..].starts_with(b"\x7fELF"));
}

#[test]
fn relocatable_code_debug_information_and_lto() {
    let work = Work::new();
    work.nvcc(&[
        "-gencode",
        "arch=compute_90,code=[sm_90,lto_90,compute_90]",
        "-dc",
        "k.cu",
        "-o",
        "k.o",
    ]);
    let found = work.inspect("k.o");
    no_problems(&found);
    assert!(
        found
            .containers
            .iter()
            .any(|container| container.label.as_deref() == Some("__nv_relfatbin"))
    );
    assert!(
        found
            .images
            .iter()
            .all(|image| image.relocatable || image.kind == FileKind::LtoIr),
        "{found:?}"
    );
    let lto = found.images.iter().find(|image| image.kind == FileKind::LtoIr).unwrap();
    assert_eq!(lto.target.as_deref(), Some("sm_90"));
    assert!(lto.remarks[0].contains("scrambled"), "{:?}", lto.remarks);

    for (flag, expected) in [
        ("-lineinfo", DebugInfo::Lines),
        ("-G", DebugInfo::Full),
        ("-O3", DebugInfo::None),
    ] {
        work.nvcc(&["-arch=sm_90", flag, "-cubin", "k.cu", "-o", "k.cubin"]);
        assert_eq!(work.inspect("k.cubin").images[0].debug, expected, "{flag}");
    }
    work.nvcc(&["-arch=sm_100f", "-cubin", "k.cu", "-o", "f.cubin"]);
    let found = work.inspect("f.cubin");
    assert_eq!(
        (found.images[0].target.as_deref(), found.images[0].mercury),
        (Some("sm_100f"), true)
    );
    work.nvcc(&["-arch=sm_90", "-ptx", "k.cu", "-o", "k.ptx"]);
    let producer = work.inspect("k.ptx").images[0].producer.clone().unwrap();
    assert_eq!(producer.name, "NVIDIA NVVM Compiler");
    assert!(producer.version.unwrap().starts_with("13."));
}

/// Host objects as clang makes them, put together with gcc and llvm-objcopy.
#[test]
fn sections_of_clangs_host_objects() {
    let work = Work::new();
    let first = amd::hsaco(amd::KERNELS, "gfx90a", "", 5);
    let second = amd::hsaco(amd::KERNELS, "gfx942", "", 5);
    std::fs::write(work.path().join("1.o"), &first).unwrap();
    std::fs::write(work.path().join("2.o"), &second).unwrap();
    std::fs::write(work.path().join("empty"), "").unwrap();
    std::fs::write(work.path().join("h.c"), "int h;\n").unwrap();
    work.run("/usr/bin/gcc".into(), &["-c", "h.c", "-o", "h.o"]);
    let bundler = amd::tool("clang-offload-bundler");
    let targets = "-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a,hip-amdgcn-amd-amdhsa--gfx942";
    // A bundle of its own, behind another one in a section.
    work.run(
        bundler.clone(),
        &[
            "-type=o",
            "-bundle-align=4096",
            targets,
            "-input=empty",
            "-input=1.o",
            "-input=2.o",
            "-output=b",
        ],
    );
    std::fs::write(
        work.path().join("s.s"),
        ".section .hip_fatbin,\"a\"\n.p2align 12\n.incbin \"b\"\n.p2align 12\n.incbin \"b\"\n",
    )
    .unwrap();
    work.run("/usr/bin/gcc".into(), &["-c", "s.s", "-o", "s.o"]);
    let found = work.inspect("s.o");
    no_problems(&found);
    assert_eq!(found.containers.len(), 3);
    let targets_found: Vec<_> = found
        .images
        .iter()
        .map(|image| image.target.as_deref().unwrap())
        .collect();
    assert_eq!(targets_found, ["gfx90a", "gfx942", "gfx90a", "gfx942"]);
    let listed = work.run(bundler.clone(), &["-list", "-type=o", "-input=b"]);
    for image in &found.images[..2] {
        assert!(listed.contains(image.label.as_deref().unwrap()), "{listed}");
    }
    // A section for each entry.
    work.run(
        bundler,
        &[
            "-type=o",
            targets,
            "-input=h.o",
            "-input=1.o",
            "-input=2.o",
            "-output=hb.o",
        ],
    );
    let mut seen = Vec::new();
    let found = inspect_with("hb.o", &work.read("hb.o"), &mut |_, bytes| seen.push(bytes.to_vec())).unwrap();
    no_problems(&found);
    assert!(seen == [first, second]);
    assert_eq!(found.images[0].target.as_deref(), Some("gfx90a"));

    // Offload binaries, one after the other.
    let image = |file: &str, arch: &str| format!("--image=file={file},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip");
    work.run(
        amd::tool("llvm-offload-binary"),
        &["-o", "off.bin", &image("1.o", "gfx90a"), &image("2.o", "gfx942")],
    );
    work.run(
        amd::tool("llvm-objcopy"),
        &["--add-section=.llvm.offloading=off.bin", "h.o", "bad.o"],
    );
    let found = work.inspect("bad.o");
    no_problems(&found);
    assert_eq!(found.images.len(), 2);
    assert!(found.containers[0].remarks[0].contains("clang's linker wrapper does not look into it"));
    work.run(
        amd::tool("llvm-objcopy"),
        &["--set-section-type=.llvm.offloading=0x6fff4c0b", "bad.o", "good.o"],
    );
    let found = work.inspect("good.o");
    assert!(
        found.containers[0].remarks.is_empty(),
        "{:?}",
        found.containers[0].remarks
    );
    let kinds: Vec<_> = found.containers.iter().map(|container| container.kind).collect();
    assert_eq!(
        kinds,
        [FileKind::HostObject, FileKind::OffloadBinary, FileKind::OffloadBinary]
    );
    assert_eq!(found.containers[1].version, Some(1));
    assert_eq!(found.images[1].target.as_deref(), Some("gfx942"));
    assert!(found.images[1].label.as_deref().unwrap().contains("amdgcn-amd-amdhsa"));
}

#[test]
fn section_sizes_are_those_of_readelf() {
    let work = Work::new();
    work.nvcc(&["-arch=sm_90", "-c", "k.cu", "-o", "k.o"]);
    let bytes = work.read("k.o");
    let found = work.inspect("k.o");
    let text = amd::readelf(&bytes, &["-SW"]);
    let sections = &found.containers[0].sections;
    assert_eq!(sections.len() + 1, Elf::parse(&bytes).unwrap().sections().len());
    for section in sections
        .iter()
        .filter(|section| section.name.starts_with(".nv") && !section.name.contains("rela"))
    {
        let line = text
            .lines()
            .find(|line| line.contains(&format!(" {} ", section.name)))
            .unwrap();
        assert!(line.contains(&format!(" {:06x} ", section.bytes)), "{line}");
    }
}
