//! State rebuilt from the log equals the live state: promise 21.

use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::model::Model as _;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::projection::request_at;
use positronic_core::record::{Event, ModelRequest};
use positronic_core::runner::Settled;
use serde::{Deserialize, Serialize};

use crate::bench::{Bench, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Job, batch, done, settled};

on_both_stores! {
    promise_21_replayed_state_and_rebuilt_requests_equal_the_live_ones_byte_for_byte
}

/// A state that a careless encoding would lose.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Delicate {
    sums: Vec<f64>,
    named: std::collections::HashMap<String, i64>,
    text: String,
}

/// Rebuilds some of the sent requests from the log.
fn rebuilt(log: &[Arc<Event>], sent: &[ModelRequest]) {
    let model = ScriptedModel::from_fn(|_| done());
    for request in sent.iter().step_by(20).chain(sent.last()) {
        let asked = log.iter().find(|event| event.path == request.path && event.kind.name() == "LOOP_MODEL_CALL");
        let rebuilt = request_at(log.iter().map(|event| &**event), asked.unwrap().seq).unwrap();
        assert_eq!(model.wire(&rebuilt), model.wire(request), "{}", request.path);
    }
}

async fn promise_21_replayed_state_and_rebuilt_requests_equal_the_live_ones_byte_for_byte<S: Fresh>() {
    let delicate = brain("Delicate")
        .state(Delicate::default())
        .step("Begin", async |cx| Ok(Delicate { text: "\u{0}é\u{1F600}\"\\".to_owned(), ..cx.state }))
        .r#loop("Work", |cx| {
            // Never the previous value, but sometimes a much older one.
            let iteration = cx.state.sums.len();
            cx.system(format!("{:?} {}", cx.state.sums.last(), iteration % 3))
                .context("named", format!("{}", cx.state.named.len()))
                .context(format!("item {}", iteration % 2), cx.state.text.clone())
                .max_iterations(400)
                .tool("add", |t| {
                    t.execute(async |job: Job, cx: ToolContext<(), Delicate>| {
                        let before = cx.state.sums.last().copied().unwrap_or_default();
                        Ok(cx.result(before).update(move |state| {
                            state.sums.push(before + 0.1 + 1e-17);
                            state.named.insert(job.id.clone(), -1);
                            state.named.insert(format!("{} again", job.id), i64::MAX);
                        }))
                    })
                })
                .tool(&format!("only_{}", iteration % 4), |t| t.execute(async |_: NoArgs, _| Ok(())))
        });
    let bench = Bench::<S>::fresh();
    let says = |place: &str| {
        let iteration = place.strip_prefix("Work/").unwrap().parse::<u32>().unwrap();
        if iteration < 300 { batch([("add", place)]).and_reasoning("hm") } else { done() }
    };
    let process = bench.process("first", says);
    let run = bench.start(&process, &delicate).await;
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let log = bench.log().await;
    assert_eq!(bench.sent().len(), 301);
    rebuilt(&log, &bench.sent());

    // Every prefix is a state that round-trips unchanged; one in the middle continues to the same end.
    let live = serde_json::to_string(&run.state()).unwrap();
    let mut replayed = RunState::default();
    for (index, event) in log.iter().enumerate() {
        let line = event.to_json().unwrap();
        let read = Event::from_json(&line).unwrap();
        assert_eq!(read.to_json().unwrap(), line);
        replayed.apply(&read).unwrap();
        if index % 97 == 0 {
            let text = serde_json::to_string(&replayed).unwrap();
            replayed = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&replayed).unwrap(), text);
        }
    }
    assert_eq!(serde_json::to_string(&replayed).unwrap(), live);
    for until in [log.len() / 3, log.len() / 2, log.len() - 3] {
        let cut = bench.cut(until).await;
        let run = cut.process("second", says).brain(delicate.clone()).resume(&run_id()).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        let again = cut.log().await;
        let state = RunState::replay(again.iter().map(|event| &**event)).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), serde_json::to_string(&run.state()).unwrap());
        assert_eq!(state.root.unwrap().state.to_string(), replayed.root.as_ref().unwrap().state.to_string());
        rebuilt(&log, &cut.sent());
        rebuilt(&again, &cut.sent());
    }
}
