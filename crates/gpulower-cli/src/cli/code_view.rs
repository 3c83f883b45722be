//! The code of an artifact beside its source, for the HTML report: source, PTX and SASS, or source and AMDGPU assembly.

use gpulower::{Artifact, Compilation, Emit, Failure, FileKind, Format, Target};

use super::{disassembly::Disassemblers, listing::Listing, message::Problem};

/// One module for one target.
pub struct CodeView {
    pub module: String,
    pub target: Target,
    pub columns: Vec<Listing>,
    /// What is missing, or other than somebody might think.
    pub remarks: Vec<String>,
}

/// Compiles for targets.
type Compile<'a> = dyn Fn(Emit, &[Target]) -> Result<Compilation, Failure> + 'a;

/// What the code is made of once more, with line tables.
pub struct CodeMaker<'a> {
    /// The inputs by their names.
    pub inputs: &'a [(&'a str, &'a [u8])],
    /// Compiles them for targets, with line tables.
    pub compile: &'a Compile<'a>,
    pub disassemblers: &'a Disassemblers,
}

impl CodeMaker<'_> {
    /// A view for each module and target of artifacts.
    pub fn views(&self, artifacts: &[Artifact]) -> Vec<CodeView> {
        let mut targets: Vec<Target> = Vec::new();
        for target in artifacts.iter().flat_map(Artifact::targets) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let real = |target: &&Target| matches!(target, Target::Nvidia(chip) if !chip.is_virtual());
        let cubin_targets: Vec<Target> = targets.iter().filter(real).copied().collect();
        let assembly = self.compiled(Emit::Asm, &targets);
        let cubins = self.compiled(Emit::Cubin, &cubin_targets);
        let mut views = Vec::new();
        for artifact in artifacts {
            for target in artifact.targets() {
                views.push(self.view(artifact, target, &assembly, &cubins));
            }
        }
        views
    }

    fn compiled(&self, emit: Emit, targets: &[Target]) -> Result<Vec<Artifact>, String> {
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let made = (self.compile)(emit, targets);
        made.map(|compilation| compilation.artifacts).map_err(|failure| {
            let first = failure.errors.first();
            first.map_or_else(|| "it cannot be made".to_owned(), ToString::to_string)
        })
    }

    fn view(
        &self,
        artifact: &Artifact,
        target: Target,
        assembly: &Result<Vec<Artifact>, String>,
        cubins: &Result<Vec<Artifact>, String>,
    ) -> CodeView {
        let index = artifact.input.as_ref().map_or(0, |input| input.index);
        let (name, bytes) = self.inputs.get(index).copied().unwrap_or_default();
        let mut view = CodeView {
            module: artifact.module.clone(),
            target,
            columns: Vec::new(),
            remarks: Vec::new(),
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => view.columns.push(Listing::of_source(name, text)),
            Err(_) => view
                .remarks
                .push(format!("{name} is no text: there is no source to show.")),
        }
        let is_nvidia = matches!(target, Target::Nvidia(_));
        let title = if is_nvidia { "PTX" } else { "AMDGPU assembly" };
        match made_for(assembly, artifact, &target) {
            Ok(made) => {
                let text = String::from_utf8_lossy(&made.bytes);
                view.columns.push(Listing::of_code(title, &text, name));
            }
            Err(why) => view.remarks.push(format!("No {title}: {why}")),
        }
        if is_nvidia && !matches!(target, Target::Nvidia(chip) if chip.is_virtual()) {
            self.add_sass(&mut view, artifact, cubins, name);
        }
        if view.columns.iter().skip(1).any(|column| !column.has_places()) {
            view.remarks
                .push("Lines cannot be matched: the code names no line of this source.".to_owned());
        }
        view
    }

    fn add_sass(&self, view: &mut CodeView, artifact: &Artifact, cubins: &Result<Vec<Artifact>, String>, name: &str) {
        let disassembled = made_for(cubins, artifact, &view.target).and_then(|made| {
            let text = self.disassemblers.text(&made.module, FileKind::Cubin, &made.bytes);
            text.map_err(|problem: Problem| problem.message().to_owned())
        });
        let text = match disassembled {
            Ok(text) => text,
            Err(why) => return view.remarks.push(format!("No SASS: {why}")),
        };
        let sass = Listing::of_code("SASS", &text, name);
        if artifact.format == Format::Cubin
            && let Ok(plain) = self
                .disassemblers
                .text(&artifact.module, FileKind::Cubin, &artifact.bytes)
            && instructions(&plain) != instructions(&text)
        {
            let remark = "The SASS is that of a compilation with line tables, and not quite that of the artifact.";
            view.remarks.push(remark.to_owned());
        }
        view.columns.push(sass);
    }
}

/// What was made of the same module for a target.
fn made_for<'a>(
    made: &'a Result<Vec<Artifact>, String>,
    artifact: &Artifact,
    target: &Target,
) -> Result<&'a Artifact, String> {
    let input = |artifact: &Artifact| artifact.input.as_ref().map(|input| input.index);
    let made = made.as_ref().map_err(Clone::clone)?;
    let is_it = |other: &&Artifact| {
        other.module == artifact.module && input(other) == input(artifact) && other.targets().contains(target)
    };
    made.iter().find(is_it).ok_or_else(|| "it was not made".to_owned())
}

/// The instructions of a disassembly, without what stands between them.
fn instructions(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| line.starts_with("/*")).collect()
}
