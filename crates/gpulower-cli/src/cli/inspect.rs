//! `gpulower inspect`.

use std::path::{Path, PathBuf};

use clap::Args;
use gpulower::{
    Toolkit,
    inspect::{Inspection, device, inspect, inspect_with},
    target::{CudaRelease, Device, DeviceQuery, PtxIsa},
};
use serde::Serialize;

use super::{
    Failed,
    disassembly::Disassemblers,
    environment, extract, input, inspect_answer, inspect_text, json,
    message::{Problem, printable},
    native::Native,
    progress::Progress,
    text_to_stdout, to_stdout,
};

/// Say what is in a file: images for GPUs, their kernels and sizes, and which of them a device loads.
///
/// FILE is a cubin, PTX, fat binary, hsaco or AMDGPU object, offload bundle, offload binary or LLVM bitcode, or a host
/// object, executable, shared library or archive that holds any of them. Parts that are damaged are listed with what is
/// wrong, and the exit status is 1 then.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to look into; - for the standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Say what this device does with the file: sm_86, 8.6, gfx90a:xnack+ or native; exit status 1 if it cannot load it
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    device: Vec<DeviceQuery>,
    /// Assume a driver of this CUDA release, such as 12.4 [default: any; for native, the driver that is here]
    #[arg(long, value_name = "CUDA", requires = "device")]
    driver: Option<CudaRelease>,
    /// List the parameters of kernels
    #[arg(long)]
    parameters: bool,
    /// List the sections of ELF files with their sizes
    #[arg(long)]
    sections: bool,
    /// Show or extract these images alone, by their numbers
    #[arg(long, value_name = "N", value_delimiter = ',')]
    image: Vec<usize>,
    /// Print the code of the images: SASS by NVIDIA's nvdisasm, AMD's by llvm-objdump, PTX as it is
    #[arg(long, conflicts_with_all = ["extract", "json"])]
    disassemble: bool,
    /// Write the images to files, decompressed, instead of listing them: FILE's name with TARGET.EXTENSION
    #[arg(long)]
    extract: bool,
    /// Where to: a directory (if it exists or ends with /), and for one image a file, or - for the standard output
    /// [default: the current directory]
    #[arg(short, long, value_name = "PATH", requires = "extract")]
    output: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long, requires = "extract")]
    force: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  gpulower inspect kernels.fatbin --device sm_86
  gpulower inspect a.out --sections
  gpulower inspect kernels.fatbin --disassemble --image 2
  gpulower inspect libkernels.so --json | jq '.images[] | {target, kind, stored_bytes}'
  gpulower inspect kernels.fatbin --extract --image 2 -o kernels.sm_90.cubin";

/// What `--json` prints: the fields of [`Inspection`], and what was asked for besides.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Version of the document's form. Fields may be added to version 1; none changes its meaning.
    schema: u32,
    #[serde(flatten)]
    inspection: &'a Inspection,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<device::Answer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extracted: Vec<extract::Written>,
}

/// Inspects a file.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let name = match arguments.input.to_string_lossy() {
        name if name == "-" => "<stdin>".to_owned(),
        name => name.into_owned(),
    };
    let progress = Progress::start("inspecting", std::slice::from_ref(&arguments.input), false);
    let looked = arguments.look(&name);
    progress.end();
    let Looked {
        whole,
        inspection,
        contents,
        disassembly,
    } = looked?;
    let answers = arguments.answers(&whole)?;
    let mut extracted = Vec::new();
    if arguments.extract {
        let request = extract::Request {
            input: &arguments.input,
            output: arguments.output.as_deref(),
            force: arguments.force,
            quiet: arguments.json,
        };
        extracted = request.write(&whole, &contents)?;
    }
    if arguments.json {
        let document = Document {
            schema: 1,
            inspection: &inspection,
            devices: answers.clone(),
            extracted,
        };
        to_stdout(json(&document)?.as_bytes())?;
    } else if arguments.disassemble {
        text_to_stdout(&disassembly)?;
    } else if !arguments.extract {
        let show = inspect_text::Show {
            parameters: arguments.parameters,
            sections: arguments.sections,
        };
        let mut text = inspect_text::text(&inspection, &show);
        for answer in &answers {
            text.push_str(&inspect_answer::answer(&whole, answer));
        }
        text_to_stdout(&text)?;
    }
    problems(&name, &whole, &answers)
}

