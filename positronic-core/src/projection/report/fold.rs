//! From events to a report, event by event.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::super::cost::{CallCost, Costs};
use super::{Ending, RefusedAnswer, ReportCall, ReportIteration, ReportPart, RunReport};
use crate::projection::Spent;
use crate::record::{
    Actor, Decision, Event, EventKind, FileOutput, LimitKind, LoopOutcome, Part, Path, PriceTable, ResumeCause,
    Segment, SideOutput, Speaker, StageKind, TriggerChange, WaitSpec,
};

/// Folds a log.
pub(super) fn folded<'a>(events: impl IntoIterator<Item = &'a Event>, prices: &PriceTable) -> Option<RunReport> {
    let mut fold: Option<Fold<'_>> = None;
    for event in events {
        match (&mut fold, &event.kind) {
            (Some(fold), _) => fold.apply(event),
            (None, EventKind::BrainStart(start)) => {
                let costs = Costs::of([event], prices);
                let report = RunReport {
                    title: start.title.clone(),
                    options: start.options.clone(),
                    user: start.start.as_ref().and_then(|start| start.user.clone()),
                    began: event.at,
                    last: event.at,
                    ending: None,
                    notes: Vec::new(),
                    parts: Vec::new(),
                    files: Vec::new(),
                    costs,
                };
                fold = Some(Fold { report, prices, parts: IndexMap::new(), asking: HashSet::new() });
            }
            // A run's first worker comes with its first event, in whatever order.
            (None, _) => {}
        }
    }
    fold.map(Fold::done)
}

struct Fold<'p> {
    report: RunReport,
    prices: &'p PriceTable,
    parts: IndexMap<Path, Building>,
    /// The iterations for which a plugin's question is open, whose answer is no part of the conversation.
    asking: HashSet<Path>,
}

/// A part with its iterations and their calls by their paths.
struct Building {
    part: ReportPart,
    iterations: IndexMap<Path, (ReportIteration, IndexMap<Path, ReportCall>)>,
}

