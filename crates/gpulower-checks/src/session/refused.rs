//! Bad input: typed errors, and the session goes on.

use std::sync::Arc;

use gpulower::Emit;
use gpulower::runtime::{Arguments, LaunchError, LaunchShape, MemRef, ModuleError};
use gpulower::session::{JitSession, SessionError};

use super::fixture::{Check, Gpu, ONE, Outcome, one_line};
use super::kernels::scale;

pub const CHECKS: &[Check] = &[
    ("a target that is not the chip's", a_target_that_is_not_the_chips),
    ("PTX newer than the driver", ptx_newer_than_the_driver),
    ("PTX that is wrong", ptx_that_is_wrong),
    ("MLIR that is wrong", mlir_that_is_wrong),
    ("MLIR that crashes MLIR", mlir_that_crashes),
    ("wrong arguments", wrong_arguments),
    ("too many threads, too much shared", too_much),
];

fn a_target_that_is_not_the_chips(gpu: &Gpu) -> Outcome {
    let other = match gpu.context.limits().clusters {
        true => "sm_80",
        false => "sm_100",
    };
    let session = JitSession::builder(Arc::clone(&gpu.compiler))
        .context(&gpu.context)
        .target(other.parse()?)
        .emit(Emit::Cubin)
        .build()?;
    match session.add("k", scale(2.0)) {
        Err(SessionError::Load(error @ ModuleError::NothingFits { code: 209, .. })) => {
            ensure!(session.is_empty(), "it was added");
            Ok(one_line(&error.to_string()))
        }
        found => Err(format!("{found:?}").into()),
    }
}

/// A kernel that does nothing.
fn ptx(version: &str, body: &str) -> String {
    format!(".version {version}\n.target sm_75\n.address_size 64\n.visible .entry nothing() {{ {body} ret; }}\n")
}

fn as_ptx(gpu: &Gpu) -> Result<JitSession, SessionError> {
    JitSession::builder(Arc::clone(&gpu.compiler))
        .context(&gpu.context)
        .emit(Emit::Ptx)
        .build()
}

fn ptx_newer_than_the_driver(gpu: &Gpu) -> Outcome {
    let session = as_ptx(gpu)?;
    session.add("k", ptx("7.0", ""))?;
    session.function("k", "nothing")?;
    match session.add("k", ptx("9.9", "")) {
        Err(error @ (SessionError::Load(ModuleError::NothingFits { .. }) | SessionError::Compile(_))) => {
            session.function("k", "nothing")?;
            Ok(one_line(&error.to_string()))
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn ptx_that_is_wrong(gpu: &Gpu) -> Outcome {
    let session = as_ptx(gpu)?;
    match session.add("k", ptx("7.0", "fma.rn.f99 %f1, %f1, %f1, %f1;")) {
        Err(error @ (SessionError::Load(ModuleError::Jit { .. }) | SessionError::Compile(_))) => {
            ensure!(session.is_empty(), "it was added");
            Ok(one_line(&error.to_string()))
        }
        other => Err(format!("{other:?}").into()),
    }
}

/// The process has CUDA's threads, and its handlers, if it has any: what was loaded before the crash still runs, and what comes
/// after it is compiled.
fn mlir_that_crashes(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("before", scale(3.0))?;
    let before = session.function("before", "scale")?;
    let crashes = "gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }";
    let mut said = String::new();
    for round in 0..10u8 {
        match session.add("crashes", crashes) {
            Err(SessionError::Compile(failure)) => said = one_line(&failure.to_string()),
            other => return Err(format!("{other:?}").into()),
        }
        ensure!(said.contains("LLVM or MLIR crashed"), "{said}");
        gpu.check_scale(&before, 3.0, 1000)?;
        let factor = f32::from(round) + 4.0;
        session.add("after", scale(factor))?;
        gpu.check_scale(&session.function("after", "scale")?, factor, 1000)?;
    }
    Ok(said)
}

fn mlir_that_is_wrong(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("k", scale(3.0))?;
    let mut said = String::new();
    for text in [
        scale(2.0).replace("arith.mulf", "arith.mulff"),
        scale(2.0).replace(": index to", "").replace("gpu.return", ""),
        "gpu.module @a {} gpu.module @b {}".to_owned(),
    ] {
        match session.add("k", text) {
            Err(error @ (SessionError::Compile(_) | SessionError::SeveralModules { .. })) => said = error.to_string(),
            other => return Err(format!("{other:?}").into()),
        }
    }
    gpu.check_scale(&session.function("k", "scale")?, 3.0, 1001)?;
    Ok(one_line(&said))
}

fn wrong_arguments(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("k", scale(0.5))?;
    let function = session.function("k", "scale")?;
    let mut arguments = Arguments::new();
    arguments.pointer(0).pointer(0);
    let few = match function.launch(&ONE, &arguments) {
        Err(error @ LaunchError::ArgumentCount { .. }) => one_line(&error.to_string()),
        other => return Err(format!("{other:?}").into()),
    };
    let none = MemRef::contiguous(0, &[0]).with_index_bits(32);
    let mut narrow = Arguments::new();
    narrow.memref(&none).memref(&none);
    match function.launch(&ONE, &narrow) {
        Err(LaunchError::ArgumentSize { .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    gpu.check_scale(&function, 0.5, 1001)?;
    Ok(few)
}

fn too_much(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("k", scale(0.25))?;
    let function = session.function("k", "scale")?;
    let mut arguments = Arguments::new();
    let none = MemRef::contiguous(0, &[0]);
    arguments.memref(&none).memref(&none);
    let limits = gpu.context.limits();
    let threads = LaunchShape::new([1, 1, 1], [limits.threads_per_block + 1, 1, 1]);
    let shared = ONE.with_dynamic_shared(limits.shared_bytes_at_most + 1);
    let mut said = Vec::new();
    for shape in [threads, shared] {
        match function.launch(&shape, &arguments) {
            Err(
                error @ (LaunchError::Block { .. } | LaunchError::Threads { .. } | LaunchError::SharedMemory { .. }),
            ) => {
                said.push(one_line(&error.to_string()));
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    gpu.check_scale(&function, 0.25, 1001)?;
    Ok(said.join("; "))
}
