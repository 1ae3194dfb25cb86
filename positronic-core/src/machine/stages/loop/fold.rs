//! The fold of the events of a loop and its iterations.

use std::sync::Arc;

use super::call_fold::call_event;
use super::handoff::{follow_begin, follow_end, handing_back};
use super::useless_answers::record_fault;
use crate::machine::frames::known_contents::KnownContent;
use crate::machine::frames::{Intent, LoopFrame, LoopPhase, OpenQuestion, OpenUpdate, RejectedAnswer};
use crate::machine::stages::frame::{OwnerState, Reason};
use crate::machine::stages::step::{question_event, question_hash};
use crate::record::{
    Content, ContentHash, Event, EventKind, Finish, Iteration, LimitReached, LoopOutcome, Part, Segment, Seq, Settings,
    Speaker, ToolSet,
};

impl LoopFrame {
    /// Folds an event of the loop, an iteration or a call.
    pub(super) fn fold(&mut self, event: &Event, mut owner: OwnerState<'_>) -> Result<(), Reason> {
        match &event.kind {
            EventKind::LoopIteration(iteration) => {
                self.seen = Arc::clone(owner.state);
                self.seen_plugins = owner.plugins.clone();
                for (plugin, step) in &iteration.plugins {
                    owner.plugins.apply(plugin, step).map_err(|error| error.to_string())?;
                }
            }
            EventKind::LoopPluginChanged { plugin, step, update } => {
                owner.plugins.apply(plugin, step).map_err(|error| error.to_string())?;
                self.update_taken(*update)?;
            }
            EventKind::LoopPluginFailed { update, .. } => self.update_taken(*update)?,
            _ => {}
        }
        if !event.path.is_within(&self.path) {
            return Err(format!("the open loop is `{}`", self.path));
        }
        match event.path.last() {
            Some(Segment::Call(iteration, index)) => {
                follow_end(self, iteration, index, &event.kind, &mut owner);
                call_event(self, iteration, index, event)?;
                if let EventKind::LoopToolResult { .. } = &event.kind {
                    settle(self);
                }
                follow_begin(self, iteration, index, &event.kind, &mut owner);
            }
            Some(Segment::Iteration(iteration)) => iteration_event(self, iteration, event)?,
            Some(Segment::Question(iteration, index)) => {
                if !self.takes_questions(iteration) {
                    return Err("no answer and no call is checked".to_owned());
                }
                question_event(&mut self.asked, index, &event.kind)?;
            }
            Some(Segment::Stage(_)) | None => loop_event(self, event)?,
        }
        if let EventKind::LoopExit { call, .. } = &event.kind {
            // It stands, however the loops after this one end.
            if let Some(reason) = handing_back(self, call) {
                *owner.handed_back = Some(reason);
            }
        }
        match &event.kind {
            EventKind::LoopToolResult { change, .. } | EventKind::LoopWait { change, .. } => {
                owner.change(change.as_ref(), event)
            }
            _ => Ok(()),
        }
    }

    /// Removes the update of a plugin that the plugin has taken or refused.
    fn update_taken(&mut self, taken: Option<Seq>) -> Result<(), Reason> {
        if let Some(taken) = taken {
            let place = self.updates.iter().position(|update| update.seq == taken);
            self.updates.remove(place.ok_or("the loop has no such update")?);
        }
        Ok(())
    }

    /// Refuses a call without a result.
    pub(super) fn check_results(&self) -> Result<(), Reason> {
        match self.batch.iter().find(|call| call.result().is_none()) {
            Some(open) => Err(format!("the call `{}` has no result", open.path)),
            None => Ok(()),
        }
    }
}

