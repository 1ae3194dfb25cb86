//! Asks a person at the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use inquire::ui::RenderConfig;
use inquire::validator::Validation;
use inquire::{Confirm, InquireError, Select, Text};
use positronic_core::record::{Gate, SignalKind, WaitSpec};
use positronic_core::record::{Pending, PendingKind};
use serde_json::{Map, Value};

use super::delivery;
use crate::display::text::{one_line, sanitise};
use crate::options::{Entry, entries, read_entry};

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
}

/// The person wants to choose again.
enum Asked<T> {
    Answer(T),
    Back,
}

type Prompted<T> = Result<T, InquireError>;

const APPROVE: &str = "Approve";
const EDIT: &str = "Approve with other arguments";
const REJECT: &str = "Reject";
const ANSWER: &str = "Answer now";
const LATER: &str = "Leave it for later";
const STOP: &str = "Stop the run";

/// Sets how questions look.
pub(crate) fn prepare(colour: bool) {
    inquire::set_global_render_config(if colour { RenderConfig::default_colored() } else { RenderConfig::empty() });
}

/// Asks until there is an answer, or Ctrl-C; where the run lasts, the question can be left for later.
///
/// # Errors
///
/// What the terminal answers.
pub(crate) fn ask(pending: &Pending, place: &str, lasts: bool) -> io::Result<Answer> {
    loop {
        let asked = match &pending.kind {
            PendingKind::Approval { gate, .. } => approval(pending, gate, place, lasts),
            PendingKind::Answer { waits } => match answer(pending, waits, place) {
                Ok(Asked::Back) | Err(InquireError::OperationCanceled) if lasts => leave(place),
                asked => asked,
            },
        };
        return match asked {
            Ok(Asked::Answer(answer)) => Ok(answer),
            Ok(Asked::Back) | Err(InquireError::OperationCanceled) => continue,
            Err(InquireError::OperationInterrupted) => Ok(Answer::Interrupted),
            Err(InquireError::IO(error)) => Err(error),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
    }
}

/// Turns Escape inside a question into a step back to the question around it.
fn or_back<T>(prompted: Prompted<T>) -> Prompted<Asked<T>> {
    match prompted {
        Ok(answer) => Ok(Asked::Answer(answer)),
        Err(InquireError::OperationCanceled) => Ok(Asked::Back),
        Err(error) => Err(error),
    }
}

/// Asks what to do about a question that a person went back from.
fn leave(place: &str) -> Prompted<Asked<Answer>> {
    Ok(match select(&format!("{} waits.", one_line(place, true)), vec![ANSWER, LATER, STOP])? {
        LATER => Asked::Answer(Answer::Later),
        STOP => Asked::Answer(Answer::Stop),
        _ => Asked::Back,
    })
}

fn approval(pending: &Pending, gate: &Gate, place: &str, lasts: bool) -> Prompted<Asked<Answer>> {
    let arguments = serde_json::to_string_pretty(&*pending.arguments).unwrap_or_default();
    let mut shown = format!("{} asks: {}\n", one_line(place, true), one_line(&gate.reason, true));
    for line in sanitise(&arguments, true).lines() {
        _ = writeln!(shown, "  {line}");
    }
    Write::write_all(&mut io::stderr(), shown.as_bytes())?;
    let edit = gate.editable.then_some(EDIT);
    let later = lasts.then_some(LATER);
    let choices = [Some(APPROVE), edit, Some(REJECT), later, Some(STOP)].into_iter().flatten().collect();
    let message = format!("May {} run?", one_line(&pending.tool, true));
    let call = pending.call.clone();
    let kind = match select(&message, choices)? {
        APPROVE => SignalKind::Approve { call, arguments: None },
        EDIT => match or_back(edited(&pending.arguments))? {
            Asked::Answer(arguments) => SignalKind::Approve { call, arguments: Some(arguments) },
            Asked::Back => return Ok(Asked::Back),
        },
        REJECT => {
            match or_back(Text::new("Why not?").with_help_message("the model reads it; Enter gives none").prompt())? {
                Asked::Answer(reason) => {
                    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
                    SignalKind::Reject { call, reason }
                }
                Asked::Back => return Ok(Asked::Back),
            }
        }
        LATER => return Ok(Asked::Answer(Answer::Later)),
        _ => return Ok(Asked::Answer(Answer::Stop)),
    };
    Ok(Asked::Answer(Answer::Signal(kind)))
}

fn select<T: std::fmt::Display>(message: &str, choices: Vec<T>) -> Prompted<T> {
    Select::new(message, choices).without_filtering().with_help_message("↑↓ to move, Enter to choose").prompt()
}

/// Asks for other arguments: field by field where they are flat, else as JSON.
fn edited(arguments: &Value) -> Prompted<Value> {
    let flat = |value: &Value| !value.is_object() && !value.is_array();
    let Some(fields) = arguments.as_object().filter(|fields| !fields.is_empty() && fields.values().all(flat)) else {
        return json("Arguments:", &arguments.to_string());
    };
    let mut edited = Map::new();
    for (name, value) in fields {
        let message = format!("  {}:", one_line(name, true));
        let value = match value {
            Value::String(text) => Value::from(Text::new(&message).with_initial_value(text).prompt()?),
            other => json(&message, &other.to_string())?,
        };
        edited.insert(name.clone(), value);
    }
    Ok(Value::Object(edited))
}

fn answer(pending: &Pending, waits: &[WaitSpec], place: &str) -> Prompted<Asked<Answer>> {
    writeln!(io::stderr(), "(Esc to go back)")?;
    let names: Vec<String> = waits.iter().map(named).collect();
    let wait = match names.as_slice() {
        [_] => waits.first(),
        _ => {
            let message = format!("{} waits; which of these has come?", one_line(place, true));
            let chosen = select(&message, names.clone())?;
            names.iter().position(|name| *name == chosen).and_then(|index| waits.get(index))
        }
    };
    let Some(wait) = wait else { return Ok(Asked::Answer(Answer::Stop)) };
    let message = match &wait.prompt {
        Some(prompt) => one_line(prompt, true),
        None => format!("{} waits for {}", one_line(place, true), named(wait)),
    };
    Ok(match or_back(payload(&message, &wait.schema))? {
        Asked::Answer(payload) => Asked::Answer(Answer::Signal(delivery(pending, wait, payload))),
        Asked::Back => Asked::Back,
    })
}

fn named(wait: &WaitSpec) -> String {
    one_line(format!("{} {}", wait.webhook, wait.identifier).trim(), true)
}

/// Asks for a payload, in the way that its schema suggests.
fn payload(message: &str, schema: &Value) -> Prompted<Value> {
    let Some(entries) = entries(schema) else { return json(message, "") };
    match entries.as_slice() {
        [Entry { name: None, .. }] => {
            let mut values = entries.iter().map(|entry| value(message, entry));
            values.next().unwrap_or(Ok(Some(Value::Null))).map(Option::unwrap_or_default)
        }
        several => {
            if several.len() > 1 {
                writeln!(io::stderr(), "{message}")?;
            }
            let mut object = Map::new();
            for entry in several {
                let name = entry.name.as_deref().unwrap_or_default();
                let message = if several.len() > 1 { format!("  {name}:") } else { message.to_owned() };
                if let Some(value) = value(&message, entry)? {
                    object.insert(name.to_owned(), value);
                }
            }
            Ok(Value::Object(object))
        }
    }
}

/// Asks for one value; an optional one may be left out.
fn value(message: &str, entry: &Entry) -> Prompted<Option<Value>> {
    if entry.flag && entry.required {
        return Confirm::new(message).prompt().map(|yes| Some(Value::Bool(yes)));
    }
    if !entry.choices.is_empty() && entry.required {
        let chosen = select(message, entry.choices.clone())?;
        return Ok(read_entry(entry, &chosen).ok());
    }
    let help = if entry.required { entry.expected.clone() } else { format!("{}; Enter leaves it out", entry.expected) };
    let checked = entry.clone();
    let text = Text::new(message)
        .with_help_message(&help)
        .with_validator(move |text: &str| {
            Ok(match read_entry(&checked, text) {
                _ if text.is_empty() && !checked.required => Validation::Valid,
                Ok(_) => Validation::Valid,
                Err(expected) => Validation::Invalid(format!("expected {expected}").into()),
            })
        })
        .prompt()?;
    Ok(if text.is_empty() && !entry.required { None } else { read_entry(entry, &text).ok() })
}

fn json(message: &str, initial: &str) -> Prompted<Value> {
    let text = Text::new(message)
        .with_initial_value(initial)
        .with_help_message("JSON")
        .with_validator(|text: &str| {
            Ok(match serde_json::from_str::<Value>(text) {
                Ok(_) => Validation::Valid,
                Err(error) => Validation::Invalid(error.to_string().into()),
            })
        })
        .prompt()?;
    serde_json::from_str(&text).map_err(|error| InquireError::InvalidConfiguration(error.to_string()))
}
