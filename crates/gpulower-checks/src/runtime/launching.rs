//! Launching: arguments, limits, shared memory, clusters, blocks that wait for each other.

use gpulower::runtime::{Arguments, LaunchError, LaunchShape, LoadOptions, Module};

use super::fixture::{CLUSTER, Check, Gpu, ONE, Outcome, PLAIN, WARP, launch};

pub const CHECKS: &[Check] = &[
    ("arguments of every size", arguments_of_every_size),
    ("wrong arguments", wrong_arguments),
    ("limits of blocks and grids", limits_of_blocks_and_grids),
    ("dynamic shared memory", dynamic_shared_memory),
    ("shared memory of both kinds", shared_memory_of_both_kinds),
    ("clusters", clusters),
    ("clusters that a kernel fixes", clusters_that_a_kernel_fixes),
    ("cooperative launches", cooperative_launches),
    ("occupancy", occupancy),
];

fn arguments_of_every_size(gpu: &Gpu) -> Outcome {
    let function = gpu.plain()?.function("arguments")?;
    let out = gpu.context.allocate(56)?;
    let random = [gpu.random(), gpu.random(), gpu.random(), gpu.random()];
    let words = [gpu.random() as u32, gpu.random() as u32, gpu.random() as u32];
    let (a, b, c, d) = (random[0] as u8, random[1] as u16, random[2] as u32, random[3]);
    let mut arguments = Arguments::new();
    arguments.buffer(&out).value(a).value(b).value(c).value(d).value(words);
    launch(&function, &ONE, &arguments, &gpu.stream)?;
    let mut found = [0u64; 7];
    out.download(&mut found, &gpu.stream)?;
    let [e, f, g] = words.map(u64::from);
    ensure!(found == [a.into(), b.into(), c.into(), d, e, f, g], "{found:x?}");
    Ok("1, 2, 4, 8 and 12 bytes".to_owned())
}

fn wrong_arguments(gpu: &Gpu) -> Outcome {
    let saxpy = gpu.plain()?.function("saxpy")?;
    let mut arguments = Arguments::new();
    arguments.value(1.0f32).pointer(0);
    let few = match saxpy.launch(&ONE, &arguments) {
        Err(error @ LaunchError::ArgumentCount { .. }) => error.to_string(),
        other => return Err(format!("{other:?}").into()),
    };
    arguments.pointer(0).value(1u64);
    let size = match saxpy.launch(&ONE, &arguments) {
        Err(error @ LaunchError::ArgumentSize { .. }) => error.to_string(),
        other => return Err(format!("{other:?}").into()),
    };
    gpu.saxpy(&saxpy, 10)?;
    Ok(format!("{few}; {size}"))
}

fn limits_of_blocks_and_grids(gpu: &Gpu) -> Outcome {
    let module = gpu.plain()?;
    let limits = gpu.context.limits();
    let word = gpu.context.allocate(4)?;
    let count = module.function("count")?;
    let none = Arguments::new();
    // The largest block that is allowed runs, also along each dimension.
    let [x, y, z] = limits.block;
    for block in [[x, 1, 1], [1, y, 1], [1, 1, z], [limits.threads_per_block / 4, 2, 2]] {
        launch(&count, &LaunchShape::new([1, 1, 1], block), &none, &gpu.stream)?;
    }
    launch(
        &count,
        &LaunchShape::new([1, limits.grid[1], 1], [1, 1, 1]),
        &none,
        &gpu.stream,
    )?;
    launch(
        &count,
        &LaunchShape::new([1, 1, limits.grid[2]], [1, 1, 1]),
        &none,
        &gpu.stream,
    )?;
    gpu.stream.synchronize()?;
    let mut said = Vec::new();
    for (grid, block) in [
        ([1, 1, 1], [x + 1, 1, 1]),
        ([1, 1, 1], [1, 1, z + 1]),
        ([1, 1, 1], [x, 2, 1]),
        ([1, limits.grid[1] + 1, 1], [1, 1, 1]),
        ([0, 1, 1], [1, 1, 1]),
    ] {
        match count.launch(&LaunchShape::new(grid, block), &none) {
            Err(LaunchError::Driver(error)) => return Err(format!("the driver had to say it: {error}").into()),
            Err(error) => said.push(error.to_string()),
            Ok(_) => return Err(format!("{grid:?} {block:?} was accepted").into()),
        }
    }
    let mut one = Arguments::new();
    one.buffer(&word);
    for (name, right, wrong) in [("at_most_64", 64, 65), ("exactly_32", 32, 64)] {
        let function = module.function(name)?;
        launch(
            &function,
            &LaunchShape::new([1, 1, 1], [right, 1, 1]),
            &one,
            &gpu.stream,
        )?;
        let mut found = [0u32];
        word.download(&mut found, &gpu.stream)?;
        ensure!(found == [right], "{name}: {found:?}");
        match function.launch(&LaunchShape::new([1, 1, 1], [wrong, 1, 1]), &one) {
            Err(error @ (LaunchError::Threads { .. } | LaunchError::RequiredBlock { .. })) => {
                said.push(error.to_string())
            }
            other => return Err(format!("{name}: {other:?}").into()),
        }
    }
    Ok(said.join("; "))
}

