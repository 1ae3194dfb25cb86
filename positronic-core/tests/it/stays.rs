//! Conversations that stay with the brain that took the dialogue over, and dialogues that are handed back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use positronic_core::dsl::{IntoBrain as _, Options, Plugin, Preparation, Services, State, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Message, ModelRequest, Pending, Seq, SignalKind};
use positronic_core::runner::{Conversation, Fork, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Test, TestClock};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::disturbances;

/// A desk that hands bills over for good, to a brain that can hand them back.
fn desk() -> Brain<(), u32> {
    let billing = brain("Billing").state(1).r#loop("Talk", |cx| cx.system("Bills.").hand_back("desk")).build();
    brain("Desk")
        .state(0)
        .r#loop("Chat", move |cx| {
            let billing = billing.clone();
            cx.system("Desk.").tool("billing", |t| {
                t.requires_approval("it is about money")
                    .brain(billing)
                    .handoff()
                    .stay()
                    .map_output(|state, n| *state += n)
            })
        })
        .build()
}

/// The desk hands bills over, and billing hands everything else back.
fn says(request: &ModelRequest) -> Reply {
    let last = said(request).pop().unwrap_or_default();
    match (&*request.system, &*last) {
        ("Desk.", last) if last.starts_with("user: ") && last.contains("bill") => Reply::call("billing", json!({})),
        ("Desk.", last) => Reply::text(format!("Desk, after {last}")),
        ("Bills.", last) if last.contains("weather") => Reply::call("desk", json!({ "reason": "the weather" })),
        ("Bills.", last) => Reply::text(format!("Billing, after {last}")),
        other => panic!("{other:?}"),
    }
}

fn said(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.messages().into_iter().map(|message| match message {
        Message::User { text, .. } => format!("user: {text}"),
        Message::Tool { text, .. } => format!("result: {text}"),
        Message::Assistant { parts, .. } => {
            let parts = serde_json::to_value(parts).unwrap();
            let words = parts.as_array().unwrap().iter().map(|part| {
                part.get("text").or_else(|| part.get("name")).and_then(Value::as_str).unwrap_or("?").to_owned()
            });
            format!("model: {}", words.collect::<Vec<_>>().join(" + "))
        }
    });
    messages.collect()
}

fn runner(store: &MemoryStore, model: Arc<ScriptedModel>) -> Runner {
    Runner::new(model)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(std::time::Duration::ZERO)
}

/// A model that answers by [`says`], and the requests that it gets.
fn watched() -> (Arc<ScriptedModel>, Arc<Mutex<Vec<ModelRequest>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&requests);
    let model = ScriptedModel::from_fn(move |request| {
        noted.lock().unwrap().push(request.clone());
        says(request)
    });
    (Arc::new(model), requests)
}

fn asked(requests: &[ModelRequest]) -> Vec<String> {
    requests.iter().map(|request| format!("{} {}", request.system, said(request).pop().unwrap())).collect()
}

