//! What a question looks like, and what keys do to it: a choice, and a line of text.
//!
//! Neither knows a terminal: a key goes in, an answer or a drawing comes out.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::render::text::{one_line, shorten, width, wrap};
use crate::render::{Line, Tone};

/// What a key did to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<T> {
    /// It is still open.
    Open,
    /// This is the answer.
    Answer(T),
    /// Escape.
    Back,
    /// Ctrl-C.
    Interrupted,
}

/// A question as it stands on the screen.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) lines: Vec<Line>,
    /// The line and the column of the cursor; none where there is nothing to write.
    pub(super) cursor: Option<(usize, usize)>,
}

/// A question.
pub(super) trait Field {
    type Answer;

    /// Takes a key.
    fn key(&mut self, key: KeyEvent) -> Step<Self::Answer>;

    /// Takes a text that was pasted.
    fn paste(&mut self, text: &str);

    /// Draws the question in so many columns and rows.
    fn drawn(&self, columns: usize, rows: usize) -> Drawn;

    /// Says the question and its answer, as they stay on the screen.
    fn kept(&self) -> String;
}

/// What stands before a question, and before one that is answered.
const ASKED: &str = "? ";
const ANSWERED: &str = "> ";

/// One of several. None is chosen at first, nor once somebody writes: an Enter that was meant for something else decides
/// nothing.
pub(super) struct Choice {
    message: String,
    choices: Vec<String>,
    at: Option<usize>,
}

impl Choice {
    pub(super) fn new(message: &str, choices: Vec<String>) -> Self {
        Self { message: one_line(message, true), choices, at: None }
    }

    /// Goes to the next one; from none, to the first or the last.
    fn go(&mut self, down: bool) {
        let last = self.choices.len().saturating_sub(1);
        self.at = Some(match (self.at, down) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
        });
    }
}

impl Field for Choice {
    type Answer = usize;

    fn key(&mut self, key: KeyEvent) -> Step<usize> {
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('c'), true) => return Step::Interrupted,
            (KeyCode::Esc, _) => return Step::Back,
            (KeyCode::Char(letter), false) if self.at.is_none() || !matches!(letter, 'j' | 'k') => self.at = None,
            (KeyCode::Enter, _) => {
                if let Some(at) = self.at {
                    return Step::Answer(at);
                }
            }
            (KeyCode::Up | KeyCode::Char('k'), false) | (KeyCode::Char('p'), true) => self.go(false),
            (KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab, false) | (KeyCode::Char('n'), true) => self.go(true),
            (KeyCode::Home, _) => self.at = Some(0),
            (KeyCode::End, _) => self.at = Some(self.choices.len().saturating_sub(1)),
            _ => {}
        }
        Step::Open
    }

    fn paste(&mut self, _: &str) {
        self.at = None;
    }

    fn drawn(&self, columns: usize, rows: usize) -> Drawn {
        let mut lines = message(&self.message, columns);
        // The question and the help have to be seen, too.
        let room = rows.saturating_sub(lines.len() + 1).clamp(1, self.choices.len().max(1));
        let first = self.at.map_or(0, |at| (at + 1).saturating_sub(room));
        for (index, choice) in self.choices.iter().enumerate().skip(first).take(room) {
            let (sign, tone) = if Some(index) == self.at { (ANSWERED, Tone::Active) } else { ("  ", Tone::Plain) };
            lines.push(Line::new(0).with(tone, shorten(&format!("{sign}{}", one_line(choice, true)), columns, true)));
        }
        let how = if self.at.is_none() {
            "nothing is chosen: ↑↓ to move, then Enter"
        } else {
            "↑↓ to move, Enter to choose"
        };
        lines.push(help(how, columns));
        Drawn { lines, cursor: None }
    }

    fn kept(&self) -> String {
        let chosen = self.at.and_then(|at| self.choices.get(at)).map(String::as_str).unwrap_or_default();
        format!("{ANSWERED}{} {}", self.message, one_line(chosen, true))
    }
}

/// Says what is wrong with a text, if anything.
pub(super) type Check = Box<dyn Fn(&str) -> Result<(), String>>;

/// A line of text.
pub(super) struct Text {
    message: String,
    help: String,
    check: Check,
    before: String,
    after: String,
    problem: Option<String>,
}

impl Text {
    pub(super) fn new(message: &str, initial: &str, help: &str, check: Check) -> Self {
        Self {
            // Blanks at the beginning are its indentation.
            message: one_line(message, true),
            help: one_line(help, true),
            check,
            before: initial.to_owned(),
            after: String::new(),
            problem: None,
        }
    }

    fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    fn step_left(&mut self) -> Option<String> {
        let start = self.before.grapheme_indices(true).next_back()?.0;
        Some(self.before.split_off(start))
    }

