//! Performs a detached call: calls the tool's function with the state of the log, in any process.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use backon::BackoffBuilder as _;
use serde_json::Value;
use tokio::sync::mpsc;

use super::call::{DetachedCall, DetachedOutcome, DetachedReply};
use super::change;
use crate::definition::{Scope, StateValue, ToolBody, ToolDefinition, ToolFn, UntypedReply};
use crate::error::{Error, Result, caught};
use crate::machine::{CallPhase, Intent, RunState};
use crate::record::{EventKind, NewEvent};
use crate::runner::Runner;
use crate::runner::clock::{limited, pauses};
use crate::runner::effects::link::RunLink;
use crate::runner::effects::report::Report;
use crate::runner::effects::state_owner::{owner_scope, updated};
use crate::runner::start::start_run;
use crate::runner::worker::append::{Extras, follow, stamp};
use crate::runner::worker::load;
use crate::runner::worker::loaded_code::Frames;
use crate::runner::worker::shared::Shared;
use crate::runner::worker::stop_reason::{ResumeError, passes};

/// A detached call whose tool is ready to be called.
#[must_use = "the tool is called by `perform`"]
pub struct PreparedCall {
    call: DetachedCall,
    shared: Arc<Shared>,
    incoming: mpsc::UnboundedReceiver<Box<Report>>,
    tool: Option<(Arc<ToolDefinition>, ToolFn, Arc<Value>, Scope)>,
}

/// Restores the tool of a detached call from the log.
pub(in crate::runner) async fn prepare(runner: &Runner, call: DetachedCall) -> Result<PreparedCall, ResumeError> {
    let folded = load::whole(&*runner.store, &call.run, &runner.state.histories).await?;
    let title = Arc::clone(&folded.summary.brain);
    let Some(definition) = runner.definition_of(&title) else {
        return Err(ResumeError::Changed { difference: format!("this runner does not know the brain `{title}`") });
    };
    let shared =
        Shared::new((runner.clone(), start_run), call.run.clone(), Some(Arc::clone(&definition)), true, folded);
    let state = shared.state().clone();
    let (reports, incoming) = mpsc::unbounded_channel();
    if !is_in_flight(&state, &call) {
        return Ok(PreparedCall { call, shared, incoming, tool: None });
    }
    let link = Arc::new(RunLink::new(&shared, reports));
    let mut frames = Frames::restored(&call.run, &state, &definition, &link).await?;
    let found = frames.tool(&call.path, &call.tool).cloned();
    if let (None, Some((_, reason))) = (&found, frames.broken.first()) {
        return Err(ResumeError::Panicked { reason: reason.clone() });
    }
    let missing = || ResumeError::Changed { difference: format!("the tool `{}` no longer exists", call.tool) };
    let (Some(open), Some(brain)) = (state.call(&call.path), state.owner(&call.path)) else { return Err(missing()) };
    let tool = found.ok_or_else(missing)?;
    let ToolBody::Function { execute, .. } = &tool.body else {
        return Err(ResumeError::Changed { difference: format!("the tool `{}` runs a brain now", call.tool) });
    };
    let (execute, arguments) = (Arc::clone(execute), Arc::clone(&open.arguments));
    let scope = frames.scope(brain, call.path.clone(), &link);
    Ok(PreparedCall { tool: Some((tool, execute, arguments, scope)), call, shared, incoming })
}

impl PreparedCall {
    /// Calls the tool's function once. It returns early when the call is cancelled.
    pub async fn perform(self) -> DetachedOutcome {
        match self.replied().await {
            Ok(reply) => DetachedOutcome::Returned(Box::new(reply)),
            Err(error) => DetachedOutcome::Failed { message: error.to_string(), transient: error.is_transient() },
        }
    }

    async fn replied(self) -> Result<DetachedReply> {
        let Self { call, shared, mut incoming, tool } = self;
        let gone = || Error::new("the run no longer awaits the call");
        let (tool, execute, arguments, scope) = tool.ok_or_else(gone)?;
        let work = caught(async { execute(arguments, owner_scope(Some(&tool), scope)?).await });
        let mut work = pin!(limited(&*shared.runner.clock, tool.timeout, work));
        let result = loop {
            tokio::select! {
                biased;
                Some(report) = incoming.recv() => record(&shared, &call, *report).await,
                () = shared.bell.notified() => {
                    if let Err(error) = shared.catch_up().await {
                        tracing::warn!(run = %call.run, path = %call.path, %error, "cannot read whether the call is cancelled");
                    } else if !is_in_flight(&shared.state(), &call) {
                        return Err(gone());
                    }
                }
                result = &mut work => break result,
            }
        };
        // What the tool showed before its end precedes its result.
        while let Ok(report) = incoming.try_recv() {
            record(&shared, &call, *report).await;
        }
        let reply = result.unwrap_or_else(|| {
            let timeout = tool.timeout;
            Err(Error::new(format!("the tool took longer than {timeout:?}; whether it had its effect is unknown")))
        })?;
        as_data(&shared, &call, reply).await
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PreparedCall").field(&self.call).finish()
    }
}

