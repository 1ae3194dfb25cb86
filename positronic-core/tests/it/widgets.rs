//! Outputs of running tools: widgets, files, progress.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{Node, NodeKind, WidgetNode};
use positronic_core::record::{DeltaKind, FileRef, OutputKind, Path, PublicId};
use positronic_core::sink::Recorder;
use positronic_core::testing::Story;
use serde_json::json;

use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, ShopLoop, ShopTool, batch, done, error_of, events_named, path,
    prompt, results, success, waits, workshop,
};

fn file(name: &str) -> FileRef {
    FileRef {
        name: name.to_owned(),
        media_type: "text/plain".to_owned(),
        size: 12,
        sha256: "00".repeat(32),
        uri: format!("memory:{name}"),
    }
}

/// Shows two widgets and a file; then fails, waits, or works, depending on its id.
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

/// Renders a loop's record without its texts: tools by argument, widgets and files by content.
fn shown(story: &Story) -> Vec<String> {
    let outputs = prompt(story, "Work").output.into_iter();
    outputs
        .filter_map(|output| match output.kind {
            OutputKind::Tool(tool) => Some(tool.arguments["id"].as_str().unwrap().to_owned()),
            OutputKind::File(output) => Some(output.file.name),
            OutputKind::Widget(widget) => Some(widget.fallback),
            _ => None,
        })
        .collect()
}

/// Lists the widgets that a user interface displays: the last of each row, in the place of the first.
fn displayed(story: &Story) -> Vec<String> {
    let timeline = story.timeline();
    let widget = |node: &Node| match &node.kind {
        NodeKind::Widget(widget) => Some((node.path.clone(), widget.clone())),
        _ => None,
    };
    let firsts = timeline.nodes().filter_map(widget).filter(|(_, widget)| widget.first.is_none());
    let last = |(path, first): (Path, Box<WidgetNode>)| {
        let newest = first.replaced_by.last().and_then(|id| widget(timeline.node(*id)?));
        format!("{path}: {}", newest.map_or(first, |(_, newest)| newest).output.fallback)
    };
    firsts.map(last).collect()
}

#[tokio::test(start_paused = true)]
async fn widgets_and_files_are_stored_after_their_call_whatever_its_outcome() {
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
async fn every_widget_and_file_has_its_own_id() {
    use positronic_core::record::EventKind;
    let journal = Journal::default();
    let play = Play::new([batch([("show", "a"), ("show", "b")]), done()]);

    let story = play.run(&workshop(&journal, |config| config.tools([showing()])), ()).await;

    let mut ids: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopOutput { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 6);
    ids.extend([path("Work/0.0").public_id(), path("Work/0.1").public_id()]);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "no two outputs share an id, nor with their call");
}

/// Shows a progress bar that it moves twice, over two tries; stores its id in the state, or replaces the stored one.
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
async fn widget_replaces_an_earlier_one_and_the_record_keeps_both() {
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
        assert_eq!(displayed(&story), ["Work/0.0: a 0 %", "Work/0.0: b 20 %"], "the first try's bar stays as it was");
    }
}

#[tokio::test(start_paused = true)]
async fn widget_replaces_one_of_another_loop_of_the_run() {
    let draws = |config: ShopLoop| config.tools([bar()]);
    let inner = move || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", move |cx| draws(cx.system("")))
    };
    let two = brain("Two")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("First", move |cx| {
            draws(cx.system("")).tool("inner", |t| t.brain(inner()).map_output(|board, deep| *board = deep))
        })
        .r#loop("Second", move |cx| draws(cx.system("")))
        .bind(Journal::default());
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "First/0" => Reply::call("inner", json!({})),
        "First/0.0/Deep/0" => batch([("bar", "deep")]),
        "First/1" => batch([("bar", "first")]),
        "Second/0" => batch([("bar", "second")]),
        _ => done(),
    });

    let story = Play::of(model, true).run(&two, ()).await;

    assert_eq!(displayed(&story), ["First/0.0/Deep/0.0: deep 0 %", "First/0.0/Deep/0.0: second 20 %"]);
}

#[tokio::test(start_paused = true)]
async fn progress_is_live_and_counted_and_not_recorded() {
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
async fn call_with_endless_files_fails_and_the_run_continues() {
    let journal = Journal::default();
    let shop = workshop(&journal, |config| {
        config.tool("show", |t| {
            t.execute(async |_: Job, cx: Shop| {
                loop {
                    cx.add_file(file("again.txt"))?;
                    cx.display_widget("bar", 0, "nothing done")?;
                }
                #[expect(unreachable_code, reason = "the tool's own result")]
                Ok(())
            })
        })
    });
    let play = Play::new([batch([("show", "a")]), done()]);

    let story = play.run(&shop, ()).await;

    assert_eq!(error_of(&results(&story, "Work")[0]), "a call can show at most 1000 files and widgets");
    assert_eq!(events_named(&story, "LOOP_OUTPUT").len(), 1000);
}
