//! A chat at a terminal: the answer streams above the lines in which the next message is written.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{Event as Typed, KeyEventKind};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use positronic_core::record::{Opening, Path, Pending, RunId, Seq, SignalKind, Status};
use positronic_core::runner::{Clock as _, RunHandle, RunUpdate, Runner, SystemClock};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::context::ChatContext;
use super::editor::{Editor, Step};
use super::keys::Keys;
use super::past::Past;
use super::slash::{Written, complete, written};
use crate::app::failure::Failure;
use crate::app::ui::Ui;
use crate::app::ui::size;
use crate::render::text::{sanitise, wrap};
use crate::render::{Line, Live, Tone};
use crate::session::interrupts::{Interrupt, interrupts};

/// How long leaving waits for a message to be stored.
const DELIVERY: Duration = Duration::from_secs(5);

/// How often the screen is repainted, and after how many times it is looked for prompts of others.
const TICK: Duration = Duration::from_millis(80);
const LOOK: u32 = 12;

/// How somebody left.
#[derive(Debug)]
pub(crate) struct Left {
    /// What tells the process to end, where it is not the person.
    pub(crate) told: Option<Interrupt>,
    /// Whether a call waits for a person.
    pub(crate) waits: bool,
    /// Whether anything was said in the conversation.
    pub(crate) said: bool,
}

/// Sits at a conversation until somebody leaves it.
pub(crate) async fn table(
    desk: &mut ChatContext,
    runner: Runner,
    history: usize,
    ui: &mut Ui,
) -> Result<Left, Failure> {
    let style = ui.style();
    let past = Past::of(desk.kept.path.as_deref());
    let known = before(desk, history, ui).await?;
    let (columns, rows) = size();
    let apart = !ui.settings.stdout_is_terminal;
    let live = Live::of_talk(&mut *ui.err as &mut (dyn Write + Send), style, columns, rows);
    let (typing, typed) = unbounded_channel();
    let mut table = ChatUi {
        runner,
        updates: None,
        live,
        out: apart.then_some(&mut *ui.out),
        editor: Editor::new(past.read()),
        past,
        keys: Some(Keys::read(typing.clone())?),
        typing,
        typed,
        interrupts: interrupts(),
        run: None,
        known,
        seen: Seq(0),
        open: false,
        elsewhere: false,
        unfired: None,
        waiting: Vec::new(),
        left: HashSet::new(),
        outbox: VecDeque::new(),
        sending: None,
        unheard: Vec::new(),
        hint: None,
        stopping: false,
        desk,
    };
    let left = table.sit().await;
    // Whatever went wrong, the terminal is given back first.
    let shown = table.live.finish();
    drop(table.keys.take());
    let left = left?;
    shown?;
    Ok(left)
}

/// Shows what was said before, but for a run that is not over, which is shown live. Returns the last run that was.
async fn before(desk: &ChatContext, history: usize, ui: &mut Ui) -> Result<Option<RunId>, Failure> {
    let mut recorded = desk.recorded().await?;
    let is_new = recorded.runs.is_empty();
    let goes_on = if is_new { "new conversation" } else { "conversation" };
    ui.notice(&format!("{} · {goes_on} {} · /help", desk.definition.title, desk.id))?;
    if recorded.runs.last().is_some_and(|(row, _)| !row.status.is_over()) {
        recorded.runs.pop();
    }
    let all = recorded.runs.len();
    if all > history {
        ui.notice(&format!("{} earlier; /history shows all", all - history))?;
    }
    let (columns, _) = size();
    let style =
        crate::render::Style { width: columns.saturating_sub(1).clamp(2, 200), stream_lines: usize::MAX, ..ui.style() };
    let text = recorded.text(history, &style, false, SystemClock.now());
    ui.err.write_all(text.as_bytes())?;
    Ok(recorded.runs.last().map(|(row, _)| row.run.clone()))
}

