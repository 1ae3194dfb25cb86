//! Conversations over a pipe, and their lists and exports.

use std::path::Path;
use std::sync::Arc;

use positronic_core::model::Model;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, Prompt, Tier};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tests::{Outcome, at_desk, call_given};
use crate::app::{Project, Settings};

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn say(&self, project: &Project, lines: &str, arguments: &[&str]) -> Outcome {
        let settings =
            Settings { store: Some(self.0.path().join("runs.db")), user: Some("ann".into()), ..Settings::default() };
        at_desk(call_given(project, arguments, lines, settings), self.0.path())
    }

    /// Sends lines to the brain `Helper`, in the conversation `c`.
    fn chat(&self, model: &Arc<ScriptedModel>, lines: &str) -> Outcome {
        self.say(&project(model), lines, &["chat", "helper", "--conversation", "c"])
    }

    fn look(&self, arguments: &[&str]) -> Outcome {
        self.say(&Project::new(), "", arguments)
    }
}

/// A loop whose tool needs approval, and a hidden loop after it.
fn helper() -> Brain<(), ()> {
    brain("Helper")
        .r#loop("Talk", |cx| {
            cx.system("You help.")
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
                .tool("look", |t| {
                    t.execute(async |_: NoArgs, cx| {
                        cx.display_widget("sky", json!({"clouds": 3}), "cloudy, 12 degrees")?;
                        Ok("clouds")
                    })
                })
        })
        .step("End", async |_| Ok(()))
        .build()
}

fn noting() -> Brain<(), ()> {
    brain("Noting")
        .r#loop("Talk", |cx| cx.system("You help."))
        .r#loop("Note", |cx| cx.system("Note what matters.").hidden())
        .step("End", async |_| Ok(()))
        .build()
}

fn loopless() -> Brain<(), String> {
    brain("Loopless").step("Do", async |_| Ok("done".to_owned())).build()
}

fn busy() -> Brain<(), ()> {
    brain("Busy").r#loop("Work", |cx| cx.system("You work.").input("Work!")).build()
}

/// Removes durations of calls, which are shown from one millisecond on.
fn without_durations(text: &str) -> String {
    let line = |line: &str| {
        let took = |rest: &str| {
            rest.strip_suffix(" ms").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let parted = line.rsplit_once("  ").filter(|(call, rest)| call.starts_with('✓') && took(rest));
        let listed =
            || line.strip_suffix(')')?.rsplit_once(" (").filter(|(call, rest)| call.starts_with('-') && took(rest));
        parted.or_else(listed).map_or(line, |(call, _)| call).to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

fn scripted(replies: impl IntoIterator<Item = Reply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(replies))
}

/// A model that always answers yes.
fn agreeing() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::from_fn(|_| Reply::text("Yes.")))
}

fn project(model: &Arc<ScriptedModel>) -> Project {
    let model = Arc::clone(model) as Arc<dyn Model>;
    Project::new().brain(helper()).brain(noting()).brain(loopless()).brain(busy()).model(Tier::Normal, model)
}

/// Returns the user messages of the last request, and the number of all its messages.
fn user_messages(model: &ScriptedModel) -> (Vec<String>, usize) {
    let messages = model.requests().last().unwrap().messages.messages();
    let said = messages.iter().filter_map(|message| match message {
        Message::User { text, .. } => Some(text.clone()),
        _ => None,
    });
    (said.collect(), messages.len())
}

#[test]
fn each_line_is_a_message_and_a_second_process_continues_the_conversation() {
    let desk = Desk::new();
    let model = scripted([Reply::call("look", json!({})), Reply::text("Clouds."), Reply::text("Rain.")]);

    let outcome = desk.chat(&model, "How is the sky?\n\n  \nAnd tomorrow?\r\n");

    assert_eq!((outcome.code, outcome.out.as_str()), (0, "cloudy, 12 degrees\n\nClouds.\nRain.\n"), "{}", outcome.err);
    insta::assert_snapshot!("chat_lines_err", outcome.err);
    assert_eq!(user_messages(&model), (vec!["How is the sky?".to_owned(), "And tomorrow?".to_owned()], 5));

    let model = scripted([Reply::text("/Sun/.")]);
    let outcome = desk.chat(&model, "/help is no command here");
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "/Sun/.\n"));
    let said = ["How is the sky?", "And tomorrow?", "/help is no command here"].map(str::to_owned);
    assert_eq!(user_messages(&model), (said.to_vec(), 7), "the request contains the earlier calls and results");
}

