//! Terminal of a chat: feeds keys, time and runs to the [`ChatState`], carries out its actions, and paints.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use crossterm::event::Event as Typed;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use positronic_core::record::{RunId, Seq};
use positronic_core::runner::{Clock as _, Ids as _, RunHandle, RunUpdate, Runner, SystemClock, UuidIds};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::current_conversation::ChatContext;
use super::input_history::HistoryFile;
use super::protocol::{Action, Input};
use super::slash_commands::Slash;
use super::state::ChatState;
use crate::app::{BufferedLog, Failure, Streams, Ui, attachment, size};
use crate::render::{Line, Live, Style, Tone};
use crate::session::{Interrupt, Keyboard, Question, for_person, interrupts};

/// How often the screen is repainted.
const TICK: Duration = Duration::from_millis(80);

/// How a chat was left.
#[derive(Debug)]
pub(crate) struct Left {
    /// The interrupt that ends the chat, unless the person leaves it.
    pub(crate) by: Option<Interrupt>,
    /// Whether a call waits for a person.
    pub(crate) waits: bool,
    /// Whether the conversation has messages.
    pub(crate) said: bool,
}

/// Shows a conversation until the person leaves it.
pub(crate) async fn chat_ui(
    context: &mut ChatContext,
    runner: Runner,
    history: usize,
    ui: &mut Ui,
) -> Result<Left, Failure> {
    let style = ui.style();
    let known = show_past(context, history, ui).await?;
    let (columns, rows) = size();
    let is_piped = !ui.settings.stdout_is_terminal;
    let file = HistoryFile::of(context.store.path.as_deref());
    let ids = UuidIds.signal().to_string();
    let mut chat = ChatUi {
        state: ChatState::new(runner.worker().await?, context.store.is_persistent(), file.read(), ids),
        actions: VecDeque::new(),
        history: file,
        context,
        runner,
        live: Live::of_chat(&mut *ui.err as &mut (dyn Write + Send), style, columns, rows),
        out: is_piped.then_some(&mut *ui.out),
        streams: ui.streams.clone(),
        log: ui.log.buffer(),
        keyboard: Keyboard::open()?,
        interrupts: interrupts(),
        run: None,
        updates: stream::pending().boxed(),
        seen: Seq(0),
        known,
        sending: None,
        released: None,
        unfired: None,
    };
    let left = chat.run().await;
    // The terminal is restored before any error is reported.
    let shown = chat.live.finish();
    drop(chat.keyboard);
    let left = left?;
    shown?;
    Ok(left)
}

/// Prints the last prompts, without a run that is not over, which is shown live. Returns the last of their runs.
async fn show_past(context: &ChatContext, most: usize, ui: &mut Ui) -> Result<Option<RunId>, Failure> {
    let mut recorded = context.recorded().await?;
    let kind = if recorded.runs.is_empty() { "new conversation" } else { "conversation" };
    ui.notice(&format!("{} · {kind} {} · /help", context.definition.title, context.id))?;
    if recorded.runs.last().is_some_and(|(row, _)| !row.status.is_over()) {
        recorded.runs.pop();
    }
    let all = recorded.runs.len();
    if all > most {
        ui.notice(&format!("{} earlier; /history shows all", all - most))?;
    }
    let width = size().0.saturating_sub(1).clamp(2, 200);
    let style = Style { width, stream_lines: usize::MAX, ..ui.style() };
    let text = recorded.text(most, &style, false, SystemClock.now());
    ui.err.write_all(text.as_bytes())?;
    Ok(recorded.runs.last().map(|(row, _)| row.run.clone()))
}

pub(super) struct ChatUi<'a> {
    pub(super) state: ChatState,
    /// The actions that were not carried out yet.
    actions: VecDeque<Action>,
    pub(super) context: &'a mut ChatContext,
    pub(super) runner: Runner,
    pub(super) live: Live<&'a mut (dyn Write + Send)>,
    /// Takes the answers as plain text where stdout is not the terminal.
    pub(super) out: Option<&'a mut (dyn Write + Send)>,
    /// The streams of the process, if the output goes there.
    streams: Option<Streams>,
    /// The lines of the log, which are shown above the input.
    log: BufferedLog,
    keyboard: Keyboard,
    interrupts: UnboundedReceiver<Interrupt>,
    history: HistoryFile,
    /// The shown run, and what happens in it.
    pub(super) run: Option<RunHandle<Value>>,
    pub(super) updates: Updates,
    /// The number of the run's next event.
    pub(super) seen: Seq,
    /// The last run of the conversation that was shown.
    pub(super) known: Option<RunId>,
    pub(super) sending: Option<JoinHandle<Result<RunHandle<Value>, Failure>>>,
    /// Leaving: the release of the run.
    released: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Why a trigger does not fire here, as it was printed last.
    pub(super) unfired: Option<String>,
}

/// Waits for a future, or for ever without one.
async fn ready<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Returns whether the terminal keeps up. If not, it is painted later.
fn has_room(streams: Option<&Streams>) -> bool {
    streams.is_none_or(Streams::has_room)
}

/// What happens in the shown run.
type Updates = BoxStream<'static, Result<RunUpdate, StoreError>>;

