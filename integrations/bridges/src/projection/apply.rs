//! What each event of the log shows.

use positronic_core::record::{Decision, Event, EventKind, Path, ResumeCause, Speaker, ToolResult, WaitSpec};
use positronic_server::REDACTED;
use serde_json::{Value, json};

use super::{ApprovalOutcome, BrainOutcome, Item, Placed, Projection};

/// A question that a call or a stage asks.
pub(super) struct AskedQuestion {
    question: String,
    /// The indices of its waits that ask a person for a text.
    texts: Vec<u32>,
}

/// Returns whether a wait asks a person for a text.
pub(crate) fn asks_for_text(wait: &WaitSpec) -> bool {
    wait.person && wait.schema.get("type").and_then(Value::as_str) == Some("string")
}

impl Projection {
    /// Folds the next event and returns what it shows.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Placed> {
        // A log that its own store wrote has no illegal event; one of a newer release ends the fold of the state only.
        if let Err(error) = self.state.apply(event) {
            tracing::warn!(run = %self.run, seq = %event.seq, %error, "a bridge cannot fold an event");
        }
        if !event.kind.is_about_workers() {
            self.next = event.seq.next();
        }
        if !self.is_hidden(&event.path) {
            self.show(event);
        }
        self.show_state();
        std::mem::take(&mut self.items)
    }

    fn show(&mut self, event: &Event) {
        let path = &event.path;
        // The log has no part of an answer, so what was sent of one in flight is no message.
        if let EventKind::LoopComplete { .. }
        | EventKind::BrainError(_)
        | EventKind::BrainCancelled { .. }
        | EventKind::UndoStart { .. } = &event.kind
        {
            self.discard_within(path);
        }
        match &event.kind {
            EventKind::BrainStart(begin) if !path.is_root() => self.begin_brain(path, &begin.title),
            EventKind::BrainComplete { result } if !path.is_root() => {
                let result = self.redacted(result);
                self.end_brain(path, BrainOutcome::Completed(result));
            }
            EventKind::BrainError(failure) if !path.is_root() => {
                self.end_brain(path, BrainOutcome::Failed(failure.clone()));
            }
            EventKind::BrainCancelled { .. } if !path.is_root() => self.end_brain(path, BrainOutcome::Cancelled),
            EventKind::StepStart { .. } | EventKind::GroupStart { .. } => self.begin_stage(path),
            EventKind::StepComplete { .. } | EventKind::LoopComplete { .. } => self.end_stage(path),
            EventKind::StepRetry { attempt, due, .. } => {
                self.notice(path, "step_retry", json!({ "attempt": attempt, "due": due.to_string() }));
            }
            EventKind::LoopStart { hidden: true, .. } => self.hidden.push(path.clone()),
            EventKind::LoopStart { input, from, message_id, .. } => {
                self.begin_stage(path);
                if let (Some(text), Speaker::Person) = (input, from) {
                    self.message(event, message_id.as_ref(), text, true);
                }
            }
            EventKind::LoopMessage { text, message_id, from: Speaker::Person, .. } => {
                self.message(event, message_id.as_ref(), text, false);
            }
            EventKind::LoopIteration(_) => self.push(path, Item::IterationStarted),
            EventKind::LoopModelCall { question: Some(_), .. } => {
                self.questions.insert(path.clone());
            }
            EventKind::LoopModelCall { attempt, .. } => self.asked_model(path, *attempt),
            EventKind::LoopModelResult { parts, .. } if !self.questions.remove(path) => self.answered(path, parts),
            EventKind::LoopModelRetry { attempt, due, .. } => {
                self.discard(path);
                self.notice(path, "model_retry", json!({ "attempt": attempt, "due": due.to_string() }));
            }
            EventKind::LoopAnswerRefused { guard, .. } => {
                self.discard(path);
                self.notice(path, "answer_refused", json!({ "guard": guard }));
            }
            EventKind::RunClaimed { .. } => {
                // What was in flight is asked for again.
                self.discard_within(&Path::root());
            }
            EventKind::LoopToolCall(call) => {
                if call.flags.handoff {
                    self.handoffs.insert(path.clone());
                }
                self.called(path, &call.tool, &call.arguments);
            }
            EventKind::LoopToolResult { result, .. } => {
                let (id, result) = (self.call_id(path), self.redacted_result(result));
                self.push(path, Item::CallEnded { id, result });
            }
            EventKind::LoopOutput { id, output } => {
                let (call, id) = (self.call_id(path), format!("{}:{id}", self.run));
                self.push(path, Item::Output { id, call, output: output.clone() });
            }
            EventKind::LoopApprovalRequested { reason, .. } => {
                let (question, call) = (self.ask(event), self.call_id(path));
                self.push(path, Item::ApprovalRequested { question, call, reason: reason.clone() });
            }
            EventKind::LoopApprovalDecided { decision, arguments, reason, .. } => {
                let outcome = match decision {
                    Decision::Approved => ApprovalOutcome::Approved,
                    Decision::Rejected => ApprovalOutcome::Rejected,
                };
                self.close_approval(path, outcome, reason.clone());
                if let Some(edited) = arguments {
                    let (id, arguments) = (self.call_id(path), self.redacted(edited));
                    self.push(path, Item::CallEdited { id, arguments });
                }
            }
            EventKind::LoopApprovalExpired {} => self.close_approval(path, ApprovalOutcome::Expired, None),
            EventKind::LoopApprovalWithdrawn { cause } => {
                self.close_approval(path, ApprovalOutcome::Withdrawn, Some(cause.clone()));
            }
            EventKind::LoopWait { waits, .. } => self.wait(event, waits),
            EventKind::StageWait { waits, .. } => {
                self.begin_stage(path);
                self.wait(event, waits);
            }
            EventKind::LoopResume { .. } | EventKind::StageResume { .. } => {
                let text = self.text_answer(event).map(str::to_owned);
                if let Some(AskedQuestion { question, .. }) = self.asked.remove(path) {
                    let id = format!("{}:{}", self.run, event.seq);
                    self.push(path, Item::WaitEnded { id, question, path: path.clone(), text });
                }
            }
            EventKind::LoopLimit(reached) => self.notice(path, "limit", json!({ "kind": reached.kind })),
            EventKind::LoopMaxIterations { limit } => self.notice(path, "max_iterations", json!({ "limit": limit })),
            EventKind::LoopExit { tool, .. } => self.notice(path, "exit", json!({ "tool": tool.as_str() })),
            EventKind::LoopCompacted { .. } => self.notice(path, "compacted", json!({})),
            _ => {}
        }
    }

    fn notice(&mut self, path: &Path, name: &'static str, mut value: Value) {
        if let Some(fields) = value.as_object_mut() {
            fields.insert("path".to_owned(), path.as_str().into());
        }
        self.push(path, Item::Notice { name, value });
    }

    fn message(&mut self, event: &Event, id: Option<&String>, text: &str, is_input: bool) {
        let id = id.cloned().unwrap_or_else(|| format!("{}:{}", self.run, event.seq));
        self.push(&event.path, Item::UserMessage { id, text: text.to_owned(), is_input });
    }

    /// Remembers the question that an event asks, and returns its id.
    fn ask(&mut self, event: &Event) -> String {
        let question = self.viewer.question_id(&self.run, &event.path, event.seq);
        self.asked.insert(event.path.clone(), AskedQuestion { question: question.clone(), texts: Vec::new() });
        question
    }

    /// Returns the text of an event that answers a person's question for one, before the event is folded.
    pub(crate) fn text_answer<'a>(&self, event: &'a Event) -> Option<&'a str> {
        let (EventKind::LoopResume { cause: ResumeCause::Answered, wait, payload, .. }
        | EventKind::StageResume { cause: ResumeCause::Answered, wait, payload, .. }) = &event.kind
        else {
            return None;
        };
        let asked = self.asked.get(&event.path)?;
        asked.texts.contains(wait).then(|| payload.as_str()).flatten()
    }

    fn wait(&mut self, event: &Event, waits: &[WaitSpec]) {
        if waits.is_empty() {
            return;
        }
        let (question, path) = (self.ask(event), event.path.clone());
        if let Some(asked) = self.asked.get_mut(&path) {
            asked.texts = (0..).zip(waits).filter(|(_, wait)| asks_for_text(wait)).map(|(index, _)| index).collect();
        }
        let prompt = waits.iter().find_map(|wait| wait.prompt.clone());
        self.push(&event.path, Item::WaitStarted { question, path, prompt });
    }

    fn close_approval(&mut self, path: &Path, outcome: ApprovalOutcome, reason: Option<String>) {
        if let Some(AskedQuestion { question, .. }) = self.asked.remove(path) {
            let call = self.call_id(path);
            self.push(path, Item::ApprovalClosed { question, call, outcome, reason });
        }
    }

    /// Shows the public state if it has changed.
    fn show_state(&mut self) {
        let (Some(public), Some(root)) = (&self.public_state, &self.state.root) else { return };
        if self.public.is_some() && root.changed.next() != self.state.next {
            return;
        }
        let state = public(&root.title, &root.state);
        if state != self.public {
            self.public.clone_from(&state);
            let state = state.unwrap_or(Value::Null);
            self.push(&Path::root(), Item::StateChanged { state });
        }
    }

    /// Redacts a value that may become a part of a text.
    pub(crate) fn redacted(&self, value: &Value) -> Value {
        self.viewer.redacted(value).unwrap_or_else(|| REDACTED.into())
    }

    fn redacted_result(&self, result: &ToolResult) -> ToolResult {
        self.viewer.redacted(result).unwrap_or_else(|| ToolResult::success(REDACTED))
    }
}
