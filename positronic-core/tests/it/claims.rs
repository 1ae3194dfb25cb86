//! `docs/agent-loop.md` says which test shows which claim of the design.

use std::path::Path;

/// Reads all files of a folder and below it.
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

#[test]
fn every_claim_names_tests_that_exist() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(workspace.join("docs/agent-loop.md")).unwrap();
    let (mut here, mut examples) = (String::new(), String::new());
    sources(&workspace.join("positronic-core/tests/it"), &mut here);
    sources(&workspace.join("examples/tests/it"), &mut examples);

    let mut tests = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let shown = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in shown.split(", `").map(|test| test.trim_start_matches('`')) {
            let (name, place) = test.split_once('`').unwrap();
            let exists = match place.trim() {
                "" => here.contains(&format!("fn {name}()")),
                "(examples)" => examples.contains(&format!("fn {name}()")),
                "(compile_fail)" => workspace.join(format!("tests/compile_fail/cases/{name}.stderr")).exists(),
                place => panic!("{place}: {line}"),
            };
            assert!(exists, "{name}: {line}");
            tests += 1;
        }
    }
    assert!(tests > 40, "{tests}");
}
