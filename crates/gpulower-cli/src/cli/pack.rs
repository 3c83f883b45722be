//! `gpulower pack`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gpulower::{
    FileKind,
    container::{
        fatbin::Compression,
        host_object::{self, DeviceCode, HostArch, HostSymbol},
    },
    pack::{Pack, PackFormat, PackedEntry},
    serialize::nvfatbin::{self, LtoEntry, LtoIr},
    target::NvidiaArch,
};

use super::{
    Failed, environment, input,
    message::{self, Problem},
    write::OneOutput,
};

/// Put images from files into one container.
///
/// Takes cubins, PTX, LTO-IR, hsaco files, AMDGPU objects and bitcode, and containers or host files that hold them, whose images
/// are taken out. The same image twice is stored once; two different ones for the same target are an error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files; TARGET=FILE where an image does not say what it is for
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,
    /// Where to write it; - for the standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to make
    #[arg(short, long, value_name = "FORMAT")]
    emit: Container,
    /// How to store the images: none, lz4 (fatbin) or zstd (fatbin, bundle)
    #[arg(long, value_name = "WAY", default_value = "none", value_parser = compression)]
    compress: Compression,
    /// Put the container into an object to link into a host program, in the section where runtimes and tools look for it
    #[arg(long, value_name = "MACHINE")]
    host_object: Option<Machine>,
    /// The object's symbol at the container; SYMBOL_wrapper is that of the wrapper which runtimes register
    #[arg(
        long,
        value_name = "SYMBOL",
        default_value = "gpulower_device_code",
        requires = "host_object"
    )]
    symbol: String,
    /// Say which images it holds, and where they came from
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

const EXAMPLES: &str = "\
Examples:
  gpulower pack saxpy.sm_80.cubin saxpy.sm_90.cubin saxpy.ptx --emit fatbin -o saxpy.fatbin
  gpulower pack sm_100f=saxpy.cubin --emit fatbin -o saxpy.fatbin
  gpulower pack saxpy.fatbin --emit fatbin --host-object x86-64 -o saxpy.o
  gpulower pack *.hsaco --emit bundle -o saxpy.hipfb";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Container {
    /// NVIDIA's fat binary
    Fatbin,
    /// A clang offload bundle, HIP's fat binary
    Bundle,
    /// LLVM offload binaries, one for each image
    Offload,
}

/// What a host object is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Machine {
    /// 64-bit ELF for x86-64
    #[value(name = "x86-64", alias = "x86_64")]
    X86_64,
    /// 64-bit ELF for AArch64
    Aarch64,
}

fn compression(name: &str) -> Result<Compression, String> {
    Compression::from_name(name).ok_or_else(|| "expected none, lz4 or zstd".to_owned())
}

/// Reads, packs and writes.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let inputs: Vec<&Path> = arguments.inputs.iter().map(|input| named(input).1.as_ref()).collect();
    let output = OneOutput::new(&arguments.output, &inputs, false)?;
    let mut pack = Pack::default();
    for input in &arguments.inputs {
        let (target, path) = named(input);
        let bytes = input::read(path.as_ref())?;
        pack.add(path, &bytes, target)
            .map_err(|error| Problem::input(error.to_string()))?;
    }
    let format = match arguments.emit {
        Container::Fatbin => PackFormat::Fatbin,
        Container::Bundle => PackFormat::Bundle,
        Container::Offload => PackFormat::Offload,
    };
    let bytes = if format == PackFormat::Fatbin && pack.members().iter().any(|member| member.kind == FileKind::LtoIr) {
        fat_binary_with_lto(&pack, arguments)?
    } else {
        pack.write(format, arguments.compress)
            .map_err(|error| Problem::output(error.to_string()))?
    };
    let bytes = match arguments.host_object {
        None => bytes,
        Some(machine) => host_object(&bytes, machine, arguments)?,
    };
    if arguments.verbose {
        for member in pack.members() {
            let (kind, size) = (member.kind.name(), member.bytes.len());
            message::line(&format!("{}: {kind} for {}, {size} bytes", member.input, member.target));
        }
    }
    output.write(&bytes)
}

/// The target and the path that an argument names. A file may have the sign in its name.
fn named(input: &str) -> (Option<&str>, &str) {
    match input.split_once('=') {
        Some((target, path)) if !Path::new(input).exists() => (Some(target), path),
        _ => (None, input),
    }
}

/// The container in an object for the host.
fn host_object(bytes: &[u8], machine: Machine, arguments: &Arguments) -> Result<Vec<u8>, Failed> {
    let machine = match machine {
        Machine::X86_64 => HostArch::X86_64,
        Machine::Aarch64 => HostArch::Aarch64,
    };
    let wrapper = format!("{}_wrapper", arguments.symbol);
    let (data, wrapper) = (HostSymbol::hidden(&arguments.symbol), HostSymbol::hidden(&wrapper));
    let code = match arguments.emit {
        Container::Fatbin => DeviceCode::Fatbin { bytes, data, wrapper },
        Container::Bundle => DeviceCode::HipBundle { bytes, data, wrapper },
        Container::Offload => DeviceCode::Offload { bytes },
    };
    host_object::write(machine, &[code]).map_err(|error| Problem::output(error.to_string()).into())
}

/// How NVIDIA's compilers scramble LTO-IR in a fat binary is theirs to know: nvFatbin writes its entries.
fn fat_binary_with_lto(pack: &Pack, arguments: &Arguments) -> Result<Vec<u8>, Failed> {
    let problem = |text: String| Failed::from(Problem::output(text));
    let library = nvfatbin::load(&arguments.toolkits.toolkit()?).map_err(|error| problem(error.to_string()))?;
    let entries = pack
        .fat_binary_entries(arguments.compress)
        .map_err(|error| problem(error.to_string()))?;
    let entries = entries
        .into_iter()
        .map(|entry| match entry {
            PackedEntry::Image(image) => Ok(LtoEntry::Image(image)),
            PackedEntry::LtoIr(member) => Ok(LtoEntry::LtoIr(LtoIr {
                bytes: &member.bytes,
                arch: NvidiaArch::parse(&member.target).ok_or_else(|| {
                    problem(format!(
                        "{}: '{}' is no architecture of NVIDIA's",
                        member.input, member.target
                    ))
                })?,
                identifier: member.identifier.as_deref(),
                options: &member.options,
                debug: member.debug,
                compression: arguments.compress,
            })),
        })
        .collect::<Result<Vec<_>, Failed>>()?;
    nvfatbin::write_with_lto(&library, &entries).map_err(|error| problem(error.to_string()))
}
