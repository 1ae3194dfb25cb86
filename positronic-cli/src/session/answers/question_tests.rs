use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use positronic_core::record::{
    BudgetRequest, Gate, LimitKind, Path, Pending, PendingKind, Seq, SignalKind, Timestamp, WaitSpec,
};
use serde_json::{Value, json};

use super::question::Question;
use super::question_script::Answer;
use crate::render::Style;

const SIZE: (usize, usize) = (60, 30);

fn pending(kind: PendingKind, arguments: Value) -> Pending {
    let call = Path::parse("Talk/0.0").unwrap();
    Pending { call, tool: "pay".to_owned(), arguments: Arc::new(arguments), since: Seq(7), kind }
}

fn approval(arguments: Value) -> Question {
    let gate: Gate = serde_json::from_value(json!({"reason": "it costs"})).unwrap();
    let pending = pending(PendingKind::Approval { gate, expires: None }, arguments);
    Question::new(&pending, "Talk › pay".to_owned(), None, true, SIZE)
}

fn press(question: &mut Question, keys: &[KeyCode]) -> Option<Answer> {
    keys.iter().fold(None, |_, key| question.key(KeyEvent::new(*key, KeyModifiers::NONE)))
}

fn write(question: &mut Question, text: &str) -> Option<Answer> {
    question.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    question.paste(text);
    press(question, &[KeyCode::Enter])
}

fn text(lines: &[crate::render::Line]) -> String {
    lines.iter().map(|line| line.paint(&Style::default()) + "\n").collect()
}

fn draw(question: &mut Question, rows: usize) -> String {
    text(&question.draw(SIZE.0 - 1, rows).1.lines)
}

/// Moves down so many choices, and presses Enter.
fn choose(question: &mut Question, down: usize) -> Option<Answer> {
    press(question, &vec![KeyCode::Down; down]);
    press(question, &[KeyCode::Enter])
}

