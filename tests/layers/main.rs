//! Which crates may use which, and, as `ARCHITECTURE.md` says, which folders of the core and the command line may.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod modules;
mod readers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use modules::{Modules, circles};

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// Files of the core that may use tokio: the runner, the tests' clock, the delays of the scripted model, the wrappers that
/// queue requests or time a model's rest, the sink whose writes may block, and the watcher that wakes readers.
const TOKIO: &[&str] = &[
    "runner/",
    "testing/",
    "model/scripted.rs",
    "model/wrap/concurrency.rs",
    "model/wrap/fallback.rs",
    "model/wrap/rate_limit.rs",
    "sink/json_lines.rs",
    "store/grown.rs",
    "store/memory/",
];

/// The most files of a crate in one circle.
const LARGEST_CIRCLE: usize = 2;

/// The most files with an inherent `impl` of one type.
const MOST_IMPLS: usize = 3;

/// The types with more of them, and how many. Each stage's part of `BrainBuilder` is a file of its own; the others only shrink.
const MORE_IMPLS: &[(&str, &str, usize)] = &[
    ("positronic-core", "BrainBuilder", 17),
    ("positronic-core", "Loop", 6),
    ("integrations/bridges", "Projection", 4),
    ("integrations/server", "App", 11),
    ("integrations/server", "RequestContext", 8),
];

/// The core, the crates that were parts of it and what is built on these, by folder: which crates of the workspace each may use
/// outside of tests.
const CRATES: &[(&str, &[&str])] = &[
    ("positronic-core", &["positronic-macros"]),
    ("integrations/models/async-openai", &["positronic-core", "positronic-model-http", "positronic-openai"]),
    ("integrations/models/http", &["positronic-core"]),
    ("integrations/models/openai", &["positronic-core", "positronic-model-http"]),
    ("integrations/net", &[]),
    ("integrations/plugins", &["positronic-core"]),
    ("integrations/query", &["positronic-core"]),
    ("integrations/stores/sqlite", &["positronic-core"]),
    ("integrations/stores/suite", &["positronic-core"]),
    ("integrations/templates", &[]),
    ("integrations/tools/mcp", &["positronic-core"]),
    ("integrations/tools/toolbox", &["positronic-core", "positronic-net"]),
];

/// The crates on top of these.
const LATER: &[&str] = &[
    "integrations/bridges",
    "integrations/engines/restate",
    "integrations/models/anthropic",
    "integrations/models/gemini",
    "integrations/models/providers",
    "integrations/models/testing",
    "integrations/opentelemetry",
    "integrations/server",
    "integrations/stores/postgres",
];

fn sources(package: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src")
}

fn packages() -> impl Iterator<Item = &'static str> {
    CRATES.iter().map(|(package, _)| *package).chain(LATER.iter().copied())
}

/// Reads the sources of a package, without files of tests.
fn files(package: &str) -> Vec<(String, String)> {
    let src = sources(package);
    let modules = Modules::of(&src);
    modules.files().map(|file| (file.to_owned(), std::fs::read_to_string(src.join(file)).unwrap())).collect()
}

/// Reads the table below a heading of `ARCHITECTURE.md`: which folders a folder may use.
fn table(heading: &str) -> BTreeMap<&str, Vec<&str>> {
    let section = ARCHITECTURE.split(&format!("\n## {heading}")).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.split(" | ");
        let folder = cells.next()?.strip_prefix("| `")?.strip_suffix("/`")?;
        Some((folder, cells.last()?.trim_end_matches(" |")))
    });
    let rows: BTreeMap<&str, &str> = rows.collect();
    let names = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    let may_use = |cell: &'static str| match cell.strip_prefix("all but ") {
        Some(others) => rows.keys().filter(|folder| !names(others).contains(*folder)).copied().collect(),
        None => names(cell),
    };
    rows.iter().map(|(folder, cell)| (*folder, may_use(cell))).collect()
}

fn folder(file: &str) -> Option<&str> {
    file.split_once('/').map(|(folder, _)| folder)
}

/// Lists the uses of folders that a table does not allow.
fn forbidden(modules: &Modules, table: &BTreeMap<&str, Vec<&str>>, below_all: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, used) in modules.uses(true) {
        let Some(own) = folder(file) else { continue };
        let Some(allowed) = table.get(own) else {
            wrong.push(format!("`{own}` is not in the table"));
            continue;
        };
        let is_forbidden =
            |other: &&str| folder(other).is_some_and(|it| it != own && it != below_all && !allowed.contains(&it));
        wrong.extend(used.into_iter().filter(is_forbidden).map(|other| format!("{file} uses {other}")));
    }
    wrong
}

