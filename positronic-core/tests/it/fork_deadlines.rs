//! Deadlines in forks: what was left of a time where a fork begins is left again, however much later it is made.

use std::time::Duration;

use positronic_core::dsl::each;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{ModelRequest, OutputKind, RunId, Seq, Timestamp};
use positronic_core::runner::Fork;
use positronic_core::testing::TestClock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

const HOUR: Duration = Duration::from_hours(1);

fn runner() -> Runner {
    let answers = |request: &ModelRequest| match request.path.as_str() {
        "Chat/0" => Reply::call("work", json!({})),
        _ => Reply::text("Done."),
    };
    Runner::new(ScriptedModel::from_fn(answers)).clock(TestClock::default()).linger(Duration::MAX)
}

fn sleeper(time: Duration) -> Brain<(), ()> {
    brain("Sleeper").sleep("Rest", move |()| time).build()
}

/// Returns the first event with this name, and the times of an event and of the last one.
async fn times(runner: &Runner, run: &RunId, name: &str, from: usize) -> (Seq, Timestamp, Timestamp) {
    let log = runner.client().events(run, Seq(0)).await.unwrap();
    let found = log.iter().find(|event| event.kind.name() == name).unwrap();
    (found.seq, log[from].at, log.last().unwrap().at)
}

/// Runs a brain that ends two hours after an event, forks it there two days later, and that fork again.
async fn ends_two_hours_after_each_fork<R: Serialize + DeserializeOwned + Send + 'static>(
    brain: Brain<(), R>,
    name: &str,
) {
    let runner = runner().brain(brain.clone());
    let run = runner.start(&brain, ()).await.unwrap();
    _ = run.result().await;
    let (mut at, began, ended) = times(&runner, run.id(), name, 0).await;
    assert_eq!(ended.since(began), 2 * HOUR, "{name}");
    let mut run = run.id().clone();
    for _ in 0..2 {
        tokio::time::sleep(48 * HOUR).await;

        let fork = runner.fork(&run, at, Fork::default()).await.unwrap();

        _ = fork.result().await;
        let row = runner.client().store().run(fork.id()).await.unwrap();
        let first = row.forked_from.unwrap().1.next();
        let (_, began, ended) = times(&runner, fork.id(), "BRAIN_START", first.0 as usize).await;
        assert_eq!(ended.since(began), 2 * HOUR, "a fork after {name}");
        (run, at) = (fork.id().clone(), first);
    }
}

fn gated(expires: Option<Duration>) -> Tool {
    Tool::new("work", |t| {
        let t = t.requires_approval("it pays");
        let t = if let Some(after) = expires { t.approval_expires(after) } else { t };
        t.execute(async |_: NoArgs, _| Ok("paid"))
    })
}

#[tokio::test(start_paused = true)]
async fn approval_and_wait_of_a_call_expire_as_long_after_a_fork() {
    let approval = brain("Gated").r#loop("Chat", |cx| cx.system("Help.").input("Pay.").tools([gated(Some(2 * HOUR))]));
    ends_two_hours_after_each_fork(approval.build(), "LOOP_APPROVAL_REQUESTED").await;

    let waits = brain("Waits").r#loop("Chat", |cx| {
        cx.system("Help.").input("Pay.").tool("work", |t| {
            t.wait(|_: &NoArgs, _| [webhook::<u32>("paid").on("o-7").timeout(2 * HOUR).otherwise("late")])
                .execute(async |_, _| Ok("asked"))
        })
    });
    ends_two_hours_after_each_fork(waits.build(), "LOOP_WAIT").await;
}

#[tokio::test(start_paused = true)]
async fn request_for_more_of_a_limit_expires_as_long_after_a_fork() {
    let limited = brain("Limited").r#loop("Chat", |cx| {
        let config = cx.system("Help.").input("Work.").max_iterations(1).ask_for_more_within(2 * HOUR);
        config.tool("work", |t| t.execute(async |_: NoArgs, _| Ok("done")))
    });
    ends_two_hours_after_each_fork(limited.build(), "BUDGET_REQUESTED").await;

    let brains = brain("Limited").budget(|budget| budget.max_iterations(1).ask_for_more_within(2 * HOUR));
    let brains = brains.r#loop("Chat", |cx| {
        cx.system("Help.").input("Work.").tool("work", |t| t.execute(async |_: NoArgs, _| Ok("done")))
    });
    ends_two_hours_after_each_fork(brains.build(), "BUDGET_REQUESTED").await;
}

