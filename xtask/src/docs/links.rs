//! The links of the documentation, checked without a network.
//!
//! A relative link has to lead to a file of the checkout, and its anchor to a heading there. A page of `docs/` links to
//! pages of `docs/` alone, since the book has no others, and stands in `SUMMARY.md`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::command::{Context, Failure};

/// Pages beside the book.
const OTHER_PAGES: &[&str] = &["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// What is wrong, a line for each link: `docs/x.md:12: ...`.
pub fn check(root: &Path) -> Result<Vec<String>, Failure> {
    let mut pages = Vec::new();
    collect_pages(root, Path::new("docs"), &mut pages)?;
    let summary = Path::new("docs/SUMMARY.md");
    let book: BTreeSet<PathBuf> = pages.iter().cloned().collect();
    pages.extend(
        OTHER_PAGES
            .iter()
            .map(PathBuf::from)
            .filter(|page| root.join(page).is_file()),
    );
    let mut texts = HashMap::new();
    for page in &pages {
        let text = fs::read_to_string(root.join(page)).context(|| format!("read {}", page.display()))?;
        texts.insert(page.clone(), text);
    }

    let mut wrong = Vec::new();
    let mut in_summary = BTreeSet::from([summary.to_path_buf()]);
    for page in &pages {
        for (line, target) in links(&texts[page]) {
            match lead(root, page, &target, &texts) {
                Ok(Some(file)) if page == summary => {
                    in_summary.insert(file);
                }
                Ok(Some(file)) if book.contains(page) && !file.starts_with("docs") => wrong.push(format!(
                    "{}:{line}: {target} leaves docs/, and the book has no such page",
                    page.display()
                )),
                Ok(_) => {}
                Err(why) => wrong.push(format!("{}:{line}: {why}", page.display())),
            }
        }
    }
    let missing = book.difference(&in_summary);
    wrong.extend(missing.map(|page| format!("docs/SUMMARY.md: {} is not in it", page.display())));
    Ok(wrong)
}

fn collect_pages(root: &Path, folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder)).context(|| format!("list {}", folder.display()))? {
        names.push(entry.context(|| format!("list {}", folder.display()))?.file_name());
    }
    names.sort();
    for name in names {
        let path = folder.join(name);
        if root.join(&path).is_dir() {
            collect_pages(root, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The file that a link of a page leads to; none for an address on the network.
fn lead(root: &Path, page: &Path, target: &str, texts: &HashMap<PathBuf, String>) -> Result<Option<PathBuf>, String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = target
        .split_once('#')
        .map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = if path.is_empty() {
        page.to_path_buf()
    } else {
        normal(&page.with_file_name("").join(path))
    };
    if !root.join(&file).exists() {
        return Err(format!("{target}: there is no {}", file.display()));
    }
    if let (Some(anchor), Some(text)) = (anchor, texts.get(&file))
        && !anchors(text).contains(anchor)
    {
        return Err(format!("{target}: {} has no heading #{anchor}", file.display()));
    }
    Ok(Some(file))
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The lines of a page outside of fenced blocks, counted from 1, without code spans.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        let outside_of_code = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!fenced).then_some((number + 1, outside_of_code))
    })
}

/// Targets of `[text](target)` and `![text](target)`, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let end = after.find(')').unwrap_or(after.len());
            // A title may follow the target.
            let target = after[..end].split_whitespace().next().unwrap_or_default();
            links.push((number, target.to_owned()));
            rest = &after[end..];
        }
    }
    links
}

/// The anchors of a page's headings, as GitHub and mdBook make them; the second of two that are the same gets `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if fenced || level == 0 || level > 6 || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 {
            anchor
        } else {
            format!("{anchor}-{count}")
        });
        *count += 1;
    }
    anchors
}

fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_documentation_leads_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let wrong = check(&root).unwrap();
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("README.md", "[a](docs/a.md#the-part) [b](docs/missing.md)\n");
        write("docs/SUMMARY.md", "- [a](a.md)\n");
        write(
            "docs/a.md",
            "# A\n\n## The `part`\n\n[self](#the-part) [no](#none)\n[out](../README.md)\n\
             ```\n[no link](x.md)\n```\n`[none](y.md)`\n",
        );
        write("docs/lost.md", "# Lost\n");
        assert_eq!(
            check(folder.path()).unwrap(),
            [
                "docs/a.md:5: #none: docs/a.md has no heading #none",
                "docs/a.md:6: ../README.md leaves docs/, and the book has no such page",
                "README.md:1: docs/missing.md: there is no docs/missing.md",
                "docs/SUMMARY.md: docs/lost.md is not in it",
            ]
        );
    }

    #[test]
    fn headings_become_anchors() {
        let anchors = anchors("# What's `new`, and why\n## A_b-c: d\n## Same\n## Same\n```\n# none\n```\n");
        let wanted = ["whats-new-and-why", "a_b-c-d", "same", "same-1"];
        assert_eq!(anchors, wanted.map(String::from).into());
    }
}
