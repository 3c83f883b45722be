//! Launches against the numbers of devices.

use super::*;

/// An H100.
fn h100() -> DeviceLimits {
    DeviceLimits {
        block: [1024, 1024, 64],
        grid: [2_147_483_647, 65535, 65535],
        threads_per_block: 1024,
        shared_bytes: 49152,
        shared_bytes_at_most: 232_448,
        shared_bytes_reserved: 1024,
        multiprocessors: 132,
        cooperative: true,
        clusters: true,
        ..DeviceLimits::default()
    }
}

fn function() -> FunctionAttributes {
    FunctionAttributes {
        threads_per_block: 1024,
        registers: 32,
        ..FunctionAttributes::default()
    }
}

fn kernel() -> KernelInterface {
    KernelInterface {
        name: "k".to_owned(),
        shared_bytes: Some(0),
        ..KernelInterface::default()
    }
}

fn refusal(
    shape: LaunchShape,
    kernel: &KernelInterface,
    function: &FunctionAttributes,
    device: &DeviceLimits,
) -> String {
    check(&shape, kernel, function, device).unwrap_err().to_string()
}

#[test]
fn the_largest_launch_fits_and_one_more_does_not() {
    let (device, function, kernel) = (h100(), function(), kernel());
    let fits = |grid, block| check(&LaunchShape::new(grid, block), &kernel, &function, &device);
    fits([2_147_483_647, 65535, 65535], [1, 1, 1]).unwrap();
    fits([1, 1, 1], [1024, 1, 1]).unwrap();
    fits([1, 1, 1], [1, 16, 64]).unwrap();
    let says = |grid, block| refusal(LaunchShape::new(grid, block), &kernel, &function, &device);
    assert_eq!(
        says([1, 65536, 1], [1, 1, 1]),
        "kernel k: a grid of 1 x 65536 x 1 blocks: the device takes at most 2147483647 x 65535 x 65535"
    );
    for block in [[1025, 1, 1], [1, 1, 65], [64, 32, 1], [u32::MAX, u32::MAX, u32::MAX]] {
        let text = says([1, 1, 1], block);
        assert!(
            text.ends_with("threads: the device takes at most 1024 x 1024 x 64 along the dimensions, and 1024 in all"),
            "{text}"
        );
    }
    assert_eq!(
        says([4, 0, 1], [32, 1, 1]),
        "kernel k: a grid of 4 x 0 x 1: every dimension is 1 or more"
    );
    assert_eq!(
        says([4, 1, 1], [32, 1, 0]),
        "kernel k: a block of 32 x 1 x 0: every dimension is 1 or more"
    );
}

#[test]
fn amd_counts_the_threads_of_a_grid() {
    let mut device = h100();
    device.threads_along_grid = Some(u32::MAX.into());
    let shape = LaunchShape::new([1 << 24, 1, 1], [256, 1, 1]);
    assert_eq!(
        refusal(shape, &kernel(), &function(), &device),
        "kernel k: a grid of 16777216 x 1 x 1 blocks: the device takes at most 2147483647 x 65535 x 65535, and 4294967295 \
         threads along a dimension"
    );
    check(
        &LaunchShape::new([(1 << 24) - 1, 1, 1], [256, 1, 1]),
        &kernel(),
        &function(),
        &device,
    )
    .unwrap();
}

#[test]
fn a_kernel_limits_its_blocks() {
    let device = h100();
    let shape = LaunchShape::new([1, 1, 1], [512, 1, 1]);
    let few_registers = FunctionAttributes {
        threads_per_block: 256,
        registers: 255,
        ..function()
    };
    assert_eq!(
        refusal(shape, &kernel(), &few_registers, &device),
        "kernel k: a block of 512 x 1 x 1 threads, 512 in all: the kernel runs with at most 256, for each thread uses 255 \
         registers"
    );
    let bounded = KernelInterface {
        max_threads_per_block: Some(128),
        ..kernel()
    };
    assert_eq!(
        refusal(shape, &bounded, &function(), &device),
        "kernel k: a block of 512 x 1 x 1 threads, 512 in all: the kernel runs with at most 128, for it was compiled for blocks \
         of up to 128 threads (known_block_size in MLIR)"
    );
    let fixed = KernelInterface {
        required_block: Some([256, 1, 1]),
        ..kernel()
    };
    assert_eq!(
        refusal(shape, &fixed, &function(), &device),
        "kernel k: a block of 512 x 1 x 1 threads: the kernel was compiled for blocks of exactly 256 x 1 x 1 (known_block_size \
         in MLIR)"
    );
    check(&LaunchShape::new([1, 1, 1], [256, 1, 1]), &fixed, &function(), &device).unwrap();
}

