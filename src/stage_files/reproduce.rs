//! First lines for the files of `--dump-dir`: the command that repeats the next stage with LLVM's and the vendors' own
//! tools, under the names of Debian's packages. It runs in the directory of the files and leaves its result in `again.*`.

use std::path::PathBuf;

use crate::{
    device::llvm_pipeline,
    options::{DebugLevel, FpContract, Library, Options, Resolved},
    shell::quoted,
    stage::{Checkpoint, Subject},
    target::Target,
    toolkit::{PartKind, Toolkit},
};

/// What the commands depend on.
#[derive(Debug)]
pub(super) struct Reproduction {
    options: Options,
    libdevice: Option<PathBuf>,
    ocml: Option<PathBuf>,
    ockl: Option<PathBuf>,
    ptxas: Option<PathBuf>,
}

impl Reproduction {
    /// Keeps what the commands depend on.
    pub(super) fn new(options: Options, toolkit: &Toolkit) -> Self {
        let part = |kind| toolkit.find(kind).map(PathBuf::from);
        Self {
            options,
            libdevice: part(PartKind::Libdevice),
            ocml: part(PartKind::Ocml),
            ockl: part(PartKind::Ockl),
            ptxas: part(PartKind::Ptxas),
        }
    }

    /// The first line of the file `name`, which holds `text`: a comment in its language.
    pub(super) fn header(&self, subject: Subject<'_>, checkpoint: Checkpoint, name: &str, text: &str) -> String {
        let comment = match (checkpoint, subject.target) {
            (Checkpoint::Lowered, _) | (Checkpoint::Isa, Target::Nvidia(_)) => "//",
            _ => ";",
        };
        let name = &quoted(name);
        // Options in a target attribute that no chip can honour are an error of their own, elsewhere.
        let Ok(resolved) = self.options.resolve(subject.target, None) else {
            return String::new();
        };
        let command = match (checkpoint, subject.target) {
            (Checkpoint::Lowered, target) => Some(translate(name, target)),
            (Checkpoint::Initial, _) => Some(self.link(name, text)),
            (Checkpoint::Linked, target) => Some(format!(
                "opt-22 -S -passes='{}' {} {name} -o again.ll",
                llvm_pipeline(&resolved),
                machine(target, &resolved)
            )),
            (Checkpoint::Optimized, target) => Some(generate(name, target, &resolved)),
            (_, Target::Nvidia(chip)) => (!chip.is_virtual()).then(|| self.ptxas(name, chip.chip(), &resolved)),
            (_, target) => Some(format!(
                "llvm-mc-22 -triple={} {} -filetype=obj {name} -o again.o && ld.lld-22 -shared --no-undefined again.o \
                 -o again.hsaco",
                target.triple(),
                machine(target, &resolved)
            )),
        };
        command.map_or_else(String::new, |command| format!("{comment} {command}\n"))
    }

    fn link(&self, name: &str, text: &str) -> String {
        let mut libraries: Vec<String> = self
            .options
            .libraries
            .iter()
            .filter_map(|library| match library {
                Library::File(path) => {
                    let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                    Some(quoted(&path.display().to_string()))
                }
                _ => None,
            })
            .collect();
        for (prefix, library) in [
            ("__nv_", &self.libdevice),
            ("__ocml_", &self.ocml),
            ("__ockl_", &self.ockl),
        ] {
            let needed = text
                .lines()
                .any(|line| line.starts_with("declare ") && line.contains(&format!("@{prefix}")));
            if let (true, Some(path)) = (needed, library) {
                libraries.push(quoted(&path.display().to_string()));
            }
        }
        // What is beyond llvm-link: the values that libraries are told, in `src/device/control.rs`.
        let mut command = format!("llvm-link-22 -S --only-needed --internalize {name}");
        for library in libraries {
            command.push(' ');
            command.push_str(&library);
        }
        command + " -o again.ll"
    }

    fn ptxas(&self, name: &str, chip: &str, resolved: &Resolved) -> String {
        let program = self
            .ptxas
            .as_ref()
            .map_or_else(|| "ptxas".to_owned(), |path| quoted(&path.display().to_string()));
        let mut command = format!("{program} -arch={chip} -O{}", resolved.optimization.number());
        match resolved.debug {
            DebugLevel::None => {}
            DebugLevel::LineTables => command.push_str(" -lineinfo"),
            DebugLevel::Full => command.push_str(" -g"),
        }
        for word in &self.options.ptxas_options {
            command.push(' ');
            command.push_str(&quoted(word));
        }
        format!("{command} {name} -o again.cubin")
    }
}

