//! The folders know only what `ARCHITECTURE.md` says they know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each folder of the core may name of the others, apart from `record`, `error` and itself.
const KNOWS: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("machine", &[]),
    ("tools", &["machine"]),
    ("definition", &["tools"]),
    ("dsl", &["definition", "tools", "machine"]),
    ("plugins", &["dsl", "definition", "tools"]),
    ("toolbox", &["dsl"]),
    ("mcp", &["dsl", "tools"]),
    ("model", &[]),
    ("store", &[]),
    ("sink", &[]),
    ("projection", &["machine"]),
    ("runner", &["dsl", "definition", "machine", "model", "tools", "store", "sink", "projection"]),
    ("testing", &["dsl", "machine", "model", "definition", "projection", "runner", "store"]),
];

/// Where tokio may be named: the runner, the tests' clock, the two adapters' places that need a timer, the wrappers that wait
/// for their turn or know when a model rests, the sink that writes where it may block, the places of the toolbox that
/// block, wait or ask for addresses, and what speaks to MCP servers.
const TOKIO: &[&str] = &[
    "runner/",
    "testing/",
    "model/openai/transport.rs",
    "model/scripted.rs",
    "model/wrap/concurrency.rs",
    "model/wrap/fallback.rs",
    "model/wrap/rate_limit.rs",
    "sink/json_lines.rs",
    "mcp/connection.rs",
    "mcp/session.rs",
    "mcp/transport/",
    "toolbox/blocking.rs",
    "toolbox/code/runner.rs",
    "toolbox/web/fetcher.rs",
    "toolbox/web/resolve.rs",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Returns the code of a file: without comments, and without its tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).is_ok_and(|inner| {
        inner.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
    })
}

#[test]
fn folders_use_only_their_listed_dependencies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (folder, knows) in KNOWS {
        let mut files = Vec::new();
        sources(&root.join(folder), &mut files);
        for file in files.iter().filter(|file| !is_test(file)) {
            let code = code(file);
            let named: BTreeSet<_> = code
                .match_indices("crate::")
                .filter_map(|(at, _)| code.get(at + 7..))
                .map(|rest| {
                    rest.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_').next().unwrap_or_default()
                })
                .collect();
            for (other, _) in KNOWS {
                let allowed = other == folder || *other == "record" || knows.contains(other);
                if named.contains(other) && !allowed {
                    wrong.push(format!("{} names `{other}`", file.strip_prefix(&root).unwrap().display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_runner_uses_tokio() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let wrong: Vec<_> = files
        .iter()
        .filter(|file| !is_test(file))
        .map(|file| (file.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), code(file)))
        .filter(|(file, code)| code.contains("tokio::") && !TOKIO.iter().any(|place| file.starts_with(place)))
        .map(|(file, _)| file)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
