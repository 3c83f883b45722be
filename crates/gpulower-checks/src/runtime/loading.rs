//! Loading: machine code, containers, PTX, and everything that is none of them.

use gpulower::container::fatbin::{self, Content, Image};
use gpulower::runtime::{Arguments, LaunchShape, LoadOptions, MemRef, Module, ModuleError, PtxFallback};

use super::fixture::{Check, Gpu, ONE, Outcome, PLAIN, launch};

pub const CHECKS: &[Check] = &[
    ("a cubin", a_cubin),
    ("PTX", ptx),
    ("a fat binary", a_fat_binary),
    ("a fat binary without our chip", a_fat_binary_without_our_chip),
    ("MLIR's memrefs", memrefs),
    ("another chip's cubin", another_chips_cubin),
    ("PTX newer than the driver", ptx_newer_than_the_driver),
    ("damaged cubins", damaged_cubins),
    ("damaged PTX", damaged_ptx),
    ("what is not there", what_is_not_there),
    ("variables", variables),
    ("dropped in any order", dropped_in_any_order),
    ("unloaded while it runs", unloaded_while_it_runs),
];

fn load(gpu: &Gpu, name: &str, bytes: &[u8]) -> Result<Module, ModuleError> {
    Module::load(&gpu.context, name, bytes, &LoadOptions::default())
}

fn a_cubin(gpu: &Gpu) -> Outcome {
    let module = gpu.plain()?;
    ensure!(!module.is_from_ptx(), "{}", module.image());
    let saxpy = module.function("saxpy")?;
    for count in [1, 255, 256, 1_000_003] {
        gpu.saxpy(&saxpy, count)?;
    }
    let attributes = saxpy.attributes();
    ensure!(
        attributes.registers > 0 && attributes.threads_per_block == 1024,
        "{attributes:?}"
    );
    Ok(format!("{}; {attributes:?}", module.image()))
}

fn ptx(gpu: &Gpu) -> Outcome {
    let mut options = LoadOptions::default();
    options.jit.line_info = true;
    options.jit.optimization = Some(3);
    let module = Module::load(&gpu.context, "plain.ptx", PLAIN.as_bytes(), &options)?;
    ensure!(module.is_from_ptx(), "{}", module.image());
    gpu.saxpy(&module.function("saxpy")?, 100_001)?;
    let compiled = module.function("static_and_dynamic_shared")?;
    Ok(format!(
        "{}; 40960 bytes of shared memory are {} to the driver, of which {} may be the system's; log of {} bytes: {:?}",
        module.image(),
        compiled.attributes().shared_bytes,
        gpu.context.limits().shared_bytes_reserved,
        module.jit_log().info.len(),
        module.jit_log().info.lines().next().unwrap_or_default()
    ))
}

fn a_fat_binary(gpu: &Gpu) -> Outcome {
    let arch = chip(gpu)?;
    let image = Image {
        compression: fatbin::ZSTD_DEFAULT,
        ..Image::new(Content::Cubin(&gpu.images.plain), &arch)?
    };
    let bytes = fatbin::write(&[Image::new(Content::Ptx(PLAIN), "sm_75")?, image])?;
    let module = load(gpu, "both.fatbin", &bytes)?;
    ensure!(!module.is_from_ptx(), "{} was taken", module.image());
    gpu.saxpy(&module.function("saxpy")?, 1001)?;
    Ok(module.image().to_owned())
}

fn a_fat_binary_without_our_chip(gpu: &Gpu) -> Outcome {
    let bytes = fatbin::write(&[
        Image::new(Content::Cubin(&gpu.images.other), &other_chip(gpu))?,
        Image::new(Content::Ptx(PLAIN), "sm_75")?,
    ])?;
    let module = load(gpu, "other.fatbin", &bytes)?;
    ensure!(module.is_from_ptx(), "{} was taken", module.image());
    gpu.saxpy(&module.function("saxpy")?, 1001)?;
    let mut strict = LoadOptions::default();
    strict.ptx = PtxFallback::Refused;
    match Module::load(&gpu.context, "other.fatbin", &bytes, &strict) {
        Err(error @ ModuleError::PtxRefused { .. }) => Ok(error.to_string()),
        other => Err(format!("{other:?}").into()),
    }
}

