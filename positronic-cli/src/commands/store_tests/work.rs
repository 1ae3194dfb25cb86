//! `work`: the runs that it continues and the triggers that it fires.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, Tier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desk::{Desk, begun, begun_batch, scripted};
use crate::app::Project;
use crate::commands::tests::{DeskOptions, call_unread, project};

#[test]
fn work_continues_all_runs_with_work() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    begun_batch(&desk, "two");
    for run in ["one", "two"] {
        desk.json(&["approve", run, "--all"]);
    }

    let worked = desk.call(&scripted([Reply::text("Noted."), Reply::text("Noted.")]), &["work", "--once"]);

    assert_eq!(worked.code, 0);
    assert!(worked.err.contains("one  completed") && worked.err.contains("two  completed"), "{}", worked.err);
    assert_eq!(desk.call(&Project::new(), &["runs", "status:completed", "--json"]).out.lines().count(), 2);
}

/// A plugin that waits until several runs are being prepared.
#[derive(Debug, Clone)]
struct Meets(Arc<tokio::sync::Barrier>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Met {}

impl PluginState for Met {
    const NAME: &'static str = "met";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Meets {
    type State = Met;

    fn initial(&self) -> Met {
        Met {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Met>) -> Result<()> {
        tokio::time::timeout(Duration::from_secs(30), self.0.wait()).await?;
        cx.tool("note", |t| t.requires_approval("to note it").execute(async |_: NoArgs, _| Ok("noted")))
    }
}

#[test]
fn work_claims_runs_concurrently() {
    let desk = Desk::new();
    let project = |at_once, reply| {
        let meets = Meets(Arc::new(tokio::sync::Barrier::new(at_once)));
        let pair = brain("Pair").r#loop("Work", move |cx| cx.system("You note.").input("Note.").plugin(meets.clone()));
        let model = ScriptedModel::from_fn(move |_| Reply::clone(&reply));
        Project::new().brain(pair).model(Tier::Normal, Arc::new(model))
    };
    let first = project(1, Reply::call("note", json!({})));
    for run in ["one", "two"] {
        assert_eq!(desk.call(&first, &["run", "pair", "--id", run]).code, 3);
        desk.json(&["approve", run, "--all"]);
    }

    let worked = desk.call(&project(2, Reply::text("Noted.")), &["work", "--once"]);

    assert_eq!(worked.code, 0, "{}", worked.err);
    for run in ["one", "two"] {
        assert!(desk.call(&first, &["show", run]).out.contains("noted"), "the tool was found again");
    }
}

#[test]
fn closed_output_does_not_stop_a_run() {
    let desk = Desk::new();
    let run = |id: &str, lines: [usize; 2], json: &[&str]| {
        let arguments = [&["run", "help desk", "-o", "customer=ada", "--id", id][..], json].concat();
        call_unread(&project(), &arguments, lines, desk.settings())
    };

    assert_eq!(run("no-progress", [99, 1], &[]), 0);
    assert_eq!(run("half-way", [99, 5], &[]), 0);
    assert_eq!(run("no-events", [1, 99], &["--json"]), 0);
    for id in ["no-progress", "half-way", "no-events"] {
        assert_eq!(desk.json(&["show", id])["run"]["status"], "completed", "{id}");
    }
    begun_batch(&desk, "one");
    desk.json(&["approve", "one", "--all"]);
    assert_eq!(call_unread(&scripted([Reply::text("Noted.")]), &["work", "--once"], [0, 0], desk.settings()), 0);
    assert_eq!(desk.json(&["show", "one"])["run"]["status"], "completed");
    // A reading command just ends.
    assert_eq!(call_unread(&Project::new(), &["events", "one", "--json"], [1, 9], desk.settings()), 0);
}

#[test]
fn changed_tool_of_an_open_call_suggests_a_fork() {
    #[derive(Deserialize, JsonSchema)]
    struct Longer {
        text: String,
        #[expect(dead_code, reason = "only the schema counts")]
        author: String,
    }
    let desk = Desk::new();
    begun_batch(&desk, "one");
    desk.json(&["approve", "one", "--all"]);
    let changed = || {
        brain("Batch").state(Vec::<String>::new()).r#loop("Work", |cx| {
            cx.system("You note.").input("Note it.").tool("note", |t| {
                t.description("Notes something")
                    .approval(|args: &Longer, _| Some(format!("to note {}", args.text)))
                    .execute(async |_: Longer, _| Ok("noted"))
            })
        })
    };
    let project =
        |reply: Option<Reply>| Project::new().brain(changed()).model(Tier::Normal, Arc::new(ScriptedModel::new(reply)));

    let refused = desk.call(&project(None), &["work", "one"]);

    assert_eq!(refused.code, 7);
    assert!(refused.err.contains("its tool `note` has other parameters now"), "{}", refused.err);
    let (_, command) = refused.err.split_once("fork the run there with: desk ").unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    let forked = desk.json(&words);
    let worked = desk.call(&project(Some(Reply::text("Nothing to note."))), &["work", forked["run"].as_str().unwrap()]);
    assert_eq!(worked.code, 0, "{}", worked.err);
}