pub(super) struct ChatUi<'a> {
    pub(super) desk: &'a mut ChatContext,
    pub(super) runner: Runner,
    /// What happens in the run that is shown.
    pub(super) updates: Option<BoxStream<'static, Result<RunUpdate, StoreError>>>,
    pub(super) live: Live<&'a mut (dyn Write + Send)>,
    /// Takes the answers as plain text, where that goes elsewhere.
    pub(super) out: Option<&'a mut (dyn Write + Send)>,
    pub(super) editor: Editor,
    past: Past,
    pub(super) keys: Option<Keys>,
    pub(super) typing: UnboundedSender<io::Result<Typed>>,
    typed: UnboundedReceiver<io::Result<Typed>>,
    pub(super) interrupts: UnboundedReceiver<Interrupt>,
    /// The run that is shown.
    pub(super) run: Option<RunHandle<Value>>,
    /// The last run of the conversation that was shown.
    pub(super) known: Option<RunId>,
    /// The number of the next event for the screen.
    pub(super) seen: Seq,
    /// Whether the run that is shown is not over.
    pub(super) open: bool,
    /// Whether another process works on it.
    pub(super) elsewhere: bool,
    /// What the run waits for.
    pub(super) waiting: Vec<Pending>,
    /// Why a trigger of the conversation does not fire here, as it was told last.
    pub(super) unfired: Option<String>,
    /// What was left for later.
    pub(super) left: HashSet<(Path, Seq)>,
    /// What is to be sent, one after the other.
    pub(super) outbox: VecDeque<Opening>,
    pub(super) sending: Option<JoinHandle<Result<RunHandle<Value>, Failure>>>,
    /// What was said and stands in no log yet.
    pub(super) unheard: Vec<Opening>,
    /// What the completion of a command may be.
    pub(super) hint: Option<String>,
    /// Whether the answer was cancelled from here and is not over yet.
    pub(super) stopping: bool,
}

/// Waits for something that is perhaps not there.
async fn ready<F: Future + Unpin>(waited: &mut Option<F>) -> F::Output {
    match waited {
        Some(waited) => waited.await,
        None => std::future::pending().await,
    }
}

