use std::io;

use positronic_core::record::{DeltaKind, LoopOutcome, StageKind, Timestamp};
use serde_json::{Value, json};

use super::tests::stories::{self, Beat, Story};
use super::{Frame, Line, Live, Style, Tone, render};

/// A terminal in memory with its scrollback.
struct Terminal(vt100::Parser);

impl io::Write for &mut Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Terminal {
    fn new(columns: u16, rows: u16) -> Self {
        Self(vt100::Parser::new(rows, columns, 1_000))
    }

    fn screen(&self) -> String {
        self.0.screen().contents()
    }

    /// Returns the scrollback and the screen.
    fn all(&mut self) -> String {
        let (rows, columns) = self.0.screen().size();
        self.0.screen_mut().set_scrollback(usize::MAX);
        let history = self.0.screen().scrollback();
        let mut lines: Vec<String> = Vec::new();
        let mut offset = history;
        loop {
            self.0.screen_mut().set_scrollback(offset);
            let rows: Vec<String> = self.0.screen().rows(0, columns).collect();
            if offset == 0 {
                lines.extend(rows);
                break;
            }
            let step = offset.min(usize::from(self.0.screen().size().0));
            lines.extend(rows.into_iter().take(step));
            offset -= step;
        }
        let _ = rows;
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
    }
}

fn play(live: &mut Live<impl io::Write>, story: &Story, size: (usize, usize)) {
    for beat in &story.beats {
        match beat {
            Beat::Event(event) => {
                live.event(event);
                live.tick(event.at, size.0, size.1).unwrap();
            }
            Beat::Delta(delta) => live.delta(delta),
        }
    }
    live.tick(story.now(), size.0, size.1).unwrap();
}

/// Many iterations of one call each.
fn long(iterations: u32) -> Story {
    let mut story = Story::default()
        .brain("", "Counter", Value::Null, &[("Count", StageKind::Loop), ("Report", StageKind::Step)])
        .loop_start("Count", None);
    for iteration in 0..iterations {
        let (at, call) = (format!("Count/{iteration}"), format!("Count/{iteration}.0"));
        story = story
            .ask(&at)
            .delta(&at, DeltaKind::Text, "One ")
            .answer(&at, &format!("One more, number {iteration}."), 1)
            .call(&call, "count", json!({"to": iteration}))
            .run(&call)
            .ok(&call, 5, json!(iteration));
    }
    story
}

#[test]
fn short_run_ends_as_the_complete_frame() {
    let mut terminal = Terminal::new(81, 30);
    let mut live = Live::new(&mut terminal, Style::default(), 81, 30);
    let story = stories::tools();
    play(&mut live, &story, (81, 30));
    let frame = render(live.view(), &Style { width: 80, ..Style::default() });
    live.finish().unwrap();
    drop(live);

    assert_eq!(terminal.screen(), frame.trim_end());
    assert!(!terminal.0.screen().hide_cursor());
}

#[test]
fn long_run_scrolls_into_the_history() {
    let mut terminal = Terminal::new(60, 12);
    let mut live = Live::new(&mut terminal, Style::default(), 60, 12);
    play(&mut live, &long(12), (60, 12));
    insta::assert_snapshot!("long_while_it_runs", terminal_of(&mut live));
    let mut ended = Story::default().after(40_000).loop_complete("Count", LoopOutcome::Answered);
    ended = ended.step("Report", 3).complete("", json!({"count": 12}));
    play(&mut live, &ended, (60, 12));
    live.finish().unwrap();
    drop(live);

    insta::assert_snapshot!("long_in_history", terminal.all());
}

fn terminal_of(live: &mut Live<&mut Terminal>) -> String {
    live.writer().screen()
}

#[test]
fn resize_leaves_no_artifacts() {
    let mut terminal = Terminal::new(100, 20);
    let mut live = Live::new(&mut terminal, Style::default(), 100, 20);
    let story = stories::pending();
    play(&mut live, &story, (100, 20));
    // This terminal cuts lines when it is made narrower, others wrap them; growing again wraps nothing.
    live.writer().0.screen_mut().set_size(20, 120);
    live.tick(story.now(), 120, 20).unwrap();
    let screen = terminal_of(&mut live);
    let frame = render(live.view(), &Style { width: 119, ..Style::default() });

    assert_eq!(screen, frame.trim_end());
}

#[test]
fn question_stands_below_the_view_and_its_answer_stays() {
    let mut terminal = Terminal::new(80, 20);
    let mut live = Live::new(&mut terminal, Style::default(), 80, 20);
    let story = stories::pending();
    play(&mut live, &story, (80, 20));
    let before = terminal_of(&mut live);
    let line = |text: &str| Line::new(0).with(Tone::Plain, text);

    let question = Frame { lines: vec![line("? May refund run?"), line("  Approve")], cursor: None };
    live.paint(Vec::new(), question, story.now(), (80, 20)).unwrap();
    assert_eq!(terminal_of(&mut live), format!("{before}\n? May refund run?\n  Approve"));

    live.paint(vec![line("> May refund run? Approve")], Frame::default(), story.now(), (80, 20)).unwrap();
    assert_eq!(terminal_of(&mut live).matches("May refund run?").count(), 1);
    assert!(terminal_of(&mut live).contains("> May refund run? Approve\n"));
}

#[test]
fn unchanged_lines_are_not_repainted() {
    let mut bytes = Vec::new();
    let mut live = Live::new(&mut bytes, Style::default(), 80, 20);
    let story = stories::waiting();
    play(&mut live, &story, (80, 20));
    let before = live.writer().len();
    live.tick(story.now(), 80, 20).unwrap();
    assert_eq!(live.writer().len(), before);
    live.tick(story.now().after(std::time::Duration::from_secs(2)), 80, 20).unwrap();
    let text = String::from_utf8(live.writer().split_off(before)).unwrap();

    assert!(text.contains("1 min 7 s"));
    assert!(!text.contains("Load customer"), "{text:?}");
}