/// Sends a message, approves what is asked, and returns the answer.
async fn send(chat: &Conversation, brain: &Brain<(), u32>, text: &str) -> String {
    let run = chat.send(brain, (), text).await.unwrap();
    if let Settled::Waiting(pending) = run.settled().await {
        run.approve(&pending[0].call, "ann").await.unwrap();
    }
    run.result().await.unwrap();
    run.answer().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn next_messages_go_to_the_brain_that_took_over_until_it_hands_back() {
    let (store, (model, requests)) = (MemoryStore::new(), watched());
    let runner = runner(&store, model);
    let (chat, desk) = (runner.conversation("c"), desk());

    assert_eq!(send(&chat, &desk, "My bill is wrong.").await, "Billing, after user: My bill is wrong.");
    let second = chat.send(&desk, (), "It is the blue one.").await.unwrap();
    assert_eq!(second.result().await.unwrap(), 1, "the result of the brain is applied, and no person is asked again");
    assert_eq!(second.answer().as_deref(), Some("Billing, after user: It is the blue one."));
    let back = r#"Desk, after result: {"handed_back":"the weather","result":1}"#;
    assert_eq!(send(&chat, &desk, "And the weather?").await, back);
    assert_eq!(send(&chat, &desk, "Thanks.").await, "Desk, after user: Thanks.");

    insta::assert_snapshot!(asked(&requests.lock().unwrap()).join("\n"), @r#"
    Desk. user: My bill is wrong.
    Bills. user: My bill is wrong.
    Bills. user: It is the blue one.
    Bills. user: And the weather?
    Desk. result: {"handed_back":"the weather","result":1}
    Desk. user: Thanks.
    "#);
    insta::assert_snapshot!(said(requests.lock().unwrap().last().unwrap()).join("\n"), @r#"
    user: My bill is wrong.
    model: billing
    result: 1
    model: Billing, after user: My bill is wrong.
    user: It is the blue one.
    model: billing
    result: 1
    model: Billing, after user: It is the blue one.
    user: And the weather?
    model: desk
    result: the weather
    model: billing
    result: {"handed_back":"the weather","result":1}
    model: Desk, after result: {"handed_back":"the weather","result":1}
    user: Thanks.
    "#);
}

#[tokio::test(start_paused = true)]
async fn run_of_a_conversation_that_stays_ends_the_same_in_a_fork_at_every_boundary() {
    let (store, model) = (MemoryStore::new(), Arc::new(ScriptedModel::from_fn(says)));
    let runner = runner(&store, Arc::clone(&model)).brain(desk());
    let (chat, desk) = (runner.conversation("c"), desk());
    send(&chat, &desk, "My bill is wrong.").await;
    for (text, expected) in [
        ("It is the blue one.", "Billing, after user: It is the blue one."),
        ("And the weather?", r#"Desk, after result: {"handed_back":"the weather","result":1}"#),
    ] {
        let run = chat.send(&desk, (), text).await.unwrap();
        let end = run.result().await.unwrap();
        let log = run.events(Seq(0)).await.unwrap();
        let mut forks = 0;
        for at in log.iter().map(|event| event.seq) {
            let Ok(forked) = runner.client().fork(run.id(), at, Fork::default()).await else { continue };
            let Ok(forked) = runner.resume(&forked).await else { continue };
            let Settled::Completed(result) = forked.settled().await else { panic!("a fork at {at} does not end") };
            assert_eq!((result, forked.answer().as_deref()), (json!(end), Some(expected)), "a fork at {at}");
            forks += 1;
        }
        assert!(forks > 5, "{forks}");
    }
}

#[tokio::test(start_paused = true)]
async fn conversation_stays_with_the_innermost_brain_and_returns_one_brain_at_a_time() {
    let refunds = brain("Refunds").r#loop("Pay", |cx| cx.system("Refunds.").hand_back("billing")).build();
    let billing = brain("Billing").r#loop("Talk", move |cx| {
        let refunds = refunds.clone();
        cx.system("Bills.").hand_back("desk").tool("refunds", |t| t.brain(refunds).handoff().stay())
    });
    let billing = billing.build();
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        let billing = billing.clone();
        cx.system("Desk.").tool("billing", |t| t.brain(billing).handoff().stay())
    });
    let desk = desk.build();
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("refunds", json!({})),
        Reply::text("What is your account?"),
        Reply::text("Paid."),
        Reply::call("billing", json!({ "reason": "another bill" })),
        Reply::text("Which bill?"),
        Reply::text("That one is right."),
    ]));
    let chat = runner(&MemoryStore::new(), Arc::clone(&model)).conversation("c");
    for text in ["I want my money back.", "CH-1", "I have another bill.", "B-8"] {
        chat.send(&desk, (), text).await.unwrap().result().await.unwrap();
    }
    insta::assert_snapshot!(asked(&model.requests()).join("\n"), @r#"
    Desk. user: I want my money back.
    Bills. user: I want my money back.
    Refunds. user: I want my money back.
    Refunds. user: CH-1
    Refunds. user: I have another bill.
    Bills. result: {"handed_back":"another bill"}
    Bills. user: B-8
    "#);
}

