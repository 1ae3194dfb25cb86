//! Large bodies and answers: how many of one caller are in memory at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::{iter, pending};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, RunId, Signal, SignalId, SignalKind, UserMessage};
use positronic_core::store::MemoryStore;
use positronic_server::webhooks::{GitHub, Hook, Hooks, Slack, StandardWebhooks};
use positronic_server::{Listener, Options, Scope, Shutdown, redact_fields};
use positronic_store_suite::FaultyStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use crate::support::{Answer, Shop, refund, refunding, request};

const MIB: usize = 1 << 20;
/// The size of a body that takes a place.
const LARGE: usize = (64 << 10) + 1;

/// Starts a run that gets messages of so many bytes.
async fn run_with_messages(shop: &Shop, token: &str, sizes: &[usize]) -> RunId {
    let (run, _) = shop.waiting_run(token, 7).await;
    for (number, size) in sizes.iter().enumerate() {
        let kind = SignalKind::message(UserMessage::new("x".repeat(*size)));
        let signal = Signal { id: SignalId::new(format!("m{number}")), actor: Actor::default(), kind };
        shop.client.send(&run, signal).await.unwrap();
    }
    run
}

/// Sends a message to a conversation in pieces; the client of an unfinished one sends nothing more.
async fn upload(shop: &Shop, token: &str, bytes: usize, is_finished: bool) -> Answer {
    let begun = iter([Ok::<_, io::Error>(vec![b' '; bytes])]);
    let body = if is_finished { Body::from_stream(begun) } else { Body::from_stream(begun.chain(pending())) };
    let mut upload = request(token, "POST", "/api/v1/conversations/chat/messages", None);
    upload.headers_mut().insert("content-type", "application/json".parse().unwrap());
    *upload.body_mut() = body;
    shop.send(upload).await
}

#[tokio::test(start_paused = true)]
async fn large_bodies_of_a_caller_wait_for_each_other_and_keep_no_other_caller_waiting() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &[Scope::Run]).await, shop.token(Some("ben"), &[Scope::Run]).await);
    let begun = Instant::now();
    let late = async |token: &str, bytes: usize| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        (upload(&shop, token, bytes, true).await.problem(), begun.elapsed().as_secs())
    };

    let idle = join_all((0..3).map(|_| upload(&shop, &ann, LARGE, false)));
    let silent = join_all((0..10).map(|_| upload(&shop, &ben, 1, false)));
    let (idle, silent, own, small, other) =
        tokio::join!(idle, silent, late(&ann, LARGE), late(&ann, 1), late(&ben, LARGE));

    assert!(idle.iter().chain(&silent).all(|answer| answer.problem() == "timed-out"), "{idle:?}");
    assert_eq!(own, ("invalid-json".to_owned(), 10), "the unfinished ones make no progress");
    assert_eq!([small, other], [("invalid-json".to_owned(), 1), ("invalid-json".to_owned(), 1)]);
}

/// Opens a shop with an inbound webhook that strangers may use.
fn shop_with_hooks() -> Shop {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let hooks = Hooks::default()
        .add("open", Hook::unsigned())
        .add("orders", StandardWebhooks::new(secret).unwrap())
        .add("github", GitHub::new("It's a Secret to Everybody").unwrap())
        .add("slack", Slack::new("8f742231b10e8888abcd99yyyzzz85a5").unwrap());
    Shop::open(|runner| Options::builder().brains(runner).hooks(hooks).build())
}

/// Sends a body to a webhook from an address.
async fn deliver(shop: &Shop, path: &str, address: u8, body: Body) -> Answer {
    let mut delivery = request("", "POST", path, None);
    delivery.extensions_mut().insert(ConnectInfo(SocketAddr::from(([203, 0, 113, address], 4242))));
    *delivery.body_mut() = body;
    shop.send(delivery).await
}

