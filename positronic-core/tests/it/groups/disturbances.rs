//! What disturbs several brains at the same time: cancels, pauses, forks, crashes, code that changed, limits.

use super::*;

#[tokio::test(start_paused = true)]
async fn cancel_ends_all_open_brains_in_one_append() {
    let run = test().start(orders(3), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.cancel("no longer needed").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Cancelled));
    let log = run.events(Seq(0)).await.unwrap();
    let cancelled: Vec<_> = log.iter().filter(|event| event.kind.name() == "BRAIN_CANCELLED").collect();
    let paths: Vec<_> = cancelled.iter().map(|event| event.path.as_str()).collect();
    assert_eq!(paths, ["Pay/0.0", "Pay/0.1", "Pay/0.2", ""]);
    assert!(cancelled.iter().all(|event| event.with_next != event.path.is_root()), "they are one transition");
}

#[tokio::test(start_paused = true)]
async fn paused_run_begins_no_further_item() {
    let work = brain("Work").options::<u32>().step("Work", async |cx| {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(*cx.options)
    });
    let brain =
        brain("Map").state(vec![1_u32, 2, 3]).map("Work", Vec::clone, each(work).limit(1), |_, results| results);
    let run = Runner::new(ScriptedModel::new([])).start(brain, ()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    run.pause().await.unwrap();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let begun = |state: &positronic_core::machine::RunState| {
        let Some(frame) = state.brain(&Path::root()) else { panic!("it has begun") };
        serde_json::to_value(&frame.stage).unwrap()["Group"]["next"].clone()
    };
    assert_eq!(begun(&run.state()), 1);
    run.resume().await.unwrap();
    assert_eq!(run.result().await.unwrap(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn fork_keeps_ended_items_and_continues_open_ones() {
    let test = test();
    let run = test.start(orders(2), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("bank", "order-1", json!({ "amount": 11 })).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let log = run.events(Seq(0)).await.unwrap();
    let done = log.iter().rfind(|event| event.kind.name() == "BRAIN_COMPLETE").unwrap();
    let runner = test.runner().clone().brain(orders(2));
    let fork = runner.client().fork(run.id(), done.seq, Fork::default()).await.unwrap();
    let fork = runner.resume(&fork).await.unwrap();
    fork.webhook("bank", "order-0", json!({ "amount": 99 })).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), json!([99, 11]));
}

#[tokio::test(start_paused = true)]
async fn failed_item_is_retried_without_its_ended_siblings() {
    let (works, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (fails, asks) = (Arc::clone(&works), Arc::clone(&asked));
    let item = brain("Item").options::<u32>().step("Work", move |cx| {
        asks.fetch_add(1, Ordering::SeqCst);
        let done = match (*cx.options, fails.load(Ordering::SeqCst)) {
            (1, 0) => bail(1),
            (number, _) => Ok(number),
        };
        async move { done }
    });
    let brain = brain("Map").state(vec![0_u32, 1]).map("Items", Vec::clone, each(item).limit(1), |_, all| all);
    let test = test();
    let run = test.start(&brain, ()).await;
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    works.store(1, Ordering::SeqCst);
    let runner = test.runner().clone().brain(&brain);
    let Retried::Forked { run, .. } = runner.client().retry(run.id(), "ann").await.unwrap() else {
        panic!("it was not parked")
    };
    let run = runner.resume(&run).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!([0, 1]));
    assert_eq!(asked.load(Ordering::SeqCst), 3, "the first item has kept its result");
}

#[tokio::test(start_paused = true)]
async fn groups_in_groups_tools_and_rounds_survive_a_crash_at_any_moment() {
    let inner = brain("Inner")
        .options::<u32>()
        .step("Begin", async |cx| Ok(vec![*cx.options, *cx.options + 1]))
        .map("Pay", Vec::clone, each(bank()).limit(1), |_, paid| paid.iter().sum::<u32>())
        .build();
    let agent = brain("Agent").state(String::new()).r#loop_to(
        "Work",
        |cx| cx.system("Work.").brain("both", both()).output::<Done>(),
        |_, done| done.text,
    );
    let outer = brain("Outer")
        .state(0_u32)
        .all(
            "All",
            |g| (g.run("Inner", inner, |_| 10), g.attempt("Failing", failing(), |_| 3), g.run("Agent", agent, |_| ())),
            |_, (paid, failed, text)| format!("{paid} {} {text}", failed.is_err()),
        )
        .race(
            "Race",
            |r| {
                r.run("Bank", bank(), |_| 40)
                    .to(|paid| format!("bank {paid}"))
                    .or(r.run("Ask", ask(), |_| 1))
                    .after(Duration::from_hours(1), || "late".to_owned())
            },
            |before, won| vec![before, won],
        )
        .repeat("Again", 3, ask(), |log| u32::try_from(log.len()).unwrap_or(0), and, |log| log.len() > 3)
        .build();
    let tale = Tale {
        definition: IntoBrain::definition(&outer),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.messages.len() {
            _ if request.tools.tools().is_empty() => Reply::text("yes"),
            0 | 1 => Reply::call("both", json!({})),
            _ => Reply::call("done", json!({ "text": "finished" })),
        }),
        answers: Arc::new(|pending| {
            let identifier = pending.kind.waits()[0].identifier.clone();
            match identifier.strip_prefix("order-").and_then(|order| order.parse().ok()) {
                Some(order) => vec![paid(order, order)],
                None => panic!("{identifier}"),
            }
        }),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(
        baseline.end.state,
        json!(["21 true finished", baseline.end.state[1], "2 yes", "3 yes"]),
        "the race has either winner"
    );
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end.state, baseline.end.state, "after {}", death.until);
    }
}

