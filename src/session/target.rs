//! What a session compiles for.

use super::error::SessionError;
use crate::{
    compiler::Emit,
    target::{Device, NvidiaKind, NvidiaTarget, Suffix, Target},
};

/// The target that is the device's own: everything that its chip has, since the code is to run there alone.
pub(super) fn target_of(device: Device) -> Result<Target, SessionError> {
    device.own_target().ok_or_else(|| SessionError::UnknownDevice {
        device: device.to_string(),
        newest: NvidiaTarget::all()
            .filter(|target| target.suffix() == Suffix::Plain)
            .max_by_key(NvidiaTarget::number)
            .map_or_else(String::new, |target| target.with_kind(NvidiaKind::Virtual).to_string()),
    })
}

/// Refuses to make what no driver loads, or what the target does not have.
pub(super) fn check_emit(emit: Emit, target: &Target) -> Result<(), SessionError> {
    match emit {
        Emit::Binary | Emit::Ptx | Emit::Cubin | Emit::Hsaco | Emit::Fatbin | Emit::Bundle => {}
        Emit::Mlir | Emit::Llvm | Emit::Bitcode | Emit::Asm | Emit::Object | Emit::Offload => {
            return Err(SessionError::NotLoadable { emit: emit.to_string() });
        }
    }
    emit.format(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_device_is_named_with_what_helps() {
        let device: Device = "19.5".parse().expect("a device");
        assert_eq!(
            target_of(device).expect_err("not known").to_string(),
            "no target is known for a device of compute capability 19.5: name one whose PTX the driver compiles for it \
             (JitSessionBuilder::target), such as compute_121"
        );
    }

    #[test]
    fn what_no_driver_loads_is_refused() {
        let target: Target = "sm_90".parse().expect("a target");
        let refused = |emit| check_emit(emit, &target).expect_err("refused").to_string();
        assert_eq!(
            refused(Emit::Llvm),
            "a session cannot make llvm, which no driver loads: ask for binary, ptx, cubin, hsaco, fatbin or bundle"
        );
        assert!(refused(Emit::Hsaco).starts_with("hsaco does not exist for sm_90"));
        check_emit(Emit::Ptx, &target).expect("loads");
    }
}
