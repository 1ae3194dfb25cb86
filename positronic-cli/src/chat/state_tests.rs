use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use positronic_core::record::{
    Attachment, Event, FileRef, Gate, Path, Pending, PendingKind, Seq, SignalKind, UserMessage,
};
use positronic_core::runner::Settled;
use positronic_core::store::StoreError;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::protocol::{Action, Input};
use super::slash_commands::Slash;
use super::state::ChatState;
use crate::render::{Style, Tone};
use crate::session::{Interrupt, Question};

const SIZE: (usize, usize) = (60, 20);

fn chat(lasts: bool) -> ChatState {
    ChatState::new("me".to_owned(), lasts, vec!["earlier".to_owned()], "m".to_owned())
}

/// A chat with a run that answers.
fn running() -> ChatState {
    let mut chat = chat(true);
    assert_eq!(enter(&mut chat, "hello"), sends("hello", "m-1"));
    assert_eq!(chat.on(Input::Sent(Ok(()))), []);
    assert_eq!(chat.on(Input::Shown { is_new: true, resume: "resume c-0".to_owned() }), []);
    assert_eq!(
        chat.on(Input::Event(&event("Talk", json!({"type": "LOOP_START", "message_id": "m-1", "limits": {}})))),
        []
    );
    chat
}

/// A chat with a run that waits for an approval.
fn waiting() -> ChatState {
    let mut chat = running();
    assert_eq!(chat.on(Input::Settled(&Settled::Waiting(vec![approval(7)]))), []);
    chat
}

/// A chat with an open question.
fn asked() -> ChatState {
    let mut chat = waiting();
    assert_eq!(chat.on(Input::Tick), [Action::Ask(approval(7))]);
    ask(&mut chat);
    chat
}

fn ask(chat: &mut ChatState) {
    let question = Question::new(&approval(7), "pay".to_owned(), None, true, SIZE);
    assert_eq!(chat.on(Input::Question(Box::new(question))), []);
}

fn approval(since: u64) -> Pending {
    let gate: Gate = serde_json::from_value(json!({"reason": "it costs"})).unwrap();
    let kind = PendingKind::Approval { gate, expires: None };
    let call = Path::parse("Talk/0.0").unwrap();
    Pending { call, tool: "pay".to_owned(), arguments: Value::Null.into(), since: Seq(since), kind }
}

fn event(path: &str, mut event: Value) -> Event {
    (event["seq"], event["at"], event["path"]) = (json!(1), json!(0), json!(path));
    serde_json::from_value(event).unwrap()
}

fn sends(text: &str, id: &str) -> [Action; 2] {
    let opening = UserMessage::new(text).id(id);
    [Action::Remember(text.to_owned()), Action::Send(opening, Vec::new())]
}

fn cancel() -> Action {
    Action::Signal(SignalKind::Cancel { reason: Some("from the chat".to_owned()) })
}

fn key(chat: &mut ChatState, code: KeyCode) -> Vec<Action> {
    chat.on(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn control(chat: &mut ChatState, letter: char) -> Vec<Action> {
    chat.on(Input::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)))
}

fn write(chat: &mut ChatState, text: &str) {
    for letter in text.chars() {
        assert_eq!(key(chat, KeyCode::Char(letter)), []);
    }
}

fn enter(chat: &mut ChatState, text: &str) -> Vec<Action> {
    write(chat, text);
    key(chat, KeyCode::Enter)
}

fn screen(chat: &mut ChatState, size: (usize, usize)) -> String {
    let (gone, frame) = chat.draw(None, size);
    assert!(gone.is_empty());
    assert!(frame.lines.len() < size.1 && frame.lines.iter().all(|line| line.width() < size.0), "{frame:?}");
    frame.lines.iter().map(|line| line.paint(&Style::default()) + "\n").collect()
}

fn printed(actions: &[Action]) -> &str {
    match actions {
        [Action::Print(_, text)] => text,
        other => panic!("nothing was printed: {other:?}"),
    }
}

