//! Chat over a pipe: each line of stdin is a message, each answer a text on stdout.
//!
//! It ends with the input, or with the first message that gets no complete answer, since the next line may refer to it.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

use positronic_core::projection::Prompts;
use positronic_core::record::{Attachment, Path, RunId, Seq, Status, UserMessage};
use positronic_core::runner::{DueTrigger, Ids as _, Runner, UuidIds};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::attached::Attached;
use super::current_conversation::ChatContext;
use super::slash_commands::{Slash, Written, parse};
use crate::app::{CassetteSession, Failure, Ui, attachment, relative, store_attachments};
use crate::cli::Exit;
use crate::cli::OutputArgs;
use crate::render::{Style, plain_answer};
use crate::session::{
    Ending, Interrupt, Role, SessionOptions, ended, interrupts, left_by, report_limited_loops, session,
};

/// Sends the messages of stdin one after the other, each after the answer to the one before.
pub(crate) async fn piped(
    context: &mut ChatContext,
    runner: &Runner,
    cassette: &CassetteSession,
    mode: OutputArgs,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let input = std::mem::replace(&mut ui.input, Box::new(std::io::empty()));
    PipedChat { context, runner, cassette, mode, unfired: None, attached: Attached::default(), ui }.run(input).await
}

struct PipedChat<'a> {
    context: &'a mut ChatContext,
    runner: &'a Runner,
    cassette: &'a CassetteSession,
    mode: OutputArgs,
    /// Why a trigger does not fire here, as it was printed last.
    unfired: Option<String>,
    /// The files of the next message.
    attached: Attached,
    ui: &'a mut Ui,
}

/// What is answered.
enum Message {
    /// A new message.
    New(UserMessage, Vec<Attachment>),
    /// The messages of a run that was not over.
    Open(RunId),
    /// The message of a trigger, in the run that it began.
    Fired(RunId),
}

