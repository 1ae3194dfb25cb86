//! Faults on the way to a model. aimock plays each fault once, before an answer that ends the case.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::Model;
use positronic_core::record::{EndReason, EventKind, ModelErrorKind};
use positronic_core::runner::Settled;
use serde_json::json;

use crate::aimock::{journal, server};
use crate::log::{Retry, outline, rebuilt, retries};
use crate::support::{Played, chat, impatient, play, responses};
use crate::tap::Tap;

/// Asserts that the run was retried once and then completed with the full answer.
#[track_caller]
fn assert_recovered(played: &Played, kind: ModelErrorKind) -> Retry {
    let expected = format!(
        "\
· BRAIN_START
· RUN_CLAIMED
Chat LOOP_START
Chat/0 LOOP_ITERATION
Chat/0 LOOP_MODEL_CALL
Chat/0 LOOP_MODEL_RETRY 0: {kind:?}
Chat/0 LOOP_MODEL_CALL
Chat/0 LOOP_MODEL_RESULT
Chat/0.0 LOOP_TOOL_CALL
Chat/0.0 LOOP_TOOL_START
Chat/0.0 LOOP_TOOL_RESULT
Chat LOOP_EXIT
Chat LOOP_COMPLETE
· BRAIN_COMPLETE
"
    );
    assert_eq!(outline(&played.story), expected);
    assert_eq!(*played.story.settled(), Settled::Completed(json!({"orders": [], "resolution": "Done."})));
    let retry = retries(&played.story).remove(0);
    assert!(retry.waited >= retry.meant, "{retry:?}");
    retry
}

/// Asserts that the run failed at its model with this kind of error, without a retry.
#[track_caller]
fn assert_failed_at_once(played: &Played, words: &str) {
    let Settled::Failed(failure) = played.story.settled() else { panic!("{:?}", played.story.settled()) };
    assert_eq!(failure.code, EndReason::Model);
    assert!(failure.message.contains(words), "{failure}");
    assert!(retries(&played.story).is_empty());
}

/// Asserts that the second try sends the bytes of the first, and that the log rebuilds them.
async fn sends_the_same_bytes_again(kind: ModelErrorKind, model: impl Fn(&str) -> Arc<dyn Model>) -> Retry {
    let tap = Tap::on(&server()).await;
    let model = model(tap.address());
    let played = play(Arc::clone(&model)).await;
    let retry = assert_recovered(&played, kind);
    let sent = tap.bodies();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent, rebuilt(&played.story, &model));
    retry
}

#[tokio::test]
async fn rate_limit_is_waited_for_as_long_as_requested() {
    let name = "rate-limited";
    let retry = sends_the_same_bytes_again(ModelErrorKind::RateLimited, |at| Arc::new(chat(at, name))).await;

    assert_eq!(retry.meant, 1000);
    assert_eq!(retry.error.retry_after, Some(Duration::from_secs(1)));
    assert_eq!(retry.error.status, Some(429));
    assert_eq!(retry.error.provider_code.as_deref(), Some("rate_limit_exceeded"));
    let statuses: Vec<_> = journal(name).await.into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, [429, 200]);
}

#[tokio::test]
async fn rate_limit_of_the_responses_api_is_waited_for_too() {
    let name = "over-responses-rate-limited";
    let retry = sends_the_same_bytes_again(ModelErrorKind::RateLimited, |at| Arc::new(responses(at, name))).await;

    assert_eq!(retry.meant, 1000);
}

#[tokio::test]
async fn wait_of_an_hour_fails_the_run() {
    let played = play(chat(&server(), "too-patient")).await;

    assert_failed_at_once(&played, "Come back in an hour.");
}

#[tokio::test]
async fn exhausted_quota_is_not_a_rate_limit() {
    let played = play(chat(&server(), "out-of-quota")).await;

    assert_failed_at_once(&played, "You exceeded your current quota.");
}

#[tokio::test]
async fn refused_request_is_not_sent_again() {
    let played = play(chat(&server(), "refused")).await;

    assert_failed_at_once(&played, "Unsupported value.");
    assert_eq!(journal("refused").await.len(), 1);
}

#[tokio::test]
async fn failing_server_is_retried_with_growing_pauses() {
    let played = play(chat(&server(), "server-error")).await;

    assert!(matches!(played.story.settled(), Settled::Completed(_)), "{:?}", played.story.settled());
    let retries = retries(&played.story);
    let metadata: Vec<_> = retries.iter().map(|retry| (retry.error.kind, retry.error.status, retry.meant)).collect();
    let server = ModelErrorKind::Server;
    assert_eq!(metadata, [(server, Some(500), 60), (server, Some(503), 120)]);
}

