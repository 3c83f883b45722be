//! What MLIR's operations do on the GPU, compiled by a session or as a whole program: shared memory, clusters, tensor maps and
//! warpgroups, kernels at the same time.

use gpulower::jit::{Program, ProgramOptions, Returned};
use gpulower::runtime::{Arguments, LaunchShape, MemRef};

use super::fixture::{Check, Gpu, ONE, Outcome, launch};
use super::kernels::WAITING;

pub const CHECKS: &[Check] = &[
    ("dynamic shared memory", dynamic_shared_memory),
    ("shared memory of both kinds", shared_memory_of_both_kinds),
    ("clusters", clusters),
    ("TMA and wgmma, whole program", tma_and_wgmma),
    ("kernels at the same time", kernels_at_the_same_time),
];

const TURN: &str = "gpu.module @turn { gpu.func @turn(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %last = arith.subi %n, %one : index
  %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %tile = memref.view %memory[%zero][%n] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<?xf32, #gpu.address_space<workgroup>>
  %t = gpu.thread_id x
  %step = gpu.block_dim x
  scf.for %i = %t to %n step %step {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %tile[%i] : memref<?xf32, #gpu.address_space<workgroup>>
  }
  gpu.barrier
  scf.for %i = %t to %n step %step {
    %other = arith.subi %last, %i : index
    %v = memref.load %tile[%other] : memref<?xf32, #gpu.address_space<workgroup>>
    memref.store %v, %out[%i] : memref<?xf32>
  }
  gpu.return } }";

/// An array turned round through shared memory, up to all that a block can have.
fn dynamic_shared_memory(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("turn", TURN)?;
    let turn = session.function("turn", "turn")?;
    let most = gpu.context.limits().shared_bytes_at_most;
    for bytes in [4, 48 << 10, (48 << 10) + 4, 96 << 10, most / 4 * 4] {
        let count = (bytes / 4) as usize;
        let x: Vec<f32> = (0..count).map(|_| gpu.float()).collect();
        let (from, to) = (gpu.context.allocate(4 * count)?, gpu.context.allocate(4 * count)?);
        from.upload(&x, &gpu.stream)?;
        to.all().fill(u32::MAX, &gpu.stream)?;
        let size = [count as i64];
        let mut arguments = Arguments::new();
        arguments
            .memref(&MemRef::of::<f32>(&from, &size)?)
            .memref(&MemRef::of::<f32>(&to, &size)?);
        let shape = LaunchShape::new([1, 1, 1], [256, 1, 1]).with_dynamic_shared(bytes);
        launch(&turn, &shape, &arguments, &gpu.stream)?;
        let mut found = vec![f32::NAN; count];
        to.download(&mut found, &gpu.stream)?;
        found.reverse();
        ensure!(found == x, "with {bytes} bytes the result is wrong");
    }
    Ok(format!("up to {most} bytes"))
}

const BOTH: &str = "gpu.module @both {
  gpu.func @both(%x: memref<?xf32>, %out: memref<?xf32>)
      workgroup(%own: memref<256xf32, #gpu.address_space<workgroup>>) kernel {
    %zero = arith.constant 0 : index
    %last = arith.constant 255 : index
    %n = memref.dim %x, %zero : memref<?xf32>
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %memory[%zero][%n] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<?xf32, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %tile[%t] : memref<?xf32, #gpu.address_space<workgroup>>
    %double = arith.addf %v, %v : f32
    memref.store %double, %own[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %other = arith.subi %last, %t : index
    %a = memref.load %tile[%other] : memref<?xf32, #gpu.address_space<workgroup>>
    %b = memref.load %own[%other] : memref<256xf32, #gpu.address_space<workgroup>>
    %sum = arith.addf %a, %b : f32
    memref.store %sum, %out[%t] : memref<?xf32>
    gpu.return } }";

/// What the kernel declares and what the launch gives lie beside each other.
fn shared_memory_of_both_kinds(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("both", BOTH)?;
    let both = session.function("both", "both")?;
    let declared = both.attributes().shared_bytes;
    ensure!(
        declared == 1024,
        "the kernel declares 1024 bytes, and {declared} are loaded"
    );
    let x: Vec<f32> = (0..256).map(|_| gpu.float()).collect();
    let (from, to) = (gpu.context.allocate(1024)?, gpu.context.allocate(1024)?);
    from.upload(&x, &gpu.stream)?;
    to.all().fill(u32::MAX, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments
        .memref(&MemRef::of::<f32>(&from, &[256])?)
        .memref(&MemRef::of::<f32>(&to, &[256])?);
    let shape = LaunchShape::new([1, 1, 1], [256, 1, 1]).with_dynamic_shared(1024);
    launch(&both, &shape, &arguments, &gpu.stream)?;
    let mut found = vec![f32::NAN; 256];
    to.download(&mut found, &gpu.stream)?;
    for (thread, found) in found.iter().enumerate() {
        let value = x[255 - thread];
        ensure!(*found == value + 2.0 * value, "thread {thread}: {found}");
    }
    Ok(format!(
        "{declared} bytes that the kernel declares beside 1024 of the launch"
    ))
}

const RANKS: &str = "gpu.module @ranks { gpu.func @ranks(%out: memref<?x3xi32>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %block = gpu.block_id x
  %cluster = gpu.cluster_id x
  %rank = gpu.cluster_block_id x
  %size = gpu.cluster_dim_blocks x
  %c = arith.index_cast %cluster : index to i32
  %r = arith.index_cast %rank : index to i32
  %s = arith.index_cast %size : index to i32
  memref.store %c, %out[%block, %zero] : memref<?x3xi32>
  memref.store %r, %out[%block, %one] : memref<?x3xi32>
  memref.store %s, %out[%block, %two] : memref<?x3xi32>
  gpu.return } }";