#[test]
fn renamed_stage_suggests_a_fork_where_the_code_matches_or_a_new_run() {
    let desk = Desk::new();
    begun(&desk, "one");
    desk.json(&["approve", "one"]);
    let help = |loop_name: &'static str, version: u32| {
        let help = brain("Help Desk").version(version).options::<DeskOptions>();
        let opened = help.step("Open", async |_| Ok(Vec::<String>::new()));
        let model = ScriptedModel::from_fn(|_| Reply::text("Done."));
        Project::new().brain(opened.r#loop(loop_name, |cx| cx.system("You help."))).model(Tier::Normal, Arc::new(model))
    };

    let renamed = desk.call(&help("Talk", 0), &["work", "one"]);
    let anew = desk.call(&help("Chat", 2), &["work", "one"]);

    assert_eq!((renamed.code, anew.code), (7, 7));
    let (_, command) = renamed.err.split_once("fork the run there with: desk ").unwrap();
    let forked = desk.json(&command.split_whitespace().collect::<Vec<_>>());
    let worked = desk.call(&help("Talk", 0), &["work", forked["run"].as_str().unwrap()]);
    assert!(worked.err.contains("Talk: ended"), "{}", worked.err);
    assert!(anew.err.contains("the new code matches no part of the log"), "{}", anew.err);
    assert!(anew.err.ends_with("or start a new run with: desk run 'Help Desk'\n"), "{}", anew.err);
}

#[test]
fn runs_and_show_mark_a_run_whose_code_has_changed() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    let said = "the code has changed since the start of the run: stage 1 of `Batch` was `Work`, and is `Labour` now";
    let changed = || {
        let renamed = brain("Batch").state(Vec::<String>::new()).r#loop("Labour", |cx| cx.system("You note."));
        Project::new().brain(renamed)
    };

    for words in [&["runs"][..], &["runs", "--json"], &["show", "one"]] {
        let (before, after) = (desk.call(&scripted([]), words).out, desk.call(&changed(), words).out);
        assert!(!before.contains("changed since"), "{before}");
        assert!(
            after.contains(said.trim_start_matches("the code has changed since the start of the run: ")),
            "{after}"
        );
    }
    assert!(desk.call(&changed(), &["runs"]).out.contains(said));
    assert_eq!(desk.json(&["show", "one"])["changed"], Value::Null, "unknown without the brains");

    assert_eq!(desk.call(&scripted([]), &["cancel", "one"]).code, 0);
    assert!(!desk.call(&changed(), &["runs"]).out.contains("changed since"), "a run that is over needs no code");
}

#[test]
fn call_of_a_renamed_tool_can_be_rejected_but_not_approved() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    let renamed = Project::new().brain(brain("Batch").state(Vec::<String>::new()).r#loop("Work", |cx| {
        cx.system("You note.").input("Note it.").tool("write", |t| t.execute(async |_: NoArgs, _| Ok("noted")))
    }));
    let said = "the code has changed since the start of the run: the call `Work/0.0` is open, and its tool `note` no longer \
                exists: restore the tool, or reject the call";

    for words in [&["approve", "one", "Work/0.0"][..], &["approve", "one", "--all"]] {
        let refused = desk.call(&renamed, words);
        assert_eq!((refused.code, refused.out.as_str()), (7, ""), "{}", refused.err);
        assert!(refused.err.starts_with(&format!("error: {said}\n")), "{}", refused.err);
    }
    let shown = desk.call(&renamed, &["show", "one"]).out;
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{shown}");

    assert_eq!(desk.call(&renamed, &["reject", "one", "--all"]).code, 0);
}

/// A brain whose model sets a trigger on request, and names the trigger that started it.
fn gardener() -> Project {
    let triggers = positronic_plugins::Triggers::new();
    let gardener = brain("Gardener").r#loop("Chat", move |cx| {
        let chat = cx.system("You look after a garden.").plugin(triggers.clone());
        if cx.fired().is_none() { chat.input("Water the beans!") } else { chat }
    });
    let model = ScriptedModel::from_fn(|request| match (request.messages.len(), request.context.len()) {
        (_, 1) => Reply::text("Watered."),
        (1, _) => Reply::call("trigger.create", json!({"what": "Water the beans.", "in": "1 hour"})),
        _ => Reply::text("In an hour."),
    });
    Project::new().brain(gardener).model(Tier::Normal, Arc::new(model))
}

