//! The tables against LLVM itself: what `llc`, `llvm-mc` and `clang` 22 say.
//!
//! The tools are those of `GPULOWER_LLVM_BIN`, or of Debian's packages. A missing tool is a
//! failure, not a reason to skip.

use super::amd_chips::excluded;
use super::*;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Kernels that do nothing.
const NVIDIA_KERNEL: &str = "define ptx_kernel void @k() { ret void }";
const AMD_KERNEL: &str = "define amdgpu_kernel void @k() { ret void }";

struct Output {
    ok: bool,
    stdout: String,
    stderr: String,
}

/// Runs a tool of LLVM on `input`.
fn llvm(tool: &str, args: &[&str], input: &str) -> Output {
    let bin = std::env::var_os("GPULOWER_LLVM_BIN").unwrap_or_else(|| "/usr/lib/llvm-22/bin".into());
    let path = PathBuf::from(bin).join(tool);
    let mut child = Command::new(&path)
        .args(args)
        // Refusals that abort would spend their time on a stack trace.
        .env("LLVM_DISABLE_SYMBOLIZATION", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}; install LLVM 22 or set GPULOWER_LLVM_BIN", path.display()));
    // A tool that dies early closes the pipe; its status tells.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the tool's output");
    Output {
        ok: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// First words of the lines of `llc -mcpu=help` that contain `marker`.
fn llc_help(arch: &str, marker: &str) -> BTreeSet<String> {
    let output = llvm("llc", &[&format!("-march={arch}"), "-mcpu=help"], "");
    format!("{}{}", output.stdout, output.stderr)
        .lines()
        .filter(|line| line.contains(marker))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

fn llc(chip: &str, triple: &str, features: &str, more: &[&str], input: &str) -> Output {
    let (triple, chip) = (format!("-mtriple={triple}"), format!("-mcpu={chip}"));
    let features = format!("-mattr={features}");
    let mut args = vec![triple.as_str(), chip.as_str(), features.as_str(), "-o", "-", "-"];
    args.extend(more);
    llvm("llc", &args, input)
}

fn strings(items: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
    items.into_iter().map(str::to_owned).collect()
}

#[test]
fn nvidia_chips_are_llvms() {
    let ours = strings(NvidiaTarget::all().map(|target| target.chip()));
    assert_eq!(ours, llc_help("nvptx64", "Select the"));
}

#[test]
fn ptx_versions_are_llvms() {
    let ours = PtxIsa::all_of_llvm()
        .iter()
        .map(|ptx| format!("ptx{}", ptx.number()))
        .collect();
    assert_eq!(llc_help("nvptx64", "Use PTX version"), ours);
}

/// Both ways: what is in LLVM and not in the table is excluded for a reason.
#[test]
fn amd_chips_are_llvms_but_for_the_excluded() {
    let llvms = llc_help("amdgcn", "Select the");
    let ours = strings(AmdTarget::all().map(|target| target.chip()));
    assert_eq!(ours.difference(&llvms).collect::<Vec<_>>(), Vec::<&String>::new());
    let missing: Vec<&String> = llvms
        .difference(&ours)
        .filter(|name| excluded(name).is_none())
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(ours.iter().all(|name| excluded(name).is_none()));
}

/// LLVM writes each chip's minimum unasked, accepts it when asked, and refuses the version before.
#[test]
fn minimum_ptx_is_llvms() {
    for target in NvidiaTarget::all() {
        let (chip, minimum) = (target.chip(), target.min_ptx());
        let header = |output: &Output| {
            let mut lines = output.stdout.lines().filter(|line| line.starts_with('.'));
            (lines.next().map(str::to_owned), lines.next().map(str::to_owned))
        };
        let expected = (Some(format!(".version {minimum}")), Some(format!(".target {chip}")));
        let triple = Target::Nvidia(target).triple();
        for features in [String::new(), minimum.llvm_feature()] {
            let output = llc(chip, triple, &features, &[], NVIDIA_KERNEL);
            assert_eq!(header(&output), expected, "{chip} {features}: {}", output.stderr);
        }
        if let Some(older) = PtxIsa::all_of_llvm().iter().rev().find(|ptx| **ptx < minimum) {
            let output = llc(chip, triple, &older.llvm_feature(), &[], NVIDIA_KERNEL);
            assert!(!output.ok, "{chip} accepts PTX {older}");
            assert!(
                output
                    .stderr
                    .contains(&format!("PTX version {older} does not support target '{chip}'")),
                "{}",
                output.stderr
            );
            assert!(target.with_ptx(*older).is_err(), "{chip}");
        }
    }
}

#[test]
fn isa_versions_are_llvms() {
    const INPUT: &str = ".long .amdgcn.gfx_generation_number\n.long .amdgcn.gfx_generation_minor\n\
                         .long .amdgcn.gfx_generation_stepping\n";
    for target in AmdTarget::all() {
        let chip = format!("-mcpu={}", target.chip());
        let output = llvm("llvm-mc", &["-triple=amdgcn-amd-amdhsa", &chip], INPUT);
        let found: Vec<u32> = output
            .stdout
            .lines()
            .filter_map(|line| line.trim().strip_prefix(".long"))
            .filter_map(|number| number.trim().parse().ok())
            .collect();
        let IsaVersion { major, minor, stepping } = target.isa_version();
        assert_eq!(found, [major, minor, stepping], "{target}: {}", output.stderr);
    }
}

#[test]
fn target_id_features_are_clangs() {
    const ARGS: [&str; 7] = [
        "--target=amdgcn-amd-amdhsa",
        "-nogpulib",
        "-xc",
        "-fsyntax-only",
        "-Werror",
        "-",
        "-w",
    ];
    for target in AmdTarget::all() {
        let accepts = |features: &str| {
            let chip = format!("-mcpu={}{features}", target.chip());
            let mut args = vec![chip.as_str()];
            args.extend(ARGS);
            llvm("clang", &args, "void f(void) {}").ok
        };
        assert!(accepts(""), "{target}");
        let found: Vec<&str> = ["sramecc", "xnack"]
            .into_iter()
            .filter(|name| accepts(&format!(":{name}+")))
            .collect();
        assert_eq!(found, target.supported_features(), "{target}");
    }
}

/// The features that we pass give the target ID and the wave size that we promise, and the
/// sizes that we refuse do not compile.
#[test]
fn features_reach_the_metadata() {
    for chip in AmdTarget::all() {
        let settings = chip.supported_features().iter().map(|name| format!(":{name}-"));
        let full: AmdTarget = format!("{chip}{}", settings.collect::<String>())
            .parse()
            .expect("a target ID");
        for target in [chip, full] {
            for size in [32, 64] {
                let features = target.llvm_features(Some(size));
                assert_eq!(features.is_ok(), target.wave_sizes().contains(&size), "{target}");
                let string = features.unwrap_or_else(|_| format!("+wavefrontsize{size}"));
                let output = amd(target, &string, AMD_KERNEL);
                if target.wave_sizes().contains(&size) {
                    let wave = format!(".wavefront_size: {size}\n");
                    assert!(output.stdout.contains(&wave), "{target} {size}: {}", output.stderr);
                    let id = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"");
                    assert!(output.stdout.contains(&id), "{id}: {}", output.stdout);
                } else {
                    assert!(!output.stdout.contains(".wavefront_size"), "{target} runs {size} lanes");
                }
            }
        }
        let size = chip.default_wave_size();
        let output = amd(chip, "", AMD_KERNEL);
        assert!(
            output.stdout.contains(&format!(".wavefront_size: {size}\n")),
            "{chip}: {}",
            output.stderr
        );
    }
}

/// llc for an AMD target, with the code object version that we choose.
fn amd(target: AmdTarget, features: &str, input: &str) -> Output {
    let version = target.resolve_code_object_version(None).expect("a default");
    let version = format!("--amdhsa-code-object-version={version}");
    llc(
        target.chip(),
        Target::Amd(target).triple(),
        features,
        &[&version],
        input,
    )
}

#[test]
fn code_object_versions_are_llvms() {
    for target in AmdTarget::all() {
        for version in CodeObjectVersion::ALL {
            let input = format!(
                "{AMD_KERNEL}\n!llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !\"amdhsa_code_object_version\", i32 {}}}",
                version.module_flag()
            );
            let output = llc(target.chip(), Target::Amd(target).triple(), "", &[], &input);
            let ours = target.resolve_code_object_version(Some(version)).is_ok();
            assert_eq!(output.ok, ours, "{target} {version}: {}", output.stderr);
            if ours {
                let directive = format!(".amdhsa_code_object_version {version}\n");
                assert!(output.stdout.contains(&directive), "{target} {version}");
            }
        }
    }
}

/// A chip has a matrix instruction if LLVM can select it.
#[test]
fn matrix_instructions_are_llvms() {
    const MFMA: &str = "\
        declare <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float, float, <4 x float>, i32, i32, i32)
        define amdgpu_kernel void @k(ptr addrspace(1) %p, float %a, <4 x float> %c) {
          %r = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float %a, float %a, <4 x float> %c, i32 0, i32 0, i32 0)
          store <4 x float> %r, ptr addrspace(1) %p
          ret void
        }";
    const WMMA: &str = "\
        declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.vNf16(<N x half>, <N x half>, <8 x float>)
        define amdgpu_kernel void @k(ptr addrspace(1) %p, <N x half> %a, <8 x float> %c) {
          %r = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.vNf16(<N x half> %a, <N x half> %a, <8 x float> %c)
          store <8 x float> %r, ptr addrspace(1) %p
          ret void
        }";
    const WMMA_1250: &str = "\
        declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x32.f16.v8f32.v16f16(i1, <16 x half>, i1, <16 x half>, i16, <8 x float>, i1, i1)
        define amdgpu_kernel void @k(ptr addrspace(1) %p, <16 x half> %a, <8 x float> %c) {
          %r = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x32.f16.v8f32.v16f16(i1 0, <16 x half> %a, i1 0, <16 x half> %a, i16 0, <8 x float> %c, i1 0, i1 0)
          store <8 x float> %r, ptr addrspace(1) %p
          ret void
        }";
    for target in AmdTarget::all() {
        let selects = |input: &str| amd(target, "", input).ok;
        assert_eq!(selects(MFMA), target.has_mfma(), "mfma on {target}");
        let found: Vec<WmmaGeneration> = [
            (WmmaGeneration::Gfx11, WMMA.replace('N', "16")),
            (WmmaGeneration::Gfx12, WMMA.replace('N', "8")),
            (WmmaGeneration::Gfx1250, WMMA_1250.to_owned()),
        ]
        .into_iter()
        .filter_map(|(generation, input)| selects(&input).then_some(generation))
        .collect();
        assert_eq!(found, Vec::from_iter(target.wmma()), "wmma on {target}");
        assert_eq!(target.has_wmma(), target.wmma().is_some());
    }
}
