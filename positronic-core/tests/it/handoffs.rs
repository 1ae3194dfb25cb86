//! Dialogues that another loop continues: of an earlier loop, and of a call that hands over.

use std::sync::{Arc, Mutex};

use positronic_core::dsl::IntoBrain;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Dialogue, EventKind, Message, ModelRequest, ModelResponse, Seq};
use positronic_core::runner::{Fork, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Test, TestClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};

/// A desk that hands bills over to a brain with a step and two loops.
fn desk(part: Dialogue) -> Brain<(), String> {
    desk_with(part, None)
}

fn asked_desk() -> Brain<(), String> {
    desk_with(Dialogue::Whole, Some("My bill B-7 is wrong."))
}

fn desk_with(part: Dialogue, input: Option<&'static str>) -> Brain<(), String> {
    let billing = brain("Billing")
        .step("Open", async |_| Ok("closed".to_owned()))
        .r#loop("Talk", |cx| cx.system("You know all bills.").tool("look", |t| t.read_only().execute(look)))
        .r#loop("File", |cx| cx.system("File the bill.").input("Say one word.").hidden())
        .build();
    brain("Desk")
        .state("open".to_owned())
        .r#loop("Chat", move |cx| {
            let billing = billing.clone();
            let chat = cx
                .system("You know who can help.")
                .tool("look", |t| t.read_only().execute(look))
                .tool("billing", |t| {
                    t.brain(billing).handoff().dialogue(part).map_output(|state, result| *state = result)
                });
            match input {
                Some(input) => chat.input(input),
                None => chat,
            }
        })
        .build()
}

async fn look<O, S, V>(_: NoArgs, _: ToolContext<O, S, V>) -> Result<&'static str> {
    Ok("B-7 is paid twice")
}

fn says(request: &ModelRequest) -> Reply {
    let said = said(request);
    match (&*request.system, said.last().map_or("", String::as_str)) {
        ("You know who can help.", "result: B-7 is paid twice") => {
            Reply::call("billing", json!({})).and_text("One moment.")
        }
        ("You know who can help.", last) if last.contains("bill") => {
            Reply::call("look", json!({})).and_text("Let me see.")
        }
        ("You know all bills.", _) => Reply::text("You get 7 EUR back."),
        ("File the bill.", _) => Reply::text("Filed."),
        (_, last) => Reply::text(format!("You said {last:?} after {}.", said.len())),
    }
}

/// The messages of a request in words.
fn said(request: &ModelRequest) -> Vec<String> {
    let mut lines = Vec::new();
    for message in request.messages.messages() {
        match message {
            Message::User { text, .. } => lines.push(format!("user: {text}")),
            Message::Tool { text, .. } => lines.push(format!("result: {text}")),
            Message::Assistant { parts, .. } => {
                let parts = serde_json::to_value(parts).unwrap();
                let words = parts.as_array().unwrap().iter().map(|part| {
                    part.get("text").or_else(|| part.get("name")).and_then(Value::as_str).unwrap_or("?").to_owned()
                });
                lines.push(format!("model: {}", words.collect::<Vec<_>>().join(" + ")));
            }
        }
    }
    lines
}

/// A request: the system prompt, and the messages in words.
type InWords = (String, Vec<String>);

/// A model with its requests.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<InWords>>>);

impl Asked {
    fn model(&self) -> ScriptedModel {
        let asked = Arc::clone(&self.0);
        ScriptedModel::from_fn(move |request| {
            asked.lock().unwrap().push((request.system.to_string(), said(request)));
            says(request)
        })
    }

    /// Returns the requests with a system prompt.
    fn of(&self, system: &str) -> Vec<String> {
        let asked = self.0.lock().unwrap();
        asked.iter().filter(|(of, _)| of == system).map(|(_, said)| said.join("\n")).collect()
    }
}