#[tokio::test(start_paused = true)]
async fn brain_with_which_a_conversation_stays_keeps_its_state_until_it_hands_back() {
    let counts = brain("Counter")
        .state(0)
        .keep_state()
        .r#loop("Talk", |cx| {
            cx.system("Count.").hand_back("desk").tool("count", |t| {
                t.execute(async |_: NoArgs, cx| {
                    cx.update(|state| *state += 1);
                    Ok("counted")
                })
            })
        })
        .build();
    let desk = brain("Desk").state(0).r#loop("Chat", move |cx| {
        let counts = counts.clone();
        cx.system("Desk.").tool("counter", |t| t.brain(counts).handoff().stay().map_output(|state, n: u32| *state = n))
    });
    let desk = desk.build();
    let model = ScriptedModel::from_fn(|request| match (&*request.system, &*said(request).pop().unwrap_or_default()) {
        ("Count.", "user: Stop.") => Reply::call("desk", json!({ "reason": "enough" })),
        ("Count.", "result: counted") => Reply::text("Counted."),
        ("Count.", _) => Reply::call("count", json!({})),
        (_, last) if last.starts_with("result: ") => Reply::text("Stopped."),
        _ => Reply::call("counter", json!({})),
    });
    let chat = runner(&MemoryStore::new(), Arc::new(model)).conversation("c");
    let mut counted = Vec::new();
    for text in ["One.", "Two.", "Stop.", "Again."] {
        counted.push(chat.send(&desk, (), text).await.unwrap().result().await.unwrap());
    }
    assert_eq!(counted, [1, 2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn conversation_stays_after_a_cancellation_and_returns_after_a_failure() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("ask", json!({})),
        Reply::text("Billing again."),
        Reply::text("Billing for the last time."),
        Reply::text("Desk is sorry."),
        Reply::text("Desk again."),
    ]));
    let filed = Arc::new(AtomicU32::new(0));
    let billing = brain("Billing").r#loop("Talk", |cx| {
        cx.system("Bills.")
            .tool("ask", |t| t.execute(async |_: NoArgs, cx| Ok(cx.result("").wait_for_reply::<String>("Which?"))))
    });
    let file = move |_| {
        let number = filed.fetch_add(1, Ordering::SeqCst);
        async move { if number == 0 { Ok(()) } else { Err(Error::new("the archive is closed")) } }
    };
    let billing = billing.step("File", file).build();
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        let billing = billing.clone();
        cx.system("Desk.").tool("billing", |t| t.brain(billing).handoff().stay())
    });
    let desk = desk.build();
    let chat = runner(&MemoryStore::new(), Arc::clone(&model)).conversation("c");
    let cancelled = chat.send(&desk, (), "My bill?").await.unwrap();
    let Settled::Waiting(_) = cancelled.settled().await else { panic!("it does not wait") };
    cancelled.cancel("enough").await.unwrap();
    cancelled.settled().await;

    let mut answers = Vec::new();
    for text in ["Are you there?", "And now?", "Thanks."] {
        let run = chat.send(&desk, (), text).await.unwrap();
        run.result().await.unwrap();
        answers.push(run.answer().unwrap());
    }
    assert_eq!(answers, ["Billing again.", "Desk is sorry.", "Desk again."]);
}

#[tokio::test(start_paused = true)]
async fn model_answers_when_the_code_no_longer_hands_over() {
    let (store, model) = (MemoryStore::new(), Arc::new(ScriptedModel::from_fn(says)));
    let runner = runner(&store, Arc::clone(&model));
    let chat = runner.conversation("c");
    send(&chat, &desk(), "My bill is wrong.").await;
    let changed = brain("Desk").state(0).r#loop("Chat", |cx| cx.system("Desk."));
    let run = chat.send(&changed, (), "Hello?").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("Desk, after user: Hello?"));
}

