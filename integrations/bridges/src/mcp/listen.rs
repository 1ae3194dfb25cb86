//! Notifications about tasks: a client names tasks in `subscriptions/listen`, and gets each change of them as `tasks/get` would show it.
//!
//! ```text
//! subscriptions/listen {taskIds} ──▶ notifications/subscriptions/acknowledged {taskIds: those that the caller sees}
//!                                ──▶ notifications/tasks, for each task as it is, then for each change
//!                                ──▶ result, once all of them are over
//! ```
//!
//! `rmcp` 3.9 knows neither the `taskIds` of a subscription nor a way to send its notifications: it would read the request without them.
//! Both transports therefore rename such a request before `rmcp` reads it, so that it arrives as a request of a further method.

use std::io;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all, unfold};
use positronic_core::machine::pending;
use positronic_core::record::{RunId, Seq};
use positronic_core::runner::RunUpdate;
use positronic_core::store::StoreError;
use positronic_server::extension::RequestContext as CallerContext;
use positronic_server::{Problem, ProblemType};
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CustomNotification, CustomRequest, CustomResult, DetailedTask, GetMeta as _, ProtocolVersion,
    ServerNotification, SubscriptionsListenRequestMethod, SubscriptionsListenResult, TaskStatus,
    TaskStatusNotification, TaskStatusNotificationParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::calls_in_flight::ToolServer;
use super::outcome::error_of;
use super::task::detailed;
use crate::projection::Projection;

/// The method of subscriptions.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// The method under which a subscription to tasks arrives.
pub(super) const LISTEN_TO_TASKS: &str = "positronic/tasks/listen";
/// The most tasks of one subscription.
const MAX_TASKS: usize = 64;

/// The parameters of a subscription.
#[derive(Debug, Deserialize)]
struct ListenParams {
    notifications: Filter,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    task_ids: Vec<String>,
}

/// Renames a subscription to tasks; `None` for any other message.
pub(super) fn renamed(mut message: Value) -> Option<Value> {
    let is_listen = message.get("method").and_then(Value::as_str) == Some(LISTEN);
    if !is_listen || message.pointer("/params/notifications/taskIds").is_none() {
        return None;
    }
    message.as_object_mut()?.insert("method".to_owned(), LISTEN_TO_TASKS.into());
    Some(message)
}

/// Copies the messages of a client, one a line, and renames its subscriptions to tasks.
pub(super) async fn copy_renamed(input: impl AsyncRead + Unpin, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    while input.read_until(b'\n', &mut line).await? > 0 {
        let is_candidate = line.windows(LISTEN.len()).any(|part| part == LISTEN.as_bytes());
        let message = is_candidate.then(|| serde_json::from_slice(&line).ok()).flatten();
        match message.and_then(renamed) {
            Some(message) => output.write_all(format!("{message}\n").as_bytes()).await?,
            None => output.write_all(&line).await?,
        }
        line.clear();
    }
    Ok(())
}

/// Answers a subscription to tasks. It ends when all of its tasks are over, or the client no longer wants it.
pub(super) async fn listen(
    server: &ToolServer,
    caller: &Arc<CallerContext>,
    request: &CustomRequest,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let version = context.protocol_version();
    if version.is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str()) {
        return Err(ErrorData::method_not_found::<SubscriptionsListenRequestMethod>());
    }
    if !context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks()) {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(required));
    }
    let params: Option<ListenParams> = request
        .params_as()
        .map_err(|error| ErrorData::invalid_params(format!("`notifications.taskIds` is not a list: {error}"), None))?;
    let ids = params.map(|params| params.notifications.task_ids).unwrap_or_default();
    if ids.len() > MAX_TASKS {
        return Err(ErrorData::invalid_params(format!("a subscription has at most {MAX_TASKS} tasks"), None));
    }
    let mut watched = Vec::new();
    for id in &ids {
        match WatchedTask::open(server, caller, &RunId::new(id)).await {
            Ok(task) => watched.push(task),
            Err(problem) if problem.kind() == ProblemType::UnknownRun => {}
            Err(problem) => return Err(error_of(&problem)),
        }
    }
    let accepted: Vec<_> = watched.iter().map(|task| task.run.to_string()).collect();
    let mut changes = select_all(watched.into_iter().map(WatchedTask::changes));
    let params = json!({ "notifications": { "taskIds": accepted } });
    let acknowledged = CustomNotification::new("notifications/subscriptions/acknowledged", Some(params));
    let mut next = Some(ServerNotification::CustomNotification(acknowledged));
    while let Some(mut notification) = next {
        notification.get_meta_mut().set_subscription_id(context.id.clone());
        let is_sent = tokio::select! {
            sent = context.peer.send_notification(notification) => sent.is_ok(),
            () = context.ct.cancelled() => false,
        };
        // A client that went away reads its tasks later.
        if !is_sent {
            break;
        }
        next = tokio::select! {
            change = changes.next() => change.transpose().map_err(|problem| error_of(&problem))?.map(notification_of),
            () = context.ct.cancelled() => None,
        };
    }
    let result = SubscriptionsListenResult::complete(context.id.clone());
    Ok(CustomResult::new(serde_json::to_value(result).unwrap_or_default()))
}

