//! Fallback: after which errors, for how long, what watchers see, and which model is priced.

use std::time::Duration;

use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::wrap::{Fallback, RateLimit, RateLimits};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::Costs;
use positronic_core::record::{
    ActionFormat, EventKind, Finish, ModelErrorKind, ModelResponse, Part, ResponseMetadata, Settings,
};
use positronic_core::runner::Settled;
use positronic_core::sink::Recorder;
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use serde_json::json;

use super::{Speaker, asker, fails, fails_for, says, ways};
use crate::support::checks::{check_log, check_requests};
use crate::support::{Journal, ShopBuilder, worker};
use crate::support::{events_named, workshop};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A loop of three iterations, with a slow call between them.
fn three_iterations(pause: Duration) -> Brain<(), ()> {
    brain("Iterations")
        .r#loop("Ask", move |cx| {
            cx.system("Answer.").input("Why?").tool("rest", |t| {
                t.description("Rests").execute(move |_: NoArgs, _| async move {
                    tokio::time::sleep(pause).await;
                    Ok("rested")
                })
            })
        })
        .build()
}

fn rest() -> Reply {
    Reply::call("rest", json!({}))
}

#[tokio::test(start_paused = true)]
async fn log_names_the_failed_and_the_answering_model_and_prices_the_latter() {
    let model = Fallback::new(Speaker::new("a/big", [fails(ModelErrorKind::QuotaExhausted)]))
        .then(Speaker::new("b/gone", [fails(ModelErrorKind::NotFound)]))
        .then(Speaker::new("c/small", [says("Because.")]));

    let story = Test::new(model).run(asker(), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert_eq!(ways(&story), ["a/big QuotaExhausted → b/gone NotFound → c/small"]);
    let meant = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopModelCall { model, .. } => Some(model.clone()),
        _ => None,
    });
    assert_eq!(meant.as_deref(), Some("a/big"));
    assert!(events_named(&story, "LOOP_MODEL_RETRY").is_empty());
    let prices = json!({"as_of": "2026-01-01", "prices": {
        "a/big": {"input": 100, "output": 100}, "c/small": {"input": 1, "output": 2},
    }});
    let costs =
        Costs::of(story.log().iter().map(|event| &**event), &serde_json::from_value::<PriceTable>(prices).unwrap());
    assert_eq!(costs.calls.len(), 1);
    assert_eq!((costs.calls[0].model.as_str(), costs.total().known.to_string().as_str()), ("c/small", "0.00012"));
}

#[tokio::test(start_paused = true)]
async fn partial_stream_of_a_failed_model_is_discarded_and_the_answer_is_shown_once() {
    let recorder = Recorder::new();
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Truncated)]))
        .then(Speaker::new("b/two", [fails(ModelErrorKind::Server)]))
        .then(Speaker::new("c/three", [says("It is so.")]));

    Test::new(model).map(|runner| runner.sink(recorder.clone())).run(asker(), ()).await;

    let deltas = recorder.deltas();
    let take = |take: u32| -> Vec<(u32, String)> {
        deltas.iter().filter(|delta| delta.generation == take).map(|delta| (delta.n, delta.text.clone())).collect()
    };
    let words =
        |words: &[&str]| -> Vec<(u32, String)> { (0..).zip(words.iter().map(|word| (*word).to_owned())).collect() };
    assert_eq!(take(0), words(&["I ", "was ", "a/one"]));
    assert_eq!(take(1), words(&["I ", "was ", "b/two"]));
    assert_eq!(take(2), words(&["It ", "is ", "so."]));
    assert!(deltas.iter().map(|delta| delta.generation).is_sorted() && deltas.iter().all(|delta| delta.attempt == 0));
}

#[tokio::test(start_paused = true)]
async fn reason_of_a_structured_action_restarts_with_the_next_model() {
    let recorder = Recorder::new();
    let cut = ["{\"reasoning\":\"It ", "was", " d"];
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Truncated)]).babbling(&cut))
        .then(Speaker::new("b/two", [Reply::action("It is due.", "finish", json!({"id": "end"}))]));
    let journal = Journal::default();
    let brain = workshop(&journal, |config| config.tools([worker("finish", ShopBuilder::exit)]).structured_actions());

    let story = Test::new(model).map(|runner| runner.sink(recorder.clone())).run(&brain, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let take = |take| -> String {
        let deltas = recorder.deltas().into_iter().filter(|delta| delta.generation == take);
        deltas.map(|delta| delta.text).collect()
    };
    assert_eq!([take(0), take(1), take(2)], ["It was d", "It is due.", ""]);
}

