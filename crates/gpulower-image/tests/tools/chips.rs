//! NVIDIA's chips, their families and the suffixes `a` and `f`, as ptxas and nvlink of the toolkit have them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;

use gpulower_image::target::selection::cubin_links;
use gpulower_image::target::{CudaRelease, NvidiaTarget, Suffix};
use gpulower_testing::nvidia::{part, relocatable_cubin, run, store_kernel};

/// The chips of the toolkit's release in our table.
fn chips() -> Vec<NvidiaTarget> {
    let release = CudaRelease::new(13, 0);
    NvidiaTarget::all()
        .filter(|target| target.supported_by_cuda(release))
        .collect()
}

/// The pairs of chips for which a tool of the toolkit says yes. `arguments` has them for a pair, and for a file that is made.
fn accepted(
    tool: &str,
    folder: &Path,
    arguments: impl Fn(NvidiaTarget, NvidiaTarget) -> Vec<String> + Sync,
) -> BTreeSet<(&'static str, &'static str)> {
    let (program, chips, arguments) = (part(&format!("bin/{tool}")), chips(), &arguments);
    thread::scope(|scope| {
        let of_one = |own: NvidiaTarget| {
            let (program, chips) = (&program, &chips);
            scope.spawn(move || {
                let made = folder.join(format!("{}.made", own.chip()));
                let says_yes = |other: &&NvidiaTarget| {
                    let mut command = Command::new(program);
                    command.args(arguments(own, **other)).arg("-o").arg(&made);
                    command.output().unwrap().status.success()
                };
                let others: Vec<_> = chips.iter().filter(says_yes).collect();
                others
                    .into_iter()
                    .map(|other| (own.chip(), other.chip()))
                    .collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = chips.iter().map(|own| of_one(*own)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// The same pairs by our rules.
fn expected(rule: impl Fn(NvidiaTarget, NvidiaTarget) -> bool) -> BTreeSet<(&'static str, &'static str)> {
    let mut pairs = BTreeSet::new();
    for own in chips() {
        let others = chips().into_iter().filter(|other| rule(own, *other));
        pairs.extend(others.map(|other| (own.chip(), other.chip())));
    }
    pairs
}

#[test]
fn names_are_those_of_ptxas() {
    let help = run("ptxas", &["--help".as_ref()]);
    let names: BTreeSet<&str> = help.split('\'').filter(|word| word.starts_with("sm_")).collect();
    let ours: BTreeSet<&str> = chips().iter().map(NvidiaTarget::chip).collect();
    assert_eq!(names, ours);
}

#[test]
fn ptx_compiles_for_the_chips_that_ptxas_compiles_it_for() {
    let folder = tempfile::tempdir().unwrap();
    for chip in chips() {
        let path = folder.path().join(chip.chip());
        std::fs::write(path, store_kernel("9.0", chip.chip())).unwrap();
    }
    let accepted = accepted("ptxas", folder.path(), |ptx, chip| {
        let input = folder.path().join(ptx.chip()).display().to_string();
        vec![format!("--gpu-name={}", chip.chip()), input]
    });
    assert_eq!(accepted, expected(|ptx, chip| ptx.ptx_compiles_for(&chip)));
}

/// But for code with the suffix `a`: nvlink takes it for a target without, and we do not, since the result would not run
/// where its name says.
#[test]
fn code_is_linked_for_the_chips_that_nvlink_links_it_for() {
    let folder = tempfile::tempdir().unwrap();
    for chip in chips() {
        let cubin = relocatable_cubin(&store_kernel("9.0", chip.chip()), chip.chip());
        std::fs::write(folder.path().join(format!("{}.cubin", chip.chip())), cubin).unwrap();
    }
    let is_specific = |target: NvidiaTarget| target.suffix() == Suffix::ArchitectureSpecific;
    let mut accepted = accepted("nvlink", folder.path(), |code, target| {
        let input = folder
            .path()
            .join(format!("{}.cubin", code.chip()))
            .display()
            .to_string();
        vec![format!("--arch={}", target.chip()), input]
    });
    let target = |chip: &str| chip.parse::<NvidiaTarget>().unwrap();
    accepted.retain(|(code, other)| !is_specific(target(code)) || code == other);
    let ours = expected(|code, target| cubin_links(code.number().into(), is_specific(code), &target).is_ok());
    assert_eq!(accepted, ours);
}