#[tokio::test]
async fn server_that_stays_down_fails_the_run_after_four_tries() {
    let played = play(chat(&server(), "down")).await;

    let Settled::Failed(failure) = played.story.settled() else { panic!("{:?}", played.story.settled()) };
    assert!(failure.message.contains("Bad gateway."), "{failure}");
    assert!(failure.retryable);
    assert_eq!(journal("down").await.len(), 4);
}

#[tokio::test]
async fn truncated_stream_is_not_an_answer() {
    for (name, over_responses) in [("cut-text", false), ("cut-text-over-responses", true)] {
        let tap = Tap::on(&server()).await;
        let played = match over_responses {
            true => play(responses(tap.address(), name)).await,
            false => play(chat(tap.address(), name)).await,
        };

        assert_recovered(&played, ModelErrorKind::Connection);
        let text = |attempt: u32| -> String {
            let of = played.deltas.iter().filter(|delta| delta.attempt == attempt);
            of.map(|delta| delta.text.as_str()).collect()
        };
        assert!("I am looking into what happened to your orders".starts_with(&text(0)), "{}", text(0));
        assert!(!text(0).is_empty(), "{:?}", played.deltas);
        assert!(text(1).ends_with("Done.\"}"), "{}", text(1));
        assert!(!played.story.transcript().contains("looking"), "the truncated part is not recorded");
    }
}

#[tokio::test]
async fn call_with_truncated_arguments_never_runs() {
    let played = play(chat(&server(), "cut-call")).await;

    assert_recovered(&played, ModelErrorKind::Connection);
}

#[tokio::test]
async fn broken_connection_is_reopened() {
    for name in ["disconnected", "disconnected-later"] {
        let played = play(chat(&server(), name)).await;

        assert_recovered(&played, ModelErrorKind::Connection);
    }
}

#[tokio::test]
async fn invalid_json_answer_is_requested_again() {
    let played = play(chat(&server(), "garbled")).await;

    assert_recovered(&played, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn invalid_calls_get_errors_and_the_model_continues() {
    let name = "malformed-arguments";
    let tap = Tap::on(&server()).await;

    let played = play(chat(tap.address(), name)).await;

    insta::assert_snapshot!(played.story.transcript(), @r#"
    # Chat
    user: Where are my orders 17 and 4? – “Zoë”

    look_up_order("{\"number\": 17") -> Error: the arguments are not valid JSON: EOF while parsing an object at line 1 column 13
    look_up_order({"number":17}) -> {"number":17,"status":"sent"}
    look_up_order({"number":"seventeen"}) -> Error: the arguments do not match the schema: at `/number`: "seventeen" is not of type "integer"
    delete everything({}) -> Error: there is no tool `delete everything`; the tools are `docs_search`, `look_up_order`, `resolve`
    resolve({"summary":"Done."}) -> closed
    = {"type":"exited","tool":"resolve"}
    "#);
    assert_eq!(*played.story.settled(), Settled::Completed(json!({"orders": [17], "resolution": "Done."})));
    let started: Vec<_> = played
        .story
        .log()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::LoopToolStart { .. }))
        .map(|event| event.path.to_string())
        .collect();
    assert_eq!(started, ["Chat/0.1", "Chat/1.0"], "only calls that fit ran");
    let sent = tap.bodies();
    assert_eq!(sent, rebuilt(&played.story, &chat(tap.address(), name)));
    let second: serde_json::Value = serde_json::from_str(&sent[1]).unwrap();
    for call in second["messages"][2]["tool_calls"].as_array().unwrap() {
        let name = call["function"]["name"].as_str().unwrap();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        assert!(name.chars().all(fits), "providers refuse other names, even from their own models: {name}");
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(
            serde_json::from_str::<serde_json::Value>(arguments).is_ok(),
            "servers parse what goes back: {arguments}"
        );
    }
}

#[tokio::test]
async fn slow_first_token_is_waited_for() {
    let played = play(chat(&server(), "slow-for-the-patient")).await;

    assert!(matches!(played.story.settled(), Settled::Completed(_)), "{:?}", played.story.settled());
    assert!(retries(&played.story).is_empty());
    let first_chunk = played.story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopModelResult { metadata, .. } => metadata.first_chunk,
        _ => None,
    });
    assert!(first_chunk >= Some(Duration::from_millis(600)), "{first_chunk:?}");
}

#[tokio::test]
async fn too_slow_first_token_is_a_timeout() {
    let played = play(impatient(&server(), "slow-at-first", Duration::from_millis(250))).await;

    let retry = assert_recovered(&played, ModelErrorKind::Timeout);
    assert!(retry.error.message.contains("250ms"), "{}", retry.error);
}
