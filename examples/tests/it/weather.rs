use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Message, OutputKind, Prompt, PromptState, ToolResult};
use positronic_core::runner::{Runner, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use positronic_examples::weather::weather;
use serde_json::json;

/// Renders a record, one output per line.
fn record(prompt: &Prompt) -> String {
    let mut lines =
        vec![format!("{:?}: {}", prompt.state, prompt.input.as_deref().unwrap_or("(nobody said anything)"))];
    lines.extend(prompt.output.iter().filter_map(|output| match &output.kind {
        OutputKind::Tool(call) => {
            let result = match &call.result {
                Some(ToolResult::Success { .. }) => "success".to_owned(),
                other => format!("{other:?}"),
            };
            Some(format!("tool {}: {result}", call.tool))
        }
        OutputKind::Widget(widget) => Some(format!("widget {}: {}", widget.kind, widget.fallback)),
        kind => kind.text().filter(|text| !text.is_empty()).map(|text| format!("text: {text}")),
    }));
    lines.join("\n")
}

#[tokio::test(start_paused = true)]
async fn designs_conversation_is_reproduced() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("weather.get", json!({"town": "Ghent"})),
        Reply::text("Here is the forecast."),
        Reply::call("trigger.create", json!({"what": "Check the forecast.", "in": "1 day"})),
        Reply::text("Done."),
        Reply::text("Your reminder: check the forecast."),
    ]));
    let runner = Runner::new(Arc::clone(&model))
        .store(MemoryStore::new())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .brain(weather());
    let service = runner.serve();
    let talk = runner.conversation("weather").user("ann");

    talk.send(weather(), (), "What's the weather in Ghent?").await.unwrap().result().await.unwrap();
    let second = talk.send(weather(), (), "Remind me tomorrow.").await.unwrap();
    let Settled::Waiting(pending) = second.settled().await else { panic!("the reminder needs an approval") };
    let waiting = runner.client().conversations().prompts("weather").await.unwrap();
    assert_eq!(waiting.last().unwrap().1.state, PromptState::WaitingForApproval);
    second.approve(&pending[0].call, "ann").await.unwrap();
    second.result().await.unwrap();
    // In steps that leases survive: a sleep would let the server look at the store 90,000 times.
    for _ in 0..25 * 720 {
        tokio::time::advance(Duration::from_secs(5)).await;
    }

    let prompts = runner.client().conversations().prompts("weather").await.unwrap();
    let records: Vec<_> = prompts.iter().map(|(_, prompt)| record(prompt)).collect();
    insta::assert_snapshot!("records", records.join("\n\n"));
    let last = model.requests().pop().unwrap();
    let said = last.messages.messages().into_iter().map(|message| match message {
        Message::User { text, .. } => format!("user: {text}"),
        Message::Assistant { parts, .. } => format!("assistant: {} parts", parts.len()),
        Message::Tool { text, .. } => format!("tool: {text}"),
    });
    insta::assert_snapshot!("history", said.collect::<Vec<_>>().join("\n"));
    assert!(last.context.iter().any(|item| item.text.contains("Check the forecast.")), "it knows why it was asked");
    model.assert_used();
    drop(service);
}
