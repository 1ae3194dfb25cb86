//! State of a chat at a terminal: an [`Input`] goes in, [`Action`]s come out.
//!
//! It does no I/O and knows neither clock nor terminal: [`ui`](super::ui) feeds it keys, ticks and what happens in the
//! run, carries out the actions, and paints what [`ChatState::draw`](super::input_area) returns below the answer.

use std::collections::{HashSet, VecDeque};

use crossterm::event::KeyEvent;
use positronic_core::record::{Attachment, Event, EventKind, Path, Pending, Seq, SignalKind, UserMessage};
use positronic_core::runner::Settled;

use super::attached::Attached;
use super::input_history::InputHistory;
use super::protocol::{Action, Input};
use super::slash_commands::{Slash, Written, complete, parse};
use crate::render::Tone;
use crate::session::{
    AT_ONCE, Answer, Editor, EditorCommand, Interrupt, Question, asking_party, for_person, is_approval,
};

/// Every so many ticks, the chat looks for runs that other processes or triggers begin.
const POLL: u32 = 12;

/// For how many ticks leaving waits for a message to be stored: five seconds.
const DELIVERY: u32 = 62;

/// What the shown run does.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// There is none, or it has ended.
    #[default]
    Over,
    Running,
    Waiting(Vec<Pending>),
    Paused,
}

/// How far leaving has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Messages are still being stored, for at most so many ticks.
    Delivers(u32),
    Releases,
}

/// The state of a chat.
#[derive(Default)]
pub(super) struct ChatState {
    /// The worker of this process.
    worker: String,
    /// Whether the run outlives this process.
    lasts: bool,
    /// What the ids of this chat's messages begin with, and how many there are.
    message_ids: (String, u32),
    pub(super) editor: Editor,
    history: InputHistory,
    pub(super) hint: Option<String>,
    pub(super) question: Option<Question>,
    pub(super) phase: Phase,
    /// Whether another process works on the run.
    pub(super) is_elsewhere: bool,
    /// The command that lifts a pause.
    pub(super) resume: String,
    /// Whether the run was cancelled from here and has not ended yet.
    stopping: bool,
    /// The questions that were left for later.
    left: HashSet<(Path, Seq)>,
    /// The messages to be sent, and the one that is being sent.
    outbox: VecDeque<(UserMessage, Vec<Attachment>)>,
    pub(super) sending: Option<(UserMessage, Vec<Attachment>)>,
    /// The files of the next message.
    pub(super) attached: Attached,
    /// The messages that are in no log yet.
    pub(super) unheard: Vec<UserMessage>,
    ticks: u32,
    pub(super) leaving: Option<Leaving>,
    /// The interrupt that ends the chat, unless the person leaves it.
    pub(super) left_by: Option<Interrupt>,
    actions: Vec<Action>,
}

impl ChatState {
    /// Creates the state of a chat whose messages have ids that begin with `message_ids`.
    pub(super) fn new(worker: String, lasts: bool, past: Vec<String>, message_ids: String) -> Self {
        let history = InputHistory::new(past);
        Self { worker, lasts, message_ids: (message_ids, 0), history, ..Self::default() }
    }

