//! Waits: webhooks and replies, their effect on the state, and concurrent signals.

use std::time::Duration;

use positronic_core::dsl::Wait;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Event, EventKind, PendingKind, SignalKind, Status, ToolResult, UserMessage};
use positronic_core::runner::{Delivered, Settled, SignalError};
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, ShopLoop, ShopTool, batch, done, error_of, events_named, path,
    results, slow_batch, success, tools, waits, work, workshop,
};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

fn slack() -> Webhook<Note> {
    webhook("slack")
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Email {
    text: String,
}

fn mail() -> Webhook<Email> {
    webhook("mail")
}

/// Works, then waits for slack or mail under its id; folds the answer into the state.
fn asking() -> ShopTool {
    Tool::new("ask", |t: ShopBuilder| {
        t.wait(|job: &Job, _| {
            [
                slack().on(&job.id).resume(|board, note| board.done.push(note.text)),
                mail().on(&job.id).resume(|board, entry| board.done.push(format!("{} by mail", entry.text))),
            ]
        })
        .execute(async |job: Job, cx: Shop| {
            cx.services.note(&job.id);
            Ok(cx.result(format!("asked {}", job.id)))
        })
    })
}

fn with_asking(config: ShopLoop) -> ShopLoop {
    tools(config).tools([asking()])
}

fn refused(error: SignalError) -> Refusal {
    match error {
        SignalError::Refused(refusal) => refusal,
        other => panic!("the store failed: {other}"),
    }
}

fn note(text: &str) -> Value {
    json!({ "text": text })
}

#[tokio::test(start_paused = true)]
async fn first_arrival_wins_among_the_waits_of_one_list() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let run = play.start(&workshop(&journal, with_asking), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);

    run.webhook("mail", "a", note("hello")).await.unwrap();
    let second = run.webhook("slack", "a", note("too late")).await.unwrap_err();

    let story = play.story(&run).await;
    assert!(matches!(refused(second), Refusal::NothingWaits { .. }));
    let answer = json!({"result": "asked a", "answer": {"text": "hello"}, "webhook": "mail"});
    assert_eq!(results(&story, "Work"), [success(answer)], "the result says which webhook has come");
    assert_eq!(*story.state(), json!({"done": ["hello by mail"]}), "its own closure takes the answer into the state");
    assert_eq!(journal.take(), ["a"], "the tool ran once");
}

#[tokio::test(start_paused = true)]
async fn run_resumes_after_all_waiting_calls_are_answered() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a"), ("ask", "b"), ("safe", "c")]), done()]);
    let run = play.start(&workshop(&journal, with_asking), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1"]);

    run.webhook("slack", "b", note("second")).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert_eq!(play.requests().len(), 1, "the model is not asked before all have come");

    run.webhook("slack", "a", note("first")).await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(*story.state(), json!({"done": ["c", "second", "first"]}));
    assert!(play.last_results()[0].contains("first"), "results are in call order");
}

