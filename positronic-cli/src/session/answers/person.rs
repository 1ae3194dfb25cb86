//! Asks a person at the terminal.

use std::io;

use positronic_core::record::{Gate, LimitKind, SignalKind, WaitSpec};
use positronic_core::record::{Pending, PendingKind};
use serde_json::{Map, Value};

use super::delivery;
use super::recall::Recall;
use super::terminal::{Asked, Terminal, Unanswered, columns, page};
use crate::cli::json::no_json;
use crate::cli::limits;
use crate::cli::options::{Entry, entries, read_entry};
use crate::render::given::{Room, extent};
use crate::render::limits::asks;
use crate::render::text::one_line;

/// What a person answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// This.
    Signal(SignalKind),
    /// None now; the run stays.
    Later,
    /// That the run shall end.
    Stop,
    /// Ctrl-C.
    Interrupted,
    /// None: the question was taken back.
    Recalled,
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

/// Asks until there is an answer, Ctrl-C, or the question is taken back; where the run lasts, it can be left for later.
///
/// # Errors
///
/// What the terminal answers.
pub(crate) fn ask(
    pending: &Pending,
    place: &str,
    currency: Option<&str>,
    lasts: bool,
    colour: bool,
    recall: Recall,
) -> io::Result<Answer> {
    let mut terminal = Terminal::new(colour, recall);
    loop {
        let asked = match &pending.kind {
            PendingKind::Approval { gate, .. } => approval(&mut terminal, pending, gate, place, lasts),
            PendingKind::Budget { kind, limit, used, shared, .. } => {
                let asks = asks(*kind, *limit, *used, *shared, currency);
                more(&mut terminal, pending, (*kind, *limit, *used), (place, &asks), lasts)
            }
            PendingKind::Answer { waits } => match answer(&mut terminal, pending, waits, place) {
                Err(Unanswered::Back) if lasts => leave(&mut terminal, place),
                asked => asked,
            },
        };
        return match asked {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Back) => continue,
            Err(Unanswered::Interrupted) => Ok(Answer::Interrupted),
            Err(Unanswered::Recalled) => Ok(Answer::Recalled),
            Err(Unanswered::Io(error)) => Err(error),
        };
    }
}

/// Asks what to do about a question that a person went back from.
fn leave(terminal: &mut Terminal, place: &str) -> Asked<Answer> {
    match terminal.choose(&format!("{} waits.", one_line(place, true)), &[ANSWER, LATER, STOP])? {
        LATER => Ok(Answer::Later),
        STOP => Ok(Answer::Stop),
        _ => Err(Unanswered::Back),
    }
}