#[test]
fn scrolled_blocks_are_not_laid_out_again() {
    let mut bytes = Vec::new();
    let mut live = Live::new(&mut bytes, Style::default(), 80, 20);
    play(&mut live, &long(500), (80, 20));

    let count = live.view().timeline.at(&stories::path("Count")).unwrap().id;
    assert!(live.view().children(count).len() < 20);
}

#[test]
fn scrolled_widget_is_updated_in_a_new_line() {
    let mut terminal = Terminal::new(60, 8);
    let mut live = Live::new(&mut terminal, Style::default(), 60, 8);

    play(&mut live, &stories::updates(12), (60, 8));
    live.finish().unwrap();
    drop(live);

    let all = terminal.all();
    let bars: Vec<&str> = all.lines().filter(|line| line.contains('%')).map(str::trim).collect();
    assert_eq!(bars.len(), 2, "{all}");
    assert!(bars[0].ends_with("50 %") && bars[1].ends_with("updated: 100 %"), "{all}");
}

#[test]
fn narrow_terminal_marks_every_cut() {
    for columns in [12, 20] {
        for story in [stories::tools(), stories::pending(), stories::waiting(), stories::nested()] {
            let mut terminal = Terminal::new(columns, 40);
            let mut live = Live::new(&mut terminal, Style::default(), usize::from(columns), 40);
            play(&mut live, &story, (usize::from(columns), 40));
            live.finish().unwrap();
            drop(live);

            let full = terminal.all().lines().any(|line| super::text::width(line) >= usize::from(columns));
            assert!(!full, "a line goes beyond {columns} columns:\n{}", terminal.all());
        }
    }
}

#[test]
fn foot_stays_below_consecutive_runs() {
    let mut terminal = Terminal::new(40, 12);
    let style = Style::default();
    let foot = |text: &str| Frame {
        lines: vec![Line::default(), Line::new(0).with(Tone::Plain, text)],
        cursor: Some((1, text.len())),
    };
    let mut live = Live::of_chat(&mut terminal, style, 40, 12);
    for (run, text) in [("one", "First answer."), ("two", "Second answer.")] {
        let story = Story::default()
            .brain("", "Helper", Value::Null, &[("Talk", StageKind::Loop)])
            .loop_start("Talk", Some(run))
            .ask("Talk/0")
            .answer("Talk/0", text, 0)
            .loop_complete("Talk", LoopOutcome::Answered)
            .complete("", Value::Null);
        live.paint(Vec::new(), foot("> next"), Timestamp(0), (40, 12)).unwrap();
        play(&mut live, &story, (40, 12));
        live.next_run().unwrap();
        live.print(vec![Line::default(), Line::new(0).with(Tone::Dim, format!("after {run}"))]).unwrap();
    }
    live.paint(Vec::new(), foot("> last"), Timestamp(0), (40, 12)).unwrap();
    // A key moves the cursor, and nothing else.
    live.paint(Vec::new(), Frame { cursor: Some((1, 2)), ..foot("> last") }, Timestamp(0), (40, 12)).unwrap();
    drop(live);

    assert_eq!(terminal.0.screen().cursor_position(), (10, 2));
    insta::assert_snapshot!(terminal.all(), @r"

    › one

    First answer.

    after one

    › two

    Second answer.

    after two

    > last
    ");
}

#[cfg(feature = "preview")]
#[test]
fn picture_stands_below_its_name_once_that_has_scrolled_away() {
    use super::Graphics;
    use super::tests::files::{answered, asked};

    let mut png = io::Cursor::new(Vec::new());
    image::RgbImage::new(8, 48).write_to(&mut png, image::ImageFormat::Png).unwrap();
    for graphics in [Graphics::Kitty, Graphics::Iterm, Graphics::Sixel] {
        let mut terminal = Terminal::new(40, 30);
        let style = Style { graphics: Some(graphics), ..Style::default() };
        let mut live = Live::of_chat(&mut terminal, style, 40, 30);
        play(&mut live, &asked(), (40, 30));
        live.image(&stories::path("Look"), png.get_ref());
        live.tick(Timestamp(1), 40, 30).unwrap();
        let before = live.writer().screen();
        assert!(before.trim_end().ends_with("▪ bees.png (image/png, 70 bytes)"), "{before}");
        for beat in answered().beats.into_iter().skip(asked().beats.len()) {
            let Beat::Event(event) = beat else { continue };
            live.event(&event);
        }
        live.note(&stories::path("Look/0"), "saved as dance.png".to_owned());
        live.image(&stories::path("Look/0"), png.get_ref());
        live.finish().unwrap();
        drop(live);

        // Three rows, and one for terminals that put the cursor below a sixel image.
        let all = terminal.all();
        let message = "\n› What is it?\n  ▪ bees.png (image/png, 70 bytes)\n\n\n\n\n\n✓ web_";
        assert!(all.starts_with(message), "{graphics:?}: {all}");
        let answer = "\n▪ dance.png (image/png, 5 bytes)\n→ saved as dance.png\n→ Bees <https:";
        assert!(all.contains(answer) && all.ends_with("\n→ a source without a name\n"), "{graphics:?}: {all}");
        let rows = terminal.0.screen().cursor_position().0;
        let used = u16::try_from(all.lines().count()).unwrap();
        assert_eq!(rows, (used + 4).min(29), "the second picture has its rows, too: {all}");
    }
}
