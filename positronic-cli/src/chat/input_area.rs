//! Input area of a chat at a terminal: what stands below the answer.

use super::state::{ChatState, Phase};
use crate::render::{Frame, Line, Sign, Tone, one_line, shorten, words};
use crate::session::{asking_party, question_text};

/// How many messages that no run has received yet are shown.
const UNHEARD: usize = 3;

impl ChatState {
    /// Draws what stands below the answer; returns the lines that scroll away above it, too.
    pub(super) fn draw(&mut self, currency: Option<&str>, (columns, rows): (usize, usize)) -> (Vec<Line>, Frame) {
        let columns = columns.saturating_sub(1).clamp(2, 200);
        if let Some(question) = &mut self.question {
            return question.draw(columns, rows);
        }
        let one = |tone: Tone, text: &str| Line::new(0).with(tone, shorten(&one_line(text), columns));
        let mut lines = vec![Line::default()];
        let said = Sign::Said.text();
        let unheard = self
            .unheard
            .iter()
            .map(|opening| one(Tone::Dim, &format!("{said} {}", words::message(&opening.text, &opening.files))));
        lines.extend(unheard.take(UNHEARD));
        if let Some(later) = self.unheard.len().checked_sub(UNHEARD).filter(|later| *later > 0) {
            lines.push(one(Tone::Dim, &format!("and {later} more to be sent")));
        }
        let status = self.status(currency);
        lines.extend(status.map(|status| one(Tone::Warn, &format!("{} {status}", Sign::Waiting.text()))));
        lines.extend(self.attached.line().map(|line| one(Tone::Dim, &format!("{} {line}", Sign::Output.text()))));
        lines.extend(self.hint.as_ref().map(|hint| one(Tone::Dim, hint)));
        let is_running = matches!(self.phase, Phase::Running);
        if self.is_elsewhere && is_running {
            lines.push(one(Tone::Dim, "another process answers; its text appears in one piece"));
        }
        let help = if is_running || self.sending.is_some() {
            "Ctrl-C ends the answer"
        } else if self.is_open() {
            "say more, or /pending"
        } else {
            "say something, or /help"
        };
        let mut input = self.editor.draw((Tone::Active, &format!("{said} ")), columns.max(4), (rows / 2).max(1));
        if self.editor.is_empty()
            && let Some(line) = input.lines.first_mut()
        {
            *line = std::mem::take(line).with(Tone::Dim, shorten(help, columns.saturating_sub(3)));
        }
        // The answer has a row above, and a frame leaves one free.
        lines.drain(..lines.len().saturating_sub(rows.saturating_sub(input.lines.len() + 2)));
        (Vec::new(), input.below(lines))
    }

    /// Says what the run waits for.
    fn status(&self, currency: Option<&str>) -> Option<String> {
        match &self.phase {
            Phase::Paused => Some(format!("paused; lift it with: {}", self.resume)),
            Phase::Waiting(pending) => {
                let first = pending.first()?;
                let more = match pending.len() - 1 {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                Some(format!("{} {}{more} (/pending)", asking_party(first), question_text(first, currency)))
            }
            Phase::Over | Phase::Running => None,
        }
    }
}