#[tokio::test(start_paused = true)]
async fn waits_and_sleeps_of_stages_end_as_long_after_a_fork() {
    let wait = brain("Wait").state("o-7".to_owned()).wait(
        "Paid",
        |w| w.on(webhook::<u32>("paid"), String::clone).to(|_| "paid").after(2 * HOUR, || "late"),
        |_, end| end.to_owned(),
    );
    ends_two_hours_after_each_fork(wait.build(), "STAGE_WAIT").await;
    ends_two_hours_after_each_fork(sleeper(2 * HOUR), "STAGE_WAIT").await;
    let items = brain("Items").map("All", |()| vec![(); 3], each(sleeper(2 * HOUR)).limit(3), |(), _| ());
    ends_two_hours_after_each_fork(items.build(), "STAGE_WAIT").await;
}

#[tokio::test(start_paused = true)]
async fn time_limits_of_stages_end_as_long_after_a_fork() {
    let chat = brain("Chat").r#loop("Chat", |cx| cx.system("Help.").input("Pay.").tools([gated(None)]));
    ends_two_hours_after_each_fork(chat.timeout(2 * HOUR).build(), "LOOP_APPROVAL_REQUESTED").await;
    let nested = brain("Outer").brain("Slow", sleeper(9 * HOUR)).map_output(|(), ()| ()).timeout(2 * HOUR);
    ends_two_hours_after_each_fork(nested.build(), "STAGE_WAIT").await;
    let race = brain("Race").race(
        "First",
        |r| r.run("Slow", sleeper(9 * HOUR), |()| ()).to(|()| "slow").after(2 * HOUR, || "late"),
        |(), won| won.to_owned(),
    );
    ends_two_hours_after_each_fork(race.build(), "STAGE_WAIT").await;
}

#[tokio::test(start_paused = true)]
async fn time_that_the_author_named_stays_in_a_fork() {
    let morning = TestClock::BEGIN.after(2 * HOUR);
    let sleeper = brain("Sleeper").state(1).sleep_until("Pause", move |_| morning).build();
    let runner = runner().brain(sleeper.clone());
    let run = runner.start(&sleeper, ()).await.unwrap();
    run.result().await.unwrap();
    let (asleep, ..) = times(&runner, run.id(), "STAGE_WAIT", 0).await;
    tokio::time::sleep(HOUR).await;

    let fork = runner.fork(run.id(), asleep, Fork::default()).await.unwrap();
    fork.result().await.unwrap();

    let (_, began, ended) = times(&runner, fork.id(), "STAGE_RESUME", asleep.next().0 as usize).await;
    assert_eq!((began, ended), (TestClock::BEGIN.after(3 * HOUR), TestClock::BEGIN.after(3 * HOUR)));
}

#[tokio::test(start_paused = true)]
async fn records_and_timelines_of_a_fork_show_the_time_that_holds() {
    let runner = runner();
    let gated = brain("Gated").r#loop("Chat", |cx| cx.system("Help.").input("Pay.").tools([gated(Some(2 * HOUR))]));
    let waits = brain("Waits").state("o-7".to_owned()).wait(
        "Paid",
        |w| w.on(webhook::<u32>("paid"), String::clone).within(2 * HOUR),
        |_, _| (),
    );
    let (gated, waits) = (gated.build(), waits.build());
    for (run, event) in
        [(runner.start(&gated, ()).await, "LOOP_APPROVAL_REQUESTED"), (runner.start(&waits, ()).await, "STAGE_WAIT")]
    {
        let run = run.unwrap();
        run.settled().await;
        let at = times(&runner, run.id(), event, 0).await.0;
        tokio::time::sleep(48 * HOUR).await;

        let fork = runner.fork(run.id(), at, Fork::default()).await.unwrap();

        fork.settled().await;
        let log = runner.client().events(fork.id(), Seq(0)).await.unwrap();
        let due = log[at.0 as usize + 1].at.after(2 * HOUR);
        let timeline = Timeline::of(log.iter().map(AsRef::as_ref));
        let shown = timeline.nodes().find_map(|node| match &node.kind {
            NodeKind::Call(call) => call.approval.as_ref()?.expires,
            NodeKind::Stage(stage) => stage.waited.as_ref()?.due,
            _ => None,
        });
        assert_eq!(shown, Some(due), "{event}");
        for prompt in fork.prompts().iter() {
            let expires = prompt.output.iter().find_map(|output| match &output.kind {
                OutputKind::Tool(tool) => tool.approval.as_ref()?.expires,
                _ => None,
            });
            assert_eq!(expires, Some(due), "{event}");
        }
    }
}
