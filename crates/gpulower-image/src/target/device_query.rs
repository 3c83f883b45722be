//! Which device a question is about: `sm_86`, `8.6`, `gfx90a:xnack+`, `native`.

use super::error::shown;
use super::ptx::decimal;
use super::{AmdTarget, ComputeCapability, NvidiaArch, NvidiaTarget, Suffix, Target, TargetError};
use std::fmt;
use std::str::FromStr;

/// A device that code may be loaded on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// An NVIDIA device.
    Nvidia(ComputeCapability),
    /// An AMD device: a real chip, with the settings that it runs in. A setting that is left out is not known.
    Amd(AmdTarget),
}

impl Device {
    /// What to compile for where the code is to run on this device alone: all that its chip has, `sm_90a` for 9.0. None for
    /// an NVIDIA device that is newer than the tables.
    pub fn own_target(&self) -> Option<Target> {
        let capability = match *self {
            Self::Amd(target) => return Some(Target::Amd(target)),
            Self::Nvidia(capability) => capability,
        };
        let of_suffix =
            |suffix| move |target: &NvidiaTarget| target.number() == capability.number() && target.suffix() == suffix;
        NvidiaTarget::all()
            .find(of_suffix(Suffix::ArchitectureSpecific))
            .or_else(|| NvidiaTarget::all().find(of_suffix(Suffix::Plain)))
            .map(Target::Nvidia)
    }
}

/// Prints `9.0` or `gfx90a:xnack+`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvidia(capability) => capability.fmt(f),
            Self::Amd(target) => target.fmt(f),
        }
    }
}

/// A device by name, or those of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceQuery {
    /// This one.
    Named(Device),
    /// The caller has to ask the driver.
    Native,
}

impl FromStr for Device {
    type Err = TargetError;

    /// Reads `sm_86`, `8.6` and target IDs. A letter after an NVIDIA chip's number does not count: a device runs all that
    /// its chip has. A chip later than all that are known is taken by its number.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let name = text.trim();
        if let Some(capability) = capability(name) {
            return known(capability, name).map(Self::Nvidia);
        }
        if let Some(arch) = NvidiaArch::parse(name).filter(|_| !name.starts_with(|first: char| first.is_ascii_digit()))
        {
            if name.starts_with("compute_") {
                let (name, device) = (shown(name), of_number(arch.number).device_arch());
                return Err(TargetError::unsupported(format!(
                    "{name} is a virtual architecture, not a device: name the device, such as {device}"
                )));
            }
            return known(of_number(arch.number), name).map(Self::Nvidia);
        }
        let target: AmdTarget = name.parse().map_err(|source| no_device(name, &source))?;
        if target.is_generic() {
            return Err(TargetError::unsupported(format!(
                "{name} stands for a family of chips, not for a device: name one of them, such as gfx942 or gfx1100",
                name = shown(name)
            )));
        }
        Ok(Self::Amd(target))
    }
}

impl FromStr for DeviceQuery {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.trim() == "native" {
            return Ok(Self::Native);
        }
        text.parse().map(Self::Named)
    }
}

impl ComputeCapability {
    /// The plain architecture of the device.
    const fn device_arch(self) -> NvidiaArch {
        NvidiaArch {
            number: self.number(),
            suffix: super::Suffix::Plain,
        }
    }
}

const fn of_number(number: u16) -> ComputeCapability {
    ComputeCapability::new(number / 10, number % 10)
}

/// Reads `8.6`. The minor number has one digit, as in the numbers of chips.
fn capability(text: &str) -> Option<ComputeCapability> {
    let (major, minor) = text.split_once('.')?;
    let major: u16 = decimal(major).filter(|_| (1..=2).contains(&major.len()))?;
    let minor: u16 = decimal(minor).filter(|_| minor.len() == 1)?;
    Some(ComputeCapability::new(major, minor))
}

fn no_device(name: &str, source: &TargetError) -> TargetError {
    let name = shown(name);
    TargetError::malformed(format!(
        "'{name}' is no device: write a chip such as sm_86 or gfx90a:xnack+, a compute capability such as 8.6, or native \
         ({source})"
    ))
}

/// Refuses a number between those of the table, which is a typing error, with the chips that may be meant.
fn known(capability: ComputeCapability, name: &str) -> Result<ComputeCapability, TargetError> {
    let newest = NvidiaTarget::all().map(|chip| chip.number()).max().unwrap_or(0);
    if capability.number() > newest {
        return Ok(capability);
    }
    match capability.device_arch().to_string().parse::<NvidiaTarget>() {
        Ok(_) => Ok(capability),
        Err(source) => Err(no_device(name, &source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_all_that_its_chip_has() {
        for (device, target) in [
            ("8.0", Some("sm_80")),
            ("9.0", Some("sm_90a")),
            ("10.0", Some("sm_100a")),
            ("gfx90a:xnack+", Some("gfx90a:xnack+")),
        ] {
            let found = device.parse::<Device>().unwrap().own_target();
            assert_eq!(found.map(|target| target.to_string()).as_deref(), target, "{device}");
        }
        assert_eq!("19.5".parse::<Device>().unwrap().own_target(), None);
    }

    #[test]
    fn every_spelling_is_read() {
        for (text, device) in [
            ("sm_86", "8.6"),
            (" 8.6 ", "8.6"),
            ("sm_90a", "9.0"),
            ("sm_100f", "10.0"),
            ("12.1", "12.1"),
            // Later than all that are known.
            ("sm_130", "13.0"),
            ("13.0", "13.0"),
            ("gfx90a", "gfx90a"),
            ("gfx90a:xnack+", "gfx90a:xnack+"),
        ] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), device, "{text}");
            assert_eq!(text.parse(), Ok(DeviceQuery::Named(text.parse().unwrap())), "{text}");
        }
        assert_eq!("native".parse(), Ok(DeviceQuery::Native));
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refusal = |text: &str| text.parse::<DeviceQuery>().expect_err(text).to_string();
        assert_eq!(
            refusal("compute_90a"),
            "compute_90a is a virtual architecture, not a device: name the device, such as sm_90"
        );
        assert_eq!(
            refusal("gfx9-4-generic"),
            "gfx9-4-generic stands for a family of chips, not for a device: name one of them, such as gfx942 or gfx1100"
        );
        assert_eq!(
            refusal("9.1"),
            "'9.1' is no device: write a chip such as sm_86 or gfx90a:xnack+, a compute capability such as 8.6, or native \
             (unknown chip 'sm_91': did you mean sm_90 or sm_90a?)"
        );
        for text in [
            "",
            "86",
            "sm_",
            "sm_68",
            "8",
            "8.",
            ".6",
            "8.66",
            "108.6",
            "8.6.1",
            "+8.6",
            "gfx942:fast+",
            "h100",
        ] {
            assert!(refusal(text).contains("is no device"), "{text}");
        }
    }
}
