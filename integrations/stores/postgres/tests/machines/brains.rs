//! The brains of the workers, and the model that plays them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use serde_json::json;

use crate::dialogues::{Called, Dialogue, in_the_file};
use crate::ledger::Ledger;

/// How many calls a run of the brain `Counter` has.
pub(crate) const COUNTS: usize = 20;

/// A call of a scripted loop.
enum Line {
    Call(Called),
    Say,
}

/// Creates the brain `Shop`, with the tools `note` (repeatable), `pay` (not repeatable) and `ship` (after an approval).
pub(crate) fn shop(ledger: &Ledger, version: u32) -> Brain {
    let ledger = ledger.clone();
    brain("Shop")
        .version(version)
        .r#loop("Work", move |cx| {
            cx.system("Shop").input("Begin.").tools([
                job("note", &ledger, |t| t.idempotent().retries(1000)),
                job("pay", &ledger, |t| t),
                job("ship", &ledger, |t| t.requires_approval("it leaves the house")),
            ])
        })
        .build()
}

/// Creates the brain `Counter`, which pays [`COUNTS`] times, one after the other.
pub(crate) fn counter(ledger: &Ledger) -> Brain {
    let ledger = ledger.clone();
    brain("Counter")
        .r#loop("Work", move |cx| cx.system("Counter").input("Begin.").tools([job("pay", &ledger, |t| t)]).unlimited())
        .build()
}

type Build = positronic_core::dsl::ToolBuilder;

/// The time that a tool may take: longer than a test waits for anything, so that a tool that is held does not time out.
const TIMEOUT: Duration = Duration::from_secs(600);

fn job(name: &str, ledger: &Ledger, flags: impl FnOnce(Build) -> Build) -> Tool {
    let ledger = ledger.clone();
    Tool::new(name, |t| {
        flags(t).timeout(TIMEOUT).execute(move |_: NoArgs, cx: ToolContext| {
            let ledger = ledger.clone();
            async move { work(&ledger, &cx).await }
        })
    })
}

/// An effect takes up to this many milliseconds, each another time.
const LONGEST: u64 = 300;

async fn work(ledger: &Ledger, cx: &ToolContext) -> Result<&'static str> {
    let effect = ledger.begin(cx.run_id(), cx.path());
    let sum = cx.run_id().as_str().bytes().chain(cx.path().as_str().bytes()).map(u64::from).sum::<u64>();
    tokio::time::sleep(Duration::from_millis(sum * 37 % LONGEST)).await;
    ledger.held().await;
    effect.end();
    Ok("done")
}

/// Returns whether a tool is declared as repeatable: those of dialogues that only look.
pub(crate) fn is_repeatable(tool: &str) -> bool {
    let looks = ["get", "find", "ls", "cat", "grep", "display", "view", "list", "pwd", "diff", "sort", "tail", "wc"];
    tool == "note" || tool == "say" || looks.iter().any(|word| tool.starts_with(word))
}

/// Creates the brain that plays a dialogue.
pub(crate) fn dialogue(dialogue: &Dialogue, ledger: &Ledger) -> Brain {
    let tools = dialogue.tools.iter().map(|tool| {
        let (ledger, repeats) = (ledger.clone(), is_repeatable(&tool.name));
        Tool::new(&tool.name, |t| {
            let t = t.description(&tool.description);
            let t = if repeats { t.idempotent().retries(1000) } else { t };
            t.timeout(TIMEOUT).execute_json(tool.parameters.clone(), move |_, cx: ToolContext| {
                let ledger = ledger.clone();
                async move { work(&ledger, &cx).await }
            })
        })
    });
    let (tools, id): (Vec<Tool>, _) = (tools.collect(), dialogue.id.clone());
    let opening = dialogue.turns[0].user.clone();
    brain(&dialogue.id)
        .r#loop("Work", move |cx| {
            let chat = cx.system(&id).input(&opening).tools(tools.clone()).unlimited();
            chat.tool("say", |t| {
                t.description("Speaks to the user and waits for what they say next")
                    .idempotent()
                    .retries(1000)
                    .execute(async |_: NoArgs, cx| Ok(cx.result(()).wait_for_reply::<String>("What next?")))
            })
        })
        .build()
}

/// Lists the calls of a run of a dialogue, in order.
pub(crate) fn script(dialogue: &Dialogue) -> Vec<(String, serde_json::Value)> {
    let lines = lines(dialogue).into_iter().map(|line| match line {
        Line::Call(Called { name, arguments }) => (name, arguments),
        Line::Say => ("say".to_owned(), json!({})),
    });
    debug_assert_eq!(in_the_file(dialogue).len() + dialogue.turns.len() - 1, lines.len());
    lines.collect()
}

fn lines(dialogue: &Dialogue) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, turn) in dialogue.turns.iter().enumerate() {
        if index > 0 {
            lines.push(Line::Say);
        }
        let called = |call: &Called| Called { name: call.name.clone(), arguments: call.arguments.clone() };
        lines.extend(turn.calls.iter().map(|call| Line::Call(called(call))));
    }
    lines
}

/// Creates the model, which reads the brain from the system prompt and the position from the path.
pub(crate) fn model(dialogues: &[Dialogue]) -> ScriptedModel {
    let scripts: Arc<HashMap<_, _>> =
        Arc::new(dialogues.iter().map(|dialogue| (dialogue.id.clone(), script(dialogue))).collect());
    ScriptedModel::from_fn(move |request: &ModelRequest| {
        let index: usize = request.path.as_str().rsplit('/').next().and_then(|index| index.parse().ok()).unwrap();
        match (&*request.system, index) {
            ("Shop", 0) => Reply::calls([("note", json!({})), ("pay", json!({}))]),
            ("Shop", 1) => Reply::calls([("ship", json!({})), ("note", json!({}))]),
            ("Shop", 2) => Reply::call("pay", json!({})),
            ("Counter", 0..COUNTS) => Reply::call("pay", json!({})),
            (id, index) => match scripts.get(id).and_then(|script| script.get(index)) {
                Some((tool, arguments)) => Reply::call(tool, arguments.clone()),
                None => Reply::text("Done."),
            },
        }
    })
}
