//! Questions in the middle of a chat: an approval takes the terminal for itself, and gives it back.

use positronic_core::record::Pending;

use super::keys::Keys;
use super::ui::ChatUi;
use crate::app::failure::Failure;
use crate::render::words::settlement;
use crate::render::{Line, Tone};
use crate::session::answers::{Answer, Recall, ask};
use crate::session::interrupts::Interrupt;
use crate::session::pending::{is_approval, named};

/// How long a terminal may take to take a question back.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

impl ChatUi<'_> {
    /// Asks for the next approval that was not left for later. Whoever is writing is not interrupted: what they type would
    /// answer. Returns what has told the process to end meanwhile.
    pub(super) async fn ask_what_waits(&mut self) -> Result<Option<Interrupt>, Failure> {
        let is_free = self.editor.is_empty() && self.sending.is_none() && self.outbox.is_empty();
        let is_new =
            |pending: &&Pending| is_approval(pending) && !self.left.contains(&(pending.call.clone(), pending.since));
        match self.waiting.iter().find(is_new).filter(|_| is_free).cloned() {
            Some(pending) => self.ask(pending).await,
            None => Ok(None),
        }
    }

    /// Puts a question to the person, and takes it back where somebody answers elsewhere.
    pub(super) async fn ask(&mut self, pending: Pending) -> Result<Option<Interrupt>, Failure> {
        let Some(run) = self.run.clone() else { return Ok(None) };
        let place = self.live.view().trail(&pending.call);
        let colour = self.live.style().colour;
        // It begins with an empty line, as all that is said does.
        self.live.print(&[Line::default()])?;
        drop(self.keys.take());
        let (question, recall) = (pending.clone(), Recall::default());
        let (taken_back, currency) = (recall.clone(), self.live.view().currency().map(str::to_owned));
        let asking = move || ask(&question, &place, currency.as_deref(), true, colour, taken_back);
        let mut answer = tokio::task::spawn_blocking(asking);
        let is_open = || run.pending().iter().any(|open| open.call == pending.call && open.since == pending.since);
        let mut told = None;
        let answered = loop {
            let changed = run.changed();
            if !is_open() {
                break None;
            }
            tokio::select! {
                biased;
                Some(interrupt) = self.interrupts.recv() => {
                    told = (interrupt == Interrupt::System).then_some(interrupt);
                    break None;
                }
                () = changed => {}
                answer = &mut answer => {
                    break Some(answer.map_err(|error| Failure::Run { message: error.to_string() })?);
                }
            }
        };
        if answered.is_none() {
            recall.set();
            // A terminal that is gone never answers.
            _ = tokio::time::timeout(PATIENCE, answer).await;
        }
        if told.is_some() {
            return Ok(told);
        }
        self.keys = Some(Keys::read(self.typing.clone())?);
        match answered {
            Some(Ok(Answer::Signal(kind))) => self.signal(kind).await?,
            Some(Ok(Answer::Stop)) => self.cancel().await?,
            // A terminal that fails is gone.
            Some(Err(_)) => return Ok(Some(Interrupt::System)),
            None if !is_open() => {
                let log = run.events(pending.since).await?;
                let what = settlement(log.iter().map(|event| &**event), &pending.call);
                self.say(Tone::Warn, &format!("{} no longer waits: {what}", named(&pending)))?;
                self.waiting.clear();
            }
            Some(Ok(Answer::Later | Answer::Interrupted | Answer::Recalled)) | None => {
                self.left.insert((pending.call.clone(), pending.since));
                self.say(Tone::Dim, &format!("{} is left for later: /pending asks again", named(&pending)))?;
            }
        }
        Ok(None)
    }
}
