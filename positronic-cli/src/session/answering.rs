//! Answers to what the run of a session waits for: from a cassette, or from the person at the terminal.

use std::pin::pin;

use crossterm::event::Event as Typed;
use futures::future::{Either, select};
use positronic_core::record::{Actor, Pending, SignalKind};
use positronic_core::runner::SignalError;
use positronic_core::store::PendingFilter;

use super::driver::{Answered, Next, Session};
use crate::app::{CassetteSession, Failure, size};
use crate::cli::Exit;
use crate::render::words::settlement;
use crate::session::{
    Answer, Ending, Interrupt, Keyboard, Question, asking_party, example_lines, from_cassette, question_text,
};

impl Session<'_> {
    /// Answers one of the pending items, or leaves all of them.
    pub(super) async fn answer(&mut self, pending: &[Pending]) -> Result<Answered, Failure> {
        if let Some(people) = self.options.people {
            let cassette = people.at_position(&self.runner.worker().await?).await?;
            if let Some(kind) = from_cassette(cassette, pending) {
                let (by, channel) = (Some("the cassette".to_owned()), Some("cassette".to_owned()));
                return self.send(kind, Actor { by, channel, ..Actor::default() }).await;
            }
        }
        let left = || Ok(Answered::Ends(Ending::Left(pending.to_vec())));
        let lasts = self.options.lasts;
        let mut answerable = pending.iter().filter(|pending| !pending.kind.is_for_run());
        let Some(first) = answerable.next().filter(|_| self.has_person).cloned() else {
            if !self.waits(pending).await? {
                return Ok(Answered::Sent);
            }
            if lasts {
                return left();
            }
            let waiting: Vec<_> = pending.iter().map(|pending| self.sentence(pending)).collect();
            let message = "the run waits for an answer, and there is no terminal to ask on";
            return Err(Failure::new(Exit::Unanswered, format!("{message}:\n{}", waiting.join("\n")))
                .hint("run it on a terminal, or with a --cassette FILE that contains an answer, such as")
                .hints(example_lines(pending).into_iter().map(|line| format!("  {line}"))));
        };
        match self.ask(&first).await? {
            Next::Ready(Some(Answer::Signal(kind))) => return self.signal(first.call.as_str(), kind).await,
            Next::Ready(Some(Answer::Later)) => return left(),
            // At a question, Ctrl-C decides nothing; only a run in memory ends, since it cannot be left.
            Next::Ready(Some(Answer::Interrupted)) | Next::Interrupt(Interrupt::Person) if lasts => return left(),
            Next::Ready(Some(Answer::Stop | Answer::Interrupted)) => self.cancel(Interrupt::Person).await?,
            Next::Interrupt(interrupt) => {
                if let Some(ending) = self.interrupted(interrupt).await? {
                    return Ok(Answered::Ends(ending));
                }
            }
            Next::Ready(None) | Next::Settled(_) => {}
        }
        Ok(Answered::Sent)
    }

    /// Returns whether the run still waits for all of these: another process may have answered since.
    pub(super) async fn waits(&self, pending: &[Pending]) -> Result<bool, Failure> {
        let filter = PendingFilter::builder().run(self.run.id().clone()).build();
        let open = self.runner.client().store().pending(&filter).await?;
        let is_open =
            |one: &Pending| open.iter().any(|item| item.pending.call == one.call && item.pending.since == one.since);
        Ok(pending.iter().all(is_open))
    }

    /// Asks the person, until there is an answer, an interrupt comes, or the item is settled elsewhere (`None`).
    async fn ask(&mut self, first: &Pending) -> Result<Next<Option<Answer>>, Failure> {
        let (place, lasts) = (self.shown.screen.view().trail(&first.call), self.options.lasts);
        let mut question = Question::new(first, place, self.shown.screen.view().currency(), lasts, size());
        let mut keyboard = Keyboard::open()?;
        let run = self.run.clone();
        let asked = loop {
            self.shown.screen.ask(&mut question)?;
            let changed = pin!(run.changed());
            if !run.pending().iter().any(|open| open.call == first.call && open.since == first.since) {
                break Next::Ready(None);
            }
            self.is_asking = true;
            let typed = pin!(keyboard.next());
            let next = self.next(select(changed, typed)).await;
            self.is_asking = false;
            match next? {
                Next::Interrupt(interrupt) => break Next::Interrupt(interrupt),
                Next::Ready(Either::Right((typed, _))) => match typed? {
                    Typed::Key(key) => {
                        if let Some(answer) = question.key(key) {
                            break Next::Ready(Some(answer));
                        }
                    }
                    Typed::Paste(text) => question.paste(&text),
                    _ => {}
                },
                Next::Ready(Either::Left(_)) | Next::Settled(_) => {}
            }
        };
        let stays = match &asked {
            Next::Ready(Some(Answer::Interrupted) | None) | Next::Interrupt(_) | Next::Settled(_) => Vec::new(),
            Next::Ready(Some(_)) => question.rest(),
        };
        self.shown.screen.asked(stays)?;
        drop(keyboard);
        if matches!(asked, Next::Ready(None)) {
            let log = self.run.events(first.since).await.unwrap_or_default();
            let what = settlement(log.iter().map(|event| &**event), &first.call);
            self.shown.screen.say(&format!("{} no longer waits: {what}", asking_party(first)))?;
        }
        Ok(asked)
    }

    fn sentence(&self, pending: &Pending) -> String {
        let place = match pending.call.is_root() {
            true => asking_party(pending),
            false => self.shown.screen.view().trail(&pending.call),
        };
        format!("{place} {}", question_text(pending, self.shown.screen.view().currency()))
    }

    pub(super) async fn signal(&mut self, after: &str, kind: SignalKind) -> Result<Answered, Failure> {
        let answered = self.send(kind.clone(), self.options.actor.clone()).await?;
        if let (CassetteSession::Records(cassette), Answered::Sent) = (self.options.cassette, &answered) {
            cassette.record_signal(after, &kind);
        }
        Ok(answered)
    }

    /// Sends a signal, and shows a refusal.
    async fn send(&mut self, kind: SignalKind, actor: Actor) -> Result<Answered, Failure> {
        match self.run.signal(kind, actor).await {
            Ok(_) => Ok(Answered::Sent),
            Err(SignalError::Refused(refusal)) => {
                self.shown.screen.say(&refusal.to_string())?;
                Ok(Answered::Refused)
            }
            Err(error) => Err(self.unsent(error)),
        }
    }
}
