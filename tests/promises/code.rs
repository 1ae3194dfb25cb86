//! Code that has changed since a run began: promise 15.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use positronic_core::dsl::{BrainBuilder, IntoBrain, Staged, Timed};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{SignalKind, ToolResult};
use positronic_core::runner::{ResumeError, RunHandle, Settled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bench::{Bench, approve, behind, by, result_of, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Board, Journal, Shop, ShopLoop, batch, done, path, settled, tools, waits, work, worker};

on_both_stores! {
    promise_15_changed_code_continues_with_the_authors_migration
    promise_15_call_of_a_removed_brain_gets_a_typed_result_at_every_depth
    promise_15_unavailable_services_fail_the_brain_and_only_delay_a_resume
}

/// Possible changes to a brain's code.
#[derive(Clone, Copy)]
struct Code {
    title: &'static str,
    version: u32,
    stages: [&'static str; 3],
    inner: u32,
    work: fn(ShopLoop) -> ShopLoop,
}

/// The code at the start of the run.
const FIRST: Code =
    Code { title: "Shop", version: 1, stages: ["One", "Two", "Work"], inner: 1, work: |config| tools(config) };

type Made = BrainBuilder<(), Board, Journal>;

/// Two steps, a brain, the loop that waits for a person, and a step after it.
fn made(code: Code) -> Made {
    last(loop_at(nested(begun(code), code), code))
}

fn begun(code: Code) -> Made {
    let [one, two, _] = code.stages;
    brain(code.title)
        .version(code.version)
        .services::<Journal>()
        .state(Board::default())
        .step(one, async |cx| Ok(cx.state))
        .step(two, async |cx| Ok(cx.state))
}

fn nested(begun: Made, code: Code) -> Made {
    let inner = brain("Inner")
        .version(code.inner)
        .services::<Journal>()
        .state(Board::default())
        .step("Deep", async |cx| Ok(cx.state));
    begun.brain("Inside", inner).map_output(|board: Board, _: Board| board)
}

fn loop_at(begun: Made, code: Code) -> BrainBuilder<(), Board, Journal, Staged<Timed<Board>>> {
    begun.r#loop(code.stages[2], move |cx| (code.work)(cx.system("Work.")))
}

fn last<K>(begun: BrainBuilder<(), Board, Journal, Staged<K>>) -> Made {
    begun.step("Last", async |cx| Ok(cx.state))
}

fn says(place: &str) -> Reply {
    if place == "Work/0" { batch([("gated", "a")]) } else { done() }
}

/// A run of the original code that waits for an approval, left by a process that died.
async fn waiting() -> Bench {
    let bench = Bench::new();
    let process = bench.process("first", says);
    let run = bench.start(&process, made(FIRST).bind(Journal::default())).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    bench.cut(bench.log().await.len()).await
}

/// Continues with changed code; the call is approved first, so that there is work.
async fn resumed(
    brain: impl IntoBrain<Options = (), Result = Board, Services = Journal>,
) -> (Bench, Journal, Result<RunHandle<Value>, ResumeError>) {
    let (bench, journal) = (waiting().await, Journal::default());
    bench.client("people").signal(&run_id(), approve("Work/0.0"), by("ann")).await.unwrap();
    let before = bench.log().await;
    let process = bench.process("second", says).brain(brain.into_brain().bind(journal.clone()));
    let resumed = process.resume(&run_id()).await;
    if resumed.is_err() {
        let mut log = bench.log().await;
        let more = log.split_off(before.len());
        assert_eq!(log, before);
        // The tools of an open call are known only after the claim.
        let names: Vec<_> = more.iter().map(|event| event.kind.name()).collect();
        assert!([&["RUN_CLAIMED", "RUN_RELEASED", "RUN_NOT_CLAIMED"][..], &[]].contains(&&names[..]), "{names:?}");
    }
    (bench, journal, resumed)
}

/// Checks that changed code is refused with an error that names the difference.
async fn refused(brain: impl IntoBrain<Options = (), Result = Board, Services = Journal>, difference: &str) {
    let brain = brain.into_brain();
    let (bench, journal, resumed) = resumed(brain.clone()).await;
    let Err(ResumeError::Changed { difference: named }) = resumed else { panic!("{resumed:?} for {difference}") };
    assert!(named.contains(difference), "{named}");
    // `serve` refuses it as well and leaves it to others.
    let process = bench.process("third", says).brain(brain.bind(journal.clone()));
    let before = bench.log().await;
    let service = process.serve();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(bench.log().await, before);
    assert_eq!(journal.take(), Vec::<String>::new());
    drop(service);
    let process = bench.process("fourth", says).brain(made(FIRST).bind(journal));
    assert!(matches!(settled(&process.resume(&run_id()).await.unwrap()).await, Settled::Completed(_)));
}

/// Checks that a run continues with changed code, and that the approved call runs.
async fn assert_continues(brain: impl IntoBrain<Options = (), Result = Board, Services = Journal>) {
    let (bench, journal, resumed) = resumed(brain).await;
    let settled = settled(&resumed.unwrap()).await;
    assert!(matches!(settled, Settled::Completed(_)), "{settled:?}");
    assert_eq!(journal.take()[0], "a");
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_15_changed_code_up_to_the_current_stage_is_refused_with_the_difference() {
    refused(made(Code { version: 2, ..FIRST }), "version 1 of `Shop`, the code has version 2").await;
    refused(made(Code { stages: ["Uno", "Two", "Work"], ..FIRST }), "stage 1 of `Shop` was `One`, and is `Uno` now")
        .await;
    refused(made(Code { stages: ["One", "Two", "Job"], ..FIRST }), "stage 4 of `Shop` was `Work`, and is `Job` now")
        .await;
    refused(made(Code { stages: ["Two", "One", "Work"], ..FIRST }), "stage 1 of `Shop` was `One`, and is `Two` now")
        .await;
    refused(made(Code { inner: 2, ..FIRST }), "the brain that the stage `Inside` of `Shop` runs is another one now")
        .await;
    let inserted = nested(begun(FIRST).step("New", async |cx| Ok(cx.state)), FIRST);
    refused(last(loop_at(inserted, FIRST)), "stage 3 of `Shop` was `Inside`, and is `New` now").await;
    refused(loop_at(begun(FIRST), FIRST), "stage 3 of `Shop` was `Inside`, and is `Work` now").await;
    refused(nested(begun(FIRST), FIRST), "has no stage 4 any more, which was `Work`").await;
    let kind = nested(begun(FIRST), FIRST).step("Work", async |cx| Ok(cx.state));
    refused(kind, "the stage `Work` of `Shop` was a loop, and is a step now").await;
}

#[tokio::test(start_paused = true)]
async fn promise_15_brain_of_another_title_is_refused() {
    let (_, _, resumed) = resumed(made(Code { title: "Store", ..FIRST })).await;

    assert_eq!(resumed.unwrap_err(), ResumeError::NoBrain { brain: "Shop".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn promise_15_code_after_the_current_stage_may_change() {
    assert_continues(made(FIRST)).await;
    let later = loop_at(nested(begun(FIRST), FIRST), FIRST);
    assert_continues(
        later.step("Last", async |cx| Ok(Board { done: [cx.state.done, vec!["more".to_owned()]].concat() })),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn promise_15_stages_after_the_current_one_may_change() {
    let later = || loop_at(nested(begun(FIRST), FIRST), FIRST);
    assert_continues(later()).await;
    assert_continues(later().step("Other", async |cx| Ok(cx.state)).step("Last", async |cx| Ok(cx.state))).await;
    assert_continues(later().step("Renamed", async |cx| Ok(cx.state))).await;
}

/// Arguments that differ from a job's.
#[derive(Debug, Deserialize, JsonSchema)]
struct Order {
    #[expect(dead_code, reason = "it is never decoded")]
    number: u32,
}

fn other_schema(config: ShopLoop) -> ShopLoop {
    config.tool("gated", |t| t.requires_approval("sure?").execute(async |_: Order, _: Shop| Ok("ordered")))
}

fn another_tool(config: ShopLoop) -> ShopLoop {
    tools(config).tool("more", |t| t.execute(work))
}

fn without_it(config: ShopLoop) -> ShopLoop {
    config.tools([worker("safe", |t| t)])
}

#[tokio::test(start_paused = true)]
async fn promise_15_open_call_with_a_changed_schema_is_refused_and_one_without_its_tool_is_an_error() {
    refused(
        made(Code { work: other_schema, ..FIRST }),
        "the call `Work/0.0` is open, and its tool `gated` has other parameters now",
    )
    .await;
    assert_continues(made(Code { work: another_tool, ..FIRST })).await;

    let (bench, journal, resumed) = resumed(made(Code { work: without_it, ..FIRST })).await;

    assert!(matches!(settled(&resumed.unwrap()).await, Settled::Completed(_)));
    let ToolResult::Error { message } = result_of(&bench.checked().await, "Work/0.0") else { panic!("no error") };
    assert!(message.contains("gated"), "{message}");
    assert_eq!(journal.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn promise_15_check_of_the_code_knows_what_open_calls_need() {
    let check = async |code: Code| {
        let bench = waiting().await;
        let before = bench.log().await;
        let process = bench.process("second", says).brain(made(code).bind(Journal::default()));
        let check = process.check_code(&run_id()).await.unwrap();
        assert_eq!(bench.log().await, before, "a check changes nothing");
        assert_eq!(process.changed(&run_id()).await.unwrap(), check.brain.clone().or(check.calls.clone()));
        (check.brain, check.calls)
    };
    let call = |difference: &str| Some(format!("the call `Work/0.0` is open, and its tool `gated` {difference}"));

    assert_eq!(check(FIRST).await, (None, None));
    assert_eq!(check(Code { work: another_tool, ..FIRST }).await, (None, None));
    assert_eq!(
        check(Code { work: without_it, ..FIRST }).await,
        (None, call("no longer exists: restore the tool, or reject the call"))
    );
    assert_eq!(
        check(Code { work: other_schema, ..FIRST }).await,
        (None, call("has other parameters now; restore the old ones until it is done"))
    );
    let (brain, calls) = check(Code { version: 2, work: without_it, ..FIRST }).await;
    assert!(brain.is_some_and(|difference| difference.contains("version 2")) && calls.is_none());
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Options {
    amount: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct OtherOptions {
    amount: u32,
    #[serde(default)]
    currency: String,
}

#[tokio::test(start_paused = true)]
async fn promise_15_options_with_another_schema_are_refused() {
    fn shop<O: positronic_core::dsl::Options>() -> Brain<O, Board> {
        brain("Shop")
            .options::<O>()
            .state(Board::default())
            .r#loop("Work", |cx| {
                cx.system("").tool("ask", |t| t.requires_approval("sure?").execute(async |_: NoArgs, _| Ok(())))
            })
            .build()
    }
    let bench = Bench::new();
    let says = |place: &str| if place == "Work/0" { Reply::call("ask", json!({})) } else { done() };
    let start = positronic_core::record::Start { id: Some("run".into()), ..Default::default() };
    let run = bench.process("first", says).start_with(shop::<Options>(), Options { amount: 3 }, start).await.unwrap();
    waits(&run).await;
    let cut = bench.cut(bench.log().await.len()).await;

    let changed = cut.process("second", says).brain(shop::<OtherOptions>()).resume(&run_id()).await.unwrap_err();

    assert_eq!(
        changed,
        ResumeError::Changed { difference: "the options of `Shop` have another schema now".to_owned() }
    );
    let same = cut.process("third", says).brain(shop::<Options>()).resume(&run_id()).await.unwrap();
    same.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert!(matches!(settled(&same).await, Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn promise_15_brain_of_an_open_call_is_checked_too() {
    fn outer(title: &'static str, version: u32) -> Brain<(), Board> {
        let inner = move || {
            brain(title)
                .version(version)
                .services::<Journal>()
                .state(Board::default())
                .r#loop("Deep", |cx| tools(cx.system("Inside.")))
        };
        crate::support::workshop(&Journal::default(), move |config| tools(config).brain("inner", inner()))
    }
    let bench = Bench::new();
    let says = |place: &str| match place {
        "Work/0" => Reply::call("inner", json!({})),
        "Work/0.0/Deep/0" => batch([("gated", "a")]),
        _ => done(),
    };
    let run = bench.start(&bench.process("first", says), &outer("Inner", 1)).await;
    waits(&run).await;
    let cut = bench.cut(bench.log().await.len()).await;
    cut.client("people").approve(&run_id(), &path("Work/0.0/Deep/0.0"), by("ann")).await.unwrap();

    for (other, named) in [
        (outer("Inner", 2), "the run has begun with version 1 of `Inner`, the code has version 2"),
        (outer("Other", 1), "the run is of the brain `Inner`, the code is that of `Other`"),
    ] {
        let changed = cut.process("second", says).brain(other).resume(&run_id()).await.unwrap_err();

        assert_eq!(changed, ResumeError::Changed { difference: named.to_owned() });
    }
    let same = cut.process("third", says).brain(outer("Inner", 1)).resume(&run_id()).await.unwrap();
    assert!(matches!(settled(&same).await, Settled::Completed(_)));
}

async fn promise_15_changed_code_continues_with_the_authors_migration<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let first = bench.process("first", says);
    let run = bench.start(&first, made(FIRST).bind(Journal::default())).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    let dead = bench.cut(bench.log().await.len()).await;
    dead.client("people").approve(&run_id(), &path("Work/0.0"), by("ann")).await.unwrap();
    let journal = Journal::default();
    let moved = || made(Code { version: 2, stages: ["Uno", "Two", "Work"], ..FIRST });
    let migrated = || moved().migrate(1, |state| Ok(json!({ "done": [format!("was {}", state["done"])] })));
    let resume = async |bench: &Bench<S>, brain: Made| {
        bench.process("second", says).brain(brain.bind(journal.clone())).resume(&run_id()).await
    };

    let refused = resume(&dead, moved()).await.unwrap_err();
    let run = resume(&dead, migrated()).await.unwrap();

    assert!(matches!(refused, ResumeError::Changed { .. }));
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({ "done": ["was []", "a"] }));
    assert_eq!(journal.take(), ["a"]);
    // From then on the run belongs to the new code: no second migration, and the old code is refused.
    let log = dead.checked().await;
    let until = behind(&log, "", "BRAIN_MIGRATED");
    let refused = resume(&dead.cut(until).await, made(FIRST)).await.unwrap_err();
    assert!(matches!(refused, ResumeError::Changed { .. }));
    let cut = dead.cut(until).await;
    let again = resume(&cut, moved()).await.unwrap();
    assert!(matches!(settled(&again).await, Settled::Completed(_)));
    assert_eq!(again.document(), run.document());
    cut.checked().await;
}

/// A loop with a brain as its tool, or without that tool.
fn delegating(whole: bool) -> Brain<(), Board, Journal> {
    let inner = brain("Inner").services::<Journal>().state(Board::default()).step("Deep", async |cx| Ok(cx.state));
    let shop = brain("Shop").services::<Journal>().state(Board::default()).r#loop("Work", move |cx| {
        let cx = cx.system("Work.");
        if whole { cx.brain("inner", inner.clone()) } else { cx }
    });
    shop.build()
}

async fn promise_15_call_of_a_removed_brain_gets_a_typed_result_at_every_depth<S: Fresh>() {
    let says = |place: &str| if place == "Work/0" { Reply::calls([("inner", json!({}))]) } else { done() };
    let bench = Bench::<S>::fresh();
    let run = bench.start(&bench.process("first", says), delegating(true).bind(Journal::default())).await;
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let log = bench.log().await;
    let (first, last) = (behind(&log, "Work/0.0", "LOOP_TOOL_CALL"), behind(&log, "Work/0.0", "LOOP_TOOL_RESULT"));
    for until in (first..last).filter(|until| !log[until - 1].with_next) {
        let cut = bench.cut(until).await;
        let process = cut.process("second", says).brain(delegating(false).bind(Journal::default()));

        let resumed = process.resume(&run_id()).await.unwrap();

        assert!(matches!(settled(&resumed).await, Settled::Completed(_)), "after {until}");
        let result = result_of(&cut.checked().await, "Work/0.0");
        assert!(matches!(result, ToolResult::Error { .. }), "{result:?} after {until}");
    }
}

/// A brain around `Inner`, whose services panic while `broken` is true; `outside` provides them at the root.
fn served(broken: &Arc<AtomicBool>, outside: bool) -> Brain<(), Board> {
    let inner = brain("Inner").services::<Journal>().state(Board::default()).r#loop("Work", |cx| tools(cx.system("")));
    let is_broken = Arc::clone(broken);
    let inner: Brain<(), Board, ()> = inner.provide(move |_: &()| {
        assert!(!is_broken.load(Ordering::SeqCst), "no connection");
        Journal::default()
    });
    if outside {
        inner.bind(())
    } else {
        brain("Outer").state(Board::default()).brain("Inside", inner).map_output(|_, board| board).build()
    }
}

async fn promise_15_unavailable_services_fail_the_brain_and_only_delay_a_resume<S: Fresh>() {
    for (outside, call) in [(true, "Work/0.0"), (false, "Inside/Work/0.0")] {
        let broken = Arc::new(AtomicBool::new(true));
        let gated = |place: &str| if place.ends_with("Work/0") { batch([("gated", "a")]) } else { done() };
        let bench = Bench::<S>::fresh();
        let run = bench.start(&bench.process("first", gated), served(&broken, outside)).await;
        let Settled::Failed(failure) = settled(&run).await else { panic!("it has no services") };
        assert!(failure.message.contains("the services of the brain `Inner`"), "{failure}");
        assert!(failure.message.contains("no connection"), "{failure}");
        bench.checked().await;

        broken.store(false, Ordering::SeqCst);
        let bench = Bench::<S>::fresh();
        let run = bench.start(&bench.process("first", gated), served(&broken, outside)).await;
        assert_eq!(waits(&run).await, [call]);
        let cut = bench.cut(bench.log().await.len()).await;
        let decided = SignalKind::Reject { call: path(call), reason: None };
        cut.client("people").signal(&run_id(), decided, by("ann")).await.unwrap();
        broken.store(true, Ordering::SeqCst);
        let process = cut.process("second", gated).brain(served(&broken, outside));
        let resumed = process.resume(&run_id()).await;
        assert!(matches!(&resumed, Err(ResumeError::Services { .. })), "{resumed:?}");
        let _service = process.serve();
        tokio::time::sleep(Duration::from_secs(30)).await;
        broken.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(cut.client("people").state(&run_id()).await.unwrap().has_ended());
    }
}
