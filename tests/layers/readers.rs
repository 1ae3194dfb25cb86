//! Which reader names which kind of event.
//!
//! A reader that does not name a kind skips it, and no compiler says so: outside of the core the enum cannot be matched without
//! `_`. So the table is a snapshot, and a new kind or a mention that is gone fails the test until someone has looked at its row.

use std::fmt::Write as _;
use std::path::Path;

use super::{files, packages, sources};

/// The readers that may skip kinds: a word for the column, the package, and the files or folders.
const READERS: &[(&str, &str, &[&str])] = &[
    ("event", "positronic-core", &["record/event/event_envelope.rs"]),
    (
        "prompts",
        "positronic-core",
        &["projection/prompts.rs", "projection/prompts/record.rs", "record/prompt/approval.rs"],
    ),
    ("calls", "positronic-core", &["projection/timeline/calls.rs"]),
    ("files", "positronic-core", &["projection/files.rs"]),
    ("traffic", "positronic-core", &["projection/traffic.rs"]),
    ("log", "positronic-core", &["sink/log.rs"]),
    ("admit", "positronic-core", &["machine/admit.rs", "machine/admit"]),
    ("commit", "positronic-core", &["runner/worker/commit.rs"]),
    ("append", "positronic-core", &["store/append.rs"]),
    ("about", "positronic-core", &["machine/summary/from_events.rs"]),
    ("failed", "positronic-core", &["machine/retry_point.rs"]),
    ("flight", "positronic-core", &["runner/client/answers_in_flight.rs"]),
    ("words", "positronic-cli", &["render/words.rs"]),
    ("serve", "positronic-cli", &["commands/serve/work/serve_log.rs"]),
    ("cassette", "positronic-cli", &["app/models/cassette_position.rs"]),
    ("questions", "integrations/server", &["api/pending/closed_question.rs"]),
    ("requests", "integrations/server", &["api/runs/requests.rs"]),
    ("repeated", "integrations/server", &["api/runs/signals.rs"]),
    ("fork", "integrations/server", &["api/runs/fork.rs", "api/runs/fork_decisions.rs", "api/runs/fork_preview.rs"]),
    ("webhooks", "integrations/server", &["webhooks/outgoing/event.rs"]),
    ("bridges", "integrations/bridges", &["projection/apply.rs"]),
    ("traces", "integrations/opentelemetry", &["spans"]),
];

/// Files of the core that no kind can pass: those that name all, and the folds to which the first of them sends each kind.
const EXHAUSTIVE: &[&str] = &[
    "machine/apply.rs",
    "machine/crash_limit.rs",
    "machine/stages/loop/call_fold.rs",
    "machine/stages/loop/fold.rs",
    "machine/stages/step.rs",
    "projection/timeline/fold.rs",
];

/// From how many arms of a match on a file is a reader of events.
const ARMS: usize = 5;

/// Returns the code of a file, or of the files of a folder.
fn read(path: &Path) -> String {
    if path.is_file() {
        return std::fs::read_to_string(path).unwrap();
    }
    let entries = std::fs::read_dir(path).unwrap();
    entries.map(|entry| read(&entry.unwrap().path())).collect()
}

/// Lists the variants of an enum.
fn kinds<'c>(code: &'c str, name: &str) -> Vec<&'c str> {
    let body = code.split(&format!("pub enum {name} {{")).nth(1).unwrap().split("\n}\n").next().unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    variants
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.split([' ', '(', ',']).next().unwrap())
        .collect()
}

fn names(code: &str, kind: &str) -> bool {
    let begins = format!("::{kind}");
    code.match_indices(&begins)
        .any(|(at, _)| !code[at + begins.len()..].starts_with(|next: char| next.is_alphanumeric()))
}

#[test]
fn every_reader_of_events_is_known_to_read_or_skip_each_kind() {
    let readers = READERS.iter().map(|(reader, package, files)| {
        let code: String = files.iter().map(|file| read(&sources(package).join(file))).collect();
        (reader, code)
    });
    let readers: Vec<_> = readers.collect();
    let mut table = String::new();
    for kind in kinds(&read(&sources("positronic-core").join("record/event/event_kind.rs")), "EventKind") {
        let read_by: Vec<_> =
            readers.iter().filter(|(_, code)| names(code, kind)).map(|(reader, _)| **reader).collect();
        _ = writeln!(table, "{kind:<22} {}", read_by.join(" "));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_file_that_matches_kinds_of_events_is_in_the_table() {
    let is_arm = |line: &str| {
        let line = line.trim_start().trim_start_matches("| ");
        line.starts_with("EventKind::") || line.starts_with("E::")
    };
    let mut unknown = Vec::new();
    for package in packages().chain(["positronic-cli"]) {
        for (file, code) in files(package) {
            let is_listed = READERS
                .iter()
                .any(|(_, of, places)| *of == package && places.iter().any(|place| file.starts_with(place)))
                || package == "positronic-core" && EXHAUSTIVE.contains(&&*file);
            if !is_listed && code.lines().filter(|line| is_arm(line)).count() >= ARMS {
                unknown.push(format!("{package}: {file}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn sentences_name_every_kind_of_node() {
    let sentences = read(&sources("positronic-cli").join("render/sentences.rs"));
    let nodes = read(&sources("positronic-core").join("projection/timeline/node.rs"));
    let unknown: Vec<_> = kinds(&nodes, "NodeKind").into_iter().filter(|kind| !names(&sentences, kind)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
