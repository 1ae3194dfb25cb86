//! The README's first brain and the guide's test of it, so that they compile, pass, and stay identical.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, Default)]
struct List {
    items: Vec<String>,
}

/// Adds an item to the list.
#[tool]
async fn add(
    /// What to buy.
    item: String,
    cx: ToolContext<(), List>,
) -> Result<&'static str> {
    cx.update(|list| list.items.push(item));
    Ok("added")
}

fn shopping() -> Brain<(), List> {
    brain! {
        "Shopping"
        .state(List::default())
        .loop("Collect", |cx| {
            cx.system(format!("Collect what to buy. So far: {:?}", cx.state.items))
                .input("We need milk and bread.")
                .tools([add()])
        })
        .build()
    }
}

#[tokio::test(start_paused = true)]
async fn loop_collects_the_requested_items() {
    let test = Test::new(ScriptedModel::new([
        Reply::calls([("add", json!({ "item": "milk" })), ("add", json!({ "item": "bread" }))]),
        Reply::text("Both are on the list."),
    ]));

    let story = test.run(shopping(), ()).await;

    insta::assert_snapshot!(story.transcript(), @r#"
    # Collect
    user: We need milk and bread.
    add({"item":"milk"}) -> added
    add({"item":"bread"}) -> added
    assistant: Both are on the list.
    = {"type":"answered"}
    "#);
    assert_eq!(story.state(), &json!({ "items": ["milk", "bread"] }));
}

#[test]
fn readme_and_guide_show_this_file() {
    let here = without_layout(include_str!("readme.rs"));
    let readme = include_str!("../../../README.md");
    let testing = include_str!("../../../docs/guide/testing.md");
    let shows = |page: &str, wanted: &str| {
        let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
        let shown: Vec<_> = blocks.filter(|block| block.contains(wanted)).collect();
        assert!(!shown.is_empty(), "no code block contains `{wanted}`");
        for line in shown.iter().flat_map(|block| block.split_inclusive([';', '{', '}'])) {
            assert!(here.contains(&without_layout(line)), "a page shows `{}`, this file does not", line.trim());
        }
    };
    shows(readme, "");
    shows(testing, "#[tokio::test");
}

/// Removes formatting differences.
fn without_layout(code: &str) -> String {
    code.chars().filter(|letter| !letter.is_whitespace() && !",{}".contains(*letter)).collect()
}
