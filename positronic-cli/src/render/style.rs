//! Style of a frame: columns, colour, signs and height.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Ansi};

use super::preview::Graphics;
use super::text::{printable, width};

/// The capabilities of the medium, and the limits of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Maximum columns of a line; 20 to 200 look well.
    pub(crate) width: usize,
    /// Whether colours may be used.
    pub(crate) colour: bool,
    /// Whether signs beyond ASCII may be used.
    pub(crate) unicode: bool,
    /// Maximum lines of the frame; a note replaces the rest.
    pub(crate) height: Option<usize>,
    /// Maximum lines of the result at the end; 0 hides it.
    pub(crate) result_lines: usize,
    /// Number of visible lines of a streaming answer.
    pub(crate) stream_lines: usize,
    /// How the terminal shows images; `None` if it cannot.
    pub(crate) graphics: Option<Graphics>,
}

impl Default for Style {
    fn default() -> Self {
        let (result_lines, stream_lines) = (20, 12);
        Self { width: 80, colour: false, unicode: true, height: None, result_lines, stream_lines, graphics: None }
    }
}

/// Meaning of a piece of a line, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Dim,
    Strong,
    Good,
    Bad,
    Warn,
    Active,
}

impl Tone {
    const fn ansi(self) -> Ansi {
        match self {
            Self::Plain => Ansi::new(),
            Self::Dim => Ansi::new().dimmed(),
            Self::Strong => Ansi::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Active => AnsiColor::Cyan.on_default(),
        }
    }
}

/// A line of a frame: pieces of escaped text with their tones, or an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pieces: Vec<(Tone, String)>,
    /// The escape sequences of an image and its rows. Such a line is only printed where it scrolls away.
    image: Option<String>,
}

impl Line {
    pub(crate) fn new(indent: usize) -> Self {
        let pieces = if indent == 0 { Vec::new() } else { vec![(Tone::Plain, " ".repeat(indent))] };
        Self { pieces, image: None }
    }

    /// Creates the lines of a preview.
    pub(crate) const fn image(escapes: String) -> Self {
        Self { pieces: Vec::new(), image: Some(escapes) }
    }

    #[must_use]
    pub(crate) fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, text.into()));
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| width(text)).sum()
    }

    /// Renders the line, with the colours of the style.
    pub(crate) fn paint(&self, style: &Style) -> String {
        if let Some(image) = &self.image {
            return image.clone();
        }
        let mut painted = String::new();
        for (tone, text) in &self.pieces {
            let ansi = tone.ansi();
            let text = printable(text.clone(), style.unicode);
            if style.colour && *tone != Tone::Plain && !text.is_empty() {
                _ = write!(painted, "{ansi}{text}{ansi:#}");
            } else {
                painted.push_str(&text);
            }
        }
        if !style.colour {
            painted.truncate(painted.trim_end().len());
        }
        painted
    }
}

/// The signs in front of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Ahead,
    Spinner(u64),
    Waiting,
    Done,
    Failed,
    Denied,
    Cut,
    Limited,
    Scrolled,
    Result,
    Retry,
    Said,
    Output,
}

impl Sign {
    pub(crate) fn text(self) -> &'static str {
        const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        match self {
            Self::Ahead => "○",
            Self::Spinner(turn) => usize::try_from(turn % 10).ok().and_then(|turn| SPINNER.get(turn)).unwrap_or(&" "),
            Self::Waiting => "⏸",
            Self::Done => "✓",
            Self::Failed => "✗",
            Self::Denied => "⊘",
            Self::Cut => "■",
            Self::Limited => "◌",
            Self::Scrolled => "▸",
            Self::Result => "→",
            Self::Retry => "↻",
            Self::Said => "›",
            Self::Output => "▪",
        }
    }
}