#[tokio::test(start_paused = true)]
async fn payload_of_another_type_is_refused_and_changes_nothing() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let run = play.start(&workshop(&journal, with_asking), ()).await;
    waits(&run).await;
    let before = run.state();

    let misfit = run.webhook("slack", "a", json!({"txt": 1})).await.unwrap_err();
    let elsewhere = run.webhook("slack", "other", note("x")).await.unwrap_err();

    assert!(matches!(refused(misfit), Refusal::Misfit { reason, .. } if reason.contains("\"text\" is a required")));
    assert!(matches!(refused(elsewhere), Refusal::NothingWaits { .. }));
    assert_eq!(run.state(), before);
    run.webhook("slack", "a", note("x")).await.unwrap();
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn call_can_wait_for_a_reply_to_itself() {
    let journal = Journal::default();
    let play = Play::new([batch([("survey", "a"), ("survey", "b")]), done()]);
    let survey = |config: ShopLoop| {
        config.tool("survey", |t| {
            t.execute(async |job: Job, cx: Shop| {
                let question = format!("How is {}?", job.id);
                cx.update(|board| board.done.push(job.id));
                Ok(cx.result(()).wait_for_reply::<Note>(question))
            })
        })
    };
    let run = play.start(&workshop(&journal, survey), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("the run does not wait") };
    assert_eq!(run.document(), json!({"done": ["a", "b"]}), "the state changes before the wait");
    let PendingKind::Answer { waits: asked } = &pending[1].kind else { panic!("{pending:?}") };
    assert_eq!((asked[0].person, asked[0].prompt.as_deref()), (true, Some("How is b?")));

    let misfit = run.reply(&path("Work/0.1"), json!("fine"), "ann").await.unwrap_err();
    assert!(matches!(refused(misfit), Refusal::Misfit { .. }));
    run.reply(&path("Work/0.1"), note("fine"), "ann").await.unwrap();
    run.reply(&path("Work/0.0"), note("bad"), "bob").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(results(&story, "Work"), [success(note("bad")), success(note("fine"))], "no value: only the answer");
    let again = run.reply(&path("Work/0.0"), note("x"), "bob").await.unwrap_err();
    assert_eq!(refused(again), Refusal::Ended);
}

