//! Text editor with the keys of a shell: what keys do to a text, and how the text is drawn.
//!
//! It does no I/O: a key goes in, an [`EditorCommand`] or a frame comes out. The input of a chat and the questions for a text use it.
//! A step is a grapheme cluster, so that a key never leaves half an emoji, and a pasted text keeps its lines.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::render::{Frame, Line, Tone, one_line, width};

/// What the owner of an editor has to do about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorCommand {
    /// Enter.
    Submit,
    /// Escape.
    Back,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D in an empty editor.
    EndOfInput,
    /// Ctrl-L.
    Redraw,
    /// Tab.
    Complete,
    /// Up in the first line.
    Previous,
    /// Down in the last line.
    Next,
}

/// Where a key moves the cursor, or how far it deletes.
#[derive(Clone, Copy)]
enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

/// A text with a cursor.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// The cursor's byte index.
    cursor: usize,
    /// The text that was cut last.
    cut: String,
}

/// What stands before lines after the first one.
const INDENT: &str = "  ";

impl Editor {
    /// Creates an editor of a text, with the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), cut: String::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text, with the cursor at its end, and returns the old one.
    pub(crate) fn replace(&mut self, text: &str) -> String {
        self.cursor = text.len();
        std::mem::replace(&mut self.text, text.to_owned())
    }

    /// Replaces a backslash at the end with a line break, as a shell does; returns whether there was one.
    pub(crate) fn break_line(&mut self) -> bool {
        let ends = self.cursor == self.text.len() && self.text.ends_with('\\');
        if ends {
            self.delete(Motion::Left);
            self.insert("\n");
        }
        ends
    }