fn memrefs(gpu: &Gpu) -> Outcome {
    let saxpy = load(gpu, "saxpy.cubin", &gpu.images.saxpy)?.function("saxpy")?;
    let strided = load(gpu, "strided.cubin", &gpu.images.strided)?.function("saxpy")?;
    let count = 10_007;
    let size = count as i64;
    // Where the element of each index is. The kernel of examples/saxpy.mlir has the layout in its types; of a part of a buffer
    // it takes the address. The other takes every layout.
    for (function, offset, stride, part) in [
        (&saxpy, 0, 1, true),
        (&saxpy, 1, 1, true),
        (&strided, 1, 1, false),
        (&strided, 5, 3, false),
        (&strided, 3 * size, -2, false),
    ] {
        let (a, x, y) = (gpu.floats(1)[0], gpu.floats(count), gpu.floats(4 * count));
        let (on_x, on_y) = (gpu.buffer(&x)?, gpu.buffer(&y)?);
        let on_part = on_y.slice(4 * offset as usize..on_y.bytes())?;
        let target = match part {
            true => MemRef::contiguous(on_part.address(), &[size]),
            false => MemRef::strided::<f32>(&on_y, offset, &[size], &[stride])?,
        };
        let mut arguments = Arguments::new();
        arguments
            .value(a)
            .memref(&MemRef::of::<f32>(&on_x, &[size])?)
            .memref(&target);
        launch(
            function,
            &LaunchShape::linear(count as u32, 256),
            &arguments,
            &gpu.stream,
        )?;
        let mut expected = y;
        for (index, x) in x.iter().enumerate() {
            let place = &mut expected[(offset + stride * index as i64) as usize];
            *place = a.mul_add(*x, *place);
        }
        let mut result = vec![f32::NAN; 4 * count];
        on_y.download(&mut result, &gpu.stream)?;
        for (index, (found, expected)) in result.iter().zip(&expected).enumerate() {
            ensure!(
                found.to_bits() == expected.to_bits(),
                "offset {offset}, stride {stride}: element {index}: {found} instead of {expected}"
            );
        }
    }
    Ok("at offsets, with strides, backwards".to_owned())
}

fn another_chips_cubin(gpu: &Gpu) -> Outcome {
    match load(gpu, "other.cubin", &gpu.images.other) {
        Err(error @ ModuleError::NothingFits { code: 209, .. }) => Ok(one_line(&error.to_string())),
        other => Err(format!("{other:?}").into()),
    }
}

fn ptx_newer_than_the_driver(gpu: &Gpu) -> Outcome {
    let text = PLAIN.replace(".version 7.0", ".version 9.9");
    match load(gpu, "new.ptx", text.as_bytes()) {
        Err(error @ ModuleError::NothingFits { code: 222, .. }) => Ok(one_line(&error.to_string())),
        other => Err(format!("{other:?}").into()),
    }
}

fn damaged_cubins(gpu: &Gpu) -> Outcome {
    let whole = &gpu.images.plain;
    for cut in 1..200 {
        let end = whole.len() * cut / 200;
        let result = load(gpu, "half.cubin", &whole[..end]);
        ensure!(
            matches!(
                result,
                Err(ModuleError::Unreadable { .. }
                    | ModuleError::Empty { .. }
                    | ModuleError::Damaged { .. }
                    | ModuleError::NothingFits { .. })
            ),
            "{end} bytes of {}: {result:?}",
            whole.len()
        );
    }
    gpu.saxpy(&gpu.plain()?.function("saxpy")?, 100)?;
    Ok("199 beginnings of a cubin are refused".to_owned())
}

