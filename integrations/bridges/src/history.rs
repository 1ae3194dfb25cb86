//! The history of a thread that a client gets: the messages of its latest runs, as far as they fit.

use std::sync::Arc;

use positronic_core::record::{Event, RunId, RunSummary, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;
use serde::Serialize;

use crate::shared::MAX_BODY;

/// How many runs a history has at most.
pub(crate) const MAX_RUNS: usize = 20;
/// How many bytes of JSON the messages of a history have at most, unless those of its last run alone have more. A client posts all
/// its messages with each request, which needs room for further ones.
const MAX_BYTES: usize = MAX_BODY / 2;
/// How many events of a log are read at once.
const CHUNK: usize = 256;

/// Reader of the log of a run, some events at a time, since a log may be large.
pub(crate) struct LogReader<'a> {
    client: &'a Client,
    run: &'a RunId,
    next: Option<Seq>,
}

impl<'a> LogReader<'a> {
    pub(crate) const fn new(client: &'a Client, run: &'a RunId) -> Self {
        Self { client, run, next: Some(Seq(0)) }
    }

    /// Returns the next events; `None` at the end of the log.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Arc<Event>>>, StoreError> {
        let Some(from) = self.next else { return Ok(None) };
        let events = self.client.store().read(self.run, from, CHUNK).await?;
        self.next = events.last().filter(|_| events.len() == CHUNK).map(|last| last.seq.next());
        Ok(Some(events))
    }
}

/// The messages of one run, as a fold of its log.
pub(crate) trait RunMessages {
    type Message: Serialize;

    /// Folds the next event.
    fn event(&mut self, event: &Event);

    /// Returns the messages, in order.
    fn finish(self) -> Vec<Self::Message>;
}

/// Messages, and what they do not have.
pub(crate) struct History<M> {
    pub(crate) messages: Vec<M>,
    /// How many earlier runs of the thread are left out.
    pub(crate) left_out: usize,
}

impl<M> Default for History<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), left_out: 0 }
    }
}

/// Reads the messages of runs. `rows` begin with the last one, whose messages are all there.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn history<F: RunMessages>(
    client: &Client,
    rows: &[RunSummary],
    begin: impl Fn(&RunId) -> F,
) -> Result<History<F::Message>, StoreError> {
    let (mut runs, mut bytes) = (Vec::new(), 0);
    for row in rows.iter().take(MAX_RUNS) {
        let (mut fold, mut log) = (begin(&row.run), LogReader::new(client, &row.run));
        while let Some(events) = log.next().await? {
            events.iter().for_each(|event| fold.event(event));
        }
        let messages = fold.finish();
        bytes += messages.iter().map(size).sum::<usize>();
        if bytes > MAX_BYTES && !runs.is_empty() {
            break;
        }
        runs.push(messages);
    }
    let left_out = rows.len() - runs.len();
    runs.reverse();
    Ok(History { messages: runs.into_iter().flatten().collect(), left_out })
}

fn size(message: &impl Serialize) -> usize {
    serde_json::to_vec(message).map_or(0, |json| json.len())
}
