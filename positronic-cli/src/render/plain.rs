//! Reporter that appends one line per notable event: for a pipe, a file, a log.

use std::io::{self, Write};
use std::time::Duration;

use positronic_core::record::LimitReached;
use positronic_core::record::{
    CODE, Citation, Event, EventKind, FileRef, LoopOutcome, Part, Path, PriceTable, ProviderToolUse, ResponseMetadata,
    ResumeCause, Segment, SideOutput, Speaker, ToolResult, Usage,
};

use super::figures::{duration, many, seconds, tokens};
use super::routing::way;
use super::shown_answer::{ShownAnswer, ShownPart};
use super::words::{self, by, why};
use super::{Style, View, arguments, one_line, printable, shorten, value_line};

/// Reports a run line by line.
#[derive(Debug)]
pub(crate) struct Plain<W: Write> {
    out: W,
    view: View,
    style: Style,
    started: Option<positronic_core::record::Timestamp>,
}

/// Maximum length of arguments and results in a line.
const DETAIL: usize = 160;

impl<W: Write> Plain<W> {
    /// Creates a reporter that writes to `out`. Of the style only `unicode` applies: there are no colours and no wrapping.
    pub(crate) fn new(out: W, style: Style) -> Self {
        Self { out, view: View::new(), style, started: None }
    }

    /// Calculates costs with these prices.
    #[must_use]
    pub(crate) fn priced(mut self, prices: Option<PriceTable>) -> Self {
        self.view = self.view.priced(prices);
        self
    }

