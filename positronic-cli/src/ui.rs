//! Where a command writes: data to one writer, everything else to the other.

use std::io::{self, Read, Write};

use anstyle::{AnsiColor, Style as Ansi};
use positronic_core::record::{Actor, PriceTable};
use serde::Serialize;

use crate::cli::{Color, Where};
use crate::display::Style;
use crate::display::text::{harmless_json, sanitise, wrap};
use crate::failure::Failure;
use crate::options::shell_word;
use crate::screen;
use crate::settings::Settings;

/// How many columns a list has that goes to no terminal.
const WIDE: usize = 160;

/// The framework's own command.
pub(crate) const PROGRAM: &str = "positronic";

/// The writers of a command, and how they may look.
pub(crate) struct Ui {
    /// Gives data, where a command reads some.
    pub(crate) input: Box<dyn Read + Send>,
    /// Takes data alone: results, lists, events.
    pub(crate) out: Box<dyn Write + Send>,
    /// Takes everything that is said to a person.
    pub(crate) err: Box<dyn Write + Send>,
    pub(crate) settings: Settings,
    pub(crate) color: Color,
    /// How the command is called, as a shell takes it.
    pub(crate) program: String,
    /// Where runs are kept, as the command line says it.
    pub(crate) place: Where,
    /// What models cost, where a run is shown whose cost is to be told.
    pub(crate) prices: Option<PriceTable>,
}

/// Checks in every test that a command which is shown is one: its words parse, perhaps with the value that its caller adds.
#[cfg(test)]
#[track_caller]
fn assert_works(words: &[&str]) {
    use clap::Parser as _;
    let parses = |added: &[&str]| {
        let line = ["positronic"].iter().chain(words).chain(added);
        crate::cli::Cli::try_parse_from(line).map(drop)
    };
    if let Err(error) = parses(&[]).or_else(|error| parses(&["1"]).map_err(|_| error)) {
        panic!("a command is shown that does not work: {words:?}: {error}");
    }
}

impl Ui {
    /// Writes to the process's own streams.
    pub(crate) fn standard(settings: Settings) -> Self {
        Self {
            input: Box::new(io::stdin()),
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            settings,
            color: Color::Auto,
            program: PROGRAM.to_owned(),
            place: Where::default(),
            prices: None,
        }
    }

    /// Makes one that writes nothing, to put commands into words with.
    pub(crate) fn silent(&self) -> Self {
        Self {
            input: Box::new(io::empty()),
            out: Box::new(io::sink()),
            err: Box::new(io::sink()),
            settings: self.settings.clone(),
            color: self.color,
            program: self.program.clone(),
            place: self.place.clone(),
            prices: None,
        }
    }

    /// Goes on without a word once nobody reads what is written: work is not given up because a pager was closed.
    pub(crate) fn goes_on_unread(&mut self) {
        for (writer, terminal) in
            [(&mut self.out, self.settings.stdout_is_terminal), (&mut self.err, self.settings.stderr_is_terminal)]
        {
            let inner = std::mem::replace(writer, Box::new(io::sink()));
            *writer = Box::new(Unread { inner, terminal, gone: false });
        }
    }

    /// Says whether progress may have colours.
    pub(crate) const fn colour(&self) -> bool {
        self.coloured(self.settings.stderr_is_terminal)
    }

    /// Says whether data may have colours.
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

    /// Returns how progress may look.
    pub(crate) fn style(&self) -> Style {
        Style { colour: self.colour(), unicode: self.settings.unicode, ..Style::default() }
    }

    /// Returns how many columns data may take.
    pub(crate) fn columns(&self) -> usize {
        if self.settings.stdout_is_terminal { screen::size().0 } else { WIDE }
    }

    /// Returns who acts at this terminal.
    pub(crate) fn actor(&self, by: Option<&str>) -> Actor {
        let by = by.map(str::to_owned).or_else(|| self.settings.user.clone());
        Actor { by, channel: Some("cli".to_owned()), trace: None }
    }

    /// Returns how many columns a line to a person may take.
    pub(crate) fn err_columns(&self) -> usize {
        if self.settings.stderr_is_terminal { screen::size().0 } else { WIDE }
    }

    /// Writes a command of this program as a person would type it, for the runs that this call is about.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let store = self.place.store.as_ref().map(|store| store.to_string_lossy().into_owned());
        let store = store.as_deref().map_or_else(Vec::new, |store| vec!["--store", store]);
        #[cfg(test)]
        assert_works(words);
        let words = words.iter().copied().chain(store).map(shell_word);
        std::iter::once(self.program.clone()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Writes text for people as data; nothing in it can speak to the terminal.
    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        let text = sanitise(text, self.settings.unicode);
        if text.is_empty() { Ok(()) } else { writeln!(self.out, "{}", text.trim_end_matches('\n')) }
    }

    /// Writes an empty line between two pieces of data.
    pub(crate) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes a frame that was made harmless where it was made, and may have colours.
    pub(crate) fn frame(&mut self, frame: &str) -> io::Result<()> {
        self.out.write_all(frame.as_bytes())
    }

    /// Writes a document.
    pub(crate) fn document(&mut self, document: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", harmless_json(&serde_json::to_string_pretty(document)?))
    }

    /// Writes a line of JSON.
    pub(crate) fn json_line(&mut self, document: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", harmless_json(&serde_json::to_string(document)?))
    }

    /// Tells a person lines that are no data, and are not to be broken: there are commands among them.
    pub(crate) fn lines(&mut self, text: &str) -> io::Result<()> {
        let text = sanitise(text, self.settings.unicode);
        writeln!(self.err, "{}", text.trim_end_matches('\n'))
    }

    /// Tells a person something that is no data, such as which cassette is played.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        let columns = if self.settings.stderr_is_terminal { screen::size().0 } else { usize::MAX };
        let ansi = if self.colour() { Ansi::new().dimmed() } else { Ansi::new() };
        for line in wrap(&sanitise(text, self.settings.unicode), columns.saturating_sub(1)) {
            writeln!(self.err, "{ansi}{line}{ansi:#}")?;
        }
        Ok(())
    }

    /// Tells a person why the command did not do what it was asked to do.
    pub(crate) fn failure(&mut self, failure: &Failure) -> io::Result<()> {
        let prose = sanitise(&failure.prose(), self.settings.unicode);
        match prose.strip_prefix("error:").filter(|_| self.colour()) {
            Some(rest) => {
                let ansi = AnsiColor::Red.on_default().bold();
                write!(self.err, "{ansi}error:{ansi:#}{rest}")
            }
            None => write!(self.err, "{prose}"),
        }
    }
}

/// Writes until nobody reads any more, and then nothing.
struct Unread {
    inner: Box<dyn Write + Send>,
    terminal: bool,
    gone: bool,
}

/// What a terminal answers that has gone away, where the system says it by a number alone.
const GONE: i32 = 5;

impl Unread {
    fn heard<T>(&mut self, written: io::Result<T>, unread: T) -> io::Result<T> {
        match written {
            Err(error)
                if error.kind() == io::ErrorKind::BrokenPipe
                    || (self.terminal && error.raw_os_error() == Some(GONE)) =>
            {
                self.gone = true;
                Ok(unread)
            }
            written => written,
        }
    }
}

impl Write for Unread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone {
            return Ok(bytes.len());
        }
        let written = self.inner.write(bytes);
        self.heard(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.heard(flushed, ())
    }
}
