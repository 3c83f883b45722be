//! Archives of objects.

use std::collections::BTreeSet;

use super::{ir::LlvmIrReader, member::Member, report::Report};
use crate::{FileKind, ReadProblem, container::archive::read};

/// Reads every member that is an object or LLVM IR; archives hold all sorts of files.
///
/// What a release registers is said of a link with all members.
pub(super) fn check(bytes: &[u8], reader: Option<&dyn LlvmIrReader>) -> Report {
    let (files, error) = read(bytes);
    let mut problems: Vec<String> = error.into_iter().map(|error| error.to_string()).collect();
    let mut members = Vec::new();
    for file in files {
        match Member::read(file.contents, reader) {
            Ok(member) if member.is_empty() && member.problems.is_empty() => {}
            Ok(member) => members.push((Some(file.name), member)),
            // Not a host file.
            Err(error) if error.problem == ReadProblem::OtherFormat => {}
            Err(error) => problems.push(format!("{}: {error}", file.name)),
        }
    }
    let mut report = Report::of_members(FileKind::Archive, members);
    report.problems.append(&mut problems);
    if !report.releases.is_empty() {
        let chips: BTreeSet<&str> = report.images.iter().map(|image| image.arch.as_str()).collect();
        let chips: Vec<String> = chips
            .iter()
            .map(|chip| format!("-Wl,--should-extract={chip}"))
            .collect();
        report.notes.push(format!(
            "this is what a link with all of the archive registers, as with -Wl,--whole-archive: else clang takes device \
             code from an archive only for chips that an object among the inputs has device code for; from 21 on, {} does \
             it, too",
            chips.join(" ")
        ));
    }
    if !report.registers_itself.is_empty() {
        report.notes.push(
            "a member that registers its kernels itself does so only if the link takes it, because something refers to \
             one of its symbols, or with -Wl,--whole-archive"
                .to_owned(),
        );
    }
    report
}

#[cfg(test)]
mod tests {
    #[test]
    fn members_that_are_no_host_files_are_passed_over() {
        let member = |contents: &str| format!("{:<48}{:<10}`\n{contents}", "a.txt/", contents.len());
        let problems = |contents| {
            let archive = format!("!<arch>\n{}", member(contents));
            super::check(archive.as_bytes(), None).problems.len()
        };
        // Besides that there is nothing for a GPU in it.
        assert_eq!((problems("text"), problems("\x7fELF")), (1, 2));
    }
}
