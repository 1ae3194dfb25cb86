//! What stands below the answer: what was said and is not heard yet, what is waited for, and what is being written.

use positronic_core::record::Status;

use super::ui::ChatUi;
use crate::render::text::{one_line, shorten};
use crate::render::{Foot, Line, Sign, Tone};
use crate::session::pending::{named, question};

/// How many messages are shown that were not heard yet.
const UNHEARD: usize = 3;

impl ChatUi<'_> {
    pub(super) fn foot(&self, columns: usize, rows: usize) -> Foot {
        let unicode = self.live.style().unicode;
        let columns = columns.saturating_sub(1).clamp(2, 200);
        let one = |tone: Tone, text: &str| Line::new(0).with(tone, shorten(&one_line(text, unicode), columns, unicode));
        let mut lines = vec![Line::default()];
        let said = Sign::Said.text(unicode);
        let unheard = self.unheard.iter().map(|opening| one(Tone::Dim, &format!("{said} {}", opening.text)));
        lines.extend(unheard.take(UNHEARD));
        if let Some(later) = self.unheard.len().checked_sub(UNHEARD).filter(|later| *later > 0) {
            lines.push(one(Tone::Dim, &format!("and {later} more to be sent")));
        }
        lines.extend(self.status().map(|status| one(Tone::Warn, &format!("{} {status}", Sign::Waiting.text(unicode)))));
        lines.extend(self.hint.as_ref().map(|hint| one(Tone::Dim, hint)));
        if self.elsewhere && self.is_running() {
            lines.push(one(Tone::Dim, "another process answers; what it says comes in one piece"));
        }
        let hint = if self.is_running() || self.sending.is_some() {
            "Ctrl-C ends the answer"
        } else if self.open {
            "say more, or /pending"
        } else {
            "say something, or /help"
        };
        let room = (rows / 2).max(1);
        let written = self.editor.drawn(hint, columns, room, unicode);
        let above = lines.len();
        lines.extend(written.lines);
        Foot { lines, cursor: written.cursor.map(|(row, column)| (above + row, column)) }
    }

    /// Says what is waited for.
    fn status(&self) -> Option<String> {
        let run = self.run.as_ref().filter(|_| self.open)?;
        if run.status() == Status::Paused {
            let lift = self.desk.words.command(&["resume", run.id().as_str()]);
            return Some(format!("paused; lift it with: {lift}"));
        }
        let first = self.waiting.first()?;
        let more = match self.waiting.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!("{} {}{more} (/pending)", named(first), question(first, self.live.view().currency())))
    }
}