#[test]
fn core_folders_use_only_their_listed_folders() {
    let table = table("The folders of the core");
    assert!(table.len() > 10, "{table:?}");
    let wrong = forbidden(&Modules::of(&sources("positronic-core")), &table, "record");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cli_folders_use_only_their_listed_folders() {
    let table = table("The folders of the command line");
    assert!(table.len() > 5, "{table:?}");
    let wrong = forbidden(&Modules::of(&sources("positronic-cli")), &table, "");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_use_no_other_command() {
    let modules = Modules::of(&sources("positronic-cli"));
    let command = |file: &str| {
        let (_, command) = file.strip_prefix("commands/")?.split_once('/')?;
        command.split(['/', '.']).next().filter(|name| *name != "mod").map(str::to_owned)
    };
    let mut wrong = Vec::new();
    for (file, used) in modules.uses(false) {
        let Some(own) = command(file) else { continue };
        let is_other = |other: &&str| command(other).is_some_and(|other| other != own);
        wrong.extend(used.into_iter().filter(is_other).map(|other| format!("{file} uses {other}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cli_files_have_no_circle() {
    let modules = Modules::of(&sources("positronic-cli"));
    let circles = circles(&modules.uses(false));
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn files_of_a_crate_have_only_small_circles() {
    let mut large = BTreeMap::new();
    for package in packages() {
        let modules = Modules::of(&sources(package));
        for circle in circles(&modules.uses(false)).into_iter().filter(|circle| circle.len() > LARGEST_CIRCLE) {
            let files = circle.into_iter().map(str::to_owned).collect::<Vec<_>>();
            large.entry(package).or_insert_with(Vec::new).push(files);
        }
    }
    assert!(large.is_empty(), "{large:#?}");
}

#[test]
fn crates_use_only_their_listed_crates() {
    for (package, allowed) in CRATES {
        let manifest = std::fs::read_to_string(sources(package).with_file_name("Cargo.toml")).unwrap();
        let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
        let used = section.lines().filter(|line| line.starts_with("positronic-"));
        let mut used: Vec<_> = used.map(|line| line.split(['.', ' ', '=']).next().unwrap()).collect();
        used.retain(|used| !allowed.contains(used));
        assert!(used.is_empty(), "{package} uses {used:?}");
    }
}

/// One word stands for one idea. In another crate it may stand for another one, or for the form of the same thing there.
#[test]
fn no_two_types_of_a_crate_have_the_same_name() {
    for package in packages().chain(["positronic-cli"]) {
        let modules = Modules::of(&sources(package));
        let twice: BTreeMap<_, _> = modules.types().into_iter().filter(|(_, files)| files.len() > 1).collect();

        assert!(twice.is_empty(), "{package}: {twice:#?}");
    }
}

/// What a reader looks for in a type is in few files; what a file does to a type are functions.
#[test]
fn methods_of_a_type_are_in_few_files() {
    let mut more = Vec::new();
    for package in packages().chain(["positronic-cli"]) {
        let modules = Modules::of(&sources(package));
        let counts = modules.inherent_impls().into_iter().map(|(name, files)| (package, name, files.len()));
        more.extend(counts.filter(|(.., count)| *count > MOST_IMPLS));
    }

    let more: Vec<_> = more.iter().map(|(package, name, count)| (*package, &**name, *count)).collect();
    assert_eq!(more, MORE_IMPLS);
}

#[test]
fn only_inherent_impls_of_own_types_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (file, code) in [
        ("lib.rs", "mod a; mod b; mod c; struct One<T>(T); struct Two; trait Three {}"),
        ("a.rs", "impl<T: Fn() -> u8> super::One<T> where T: Copy {} impl crate::Two {}"),
        (
            "b.rs",
            "impl<F> Three for One<F> where F: for<'a> Fn(&'a u8) {} fn f() -> impl Three {} impl Vec<One<u8>> {}",
        ),
        ("c.rs", "fn f(_: impl Three) {} impl<F> One<F> where F: for<'a> Fn(&'a u8) {} #[cfg(test)] impl Two {}"),
    ] {
        std::fs::write(folder.path().join(file), code).unwrap();
    }

    let modules = Modules::of(folder.path());

    let impls = modules.inherent_impls();
    let counted: Vec<_> =
        impls.iter().map(|(name, files)| (&**name, files.iter().copied().collect::<Vec<_>>())).collect();
    assert_eq!(counted, [("One", vec!["a.rs", "c.rs"]), ("Two", vec!["a.rs"])]);
}

#[test]
fn only_the_listed_files_of_the_core_use_tokio() {
    let modules = Modules::of(&sources("positronic-core"));
    let mut wrong = modules.naming("tokio");
    wrong.retain(|file| !TOKIO.iter().any(|place| file.starts_with(place)));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn grouped_and_relative_imports_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    for (file, code) in [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        (
            "a.rs",
            "use crate::{b::{self, two::Two}, c::Three as Third};\n#[cfg(test)]\nmod tests { use crate::c::Never; }",
        ),
        ("b/mod.rs", "mod one; mod two; pub(crate) use one::One; pub(crate) use two::Two;"),
        ("b/one.rs", "fn f() { let x = vec![super::Two, super::super::c::Three]; }\npub(crate) struct One;"),
        ("b/two.rs", "use super::One;\npub(crate) struct Two;"),
        ("c.rs", "// use crate::a::A;\npub(crate) struct Three;"),
        ("d.rs", "pub(crate) struct Four;\nmod inline { use super::Four; use super::super::c::Three; }"),
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, code).unwrap();
    }

    let modules = Modules::of(folder.path());

    let uses = modules.uses(false);
    let of = |file: &str| uses[file].iter().copied().collect::<Vec<_>>();
    assert_eq!(of("a.rs"), ["b/mod.rs", "b/two.rs", "c.rs"]);
    assert_eq!(of("b/mod.rs"), [""; 0]);
    assert_eq!(of("b/one.rs"), ["b/two.rs", "c.rs"]);
    assert_eq!(of("c.rs"), [""; 0]);
    assert_eq!(of("d.rs"), ["c.rs"]);
    assert_eq!(circles(&uses), [["b/one.rs", "b/two.rs"].into()]);
}
