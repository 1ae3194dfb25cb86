//! Scripts of questions: which fields a pending item asks for, one after the other, and the answer they make.

use positronic_core::record::{
    BudgetRequest, Gate, LimitKind, Pending, PendingKind, SignalKind, WaitSpec, check_numbers,
};
use serde_json::{Map, Value};

use super::cassette_answers::delivery;
use super::field::{Entered, Field, Menu, TextField};
use crate::cli::options::{OptionEntry, entries, read_entry};
use crate::cli::{limits, no_json};
use crate::render::{ArgumentLayout, extent, limit_question, one_line, sanitise, shorten};

/// What a person answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// A decision or a payload.
    Signal(SignalKind),
    /// To leave the question open.
    Later,
    /// To cancel the run.
    Stop,
    /// Ctrl-C.
    Interrupted,
}

/// What a question is about.
pub(super) struct Subject {
    pub(super) pending: Pending,
    /// The stages and calls on the way to the call.
    pub(super) place: String,
    pub(super) currency: Option<String>,
    /// Whether the run can be left waiting.
    pub(super) lasts: bool,
    /// The columns and rows of the terminal when the question was put. They part long arguments into pages, and must not
    /// change between two replays.
    pub(super) size: (usize, usize),
}

const APPROVE: &str = "Approve";
const EDIT: &str = "Approve with other arguments";
const REJECT: &str = "Reject";
const ANSWER: &str = "Answer now";
const GRANT: &str = "Grant more";
const REFUSE: &str = "Refuse";
const LATER: &str = "Leave it for later";
const STOP: &str = "Stop the run";
const AGAIN: &str = "Show it from the beginning";

/// Why a script has no answer yet.
pub(super) enum Unanswered {
    /// This field has no entry.
    Open(Box<dyn Field>),
    /// The person wants to go back to the beginning.
    Back,
}

type Asked<T> = Result<T, Unanswered>;

/// One replay of a question.
pub(super) struct Script<'a> {
    subject: &'a Subject,
    entered: std::slice::Iter<'a, Entered>,
    /// The lines above the open field.
    pub(super) transcript: Vec<String>,
}

impl<'a> Script<'a> {
    pub(super) fn new(subject: &'a Subject, entered: &'a [Entered]) -> Self {
        Self { subject, entered: entered.iter(), transcript: Vec::new() }
    }

    /// Runs the script up to the first field without an entry, or to the answer.
    pub(super) fn run(&mut self) -> Asked<Answer> {
        let subject = self.subject;
        match &subject.pending.kind {
            PendingKind::Approval { gate, .. } => self.approval(gate),
            PendingKind::Budget(request @ BudgetRequest { kind, limit, used, .. }) => {
                let problem = limit_question(request, subject.currency.as_deref());
                self.more((*kind, *limit, *used), &problem)
            }
            PendingKind::Answer { waits } => match self.payload_of(waits) {
                Err(Unanswered::Back) if subject.lasts => self.leave(),
                asked => asked,
            },
        }
    }

    /// Adds lines above the next field.
    fn say(&mut self, text: &str) {
        self.transcript.push(sanitise(text));
    }

    fn ask(&mut self, field: impl Field + 'static) -> Asked<&'a Entered> {
        match self.entered.next() {
            None => Err(Unanswered::Open(Box::new(field))),
            Some(Entered::Back) => Err(Unanswered::Back),
            Some(entered) => {
                self.transcript.push(shorten(&field.answered(entered), columns(self.subject.size)));
                Ok(entered)
            }
        }
    }

    fn choose<T: Clone + ToString>(&mut self, message: &str, choices: &[T]) -> Asked<T> {
        let menu = Menu::new(message, choices.iter().map(ToString::to_string).collect());
        match self.ask(menu)? {
            Entered::Choice(at) => choices.get(*at).cloned().ok_or(Unanswered::Back),
            Entered::Text(_) | Entered::Back => Err(Unanswered::Back),
        }
    }

    fn text(
        &mut self,
        message: &str,
        initial: &str,
        help: &str,
        check: impl Fn(&str) -> Result<(), String> + 'static,
    ) -> Asked<String> {
        match self.ask(TextField::new(message, initial, help, check))? {
            Entered::Text(text) => Ok(text.clone()),
            Entered::Choice(_) | Entered::Back => Err(Unanswered::Back),
        }
    }

    fn later(&self) -> Option<&'static str> {
        self.subject.lasts.then_some(LATER)
    }

    fn place(&self) -> String {
        one_line(&self.subject.place)
    }