fn runner(store: &MemoryStore, asked: &Asked) -> Runner {
    Runner::new(asked.model())
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(std::time::Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn brain_that_takes_a_dialogue_over_reads_it_without_the_answer_that_hands_over() {
    let (store, asked) = (MemoryStore::new(), Asked::default());
    let runner = runner(&store, &asked);
    let chat = runner.conversation("c");
    let run = chat.send(&desk(Dialogue::Whole), (), "My bill B-7 is wrong.").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "closed");
    insta::assert_snapshot!(&asked.of("You know all bills.")[0], @r"
    user: My bill B-7 is wrong.
    model: Let me see. + look
    result: B-7 is paid twice
    ");
    assert_eq!(asked.of("File the bill.")[0], "user: Say one word.", "only the first loop takes the dialogue over");
    assert_eq!(run.answer().as_deref(), Some("You get 7 EUR back."));
    let log = run.events(Seq(0)).await.unwrap();
    let ends = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopComplete { outcome, .. } => Some(format!("{} {}", event.path, json!(outcome)["type"])),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends, ["Chat/1.0/Talk \"answered\"", "Chat/1.0/File \"answered\"", "Chat \"exited\""]);

    let prompts = chat.prompts().await.unwrap();
    let spoken: Vec<_> = prompts.iter().map(|(_, prompt)| prompt.path.as_str()).collect();
    assert_eq!(spoken, ["Chat", "Chat/1.0/Talk"], "the loop `File` continues no dialogue");

    let next = chat.send(&desk(Dialogue::Whole), (), "Thank you.").await.unwrap();
    next.result().await.unwrap();
    insta::assert_snapshot!(&asked.of("You know who can help.")[2], @r#"
    user: My bill B-7 is wrong.
    model: Let me see. + look
    result: B-7 is paid twice
    model: One moment. + billing
    result: closed
    model: You get 7 EUR back.
    user: Thank you.
    "#);
}

#[tokio::test(start_paused = true)]
async fn part_of_a_dialogue_has_no_result_without_its_call_and_ends_with_the_person() {
    for (part, expected) in [
        (Dialogue::Last(1), "user: Begin.\nmodel: Let me see. + look\nresult: B-7 is paid twice"),
        (Dialogue::Said, "user: My bill B-7 is wrong."),
    ] {
        let asked = Asked::default();
        let runner = runner(&MemoryStore::new(), &asked);
        let run = runner.conversation("c").send(&desk(part), (), "My bill B-7 is wrong.").await.unwrap();
        run.result().await.unwrap();
        assert_eq!(asked.of("You know all bills.")[0], expected, "{part:?}");
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Case {
    summary: String,
}

#[tokio::test(start_paused = true)]
async fn brain_that_takes_over_with_a_summary_reads_it_and_the_last_message_alone() {
    let talk =
        brain("Billing").options::<Case>().r#loop("Talk", |cx| cx.system(format!("So far: {}", cx.options.summary)));
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| {
            let talk = talk.clone();
            cx.system("Help.")
                .tool("look", |t| t.read_only().execute(look))
                .tool("billing", |t| t.brain(talk).handoff().dialogue(Dialogue::Message))
        })
        .build();
    let model = Arc::new(ScriptedModel::new([
        Reply::call("look", json!({})),
        Reply::call("billing", json!({ "summary": "B-7 is paid twice." })),
        Reply::text("You get 7 EUR back."),
    ]));
    let runner = Runner::new(Arc::clone(&model));

    let run = runner.conversation("c").send(&desk, (), "My bill B-7 is wrong.").await.unwrap();
    run.result().await.unwrap();

    let request = model.requests().pop().unwrap();
    assert_eq!(&*request.system, "So far: B-7 is paid twice.");
    assert_eq!(said(&request), ["user: My bill B-7 is wrong."]);
}

#[tokio::test(start_paused = true)]
async fn brain_that_got_a_summary_reads_what_was_said_since_when_the_conversation_stays_with_it() {
    let billing =
        brain("Billing").options::<Case>().r#loop("Talk", |cx| cx.system(format!("So far: {}", cx.options.summary)));
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| {
            let billing = billing.clone();
            cx.system("Desk.").tool("billing", |t| t.brain(billing).handoff().dialogue(Dialogue::Message).stay())
        })
        .build();
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({ "summary": "It is about a bill." })),
        Reply::text("Which bill?"),
        Reply::text("You get 7 EUR back."),
    ]));
    let runner = Runner::new(Arc::clone(&model));
    let chat = runner.conversation("c");
    for message in ["My bill is wrong.", "B-7"] {
        chat.send(&desk, (), message).await.unwrap().result().await.unwrap();
    }

    let requests = model.requests();
    assert_eq!(said(&requests[1]), ["user: My bill is wrong."]);
    assert_eq!(said(&requests[2]), ["user: My bill is wrong.", "model: Which bill?", "user: B-7"]);
    assert_eq!(&*requests[2].system, "So far: It is about a bill.");
}

