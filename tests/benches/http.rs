//! A conversation of tool iterations over HTTP, played by a bare `reqwest` loop and by Positronic against the same mock
//! server.
//!
//! `cargo bench -p positronic-tests --bench http` prints, for 50 and 200 iterations, with and without streaming, the wall time
//! of both and the median of their ratio, in pairs. On a noisy machine, count instructions:
//! `scripts/count_instructions.sh` runs single conversations (`http bare|ours whole|stream ITERATIONS ADDRESS`) under
//! callgrind; the server is a separate process and is not counted.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints its figures, and stops at an error"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use positronic_core::prelude::*;
use positronic_openai::{OpenAiChat, OpenAiConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

const SYSTEM: &str = "You take notes, one an iteration, until there is nothing left to note.";

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match words.as_slice() {
        ["serve"] => runtime.block_on(serve()),
        [player, way, iterations, address] => {
            runtime.block_on(play(player, *way == "stream", iterations.parse().unwrap(), address));
        }
        _ => compare(&runtime),
    }
}

async fn play(player: &str, stream: bool, iterations: u32, address: &str) {
    let address = &format!("{address}/{iterations}");
    match player {
        "bare" => bare(stream, iterations, address).await,
        _ => ours(stream, iterations, address).await,
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn compare(runtime: &tokio::runtime::Runtime) {
    let (mut server, address) = server();
    println!("{:<8} {:<7} {:>12} {:>12} {:>7}", "iterations", "way", "bare ms/req", "ours ms/req", "ratio");
    for iterations in [50, 200] {
        for (way, stream) in [("whole", false), ("stream", true)] {
            let mut pairs = Vec::new();
            for _ in 0..9 {
                let time = |player| {
                    let begun = Instant::now();
                    runtime.block_on(play(player, stream, iterations, &address));
                    begun.elapsed().as_secs_f64() * 1000.0 / f64::from(iterations + 1)
                };
                pairs.push((time("bare"), time("ours")));
            }
            let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
                let mut all: Vec<f64> = pairs.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            let (bare, ours, ratio) = (median(&|pair| pair.0), median(&|pair| pair.1), median(&|pair| pair.1 / pair.0));
            println!("{iterations:<8} {way:<7} {bare:>12.3} {ours:>12.3} {ratio:>7.2}");
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
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

/// The loop without a framework: a growing list of messages, sent completely each time.
async fn bare(stream: bool, iterations: u32, address: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let tools = json!([{"type": "function", "function": {
        "name": "note", "description": "Notes a line",
        "parameters": {"type": "object", "properties": {"text": {"type": "string", "description": "What to note."}}, "required": ["text"]},
    }}]);
    let mut messages = vec![json!({"role": "system", "content": SYSTEM}), json!({"role": "user", "content": "Begin."})];
    let mut noted = 0;
    loop {
        let body = Request {
            model: "mock",
            messages: &messages,
            tools: &tools,
            stream: stream.then_some(true),
            stream_options: stream.then(|| json!({"include_usage": true})),
        };
        let response = client.post(format!("{address}/chat/completions")).json(&body).send().await.unwrap();
        let message = if stream { streamed(response).await } else { json_body(response).await };
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        messages.push(message);
        if calls.is_empty() {
            break;
        }
        for call in calls {
            let note: Note = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            messages
                .push(json!({"role": "tool", "tool_call_id": call["id"], "content": format!("noted: {}", note.text)}));
            noted += 1;
        }
    }
    assert_eq!(noted, iterations);
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

async fn ours(stream: bool, iterations: u32, address: &str) {
    let config = OpenAiConfig::builder().base_url(address).api_key("none").model("mock").stream(stream).build();
    let brain = brain("Worker").r#loop("Work", |cx| {
        cx.system(SYSTEM).input("Begin.").unlimited().tool("note", |t| {
            t.description("Notes a line").execute(async |Note { text }, _| Ok(format!("noted: {text}")))
        })
    });
    let runner = Runner::new(OpenAiChat::new(config).unwrap());
    let run = runner.start(&brain, ()).await.unwrap();
    run.result().await.unwrap();
    let noted = run.prompts().iter().flat_map(|prompt| &prompt.output).filter(|output| is_call(output)).count();
    assert_eq!(noted, iterations as usize);
}

fn is_call(output: &positronic_core::record::Output) -> bool {
    matches!(output.kind, positronic_core::record::OutputKind::Tool(_))
}

/// Starts the mock server as a separate process.
fn server() -> (Child, String) {
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own).arg("serve").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

/// Answers every request with one call, until the conversation has as many results as the first part of the request's
/// path requires.
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
        let iterations: usize = path.split('/').find_map(|part| part.parse().ok()).unwrap();
        let answer = answer(body.matches(r#""tool_call_id""#).count(), iterations, body.contains(r#""stream":true"#));
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(done: usize, iterations: usize, stream: bool) -> String {
    let usage = json!({"prompt_tokens": 100 + done, "completion_tokens": 20, "total_tokens": 120 + done});
    let head = |object| json!({"id": format!("answer-{done}"), "object": object, "created": 1, "model": "mock"});
    let arguments = format!(r#"{{"text":"line {done} of a log that goes on and on"}}"#);
    let finish = if done < iterations { "tool_calls" } else { "stop" };
    let (kind, body) = if stream {
        let mut chunks = Vec::new();
        let mut push = |choices: Value, usage: Value| {
            let mut chunk = head("chat.completion.chunk");
            chunk["choices"] = choices;
            chunk["usage"] = usage;
            chunks.push(format!("data: {chunk}\n\n"));
        };
        if done < iterations {
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            push(
                json!([{"index": 0, "delta": {"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": format!("call-{done}"), "type": "function", "function": {"name": "note", "arguments": first}}]}, "finish_reason": null}]),
                Value::Null,
            );
            push(
                json!([{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": rest}}]}, "finish_reason": null}]),
                Value::Null,
            );
        } else {
            push(
                json!([{"index": 0, "delta": {"role": "assistant", "content": "Done."}, "finish_reason": null}]),
                Value::Null,
            );
        }
        push(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null);
        push(json!([]), usage);
        chunks.push("data: [DONE]\n\n".to_owned());
        ("text/event-stream", chunks.concat())
    } else {
        let message = if done < iterations {
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call-{done}"), "type": "function", "function": {"name": "note", "arguments": arguments}}]})
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
