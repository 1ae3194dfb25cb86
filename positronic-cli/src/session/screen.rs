//! Display of a run: the reporter for people, and the events as data.

use std::io::{self, Write};

use positronic_core::record::{Delta, Event, RunId, Timestamp};
use positronic_core::runner::{Clock as _, SystemClock};

use super::answers::Question;
use crate::app::Settings;
use crate::app::{BufferedLog, Streams, Ui, size};
use crate::cli::OutputArgs;
use crate::render::{Frame, Line, Live, Painter, Plain, Style, Tone, View, escaped_json};

/// Where progress goes.
type Progress<'a> = Box<dyn Write + Send + 'a>;

/// Shows a run to a person, and writes its events as data.
pub(crate) struct Screen<'a> {
    /// Repaints a terminal, in place of `plain`.
    live: Option<Live<Progress<'a>>>,
    plain: Plain<Progress<'a>>,
    /// Receives every event as one line of JSON.
    json: Option<&'a mut (dyn Write + Send)>,
    /// The run, if events name it.
    named: Option<RunId>,
    style: Style,
    /// Paints questions where nothing else repaints.
    painter: Painter,
    /// The streams of the process, if the output goes there.
    streams: Option<Streams>,
    /// The lines of the log, which are shown above the run, if it is shown on a terminal.
    log: Option<BufferedLog>,
}

impl<'a> Screen<'a> {
    /// Chooses the display: live on a terminal, else plain.
    pub(crate) fn new(ui: &'a mut Ui, OutputArgs { json, plain }: OutputArgs, named: Option<RunId>) -> Self {
        let Settings { stdout_is_terminal, stderr_is_terminal, dumb, .. } = ui.settings;
        let result_lines = if stdout_is_terminal && !json { 0 } else { Style::default().result_lines };
        let (style, prices) = (Style { result_lines, ..ui.style() }, ui.prices.clone());
        // Progress would mix with events that go to the same terminal.
        let is_silent = json && stdout_is_terminal && stderr_is_terminal;
        let err: Progress<'a> = if is_silent { Box::new(io::sink()) } else { Box::new(&mut *ui.err) };
        let (live, plain) = if stderr_is_terminal && !dumb && !plain && !is_silent {
            let (columns, rows) = size();
            (Some(Live::new(err, style, columns, rows).priced(prices)), Plain::new(Box::new(io::sink()) as _, style))
        } else {
            (None, Plain::new(err, style).priced(prices))
        };
        let log = (stderr_is_terminal && !is_silent).then(|| ui.log.buffer());
        let (streams, painter) = (ui.streams.clone(), Painter::default());
        Self { live, plain, json: json.then_some(&mut *ui.out), named, style, painter, streams, log }
    }

    /// Returns whether the readers of the output keep up with it. If not, the run is shown later.
    pub(crate) fn has_room(&self) -> bool {
        self.streams.as_ref().is_none_or(Streams::has_room)
    }

    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Some(out) = &mut self.json {
            let line = event.to_json().map_err(io::Error::other)?;
            let line = match &self.named {
                Some(run) => format!("{{\"run\":{},\"event\":{line}}}", serde_json::to_string(run)?),
                None => line,
            };
            writeln!(out, "{}", escaped_json(&line))?;
            out.flush()?;
        }
        match &mut self.live {
            Some(live) => live.event(event),
            None => self.plain.event(event)?,
        }
        Ok(())
    }

    /// Returns whether the terminal shows images.
    pub(crate) fn has_images(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.style().graphics.is_some())
    }

    /// Shows an image of an event.
    pub(crate) fn image(&mut self, event: &Event, bytes: &[u8]) {
        if let Some(live) = &mut self.live {
            live.image(&event.path, bytes);
        }
    }

    pub(crate) fn delta(&mut self, delta: &Delta) {
        if let Some(live) = &mut self.live {
            live.delta(delta);
        }
    }

    /// Advances the time: shows the log, and a live display repaints.
    pub(crate) fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        if !self.has_room() {
            return Ok(());
        }
        self.show_log()?;
        let (columns, rows) = size();
        self.live.as_mut().map_or(Ok(()), |live| live.tick(now, columns, rows))
    }

    fn show_log(&mut self) -> io::Result<()> {
        let lines = self.log.as_ref().map(BufferedLog::take).unwrap_or_default();
        lines.iter().try_for_each(|line| self.say(line))
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
        match &mut self.live {
            Some(live) => live.paint(gone, frame, SystemClock.now(), size()),
            None => self.painter.paint(&mut io::stderr(), &self.style, &gone, &frame, size()),
        }
    }

    /// Prints a message between two questions.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        match &mut self.live {
            Some(live) => live.say(Tone::Warn, text),
            None => self.plain.say(text),
        }
    }

    pub(crate) fn view(&self) -> &View {
        self.live.as_ref().map_or_else(|| self.plain.view(), Live::view)
    }

    /// Paints the last frame, and releases the terminal.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.show_log()?;
        self.live.as_mut().map_or(Ok(()), Live::finish)
    }
}
