//! Fields of a question: a menu, and a text. What keys do to them, and how they are drawn.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{Editor, EditorCommand};
use crate::render::{Frame, Line, Tone, one_line, shorten, width, wrap};

/// What a person entered in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entered {
    /// The choice with this index.
    Choice(usize),
    Text(String),
    /// Escape.
    Back,
}

/// What a key did to a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The field is still open.
    Open,
    Entered(Entered),
    /// Ctrl-C.
    Interrupted,
}

/// A field.
pub(super) trait Field {
    fn key(&mut self, key: KeyEvent) -> Step;

    fn paste(&mut self, text: &str);

    /// Draws the field in so many columns and, where it can be cut, rows.
    fn draw(&self, columns: usize, rows: usize) -> Frame;

    /// Renders the field in one line once it is answered.
    fn answered(&self, entered: &Entered) -> String;
}

/// What stands before an open field, and before one that is answered or chosen.
const ASKED: &str = "? ";
const ANSWERED: &str = "> ";

/// A menu. Nothing is chosen at first, nor after a letter: a key that was meant for something else decides nothing.
pub(super) struct Menu {
    message: String,
    choices: Vec<String>,
    at: Option<usize>,
}

impl Menu {
    pub(super) fn new(message: &str, choices: Vec<String>) -> Self {
        Self { message: one_line(message), choices, at: None }
    }

    /// Moves to the next choice; from none, to the first or the last.
    fn go(&mut self, down: bool) {
        let last = self.choices.len().saturating_sub(1);
        self.at = Some(match (self.at, down) {
            (None, true) => 0,
            (Some(at), true) if at == last => 0,
            (Some(at), true) => at + 1,
            (None | Some(0), false) => last,
            (Some(at), false) => at - 1,
        });
    }
}

