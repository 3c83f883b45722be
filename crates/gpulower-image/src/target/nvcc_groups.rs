//! Code generations as nvcc orders them, and which codes one makes.

use super::nvidia_chips::{Suffix, family};
use super::{
    ComputeCapability, CudaRelease, Generation, NvidiaKind, NvidiaTarget, PlanNote, PlannedImage, PtxPolicy, Target,
    TargetError, TargetPlan,
};

/// Code generations with their images, in nvcc's order.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<(NvidiaTarget, Vec<NvidiaTarget>)>);

impl Groups {
    /// Whether there is nothing to generate.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds code of one virtual architecture. nvcc keeps one list for each and puts new code before what is in it: the
    /// codes of one `-gencode` keep their order, those of another come before, and those of `-code` come out reversed.
    pub fn add(&mut self, arch: NvidiaTarget, codes: &[NvidiaTarget]) -> Result<(), TargetError> {
        let at = self.0.iter().position(|(known, _)| *known == arch);
        let at = at.unwrap_or_else(|| {
            self.0.push((arch, Vec::new()));
            self.0.len() - 1
        });
        let Some((_, list)) = self.0.get_mut(at) else {
            return Ok(());
        };
        for code in codes.iter().rev() {
            let code = of_family(arch, *code)?;
            check_compatible(arch, code)?;
            if !list.contains(&code) {
                list.insert(0, code);
            }
        }
        Ok(())
    }

    /// `-arch` without `-code`: the chip's machine code, if it is a real one, and its PTX. Before those of a chip with a
    /// suffix comes the PTX of the chip without, since nvcc 13.0.
    pub fn add_shorthand(&mut self, named: NvidiaTarget) -> Result<(), TargetError> {
        let arch = named.with_kind(NvidiaKind::Virtual);
        if arch.suffix() != Suffix::Plain {
            // Every chip with a suffix is in the table without one too; a test holds that.
            if let Some(plain) = plain(arch.number()) {
                self.add(plain, &[plain])?;
            }
        }
        if named.is_virtual() {
            self.add(arch, &[arch])
        } else {
            self.add(arch, &[named, arch])
        }
    }

    /// The machine code of plain chips, each from its own generation.
    fn add_chips(&mut self, chips: impl IntoIterator<Item = NvidiaTarget>) -> Result<(), TargetError> {
        chips
            .into_iter()
            .try_for_each(|chip| self.add(chip.with_kind(NvidiaKind::Virtual), &[chip]))
    }

    /// The chips of a CUDA release that `wanted` chooses, and the first, and PTX for the highest major one.
    pub fn add_release(
        &mut self,
        release: CudaRelease,
        arch: &'static str,
        wanted: fn(&NvidiaTarget) -> bool,
    ) -> Result<(), TargetError> {
        let chips: Vec<NvidiaTarget> = NvidiaTarget::all()
            .filter(|chip| chip.suffix() == Suffix::Plain && chip.supported_by_cuda(release))
            .collect();
        let first = chips.first();
        let Some(highest) = chips.iter().rev().find(|chip| is_major(chip)) else {
            return Err(TargetError::unsupported(format!(
                "-arch={arch}: CUDA {release} is older than all releases that are known: name the architectures"
            )));
        };
        self.add_chips(
            chips
                .iter()
                .filter(|chip| Some(*chip) == first || wanted(chip))
                .copied(),
        )?;
        let highest = highest.with_kind(NvidiaKind::Virtual);
        self.add(highest, &[highest])
    }

    /// The machine code of each device, each from its own generation.
    pub fn add_devices(&mut self, devices: &[ComputeCapability]) -> Result<(), TargetError> {
        if devices.is_empty() {
            return Err(TargetError::unsupported(
                "-arch=native found no NVIDIA GPU here: name the architecture, such as -arch=sm_90",
            ));
        }
        for device in devices {
            let chip: NvidiaTarget = format!("sm_{}", device.number()).parse().map_err(|source| {
                TargetError::unsupported(format!(
                    "-arch=native found a GPU of compute capability {device}: {source}"
                ))
            })?;
            self.add_chips([chip])?;
        }
        Ok(())
    }

