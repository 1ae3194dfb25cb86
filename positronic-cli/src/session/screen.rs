//! Display of a run: the reporter for people, and the events as data.

use std::io::{self, Write};

use positronic_core::record::{Delta, Event, Path, RunId, Timestamp};
use positronic_core::runner::{Clock as _, SystemClock};

use super::answers::Question;
use crate::app::{Ui, size};
use crate::render::{Frame, Line, Live, Painter, Plain, Style, Tone, View, harmless_json};

/// Shows a run to a person, and writes its events as data.
pub(crate) struct Screen<'a> {
    reporter: Reporter<'a>,
    /// Receives every event as one line of JSON.
    json: Option<&'a mut (dyn Write + Send)>,
    /// The run, if events name it.
    named: Option<RunId>,
    style: Style,
    /// Paints questions where the reporter does not repaint.
    painter: Painter,
}

enum Reporter<'a> {
    Live(Live<&'a mut (dyn Write + Send)>),
    Plain(Plain<&'a mut (dyn Write + Send)>),
    /// Events go to the same terminal as data; progress would be in their way.
    Silent(View),
}

impl<'a> Screen<'a> {
    /// Chooses the reporter: live on a terminal, else plain.
    pub(crate) fn new(ui: &'a mut Ui, plain: bool, json: bool, named: Option<RunId>) -> Self {
        let both = ui.settings.stdout_is_terminal && ui.settings.stderr_is_terminal;
        let result_lines = if ui.settings.stdout_is_terminal && !json { 0 } else { Style::default().result_lines };
        let style = Style { result_lines, ..ui.style() };
        let live = ui.settings.stderr_is_terminal && !ui.settings.dumb && !plain;
        let prices = ui.prices.clone();
        let reporter = if json && both {
            Reporter::Silent(View::new())
        } else if live {
            let (columns, rows) = size();
            Reporter::Live(Live::new(&mut *ui.err, style, columns, rows))
        } else {
            Reporter::Plain(Plain::new(&mut *ui.err, style))
        };
        let reporter = match (reporter, prices) {
            (Reporter::Live(live), Some(prices)) => Reporter::Live(live.priced(prices)),
            (Reporter::Plain(plain), Some(prices)) => Reporter::Plain(plain.priced(prices)),
            (reporter, _) => reporter,
        };
        Self { reporter, json: json.then_some(&mut *ui.out), named, style, painter: Painter::default() }
    }

    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Some(out) = &mut self.json {
            let line = event.to_json().map_err(io::Error::other)?;
            let line = match &self.named {
                Some(run) => format!("{{\"run\":{},\"event\":{line}}}", serde_json::to_string(run)?),
                None => line,
            };
            writeln!(out, "{}", harmless_json(&line))?;
            out.flush()?;
        }
        match &mut self.reporter {
            Reporter::Live(live) => live.event(event),
            Reporter::Plain(plain) => plain.event(event)?,
            Reporter::Silent(view) => view.apply(event),
        }
        Ok(())
    }

    pub(crate) fn delta(&mut self, delta: &Delta) {
        if let Reporter::Live(live) = &mut self.reporter {
            live.delta(delta);
        }
    }

    /// Advances the time; a live reporter repaints.
    pub(crate) fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        match &mut self.reporter {
            Reporter::Live(live) => {
                let (columns, rows) = size();
                live.tick(now, columns, rows)
            }
            Reporter::Plain(_) | Reporter::Silent(_) => Ok(()),
        }
    }

    /// Paints an open question below the run.
    pub(crate) fn ask(&mut self, question: &mut Question) -> io::Result<()> {
        let (columns, rows) = size();
        let (gone, frame) = question.draw(columns.saturating_sub(1).clamp(2, 200), rows);
        self.foot(gone, frame)
    }

    /// Takes the question off the screen; these lines of it stay.
    pub(crate) fn asked(&mut self, stays: Vec<Line>) -> io::Result<()> {
        self.foot(stays, Frame::default())
    }

    fn foot(&mut self, gone: Vec<Line>, frame: Frame) -> io::Result<()> {
        match &mut self.reporter {
            Reporter::Live(live) => live.paint(gone, frame, SystemClock.now(), size()),
            Reporter::Plain(_) | Reporter::Silent(_) => {
                self.painter.paint(&mut io::stderr(), &self.style, &gone, &frame, size())
            }
        }
    }

    /// Prints a message between two questions.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        match &mut self.reporter {
            Reporter::Live(live) => live.say(Tone::Warn, text),
            Reporter::Plain(plain) => plain.say(text),
            Reporter::Silent(_) => Ok(()),
        }
    }

    /// Renders a path in the run: its stages and calls.
    pub(crate) fn trail(&self, path: &Path) -> String {
        self.view().trail(path)
    }

    /// Returns the currency of money limits, if known.
    pub(crate) fn currency(&self) -> Option<&str> {
        self.view().currency()
    }

    fn view(&self) -> &View {
        match &self.reporter {
            Reporter::Live(live) => live.view(),
            Reporter::Plain(plain) => plain.view(),
            Reporter::Silent(view) => view,
        }
    }

    /// Paints the last frame, and releases the terminal.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match &mut self.reporter {
            Reporter::Live(live) => live.finish(),
            Reporter::Plain(_) | Reporter::Silent(_) => Ok(()),
        }
    }
}
