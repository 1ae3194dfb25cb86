//! The lines that a person writes a message in: what keys do to them, and how they are drawn.
//!
//! It knows no terminal: a key goes in, a step or a drawing comes out. Enter sends, Alt-Enter or Ctrl-J begins a line, the
//! arrow keys walk through the lines and, above the first, through what was written before. A pasted text keeps its lines.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::render::text::{one_line, width};
use crate::render::{Foot, Line, Tone};

/// What a key came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The text has changed, or nothing has.
    Open,
    /// This is to be sent.
    Send(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D where nothing is written.
    Leave,
    /// Ctrl-L.
    Redraw,
    /// Tab.
    Complete,
}

/// What is written, with the cursor between `before` and `after`.
#[derive(Debug, Default)]
pub(super) struct Editor {
    before: String,
    after: String,
    /// What was written earlier, the last at the end.
    past: Vec<String>,
    /// Which of them is shown.
    at: Option<usize>,
    /// What was being written before an earlier text was shown.
    draft: String,
    /// What was cut last.
    cut: String,
}

/// What stands before the first line, and what as wide as it before the others.
const PROMPT: [&str; 2] = ["› ", "> "];
const BELOW: &str = "  ";

impl Editor {
    pub(super) fn new(past: Vec<String>) -> Self {
        Self { past, ..Self::default() }
    }

