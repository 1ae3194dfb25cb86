//! Waits as stages: webhooks, questions to people, times, and what ends them.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{IntoBrain, WaitFor, Waits, form};
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Event, EventKind, Pending, Seq, SignalKind, Status, Timestamp};
use positronic_core::runner::{Delivered, Fork, ResumeError, RunHandle, Settled, SignalError};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Story, TestClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::path;

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    id: String,
    log: Vec<String>,
}

impl Order {
    fn and(mut self, what: impl Into<String>) -> Self {
        self.log.push(what.into());
        self
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Payment {
    amount: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Decline {
    reason: String,
}

enum Paid {
    Yes(Payment),
    No(Decline),
    TimedOut,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SignOff {
    approved: bool,
}

fn order() -> Order {
    Order { id: "o-7".to_owned(), log: Vec::new() }
}

/// Waits for a payment or its decline, for three hours.
fn shop() -> Brain<(), Order> {
    brain("Shop")
        .state(order())
        .wait("Payment", waits, paid)
        .step("Ship", async |cx| Ok(cx.state.clone().and("shipped")))
        .build()
}

fn waits(w: WaitFor<Order>) -> Waits<Order, Paid> {
    let paid = w.on(webhook("paid"), |order| order.id.clone()).to(Paid::Yes);
    let declined = w.on(webhook("declined"), |order| order.id.clone()).to(Paid::No);
    paid.or(declined).after(3 * HOUR, || Paid::TimedOut)
}

fn paid(order: Order, event: Paid) -> Order {
    match event {
        Paid::Yes(Payment { amount }) => order.and(format!("paid {amount}")),
        Paid::No(Decline { reason }) => order.and(format!("declined: {reason}")),
        Paid::TimedOut => order.and("not paid in time"),
    }
}

fn no_model() -> ScriptedModel {
    ScriptedModel::new([])
}

fn runner() -> Runner {
    Runner::new(no_model())
        .store(MemoryStore::new())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .linger(Duration::MAX)
}

fn named(log: &[Arc<Event>], name: &str) -> Vec<Arc<Event>> {
    log.iter().filter(|event| event.kind.name() == name).cloned().collect()
}

async fn waiting<R: serde::de::DeserializeOwned>(run: &RunHandle<R>) -> Vec<Pending> {
    match run.settled().await {
        Settled::Waiting(pending) => pending,
        other => panic!("{other:?}"),
    }
}

fn refused(error: SignalError) -> Refusal {
    match error {
        SignalError::Refused(refusal) => refusal,
        other => panic!("the store failed: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn first_webhook_ends_a_wait_and_gives_its_event() {
    let run = runner().start(&shop(), ()).await.unwrap();
    let pending = waiting(&run).await;
    assert_eq!(pending.iter().map(|pending| pending.call.as_str()).collect::<Vec<_>>(), ["Payment"]);
    assert_eq!(
        run.why().unwrap().sentence,
        "The run has been waiting since event 2 for the webhook `paid` or the webhook `declined` at `Payment`."
    );

    let misfit = run.webhook("paid", "o-7", json!({ "amount": "many" })).await.unwrap_err();
    assert!(matches!(refused(misfit), Refusal::Misfit { .. }));
    run.webhook("declined", "o-7", json!({ "reason": "no funds" })).await.unwrap();
    let late = run.webhook("paid", "o-7", json!({ "amount": 5 })).await.unwrap_err();

    assert!(matches!(refused(late), Refusal::NothingWaits { .. } | Refusal::Ended));
    assert_eq!(run.result().await.unwrap().log, ["declined: no funds", "shipped"]);
    insta::assert_snapshot!(Story::of(&run).await.events(), @r#"
    0 · BRAIN_START {"fingerprint":"718d0e2f5feaf092de8a2de40d05e0ea","stages":[{"kind":"wait","name":"Payment","webhooks":["paid","declined…
    1 · RUN_CLAIMED {"owner":"worker-1"}
    2 Payment STAGE_WAIT {"due":1767236400000000,"waits":[{"expires":1767236400000000,"identifier":"o-7","schema":{"properties":{"amount":{"forma…
    3 Payment STAGE_RESUME {"payload":{"reason":"no funds"},"signal":"signal-2","wait":1}
    4 Payment STEP_COMPLETE {"change":{"state":{"id":"o-7","log":["declined: no funds"]}},"duration":0}
    5 Ship STEP_START
    6 Ship STEP_COMPLETE {"change":{"patch":[{"op":"add","path":"/log/1","value":"shipped"}]},"duration":0}
    7 · BRAIN_COMPLETE {"result":{"id":"o-7","log":["declined: no funds","shipped"]}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_wait_and_a_late_answer_is_refused_also_before_a_worker_has_seen_the_time() {
    let runner = runner();
    let run = runner.start(&shop(), ()).await.unwrap();
    waiting(&run).await;
    run.pause().await.unwrap();
    tokio::time::sleep(4 * HOUR).await;
    assert!(named(&run.events(Seq(0)).await.unwrap(), "STAGE_RESUME").is_empty(), "no timer fires in a pause");
    let late = run.webhook("paid", "o-7", json!({ "amount": 5 })).await.unwrap_err();
    assert!(matches!(refused(late), Refusal::Expired { .. }));

    run.resume().await.unwrap();

    assert_eq!(run.result().await.unwrap().log, ["not paid in time", "shipped"]);
}

#[tokio::test(start_paused = true)]
async fn sleep_keeps_its_end_over_a_restart() {
    let brain = brain("Reminder")
        .state(2_u64)
        .sleep("Pause", |hours| *hours as u32 * HOUR)
        .step("Remind", async |cx| Ok(cx.state + 1));
    let store = MemoryStore::new();
    let clock = TestClock::default();
    let first = runner().store(store.clone()).clock(clock.clone());
    let run = first.start(&brain, ()).await.unwrap();
    while run.state().next < Seq(3) {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.status(), Status::Waiting);
    assert!(run.pending().is_empty(), "no answer can end a sleep");
    let why = run.why().unwrap();
    assert_eq!(why.sentence, "The run waits for the end of `Pause`.");
    let due = why.until.unwrap();
    assert_eq!(due, TestClock::BEGIN.after(2 * HOUR));
    let row = first.client().store().run(run.id()).await.unwrap();
    assert_eq!((row.status, row.wake), (Status::Waiting, Some(due)));
    assert!(!row.has_work(TestClock::BEGIN.after(HOUR)) && row.has_work(due));
    tokio::time::sleep(HOUR).await;
    let id = run.id().clone();
    drop(run);
    first.release().await;

    let second = runner().store(store).clock(clock).brain(brain.clone());
    let run = second.resume(&id).await.unwrap();

    assert_eq!(run.result().await.unwrap(), json!(3));
    let log = run.events(Seq(0)).await.unwrap();
    assert_eq!(named(&log, "STAGE_WAIT").len(), 1);
    assert_eq!(named(&log, "STAGE_RESUME")[0].at, due);
}

#[tokio::test(start_paused = true)]
async fn sleep_that_is_over_passes_at_once_with_both_events() {
    for time in [Timestamp(0), TestClock::BEGIN] {
        let brain = brain("Sleeper").state(1).sleep_until("Pause", move |_| time);
        let run = runner().start(&brain, ()).await.unwrap();
        assert_eq!(run.result().await.unwrap(), 1);
        let log = run.events(Seq(0)).await.unwrap();
        let kinds: Vec<_> = log.iter().map(|event| event.kind.name()).collect();
        assert_eq!(
            kinds,
            ["BRAIN_START", "RUN_CLAIMED", "STAGE_WAIT", "STAGE_RESUME", "STEP_COMPLETE", "BRAIN_COMPLETE"]
        );
    }
}

fn release() -> Brain<(), String> {
    brain("Release")
        .state("1.2.0".to_owned())
        .ask_person(
            "Sign off",
            |version| form::<SignOff>(format!("Is {version} ready?")).within(HOUR),
            |version, answer| match answer {
                Some(SignOff { approved: true }) => format!("{version} is out"),
                Some(_) => format!("{version} is not out"),
                None => "no answer".to_owned(),
            },
        )
        .build()
}

#[tokio::test(start_paused = true)]
async fn answer_of_a_person_fits_the_form_or_changes_nothing() {
    let run = runner().start(&release(), ()).await.unwrap();
    let pending = waiting(&run).await;
    let wait = &pending[0].kind.waits()[0];
    assert!(pending[0].kind.is_for_person());
    assert_eq!(wait.prompt.as_deref(), Some("Is 1.2.0 ready?"));
    assert_eq!(wait.schema["properties"]["approved"]["type"], "boolean");

    let misfit = run.reply(&path("Sign off"), json!({ "approved": "perhaps" }), "ann").await.unwrap_err();
    assert!(refused(misfit).to_string().contains("approved"));
    run.reply(&path("Sign off"), json!({ "approved": true }), "ann").await.unwrap();

    assert_eq!(run.result().await.unwrap(), "1.2.0 is out");
}

#[tokio::test(start_paused = true)]
async fn form_with_a_deadline_gives_no_answer_after_it() {
    let run = runner().start(&release(), ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "no answer");
}

#[tokio::test(start_paused = true)]
async fn early_webhook_is_taken_unless_the_wait_takes_only_later_ones() {
    for fresh in [false, true] {
        let runner = runner();
        let client = runner.client();
        let early = client.deliver("early".into(), "paid", "o-7", json!({ "amount": 1 }), Actor::default()).await;
        assert_eq!(early.unwrap(), Delivered::Kept);
        tokio::time::sleep(HOUR).await;
        let brain =
            brain("Shop").state(order()).wait("Payment", |w| if fresh { waits(w).fresh() } else { waits(w) }, paid);
        let run = runner.start(&brain, ()).await.unwrap();
        if fresh {
            waiting(&run).await;
            let now = client.deliver("now".into(), "paid", "o-7", json!({ "amount": 2 }), Actor::default()).await;
            assert!(matches!(now.unwrap(), Delivered::To { .. }));
        }

        let order = run.result().await.unwrap();

        assert_eq!(order.log, [if fresh { "paid 2" } else { "paid 1" }]);
        let log = run.events(Seq(0)).await.unwrap();
        let EventKind::StageResume { received, .. } = &named(&log, "STAGE_RESUME")[0].kind else { panic!() };
        assert_eq!(received.is_some(), !fresh, "an answer older than its question is marked");
    }
}

#[tokio::test(start_paused = true)]
async fn wait_for_one_webhook_gives_its_payload_or_none_when_the_time_is_over() {
    let brain = brain("Shop").state("o-7".to_owned()).wait(
        "Payment",
        |w| w.on(webhook::<Payment>("paid"), String::clone).within(HOUR),
        |_, payment| payment.map(|payment| payment.amount),
    );
    let paid = runner().start(&brain, ()).await.unwrap();
    waiting(&paid).await;
    paid.webhook("paid", "o-7", json!({ "amount": 5 })).await.unwrap();
    assert_eq!(paid.result().await.unwrap(), Some(5));

    let unpaid = runner().start(&brain, ()).await.unwrap();
    assert_eq!(unpaid.result().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn reply_of_a_person_or_a_webhook_ends_a_wait() {
    let brain = brain("Shop").state("o-7".to_owned()).wait(
        "Payment",
        |w| {
            let told = w.reply::<SignOff>(|order| format!("Is {order} paid?")).to(|told| told.approved);
            w.on(webhook::<Payment>("paid"), String::clone).to(|payment| payment.amount > 0).or(told)
        },
        |_, paid| paid,
    );
    let told = runner().start(&brain, ()).await.unwrap();
    let pending = waiting(&told).await;
    assert!(format!("{pending:?}").contains("Is o-7 paid?"), "{pending:?}");
    told.reply(&pending[0].call, json!({ "approved": false }), "ann").await.unwrap();
    assert!(!told.result().await.unwrap());

    let paid = runner().start(&brain, ()).await.unwrap();
    waiting(&paid).await;
    paid.webhook("paid", "o-7", json!({ "amount": 5 })).await.unwrap();
    assert!(paid.result().await.unwrap());
}

#[test]
#[should_panic(expected = "a wait has one time; remove `.within(…)`, `.after(…)` or `.at(…)` until one is left")]
fn wait_with_two_times_is_refused_when_the_brain_is_built() {
    let _ = brain("Shop").state(order()).wait(
        "Payment",
        |w| waits(w).or(w.on(webhook("cash"), |_| "till".to_owned()).to(Paid::Yes).after(HOUR, || Paid::TimedOut)),
        paid,
    );
}

#[tokio::test(start_paused = true)]
async fn identifier_that_no_webhook_can_have_fails_the_brain() {
    for (identifier, error) in [("", "is empty"), ("a\nb", "U+000A")] {
        let brain = brain("Shop").wait(
            "Payment",
            move |w| w.on(webhook::<Payment>("paid"), move |()| identifier.to_owned()),
            |(), _| (),
        );
        let run = runner().start(&brain, ()).await.unwrap();
        let failure = run.result().await.unwrap_err().to_string();
        assert!(failure.contains("the wait `Payment` cannot begin") && failure.contains(error), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_each_kind_of_wait_in_one_append() {
    let sleeper = brain("Sleeper").state(order()).sleep("Pause", |_| HOUR).build();
    let asker = brain("Asker").state(order()).ask_person("Ask", |_| form::<SignOff>("Well?"), |order, _| order).build();
    for brain in [shop(), sleeper, asker] {
        let run = runner().start(&brain, ()).await.unwrap();
        while run.status() != Status::Waiting {
            tokio::task::yield_now().await;
        }
        let before = run.events(Seq(0)).await.unwrap().len();
        run.cancel("no longer needed").await.unwrap();
        assert!(matches!(run.settled().await, Settled::Cancelled));
        let log = run.events(Seq(0)).await.unwrap();
        let kinds: Vec<_> = log[before..].iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["BRAIN_CANCELLED"]);
    }
}

#[tokio::test(start_paused = true)]
async fn fork_before_the_answer_asks_anew_and_one_after_it_keeps_it() {
    let runner = runner();
    let run = runner.start(&shop(), ()).await.unwrap();
    waiting(&run).await;
    run.webhook("paid", "o-7", json!({ "amount": 3 })).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let (asked, answered) = (named(&log, "STAGE_WAIT")[0].seq, named(&log, "STAGE_RESUME")[0].seq);
    let client = runner.client();

    let again = client.fork(run.id(), asked, Fork::default()).await.unwrap();
    let again = runner.clone().brain(shop()).resume(&again).await.unwrap();
    assert_eq!(waiting(&again).await.len(), 1);
    again.webhook("paid", "o-7", json!({ "amount": 4 })).await.unwrap();
    assert_eq!(again.result().await.unwrap()["log"], json!(["paid 4", "shipped"]));

    let kept = client.fork(run.id(), answered, Fork::default()).await.unwrap();
    let kept = runner.brain(shop()).resume(&kept).await.unwrap();
    assert_eq!(kept.result().await.unwrap()["log"], json!(["paid 3", "shipped"]));
}

#[tokio::test(start_paused = true)]
async fn code_with_other_webhooks_does_not_continue_the_run() {
    let store = MemoryStore::new();
    let first = runner().store(store.clone());
    let run = first.start(&shop(), ()).await.unwrap();
    waiting(&run).await;
    let id = run.id().clone();
    drop(run);
    first.release().await;
    let changed = |version| {
        brain("Shop")
            .version(version)
            .migrate(0, |state| Ok(state.clone()))
            .state(order())
            .wait("Payment", |w| w.on(webhook("declined"), |order| order.id.clone()).to(Paid::No), paid)
            .step("Ship", async |cx| Ok(cx.state.clone()))
    };

    for version in [0, 1] {
        let refused = runner().store(store.clone()).brain(changed(version)).resume(&id).await.unwrap_err();
        let ResumeError::Changed { difference, .. } = refused else { panic!("{refused}") };
        assert_eq!(difference, "the stage `Payment` of `Shop` waits for other webhooks now", "version {version}");
    }
}

/// A loop whose tool is a brain that waits, between a sleep and a question.
fn tale() -> Tale {
    let inner = brain("Inner")
        .state(order())
        .wait("Payment", waits, paid)
        .sleep("Pause", |_| HOUR)
        .result(|order| order.log.join(", "));
    let outer = brain("Outer")
        .state(order())
        .sleep("Before", |_| HOUR)
        .brain("Nested", inner.clone())
        .map_output(|order, paid: String| order.and(paid))
        .r#loop("Chat", move |cx| cx.system("Work.").input("Go.").brain("pay", inner.clone()))
        .ask_person(
            "Sign off",
            |order| form::<SignOff>(format!("{} steps?", order.log.len())),
            |order, answer| order.and(format!("approved: {}", answer.approved)),
        )
        .step("Note", async |cx| Ok(cx.state.clone().and("noted")))
        .build();
    Tale {
        definition: IntoBrain::definition(&outer),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.messages.len() {
            1 => Reply::calls([("pay", json!({})), ("pay", json!({}))]),
            _ => Reply::text("Done."),
        }),
        answers: Arc::new(|pending| {
            let waits = pending.kind.waits();
            vec![match waits[0].webhook.as_str() {
                "reply" => SignalKind::Reply { call: pending.call.clone(), payload: json!({ "approved": true }) },
                name => SignalKind::Webhook {
                    name: name.to_owned(),
                    identifier: waits[0].identifier.clone(),
                    payload: json!({ "amount": 9 }),
                },
            }]
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn waits_at_every_depth_survive_a_crash_at_any_moment() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state["log"], json!(["paid 9", "approved: true", "noted"]));
    assert!(baseline.deaths.len() > 20);
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}
