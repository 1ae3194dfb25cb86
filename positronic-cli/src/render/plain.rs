//! Reporter that appends one line per notable event: for a pipe, a file, a log.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::NodeId;
use positronic_core::record::{Event, Timestamp};

use super::sentences::sentences;
use super::{Style, View, one_line, printable};

/// Reports a run line by line: what [`sentences`] adds to the nodes that an event changes.
#[derive(Debug)]
pub(crate) struct Plain<W: Write> {
    out: W,
    view: View,
    style: Style,
    started: Option<Timestamp>,
    /// The number of printed sentences of each node.
    printed: HashMap<NodeId, usize>,
}

impl<W: Write> Plain<W> {
    /// Creates a reporter that writes to `out`. Of the style only `unicode` applies: there are no colours and no wrapping.
    pub(crate) fn new(out: W, style: Style) -> Self {
        Self { out, view: View::new().track_changes(), style, started: None, printed: HashMap::new() }
    }

    /// Calculates costs with these prices.
    #[must_use]
    pub(crate) fn priced(mut self, prices: Option<PriceTable>) -> Self {
        self.view = self.view.priced(prices);
        self
    }

    /// Returns the view.
    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    /// Applies the next event, and writes its line if it has one.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        let started = *self.started.get_or_insert(event.at);
        let Some(text) = self.apply(event) else { return Ok(()) };
        let place = one_line(&self.view.trail(&event.path));
        let colon = if place.is_empty() { "" } else { ": " };
        let since = clock(event.at.since(started));
        writeln!(self.out, "{}", printable(format!("{since} {place}{colon}{text}"), self.style.unicode))
    }

    /// Applies the next event, and returns its text, without place and time.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<String> {
        let reruns = self.view.reruns(event);
        let rerun = |(id, text): &(NodeId, &str)| {
            self.view.node(*id).map(|node| format!("{}: {text}", self.view.trail(&node.path)))
        };
        let mut added: Vec<_> = reruns.iter().filter_map(rerun).collect();
        self.view.apply(event);
        for id in self.view.timeline.take_changes() {
            let Some(node) = self.view.node(id) else { continue };
            let said = sentences(&self.view.timeline, node);
            let printed = self.printed.insert(id, said.len()).unwrap_or(0);
            added.extend(said.into_iter().skip(printed).map(|sentence| one_line(sentence.trim())));
        }
        (!added.is_empty()).then(|| added.join("; "))
    }

    /// Appends a line that belongs to no event.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        let text = one_line(text.trim());
        writeln!(self.out, "{}", printable(text, self.style.unicode))
    }
}

/// Writes the time since the run's start as `mm:ss.t`.
fn clock(since: Duration) -> String {
    let seconds = since.as_secs();
    format!("{:02}:{:02}.{}", seconds / 60, seconds % 60, since.subsec_millis() / 100)
}