fn notification_of(task: DetailedTask) -> ServerNotification {
    ServerNotification::TaskStatusNotification(TaskStatusNotification::new(TaskStatusNotificationParams::new(task)))
}

/// A task whose changes are followed.
struct WatchedTask {
    server: ToolServer,
    caller: Arc<CallerContext>,
    run: RunId,
    projection: Projection,
    updates: BoxStream<'static, Result<RunUpdate, StoreError>>,
    /// What the run has waited for as of the last event.
    waits_for: Vec<String>,
    /// The task as the client knows it.
    known: Option<DetailedTask>,
    is_over: bool,
}

impl WatchedTask {
    /// Reads the log of a task.
    ///
    /// # Errors
    ///
    /// [`ProblemType::UnknownRun`] if there is no such run, or it belongs to another user.
    async fn open(server: &ToolServer, caller: &Arc<CallerContext>, run: &RunId) -> Result<Self, Problem> {
        let (row, client) = (caller.run_row(run).await?, caller.client());
        let mut projection = Projection::new(&row.run, caller.viewer()?, None);
        for event in client.events(run, Seq(0)).await? {
            projection.event(&event);
        }
        let updates = client.follow(run, projection.state().next);
        Ok(Self {
            server: server.clone(),
            caller: Arc::clone(caller),
            run: row.run,
            waits_for: waits_for(&projection),
            projection,
            updates,
            known: None,
            is_over: false,
        })
    }

    /// Returns the task as it is, and then each change, up to its end.
    fn changes(self) -> BoxStream<'static, Result<DetailedTask, Problem>> {
        unfold(self, |mut task| async move { task.next().await.map(|change| (change, task)) }).boxed()
    }

    async fn next(&mut self) -> Option<Result<DetailedTask, Problem>> {
        while !self.is_over {
            if self.known.is_some() {
                match self.may_have_changed().await {
                    Some(Ok(true)) => {}
                    Some(Ok(false)) => continue,
                    Some(Err(problem)) => return self.end(problem),
                    None => return None,
                }
            }
            match detailed(&self.server, &self.caller, &self.run).await {
                Ok(task) if self.known.as_ref().is_some_and(|known| is_same(known, &task)) => {}
                Ok(task) => {
                    self.is_over =
                        matches!(task.status(), TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled);
                    self.known = Some(task.clone());
                    return Some(Ok(task));
                }
                Err(problem) => return self.end(problem),
            }
        }
        None
    }

    fn end(&mut self, problem: Problem) -> Option<Result<DetailedTask, Problem>> {
        self.is_over = true;
        Some(Err(problem))
    }

    /// Waits for the next event, and returns whether the task may have another status or other questions since; `None` if the run has
    /// no more.
    async fn may_have_changed(&mut self) -> Option<Result<bool, Problem>> {
        Some(match self.updates.next().await? {
            Ok(RunUpdate::Event(event)) => {
                self.projection.event(&event);
                let waits_for = waits_for(&self.projection);
                let has_changed = waits_for != self.waits_for;
                self.waits_for = waits_for;
                Ok(has_changed)
            }
            Ok(RunUpdate::Settled(_)) => Ok(true),
            Ok(_) => Ok(false),
            Err(error) => Err(error.into()),
        })
    }
}

/// Returns what a run waits for, including that it is continued or has ended.
fn waits_for(projection: &Projection) -> Vec<String> {
    let state = projection.state();
    let items = pending(state).into_iter();
    let mut ids: Vec<_> = items.map(|item| projection.viewer().question(projection.run(), state, &item).id).collect();
    ids.extend(state.paused.is_some().then(|| "paused".to_owned()));
    ids
}

/// Returns whether a client would see no difference but the time.
fn is_same(one: &DetailedTask, other: &DetailedTask) -> bool {
    one.payload == other.payload && one.task.status_message == other.task.status_message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_subscriptions_to_tasks_are_renamed() {
        let other = r#"{"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;
        let call = r#"{"id":2,"method":"tools/call","params":{"name":"subscriptions/listen"}}"#;
        let tasks = r#"{"id":3,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["a"]}}}"#;
        let mut copied = Vec::new();

        copy_renamed(format!("{other}\n{call}\nnonsense\n{tasks}").as_bytes(), &mut copied).await.unwrap();

        let copied = String::from_utf8(copied).unwrap();
        let lines: Vec<_> = copied.lines().collect();
        assert_eq!(lines[..3], [other, call, "nonsense"]);
        let renamed: Value = serde_json::from_str(lines[3]).unwrap();
        assert_eq!((&renamed["id"], &renamed["method"]), (&json!(3), &json!(LISTEN_TO_TASKS)));
        assert_eq!(renamed["params"]["notifications"]["taskIds"], json!(["a"]));
    }
}
