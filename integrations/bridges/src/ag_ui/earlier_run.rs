//! The runs of a thread before that of the leg.

use positronic_core::record::{Event as RunEvent, RunId};
use positronic_server::extension::Viewer;

use super::encoder::AgUi;
use super::event::Message;
use crate::history::RunMessages;
use crate::leg::Encoder as _;
use crate::projection::Projection;

/// A run before that of the leg.
pub(super) struct EarlierRun {
    projection: Projection,
    encoder: AgUi,
}

impl EarlierRun {
    pub(super) fn new(run: &RunId, viewer: Viewer) -> Self {
        Self { projection: Projection::new(run, viewer, None), encoder: AgUi::new(String::new(), String::new()) }
    }
}

impl RunMessages for EarlierRun {
    type Message = Message;

    fn event(&mut self, event: &RunEvent) {
        self.encoder.items(self.projection.event(event));
    }

    fn finish(self) -> Vec<Message> {
        self.encoder.messages.list()
    }
}
