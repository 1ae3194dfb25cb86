//! A chat on a terminal: the bundled cassette answers, and a person types.

use serde_json::json;

use crate::durable::{Desk, signal, until};
use crate::terminal::Seat;

const ENTER: &str = "\r";
const DOWN: &str = "\u{1b}[B";
const UP: &str = "\u{1b}[A";
const INTERRUPT: &str = "\u{3}";
const LEAVE: &str = "\u{4}";

/// Opens the conversation `c`.
fn seat(desk: &Desk) -> Seat {
    let mut seat = Seat::at(desk, &["chat", "kitchen", "--conversation", "c"]);
    seat.sees("say something, or /help");
    seat
}

/// Waits for the first answer.
fn talking(desk: &Desk) -> Seat {
    let mut seat = seat(desk);
    seat.types("What can I cook tonight?\r");
    seat.sees("which is missing.");
    seat
}

/// Waits for the approval of the order.
fn asked(desk: &Desk) -> Seat {
    let mut seat = talking(desk);
    seat.types("Please order the cheese.\r");
    seat.sees("nothing is chosen");
    seat
}

/// Returns a screen from a line on.
fn from<'a>(screen: &'a str, line: &str) -> &'a str {
    screen.split_once(line).map_or_else(|| panic!("there is no `{line}`: {screen}"), |(_, rest)| rest)
}

#[test]
fn answer_shows_tool_activity_and_widget_fallbacks() {
    let desk = Desk::new();
    let mut seat = talking(&desk);
    seat.sees("say something, or /help");

    let screen = seat.look();
    // The duration of a tool varies.
    let lines = screen.lines().map(|line| match line.rsplit_once("  ") {
        Some((call, took)) if line.starts_with('✓') && took.ends_with("ms") => call,
        _ => line,
    });
    let screen = lines.collect::<Vec<_>>().join("\n");

    insta::assert_snapshot!(from(&screen, "new conversation c · /help\n"), @r#"

    › What can I cook tonight?

    Let me see what is there.

    ✓ larder
      → eggs, rice, two leeks, butter
    ✓ menu dish="Leek omelette with rice" minutes=25 missing=["cheese"]
      ▪ Leek omelette with rice, 25 minutes; to buy: cheese
      ▪ recipe.md (text/markdown, 55 bytes)
      → saved as .positronic/files/c/recipe.md
      → shown

    There are **eggs**, **rice** and **two leeks**: how about a leek omelette with rice? It takes 25
    minutes, and gets better with some cheese, which is missing.

    › say something, or /help
    "#);
    seat.types("/usage\r");
    seat.sees("conversation: 3 model answers, 751 tokens in, 91 out, 384 cached; cost: unknown price");
    seat.types("/tolls\r");
    seat.sees("unknown command `/tolls`; did you mean `/tools`?");
    seat.types("/to\t\r");
    seat.sees("larder  Lists what is in the larder");
    seat.types(LEAVE);
    let (code, screen) = seat.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("continue it with: "), "{screen}");
}

#[test]
fn second_process_continues_the_conversation() {
    let desk = Desk::new();
    let mut first = talking(&desk);
    first.types("/quit\r");
    assert_eq!(first.end().0, Some(0));

    let mut second = seat(&desk);
    second.sees("Leek omelette with rice, 25 minutes; to buy: cheese");
    second.types("Please order the cheese.\r");
    second.sees("May order run?");
    second.types(&[DOWN, ENTER].concat());
    second.sees("That is settled.");
    second.types(LEAVE);
    let (code, screen) = second.end();

    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("→ ordered: a piece of mountain cheese; it comes at six"), "{screen}");
    let shown = desk.json(&["conversations", "show", "c"]);
    assert_eq!(shown["prompts"][1]["prompt"]["input"], json!("Please order the cheese."));
}

#[test]
fn approval_is_edited_or_rejected_in_place() {
    let desk = Desk::new();
    let mut seat = asked(&desk);
    seat.types(&[DOWN, DOWN, DOWN, ENTER].concat());
    seat.sees("Why not?");
    seat.types("too dear\r");
    seat.sees("That is settled.");
    assert!(seat.look().contains("→ denied by ann: too dear"), "{}", seat.look());
    seat.types(LEAVE);
    seat.end();

    let desk = Desk::new();
    let mut seat = asked(&desk);
    seat.types(&[DOWN, DOWN, ENTER].concat());
    seat.sees("Arguments:");
    seat.types("\u{15}{\"items\": [\"feta\"], \"euros\": 3}\r");
    seat.sees("→ ordered: feta; it comes at six");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));
}

