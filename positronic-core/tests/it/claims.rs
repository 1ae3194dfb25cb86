//! The pages of the guide's appendix name existing tests for each claim of the designs.

use std::path::Path;

/// Reads all files below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Counts the tests that a page names; each must exist.
fn named(workspace: &Path, page: &str) -> usize {
    let read = |folder: &str| {
        let mut text = String::new();
        sources(&workspace.join(folder), &mut text);
        text
    };
    let here = read("positronic-core/tests/it") + &read("integrations/plugins/tests/it");
    let toolbox = read("integrations/tools/toolbox/tests/it");
    let promises = read("tests/promises");
    let (examples, command, seeds) = (read("examples/tests/it"), read("positronic-cli/src"), read("tests/seeds"));
    let page = std::fs::read_to_string(workspace.join(page)).unwrap();

    let mut tests = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let shown = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in shown.split(", `").map(|test| test.trim_start_matches('`')) {
            let (name, place) = test.split_once('`').unwrap();
            let known = format!("fn {name}()");
            let exists = match place.trim() {
                "" => here.contains(&known),
                "(promises)" => promises.contains(&known),
                "(toolbox)" => toolbox.contains(&known),
                "(examples)" => examples.contains(&known),
                "(command)" => command.contains(&known),
                "(seeds)" => seeds.contains(&known),
                "(compile_fail)" => workspace.join(format!("tests/compile_fail/cases/{name}.rs")).exists(),
                place => panic!("{place}: {line}"),
            };
            assert!(exists, "{name}: {line}");
            tests += 1;
        }
    }
    tests
}

#[test]
fn every_claim_names_existing_tests() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();

    assert!(named(workspace, "docs/guide/appendix/agent-loop.md") > 40);
    assert!(named(workspace, "docs/guide/appendix/decision-loop.md") > 40);
    assert!(named(workspace, "docs/guide/appendix/loop-step.md") > 30);
}
