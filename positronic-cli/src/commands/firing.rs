//! Triggers that are due, for `positronic work`: looked for once a second, each that cannot fire told once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use positronic_core::record::{Timer, Timestamp, TriggerId};
use positronic_core::runner::{Control, ConversationError, FireError, StartError};
use positronic_core::store::StoreError;

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_secs(1);

/// What is due, and what of it cannot fire here.
#[derive(Debug, Default)]
pub(super) struct Firing {
    looked: Option<Instant>,
    refused: HashSet<(TriggerId, Timestamp)>,
}

impl Firing {
    /// Lists what is due and may fire here, if it is time to look.
    #[expect(clippy::disallowed_methods, reason = "it is how long ago it was looked, not what time it is")]
    pub(super) async fn due(&mut self, control: &Control) -> Result<Vec<Timer>, StoreError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(Vec::new());
        }
        self.looked = Some(Instant::now());
        let mut due = control.due_triggers().await?;
        let is_due = |(id, at): &(TriggerId, Timestamp)| {
            due.iter().any(|timer| (&timer.trigger.id, timer.trigger.due) == (id, *at))
        };
        self.refused.retain(is_due);
        due.retain(|timer| !self.refused.contains(&(timer.trigger.id.clone(), timer.trigger.due)));
        Ok(due)
    }

    /// Leaves a trigger out until its next time.
    pub(super) fn refuse(&mut self, timer: &Timer) {
        self.refused.insert((timer.trigger.id.clone(), timer.trigger.due));
    }
}

/// Says whether a trigger may fire at another try.
pub(super) fn passes(error: &FireError) -> bool {
    match error {
        FireError::Start { reason, .. } => {
            matches!(**reason, ConversationError::Store(_) | ConversationError::Start(StartError::Store(_)))
        }
        _ => false,
    }
}