    /// Returns the view.
    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    /// Applies the next event, and writes its line if it has one.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        self.view.apply(event);
        let started = *self.started.get_or_insert(event.at);
        let Some(text) = self.tell(event) else { return Ok(()) };
        let place = one_line(&self.view.trail(&event.path));
        let colon = if place.is_empty() { "" } else { ": " };
        let since = clock(event.at.since(started));
        writeln!(self.out, "{}", printable(format!("{since} {place}{colon}{text}"), self.style.unicode))
    }

    /// Applies the next event, and returns its text, without place and time.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<String> {
        self.view.apply(event);
        self.tell(event)
    }

    /// Appends a line that belongs to no event.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        let text = line(text);
        writeln!(self.out, "{}", printable(text, self.style.unicode))
    }

    fn tell(&self, event: &Event) -> Option<String> {
        Some(match &event.kind {
            EventKind::BrainStart(start) => {
                let options = detail(&arguments(&start.options));
                let with = if options.is_empty() { String::new() } else { format!(" with {options}") };
                format!("{} starts{with}", line(&start.title))
            }
            EventKind::BrainComplete { .. } if event.path.is_root() => format!("completed, {}", self.used()),
            EventKind::BrainComplete { .. } => "completed".to_owned(),
            EventKind::BrainError(failure) => format!("failed: {}", line(&failure.message)),
            EventKind::BrainCancelled { actor, reason, .. } => {
                line(&format!("cancelled{}{}", by(actor), why(reason.as_deref())))
            }
            EventKind::BrainPaused { failure: Some(failure), .. } => format!("parked: {}", line(&failure.message)),
            EventKind::BrainPaused { actor, .. } => format!("paused{}", by(actor)),
            EventKind::BrainResumed { actor, .. } => format!("resumed{}", by(actor)),
            EventKind::StepComplete { duration: took, .. } => format!("done in {}", duration(*took)),
            EventKind::StepRetry { attempt, message, due } | EventKind::LoopToolRetry { attempt, message, due } => {
                again(*attempt, message, due.since(event.at))
            }
            EventKind::LoopStart { input, files, from: Speaker::Person, .. }
                if input.is_some() || !files.is_empty() =>
            {
                format!("begins with: {}", message(input.as_deref().unwrap_or_default(), files))
            }
            EventKind::LoopStart { .. } => "begins".to_owned(),
            EventKind::LoopIteration(_) => match event.path.last() {
                Some(Segment::Iteration(iteration)) => format!("iteration {}", u64::from(iteration) + 1),
                _ => return None,
            },
            EventKind::LoopModelResult { parts, metadata, duration: took } => answer(parts, metadata, *took),
            EventKind::LoopModelRetry { attempt, error, due } => {
                again(*attempt, &error.to_string(), due.since(event.at))
            }
            EventKind::LoopAnswerRefused { message, .. } => {
                format!("invalid structured action: {}", line(message))
            }
            EventKind::LoopToolCall(call) => {
                let arguments = detail(&arguments(&call.arguments));
                let repaired = call.repair.as_ref().map_or_else(String::new, |repair| line(&words::repaired(repair)));
                match arguments.is_empty() {
                    true => format!("called{repaired}"),
                    false => format!("called with {arguments}{repaired}"),
                }
            }
            EventKind::LoopToolResult { result, duration, .. } => call_result(result, *duration),
            EventKind::LoopOutput { output: SideOutput::File(file), .. } => {
                format!("file {}", line(&words::file(&file.file)))
            }
            EventKind::LoopOutput { output: SideOutput::Custom(custom), .. } => {
                format!("shows {}: {}", line(&custom.kind), line(&custom.fallback))
            }
            EventKind::LoopOutput { output: SideOutput::Widget(widget), .. } => {
                let shows = if widget.replaces.is_some() { "updated" } else { "shows" };
                format!("{shows}: {}", line(&widget.fallback))
            }
            EventKind::LoopApprovalRequested { reason, .. } => format!("needs approval: {}", line(reason)),
            EventKind::LoopApprovalDecided { decision, arguments: edited, reason, actor, .. } => {
                let edited = edited.as_ref().map(|edited| format!(": {}", detail(&arguments(edited))));
                let decision = words::decision(*decision, edited.is_some(), reason.as_deref(), actor);
                line(&decision) + &edited.unwrap_or_default()
            }
            EventKind::LoopApprovalWithdrawn { cause } => format!("approval no longer needed: {}", line(cause)),
            EventKind::LoopApprovalExpired {} => words::NO_DECISION.to_owned(),
            EventKind::LoopWait { waits, .. } => {
                let waits: Vec<String> =
                    waits.iter().map(|wait| format!("{} {}", wait.webhook, line(&wait.identifier))).collect();
                format!("waits for {}", waits.join(" or "))
            }
            EventKind::LoopResume { cause: ResumeCause::Answered, payload, actor, received, .. } => {
                let older = if received.is_some() { " (older than its question)" } else { "" };
                format!("answered{}{older}: {}", by(actor), detail(&value_line(payload)))
            }
            EventKind::LoopResume { cause: ResumeCause::Expired, .. } => "got no answer in time".to_owned(),
            EventKind::LoopMessage { text, files, from: Speaker::Person, .. } => {
                format!("got the message: {}", line(&words::message(text, files)))
            }
            EventKind::LoopMessage { text, from: Speaker::Engine, .. } => {
                format!("message to the model: {}", line(text))
            }
            EventKind::LoopMaxIterations { limit } => format!("stopped after {}", many(u64::from(*limit), "iteration")),
            EventKind::LoopLimit(LimitReached { kind, limit, used, unpriced, .. }) => {
                let currency = self.view.currency();
                let limit = words::limit(*kind, *used, *limit, unpriced.as_deref(), currency);
                format!("stopped by a limit: {}", line(&limit))
            }
            EventKind::BudgetRequested(request) => {
                let asks = super::limits::limit_question(request, self.view.currency());
                format!("{}{asks}", of_run(&event.path))
            }
            EventKind::BudgetDecided { decision, more, reason, actor, .. } => {
                let decided = words::grant(*decision, more, reason.as_deref(), actor, self.view.currency());
                format!("{}{}", of_run(&event.path), line(&decided))
            }
            EventKind::BudgetExpired {} => words::NO_GRANT.to_owned(),
            EventKind::StepBlocked {} => "needs a model call that a limit forbids".to_owned(),
            EventKind::LoopCompacted { summary, .. } => words::compaction(summary.is_some()).to_owned(),
            EventKind::LoopComplete { outcome, usage, .. } => self.ended(outcome, &event.path, &used(usage)),
            _ => return None,
        })
    }

    fn used(&self) -> String {
        let asked = match self.view.timeline.answers {
            0 => return "no model was asked".to_owned(),
            answers => many(answers, "model answer"),
        };
        format!("{asked}{}, {}", used(&self.view.timeline.usage), self.view.cost())
    }

    fn ended(&self, outcome: &LoopOutcome, path: &Path, tokens: &str) -> String {
        let iteration = self.view.timeline.stage(path).and_then(|stage| stage.iteration);
        let iterations = iteration.map_or(0, |iteration| u64::from(iteration) + 1);
        let (how, why) = match outcome {
            LoopOutcome::Exited { tool } => (format!("ended by {tool}"), None),
            LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } => ("ended by a limit".to_owned(), None),
            LoopOutcome::Stopped { message, .. } => ("stopped".to_owned(), Some(message)),
            LoopOutcome::Failed { message, .. } => ("failed".to_owned(), Some(message)),
            LoopOutcome::Cancelled => ("cancelled".to_owned(), None),
            _ => ("ended".to_owned(), None),
        };
        let why = line(&why.map_or_else(String::new, |message| format!(": {message}")));
        format!("{how} after {}{tokens}{why}", many(iterations, "iteration"))
    }
}

