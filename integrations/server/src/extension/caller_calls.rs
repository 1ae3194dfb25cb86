//! The calls of the caller's own tools in a run, and their results.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{Event, EventKind, Path, RunId, RunSummary, Seq, Signal, SignalId, SignalKind};
use serde_json::{Value, json};

use crate::api::{Key, checked_code, code_differs};
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

/// The result of a call of one of the caller's own tools.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The id of the call: [`Path::id_in`] of its path.
    pub call: String,
    /// The result, which the model reads.
    pub result: Value,
}

/// A call of a caller's tool.
struct CallerCall<'a> {
    path: &'a Path,
    /// The event with the caller's result, and the result.
    answer: Option<(Seq, &'a Value)>,
    has_ended: bool,
}

/// Finds the calls of the caller's tools in a log, by their ids.
fn caller_calls<'a>(run: &RunId, log: &'a [Arc<Event>]) -> HashMap<String, CallerCall<'a>> {
    let mut calls = HashMap::new();
    let mut ids: HashMap<&Path, String> = HashMap::new();
    for event in log {
        match &event.kind {
            EventKind::LoopToolCall(call) if call.flags.caller => {
                let id = event.path.id_in(run).to_string();
                ids.insert(&event.path, id.clone());
                calls.insert(id, CallerCall { path: &event.path, answer: None, has_ended: false });
            }
            EventKind::LoopResume { payload, .. } => {
                if let Some(call) = ids.get(&event.path).and_then(|id| calls.get_mut(id)) {
                    call.answer = Some((event.seq, payload));
                }
            }
            EventKind::LoopToolResult { .. } => {
                if let Some(call) = ids.get(&event.path).and_then(|id| calls.get_mut(id)) {
                    call.has_ended = true;
                }
            }
            _ => {}
        }
    }
    calls
}

impl RequestContext {
    /// Records the results of calls of the caller's own tools, all or none, and returns the first event with one of them. A result that was
    /// recorded before is accepted if it is the same. Like a message, it needs the scope `run`, and the right to start such runs.
    ///
    /// # Errors
    ///
    /// [`ProblemType::Unprocessable`] for a call that is not one of such a tool, [`ProblemType::AlreadyDecided`] for one with another result,
    /// [`ProblemType::NotWaiting`] for one that has ended without a result of the caller, and the problems of a message.
    pub async fn answer_calls(&self, row: &RunSummary, results: &[CallResult]) -> Result<Seq, Problem> {
        self.require(Scope::Run)?;
        let (app, caller) = (&self.app, self.caller()?);
        may_start(&app.settings, caller, &row.brain)?;
        let log = app.client.events(&row.run, Seq(0)).await?;
        let calls = caller_calls(&row.run, &log);
        let check = checked_code(app, row).await?;
        let (mut known, mut signals) = (Vec::new(), Vec::new());
        for CallResult { call: id, result } in results {
            let Some(call) = calls.get(id) else {
                let detail = format!("the run `{}` has no call `{id}` of a tool of its caller", row.run);
                return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
            };
            match call.answer {
                Some((seq, recorded)) if recorded == result => known.push(seq),
                Some(_) => {
                    let detail = format!("the call `{id}` has another result, which was recorded before");
                    return Err(Problem::new(ProblemType::AlreadyDecided).detail(detail));
                }
                None if call.has_ended => {
                    let detail = format!("the call `{id}` has ended without a result of its caller");
                    return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
                }
                None => {
                    let key = Key::named(caller, json!([id, result]).to_string());
                    let kind = SignalKind::Reply { call: call.path.clone(), payload: result.clone() };
                    if let Some(difference) = check.refuses(&kind) {
                        return Err(code_differs(difference));
                    }
                    let id = SignalId::new(key.id(row.run.as_str()));
                    signals.push(Signal { id, actor: self.actor()?, kind });
                }
            }
        }
        if !signals.is_empty() {
            known.extend(app.client.send_all(&row.run, &signals).await?);
        }
        known.into_iter().min().ok_or_else(|| Problem::new(ProblemType::InvalidBody).detail("there is no result"))
    }
}
