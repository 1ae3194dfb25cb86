//! A chat line by line: each line of stdin is a message, each answer a text on stdout.
//!
//! It ends with the input, or with a message without a complete answer: later messages would refer to a missing answer.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use positronic_core::projection::Prompts;
use positronic_core::record::{Event, EventKind, Opening, Path, RunId, Seq, Status};
use positronic_core::runner::{DueTrigger, Ids as _, Runner, UuidIds};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::context::ChatContext;
use super::slash::{Slash, Written, written};
use crate::app::failure::Failure;
use crate::app::models::CassetteSession;
use crate::app::store::relative;
use crate::app::ui::Ui;
use crate::cli::exit::Exit;
use crate::render::conversation::plain;
use crate::render::text::sanitise;
use crate::session::driver::{Ending, OutputMode, Role, SessionOptions, session};
use crate::session::interrupts::{Interrupt, interrupts};
use crate::session::outcome::{cut_short, ended, left_by};

/// Reads messages until the end of the input, and sends them one after the other.
pub(crate) async fn lines(
    desk: &mut ChatContext,
    runner: &Runner,
    cassette: &CassetteSession,
    output: OutputMode,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let by_hand = ui.settings.stdin_is_terminal;
    let mut reader = Reader::new(std::mem::replace(&mut ui.input, Box::new(std::io::empty())));
    let mut interrupts = interrupts();
    // Without a message, the command ends with the outcome of the last run.
    let mut last = Exit::Done;
    let before = desk.last().await?.filter(|last| last.status == Status::Running);
    if let Some(row) = before {
        // A decided call is answered before the next message, a waiting one after it.
        last = answered(desk, runner, cassette, output, Words::Before(row.run), ui).await?;
        if matches!(last, Exit::Interrupted | Exit::Terminated) {
            return Ok(last);
        }
    }
    let mut unfired = None;
    loop {
        let exit = fired(desk, runner, cassette, output, &mut unfired, ui).await?;
        while interrupts.try_recv().is_ok() {}
        if exit != Exit::Done {
            return Ok(exit);
        }
        if by_hand {
            ui.lines("> ")?;
        }
        let line = match reader.next(&mut interrupts).await {
            Next::Line(line) => line,
            Next::End => return Ok(last),
            Next::Failed(source) => {
                return Err(Failure::File { path: "stdin".into(), doing: "cannot be read", source });
            }
            Next::Told(how) => return Ok(left_by(how)),
        };
        let text = match if by_hand { written(&line) } else { Written::Message(line) } {
            Written::Message(text) => text,
            Written::Unknown(said) => {
                ui.notice(&said)?;
                continue;
            }
            Written::Command(Slash::Quit, _) => return Ok(Exit::Done),
            Written::Command(slash, argument) => match execute(desk, slash, &argument, ui).await {
                Ok(Some(again)) => again,
                Ok(None) => continue,
                Err(Failure::Output(error)) => return Err(error.into()),
                Err(failure) => {
                    ui.failure(&failure)?;
                    continue;
                }
            },
        };
        let exit = answered(desk, runner, cassette, output, Words::Now(text), ui).await?;
        last = exit;
        // Interrupts during the run were for the run.
        while interrupts.try_recv().is_ok() {}
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
}

/// Fires due triggers of the conversation. They are checked before each line is read, since a line that was already read
/// must not answer their questions.
async fn fired(
    desk: &ChatContext,
    runner: &Runner,
    cassette: &CassetteSession,
    output: OutputMode,
    unfired: &mut Option<String>,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    loop {
        match desk.fire(runner).await {
            Ok(None) => return Ok(Exit::Done),
            Ok(Some(DueTrigger { timer, started: Ok(run), .. })) => {
                ui.notice(&format!("the trigger {} is due: {}", timer.trigger.id, timer.trigger.what))?;
                let exit = answered(desk, runner, cassette, output, Words::Fired(run.id().clone()), ui).await?;
                if exit != Exit::Done {
                    return Ok(exit);
                }
            }
            Ok(Some(DueTrigger { started: Err(error), .. })) => ui.notice(&error.to_string())?,
            Err(said) => {
                if unfired.as_ref() != Some(&said) {
                    ui.notice(&said)?;
                    *unfired = Some(said);
                }
                return Ok(Exit::Done);
            }
        }
    }
}

/// Executes a command, and returns a message to send.
async fn execute(desk: &mut ChatContext, slash: Slash, argument: &str, ui: &mut Ui) -> Result<Option<String>, Failure> {
    let said = match slash {
        Slash::New => {
            desk.restart().await?;
            format!("new conversation {}", desk.id)
        }
        Slash::Retry => match desk.recorded().await?.last_message() {
            Some(text) => return Ok(Some(text)),
            None => "no message yet".to_owned(),
        },
        Slash::Cancel => "no answer is running".to_owned(),
        other => desk.tell(other, argument, ui.err_columns(), ui.settings.unicode).await?,
    };
    ui.lines(&said)?;
    Ok(None)
}

/// The origin of a run.
enum Words {
    /// A new message.
    Now(String),
    /// An earlier message, in an open run.
    Before(RunId),
    /// A trigger, which started this run.
    Fired(RunId),
}

/// Shows the progress of an answer, and prints it.
async fn answered(
    desk: &ChatContext,
    runner: &Runner,
    cassette: &CassetteSession,
    output: OutputMode,
    words: Words,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let known = match words {
        Words::Fired(_) => None,
        Words::Now(_) | Words::Before(_) => known(desk).await?,
    };
    let id = matches!(words, Words::Now(_)).then(|| UuidIds.signal().to_string());
    let options = SessionOptions {
        cassette,
        plays_people: false,
        actor: &desk.actor,
        lasts: desk.kept.is_persistent(),
        role: Role::Runs,
        output,
        several: true,
    };
    let begin = async |runner: Runner| match words {
        Words::Before(run) | Words::Fired(run) => desk.continue_run(&runner, &run).await,
        Words::Now(text) => {
            let (definition, options) = (Arc::clone(&desk.definition), desk.options.clone());
            let opening = Opening { text, id: id.clone() };
            desk.wind(&runner).await?;
            desk.conversation(&runner).send_plan(definition, options, opening).await.map_err(desk.refusal())
        }
    };
    let (run, ending) = session(runner, begin, &options, ui).await?;
    let log = desk.client().events(&run, Seq(0)).await?;
    let prompts = Prompts::of(log.iter().map(|event| &**event));
    let before = known.filter(|(known, _)| *known == run).map(|(_, prompts)| prompts);
    let outputs = |path: &Path| before.as_ref().and_then(|before| before.get(path)).map_or(0, |one| one.output.len());
    let answer = plain(&prompts, outputs);
    let mut unsaved = None;
    for file in log.iter().filter_map(|event| file(event)) {
        match desk.save(file).await {
            Ok(Some(path)) => ui.notice(&format!("saved {} as {}", file.name, relative(&path)))?,
            Ok(None) => {}
            // The answer is printed anyway.
            Err(failure) => unsaved = Some(failure),
        }
    }
    if output.json {
        let status = desk.client().store().run(&run).await?.status;
        ui.json_line(&json!({"run": run, "status": status, "text": answer}))?;
    } else if !answer.is_empty() {
        ui.tell(&sanitise(&answer, ui.settings.unicode))?;
    }
    let exit = match ending {
        Ending::Completed(result) => {
            if !output.json && answer.is_empty() && result != Value::Null {
                ui.document(&result)?;
            }
            cut_short(&log, ui)?;
            Exit::Done
        }
        Ending::Left(pending) if desk.kept.is_persistent() => {
            let exit = ended(&desk.kept, &run, Ending::Left(pending), &CassetteSession::None, output.json, ui).await?;
            ui.lines(&format!("or in the chat: {}", desk.back()))?;
            exit
        }
        other => ended(&desk.kept, &run, other, &CassetteSession::None, output.json, ui).await?,
    };
    match unsaved {
        Some(failure) if exit == Exit::Done => return Err(failure),
        Some(failure) => ui.failure(&failure)?,
        None => {}
    }
    Ok(exit)
}

/// Returns the already shown outputs of an open run.
async fn known(desk: &ChatContext) -> Result<Option<(RunId, Prompts)>, Failure> {
    let Some(last) = desk.last().await?.filter(|last| !last.status.is_over()) else { return Ok(None) };
    let log = desk.client().events(&last.run, Seq(0)).await?;
    Ok(Some((last.run, Prompts::of(log.iter().map(|event| &**event)))))
}

const fn file(event: &Event) -> Option<&positronic_core::record::FileOutput> {
    match &event.kind {
        EventKind::LoopOutput { output: positronic_core::record::SideOutput::File(file), .. } => Some(file),
        _ => None,
    }
}

/// Reads one line on request, so that questions can read the input in between.
struct Reader {
    ask: Sender<()>,
    lines: UnboundedReceiver<Option<std::io::Result<String>>>,
}

enum Next {
    Line(String),
    End,
    Failed(std::io::Error),
    Told(Interrupt),
}

impl Reader {
    fn new(input: Box<dyn Read + Send>) -> Self {
        let (ask, asked) = channel();
        let (sender, lines) = unbounded_channel();
        std::thread::spawn(move || {
            let mut input = BufReader::new(input);
            while let Ok(()) = asked.recv() {
                let mut bytes = Vec::new();
                let line = match input.read_until(b'\n', &mut bytes) {
                    Ok(0) => None,
                    Ok(_) => Some(Ok(String::from_utf8_lossy(&bytes).into_owned())),
                    Err(error) => Some(Err(error)),
                };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { ask, lines }
    }

    /// Returns the next line that is not blank.
    async fn next(&mut self, interrupts: &mut UnboundedReceiver<Interrupt>) -> Next {
        loop {
            if self.ask.send(()).is_err() {
                return Next::End;
            }
            tokio::select! {
                biased;
                Some(how) = interrupts.recv() => return Next::Told(how),
                line = self.lines.recv() => match line.flatten() {
                    Some(Ok(line)) if line.trim().is_empty() => {}
                    Some(Ok(line)) => return Next::Line(line.trim_end_matches(['\r', '\n']).to_owned()),
                    Some(Err(error)) => return Next::Failed(error),
                    None => return Next::End,
                },
            }
        }
    }
}
