//! Real schemas, arguments and orders: dialogues and batches of the Berkeley Function Calling Leaderboard.
//!
//! A dialogue is one run with one loop. The scripted model plays the calls of a turn in order, one per iteration. Then
//! it calls `say`, which waits for a reply to itself, and the user's next turn arrives as that reply, as in a chat.
//! After the last turn it ends with a text. A batch is one iteration with all its calls. The tools take their schemas
//! from the file and answer from a table: the number of the call under its name.

use std::collections::HashMap;

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::ToolResult;
use positronic_core::runner::Settled;
use serde_json::{Value, json};

use crate::support::dialogues::{Dialogue, DynamicTool, Seen, declared, in_the_file, read, say};
use crate::support::{Play, calls, path, success, tool_texts};

/// Lists the results of the table in order.
fn expected(dialogue: &Dialogue) -> Vec<ToolResult> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    in_the_file(dialogue)
        .into_iter()
        .map(|(name, _)| {
            let number = counts.entry(name.clone()).or_default();
            *number += 1;
            success(json!({ "tool": name, "number": *number - 1 }))
        })
        .collect()
}

async fn plays(dialogue: &Dialogue) {
    let mut replies = Vec::new();
    for (index, turn) in dialogue.turns.iter().enumerate() {
        replies.extend(turn.calls.iter().map(|call| Reply::call(&call.name, call.arguments.clone())));
        let last = index + 1 == dialogue.turns.len();
        replies.push(if last { Reply::text("Done.") } else { Reply::call("say", json!({})).and_text("Next?") });
    }
    let seen = Seen::default();
    let (tools, opening) = (declared(dialogue, &seen), dialogue.turns[0].user.clone());
    let assistant = brain(&dialogue.id).r#loop("Chat", move |cx| {
        say(cx.system("Help the user with the tools.").input(&opening).tools(tools.clone())).unlimited()
    });
    let play = Play::new(replies);
    let run = play.start(&assistant, ()).await;
    for turn in &dialogue.turns[1..] {
        let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
        assert_eq!(pending[0].tool, "say", "{}", dialogue.id);
        run.reply(&pending[0].call, json!(turn.user), "user").await.unwrap();
    }

    let story = play.story(&run).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{}: {:?}", dialogue.id, story.settled());
    assert_eq!(*seen.lock().unwrap(), in_the_file(dialogue), "{}", dialogue.id);
    let (said, called): (Vec<_>, Vec<_>) = calls(&story, "Chat").into_iter().partition(|call| call.tool == "say");
    let arguments: Vec<_> = called.iter().map(|call| (call.tool.clone(), Value::clone(&call.arguments))).collect();
    assert_eq!(arguments, in_the_file(dialogue), "{}", dialogue.id);
    let results: Vec<_> = called.into_iter().map(|call| call.result.unwrap()).collect();
    assert_eq!(results, expected(dialogue), "{}", dialogue.id);
    let turns: Vec<_> = said.into_iter().map(|call| call.result.unwrap()).collect();
    assert_eq!(turns, dialogue.turns[1..].iter().map(|turn| success(turn.user.as_str())).collect::<Vec<_>>());
    let request = play.last_request();
    let sent: Vec<_> =
        request.tools.tools().iter().map(|tool| (tool.id.to_string(), (*tool.parameters).clone())).collect();
    let schemas: Vec<_> = dialogue.tools.iter().map(|tool| (tool.name.clone(), tool.parameters.clone())).collect();
    assert_eq!(sent[..schemas.len()], schemas, "{}: the model sees the schemas as they are", dialogue.id);
}

#[tokio::test(start_paused = true)]
async fn twenty_dialogues_keep_calls_arguments_and_order() {
    let dialogues = read(include_str!("../../../tests/data/bfcl/multi_turn.jsonl"));
    assert_eq!(dialogues.len(), 20);
    for dialogue in &dialogues {
        plays(dialogue).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_batches_run_in_parallel_and_are_answered_in_call_order() {
    let dialogues = read(include_str!("../../../tests/data/bfcl/parallel.jsonl"));
    assert_eq!(dialogues.len(), 50);
    for dialogue in &dialogues {
        let seen = Seen::default();
        let tools = declared(dialogue, &seen);
        let opening = dialogue.turns[0].user.clone();
        let assistant =
            brain(&dialogue.id).r#loop("Chat", move |cx| cx.system("Help.").input(&opening).tools(tools.clone()));
        let batch = Reply::calls(dialogue.turns[0].calls.iter().map(|call| (&call.name, call.arguments.clone())));
        let play = Play::new([batch, Reply::text("Done.")]);

        let story = play.run(&assistant, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{}", dialogue.id);
        assert_eq!(*seen.lock().unwrap(), in_the_file(dialogue), "{}", dialogue.id);
        let texts: Vec<Value> =
            tool_texts(&play.last_request()).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let answers: Vec<_> = expected(dialogue)
            .into_iter()
            .map(|result| match result {
                ToolResult::Success { output, .. } => output,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, answers, "{}", dialogue.id);
    }
}

#[tokio::test(start_paused = true)]
async fn dynamic_tool_is_validated_approved_and_flagged_like_any_other() {
    let schema = || json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let dynamic = brain("Dynamic").state(0_i64).r#loop("Work", move |cx| {
        cx.system("").tool("add.up", |t| {
            t.description("Adds")
                .idempotent()
                .approval(|args: &Value, _| args["n"].as_i64().filter(|n| *n > 5).map(|n| format!("adds {n}")))
                .execute_json(schema(), async |args: Value, cx| {
                    Ok(cx.result("added").update(move |sum| *sum += args["n"].as_i64().unwrap_or_default()))
                })
        })
    });
    let play = Play::new([
        Reply::calls([("add_up", json!({"n": 2})), ("add_up", json!({"n": "x"})), ("add.up", json!({"n": 40}))]),
        Reply::text("Done."),
    ]);
    let run = play.start(&dynamic, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!((pending.len(), &pending[0].call), (1, &path("Work/0.2")));

    run.approve(&pending[0].call, "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(run.result().await.unwrap(), 42);
    assert!(calls(&story, "Work")[1].result.as_ref().is_some_and(|result| !result.is_success()));
}

#[test]
#[should_panic(expected = "the schema of the tool `x` does not describe an object")]
fn non_object_schema_is_a_usage_error() {
    let _: DynamicTool = Tool::dynamic("x", "", json!({"type": "string"}), async |_, _| Ok(()));
}
