//! A scripted MCP server in this process, over a stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use positronic_mcp::{McpOptions, McpServer, McpStream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// The server's reaction to a call.
pub(crate) enum Act {
    /// Answers with a result.
    Result(Value),
    /// Answers with a protocol error.
    Error(i32, &'static str),
    /// Sends no answer.
    Silence,
    /// Exits.
    Die,
    /// Writes raw lines, with the `{id}` and `{token}` of the call.
    Lines(Vec<String>),
}

pub(crate) fn text(text: &str) -> Act {
    Act::Result(json!({"content": [{"type": "text", "text": text}]}))
}

type OnCall = dyn Fn(&str, &Value) -> Act + Send + Sync;

/// A server with the requests it has received. Clones are the same server.
#[derive(Clone)]
pub(crate) struct Fake(Arc<Inside>);

struct Inside {
    tools: Mutex<Vec<Value>>,
    /// Number of tools per page.
    page: AtomicUsize,
    /// Whether the second page names itself as the next one.
    is_stuck: AtomicUsize,
    on_call: Box<OnCall>,
    seen: Mutex<Vec<Value>>,
    connections: AtomicUsize,
    /// Number of connections still to refuse.
    refused: AtomicUsize,
    /// Whether the server sends no answers at all.
    is_mute: AtomicUsize,
    to_all: Mutex<Vec<tokio::sync::mpsc::UnboundedSender<String>>>,
}

/// A tool that accepts any text.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "inputSchema": {
        "type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": false,
    }})
}

impl Fake {
    pub(crate) fn new(
        tools: impl IntoIterator<Item = Value>,
        on_call: impl Fn(&str, &Value) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inside {
            tools: Mutex::new(tools.into_iter().collect()),
            page: AtomicUsize::new(2),
            is_stuck: AtomicUsize::new(0),
            on_call: Box::new(on_call),
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            is_mute: AtomicUsize::new(0),
            to_all: Mutex::default(),
        }))
    }

    pub(crate) fn stream(&self) -> McpStream {
        let fake = self.clone();
        McpStream::new(move || {
            let fake = fake.clone();
            async move { fake.open() }
        })
    }

    pub(crate) fn server(&self, options: McpOptions) -> McpServer {
        McpServer::new("desk", self.stream(), options).unwrap()
    }

    /// Names the second page as the next one, also in the second page.
    pub(crate) fn stay_at_the_second_page(&self) {
        self.0.is_stuck.store(1, Ordering::SeqCst);
    }

    /// Refuses the next `n` connections.
    pub(crate) fn refuse(&self, times: usize) {
        self.0.refused.store(times, Ordering::SeqCst);
    }

    /// Returns the number of connections still to refuse.
    pub(crate) fn refuses(&self) -> usize {
        self.0.refused.load(Ordering::SeqCst)
    }

    /// Sends nothing from now on, not even a ping response.
    pub(crate) fn be_mute(&self, is_mute: bool) {
        self.0.is_mute.store(usize::from(is_mute), Ordering::SeqCst);
    }

    pub(crate) fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// Changes the list of tools and sends a notification.
    pub(crate) fn change_list(&self, tools: impl IntoIterator<Item = Value>) {
        *self.0.tools.lock().unwrap() = tools.into_iter().collect();
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string();
        self.0.to_all.lock().unwrap().retain(|to| to.send(news.clone()).is_ok());
    }

    /// Returns the received messages of a method.
    pub(crate) fn seen(&self, method: &str) -> Vec<Value> {
        self.0.seen.lock().unwrap().iter().filter(|message| message["method"] == method).cloned().collect()
    }

    fn open(&self) -> std::io::Result<(tokio::io::ReadHalf<DuplexStream>, tokio::io::WriteHalf<DuplexStream>)> {
        let refused = &self.0.refused;
        if refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(std::io::Error::other("the desk is closed"));
        }
        self.0.connections.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(self.clone().serve(far));
        Ok(tokio::io::split(near))
    }

    async fn serve(self, stream: DuplexStream) {
        let (reading, mut writing) = tokio::io::split(stream);
        let mut lines = BufReader::new(reading).lines();
        let (to, mut unasked) = tokio::sync::mpsc::unbounded_channel();
        self.0.to_all.lock().unwrap().push(to);
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line,
                news = unasked.recv() => {
                    writing.write_all(format!("{}\n", news.unwrap()).as_bytes()).await.unwrap();
                    continue;
                }
            };
            let Ok(Some(line)) = line else { return };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.0.seen.lock().unwrap().push(message.clone());
            if message.get("id").is_none() || self.0.is_mute.load(Ordering::SeqCst) > 0 {
                continue;
            }
            let Some(answer) = self.answer(&message) else { return };
            // The client has disconnected and does not need the rest.
            _ = writing.write_all(answer.as_bytes()).await;
        }
    }

    /// Answers a request; `None` ends the connection.
    fn answer(&self, message: &Value) -> Option<String> {
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fake", "version": "1.2"},
                "instructions": "Knock first.",
            }),
            "ping" => json!({}),
            "tools/list" => self.list(&params["cursor"]),
            "tools/call" => match (self.0.on_call)(params["name"].as_str().unwrap(), &params["arguments"]) {
                Act::Result(result) => result,
                Act::Error(code, text) => {
                    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
                    return Some(format!("{error}\n"));
                }
                Act::Silence => return Some(String::new()),
                Act::Die => return None,
                Act::Lines(lines) => {
                    let token = params["_meta"]["progressToken"].to_string();
                    let lines =
                        lines.iter().map(|line| line.replace("{id}", &id.to_string()).replace("{token}", &token));
                    return Some(lines.map(|line| line + "\n").collect());
                }
            },
            other => panic!("unexpected request {other}"),
        };
        Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})))
    }

    fn list(&self, cursor: &Value) -> Value {
        let tools = self.0.tools.lock().unwrap();
        let page = self.0.page.load(Ordering::SeqCst);
        let from: usize = cursor.as_str().map_or(0, |cursor| cursor.parse().unwrap());
        let to = (from + page).min(tools.len());
        let mut result = json!({"tools": tools[from..to]});
        if to < tools.len() {
            let next = if self.0.is_stuck.load(Ordering::SeqCst) > 0 { page } else { to };
            result["nextCursor"] = json!(next.to_string());
        }
        result
    }
}