    fn step_right(&mut self) -> Option<String> {
        let end = self.after.graphemes(true).next()?.len();
        let rest = self.after.split_off(end);
        Some(std::mem::replace(&mut self.after, rest))
    }

    fn controlled(&mut self, letter: char) {
        match letter {
            'a' => self.home(),
            'e' => self.end(),
            'b' => self.left(),
            'f' => self.right(),
            'h' => drop(self.step_left()),
            'd' => drop(self.step_right()),
            'u' => self.before.clear(),
            'k' => self.after.clear(),
            'w' => {
                let kept = self.before.trim_end();
                let start = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                self.before.truncate(start);
            }
            _ => {}
        }
    }

    fn home(&mut self) {
        self.after.insert_str(0, &std::mem::take(&mut self.before));
    }

    fn end(&mut self) {
        self.before.push_str(&std::mem::take(&mut self.after));
    }

    fn left(&mut self) {
        if let Some(grapheme) = self.step_left() {
            self.after.insert_str(0, &grapheme);
        }
    }

    fn right(&mut self) {
        if let Some(grapheme) = self.step_right() {
            self.before.push_str(&grapheme);
        }
    }
}

impl Field for Text {
    type Answer = String;

    fn key(&mut self, key: KeyEvent) -> Step<String> {
        let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Step::Interrupted,
            KeyCode::Esc => return Step::Back,
            KeyCode::Enter => match (self.check)(&self.text()) {
                Ok(()) => return Step::Answer(self.text()),
                Err(problem) => {
                    self.problem = Some(problem);
                    return Step::Open;
                }
            },
            KeyCode::Char(letter) if key.modifiers.contains(KeyModifiers::CONTROL) => self.controlled(letter),
            KeyCode::Char(letter) if !held => self.before.push(letter),
            KeyCode::Backspace => drop(self.step_left()),
            KeyCode::Delete => drop(self.step_right()),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => return Step::Open,
        }
        self.problem = None;
        Step::Open
    }

    fn paste(&mut self, text: &str) {
        self.before.push_str(&text.replace("\r\n", " ").replace(['\r', '\n'], " "));
        self.problem = None;
    }

    fn drawn(&self, columns: usize, rows: usize) -> Drawn {
        let mut lines: Vec<String> = wrap(&format!("{ASKED}{}", self.message), columns);
        let mut line = lines.pop().unwrap_or_default() + " ";
        let mut at = width(&line);
        let mut cursor = None;
        let graphemes = self.before.graphemes(true).map(|piece| (false, piece));
        for (after, piece) in
            graphemes.chain(std::iter::once((true, ""))).chain(self.after.graphemes(true).map(|piece| (false, piece)))
        {
            let seen = one_line(piece, true);
            let seen = if piece == "\n" { "⏎".to_owned() } else { seen };
            if at + width(&seen).max(usize::from(after)) > columns {
                lines.push(std::mem::take(&mut line));
                at = 0;
            }
            if after {
                cursor = Some((lines.len(), at));
            }
            at += width(&seen);
            line.push_str(&seen);
        }
        lines.push(line);
        // Where it is longer than the screen, what stands around the cursor is shown.
        let room = rows.saturating_sub(1).max(1);
        let (row, column) = cursor.unwrap_or_default();
        let first = (row + 1).saturating_sub(room);
        let mut drawn: Vec<Line> =
            lines.into_iter().skip(first).take(room).map(|line| Line::new(0).with(Tone::Plain, line)).collect();
        match &self.problem {
            Some(problem) => drawn.push(Line::new(0).with(Tone::Bad, shorten(&one_line(problem, true), columns, true))),
            None if self.help.is_empty() => {}
            None => drawn.push(help(&self.help, columns)),
        }
        Drawn { lines: drawn, cursor: Some((row - first, column)) }
    }

    fn kept(&self) -> String {
        one_line(&format!("{ANSWERED}{} {}", self.message, self.text()), true)
    }
}

fn message(message: &str, columns: usize) -> Vec<Line> {
    let lines = wrap(&format!("{ASKED}{message}"), columns);
    lines.into_iter().map(|line| Line::new(0).with(Tone::Strong, line)).collect()
}

