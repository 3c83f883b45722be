//! What a device does with a file, as people read it.

use gpulower::inspect::{
    Inspection,
    device::{Answer, Module, Outcome},
};

use super::{inspect_text::printable_lines, table::wrapped};

/// From how many modules on only those are listed that load no machine code.
const MANY_MODULES: usize = 12;

/// What a device does with the file.
pub fn answer(inspection: &Inspection, answer: &Answer) -> String {
    let mut text = String::from("\n");
    let driver = answer.driver_ptx_isa.as_ref();
    let driver = driver.map_or_else(String::new, |isa| format!(" with a driver that reads PTX up to {isa}"));
    let count = answer.modules.len();
    let few = count <= MANY_MODULES;
    let loads = |module: &&Module| matches!(module.outcome, Outcome::Loads { .. });
    let is_empty = |module: &&Module| module.outcome == Outcome::Empty;
    let loaded = answer.modules.iter().filter(loads).count();
    let empty = answer.modules.iter().filter(is_empty).count();
    let mut head = format!("On {}{driver}", answer.device);
    match count {
        0 => head.push_str(": there is nothing to load"),
        1 => head.push(':'),
        _ if few => head.push_str(&format!(", {count} modules:")),
        _ => {
            head.push_str(&format!(", {count} modules: {loaded} load machine code"));
            if empty > 0 {
                head.push_str(&format!(", {empty} are empty"));
            }
            if loaded + empty < count {
                head.push_str("; the others:");
            }
        }
    }
    text.push_str(&wrapped(&head, 0));
    for module in answer
        .modules
        .iter()
        .filter(|module| few || !(loads(module) || is_empty(module)))
    {
        let name = if count == 1 {
            String::new()
        } else {
            format!("{}: ", module.name)
        };
        text.push_str(&wrapped(&format!("{name}{}", outcome(inspection, &module.outcome)), 2));
        if let Outcome::Fails { reasons, .. } = &module.outcome {
            for reason in reasons {
                let image = reason
                    .image
                    .map_or_else(String::new, |image| format!("{}: ", short(inspection, image)));
                text.push_str(&wrapped(&format!("{image}{}", reason.reason), 4));
            }
        }
    }
    printable_lines(&text)
}

fn outcome(inspection: &Inspection, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Loads { image } => format!("loads {}", short(inspection, *image)),
        Outcome::CompilesPtx {
            image,
            ptx_isa,
            needs_driver_of_cuda,
        } => {
            let driver = match needs_driver_of_cuda {
                Some(release) => format!("of CUDA {release} or newer"),
                None => "newer than all that are known".to_owned(),
            };
            format!(
                "the driver compiles {}: PTX {ptx_isa} needs a driver {driver}",
                short(inspection, *image)
            )
        }
        Outcome::Empty => "has neither kernels nor variables, and is not loaded".to_owned(),
        Outcome::LinkFirst => "has to be linked first; what comes of that decides".to_owned(),
        Outcome::Fails {
            code,
            name,
            runtime_name,
            ..
        } => format!("nothing loads: {name} ({code}, {runtime_name})"),
        _ => String::new(),
    }
}

/// `image 2, cubin for sm_90`.
fn short(inspection: &Inspection, number: usize) -> String {
    let image = inspection.images.iter().find(|image| image.number == number);
    match image {
        Some(image) => {
            let target = image
                .target
                .as_ref()
                .map_or_else(String::new, |target| format!(" for {target}"));
            format!("image {number}, {}{target}", image.kind.name())
        }
        None => format!("image {number}"),
    }
}