fn timed(otherwise: Option<Value>) -> impl Fn(ShopLoop) -> ShopLoop + Send + Sync {
    move |config| {
        let otherwise = otherwise.clone();
        config.tool("ask", move |t| {
            t.wait(move |job: &Job, _| {
                let wait = slack().on(&job.id).timeout(Duration::from_secs(60));
                let wait = match &otherwise {
                    Some(value) => wait.otherwise(value),
                    None => wait,
                };
                [wait.resume(|board: &mut Board, note| board.done.push(note.text))]
            })
            .execute(async |_: Job, cx: Shop| Ok(cx.result("asked")))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn expired_wait_gives_its_own_result() {
    let journal = Journal::default();
    for (otherwise, expected) in [
        (Some(json!({"answer": "none"})), success(json!({"answer": "none"}))),
        (Some(Value::Null), success(Value::Null)),
        (None, ToolResult::error("the wait expired")),
    ] {
        let play = Play::new([batch([("ask", "a")]), done()]);
        let run = play.start(&workshop(&journal, timed(otherwise)), ()).await;
        waits(&run).await;
        play.story(&run).await;

        assert_eq!(run.result().await.unwrap(), Board::default(), "no answer came, so `resume` does not run");

        let story = play.story(&run).await;
        assert_eq!(results(&story, "Work"), [expected]);
        assert_eq!(events_named(&story, "LOOP_RESUME"), ["Work/0.0"]);
    }
}

#[tokio::test(start_paused = true)]
async fn answer_in_time_wins_over_the_timeout() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let run = play.start(&workshop(&journal, timed(None)), ()).await;
    waits(&run).await;

    tokio::time::advance(Duration::from_secs(59)).await;
    run.webhook("slack", "a", note("just so")).await.unwrap();

    assert_eq!(run.result().await.unwrap().done, ["just so"]);
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn siblings_finish_before_the_run_is_suspended() {
    let journal = Journal::default();
    let play = Play::free([slow_batch([("ask", "a", 0), ("safe", "b", 100)]), done()]);
    let run = play.start(&workshop(&journal, with_asking), ()).await;
    while run.pending().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.status(), Status::Running, "a sibling is in flight");

    assert_eq!(waits(&run).await, ["Work/0.0"]);

    assert_eq!(run.status(), Status::Waiting);
    assert_eq!(journal.take(), ["a", "b", "b-"]);
    run.webhook("slack", "a", note("x")).await.unwrap();
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn panicking_resume_closure_fails_the_call_and_keeps_the_state() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let clumsy = |config: ShopLoop| {
        config.tool("ask", |t| {
            t.wait(|_: &Job, _| [slack().on("1").resume(|_, _| panic!("dropped it"))])
                .execute(async |_: Job, cx: Shop| Ok(cx.result(())))
        })
    };
    let run = play.start(&workshop(&journal, clumsy), ()).await;
    waits(&run).await;

    run.webhook("slack", "1", note("x")).await.unwrap();

    let story = play.story(&run).await;
    let results = results(&story, "Work");
    assert!(error_of(&results[0]).ends_with("so the state is as before: the code panicked: dropped it"), "{results:?}");
    assert_eq!(*story.state(), json!({"done": []}));
}

#[tokio::test(start_paused = true)]
async fn approved_call_can_then_wait() {
    let journal = Journal::default();
    let play = Play::new([batch([("careful", "a")]), done()]);
    let careful = |config: ShopLoop| {
        config.tool("careful", |t| {
            t.approval(|_: &Job, _| Some("sure?".to_owned())).wait(|job: &Job, _| [slack().on(&job.id)]).execute(work)
        })
    };
    let run = play.start(&workshop(&journal, careful), ()).await;
    waits(&run).await;
    assert!(matches!(refused(run.webhook("slack", "a", note("x")).await.unwrap_err()), Refusal::NothingWaits { .. }));

    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    waits(&run).await;
    run.webhook("slack", "a", note("x")).await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(results(&story, "Work"), [success(json!({"result": "a done", "answer": {"text": "x"}}))]);
    assert_eq!(*story.state(), json!({"done": ["a"]}));
}

#[tokio::test(start_paused = true)]
async fn nested_brains_wait_at_once_and_resume_one_by_one() {
    let journal = Journal::default();
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Ask", |cx| cx.system("").tools([asking()]))
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            // A waiting brain frees its slot for the next one.
            cx.system("")
                .parallel(1)
                .tool("inner", |t| t.brain(inner()).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(journal);
    let play = Play::of(
        positronic_core::model::scripted::ScriptedModel::new([
            Reply::calls([("inner", json!({})), ("inner", json!({})), ("inner", json!({}))]),
            done(),
        ])
        .on("Work/0.0/Ask", [batch([("ask", "a")]), done()])
        .on("Work/0.1/Ask", [batch([("ask", "b")]), done()])
        .on("Work/0.2/Ask", [batch([("ask", "c")]), done()]),
        true,
    );
    let run = play.start(&outer, ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0/Ask/0.0", "Work/0.1/Ask/0.0", "Work/0.2/Ask/0.0"]);
    play.story(&run).await;

    run.webhook("slack", "b", note("B")).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0/Ask/0.0", "Work/0.2/Ask/0.0"]);
    run.webhook("slack", "c", note("C")).await.unwrap();
    run.webhook("slack", "a", note("A")).await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(story.state()["done"][0], "B");
    assert_eq!(events_named(&story, "LOOP_BRAIN_COMPLETE").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn message_while_the_model_answers_is_answered_too() {
    let journal = Journal::default();
    let play = Play::free([Reply::text("Bye.").after(Duration::from_secs(5)), Reply::text("Oh, hello.")]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    run.message("wait", "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(play.requests().len(), 2, "an answer before the message was read is not final");
    assert_eq!(
        story.transcript(),
        "# Work\nuser: begin\nassistant: Bye.\nuser: wait\nassistant: Oh, hello.\n= {\"type\":\"answered\"}\n",
        "the unread message follows its answer"
    );
}

#[tokio::test(start_paused = true)]
async fn message_and_loop_input_keep_the_senders_id() {
    let play = Play::new([Reply::call("ask", json!({"id": "b"})), done()]);
    let journal = Journal::default();
    let chat = workshop(&journal, |config| with_asking(config.input(UserMessage::new("Hello?").id("chat-1"))));
    let run = play.start(&chat, ()).await;
    waits(&run).await;

    let kind = SignalKind::message(UserMessage::new("Well?").id("chat-2"));
    run.signal(kind, Actor::default()).await.unwrap();
    run.message("Please.", "ann").await.unwrap();
    run.webhook("slack", "b", note("x")).await.unwrap();

    let story = play.story(&run).await;
    let said = story.log().iter().filter_map(|event| match &event.kind {
        EventKind::LoopStart { input, message_id, .. } => Some((input.clone()?, message_id.clone())),
        EventKind::LoopMessage { text, message_id, .. } => Some((text.clone(), message_id.clone())),
        _ => None,
    });
    let said: Vec<_> = said.map(|(text, id)| format!("{text} {}", id.as_deref().unwrap_or("-"))).collect();
    assert_eq!(said, ["Hello? chat-1", "Well? chat-2", "Please. -"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_message_is_refused() {
    let play = Play::free([]);
    let steps = brain("Steps").step("Long", async |_| {
        tokio::time::sleep(Duration::from_secs(9)).await;
        Ok(1)
    });
    let run = play.start(&steps, ()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let refusal = refused(run.message("hello?", "ann").await.unwrap_err());

    assert!(matches!(refusal, Refusal::NoListener(_)), "{refusal}");
    assert_eq!(run.result().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn message_to_brains_that_run_at_the_same_time_names_its_loop() {
    let guest = |title: &str| {
        brain(title)
            .r#loop("Chat", |cx| {
                cx.system("Talk.").input("Hi").tool("ask", |t| {
                    t.execute(async |_: NoArgs, cx| Ok(cx.result("asked").wait_for_reply::<String>("How are you?")))
                })
            })
            .result(|()| 0)
    };
    let both =
        brain("Both").all("Both", |g| (g.run("A", guest("A"), |()| ()), g.run("B", guest("B"), |()| ())), |(), _| ());
    let model = ScriptedModel::from_fn(|request| match request.messages.messages().len() {
        1 => Reply::call("ask", json!({})),
        _ => Reply::text("Fine."),
    });
    let run = Test::new(model).start(both, ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let refusal = refused(run.message("hello?", "ann").await.unwrap_err());
    let named = SignalKind::Message {
        to: Some(path("Both/0.1/Chat")),
        text: "hello?".to_owned(),
        message_id: None,
        files: Vec::new(),
        caller_tools: None,
    };
    run.signal(named, "ann").await.unwrap();

    assert_eq!(
        refusal.to_string(),
        "the message could be for any of the brains that run at the same time; name its loop: `Both/0.0/Chat`, `Both/0.1/Chat`"
    );
}

#[tokio::test(start_paused = true)]
async fn wait_without_an_identifier_is_refused() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let forgetful = |config: ShopLoop| {
        config.tool("ask", |t| t.wait(|_: &Job, _| [slack().on("")]).execute(async |_: Job, _| Ok("asked")))
    };

    let story = play.run(&workshop(&journal, forgetful), ()).await;

    let results = results(&story, "Work");
    let expected =
        "the webhook `slack` has a wait with an empty identifier; pass one that distinguishes this wait from others";
    assert!(error_of(&results[0]).contains(expected), "{results:?}");
    assert_eq!(events_named(&story, "LOOP_WAIT"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn identifier_that_a_list_does_not_show_is_refused_in_a_wait_and_in_a_webhook() {
    let play = Play::new([batch([("ask", "a")]), done()]);
    let strange = |config: ShopLoop| {
        config.tool("ask", |t| t.wait(|_: &Job, _| [slack().on("a\0")]).execute(async |_: Job, _| Ok("asked")))
    };

    let story = play.run(&workshop(&Journal::default(), strange), ()).await;

    let results = results(&story, "Work");
    let expected = "the webhook `slack` has a wait with the identifier \"a\\0\", which has the character U+0000";
    assert!(error_of(&results[0]).contains(expected), "{results:?}");
    let client = positronic_core::runner::Client::new(positronic_core::store::MemoryStore::new());
    for identifier in ["a\0", "a\u{200b}", "a\nb"] {
        let delivered = client.deliver("1".into(), "slack", identifier, json!({}), Actor::default()).await;
        assert!(delivered.unwrap_err().to_string().contains("which lists do not show"), "{identifier:?}");
    }
    assert!(client.store().mailbox().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn call_can_wait_for_any_number_of_webhooks_or_none() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "none"), ("ask", "some")]), done()]);
    let asking = |config: ShopLoop| {
        config.tool("ask", |t| {
            t.wait_any(|job: &Job, _| {
                let wait = || mail().on(&job.id).resume(|board: &mut Board, entry| board.done.push(entry.text));
                (job.id == "some").then(wait)
            })
            .execute(async |_: Job, _| Ok(()))
        })
    };
    let run = play.start(&workshop(&journal, asking), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.1"]);

    run.webhook("mail", "some", note("x")).await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(results(&story, "Work"), [success(Value::Null), success(note("x"))]);
    assert_eq!(*story.state(), json!({"done": ["x"]}));
}

#[tokio::test(start_paused = true)]
async fn reply_changes_the_state_by_its_own_closure() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), done()]);
    let asking = |config: ShopLoop| {
        config.tool("ask", |t| {
            t.wait(|_: &Job, _| [Wait::<_, Note>::reply("Well?").resume(|board, note| board.done.push(note.text))])
                .execute(async |_: Job, _| Ok(()))
        })
    };
    let run = play.start(&workshop(&journal, asking), ()).await;
    waits(&run).await;

    run.reply(&path("Work/0.0"), note("fine"), "ann").await.unwrap();

    assert_eq!(run.result().await.unwrap().done, ["fine"]);
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn answer_that_is_older_than_its_question_is_marked_in_the_log_and_named_by_why() {
    let journal = Journal::default();
    let play = Play::new([batch([("ask", "a")]), batch([("ask", "b")]), done()]);
    let client = play.test.runner().client();
    // The answer to a question that nothing asks any longer.
    let late = client.deliver("late".into(), "slack", "a", note("yes"), Actor::default()).await.unwrap();
    assert_eq!(late, Delivered::Kept);
    let received = client.now();
    tokio::time::sleep(Duration::from_mins(1)).await;

    let run = play.start(&workshop(&journal, with_asking), ()).await;
    assert_eq!(waits(&run).await, ["Work/1.0"]);

    let why = run.why().unwrap().sentence;
    assert!(why.ends_with(". The answer to `ask` at `Work/0.0` is older than its question."), "{why}");
    assert_eq!(run.state().older_answers[0].received, received);
    run.webhook("slack", "b", note("now")).await.unwrap();
    let story = play.story(&run).await;
    let resumed = |event: &Event| match &event.kind {
        EventKind::LoopResume { received, .. } => Some(*received),
        _ => None,
    };
    let times: Vec<_> = story.log().iter().filter_map(|event| resumed(event)).collect();
    assert_eq!(times, [Some(received), None], "the answer to the second question is its own");
}

#[tokio::test(start_paused = true)]
async fn fresh_wait_of_a_call_ignores_what_came_before_it() {
    let play = Play::new([batch([("ask", "a")]), done()]);
    let client = play.test.runner().client();
    let early = client.deliver("early".into(), "mail", "a", note("early"), Actor::default()).await.unwrap();
    assert_eq!(early, Delivered::Kept);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let asking = |config: ShopLoop| {
        config.tool("ask", |t| {
            t.wait(|job: &Job, _| {
                [mail().on(&job.id).fresh().resume(|board: &mut Board, mail| board.done.push(mail.text))]
            })
            .execute(async |_: Job, _| Ok(()))
        })
    };
    let run = play.start(&workshop(&Journal::default(), asking), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);

    client.deliver("now".into(), "mail", "a", note("now"), Actor::default()).await.unwrap();

    assert_eq!(run.result().await.unwrap().done, ["now"]);
    assert_eq!(client.store().mailbox().await.unwrap().len(), 2, "the early one stays for others");
}