    /// Says whether the shown run has not ended.
    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Over)
    }

    /// Handles an input, and returns what is to be done about it, in order.
    pub(super) fn on(&mut self, input: Input<'_>) -> Vec<Action> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => match &mut self.question {
                Some(question) => question.paste(&text),
                None => self.editor.paste(&text),
            },
            Input::Interrupt(_) if self.leaving.is_some() => self.act(Action::Exit),
            Input::Interrupt(Interrupt::System) => self.leave(Some(Interrupt::System)),
            Input::Interrupt(Interrupt::Person) => self.interrupt(),
            Input::Tick => self.tick(),
            Input::Shown { is_new, resume } => {
                self.resume = resume;
                if is_new || !self.is_open() {
                    self.phase = Phase::Running;
                }
                if is_new {
                    self.stopping = false;
                    self.left.clear();
                }
            }
            Input::Event(event) => self.event(event),
            Input::Settled(settled) => self.settled(settled),
            Input::Sent(sent) => self.sent(sent),
            Input::Signalled(Ok(())) => self.continues(),
            Input::Signalled(Err(reason)) => self.print(Tone::Warn, reason),
            Input::Question(question) => self.question = Some(*question),
            Input::Withdrawn(reason) => {
                if let Some(question) = self.question.take() {
                    self.print(Tone::Warn, format!("{} no longer waits: {reason}", asking_party(question.pending())));
                    self.continues();
                }
            }
            Input::Say(message) => self.say(message.text, message.files.into_iter().map(Attachment::from).collect()),
            Input::Attach(file) => {
                self.attached.add(file);
                self.hint = None;
            }
            Input::Hint(hint) => self.hint = Some(hint),
        }
        std::mem::take(&mut self.actions)
    }

    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn print(&mut self, tone: Tone, text: impl Into<String>) {
        self.act(Action::Print(tone, text.into()));
    }

    fn key(&mut self, key: KeyEvent) {
        if let Some(question) = &mut self.question {
            if let Some(answer) = question.key(key) {
                self.answered(answer);
            }
            return;
        }
        self.hint = None;
        match self.editor.key(key) {
            Some(EditorCommand::Interrupt | EditorCommand::EndOfInput) if self.leaving.is_some() => {
                self.act(Action::Exit);
            }
            Some(EditorCommand::Interrupt) => self.interrupt(),
            Some(EditorCommand::EndOfInput) => self.leave(None),
            Some(EditorCommand::Submit) if self.leaving.is_none() => self.submit(),
            Some(EditorCommand::Redraw) => self.act(Action::Clear),
            Some(EditorCommand::Complete) => {
                if let Some((text, choices)) = complete(self.editor.text()) {
                    self.editor.replace(&text);
                    self.hint = (!choices.is_empty()).then(|| choices.join("  "));
                }
            }
            Some(EditorCommand::Previous) => {
                self.history.previous(self.editor.text()).map(|text| self.editor.replace(&text));
            }
            Some(EditorCommand::Next) => {
                self.history.next().map(|text| self.editor.replace(&text));
            }
            Some(EditorCommand::Submit | EditorCommand::Back) | None => {}
        }
    }

    fn submit(&mut self) {
        if self.editor.break_line() {
            return;
        }
        let text = self.editor.replace("");
        if text.trim().is_empty() {
            if !self.attached.is_empty() {
                let files = self.attached.take();
                self.say(String::new(), files);
            }
            return;
        }
        self.history.add(&text);
        self.act(Action::Remember(text.clone()));
        match parse(&text) {
            Written::Message(text) => {
                let files = self.attached.take();
                self.say(text, files);
            }
            Written::Unknown(reason) => self.print(Tone::Warn, reason),
            Written::Command(slash, argument) => self.command(slash, argument),
        }
    }

    fn command(&mut self, slash: Slash, argument: String) {
        match slash {
            Slash::Quit => self.leave(None),
            Slash::Cancel if self.is_open() => self.cancel(),
            Slash::Cancel => self.print(Tone::Dim, "no answer is running"),
            Slash::Retry if self.is_open() => self.print(Tone::Dim, "an answer is running: /cancel ends it"),
            Slash::New if self.is_open() || self.sending.is_some() => {
                self.print(Tone::Dim, "an answer is running: /cancel ends it, and /quit leaves it");
            }
            Slash::Attach if argument.is_empty() => self.print(Tone::Dim, self.attached.list()),
            Slash::Attach => self.act(Action::ReadFile(argument)),
            Slash::Detach => {
                let removed = self.attached.remove(&argument);
                self.print(Tone::Dim, removed);
            }
            Slash::Pending => {
                self.act(Action::Command(slash, argument));
                // The next tick asks for approvals.
                self.left.clear();
                if let Phase::Waiting(pending) = &self.phase
                    && !pending.iter().any(is_approval)
                    && let Some(first) = pending.iter().find(|pending| for_person(pending)).cloned()
                {
                    self.act(Action::Ask(first));
                }
            }
            other => self.act(Action::Command(other, argument)),
        }
    }

    /// Ends the answer that is running, else clears the input, else leaves.
    fn interrupt(&mut self) {
        if self.question.is_some() {
            self.answered(Answer::Interrupted);
        } else if matches!(self.phase, Phase::Running) && !self.stopping {
            self.outbox.clear();
            self.unheard.clear();
            self.stopping = true;
            self.cancel();
        } else if self.editor.is_empty() || matches!(self.phase, Phase::Running) {
            self.leave(None);
        } else {
            self.editor.replace("");
        }
    }

    fn cancel(&mut self) {
        self.act(Action::Signal(SignalKind::Cancel { reason: Some("from the chat".to_owned()) }));
    }

    /// Sends a message with files after those before it.
    fn say(&mut self, text: String, files: Vec<Attachment>) {
        self.message_ids.1 += 1;
        let (prefix, count) = &self.message_ids;
        let opening = UserMessage::new(text).id(format!("{prefix}-{count}"));
        let opening = opening.files(files.iter().map(|file| file.file().clone()));
        self.unheard.push(opening.clone());
        self.outbox.push_back((opening, files));
        self.send_next();
    }

    fn send_next(&mut self) {
        if self.sending.is_none()
            && let Some((opening, files)) = self.outbox.pop_front()
        {
            self.sending = Some((opening.clone(), files.clone()));
            self.act(Action::Send(opening, files));
        }
    }

    fn sent(&mut self, sent: Result<(), String>) {
        let sending = self.sending.take();
        if let Err(reason) = sent {
            // The text is in the input history. In the input it would become the beginning of what is typed next.
            if let Some((opening, files)) = sending {
                self.unheard.retain(|unheard| *unheard != opening);
                self.attached.put_back(files);
            }
            self.print(Tone::Bad, reason);
        }
        self.send_next();
        if self.leaving.is_some() && self.sending.is_none() {
            self.release();
        }
    }

    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        match &mut self.leaving {
            Some(Leaving::Delivers(0)) => self.release(),
            Some(Leaving::Delivers(left)) => *left -= 1,
            Some(Leaving::Releases) => {}
            None => {
                if self.ticks.is_multiple_of(POLL) {
                    self.act(Action::PollStore);
                }
                self.ask_next();
            }
        }
    }

    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunClaimed { owner, .. } => self.is_elsewhere = *owner != self.worker,
            EventKind::RunReleased { .. } | EventKind::RunNotClaimed { .. } => {}
            kind => {
                if let EventKind::LoopStart { message_id: Some(id), .. }
                | EventKind::LoopMessage { message_id: Some(id), .. } = kind
                {
                    self.unheard.retain(|opening| opening.id.as_ref() != Some(id));
                }
                // A message to a run that waits for an approval does not end the wait.
                if !matches!(kind, EventKind::LoopMessage { .. }) {
                    self.continues();
                }
            }
        }
    }

    /// Marks the run as running: it no longer waits, or waits for another item.
    fn continues(&mut self) {
        if self.is_open() {
            self.phase = Phase::Running;
        }
    }

    fn settled(&mut self, settled: &Settled) {
        self.phase = match settled {
            Settled::Waiting(pending) => {
                let answerable = pending.iter().filter(|pending| !pending.kind.is_for_run());
                match answerable.cloned().collect::<Vec<_>>() {
                    none if none.is_empty() && !pending.is_empty() => Phase::Running,
                    answerable => Phase::Waiting(answerable),
                }
            }
            Settled::Paused => Phase::Paused,
            Settled::Completed(_) | Settled::Failed(_) | Settled::Cancelled => {
                self.stopping = false;
                if self.sending.is_none() {
                    self.unheard.retain(|opening| self.outbox.iter().any(|(queued, _)| queued == opening));
                }
                Phase::Over
            }
            Settled::Stopped(message) => {
                self.print(Tone::Bad, format!("the answer stopped: {message}; it continues with the next chat"));
                Phase::Over
            }
        };
    }

    /// Asks for the next approval that was not left for later, unless the person is writing: the keys would answer it.
    fn ask_next(&mut self) {
        let Phase::Waiting(pending) = &self.phase else { return };
        let is_free = self.question.is_none() && self.editor.is_empty() && self.sending.is_none();
        let is_new =
            |pending: &&Pending| is_approval(pending) && !self.left.contains(&(pending.call.clone(), pending.since));
        if let Some(pending) = pending.iter().find(is_new).filter(|_| is_free && self.outbox.is_empty()) {
            self.act(Action::Ask(pending.clone()));
        }
    }

    fn answered(&mut self, answer: Answer) {
        let Some(question) = self.question.take() else { return };
        if answer != Answer::Interrupted {
            self.act(Action::PrintLines(question.rest()));
        }
        match answer {
            Answer::Signal(kind) => self.act(Action::Signal(kind)),
            Answer::Stop => self.cancel(),
            Answer::Later | Answer::Interrupted => {
                let pending = question.pending();
                self.left.insert((pending.call.clone(), pending.since));
                self.print(Tone::Dim, format!("{} is left for later: /pending asks again", asking_party(pending)));
            }
        }
    }

    /// Leaves, once the messages before are stored.
    fn leave(&mut self, left_by: Option<Interrupt>) {
        self.left_by = left_by;
        self.question = None;
        if self.sending.is_some() {
            self.leaving = Some(Leaving::Delivers(DELIVERY));
        } else {
            self.release();
        }
    }

    /// Releases a run that outlives this process, and cancels any other.
    fn release(&mut self) {
        self.leaving = Some(Leaving::Releases);
        if matches!(self.phase, Phase::Running) {
            if self.lasts {
                self.print(Tone::Dim, AT_ONCE);
            } else {
                self.cancel();
            }
        }
        self.act(Action::Release);
    }
}