fn dynamic_shared_memory(gpu: &Gpu) -> Outcome {
    let limit = gpu.context.limits().shared_bytes_at_most;
    let out = gpu.context.allocate(128)?;
    // From machine code and from PTX, of which the image does not say what it declares.
    for module in [
        gpu.plain()?,
        Module::load(&gpu.context, "plain.ptx", PLAIN.as_bytes(), &LoadOptions::default())?,
    ] {
        let function = module.function("dynamic_shared")?;
        // Falling again: the limit was raised, and stays.
        for bytes in [128, 48 << 10, (48 << 10) + 4, limit, 1024] {
            let mut arguments = Arguments::new();
            arguments.buffer(&out).value(bytes);
            launch(&function, &WARP.with_dynamic_shared(bytes), &arguments, &gpu.stream)?;
            let mut found = [0u32; 32];
            out.download(&mut found, &gpu.stream)?;
            let right = (0..32u32).all(|thread| found[thread as usize] == ((thread + 1) & 31) + 7);
            ensure!(right, "{bytes} bytes: {found:?}");
        }
        let mut arguments = Arguments::new();
        arguments.buffer(&out).value(limit + 1);
        match function.launch(&WARP.with_dynamic_shared(limit + 1), &arguments) {
            Err(LaunchError::SharedMemory { .. }) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(format!("up to {limit} bytes"))
}

fn shared_memory_of_both_kinds(gpu: &Gpu) -> Outcome {
    let limits = gpu.context.limits();
    let out = gpu.context.allocate(128)?;
    let mut said = Vec::new();
    for module in [
        gpu.plain()?,
        Module::load(&gpu.context, "plain.ptx", PLAIN.as_bytes(), &LoadOptions::default())?,
    ] {
        let function = module.function("static_and_dynamic_shared")?;
        let most = limits.shared_bytes_at_most - 40960;
        let given = function.dynamic_shared_at_most();
        ensure!(
            given == most,
            "{}: at most {given} bytes instead of {most}",
            module.image()
        );
        for bytes in [128, 48 << 10, most] {
            let mut arguments = Arguments::new();
            arguments.buffer(&out).value(bytes);
            launch(&function, &WARP.with_dynamic_shared(bytes), &arguments, &gpu.stream)?;
            let mut found = [0u32; 32];
            out.download(&mut found, &gpu.stream)?;
            let right = (0..32u32).all(|thread| found[thread as usize] == 38 - thread);
            ensure!(right, "{}: {bytes} bytes: {found:?}", module.image());
        }
        let mut arguments = Arguments::new();
        arguments.buffer(&out).value(most + 1);
        match function.launch(&WARP.with_dynamic_shared(most + 1), &arguments) {
            Err(error @ LaunchError::SharedMemory { .. }) => said.push(error.to_string()),
            other => return Err(format!("{other:?}").into()),
        }
        let (one, none) = (
            function.blocks_per_multiprocessor(32, most)?,
            function.blocks_per_multiprocessor(32, most + 1)?,
        );
        ensure!((one, none) == (1, 0), "{}: {one} and {none} blocks", module.image());
    }
    Ok(said.remove(0))
}

/// The pairs that the cluster kernels store: the rank of each block, and the blocks of its cluster.
fn ranks(gpu: &Gpu, name: &str, shape: &LaunchShape) -> Result<Vec<[u32; 2]>, Box<dyn std::error::Error>> {
    let module = Module::load(&gpu.context, "cluster.ptx", CLUSTER.as_bytes(), &LoadOptions::default())?;
    let function = module.function(name)?;
    let blocks = shape.grid[0] as usize;
    let out = gpu.context.allocate(8 * blocks)?;
    out.all().fill(u32::MAX, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments.buffer(&out);
    launch(&function, shape, &arguments, &gpu.stream)?;
    let mut found = vec![[0u32; 2]; blocks];
    out.download(&mut found, &gpu.stream)?;
    Ok(found)
}

fn expect_clusters(found: &[[u32; 2]], size: u32) -> Result<(), Box<dyn std::error::Error>> {
    for (block, pair) in found.iter().enumerate() {
        ensure!(
            *pair == [block as u32 % size, size],
            "block {block} in clusters of {size}: {pair:?}"
        );
    }
    Ok(())
}

fn clusters(gpu: &Gpu) -> Outcome {
    if !gpu.context.limits().clusters {
        return Ok("NOT CHECKED: this device has none".to_owned());
    }
    for size in [1, 2, 4, 8, 16] {
        let shape = LaunchShape::new([32, 1, 1], [64, 1, 1]).with_cluster([size, 1, 1]);
        expect_clusters(&ranks(gpu, "cluster_rank", &shape)?, size)?;
    }
    let mut said = Vec::new();
    for (blocks, size) in [(33, 2), (64, 32)] {
        let shape = LaunchShape::new([blocks, 1, 1], [64, 1, 1]).with_cluster([size, 1, 1]);
        match ranks(gpu, "cluster_rank", &shape) {
            Err(error)
                if matches!(
                    error.downcast_ref(),
                    Some(LaunchError::PartOfCluster { .. } | LaunchError::Cluster { .. })
                ) =>
            {
                said.push(error.to_string());
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    // Sixteen blocks with all the shared memory of a multiprocessor each: not one such cluster may fit, and that is said.
    let limit = gpu.context.limits().shared_bytes_at_most;
    let shape = LaunchShape::new([16, 1, 1], [1024, 1, 1])
        .with_cluster([16, 1, 1])
        .with_dynamic_shared(limit);
    let large = match ranks(gpu, "cluster_rank", &shape) {
        Ok(found) => expect_clusters(&found, 16).map(|()| "fits".to_owned())?,
        Err(error) if matches!(error.downcast_ref(), Some(LaunchError::ClusterDoesNotFit { .. })) => error.to_string(),
        Err(error) => return Err(error),
    };
    Ok(format!("1 to 16 blocks; {}; 16 large blocks: {large}", said.join("; ")))
}

fn clusters_that_a_kernel_fixes(gpu: &Gpu) -> Outcome {
    if !gpu.context.limits().clusters {
        return Ok("NOT CHECKED: this device has none".to_owned());
    }
    let plain = LaunchShape::new([6, 1, 1], [32, 1, 1]);
    expect_clusters(&ranks(gpu, "cluster_of_two", &plain)?, 2)?;
    expect_clusters(&ranks(gpu, "cluster_of_two", &plain.with_cluster([2, 1, 1]))?, 2)?;
    match ranks(gpu, "cluster_of_two", &plain.with_cluster([3, 1, 1])) {
        Err(error) if matches!(error.downcast_ref(), Some(LaunchError::RequiredCluster { .. })) => {
            Ok(error.to_string())
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn cooperative_launches(gpu: &Gpu) -> Outcome {
    let function = gpu.plain()?.function("all_blocks")?;
    let fit = function.blocks_per_multiprocessor(1, 0)? * gpu.context.limits().multiprocessors;
    let arrived = gpu.buffer(&[0u32])?;
    let out = gpu.context.allocate(4 * (fit as usize + 1))?;
    let mut arguments = Arguments::new();
    arguments.buffer(&arrived).buffer(&out);
    launch(
        &function,
        &LaunchShape::new([fit, 1, 1], [1, 1, 1]).with_cooperation(),
        &arguments,
        &gpu.stream,
    )?;
    let mut found = vec![0u32; fit as usize];
    out.slice(0..4 * fit as usize)?.download(&mut found, &gpu.stream)?;
    ensure!(found.iter().all(|&blocks| blocks == fit), "{fit} blocks: {found:?}");
    match function.launch(
        &LaunchShape::new([fit + 1, 1, 1], [1, 1, 1]).with_cooperation(),
        &arguments,
    ) {
        Err(error @ LaunchError::TooManyTogether { .. }) => Ok(error.to_string()),
        other => Err(format!("{other:?}").into()),
    }
}

fn occupancy(gpu: &Gpu) -> Outcome {
    let function = gpu.plain()?.function("dynamic_shared")?;
    let limit = gpu.context.limits().shared_bytes_at_most;
    let (many, one) = (
        function.blocks_per_multiprocessor(32, 128)?,
        function.blocks_per_multiprocessor(32, limit)?,
    );
    ensure!(
        many > 1 && one == 1,
        "{many} blocks with little shared memory, {one} with all of it"
    );
    Ok(format!("{many} blocks with 128 bytes of shared memory, 1 with {limit}"))
}
