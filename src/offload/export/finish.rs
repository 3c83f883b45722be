//! The command that finishes an exported program on the other machine.

use std::fmt::Write;

use super::{
    super::{
        program::{Program, Runtime},
        release::{ClangRelease, FATBINARY_SCRIPT, FinishWith, ReleaseList},
    },
    ExportForm,
};
use crate::shell::quoted;

/// Functions of the C library that lowered host code calls. What else it calls is libm's or the user's.
const C_LIBRARY: &[&str] = &[
    "abort",
    "aligned_alloc",
    "dprintf",
    "exit",
    "fflush",
    "fprintf",
    "fputs",
    "free",
    "malloc",
    "memcpy",
    "memmove",
    "memset",
    "printf",
    "putchar",
    "puts",
    "snprintf",
    "write",
];

/// How an exported program is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    form: ExportForm,
    runtime: Runtime,
    /// Whether there are images that the tools of CUDA link.
    nvidia: bool,
    /// The releases of clang that finish it, asked for or not.
    serves: Vec<ClangRelease>,
    has_main: bool,
    /// Functions that somebody else has to define, apart from the C library's.
    needs: Vec<String>,
}

impl Finish {
    /// `serves`: the releases of clang that finish it.
    pub(super) fn new(program: &Program, form: ExportForm, serves: Vec<ClangRelease>) -> Self {
        let nvidia = match (program.runtime, form.finish_with()) {
            (Runtime::OpenMp, Some(finish_with)) => !finish_with.cudas().is_empty(),
            (runtime, _) => runtime == Runtime::Cuda,
        };
        Self {
            form,
            runtime: program.runtime,
            nvidia,
            serves,
            has_main: program.has_main,
            needs: program
                .external_functions
                .iter()
                .filter(|name| !C_LIBRARY.contains(&name.as_str()))
                .cloned()
                .collect(),
        }
    }

    /// The program that links: the newest clang that was asked for, or `cc`.
    #[must_use]
    pub fn linker(&self) -> String {
        self.newest()
            .map_or_else(|| "cc".to_owned(), |release| format!("clang-{}", release.number()))
    }

    fn newest(&self) -> Option<ClangRelease> {
        self.form.finish_with()?.clangs().last().copied()
    }

    /// Whether a small script has to stand between clang and `fatbinary` of CUDA 12.9 and newer
    /// ([`FATBINARY_SCRIPT`]). [`Finish::commands`] makes it.
    #[must_use]
    pub fn needs_fatbinary_script(&self) -> bool {
        self.runtime == Runtime::Cuda && self.form.finish_with().is_some_and(FinishWith::needs_fatbinary_script)
    }

    /// The one command that makes the program `output` from `file`, for a POSIX shell.
    ///
    /// The toolkit is where `CUDA_ROOT` (`ROCM_PATH`) says, or in its usual place.
    #[must_use]
    pub fn command(&self, file: &str, output: &str) -> String {
        const CUDA: &str = "${CUDA_ROOT:-/usr/local/cuda}";
        let libraries = match self.runtime {
            Runtime::Cuda => format!("-L\"{CUDA}/lib64\" -lcudart"),
            Runtime::Hip => "-L\"${ROCM_PATH:-/opt/rocm}/lib\" -lamdhip64".to_owned(),
            Runtime::OpenMp => "-fopenmp -lomptarget".to_owned(),
        };
        let mut command = String::new();
        let by_clang = self.newest().is_some();
        if by_clang && self.nvidia {
            let script = if self.needs_fatbinary_script() {
                "$PWD/gpulower-path:"
            } else {
                ""
            };
            let _ = write!(command, "PATH=\"{script}{CUDA}/bin:$PATH\" ");
        }
        let _ = write!(command, "{} {}", self.linker(), quoted(file));
        if by_clang {
            if self.form.is_ir() {
                command.push_str(" -O2");
            }
            command.push_str(" --offload-link");
        }
        let _ = write!(command, " {libraries}");
        if !self.needs.is_empty() {
            command.push_str(" -lm");
        }
        let _ = write!(command, " -o {}", quoted(output));
        command
    }

    /// Everything to be done on the other machine: comments, the script where one is needed, and the command, for a POSIX shell.
    #[must_use]
    pub fn commands(&self, file: &str, output: &str) -> String {
        let mut text = String::new();
        if let Some(finish_with) = self.form.finish_with() {
            let mut others = self.serves.clone();
            others.retain(|release| {
                // IR is made for the oldest release that was asked for.
                !self.form.is_ir() || *release >= finish_with.oldest()
            });
            let _ = writeln!(text, "# Finished by {}, with:", ReleaseList(&others));
        }
        if !self.has_main {
            let _ = writeln!(
                text,
                "# {file} has no main: name the objects that call it, too, or make a shared library with -shared."
            );
        }
        if !self.needs.is_empty() {
            let _ = writeln!(
                text,
                "# It calls {}: what of these is not in libm has to be linked with it.",
                self.needs.join(", ")
            );
        }
        if self.needs_fatbinary_script() {
            let _ = writeln!(
                text,
                "# Clang up to 21 calls fatbinary with an option that CUDA 12.9 and newer do not know. This translates it:\n\
                 export CUDA_ROOT=\"${{CUDA_ROOT:-/usr/local/cuda}}\"\n\
                 mkdir -p gpulower-path && cat > gpulower-path/fatbinary <<'END'\n{FATBINARY_SCRIPT}END\n\
                 chmod +x gpulower-path/fatbinary"
            );
        }
        let _ = writeln!(text, "{}", self.command(file, output));
        text
    }
}