    pub(super) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Writes something else, with the cursor at its end.
    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.before);
        self.after.clear();
    }

    /// Takes a text that was pasted.
    pub(super) fn paste(&mut self, text: &str) {
        self.before.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Char(letter) if control && !alt => return self.controlled(letter),
            KeyCode::Char('b') if alt => self.word_left(),
            KeyCode::Char('f') if alt => self.word_right(),
            KeyCode::Char('d') if alt => self.cut = self.word_after(),
            KeyCode::Char(letter) if !alt => self.before.push(letter),
            KeyCode::Enter if alt || shift => self.before.push('\n'),
            // A backslash at the end of a line breaks it, as in a shell.
            KeyCode::Enter if self.after.is_empty() && self.before.ends_with('\\') => {
                self.before.pop();
                self.before.push('\n');
            }
            KeyCode::Enter => return self.send(),
            KeyCode::Tab => return Step::Complete,
            KeyCode::Backspace if alt || control => self.cut = self.word_before(),
            KeyCode::Backspace => drop(self.step_left()),
            KeyCode::Delete => drop(self.step_right()),
            KeyCode::Left if alt || control => self.word_left(),
            KeyCode::Right if alt || control => self.word_right(),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => {}
        }
        Step::Open
    }

    fn controlled(&mut self, letter: char) -> Step {
        match letter {
            'c' => return Step::Interrupt,
            'd' if self.is_empty() => return Step::Leave,
            'l' => return Step::Redraw,
            'j' => self.before.push('\n'),
            'a' => self.home(),
            'e' => self.end(),
            'b' => self.left(),
            'f' => self.right(),
            'p' => self.up(),
            'n' => self.down(),
            'h' => drop(self.step_left()),
            'd' => drop(self.step_right()),
            'u' => {
                let start = self.before.rfind('\n').map_or(0, |at| at + 1);
                self.cut = self.before.split_off(start);
            }
            'k' => {
                let end = self.after.find('\n').unwrap_or(self.after.len());
                let rest = self.after.split_off(end);
                self.cut = std::mem::replace(&mut self.after, rest);
            }
            'w' => self.cut = self.word_before(),
            'y' => self.before.push_str(&self.cut),
            _ => {}
        }
        Step::Open
    }

    fn send(&mut self) -> Step {
        let text = self.text();
        self.set("");
        self.at = None;
        if text.trim().is_empty() {
            return Step::Open;
        }
        if self.past.last() != Some(&text) {
            self.past.push(text.clone());
        }
        Step::Send(text)
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

    fn home(&mut self) {
        let start = self.before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.before.split_off(start);
        self.after.insert_str(0, &line);
    }

    fn end(&mut self) {
        let end = self.after.find('\n').unwrap_or(self.after.len());
        let rest = self.after.split_off(end);
        self.before.push_str(&std::mem::replace(&mut self.after, rest));
    }

    /// Takes the word before the cursor, with the blanks behind it.
    fn word_before(&mut self) -> String {
        let kept = self.before.trim_end();
        let start = kept.char_indices().rev().find(|(_, letter)| letter.is_whitespace());
        let start = start.map_or(0, |(at, letter)| at + letter.len_utf8());
        self.before.split_off(start)
    }

    /// Takes the word after the cursor, with the blanks before it.
    fn word_after(&mut self) -> String {
        let blanks = self.after.len() - self.after.trim_start().len();
        let word = self.after.get(blanks..).unwrap_or_default();
        let end = blanks + word.find(char::is_whitespace).unwrap_or(word.len());
        let rest = self.after.split_off(end);
        std::mem::replace(&mut self.after, rest)
    }

    fn word_left(&mut self) {
        let word = self.word_before();
        self.after.insert_str(0, &word);
    }

    fn word_right(&mut self) {
        let word = self.word_after();
        self.before.push_str(&word);
    }

    fn up(&mut self) {
        match self.before.rfind('\n') {
            Some(line) => {
                let column = width(self.before.get(line + 1..).unwrap_or_default());
                self.home();
                self.left();
                self.home();
                self.go_to_column(column);
            }
            None => {
                let earlier = self.at.unwrap_or(self.past.len()).checked_sub(1);
                if let Some(text) = earlier.and_then(|at| self.past.get(at)).cloned() {
                    if self.at.is_none() {
                        self.draft = self.text();
                    }
                    self.at = earlier;
                    self.set(&text);
                }
            }
        }
    }

    fn down(&mut self) {
        if self.after.contains('\n') {
            let line = self.before.rfind('\n').map_or(0, |at| at + 1);
            let column = width(self.before.get(line..).unwrap_or_default());
            self.end();
            self.right();
            self.go_to_column(column);
        } else if let Some(at) = self.at {
            let later = self.past.get(at + 1).cloned();
            self.at = later.is_some().then_some(at + 1);
            let text = later.unwrap_or_else(|| std::mem::take(&mut self.draft));
            self.set(&text);
        }
    }

    /// Goes from the beginning of a line to a column of it.
    fn go_to_column(&mut self, column: usize) {
        let mut at = 0;
        while at < column && self.after.graphemes(true).next().is_some_and(|next| next != "\n") {
            at += self.after.graphemes(true).next().map_or(0, width);
            self.right();
        }
    }

    /// Draws the text in so many columns and rows, with a hint where nothing is written.
    pub(super) fn drawn(&self, hint: &str, columns: usize, rows: usize, unicode: bool) -> Foot {
        let prompt = if unicode { PROMPT[0] } else { PROMPT[1] };
        let columns = columns.max(4);
        if self.is_empty() {
            let hint = crate::render::text::shorten(hint, columns.saturating_sub(3), unicode);
            let line = Line::new(0).with(Tone::Active, prompt).with(Tone::Dim, hint);
            return Foot { lines: vec![line], cursor: Some((0, width(prompt))) };
        }
        let mut lines = vec![String::new()];
        let mut at = width(prompt);
        let mut cursor = (0, at);
        let pieces = self.before.graphemes(true).map(|piece| (false, piece));
        let after = self.after.graphemes(true).map(|piece| (false, piece));
        for (is_cursor, piece) in pieces.chain(std::iter::once((true, ""))).chain(after) {
            // What would move the cursor is drawn as a sign.
            let seen = if piece == "\n" { String::new() } else { one_line(piece, unicode) };
            if piece == "\n" || at + width(&seen).max(usize::from(is_cursor)) > columns {
                lines.push(String::new());
                at = width(BELOW);
            }
            if is_cursor {
                cursor = (lines.len() - 1, at);
            }
            at += width(&seen);
            if let Some(line) = lines.last_mut() {
                line.push_str(&seen);
            }
        }
        // Where there are more than rows, those around the cursor are shown.
        let rows = rows.max(1);
        let first = (cursor.0 + 1).saturating_sub(rows);
        let drawn = lines.into_iter().enumerate().skip(first).take(rows).map(|(index, text)| {
            let sign = if index == 0 { prompt } else { BELOW };
            Line::new(0).with(Tone::Active, sign).with(Tone::Plain, text)
        });
        Foot { lines: drawn.collect(), cursor: Some((cursor.0 - first, cursor.1)) }
    }
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

    fn alt(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::ALT)
    }

    /// Types keys, and returns the text with the cursor in it.
    fn typed(editor: &mut Editor, keys: &[KeyEvent]) -> String {
        for key in keys {
            assert_eq!(editor.key(*key), Step::Open);
        }
        format!("{}|{}", editor.before, editor.after)
    }

    fn drawn(editor: &Editor, columns: usize, rows: usize) -> String {
        let foot = editor.drawn("say something", columns, rows, true);
        let lines: Vec<String> = foot.lines.iter().map(|line| line.paint(&Style::default())).collect();
        format!("{}\n{:?}", lines.join("\n"), foot.cursor)
    }

    #[test]
    fn a_text_is_edited_as_in_a_shell() {
        let mut editor = Editor::default();
        editor.set("one two three");

        assert_eq!(typed(&mut editor, &[control('w'), alt(KeyCode::Char('b'))]), "one |two ");
        assert_eq!(typed(&mut editor, &[control('k'), control('a'), control('y')]), "two |one ");
        assert_eq!(typed(&mut editor, &[alt(KeyCode::Char('d'))]), "two | ");
        assert_eq!(typed(&mut editor, &[control('u'), control('d')]), "|");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Char('ü')), key(KeyCode::Left), key(KeyCode::Delete)]), "|");
        assert_eq!(editor.key(control('d')), Step::Leave);
    }

    #[test]
    fn a_cluster_of_signs_is_one_step_and_as_wide_as_it_looks() {
        let mut editor = Editor::default();
        editor.set("a👩‍👩‍👧文");

        assert_eq!(drawn(&editor, 20, 5), "› a👩‍👩‍👧文\nSome((0, 7))");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Backspace), key(KeyCode::Backspace)]), "a|");
    }

    #[test]
    fn enter_sends_and_a_break_is_asked_for() {
        let mut editor = Editor::default();
        let mut write = |text: &str, enter: KeyEvent| {
            editor.set(text);
            editor.key(enter)
        };

        assert_eq!(write("hello", key(KeyCode::Enter)), Step::Send("hello".to_owned()));
        assert_eq!(write("  ", key(KeyCode::Enter)), Step::Open, "blanks are nothing to say");
        assert_eq!(write("one", alt(KeyCode::Enter)), Step::Open);
        assert_eq!(editor.text(), "one\n");
        editor.set("two\\");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Enter), control('j')]), "two\n\n|");
    }

    #[test]
    fn a_pasted_text_keeps_its_lines_and_is_walked_through() {
        let mut editor = Editor::new(vec!["earlier".to_owned()]);
        editor.paste("first line\r\nsecond\rthird");

        assert_eq!(typed(&mut editor, &[key(KeyCode::Up), key(KeyCode::Up)]), "first| line\nsecond\nthird");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Down), key(KeyCode::End)]), "first line\nsecond|\nthird");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Up), key(KeyCode::Up)]), "earlier|");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Down)]), "first line\nsecond\nthird|", "the draft comes back");
    }

    #[test]
    fn what_was_written_is_found_again() {
        let mut editor = Editor::new(vec!["one".to_owned(), "two".to_owned()]);
        editor.set("three");
        assert_eq!(editor.key(key(KeyCode::Enter)), Step::Send("three".to_owned()));

        let up = key(KeyCode::Up);
        assert_eq!(typed(&mut editor, &[up, up, up, up]), "one|");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Down)]), "two|");
        assert_eq!(typed(&mut editor, &[key(KeyCode::Down), key(KeyCode::Down)]), "|");
    }

    #[test]
    fn a_long_text_is_broken_and_what_stands_around_the_cursor_is_shown() {
        let mut editor = Editor::default();
        assert_eq!(drawn(&editor, 30, 3), "› say something\nSome((0, 2))");
        editor.set("abcdefgh\u{1b}[2J\nnext");

        assert_eq!(drawn(&editor, 8, 9), "› abcdef\n  gh␛[2J\n  next\nSome((2, 6))");
        assert_eq!(drawn(&editor, 8, 2), "  gh␛[2J\n  next\nSome((1, 6))");
    }
}
