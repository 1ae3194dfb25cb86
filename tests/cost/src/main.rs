//! A conversation of tool calls over HTTP, played by a bare `reqwest` loop and by Positronic against the same mock server.
//!
//! `scripts/cost` prints the table of `BENCHMARKS.md`: it plays conversations in processes of their own, in interleaved
//! pairs, and counts instructions and allocations with valgrind. The mock server is a process of its own and is not
//! counted. This program is one player:
//!
//! ```text
//! positronic-cost serve                        prints its address
//! positronic-cost PLAYER ADDRESS [key=value …] PLAYER is `bare` or `ours`
//!   rounds=50       answers with calls
//!   calls=1         calls of each such answer
//!   stream=no       whether answers are streamed
//!   store=none      `none`, `process` or `power`: a SQLite file that survives a crash of the process, or a loss of power
//!   repeat=1        conversations, one after the other
//!   at_once=1       conversations at once
//! ```

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a benchmark stops at an error")]

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use positronic_core::prelude::*;
use positronic_openai::{OpenAiChat, OpenAiConfig};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

/// How many calls Positronic's tool has got.
static NOTED: AtomicUsize = AtomicUsize::new(0);

const SYSTEM: &str = "You take notes until there is nothing left to note.";

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

/// What a player plays.
#[derive(Clone)]
struct Play {
    address: String,
    rounds: usize,
    calls: usize,
    stream: bool,
    store: String,
    repeat: usize,
    at_once: usize,
}

impl Play {
    fn of(address: &str, words: &[String]) -> Self {
        let text = |key: &str, default: &str| {
            let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            value.unwrap_or(default).to_owned()
        };
        let number = |key: &str, default: &str| text(key, default).parse().unwrap();
        let (rounds, calls) = (number("rounds", "50"), number("calls", "1"));
        Self {
            address: format!("{address}/{rounds}/{calls}"),
            rounds,
            calls,
            stream: text("stream", "no") == "yes",
            store: text("store", "none"),
            repeat: number("repeat", "1"),
            at_once: number("at_once", "1"),
        }
    }

    /// Returns the durability of its store; `None` for a run in memory.
    fn durability(&self) -> Option<Durability> {
        match self.store.as_str() {
            "none" => None,
            "process" => Some(Durability::ProcessCrash),
            _ => Some(Durability::PowerLoss),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match arguments.as_slice() {
        [serves] if serves == "serve" => runtime.block_on(serve()),
        [player, address, words @ ..] => {
            let play = Play::of(address, words);
            let folder = tempfile::tempdir_in(".").unwrap();
            let file = folder.path().join("log.db");
            match player.as_str() {
                "bare" => runtime.block_on(all(&play, bare(&play, &file))),
                _ => {
                    runtime.block_on(all(&play, ours(&play, &file)));
                    assert_eq!(NOTED.load(Ordering::Relaxed), play.rounds * play.calls * play.repeat * play.at_once);
                }
            }
        }
        _ => println!("scripts/cost runs this benchmark; see the head of tests/cost/src/main.rs"),
    }
}

/// Plays conversations in turn, so many at once.
async fn all<T: Future<Output = ()> + 'static>(play: &Play, one: impl Fn() -> T) {
    let local = tokio::task::LocalSet::new();
    for _ in 0..play.repeat {
        let batch: Vec<_> = (0..play.at_once).map(|_| local.spawn_local(one())).collect();
        local
            .run_until(async {
                for played in batch {
                    played.await.unwrap();
                }
            })
            .await;
    }
}

#[derive(serde::Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Value],
    tools: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

/// The log of a bare loop: a line for each append, written by hand.
struct BareLog(Connection);

impl BareLog {
    fn open(play: &Play, file: &std::path::Path) -> Option<Self> {
        let synchronous = match play.durability()? {
            Durability::ProcessCrash => "NORMAL",
            _ => "FULL",
        };
        let log = Connection::open(file).unwrap();
        let set_up = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; \
             CREATE TABLE IF NOT EXISTS log (run INTEGER, seq INTEGER, line TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID;"
        );
        log.execute_batch(&set_up).unwrap();
        Some(Self(log))
    }