#[tokio::test(start_paused = true)]
async fn refused_requests_and_refused_content_do_not_fall_back() {
    for kind in [ModelErrorKind::BadRequest, ModelErrorKind::Filtered] {
        let second = Speaker::new("b/two", []);
        let asked = second.asked();

        let story = Test::new(Fallback::new(Speaker::new("a/one", [fails(kind)])).then(second)).run(asker(), ()).await;

        assert!(matches!(story.settled(), Settled::Failed(_)));
        assert!(asked.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_request_falls_back_and_leaves_earlier_failures_retryable() {
    let second = Speaker::new("b/two", [says("I see it.")]);
    let story = Test::new(Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Unsupported)])).then(second));
    assert_eq!(ways(&story.run(asker(), ()).await), ["a/one Unsupported → b/two"]);

    let first = Speaker::new("a/one", [fails(ModelErrorKind::Server), says("Back.")]);
    let second = Speaker::new("b/two", [fails(ModelErrorKind::Unsupported)]);
    let story = Test::new(Fallback::new(first).then(second).rest(Duration::ZERO));
    assert!(
        story.run(asker(), ()).await.log().iter().any(|event| matches!(event.kind, EventKind::LoopModelRetry { .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn author_adds_errors_that_fall_back() {
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Filtered)]))
        .then(Speaker::new("b/two", [says("Because.")]))
        .moves_on(|error| error.kind == ModelErrorKind::Filtered);

    let story = Test::new(model).run(asker(), ()).await;

    assert_eq!(ways(&story), ["a/one Filtered → b/two"]);
}

#[tokio::test(start_paused = true)]
async fn failed_model_rests_and_is_asked_first_again_afterwards() {
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Server), says("Back.")]))
        .then(Speaker::new("b/two", [rest(), rest()]))
        .rest(secs(50));

    let story = Test::new(model).run(three_iterations(secs(30)), ()).await;

    assert_eq!(ways(&story), ["a/one Server → b/two", "a/one rests 20000000 → b/two", "a/one"]);
}

#[tokio::test(start_paused = true)]
async fn rest_follows_the_providers_delay_and_only_health_errors() {
    let model = Fallback::new(Speaker::new("a/one", [fails_for(ModelErrorKind::RateLimited, secs(3600))]))
        .then(Speaker::new("b/two", [rest(), rest(), says("Done.")]));
    let story = Test::new(model).run(three_iterations(secs(30)), ()).await;
    assert_eq!(ways(&story)[1..], ["a/one rests 3570000000 → b/two", "a/one rests 3540000000 → b/two"]);

    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::ContextTooLong), rest(), says("Done.")]))
        .then(Speaker::new("b/two", [rest()]));
    let story = Test::new(model).run(three_iterations(secs(1)), ()).await;
    assert_eq!(ways(&story), ["a/one ContextTooLong → b/two", "a/one", "a/one"]);
}

#[tokio::test(start_paused = true)]
async fn when_all_models_fail_the_runner_retries_and_no_rest_fails_the_run() {
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Server), says("Back.")]))
        .then(Speaker::new("b/two", [fails(ModelErrorKind::QuotaExhausted)]));

    let story = Test::new(model).run(asker(), ()).await;

    assert_eq!(ways(&story), ["a/one"]);
    let retry = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopModelRetry { error, .. } => Some(error.clone()),
        _ => None,
    });
    let error = retry.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Server);
    assert_eq!(error.message, "a/one: no; 1 more failed: b/two: no");
    assert_eq!(error.via.iter().map(super::hop).collect::<Vec<_>>(), ["a/one Server", "b/two QuotaExhausted"]);
}

#[tokio::test(start_paused = true)]
async fn request_can_retry_the_first_model_with_an_event_per_try() {
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Server), fails(ModelErrorKind::Server)]))
        .then(Speaker::new("b/two", [says("Because.")]))
        .tries(2);

    let story = Test::new(model).run(asker(), ()).await;

    assert_eq!(events_named(&story, "LOOP_MODEL_RETRY").len(), 1);
    assert_eq!(ways(&story), ["a/one Server → b/two"]);
}

