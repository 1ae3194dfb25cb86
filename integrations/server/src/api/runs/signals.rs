//! `/runs/{run}/signals`: pauses, resumes, cancels a run, sends it a message, or updates a plugin of it.

use axum::response::Response;
use positronic_core::record::{Event, EventKind, Path, RunId, Seq, Signal, SignalId, SignalKind, UserMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::can_continue::checked_code;
use crate::api::conversations::attachments::{MAX_FILES_BODY, MessageFile};
use crate::api::idempotency::Key;
use crate::app::App;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/api/v1/runs/{run}/signals",
            "Pause, resume or cancel a run, send it a message, or update a plugin of it",
            send,
        )
        .scopes(&[Scope::Run, Scope::Operate])
        .takes::<NewSignal>()
        .max_body(MAX_FILES_BODY)
        .idempotent()
        .returns::<Accepted>(200)
        .problems(&[
            ProblemType::NotAllowed,
            ProblemType::RunClosed,
            ProblemType::NotWaiting,
            ProblemType::CodeDiffers,
            ProblemType::ArgumentsInvalid,
            ProblemType::TooLarge,
        ]),
    ]
}

/// A signal to a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum NewSignal {
    /// Starts no new work; work in flight completes. Needs the scope `operate`.
    Pause {},
    /// Resumes after a pause. Needs the scope `operate`.
    Resume {},
    /// Ends the run; every open call gets a result. Needs the scope `operate`.
    Cancel {
        #[serde(default)]
        reason: Option<String>,
    },
    /// Updates the state of a plugin of an open loop. The plugin takes the update, or refuses it, before the loop's next iteration, or before the
    /// loop ends. Needs the scope `operate`.
    UpdatePlugin {
        /// The plugin's name, with that of the instance before it if it has one: `work.notes`.
        plugin: String,
        /// The update, as the plugin understands it.
        update: Value,
        /// The loop, if several open ones have the plugin.
        #[serde(default)]
        to: Option<String>,
    },
    /// Sends a message to the open loop. Needs the scope `run`.
    Message {
        text: String,
        /// The loop, if several are open.
        #[serde(default)]
        to: Option<String>,
        #[serde(default)]
        files: Vec<MessageFile>,
    },
}

/// The event that accepts a signal.
#[derive(Serialize, JsonSchema)]
struct Accepted {
    seq: u64,
}

async fn send(cx: RequestContext) -> Result<Response, Problem> {
    let (app, caller, run) = (&cx.app, cx.caller()?, &cx.run()?.run);
    let body: NewSignal = cx.json()?;
    let needed = if matches!(body, NewSignal::Message { .. }) { Scope::Run } else { Scope::Operate };
    if !caller.may(needed) {
        return Err(Problem::scope_missing(&[needed]));
    }
    if needed == Scope::Run {
        may_start(&app.settings, caller, &cx.run()?.brain)?;
    }
    let kind = match body {
        NewSignal::Pause {} => SignalKind::Pause,
        NewSignal::Resume {} => SignalKind::Resume,
        NewSignal::Cancel { reason } => SignalKind::Cancel { reason },
        NewSignal::UpdatePlugin { plugin, update, to } => {
            SignalKind::UpdatePlugin { to: loop_at(to.as_deref())?, plugin, update }
        }
        NewSignal::Message { text, to, files } => {
            let message = UserMessage::new(text).files(app.stored_files(files).await?);
            match SignalKind::message(message) {
                SignalKind::Message { text, message_id, files, caller_tools, .. } => {
                    SignalKind::Message { to: loop_at(to.as_deref())?, text, message_id, files, caller_tools }
                }
                other => other,
            }
        }
    };
    let is_resume = matches!(kind, SignalKind::Resume);
    let key = Key::of(&cx)?;
    let signal = Signal { id: SignalId::new(key.id(run.as_str())), actor: cx.actor()?, kind };
    let known = app.accepted_before(run, &signal).await?;
    let seq = match known {
        Some(seq) => seq,
        None if is_resume && let Some(difference) = checked_code(app, cx.run()?).await?.brain => {
            return Err(code_differs(&difference));
        }
        None => app.client.send(run, signal).await?,
    };
    let mut response = json(&Accepted { seq: seq.0 })?;
    key.mark(&mut response, known.is_some());
    Ok(response)
}

/// Parses the path of a loop.
fn loop_at(written: Option<&str>) -> Result<Option<Path>, Problem> {
    let path = written.map(Path::parse).transpose();
    path.map_err(|error| Problem::new(ProblemType::InvalidBody).detail(error))
}

/// Refuses what the code of this server could not continue.
pub(crate) fn code_differs(difference: &str) -> Problem {
    Problem::new(ProblemType::CodeDiffers).detail(difference).field("differences", [difference])
}

impl App {
    /// Returns the event that has accepted a signal before. Another signal under the same id is refused.
    pub(crate) async fn accepted_before(&self, run: &RunId, signal: &Signal) -> Result<Option<Seq>, Problem> {
        let Some(seq) = self.client.store().accepted(run, &signal.id).await? else { return Ok(None) };
        let events = self.client.store().read(run, seq, 1).await?;
        match events.first() {
            Some(event) if has_same_content(event, &signal.kind, false) => Ok(Some(seq)),
            _ => Err(Problem::new(ProblemType::KeyReused)
                .detail(format!("event {seq} of the run `{run}` has accepted another signal under this key"))),
        }
    }
}

/// Returns whether an event accepts a signal with this content. The event of an approval has only arguments that differ from the
/// proposed ones: `is_edited` says whether those of the signal do.
pub(crate) fn has_same_content(event: &Event, kind: &SignalKind, is_edited: bool) -> bool {
    use positronic_core::record::Decision::{Approved, Rejected};
    match (&event.kind, kind) {
        (EventKind::BrainPaused { .. }, SignalKind::Pause) | (EventKind::BrainResumed { .. }, SignalKind::Resume) => {
            true
        }
        (EventKind::BrainCancelled { reason: known, .. }, SignalKind::Cancel { reason }) => known == reason,
        (
            EventKind::LoopMessage { text: known, files: known_files, .. },
            SignalKind::Message { text, files, to, .. },
        ) => (known, known_files) == (text, files) && to.as_ref().is_none_or(|to| *to == event.path),
        (
            EventKind::LoopPluginUpdate { plugin: known_plugin, update: known, .. },
            SignalKind::UpdatePlugin { plugin, update, to },
        ) => (known_plugin, &**known) == (plugin, update) && to.as_ref().is_none_or(|to| *to == event.path),
        (
            EventKind::LoopApprovalDecided { decision: Approved, arguments: known, .. },
            SignalKind::Approve { call, arguments },
        ) => event.path == *call && known.as_ref().filter(|_| is_edited) == arguments.as_ref().filter(|_| is_edited),
        (
            EventKind::LoopApprovalDecided { decision: Rejected, reason: known, .. }
            | EventKind::BudgetDecided { decision: Rejected, reason: known, .. },
            SignalKind::Reject { call, reason },
        ) => event.path == *call && known == reason,
        (EventKind::BudgetDecided { decision: Approved, more: known, .. }, SignalKind::Grant { to, more }) => {
            event.path == *to && known == more
        }
        (
            EventKind::LoopResume { payload: known, .. } | EventKind::StageResume { payload: known, .. },
            SignalKind::Reply { call, payload },
        ) => event.path == *call && known == payload,
        (
            EventKind::LoopResume { payload: known, .. } | EventKind::StageResume { payload: known, .. },
            SignalKind::Webhook { payload, .. },
        ) => known == payload,
        _ => false,
    }
}
