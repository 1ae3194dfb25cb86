//! Prompts: the records of a run's loops, folded event by event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::dialogue::{dialogue, extend, joined};
use super::history::{History, Past, Turn};
use super::messages::{messages, opening};

mod saved;

pub(crate) use saved::PromptsPart;

use crate::record::{
    Approval, BatchPolicy, Before, CallState, Event, EventKind, FileRef, Message, Output, OutputKind, Path, Prompt,
    PromptState, RunId, Segment, Seq, Settings, Speaker, ToolCall, ToolOutput, Transcript, Usage, parent_of,
    segments_of,
};

/// The prompts of all loops of a run, with the messages that the open ones send.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    history: History,
    run: Option<RunId>,
    user_id: Option<String>,
    /// The run before this one in its conversation.
    after: Option<RunId>,
    records: IndexMap<Path, Record>,
    /// The event up to which the prompts are saved.
    saved: Seq,
}

#[derive(Debug, Clone)]
struct Record {
    prompt: Prompt,
    /// The version of the rules for its messages.
    rules: u32,
    transcript: Transcript,
    projected: usize,
    /// Whether a plugin's question is open, whose answer is not part of the conversation.
    asking: bool,
    /// Whether a summary replaces some of its messages.
    compacted: bool,
    /// The conversation before it.
    history: History,
    /// Its compaction: the messages that replace everything before `from`.
    standing: Vec<Message>,
    /// The first output that is sent unchanged.
    from: usize,
    /// The order in which the calls of a batch run.
    policy: BatchPolicy,
    /// The paths of loops in nested brains that wait.
    waiting_below: BTreeMap<Path, PromptState>,
    /// How many of its first outputs are saved and do not change any more.
    saved: usize,
    /// Whether it is saved with its end.
    is_saved: bool,
}

impl Prompts {
    /// Begins with the history of a conversation, which precedes the messages of each loop of the run's brain.
    #[must_use]
    pub fn after(history: impl Into<History>) -> Self {
        Self { history: history.into(), ..Self::default() }
    }

    /// Returns the conversation up to the end of this run: its history and the loops of the run's brain. A
    /// compacted loop has only its compacted messages.
    #[must_use]
    pub fn conversation(&self) -> History {
        let mut parts = Vec::new();
        for record in self.records.values().filter(|record| is_of_root(&record.prompt.path)) {
            let outputs = record.prompt.output.get(record.from..).unwrap_or_default().into();
            if record.compacted {
                let (messages, standing) = (record.next_messages(), record.standing.clone());
                parts.push(Past::Compacted { messages, standing, outputs });
            } else {
                parts.extend(opening(&record.prompt).map(|opening| Past::Said(vec![opening])));
                parts.push(Past::Done(outputs));
            }
        }
        self.history.then(self.after.clone(), Turn::new(parts))
    }

