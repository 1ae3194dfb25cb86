//! The OpenAPI document.

use std::collections::BTreeSet;
use std::path::Path;

use positronic_server::openapi;

use crate::support::Shop;

/// The document as text, for people and generators of clients.
fn text() -> String {
    let mut text = serde_json::to_string_pretty(&openapi()).unwrap();
    text.push('\n');
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a variable says whether to write the file")]
fn committed_document_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var("POSITRONIC_UPDATE_DOCS").is_ok() {
        std::fs::write(&file, text()).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == text(), "write openapi.json again with POSITRONIC_UPDATE_DOCS=1");
}

#[test]
fn operations_have_unique_names_and_all_references_resolve() {
    let document = openapi();
    let mut names = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name}");
            assert!(!operation["responses"].as_object().unwrap().is_empty(), "{name}");
        }
    }
    for reference in document.to_string().split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[tokio::test]
async fn server_serves_the_document() {
    let answer = Shop::new().get("", "/openapi.json").await;

    assert_eq!(answer.json(), openapi());
}
