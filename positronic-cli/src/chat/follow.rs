//! Messages of a chat and the runs that answer them, also runs that other processes begin.

use std::sync::Arc;

use positronic_core::record::{Event, EventKind, Opening, Seq, SideOutput, Status};
use positronic_core::runner::{Ids as _, RunHandle, RunUpdate, Settled, UuidIds};
use serde_json::Value;

use super::ui::ChatUi;
use crate::app::failure::Failure;
use crate::app::store::relative;
use crate::render::Tone;
use crate::render::conversation::plain;
use crate::render::text::sanitise;

impl ChatUi<'_> {
    /// Sends a message after the earlier ones.
    pub(super) fn send(&mut self, text: String) {
        let opening = Opening { text, id: Some(UuidIds.signal().to_string()) };
        self.unheard.push(opening.clone());
        self.outbox.push_back(opening);
        self.send_next();
    }

    fn send_next(&mut self) {
        if self.sending.is_some() {
            return;
        }
        let Some(opening) = self.outbox.pop_front() else { return };
        let (wound, conversation) = (self.desk.wind(&self.runner), self.desk.conversation(&self.runner));
        let (definition, options) = (Arc::clone(&self.desk.definition), self.desk.options.clone());
        let refusal = self.desk.refusal();
        self.sending = Some(tokio::spawn(async move {
            wound.await?;
            conversation.send_plan(definition, options, opening).await.map_err(refusal)
        }));
    }

    pub(super) async fn sent(&mut self, sent: Result<RunHandle<Value>, Failure>) -> Result<(), Failure> {
        match sent {
            Ok(run) => self.adopt(run).await?,
            Err(error) => {
                // It is among what was written before. In the line it would be taken for the beginning of what is typed next.
                let lost = self.unheard.iter().position(|opening| !self.outbox.contains(opening));
                if let Some(lost) = lost {
                    self.unheard.remove(lost);
                }
                self.fail(&error)?;
            }
        }
        self.send_next();
        Ok(())
    }

    /// Begins to show a run.
    pub(super) async fn adopt(&mut self, run: RunHandle<Value>) -> Result<(), Failure> {
        let is_same = self.run.as_ref().is_some_and(|shown| shown.id() == run.id());
        if !is_same {
            // The end of the one before, which was perhaps cancelled by this.
            self.fill().await?;
            self.live.next_run()?;
            (self.seen, self.stopping) = (Seq(0), false);
            self.left.clear();
            self.known = Some(run.id().clone());
        }
        self.updates = Some(run.follow(self.seen));
        (self.run, self.open) = (Some(run), true);
        self.waiting.clear();
        Ok(())
    }

    /// Finds the next run of another process, or the open run at the start of the chat.
    pub(super) async fn look_around(&mut self) -> Result<(), Failure> {
        if self.sending.is_some() {
            return Ok(());
        }
        if self.open {
            return self.take_over().await;
        }
        let runs = self.desk.client().conversation(&self.desk.id).await?;
        let known = self.known.as_ref();
        let newer = runs.iter().take_while(|row| Some(&row.run) != known).last();
        if let Some(row) = newer {
            self.desk.wind(&self.runner).await?;
            let run = self.desk.continue_run(&self.runner, &row.run).await?;
            self.adopt(run).await?;
        }
        Ok(())
    }

    /// Claims the shown run if its worker has died.
    async fn take_over(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run.as_ref().filter(|_| self.elsewhere).map(|run| run.id().clone()) else { return Ok(()) };
        let client = self.desk.client();
        let row = client.store().run(&run).await?;
        if row.status != Status::Running || client.worker(&row).await?.is_some() {
            return Ok(());
        }
        self.desk.wind(&self.runner).await?;
        let run = self.desk.continue_run(&self.runner, &run).await?;
        self.adopt(run).await
    }

    pub(super) async fn show(&mut self, update: RunUpdate) -> Result<(), Failure> {
        match update {
            RunUpdate::Event(event) => self.event(&event).await,
            RunUpdate::Delta(delta) => {
                self.live.delta(&delta);
                Ok(())
            }
            RunUpdate::Settled(settled) => self.settled(settled),
            _ => Ok(()),
        }
    }

    /// Shows the last events of a run before the next one.
    pub(super) async fn fill(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        for event in run.events(self.seen).await? {
            self.event(&event).await?;
        }
        Ok(())
    }

    async fn event(&mut self, event: &Event) -> Result<(), Failure> {
        self.seen = event.seq.next();
        self.live.event(event);
        match &event.kind {
            EventKind::RunClaimed { owner, .. } => self.elsewhere = *owner != self.runner.worker().await?,
            EventKind::LoopStart { message_id: Some(id), .. } | EventKind::LoopMessage { message_id: Some(id), .. } => {
                self.unheard.retain(|opening| opening.id.as_ref() != Some(id));
            }
            EventKind::LoopOutput { output: SideOutput::File(file), .. } => match self.desk.save(file).await {
                Ok(Some(path)) => self.live.note(format!("saved as {}", relative(&path))),
                Ok(None) => {}
                Err(failure) => self.fail(&failure)?,
            },
            _ => {}
        }
        let changes_nothing = matches!(
            event.kind,
            EventKind::RunClaimed { .. } | EventKind::RunReleased { .. } | EventKind::RunNotClaimed { .. }
        );
        if !changes_nothing {
            // It waits no longer, or for something else.
            self.waiting.clear();
        }
        Ok(())
    }

    fn settled(&mut self, settled: Settled) -> Result<(), Failure> {
        match settled {
            Settled::Completed(result) => self.over(Some(&result)),
            Settled::Failed(_) | Settled::Cancelled => self.over(None),
            Settled::Waiting(waiting) => {
                (self.open, self.waiting) = (true, waiting);
                Ok(())
            }
            Settled::Paused => Ok(()),
            Settled::Stopped(message) => {
                self.open = false;
                self.say(Tone::Bad, &format!("the answer had to stop: {message}; it goes on when the chat does"))
            }
        }
    }

    fn over(&mut self, result: Option<&Value>) -> Result<(), Failure> {
        (self.open, self.stopping) = (false, false);
        self.live.next_run()?;
        let Some(run) = self.run.clone() else { return Ok(()) };
        if let Some(out) = &mut self.out {
            let said = plain(&run.prompts(), |_| 0);
            let said = if said.is_empty() { result.map(Value::to_string).unwrap_or_default() } else { said };
            writeln!(out, "{}", sanitise(&said, true))?;
            out.flush()?;
        }
        // What is still to be sent is heard later.
        if self.sending.is_none() {
            self.unheard.retain(|opening| self.outbox.contains(opening));
        }
        Ok(())
    }
}
