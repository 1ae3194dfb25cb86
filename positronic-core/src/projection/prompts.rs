//! Prompts: the records of a run's loops, folded event by event.

mod continued_dialogue;
mod record;
mod saved;

use indexmap::IndexMap;

use self::continued_dialogue::{ContinuedDialogue, handing_answer};
use self::record::Record;
pub(crate) use self::saved::PromptsPart;
use super::earlier_turns::{History, Past, Turn};
use crate::record::{
    ContinuedLoop, Event, EventKind, Message, Output, OutputKind, Path, Prompt, PromptState, ReplacedInput, RunId,
    Segment, Seq, Speaker, Start, Timestamp, ToolResult, Transcript, UserMessage, parent_of, segments_of,
};

/// The prompts of all loops of a run, with the messages that the open ones send.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    history: History,
    run: Option<RunId>,
    user_id: Option<String>,
    /// The run before this one in its conversation.
    after: Option<RunId>,
    /// How the run was started, if it is a fork.
    fork: Option<Box<Start>>,
    /// The time of the last event.
    at: Timestamp,
    records: IndexMap<Path, Record>,
    /// What guards have replaced in the history.
    replaced: Vec<ReplacedInput>,
    /// The event up to which the prompts are saved.
    saved: Seq,
    /// Whether the records of loops are dropped once the brain of a group or a round around them has ended.
    drops_ended: bool,
    /// The dropped brains with records in a saved part.
    dropped: Vec<Path>,
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
        let spoken = self.records.values().filter(|record| self.is_spoken(&record.prompt.path));
        let parts = spoken.filter(|record| self.returned_at(record).is_none()).flat_map(|record| self.parts_of(record));
        self.history.then(self.after.clone(), Turn::new(parts.collect()))
    }

    /// Returns a loop as parts of a conversation, with the loops that took its dialogue over and handed it back.
    fn parts_of(&self, record: &Record) -> Vec<Past> {
        record.parts(record.prompt.output.len(), self.continued(record), true)
    }

    /// Returns the dialogues of a loop that other loops have taken over or continue.
    fn continued(&self, record: &Record) -> Vec<ContinuedDialogue> {
        let dialogues = self.records.values().filter_map(|other| {
            let unread = other.continues.as_ref().filter(|continued| continued.path == record.prompt.path)?.unread;
            if !other.takes_over(&record.prompt.path) {
                return Some(ContinuedDialogue { from: record.projected, unread, returned: None });
            }
            let from = handing_answer(&record.prompt, &other.prompt.path)?;
            let returned = self.returned_at(other).map(|_| self.parts_of(other));
            Some(ContinuedDialogue { from, unread, returned })
        });
        dialogues.collect()
    }

    /// Returns where a loop whose dialogue another one took over and handed back had handed it over.
    fn returned_at(&self, inner: &Record) -> Option<usize> {
        let continued = inner.continues.as_ref().filter(|continued| inner.takes_over(&continued.path))?;
        let outer = &self.records.get(&continued.path)?.prompt;
        let mut tools = outer.output.iter().filter_map(|output| match &output.kind {
            OutputKind::Tool(tool) => Some(tool),
            _ => None,
        });
        let was_returned = tools.any(|tool| inner.prompt.path.is_within(&tool.path) && tool.handed_back);
        was_returned.then(|| handing_answer(outer, &inner.prompt.path)).flatten()
    }

    /// Returns the messages of people that no iteration of a loop has sent. A loop that continues its dialogue begins with them.
    pub(crate) fn unread(&self, path: &Path) -> Vec<UserMessage> {
        self.records.get(path).map(|record| record.unread(&self.continued(record))).unwrap_or_default()
    }

    /// Returns the messages of people that no loop has read in earlier runs of the conversation, with their numbers. The first loop of the run's
    /// brain checks them.
    pub(crate) fn unread_before(&self, path: &Path) -> Vec<(u32, UserMessage)> {
        let is_first = is_of_root(path) && !self.iter().any(|other| is_of_root(&other.path) && other.path != *path);
        if is_first { self.history.unread() } else { Vec::new() }
    }

    /// Sets the run, so that the ids of its prompts are unique among runs.
    #[must_use]
    pub fn in_run(self, run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..self }
    }

    /// Drops the prompts of a group's brain, and of a round, when it ends: no later stage reads them, and a group can have any number.
    #[must_use]
    pub(crate) const fn dropping_ended(mut self) -> Self {
        self.drops_ended = true;
        self
    }

    /// Drops the prompts of a brain that has ended, unless a loop called it.
    fn drop_ended(&mut self, brain: &Path) {
        let is_in_group = matches!(brain.last(), Some(Segment::Call(..)))
            && parent_of(brain.as_str()).is_some_and(|stage| !self.records.contains_key(stage));
        if !self.drops_ended || !is_in_group {
            return;
        }
        let mut is_in_part = false;
        self.records.retain(|path, record| {
            let is_inside = path.is_within(brain);
            is_in_part |= is_inside && record.is_in_part;
            !is_inside
        });
        if is_in_part {
            self.dropped.push(brain.clone());
        }
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

    /// Returns the final text of the run: that of the last visible loop of its own brain, or of the loop that took its dialogue over.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        let mut own = self.iter().filter(|prompt| prompt.visible && is_of_root(&prompt.path));
        let mut last = own.next_back()?;
        while let Some(call) = handed_over(last) {
            let mut inside = self.iter().filter(|prompt| prompt.visible && self.continues(&prompt.path, last));
            let Some(next) = inside.rfind(|prompt| prompt.path.is_within(call)) else { break };
            last = next;
        }
        last.answer()
    }

    /// Returns whether people talk to a loop: one of the run's brain, or one that took over the dialogue of such a loop.
    fn is_spoken(&self, path: &Path) -> bool {
        let mut path = path;
        while !is_of_root(path) {
            let continued = self.records.get(path).and_then(|record| record.continues.as_ref());
            let Some(continued) = continued.filter(|continued| path.is_within(&continued.path)) else { return false };
            path = &continued.path;
        }
        true
    }

    fn continues(&self, path: &Path, other: &Prompt) -> bool {
        let continued = self.records.get(path).and_then(|record| record.continues.as_ref());
        continued.is_some_and(|continued| continued.path == other.path)
    }

    /// Returns the conversation before a loop.
    fn history_of(&self, path: &Path, continues: Option<&ContinuedLoop>) -> History {
        match continues.and_then(|continued| Some((self.records.get(&continued.path)?, continued))) {
            Some((record, by)) => record.continued_by(path, by, self.continued(record)),
            None if is_of_root(path) => self.history.clone(),
            None => History::default(),
        }
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

    /// Iterates over the prompts of the loops that people talk to, in the order in which they began: those of the run's brain, and those that took the
    /// dialogue of such a loop over.
    #[must_use]
    pub fn spoken(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.iter().filter(|prompt| self.is_spoken(&prompt.path))
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

    /// Returns the messages of people that this iteration of a loop would be the first to send, with their numbers among those of the loop.
    pub(crate) fn unsent(&self, path: &Path, iteration: u32) -> Vec<(u32, UserMessage)> {
        self.records.get(path).map(|record| record.unsent(iteration)).unwrap_or_default()
    }

    /// Returns the messages that a loop's next iteration will send, as of now.
    #[must_use]
    pub fn next_messages(&self, path: &Path) -> Vec<Message> {
        self.records.get(path).map(Record::next_messages).unwrap_or_default()
    }

    /// Folds one event.
    pub fn apply(&mut self, event: &Event) {
        if self.fork.as_ref().is_some_and(|start| start.begins_fork(event.seq)) {
            let by = event.at.since(self.at);
            self.records.values_mut().for_each(|record| record.postpone(by));
        }
        self.at = event.at;
        match &event.kind {
            EventKind::BrainStart(start) => {
                if let Some(start) = &start.start {
                    self.user_id.clone_from(&start.user);
                    self.after.clone_from(&start.after);
                    self.fork = start.forked_from.is_some().then(|| Box::new(start.clone()));
                }
                return;
            }
            EventKind::LoopStart { input, from, files, hidden, continues, limits, .. } => {
                let own = input.clone().filter(|_| *from == Speaker::Person).map(|text| (text, files.clone()));
                let history = self.history_of(&event.path, continues.as_deref());
                let path = event.path.clone();
                let mut record = Record::new(path, self.user_id.clone(), own, !hidden, history);
                record.continues = continues.as_deref().cloned();
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
            EventKind::BrainComplete { .. } | EventKind::BrainError { .. } | EventKind::BrainCancelled { .. } => {
                return self.drop_ended(&event.path);
            }
            _ => {}
        }
        let path = event.path.as_str();
        let loop_at = match event.path.last() {
            Some(Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..)) => parent_of(path),
            Some(Segment::Stage(_)) => Some(path),
            None => None,
        };
        let Some((loop_at, record)) = loop_at.and_then(|at| Some((at, self.records.get_mut(at)?))) else { return };
        if let EventKind::LoopGuardReplaced { input: Some(input), .. } = &event.kind
            && input.earlier
        {
            self.history = self.history.replaced(input);
            record.set_history(self.history.clone());
            self.replaced.push(input.clone());
            return;
        }
        let before = record.prompt.state;
        record.apply(event);
        if record.prompt.state != before {
            let state = record.prompt.state;
            self.update_enclosing(loop_at, state);
        }
    }

    /// Updates the waiting state of the loops whose calls run the brain of a loop.
    fn update_enclosing(&mut self, loop_at: &str, mut state: PromptState) {
        let mut below = loop_at;
        while let Some(above) = enclosing_stages(below).find(|at| self.records.contains_key(*at)) {
            let Some(record) = self.records.get_mut(above) else { return };
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

/// Lists the loops and the groups of brains around a loop, from the inside out.
fn enclosing_stages(loop_at: &str) -> impl Iterator<Item = &str> {
    let ancestors = std::iter::successors(parent_of(loop_at), |at| parent_of(at));
    let is_call = |at: &&str| matches!(segments_of(at).next_back(), Some(Segment::Call(..)));
    ancestors.filter(is_call).filter_map(parent_of)
}

/// Returns the successful call with which a loop handed its dialogue over.
fn handed_over(prompt: &Prompt) -> Option<&Path> {
    let tools = prompt.output.iter().rev().filter_map(|output| match &output.kind {
        OutputKind::Tool(tool) => Some(tool),
        _ => None,
    });
    let mut handed = tools.filter(|tool| tool.hands_over());
    handed.find(|tool| matches!(tool.result, Some(ToolResult::Success { .. }))).map(|tool| &tool.path)
}

/// Returns whether a loop belongs to the run's own brain. People talk to those, and to loops that took a dialogue over from one.
fn is_of_root(path: &Path) -> bool {
    parent_of(path.as_str()).is_some_and(str::is_empty)
}
