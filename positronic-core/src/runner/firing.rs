//! Which triggers are due, for whoever fires them: [`Runner::serve`], `positronic work`, a chat for those of its conversation.
//!
//! It is looked once a second. A trigger that cannot fire is not tried again and again: where another try may go well it
//! rests, and else it is left out until its next time.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Client, ConversationError, FireError, RunHandle, Runner, StartError};
use crate::record::{Timer, Timestamp, TriggerId};
use crate::store::StoreError;

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_secs(1);
/// How long a trigger rests that could not fire, at first and at most.
const REST: [Duration; 2] = [LOOK, Duration::from_mins(5)];

/// Fires the triggers that are due.
///
/// ```no_run
/// # use positronic_core::runner::Runner;
/// # async fn example(runner: Runner) -> Result<(), positronic_core::store::StoreError> {
/// let mut firing = runner.client().firing();
/// loop {
///     for timer in firing.due().await? {
///         match firing.fire(&runner, &timer).await {
///             Ok(Some(run)) => println!("{} has started {}", timer.trigger.id, run.id()),
///             Ok(None) => {}
///             Err(error) => eprintln!("{error}"),
///         }
///     }
///     tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Firing {
    client: Client,
    /// When it is looked again.
    next: Instant,
    /// The triggers that are left out, each as of the time that it was due.
    out: HashMap<TriggerId, (Timestamp, Out)>,
}

/// For how long a trigger is left out.
#[derive(Debug, Clone, Copy)]
enum Out {
    /// Until then; and how long that is.
    Rests(Instant, Duration),
    /// Until its next time.
    Refused,
}

impl Client {
    /// Begins to look for triggers that are due.
    #[must_use]
    pub fn firing(&self) -> Firing {
        Firing { client: self.clone(), next: Instant::now(), out: HashMap::new() }
    }
}

impl Firing {
    /// Lists what is due and is not left out, the one that is due first first; nothing where it was looked less than a second
    /// ago.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails; it is looked again in a second.
    pub async fn due(&mut self) -> Result<Vec<Timer>, StoreError> {
        let now = Instant::now();
        if now < self.next {
            return Ok(Vec::new());
        }
        self.next = now + LOOK;
        let mut due = self.client.due_triggers().await?;
        // What has fired elsewhere, was deleted, or is due another time now is begun with anew.
        self.out.retain(|id, (at, _)| due.iter().any(|timer| timer.trigger.id == *id && timer.trigger.due == *at));
        due.retain(|timer| match self.out.get(&timer.trigger.id) {
            Some((_, Out::Refused)) => false,
            Some((_, Out::Rests(until, _))) => *until <= now,
            None => true,
        });
        Ok(due)
    }

    /// Starts a trigger's prompt, as [`Runner::fire`] does. Answers `None` where there is nothing to be told: it waits for the
    /// last run of its conversation, has fired elsewhere, or was deleted.
    ///
    /// # Errors
    ///
    /// [`FireError`]; the trigger is then left out, for a while or until its next time.
    pub async fn fire(&mut self, runner: &Runner, timer: &Timer) -> Result<Option<RunHandle<Value>>, FireError> {
        match runner.fire(timer).await {
            Ok(run) => Ok(Some(run)),
            Err(FireError::Busy { .. } | FireError::Gone { .. }) => Ok(None),
            Err(error) => {
                if passes(&error) {
                    self.rest(timer);
                } else {
                    self.refuse(timer);
                }
                Err(error)
            }
        }
    }

    /// Leaves a trigger out until its next time, since it cannot fire here.
    pub fn refuse(&mut self, timer: &Timer) {
        self.out.insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Refused));
    }

    /// Leaves a trigger out for a second, and for twice as long each time, up to five minutes.
    fn rest(&mut self, timer: &Timer) {
        let [first, most] = REST;
        let rest = match self.out.get(&timer.trigger.id) {
            Some((_, Out::Rests(_, last))) => (*last * 2).min(most),
            Some((_, Out::Refused)) | None => first,
        };
        self.out.insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Rests(Instant::now() + rest, rest)));
    }
}

/// Says whether another try may go well without a change of what the trigger starts.
fn passes(error: &FireError) -> bool {
    match error {
        FireError::Start { reason, .. } => match &**reason {
            ConversationError::Start(
                StartError::Options { .. }
                | StartError::Started { .. }
                | StartError::NoListener { .. }
                | StartError::Action(_),
            )
            | ConversationError::NotYours { .. }
            | ConversationError::Prices { .. } => false,
            ConversationError::Start(StartError::Store(_))
            | ConversationError::Busy { .. }
            // Its budget may be raised.
            | ConversationError::Spent { .. }
            | ConversationError::Open { .. }
            | ConversationError::Resume(_)
            | ConversationError::Signal(_)
            | ConversationError::Store(_) => true,
        },
        FireError::NoBrain { .. } | FireError::Busy { .. } | FireError::Gone { .. } => false,
    }
}

/// Fires whatever is due until the runner lets go of its runs, as a server does that nobody sits at.
pub(super) async fn fire_all(runner: &Runner) {
    let mut firing = runner.client().firing();
    while !runner.in_hand.is_leaving() {
        look(&mut firing, runner).await;
        tokio::time::sleep_until(firing.next).await;
    }
}

async fn look(firing: &mut Firing, runner: &Runner) {
    let timers = match firing.due().await {
        Ok(timers) => timers,
        Err(error) => return tracing::warn!(%error, "the triggers that are due cannot be listed"),
    };
    for timer in timers {
        if runner.in_hand.is_leaving() {
            return;
        }
        let trigger = &timer.trigger.id;
        match firing.fire(runner, &timer).await {
            Ok(Some(run)) => tracing::info!(%trigger, run = %run.id(), "the trigger has fired"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the trigger does not fire for now"),
        }
    }
}
