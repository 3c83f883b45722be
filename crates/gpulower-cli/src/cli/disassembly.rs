//! Machine code as text: by NVIDIA's nvdisasm, by LLVM's objdump.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gpulower::{
    FileKind, Toolkit,
    toolkit::{PartKind, Search, program_in_path},
};

use super::message::Problem;

/// The programs that disassemble, as far as they are here.
pub struct Disassemblers {
    nvdisasm: Result<PathBuf, String>,
    objdump: Option<PathBuf>,
}

impl Disassemblers {
    /// Looks for them.
    pub fn find(toolkit: &Toolkit, search: &Search) -> Self {
        Self {
            nvdisasm: match toolkit.require(PartKind::Nvdisasm) {
                Ok(path) => Ok(path.to_owned()),
                Err(error) => Err(error.to_string()),
            },
            objdump: objdump(search),
        }
    }

    /// Whether cubins can be disassembled, and if not, why.
    pub fn sass(&self) -> Result<(), Problem> {
        let missing = |why: &String| Problem::plan(format!("SASS is shown by NVIDIA's nvdisasm: {why}"));
        self.nvdisasm.as_ref().map(drop).map_err(missing)
    }

    /// The code of an image: of a cubin, an hsaco, an AMDGPU object. Lines of the source stand in it where the image has them.
    pub fn text(&self, name: &str, kind: FileKind, image: &[u8]) -> Result<String, Problem> {
        match kind {
            FileKind::Cubin => {
                self.sass()?;
                let Ok(nvdisasm) = &self.nvdisasm else {
                    return Ok(String::new());
                };
                printed(name, nvdisasm, &["-c", "-g"], image)
            }
            FileKind::Hsaco | FileKind::AmdObject => {
                let Some(objdump) = &self.objdump else {
                    let text = "AMD's code is disassembled by LLVM's llvm-objdump, which was not found in PATH, /usr/lib/llvm-*/bin \
                                or ROCm: install Debian's package llvm-22, or compile with --emit asm";
                    return Err(Problem::plan(text.to_owned()));
                };
                printed(name, objdump, &["-d", "-l", "--no-show-raw-insn"], image)
            }
            FileKind::Ptx => Ok(String::from_utf8_lossy(image).into_owned()),
            _ => Err(Problem::in_file(
                name,
                "there is no machine code in it to disassemble".to_owned(),
            )),
        }
    }
}

/// LLVM's objdump, the newest of those whose release is known; what has no number may be too old for a chip.
fn objdump(search: &Search) -> Option<PathBuf> {
    const RELEASES: std::ops::RangeInclusive<u32> = 17..=24;
    let named = |name: &str| program_in_path(search, name);
    let numbered = RELEASES
        .rev()
        .find_map(|release| named(&format!("llvm-objdump-{release}")));
    let installed = RELEASES
        .rev()
        .map(|release| PathBuf::from(format!("/usr/lib/llvm-{release}/bin/llvm-objdump")))
        .chain([PathBuf::from("/opt/rocm/llvm/bin/llvm-objdump")])
        .find(|path| path.is_file());
    numbered.or(installed).or_else(|| named("llvm-objdump"))
}

/// What a program prints of an image, which it reads from a file.
fn printed(name: &str, program: &Path, arguments: &[&str], image: &[u8]) -> Result<String, Problem> {
    let tool = program.file_name().unwrap_or_default().to_string_lossy();
    let _span = tracing::debug_span!("tool", name = %tool).entered();
    let failed = |what: String| Problem::in_file(name, format!("{} failed: {what}", program.display()));
    let mut file = tempfile::NamedTempFile::new().map_err(|error| failed(error.to_string()))?;
    file.write_all(image).map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program)
        .args(arguments)
        .arg(file.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // It names the file, which nobody knows.
    Ok(text.replace(&*file.path().to_string_lossy(), name))
}