    /// Asks what to do about a question that a person went back from.
    fn leave(&mut self) -> Asked<Answer> {
        match self.choose(&format!("{} waits.", self.place()), &[ANSWER, LATER, STOP])? {
            LATER => Ok(Answer::Later),
            STOP => Ok(Answer::Stop),
            _ => Err(Unanswered::Back),
        }
    }

    fn approval(&mut self, gate: &Gate) -> Asked<Answer> {
        let Subject { pending, size, .. } = self.subject;
        let rows = ArgumentLayout { columns: columns(*size) }.whole(&pending.arguments);
        // The size stands before the arguments, which may try to look as if they ended.
        let extent = extent(&pending.arguments).map_or_else(String::new, |extent| format!(" ({extent})"));
        self.say(&format!("{} asks{extent}: {}", self.place(), one_line(&gate.reason)));
        let mut unread = rows.as_slice();
        let mut has_pages = false;
        let decision = loop {
            let (page, rest) = unread.split_at(page_rows(*size).min(unread.len()));
            self.say(&page.join("\n"));
            unread = rest;
            let left = unread.len();
            has_pages |= left > 0;
            // The first choice pages to the end, so that paging keys never approve.
            let turn = match left {
                0 => has_pages.then(|| AGAIN.to_owned()),
                _ => Some(format!("Show the next {} of {} rows", page_rows(*size).min(left), rows.len())),
            };
            let question = match left {
                0 => format!("May {} run?", pending.tool),
                left => format!("May {} run? {left} of {} rows were not shown yet.", pending.tool, rows.len()),
            };
            let edit = gate.editable.then_some(EDIT);
            let choices = [turn.as_deref(), Some(APPROVE), edit, Some(REJECT), self.later(), Some(STOP)];
            match self.choose(&question, &choices.into_iter().flatten().collect::<Vec<_>>())? {
                AGAIN => unread = &rows,
                chosen if turn.as_deref() == Some(chosen) => {}
                APPROVE => break APPROVE,
                EDIT => break EDIT,
                REJECT => break REJECT,
                LATER => return Ok(Answer::Later),
                _ => return Ok(Answer::Stop),
            }
        };
        let call = pending.call.clone();
        Ok(Answer::Signal(match decision {
            APPROVE => SignalKind::Approve { call, arguments: None },
            EDIT => SignalKind::Approve { call, arguments: Some(self.edited(&pending.arguments)?) },
            _ => SignalKind::Reject { call, reason: self.reason("the model reads it; Enter gives none")? },
        }))
    }