fn and(mut log: Vec<String>, more: String) -> Vec<String> {
    log.push(more);
    log
}

#[derive(Debug, serde::Serialize, Deserialize, JsonSchema)]
struct Done {
    text: String,
}

#[tokio::test(start_paused = true)]
async fn items_that_cannot_be_computed_fail_the_brain() {
    let brain = brain("Map").map("Items", |()| -> Vec<u32> { panic!("no items") }, bank(), |(), paid| paid);
    let error = test().start(brain, ()).await.result().await.unwrap_err().to_string();
    assert!(error.contains("the stage `Items` cannot begin") && error.contains("no items"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn results_that_cannot_be_applied_fail_the_brain() {
    let brain = brain("Map").map("Items", |()| vec![1], ask(), |(), _| -> u32 { panic!("no sum") });
    let error = test().start(brain, ()).await.result().await.unwrap_err().to_string();
    assert!(error.contains("the results of `Items` cannot be applied") && error.contains("no sum"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn open_items_show_in_the_timeline_while_others_have_failed() {
    let items = brain("Map").state(()).all(
        "Both",
        |g| (g.attempt("Failing", failing(), |()| 1), g.run("Bank", bank(), |()| 2)),
        |(), _| (),
    );
    let run = test().start(items, ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let log = run.events(Seq(0)).await.unwrap();
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let shown: Vec<_> = timeline
        .nodes()
        .filter_map(|node| match &node.kind {
            NodeKind::Stage(stage) if node.path.as_str().starts_with("Both") => {
                Some((stage.name.as_str(), node.status))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("Both", NodeStatus::Running),
            ("Failing", NodeStatus::Failed),
            ("Fail", NodeStatus::Failed),
            ("Bank", NodeStatus::Running),
            ("Begin", NodeStatus::Done),
            ("Payment", NodeStatus::Waiting),
        ]
    );
    assert!(log.iter().any(|event| matches!(&event.kind, EventKind::GroupStart { options, .. } if options.len() == 2)));
}

#[tokio::test(start_paused = true)]
async fn several_brains_at_one_limit_ask_a_person_once() {
    let chat = || brain("Chat").r#loop("Chat", |cx| cx.system("Talk.").plugin(Idle)).result(|()| 0);
    let late = brain("Late").step("First", async |_| Ok(())).r#loop("Chat", |cx| cx.system("Talk.")).result(|()| 0);
    let brain = brain("All").budget(|budget| budget.max_iterations(1).ask_for_more()).all(
        "All",
        |g| (g.run("A", chat(), |()| ()), g.run("B", chat(), |()| ()), g.run("C", late, |()| ())),
        |(), (one, two, three)| one + two + three,
    );
    let run = test().start(brain, ()).await;
    for _ in 0..3 {
        let Settled::Waiting(pending) = run.settled().await else { break };
        assert_eq!(pending.len(), 1, "{pending:?}");
        run.grant(&Path::root(), Amounts { iterations: 5, ..Amounts::default() }, "ann").await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), 0);
}

/// Lets an iteration be prepared in a task of its own.
struct Idle;

#[derive(Default, serde::Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl positronic_core::dsl::PluginState for Nothing {
    const NAME: &'static str = "idle";
}

impl<O: positronic_core::dsl::Options, S: positronic_core::dsl::State, V: positronic_core::dsl::Services>
    positronic_core::dsl::Plugin<O, S, V> for Idle
{
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }
}

#[tokio::test(start_paused = true)]
async fn retry_of_a_repeat_that_has_used_its_rounds_is_refused() {
    let test = test();
    let run = test.start(instalments(1), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("bank", "order-0", json!({ "amount": 3 })).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    let refused = test.runner().client().retry(run.id(), "ann").await.unwrap_err();
    assert!(matches!(refused, RetryError::AtLimit { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn code_with_another_policy_of_failures_does_not_continue_an_open_map() {
    let (test, store) = (test(), MemoryStore::new());
    let first = test.runner().clone().store(store.clone());
    let run = first.start(orders(2), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    drop(run);
    first.release().await;
    let changed = brain("Orders").state((0..2).collect::<Vec<u32>>()).map(
        "Pay",
        Vec::clone,
        each(bank()).collect_failures(),
        |_, paid| paid.into_iter().map(Result::unwrap_or_default).collect::<Vec<_>>(),
    );
    let refused = test.runner().clone().store(store).brain(changed).resume(&id).await.unwrap_err();
    assert!(matches!(&refused, ResumeError::Changed { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn outcome_that_lockstep_holds_is_recorded_when_a_race_drops_what_it_waits_for() {
    let slow = brain("Slow").options::<u32>().step("Work", async |_| {
        tokio::time::sleep(Duration::from_hours(10)).await;
        Ok(1)
    });
    // Its wait begins without a step, whose outcome would be held.
    let bank = brain("Bank").state(7).wait(
        "Payment",
        |w| w.on(webhook::<Paid>("bank"), |order| format!("order-{order}")),
        |_, paid| paid.amount,
    );
    let raced = race(|r| r.run("Bank", bank, |_| ()).or(r.run("Slow", slow, |n| *n)).to(Won::Bank));
    let quick = brain("Quick").step("Work", async |_| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(2)
    });
    let both =
        brain("Both").all("Both", |g| (g.run("Race", raced, |()| ()), g.run("Quick", quick, |()| ())), |(), both| both);
    let run = test().start(both, ()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    run.webhook("bank", "order-7", json!({ "amount": 4 })).await.unwrap();
    assert_eq!(run.result().await.unwrap(), ("Bank(4)".to_owned(), 2));
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_items_at_once_keep_their_order() {
    let item = brain("Item")
        .options::<u32>()
        .step("Begin", async |cx| Ok(*cx.options))
        .r#loop("Ask", |cx| cx.system("Answer.").input("How long is this?"));
    let items = 300_u32;
    let all = brain("All").map("Items", move |()| (0..items).collect(), each(item).limit(items), |(), all| all);
    let run = test().start(all, ()).await;
    assert_eq!(run.result().await.unwrap(), (0..items).collect::<Vec<_>>());
}