#[test]
fn work_fires_due_triggers_and_they_can_be_listed_and_deleted() {
    let desk = Desk::new();
    let call = |arguments: &[&str]| desk.call(&gardener(), arguments);
    for id in ["one", "two"] {
        let ran = call(&["run", "gardener", "--id", id, "--user", "ann"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let lines = call(&["triggers", "--json"]).out;
    let timers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = timers.iter().map(|timer| timer["trigger"]["id"].as_str().unwrap()).collect();
    let listed = call(&["triggers"]).out;
    for id in &ids {
        assert!(
            listed.contains(&format!("{id} is due in 1h; it starts Gardener for ann\n  Water the beans.\n")),
            "{listed}"
        );
    }
    assert_eq!(call(&["work", "--once"]).err, "", "nothing is due");

    let deleted = call(&["triggers", "--delete", ids[1]]);
    assert_eq!(deleted.err, format!("deleted the trigger {}; the runs that it started continue\n", ids[1]));
    assert!(desk.refused(&["triggers", "--delete", ids[1]]).starts_with("2\nerror: there is no trigger `t-"));
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE timers SET due = 5", []).unwrap();
    let strange = desk.call(&project(), &["work", "--once"]);
    let told = format!("the trigger {} cannot fire here: unknown brain `Gardener`\n", ids[0]);
    assert_eq!((strange.code, strange.err), (0, told));
    let worked = call(&["work", "--once"]);

    let run = format!("{}-19700101T000000.000005Z", ids[0]);
    assert!(worked.err.starts_with(&format!("the trigger {} has started {run}\n{run}  Gardener starts\n", ids[0])));
    assert!(worked.err.contains("the model answered in 0 ms: Watered."), "{}", worked.err);
    let shown = call(&["show", &run]).out;
    assert!(shown.contains(&format!("the trigger {} has started it: Water the beans.", ids[0])), "{shown}");
    assert!(shown.contains("over trigger for ann"), "{shown}");
    assert_eq!(desk.call(&Project::new(), &["triggers"]).err, "no trigger is set in desk/runs.db\n");
}

#[test]
fn chat_fires_due_triggers_of_its_conversation_only() {
    let triggers = positronic_plugins::Triggers::new();
    let project = || {
        let triggers = triggers.clone();
        let keeper = brain("Keeper").r#loop("Chat", move |cx| cx.system("You keep bees.").plugin(triggers.clone()));
        let model =
            ScriptedModel::from_fn(|request| match (request.context.len(), request.messages.messages().last()) {
                (1, _) => Reply::text("I have looked after the bees."),
                (_, Some(Message::User { text, .. })) if text == "Look after the bees!" => {
                    Reply::call("trigger.create", json!({"what": "The bees.", "in": "1 hour"}))
                }
                _ => Reply::text("Gladly."),
            });
        Project::new().brain(keeper).model(Tier::Normal, Arc::new(model))
    };
    let desk = Desk::new();
    for conversation in ["c", "other"] {
        let said = desk.say(&project(), "Look after the bees!", &["chat", "keeper", "-c", conversation]);
        assert_eq!((said.code, said.out.as_str()), (0, "Gladly.\n"), "{}", said.err);
    }
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE timers SET due = 5", []).unwrap();
    drop(db);

    let said = desk.say(&project(), "And now?", &["chat", "keeper", "-c", "c"]);

    assert_eq!((said.code, said.out.as_str()), (0, "I have looked after the bees.\nGladly.\n"), "{}", said.err);
    assert!(said.err.contains(" is due: The bees.\n"), "{}", said.err);
    let left = desk.call(&project(), &["triggers", "--json"]).out;
    assert_eq!(left.lines().count(), 1, "{left}");
    assert!(left.contains("\"conversation\":\"other\""), "{left}");
}

#[test]
fn cassette_does_not_continue_a_run_that_a_model_began() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    assert_eq!(desk.call(&Project::new(), &["approve", "ticket-1"]).code, 0);

    let one = desk.call(&project(), &["work", "ticket-1"]);
    let all = desk.call(&project(), &["work", "--once"]);

    insta::assert_snapshot!(format!("{}\n{}", one.code, one.err), @r"
    5
    no key set: playing the bundled cassette of `Help Desk` (written by hand); tools run for real; set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key to ask a model
    error: `scripted/scripted` has answered so far, and a cassette cannot continue for it
      set the key of its provider, as at the start of the run
    ");
    assert!(all.err.contains("a cassette cannot continue for it"), "{}", all.err);
    let log = desk.call(&Project::new(), &["events", "ticket-1", "--json"]).out;
    assert!(log.contains("LOOP_APPROVAL_DECIDED") && !log.contains("cassette/"), "{log}");
    let done = desk.call(&scripted([Reply::text("It is paid.")]), &["work", "ticket-1"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

/// A recording of a conversation: a prompt, one that a trigger starts, and two more, the last of which asks before it pays.
const KEEPER: &str = r#"{"cassette": 1, "note": "written by hand", "model": "cassette/keeper"}
{"at": "Chat", "reply": {"calls": [{"name": "trigger.create", "arguments": {"what": "The bees.", "in": "1 hour"}}]}}
{"at": "Chat", "reply": {"text": "Gladly."}}
{"at": "Chat", "reply": {"text": "I have looked after the bees."}}
{"at": "Chat", "reply": {"text": "They are well."}}
{"at": "Chat", "reply": {"calls": [{"name": "pay", "arguments": {}}]}}
{"at": "Chat", "reply": {"text": "The honey is paid."}}
"#;

/// A brain without a model, for which the recording answers.
fn recorded_keeper() -> Project {
    let triggers = positronic_plugins::Triggers::new();
    let keeper = brain("Keeper").r#loop("Chat", move |cx| {
        cx.system("You keep bees.")
            .plugin(triggers.clone())
            .tool("pay", |t| t.requires_approval("it pays").execute(async |_: NoArgs, _| Ok("paid")))
    });
    Project::new().brain(keeper).cassette("Keeper", KEEPER)
}

fn make_triggers_due(desk: &Desk) {
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE timers SET due = 5", []).unwrap();
}

#[test]
fn cassette_of_a_conversation_answers_triggers_and_work_at_its_position() {
    let desk = Desk::new();
    let say = |text: &str| desk.say(&recorded_keeper(), text, &["chat", "keeper", "-c", "c"]);
    assert_eq!(say("Look after the bees!").out, "Gladly.\n");
    make_triggers_due(&desk);

    let fired = say("How are they?");

    assert_eq!(fired.out, "I have looked after the bees.\nThey are well.\n", "{}", fired.err);
    let asks = say("Pay for the honey!");
    assert_eq!(asks.code, 3, "{}", asks.err);
    assert_eq!(desk.call(&Project::new(), &["approve", "c-3"]).code, 0);
    let worked = desk.call(&recorded_keeper(), &["work", "c-3"]);
    assert_eq!(worked.code, 0, "{}", worked.err);
    assert!(worked.err.contains("The honey is paid."), "not what the first prompt was answered: {}", worked.err);
}

#[test]
fn work_answers_a_trigger_of_a_conversation_from_the_cassette_and_none_beyond_its_end() {
    let desk = Desk::new();
    assert_eq!(desk.say(&recorded_keeper(), "Look after the bees!", &["chat", "keeper", "-c", "c"]).out, "Gladly.\n");
    make_triggers_due(&desk);

    let worked = desk.call(&recorded_keeper(), &["work", "--once"]);

    assert_eq!(worked.code, 0);
    assert!(worked.err.contains("I have looked after the bees."), "{}", worked.err);
}

#[test]
fn work_serves_only_the_named_brains_and_versions() {
    let desk = Desk::new();
    let project = |version, reply: Reply| {
        let asking = |title: &str, version| {
            brain(title).version(version).r#loop("Work", |cx| {
                let pay =
                    Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
                cx.system("Pay.").input("Begin.").tools([pay])
            })
        };
        let model = ScriptedModel::from_fn(move |_| Reply::clone(&reply));
        Project::new().brain(asking("Old", version)).brain(asking("Other", 1)).model(Tier::Normal, Arc::new(model))
    };
    for name in ["old", "other"] {
        assert_eq!(desk.call(&project(1, Reply::call("pay", json!({}))), &["run", name, "--id", name]).code, 3);
        desk.json(&["approve", name, "--all"]);
    }
    let statuses = || {
        let listed = desk.call(&Project::new(), &["runs", "--json"]).out;
        let mut rows: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.sort_by_key(|row| row["run"].to_string());
        rows.iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let done = || Reply::text("Done.");

    let newer = desk.call(&project(2, done()), &["work", "--once", "--brain", "old@2"]);
    assert!(newer.err.contains("the worker serves only `Old` version 2"), "{}", newer.err);
    assert_eq!(statuses(), ["running", "running"]);
    desk.call(&project(1, done()), &["work", "--once", "--brain", "old"]);
    assert_eq!(statuses(), ["completed", "running"]);
    desk.call(&project(2, done()), &["work", "--once"]);
    assert_eq!(statuses(), ["completed", "completed"]);

    let unknown = desk.call(&project(1, done()), &["work", "--brain", "older"]);
    assert!(unknown.err.contains("unknown brain `older`"), "{}", unknown.err);
    let misread = desk.call(&project(1, done()), &["work", "--brain", "old@two"]);
    assert!(misread.err.contains("`two` is not the number of a version"), "{}", misread.err);
}