    /// Refuses what nvcc refuses of cubins that two generations make; notes what it lets pass.
    pub fn check_cubins(&self) -> Result<Vec<PlanNote>, TargetError> {
        let cubins: Vec<(NvidiaTarget, NvidiaTarget)> = self
            .0
            .iter()
            .flat_map(|(arch, codes)| codes.iter().map(move |code| (*arch, *code)))
            .filter(|(_, code)| !code.is_virtual())
            .collect();
        let of_family = |arch: NvidiaTarget| arch.suffix() == Suffix::FamilySpecific;
        let specific = |code: NvidiaTarget| code.suffix() == Suffix::ArchitectureSpecific;
        let mut notes = Vec::new();
        for (index, (first, code)) in cubins.iter().enumerate() {
            for (second, other) in cubins.iter().skip(index + 1).filter(|(second, _)| second != first) {
                let alike = code.number() == other.number() && specific(*code) == specific(*other);
                if alike && of_family(*first) != of_family(*second) {
                    return Err(TargetError::conflict(format!(
                        "{first} and {second} would both make code for {code}, one of them specific to a family: leave one of the two out"
                    )));
                }
                if code == other {
                    notes.push(PlanNote::TwoCubins {
                        arch: code.arch(),
                        first: Target::Nvidia(*first),
                        second: Target::Nvidia(*second),
                    });
                }
            }
        }
        Ok(notes)
    }

    /// The plan, with notes on it.
    pub fn plan(self, notes: Vec<PlanNote>) -> TargetPlan {
        let image = |code: &NvidiaTarget| match code.kind() {
            NvidiaKind::Virtual => PlannedImage::Ptx(*code),
            NvidiaKind::Real => PlannedImage::Machine(Target::Nvidia(*code)),
        };
        let generations: Vec<Generation> = self
            .0
            .iter()
            .map(|(arch, codes)| Generation {
                target: Target::Nvidia(*arch),
                images: codes.iter().map(image).collect(),
            })
            .collect();
        // Each virtual architecture is in one list, its own.
        let ptx: Vec<NvidiaTarget> = self
            .0
            .iter()
            .flat_map(|(_, codes)| codes.iter())
            .filter(|code| code.is_virtual())
            .copied()
            .collect();
        TargetPlan {
            generations,
            include_ptx: if ptx.is_empty() {
                PtxPolicy::None
            } else {
                PtxPolicy::Listed(ptx)
            },
            notes,
        }
    }
}

/// A major chip: one whose minor compute capability is 0.
pub(super) fn is_major(chip: &NvidiaTarget) -> bool {
    chip.number().is_multiple_of(10)
}

/// The virtual target of a number without a suffix.
fn plain(number: u16) -> Option<NvidiaTarget> {
    let chip = NvidiaTarget::all().find(|chip| chip.number() == number && chip.suffix() == Suffix::Plain);
    chip.map(|chip| chip.with_kind(NvidiaKind::Virtual))
}

/// Machine code for a plain chip from the generation of a family is specific to the family: nvcc makes `sm_100f` where
/// `sm_100` is asked for.
fn of_family(arch: NvidiaTarget, code: NvidiaTarget) -> Result<NvidiaTarget, TargetError> {
    if arch.suffix() != Suffix::FamilySpecific || code.suffix() != Suffix::Plain || code.is_virtual() {
        return Ok(code);
    }
    let family =
        NvidiaTarget::all().find(|chip| chip.number() == code.number() && chip.suffix() == Suffix::FamilySpecific);
    match family {
        Some(code) => Ok(code),
        None => Err(incompatible(arch, code)),
    }
}

fn check_compatible(arch: NvidiaTarget, code: NvidiaTarget) -> Result<(), TargetError> {
    let fits = if code.is_virtual() {
        code == arch
    } else {
        // ptxas takes PTX of an earlier chip for code of a family. nvcc does not.
        let family_code = code.suffix() == Suffix::FamilySpecific;
        arch.ptx_compiles_for(&code) && (!family_code || family(arch.number()) == family(code.number()))
    };
    if fits { Ok(()) } else { Err(incompatible(arch, code)) }
}

fn incompatible(arch: NvidiaTarget, code: NvidiaTarget) -> TargetError {
    let chip = arch.chip();
    let reason = if code.is_virtual() {
        format!("the only PTX of a generation is its own: write {arch}, or {code} in a -gencode of its own")
    } else {
        match arch.suffix() {
            Suffix::ArchitectureSpecific => format!("code with all that {chip} has runs on {chip} alone"),
            Suffix::FamilySpecific => {
                format!("code for the family of {chip} runs on {chip} and later chips of the family")
            }
            Suffix::Plain if code.number() < arch.number() => {
                format!("{code} is older and lacks what code for {arch} may use")
            }
            Suffix::Plain => format!("{code} takes code generated for its own family"),
        }
    };
    TargetError::conflict(format!(
        "incompatible code generation: arch={arch}, code={code}: {reason}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_with_a_suffix_exist_without_one() {
        for chip in NvidiaTarget::all() {
            assert!(plain(chip.number()).is_some(), "{chip}");
        }
    }
}