#[test]
fn messages_queue_behind_a_pending_approval() {
    let desk = Desk::new();
    let outcome = desk.chat(&scripted([Reply::call("pay", json!({}))]), "Pay.\nThis is not said.\n");
    assert_eq!((outcome.code, outcome.out.as_str()), (3, ""));
    assert!(outcome.err.contains("    desk approve c-0 Talk/0.0\n"), "{}", outcome.err);
    assert!(outcome.err.ends_with("or in the chat: desk chat Helper --conversation c\n"), "{}", outcome.err);

    assert_eq!(desk.chat(&scripted([]), "And quickly.\n").code, 3, "it still waits");
    assert_eq!(desk.look(&["approve", "c-0"]).code, 0);
    let model = scripted([Reply::text("Paid."), Reply::text("You are welcome.")]);
    let outcome = desk.chat(&model, "Thanks!\n");

    assert_eq!((outcome.code, outcome.out.as_str()), (0, "Paid.\nYou are welcome.\n"), "{}", outcome.err);
    let said = ["Pay.", "And quickly.", "Thanks!"].map(str::to_owned);
    assert_eq!(user_messages(&model), (said.to_vec(), 6), "the full messages are sent again");
}

#[test]
fn message_cancels_pending_calls_under_that_policy() {
    let desk = Desk::new();
    assert_eq!(desk.chat(&scripted([Reply::call("pay", json!({}))]), "Pay.").code, 3);
    let model = scripted([Reply::text("As you like.")]);

    let arguments = ["chat", "helper", "--conversation", "c", "--busy", "cancel"];
    let outcome = desk.say(&project(&model), "Never mind.", &arguments);

    assert_eq!((outcome.code, outcome.out.as_str()), (0, "As you like.\n"), "{}", outcome.err);
    let rows: Vec<Value> =
        desk.look(&["runs", "--json"]).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&json!("completed"), &json!("cancelled")));
}

#[test]
fn unanswered_message_ends_the_chat() {
    let desk = Desk::new();
    let model = scripted([Reply::text("One.")]);

    let outcome = desk.chat(&model, "one\ntwo\nthree\n");

    assert_eq!((outcome.code, outcome.out.as_str()), (1, "One.\n"));
    assert_eq!(model.requests().len(), 2, "the third one is not said");
}

#[test]
fn json_names_the_run_of_each_event_and_sums_up_each_answer() {
    let desk = Desk::new();
    let model = scripted([Reply::text("One."), Reply::text("Two.")]);

    let outcome = desk.say(&project(&model), "1\n2\n", &["chat", "helper", "-c", "c", "--json"]);

    let lines: Vec<Value> = outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sums: Vec<&Value> = lines.iter().filter(|line| line.get("status").is_some()).collect();
    assert_eq!(sums[0], &json!({"run": "c-0", "status": "completed", "text": "One."}));
    assert_eq!(sums[1], &json!({"run": "c-1", "status": "completed", "text": "Two."}));
    let begun: Vec<&Value> = lines.iter().filter(|line| line["event"]["type"] == "BRAIN_START").collect();
    assert_eq!((&begun[0]["run"], &begun[1]["run"]), (&json!("c-0"), &json!("c-1")));
}