    fn reason(&mut self, help: &str) -> Asked<Option<String>> {
        let reason = self.text("Why not?", "", help, |_| Ok(()))?;
        Ok(Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty()))
    }

    /// Asks how much more a loop or a brain gets.
    fn more(&mut self, (kind, limit, used): (LimitKind, u64, u64), problem: &str) -> Asked<Answer> {
        let place = if self.subject.place.is_empty() { "The run".to_owned() } else { self.place() };
        self.say(&format!("{place} {problem}"));
        let choices = [Some(GRANT), Some(REFUSE), self.later(), Some(STOP)];
        let call = self.subject.pending.call.clone();
        Ok(Answer::Signal(
            match self.choose("Raise the limit?", &choices.into_iter().flatten().collect::<Vec<_>>())? {
                GRANT => {
                    let check = move |text: &str| limits::read(kind, text).map(|_| ());
                    let suggested = limits::suggested(kind, limit, used);
                    let text = self.text("How much more?", &suggested, limits::expected(kind), check)?;
                    SignalKind::Grant { to: call, more: limits::read(kind, &text).unwrap_or_default() }
                }
                REFUSE => {
                    SignalKind::Reject { call, reason: self.reason("it is kept with the decision; Enter gives none")? }
                }
                LATER => return Ok(Answer::Later),
                _ => return Ok(Answer::Stop),
            },
        ))
    }

    /// Asks for other arguments: field by field where they are flat, else as JSON.
    fn edited(&mut self, arguments: &Value) -> Asked<Value> {
        let flat = |value: &Value| !value.is_object() && !value.is_array();
        let Some(fields) = arguments.as_object().filter(|fields| !fields.is_empty() && fields.values().all(flat))
        else {
            return self.json("Arguments:", &arguments.to_string());
        };
        let mut edited = Map::new();
        for (name, value) in fields {
            let message = format!("  {name}:");
            let value = match value {
                Value::String(text) => Value::from(self.text(&message, text, "", |_| Ok(()))?),
                other => self.json(&message, &other.to_string())?,
            };
            edited.insert(name.clone(), value);
        }
        Ok(Value::Object(edited))
    }

    fn payload_of(&mut self, waits: &[WaitSpec]) -> Asked<Answer> {
        let names: Vec<String> = waits.iter().map(named).collect();
        let pending = &self.subject.pending;
        self.say(&format!("{} waits. {} Esc goes back.", self.place(), played(waits)));
        // What was asked is the question, so it is shown in full.
        for prompt in waits.iter().filter_map(|wait| wait.prompt.as_deref()) {
            self.say(prompt.trim());
        }
        self.ask_for(&pending.arguments);
        let wait = match names.as_slice() {
            [_] => waits.first(),
            _ => {
                let chosen = self.choose("Who answers?", &names)?;
                names.iter().position(|name| *name == chosen).and_then(|index| waits.get(index))
            }
        };
        let Some(wait) = wait else { return Ok(Answer::Stop) };
        let message = match &wait.prompt {
            Some(_) => "Your answer:".to_owned(),
            None => format!("{} says", named(wait)),
        };
        let payload = self.payload(&message, &wait.schema)?;
        Ok(Answer::Signal(delivery(&self.subject.pending, wait, payload)))
    }

    /// Says what the call that waits has sent, in full.
    fn ask_for(&mut self, arguments: &Value) {
        match arguments {
            Value::Null => {}
            Value::Object(fields) => {
                let is_alone = fields.len() == 1;
                for (name, value) in fields {
                    match value {
                        Value::String(text) if is_alone => self.say(text.trim()),
                        Value::String(text) => self.say(&format!("{}: {}", one_line(name), text.trim())),
                        other => self.say(&format!("{}: {other}", one_line(name))),
                    }
                }
            }
            Value::String(text) => self.say(text.trim()),
            other => self.say(&other.to_string()),
        }
    }

    /// Asks for a payload, in the way that its schema suggests.
    fn payload(&mut self, message: &str, schema: &Value) -> Asked<Value> {
        let Some(entries) = entries(schema) else { return self.json(message, "") };
        match entries.as_slice() {
            [entry @ OptionEntry { name: None, .. }] => Ok(self.value(message, entry)?.unwrap_or_default()),
            several => {
                if several.len() > 1 {
                    self.say(message);
                }
                let mut object = Map::new();
                for entry in several {
                    let name = entry.name.as_deref().unwrap_or_default();
                    let message = if several.len() > 1 { format!("  {name}:") } else { message.to_owned() };
                    if let Some(value) = self.value(&message, entry)? {
                        object.insert(name.to_owned(), value);
                    }
                }
                Ok(Value::Object(object))
            }
        }
    }

    /// Asks for one value; an optional one may be left out.
    fn value(&mut self, message: &str, entry: &OptionEntry) -> Asked<Option<Value>> {
        if entry.flag && entry.required {
            return Ok(Some(Value::Bool(self.choose(message, &["yes", "no"])? == "yes")));
        }
        if !entry.choices.is_empty() && entry.required {
            let chosen = self.choose(message, &entry.choices)?;
            return Ok(read_entry(entry, &chosen).ok());
        }
        let help =
            if entry.required { entry.expected.clone() } else { format!("{}; Enter leaves it out", entry.expected) };
        let checked = entry.clone();
        let text = self.text(message, "", &help, move |text| match read_entry(&checked, text) {
            Err(expected) if checked.required || !text.is_empty() => Err(format!("expected {expected}")),
            _ => Ok(()),
        })?;
        Ok(if text.is_empty() && !entry.required { None } else { read_entry(entry, &text).ok() })
    }

    fn json(&mut self, message: &str, initial: &str) -> Asked<Value> {
        let check = |text: &str| match serde_json::from_str::<Value>(text) {
            Ok(_) => check_numbers(text).map_err(|number| format!("the JSON has {number}")),
            Err(error) => Err(no_json(text, &error)),
        };
        let text = self.text(message, initial, "JSON", check)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// Says whom a person plays who answers here.
fn played(waits: &[WaitSpec]) -> String {
    match waits {
        [wait] if wait.person => "You answer as the person who is asked.".to_owned(),
        [wait] => format!("You play the sender of the webhook {}.", named(wait)),
        waits if waits.iter().all(|wait| wait.person) => "You answer as one of those who are asked.".to_owned(),
        _ => "You play one of those who can answer.".to_owned(),
    }
}

fn named(wait: &WaitSpec) -> String {
    one_line(format!("{} {}", wait.webhook, wait.identifier).trim())
}

/// The last column stays free: some terminals wrap a line that fills it.
pub(super) fn columns(size: (usize, usize)) -> usize {
    size.0.saturating_sub(1).max(2)
}

/// The rows of a page: those of the screen less a menu.
fn page_rows(size: (usize, usize)) -> usize {
    size.1.saturating_sub(12).max(5)
}
