//! llmock's verdict on its client: it plays faults from a queue, observes the reactions, and reports violations.
//!
//! The server has one queue and one record of requests, so these tests take turns.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::Model;
use positronic_core::record::{EventKind, ModelErrorKind};
use positronic_core::runner::Settled;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::address::address;
use crate::log::{rebuilt, retries};
use crate::support::{Played, chat, impatient, play, responses};

static TURN: Mutex<()> = Mutex::const_new(());

/// The server, with a queue of behaviours.
struct LlMock {
    server: String,
    client: reqwest::Client,
    _turn: MutexGuard<'static, ()>,
}

impl LlMock {
    async fn queue(behaviors: &[Value]) -> Self {
        let server = address("POSITRONIC_LLMOCK", ".ci/lanes");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mock = Self { server, client, _turn: TURN.lock().await };
        mock.post("reset", &json!({})).await;
        mock.post("scenario", &json!({ "behaviors": behaviors })).await;
        mock
    }

    async fn post(&self, what: &str, body: &Value) {
        let answer = self.client.post(format!("{}/_llmock/{what}", self.server)).json(body).send().await.unwrap();
        answer.error_for_status().unwrap();
    }

    async fn get(&self, what: &str) -> Value {
        let answer = self.client.get(format!("{}/_llmock/{what}", self.server)).send().await.unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }

    fn chat(&self) -> Arc<dyn Model> {
        Arc::new(chat(&self.server, "gpt-4o"))
    }

    fn responses(&self) -> Arc<dyn Model> {
        Arc::new(responses(&self.server, "gpt-4o"))
    }

    fn impatient(&self) -> Arc<dyn Model> {
        Arc::new(impatient(&self.server, "gpt-4o", Duration::from_millis(400)))
    }

    /// Plays the case, and asserts that the server reports no violation of its client, not even a warning.
    async fn play(&self, model: Arc<dyn Model>, faults: u64) -> Played {
        let played = play(Arc::clone(&model)).await;
        let verdict = self.get("verdict").await;
        assert_eq!(verdict["findings"], json!([]), "{verdict:#}");
        assert_eq!(verdict["passed"], true);
        assert_eq!(verdict["faults_injected"], faults, "{verdict:#}");
        let sent = rebuilt(&played.story, &model);
        assert_eq!(verdict["attempts"], sent.len());
        assert_eq!(self.get("scenario").await["pending"], json!([]), "everything in the queue was played");
        played
    }
}

fn look_up() -> Value {
    json!({"type": "reply", "tool_calls": [{"name": "look_up_order", "arguments": {"number": 17}}]})
}

fn resolve() -> Value {
    let call = json!({"name": "resolve", "arguments": {"summary": "Done."}});
    json!({"type": "reply", "text": "That was all.", "tool_calls": [call]})
}

fn kinds(played: &Played) -> Vec<ModelErrorKind> {
    retries(&played.story).iter().map(|retry| retry.error.kind).collect()
}

#[track_caller]
fn assert_solved(played: &Played) {
    let expected = Settled::Completed(json!({"orders": [17], "resolution": "Done."}));
    assert_eq!(*played.story.settled(), expected);
}

#[tokio::test]
async fn errors_are_waited_out() {
    let faults = [
        json!({"type": "fail", "status": 429, "retry_after": 0.3, "times": 2}),
        json!({"type": "fail", "status": 500}),
        look_up(),
        resolve(),
    ];
    for over_responses in [false, true] {
        let mock = LlMock::queue(&faults).await;

        let played = mock.play(if over_responses { mock.responses() } else { mock.chat() }, 3).await;

        assert_solved(&played);
        assert_eq!(kinds(&played), [ModelErrorKind::RateLimited, ModelErrorKind::RateLimited, ModelErrorKind::Server]);
        let asked: Vec<_> = retries(&played.story).iter().map(|retry| retry.error.retry_after).collect();
        assert_eq!(
            asked[..2],
            [Some(Duration::from_millis(300)); 2],
            "milliseconds are read where a server gives them"
        );
    }
}

#[tokio::test]
async fn broken_streams_are_requested_again() {
    for over_responses in [false, true] {
        for (fault, kind) in [
            ("truncate", ModelErrorKind::Truncated),
            ("disconnect", ModelErrorKind::Connection),
            ("malformed", ModelErrorKind::Malformed),
        ] {
            let fault = json!({"type": "stream_fault", "kind": fault, "after_chunks": 3});
            let mock = LlMock::queue(&[fault, look_up(), look_up(), resolve()]).await;

            let played = mock.play(if over_responses { mock.responses() } else { mock.chat() }, 1).await;

            assert_solved(&played);
            assert_eq!(kinds(&played), [kind]);
        }
    }
}

#[tokio::test]
async fn stalled_stream_is_abandoned_and_requested_again() {
    let stall = json!({"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 1.5});
    let mock = LlMock::queue(&[stall, look_up(), look_up(), resolve()]).await;

    let played = mock.play(mock.impatient(), 1).await;

    assert_solved(&played);
    assert_eq!(kinds(&played), [ModelErrorKind::Timeout]);
}

#[tokio::test]
async fn slow_first_token_is_waited_for_or_abandoned_as_configured() {
    let slow = json!({"type": "slow_first_token", "seconds": 0.8});
    let mock = LlMock::queue(&[slow.clone(), look_up(), resolve()]).await;
    let played = mock.play(mock.chat(), 0).await;
    assert_solved(&played);
    assert!(kinds(&played).is_empty());
    drop(mock);

    let mock = LlMock::queue(&[slow, look_up(), look_up(), resolve()]).await;
    let played = mock.play(mock.impatient(), 0).await;
    assert_solved(&played);
    assert_eq!(kinds(&played), [ModelErrorKind::Timeout]);
}

#[tokio::test]
async fn broken_calls_get_errors_and_the_model_continues() {
    for over_responses in [false, true] {
        let queue = [
            json!({"type": "tool_fault", "kind": "malformed_arguments"}),
            json!({"type": "tool_fault", "kind": "unknown_tool"}),
            look_up(),
            look_up(),
            look_up(),
            resolve(),
        ];
        let mock = LlMock::queue(&queue).await;

        let played = mock.play(if over_responses { mock.responses() } else { mock.chat() }, 0).await;

        assert_solved(&played);
        let transcript = played.story.transcript();
        assert!(transcript.contains("-> Error: the arguments are not valid JSON"), "{transcript}");
        assert!(transcript.contains("-> Error: there is no tool `llmock_unknown_tool`"), "{transcript}");
    }
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for status in [400, 401, 403, 404, 422] {
        let mock = LlMock::queue(&[json!({"type": "fail", "status": status})]).await;

        let played = mock.play(mock.chat(), 1).await;

        let Settled::Failed(failure) = played.story.settled() else { panic!("{:?}", played.story.settled()) };
        assert!(!failure.retryable, "{status}: {failure}");
    }
}

#[tokio::test]
async fn server_that_stays_down_is_abandoned_after_four_tries() {
    let mock = LlMock::queue(&[json!({"type": "fail", "status": 502, "times": 4})]).await;

    let played = mock.play(mock.chat(), 4).await;

    let Settled::Failed(failure) = played.story.settled() else { panic!("{:?}", played.story.settled()) };
    assert!(failure.retryable);
    let calls = played.story.log().iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    assert_eq!(calls.count(), 4);
}