/// Waits for what happens next in the run that is shown, if there is one and it has not ended.
async fn update(
    updates: &mut Option<BoxStream<'static, Result<RunUpdate, StoreError>>>,
) -> Result<RunUpdate, StoreError> {
    match updates {
        Some(updates) => match updates.next().await {
            Some(update) => update,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

impl ChatUi<'_> {
    pub(super) fn is_running(&self) -> bool {
        self.open && self.run.as_ref().is_some_and(|run| run.status() == Status::Running)
    }
}

impl ChatUi<'_> {
    async fn sit(&mut self) -> Result<Left, Failure> {
        self.look_around().await?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut turns = 0_u32;
        loop {
            tokio::select! {
                biased;
                Some(told) = self.interrupts.recv() => {
                    let leaves = told == Interrupt::System || self.interrupted().await?;
                    if leaves {
                        return self.leave((told == Interrupt::System).then_some(told)).await;
                    }
                }
                Some(typed) = self.typed.recv() => {
                    // A terminal that is gone answers no more, and says so as an error.
                    let Ok(typed) = typed else { return self.leave(Some(Interrupt::System)).await };
                    if self.typed(typed).await? {
                        return self.leave(None).await;
                    }
                    self.repaint()?;
                }
                sent = ready(&mut self.sending) => {
                    self.sending = None;
                    let sent = sent.map_err(|error| Failure::Run { message: error.to_string() })?;
                    self.sent(sent).await?;
                }
                _ = ticks.tick() => {
                    turns = turns.wrapping_add(1);
                    if turns.is_multiple_of(LOOK) {
                        let looked = match self.look_around().await {
                            Ok(()) => self.fire().await,
                            failed => failed,
                        };
                        // It is tried again, and what is on the screen stays.
                        self.hint = looked.err().map(|failure| failure.to_string()).or_else(|| self.hint.take());
                    }
                    self.repaint()?;
                    if let Some(told) = self.ask_what_waits().await? {
                        return self.leave(Some(told)).await;
                    }
                }
                update = update(&mut self.updates) => self.show(update?).await?,
            }
        }
    }

    fn repaint(&mut self) -> Result<(), Failure> {
        let (columns, rows) = size();
        let foot = self.foot(columns, rows);
        self.live.set_foot(foot);
        Ok(self.live.tick(SystemClock.now(), columns, rows)?)
    }

    /// Says something beside the conversation.
    pub(super) fn say(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        let style = *self.live.style();
        let text = sanitise(text.trim_end(), style.unicode);
        let lines: Vec<Line> = std::iter::once(Line::default())
            .chain(wrap(&text, style.width).into_iter().map(|line| Line::new(0).with(tone, line)))
            .collect();
        Ok(self.live.print(&lines)?)
    }

    /// Says why something did not go well.
    pub(super) fn fail(&mut self, failure: &Failure) -> Result<(), Failure> {
        self.say(Tone::Bad, failure.prose().trim_end())
    }

    async fn typed(&mut self, typed: Typed) -> Result<bool, Failure> {
        let step = match typed {
            Typed::Key(key) if key.kind != KeyEventKind::Release => self.editor.key(key),
            Typed::Paste(text) => {
                self.editor.paste(&text);
                Step::Open
            }
            _ => return Ok(false),
        };
        self.hint = None;
        match step {
            Step::Open => {}
            Step::Send(text) => {
                if self.past.add(&text).is_err() {
                    self.hint = Some("what you write cannot be remembered: the file beside the store".to_owned());
                }
                return self.written(&text).await;
            }
            Step::Interrupt => return self.interrupted().await,
            Step::Leave => return Ok(true),
            Step::Redraw => self.live.clear()?,
            Step::Complete => {
                if let Some((text, choices)) = complete(&self.editor.text()) {
                    self.editor.set(&text);
                    self.hint = (!choices.is_empty()).then(|| choices.join("  "));
                }
            }
        }
        Ok(false)
    }

    /// Does what was written; says whether that is to leave.
    async fn written(&mut self, text: &str) -> Result<bool, Failure> {
        match written(text) {
            Written::Message(text) => self.send(text),
            Written::Unknown(said) => self.say(Tone::Warn, &said)?,
            Written::Command(slash, argument) => match self.command(slash, &argument).await {
                Ok(leaves) => return Ok(leaves),
                Err(Failure::Output(error)) => return Err(error.into()),
                Err(failure) => self.fail(&failure)?,
            },
        }
        Ok(false)
    }

    /// Ends the answer that is running, or what is being written; says whether there is nothing of both.
    async fn interrupted(&mut self) -> Result<bool, Failure> {
        if self.is_running() {
            if self.stopping {
                return Ok(true);
            }
            self.outbox.clear();
            self.unheard.clear();
            self.cancel().await?;
            self.stopping = true;
        } else if self.editor.is_empty() {
            return Ok(true);
        } else {
            self.editor.set("");
        }
        Ok(false)
    }

    pub(super) async fn cancel(&mut self) -> Result<(), Failure> {
        self.signal(SignalKind::Cancel { reason: Some("from the chat".to_owned()) }).await
    }

    /// Sends a signal to the run that is shown; a refusal is said.
    pub(super) async fn signal(&mut self, kind: SignalKind) -> Result<(), Failure> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        match run.signal(kind, self.desk.actor.clone()).await {
            Ok(_) => self.waiting.clear(),
            Err(error) => self.say(Tone::Warn, &Failure::from(error).to_string())?,
        }
        Ok(())
    }

    /// Waits until the log has what was written, so that leaving loses no message.
    async fn deliver(&mut self) -> Result<(), Failure> {
        while let Some(sending) = &mut self.sending {
            let Ok(sent) = tokio::time::timeout(DELIVERY, sending).await else { break };
            self.sending = None;
            self.sent(sent.map_err(|error| Failure::Run { message: error.to_string() })?).await?;
        }
        Ok(())
    }

    /// Leaves: an answer that is not over is let go of, or ended where it would end anyway.
    async fn leave(&mut self, told: Option<Interrupt>) -> Result<Left, Failure> {
        self.deliver().await?;
        if self.is_running() && self.desk.kept.is_persistent() {
            // A terminal that is gone is told nothing, and the answer is let go of all the same.
            _ = self.say(Tone::Dim, crate::session::driver::AT_ONCE);
        } else if self.is_running() {
            self.cancel().await?;
        }
        let runner = self.runner.clone();
        let mut released = std::pin::pin!(runner.release());
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                Some(_) = self.interrupts.recv() => break,
                () = &mut released => break,
                Some(typed) = self.typed.recv() => {
                    let is_end = match typed {
                        Ok(Typed::Key(key)) => matches!(self.editor.key(key), Step::Interrupt | Step::Leave),
                        Ok(_) => false,
                        Err(_) => true,
                    };
                    if is_end {
                        break;
                    }
                }
                _ = ticks.tick() => { _ = self.repaint(); }
                update = update(&mut self.updates) => self.show(update?).await?,
            }
        }
        self.fill().await?;
        let waits = self
            .run
            .as_ref()
            .filter(|_| self.open)
            .is_some_and(|run| run.pending().iter().any(crate::session::pending::for_person));
        Ok(Left { told, waits, said: self.run.is_some() || self.known.is_some() })
    }
}