#[test]
fn shared_memory_is_what_a_block_can_have_at_most() {
    let device = h100();
    let shape = |bytes| LaunchShape::new([1, 1, 1], [32, 1, 1]).with_dynamic_shared(bytes);
    let declares = FunctionAttributes {
        shared_bytes: 16384,
        ..function()
    };
    assert_eq!(dynamic_shared_at_most(&declares, &device), 216_064);
    check(&shape(216_064), &kernel(), &declares, &device).unwrap();
    assert_eq!(
        refusal(shape(216_065), &kernel(), &declares, &device),
        "kernel k: 216065 bytes of dynamic shared memory: at most 216064 are left of the 232448 that the device has for a block, \
         beside 16384 that the kernel declares"
    );
    refusal(shape(u32::MAX), &kernel(), &declares, &device);
    // With nothing of its own, all of it: the system's share is not taken from that.
    check(&shape(232_448), &kernel(), &function(), &device).unwrap();
    refusal(shape(232_449), &kernel(), &function(), &device);
    // The driver pads what is declared, so that its number counts and not the image's.
    let image = KernelInterface {
        shared_bytes: Some(100),
        ..kernel()
    };
    let padded = FunctionAttributes {
        shared_bytes: 112,
        ..function()
    };
    check(&shape(232_448 - 112), &image, &padded, &device).unwrap();
    refusal(shape(232_448 - 111), &image, &padded, &device);
}

#[test]
fn clusters_are_whole_and_small_enough() {
    let device = h100();
    let shape = |grid, cluster| LaunchShape::new(grid, [32, 1, 1]).with_cluster(cluster);
    check(&shape([8, 4, 1], [4, 2, 1]), &kernel(), &function(), &device).unwrap();
    check(&shape([16, 1, 1], [16, 1, 1]), &kernel(), &function(), &device).unwrap();
    let says = |grid, cluster| refusal(shape(grid, cluster), &kernel(), &function(), &device);
    assert_eq!(
        says([9, 1, 1], [2, 1, 1]),
        "kernel k: a grid of 9 x 1 x 1 blocks is not made of whole clusters of 2 x 1 x 1"
    );
    assert_eq!(
        says([32, 1, 1], [32, 1, 1]),
        "kernel k: clusters of 32 x 1 x 1 blocks, 32 in all: no device has clusters of more than 16"
    );
    assert_eq!(
        says([8, 1, 1], [2, 0, 1]),
        "kernel k: a cluster of 2 x 0 x 1: every dimension is 1 or more"
    );
    let fixed = KernelInterface {
        cluster: Some([2, 1, 1]),
        ..kernel()
    };
    assert_eq!(
        refusal(shape([8, 1, 1], [4, 1, 1]), &fixed, &function(), &device),
        "kernel k: clusters of 4 x 1 x 1 blocks: the kernel was compiled for clusters of exactly 2 x 1 x 1"
    );
    // A cluster that the kernel fixes counts without the launch's asking for it.
    let text = refusal(LaunchShape::new([3, 1, 1], [32, 1, 1]), &fixed, &function(), &device);
    assert!(text.contains("not made of whole clusters"), "{text}");
    let bounded = KernelInterface {
        max_cluster_blocks: Some(4),
        ..kernel()
    };
    assert_eq!(
        refusal(shape([8, 1, 1], [8, 1, 1]), &bounded, &function(), &device),
        "kernel k: clusters of 8 x 1 x 1 blocks, 8 in all: the kernel was compiled for clusters of up to 4"
    );
    let mut old = h100();
    old.clusters = false;
    assert_eq!(
        refusal(shape([8, 1, 1], [2, 1, 1]), &kernel(), &function(), &old),
        "kernel k: the device has no clusters of thread blocks: they take one of compute capability 9.0 or later"
    );
}

#[test]
fn blocks_that_wait_for_each_other_fit_together() {
    let device = h100();
    let shape = LaunchShape::new([264, 1, 1], [1024, 1, 1]).with_cooperation();
    check(&shape, &kernel(), &function(), &device).unwrap();
    check_together(&shape, &kernel(), 2, &device).unwrap();
    assert_eq!(
        check_together(&shape, &kernel(), 1, &device).unwrap_err().to_string(),
        "kernel k: 264 blocks that wait for each other: 132 fit on the device together, 1 on each of its 132 multiprocessors"
    );
    let mut old = h100();
    old.cooperative = false;
    assert_eq!(
        refusal(shape, &kernel(), &function(), &old),
        "kernel k: the device runs no kernels whose blocks wait for each other (cooperative launches)"
    );
}

#[test]
fn a_line_of_threads_has_enough_blocks() {
    for (count, block, blocks) in [
        (1, 256, 1),
        (256, 256, 1),
        (257, 256, 2),
        (0, 256, 1),
        (u32::MAX, 1, u32::MAX),
    ] {
        assert_eq!(LaunchShape::linear(count, block).grid, [blocks, 1, 1]);
    }
    // A block without threads is the check's to refuse.
    assert_eq!(LaunchShape::linear(10, 0).block, [0, 1, 1]);
}
