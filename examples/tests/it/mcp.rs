//! `mcp`: a client starts the command, and speaks to it over its standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::durable::Desk;

/// A client that accepts every form.
struct McpClient {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The texts of the forms.
    asked: Vec<String>,
}

impl McpClient {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let mut command = desk.command(arguments);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let mut client = Self { server, input, output, asked: Vec::new() };
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25", "clientInfo": info, "capabilities": { "elicitation": {} },
        });
        client.request("initialize", &params);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a request, and returns its result.
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the command has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "elicitation/create" {
                self.asked.push(message["params"]["message"].as_str().unwrap().to_owned());
                let result = json!({ "action": "accept", "content": { "approve": true } });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            } else if message["id"] == method {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Closes the streams, and returns the exit code.
    fn end(self) -> Option<i32> {
        let Self { mut server, input, .. } = self;
        drop(input);
        server.wait().unwrap().code()
    }
}

#[test]
fn client_calls_brains_and_its_user_approves() {
    let desk = Desk::new();
    let mut client = McpClient::start(&desk, &["mcp", "--brain", "Weather", "--brain", "Release"]);

    let tools = client.request("tools/list", &json!({}));
    let weather = client.call("Weather", &json!({}));
    client.call("Release", &json!({}));
    let asked = client.asked.clone();

    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Release", "Weather", "run_status"]);
    assert!(weather["content"][0]["text"].as_str().unwrap().contains("Ghent"), "{weather}");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].contains("May `deploy` run"), "{asked:?}");
    assert_eq!(client.end(), Some(0));
    let runs = desk.call(&["runs", "--json"]);
    let last: Value = serde_json::from_str(String::from_utf8_lossy(&runs.stdout).lines().next().unwrap()).unwrap();
    assert_eq!(
        (&last["brain"], &last["status"], &last["user"]),
        (&json!("Release"), &json!("completed"), &json!("ann"))
    );
}
