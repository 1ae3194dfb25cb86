//! Runs of a brain on a cassette, which answers for the model, people and webhooks.

use std::sync::Arc;

use super::{Story, Test, fail};
use crate::dsl::Runnable;
use crate::machine::REPLY;
use crate::model::cassette::{AwaitedSignal as Asked, Cassette};
use crate::record::{Pending, PendingKind, SignalKind};
use crate::runner::Settled;

impl Test {
    /// Runs a brain on a cassette to its end. The cassette also answers approvals and waits.
    ///
    /// # Panics
    ///
    /// If the cassette cannot be read, lacks an answer that the run waits for, or has unused answers: a bundled
    /// cassette matches its brain.
    #[track_caller]
    pub fn play<B: Runnable>(cassette: &str, brain: B, options: B::Options) -> impl Future<Output = Story> {
        let place = std::panic::Location::caller();
        let cassette = match Cassette::replay(cassette) {
            Ok(cassette) => Arc::new(cassette),
            Err(error) => fail(place, &error),
        };
        let test = Self::new(Arc::clone(&cassette));
        async move { test.play_through(place, &cassette, brain, options).await }
    }

    /// Runs a brain to its end as [`Test::play`] does, with the test's own model: the cassette answers approvals
    /// and waits, and the model may ask it for its answers.
    ///
    /// # Panics
    ///
    /// As [`Test::play`].
    #[track_caller]
    pub fn play_with<B: Runnable>(
        &self,
        cassette: &Cassette,
        brain: B,
        options: B::Options,
    ) -> impl Future<Output = Story> {
        self.play_through(std::panic::Location::caller(), cassette, brain, options)
    }

    async fn play_through<B: Runnable>(
        &self,
        place: &'static std::panic::Location<'static>,
        cassette: &Cassette,
        brain: B,
        options: B::Options,
    ) -> Story {
        let run = self.start(brain, options).await;
        loop {
            let changed = run.changed();
            let signal = match run.settled().await {
                Settled::Waiting(pending) if pending.iter().all(|pending| pending.kind.is_for_run()) => {
                    changed.await;
                    continue;
                }
                Settled::Waiting(pending) => match cassette.next_signal(&asked(&pending)) {
                    Some(signal) => signal,
                    None => fail(place, &UnansweredCall(pending)),
                },
                Settled::Paused => SignalKind::Resume,
                _ => break,
            };
            if let Err(error) = run.signal(signal, "the cassette").await {
                fail(place, &error);
            }
        }
        let unused = cassette.unused();
        if !unused.is_empty() {
            fail(place, &Unused(unused));
        }
        Story::of(&run).await
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the cassette does not answer what the run waits for: {0:?}")]
struct UnansweredCall(Vec<Pending>);

#[derive(Debug, thiserror::Error)]
#[error("the cassette holds what was not asked for: {0:?}")]
struct Unused(Vec<String>);

/// Returns the name of a pending item in a cassette.
fn asked(pending: &[Pending]) -> Vec<Asked<'_>> {
    let mut asked = Vec::new();
    for Pending { call, kind, .. } in pending {
        match kind {
            PendingKind::Approval { .. } | PendingKind::Budget(_) => asked.push(Asked::Approval(call)),
            PendingKind::Answer { waits } => asked.extend(waits.iter().map(|wait| match wait.webhook.as_str() {
                REPLY => Asked::Reply(call),
                name => Asked::Webhook { name, identifier: &wait.identifier },
            })),
        }
    }
    asked
}
