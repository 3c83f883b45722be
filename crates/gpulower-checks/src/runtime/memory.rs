//! Devices and memory.

use gpulower::runtime::{Arguments, DriverError, LaunchShape};

use super::fixture::{Check, Gpu, Outcome, launch};

pub const CHECKS: &[Check] = &[
    ("devices", devices),
    ("contexts are shared", contexts_are_shared),
    ("round trips", round_trips),
    ("parts, copies and fills", parts_copies_and_fills),
    ("pinned memory", pinned_memory),
    ("memory in stream order", memory_in_stream_order),
    ("more memory than there is", more_memory_than_there_is),
];

fn devices(gpu: &Gpu) -> Outcome {
    let driver = gpu.context.device().driver();
    let devices = driver.devices()?;
    let mut names = Vec::new();
    for device in &devices {
        let limits = device.limits()?;
        ensure!(limits.threads_per_block >= 1024 && limits.warp == 32, "{limits:?}");
        ensure!(limits.shared_bytes_at_most >= limits.shared_bytes, "{limits:?}");
        ensure!(limits.multiprocessors > 0 && limits.grid[0] > 65535, "{limits:?}");
        names.push(format!(
            "{} ({}, {} MiB)",
            device.name()?,
            device.target()?,
            device.total_memory()? >> 20
        ));
    }
    match driver.device(devices.len() as u32) {
        Err(error @ DriverError::NoSuchDevice { .. }) => Ok(format!("{}; {error}", names.join(", "))),
        other => Err(format!("a device too many: {other:?}").into()),
    }
}