/// `mlir-translate` passes over a `gpu.module`, so its contents are given as a module of their own.
fn translate(name: &str, target: &Target) -> String {
    format!(
        "sed -E -e '/^module/d' -e '/^\\}}/d' -e 's/^  gpu[.]module .*\\{{$/module {{/' {name} | mlir-translate-22 \
         --mlir-to-llvmir | opt-22 -S -passes=verify -mtriple={} -o again.ll",
        target.triple()
    )
}

fn generate(name: &str, target: &Target, resolved: &Resolved) -> String {
    let contract = match resolved.contract {
        FpContract::Off => " -fp-contract=off",
        FpContract::On => "",
        FpContract::Fast => " -fp-contract=fast",
    };
    let extension = match target {
        Target::Nvidia(_) => "ptx",
        Target::Amd(_) => "s",
    };
    format!(
        "llc-22 -O{} {}{contract} {name} -o again.{extension}",
        if resolved.fast_compile {
            0
        } else {
            resolved.optimization.number()
        },
        machine(target, resolved)
    )
}

/// The text of a stage before PTX with the command for the PTX ISA that was written in the end: the compiler raises it
/// when an instruction needs that, after the earlier stages were shown.
pub(super) fn with_ptx_of(text: &str, ptx: &str) -> Option<String> {
    const FEATURE: &str = "-mattr=+ptx";
    let version = ptx
        .lines()
        .find_map(|line| line.strip_prefix(".version "))?
        .trim()
        .replace('.', "");
    let (header, rest) = text.split_once('\n')?;
    let (before, after) = header.split_once(FEATURE)?;
    let after = after.trim_start_matches(|character: char| character.is_ascii_digit());
    let corrected = format!("{before}{FEATURE}{version}{after}\n{rest}");
    (corrected != text).then_some(corrected)
}

fn machine(target: &Target, resolved: &Resolved) -> String {
    format!("-mcpu={} -mattr={}", target.chip(), resolved.llvm_features())
}

#[cfg(test)]
mod tests {
    use crate::toolkit::Search;

    use super::*;

    fn header(target: &str, checkpoint: Checkpoint, flags: &[(&str, &str)]) -> String {
        let mut options = Options::default();
        for (name, value) in flags {
            options.set(name, value).expect("an option");
        }
        let target = target.parse().expect("a target");
        let subject = Subject {
            module: "m",
            target: &target,
        };
        Reproduction::new(options, &Toolkit::discover(&Search::nowhere())).header(subject, checkpoint, "F", "")
    }

    #[test]
    fn commands_say_what_was_asked_for() {
        assert_eq!(
            header("sm_90", Checkpoint::Linked, &[("O", "1")]),
            "; opt-22 -S -passes='default<O1>' -mcpu=sm_90 -mattr=+ptx78 F -o again.ll\n"
        );
        assert_eq!(
            header("gfx90a:xnack+", Checkpoint::Optimized, &[("fp-contract", "fast")]),
            "; llc-22 -O3 -mcpu=gfx90a -mattr=+xnack,+wavefrontsize64 -fp-contract=fast F -o again.s\n"
        );
        assert_eq!(
            header(
                "sm_90",
                Checkpoint::Isa,
                &[("debug", "line-tables"), ("ptxas-options", "-v")]
            ),
            "// ptxas -arch=sm_90 -O3 -lineinfo -v F -o again.cubin\n"
        );
    }

    #[test]
    fn ptx_that_a_driver_compiles_has_no_next_stage() {
        assert_eq!(header("compute_80", Checkpoint::Isa, &[]), "");
    }

    #[test]
    fn a_raised_ptx_isa_reaches_the_commands() {
        let text = "; llc-22 -O3 -mcpu=sm_90 -mattr=+ptx78 F\ndefine\n";
        let ptx = "//\n.version 8.6\n";
        assert_eq!(
            with_ptx_of(text, ptx).as_deref(),
            Some("; llc-22 -O3 -mcpu=sm_90 -mattr=+ptx86 F\ndefine\n")
        );
        assert_eq!(with_ptx_of(text, "//\n.version 7.8\n"), None);
        assert_eq!(with_ptx_of("define\n", ptx), None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/a/b.bc"), "/a/b.bc");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