/// Computes the update of the state as it is now.
async fn as_data(shared: &Shared, call: &DetachedCall, reply: UntypedReply) -> Result<DetachedReply> {
    if !reply.updates.is_empty() {
        let mut pauses = pauses().build();
        while let Err(stop) = shared.catch_up().await {
            let pause = pauses.next().filter(|_| passes(&stop)).ok_or_else(|| {
                Error::new(format!("the tool did its work, but the state that it updates cannot be read: {stop}"))
            })?;
            tokio::time::sleep(pause).await;
        }
    }
    let document = shared.state().owner(&call.path).map(|brain| Arc::clone(&brain.state)).unwrap_or_default();
    let UntypedReply { output, brief, updates, plugin_updates, waits, triggers } = reply;
    // Plugins take part in a call around it, in the worker.
    if let Some((owner, _)) = plugin_updates.first() {
        return Err(Error::new(format!(
            "the tool did its work, but it runs apart from the worker and cannot change the state of the plugin `{}`; let the executor \
             leave this tool to the worker",
            owner.plugin
        )));
    }
    let next = updated(&StateValue::new(Arc::clone(&document), shared.runner.settings.max_document_bytes), updates)?;
    let change = next.map(|next| change::between(&document, &next));
    let waits = waits.into_iter().map(|wait| (wait.spec, wait.valid_for)).collect();
    Ok(DetachedReply { output, brief, change, waits, triggers })
}

/// Appends what the tool reports while it runs.
async fn record(shared: &Shared, call: &DetachedCall, report: Report) {
    match report {
        Report::Output { path, id, output } => {
            let kind = EventKind::LoopOutput { id, output };
            if let Err(error) = append_to_call(shared, call, NewEvent::new(path.clone(), kind)).await {
                tracing::warn!(run = %call.run, %path, %error, "cannot record the output of the tool");
            }
        }
        Report::Value { path, name, value, reply, turn } => {
            let kind = EventKind::ValueRecorded { name, value: Arc::clone(&value) };
            let recorded = append_to_call(shared, call, NewEvent::new(path, kind)).await;
            // The code may have stopped waiting.
            _ = reply.send(recorded.map(|()| value));
            drop(turn);
        }
        Report::Child { path, child, reply } => {
            let known = shared.state().children.contains_key(&child.run);
            let recorded = match known {
                true => Ok(()),
                false => append_to_call(shared, call, NewEvent::new(path, EventKind::ChildStart(child))).await,
            };
            _ = reply.send(recorded);
        }
        Report::Question { reply, .. } => {
            _ = reply.send(Err(Error::new("a tool cannot ask a model")));
        }
        Report::Done { .. } => {}
    }
}

/// Appends an event of a call in flight. It has no epoch, as the events of other writers than the worker.
async fn append_to_call(shared: &Shared, call: &DetachedCall, new_event: NewEvent) -> Result<()> {
    let mut pauses = pauses().build();
    loop {
        let before = shared.state().clone();
        if !is_in_flight(&before, call) {
            return Err(Error::new(format!("`{}` is not running, so it records nothing", call.path)));
        }
        let events = stamp(vec![new_event.clone()], before.next, shared.now().max(before.at), None);
        let after = follow(&before, &events).map_err(Error::permanent)?;
        let failed = match shared.append(&before, after, &events, Extras::default()).await {
            Ok(true) => return Ok(()),
            Ok(false) => match shared.catch_up().await {
                Ok(_) => continue,
                Err(stop) => stop,
            },
            Err(error) => error.into(),
        };
        let Some(pause) = pauses.next().filter(|_| passes(&failed)) else {
            return Err(Error::new(format!("cannot record what the tool reports: {failed}")));
        };
        tokio::time::sleep(pause).await;
    }
}

fn is_in_flight(state: &RunState, call: &DetachedCall) -> bool {
    !state.has_ended()
        && state.call(&call.path).is_some_and(|open| {
            open.detached.is_some()
                && open.attempt == call.attempt
                && matches!(open.phase, CallPhase::Open(Intent::Running))
        })
}