/// The code of images; of one alone, nothing but that.
fn disassembly(name: &str, inspection: &Inspection, images: &[(usize, Vec<u8>)]) -> Result<String, Failed> {
    let search = environment::search();
    let disassemblers = Disassemblers::find(&Toolkit::discover(&search), &search);
    let mut text = String::new();
    for image in &inspection.images {
        let Some((number, bytes)) = images.iter().find(|(number, _)| *number == image.number) else {
            continue;
        };
        if images.len() > 1 {
            let target = image.target.as_deref().unwrap_or("no known chip");
            text.push_str(&format!("// image {number}: {} for {target}\n", image.kind.name()));
        }
        text.push_str(&disassemblers.text(name, image.kind, bytes)?);
    }
    if text.is_empty() {
        return Err(Problem::in_file(name, "there is no image to disassemble".to_owned()).into());
    }
    Ok(text)
}

/// What is wrong with the file, and what does not load.
fn problems(name: &str, inspection: &Inspection, answers: &[device::Answer]) -> Result<(), Failed> {
    let mut problems: Vec<Problem> = inspection
        .problems()
        .map(|(place, problem)| Problem::in_file(name, printable(&format!("{place}: {problem}"))))
        .collect();
    for answer in answers {
        let (failures, modules) = (answer.failures().count(), answer.modules.len());
        if failures > 0 {
            let what = match modules {
                1 => "it does not load".to_owned(),
                _ => format!("{failures} of {modules} modules do not load"),
            };
            problems.push(Problem::in_file(name, format!("{what} on {}", answer.device)));
        } else if modules == 0 {
            problems.push(Problem::in_file(
                name,
                format!("there is nothing to load on {}", answer.device),
            ));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failed::Problems(problems))
    }
}

/// What is in a file.
struct Looked {
    whole: Inspection,
    /// What is wanted of it.
    inspection: Inspection,
    /// The images that are wanted, by their numbers, where they are to be extracted or disassembled.
    contents: Vec<(usize, Vec<u8>)>,
    disassembly: String,
}

impl Arguments {
    fn look(&self, name: &str) -> Result<Looked, Failed> {
        let bytes = input::read(&self.input)?;
        let failed = |error: &dyn ToString| Problem::in_file(name, error.to_string());
        let whole = inspect(name, &bytes).map_err(|error| failed(&error))?;
        let inspection = self.narrowed(&whole)?;
        let wanted: Vec<usize> = inspection.images.iter().map(|image| image.number).collect();
        let mut contents = Vec::new();
        if self.extract || self.disassemble {
            inspect_with(name, &bytes, &mut |image, bytes| {
                if wanted.contains(&image.number) {
                    contents.push((image.number, bytes.to_vec()));
                }
            })
            .map_err(|error| failed(&error))?;
        }
        let disassembly = match self.disassemble {
            true => disassembly(name, &inspection, &contents)?,
            false => String::new(),
        };
        Ok(Looked {
            whole,
            inspection,
            contents,
            disassembly,
        })
    }

    /// The images that are wanted, all of them unless some were named.
    fn narrowed(&self, inspection: &Inspection) -> Result<Inspection, Failed> {
        let mut narrowed = inspection.clone();
        if self.image.is_empty() {
            return Ok(narrowed);
        }
        let count = inspection.images.len();
        if let Some(number) = self.image.iter().find(|&&number| number == 0 || number > count) {
            return Err(Failed::Usage(match count {
                0 => format!("there is no image {number}: the file has none"),
                1 => format!("there is no image {number}: the file has image 1 alone"),
                _ => format!("there is no image {number}: the file has images 1 to {count}"),
            }));
        }
        narrowed.images.retain(|image| self.image.contains(&image.number));
        Ok(narrowed)
    }

    fn answers(&self, inspection: &Inspection) -> Result<Vec<device::Answer>, Failed> {
        let driver = match self.driver {
            None => None,
            Some(release) => Some(release.newest_ptx().ok_or_else(|| {
                Failed::Usage(format!(
                    "nothing is known of drivers of CUDA {release}: releases from 5.5 on are"
                ))
            })?),
        };
        let mut answers = Vec::new();
        for query in &self.device {
            let devices = match query {
                DeviceQuery::Named(device) => vec![(*device, None)],
                DeviceQuery::Native => native()?,
            };
            let answer = |(device, here)| device::answer(inspection, device, driver.or(here));
            answers.extend(devices.into_iter().map(answer));
        }
        Ok(answers)
    }
}

/// The NVIDIA GPUs of this machine, each kind once, and the newest PTX ISA that the driver reads.
fn native() -> Result<Vec<(Device, Option<PtxIsa>)>, Failed> {
    let native = Native::ask().map_err(|error| {
        let advice = "name a device, such as sm_90 or gfx942 (AMD's have to be named)";
        Problem::plan(format!("--device native: {error}; {advice}"))
    })?;
    let devices = native.capabilities.into_iter();
    Ok(devices
        .map(|device| (Device::Nvidia(device), native.newest_ptx))
        .collect())
}

/// The name of extracted files begins with the input's.
pub fn stem(input: &Path) -> String {
    let stem = input.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| stem != "-").unwrap_or_default()
}
