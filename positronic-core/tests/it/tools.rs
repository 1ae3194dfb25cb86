//! Tools: how they fail, are tried again, change the state, and show things.

use std::time::Duration;

use positronic_core::dsl::Tool;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, Assistant, DeltaKind, EndReason, FileOutput, Message, OutputKind, PublicId, ToolResult,
};
use positronic_core::runner::{Settled, SignalError};
use positronic_core::sink::Recorder;
use positronic_core::testing::Story;
use serde_json::json;

use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, ShopLoop, ShopTool, batch, calls, done, error_of, events_named, path,
    prompt, results, success, tools, waits, worker, workshop,
};

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_its_call_and_siblings_keep_their_results() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("bad", "b"), ("worse", "c"), ("safe", "d")]), done()]);
    let panicking = |config: ShopLoop| {
        tools(config)
            .tool("bad", |t| {
                t.execute(async |job: Job, _| -> Result<()> {
                    tokio::task::yield_now().await;
                    panic!("{} fell", job.id)
                })
            })
            .tool("worse", |t| t.execute(|_: Job, _| -> std::future::Ready<Result<()>> { panic!("at once") }))
    };

    let story = play.run(&workshop(&journal, panicking), ()).await;

    let results = results(&story, "Work");
    assert_eq!((&results[0], &results[3]), (&success("a done"), &success("d done")));
    assert_eq!(error_of(&results[1]), "it panicked: b fell");
    assert_eq!(error_of(&results[2]), "it panicked: at once");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_says_why_with_all_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("the order could not be read")]
    struct Unreadable(#[source] std::num::ParseIntError);
    let journal = Journal::default();
    let play = Play::new([batch([("parse", "x")]), done()]);
    let failing = |config: ShopLoop| {
        config.tool("parse", |t| t.execute(async |job: Job, _| Ok(job.id.parse::<u32>().map_err(Unreadable)?)))
    };

    play.run(&workshop(&journal, failing), ()).await;

    assert_eq!(play.last_results(), ["Error: the order could not be read: invalid digit found in string"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_fails_and_is_stopped() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("slow", json!({"id": "a", "takes": 5000})), done()]);
    let slow = || worker("slow", |t| t.timeout(Duration::from_secs(2)));

    let story = play.run(&workshop(&journal, move |config| config.tools([slow()])), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "the tool took longer than 2s; whether it had its effect is unknown");
    assert_eq!(prompt(&story, "Work").output[1].duration, Some(2_000_000));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(journal.take(), ["a"], "its future was dropped");
    assert_eq!(*story.state(), json!({"done": []}));
}