    /// Sets the run, so that the ids of its prompts are unique among runs.
    #[must_use]
    pub fn in_run(self, run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..self }
    }

    /// Folds a whole log.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        Self::default().with(events)
    }

    /// Folds further events.
    #[must_use]
    pub fn with<'a>(mut self, events: impl IntoIterator<Item = &'a Event>) -> Self {
        for event in events {
            self.apply(event);
        }
        self
    }

    /// Returns the final text of the run: that of the last visible loop of its own brain.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        let mut own = self.iter().filter(|prompt| prompt.visible && is_of_root(&prompt.path));
        own.next_back()?.answer()
    }

    fn history_of(&self, path: &Path) -> History {
        if is_of_root(path) { self.history.clone() } else { History::default() }
    }

    /// Returns the prompt of the loop with this path.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&Prompt> {
        self.records.get(path).map(|record| &record.prompt)
    }

    /// Iterates over the prompts in the order in which the loops began.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.records.values().map(|record| &record.prompt)
    }

    /// Returns the messages that the current iteration of a loop sends.
    #[must_use]
    pub fn transcript(&self, path: &Path) -> Transcript {
        self.records.get(path).map(|record| record.transcript.clone()).unwrap_or_default()
    }

    /// Returns the messages of a loop's current iteration for a model with a projection of its own; `project`
    /// returns `None` for one without.
    #[must_use]
    pub fn transcript_by(&self, path: &Path, mut project: impl FnMut(&[Output]) -> Option<Vec<Message>>) -> Transcript {
        let Some(record) = self.records.get(path) else { return Transcript::default() };
        let sent = record.prompt.output.get(record.from..record.projected).unwrap_or_default();
        let made = project(sent).and_then(|sent| Some((record.before_by(project)?, sent)));
        match made {
            // A model with a projection of its own applies its own rules.
            Some((before, sent)) => Transcript::new(before.into_iter().chain(sent)),
            None => record.transcript.clone(),
        }
    }

    /// Returns the messages that a loop's next iteration will send, as of now.
    #[must_use]
    pub fn next_messages(&self, path: &Path) -> Vec<Message> {
        self.records.get(path).map(Record::next_messages).unwrap_or_default()
    }

    /// Folds one event.
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::BrainStart(start) => {
                if let Some(start) = &start.start {
                    self.user_id.clone_from(&start.user);
                    self.after.clone_from(&start.after);
                }
                return;
            }
            EventKind::LoopStart { input, from, files, hidden, projection, limits, .. } => {
                let own = input.clone().filter(|_| *from == Speaker::Person).map(|text| (text, files.clone()));
                let history = self.history_of(&event.path);
                let path = event.path.clone();
                let mut record = Record::new(path, self.user_id.clone(), own, !hidden, history, *projection);
                record.policy = limits.policy;
                if let Some(run) = &self.run {
                    record.prompt.id = event.path.id_in(run);
                }
                if let (Some(text), Speaker::Engine) = (input, from) {
                    record.push(
                        event,
                        None,
                        OutputKind::Message { text: text.clone(), engine: true, files: files.clone() },
                    );
                }
                self.records.insert(event.path.clone(), record);
                return;
            }
            _ => {}
        }
        let path = event.path.as_str();
        let loop_at = match event.path.last() {
            Some(Segment::Iteration(_) | Segment::Call(..)) => parent_of(path),
            Some(Segment::Stage(_)) => Some(path),
            None => None,
        };
        let Some((loop_at, record)) = loop_at.and_then(|at| Some((at, self.records.get_mut(at)?))) else { return };
        let before = record.prompt.state;
        record.apply(event);
        if record.prompt.state != before {
            let state = record.prompt.state;
            self.tell_above(loop_at, state);
        }
    }

    /// Updates the waiting state of the loops whose calls run the brain of a loop.
    fn tell_above(&mut self, loop_at: &str, mut state: PromptState) {
        let mut below = loop_at;
        while let Some(call) = call_around(below) {
            let Some((above, record)) = parent_of(call).and_then(|at| Some((at, self.records.get_mut(at)?))) else {
                return;
            };
            let Ok(path) = Path::parse(below) else { return };
            match state {
                PromptState::WaitingForApproval | PromptState::WaitingForWebhook => {
                    record.waiting_below.insert(path, state);
                }
                PromptState::Running | PromptState::Completed => _ = record.waiting_below.remove(&path),
            }
            let before = record.prompt.state;
            record.settle();
            state = record.prompt.state;
            if state == before {
                return;
            }
            below = above;
        }
    }
}

/// Returns the call whose brain contains a loop, at any depth of stages.
fn call_around(loop_at: &str) -> Option<&str> {
    let mut at = parent_of(loop_at)?;
    loop {
        match segments_of(at).next_back()? {
            Segment::Call(..) => return Some(at),
            Segment::Stage(_) | Segment::Iteration(_) => at = parent_of(at)?,
        }
    }
}

/// Returns whether a loop belongs to the run's own brain: only those talk to the user.
fn is_of_root(path: &Path) -> bool {
    parent_of(path.as_str()).is_some_and(str::is_empty)
}