    /// Inserts a pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Handles a key; returns a command where the owner has to act.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<EditorCommand> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Char(letter) if control && !alt => return self.control(letter),
            KeyCode::Char('b') if alt => self.go(Motion::WordLeft),
            KeyCode::Char('f') if alt => self.go(Motion::WordRight),
            KeyCode::Char('d') if alt => self.cut(Motion::WordRight),
            KeyCode::Char(letter) if !alt => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Enter if alt || shift => self.insert("\n"),
            KeyCode::Enter => return Some(EditorCommand::Submit),
            KeyCode::Esc => return Some(EditorCommand::Back),
            KeyCode::Tab => return Some(EditorCommand::Complete),
            KeyCode::Backspace if alt || control => self.cut(Motion::WordLeft),
            KeyCode::Backspace => drop(self.delete(Motion::Left)),
            KeyCode::Delete => drop(self.delete(Motion::Right)),
            KeyCode::Left if alt || control => self.go(Motion::WordLeft),
            KeyCode::Right if alt || control => self.go(Motion::WordRight),
            KeyCode::Left => self.go(Motion::Left),
            KeyCode::Right => self.go(Motion::Right),
            KeyCode::Home => self.go(Motion::LineStart),
            KeyCode::End => self.go(Motion::LineEnd),
            KeyCode::Up => return self.up(),
            KeyCode::Down => return self.down(),
            _ => {}
        }
        None
    }

    fn control(&mut self, letter: char) -> Option<EditorCommand> {
        match letter {
            'c' => return Some(EditorCommand::Interrupt),
            'd' if self.is_empty() => return Some(EditorCommand::EndOfInput),
            'l' => return Some(EditorCommand::Redraw),
            'p' => return self.up(),
            'n' => return self.down(),
            'j' => self.insert("\n"),
            'a' => self.go(Motion::LineStart),
            'e' => self.go(Motion::LineEnd),
            'b' => self.go(Motion::Left),
            'f' => self.go(Motion::Right),
            'h' => drop(self.delete(Motion::Left)),
            'd' => drop(self.delete(Motion::Right)),
            'u' => self.cut(Motion::LineStart),
            'k' => self.cut(Motion::LineEnd),
            'w' => self.cut(Motion::WordLeft),
            'y' => self.insert(&self.cut.clone()),
            _ => {}
        }
        None
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn go(&mut self, motion: Motion) {
        self.cursor = self.target(motion);
    }

    fn delete(&mut self, motion: Motion) -> String {
        let target = self.target(motion);
        let range = target.min(self.cursor)..target.max(self.cursor);
        self.cursor = range.start;
        self.text.drain(range).collect()
    }

    fn cut(&mut self, motion: Motion) {
        self.cut = self.delete(motion);
    }

    /// Returns where a motion leads to.
    fn target(&self, motion: Motion) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        match motion {
            Motion::Left => before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
            Motion::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Motion::WordLeft => {
                let blank = before.trim_end().char_indices().rev().find(|(_, letter)| letter.is_whitespace());
                blank.map_or(0, |(at, letter)| at + letter.len_utf8())
            }
            Motion::WordRight => {
                let word = after.trim_start();
                self.text.len() - word.len() + word.find(char::is_whitespace).unwrap_or(word.len())
            }
            Motion::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Motion::LineEnd => self.cursor + after.find('\n').unwrap_or(after.len()),
        }
    }

    fn up(&mut self) -> Option<EditorCommand> {
        let (line, column) = self.column();
        let Some(end) = line.checked_sub(1) else { return Some(EditorCommand::Previous) };
        let above = self.text.get(..end).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
        self.cursor = self.at_column(above, column);
        None
    }

    fn down(&mut self) -> Option<EditorCommand> {
        let (_, column) = self.column();
        let end = self.target(Motion::LineEnd);
        if end == self.text.len() {
            return Some(EditorCommand::Next);
        }
        self.cursor = self.at_column(end + 1, column);
        None
    }

    /// Returns where the cursor's line begins, and the cursor's column in it.
    fn column(&self) -> (usize, usize) {
        let line = self.target(Motion::LineStart);
        (line, width(self.text.get(line..self.cursor).unwrap_or_default()))
    }

    /// Returns the byte index of a column in the line that begins at `line`, or that of its end.
    fn at_column(&self, line: usize, column: usize) -> usize {
        let (mut at, mut passed) = (line, 0);
        for piece in self.text.get(line..).unwrap_or_default().graphemes(true) {
            if passed >= column || piece == "\n" {
                break;
            }
            passed += width(piece);
            at += piece.len();
        }
        at
    }

    /// Draws the text behind a prompt, in so many columns and rows: those around the cursor where there are too few rows.
    pub(crate) fn draw(&self, prompt: (Tone, &str), columns: usize, rows: usize) -> Frame {
        let mut lines = vec![String::new()];
        let mut at = width(prompt.1);
        let mut cursor = (0, at);
        let (before, after) = self.text.split_at(self.cursor);
        let pieces = before.graphemes(true).map(|piece| (false, piece));
        let after = after.graphemes(true).map(|piece| (false, piece));
        for (is_cursor, piece) in pieces.chain(std::iter::once((true, ""))).chain(after) {
            // A control character is drawn as a sign.
            let seen = if piece == "\n" { String::new() } else { one_line(piece) };
            if piece == "\n" || at + width(&seen).max(usize::from(is_cursor)) > columns {
                lines.push(String::new());
                at = width(INDENT);
            }
            if is_cursor {
                cursor = (lines.len() - 1, at);
            }
            at += width(&seen);
            if let Some(line) = lines.last_mut() {
                line.push_str(&seen);
            }
        }
        let rows = rows.max(1);
        let first = (cursor.0 + 1).saturating_sub(rows);
        let drawn = lines.into_iter().enumerate().skip(first).take(rows).map(|(index, text)| {
            let (tone, prefix) = if index == 0 { prompt } else { (Tone::Plain, INDENT) };
            Line::new(0).with(tone, prefix).with(Tone::Plain, text)
        });
        Frame { lines: drawn.collect(), cursor: Some((cursor.0 - first, cursor.1)) }
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

    /// Types keys that edit, and returns the text with a bar for the cursor.
    fn type_keys(editor: &mut Editor, keys: &[KeyEvent]) -> String {
        for key in keys {
            assert_eq!(editor.key(*key), None);
        }
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    fn draw(editor: &Editor, columns: usize, rows: usize) -> String {
        let frame = editor.draw((Tone::Active, "› "), columns, rows);
        let lines: Vec<String> = frame.lines.iter().map(|line| line.paint(&Style::default())).collect();
        format!("{}\n{:?}", lines.join("\n"), frame.cursor)
    }

    #[test]
    fn keys_edit_as_in_a_shell() {
        let mut editor = Editor::new("one two three");

        assert_eq!(type_keys(&mut editor, &[control('w'), alt(KeyCode::Char('b'))]), "one |two ");
        assert_eq!(type_keys(&mut editor, &[control('k'), control('a'), control('y')]), "two |one ");
        assert_eq!(type_keys(&mut editor, &[alt(KeyCode::Char('d'))]), "two | ");
        assert_eq!(type_keys(&mut editor, &[control('u'), control('d')]), "|");
        assert_eq!(type_keys(&mut editor, &[key(KeyCode::Char('ü')), key(KeyCode::Left), key(KeyCode::Delete)]), "|");
    }

    #[test]
    fn keys_of_the_owner_are_commands() {
        let mut editor = Editor::default();
        let commands = [
            (key(KeyCode::Enter), EditorCommand::Submit),
            (key(KeyCode::Esc), EditorCommand::Back),
            (key(KeyCode::Tab), EditorCommand::Complete),
            (key(KeyCode::Up), EditorCommand::Previous),
            (control('n'), EditorCommand::Next),
            (control('c'), EditorCommand::Interrupt),
            (control('l'), EditorCommand::Redraw),
            (control('d'), EditorCommand::EndOfInput),
        ];

        for (key, command) in commands {
            assert_eq!(editor.key(key), Some(command));
        }
        assert_eq!(type_keys(&mut editor, &[alt(KeyCode::Enter), control('j'), control('d')]), "\n\n|");
    }

    #[test]
    fn grapheme_cluster_is_one_step_and_has_its_width() {
        let mut editor = Editor::new("a👩‍👩‍👧文");

        assert_eq!(draw(&editor, 20, 5), "› a👩‍👩‍👧文\nSome((0, 7))");
        assert_eq!(type_keys(&mut editor, &[key(KeyCode::Backspace), key(KeyCode::Backspace)]), "a|");
    }

    #[test]
    fn pasted_text_keeps_its_lines_and_arrows_move_between_them() {
        let mut editor = Editor::default();
        editor.paste("first line\r\nsecond\rthird");

        assert_eq!(type_keys(&mut editor, &[key(KeyCode::Up), key(KeyCode::Up)]), "first| line\nsecond\nthird");
        assert_eq!(editor.key(key(KeyCode::Up)), Some(EditorCommand::Previous));
        assert_eq!(type_keys(&mut editor, &[key(KeyCode::Down), key(KeyCode::End)]), "first line\nsecond|\nthird");
        assert_eq!(type_keys(&mut editor, &[key(KeyCode::Down)]), "first line\nsecond\nthird|");
    }

    #[test]
    fn long_text_is_broken_and_the_rows_around_the_cursor_are_drawn() {
        let editor = Editor::new("abcdefgh\u{1b}[2J\nnext");

        assert_eq!(draw(&editor, 8, 9), "› abcdef\n  gh␛[2J\n  next\nSome((2, 6))");
        assert_eq!(draw(&editor, 8, 2), "  gh␛[2J\n  next\nSome((1, 6))");
    }
}