    /// Writes messages in one transaction.
    fn append(&mut self, run: i64, first: usize, messages: &[Value]) {
        let transaction = self.0.transaction().unwrap();
        for (seq, message) in (first..).zip(messages) {
            let mut insert = transaction.prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3)").unwrap();
            insert.execute((run, i64::try_from(seq).unwrap(), message.to_string())).unwrap();
        }
        transaction.commit().unwrap();
    }
}

/// The loop without a framework: a growing list of messages, sent completely each time. A durable one appends each
/// answer and the results of its calls.
fn bare(play: &Play, file: &std::path::Path) -> impl Fn() -> futures::future::LocalBoxFuture<'static, ()> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let log = std::rc::Rc::new(std::cell::RefCell::new(BareLog::open(play, file)));
    let runs = std::rc::Rc::new(std::cell::Cell::new(0));
    let play = play.clone();
    move || {
        let (play, client, log) = (play.clone(), client.clone(), std::rc::Rc::clone(&log));
        runs.set(runs.get() + 1);
        let run = runs.get();
        Box::pin(async move {
            let append = |first: usize, messages: &[Value]| {
                if let Some(log) = &mut *log.borrow_mut() {
                    log.append(run, first, messages);
                }
            };
            let tools = json!([{"type": "function", "function": {
                "name": "note", "description": "Notes a line",
                "parameters": {"type": "object", "properties": {"text": {"type": "string", "description": "What to note."}}, "required": ["text"]},
            }}]);
            let mut messages =
                vec![json!({"role": "system", "content": SYSTEM}), json!({"role": "user", "content": "Begin."})];
            append(0, &messages);
            let mut noted = 0;
            loop {
                let body = Request {
                    model: "mock",
                    messages: &messages,
                    tools: &tools,
                    stream: play.stream.then_some(true),
                    stream_options: play.stream.then(|| json!({"include_usage": true})),
                };
                let request = client.post(format!("{}/chat/completions", play.address)).json(&body);
                let response = request.send().await.unwrap();
                let message = if play.stream { streamed(response).await } else { json_body(response).await };
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                messages.push(message);
                append(messages.len() - 1, &messages[messages.len() - 1..]);
                if calls.is_empty() {
                    break;
                }
                let first = messages.len();
                for call in calls {
                    let note: Note = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                    let result = format!("noted: {}", note.text);
                    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
                    noted += 1;
                }
                append(first, &messages[first..]);
            }
            assert_eq!(noted, play.rounds * play.calls);
        })
    }
}

async fn json_body(response: reqwest::Response) -> Value {
    let mut answer: Value = response.json().await.unwrap();
    answer["choices"][0]["message"].take()
}

async fn streamed(mut response: reqwest::Response) -> Value {
    let (mut text, mut calls, mut buffer) = (String::new(), Vec::<Value>::new(), Vec::new());
    while let Some(bytes) = response.chunk().await.unwrap() {
        buffer.extend_from_slice(&bytes);
        while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = buffer.drain(..end + 2).collect();
            let data = event.strip_prefix(b"data: ").unwrap().trim_ascii_end();
            if data == b"[DONE]" {
                continue;
            }
            let chunk: Value = serde_json::from_slice(data).unwrap();
            let delta = &chunk["choices"][0]["delta"];
            text.push_str(delta["content"].as_str().unwrap_or_default());
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                if call["id"].is_string() {
                    calls.push(call.clone());
                } else {
                    let known = calls.last_mut().unwrap();
                    let more = call["function"]["arguments"].as_str().unwrap();
                    let arguments = format!("{}{more}", known["function"]["arguments"].as_str().unwrap());
                    known["function"]["arguments"] = json!(arguments);
                }
            }
        }
    }
    match calls.is_empty() {
        true => json!({"role": "assistant", "content": text}),
        false => json!({"role": "assistant", "content": null, "tool_calls": calls}),
    }
}