/// Fails transiently twice, then works; notes its idempotency key each time.
fn flaky(name: &str, flags: fn(ShopBuilder) -> ShopBuilder) -> ShopTool {
    Tool::new(name, |t| {
        flags(t).execute(async |_: Job, cx: Shop| {
            cx.services.note(cx.idempotency_key());
            let tries = cx.services.count();
            if tries < 3 { Err(Error::transient(format!("try {tries} failed"))) } else { Ok("at last") }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_of_a_repeatable_tool_is_tried_again_with_backoff() {
    for flags in [ShopBuilder::read_only as fn(ShopBuilder) -> ShopBuilder, ShopBuilder::idempotent] {
        let journal = Journal::default();
        let play = Play::new([batch([("flaky", "a")]), done()]);

        let story = play.run(&workshop(&journal, move |config| config.tools([flaky("flaky", flags)])), ()).await;

        assert_eq!(results(&story, "Work"), [success("at last")]);
        assert_eq!(journal.take(), ["run-1:Work/0.0"; 3], "the key is the same for every try");
        assert_eq!(events_named(&story, "LOOP_TOOL_RETRY").len(), 2);
        let starts: Vec<_> = story.log().iter().filter(|event| event.body.name() == "LOOP_TOOL_START").collect();
        let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
        assert_eq!(pauses, [Duration::from_millis(500), Duration::from_secs(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn other_tools_are_not_tried_again_and_retries_come_to_an_end() {
    let journal = Journal::default();
    let play = Play::new([batch([("plain", "a")]), done()]);
    let story = play.run(&workshop(&journal, |config| config.tools([flaky("plain", |t| t)])), ()).await;
    assert_eq!(error_of(&results(&story, "Work")[0]), "try 1 failed");
    assert_eq!(journal.take().len(), 1);

    let journal = Journal::default();
    let play = Play::new([batch([("once", "a")]), done()]);
    let once = |config: ShopLoop| config.tools([flaky("once", |t| t.read_only().retries(1))]);
    let story = play.run(&workshop(&journal, once), ()).await;
    assert_eq!(error_of(&results(&story, "Work")[0]), "try 2 failed");
    assert_eq!(journal.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_panics_fails_the_call_and_leaves_the_state() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("bad", "b"), ("safe", "c")]), done()]);
    let bad = |config: ShopLoop| {
        tools(config).tool("bad", |t| {
            t.execute(async |job: Job, cx: Shop| {
                let reply = cx.result("receipt 7").update(move |board: &mut Board| board.done.push(job.id));
                Ok(reply.update(|_| panic!("no room")))
            })
        })
    };

    let story = play.run(&workshop(&journal, bad), ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[1]),
        "the tool did its work and gave \"receipt 7\", but its change of the state failed, so the state is as before: \
         it panicked: no room"
    );
    assert_eq!(story.state()["done"], json!(["a", "c"]), "all of a call's updates or none");
}

#[tokio::test]
async fn parallel_updates_lose_nothing() {
    let journal = Journal::default();
    let many = (0..40).map(|n| ("safe", json!({"id": n.to_string()})));
    let play = Play::free([Reply::calls(many), done()]);

    let story = play.run(&workshop(&journal, |config| tools(config).parallel(40)), ()).await;

    let mut done: Vec<u32> =
        story.state()["done"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, (0..40).collect::<Vec<_>>());
}

fn file(name: &str) -> FileOutput {
    FileOutput {
        name: name.to_owned(),
        media_type: "text/plain".to_owned(),
        size: 12,
        sha256: "00".repeat(32),
        uri: format!("memory:{name}"),
    }
}

/// Shows two widgets and a file; then fails, waits, or works, as its id says.
fn showing() -> ShopTool {
    Tool::new("show", |t: ShopBuilder| {
        t.execute(async |job: Job, cx: Shop| {
            cx.display_widget("chart", json!({"of": job.id}), format!("chart of {}", job.id))?;
            cx.add_file(file(&format!("{}.txt", job.id)))?;
            tokio::task::yield_now().await;
            cx.display_widget("table", json!([1, 2]), format!("table of {}", job.id))?;
            match job.id.as_str() {
                "fails" => Err(Error::new("broken")),
                "waits" => Ok(cx.result("shown").wait_for([webhook::<NoArgs>("go").on("1")])),
                _ => Ok(cx.result("shown")),
            }
        })
    })
}

/// Writes a loop's record without its texts: tools by argument, widgets and files by what they show.
fn shown(story: &Story) -> Vec<String> {
    let outputs = prompt(story, "Work").output.into_iter();
    outputs
        .filter_map(|output| match output.kind {
            OutputKind::Tool(tool) => Some(tool.arguments["id"].as_str().unwrap().to_owned()),
            OutputKind::File(file) => Some(file.name),
            OutputKind::Widget(widget) => Some(widget.fallback),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn widgets_and_files_are_kept_whatever_becomes_of_the_tool_and_stand_behind_it() {
    for lockstep in [true, false] {
        let journal = Journal::default();
        let replies = [batch([("show", "works"), ("show", "fails"), ("show", "waits")]), done()];
        let play = if lockstep { Play::new(replies) } else { Play::free(replies) };
        let run = play.start(&workshop(&journal, |config| config.tools([showing()])), ()).await;

        assert_eq!(waits(&run).await, ["Work/0.2"]);
        let of = |id: &str| [id.to_owned(), format!("chart of {id}"), format!("{id}.txt"), format!("table of {id}")];
        let expected: Vec<_> = ["works", "fails", "waits"].into_iter().flat_map(of).collect();
        assert_eq!(shown(&play.story(&run).await), expected);

        run.webhook("go", "1", json!({})).await.unwrap();
        let story = play.story(&run).await;
        assert_eq!(shown(&story), expected);
        assert_eq!(
            play.last_results(),
            [
                "shown\n[file works.txt, text/plain, 12 bytes]",
                "Error: broken\n[file fails.txt, text/plain, 12 bytes]",
                "{\"answer\":{},\"result\":\"shown\"}\n[file waits.txt, text/plain, 12 bytes]",
            ],
            "a model reads one line about a file and nothing of a widget"
        );
        assert!(!play.model_read("chart"), "a widget is for people");
    }
}

#[tokio::test(start_paused = true)]
async fn every_widget_and_file_has_an_id_of_its_own() {
    use positronic_core::record::Body;
    let journal = Journal::default();
    let play = Play::new([batch([("show", "a"), ("show", "b")]), done()]);

    let story = play.run(&workshop(&journal, |config| config.tools([showing()])), ()).await;

    let mut ids: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.body {
            Body::LoopOutput { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 6);
    ids.extend([path("Work/0.0").public_id(), path("Work/0.1").public_id()]);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "no two outputs share an id, nor with their call");
}

/// Shows a bar that it moves on twice, over two tries; keeps its id in the state, or takes the place of the kept one.
fn bar() -> crate::support::ShopTool {
    Tool::new("bar", |t: ShopBuilder| {
        t.read_only().execute(async |job: Job, cx: Shop| {
            let kept = cx.state.done.first().map(|id| PublicId::from(id.as_str()));
            let bar = match kept {
                Some(kept) => cx.replace_widget(&kept, "bar", 100, format!("{} 100 %", job.id))?,
                None => cx.display_widget("bar", 0, format!("{} 0 %", job.id))?,
            };
            if cx.services.count() == 1 {
                return Err(Error::transient("again"));
            }
            for percent in [10, 20] {
                cx.replace_widget(&bar, "bar", percent, format!("{} {percent} %", job.id))?;
            }
            Ok(cx.result("shown").update(move |board| board.done = vec![bar.as_str().to_owned()]))
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_widget_takes_the_place_of_an_earlier_one_and_the_record_keeps_both() {
    for lockstep in [true, false] {
        let journal = Journal::default();
        let replies = [batch([("bar", "a")]), batch([("bar", "b")]), done()];
        let play = if lockstep { Play::new(replies) } else { Play::free(replies) };

        let story = play.run(&workshop(&journal, |config| config.tools([bar()])), ()).await;

        let all = ["a", "a 0 %", "a 0 %", "a 10 %", "a 20 %", "b", "b 100 %", "b 10 %", "b 20 %"];
        assert_eq!(shown(&story), all, "everything happened");
        let prompt = prompt(&story, "Work");
        let mut ids: Vec<_> = prompt.output.iter().filter_map(|output| output.id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 7, "the tries of a call share no id");
        let now = prompt.shown().into_iter().filter_map(|output| match &output.kind {
            OutputKind::Widget(widget) => Some(widget.fallback.as_str()),
            _ => None,
        });
        assert_eq!(now.collect::<Vec<_>>(), ["a 0 %", "b 20 %"], "the first try's bar stays as it was");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_live_and_counted_and_never_recorded() {
    let recorder = Recorder::new();
    let journal = Journal::default();
    let play = Play::new([batch([("long", "a")]), done()]).map(|runner| runner.sink(recorder.clone()));
    let long = |config: ShopLoop| {
        config.tool("long", |t| {
            t.execute(async |_: Job, cx: Shop| {
                cx.progress("half");
                tokio::time::sleep(Duration::from_millis(5)).await;
                cx.progress("nearly");
                Ok(())
            })
        })
    };

    let story = play.run(&workshop(&journal, long), ()).await;

    let deltas = recorder.deltas();
    let progress: Vec<_> = deltas
        .iter()
        .filter(|delta| delta.kind == DeltaKind::Progress)
        .map(|delta| (delta.path.as_str(), delta.n, delta.text.as_str()))
        .collect();
    assert_eq!(progress, [("Work/0.0", 0, "half"), ("Work/0.0", 1, "nearly")]);
    assert!(!story.json_lines().contains("nearly"));
    assert_eq!(results(&story, "Work"), [success(json!(null))], "a result without a value is null");
}

#[tokio::test(start_paused = true)]
async fn exit_tools_can_be_named_and_an_unknown_name_fails_the_loop() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")])]);
    play.run(&workshop(&journal, |config| tools(config).exit_on(["safe"])), ()).await;
    assert_eq!(journal.take(), ["a"]);

    let play = Play::new([]);
    let story = play.run(&workshop(&journal, |config| tools(config).exit_on(["save"])), ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Config);
    assert_eq!(
        failure.message,
        "the loop `Work` cannot be configured: `exit_on` names `save`, but the loop's tools are `safe`, `read`, \
         `alone`, `gated`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_dots_has_another_name_for_the_model_alone() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("payment_send", json!({"id": "a"})), done()]);

    let story = play.run(&workshop(&journal, |config| config.tools([worker("payment.send", |t| t)])), ()).await;

    assert_eq!(calls(&story, "Work")[0].tool, "payment.send");
    let request = play.last_request();
    assert_eq!(request.tools.tools()[0].id.wire_name(), "payment_send");
    let said = request.messages.messages().into_iter().find_map(|message| match message {
        Message::Assistant { parts } => Some(parts),
        _ => None,
    });
    assert!(matches!(&said.unwrap()[0], Assistant::Call { name, .. } if name == "payment_send"));
}

#[tokio::test(start_paused = true)]
async fn tools_that_a_provider_could_not_tell_apart_are_refused() {
    let journal = Journal::default();
    let play = Play::new([]);
    let colliding = |config: ShopLoop| config.tools([worker("payment.send", |t| t), worker("payment_send", |t| t)]);

    let story = play.run(&workshop(&journal, colliding), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("`payment.send` and `payment_send` would have the same name"), "{failure}");
}

#[test]
#[should_panic(expected = "two tools named `safe`")]
fn two_tools_of_one_name_are_a_mistake_of_the_author() {
    let journal = Journal::default();
    let twice = workshop(&journal, |config| tools(config).tools([worker("safe", |t| t)]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let story = runtime.block_on(async { Play::new([]).run(&twice, ()).await });
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    panic!("{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_config_closure_that_panics_fails_the_brain_with_its_words() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")])]);
    let rounds = std::sync::atomic::AtomicU32::new(0);
    let moody = move |config: ShopLoop| {
        assert!(rounds.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0, "not again");
        tools(config)
    };

    let story = play.run(&workshop(&journal, moody), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the loop `Work` cannot be configured: it panicked: not again");
    assert_eq!(results(&story, "Work"), [success("a done")]);
}

#[tokio::test(start_paused = true)]
async fn a_long_loop_whose_prompt_and_tools_change_forgets_nothing_that_its_round_names() {
    let journal = Journal::default();
    let play = Play::of(ScriptedModel::from_fn(|_| batch([("safe", "a")])), true);
    let changing = brain("Changing")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            let round = cx.state.done.len();
            let config = cx.system(format!("Round {round}")).max_iterations(300).tools([worker("safe", |t| t)]);
            if round % 2 == 0 { config } else { config.tools([worker("odd", |t| t)]) }
        })
        .bind(journal);

    let story = play.test.run(&changing, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
}

#[tokio::test(start_paused = true)]
async fn tools_change_with_the_state_and_a_tool_that_is_gone_is_an_error() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]), batch([("safe", "b"), ("late", "c")]), done()]);
    let changing = brain("Changing")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            let name = if cx.state.done.is_empty() { "safe" } else { "late" };
            cx.system("").tools([worker(name, |t| t)])
        })
        .bind(journal);

    let story = play.run(&changing, ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[1]), "there is no tool `safe`; the tools are `late`");
    assert_eq!(results[2], success("c done"));
    assert!(!matches!(results[0], ToolResult::Error { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_shows_files_without_end_fails_and_the_run_goes_on() {
    let journal = Journal::default();
    let shop = workshop(&journal, |config| {
        config.tool("show", |t| {
            t.execute(async |_: Job, cx: Shop| {
                loop {
                    cx.add_file(file("again.txt"))?;
                    cx.display_widget("bar", 0, "nothing done")?;
                }
                #[expect(unreachable_code, reason = "what the tool would return")]
                Ok(())
            })
        })
    });
    let play = Play::new([batch([("show", "a")]), done()]);

    let story = play.run(&shop, ()).await;

    assert_eq!(error_of(&results(&story, "Work")[0]), "a call may show 1000 files and widgets, and this one has");
    assert_eq!(events_named(&story, "LOOP_OUTPUT").len(), 1000);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Loose {
    more: serde_json::Value,
}

/// A text of JSON in which lists stand within one another.
fn nested(levels: usize) -> String {
    format!(r#"{{"more":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[tokio::test(start_paused = true)]
async fn arguments_that_nest_too_deep_for_the_log_are_refused_and_the_log_can_be_read() {
    for (levels, runs) in [(64, true), (65, false), (126, false), (127, false), (128, false), (100_000, false)] {
        let play = Play::new([Reply::calls([("loose", json!(nested(levels)))]), done()]);
        let journal = Journal::default();
        let loose = workshop(&journal, |config| {
            config.tool("loose", |t| {
                t.execute(async |given: Loose, _| Ok(if given.more.is_array() { "ran" } else { "odd" }))
            })
        });

        let story = play.run(&loose, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{levels}: {:?}", story.settled());
        match &results(&story, "Work")[0] {
            result @ ToolResult::Success { .. } if runs => assert_eq!(*result, success("ran")),
            ToolResult::Error { message } if !runs => assert!(message.contains("the arguments"), "{levels}: {message}"),
            result => panic!("{levels}: {result:?}"),
        }
    }
}

fn deep() -> serde_json::Value {
    (0..126).fold(json!("core"), |inner, _| json!([inner]))
}

#[tokio::test(start_paused = true)]
async fn what_nests_too_deep_for_the_log_is_an_error_of_the_tool_or_the_step_that_made_it() {
    let journal = Journal::default();
    let digging = |config: ShopLoop| config.tool("dig", |t| t.execute(async |_: Job, _| Ok(deep())));
    let play = Play::new([batch([("dig", "a")]), done()]);
    let story = play.run(&workshop(&journal, digging), ()).await;
    assert!(error_of(&results(&story, "Work")[0]).contains("64 levels"), "{:?}", results(&story, "Work"));

    let kept = brain("Kept").state(json!(null)).step("Dig", async |cx| cx.once("deep", async { Ok(deep()) }).await);
    let story = Play::new([]).run(&kept, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("64 levels"), "{failure}");

    let returned = brain("Returned").state(json!(null)).step("Dig", async |_| Ok(deep()));
    let story = Play::new([]).run(&returned, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("64 levels"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_nests_too_deep_for_the_log_is_refused_and_not_kept() {
    let play = Play::new([]);
    let control = play.test.runner().control();

    let sent = control.deliver("one".into(), "any", "a", deep(), Actor::default()).await;

    let Err(SignalError::Refused(Refusal::Misfit { reason, .. })) = &sent else { panic!("{sent:?}") };
    assert!(reason.contains("64 levels"), "{reason}");
    assert!(control.store().mailbox().await.unwrap().is_empty());
}