impl Fold<'_> {
    fn done(self) -> RunReport {
        let parts = self.parts.into_values().map(|Building { mut part, iterations }| {
            let iteration = |(mut iteration, calls): (ReportIteration, IndexMap<Path, ReportCall>)| {
                iteration.calls = calls.into_values().collect();
                iteration
            };
            part.iterations = iterations.into_values().map(iteration).collect();
            part
        });
        RunReport { parts: parts.collect(), ..self.report }
    }

    /// Returns the part with this path, which begins now where it has not.
    fn part(&mut self, path: &Path, kind: StageKind) -> &mut Building {
        self.parts.entry(path.clone()).or_insert_with(|| Building {
            part: ReportPart {
                path: path.clone(),
                kind,
                title: None,
                input: None,
                notes: Vec::new(),
                iterations: Vec::new(),
                outcome: None,
                over: false,
                duration: None,
            },
            iterations: IndexMap::new(),
        })
    }

    fn iteration(&mut self, path: &Path) -> &mut (ReportIteration, IndexMap<Path, ReportCall>) {
        let loop_at = path.parent().unwrap_or_default();
        let part = self.part(&loop_at, StageKind::Loop);
        part.iterations.entry(path.clone()).or_insert_with(|| {
            let iteration = ReportIteration {
                path: path.clone(),
                question: None,
                refused: Vec::new(),
                reason: String::new(),
                said: String::new(),
                notes: Vec::new(),
                calls: Vec::new(),
                answered: false,
                duration: None,
                spent: Spent::default(),
            };
            (iteration, IndexMap::new())
        })
    }

    fn call(&mut self, path: &Path) -> Option<&mut ReportCall> {
        let (loop_at, Some(Segment::Call(iteration, _))) = (path.parent()?, path.last()) else { return None };
        self.parts.get_mut(&loop_at)?.iterations.get_mut(&loop_at.iteration(iteration))?.1.get_mut(path)
    }

    /// Notes something where it happened: at a call, an iteration, a part, or the run.
    fn note(&mut self, path: &Path, sentence: impl Into<String>) {
        let sentence = sentence.into();
        match path.last() {
            Some(Segment::Call(..)) => {
                if let Some(call) = self.call(path) {
                    call.notes.push(sentence);
                }
            }
            Some(Segment::Iteration(_)) => self.iteration(path).0.notes.push(sentence),
            Some(Segment::Stage(_)) => {
                if let Some(building) = self.parts.get_mut(path) {
                    building.part.notes.push(sentence);
                }
            }
            None => self.report.notes.push(sentence),
        }
    }

    /// Says that a nested brain's stage is over.
    fn over(&mut self, path: &Path, duration: Option<u64>) {
        if let Some(building) = self.parts.get_mut(path) {
            building.part.over = true;
            building.part.duration = building.part.duration.or(duration);
        }
    }

    fn amount(&self, kind: LimitKind, number: u64) -> String {
        kind.amount(number, self.report.costs.limits_in.as_deref())
    }

    /// Says of the stages that are open that the run's end is theirs.
    fn close(&mut self, sentence: &str) {
        for Building { part, .. } in self.parts.values_mut() {
            if !part.over && part.outcome.is_none() {
                part.notes.push(sentence.to_owned());
                part.over = true;
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        let path = &event.path;
        self.report.last = event.at;
        if self.report.costs.limits_in.is_none() {
            self.report.costs.limits_in = event.currency().map(str::to_owned);
        }
        if let Some(cost) = CallCost::of(event, self.prices) {
            self.iteration(path).0.spent += &cost;
            self.report.costs.calls.push(cost);
        }
        match &event.kind {
            EventKind::BrainStart(start) => {
                if let Some(Segment::Stage(_)) = path.last() {
                    self.part(path, StageKind::Brain).part.title = Some(start.title.clone());
                }
            }
            EventKind::BrainMigrated { version, .. } => {
                self.note(path, format!("it went on with version {version} of its brain"));
            }
            EventKind::BrainComplete { result } => {
                if path.is_root() {
                    self.report.ending = Some(Ending::Completed { result: result.clone() });
                }
                self.over(path, None);
            }
            EventKind::BrainError(failure) => {
                if path.is_root() {
                    self.report.ending = Some(Ending::Failed(failure.clone()));
                    self.close("it failed");
                } else {
                    self.note(path, format!("the brain failed: {}", failure.message));
                }
                self.over(path, None);
            }
            EventKind::BrainCancelled { actor, reason, .. } => {
                if path.is_root() {
                    self.report.ending = Some(Ending::Cancelled { by: actor.by.clone(), reason: reason.clone() });
                    self.close("it was cancelled with the run");
                } else {
                    self.note(path, "it was cancelled with the run");
                }
                self.over(path, None);
            }
            EventKind::BrainPaused { actor, .. } => self.note(path, format!("it was paused{}", by(actor))),
            EventKind::BrainResumed { actor, .. } => self.note(path, format!("its pause was lifted{}", by(actor))),
            EventKind::StepStart { .. } => _ = self.part(path, StageKind::Step),
            EventKind::StepComplete { duration, .. } => self.over(path, Some(*duration)),
            EventKind::StepRetry { attempt, message, .. } => self.note(path, retried(*attempt, message)),
            EventKind::StepBlocked {} => self.note(path, "it was held at a limit, to run again once there is more"),
            EventKind::LoopStart { input, from, .. } => {
                let said = input.as_ref().filter(|_| *from == Speaker::Person);
                self.part(path, StageKind::Loop).part.input = said.cloned();
            }
            EventKind::LoopIteration(_) => {
                self.asking.remove(path);
                self.iteration(path);
            }
            EventKind::LoopModelCall { question, .. } => {
                let is_step = self
                    .parts
                    .get(&path.parent().unwrap_or_default())
                    .is_some_and(|building| building.part.kind == StageKind::Step);
                if question.is_some() && !is_step {
                    self.asking.insert(path.clone());
                }
                let iteration = &mut self.iteration(path).0;
                if let Some(question) = question.as_ref().filter(|_| is_step) {
                    iteration.question = Some(question.text.clone());
                }
            }
            EventKind::LoopModelResult { parts, duration, .. } => {
                if self.asking.remove(path) {
                    self.note(path, format!("a plugin asked the model, which answered: {}", said(parts)));
                } else {
                    let iteration = &mut self.iteration(path).0;
                    (iteration.reason, iteration.said) = (thought(parts), said(parts));
                    (iteration.answered, iteration.duration) = (true, Some(*duration));
                }
            }
            EventKind::LoopModelRetry { attempt, error, .. } => {
                self.note(path, format!("try {} of the model failed: {}", attempt + 1, error.message));
            }
            EventKind::LoopAnswerRefused { message, parts, .. } => {
                let refused = RefusedAnswer { message: message.clone(), answer: said(parts) };
                self.iteration(path).0.refused.push(refused);
            }
            EventKind::LoopToolCall(made) => {
                let Some(Segment::Call(iteration, _)) = path.last() else { return };
                let call = ReportCall {
                    path: path.clone(),
                    tool: made.tool.clone(),
                    arguments: Arc::clone(&made.arguments),
                    edited: None,
                    notes: Vec::new(),
                    result: None,
                    duration: None,
                };
                let loop_at = path.parent().unwrap_or_default();
                self.iteration(&loop_at.iteration(iteration)).1.insert(path.clone(), call);
            }
            EventKind::LoopToolRetry { attempt, message, .. } => self.note(path, retried(*attempt, message)),
            EventKind::LoopToolResult { result, duration, .. } => {
                if let Some(call) = self.call(path) {
                    (call.result, call.duration) = (Some(result.clone()), *duration);
                }
            }
            EventKind::LoopBrainStart { title, .. } => self.note(path, format!("it ran the brain {title}")),
            EventKind::LoopBrainComplete { error, .. } => {
                if let Some(error) = error {
                    self.note(path, format!("the brain ended in failure: {error}"));
                }
            }
            EventKind::LoopOutput { output, .. } => self.shown(path, output),
            EventKind::LoopTrigger { change: TriggerChange::Set(trigger) } => {
                self.note(path, format!("it set the trigger {}: {}", trigger.id, trigger.what));
            }
            EventKind::LoopTrigger { change: TriggerChange::Deleted(id) } => {
                self.note(path, format!("it took the trigger {id} back"));
            }
            EventKind::LoopApprovalRequested { reason, .. } => self.note(path, format!("a person was asked: {reason}")),
            EventKind::LoopApprovalDecided { decision, arguments, reason, actor, .. } => {
                if let Some(call) = self.call(path) {
                    call.edited.clone_from(arguments);
                }
                self.note(path, decided(*decision, actor, reason.as_deref()));
            }
            EventKind::LoopApprovalWithdrawn { cause } => self.note(path, format!("the question is void: {cause}")),
            EventKind::LoopApprovalExpired {} | EventKind::BudgetExpired {} => {
                self.note(path, "nobody decided in time");
            }
            EventKind::LoopWait { waits, .. } => {
                let waits: Vec<_> = waits.iter().map(awaited).collect();
                self.note(path, format!("it waited for {}", waits.join(" or ")));
            }
            EventKind::LoopResume { cause: ResumeCause::Expired, .. } => self.note(path, "no answer came in time"),
            EventKind::LoopResume { cause: ResumeCause::Answered, payload, actor, .. } => {
                self.note(path, format!("an answer came{}: {payload}", by(actor)));
            }
            EventKind::LoopMessage { text, from, actor, .. } => {
                let who = match from {
                    Speaker::Person => actor.by.as_deref().unwrap_or("a person"),
                    Speaker::Engine => "the engine",
                };
                self.note(path, format!("{who} said: {text}"));
            }
            EventKind::LoopMaxIterations { limit } => {
                self.note(path, format!("its limit of {limit} iterations was reached"));
            }
            EventKind::LoopLimit { kind, limit, used, unpriced, .. } => self.note(
                path,
                match unpriced {
                    Some(model) => format!("a limit of money cannot be kept, since the cost of {model} is unknown"),
                    None => {
                        format!("a limit was reached: {} of {}", self.amount(*kind, *used), self.amount(*kind, *limit))
                    }
                },
            ),
            EventKind::BudgetRequested { kind, limit, used, .. } => {
                let (used, limit) = (self.amount(*kind, *used), self.amount(*kind, *limit));
                self.note(path, format!("a person was asked for more: {used} of {limit} are used"));
            }
            EventKind::BudgetDecided { decision, reason, actor, .. } => {
                self.note(path, decided(*decision, actor, reason.as_deref()));
            }
            EventKind::LoopPluginFailed { plugin, message } => {
                self.note(path, format!("the plugin {plugin} failed: {message}"));
            }
            EventKind::LoopStopped { message, .. } => self.note(path, message.clone()),
            EventKind::LoopCompacted { summary, .. } => self.note(
                path,
                match summary {
                    Some(_) => "older messages were summarised for the model from here on",
                    None => "all messages were sent whole again from here on",
                },
            ),
            EventKind::LoopComplete { outcome, .. } => {
                if let Some(building) = self.parts.get_mut(path) {
                    (building.part.outcome, building.part.over) = (Some(outcome.clone()), true);
                }
                if let LoopOutcome::Failed { message, .. } = outcome {
                    self.note(path, format!("it failed: {message}"));
                }
            }
            EventKind::RunClaimed { .. }
            | EventKind::RunReleased { .. }
            | EventKind::RunNotClaimed { .. }
            | EventKind::ValueRecorded { .. }
            | EventKind::LoopToolStart { .. }
            | EventKind::LoopExit { .. }
            | EventKind::LoopPluginChanged { .. } => {}
        }
    }

    fn shown(&mut self, path: &Path, output: &SideOutput) {
        match output {
            SideOutput::File(file) => {
                self.note(path, format!("it wrote the file {}", file.name));
                let files: &mut Vec<FileOutput> = &mut self.report.files;
                files.retain(|known| known.name != file.name);
                files.push(file.clone());
            }
            SideOutput::Widget(widget) => self.note(path, format!("it showed: {}", widget.fallback)),
            SideOutput::Custom(custom) => self.note(path, format!("it showed: {}", custom.fallback)),
        }
    }
}

fn by(actor: &Actor) -> String {
    actor.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"))
}

fn decided(decision: Decision, actor: &Actor, reason: Option<&str>) -> String {
    let decided = match decision {
        Decision::Approved => "it was approved",
        Decision::Rejected => "it was refused",
    };
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{decided}{}{reason}", by(actor))
}

fn retried(attempt: u32, message: &str) -> String {
    format!("try {} failed, and it was tried again: {message}", attempt + 1)
}

fn awaited(wait: &WaitSpec) -> String {
    match (&wait.prompt, wait.identifier.as_str()) {
        (Some(prompt), _) => prompt.clone(),
        (None, "") => wait.webhook.clone(),
        (None, identifier) => format!("{} {identifier}", wait.webhook),
    }
}

/// Returns what an answer says.
fn said(parts: &[Part]) -> String {
    texts(parts, |part| match part {
        Part::Text { text } | Part::Refusal { text } => Some(text),
        Part::Reasoning { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
    })
}

/// Returns what the model thought, as far as it is shown.
fn thought(parts: &[Part]) -> String {
    texts(parts, |part| match part {
        Part::Reasoning { text, .. } => Some(text),
        Part::Text { .. } | Part::Refusal { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
    })
}

fn texts<'p>(parts: &'p [Part], text: impl Fn(&'p Part) -> Option<&'p String>) -> String {
    let texts: Vec<_> = parts.iter().filter_map(text).map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}