fn help(text: &str, columns: usize) -> Line {
    Line::new(0).with(Tone::Dim, shorten(&format!("[{text}]"), columns, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Style;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn control(letter: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn shown(field: &impl Field, columns: usize, rows: usize) -> String {
        let drawn = field.drawn(columns, rows);
        let lines: Vec<String> = drawn.lines.iter().map(|line| line.paint(&Style::default())).collect();
        assert!(drawn.lines.iter().all(|line| line.width() <= columns) && drawn.lines.len() <= rows.max(3));
        format!("{}\n{:?}", lines.join("\n"), drawn.cursor)
    }

    fn text(initial: &str) -> Text {
        let check = |text: &str| if text.is_empty() { Err("expected text".to_owned()) } else { Ok(()) };
        Text::new("Amount:", initial, "JSON", Box::new(check))
    }

    #[test]
    fn one_is_chosen_with_arrows_and_enter() {
        let mut choice =
            Choice::new("May deploy run?", ["Approve", "Reject", "Stop the run"].map(str::to_owned).into());

        assert_eq!((choice.key(key(KeyCode::Down)), choice.key(key(KeyCode::Down))), (Step::Open, Step::Open));
        insta::assert_snapshot!(shown(&choice, 20, 10), @r"
        ? May deploy run?
          Approve
        > Reject
          Stop the run
        [↑↓ to move, Enter…
        None
        ");
        assert_eq!(choice.key(key(KeyCode::Enter)), Step::Answer(1));
        assert_eq!(choice.kept(), "> May deploy run? Reject");
        choice.key(key(KeyCode::Down));
        assert!(shown(&choice, 20, 3).contains("> Stop the run"), "what is chosen is seen, however few rows there are");
        choice.key(key(KeyCode::Down));
        assert_eq!(choice.key(key(KeyCode::Enter)), Step::Answer(0));
        assert_eq!((choice.key(key(KeyCode::Esc)), choice.key(control('c'))), (Step::Back, Step::Interrupted));
    }

    #[test]
    fn an_enter_that_comes_before_anything_was_chosen_decides_nothing() {
        let choices = ["Approve", "Reject"].map(str::to_owned);
        let mut choice = Choice::new("May pay run?", choices.clone().into());

        for _ in 0..3 {
            assert_eq!(choice.key(key(KeyCode::Enter)), Step::Open);
        }
        insta::assert_snapshot!(shown(&choice, 60, 10), @r"
        ? May pay run?
          Approve
          Reject
        [nothing is chosen: ↑↓ to move, then Enter]
        None
        ");

        for (towards, chosen) in [(KeyCode::Down, 0), (KeyCode::Tab, 0), (KeyCode::Up, 1), (KeyCode::End, 1)] {
            let mut choice = Choice::new("May pay run?", choices.clone().into());
            choice.key(key(towards));
            assert_eq!(choice.key(key(KeyCode::Enter)), Step::Answer(chosen), "{towards:?}");
        }
    }

    #[test]
    fn whoever_writes_chooses_nothing() {
        let mut choice = Choice::new("May pay run?", ["Approve", "Reject"].map(str::to_owned).into());
        choice.key(key(KeyCode::Down));

        for letter in "just do it".chars() {
            assert_eq!(choice.key(key(KeyCode::Char(letter))), Step::Open);
        }

        assert_eq!(choice.key(key(KeyCode::Enter)), Step::Open);
        assert!(!shown(&choice, 40, 10).contains("> "), "none is marked");
        choice.paste("yes\n");
        assert_eq!(choice.key(key(KeyCode::Enter)), Step::Open);
        assert_eq!(choice.key(key(KeyCode::Up)), Step::Open);
        assert!(matches!(choice.key(key(KeyCode::Enter)), Step::Answer(_)));
    }

    #[test]
    fn a_text_is_edited_as_in_a_shell() {
        let mut field = text("one two");
        let mut typed = |keys: &[KeyEvent]| {
            for key in keys {
                assert_eq!(field.key(*key), Step::Open);
            }
            field.text()
        };

        assert_eq!(typed(&[control('w')]), "one ");
        assert_eq!(typed(&[control('u')]), "", "Ctrl-U takes the line away, and types nothing");
        assert_eq!(typed(&[key(KeyCode::Char('ü')), key(KeyCode::Char('b')), key(KeyCode::Left)]), "üb");
        assert_eq!(typed(&[key(KeyCode::Backspace), key(KeyCode::Char('a'))]), "ab");
        assert_eq!(typed(&[control('a'), control('k')]), "");
        assert_eq!(field.key(key(KeyCode::Enter)), Step::Open);
        insta::assert_snapshot!(shown(&field, 20, 10), @r"
        ? Amount:
        expected text
        Some((0, 10))
        ");
        field.paste("4\r\n2");
        assert_eq!(field.key(key(KeyCode::Enter)), Step::Answer("4 2".to_owned()));
    }

    #[test]
    fn a_long_text_is_broken_and_cannot_speak_to_the_terminal() {
        let field = text("a\u{1b}[2J\u{202e}b\nthe rest of the line");

        insta::assert_snapshot!(shown(&field, 20, 10), @r"
        ? Amount: a␛[2J
        <U+202E>b⏎the rest o
        f the line
        [JSON]
        Some((2, 10))
        ");
        assert!(!field.kept().contains(['\u{1b}', '\u{202e}', '\n']));
    }
}