#[tokio::test(start_paused = true)]
async fn private_response_data_of_one_model_is_not_sent_to_another() {
    let thinks = |text: &str| {
        let data = Some(json!({"type": "reasoning", "encrypted_content": text}));
        let parts = vec![Part::Reasoning { text: String::new(), data }, Part::Call { index: 0 }];
        let call = Reply::call("rest", json!({}));
        // The call of one reply, and the reasoning before it.
        let ModelResponse { calls, .. } = reply_of(call);
        Reply::response(ModelResponse {
            parts,
            calls,
            metadata: ResponseMetadata { finish: Finish::Calls, ..ResponseMetadata::default() },
        })
    };
    let first = Speaker::new("a/one", [thinks("of a"), fails(ModelErrorKind::Truncated), says("Done.")]);
    let second = Speaker::new("b/two", [thinks("of b")]);
    let (asked_first, asked_second) = (first.asked(), second.asked());

    let story = Test::new(Fallback::new(first).then(second)).run(three_iterations(secs(1)), ()).await;

    assert_eq!(ways(&story), ["a/one", "a/one Truncated → b/two", "a/one"]);
    let sent = |asked: &[positronic_core::record::ModelRequest]| {
        serde_json::to_string(&asked.last().unwrap().messages.messages()).unwrap()
    };
    let (to_first, to_second) = (sent(&asked_first.lock().unwrap()), sent(&asked_second.lock().unwrap()));
    assert!(to_first.contains("of a") && !to_first.contains("of b"), "{to_first}");
    assert!(!to_second.contains("of a"), "{to_second}");
    assert!(story.json_lines().contains(r#""of_model":"b/two""#));
}

/// Extracts the answer from a reply.
fn reply_of(reply: Reply) -> ModelResponse {
    let model = ScriptedModel::new([reply]);
    let request = positronic_core::record::ModelRequest {
        path: positronic_core::record::Path::root(),
        attempt: 0,
        system: "".into(),
        context: [].into(),
        tools: std::sync::Arc::default(),
        messages: positronic_core::record::Transcript::default(),
        settings: std::sync::Arc::default(),
    };
    futures::executor::block_on(model.call(&request, &positronic_core::model::NoDeltas)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn model_name_of_a_request_applies_to_the_first_model() {
    let first = Speaker::new("a/one", [fails(ModelErrorKind::Server)]);
    let second = Speaker::new("b/two", [says("Because.")]);
    let (asked_first, asked_second) = (first.asked(), second.asked());
    let brain = brain("Asker").r#loop("Ask", |cx| {
        cx.system("Answer.").input("Why?").settings(Settings::builder().model("one-pro").temperature(0.5).build())
    });

    Test::new(Fallback::new(first).then(second)).run(brain, ()).await;

    let settings = |asked: &[positronic_core::record::ModelRequest]| (*asked[0].settings).clone();
    assert_eq!(settings(&asked_first.lock().unwrap()).model.as_deref(), Some("one-pro"));
    let second = settings(&asked_second.lock().unwrap());
    assert_eq!((second.model, second.temperature), (None, Some(0.5)));
}

#[tokio::test(start_paused = true)]
async fn models_with_different_action_formats_are_all_asked_in_text() {
    let form = |one, other| {
        let speaker = |name, form| Speaker::new(name, []).deciding(form);
        Fallback::new(speaker("a/one", one)).then(speaker("b/two", other)).action_format()
    };

    assert_eq!(form(ActionFormat::Grammar, ActionFormat::Grammar), ActionFormat::Grammar);
    assert_eq!(form(ActionFormat::Schema, ActionFormat::Grammar), ActionFormat::Plain);
}

#[tokio::test(start_paused = true)]
async fn long_rate_limit_wait_falls_back() {
    let limits = RateLimits::builder().requests(1).max_wait(secs(5)).build();
    let limited = RateLimit::new(Speaker::new("a/one", [rest()]), limits);
    let model = Fallback::new(limited).then(Speaker::new("b/two", [rest(), says("Done.")])).rest(Duration::ZERO);

    let story = Test::new(model).run(three_iterations(secs(1)), ()).await;

    let ways = ways(&story);
    assert_eq!(ways[0], "a/one");
    assert_eq!(ways[1], "a/one RateLimited → b/two");
    assert!(ways[2].ends_with("b/two"), "{ways:?}");
}

/// Asks, waits for a person, asks again.
fn patient() -> Brain<(), ()> {
    brain("Patient")
        .r#loop("Ask", |cx| {
            cx.system("Answer.")
                .input("Why?")
                .tool("ask_person", |t| {
                    t.description("Asks a person")
                        .execute(async |_: NoArgs, cx| Ok(cx.result("asked").wait_for_reply::<String>("Is it so?")))
                })
                .tool("finish", |t| t.description("Ends").exit().execute(async |_: NoArgs, _| Ok("ended")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn run_resumed_by_another_process_sends_the_requests_rebuilt_from_the_log() {
    let store = MemoryStore::new();
    let runner = |model: Fallback| {
        Runner::new(model)
            .store(store.clone())
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(true)
            .linger(Duration::MAX)
            .brain(patient())
    };
    let (ask, end) = (|| Reply::call("ask_person", json!({})), || Reply::call("finish", json!({})));
    let first = Speaker::new("a/one", [fails(ModelErrorKind::Server)]);
    let second = Speaker::new("b/two", [ask()]);
    let asked = [first.asked(), second.asked()];
    let before = runner(Fallback::new(first).then(second));
    let run = before.start(patient(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    drop(run);
    before.release().await;

    // Rests are local to a process.
    let third = Speaker::new("a/one", [end()]);
    let (asked_third, after) = (third.asked(), Speaker::new("b/two", []));
    let again = runner(Fallback::new(third).then(after));
    let run = again.resume(&id).await.unwrap();
    let call = positronic_core::record::Path::parse("Ask/0.0").unwrap();
    run.reply(&call, json!("It is so."), "a person").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)));

    let story = Story::of(&run).await;
    check_log(&story, &run.state());
    let mut sent: Vec<_> = asked.iter().flat_map(|asked| asked.lock().unwrap().clone()).collect();
    sent.extend(asked_third.lock().unwrap().clone());
    assert_eq!(sent.len(), 3);
    check_requests(story.log(), &sent);
    assert_eq!(ways(&story), ["a/one Server → b/two", "a/one"]);
}