impl ChatUi<'_> {
    async fn run(&mut self) -> Result<Left, Failure> {
        self.check_conversation().await?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut has_keys = true;
        loop {
            tokio::select! {
                biased;
                Some(interrupt) = self.interrupts.recv() => self.input(Input::Interrupt(interrupt)),
                typed = self.keyboard.next(), if has_keys => {
                    match typed {
                        Ok(Typed::Key(key)) => self.input(Input::Key(key)),
                        Ok(Typed::Paste(text)) => self.input(Input::Paste(text)),
                        Ok(_) => {}
                        Err(_) if self.state.leaving.is_some() => has_keys = false,
                        // The terminal is gone.
                        Err(_) => {
                            has_keys = false;
                            self.input(Input::Interrupt(Interrupt::System));
                        }
                    }
                    self.repaint()?;
                }
                sent = ready(&mut self.sending) => {
                    self.sending = None;
                    self.sent(sent.map_err(|error| Failure::environment(format!("cannot send the message: {error}")))?).await?;
                }
                () = ready(&mut self.released) => break,
                _ = ticks.tick() => {
                    self.input(Input::Tick);
                    self.repaint()?;
                }
                Some(update) = self.updates.next(), if has_room(self.streams.as_ref()) => match update {
                    Ok(update) => self.update(update).await?,
                    // The run continues without its display, which resumes where it was.
                    Err(error @ StoreError::Failed { .. }) => {
                        self.input(Input::Hint(format!("cannot show the run, trying again: {error}")));
                        self.updates = match &self.run {
                            Some(run) => run.follow(self.seen).chain(stream::pending()).boxed(),
                            None => stream::pending().boxed(),
                        };
                    }
                    Err(error) => return Err(error.into()),
                },
            }
            if !self.carry_out().await? {
                break;
            }
        }
        self.fill().await?;
        let waits = self.state.is_open() && self.pending().iter().any(for_person);
        Ok(Left { by: self.state.left_by, waits, said: self.run.is_some() || self.known.is_some() })
    }

    pub(super) fn input(&mut self, input: Input<'_>) {
        self.actions.extend(self.state.on(input));
    }

    fn repaint(&mut self) -> Result<(), Failure> {
        if !has_room(self.streams.as_ref()) {
            return Ok(());
        }
        for line in self.log.take() {
            let shown = self.live.say(Tone::Warn, &line);
            self.shown(shown)?;
        }
        let screen = size();
        let (gone, frame) = self.state.draw(self.live.view().currency(), screen);
        let painted = self.live.paint(gone, frame, SystemClock.now(), screen);
        self.shown(painted)
    }

    /// Judges an attempt to show something: a terminal that is gone does not disturb leaving.
    fn shown(&self, shown: io::Result<()>) -> Result<(), Failure> {
        if self.state.leaving.is_some() { Ok(()) } else { Ok(shown?) }
    }

    pub(super) fn print(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        let printed = self.live.print(vec![Line::default()]).and_then(|()| self.live.say(tone, text.trim_end()));
        self.shown(printed)
    }

    pub(super) fn fail(&mut self, failure: &Failure) -> Result<(), Failure> {
        self.print(Tone::Bad, failure.prose().trim_end())
    }

    /// Carries out all actions; returns whether the chat continues.
    async fn carry_out(&mut self) -> Result<bool, Failure> {
        while let Some(action) = self.actions.pop_front() {
            match action {
                Action::Print(tone, text) => self.print(tone, &text)?,
                Action::PrintLines(lines) => {
                    let printed = self.live.print(lines);
                    self.shown(printed)?;
                }
                Action::Clear => self.live.clear()?,
                Action::Remember(text) => {
                    if self.history.add(&text).is_err() {
                        let hint = "cannot write the input history beside the store";
                        self.input(Input::Hint(hint.to_owned()));
                    }
                }
                Action::Send(opening, files) => self.send(opening, files),
                Action::ReadFile(path) => match attachment(Path::new(&path)) {
                    Ok(file) => self.input(Input::Attach(file)),
                    Err(failure) => self.fail(&failure)?,
                },
                Action::Signal(kind) => {
                    let Some(run) = self.run.clone() else { continue };
                    let signalled = run.signal(kind, self.context.actor.clone()).await;
                    self.input(Input::Signalled(match signalled {
                        Ok(_) => Ok(()),
                        Err(error) => Err(Failure::from(error).to_string()),
                    }));
                }
                Action::Command(slash, argument) => match self.command(slash, &argument).await {
                    Err(failure) if failure.output.is_some() => return Err(failure),
                    Err(failure) => self.fail(&failure)?,
                    Ok(()) => {}
                },
                Action::Ask(pending) => {
                    let (place, currency) = (self.live.view().trail(&pending.call), self.live.view().currency());
                    let question = Question::new(&pending, place, currency, true, size());
                    self.input(Input::Question(Box::new(question)));
                }
                Action::PollStore => {
                    let looked = match self.check_conversation().await {
                        Ok(()) => self.fire().await,
                        failed => failed,
                    };
                    if let Err(failure) = looked {
                        self.input(Input::Hint(failure.to_string()));
                    }
                }
                Action::Release => {
                    let runner = self.runner.clone();
                    self.released = Some(Box::pin(async move { _ = runner.release().await }));
                }
                Action::Exit => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn command(&mut self, slash: Slash, argument: &str) -> Result<(), Failure> {
        let style = Style { height: None, ..*self.live.style() };
        let text = match slash {
            Slash::History => {
                // It is sanitised, and has its colours.
                let text = self.context.history(argument, &style).await?;
                let lines = text.lines().map(|line| Line::new(0).with(Tone::Plain, line)).collect();
                return Ok(self.live.print(lines)?);
            }
            Slash::Retry => match self.context.recorded().await?.last_message() {
                Some(message) => {
                    self.input(Input::Say(message));
                    return Ok(());
                }
                None => "no message yet".to_owned(),
            },
            Slash::New => {
                self.context.restart().await?;
                (self.run, self.updates, self.known) = (None, stream::pending().boxed(), None);
                format!("new conversation {}", self.context.id)
            }
            other => self.context.output(other, argument, &style).await?,
        };
        self.print(Tone::Dim, &text)
    }
}
