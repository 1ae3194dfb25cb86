//! Live streams: no gap, no duplicate, and an end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::prelude::*;
use positronic_core::record::{DeltaKind, ModelError, ModelRequest, ModelResponse, Part, Seq};
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope, Shutdown, Token};
use serde_json::{Value, json};

use crate::support::{Frame, Frames, Shop};

fn seqs(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

#[tokio::test]
async fn follower_that_reconnects_at_any_event_gets_each_event_once_and_then_204() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/events");
    let (status, mut live) = shop.stream(&token, &path, None).await;
    assert_eq!(status, StatusCode::OK);
    let mut frames = Vec::new();
    while let Some(frame) = live.next().await {
        let has_settled = frame.event == "settled";
        frames.push(frame);
        if has_settled {
            break;
        }
    }

    shop.post(&token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;
    frames.extend(live.all().await);

    let next = shop.client.store().run(&run).await.unwrap().next;
    assert_eq!(seqs(&frames), (0..next.0).collect::<Vec<_>>());
    assert_eq!(frames.last().unwrap().event, "end");
    assert!(
        frames
            .iter()
            .all(|frame| frame.id.is_some() != matches!(&*frame.event, "delta" | "partial" | "settled" | "end"))
    );
    for last in 0..next.0 - 1 {
        let (_, rest) = shop.stream(&token, &path, Some(&last.to_string())).await;
        assert_eq!(seqs(&rest.all().await), (last + 1..next.0).collect::<Vec<_>>());
        let (_, rest) = shop.stream(&token, &format!("{path}?after={last}"), None).await;
        assert_eq!(seqs(&rest.all().await), (last + 1..next.0).collect::<Vec<_>>());
    }
    let (status, _) = shop.stream(&token, &path, Some(&(next.0 - 1).to_string())).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn client_that_is_ahead_of_the_log_or_sends_an_empty_id_gets_all_of_it() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    shop.post(&token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;
    shop.end(&run).await;
    let next = shop.client.store().run(&run).await.unwrap().next;
    let ahead = next.0.to_string();
    for (last, query) in [("", ""), (" ", ""), ("999", ""), (&*ahead, ""), ("", "?after=999")] {
        let (status, frames) = shop.stream(&token, &format!("/api/v1/runs/{run}/events{query}"), Some(last)).await;
        assert_eq!(status, StatusCode::OK, "{last:?}{query}");
        assert_eq!(seqs(&frames.all().await), (0..next.0).collect::<Vec<_>>(), "{last:?}{query}");
        let (status, frames) = shop.stream(&token, &format!("/api/v1/runs/{run}/timeline{query}"), Some(last)).await;
        assert_eq!(status, StatusCode::OK, "{last:?}{query}");
        assert!(frames.all().await[0].data.contains("\"nodes\":[{"), "{last:?}{query}");
    }
    let (status, _) = shop.stream(&token, &format!("/api/v1/runs/{run}/events"), Some("one")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

/// Replaces nodes as a page does.
fn replace(view: &mut Vec<Value>, frame: &Frame) {
    let data: Value = serde_json::from_str(&frame.data).unwrap();
    assert_eq!(data["seq"].as_u64(), frame.id);
    for node in data["nodes"].as_array().unwrap() {
        let id = node["id"].as_u64().unwrap() as usize;
        if id < view.len() {
            view[id] = node.clone();
        } else {
            assert_eq!(id, view.len(), "a node is missing");
            view.push(node.clone());
        }
    }
}

#[tokio::test]
async fn view_that_follows_the_nodes_equals_the_timeline_from_any_reconnect_on() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/timeline");
    let early = shop.get(&token, &path).await.json();
    let (_, mut live) = shop.stream(&token, &path, None).await;
    let first = live.next().await.unwrap();

    shop.post(&token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;
    let mut frames = vec![first];
    frames.extend(live.all().await);

    let whole = shop.get(&token, &path).await.json();
    let mut view = Vec::new();
    frames.iter().filter(|frame| frame.event == "nodes").for_each(|frame| replace(&mut view, frame));
    assert_eq!(json!(view), whole["timeline"]["nodes"]);

    // A page that has read the timeline and then connects.
    let mut view = early["timeline"]["nodes"].as_array().unwrap().clone();
    let (_, rest) = shop.stream(&token, &path, Some(&early["head"].to_string())).await;
    for frame in rest.all().await.iter().filter(|frame| frame.event == "nodes") {
        replace(&mut view, frame);
    }
    assert_eq!(json!(view), whole["timeline"]["nodes"]);
    let (status, _) = shop.stream(&token, &path, Some(&whole["head"].to_string())).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn rows_are_streamed_when_they_change_to_those_who_see_them() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &[Scope::Read, Scope::Run]).await;
    let (_, mut of_ann) = shop.stream(&ann, "/api/v1/stream", None).await;
    let (_, mut of_ben) = shop.stream(&ben, "/api/v1/stream", None).await;
    let (first, _) = shop.waiting_run(&ann, 1).await;
    let (second, _) = shop.waiting_run(&ben, 2).await;

    let row = |frame: Frame| serde_json::from_str::<Value>(&frame.data).unwrap();
    assert_eq!(row(of_ann.next().await.unwrap())["id"], first.as_str());
    assert_eq!(row(of_ben.next().await.unwrap())["id"], second.as_str());
}

#[tokio::test]
async fn streams_of_a_caller_are_limited_and_end_at_the_shutdown() {
    let shutdown = Shutdown::default();
    let shop = Shop::open(|runner| Options::builder().brains(runner).max_streams(2).shutdown(shutdown.clone()).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let path = format!("/api/v1/runs/{run}/events");

    let (_, one) = shop.stream(&token, &path, None).await;
    let (_, other) = shop.stream(&token, &path, None).await;
    assert_eq!(shop.stream(&token, &path, None).await.0, StatusCode::TOO_MANY_REQUESTS);
    drop(other);
    let (status, _again) = shop.stream(&token, &path, None).await;
    assert_eq!(status, StatusCode::OK);

    shutdown.begin();

    let frames = one.all().await;
    assert!(frames.iter().all(|frame| frame.event != "end"), "{frames:?}");
}

#[tokio::test]
async fn answer_to_a_message_is_streamed_from_the_message_on() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please." });
    let mut request = crate::support::request(&token, "POST", "/api/v1/conversations/chat-1/messages", Some(said));
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());

    let mut frames = shop.frames(request).await;

    let mut seen = Vec::new();
    while let Some(frame) = frames.next().await {
        seen.push(frame.event.clone());
        if frame.event == "settled" {
            break;
        }
    }
    assert_eq!(seen.first().map(String::as_str), Some("BRAIN_START"));
    assert!(seen.iter().any(|event| event == "LOOP_APPROVAL_REQUESTED"), "{seen:?}");
    assert!(shop.client.store().runs(&positronic_core::store::RunFilter::default()).await.unwrap()[0].next > Seq(3));
}

#[tokio::test(start_paused = true)]
async fn stream_ends_after_its_token_is_revoked() {
    let shop = Shop::new();
    let tokens = [shop.token(Some("ann"), &[Scope::Read]).await, shop.token(Some("ben"), &[Scope::Read]).await];
    let (_, of_ann) = shop.stream(&tokens[0], "/api/v1/stream", None).await;
    let (_, mut of_ben) = shop.stream(&tokens[1], "/api/v1/stream", None).await;
    let revoked = Token::list(&shop.client).await.unwrap().into_iter().find(|token| token.subject == "ann").unwrap();

    Token::revoke(&shop.client, &revoked.id).await.unwrap();

    let frames = tokio::time::timeout(Duration::from_mins(1), of_ann.all()).await;
    assert_eq!(frames.expect("the stream ends"), []);
    let open = tokio::time::timeout(Duration::from_mins(1), of_ben.next()).await;
    assert!(open.is_err(), "the other stream stays open");
}

#[tokio::test(start_paused = true)]
async fn stream_ends_when_its_token_expires() {
    use positronic_core::runner::{Clock as _, SystemClock};

    let shop = Shop::new();
    let expires = SystemClock.now().after(Duration::from_hours(1));
    let token = Token::builder().subject("ann").scopes([Scope::Read]).created(positronic_core::record::Timestamp(0));
    let (_, token) = Token::create(&shop.client, token.expires(Some(expires)).build()).await.unwrap();
    let (_, mut frames) = shop.stream(&token, "/api/v1/stream", None).await;
    let began = tokio::time::Instant::now();

    let end = tokio::time::timeout(Duration::from_hours(2), frames.ended()).await;

    end.expect("the stream ends");
    assert!((3500..3700).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn long_answers_count_as_streams() {
    let shop = Shop::open(|runner| Options::builder().brains(runner).max_streams(1).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let (_, open) = shop.stream(&token, "/api/v1/stream", None).await;
    let lines = || {
        let mut lines = crate::support::request(&token, "GET", &format!("/api/v1/runs/{run}/events"), None);
        lines.headers_mut().insert("accept", "application/x-ndjson".parse().unwrap());
        shop.send(lines)
    };

    assert_eq!(lines().await.problem(), "too-many-streams");
    drop(open);
    assert_eq!(lines().await.status, StatusCode::OK);
    assert_eq!(lines().await.status, StatusCode::OK, "the place is free again");
}

/// A model that stops in the middle of its answer.
struct Halting {
    /// Whether it begins only once the run has a reader.
    needs_reader: bool,
    /// Says that it has stopped.
    halts: Arc<tokio::sync::Semaphore>,
    /// Lets it continue.
    gate: Arc<tokio::sync::Semaphore>,
}

impl Halting {
    /// Starts a run whose model stops, and returns its shop, its token, the path of its timeline, and what says that it stops and lets it continue.
    async fn run(needs_reader: bool) -> (Shop, String, String, [Arc<tokio::sync::Semaphore>; 2]) {
        let [halts, gate] = [(), ()].map(|()| Arc::new(tokio::sync::Semaphore::new(0)));
        let model = Self { needs_reader, halts: Arc::clone(&halts), gate: Arc::clone(&gate) };
        let talk = brain("Talk").r#loop("Chat", |cx| cx.system("Count."));
        let runner = Runner::new(model).store(MemoryStore::new()).brain(talk);
        let shop = Shop::of(runner, |runner| Options::builder().brains(runner).build());
        let token = shop.token(None, &Scope::ALL).await;
        let started = shop.post(&token, "/api/v1/runs", json!({ "brain": "Talk" })).await.json();
        let path = format!("/api/v1/runs/{}/timeline", started["id"].as_str().unwrap());
        (shop, token, path, [halts, gate])
    }
}

/// Reads a stream up to the text so far, and then the rest of it, which begins with the next piece.
async fn joins_in_the_middle(mut frames: Frames, gate: &tokio::sync::Semaphore) {
    let data = |frame: &Frame| serde_json::from_str::<Value>(&frame.data).unwrap();
    let mut text = String::new();
    while text != "One two " {
        let frame = frames.next().await.unwrap();
        if frame.event == "partial" {
            let partial = data(&frame);
            partial["pieces"][0]["text"].as_str().unwrap().clone_into(&mut text);
        }
    }
    gate.add_permits(1);
    let rest = frames.all().await;

    let pieces: Vec<_> = rest.iter().filter(|frame| frame.event == "delta").map(data).collect();
    assert_eq!((pieces.len(), &pieces[0]["n"], &pieces[0]["text"]), (1, &json!(2), &json!("three.")));
    assert_eq!(rest.last().unwrap().event, "end");
}

impl Model for Halting {
    fn name(&self) -> String {
        "test/halting".to_owned()
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let piece = |text: &str| {
                deltas.piece(Piece { part: 0, kind: DeltaKind::Text, call: None, tool: None, text: text.to_owned() });
            };
            while self.needs_reader && !deltas.has_reader() {
                tokio::task::yield_now().await;
            }
            piece("One ");
            piece("two ");
            self.halts.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
            piece("three.");
            let parts = vec![Part::Text { text: "One two three.".to_owned() }];
            Ok(ModelResponse { parts, ..ModelResponse::default() })
        })
    }
}

#[tokio::test]
async fn page_that_reloads_in_the_middle_of_an_answer_gets_its_text() {
    let (shop, token, path, [halts, gate]) = Halting::run(true).await;
    let (_, first) = shop.stream(&token, &path, None).await;
    halts.acquire().await.unwrap().forget();
    drop(first);

    let (_, again) = shop.stream(&token, &path, None).await;

    joins_in_the_middle(again, &gate).await;
}

#[tokio::test]
async fn first_page_that_opens_in_the_middle_of_an_answer_gets_its_text() {
    let (shop, token, path, [halts, gate]) = Halting::run(false).await;
    halts.acquire().await.unwrap().forget();

    let (_, first) = shop.stream(&token, &path, None).await;

    joins_in_the_middle(first, &gate).await;
}