fn loop_event(frame: &mut LoopFrame, event: &Event) -> Result<(), Reason> {
    match &event.kind {
        EventKind::LoopMessage { from: Speaker::Engine, .. } if frame.wraps_up().is_some() => {
            let outcome = frame.wraps_up().cloned();
            if frame.cut {
                next_iteration(frame);
            }
            frame.phase = LoopPhase::Prepare;
            frame.wrap_up = outcome.map(|outcome| (frame.iteration, outcome));
        }
        EventKind::LoopMessage { from: Speaker::Engine, .. } => {
            if !matches!(frame.phase, LoopPhase::Answered) {
                return Err("the engine speaks only after an answer without a call".to_owned());
            }
            next_iteration(frame);
        }
        EventKind::LoopMessage { from: Speaker::Child, message_id, .. } => {
            let run = message_id.as_deref();
            let ended = frame.background.iter().position(|(_, child)| Some(child.run.as_str()) == run);
            frame.background.remove(ended.ok_or("no call of the loop has started that run in the background")?);
            message_arrived(frame)?;
        }
        EventKind::LoopMessage { from: Speaker::Person, .. } => message_arrived(frame)?,
        EventKind::LoopPluginUpdate { plugin, update, .. } => {
            if matches!(frame.phase, LoopPhase::Ending(_)) {
                return Err("the loop is ending".to_owned());
            }
            let (plugin, update) = (plugin.clone(), Arc::clone(update));
            frame.updates.push(OpenUpdate { seq: event.seq, plugin, update });
        }
        EventKind::LoopExit { call, tool } => {
            let done = frame.batch.iter().any(|other| {
                other.path == *call && other.ends_loop() && other.result().is_some_and(|result| result.is_success())
            });
            if !done {
                return Err(format!("`{call}` is not a successful exit call"));
            }
            frame.check_results()?;
            frame.phase = LoopPhase::Ending(LoopOutcome::Exited { tool: tool.as_str().to_owned() });
        }
        EventKind::LoopMaxIterations { .. } => {
            if !matches!(frame.phase, LoopPhase::Prepare) {
                return Err("an iteration is not over".to_owned());
            }
            frame.cut = false;
            frame.phase = LoopPhase::Ending(LoopOutcome::MaxIterations);
        }
        EventKind::LoopLimit(LimitReached { kind, of, shared, .. }) => {
            frame.check_results()?;
            frame.cut = !matches!(frame.phase, LoopPhase::Prepare);
            frame.ended_by.clone_from(of);
            frame.ended_by_shared = *shared;
            frame.phase = LoopPhase::Ending(LoopOutcome::Limit { limit: *kind });
        }
        EventKind::LoopStopped { cause, message } => {
            frame.check_results()?;
            let (cause, message) = (cause.clone(), message.clone());
            frame.phase = LoopPhase::Ending(LoopOutcome::Stopped { cause, message });
        }
        EventKind::LoopCompacted { .. } => {
            if !matches!(frame.phase, LoopPhase::Prepare) {
                return Err("a record is compacted between iterations only".to_owned());
            }
        }
        _ => return Err("this is a loop's path".to_owned()),
    }
    Ok(())
}

fn message_arrived(frame: &mut LoopFrame) -> Result<(), Reason> {
    match frame.phase {
        LoopPhase::Prepare => {}
        // A message arrived, so the answer does not end the loop.
        LoopPhase::Answered => {
            frame.fault = None;
            next_iteration(frame);
        }
        LoopPhase::Ask { .. } | LoopPhase::Batch => frame.unread = true,
        LoopPhase::Ending(_) => return Err("the loop is ending".to_owned()),
    }
    Ok(())
}

fn next_iteration(frame: &mut LoopFrame) {
    frame.iteration += 1;
    frame.phase = LoopPhase::Prepare;
    frame.batch.clear();
    frame.asked.clear();
    frame.expected = 0;
    frame.unread = false;
}

fn iteration_event(frame: &mut LoopFrame, iteration: u32, event: &Event) -> Result<(), Reason> {
    if iteration != frame.iteration {
        return Err(format!("the loop is in iteration {}", frame.iteration));
    }
    match (&event.kind, &mut frame.phase) {
        (EventKind::LoopGuardReplaced { input: Some(input), .. }, LoopPhase::Prepare) => {
            if !input.earlier {
                frame.replaced.push(input.message);
            }
        }
        (
            EventKind::LoopPluginChanged { .. }
            | EventKind::LoopPluginFailed { .. }
            | EventKind::LoopGuardReplaced { input: None, .. },
            _,
        ) => {}
        (EventKind::LoopModelCall { question: Some(question), .. }, LoopPhase::Prepare) => {
            // An unanswered question is asked again after a restart.
            frame.asked.retain(|asked| asked.answer.is_some());
            frame.asked.push(OpenQuestion { hash: question_hash(question), answer: None, finish: Finish::default() });
        }
        (EventKind::LoopModelRetry { .. }, LoopPhase::Prepare) => {}
        (EventKind::LoopAnswerBroken { .. }, LoopPhase::Prepare | LoopPhase::Ask { intent: Intent::Running, .. }) => {}
        (EventKind::LoopModelResult { parts, metadata, .. }, LoopPhase::Prepare) => {
            let open = frame.asked.last_mut().filter(|asked| asked.answer.is_none());
            open.ok_or("no question is open")?.take(parts, metadata);
        }
        (EventKind::LoopIteration(iteration), LoopPhase::Prepare) => {
            iterate(frame, iteration)?;
            frame.asked.clear();
            frame.replaced.clear();
            frame.refused.clear();
            frame.phase = LoopPhase::Ask { attempt: 0, intent: Intent::Ready };
        }
        (EventKind::LoopModelCall { attempt: this, .. }, LoopPhase::Ask { attempt, intent }) => {
            if this != attempt || *intent == Intent::Running {
                return Err(format!("the request is at try {attempt}"));
            }
            *intent = Intent::Running;
        }
        (EventKind::LoopModelRetry { attempt: this, due, .. }, LoopPhase::Ask { attempt, intent }) => {
            if this != attempt {
                return Err(format!("the request is at try {attempt}"));
            }
            *attempt += 1;
            *intent = Intent::Backoff(*due);
        }
        (
            EventKind::LoopAnswerRefused { attempt: this, guard, message, parts, metadata, .. },
            LoopPhase::Ask { attempt, intent: intent @ Intent::Running },
        ) => {
            if this != attempt {
                return Err(format!("the request is at try {attempt}"));
            }
            *attempt += 1;
            *intent = Intent::Ready;
            let (parts, message) = (Arc::clone(parts), message.clone());
            frame.refused.push(RejectedAnswer { parts, message, guard: guard.clone(), by: metadata.made_by() });
        }
        (EventKind::LoopModelResult { parts, metadata, .. }, LoopPhase::Ask { intent: Intent::Running, .. }) => {
            record_fault(frame, parts, metadata);
            frame.refused.clear();
            let calls = parts.iter().filter(|part| matches!(part, Part::Call { .. })).count();
            frame.expected = u32::try_from(calls).unwrap_or(u32::MAX);
            if calls > 0 {
                frame.phase = LoopPhase::Batch;
            } else if std::mem::take(&mut frame.unread) || metadata.finish == Finish::Paused {
                frame.fault = None;
                next_iteration(frame);
            } else {
                frame.phase = LoopPhase::Answered;
            }
        }
        _ => return Err("the iteration is not there".to_owned()),
    }
    Ok(())
}

