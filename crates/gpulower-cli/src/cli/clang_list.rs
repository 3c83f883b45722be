//! Lists of releases of clang in which programs of this machine may stand: `clang`, `/usr/bin/clang-19`.

use std::path::PathBuf;

use gpulower::{
    Search,
    offload::{clang_program::release_of_program, release::ClangRelease},
    target::TargetProblem,
    toolkit::program_in_path,
};

use super::{Failed, environment, message::Problem};

/// The releases of a list, with programs asked for theirs.
pub fn releases(list: &str) -> Result<Vec<ClangRelease>, Failed> {
    let resolved = resolved(list)?;
    ClangRelease::parse_list(&resolved).map_err(|error| Failed::Usage(format!("--with {list}: {error}")))
}

/// The list with `clang-19` in the place of each program.
pub fn resolved(list: &str) -> Result<String, Problem> {
    let search = environment::search();
    let part = |part: &str| match program(part.trim(), &search)? {
        None => Ok(part.trim().to_owned()),
        Some(program) => release_of_program(&program)
            .map(|release| format!("clang-{}", release.number()))
            .map_err(|error| Problem::plan(error.to_string())),
    };
    let parts: Vec<String> = list.split(',').map(part).collect::<Result<_, Problem>>()?;
    Ok(parts.join(","))
}

/// The program that a part of a list is: a path, or a name that says no release.
fn program(part: &str, search: &Search) -> Result<Option<PathBuf>, Problem> {
    if part.contains('/') {
        return Ok(Some(PathBuf::from(part)));
    }
    let says_release = !ClangRelease::parse_list(part).is_err_and(|error| error.problem == TargetProblem::Malformed);
    if part.is_empty() || says_release || part == "rocm" || part.starts_with("cuda-") {
        return Ok(None);
    }
    match program_in_path(search, part) {
        None if part == "clang" => Err(Problem::plan(
            "there is no program clang in PATH: name a release, such as clang-19, or the path of a clang".to_owned(),
        )),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_not_looked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let search = Search::nowhere().with_path(folder.path().as_os_str());
        for part in ["19", "clang-19", "15..19", "clang-24", "rocm", "cuda-12.4", "", "gcc"] {
            assert_eq!(program(part, &search).expect(part), None, "{part}");
        }
        assert_eq!(program("./clang", &search).expect("a path"), Some("./clang".into()));
        let error = program("clang", &search).expect_err("none").message().to_owned();
        assert!(error.starts_with("there is no program clang in PATH"), "{error}");
    }
}
