//! A sink that sends everything over a channel.

use std::sync::Arc;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{SinkExt as _, Stream};

use super::{EventSink, SinkError};
use crate::record::{Delta, Event, RunId};

/// What comes over a [`ChannelSink`].
#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    /// An event of a run.
    Event(RunId, Arc<Event>),
    /// A piece of an answer.
    Delta(RunId, Delta),
}

/// Sends events, and deltas as far as there is room, over a bounded channel. A full channel delays the sink, never
/// the run. A receiver that is gone ends the sink.
#[derive(Debug, Clone)]
pub struct ChannelSink {
    sender: mpsc::Sender<Live>,
}

impl ChannelSink {
    /// Makes a sink and the stream of what it takes, with room for `room` entries.
    pub fn new(room: usize) -> (Self, impl Stream<Item = Live> + Unpin + Send + 'static) {
        let (sender, receiver) = mpsc::channel(room);
        (Self { sender }, receiver)
    }
}

impl EventSink for ChannelSink {
    fn name(&self) -> &'static str {
        "channel"
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut sender = self.sender.clone();
        Box::pin(async move {
            // Whoever dropped the receiver wants no more; that is no failure.
            _ = sender.send(Live::Event(run.clone(), Arc::clone(event))).await;
            Ok(())
        })
    }

    fn delta(&self, run: &RunId, delta: &Delta) {
        _ = self.sender.clone().try_send(Live::Delta(run.clone(), delta.clone()));
    }
}