impl Record {
    fn new(
        path: Path,
        user_id: Option<String>,
        input: Option<(String, Vec<FileRef>)>,
        visible: bool,
        history: History,
        rules: u32,
    ) -> Self {
        let (input, files) = input.map_or_else(Default::default, |(text, files)| (Some(text), files));
        let mut record = Self {
            transcript: Transcript::default(),
            rules,
            projected: 0,
            asking: false,
            compacted: false,
            history,
            standing: Vec::new(),
            from: 0,
            policy: BatchPolicy::default(),
            waiting_below: BTreeMap::new(),
            saved: 0,
            is_saved: false,
            prompt: Prompt {
                id: path.public_id(),
                path,
                user_id,
                model: crate::record::Tier::Normal,
                visible,
                state: PromptState::Running,
                input,
                files,
                output: Vec::new(),
                usage: Usage::default(),
                outcome: None,
            },
        };
        record.transcript = record.opened();
        record
    }

    /// Returns the messages before those of the outputs, as they are sent without a compaction.
    fn opened(&self) -> Transcript {
        let mut transcript = match self.rules {
            0 => Transcript::new(self.history.iter().cloned()),
            // Shares its messages, and their encodings, with the earlier runs.
            _ => self.history.dialogue().clone(),
        };
        add(self.rules, &mut transcript, opening(&self.prompt));
        transcript
    }

    /// Returns the messages before those of the outputs.
    fn before(&self) -> impl Iterator<Item = Message> {
        let whole = (!self.compacted).then(|| self.history.iter().cloned().chain(opening(&self.prompt)));
        self.standing.iter().cloned().chain(whole.into_iter().flatten())
    }

    /// Returns the messages before those of the outputs, for a model with a projection of its own.
    fn before_by(&self, project: impl FnMut(&[Output]) -> Option<Vec<Message>>) -> Option<Vec<Message>> {
        if self.compacted {
            return Some(self.standing.clone());
        }
        let mut before = self.history.messages_by(project)?;
        before.extend(opening(&self.prompt));
        Some(before)
    }

    fn next_messages(&self) -> Vec<Message> {
        let fresh = messages(self.prompt.output.get(self.projected..).unwrap_or_default());
        self.whole(self.transcript.messages().into_iter().chain(fresh))
    }

    /// Converts messages to a dialogue from its start.
    fn whole(&self, messages: impl Iterator<Item = Message>) -> Vec<Message> {
        if self.rules == 0 { messages.collect() } else { dialogue(messages) }
    }

    /// Converts consecutive outputs to messages.
    fn messages_of(&self, outputs: &[Output]) -> Vec<Message> {
        let made = messages(outputs);
        if self.rules == 0 { made } else { joined(made) }
    }

    fn push(&mut self, event: &Event, duration: Option<Duration>, kind: OutputKind) {
        self.prompt.output.push(Output { at: event.at, duration, id: None, kind });
    }

    fn tool(&mut self, path: &Path) -> Option<&mut ToolOutput> {
        self.prompt.output.iter_mut().rev().find_map(|output| match &mut output.kind {
            OutputKind::Tool(tool) if tool.path == *path => Some(&mut **tool),
            _ => None,
        })
    }

    fn set_call(&mut self, path: &Path, state: CallState) {
        if let Some(tool) = self.tool(path) {
            tool.state = state;
        }
        self.settle();
    }

    /// Updates the states of the last batch's calls (queued or deferred) and of the prompt, which follow from the
    /// calls and their brains.
    fn settle(&mut self) {
        let is_answer = |output: &Output| matches!(output.kind, OutputKind::Text { .. });
        let batch = self.prompt.output.iter().rposition(is_answer).unwrap_or(0);
        let mut before = Before::default();
        let (mut approval, mut webhook) = (false, false);
        for output in self.prompt.output.iter_mut().skip(batch) {
            let OutputKind::Tool(tool) = &mut output.kind else { continue };
            let undecided = tool.approval.as_ref().is_some_and(Approval::is_open) && tool.result.is_none();
            if matches!(tool.state, CallState::Queued | CallState::Deferred) {
                let starts = !undecided && before.lets_start(tool.flags, tool.approval.is_some(), self.policy);
                tool.state = if starts { CallState::Queued } else { CallState::Deferred };
            }
            before.pass(undecided, tool.result.is_some(), tool.flags);
            approval |= tool.state == CallState::Pending;
            webhook |= tool.state == CallState::Waiting;
        }
        for state in self.waiting_below.values() {
            approval |= *state == PromptState::WaitingForApproval;
            webhook |= *state == PromptState::WaitingForWebhook;
        }
        self.prompt.state = match (approval, webhook) {
            _ if self.prompt.outcome.is_some() => PromptState::Completed,
            (true, _) => PromptState::WaitingForApproval,
            (false, true) => PromptState::WaitingForWebhook,
            (false, false) => PromptState::Running,
        };
    }