#[test]
fn approval_is_drawn_with_its_arguments_and_approved() {
    let mut question = approval(json!({"euros": 12}));

    insta::assert_snapshot!(draw(&mut question, 30), @r#"

    Talk › pay asks (3 lines, 12 bytes): it costs
      {
        "euros": 12
      }
    ? May pay run?
      Approve
      Approve with other arguments
      Reject
      Leave it for later
      Stop the run
    [nothing is chosen: ↑↓ to move, then Enter]
    "#);

    let call = question.pending().call.clone();
    assert_eq!(choose(&mut question, 1), Some(Answer::Signal(SignalKind::Approve { call, arguments: None })));
    assert!(text(&question.rest()).ends_with("  }\n> May pay run? Approve\n"));
}

#[test]
fn fields_of_flat_arguments_are_edited_one_by_one() {
    let mut question = approval(json!({"euros": 12, "to": "ann"}));

    assert_eq!(choose(&mut question, 2), None);
    assert_eq!(write(&mut question, "twelve"), None);
    assert!(
        draw(&mut question, 30).contains("?   euros: twelve\ninvalid JSON at `welve`"),
        "{}",
        draw(&mut question, 30)
    );
    assert_eq!(write(&mut question, "18446744073709551617"), None);
    let refused = draw(&mut question, 30);
    assert!(refused.contains("the JSON has a number with too many digits"), "{refused}");
    assert_eq!(write(&mut question, "13"), None);
    let answer = write(&mut question, "bob");

    let arguments = Some(json!({"euros": 13, "to": "bob"}));
    let call = question.pending().call.clone();
    assert_eq!(answer, Some(Answer::Signal(SignalKind::Approve { call, arguments })));
    assert!(text(&question.rest()).ends_with(">   euros: 13\n>   to: bob\n"));
}

#[test]
fn rejection_has_a_reason_if_one_is_written() {
    for (written, reason) in [("too dear", Some("too dear".to_owned())), ("", None)] {
        let mut question = approval(json!({}));
        assert_eq!(choose(&mut question, 3), None);

        let call = question.pending().call.clone();
        assert_eq!(write(&mut question, written), Some(Answer::Signal(SignalKind::Reject { call, reason })));
    }
}

#[test]
fn later_stop_and_ctrl_c_decide_nothing() {
    assert_eq!(choose(&mut approval(json!({})), 4), Some(Answer::Later));
    assert_eq!(choose(&mut approval(json!({})), 5), Some(Answer::Stop));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(approval(json!({})).key(interrupt), Some(Answer::Interrupted));
}

#[test]
fn escape_returns_to_the_beginning_and_shows_the_arguments_again() {
    let mut question = approval(json!({"euros": 12}));
    let first = draw(&mut question, 13);

    choose(&mut question, 3);
    draw(&mut question, 7);
    assert_eq!(press(&mut question, &[KeyCode::Esc]), None);

    assert_eq!(draw(&mut question, 13), first);
    assert!(first.contains("euros"), "{first}");
}

#[test]
fn long_arguments_are_paged_and_scroll_away_in_order() {
    let lines = |range: std::ops::Range<u32>| range.map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let mut question = approval(json!({"code": lines(0..40)}));
    let (mut shown, mut last) = (String::new(), String::new());

    for turn in ["Show the next 18 of 41 rows", "Show the next 5 of 41 rows", "Show it from the beginning"] {
        let (gone, frame) = question.draw(SIZE.0 - 1, SIZE.1);
        assert!(frame.lines.len() <= SIZE.1 - 2);
        shown += &text(&gone);
        last = text(&frame.lines);
        assert!(last.contains(turn), "{last}");
        if turn != "Show it from the beginning" {
            // The first choice never approves.
            assert_eq!(choose(&mut question, 1), None);
        }
    }

    let all: Vec<String> =
        (shown + &last).lines().map(str::trim).filter(|l| l.starts_with("line")).map(str::to_owned).collect();
    assert_eq!(all.join("\n"), lines(0..40), "each row is shown once");
    assert!(matches!(choose(&mut question, 2), Some(Answer::Signal(SignalKind::Approve { .. }))));
}

#[test]
fn resized_terminal_changes_no_answer() {
    let mut question = approval(json!({"code": "line\n".repeat(40)}));
    assert_eq!(choose(&mut question, 1), None);

    for size in [(100, 60), (20, 8), (59, 30)] {
        let (_, frame) = question.draw(size.0, size.1);
        assert!(frame.lines.iter().all(|line| line.width() <= size.0), "{size:?}");
        assert!(text(&frame.lines).contains("Show the next 5"), "{size:?}: {}", text(&frame.lines));
    }
}

#[test]
fn payload_is_asked_for_as_its_schema_says() {
    let schema = json!({
        "type": "object",
        "properties": {"paid": {"type": "boolean"}, "note": {"type": "string"}},
        "required": ["paid"],
    });
    let wait = json!({"webhook": "payment", "identifier": "order-17", "schema": schema});
    let wait: WaitSpec = serde_json::from_value(wait).unwrap();
    let pending = pending(PendingKind::Answer { waits: vec![wait] }, Value::Null);
    let mut question = Question::new(&pending, "Talk › pay".to_owned(), None, true, SIZE);

    assert_eq!(press(&mut question, &[KeyCode::Esc]), None);
    assert!(
        draw(&mut question, 30).contains("? Talk › pay waits.\n  Answer now\n  Leave it for later\n  Stop the run\n")
    );
    assert_eq!(choose(&mut question, 1), None);
    let screen = draw(&mut question, 30);
    assert!(screen.contains("You play the sender of the webhook"), "{screen}");
    let mut answer = None;
    for _ in 0..2 {
        let is_menu = draw(&mut question, 30).contains("  yes\n");
        answer = if is_menu { choose(&mut question, 1) } else { write(&mut question, "thanks") };
    }

    let Some(Answer::Signal(SignalKind::Webhook { name, payload, .. })) = answer else { panic!("{answer:?}") };
    assert_eq!((name.as_str(), payload), ("payment", json!({"paid": true, "note": "thanks"})));
}

#[test]
fn budget_question_suggests_an_amount() {
    let kind = PendingKind::Budget(BudgetRequest {
        kind: LimitKind::Iterations,
        limit: 10,
        used: 10,
        shared: false,
        expires: Some(Timestamp(0)),
    });
    let mut question = Question::new(&pending(kind, Value::Null), String::new(), None, false, SIZE);

    let screen = draw(&mut question, 30);
    assert!(screen.contains("? Raise the limit?\n  Grant more\n  Refuse\n  Stop the run\n"), "{screen}");
    assert_eq!(choose(&mut question, 1), None);
    let answer = press(&mut question, &[KeyCode::Enter]);

    assert!(matches!(answer, Some(Answer::Signal(SignalKind::Grant { .. }))), "{answer:?}");
}
