//! Runs of a chat at a terminal: sends messages, finds the runs that answer, and follows the shown one.

use futures::{StreamExt as _, stream};
use std::io::Write as _;
use std::sync::Arc;

use positronic_core::record::{Attachment, Event, Pending, Seq, Status, UserMessage};
use positronic_core::runner::{DueTrigger, RunHandle, RunUpdate, Settled};
use serde_json::Value;

use super::protocol::Input;
use super::ui::ChatUi;
use crate::app::{Failure, relative, store_attachments};
use crate::render::words::settlement;
use crate::render::{Tone, plain_answer, sanitise};
use crate::session::images;

impl ChatUi<'_> {
    pub(super) fn send(&mut self, opening: UserMessage, files: Vec<Attachment>) {
        let (advanced, conversation) =
            (self.context.advance_cassette(&self.runner), self.context.conversation(&self.runner));
        let (definition, options) = (Arc::clone(&self.context.definition), self.context.options.clone());
        let (refused, client) = (self.context.refused(), self.context.client());
        self.sending = Some(tokio::spawn(async move {
            advanced.await?;
            store_attachments(&files, &client).await?;
            conversation.send_definition(definition, options, opening).await.map_err(refused)
        }));
    }

    pub(super) async fn sent(&mut self, sent: Result<RunHandle<Value>, Failure>) -> Result<(), Failure> {
        let sent = match sent {
            Ok(run) => self.show(run).await.map(Ok)?,
            Err(failure) => Err(failure.prose()),
        };
        self.input(Input::Sent(sent));
        Ok(())
    }

    /// Shows a run from now on.
    async fn show(&mut self, run: RunHandle<Value>) -> Result<(), Failure> {
        let is_new = self.run.as_ref().is_none_or(|shown| shown.id() != run.id());
        if is_new {
            // The end of the run before, which this one has perhaps cancelled.
            self.fill().await?;
            self.live.next_run()?;
            self.seen = Seq(0);
            self.known = Some(run.id().clone());
        }
        self.updates = run.follow(self.seen).chain(stream::pending()).boxed();
        let resume = self.context.ui.command(&["resume", run.id().as_str()]);
        self.run = Some(run);
        self.input(Input::Shown { is_new, resume });
        Ok(())
    }

    /// Shows the next run that began elsewhere, or one that was not over when the chat began. Continues the shown run where
    /// the process that worked on it has died.
    pub(super) async fn check_conversation(&mut self) -> Result<(), Failure> {
        if self.state.sending.is_some() {
            return Ok(());
        }
        let client = self.context.client();
        let found = if self.state.is_open() {
            let Some(run) = self.run.as_ref().filter(|_| self.state.is_elsewhere) else { return Ok(()) };
            let row = client.store().run(run.id()).await?;
            let is_abandoned = row.status == Status::Running && client.worker(&row).await?.is_none();
            is_abandoned.then_some(row.run)
        } else {
            let runs = client.conversations().runs(&self.context.id).await?;
            let known = self.known.as_ref();
            runs.into_iter().map(|row| row.run).take_while(|run| Some(run) != known).last()
        };
        if let Some(run) = found {
            self.context.advance_cassette(&self.runner).await?;
            let run = self.context.resume(&self.runner, &run).await?;
            self.show(run).await?;
        }
        Ok(())
    }

    /// Fires a due trigger, and shows the answer.
    pub(super) async fn fire(&mut self) -> Result<(), Failure> {
        if self.state.sending.is_some() {
            return Ok(());
        }
        let reason = match self.context.fire(&self.runner).await {
            Ok(None) => return Ok(()),
            Ok(Some(DueTrigger { timer, started: Ok(run), .. })) => {
                self.print(Tone::Dim, &format!("the trigger {} is due: {}", timer.trigger.id, timer.trigger.what))?;
                return self.show(run).await;
            }
            Ok(Some(DueTrigger { started: Err(error), .. })) => error.to_string(),
            Err(reason) => reason,
        };
        if self.unfired.as_ref() != Some(&reason) {
            self.print(Tone::Warn, &reason)?;
            self.unfired = Some(reason);
        }
        Ok(())
    }

    pub(super) async fn update(&mut self, update: RunUpdate) -> Result<(), Failure> {
        match update {
            RunUpdate::Event(event) => self.event(&event).await,
            RunUpdate::Delta(delta) => {
                self.live.delta(&delta);
                Ok(())
            }
            RunUpdate::Settled(settled) => {
                self.input(Input::Settled(&settled));
                match settled {
                    Settled::Completed(result) => self.ended(Some(&result)),
                    Settled::Failed(_) | Settled::Cancelled => self.ended(None),
                    Settled::Waiting(_) | Settled::Paused | Settled::Stopped(_) => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Shows the last events of a run that is not followed any longer.
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
        if self.live.style().graphics.is_some() {
            let images = images(&self.context.client(), event).await;
            images.iter().for_each(|image| self.live.image(&event.path, image));
        }
        for file in event.kind.made_files() {
            match self.context.save(file).await {
                Ok(Some(path)) => self.live.note(&event.path, format!("saved as {}", relative(&path))),
                Ok(None) => {}
                Err(failure) => self.fail(&failure)?,
            }
        }
        self.input(Input::Event(event));
        if let (Some(question), Some(run)) = (&self.state.question, &self.run)
            && let asked = question.pending()
            && !self.pending().iter().any(|open| open.call == asked.call && open.since == asked.since)
        {
            let log = run.events(asked.since).await?;
            let reason = settlement(log.iter().map(|event| &**event), &asked.call);
            self.input(Input::Withdrawn(reason));
        }
        Ok(())
    }

    pub(super) fn pending(&self) -> Vec<Pending> {
        self.run.as_ref().map(RunHandle::pending).unwrap_or_default()
    }

    /// Prints the end of the run, and its answer to stdout where that is not the terminal.
    fn ended(&mut self, result: Option<&Value>) -> Result<(), Failure> {
        self.live.next_run()?;
        if let (Some(out), Some(run)) = (&mut self.out, &self.run) {
            let answer = plain_answer(&run.prompts(), |_| 0);
            let answer = if answer.is_empty() { result.map(Value::to_string).unwrap_or_default() } else { answer };
            writeln!(out, "{}", sanitise(&answer))?;
            out.flush()?;
        }
        Ok(())
    }
}
