//! Input and output of a command: data goes to stdout, messages to stderr.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style as Ansi};
use positronic_core::prices::PriceTable;
use positronic_core::record::Actor;
use serde::Serialize;

use super::output::{Output, Unread};
use crate::app::{Failure, Log, Settings, without_password};
use crate::cli::options::shell_word;
use crate::cli::{Color, StoreArgs};
use crate::render::{Graphics, Style, escaped_json, one_line, printable, sanitise, shorten, wrap};

/// Columns of a list that does not go to a terminal.
const WIDE: usize = 160;

/// The framework's own command.
pub(crate) const PROGRAM: &str = "positronic";

/// The streams of a command, with their style.
pub(crate) struct Ui {
    /// Input data.
    pub(crate) input: Box<dyn Read + Send>,
    /// Output data only: results, lists, events.
    pub(crate) out: Box<dyn Write + Send>,
    /// Messages to people.
    pub(crate) err: Box<dyn Write + Send>,
    pub(crate) settings: Settings,
    pub(crate) color: Color,
    /// The command line that starts this program.
    pub(crate) program: String,
    /// The store named on the command line.
    pub(crate) store_args: StoreArgs,
    /// Model prices for the cost of shown runs.
    pub(crate) prices: Option<PriceTable>,
    /// The streams of the process, if the output goes there.
    pub(crate) streams: Option<Streams>,
    pub(crate) log: Log,
    /// Whether output that nothing reads is dropped.
    pub(crate) drops_unread: bool,
    /// The error that lost data, if the work continued after it.
    pub(crate) unwritten: Arc<Mutex<Option<io::Error>>>,
}

/// The streams of the process.
#[derive(Clone)]
pub(crate) struct Streams {
    out: Output,
    err: Output,
}

impl Streams {
    /// Returns the standard streams.
    pub(crate) fn standard() -> Self {
        let err = Output::new("stderr", io::stderr(), None);
        Self { out: Output::new("stdout", io::stdout(), Some(err.clone())), err }
    }

    /// Returns stderr.
    pub(crate) const fn err(&self) -> &Output {
        &self.err
    }

    /// Returns whether the readers keep up with the output.
    pub(crate) fn has_room(&self) -> bool {
        self.out.has_room() && self.err.has_room()
    }

    /// Waits until all is written or cannot be; returns whether that is so.
    pub(crate) fn are_drained(&self, patience: Duration) -> bool {
        self.out.is_drained(patience) && self.err.is_drained(patience)
    }
}

/// Checks in every test that a suggested command parses, possibly with a value that its caller adds.
#[cfg(test)]
#[track_caller]
fn assert_works(words: &[&str]) {
    use clap::Parser as _;
    let parses = |added: &[&str]| {
        let line = ["positronic"].iter().chain(words).chain(added);
        crate::cli::Cli::try_parse_from(line).map(drop)
    };
    if let Err(error) = parses(&[]).or_else(|error| parses(&["1"]).map_err(|_| error)) {
        panic!("a suggested command does not parse: {words:?}: {error}");
    }
}

impl Ui {
    /// Writes to the process's own streams.
    pub(crate) fn standard(settings: Settings, streams: Streams, log: Log) -> Self {
        let err = Box::new(streams.err.clone().writer(Unread::IsKept));
        let program = PROGRAM.to_owned();
        Self {
            program,
            streams: Some(streams),
            log,
            ..Self::new(Box::new(io::stdin()), Box::new(io::stdout()), err, settings)
        }
    }

    /// Creates one with these streams.
    pub(crate) fn new(
        input: Box<dyn Read + Send>,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        settings: Settings,
    ) -> Self {
        Self {
            input,
            out,
            err,
            settings,
            color: Color::Auto,
            program: String::new(),
            store_args: StoreArgs::default(),
            prices: None,
            streams: None,
            log: Log::default(),
            drops_unread: false,
            unwritten: Arc::default(),
        }
    }

    /// Creates one without output, for rendering suggested commands.
    pub(crate) fn silent(&self) -> Self {
        Self {
            color: self.color,
            program: self.program.clone(),
            store_args: self.store_args.clone(),
            ..Self::new(Box::new(io::empty()), Box::new(io::sink()), Box::new(io::sink()), self.settings.clone())
        }
    }

