//! Folders use only the folders that `ARCHITECTURE.md` allows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that each folder of the core may use, apart from `record`, `error` and itself.
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

/// Files that may use tokio: the runner, the tests' clock, the timers of the two adapters, the wrappers that queue
/// requests or time a model's rest, the sink whose writes may block, the files of the toolbox that block, wait or
/// resolve addresses, and the MCP client.
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

/// Returns the code of a file without comments and tests.
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
