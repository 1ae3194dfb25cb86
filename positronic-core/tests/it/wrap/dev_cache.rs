//! The development cache answers an identical request from a folder, reports it, and costs nothing.

use std::path::PathBuf;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::wrap::{DevCache, Fallback};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::{Cost, Costs};
use positronic_core::record::{ModelErrorKind, Money, Settings, Usage};
use positronic_core::runner::Settled;
use positronic_core::sink::Recorder;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use serde_json::json;

use super::{Speaker, asker, fails, metadata, says, ways};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs a brain with a cache in a folder, as a new process would.
async fn run(folder: &tempfile::TempDir, brain: Brain<(), ()>, replies: impl IntoIterator<Item = Reply>) -> Story {
    let model = DevCache::new(Speaker::new("a/one", replies), folder.path()).unwrap();
    Test::new(model).run(brain, ()).await
}

fn files(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn look() -> Reply {
    Reply::call("look", json!({"at": "it"})).usage(Usage { input: 50, output: 5, ..Usage::default() })
}

fn lookup_brain() -> Brain<(), ()> {
    brain("Looker")
        .r#loop("Look", |cx| {
            cx.system("Look.")
                .input("What is it?")
                .max_money("0.01")
                .on_limit(OnLimit::Error)
                .tool("look", |t| t.description("Looks").execute(async |_: NoArgs, _| Ok("a stone")))
        })
        .build()
}

fn prices() -> PriceTable {
    serde_json::from_value(json!({"as_of": "2026-01-01", "prices": {"a/one": {"input": 1, "output": 1}}})).unwrap()
}

async fn priced(folder: &tempfile::TempDir, replies: impl IntoIterator<Item = Reply>) -> (Story, Recorder) {
    let recorder = Recorder::new();
    let runner = Runner::new(DevCache::new(Speaker::new("a/one", replies), folder.path()).unwrap())
        .prices(prices())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .sink(recorder.clone());
    (Test::with(runner).run(lookup_brain(), ()).await, recorder)
}

#[tokio::test(start_paused = true)]
async fn second_process_is_answered_from_the_folder_without_cost_and_streams_the_same() {
    let folder = folder();
    let (first, streamed_first) = priced(&folder, [look(), says("It is a stone.")]).await;
    // The model has no reply: it gets no request.
    let (second, streamed_second) = priced(&folder, []).await;

    assert!(matches!(second.settled(), Settled::Completed(_)), "{:?}", second.settled());
    assert_eq!(second.transcript(), first.transcript());
    assert_eq!(ways(&second), ["cached 55 → a/one", "cached 110 → a/one"]);
    let texts = |recorder: &Recorder| recorder.deltas().into_iter().map(|delta| delta.text).collect::<Vec<_>>();
    assert_eq!(texts(&streamed_second), texts(&streamed_first));
    let costs = |story: &Story| Costs::of(story.log().iter().map(|event| &**event), &prices());
    assert_eq!(costs(&first).total().known.to_string(), "0.000165");
    assert_eq!(costs(&second).total().total(), Cost::Known(Money::default()));
    assert_eq!(costs(&second).total().usage, Usage::default());
    assert_eq!(costs(&second).counted().unwrap().spent.total(), Cost::Known(Money::default()));
}

#[tokio::test(start_paused = true)]
async fn another_request_or_model_is_sent() {
    let folder = folder();
    run(&folder, asker(), [says("Because.")]).await;

    let warmer = brain("Asker")
        .r#loop("Ask", |cx| cx.system("Answer.").input("Why?").settings(Settings::builder().temperature(1.0).build()));
    assert_eq!(ways(&run(&folder, warmer.build(), [says("Warm.")]).await), ["a/one"]);
    let model = DevCache::new(Speaker::new("b/two", [says("Two.")]), folder.path()).unwrap();
    assert_eq!(ways(&Test::new(model).run(asker(), ()).await), ["b/two"]);
    // The position in the run makes no difference.
    let elsewhere = brain("Elsewhere").r#loop("There", |cx| cx.system("Answer.").input("Why?"));
    assert_eq!(ways(&run(&folder, elsewhere.build(), []).await), ["cached 110 → a/one"]);
}

#[tokio::test(start_paused = true)]
async fn failure_is_not_cached_and_response_metadata_is_not_repeated() {
    let folder = folder();
    let model = Fallback::new(Speaker::new("a/one", [fails(ModelErrorKind::Server)]))
        .then(Speaker::new("b/two", [says("Two.")]));
    let story = Test::new(DevCache::new(model, folder.path()).unwrap()).run(asker(), ()).await;
    assert_eq!(ways(&story), ["a/one Server → b/two"]);
    assert_eq!(ways(&run(&folder, asker(), []).await), ["cached 110 → b/two"]);

    let other = self::folder();
    let story = run(&other, asker(), [fails(ModelErrorKind::BadRequest)]).await;
    assert!(matches!(story.settled(), Settled::Failed(_)));
    assert_eq!(files(&other), [] as [PathBuf; 0]);
}

#[tokio::test(start_paused = true)]
async fn damaged_file_is_ignored_reported_and_rewritten() {
    let folder = folder();
    run(&folder, asker(), [says("Because.")]).await;
    let file = files(&folder).pop().unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    assert!(whole.contains("Because."));
    let damages = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace("Because.", "Be cause"),
        "\u{0}\u{1}".to_owned(),
    ];
    for damaged in damages {
        std::fs::write(&file, &damaged).unwrap();

        let story = run(&folder, asker(), [says("Because.")]).await;

        assert_eq!(ways(&story), ["cache failed → a/one"], "{damaged}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
        assert_eq!(files(&folder).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn leftovers_of_a_crash_are_harmless_and_a_missing_folder_is_recreated() {
    let folder = folder();
    run(&folder, asker(), [says("Because.")]).await;
    let file = files(&folder).pop().unwrap();
    let aside = file.with_extension("4711.0.tmp");
    std::fs::rename(&file, &aside).unwrap();
    std::fs::write(&aside, "{\"dev_cache\":1,").unwrap();

    assert_eq!(ways(&run(&folder, asker(), [says("Because.")]).await), ["a/one"]);
    assert_eq!(ways(&run(&folder, asker(), []).await), ["cached 110 → a/one"]);

    let gone = folder.path().join("inner");
    let model = DevCache::new(Speaker::new("a/one", [says("Because.")]), &gone).unwrap();
    std::fs::remove_dir_all(&gone).unwrap();
    assert_eq!(metadata(&Test::new(model).run(asker(), ()).await)[0].via, []);
    assert!(gone.is_dir());
}

#[test]
fn folder_creation_failure_is_reported_at_once() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();

    let error = DevCache::new(ScriptedModel::from_fn(|_| Reply::text("")), file.join("cache")).unwrap_err();

    assert!(error.to_string().contains("cannot create the folder"), "{error}");
}