    /// Lets the work outlive the readers of its streams: one that does not read delays it by a moment, and one that is gone, or a
    /// full disk, does not end it.
    pub(crate) fn outlive_readers(&mut self, unread: Unread) {
        self.drops_unread = unread == Unread::IsDropped;
        self.detach_streams(unread);
        self.ignore_failed_streams();
    }

    /// Lets threads write the streams of the process, so that a reader that does not read delays nothing.
    pub(crate) fn detach_streams(&mut self, unread: Unread) {
        if let Some(Streams { out, err }) = self.streams.clone() {
            (self.out, self.err) = (Box::new(out.writer(unread)), Box::new(err.writer(unread)));
        }
    }

    /// Ignores output streams that are closed or cannot be written: closing a pager does not stop the work. Data that is lost otherwise is
    /// reported by [`Ui::unwritten`].
    pub(crate) fn ignore_failed_streams(&mut self) {
        let is_terminal = (self.settings.stdout_is_terminal, self.settings.stderr_is_terminal);
        for (writer, terminal, unwritten) in [
            (&mut self.out, is_terminal.0, Arc::clone(&self.unwritten)),
            (&mut self.err, is_terminal.1, Arc::default()),
        ] {
            let inner = std::mem::replace(writer, Box::new(io::sink()));
            *writer = Box::new(Unchecked { inner, terminal, gone: false, unwritten });
        }
    }

    /// Returns why data was lost after [`Ui::ignore_failed_streams`], unless its reader closed the stream.
    pub(crate) fn unwritten(&self) -> Option<io::Error> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether progress may have colours.
    pub(crate) const fn colour(&self) -> bool {
        self.coloured(self.settings.stderr_is_terminal)
    }

    /// Returns whether data may have colours.
    pub(crate) const fn out_colour(&self) -> bool {
        self.coloured(self.settings.stdout_is_terminal)
    }