#[tokio::test(start_paused = true)]
async fn body_of_an_unknown_webhook_or_without_a_signature_is_not_read() {
    let shop = shop_with_hooks();
    for path in ["unknown/T-1", "unknown", "orders/T-1", "github/T-1", "slack/T-1"] {
        let begun = Instant::now();
        // A client that never sends its body would be waited for.
        let body = Body::from_stream(pending::<io::Result<Vec<u8>>>());

        let answer = deliver(&shop, &format!("/api/v1/hooks/{path}"), 1, body).await;

        assert_eq!((&*answer.problem(), begun.elapsed()), ("bad-signature", Duration::ZERO), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn large_anonymous_bodies_wait_for_each_other_and_delay_no_caller() {
    let shop = shop_with_hooks();
    let ann = shop.token(Some("ann"), &[Scope::Run]).await;
    let begun = Instant::now();
    let unfinished = |bytes| Body::from_stream(iter([Ok::<_, io::Error>(vec![b' '; bytes])]).chain(pending()));
    let idle = async |address: u8| deliver(&shop, "/api/v1/hooks/open/T-1", address, unfinished(LARGE)).await.problem();
    let late = async |address: u8, bytes: usize| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = deliver(&shop, "/api/v1/hooks/open/T-1", address, Body::from(vec![b' '; bytes])).await;
        (answer.problem(), begun.elapsed().as_secs())
    };
    let of_caller = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        (upload(&shop, &ann, LARGE, true).await.problem(), begun.elapsed().as_secs())
    };

    // Two addresses hold all places of strangers.
    let idle = join_all([1, 1, 2, 2].map(idle));
    let (idle, large, small, of_caller) = tokio::join!(idle, late(3, LARGE), late(1, 100), of_caller);

    assert!(idle.iter().all(|problem| problem == "timed-out"), "{idle:?}");
    assert_eq!(large, ("payload-invalid".to_owned(), 10), "the unfinished ones make no progress");
    assert_eq!(small, ("payload-invalid".to_owned(), 1));
    assert_eq!(of_caller, ("invalid-json".to_owned(), 1));
}

#[tokio::test]
async fn bodies_with_many_values_are_refused_and_long_texts_are_not() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let send = async |body: &str| {
        let mut message = request(&token, "POST", "/api/v1/conversations/chat/messages", None);
        message.headers_mut().insert("content-type", "application/json".parse().unwrap());
        *message.body_mut() = Body::from(body.to_owned());
        shop.send(message).await
    };

    for values in ["{\"\":0},".repeat(25_000), "0,".repeat(50_000), "\"\\\"\",".repeat(50_000)] {
        let answer = send(&format!("[{values}0]")).await;
        assert_eq!((answer.status, &*answer.problem()), (StatusCode::PAYLOAD_TOO_LARGE, "too-large"), "{answer:?}");
        assert_eq!(answer.json()["max_values"], 50_000);
    }
    let text = "[{,\\\",".repeat(MIB);
    let message = format!("{{\"brain\":\"Refund\",\"options\":{{\"number\":1}},\"text\":\"{text}\"}}");
    assert_eq!(send(&message).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn anonymous_senders_send_small_bodies() {
    let shop = Shop::new();
    let begin = async |code: String| shop.post("", "/api/v1/session", json!({ "code": code })).await.problem();

    assert_eq!(begin("x".repeat(4000)).await, "unauthenticated");
    assert_eq!(begin("x".repeat(4100)).await, "too-large");
}

#[tokio::test]
async fn pages_and_lines_of_large_events_are_cut() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let run = run_with_messages(&shop, &token, &[MIB, MIB, 3 * MIB, 5 * MIB, 1, 3 * MIB, MIB / 2]).await;
    let head = shop.client.store().run(&run).await.unwrap().next.0 - 1;

    for (order, wanted) in [("asc", (0..=head).collect::<Vec<_>>()), ("desc", (0..=head).rev().collect())] {
        let path = format!("/api/v1/runs/{run}/events?limit=500&order={order}");
        let (mut seqs, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = shop.get(&token, &format!("{path}{cursor}")).await;
            let page = answer.json();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() == 1 || answer.text.len() < 4 * MIB + 1000, "{order}: {}", answer.text.len());
            seqs.extend(items.iter().map(|item| item["seq"].as_u64().unwrap()));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seqs, wanted);
    }

    let mut lines = request(&token, "GET", &format!("/api/v1/runs/{run}/events"), None);
    lines.headers_mut().insert("accept", "application/x-ndjson".parse().unwrap());
    let mut parts = shop.router.clone().oneshot(lines).await.unwrap().into_body().into_data_stream();
    let mut text = String::new();
    while let Some(part) = parts.next().await {
        let part = part.unwrap();
        assert!(part.len() < 5 * MIB + 100_000, "{}", part.len());
        text.push_str(std::str::from_utf8(&part).unwrap());
    }
    let seqs = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap());
    assert_eq!(seqs.collect::<Vec<_>>(), (0..=head).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn caller_gets_few_large_answers_at_once() {
    let slow = |method: &'static str| (method == "read").then_some(Duration::from_secs(1));
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).slowly(slow);
    let runner = Runner::new(refunding()).store(store).brain(refund());
    let shop = Shop::of(runner, |runner| Options::builder().brains(runner).build());
    let (ann, ben) = (shop.token(None, &Scope::ALL).await, shop.token(Some("ben"), &Scope::ALL).await);
    let (run, _) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}/events?limit=1&before=1");
    let begun = Instant::now();
    let read = async |token: &str| {
        assert_eq!(shop.get(token, &path).await.status, StatusCode::OK);
        begun.elapsed().as_secs()
    };

    let (own, other) = tokio::join!(join_all((0..8).map(|_| read(&ann))), read(&ben));

    assert_eq!((own, other), (vec![1, 1, 1, 1, 2, 2, 2, 2], 1));
}

