//! Dialogues and batches of the Berkeley Function Calling Leaderboard, with their tools.

use std::sync::{Arc, Mutex};

use positronic_core::dsl::Loop;
use positronic_core::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(crate) struct Dialogue {
    pub(crate) id: String,
    pub(crate) tools: Vec<Declared>,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Turn {
    pub(crate) user: String,
    pub(crate) calls: Vec<Called>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

pub(crate) fn read(lines: &str) -> Vec<Dialogue> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The recorded calls of the tools, in order.
pub(crate) type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers a call with the number of earlier calls of its name.
fn answer(seen: &Seen, name: &str, arguments: Value) -> Value {
    let mut seen = seen.lock().unwrap();
    let before = seen.iter().filter(|(known, _)| known == name).count();
    seen.push((name.to_owned(), arguments));
    json!({ "tool": name, "number": before })
}

pub(crate) type DynamicTool = Tool;

pub(crate) fn declared(dialogue: &Dialogue, seen: &Seen) -> Vec<DynamicTool> {
    let tools = dialogue.tools.iter();
    tools
        .map(|tool| {
            let (name, seen) = (tool.name.clone(), Arc::clone(seen));
            Tool::dynamic(&tool.name, &tool.description, tool.parameters.clone(), move |arguments, _| {
                std::future::ready(Ok(answer(&seen, &name, arguments)))
            })
        })
        .collect()
}

pub(crate) fn say(config: Loop) -> Loop {
    config.tool("say", |t| {
        t.description("Speaks to the user and waits for what they say next")
            .execute(async |_: NoArgs, cx| Ok(cx.result(()).wait_for_reply::<String>("What next?")))
    })
}

pub(crate) fn in_the_file(dialogue: &Dialogue) -> Vec<(String, Value)> {
    let calls = dialogue.turns.iter().flat_map(|turn| &turn.calls);
    calls.map(|call| (call.name.clone(), call.arguments.clone())).collect()
}