#[tokio::test(start_paused = true)]
async fn reminders_of_the_engine_are_no_messages_of_the_person() {
    for (part, expected) in
        [(Dialogue::Message, "user: My bill B-7 is wrong."), (Dialogue::Said, "user: My bill B-7 is wrong.")]
    {
        let talk = brain("Billing").r#loop("Talk", |cx| cx.system("You know all bills."));
        let desk = brain("Desk").r#loop("Chat", move |cx| {
            let talk = talk.clone();
            cx.system("Hand over.").require_exit().tool("billing", |t| t.brain(talk).handoff().dialogue(part))
        });
        let replies =
            [Reply::text("One moment."), Reply::call("billing", json!({})), Reply::text("You get 7 EUR back.")];
        let model = Arc::new(ScriptedModel::new(replies));
        let runner = Runner::new(Arc::clone(&model));

        let run = runner.conversation("c").send(&desk.build(), (), "My bill B-7 is wrong.").await.unwrap();
        run.result().await.unwrap();

        let requests = model.requests();
        assert_eq!(said(&requests[1]).len(), 3, "the engine reminds the model");
        assert_eq!(said(&requests[2]).join("\n"), expected, "{part:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn loop_goes_on_when_the_brain_that_it_handed_over_to_fails() {
    let failing = brain("Failing").step("Fail", async |_| -> Result<()> { Err(Error::new("closed today")) });
    let failing = failing.build();
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        cx.system("Help.").input("My bill?").handoff("billing", failing.clone()).handoff("complaints", noted())
    });
    let model = ScriptedModel::new([Reply::call("billing", json!({})), Reply::call("complaints", json!({}))]);
    let story = Test::new(model).run(desk.build(), ()).await;
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: My bill?
    billing({}) -> Error: the step `Chat/0.0/Fail` failed: closed today
    complaints({}) -> noted
    = {"type":"exited","tool":"complaints"}
    "#);
}

fn noted() -> Brain<(), String> {
    brain("Complaints").step("Note", async |_| Ok("noted".to_owned())).build()
}

#[tokio::test(start_paused = true)]
async fn loop_continues_the_dialogue_of_an_earlier_one() {
    let asked = Asked::default();
    let interview = brain("Interview")
        .r#loop("Chat", |cx| {
            cx.system("You know who can help.")
                .input("My bill?")
                .tool("look", |t| t.read_only().execute(look))
                .max_iterations(1)
        })
        .r#loop("Report", |cx| cx.system("Write.").continue_from("Chat"))
        .r#loop("Title", |cx| cx.system("Name it.").continue_part("Report", Dialogue::Last(1)).input("A title?"))
        .build();
    let run = Test::new(asked.model()).start(interview, ()).await;
    run.result().await.unwrap();
    insta::assert_snapshot!(&asked.of("Write.")[0], @r"
    user: My bill?
    model: Let me see. + look
    result: B-7 is paid twice
    user: Continue.
    ");
    assert!(asked.of("Name it.")[0].ends_with("\nuser: A title?"), "{}", asked.of("Name it.")[0]);
}