#[tokio::test(start_paused = true)]
async fn large_answer_takes_a_place_until_it_is_sent() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let run = run_with_messages(&shop, &token, &[2 * MIB]).await;
    let get = || shop.router.clone().oneshot(request(&token, "GET", &format!("/api/v1/runs/{run}/timeline"), None));
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(get().await.unwrap());
    }
    assert_eq!(unread[0].status(), StatusCode::OK);

    assert!(timeout(Duration::from_secs(1), get()).await.is_err());
    drop(unread.pop());
    assert_eq!(get().await.unwrap().status(), StatusCode::OK);
    drop(unread);
    // A small answer takes no place once it is made.
    let path = format!("/api/v1/runs/{run}/events?limit=1");
    let small = join_all((0..9).map(|_| shop.router.clone().oneshot(request(&token, "GET", &path, None)))).await;
    assert_eq!(small.len(), 9);

    // A stream keeps its place until its first event, with all nodes, is sent.
    let open = async || {
        let mut request = request(&token, "GET", &format!("/api/v1/runs/{run}/timeline"), None);
        request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
        shop.frames(request).await
    };
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = open().await;
        assert_eq!(stream.next().await.unwrap().event, "nodes");
        streams.push(stream);
    }
    assert!(timeout(Duration::from_secs(1), open()).await.is_err());
    assert_eq!(streams[0].next().await.unwrap().event, "settled");
    assert_eq!(open().await.next().await.unwrap().event, "nodes");
}

/// Connects with a small buffer, requests a path and reads the first bytes of the answer.
async fn begin_answer(address: SocketAddr, token: &str, path: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8(status.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn large_answer_takes_a_place_until_the_client_reads_it() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let run = run_with_messages(&shop, &token, &[7 * MIB]).await;
    let path = format!("/api/v1/runs/{run}/timeline");
    for redacts in [false, true] {
        let shutdown = Shutdown::default();
        let options = Options::builder().shutdown(shutdown.clone());
        let options = if redacts { options.redact(redact_fields(["iban"])).build() } else { options.build() };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.address().unwrap();
        let server = tokio::spawn(listener.serve(shop.client.clone(), options));
        let mut unread = Vec::new();
        for _ in 0..4 {
            let (stream, status) = begin_answer(address, &token, &path).await;
            assert_eq!(status, "HTTP/1.1 200");
            unread.push(stream);
        }

        assert_eq!(begin_answer(address, &token, &path).await.1, "HTTP/1.1 504", "it waits for a place");
        drop(unread.pop());
        assert_eq!(begin_answer(address, &token, &path).await.1, "HTTP/1.1 200");
        drop(unread);
        shutdown.begin();
        server.await.unwrap();
    }
}

#[tokio::test]
async fn few_large_events_are_read_at_once() {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reads);
    let counted = move |method: &'static str| {
        count.fetch_add(usize::from(method == "read"), Ordering::Relaxed);
        None
    };
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).slowly(counted);
    let runner = Runner::new(refunding()).store(store).brain(refund());
    let shop = Shop::of(runner, |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let run = run_with_messages(&shop, &token, &[MIB; 12]).await;
    let after = shop.client.store().run(&run).await.unwrap().next.0 - 13;

    for accepted in ["application/x-ndjson", "application/json"] {
        let mut nothing = request(&token, "GET", &format!("/api/v1/runs/{run}/events?type=NONE&after={after}"), None);
        nothing.headers_mut().insert("accept", accepted.parse().unwrap());
        let before = reads.load(Ordering::Relaxed);
        assert!(!shop.send(nothing).await.text.contains("xxx"));
        let reads = reads.load(Ordering::Relaxed) - before;
        assert_eq!(reads, 4, "8, 1, 2 and the last one");
    }
}

/// Reads an address of the page without a token.
#[cfg(feature = "ui")]
async fn page(shop: &Shop, path: &str, address: u8) -> Answer {
    let mut read = request("", "GET", path, None);
    read.extensions_mut().insert(ConnectInfo(SocketAddr::from(([203, 0, 113, address], 4242))));
    shop.send(read).await
}

#[cfg(feature = "ui")]
#[tokio::test]
async fn page_without_a_token_is_small_at_every_address() {
    let shop = Shop::new();
    let usual = page(&shop, "/ui/runs/r-1/transcript", 1).await;
    assert_eq!(usual.status, StatusCode::OK);

    for path in ["/".repeat(60_000), "a/".repeat(1000), "a".repeat(60_000), "/".repeat(17)] {
        let answer = page(&shop, &format!("/ui/{path}"), 1).await;
        assert_eq!(answer.problem(), "not-found");
        assert!(answer.text.len() < 1000, "{}", answer.text.len());
    }
    let deepest = page(&shop, &format!("/ui/{}", "a/".repeat(13)), 1).await;
    assert!(deepest.text.len() < usual.text.len() + 1000, "{}", deepest.text.len());
}

#[cfg(feature = "ui")]
#[tokio::test]
async fn one_address_loads_the_page_only_so_often() {
    let shop = Shop::open(|runner| Options::builder().brains(runner).requests_per_minute(3).build());
    let statuses = async |address: u8| {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(page(&shop, "/ui", address).await.status.as_u16());
        }
        statuses
    };

    assert_eq!(statuses(1).await, [200, 200, 200, 429]);
    assert_eq!(statuses(2).await, [200, 200, 200, 429], "another address has its own limit");
    let api = page(&shop, "/openapi.json", 1).await;
    assert_eq!(api.status, StatusCode::OK, "the page uses up no requests to the API");
}