    fn apply(&mut self, event: &Event) {
        let path = &event.path;
        match &event.kind {
            EventKind::LoopIteration(iteration) => {
                self.asking = false;
                if let Some(settings) = iteration.settings.as_ref().and_then(|settings| settings.body.as_ref()) {
                    let Settings { tier, .. } = settings;
                    self.prompt.model = *tier;
                }
                if let Some(limits) = &iteration.limits {
                    self.policy = limits.policy;
                }
                let fresh = self.prompt.output.get(self.projected..).unwrap_or_default();
                add(self.rules, &mut self.transcript, messages(fresh));
                self.projected = self.prompt.output.len();
            }
            EventKind::LoopModelCall { question: Some(_), .. } => self.asking = true,
            EventKind::LoopModelResult { metadata, .. } if std::mem::take(&mut self.asking) => {
                self.prompt.usage += metadata.usage;
            }
            EventKind::LoopAnswerRefused { metadata, .. } => self.prompt.usage += metadata.usage,
            EventKind::LoopModelResult { parts, metadata, duration } => {
                let iteration = match path.last() {
                    Some(Segment::Iteration(iteration)) => iteration,
                    _ => 0,
                };
                let (parts, cost) = (Arc::clone(parts), metadata.cost.clone());
                let kind = OutputKind::Text { iteration, parts, cost };
                let output = Output { at: event.at, duration: Some(*duration), id: None, kind };
                // A message that arrived while the model answered follows the answer: the next request
                // refers to it.
                let place = if self.rules == 0 { self.prompt.output.len() } else { self.projected };
                self.prompt.output.insert(place.min(self.prompt.output.len()), output);
                self.prompt.usage += metadata.usage;
            }
            EventKind::LoopToolCall(call) => {
                let kind = OutputKind::Tool(Box::new(proposed(path, call)));
                let output = Output { at: event.at, duration: None, id: None, kind };
                self.prompt.output.insert(self.batch_end(), output);
                self.settle();
            }
            EventKind::LoopToolStart { .. } | EventKind::LoopBrainStart { .. } | EventKind::LoopResume { .. } => {
                self.set_call(path, CallState::Running);
            }
            EventKind::LoopToolRetry { .. } => self.set_call(path, CallState::Queued),
            EventKind::LoopApprovalRequested { .. } => {
                self.approval(path, event);
                self.set_call(path, CallState::Pending);
            }
            EventKind::LoopApprovalDecided { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {} => {
                self.approval(path, event);
                self.set_call(path, CallState::Queued);
            }
            EventKind::LoopWait { .. } => self.set_call(path, CallState::Waiting),
            EventKind::LoopToolResult { result, duration, .. } => {
                if let Some(tool) = self.tool(path) {
                    tool.result = Some(result.clone());
                }
                if let Some(entry) = self.place(path).and_then(|(entry, _)| self.prompt.output.get_mut(entry)) {
                    entry.duration = *duration;
                }
                self.waiting_below.retain(|below, _| !below.is_within(path));
                self.set_call(path, CallState::Done);
            }
            EventKind::LoopOutput { id, output } => {
                let (id, kind) = (Some(id.clone()), output.kind());
                self.insert_after(path, Output { at: event.at, duration: None, id, kind });
            }
            EventKind::LoopMessage { text, files, from, .. } => {
                let (text, engine, files) = (text.clone(), *from == Speaker::Engine, files.clone());
                self.push(event, None, OutputKind::Message { text, engine, files });
            }
            EventKind::LoopCompacted { keep, summary } => self.compact(*keep, summary.as_deref()),
            EventKind::LoopComplete { outcome, .. } => {
                self.prompt.outcome = Some(outcome.clone());
                self.waiting_below.clear();
                self.settle();
            }
            _ => {}
        }
    }

    /// Folds an approval event of a call.
    fn approval(&mut self, path: &Path, event: &Event) {
        if let Some(tool) = self.tool(path) {
            Approval::follow(&mut tool.approval, event);
            tool.edited = tool.approval.as_ref().and_then(Approval::edited).cloned();
        }
    }

    /// Returns the position after the calls of the last answer.
    fn batch_end(&self) -> usize {
        let outputs = &self.prompt.output;
        let answer = outputs.iter().rposition(|output| matches!(output.kind, OutputKind::Text { .. }));
        let Some(begin) = answer.filter(|_| self.rules > 0).map(|answer| answer + 1) else { return outputs.len() };
        let is_call = |output: &&Output| matches!(output.kind, OutputKind::Tool(_)) || output.kind.is_aside();
        begin + outputs.iter().skip(begin).take_while(is_call).count()
    }

    /// Inserts a side output after its tool's entry and earlier side outputs.
    fn insert_after(&mut self, path: &Path, output: Output) {
        if let Some((tool, aside)) = self.place(path) {
            self.prompt.output.insert(tool + 1 + aside, output);
        }
    }

    /// Finds a tool's entry and the number of its side outputs.
    fn place(&self, path: &Path) -> Option<(usize, usize)> {
        let outputs = &self.prompt.output;
        let is_entry = |output: &Output| matches!(&output.kind, OutputKind::Tool(tool) if tool.path == *path);
        let tool = outputs.iter().rposition(is_entry)?;
        let after = outputs.iter().skip(tool + 1);
        let aside = after.take_while(|output| output.kind.is_aside());
        Some((tool, aside.count()))
    }

    /// The requester of the compaction has read the outputs since the last iteration, so they count, too.
    fn compact(&mut self, keep: u64, summary: Option<&str>) {
        let next = self.next_messages();
        let before = self.whole(self.before());
        self.compacted = summary.is_some();
        match summary {
            Some(summary) => {
                let keep = usize::try_from(keep).unwrap_or(usize::MAX);
                let mut cut = next.len().saturating_sub(keep);
                while cut > 0 && matches!(next.get(cut), Some(Message::Tool { .. })) {
                    cut -= 1;
                }
                let (summary, kept) = (Message::user(summary), next.get(cut..).unwrap_or_default());
                if cut > before.len() {
                    self.from = self.latest(kept.len());
                }
                let stays = before.get(cut..).unwrap_or_default();
                self.standing = [std::slice::from_ref(&summary), stays].concat();
                self.transcript = Transcript::new(self.whole([&[summary], kept].concat().into_iter()));
            }
            None => {
                (self.standing, self.from) = (Vec::new(), 0);
                let all = self.before().chain(messages(&self.prompt.output));
                self.transcript = Transcript::new(self.whole(all));
            }
        }
        self.projected = self.prompt.output.len();
    }

    /// Finds the output with which the latest messages begin.
    fn latest(&self, kept: usize) -> usize {
        let output = &self.prompt.output;
        let begins = |index: &usize| {
            let kind = output.get(*index).map(|output| &output.kind);
            matches!(kind, Some(OutputKind::Text { .. } | OutputKind::Message { .. }))
        };
        let is_enough = |index: &usize| self.messages_of(output.get(*index..).unwrap_or_default()).len() >= kept;
        let begin = (self.from..output.len()).rev().filter(begins).find(is_enough);
        begin.filter(|_| kept > 0).unwrap_or(output.len())
    }
}

/// Adds messages to those that a loop sends, by the rules of its log.
fn add(rules: u32, transcript: &mut Transcript, messages: impl IntoIterator<Item = Message>) {
    if rules == 0 {
        messages.into_iter().for_each(|message| transcript.push(message));
    } else {
        extend(transcript, messages);
    }
}

fn proposed(path: &Path, call: &ToolCall) -> ToolOutput {
    ToolOutput {
        path: path.clone(),
        public_id: path.public_id(),
        tool: call.tool.clone(),
        arguments: Arc::clone(&call.arguments),
        edited: None,
        state: if call.gate.is_some() { CallState::Deferred } else { CallState::Queued },
        flags: call.flags,
        approval: call.gate.as_ref().map(Approval::of_gate),
        result: None,
        provider_id: call.provider_id.clone(),
        data: call.data.clone(),
    }
}