fn iterate(frame: &mut LoopFrame, iteration: &Iteration) -> Result<(), Reason> {
    if iteration.changes_request() {
        prepare(frame, iteration)?;
    }
    if let Some(limits) = &iteration.limits {
        frame.limits.clone_from(limits);
    }
    if let Some(exits) = iteration.exits {
        frame.exits = exits;
    }
    Ok(())
}

/// Takes over what the request of an iteration has new.
fn prepare(frame: &mut LoopFrame, iteration: &Iteration) -> Result<(), Reason> {
    let mut prepared = frame.prepared.clone();
    let known = frame.known_mut();
    if let Some(Content { hash, body }) = &iteration.system {
        if let Some(body) = body {
            known.add(hash.clone(), KnownContent::Text(Arc::clone(body)));
        }
        let Some(KnownContent::Text(text)) = known.get(hash) else { return Err(unknown("system prompt", hash)) };
        prepared.system = Arc::clone(text);
    }
    if let Some(items) = &iteration.context {
        let mut context = Vec::with_capacity(items.len());
        for Content { hash, body } in items {
            if let Some(body) = body {
                known.add(hash.clone(), KnownContent::Item(body.clone()));
            }
            let Some(KnownContent::Item(item)) = known.get(hash) else { return Err(unknown("context item", hash)) };
            context.push(item.clone());
        }
        prepared.context = context.into();
    }
    if let Some(entries) = &iteration.tools {
        let mut tools = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(body) = &entry.body {
                known.add(entry.hash.clone(), KnownContent::Tool(body.clone()));
            }
            let Some(KnownContent::Tool(tool)) = known.get(&entry.hash) else {
                return Err(unknown("tool", &entry.hash));
            };
            tools.push(tool.clone());
        }
        prepared.tools = Arc::new(ToolSet::new(tools));
    }
    if let Some(Content { hash, body }) = &iteration.settings {
        if let Some(body) = body {
            known.add(hash.clone(), KnownContent::Settings(Arc::new(body.clone())));
        }
        let Some(KnownContent::Settings(settings)) = known.get(hash) else { return Err(unknown("settings", hash)) };
        prepared.settings = Arc::<Settings>::clone(settings);
    }
    known.forget();
    frame.prepared = prepared;
    Ok(())
}

fn unknown(what: &str, hash: &ContentHash) -> Reason {
    format!("no event of this loop contains the {what} {hash}")
}

/// Begins the next iteration when every call has a result, unless an exit tool succeeded.
fn settle(frame: &mut LoopFrame) {
    let is_complete = u32::try_from(frame.batch.len()).ok() == Some(frame.expected);
    if !is_complete || frame.batch.iter().any(|call| call.result().is_none()) {
        return;
    }
    let exited = frame.batch.iter().any(|call| call.ends_loop() && call.result().is_some_and(|r| r.is_success()));
    if !exited {
        next_iteration(frame);
    }
}