#[tokio::test(start_paused = true)]
async fn brain_that_took_nothing_over_does_not_offer_to_hand_back() {
    let model = Arc::new(ScriptedModel::new([Reply::text("Hello.")]));
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Bills.").input("My bill?").hand_back("desk"));
    let run = Test::new(Arc::clone(&model)).start(billing, ()).await;
    run.result().await.unwrap();
    assert!(model.requests()[0].tools.tools().is_empty());
    assert_eq!(run.answer().as_deref(), Some("Hello."), "a text ends the loop");
}

/// A desk that gets a message while a person decides about its handoff, and that gets the dialogue back.
fn tale() -> Tale {
    let billing = brain("Billing").state(1).r#loop("Talk", |cx| cx.system("Bills.").hand_back("desk"));
    let billing = billing.build();
    let desk = brain("Desk").state(0).r#loop("Chat", move |cx| {
        let billing = billing.clone();
        cx.system("Desk.")
            .input("My bill is wrong.")
            .tool("billing", |t| {
                t.requires_approval("it is about money").brain(billing).handoff().map_output(|state, n| *state += n)
            })
            .guard_input("No cards", async |_, message| match message.text.contains("4111") {
                true => Verdict::Replace(json!(message.text.replace("4111", "[card]"))),
                false => Verdict::Pass,
            })
    });
    Tale {
        definition: desk.definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| {
            let said = said(request);
            assert!(!said.concat().contains("4111"), "a model reads {said:?}");
            match &*request.system {
                "Bills." => {
                    assert!(said.last().unwrap().ends_with("The weather is fine, and my card is [card]."), "{said:?}");
                    says(request)
                }
                _ => says(request),
            }
        }),
        answers: Arc::new(|pending: &Pending| {
            let text = "The weather is fine, and my card is 4111.".to_owned();
            let message =
                SignalKind::Message { to: None, text, message_id: None, files: Vec::new(), caller_tools: None };
            vec![message, SignalKind::Approve { call: pending.call.clone(), arguments: None }]
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn message_before_a_handoff_begins_is_read_by_the_brain_that_takes_over() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!(1));
    let back = baseline.log.iter().filter(
        |event| matches!(&event.kind, EventKind::LoopBrainComplete { handed_back: true, .. } if event.path.as_str() == "Chat/0.0"),
    );
    assert_eq!(back.count(), 1);
    disturbances::crash(&tale, &baseline).await;
}