fn ours(play: &Play, file: &std::path::Path) -> impl Fn() -> futures::future::LocalBoxFuture<'static, ()> {
    let config =
        OpenAiConfig::builder().base_url(&play.address).api_key("none").model("mock").stream(play.stream).build();
    let worker = brain("Worker")
        .r#loop("Work", |cx| {
            cx.system(SYSTEM).input("Begin.").unlimited().tool("note", |t| {
                t.description("Notes a line").execute(async |Note { text }, _| {
                    NOTED.fetch_add(1, Ordering::Relaxed);
                    Ok(format!("noted: {text}"))
                })
            })
        })
        .build();
    let mut runner = Runner::new(OpenAiChat::new(config).unwrap());
    if let Some(durability) = play.durability() {
        let options = SqliteOptions::builder().path(file).durability(durability).build();
        runner = runner.store(SqliteStore::with(options).unwrap());
    }
    move || {
        let (runner, worker) = (runner.clone(), worker.clone());
        Box::pin(async move {
            let run = runner.start(&worker, ()).await.unwrap();
            run.result().await.unwrap();
        })
    }
}

/// Answers requests with calls until the conversation has their results. The first two numbers in the path of a request
/// are how many answers have calls, and how many calls each.
async fn serve() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "http://{}", listener.local_addr().unwrap()).unwrap();
    out.flush().unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(converse(socket));
    }
}

async fn converse(socket: tokio::net::TcpStream) {
    socket.set_nodelay(true).unwrap();
    let (read, mut write) = socket.into_split();
    let mut read = tokio::io::BufReader::new(read);
    loop {
        let (mut length, mut line, mut path) = (0, String::new(), String::new());
        loop {
            line.clear();
            if read.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if path.is_empty() {
                line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        read.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        let numbers: Vec<usize> = path.split('/').filter_map(|part| part.parse().ok()).collect();
        let [rounds, calls] = *numbers.as_slice() else { return };
        let done = body.matches(r#""tool_call_id""#).count() / calls;
        let answer = answer(done, rounds, calls, body.contains(r#""stream":true"#));
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(done: usize, rounds: usize, calls: usize, stream: bool) -> String {
    let usage = json!({"prompt_tokens": 100 + done, "completion_tokens": 20, "total_tokens": 120 + done});
    let head = |object| json!({"id": format!("answer-{done}"), "object": object, "created": 1, "model": "mock"});
    let call = |index: usize, arguments: &str| {
        let arguments = json!({"name": "note", "arguments": arguments});
        json!({"index": index, "id": format!("call-{done}-{index}"), "type": "function", "function": arguments})
    };
    let arguments = format!(r#"{{"text":"line {done} of a log that goes on and on"}}"#);
    let finish = if done < rounds { "tool_calls" } else { "stop" };
    let (kind, body) = if stream {
        let mut chunks = Vec::new();
        let mut push = |choices: Value, usage: Value| {
            let mut chunk = head("chat.completion.chunk");
            chunk["choices"] = choices;
            chunk["usage"] = usage;
            chunks.push(format!("data: {chunk}\n\n"));
        };
        let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        if done < rounds {
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            for index in 0..calls {
                let begun = json!({"role": "assistant", "content": null, "tool_calls": [call(index, first)]});
                push(choice(begun, Value::Null), Value::Null);
                let more = json!({"tool_calls": [{"index": index, "function": {"arguments": rest}}]});
                push(choice(more, Value::Null), Value::Null);
            }
        } else {
            push(choice(json!({"role": "assistant", "content": "Done."}), Value::Null), Value::Null);
        }
        push(choice(json!({}), json!(finish)), Value::Null);
        push(json!([]), usage);
        chunks.push("data: [DONE]\n\n".to_owned());
        ("text/event-stream", chunks.concat())
    } else {
        let message = if done < rounds {
            let calls: Vec<_> = (0..calls).map(|index| call(index, &arguments)).collect();
            json!({"role": "assistant", "content": null, "tool_calls": calls})
        } else {
            json!({"role": "assistant", "content": "Done."})
        };
        let mut json_body = head("chat.completion");
        json_body["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        json_body["usage"] = usage;
        ("application/json", json_body.to_string())
    };
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
