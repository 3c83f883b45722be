//! `--print-phases`, `--print-bindings` and `--dry-run`: the plan of a compilation as text.

use std::path::PathBuf;

use gpulower::compiler::{Phase, Plan};

/// The phases as a tree, in the manner of `clang -ccc-print-phases`: what a phase takes stands above it, further right.
pub fn phases(plan: &Plan, paths: &[Option<PathBuf>]) -> String {
    Tree::of(plan, paths).text
}

/// Who does each phase, what it reads and what it leaves, in the manner of `clang -ccc-print-bindings`. The numbers are
/// those of the tree.
pub fn bindings(plan: &Plan, paths: &[Option<PathBuf>]) -> String {
    let tree = Tree::of(plan, paths);
    let result = |place: usize| {
        let (number, phase) = (tree.numbers[place].unwrap_or(place), &plan.phases[place]);
        format!("{} of {number}", phase.result)
    };
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (phase, number) in plan.phases.iter().zip(&tree.numbers) {
        let Some(number) = number else { continue };
        let targets: Vec<String> = phase.targets.iter().map(ToString::to_string).collect();
        let about = if targets.is_empty() {
            "host".to_owned()
        } else {
            targets.join(", ")
        };
        let mut inputs: Vec<String> = phase.inputs.iter().map(|input| result(*input)).collect();
        inputs.extend(phase.reads.iter().map(|file| format!("{file:?}")));
        let line = format!(
            "# {number}: \"{about}\" - \"{}\", {}, inputs: [{}], output: {}\n",
            phase.tool,
            phase.stage,
            inputs.join(", "),
            phase.result
        );
        lines.push((*number, line));
    }
    for ((made_by, path), number) in plan.made_by.iter().zip(paths).zip(&tree.outputs) {
        let line = format!(
            "# {number}: output, inputs: [{}], output: {}\n",
            result(*made_by),
            shown(path.as_ref())
        );
        lines.push((*number, line));
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Where a phase stands among those that its user takes.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    First,
    Later,
}

struct Tree<'a> {
    plan: &'a Plan,
    /// The number of each phase that is printed.
    numbers: Vec<Option<usize>>,
    /// The number of each output.
    outputs: Vec<usize>,
    next: usize,
    text: String,
}

impl<'a> Tree<'a> {
    fn of(plan: &'a Plan, paths: &[Option<PathBuf>]) -> Self {
        let mut tree = Self {
            plan,
            numbers: vec![None; plan.phases.len()],
            outputs: Vec::new(),
            next: 0,
            text: String::new(),
        };
        for (made_by, path) in plan.made_by.iter().zip(paths) {
            let input = tree.phase(*made_by, "", Place::First);
            let number = tree.number();
            tree.outputs.push(number);
            let line = format!("{number}: output, {{{input}}}, {}\n", shown(path.as_ref()));
            tree.text.push_str(&line);
        }
        tree
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// Prints a phase behind what it takes, unless it was printed before; returns its number.
    fn phase(&mut self, place: usize, indent: &str, among: Place) -> usize {
        if let Some(number) = self.numbers[place] {
            return number;
        }
        let phase = &self.plan.phases[place];
        let deeper = format!("{indent}{}", if among == Place::First { "   " } else { "|  " });
        let mut among_inputs = Place::First;
        let mut inputs = Vec::new();
        for input in &phase.inputs {
            inputs.push(self.phase(*input, &deeper, among_inputs).to_string());
            among_inputs = Place::Later;
        }
        let number = self.number();
        self.numbers[place] = Some(number);
        let own = if among == Place::First { "+- " } else { "|- " };
        let mut takes: Vec<String> = phase.reads.iter().map(|file| format!("{file:?}")).collect();
        if !inputs.is_empty() {
            takes.insert(0, format!("{{{}}}", inputs.join(", ")));
        }
        let line = format!(
            "{indent}{own}{number}: {}, {}, {}{}\n",
            phase.stage,
            takes.join(", "),
            phase.result,
            subject(phase)
        );
        self.text.push_str(&line);
        number
    }
}

/// `, (softmax, sm_80)`
fn subject(phase: &Phase) -> String {
    let Some(module) = &phase.module else {
        return String::new();
    };
    let mut parts = vec![module.clone()];
    parts.extend(phase.targets.iter().map(ToString::to_string));
    format!(", ({})", parts.join(", "))
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(
        || "the standard output".to_owned(),
        |path| format!("{:?}", path.display().to_string()),
    )
}
