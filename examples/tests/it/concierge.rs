use std::sync::Arc;

use positronic_core::machine::pending;
use positronic_core::model::cassette::Cassette;
use positronic_core::record::{CallerTool, EventKind, Seq, Start, ToolResult, UserMessage};
use positronic_core::runner::{Runner, Settled};
use positronic_core::testing::{Lockstep as _, TestClock};
use positronic_examples::concierge::{CASSETTE, concierge};
use serde_json::json;

fn question() -> Start {
    let schema = json!({ "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let weather = CallerTool::new("get_weather", "Reads the weather", schema).unwrap();
    let message = UserMessage::new("What can I do in Graz?").caller_tools([weather]);
    Start { message: Some(message), ..Start::default() }
}

#[tokio::test(start_paused = true)]
async fn cassette_calls_a_tool_of_the_caller_and_one_of_the_loop() {
    let cassette = Arc::new(Cassette::replay(CASSETTE).unwrap());
    let runner = Runner::new(Arc::clone(&cassette)).lockstep(true);
    let run = runner.start_with(concierge(), (), question()).await.unwrap();

    let Settled::Waiting(open) = run.settled().await else { panic!("the caller runs its tool") };
    assert_eq!((open.len(), open[0].tool.as_str()), (1, "get_weather"));
    run.reply(&open[0].call, json!("7 degrees"), "app").await.unwrap();
    run.result().await.unwrap();

    assert_eq!(cassette.unused(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn caller_that_does_not_come_back_does_not_hold_the_run() {
    let runner = Runner::new(Cassette::replay(CASSETTE).unwrap()).lockstep(true).clock(TestClock::default());
    let runner = runner.linger(std::time::Duration::MAX);
    let run = runner.start_with(concierge(), (), question()).await.unwrap();

    run.result().await.unwrap();

    assert!(pending(&run.state()).is_empty());
    let log = runner.client().events(run.id(), Seq(0)).await.unwrap();
    let expired = ToolResult::error("the caller has sent no result in time");
    let ended = |kind: &EventKind| matches!(kind, EventKind::LoopToolResult { result, .. } if *result == expired);
    assert!(log.iter().any(|event| ended(&event.kind)), "the model reads that the call has no result");
}