fn approval(terminal: &mut Terminal, pending: &Pending, gate: &Gate, place: &str, lasts: bool) -> Asked<Answer> {
    let rows = Room { columns: columns(), unicode: true }.whole(&pending.arguments);
    // How much there is to read stands before what is read, which may try to look as if it were all.
    let extent = extent(&pending.arguments).map_or_else(String::new, |extent| format!(" ({extent})"));
    terminal.say(&format!("{} asks{extent}: {}", one_line(place, true), one_line(&gate.reason, true)))?;
    let mut unread = rows.as_slice();
    let mut has_pages = false;
    let decision = loop {
        let (shown, rest) = unread.split_at(page().min(unread.len()));
        terminal.say(&shown.join("\n"))?;
        unread = rest;
        let left = unread.len();
        has_pages |= left > 0;
        // The first choice pages to the end, so that paging keys never approve.
        let turn = match left {
            0 => has_pages.then(|| AGAIN.to_owned()),
            _ => Some(format!("Show the next {} of {} rows", page().min(left), rows.len())),
        };
        let question = match left {
            0 => format!("May {} run?", pending.tool),
            left => format!("May {} run? {left} of {} rows were not shown yet.", pending.tool, rows.len()),
        };
        let (edit, later) = (gate.editable.then_some(EDIT), lasts.then_some(LATER));
        let choices: Vec<_> =
            [turn.as_deref(), Some(APPROVE), edit, Some(REJECT), later, Some(STOP)].into_iter().flatten().collect();
        match terminal.choose(&question, &choices)? {
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
    let kind = match decision {
        APPROVE => SignalKind::Approve { call, arguments: None },
        EDIT => SignalKind::Approve { call, arguments: Some(edited(terminal, &pending.arguments)?) },
        _ => {
            let reason = terminal.text("Why not?", "", "the model reads it; Enter gives none", |_| Ok(()))?;
            let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
            SignalKind::Reject { call, reason }
        }
    };
    Ok(Answer::Signal(kind))
}

/// Asks how much more a loop or a brain gets.
fn more(
    terminal: &mut Terminal,
    pending: &Pending,
    (kind, limit, used): (LimitKind, u64, u64),
    (place, asks): (&str, &str),
    lasts: bool,
) -> Asked<Answer> {
    let place = if place.is_empty() { "The run" } else { place };
    terminal.say(&format!("{} {asks}", one_line(place, true)))?;
    let later = lasts.then_some(LATER);
    let choices: Vec<_> = [Some(GRANT), Some(REFUSE), later, Some(STOP)].into_iter().flatten().collect();
    let call = pending.call.clone();
    let signal = match terminal.choose("Shall it go on?", &choices)? {
        GRANT => {
            let check = move |text: &str| limits::read(kind, text).map(|_| ());
            let suggested = limits::suggested(kind, limit, used);
            let text = terminal.text("How much more?", &suggested, limits::expected(kind), check)?;
            let more = limits::read(kind, &text).unwrap_or_default();
            SignalKind::Grant { to: call, more }
        }
        REFUSE => {
            let reason = terminal.text("Why not?", "", "it is kept with the decision; Enter gives none", |_| Ok(()))?;
            let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
            SignalKind::Reject { call, reason }
        }
        LATER => return Ok(Answer::Later),
        _ => return Ok(Answer::Stop),
    };
    Ok(Answer::Signal(signal))
}

/// Asks for other arguments: field by field where they are flat, else as JSON.
fn edited(terminal: &mut Terminal, arguments: &Value) -> Asked<Value> {
    let flat = |value: &Value| !value.is_object() && !value.is_array();
    let Some(fields) = arguments.as_object().filter(|fields| !fields.is_empty() && fields.values().all(flat)) else {
        return json(terminal, "Arguments:", &arguments.to_string());
    };
    let mut edited = Map::new();
    for (name, value) in fields {
        let message = format!("  {name}:");
        let value = match value {
            Value::String(text) => Value::from(terminal.text(&message, text, "", |_| Ok(()))?),
            other => json(terminal, &message, &other.to_string())?,
        };
        edited.insert(name.clone(), value);
    }
    Ok(Value::Object(edited))
}

fn answer(terminal: &mut Terminal, pending: &Pending, waits: &[WaitSpec], place: &str) -> Asked<Answer> {
    terminal.say("(Esc to go back)")?;
    let names: Vec<String> = waits.iter().map(named).collect();
    let wait = match names.as_slice() {
        [_] => waits.first(),
        _ => {
            let message = format!("{} waits; which of these has come?", one_line(place, true));
            let chosen = terminal.choose(&message, &names)?;
            names.iter().position(|name| *name == chosen).and_then(|index| waits.get(index))
        }
    };
    let Some(wait) = wait else { return Ok(Answer::Stop) };
    let message = match &wait.prompt {
        Some(prompt) => one_line(prompt, true),
        None => format!("{} waits for {}", one_line(place, true), named(wait)),
    };
    Ok(Answer::Signal(delivery(pending, wait, payload(terminal, &message, &wait.schema)?)))
}

fn named(wait: &WaitSpec) -> String {
    one_line(format!("{} {}", wait.webhook, wait.identifier).trim(), true)
}

/// Asks for a payload, in the way that its schema suggests.
fn payload(terminal: &mut Terminal, message: &str, schema: &Value) -> Asked<Value> {
    let Some(entries) = entries(schema) else { return json(terminal, message, "") };
    match entries.as_slice() {
        [entry @ Entry { name: None, .. }] => Ok(value(terminal, message, entry)?.unwrap_or_default()),
        several => {
            if several.len() > 1 {
                terminal.say(message)?;
            }
            let mut object = Map::new();
            for entry in several {
                let name = entry.name.as_deref().unwrap_or_default();
                let message = if several.len() > 1 { format!("  {name}:") } else { message.to_owned() };
                if let Some(value) = value(terminal, &message, entry)? {
                    object.insert(name.to_owned(), value);
                }
            }
            Ok(Value::Object(object))
        }
    }
}

/// Asks for one value; an optional one may be left out.
fn value(terminal: &mut Terminal, message: &str, entry: &Entry) -> Asked<Option<Value>> {
    if entry.flag && entry.required {
        return Ok(Some(Value::Bool(terminal.choose(message, &["yes", "no"])? == "yes")));
    }
    if !entry.choices.is_empty() && entry.required {
        let chosen = terminal.choose(message, &entry.choices)?;
        return Ok(read_entry(entry, &chosen).ok());
    }
    let help = if entry.required { entry.expected.clone() } else { format!("{}; Enter leaves it out", entry.expected) };
    let checked = entry.clone();
    let text = terminal.text(message, "", &help, move |text| match read_entry(&checked, text) {
        Err(expected) if checked.required || !text.is_empty() => Err(format!("expected {expected}")),
        _ => Ok(()),
    })?;
    Ok(if text.is_empty() && !entry.required { None } else { read_entry(entry, &text).ok() })
}

fn json(terminal: &mut Terminal, message: &str, initial: &str) -> Asked<Value> {
    let check = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(no_json(text, &error)),
    };
    let text = terminal.text(message, initial, "JSON", check)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}
