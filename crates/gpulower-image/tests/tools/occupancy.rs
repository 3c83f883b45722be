//! The occupancy of AMD's kernels beside LLVM's, which says it in its assembly.

use gpulower_image::{Target, image::hsaco::Hsaco, occupancy::Occupancy};
use gpulower_testing::amd::{object, run};

/// A kernel with blocks of one wave, which are as many as LLVM's waves.
fn kernel(name: &str, registers: u32, threads: u32, lds: u32) -> String {
    let last = registers - 1;
    format!(
        "@l{name} = internal addrspace(3) global [{lds} x i8] poison, align 16\n\
         define amdgpu_kernel void @{name}() \"amdgpu-flat-work-group-size\"=\"{threads},{threads}\" {{\n\
         store volatile i32 1, ptr addrspace(3) @l{name}\n\
         call void asm sideeffect \"\", \"~{{v{last}}}\"()\nret void }}\n"
    )
}

#[test]
fn waves_are_those_of_llvm() {
    for chip in [
        "gfx900",
        "gfx906",
        "gfx908",
        "gfx90a",
        "gfx942",
        "gfx950",
        "gfx1010",
        "gfx1030",
        "gfx1036",
        "gfx1100",
        "gfx1101",
        "gfx1102",
        "gfx1103",
        "gfx1150",
        "gfx1151",
        "gfx1153",
        "gfx1200",
        "gfx1201",
        "gfx1250",
        "gfx11-generic",
        "gfx12-generic",
    ] {
        let threads = if chip.starts_with("gfx9") { 64 } else { 32 };
        let version = if chip.ends_with("generic") { 6 } else { 5 };
        let text: String = [8, 24, 40, 65, 100, 129, 200, 250]
            .iter()
            .map(|&registers| kernel(&format!("r{registers}"), registers, threads, 4))
            .chain(
                [20480, 40960]
                    .iter()
                    .map(|&lds| kernel(&format!("l{lds}"), 8, threads, lds)),
            )
            .collect();
        let text = format!("target triple = \"amdgcn-amd-amdhsa\"\n{text}");
        let flag = format!("-mcpu={chip}");
        let version_flag = format!("--amdhsa-code-object-version={version}");
        let assembly = run(
            "llc",
            &["-mtriple=amdgcn-amd-amdhsa", &flag, &version_flag, "-o", "-"],
            text.as_bytes(),
        );
        let assembly = String::from_utf8(assembly).unwrap();
        let object = object(&text, chip, "", version);
        let target: Target = chip.parse().unwrap();
        for resources in Hsaco::read(&object).unwrap().resources() {
            let of_kernel = assembly.split(&format!("\n{}: ", resources.name)).nth(1).unwrap();
            let said = of_kernel
                .lines()
                .find_map(|line| line.trim().strip_prefix("; Occupancy: "))
                .unwrap();
            let ours = Occupancy::usual(&target, resources).unwrap();
            assert_eq!(ours.threads, threads);
            // LLVM counts waves of one of four SIMDs.
            assert_eq!(
                ours.waves.div_ceil(4).to_string(),
                said,
                "{chip} {}: {ours}",
                resources.name
            );
        }
    }
}