    const fn coloured(&self, terminal: bool) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !self.settings.no_color && !self.settings.dumb,
        }
    }

    /// Returns the style of progress output.
    pub(crate) fn style(&self) -> Style {
        let graphics = self.graphics();
        Style { colour: self.colour(), unicode: self.settings.unicode, graphics, ..Style::default() }
    }

    /// Returns how the terminal shows images; `None` where colours are off, too.
    fn graphics(&self) -> Option<Graphics> {
        let Settings { stdout_is_terminal, stderr_is_terminal, dumb, .. } = self.settings;
        let is_shown = cfg!(feature = "preview") && stdout_is_terminal && stderr_is_terminal && !dumb && self.colour();
        self.settings.graphics.filter(|_| is_shown)
    }

    /// Returns the width of data output in columns.
    pub(crate) fn columns(&self) -> usize {
        if self.settings.stdout_is_terminal { size().0 } else { WIDE }
    }

    /// Returns the person at this terminal.
    pub(crate) fn actor(&self, by: Option<&str>) -> Actor {
        let by = by.map(str::to_owned).or_else(|| self.settings.user.clone());
        Actor { by, channel: Some("cli".to_owned()), ..Actor::default() }
    }

    /// Returns the width of messages in columns.
    pub(crate) fn err_columns(&self) -> usize {
        if self.settings.stderr_is_terminal { size().0 } else { WIDE }
    }

    /// Renders a command line of this program for the same store.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        #[cfg(test)]
        assert_works(words);
        self.line(words)
    }

    /// Renders what command lines of this program for the same store begin with.
    pub(crate) fn command_start(&self) -> String {
        self.line(&[])
    }

    fn line(&self, words: &[&str]) -> String {
        let store = self.store_args.store.as_ref().map(|store| without_password(&store.to_string_lossy()));
        let store = store.as_deref().map_or_else(Vec::new, |store| vec!["--store", store]);
        let words = words.iter().copied().chain(store).map(shell_word);
        std::iter::once(self.program.clone()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Escapes terminal control characters, and signs that the terminal cannot print.
    fn safe(&self, text: &str) -> String {
        printable(sanitise(text), self.settings.unicode)
    }

    /// Writes an entry of a list as data, in one line that fits.
    pub(crate) fn row(&mut self, text: &str) -> io::Result<()> {
        self.print(&shorten(&one_line(text), self.columns()))
    }

    /// Writes text as data, with terminal control characters escaped.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        let text = self.safe(text);
        if text.is_empty() { Ok(()) } else { writeln!(self.out, "{}", text.trim_end_matches('\n')) }
    }

    /// Writes an empty line between two pieces of data.
    pub(crate) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes a rendered frame, which is already escaped and may have colours.
    pub(crate) fn frame(&mut self, frame: &str) -> io::Result<()> {
        self.out.write_all(frame.as_bytes())
    }

    /// Writes a JSON document.
    pub(crate) fn document(&mut self, document: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", escaped_json(&serde_json::to_string_pretty(document)?))
    }

    /// Writes a line of JSON.
    pub(crate) fn json_line(&mut self, document: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", escaped_json(&serde_json::to_string(document)?))
    }

    /// Writes messages without wrapping them, since they contain commands.
    pub(crate) fn lines(&mut self, text: &str) -> io::Result<()> {
        let text = self.safe(text);
        writeln!(self.err, "{}", text.trim_end_matches('\n'))
    }

    /// Writes a line of a log, without wrapping it.
    #[cfg(feature = "serve")]
    pub(crate) fn log_line(&mut self, line: &str) -> io::Result<()> {
        let line = if line.starts_with('{') { escaped_json(line) } else { self.safe(line) };
        writeln!(self.err, "{line}")
    }

    /// Writes a message, such as the name of the played cassette.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        let columns = if self.settings.stderr_is_terminal { size().0 } else { usize::MAX };
        let ansi = if self.colour() { Ansi::new().dimmed() } else { Ansi::new() };
        for line in wrap(&self.safe(text), columns.saturating_sub(1)) {
            writeln!(self.err, "{ansi}{line}{ansi:#}")?;
        }
        Ok(())
    }

    /// Prints why the command failed.
    pub(crate) fn failure(&mut self, failure: &Failure) -> io::Result<()> {
        let prose = self.safe(&failure.prose());
        match prose.strip_prefix("error:").filter(|_| self.colour()) {
            Some(rest) => {
                let ansi = AnsiColor::Red.on_default().bold();
                write!(self.err, "{ansi}error:{ansi:#}{rest}")
            }
            None => write!(self.err, "{prose}"),
        }
    }
}

/// A writer that discards its input after the stream has failed.
struct Unchecked {
    inner: Box<dyn Write + Send>,
    terminal: bool,
    gone: bool,
    /// Receives the failure, unless the reader has closed the stream.
    unwritten: Arc<Mutex<Option<io::Error>>>,
}

/// Error number of a closed terminal.
const GONE: i32 = 5;

impl Unchecked {
    fn unless_failed<T>(&mut self, written: io::Result<T>, unread: T) -> T {
        let error = match written {
            Ok(written) => return written,
            Err(error) => error,
        };
        let is_closed =
            error.kind() == io::ErrorKind::BrokenPipe || (self.terminal && error.raw_os_error() == Some(GONE));
        if !is_closed {
            self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        self.gone = true;
        unread
    }
}

impl Write for Unchecked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone {
            return Ok(bytes.len());
        }
        let written = self.inner.write_all(bytes).map(|()| bytes.len());
        Ok(self.unless_failed(written, bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.unless_failed(flushed, ());
        Ok(())
    }
}

/// Returns the terminal's columns and rows; 80 × 24 if unknown. Some terminals report a size of 0.
pub(crate) fn size() -> (usize, usize) {
    known_size(crossterm::terminal::size().unwrap_or_default())
}

fn known_size((columns, rows): (u16, u16)) -> (usize, usize) {
    let or = |size: u16, unknown: usize| if size == 0 { unknown } else { usize::from(size) };
    (or(columns, 80), or(rows, 24))
}

#[cfg(test)]
mod tests {
    use super::known_size;

    #[test]
    fn terminal_without_a_size_has_80_columns() {
        assert_eq!([(0, 0), (0, 50), (120, 0), (60, 30)].map(known_size), [(80, 24), (80, 50), (120, 24), (60, 30)]);
    }
}