/// Renders the tokens, if known, as the end of a list.
/// Begins a sentence about the run itself, which has no place before it.
fn of_run(path: &Path) -> &'static str {
    if path.is_root() { "the run: " } else { "" }
}

fn used(usage: &Usage) -> String {
    if usage.total() == 0 { String::new() } else { format!(", {}", tokens(usage)) }
}

/// Writes the time since the run's start as `mm:ss.t`.
fn clock(since: Duration) -> String {
    let seconds = since.as_secs();
    format!("{:02}:{:02}.{}", seconds / 60, seconds % 60, since.subsec_millis() / 100)
}

fn seconds_or_less(length: Duration) -> String {
    if length.as_secs() == 0 { duration(length) } else { seconds(length) }
}

fn again(attempt: u32, message: &str, left: Duration) -> String {
    format!("{}; try {} in {}", line(message), u64::from(attempt) + 2, seconds_or_less(left))
}

fn answer(parts: &[Part], metadata: &ResponseMetadata, took: Duration) -> String {
    let shown = ShownAnswer::of(parts);
    let mut said: Vec<String> = Vec::new();
    for part in &shown.parts {
        match part {
            ShownPart::Text(text) => said.push(line(text)),
            ShownPart::Reason(reason) => said.push(line(reason)),
            ShownPart::Tool(used) => said.push(format!("[{}]", provider_tool(used))),
            ShownPart::File(file) => said.push(format!("[{}]", line(&words::file(file)))),
        }
    }
    if !shown.sources.is_empty() {
        said.push(format!("[sources: {}]", listed(&shown.sources)));
    }
    let text = if said.is_empty() { String::new() } else { format!(": {}", said.join(" ")) };
    let who = if metadata.provider == CODE { "code" } else { "the model" };
    let way = way(metadata).map_or_else(String::new, |way| format!(" ({})", line(&way)));
    format!("{who} answered in {}{}{way}{text}", duration(took), used(&metadata.usage))
}

/// Renders what a tool of the provider did, and how many sources it found.
fn provider_tool(used: &ProviderToolUse) -> String {
    let outcome = match (&used.error, &used.output) {
        (Some(error), _) => format!(" → error: {}", detail(&line(error))),
        (None, Some(output)) if !output.trim().is_empty() => format!(" → {}", detail(&line(output))),
        (None, _) => String::new(),
    };
    let sources: Vec<_> = used.sources.iter().collect();
    let sources = if sources.is_empty() { String::new() } else { format!("; sources: {}", listed(&sources)) };
    format!("{}{outcome}{sources}", detail(&line(&words::provider_tool(used))))
}

fn listed(sources: &[&Citation]) -> String {
    words::sources(sources).iter().map(|source| detail(source)).collect::<Vec<_>>().join(", ")
}

/// Renders an opening message: its text shortened, and its files.
fn message(text: &str, files: &[FileRef]) -> String {
    line(&words::message(&detail(&line(text)), files))
}

fn call_result(result: &ToolResult, took: Option<Duration>) -> String {
    let took = took.map_or_else(String::new, |took| format!(" in {}", duration(took)));
    match (result, words::without_result(result)) {
        (ToolResult::Success { output, .. }, _) if output.is_null() => format!("ok{took}"),
        (ToolResult::Success { output, .. }, _) => format!("ok{took}: {}", detail(&value_line(output))),
        (ToolResult::Error { .. } | ToolResult::Interrupted { .. }, Some((word, rest))) => {
            line(&format!("{word}{took}{rest}"))
        }
        (_, other) => other.map_or_else(String::new, |(word, rest)| line(&format!("{word}{rest}"))),
    }
}

fn detail(text: &str) -> String {
    shorten(text, DETAIL)
}

fn line(text: &str) -> String {
    one_line(text.trim())
}
