//! Where a command writes: data to one writer, everything else to the other.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Ansi};

use crate::cli::Color;
use crate::display::Style;
use crate::display::text::{sanitise, wrap};
use crate::failure::Failure;
use crate::screen;
use crate::settings::Settings;

/// The framework's own command.
pub(crate) const PROGRAM: &str = "positronic";

/// The writers of a command, and how they may look.
pub(crate) struct Ui {
    /// Takes data alone: results, lists, events.
    pub(crate) out: Box<dyn Write + Send>,
    /// Takes everything that is said to a person.
    pub(crate) err: Box<dyn Write + Send>,
    pub(crate) settings: Settings,
    pub(crate) color: Color,
    /// What the command is called.
    pub(crate) program: String,
}

impl Ui {
    /// Writes to the process's own streams.
    pub(crate) fn standard(settings: Settings) -> Self {
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            settings,
            color: Color::Auto,
            program: PROGRAM.to_owned(),
        }
    }

    /// Says whether progress may have colours.
    pub(crate) const fn colour(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => self.settings.stderr_is_terminal && !self.settings.no_color && !self.settings.dumb,
        }
    }

    /// Returns how progress may look.
    pub(crate) fn style(&self) -> Style {
        Style { colour: self.colour(), unicode: self.settings.unicode, ..Style::default() }
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