#[test]
fn unanswered_approval_is_shown_again_in_the_next_chat() {
    let desk = Desk::new();
    let mut seat = asked(&desk);
    seat.types(&[DOWN, DOWN, DOWN, DOWN, ENTER].concat());
    seat.sees("order is left for later: /pending asks again");
    seat.sees("⏸ order needs approval: it costs 12 euros (/pending)");
    // A message in the meantime waits behind it.
    seat.types("and hurry\r");
    seat.sees("› and hurry");
    seat.types(INTERRUPT);
    let (code, screen) = seat.end();
    assert_eq!(code, Some(3), "{screen}");
    assert!(screen.contains("the run waits for your answer; continue it with: "), "{screen}");
    assert_eq!(desk.json(&["inbox"])["run"], json!("c-1"));

    let mut seat = Seat::at(&desk, &["chat", "kitchen", "-c", "c"]);
    seat.sees("May order run?");
    // A stray Enter decides nothing.
    seat.types(ENTER);
    seat.types(DOWN);
    seat.sees("> Approve");
    assert_eq!(desk.json(&["inbox"])["run"], json!("c-1"));
    seat.types(ENTER);
    seat.sees("That is settled.");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));
    let prompt = &desk.json(&["conversations", "show", "c"])["prompts"][1]["prompt"];
    let said =
        prompt["output"].as_array().unwrap().iter().filter(|entry| entry["output"]["text"] == json!("and hurry"));
    assert_eq!((said.count(), &prompt["state"]), (1, &json!("completed")));
}

#[test]
fn message_cancels_pending_calls_under_that_policy() {
    let desk = Desk::new();
    let mut seat = Seat::at(&desk, &["chat", "kitchen", "--busy", "cancel", "-c", "c"]);
    seat.sees("say something, or /help");
    seat.types("What can I cook tonight?\r");
    seat.sees("which is missing.");
    seat.types("Please order the cheese.\r");
    seat.sees("nothing is chosen");
    seat.types(INTERRUPT);
    seat.sees("order is left for later");
    seat.types("never mind\r");
    seat.sees("That is settled.");
    assert!(seat.look().contains("■ cancelled"), "{}", seat.look());
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));
    assert_eq!(desk.json(&["show", "c-1"])["run"]["status"], json!("cancelled"));
}

#[test]
fn approval_does_not_capture_the_keys_of_a_person_who_types() {
    let desk = Desk::new();
    let mut seat = talking(&desk);
    seat.types("Please order the cheese.\rand also");
    seat.sees("⏸ order needs approval: it costs 12 euros (/pending)");
    seat.sees("› and also");
    assert!(!seat.look().contains("May order run?"), "{}", seat.look());

    // The first Ctrl-C clears the input, so the question can appear.
    seat.types(INTERRUPT);
    seat.sees("May order run?");
    seat.types(INTERRUPT);
    seat.sees("order is left for later");
    seat.types(INTERRUPT);
    assert_eq!(seat.end().0, Some(3));
}

#[test]
fn question_answered_elsewhere_disappears_and_the_chat_continues() {
    let desk = Desk::new();
    let mut seat = asked(&desk);

    desk.expect(&["approve", "c-1", "--by", "bob"], 0);

    seat.sees("order no longer waits: it was approved by bob at the command line");
    seat.sees("That is settled.");
    seat.types("/q\r");
    assert_eq!(seat.end().0, Some(0));
}

#[test]
fn save_writes_to_the_requested_path_and_replaces_no_file() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.0.path().join("mine/c")).unwrap();
    std::fs::write(desk.0.path().join("mine/c/recipe.md"), "my own").unwrap();
    let mut seat = Seat::at(&desk, &["chat", "kitchen", "-c", "c", "--files", "mine"]);
    seat.sees("say something, or /help");
    seat.types("What can I cook tonight?\r");
    seat.sees("→ saved as mine/c/recipe (2).md");
    seat.types("/files\r");
    seat.sees("recipe.md (text/markdown, 55 bytes)  mine/c/recipe (2).md");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));

    let read = |name: &str| std::fs::read_to_string(desk.0.path().join("mine/c").join(name)).unwrap();
    assert_eq!(read("recipe.md"), "my own");
    assert_eq!(read("recipe (2).md"), "# Leek omelette with rice\n\n25 minutes. To buy: cheese.\n");
    assert_eq!(std::fs::read_dir(desk.0.path().join("mine/c")).unwrap().count(), 2, "it is saved once");
}

