//! Loop tools built from a server's list.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::dsl::{Options, Services, State, Tool, ToolBuilder, ToolContext};
use positronic_core::{Error, Result};
use serde_json::Value;

use super::answer::ConvertedAnswer;
use super::error::McpError;
use super::notifications::OnProgress;
use super::server_lifecycle::Session;
use super::tool_list::Listed;

/// Additional time of a call beyond the server's: for a ping, and for storing files.
const GRACE: Duration = Duration::from_secs(15);

/// The origin of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) enum ToolOrigin {
    /// The server's list.
    Listed,
    /// The log. A call waits for the server's list; until then, nothing does.
    Recalled,
}

/// Builds a tool. It only clones pointers and strings, so it is built in every iteration.
pub(super) fn tool<O: Options, S: State, V: Services>(
    session: &Arc<Session>,
    listed: &Arc<Listed>,
    known: ToolOrigin,
) -> Tool<O, S, V> {
    let options = &session.options;
    Tool::new(&listed.name, |t| {
        let wait = match known {
            ToolOrigin::Listed => options.connect_timeout,
            ToolOrigin::Recalled => options.reconnect_timeout.saturating_add(options.connect_timeout.saturating_mul(2)),
        };
        let time = wait.saturating_add(options.call_timeout).saturating_add(GRACE);
        let t = flagged(t.description(&listed.description).timeout(time), listed);
        let (session, listed) = (Arc::clone(session), Arc::clone(listed));
        t.execute_foreign(Arc::clone(&listed.schema), move |arguments: Value, cx: ToolContext<O, S, V>| {
            let shown = cx.clone();
            let progress: OnProgress = Box::new(move |text| shown.progress(text));
            // Boxed to limit the size of the types for the compiler.
            let calling: BoxFuture<'static, Result<ConvertedAnswer, McpError>> =
                Box::pin(called(Arc::clone(&session), Arc::clone(&listed), known, arguments, progress));
            async move {
                let mut answer = calling.await.map_err(McpError::into_result)?;
                for file in std::mem::take(&mut answer.files) {
                    if file.for_model {
                        cx.file(file.name, file.media_type, file.bytes).await?;
                    } else {
                        cx.save_file(file.name, file.media_type, file.bytes).await?;
                    }
                }
                if answer.is_error { Err(Error::new(answer.into_error())) } else { Ok(answer.value) }
            }
        })
    })
}

fn flagged<O: Options, S: State, V: Services>(t: ToolBuilder<O, S, V>, listed: &Listed) -> ToolBuilder<O, S, V> {
    let policy = &listed.policy;
    let t = if let Some(title) = &listed.title { t.title(title) } else { t };
    let t = if policy.read_only { t.read_only() } else { t };
    let t = if policy.idempotent { t.idempotent() } else { t };
    let t = if policy.destructive { t.destructive() } else { t };
    if let Some(reason) = &policy.asks { t.requires_approval(reason) } else { t }
}

async fn called(
    session: Arc<Session>,
    listed: Arc<Listed>,
    known: ToolOrigin,
    arguments: Value,
    progress: OnProgress,
) -> Result<ConvertedAnswer, McpError> {
    let options = &session.options;
    let listed = match known {
        ToolOrigin::Listed => listed,
        ToolOrigin::Recalled => {
            let listing = session.listing(options.reconnect_timeout).await?;
            let now = listing.tools.iter().find(|now| now.name == listed.name).cloned();
            let (server, tool) = (&session.name, &listed.name);
            now.ok_or_else(|| McpError::Gone { server: server.to_string(), tool: tool.clone() })?
        }
    };
    let live = session.connection().await?;
    let arguments = match arguments {
        Value::Object(fields) => fields,
        // Validation lets only objects pass.
        _ => serde_json::Map::new(),
    };
    let result = live.call(&listed.tool, arguments, options.call_timeout, progress).await?;
    Ok(ConvertedAnswer::read(&listed.tool, result, options.result))
}
