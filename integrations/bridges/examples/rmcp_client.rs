//! A client of MCP as a user of `rmcp`, the official library for Rust, writes it: it starts a command such as
//! `positronic-examples mcp`, lists its tools, and calls one, whose approval it asks for at the terminal or gives by itself with `--yes`.
//!
//! ```sh
//! cargo run -p positronic-bridges --example rmcp_client -- --yes Release Go positronic-examples mcp
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::process::Stdio;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation,
};
use rmcp::service::{RequestContext, ServiceExt as _};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;
use tokio::process::Command;

/// A person at the terminal.
struct Person {
    says_yes: bool,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("terminal", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        println!("asked: {message}");
        let approve = self.says_yes || asked_at_terminal();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "approve": approve })))
    }
}

/// Asks for a yes or a no.
fn asked_at_terminal() -> bool {
    eprint!("approve? [y/N] ");
    _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && line.trim() == "y"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    let says_yes = arguments.first().is_some_and(|first| first == "--yes");
    arguments.drain(..usize::from(says_yes));
    let [tool, message, command, rest @ ..] = arguments.as_slice() else {
        return Err("usage: rmcp_client [--yes] TOOL MESSAGE COMMAND [ARGUMENT]...".into());
    };

    let mut server = Command::new(command).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(output), Some(input)) = (server.stdout.take(), server.stdin.take()) else {
        return Err("the command has no standard streams".into());
    };
    let client = Person { says_yes }.serve((output, input)).await?;

    for listed in client.list_all_tools().await? {
        println!("tool: {}", listed.name);
    }
    let arguments = json!({ "message": message }).as_object().cloned().unwrap_or_default();
    let result = client.call_tool(CallToolRequestParams::new(tool.clone()).with_arguments(arguments)).await?;
    for block in &result.content {
        println!("result: {}", block.as_text().map_or("", |text| text.text.as_str()));
    }
    client.cancel().await?;
    let status = server.wait().await?;
    println!("server: {status}");
    if result.is_error == Some(true) { Err("the call has failed".into()) } else { Ok(()) }
}
