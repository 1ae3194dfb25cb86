//! `positronic events`: a run's log.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;

use positronic_core::prices::PriceTable;
use positronic_core::record::{Event, EventKind, Seq};

use crate::app::{Failure, Ui, open_run, price_table};
use crate::cli::{EventsArgs, Exit};
use crate::render::{Plain, Style, escaped_json, one_line, shorten};

pub(crate) async fn events(args: &EventsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (client, row) = open_run(&args.run, ui).await?;
    let log = client.events(&row.run, Seq(0)).await?;
    let from = Seq(args.from);
    if args.json {
        for event in log.iter().filter(|event| event.seq >= from) {
            let line = event.to_json().map_err(io::Error::other)?;
            writeln!(ui.out, "{}", escaped_json(&line))?;
        }
    } else {
        ui.print(&lines(&log, from, ui.columns(), price_table(None, &ui.settings)?))?;
    }
    if from.index() >= log.len() {
        ui.notice(&format!("the run has {} events, the last is {}", log.len(), log.len().saturating_sub(1)))?;
    }
    Ok(Exit::Done)
}

/// Renders one line per event: its number, the time since the start, its type, its path and its text.
fn lines(log: &[Arc<Event>], from: Seq, columns: usize, prices: PriceTable) -> String {
    let mut text = String::new();
    let mut lines = Plain::new(io::sink(), Style::default()).priced(Some(prices));
    let started = log.first().map(|event| event.at).unwrap_or_default();
    let digits = log.len().saturating_sub(1).to_string().len();
    let names = log.iter().filter(|event| event.seq >= from).map(|event| event.kind.name().len());
    let widest = names.max().unwrap_or(0);
    for event in log {
        let shown: Vec<_> = named(event).into_iter().chain(lines.apply(event)).collect();
        let shown = shown.join("; ");
        if event.seq < from {
            continue;
        }
        let since = event.at.since(started);
        let (seq, name, path) = (event.seq.0, event.kind.name(), one_line(event.path.as_str()));
        let time = format!("{}.{:03}", since.as_secs(), since.subsec_millis());
        let gap = if path.is_empty() || shown.is_empty() { "" } else { "  " };
        let line = format!("{seq:>digits$}  {time:>8}  {name:<widest$}  {path}{gap}{shown}");
        _ = writeln!(text, "{}", shorten(line.trim_end(), columns));
    }
    text
}

/// Renders the text of an event that the progress does not show.
fn named(event: &Event) -> Option<String> {
    Some(one_line(match &event.kind {
        EventKind::ValueRecorded { name, .. } => name,
        EventKind::RunClaimed { owner, .. } => owner,
        EventKind::RunReleased { reason } => reason,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::stories::{Beat, waiting};

    #[test]
    fn every_event_is_a_line_that_fits() {
        let event = |beat| match beat {
            Beat::Event(event) => Some(Arc::from(event)),
            Beat::Delta(_) => None,
        };
        let log: Vec<_> = waiting().beats.into_iter().filter_map(event).collect();

        insta::assert_snapshot!("events_60", lines(&log, Seq(0), 60, PriceTable::bundled()));
        insta::assert_snapshot!("events_100", lines(&log, Seq(3), 100, PriceTable::bundled()));
    }
}
