//! How each event and each streamed piece changes a [`View`].

use positronic_core::record::{
    Actor, Amounts, BrainStart, Decision, Delta, DeltaKind, Event, EventKind, FileOutput, LoopOutcome, Part, Path,
    ResponseMetadata, ResumeCause, Segment, SideOutput, Speaker, ToolCall, ToolResult,
};
use serde_json::Value;

use super::figures::{amount, many, more, used_of};
use super::text::arguments;
use super::view::{Asking, CallNode, End, Flow, NodeId, NodeKind, Phase, ROOT, StageNode, Status, View};
use super::way::{failed_over, way};

impl View {
    /// Takes in the next event of the run.
    pub fn fold(&mut self, event: &Event) {
        self.tick(event.at);
        let path = &event.path;
        if self.currency.is_none() {
            self.currency = event.currency().map(str::to_owned);
        }
        match &event.kind {
            EventKind::BrainStart(start) => self.brain_start(path, start),
            EventKind::BrainComplete { result } => {
                self.end_brain(path, Status::Done, End::Completed { result: result.clone() });
            }
            EventKind::BrainError(failure) => {
                self.end_brain(path, Status::Failed, End::Failed { message: failure.message.clone() });
            }
            EventKind::BrainCancelled { actor, reason, .. } => {
                let end = End::Cancelled { by: actor.by.clone(), reason: reason.clone() };
                self.end_brain(path, Status::Cut, end);
            }
            EventKind::BrainPaused { .. } => self.paused = true,
            EventKind::BrainResumed { .. } => self.paused = false,
            EventKind::StepStart { .. } => self.begin(self.around(path)),
            EventKind::StepComplete { .. } => self.close(self.around(path), Status::Done),
            EventKind::StepRetry { attempt, message, due } | EventKind::LoopToolRetry { attempt, message, due } => {
                let retry = NodeKind::Retry { attempt: *attempt, message: message.clone(), due: *due };
                self.add(self.around(path), path, Status::Done, retry);
            }
            EventKind::LoopStart { input, from, limits, hidden, .. } => {
                let stage = self.around(path);
                self.begin(stage);
                if *hidden {
                    self.hidden.insert(stage);
                }
                if let Some(stage) = self.stage_mut(stage) {
                    stage.max_iterations = limits.max_iterations;
                }
                if let (Some(text), Speaker::Person) = (input, from) {
                    self.message(path, text, false);
                }
            }
            EventKind::LoopIteration(iteration) => {
                let id = self.around(path);
                if let (Some(stage), Some(Segment::Iteration(number))) = (self.stage_mut(id), path.last()) {
                    stage.iteration = Some(number);
                    if let Some(limits) = &iteration.limits {
                        stage.max_iterations = limits.max_iterations;
                    }
                }
            }
            EventKind::LoopModelCall { model, .. } => {
                let asking = Asking { path: path.clone(), model: model.clone(), since: event.at };
                if let Some(stage) = self.stage_mut(self.around(path)) {
                    stage.asking = Some(asking);
                }
            }
            EventKind::LoopModelResult { parts, metadata, .. } => {
                self.count(event, metadata);
                self.answered(path);
                self.went(path, metadata);
                self.answer(path, parts);
            }
            EventKind::LoopModelRetry { attempt, error, due } => {
                self.answered(path);
                let retry = NodeKind::Retry { attempt: *attempt, message: error.to_string(), due: *due };
                self.add(self.around(path), path, Status::Done, retry);
            }
            EventKind::LoopAnswerRefused { message, metadata, .. } => {
                self.count(event, metadata);
                self.answered(path);
                self.went(path, metadata);
                self.note(path, format!("no decision that fits: {message}"), true);
            }
            EventKind::LoopMessage { text, from, .. } => self.message(path, text, *from == Speaker::Engine),
            EventKind::LoopMaxIterations { limit } => self.limited(path, many(u64::from(*limit), "iteration")),
            EventKind::LoopLimit { unpriced: Some(model), .. } => {
                self.note(path, format!("nobody knows what {model} costs, so its limit of money cannot be kept"), true);
                self.limited(path, "money".to_owned());
            }
            EventKind::LoopLimit { kind, limit, used, of, .. } => {
                let whose =
                    of.as_ref().map_or("", |of| if of.is_root() { " of the run" } else { " of a brain around" });
                self.note(
                    path,
                    format!("used {}{whose}", used_of(*kind, *used, *limit, self.currency.as_deref())),
                    true,
                );
                self.limited(path, amount(*kind, *limit, self.currency.as_deref()));
            }
            EventKind::BudgetRequested { kind, limit, used, shared, .. } => {
                let asks = crate::limits::asks(*kind, *limit, *used, *shared, self.currency.as_deref());
                self.note_at_work(path, asks, true);
                self.suspend(path);
            }
            EventKind::BudgetDecided { decision, more, reason, actor, .. } => {
                let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                let what = match decision {
                    Decision::Approved => format!("granted {}", granted(more, self.currency.as_deref())),
                    Decision::Rejected => "refused more".to_owned(),
                };
                self.note_at_work(path, format!("{what}{}{why}", by(actor)), false);
                let id = self.around(path);
                if let Some(stage) = self.stage_mut(id) {
                    let iterations = u32::try_from(more.iterations).unwrap_or(u32::MAX);
                    stage.max_iterations = stage.max_iterations.map(|most| most.saturating_add(iterations));
                }
                self.begin(self.around(path));
            }
            EventKind::BudgetExpired {} => {
                self.note_at_work(path, "nobody granted more in time".to_owned(), true);
                self.begin(self.around(path));
            }
            EventKind::StepBlocked {} => {
                self.note(path, "it asks a model that a limit does not allow".to_owned(), true);
                self.suspend(path);
            }
            EventKind::LoopCompacted { keep, summary } => {
                let what = match summary {
                    Some(_) => format!("older messages were summarised, the last {keep} stay"),
                    None => "the messages are whole again".to_owned(),
                };
                self.note(path, what, false);
            }
            EventKind::LoopComplete { outcome, usage, .. } => {
                let id = self.around(path);
                if let Some(stage) = self.stage_mut(id) {
                    stage.outcome = Some(outcome.clone());
                    stage.usage = Some(*usage);
                    stage.asking = None;
                    if let LoopOutcome::Failed { message, .. } | LoopOutcome::Stopped { message, .. } = outcome {
                        stage.error = Some(message.clone());
                    }
                }
                let status = match outcome {
                    LoopOutcome::Failed { .. } => Status::Failed,
                    LoopOutcome::Cancelled => Status::Cut,
                    LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } | LoopOutcome::Stopped { .. } => {
                        Status::Limited
                    }
                    _ => Status::Done,
                };
                self.close_below(id, Status::Cut);
                self.close(id, status);
            }
            _ => self.fold_call(event),
        }
    }

    fn fold_call(&mut self, event: &Event) {
        let path = &event.path;
        match &event.kind {
            EventKind::LoopToolCall(call) => self.tool_call(path, call),
            EventKind::LoopToolStart { .. } => {
                self.set_phase(path, Phase::Running);
                self.begin(self.around(path));
            }
            EventKind::LoopToolResult { result, duration, .. } => {
                let id = self.around(path);
                if let Some(call) = self.call_mut(id) {
                    call.phase = Phase::Done(result.clone());
                    call.duration = *duration;
                    call.progress = None;
                }
                let status = match result {
                    ToolResult::Success { .. } => Status::Done,
                    ToolResult::Error { .. } | ToolResult::Denied { .. } => Status::Failed,
                    ToolResult::Interrupted { .. } => Status::Cut,
                    ToolResult::Skipped { .. } => Status::Skipped,
                };
                self.close_below(id, Status::Cut);
                self.close(id, status);
            }
            EventKind::LoopBrainStart { title, .. } => {
                let id = self.around(path);
                if let Some(call) = self.call_mut(id) {
                    call.brain = Some(title.clone());
                    call.phase = Phase::Running;
                }
                self.begin(id);
            }
            EventKind::LoopOutput { id: output, output: side } => {
                let id = self.around(path);
                match side.clone() {
                    SideOutput::File(FileOutput { name, media_type, size, uri, .. }) => {
                        self.add(id, path, Status::Done, NodeKind::File { name, media_type, size, uri });
                    }
                    SideOutput::Custom(custom) => {
                        self.add(id, path, Status::Done, NodeKind::Custom(custom));
                    }
                    SideOutput::Widget(widget) => self.widget(path, output, &widget),
                    _ => {}
                }
            }
            EventKind::LoopApprovalRequested { reason, expires, .. } => {
                self.set_phase(path, Phase::Pending { reason: reason.clone(), expires: *expires });
                self.suspend(path);
            }
            EventKind::LoopApprovalDecided { decision, arguments: edited, reason: _, actor, .. } => {
                self.decided(path, *decision, edited.as_ref(), actor);
            }
            EventKind::LoopApprovalWithdrawn { .. } | EventKind::LoopApprovalExpired {} => {
                self.set_phase(path, Phase::Queued);
                self.queue(path);
            }
            EventKind::LoopWait { waits, .. } => {
                self.set_phase(path, Phase::Waiting { waits: waits.clone() });
                self.suspend(path);
            }
            EventKind::LoopResume { cause, wait, actor, .. } => {
                let answered = match cause {
                    ResumeCause::Answered => "answered",
                    ResumeCause::Expired => "no answer in time",
                };
                let id = self.around(path);
                if let Some(call) = self.call_mut(id) {
                    let webhook = match &call.phase {
                        Phase::Waiting { waits } => usize::try_from(*wait).ok().and_then(|wait| waits.get(wait)),
                        _ => None,
                    };
                    let what = webhook.map_or_else(String::new, |wait| format!("{}: ", wait.webhook));
                    call.decided = Some(format!("{what}{answered}{}", by(actor)));
                    call.phase = Phase::Running;
                }
                self.begin(id);
            }
            _ => {}
        }
    }

    /// Takes in a piece of what streams.
    pub fn delta(&mut self, delta: &Delta) {
        let path = &delta.path;
        if delta.kind == DeltaKind::Progress {
            if let Some(call) = self.place(path).and_then(|id| self.call_mut(id)) {
                call.progress = Some(delta.text.clone());
            }
            return;
        }
        let tried = (delta.attempt, delta.generation);
        let parent = self.around(path);
        let known = self.children(parent).iter().rev().copied().find(|child| {
            self.node(*child).is_some_and(|node| {
                node.path == *path
                    && match &node.kind {
                        NodeKind::Text { part, attempt, flow: Flow::Streaming | Flow::Thinking, .. } => {
                            delta.kind != DeltaKind::Arguments && (*part, *attempt) == (delta.part, tried)
                        }
                        NodeKind::Draft { index, attempt, .. } => {
                            delta.kind == DeltaKind::Arguments && (Some(*index), *attempt) == (delta.call, tried)
                        }
                        _ => false,
                    }
            })
        });
        match known.and_then(|id| self.nodes.get_mut(id)).map(|node| &mut node.kind) {
            Some(NodeKind::Text { text, .. } | NodeKind::Draft { text, .. }) => text.push_str(&delta.text),
            _ => {
                let text = delta.text.clone();
                let (part, attempt) = (delta.part, tried);
                let kind = match delta.kind {
                    DeltaKind::Text => NodeKind::Text { part, attempt, text, flow: Flow::Streaming },
                    DeltaKind::Reasoning => NodeKind::Text { part, attempt, text, flow: Flow::Thinking },
                    DeltaKind::Arguments => {
                        let (index, tool) = (delta.call.unwrap_or(0), delta.tool.clone().unwrap_or_default());
                        NodeKind::Draft { index, attempt, tool, text }
                    }
                    _ => return,
                };
                // A new try voids what the one before had streamed, and so does another model that steps in.
                self.drop_streamed_but(path, Some(tried));
                self.add(parent, path, Status::Running, kind);
            }
        }
    }

    fn brain_start(&mut self, path: &Path, start: &BrainStart) {
        let id = self.around(path);
        self.begin(id);
        self.opened |= start.start.as_ref().is_some_and(|start| start.message.is_some());
        if let Some(node) = self.nodes.get_mut(id) {
            match &mut node.kind {
                NodeKind::Root { title, options } => {
                    title.clone_from(&start.title);
                    options.clone_from(&start.options);
                }
                NodeKind::Call(call) => call.brain = Some(start.title.clone()),
                _ => {}
            }
        }
        for shape in &start.stages.0 {
            let stage = StageNode {
                name: shape.name.clone(),
                kind: shape.kind,
                iteration: None,
                max_iterations: None,
                outcome: None,
                usage: None,
                asking: None,
                limit: None,
                error: None,
            };
            self.add(id, &path.stage(&shape.name), Status::Ahead, NodeKind::Stage(stage));
        }
    }

    fn end_brain(&mut self, path: &Path, status: Status, end: End) {
        let id = self.around(path);
        self.close_below(id, status);
        if id == ROOT {
            self.close(id, status);
            self.end = Some(end);
            return;
        }
        let failed = match end {
            End::Failed { message } => Some(message),
            End::Completed { .. } | End::Cancelled { .. } => None,
        };
        if let Some(stage) = self.stage_mut(id) {
            stage.error = failed;
            self.close(id, status);
        }
    }

    fn tool_call(&mut self, path: &Path, call: &ToolCall) {
        let call = CallNode {
            tool: call.tool.clone(),
            arguments: serde_json::Value::clone(&call.arguments),
            brain: None,
            phase: Phase::Queued,
            decided: None,
            progress: None,
            duration: None,
        };
        let parent = path.parent().unwrap_or_default();
        self.add(self.around(&parent), path, Status::Ahead, NodeKind::Call(Box::new(call)));
    }

    fn set_phase(&mut self, path: &Path, phase: Phase) {
        if let Some(call) = self.call_mut(self.around(path)) {
            call.phase = phase;
        }
    }

    fn suspend(&mut self, path: &Path) {
        let id = self.around(path);
        if let Some(node) = self.nodes.get_mut(id) {
            node.status = Status::Waiting;
        }
    }

    fn queue(&mut self, path: &Path) {
        let id = self.around(path);
        if let Some(node) = self.nodes.get_mut(id) {
            node.status = Status::Ahead;
        }
    }

    fn decided(&mut self, path: &Path, decision: Decision, edited: Option<&Value>, actor: &Actor) {
        let id = self.around(path);
        if let Some(call) = self.call_mut(id) {
            call.phase = Phase::Queued;
            if decision == Decision::Approved {
                let by = by(actor);
                call.decided = Some(match edited {
                    Some(edited) => {
                        let proposed = std::mem::replace(&mut call.arguments, edited.clone());
                        format!("approved{by} with other arguments; the model asked for {}", arguments(&proposed, true))
                    }
                    None => format!("approved{by}"),
                });
            }
        }
        self.queue(path);
    }

    /// Notes that a request is no longer under way.
    fn answered(&mut self, path: &Path) {
        self.drop_streamed(path);
        if let Some(stage) = self.stage_mut(self.around(path))
            && stage.asking.as_ref().is_some_and(|asking| asking.path == *path)
        {
            stage.asking = None;
        }
    }

    fn answer(&mut self, path: &Path, parts: &[Part]) {
        let parent = self.around(path);
        for (part, content) in (0..).zip(parts) {
            let said = match content {
                Part::Text { text } | Part::Refusal { text } => Some((text, Flow::Whole)),
                // What a provider shows of a model's thoughts has data of its own.
                Part::Reasoning { text, data: None } => Some((text, Flow::Reason)),
                _ => None,
            };
            if let Some((text, flow)) = said.filter(|(text, _)| !text.trim().is_empty()) {
                let text = NodeKind::Text { part, attempt: (0, 0), text: text.clone(), flow };
                self.add(parent, path, Status::Done, text);
            }
        }
    }

    fn message(&mut self, path: &Path, text: &str, engine: bool) {
        self.add(self.around(path), path, Status::Done, NodeKind::Message { text: text.to_owned(), engine });
    }

    fn limited(&mut self, path: &Path, limit: String) {
        if let Some(stage) = self.stage_mut(self.around(path)) {
            stage.limit = Some(limit);
        }
    }

    /// Adds a remark about a loop or a brain where it happens: of a brain, in the stage that is at work.
    fn note_at_work(&mut self, path: &Path, text: String, warn: bool) {
        let mut at = self.around(path);
        while let Some(stage) = self.stage_at_work(at) {
            at = stage;
        }
        self.add(at, path, Status::Done, NodeKind::Note { text, warn });
    }

    /// Finds the stage of a brain that has begun and is not over.
    fn stage_at_work(&self, brain: NodeId) -> Option<NodeId> {
        let is_at_work = |id: &NodeId| {
            self.node(*id).is_some_and(|node| {
                matches!(node.kind, NodeKind::Stage(_)) && matches!(node.status, Status::Running | Status::Waiting)
            })
        };
        self.children(brain).iter().copied().find(is_at_work)
    }

    /// Says how a request went to its answer, where wrappers of models did something with it.
    fn went(&mut self, path: &Path, metadata: &ResponseMetadata) {
        if let Some(way) = way(metadata) {
            self.note(path, way, failed_over(metadata));
        }
    }

    /// Adds a remark at a place.
    pub(crate) fn note(&mut self, path: &Path, text: String, warn: bool) {
        self.add(self.around(path), path, Status::Done, NodeKind::Note { text, warn });
    }
}

/// Writes what was granted: `20 tokens more`.
pub(crate) fn granted(granted: &Amounts, currency: Option<&str>) -> String {
    let amounts: Vec<String> = granted.kinds().map(|kind| more(kind, granted.of(kind), currency)).collect();
    amounts.join(" and ")
}

/// Names who did something, with a leading blank; nothing where it is unknown.
pub(crate) fn by(actor: &Actor) -> String {
    match (&actor.by, &actor.channel) {
        (Some(by), _) => format!(" by {by}"),
        (None, Some(channel)) if channel == "cli" => " at the command line".to_owned(),
        (None, Some(channel)) => format!(" over {channel}"),
        (None, None) => String::new(),
    }
}