#[tokio::test(start_paused = true)]
async fn dialogue_that_is_handed_back_is_cancelled_at_every_boundary() {
    let tale = tale();
    disturbances::cancel(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn dialogue_that_is_handed_back_pauses_at_every_boundary() {
    let tale = tale();
    disturbances::pause(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn dialogue_that_is_handed_back_ends_the_same_in_a_fork_at_every_boundary() {
    let tale = tale();
    disturbances::fork(&tale, &tale.undisturbed().await).await;
}

/// A desk that hands over to billing, which can hand back; its loop can keep only its last message.
fn returning(compacts: bool) -> Brain<(), ()> {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Bills.").hand_back("desk")).build();
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        let billing = billing.clone();
        let desk = cx.system("Desk.").tool("billing", |t| t.requires_approval("money").brain(billing).handoff());
        if compacts { desk.plugin(Shortens) } else { desk }
    });
    desk.build()
}

/// Leaves out everything before the last answer.
struct Shortens;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Shortens {
    const NAME: &'static str = "shortens";
    type State = ();

    fn initial(&self) {}

    async fn prepare(&self, p: &mut Preparation<'_, O, S, V, ()>) -> Result<()> {
        if p.messages().len() > 1 {
            p.compact(1, "They spoke of bills.");
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn message_that_the_first_brain_has_read_is_once_in_what_the_second_one_reads() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("desk", json!({ "reason": "the weather" })),
        Reply::call("billing", json!({})),
        Reply::text("It is about a bill after all."),
    ]));
    let chat = runner(&MemoryStore::new(), Arc::clone(&model)).conversation("c");
    let run = chat.send(&returning(false), (), "My bill is wrong.").await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    run.message("And the weather?", "ann").await.unwrap();
    run.approve(&pending[0].call, "ann").await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait again") };
    run.approve(&pending[0].call, "ann").await.unwrap();
    run.result().await.unwrap();

    let read = said(model.requests().last().unwrap());
    assert_eq!(read.iter().filter(|said| said.contains("weather?")).count(), 1, "{read:#?}");
}

#[tokio::test(start_paused = true)]
async fn dialogue_that_came_back_to_a_shortened_loop_is_part_of_the_next_run() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("desk", json!({ "reason": "the blue bill" })),
        Reply::text("Which one?"),
        Reply::text("Good."),
    ]));
    let chat = runner(&MemoryStore::new(), Arc::clone(&model)).conversation("c");
    let run = chat.send(&returning(true), (), "My bill is wrong.").await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    run.approve(&pending[0].call, "ann").await.unwrap();
    run.result().await.unwrap();
    chat.send(&returning(false), (), "The blue one.").await.unwrap().result().await.unwrap();

    let read = said(model.requests().last().unwrap());
    assert_eq!(read.iter().filter(|said| *said == "result: the blue bill").count(), 1, "{read:#?}");
}

#[tokio::test(start_paused = true)]
async fn conversation_stays_whatever_another_loop_hands_over_and_gets_back() {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Bills.")).build();
    let helper = brain("Helper").r#loop("Help", |cx| cx.system("Helper.").hand_back("desk")).build();
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| {
            let billing = billing.clone();
            cx.system("Desk.").tool("billing", |t| t.brain(billing).stay())
        })
        .r#loop("After", move |cx| cx.system("After.").handoff("helper", helper.clone()))
        .build();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let model = ScriptedModel::from_fn(move |request| {
        noted.lock().unwrap().push(request.system.to_string());
        match &*request.system {
            "Desk." => Reply::call("billing", json!({})),
            "Bills." => Reply::text("It is paid."),
            "Helper." => Reply::call("desk", json!({ "reason": "nothing to do" })),
            _ if said(request).last().unwrap().starts_with("result: ") => Reply::text("Done."),
            _ => Reply::call("helper", json!({})),
        }
    });
    let chat = runner(&MemoryStore::new(), Arc::new(model)).conversation("c");
    for text in ["My bill?", "And this one?"] {
        chat.send(&desk, (), text).await.unwrap().result().await.unwrap();
    }
    assert_eq!(asked.lock().unwrap().join(" "), "Desk. Bills. After. Helper. After. Bills. After. Helper. After.");
}

#[tokio::test(start_paused = true)]
async fn brain_has_handed_back_however_its_later_loops_end() {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Bills.").hand_back("desk")).r#loop("Note", |cx| {
        let note = async |_: NoArgs, _| Ok("written");
        cx.system("Note.").input("Write a note.").tool("note", move |t| t.exit().execute(note))
    });
    let billing = billing.build();
    let desk = brain("Desk").r#loop("Chat", move |cx| cx.system("Desk.").handoff("billing", billing.clone())).build();
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("desk", json!({ "reason": "the weather" })),
        Reply::call("note", json!({})),
        Reply::text("It is fine."),
    ]));
    let chat = runner(&MemoryStore::new(), Arc::clone(&model)).conversation("c");
    let run = chat.send(&desk, (), "And the weather?").await.unwrap();
    run.result().await.unwrap();

    let read = said(model.requests().last().unwrap());
    assert!(read.last().unwrap().contains(r#""handed_back":"the weather""#), "{read:#?}");
}