#[test]
fn enter_sends_and_the_next_message_waits_for_the_one_before() {
    let mut chat = chat(true);

    assert_eq!(enter(&mut chat, "one"), sends("one", "m-1"));
    assert_eq!(enter(&mut chat, "two"), [Action::Remember("two".to_owned())]);
    insta::assert_snapshot!(screen(&mut chat, SIZE), @r"

    › one
    › two
    › Ctrl-C ends the answer
    ");
    assert_eq!(chat.on(Input::Sent(Ok(()))), [sends("two", "m-2")[1].clone()]);
    assert_eq!(enter(&mut chat, "  "), [], "blanks are not sent");
}

#[test]
fn unheard_message_is_shown_until_the_run_has_it() {
    let mut chat = running();
    enter(&mut chat, "and now?");
    assert!(screen(&mut chat, SIZE).contains("› and now?\n"));

    chat.on(Input::Sent(Ok(())));
    chat.on(Input::Event(&event("Talk", json!({"type": "LOOP_MESSAGE", "text": "and now?", "message_id": "m-2"}))));

    assert!(!screen(&mut chat, SIZE).contains("and now?"));
}

#[test]
fn refused_message_is_reported_and_the_next_one_is_sent() {
    let mut chat = chat(true);
    enter(&mut chat, "one");
    enter(&mut chat, "two");

    let actions = chat.on(Input::Sent(Err("the budget is used up".to_owned())));

    let printed = Action::Print(Tone::Bad, "the budget is used up".to_owned());
    assert_eq!(actions, [printed, sends("two", "m-2")[1].clone()]);
    assert!(!screen(&mut chat, SIZE).contains("› one"));
    key(&mut chat, KeyCode::Up);
    key(&mut chat, KeyCode::Up);
    assert!(screen(&mut chat, SIZE).ends_with("› one\n"), "the text can be recalled");
}

#[test]
fn several_lines_are_one_message() {
    let mut chat = chat(true);

    assert_eq!(enter(&mut chat, "one\\"), []);
    chat.on(Input::Paste("two\r\nthree".to_owned()));
    insta::assert_snapshot!(screen(&mut chat, SIZE), @r"

    › one
      two
      three
    ");
    assert_eq!(key(&mut chat, KeyCode::Enter), sends("one\ntwo\nthree", "m-1"));
}

#[test]
fn pasted_text_of_many_lines_fits_half_of_the_screen() {
    let mut chat = chat(true);
    let text: Vec<String> =
        (0..100).map(|line| format!("line {line} 文字 and so on, up to the end of the row")).collect();
    chat.on(Input::Paste(text.join("\n")));

    let small = screen(&mut chat, (40, 10));

    assert!(small.lines().count() == 6 && small.contains("line 99 文字"), "{small}");
    assert_eq!(key(&mut chat, KeyCode::Enter), sends(&text.join("\n"), "m-1"));
}

#[test]
fn arrows_recall_earlier_input_and_the_draft() {
    let mut chat = chat(true);
    write(&mut chat, "draft");

    key(&mut chat, KeyCode::Up);
    assert!(screen(&mut chat, SIZE).ends_with("› earlier\n"));
    key(&mut chat, KeyCode::Down);
    assert!(screen(&mut chat, SIZE).ends_with("› draft\n"));
}

#[test]
fn slash_commands_are_carried_out_completed_or_refused() {
    let mut chat = chat(true);
    let remember = |text: &str| Action::Remember(text.to_owned());

    let export = Action::Command(Slash::Export, "talk.md".to_owned());
    assert_eq!(enter(&mut chat, "/export talk.md"), [remember("/export talk.md"), export]);
    let unknown = "unknown command `/tolls`; did you mean `/tools`? (`//` sends a slash)".to_owned();
    assert_eq!(enter(&mut chat, "/tolls"), [remember("/tolls"), Action::Print(Tone::Warn, unknown)]);
    write(&mut chat, "/h");
    key(&mut chat, KeyCode::Tab);
    assert!(screen(&mut chat, SIZE).ends_with("/help  /history\n› /h\n"));
    control(&mut chat, 'u');
    assert_eq!(enter(&mut chat, "//etc"), [remember("//etc"), sends("/etc", "m-1")[1].clone()]);
    assert_eq!(control(&mut chat, 'l'), [Action::Clear]);
    assert_eq!(enter(&mut chat, "/new").len(), 2, "a conversation that is being answered stays");
}

#[test]
fn open_run_refuses_retry_and_new() {
    let mut chat = running();

    for command in ["/retry", "/new"] {
        let actions = enter(&mut chat, command);
        assert!(printed(&actions[1..]).starts_with("an answer is running: /cancel ends it"));
    }
    assert_eq!(enter(&mut chat, "/cancel")[1..], [cancel()]);
}

#[test]
fn ctrl_c_cancels_the_answer_and_the_second_one_leaves() {
    let mut chat = running();
    enter(&mut chat, "more");
    chat.on(Input::Sent(Ok(())));
    write(&mut chat, "half a line");

    assert_eq!(control(&mut chat, 'c'), [cancel()]);
    let actions = control(&mut chat, 'c');

    assert!(matches!(&actions[..], [Action::Print(..), Action::Release]), "{actions:?}");
    assert!(chat.leaving.is_some() && chat.left_by.is_none());
    assert_eq!(control(&mut chat, 'c'), [Action::Exit], "the third one does not wait for the release");
}

#[test]
fn ctrl_c_after_a_message_to_a_waiting_run_leaves_and_does_not_cancel() {
    let mut chat = asked();
    control(&mut chat, 'c');
    assert_eq!(enter(&mut chat, "and hurry"), sends("and hurry", "m-2"));
    assert_eq!(chat.on(Input::Shown { is_new: false, resume: "resume c-0".to_owned() }), []);
    assert_eq!(chat.on(Input::Sent(Ok(()))), []);
    let message = json!({"type": "LOOP_MESSAGE", "text": "and hurry", "message_id": "m-2"});
    assert_eq!(chat.on(Input::Event(&event("Talk", message))), []);

    assert_eq!(control(&mut chat, 'c'), [Action::Release]);
}

#[test]
fn ctrl_c_without_an_answer_clears_the_input_and_then_leaves() {
    let mut chat = chat(true);
    write(&mut chat, "half a line");

    assert_eq!(control(&mut chat, 'c'), []);
    assert!(screen(&mut chat, SIZE).ends_with("› say something, or /help\n"));
    assert_eq!(control(&mut chat, 'c'), [Action::Release]);
}

#[test]
fn leaving_waits_until_messages_are_stored_or_for_five_seconds() {
    let mut chat = chat(true);
    enter(&mut chat, "one");
    enter(&mut chat, "two");

    assert_eq!(enter(&mut chat, "/quit")[1..], []);
    assert_eq!(chat.on(Input::Sent(Ok(()))), [sends("two", "m-2")[1].clone()]);
    assert_eq!(chat.on(Input::Sent(Ok(()))), [Action::Release]);

    let mut chat = super::state_tests::chat(true);
    enter(&mut chat, "one");
    control(&mut chat, 'd');
    let ticks = std::iter::from_fn(|| chat.on(Input::Tick).is_empty().then_some(())).count();
    assert_eq!(ticks * 80 / 1000, 4);
}

#[test]
fn run_in_memory_is_cancelled_on_leaving() {
    let mut chat = chat(false);
    chat.on(Input::Shown { is_new: true, resume: String::new() });

    assert_eq!(control(&mut chat, 'd'), [cancel(), Action::Release]);
}

#[test]
fn request_to_end_leaves_even_with_a_question_open() {
    let mut chat = asked();

    assert_eq!(chat.on(Input::Interrupt(Interrupt::System)), [Action::Release]);

    assert_eq!((chat.left_by, chat.question.is_some()), (Some(Interrupt::System), false));
}

#[test]
fn approval_is_asked_for_when_the_input_is_empty() {
    let mut chat = waiting();
    write(&mut chat, "x");
    assert_eq!(chat.on(Input::Tick), [], "the keys of a person who writes answer nothing");
    assert!(screen(&mut chat, SIZE).contains("⏸ pay needs approval: it costs (/pending)\n› x"));

    key(&mut chat, KeyCode::Backspace);
    assert_eq!(chat.on(Input::Tick), [Action::Ask(approval(7))]);
    ask(&mut chat);

    assert!(screen(&mut chat, SIZE).contains("? May pay run?\n  Approve\n"));
    assert_eq!(chat.on(Input::Tick), [], "it is asked once");
}

#[test]
fn answer_is_printed_and_sent() {
    let mut chat = asked();
    key(&mut chat, KeyCode::Down);

    let actions = key(&mut chat, KeyCode::Enter);

    let [Action::PrintLines(lines), Action::Signal(kind)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(lines.last().unwrap().paint(&Style::default()), "> May pay run? Approve");
    assert_eq!(*kind, SignalKind::Approve { call: approval(7).call, arguments: None });
    assert_eq!(chat.on(Input::Signalled(Ok(()))), []);
    assert_eq!(chat.on(Input::Tick), [], "the approval is answered");
}

#[test]
fn refused_answer_is_asked_for_again() {
    let mut chat = asked();
    key(&mut chat, KeyCode::Down);
    key(&mut chat, KeyCode::Enter);

    let actions = chat.on(Input::Signalled(Err("it has expired".to_owned())));

    assert_eq!(printed(&actions), "it has expired");
    assert_eq!(chat.on(Input::Tick), [Action::Ask(approval(7))]);
}

#[test]
fn question_left_for_later_returns_with_pending_or_a_new_request() {
    let mut chat = asked();
    let actions = control(&mut chat, 'c');
    assert_eq!(printed(&actions), "pay is left for later: /pending asks again");
    assert_eq!(chat.on(Input::Tick), []);

    let pending = Action::Command(Slash::Pending, String::new());
    assert_eq!(enter(&mut chat, "/pending")[1..], [pending]);
    assert_eq!(chat.on(Input::Tick), [Action::Ask(approval(7))]);

    ask(&mut chat);
    control(&mut chat, 'c');
    chat.on(Input::Settled(&Settled::Waiting(vec![approval(9)])));
    assert_eq!(chat.on(Input::Tick), [Action::Ask(approval(9))]);
}

#[test]
fn question_answered_elsewhere_is_withdrawn() {
    let mut chat = asked();

    let actions = chat.on(Input::Withdrawn("it was approved by bob".to_owned()));

    assert_eq!(printed(&actions), "pay no longer waits: it was approved by bob");
    assert!(chat.question.is_none() && chat.is_open());
}

#[test]
fn resize_changes_the_layout_and_not_the_state() {
    let mut chat = asked();
    key(&mut chat, KeyCode::Down);
    let before = screen(&mut chat, SIZE);

    assert!(screen(&mut chat, (24, 20)).contains("> Approve\n"));
    assert_eq!(screen(&mut chat, SIZE), before);
}

#[test]
fn failed_stopped_and_paused_runs_are_distinguished() {
    let mut chat = running();
    chat.on(Input::Settled(&Settled::Paused));
    assert!(screen(&mut chat, SIZE).contains("⏸ paused; lift it with: resume c-0\n› say more, or /pending"));

    chat.on(Input::Settled(&Settled::Failed(
        serde_json::from_value(json!({"code": "model", "message": "it broke"})).unwrap(),
    )));
    assert!(!chat.is_open() && screen(&mut chat, SIZE).ends_with("› say something, or /help\n"));

    let mut chat = running();
    let full = StoreError::Failed { message: "the disk is full".to_owned() };
    let actions = chat.on(Input::Settled(&Settled::Stopped(full.into())));
    let text = printed(&actions);
    assert!(text.contains("the disk is full") && text.ends_with("; it continues with the next chat"), "{text}");
}

#[test]
fn other_process_that_answers_is_named_until_this_one_takes_over() {
    let mut chat = running();
    let claimed = |owner: &str| event("", json!({"type": "RUN_CLAIMED", "owner": owner, "epoch": 1}));

    chat.on(Input::Event(&claimed("other")));
    assert!(chat.is_elsewhere && screen(&mut chat, SIZE).contains("another process answers"));
    chat.on(Input::Event(&claimed("me")));
    assert!(!chat.is_elsewhere);
}

#[test]
fn every_twelfth_tick_polls_the_store() {
    let mut chat = chat(true);

    let ticks: Vec<Vec<Action>> = (0..12).map(|_| chat.on(Input::Tick)).collect();

    assert!(ticks[..11].iter().all(Vec::is_empty));
    assert_eq!(ticks[11], [Action::PollStore]);
}

fn any_input() -> impl Strategy<Value = (u8, String, (usize, usize))> {
    (0..12_u8, "[a/文👩\u{1b}\n ]{0,30}", (8..120_usize, 5..40_usize))
}

proptest! {
    #[test]
    fn any_input_in_any_window_leaves_a_frame_that_fits(inputs in proptest::collection::vec(any_input(), 1..40)) {
        let mut chat = running();
        for (kind, text, (columns, rows)) in inputs {
            let keys = [KeyCode::Enter, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Backspace, KeyCode::Tab];
            match kind {
                0 => chat.on(Input::Paste(text)),
                1 => chat.on(Input::Say(text.into())),
                2 => chat.on(Input::Hint(text)),
                3 => chat.on(Input::Settled(&Settled::Waiting(vec![approval(7)]))),
                4 if chat.question.is_none() => {
                    let question = Question::new(&approval(7), text, None, true, (columns, rows));
                    chat.on(Input::Question(Box::new(question)))
                }
                kind => key(&mut chat, keys[usize::from(kind) % keys.len()]),
            };
            let (_, frame) = chat.draw(None, (columns, rows));
            prop_assert!(frame.lines.len() < rows, "{} lines in {rows} rows", frame.lines.len());
            let widest = frame.lines.iter().map(crate::render::Line::width).max().unwrap_or(0);
            prop_assert!(widest < columns, "{widest} of {columns} columns: {frame:?}");
        }
    }
}

#[test]
fn attached_file_is_shown_and_belongs_to_the_next_message_that_is_accepted() {
    let mut chat = chat(true);
    let picture = Attachment::new("bees.png", "image/png", [1_u8, 2]);
    assert_eq!(
        enter(&mut chat, "/attach a b.png"),
        [Action::Remember("/attach a b.png".to_owned()), Action::ReadFile("a b.png".to_owned())]
    );
    assert_eq!(chat.on(Input::Attach(picture.clone())), []);
    let shown = screen(&mut chat, SIZE);
    assert!(shown.contains("▪ attached to the next message: bees.png (image/png"), "{shown}");

    let message = UserMessage::new("What?").id("m-1").file(picture.file().clone());
    let sent = [Action::Remember("What?".to_owned()), Action::Send(message, vec![picture.clone()])];
    assert_eq!(enter(&mut chat, "What?"), sent);
    assert!(screen(&mut chat, SIZE).contains("› What? [bees.png (image/png, 2 bytes)]\n"));
    assert_eq!(printed(&chat.on(Input::Sent(Err("no".to_owned())))), "no");
    // Enter alone sends the files that the refused message has left.
    let message = UserMessage::new("").id("m-2").file(picture.file().clone());
    assert_eq!(key(&mut chat, KeyCode::Enter), [Action::Send(message, vec![picture])]);
    assert_eq!(chat.on(Input::Sent(Ok(()))), []);
    assert_eq!(key(&mut chat, KeyCode::Enter), []);

    let again = UserMessage::new("What?").file(FileRef::url("https://x.org/a.png", "image/png"));
    let Some(Action::Send(message, files)) = chat.on(Input::Say(again)).pop() else { panic!("it is not sent") };
    assert_eq!((message.files.len(), files.first().and_then(Attachment::bytes)), (1, None));
}