#[tokio::test(start_paused = true)]
async fn loop_that_continues_one_that_has_not_run_fails() {
    let lost = brain("Lost").r#loop("Report", |cx| cx.system("Write.").continue_from("Chat")).build();
    let error = Test::new(ScriptedModel::from_fn(says)).start(lost, ()).await.result().await.unwrap_err().to_string();
    assert!(error.contains("it continues from `Chat`, and no loop of the brain with this name has ended"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dialogue_that_was_taken_over_is_the_same_after_a_crash_at_any_moment() {
    let tale = Tale {
        definition: IntoBrain::definition(&asked_desk()),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(says),
        answers: Arc::new(|pending| panic!("{pending:?}")),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!("closed"));
    assert!(baseline.deaths.len() > 5);
    for death in &baseline.deaths {
        let Some((end, log)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
        let continued = log.iter().find_map(|event| match &event.kind {
            EventKind::LoopStart { continues: Some(continued), .. } => Some(continued.path.to_string()),
            _ => None,
        });
        assert_eq!(continued.as_deref(), Some("Chat"));
    }
}

#[tokio::test(start_paused = true)]
async fn fork_inside_a_brain_that_took_over_keeps_the_dialogue() {
    let (store, asked) = (MemoryStore::new(), Asked::default());
    let runner = runner(&store, &asked);
    let run = runner.conversation("c").send(&desk(Dialogue::Whole), (), "My bill B-7 is wrong.").await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let at = log.iter().find(|event| event.path.as_str() == "Chat/1.0/Talk/0").unwrap().seq;

    let forked = runner.client().fork(run.id(), at, Fork::default()).await.unwrap();
    let runner = runner.clone().brain(desk(Dialogue::Whole));
    assert!(matches!(runner.resume(&forked).await.unwrap().settled().await, Settled::Completed(_)));

    let talks = asked.of("You know all bills.");
    assert_eq!((talks.len(), &talks[0]), (2, &talks[1]));
}

#[tokio::test(start_paused = true)]
async fn guards_of_answers_hold_after_a_dialogue_was_handed_over() {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("You know all bills.")).build();
    let desk = brain("Desk").state("polite".to_owned()).r#loop("Chat", move |cx| {
        cx.system("Help.").input("My bill?").handoff("billing", billing.clone()).guard_answer(
            "Tone",
            async |cx, answer: Arc<ModelResponse>| {
                if answer.text().contains("!") { Err(format!("be {}", *cx.state)) } else { Ok(()) }
            },
        )
    });
    let model =
        ScriptedModel::new([Reply::call("billing", json!({})), Reply::text("Pay!"), Reply::text("Please pay.")]);
    let run = Test::new(model).start(desk.build(), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("Please pay."));
    let log = run.events(Seq(0)).await.unwrap();
    let refused: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopAnswerRefused { guard, message, .. } => {
                Some(format!("{} {}: {message}", event.path, guard.as_deref().unwrap_or("–")))
            }
            _ => None,
        })
        .collect();
    assert_eq!(refused, ["Chat/0.0/Talk/0 Tone: be polite"]);
}

#[tokio::test(start_paused = true)]
async fn message_during_a_handoff_is_read_by_the_brain_that_took_the_dialogue_over() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("ask", json!({})),
        Reply::text("I look at the other one."),
    ]));
    let billing = brain("Billing").r#loop("Talk", |cx| {
        cx.system("Bills.")
            .tool("ask", |t| t.execute(async |_: NoArgs, cx| Ok(cx.result("").wait_for_reply::<String>("Which?"))))
    });
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| cx.system("Help.").input("My bill is wrong.").handoff("billing", billing.clone()));
    let run = Test::new(Arc::clone(&model)).start(desk, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    run.message("Wait, I mean the other one.", "ann").await.unwrap();
    run.reply(&pending[0].call, json!("B-7"), "ann").await.unwrap();
    run.result().await.unwrap();
    let requests = model.requests();
    let said = said(requests.last().unwrap());
    assert!(said.iter().any(|said| said.contains("the other one")), "{said:?}");
}