fn contexts_are_shared(gpu: &Gpu) -> Outcome {
    let again = gpu.context.device().context()?;
    ensure!(again.is(&gpu.context), "a second primary context");
    let separate = gpu.context.device().separate_context()?;
    ensure!(
        !separate.is(&gpu.context) && separate.raw() != gpu.context.raw(),
        "no separate context"
    );
    let here = separate.allocate(64)?;
    // What belongs to one context is refused in the other.
    match here.upload(&[0u8; 64], &gpu.stream) {
        Err(error @ DriverError::OtherContext { .. }) => {
            here.upload(&[0u8; 64], &separate.stream()?)?;
            Ok(error.to_string())
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn round_trips(gpu: &Gpu) -> Outcome {
    let sizes = [0, 1, 3, 4097, 64 << 20];
    for size in sizes {
        let data: Vec<u8> = (0..size).map(|_| gpu.random() as u8).collect();
        let buffer = gpu.buffer(&data)?;
        let mut back = vec![0xaa; size];
        buffer.download(&mut back, &gpu.stream)?;
        ensure!(back == data, "{size} bytes came back changed");
        let error = buffer
            .download(&mut vec![0u8; size + 1], &gpu.stream)
            .map_err(|error| error.to_string());
        ensure!(error.is_err(), "a copy of another size was accepted");
    }
    Ok(format!("{sizes:?} bytes"))
}

fn parts_copies_and_fills(gpu: &Gpu) -> Outcome {
    let buffer = gpu.context.allocate(4096)?;
    buffer.all().fill(0x11u8, &gpu.stream)?;
    buffer.slice(1024..2048)?.fill(0x2233u16, &gpu.stream)?;
    buffer.slice(2048..3072)?.fill(1.5f32, &gpu.stream)?;
    buffer
        .slice(3072..4096)?
        .copy_from(buffer.slice(1024..2048)?, &gpu.stream)?;
    let mut bytes = vec![0u8; 4096];
    buffer.download(&mut bytes, &gpu.stream)?;
    let halves: &[u16] = bytemuck::cast_slice(&bytes);
    let floats: &[f32] = bytemuck::cast_slice(&bytes);
    ensure!(bytes[..1024].iter().all(|&byte| byte == 0x11), "bytes");
    ensure!(halves[512..1024].iter().all(|&half| half == 0x2233), "halves");
    ensure!(floats[512..768].iter().all(|&value| value == 1.5), "words");
    ensure!(halves[1536..].iter().all(|&half| half == 0x2233), "the copy");
    let outside = buffer.slice(4000..4097).map(drop);
    let odd = buffer.slice(1..4)?.fill(0u32, &gpu.stream);
    match (outside, odd) {
        (Err(DriverError::Range { .. }), Err(error @ DriverError::Range { .. })) => Ok(error.to_string()),
        other => Err(format!("{other:?}").into()),
    }
}

fn pinned_memory(gpu: &Gpu) -> Outcome {
    let data: Vec<u8> = (0..100_000).map(|_| gpu.random() as u8).collect();
    let buffer = gpu.context.allocate(data.len())?;
    let mut pinned = gpu.context.allocate_pinned(data.len())?;
    ensure!(
        pinned.as_bytes().iter().all(|&byte| byte == 0),
        "pinned memory is not zero"
    );
    pinned.as_bytes_mut().copy_from_slice(&data);
    let up = buffer.all().upload_pinned(pinned, &gpu.stream)?;
    let registered = gpu.context.register(vec![0; data.len()])?;
    let down = buffer.all().download_pinned(registered, &gpu.stream)?;
    let (up, down) = (up.wait()?, down.wait()?);
    ensure!(up.as_bytes() == data && down.as_bytes() == data, "pinned copies");
    ensure!(down.into_vec() == data, "memory that was registered");
    // One that nobody waits for is waited for when it is dropped.
    drop(buffer.all().download_pinned(up, &gpu.stream)?);

    // A kernel on the host's memory.
    let saxpy = gpu.plain()?.function("saxpy")?;
    let (x, y) = (gpu.floats(1000), gpu.floats(1000));
    let mut memory = gpu.context.allocate_pinned(8000)?;
    let floats = memory.as_slice_mut::<f32>()?;
    floats[..1000].copy_from_slice(&x);
    floats[1000..].copy_from_slice(&y);
    let address = memory.device_address()?;
    let mut arguments = Arguments::new();
    arguments
        .value(2.0f32)
        .pointer(address)
        .pointer(address + 4000)
        .value(1000u32);
    launch(&saxpy, &LaunchShape::linear(1000, 128), &arguments, &gpu.stream)?;
    gpu.stream.synchronize()?;
    let result = &memory.as_slice::<f32>()?[1000..];
    let right = result
        .iter()
        .zip(x.iter().zip(&y))
        .all(|(found, (x, y))| *found == 2.0f32.mul_add(*x, *y));
    ensure!(right, "a kernel on pinned memory");
    Ok("copies both ways, registered memory, a kernel on host memory".to_owned())
}

fn memory_in_stream_order(gpu: &Gpu) -> Outcome {
    let (before, _) = gpu.context.memory()?;
    for _ in 0..100 {
        let buffer = gpu.stream.allocate(1 << 20)?;
        buffer.all().fill(7u32, &gpu.stream)?;
        let mut word = [0u32; 1];
        buffer.slice(0..4)?.download(&mut word, &gpu.stream)?;
        ensure!(word == [7], "{word:?}");
    }
    gpu.stream.synchronize()?;
    let (after, _) = gpu.context.memory()?;
    // The driver's pool keeps a piece.
    ensure!(
        before.saturating_sub(after) <= 64 << 20,
        "{before} bytes were free, and {after} are"
    );
    Ok("100 allocations of 1 MiB".to_owned())
}

fn more_memory_than_there_is(gpu: &Gpu) -> Outcome {
    let (_, total) = gpu.context.memory()?;
    let error = match gpu.context.allocate(total + 1) {
        Err(error @ DriverError::OutOfMemory { .. }) => error.to_string(),
        other => return Err(format!("{other:?}").into()),
    };
    match gpu.stream.allocate(2 * total) {
        Err(DriverError::OutOfMemory { .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    gpu.buffer(&[1u8; 64])?;
    Ok(error)
}
