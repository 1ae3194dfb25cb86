//! One batch of calls: their order, approvals, the exit barrier, and the results that the model reads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use positronic_core::dsl::Tool;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::Reply;
use positronic_core::record::PendingKind;
use positronic_core::record::{Actor, BatchPolicy, DenialCause, SignalKind, ToolResult};
use positronic_core::runner::{RunHandle, Settled, SignalError};
use serde_json::{Value, json};

use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, batch, calls, done, error_of, events_named, path, paths, results,
    slow_batch, success, tool_texts, tools, waits, work, worker, workshop,
};

const MIXED: [(&str, &str); 5] = [("safe", "a"), ("gated", "b"), ("safe", "c"), ("read", "d"), ("gated", "e")];

fn refusal(error: SignalError) -> Refusal {
    match error {
        SignalError::Refused(refusal) => refusal,
        other => panic!("the store failed: {other}"),
    }
}

async fn approve_edited(run: &RunHandle<Board>, call: &str, arguments: Value) -> Result<(), Refusal> {
    let kind = SignalKind::Approve { call: path(call), arguments: Some(arguments) };
    run.signal(kind, Actor::builder().by("ann").channel("test").build()).await.map(drop).map_err(refusal)
}

#[tokio::test(start_paused = true)]
async fn gated_calls_are_announced_at_once_and_block_the_calls_after_them() {
    let journal = Journal::default();
    let play = Play::new([batch(MIXED), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.4"]);
    assert_eq!(journal.take(), ["a", "d"], "calls before the first gated call and read-only calls run");

    run.approve(&path("Work/0.4"), "bob").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    assert_eq!(journal.take(), ["e"], "an approved call runs at once, independent of earlier calls");

    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(journal.take(), ["b", "c"], "the decision unblocks the later calls");
    assert_eq!(play.last_results(), ["a done", "b done", "c done", "d done", "e done"]);
    assert_eq!(story.state()["done"], json!(["a", "d", "e", "b", "c"]));
}

#[tokio::test(start_paused = true)]
async fn strict_order_asks_for_one_decision_at_a_time() {
    let journal = Journal::default();
    let play = Play::new([batch(MIXED), done()]);
    let strict = workshop(&journal, |config| tools(config).policy(BatchPolicy::Strict));
    let run = play.start(&strict, ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1"]);
    assert_eq!(journal.take(), ["a"]);

    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.4"]);
    assert_eq!(journal.take(), ["b", "c", "d"]);

    run.approve(&path("Work/0.4"), "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(journal.take(), ["e"]);
    assert_eq!(story.state()["done"], json!(["a", "b", "c", "d", "e"]));
}

#[tokio::test(start_paused = true)]
async fn strict_order_starts_a_call_after_the_previous_result() {
    let journal = Journal::default();
    let play = Play::new([slow_batch([("safe", "a", 20), ("read", "b", 5), ("safe", "c", 5)]), done()]);

    play.run(&workshop(&journal, |config| tools(config).policy(BatchPolicy::Strict)), ()).await;

    assert_eq!(journal.take(), ["a", "a-", "b", "b-", "c", "c-"]);
}

#[tokio::test(start_paused = true)]
async fn eager_order_runs_all_ungated_calls_at_once() {
    let journal = Journal::default();
    let play = Play::new([batch(MIXED), done()]);
    let run = play.start(&workshop(&journal, |config| tools(config).policy(BatchPolicy::Eager)), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.4"]);
    assert_eq!(journal.take(), ["a", "c", "d"]);

    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    run.approve(&path("Work/0.4"), "ann").await.unwrap();
    play.story(&run).await;
    assert_eq!(play.last_results(), ["a done", "b done", "c done", "d done", "e done"]);
}

#[tokio::test(start_paused = true)]
async fn pending_approval_names_tool_arguments_and_reason() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")])]);
    let run = play.start(&workshop(&journal, tools), ()).await;

    let Settled::Waiting(pending) = run.settled().await else { panic!("the run does not wait") };

    assert_eq!(pending[0].tool, "gated");
    assert_eq!(*pending[0].arguments, json!({"id": "a"}));
    let PendingKind::Approval { gate, expires } = &pending[0].kind else { panic!("{:?}", pending[0].kind) };
    assert_eq!((gate.reason.as_str(), gate.editable, *expires), ("it is dangerous", true, None));
}

#[tokio::test(start_paused = true)]
async fn rejection_is_a_typed_denial_and_denies_an_identical_call() {
    let journal = Journal::default();
    let again = Reply::calls([("gated", json!({"id": "a"})), ("gated", json!({"id": "other"}))]);
    let play = Play::new([batch([("gated", "a")]), again, done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;

    run.reject(&path("Work/0.0"), "too risky", "ann").await.unwrap();

    assert_eq!(waits(&run).await, ["Work/1.1"], "only the other call needs a decision");
    assert_eq!(play.last_results(), ["Not run: a person rejected this call: too risky"]);
    run.approve(&path("Work/1.1"), "ann").await.unwrap();
    let story = play.story(&run).await;
    let results = results(&story, "Work");
    assert_eq!(
        results[0],
        ToolResult::Denied {
            cause: Some(DenialCause::Rejected),
            reason: Some("too risky".to_owned()),
            by: Some("ann".to_owned())
        }
    );
    assert!(matches!(
        &results[1],
        ToolResult::Denied { cause: Some(DenialCause::Repeated), reason: Some(_), by: None }
    ));
    assert_eq!(journal.take(), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn promise_07_strict_order_does_not_ask_about_a_call_identical_to_a_rejected_one() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a"), ("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, |config| tools(config).policy(BatchPolicy::Strict)), ()).await;
    waits(&run).await;

    run.reject(&path("Work/0.0"), "no", "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(matches!(results(&story, "Work")[1], ToolResult::Denied { .. }));
    assert_eq!(events_named(&story, "LOOP_APPROVAL_REQUESTED"), ["Work/0.0"]);
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_validated_and_run_and_the_model_reads_them() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    let before = run.state();

    let misfit = approve_edited(&run, "Work/0.0", json!({"id": 7})).await.unwrap_err();
    assert!(matches!(&misfit, Refusal::Misfit { reason, .. } if reason.contains("at `/id`")), "{misfit}");
    assert_eq!(run.state(), before, "a refused decision changes nothing");

    approve_edited(&run, "Work/0.0", json!({"id": "b"})).await.unwrap();
    let story = play.story(&run).await;
    let call = &calls(&story, "Work")[0];
    assert_eq!((&*call.arguments, call.edited.as_ref()), (&json!({"id": "a"}), Some(&json!({"id": "b"}))));
    assert_eq!(journal.take(), ["b"]);
    assert_eq!(play.last_results(), ["A person changed the arguments before the call ran: {\"id\":\"b\"}\n\nb done"]);
}

#[tokio::test(start_paused = true)]
async fn uneditable_arguments_can_only_be_approved_unchanged() {
    let journal = Journal::default();
    let play = Play::new([batch([("fixed", "a")]), done()]);
    let fixed = || worker("fixed", |t| t.requires_approval("sure?").not_editable());
    let run = play.start(&workshop(&journal, move |config| config.tools([fixed()])), ()).await;
    waits(&run).await;

    let refused = approve_edited(&run, "Work/0.0", json!({"id": "b"})).await.unwrap_err();
    assert_eq!(refused, Refusal::NotEditable { call: path("Work/0.0") });

    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    play.story(&run).await;
    assert_eq!(journal.take(), ["a"]);
}

fn expiring() -> crate::support::ShopTool {
    worker("gated", |t| t.approval_expires(Duration::from_secs(60)).requires_approval("quick!"))
}

#[tokio::test(start_paused = true)]
async fn expired_approval_is_a_denial() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, |config| config.tools([expiring()])), ()).await;
    waits(&run).await;

    assert_eq!(run.result().await.unwrap(), Board::default());

    let story = play.story(&run).await;
    let reason = Some("the approval expired".to_owned());
    assert_eq!(results(&story, "Work"), [ToolResult::Denied { cause: Some(DenialCause::Expired), reason, by: None }]);
    assert_eq!(events_named(&story, "LOOP_APPROVAL_EXPIRED"), ["Work/0.0"]);
    assert_eq!(journal.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn decision_after_the_expiry_is_refused() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")])]);
    let run = play.start(&workshop(&journal, |config| config.tools([expiring()])), ()).await;
    waits(&run).await;
    run.pause().await.unwrap();
    assert_eq!(run.settled().await, Settled::Paused);

    tokio::time::advance(Duration::from_secs(61)).await;

    let late = refusal(run.approve(&path("Work/0.0"), "ann").await.unwrap_err());
    assert_eq!(late, Refusal::Expired { call: path("Work/0.0") });
}

#[tokio::test(start_paused = true)]
async fn promise_18_panicking_approval_fails_its_call_and_runs_nothing() {
    let journal = Journal::default();
    let play = Play::new([
        Reply::calls([("now", json!({"id": "a"})), ("later", json!({"id": "b"})), ("safe", json!({"id": "c"}))]),
        done(),
    ]);
    let run = workshop(&journal, |config| {
        config
            .tool("now", |t| t.approval(|_: &Job, _| -> Option<String> { panic!("oh") }).execute(work))
            .tool("later", |t| {
                t.approval(|job: &Job, _| {
                    let id = job.id.clone();
                    async move { if id == "b" { panic!("ah") } else { None } }
                })
                .execute(work)
            })
            .tools([worker("safe", |t| t)])
    });

    let story = play.run(&run, ()).await;

    let results = results(&story, "Work");
    assert!(error_of(&results[0]).ends_with("the code panicked: oh"), "{:?}", results[0]);
    assert!(error_of(&results[1]).ends_with("the code panicked: ah"), "{:?}", results[1]);
    assert_eq!(results[2], success("c done"));
    assert_eq!(journal.take(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn approval_condition_sees_arguments_and_state_and_may_pass_a_call() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]), batch([("big", "b"), ("big", "small")]), done()]);
    let picky = |config: crate::support::ShopLoop| {
        config.tools([worker("safe", |t| t)]).tool("big", |t| {
            t.approval(|job: &Job, cx: &Shop| {
                (job.id != "small").then(|| format!("{} after {}", job.id, cx.state.done.join(",")))
            })
            .execute(work)
        })
    };
    let run = play.start(&workshop(&journal, picky), ()).await;

    let Settled::Waiting(pending) = run.settled().await else { panic!("the run does not wait") };

    assert_eq!(paths(&pending), ["Work/1.0"]);
    let PendingKind::Approval { gate, .. } = &pending[0].kind else { panic!("{pending:?}") };
    assert_eq!(gate.reason, "b after a");
    run.approve(&path("Work/1.0"), "ann").await.unwrap();
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn sequential_tool_runs_alone() {
    let journal = Journal::default();
    let jobs = [("safe", "a", 20), ("safe", "b", 30), ("alone", "c", 10), ("safe", "d", 10), ("safe", "e", 20)];
    let play = Play::free([slow_batch(jobs), done()]);

    play.run(&workshop(&journal, tools), ()).await;

    assert_eq!(journal.take(), ["a", "b", "a-", "b-", "c", "c-", "d", "e", "d-", "e-"]);
}

#[tokio::test(start_paused = true)]
async fn loop_limits_concurrent_calls() {
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    static MOST: AtomicU32 = AtomicU32::new(0);
    let journal = Journal::default();
    let play =
        Play::free([slow_batch([("busy", "a", 9), ("busy", "b", 5), ("busy", "c", 7), ("busy", "d", 3)]), done()]);
    let busy = || {
        Tool::new("busy", |t: ShopBuilder| {
            t.execute(async |job: Job, cx: Shop| {
                MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let reply = work(job, cx).await;
                RUNNING.fetch_sub(1, Ordering::SeqCst);
                reply
            })
        })
    };

    play.run(&workshop(&journal, move |config| config.tools([busy()]).parallel(2)), ()).await;

    assert_eq!(MOST.load(Ordering::SeqCst), 2);
    assert_eq!(play.last_results(), ["a done", "b done", "c done", "d done"]);
}

#[tokio::test(start_paused = true)]
async fn results_are_recorded_on_arrival_and_read_in_call_order() {
    let journal = Journal::default();
    let play = Play::free([slow_batch([("safe", "a", 30), ("safe", "b", 10), ("safe", "c", 20)]), done()]);

    let story = play.run(&workshop(&journal, tools), ()).await;

    assert_eq!(events_named(&story, "LOOP_TOOL_RESULT"), ["Work/0.1", "Work/0.2", "Work/0.0"]);
    assert_eq!(play.last_results(), ["a done", "b done", "c done"]);
    assert_eq!(story.state()["done"], json!(["b", "c", "a"]), "updates are applied in log order");
}

#[tokio::test(start_paused = true)]
async fn invalid_calls_are_errors_that_the_model_can_fix() {
    let journal = Journal::default();
    let nonsense = Reply::calls([
        ("saef", json!({"id": "a"})),
        ("safe", json!({"id": 7, "colour": "red"})),
        ("safe", json!("{\"id\": \"a\"")),
        ("", json!({})),
        ("safe", json!({"id": "ok"})),
    ]);
    let play = Play::new([nonsense, done()]);

    let story = play.run(&workshop(&journal, tools), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "there is no tool `saef`; the tools are `safe`, `read`, `alone`, `gated`");
    assert!(error_of(&results[1]).contains("at `/id`: 7 is not of type \"string\""), "{:?}", results[1]);
    assert!(error_of(&results[1]).contains("'colour' was unexpected"), "{:?}", results[1]);
    assert!(error_of(&results[2]).starts_with("the arguments are not valid JSON: EOF"), "{:?}", results[2]);
    assert!(error_of(&results[3]).starts_with("there is no tool ``"), "{:?}", results[3]);
    assert_eq!(results[4], success("ok done"));
    assert_eq!(journal.take(), ["ok"], "only what makes sense runs");
    assert_eq!(events_named(&story, "LOOP_TOOL_START"), ["Work/0.4"]);
}

#[tokio::test(start_paused = true)]
async fn call_without_arguments_gets_an_empty_object() {
    let journal = Journal::default();
    let play = Play::new([Reply::calls([("ping", json!(""))]), done()]);
    let ping = |config: crate::support::ShopLoop| {
        config.tool("ping", |t| t.execute(async |_: positronic_core::prelude::NoArgs, _| Ok("pong")))
    };

    let story = play.run(&workshop(&journal, ping), ()).await;

    assert_eq!(results(&story, "Work"), [success("pong")]);
}

#[tokio::test(start_paused = true)]
async fn answer_that_names_one_call_twice_has_one_call() {
    use positronic_core::record::{ModelResponse, Part, ProposedCall};
    let journal = Journal::default();
    let call = ProposedCall {
        provider_id: Some("p1".to_owned()),
        name: "safe".to_owned(),
        arguments: "{\"id\":\"a\"}".to_owned(),
        data: None,
    };
    let parts = vec![Part::Call { index: 0 }, Part::Call { index: 0 }, Part::Call { index: 9 }];
    let odd = Reply::response(ModelResponse { parts, calls: vec![call], ..ModelResponse::default() });
    let play = Play::new([odd, done()]);

    let story = play.run(&workshop(&journal, tools), ()).await;

    assert_eq!(results(&story, "Work"), [success("a done")]);
}

#[tokio::test(start_paused = true)]
async fn second_decision_is_refused_and_names_the_first() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a"), ("gated", "b")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    let call = path("Work/0.0");

    let (one, other) = tokio::join!(run.reject(&call, "no", "ann"), run.approve(&call, "bob"));
    assert!(one.is_ok());
    let Refusal::Decided { how, .. } = refusal(other.unwrap_err()) else { panic!("no refusal") };
    assert_eq!(how, "it was rejected by ann: no");

    run.approve(&path("Work/0.1"), "bob").await.unwrap();
    play.story(&run).await;
    let late = refusal(run.reject(&path("Work/0.1"), "no", "ann").await.unwrap_err());
    assert_eq!(
        late,
        Refusal::Decided { call: path("Work/0.1"), how: "it was approved by bob".to_owned() },
        "also when the batch is over"
    );
    let unknown = refusal(run.approve(&path("Work/7.0"), "ann").await.unwrap_err());
    assert_eq!(unknown, Refusal::Ended);
}

#[tokio::test(start_paused = true)]
async fn decision_about_a_call_without_an_approval_is_refused() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("gated", "b"), ("safe", "c")])]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;

    for (call, expected) in [("Work/0.0", "decided"), ("Work/0.2", "unasked"), ("Work/0.9", "no such call")] {
        let found = match refusal(run.approve(&path(call), "ann").await.unwrap_err()) {
            Refusal::Decided { .. } => "decided",
            Refusal::Unasked { how, .. } => {
                assert_eq!(how, "does not wait for a decision");
                "unasked"
            }
            Refusal::NoSuchCall { open, .. } => {
                assert_eq!(open, "pending: `Work/0.1` (a decision)");
                "no such call"
            }
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn decision_takes_effect_at_once_while_siblings_run() {
    let journal = Journal::default();
    let play = Play::free([slow_batch([("safe", "a", 100), ("gated", "b", 10)]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    while run.pending().is_empty() {
        tokio::task::yield_now().await;
    }

    run.approve(&path("Work/0.1"), "ann").await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["a", "b", "b-", "a-"]);
    let request = play.last_request();
    assert_eq!(tool_texts(&request), ["a done", "b done"]);
}