fn damaged_ptx(gpu: &Gpu) -> Outcome {
    let text = PLAIN.replacen("fma.rn.f32 %f4", "fma.rn.f99 %f4", 1);
    match load(gpu, "wrong.ptx", text.as_bytes()) {
        Err(ModuleError::Jit { log, source, .. }) => {
            ensure!(!log.errors.is_empty(), "no log: {source}");
            Ok(one_line(&format!("{source}: {}", log.errors)))
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn what_is_not_there(gpu: &Gpu) -> Outcome {
    let module = gpu.plain()?;
    let kernel = match module.function("saxpi") {
        Err(error @ ModuleError::NoSuchKernel { .. }) => error.to_string(),
        other => return Err(format!("{other:?}").into()),
    };
    match module.global("nothing") {
        Err(ModuleError::NoSuchVariable { .. }) => Ok(kernel),
        other => Err(format!("{other:?}").into()),
    }
}

fn variables(gpu: &Gpu) -> Outcome {
    let module = gpu.plain()?;
    let counter = module.global("counter")?;
    ensure!(counter.bytes() == 4, "{counter:?}");
    let count = module.function("count")?;
    let arguments = Arguments::new();
    launch(
        &count,
        &LaunchShape::new([4, 1, 1], [32, 1, 1]),
        &arguments,
        &gpu.stream,
    )?;
    let mut value = [0u32];
    counter.download(&mut value, &gpu.stream)?;
    ensure!(value == [5 + 128], "{value:?}");
    counter.upload(&[1000u32], &gpu.stream)?;
    launch(&count, &ONE, &arguments, &gpu.stream)?;
    counter.download(&mut value, &gpu.stream)?;
    ensure!(value == [1001], "{value:?}");
    Ok("read, written, and counted on".to_owned())
}

fn dropped_in_any_order(gpu: &Gpu) -> Outcome {
    for order in 0..6 {
        let context = gpu.context.device().separate_context()?;
        let stream = context.stream()?;
        let module = Module::load(&context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
        let count = module.function("count")?;
        let arguments = Arguments::new();
        let mut things: Vec<Option<Box<dyn std::any::Any>>> = vec![
            Some(Box::new(context)),
            Some(Box::new(module)),
            Some(Box::new(stream.context().allocate(100)?)),
        ];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for index in orders[order] {
            things[index] = None;
            // What is left keeps what it needs.
            launch(&count, &ONE, &arguments, &stream)?;
        }
        stream.synchronize()?;
        if order % 2 == 0 {
            drop(stream);
            drop(count);
        } else {
            drop(count);
            drop(stream);
        }
    }
    Ok("context, module, memory, stream and function".to_owned())
}

fn unloaded_while_it_runs(gpu: &Gpu) -> Outcome {
    let times = gpu.context.allocate(16)?;
    times.all().fill(0u32, &gpu.stream)?;
    let module = gpu.plain()?;
    let spin = module.function("spin")?;
    let mut arguments = Arguments::new();
    arguments.buffer(&times).value(50_000_000u64);
    launch(&spin, &ONE, &arguments, &gpu.stream)?;
    drop(arguments);
    drop(spin);
    drop(module);
    let waited = gpu.stream.is_done()?;
    let mut span = [0u64; 2];
    times.download(&mut span, &gpu.stream)?;
    ensure!(span[1] >= span[0] + 50_000_000, "the kernel did not end: {span:?}");
    Ok(format!(
        "the kernel ends; unloading {}",
        if waited { "waits for it" } else { "does not wait for it" }
    ))
}

/// The architecture of the GPU's own cubin.
fn chip(gpu: &Gpu) -> Result<String, Box<dyn std::error::Error>> {
    Ok(gpulower::image::cubin::read(&gpu.images.plain)?.chip())
}

/// The architecture of the other cubin.
fn other_chip(gpu: &Gpu) -> String {
    gpulower::image::cubin::read(&gpu.images.other).map_or_else(|error| error.to_string(), |info| info.chip())
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" / ")
}
