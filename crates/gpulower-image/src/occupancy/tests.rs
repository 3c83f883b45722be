use super::*;

fn of(target: &str, kernel: &KernelResources, threads: u32) -> Occupancy {
    Occupancy::of(&target.parse().expect("a target"), kernel, threads, 0).expect("a chip of the tables")
}

fn nvidia(registers: u32, shared_bytes: u64) -> KernelResources {
    KernelResources {
        registers: Some(registers),
        shared_bytes,
        ..KernelResources::default()
    }
}

fn amd(vgprs: u32, shared_bytes: u64) -> KernelResources {
    KernelResources {
        vgprs: Some(vgprs),
        shared_bytes,
        ..KernelResources::default()
    }
}

#[test]
fn what_is_scarce_is_the_limit() {
    assert_eq!(
        of("sm_90", &nvidia(32, 0), 256).to_string(),
        "64/64 warps in 8 blocks, limited by warps"
    );
    assert_eq!(
        of("sm_90a", &nvidia(128, 0), 256).to_string(),
        "16/64 warps in 2 blocks, limited by registers"
    );
    assert_eq!(
        of("sm_86", &nvidia(32, 40 << 10), 128).to_string(),
        "8/48 warps in 2 blocks, limited by shared memory"
    );
    assert_eq!(
        of("sm_80", &nvidia(16, 0), 32).to_string(),
        "32/64 warps in 32 blocks, limited by blocks"
    );
    assert_eq!(
        of("gfx942", &amd(100, 0), 256).to_string(),
        "16/32 waves in 4 blocks, limited by VGPRs"
    );
    assert_eq!(
        of("gfx90a", &amd(8, 40 << 10), 256).to_string(),
        "4/32 waves in 1 block, limited by LDS"
    );
    assert_eq!(of("sm_90", &nvidia(32, 0), 256).percent(), 100);
}

/// A kernel that needs more than a unit has.
#[test]
fn nothing_fits() {
    let too_much = of("sm_90", &nvidia(255, 0), 1024);
    assert_eq!((too_much.blocks, too_much.percent()), (0, 0));
    assert_eq!(of("sm_75", &nvidia(32, u64::from(u32::MAX)), 64).blocks, 0);
    assert!(picture(&too_much).contains("registers"));
}

#[test]
fn what_is_not_known_has_none() {
    let target = |name: &str| name.parse::<Target>().expect("a target");
    assert_eq!(Occupancy::usual(&target("sm_20"), &nvidia(20, 0)), None);
    assert_eq!(Occupancy::usual(&target("sm_90"), &KernelResources::default()), None);
    assert_eq!(Occupancy::of(&target("sm_90"), &nvidia(20, 0), 0, 0), None);
    assert_eq!(
        Occupancy::of(&target("sm_90"), &nvidia(20, u64::MAX), 1, u64::MAX),
        None
    );
    assert_eq!(Occupancy::of(&target("gfx942"), &amd(u32::MAX, 0), u32::MAX, 0), None);
}

#[test]
fn the_kernel_says_its_block() {
    let kernel = |required_block, max_threads_per_block| KernelResources {
        required_block,
        max_threads_per_block,
        ..KernelResources::default()
    };
    assert_eq!(usual_threads(&kernel(None, None)), 256);
    assert_eq!(usual_threads(&kernel(None, Some(1024))), 256);
    assert_eq!(usual_threads(&kernel(None, Some(64))), 64);
    assert_eq!(usual_threads(&kernel(Some([32, 16, 1]), Some(1024))), 512);
}

#[test]
fn the_picture_names_the_limit() {
    let picture = picture(&of("sm_90", &nvidia(128, 0), 256));
    assert!(picture.contains("25% of 64 warps; blocks of 256 threads"), "{picture}");
    assert!(picture.contains(">registers</text>") && picture.contains(">2 — the limit</text>"));
    assert_eq!(picture.matches("#d35400").count(), 1);
    let bar = bar(&of("sm_90", &nvidia(128, 0), 96));
    assert!(
        bar.contains("<title>15/64 warps in 5 blocks, limited by registers</title>"),
        "{bar}"
    );
}
