//! The guide as a book: every page is listed, tested and linked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails as the test does")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// Lists the Markdown files of a folder and below it, without hidden folders and what tools made.
fn pages(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || ["target", "node_modules"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.insert(path);
        }
    }
}

/// Returns the targets of a page's links, without those inside code.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next().map(str::to_owned));
        found.extend(targets.filter(|_| !fenced));
    }
    found
}

/// Returns the names by which a page's headings are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let letters = |heading: &str| {
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(letters).collect()
}

#[test]
fn summary_lists_every_page_once() {
    let guide = workspace().join("docs/guide");
    let summary = std::fs::read_to_string(guide.join("SUMMARY.md")).unwrap();
    let listed = links(&summary);
    let unique: BTreeSet<PathBuf> = listed.iter().map(|page| guide.join(page)).collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");

    let mut there = BTreeSet::new();
    pages(&guide, &mut there);
    there.remove(&guide.join("SUMMARY.md"));

    assert_eq!(unique, there);
    assert!(workspace().join("docs/book.toml").exists());
}

#[test]
fn rust_code_of_every_page_is_tested() {
    let (guide, tested) = (workspace().join("docs/guide"), include_str!("lib.rs"));
    let mut there = BTreeSet::new();
    pages(&guide, &mut there);
    for page in there {
        let name = page.strip_prefix(workspace()).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        let is_listed = tested.contains(&format!("\"{name}\""));
        if name.contains("/appendix/") {
            assert!(is_listed || !text.contains("```rust"), "{name} has Rust code that no test compiles");
        } else if !name.ends_with("SUMMARY.md") {
            assert!(is_listed, "{name} is missing in lib.rs");
        }
    }
}

#[test]
fn every_relative_link_resolves() {
    let mut all = BTreeSet::new();
    pages(&workspace(), &mut all);
    let mut broken = Vec::new();
    for page in all {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let known = target.exists()
                && (anchor.is_empty() || anchors(&std::fs::read_to_string(&target).unwrap()).contains(anchor));
            if !known {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn introduction_lists_every_feature_of_the_core() {
    let manifest = std::fs::read_to_string(workspace().join("positronic-core/Cargo.toml")).unwrap();
    let introduction = std::fs::read_to_string(workspace().join("docs/guide/introduction.md")).unwrap();
    let features = manifest.split_once("[features]").unwrap().1.split("\n[").next().unwrap();
    let (default, others) = features.trim().split_once('\n').unwrap();
    let names: Vec<_> = others.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert!(!names.is_empty());
    for name in names {
        let on = if default.contains(&format!("\"{name}\"")) { "yes" } else { "no" };
        assert!(introduction.contains(&format!("| `{name}` | {on} |")), "{name}");
    }
}

#[test]
fn readme_and_map_are_short() {
    for page in ["README.md", "ARCHITECTURE.md"] {
        let lines = std::fs::read_to_string(workspace().join(page)).unwrap().lines().count();
        assert!(lines <= 150, "{page} has {lines} lines");
    }
}