impl PipedChat<'_> {
    async fn run(&mut self, input: Box<dyn Read + Send>) -> Result<Exit, Failure> {
        // Lines that a person types can be commands.
        let is_typed = self.ui.settings.stdin_is_terminal;
        let mut lines = InputLines(Some(BufReader::new(input)));
        let mut interrupts = interrupts();
        let mut last = Exit::Done;
        if let Some(row) = self.context.last().await?.filter(|last| last.status == Status::Running) {
            // A run that waits is continued with the next message.
            last = self.answer(Message::Open(row.run)).await?;
            if matches!(last, Exit::Interrupted | Exit::Terminated) {
                return Ok(last);
            }
        }
        loop {
            // Before a line is read, since a question of a trigger's run must not get a line that was meant as a message.
            let exit = self.fire().await?;
            while interrupts.try_recv().is_ok() {}
            if exit != Exit::Done {
                return Ok(exit);
            }
            if is_typed {
                self.ui.lines("> ")?;
            }
            let line = match lines.next(&mut interrupts).await? {
                PipedInput::Line(line) => line,
                PipedInput::End => return Ok(last),
                PipedInput::Interrupt(interrupt) => return Ok(left_by(interrupt)),
            };
            let (message, files) = match if is_typed { parse(&line) } else { Written::Message(line) } {
                Written::Message(text) => {
                    let files = self.attached.take();
                    let message = UserMessage::new(text).files(files.iter().map(|file| file.file().clone()));
                    (message, files)
                }
                Written::Unknown(reason) => {
                    self.ui.notice(&reason)?;
                    continue;
                }
                Written::Command(Slash::Quit, _) => return Ok(Exit::Done),
                Written::Command(slash, argument) => match self.command(slash, &argument).await {
                    Ok(Some(again)) => (again, Vec::new()),
                    Ok(None) => continue,
                    Err(failure) if failure.output.is_some() => return Err(failure),
                    Err(failure) => {
                        self.ui.failure(&failure)?;
                        continue;
                    }
                },
            };
            last = self.answer(Message::New(message, files)).await?;
            // Interrupts during the run were for the run.
            while interrupts.try_recv().is_ok() {}
            if last != Exit::Done {
                return Ok(last);
            }
        }
    }

    /// Fires the due triggers of the conversation, and shows the answers.
    async fn fire(&mut self) -> Result<Exit, Failure> {
        loop {
            match self.context.fire(self.runner).await {
                Ok(None) => return Ok(Exit::Done),
                Ok(Some(DueTrigger { timer, started: Ok(run), .. })) => {
                    self.ui.notice(&format!("the trigger {} is due: {}", timer.trigger.id, timer.trigger.what))?;
                    let exit = self.answer(Message::Fired(run.id().clone())).await?;
                    if exit != Exit::Done {
                        return Ok(exit);
                    }
                }
                Ok(Some(DueTrigger { started: Err(error), .. })) => self.ui.notice(&error.to_string())?,
                Err(reason) => {
                    if self.unfired.as_ref() != Some(&reason) {
                        self.ui.notice(&reason)?;
                        self.unfired = Some(reason);
                    }
                    return Ok(Exit::Done);
                }
            }
        }
    }

    /// Carries out a command; returns a message to send.
    async fn command(&mut self, slash: Slash, argument: &str) -> Result<Option<UserMessage>, Failure> {
        let text = match slash {
            Slash::Attach => {
                if !argument.is_empty() {
                    self.attached.add(attachment(std::path::Path::new(argument))?);
                }
                self.attached.list()
            }
            Slash::Detach => self.attached.remove(argument),
            Slash::New => {
                self.context.restart().await?;
                format!("new conversation {}", self.context.id)
            }
            Slash::Retry => match self.context.recorded().await?.last_message() {
                Some(message) => return Ok(Some(message)),
                None => "no message yet".to_owned(),
            },
            Slash::Cancel => "no answer is running".to_owned(),
            other => {
                let style = Style { width: self.ui.err_columns(), ..Style::default() };
                self.context.output(other, argument, &style).await?
            }
        };
        self.ui.lines(&text)?;
        Ok(None)
    }

    /// Shows the progress of an answer, and writes it.
    async fn answer(&mut self, message: Message) -> Result<Exit, Failure> {
        let known = match message {
            Message::Fired(_) => None,
            Message::New(..) | Message::Open(_) => self.known().await?,
        };
        let (context, ui) = (&*self.context, &mut *self.ui);
        let options = SessionOptions {
            cassette: self.cassette,
            lasts: context.store.is_persistent(),
            several: true,
            ..SessionOptions::new(Role::Runs, &context.actor, self.mode)
        };
        let begin = async |runner: Runner| match message {
            Message::Open(run) | Message::Fired(run) => context.resume(&runner, &run).await,
            Message::New(message, files) => {
                let (definition, options) = (Arc::clone(&context.definition), context.options.clone());
                let opening = message.id(UuidIds.signal().to_string());
                context.advance_cassette(&runner).await?;
                store_attachments(&files, &context.client()).await?;
                let sent = context.conversation(&runner).send_definition(definition, options, opening).await;
                sent.map_err(context.refused())
            }
        };
        let (run, ending) = session(self.runner, begin, &options, ui).await?;
        let log = context.client().events(&run, Seq(0)).await?;
        let prompts = Prompts::of(log.iter().map(|event| &**event));
        let before = known.filter(|(known, _)| *known == run).map(|(_, prompts)| prompts);
        let outputs =
            |path: &Path| before.as_ref().and_then(|before| before.get(path)).map_or(0, |one| one.output.len());
        let answer = plain_answer(&prompts, outputs);
        let mut unsaved = None;
        for file in log.iter().flat_map(|event| event.kind.made_files()) {
            match context.save(file).await {
                Ok(Some(path)) => ui.notice(&format!("saved {} as {}", file.name, relative(&path)))?,
                Ok(None) => {}
                // The answer is written all the same.
                Err(failure) => unsaved = Some(failure),
            }
        }
        if self.mode.json {
            let status = context.client().store().run(&run).await?.status;
            ui.json_line(&json!({"run": run, "status": status, "text": answer}))?;
        } else if !answer.is_empty() {
            ui.print(&answer)?;
        }
        let is_left = matches!(ending, Ending::Left(_)) && context.store.is_persistent();
        let exit = match ending {
            Ending::Completed(result) => {
                if !self.mode.json && answer.is_empty() && result != Value::Null {
                    ui.document(&result)?;
                }
                report_limited_loops(&log, ui)?;
                Exit::Done
            }
            other => ended(&context.store, &run, other, None, self.mode.json, ui).await?,
        };
        if is_left {
            ui.lines(&format!("or in the chat: {}", context.back()))?;
        }
        match unsaved {
            Some(failure) if exit == Exit::Done => return Err(failure),
            Some(failure) => ui.failure(&failure)?,
            None => {}
        }
        Ok(exit)
    }

    /// Returns what the run that is not over has shown already.
    async fn known(&self) -> Result<Option<(RunId, Prompts)>, Failure> {
        let Some(last) = self.context.last().await?.filter(|last| !last.status.is_over()) else { return Ok(None) };
        let log = self.context.client().events(&last.run, Seq(0)).await?;
        Ok(Some((last.run, Prompts::of(log.iter().map(|event| &**event)))))
    }
}

/// What stdin has next.
enum PipedInput {
    Line(String),
    End,
    Interrupt(Interrupt),
}

/// The lines of stdin, each read when it is asked for, so that a question can read the terminal in between.
struct InputLines(Option<BufReader<Box<dyn Read + Send>>>);

impl InputLines {
    /// Returns the next line that is not blank.
    async fn next(&mut self, interrupts: &mut UnboundedReceiver<Interrupt>) -> Result<PipedInput, Failure> {
        while let Some(mut input) = self.0.take() {
            let reading = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                input.read_until(b'\n', &mut bytes).map(|_| (input, bytes))
            });
            let read = tokio::select! {
                biased;
                Some(interrupt) = interrupts.recv() => return Ok(PipedInput::Interrupt(interrupt)),
                read = reading => read.unwrap_or_else(|error| Err(error.into())),
            };
            let (input, bytes) = read.map_err(Failure::file("stdin", "cannot read"))?;
            if bytes.is_empty() {
                break;
            }
            self.0 = Some(input);
            let line = String::from_utf8_lossy(&bytes);
            if !line.trim().is_empty() {
                return Ok(PipedInput::Line(line.trim_end_matches(['\r', '\n']).to_owned()));
            }
        }
        Ok(PipedInput::End)
    }
}