fn clusters(gpu: &Gpu) -> Outcome {
    if !gpu.context.limits().clusters {
        return Ok("NOT CHECKED: this device has none".to_owned());
    }
    let session = gpu.session()?;
    session.add("ranks", RANKS)?;
    let ranks = session.function("ranks", "ranks")?;
    for size in [1, 2, 4, 8] {
        let blocks = 48;
        let out = gpu.context.allocate(12 * blocks as usize)?;
        out.all().fill(u32::MAX, &gpu.stream)?;
        let mut arguments = Arguments::new();
        arguments.memref(&MemRef::of::<i32>(&out, &[blocks.into(), 3])?);
        let shape = LaunchShape::new([blocks, 1, 1], [1, 1, 1]).with_cluster([size, 1, 1]);
        launch(&ranks, &shape, &arguments, &gpu.stream)?;
        let mut found = vec![[0u32; 3]; blocks as usize];
        out.download(&mut found, &gpu.stream)?;
        for (block, found) in found.iter().enumerate() {
            let block = block as u32;
            let expected = [block / size, block % size, size];
            ensure!(*found == expected, "block {block} in clusters of {size}: {found:?}");
        }
    }
    Ok("of 1, 2, 4 and 8 blocks: numbers, ranks and sizes".to_owned())
}

/// The program has no target: what is compiled for the device by default has `wgmma`.
fn tma_and_wgmma(gpu: &Gpu) -> Outcome {
    let target = gpu.session()?.target().to_string();
    if target != "sm_90a" {
        return Ok(format!(
            "NOT CHECKED: wgmma is for sm_90a alone, and this device is {target}"
        ));
    }
    for _ in 0..4 {
        let seed = (gpu.random() >> 33) as i32 | 1;
        let text = include_str!("tma_wgmma.mlir").replace("arith.constant SEED", &format!("arith.constant {seed}"));
        let options = ProgramOptions::default();
        let mut program = Program::build_source(&gpu.compiler, "tma_wgmma.mlir", text.as_bytes(), &options)?;
        // SAFETY: the program stays within the arrays that it allocates.
        #[allow(unsafe_code, reason = "what a program does is the caller's word")]
        let returned = unsafe { program.run() }?;
        ensure!(
            returned == Returned::I64(0),
            "seed {seed}: wrong elements of 16384: {returned:?}"
        );
    }
    Ok("4 products of random 128 x 128 matrices, exact, for the device's own target".to_owned())
}

fn kernels_at_the_same_time(gpu: &Gpu) -> Outcome {
    const STREAMS: usize = 8;
    let session = gpu.session()?;
    session.add("waiting", WAITING)?;
    let wait = session.function("waiting", "wait")?;
    let flag = gpu.context.allocate(4)?;
    flag.all().fill(0u32, &gpu.stream)?;
    gpu.stream.synchronize()?;
    let mut running = Vec::new();
    for _ in 0..STREAMS {
        running.push((gpu.context.stream()?, gpu.context.allocate(16)?));
    }
    for (stream, times) in &running {
        let mut arguments = Arguments::new();
        arguments
            .buffer(&flag)
            .value(50_000_000u64)
            .memref(&MemRef::of::<i64>(times, &[2])?);
        launch(&wait, &ONE, &arguments, stream)?;
    }
    let mut spans = Vec::new();
    for (stream, times) in &running {
        let mut span = [0u64; 2];
        times.download(&mut span, stream)?;
        spans.push(span);
    }
    let begin = spans.iter().map(|span| span[0]).max().unwrap_or_default();
    let end = spans.iter().map(|span| span[1]).min().unwrap_or_default();
    ensure!(begin < end, "not all of them ran at once: {spans:?}");
    Ok(format!(
        "{STREAMS} kernels of 50 ms in as many streams: all of them at once for {:.1} ms",
        (end - begin) as f64 / 1e6
    ))
}