#[test]
fn input_history_is_recalled_and_pasted_text_is_one_message() {
    let desk = Desk::new();
    let mut first = seat(&desk);
    first.types("\u{1b}[200~What can\r\nI cook?\u{1b}[201~");
    first.sees("  I cook?");
    first.types(ENTER);
    first.sees("which is missing.");
    first.types(LEAVE);
    first.end();

    let mut second = Seat::at(&desk, &["chat", "kitchen", "--history", "0"]);
    second.sees("say something, or /help");
    second.types(UP);
    second.sees("  I cook?");
    second.types(INTERRUPT);
    second.sees("say something, or /help");
    second.types(INTERRUPT);
    assert_eq!(second.end().0, Some(0));
    assert_eq!(desk.json(&["conversations", "show", "c"])["prompts"][0]["prompt"]["input"], json!("What can\nI cook?"));
}

#[test]
fn messages_from_other_processes_appear() {
    let desk = Desk::new();
    let mut seat = talking(&desk);

    let mut other = desk.command(&["chat", "kitchen", "-c", "c"]);
    let mut other = other.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut other.stdin.take().unwrap(), b"From another place\n").unwrap();

    seat.sees("› From another place");
    seat.sees("May order run?");
    assert_eq!(other.wait().unwrap().code(), Some(3));
    seat.types(&[DOWN, DOWN, DOWN, DOWN, ENTER].concat());
    seat.sees("order is left for later");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(3));
}

#[test]
fn question_of_a_dead_process_is_answered_in_the_other_chat() {
    let desk = Desk::new();
    let (mut seat, mut other) = (seat(&desk), asked(&desk));
    seat.sees("nothing is chosen");
    seat.types(INTERRUPT);
    seat.sees("order is left for later");

    other.child.kill().unwrap();
    other.child.wait().unwrap();
    desk.expect(&["approve", "c-1", "--by", "bob"], 0);

    seat.sees("That is settled.");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));
}

#[test]
fn answer_of_a_dead_process_continues_in_the_other_chat() {
    let desk = Desk::new();
    let mut seat = seat(&desk);
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", silent.local_addr().unwrap());
    let mut other = desk.command(&["chat", "kitchen", "-c", "c"]);
    other.env("OPENAI_BASE_URL", endpoint).env("OPENAI_MODEL", "silent");
    let mut other = other.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut other.stdin.take().unwrap(), b"What can I cook tonight?\n").unwrap();
    seat.sees("another process answers");

    other.kill().unwrap();
    other.wait().unwrap();

    seat.sees("which is missing.");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(0));
}

#[test]
fn recording_continues_after_the_part_another_process_played() {
    let desk = Desk::new();
    let mut seat = seat(&desk);

    let mut other = desk.command(&["chat", "kitchen", "-c", "c"]);
    let mut other = other.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut other.stdin.take().unwrap(), b"What can I cook tonight?\n").unwrap();
    assert_eq!(other.wait().unwrap().code(), Some(0));
    seat.sees("which is missing.");

    // The cassette's second answer, not its first one again.
    seat.types("Please order the cheese.\r");
    seat.sees("May order run?");
    seat.types(INTERRUPT);
    seat.sees("order is left for later");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(3));
}

#[test]
fn terminated_chat_keeps_the_conversation() {
    for told in ["-TERM", "-HUP"] {
        let desk = Desk::new();
        let mut seat = asked(&desk);

        signal(&seat.child, told);
        until(|| !seat.look().contains("nothing is chosen"));
        let (code, screen) = seat.end();

        assert_eq!(code, Some(143), "{screen}");
        assert_eq!(desk.json(&["inbox"])["pending"]["tool"], json!("order"), "no decision was made");
    }
}

#[test]
fn another_conversation_plays_the_recording_from_its_beginning() {
    let desk = Desk::new();
    let mut seat = talking(&desk);
    // The last text is visible before the answer is over.
    seat.sees("say something, or /help");

    seat.types("/new\r");
    seat.sees("new conversation ");
    seat.types("What can I cook tonight?\r");
    until(|| seat.look().matches("which is missing.").count() == 2);
    seat.types("Please order the cheese.\r");
    seat.sees("May order run?");
    seat.types(INTERRUPT);
    seat.sees("order is left for later");
    seat.types(LEAVE);
    assert_eq!(seat.end().0, Some(3));
}

#[test]
fn in_memory_conversation_leaves_no_files() {
    let desk = Desk::new();
    let mut seat = Seat::at(&desk, &["chat", "kitchen", "--memory"]);
    seat.sees("say something, or /help");
    seat.types("What can I cook tonight?\r");
    seat.sees("which is missing.");
    seat.sees("say something, or /help");
    seat.types("/new\r");
    seat.sees("new conversation ");
    seat.types("/id\r");
    seat.sees(", only in memory");
    seat.types(LEAVE);
    let (code, screen) = seat.end();

    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("continue it with"), "{screen}");
    assert_eq!(std::fs::read_dir(desk.0.path()).unwrap().count(), 0);
}