impl Field for Menu {
    fn key(&mut self, key: KeyEvent) -> Step {
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('c'), true) => return Step::Interrupted,
            (KeyCode::Esc, _) => return Step::Entered(Entered::Back),
            (KeyCode::Char(letter), false) if self.at.is_none() || !matches!(letter, 'j' | 'k') => self.at = None,
            (KeyCode::Enter, _) => {
                if let Some(at) = self.at {
                    return Step::Entered(Entered::Choice(at));
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

    fn draw(&self, columns: usize, rows: usize) -> Frame {
        let message = wrap(&format!("{ASKED}{}", self.message), columns);
        // The message and the help have to be seen, too.
        let room = rows.saturating_sub(message.len() + 1).clamp(1, self.choices.len().max(1));
        let mut lines: Vec<Line> = message.into_iter().map(|line| Line::new(0).with(Tone::Strong, line)).collect();
        let first = self.at.map_or(0, |at| (at + 1).saturating_sub(room));
        for (index, choice) in self.choices.iter().enumerate().skip(first).take(room) {
            let (sign, tone) = if Some(index) == self.at { (ANSWERED, Tone::Active) } else { ("  ", Tone::Plain) };
            lines.push(Line::new(0).with(tone, shorten(&format!("{sign}{}", one_line(choice)), columns)));
        }
        let help = if self.at.is_none() {
            "nothing is chosen: ↑↓ to move, then Enter"
        } else {
            "↑↓ to move, Enter to choose"
        };
        lines.push(dimmed(help, columns));
        Frame { lines, cursor: None }
    }

    fn answered(&self, entered: &Entered) -> String {
        let chosen = match entered {
            Entered::Choice(at) => self.choices.get(*at),
            Entered::Text(_) | Entered::Back => None,
        };
        format!("{ANSWERED}{} {}", self.message, one_line(chosen.map_or("", String::as_str)))
    }
}

/// Says what is wrong with a text, if anything.
type Check = Box<dyn Fn(&str) -> Result<(), String>>;

/// A text.
pub(super) struct TextField {
    message: String,
    help: String,
    check: Check,
    editor: Editor,
    problem: Option<String>,
}

impl TextField {
    pub(super) fn new(
        message: &str,
        initial: &str,
        help: &str,
        check: impl Fn(&str) -> Result<(), String> + 'static,
    ) -> Self {
        Self {
            message: one_line(message),
            help: one_line(help),
            check: Box::new(check),
            editor: Editor::new(initial),
            problem: None,
        }
    }
}

impl Field for TextField {
    fn key(&mut self, key: KeyEvent) -> Step {
        match self.editor.key(key) {
            Some(EditorCommand::Interrupt) => return Step::Interrupted,
            Some(EditorCommand::Back) => return Step::Entered(Entered::Back),
            Some(EditorCommand::Submit) => match (self.check)(self.editor.text()) {
                Ok(()) => return Step::Entered(Entered::Text(self.editor.text().to_owned())),
                Err(problem) => self.problem = Some(problem),
            },
            Some(_) => {}
            None => self.problem = None,
        }
        Step::Open
    }

    fn paste(&mut self, text: &str) {
        self.editor.paste(text);
        self.problem = None;
    }

    fn draw(&self, columns: usize, rows: usize) -> Frame {
        // Blanks at its beginning are its indentation.
        let mut message = wrap(&format!("{ASKED}{}", self.message), columns);
        let mut prompt = message.pop().unwrap_or_default() + " ";
        if width(&prompt) >= columns {
            message.push(std::mem::take(&mut prompt));
        }
        let room = rows.saturating_sub(message.len() + 1);
        let mut frame = self.editor.draw((Tone::Plain, &prompt), columns, room);
        match &self.problem {
            Some(problem) => {
                frame.lines.push(Line::new(0).with(Tone::Bad, shorten(&one_line(problem), columns)));
            }
            None if self.help.is_empty() => {}
            None => frame.lines.push(dimmed(&self.help, columns)),
        }
        frame.below(message.into_iter().map(|line| Line::new(0).with(Tone::Plain, line.trim_end())).collect())
    }

    fn answered(&self, entered: &Entered) -> String {
        let text = if let Entered::Text(text) = entered { text } else { "" };
        one_line(&format!("{ANSWERED}{} {text}", self.message))
    }
}

fn dimmed(help: &str, columns: usize) -> Line {
    Line::new(0).with(Tone::Dim, shorten(&format!("[{help}]"), columns))
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

    fn draw(field: &impl Field, columns: usize, rows: usize) -> String {
        let frame = field.draw(columns, rows);
        let lines: Vec<String> = frame.lines.iter().map(|line| line.paint(&Style::default())).collect();
        assert!(frame.lines.iter().all(|line| line.width() <= columns) && frame.lines.len() <= rows.max(3));
        format!("{}\n{:?}", lines.join("\n"), frame.cursor)
    }

    fn text(initial: &str) -> TextField {
        let check = |text: &str| if text.is_empty() { Err("expected text".to_owned()) } else { Ok(()) };
        TextField::new("Amount:", initial, "JSON", check)
    }

    fn menu(choices: &[&str]) -> Menu {
        Menu::new("May pay run?", choices.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn arrows_and_enter_choose() {
        let mut menu = menu(&["Approve", "Reject", "Stop the run"]);

        assert_eq!((menu.key(key(KeyCode::Down)), menu.key(key(KeyCode::Down))), (Step::Open, Step::Open));
        insta::assert_snapshot!(draw(&menu, 20, 10), @r"
        ? May pay run?
          Approve
        > Reject
          Stop the run
        [↑↓ to move, Enter…
        None
        ");
        let reject = Entered::Choice(1);
        assert_eq!(menu.answered(&reject), "> May pay run? Reject");
        assert_eq!(menu.key(key(KeyCode::Enter)), Step::Entered(reject));
        menu.key(key(KeyCode::Down));
        assert!(draw(&menu, 20, 3).contains("> Stop the run"), "the chosen line is shown in few rows");
        menu.key(key(KeyCode::Down));
        assert_eq!(menu.key(key(KeyCode::Enter)), Step::Entered(Entered::Choice(0)));
        assert_eq!(menu.key(key(KeyCode::Esc)), Step::Entered(Entered::Back));
        assert_eq!(menu.key(control('c')), Step::Interrupted);
    }

    #[test]
    fn enter_before_a_choice_decides_nothing() {
        let mut open = menu(&["Approve", "Reject"]);
        for _ in 0..3 {
            assert_eq!(open.key(key(KeyCode::Enter)), Step::Open);
        }
        insta::assert_snapshot!(draw(&open, 60, 10), @r"
        ? May pay run?
          Approve
          Reject
        [nothing is chosen: ↑↓ to move, then Enter]
        None
        ");

        for (towards, chosen) in [(KeyCode::Down, 0), (KeyCode::Tab, 0), (KeyCode::Up, 1), (KeyCode::End, 1)] {
            let mut menu = menu(&["Approve", "Reject"]);
            menu.key(key(towards));
            assert_eq!(menu.key(key(KeyCode::Enter)), Step::Entered(Entered::Choice(chosen)), "{towards:?}");
        }
    }

    #[test]
    fn letters_and_pasted_text_clear_the_choice() {
        let mut menu = menu(&["Approve", "Reject"]);
        menu.key(key(KeyCode::Down));

        for letter in "just do it".chars() {
            assert_eq!(menu.key(key(KeyCode::Char(letter))), Step::Open);
        }

        assert_eq!(menu.key(key(KeyCode::Enter)), Step::Open);
        assert!(!draw(&menu, 40, 10).contains("> "), "none is marked");
        menu.paste("yes\n");
        assert_eq!(menu.key(key(KeyCode::Enter)), Step::Open);
        assert_eq!(menu.key(key(KeyCode::Up)), Step::Open);
        assert!(matches!(menu.key(key(KeyCode::Enter)), Step::Entered(_)));
    }

    #[test]
    fn text_is_checked_before_it_is_entered() {
        let mut field = text("one two");

        field.key(control('u'));
        assert_eq!(field.key(key(KeyCode::Enter)), Step::Open);
        insta::assert_snapshot!(draw(&field, 20, 10), @r"
        ? Amount:
        expected text
        Some((0, 10))
        ");
        field.paste("4\r\n2");
        let entered = Entered::Text("4\n2".to_owned());
        assert_eq!(field.answered(&entered), "> Amount: 4 ⏎ 2");
        assert_eq!(field.key(key(KeyCode::Enter)), Step::Entered(entered));
        assert_eq!(field.key(key(KeyCode::Esc)), Step::Entered(Entered::Back));
        assert_eq!(field.key(control('c')), Step::Interrupted);
    }

    #[test]
    fn long_text_is_broken_and_its_control_characters_are_escaped() {
        let field = text("a\u{1b}[2J\u{202e}b\nthe rest of the line");

        insta::assert_snapshot!(draw(&field, 20, 10), @r"
        ? Amount: a␛[2J
          <U+202E>b
          the rest of the li
          ne
        [JSON]
        Some((3, 4))
        ");
        assert!(
            draw(&field, 10, 20).starts_with("? Amount:\na␛"),
            "a message as wide as the window has a row of its own"
        );
        let answered = field.answered(&Entered::Text("a\u{1b}[2J\u{202e}b\nc".to_owned()));
        assert!(!answered.contains(['\u{1b}', '\u{202e}', '\n']));
    }
}