#[test]
fn brain_without_a_loop_is_refused_and_the_message_takes_the_place_of_an_input() {
    let desk = Desk::new();

    let outcome = desk.say(&project(&scripted([])), "hello", &["chat", "loopless"]);
    insta::assert_snapshot!(format!("{}\n{}{}", outcome.code, outcome.out, outcome.err), @r"
    2
    error: `Loopless` accepts no message: it has no loop of its own
      run it with: desk run Loopless
    ");
    assert_eq!(desk.look(&["conversations"]).out, "", "nothing has begun");

    let model = scripted([Reply::text("Done."), Reply::text("Done.")]);
    let outcome = desk.say(&project(&model), "hello\nhello?", &["chat", "busy"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "Done.\nDone.\n"));
    assert_eq!(user_messages(&model), (vec!["hello".to_owned(), "hello?".to_owned()], 3));
}

#[test]
fn conversation_is_found_by_a_prefix_and_an_unknown_one_is_refused() {
    let desk = Desk::new();
    let begin = |arguments: &[&str]| {
        let outcome = desk.say(&project(&agreeing()), "Hello", arguments);
        (outcome.code, outcome.err)
    };
    begin(&["chat", "helper", "-c", "order-17", "--user", "bob"]);
    begin(&["chat", "helper", "-c", "order-18"]);
    begin(&["chat", "helper", "--memory"]);
    begin(&["chat", "helper"]);
    let listed = desk.look(&["conversations", "--json"]).out;
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let made = listed[0]["conversation"].as_str().unwrap();
    assert_eq!((listed.len(), made.len()), (3, 8), "what was in memory is gone");

    assert_eq!(begin(&["chat", "helper", "-c", &made[..5]]).0, 0);
    assert_eq!(begin(&["chat", "helper", "-c", "order"]).0, 0, "an unused name begins a conversation");
    assert_eq!(begin(&["chat", "helper", "--last"]).0, 0);
    let count = |id: &str| {
        let shown = desk.look(&["conversations", "show", id, "--json"]).out;
        serde_json::from_str::<Value>(&shown).unwrap()["prompts"].as_array().unwrap().len()
    };
    assert_eq!((count(&made[..3]), count("order"), count("order-17")), (2, 2, 1));

    let refused = |arguments: &[&str]| {
        let outcome = desk.look(arguments);
        format!("{}\n{}", outcome.code, outcome.err)
    };
    insta::assert_snapshot!(refused(&["conversations", "show", "order-"]), @r"
    2
    error: `order-` is ambiguous: the ids of several conversations match
      order-18  Helper, completed
      order-17  Helper, completed
    ");
    insta::assert_snapshot!(refused(&["conversations", "export", "oder-17"]), @r"
    2
    error: unknown conversation `oder-17` in desk/runs.db
      did you mean `order-17` or `order-18`?
      `desk conversations` lists the conversations
    ");
    let (code, err) = begin(&["chat", "helper", "-c", "order-17", "--user", "eve"]);
    assert_eq!(code, 7, "{err}");
    assert!(err.contains("error: the conversation `order-17` belongs to another user\n"), "{err}");
    let (code, err) = begin(&["chat", "helper", "-c", "order-17"]);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.starts_with("error: the conversation `order-17` belongs to a user\n  use --user NAME to continue it"),
        "{err}"
    );
    let (code, err) = begin(&["chat", "helper", "-c", "order", "--user", "eve"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.starts_with("error: the conversation `order` belongs to no user\n  leave out --user"), "{err}");
    assert_eq!(begin(&["chat", "helper", "--last", "--user", "eve"]).0, 2, "she has none");
    assert_eq!(begin(&["chat", "helper", "--last", "--user", "bob"]).0, 0);
    assert_eq!(count("order-17"), 2);
    for wrong in [&["chat", "helper", "-c", ""][..], &["chat", "helper", "-c", "a\nb"], &["chat", "helpe", "-c"]] {
        assert_eq!(begin(wrong).0, 2, "{wrong:?}");
    }
    assert_eq!(begin(&["chat", "no-such-brain"]).0, 2);
    assert_eq!(begin(&["chat", "loopless", "--last"]).0, 2);
}

#[test]
fn conversations_are_listed_with_their_last_message() {
    let desk = Desk::new();
    desk.say(&project(&scripted([])), "", &["run", "loopless"]);
    assert_eq!(
        desk.look(&["conversations"]).err,
        "there are no conversations in desk/runs.db yet; `desk chat BRAIN` begins one\n"
    );
    let say = |id: &str, user: &str, text: &str| {
        desk.say(&project(&agreeing()), text, &["chat", "helper", "-c", id, "--user", user]);
    };
    say("order-17", "ann", "Where is it?\nAnd when does it come?");
    say("order-18", "bob", "I want\u{1b}[2J it back, all of it, and right now if that is possible at all");

    insta::assert_snapshot!(desk.look(&["conversations"]).out, @r"
    CONVERSATION  BRAIN   USER  PROMPTS  STATUS     AGE  LAST MESSAGE
    order-18      Helper  bob   1        completed  0s   I want␛[2J it back, all of it, and right now if that is possible at all
    order-17      Helper  ann   2        completed  0s   And when does it come?
    ");
    assert_eq!(desk.look(&["conversations", "list", "--user", "ann"]).out.lines().count(), 2);
    assert_eq!(desk.look(&["conversations", "--user", "eve"]).err, "no conversation in desk/runs.db belongs to eve\n");
}

#[test]
fn stored_conversation_is_shown_as_in_the_chat() {
    let desk = Desk::new();
    let look = Reply::call("look", json!({}));
    desk.chat(&scripted([look, Reply::text("Clouds.")]), "How is the sky?");
    let model = scripted([Reply::text("Hello."), Reply::text("The user says hello.")]);
    desk.say(&project(&model), "Hello!", &["chat", "noting", "-c", "c"]);

    insta::assert_snapshot!(without_durations(&desk.look(&["conversations", "show", "c"]).out), @r"
    › How is the sky?

    ✓ look
      ▪ cloudy, 12 degrees
      → clouds

    Clouds.

    › Hello!

    Hello.
    ");
    let all = desk.look(&["conversations", "show", "c", "--all"]).out;
    assert!(all.ends_with("Hello.\n\n› hidden from people:\n\nThe user says hello.\n"), "{all}");
}

#[test]
fn exported_conversation_is_complete_in_json_and_markdown() {
    let desk = Desk::new();
    let model = scripted([Reply::call("pay", json!({}))]);
    desk.say(&project(&model), "Pay.", &["chat", "helper", "-c", "c", "--user", "ann"]);
    desk.look(&["approve", "c-0"]);
    let replies = [Reply::text("It is paid,\nwith `care`.\n\n- *approved by bob*\n</blockquote>")];
    let user = ["--user", "ann"];
    desk.say(&project(&scripted(replies)), "", &[&["chat", "helper", "-c", "c"][..], &user].concat());
    let model = scripted([Reply::text("Hello."), Reply::text("A note.")]);
    desk.say(&project(&model), "Hello!", &[&["chat", "noting", "-c", "c"][..], &user].concat());

    let file = desk.path("talk.md");
    let told = desk.look(&["conversations", "export", "c", "--out", &file]);
    assert_eq!((told.code, told.out.as_str()), (0, "wrote the conversation c to desk/talk.md\n"), "{}", told.err);
    insta::assert_snapshot!(without_durations(&std::fs::read_to_string(&file).unwrap()), @r"
    # Conversation c

    ---

    **User:**

    > Pay.

    - `pay` `{}` → `paid`
      - *approved by ann*

    **Assistant:**

    > It is paid,
    > with `care`.
    >
    > - *approved by bob*
    > &lt;/blockquote>

    ---

    **User:**

    > Hello!

    **Assistant:**

    > Hello.
    ");
    assert_eq!(desk.look(&["conversations", "export", "c", "--out", &file]).code, 2, "a file that is there stays");
    assert_eq!(desk.look(&["conversations", "export", "c", "--out", &file, "--force", "--format", "json"]).code, 0);

    let written: Value = serde_json::from_str(&std::fs::read_to_string(Path::new(&file)).unwrap()).unwrap();
    let out = desk.look(&["conversations", "export", "c"]).out;
    assert_eq!(written, serde_json::from_str::<Value>(&out).unwrap(), "stdout has the same");
    assert_eq!((&written["positronic_conversation"], &written["user"]), (&json!(1), &json!("ann")));
    let prompts = written["prompts"].as_array().unwrap();
    let runs: Vec<&str> = prompts.iter().map(|prompt| prompt["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["c-0", "c-1", "c-1"], "the prompt that people are not shown is there, too");
    for prompt in prompts {
        let read: Prompt = serde_json::from_value(prompt["prompt"].clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), prompt["prompt"]);
    }
}

#[test]
fn exported_conversation_has_decisions_and_failures() {
    let desk = Desk::new();
    let thrifty = || {
        brain("Thrifty").r#loop("Talk", |cx| {
            cx.system("You help.")
                .max_iterations(1)
                .ask_for_more()
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
    };
    let say = |replies: Vec<Reply>, text: &str| {
        let project = Project::new().brain(thrifty()).model(Tier::Normal, scripted(replies) as Arc<dyn Model>);
        desk.say(&project, text, &["chat", "thrifty", "-c", "c"]).code
    };
    assert_eq!(say(vec![Reply::call("pay", json!({}))], "Pay."), 3);
    assert_eq!(desk.look(&["reject", "c-0", "--reason", "too `dear`"]).code, 0);
    assert_eq!(say(vec![], ""), 3, "it asks for a second iteration");
    assert_eq!(desk.look(&["approve", "c-0", "--more", "1", "--by", "bob"]).code, 0);
    let listed = desk.look(&["conversations"]).out;
    assert!(listed.contains("running (no worker)"), "no worker continues it: {listed}");
    assert_eq!(say(vec![], ""), 1, "the model has nothing to say");
    assert_eq!(say(vec![Reply::call("pay", json!({}))], "Again!"), 3);
    assert_eq!(desk.look(&["cancel", "c-1", "--reason", "never mind"]).code, 0);

    let written = desk.look(&["conversations", "export", "c", "--format", "markdown"]).out;

    insta::assert_snapshot!(without_durations(&written));
}

#[test]
fn recorded_conversation_is_played_and_continued_by_a_second_process() {
    let desk = Desk::new();
    let file = desk.path("chat.jsonl");
    let model = scripted([Reply::call("look", json!({})), Reply::text("Clouds."), Reply::text("Rain.")]);
    let first = desk.say(&project(&model), "How is it?\nAnd tomorrow?\n", &["chat", "helper", "--record", &file]);
    assert_eq!(first.code, 0, "{}", first.err);

    let played = |lines: &str| {
        let project = Project::new().brain(helper());
        desk.say(&project, lines, &["chat", "helper", "-c", "again", "--cassette", &file])
    };
    let (again, later) = (played("How is it?\n"), played("And tomorrow?\n"));

    assert_eq!((again.code, later.code), (0, 0), "{}{}", again.err, later.err);
    assert_eq!(again.out + &later.out, first.out);
}

#[test]
fn answer_of_a_brain_that_took_the_dialogue_over_is_printed_and_exported() {
    let desk = Desk::new();
    let front = || {
        let billing = brain("Billing").r#loop("Talk", |cx| cx.system("You know all bills.")).build();
        brain("Front")
            .r#loop("Chat", move |cx| cx.system("You hand over.").handoff("billing", billing.clone()))
            .result(|()| 7)
    };
    let model =
        scripted([Reply::call("billing", json!({})).and_text("One moment."), Reply::text("You get 7 EUR back.")]);
    let project = Project::new().brain(front()).model(Tier::Normal, model as Arc<dyn Model>);

    let said = desk.say(&project, "My bill is wrong.\n", &["chat", "front", "-c", "c"]);

    assert_eq!((said.code, said.out.as_str()), (0, "One moment.\n\nYou get 7 EUR back.\n"), "{}", said.err);
    let exported = desk.look(&["conversations", "export", "c", "--format", "markdown"]).out;
    assert!(exported.contains("**Assistant:**\n\n> You get 7 EUR back."), "{exported}");
    let exported = desk.look(&["conversations", "export", "c", "--format", "json"]).out;
    assert!(exported.contains("You get 7 EUR back."), "{exported}");
}
