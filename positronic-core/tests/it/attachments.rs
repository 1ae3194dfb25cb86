//! Files in messages, results and answers: once in the store, by reference in the log, with their bytes in each request.

use std::sync::{Arc, Mutex};

use positronic_core::dsl::{Options, Plugin, PluginState, ResponseInspection, Services, State};
use positronic_core::model::cassette::Cassette;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::{FileOrigin, transcript};
use positronic_core::record::{
    Attachment, Citation, FileRef, Finish, Message, ModelError, ModelRequest, ModelResponse, Part, Recipient,
    ResponseMetadata, RunId, Seq, Timestamp, UserMessage,
};
use positronic_core::runner::Client;
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, StoreError};
use positronic_core::testing::{CountedIds, TestClock};
use positronic_plugins::Compaction;
use positronic_sqlite::SqliteStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::done;

const PHOTO: &[u8] = b"\x89PNG photo";
const CHART: &[u8] = b"\x89PNG chart";

/// The name and the bytes of a file in a request.
type Seen = (String, Option<Vec<u8>>);

/// A model that records the name and the bytes of each file in each request.
#[derive(Clone)]
struct Eyes {
    model: Arc<dyn Model>,
    seen: Arc<Mutex<Vec<Vec<Seen>>>>,
}

impl Eyes {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { model: Arc::new(ScriptedModel::new(replies)), seen: Arc::default() }
    }

    fn seen(&self) -> Vec<Vec<Seen>> {
        self.seen.lock().unwrap().clone()
    }
}

impl Model for Eyes {
    fn name(&self) -> String {
        self.model.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> futures::future::BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let messages = request.messages.read();
        let files = messages.iter().flat_map(|entry| entry.message.files());
        let files = files.map(|file| (file.file().name.clone(), file.bytes().map(<[u8]>::to_vec)));
        self.seen.lock().unwrap().push(files.collect());
        drop(messages);
        self.model.call(request, deltas)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.model.wire(request)
    }
}

fn runner(store: impl EventStore, model: impl Model) -> Runner {
    Runner::new(model).store(store).clock(TestClock::default()).ids(CountedIds::default())
}

fn loaded(name: &str, bytes: &[u8]) -> Seen {
    (name.to_owned(), Some(bytes.to_vec()))
}

fn made(parts: Vec<Part>) -> Reply {
    let metadata = ResponseMetadata { finish: Finish::Stop, ..ResponseMetadata::default() };
    Reply::response(ModelResponse { parts, calls: Vec::new(), metadata })
}

async fn shown(client: &Client, run: &RunId) -> String {
    let log = client.events(run, Seq(0)).await.unwrap();
    assert!(log.iter().all(|event| !event.to_json().unwrap().contains("PNG")), "no event contains bytes");
    let mut timeline = Timeline::new();
    log.iter().for_each(|event| timeline.apply(event));
    transcript(&timeline)
}

fn spotter() -> Brain<(), Option<FileRef>> {
    brain("Spotter")
        .state(None::<FileRef>)
        .step("Take", async |cx| Ok(Some(cx.file("photo.png", "image/png", PHOTO).await?)))
        .r#loop("Look", |cx| {
            let photo = cx.state.iter().cloned();
            cx.system("Look.").input(UserMessage::new("What is it?").files(photo)).tool("chart", |t| {
                t.execute(async |_: NoArgs, cx| {
                    cx.file("chart.png", "image/png", CHART).await?;
                    Ok("a chart")
                })
            })
        })
        .build()
}

#[tokio::test]
async fn files_of_messages_and_results_reach_the_model_with_their_bytes() {
    let model = Eyes::new([Reply::call("chart", json!({})), done()]);
    let runner = runner(MemoryStore::new(), model.clone());

    let run = runner.start(&spotter(), ()).await.unwrap();
    run.result().await.unwrap();

    let (photo, chart) = (loaded("photo.png", PHOTO), loaded("chart.png", CHART));
    assert_eq!(model.seen(), [vec![photo.clone()], vec![photo, chart]]);
    insta::assert_snapshot!(shown(&runner.client(), run.id()).await, @r#"
    # Look
    user: What is it?
    user: [file photo.png, image/png, 10 bytes]
    chart({}) -> a chart
    file: chart.png (10 bytes)
    assistant: Done.
    = {"type":"answered"}
    "#);
    let files = runner.client().files(run.id()).await.unwrap();
    let origins: Vec<_> = files.iter().map(|file| (&*file.file.name, &file.origin)).collect();
    let tool = FileOrigin::Tool { tool: "chart".to_owned() };
    assert_eq!(origins, [("photo.png", &FileOrigin::Message), ("chart.png", &tool)]);
}

#[tokio::test]
async fn files_are_loaded_again_after_a_restart_and_stay_while_the_run_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let waiting = brain("Waiter").r#loop("Look", |cx| {
        cx.system("Look.").tool("ask", |t| t.requires_approval("May I?").execute(async |_: NoArgs, _| Ok("yes")))
    });
    let first = Eyes::new([Reply::call("ask", json!({}))]);
    let before = runner(SqliteStore::open(&path).unwrap(), first.clone());
    let client = before.client();
    let photo = client.put_file("photo.png", "image/png", PHOTO).await.unwrap();
    let chat = before.conversation("ann");
    let run = chat.send(&waiting, (), UserMessage::new("").file(photo)).await.unwrap();
    run.settled().await;
    let id = run.id().clone();
    drop((run, chat, client));
    before.release().await;
    drop(before);

    let second = Eyes::new([done()]);
    let after = runner(SqliteStore::open(&path).unwrap(), second.clone()).brain(&waiting);
    let run = after.resume(&id).await.unwrap();
    let pending = run.pending();
    run.approve(&pending[0].call, "ann").await.unwrap();
    run.settled().await;

    assert_eq!(first.seen(), [[loaded("photo.png", PHOTO)]]);
    assert_eq!(second.seen(), [[loaded("photo.png", PHOTO)]]);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.sweep_blobs(Timestamp(i64::MAX)).await.unwrap(), 0, "the log refers to the photo");
    drop((run, after));
    store.remove(std::slice::from_ref(&id)).await.unwrap();
    assert_eq!(store.sweep_blobs(Timestamp(i64::MAX)).await.unwrap(), 1);
}

#[tokio::test]
async fn file_that_a_model_makes_is_stored_and_sent_back() {
    let painted = || {
        let file = Attachment::new("bee.png", "image/png", PHOTO);
        made(vec![Part::Text { text: "Here.".to_owned() }, Part::File { file, data: Some(json!({"id": 1})) }])
    };
    let painter = brain("Painter").r#loop("Paint", |cx| cx.system("Paint."));
    let model = Eyes::new([painted(), done()]);
    let runner = runner(MemoryStore::new(), model.clone());
    let chat = runner.conversation("ann");

    let run = chat.send(&painter, (), "Paint a bee.").await.unwrap();
    run.result().await.unwrap();
    chat.send(&painter, (), "Thanks.").await.unwrap().result().await.unwrap();

    let client = runner.client();
    let files = client.files(run.id()).await.unwrap();
    assert_eq!((&*files[0].file.name, &files[0].origin), ("bee.png", &FileOrigin::Model));
    assert_eq!(client.blob(&files[0].file.sha256).await.unwrap().as_deref(), Some(PHOTO));
    assert_eq!(model.seen(), [vec![], vec![loaded("bee.png", PHOTO)]]);
    insta::assert_snapshot!(shown(&client, run.id()).await, @r#"
    # Paint
    user: Paint a bee.
    assistant: Here.
    assistant: [file bee.png, image/png, 10 bytes]
    = {"type":"answered"}
    "#);
}

#[tokio::test]
async fn compaction_replaces_an_old_picture_by_the_summary() {
    let compacting = brain("Spotter")
        .state(None::<FileRef>)
        .step("Take", async |cx| Ok(Some(cx.file("photo.png", "image/png", PHOTO).await?)))
        .r#loop("Look", |cx| {
            let photo = cx.state.iter().cloned();
            cx.system("Look.")
                .input(UserMessage::new("What is it?").files(photo))
                .plugin(Compaction::new().iterations(2).keep(1))
                .tool("wait", |t| t.execute(async |_: NoArgs, _| Ok("later")))
        });
    let wait = || Reply::call("wait", json!({}));
    let model = Arc::new(ScriptedModel::new([wait(), wait(), Reply::text("They look at a photo."), done()]));
    let runner = runner(MemoryStore::new(), Arc::clone(&model));

    runner.start(&compacting, ()).await.unwrap().result().await.unwrap();

    let requests = model.requests();
    let files = |number: usize| -> usize {
        requests[number].messages.messages().iter().map(|message| message.files().count()).sum()
    };
    assert_eq!([files(0), files(1), files(2), files(3)], [1, 1, 0, 0], "iterations, the summary, the last iteration");
    let question = format!("{:?}", requests[2].messages);
    assert!(question.contains("user: [file photo.png, image/png, 10 bytes]"), "{question}");
}

#[tokio::test]
async fn cassette_contains_the_bytes_of_a_made_file_only() {
    let file = Attachment::new("bee.png", "image/png", PHOTO);
    let painted = made(vec![Part::File { file, data: None }]);
    let painter = brain("Painter").r#loop("Paint", |cx| cx.system("Paint.").input("Paint a bee."));
    let recording = Arc::new(Cassette::record(Arc::new(ScriptedModel::new([painted]))));
    let first = runner(MemoryStore::new(), Arc::clone(&recording));
    first.start(&painter, ()).await.unwrap().result().await.unwrap();
    let text = recording.to_text();

    let second = runner(MemoryStore::new(), Cassette::replay(&text).unwrap());
    let run = second.start(&painter, ()).await.unwrap();
    run.result().await.unwrap();

    let client = second.client();
    let files = client.files(run.id()).await.unwrap();
    assert_eq!(client.blob(&files[0].file.sha256).await.unwrap().as_deref(), Some(PHOTO));
}

#[tokio::test]
async fn missing_file_fails_the_loop_with_its_name() {
    let gone = FileRef::stored("photo.png", "image/png", 3, "0".repeat(64));
    let looker = brain("Looker")
        .r#loop("Look", move |cx| cx.system("Look.").input(UserMessage::new("What is it?").file(gone.clone())));
    let runner = runner(MemoryStore::new(), Eyes::new([]));

    let error = runner.start(&looker, ()).await.unwrap().result().await.unwrap_err().to_string();

    assert!(error.contains("cannot read the file `photo.png`: the event store does not have it"), "{error}");
}

#[tokio::test]
async fn question_of_a_step_has_files() {
    let model = Eyes::new([Reply::text("a bee")]);
    let asker = brain("Asker").state(String::new()).step("Ask", async |cx| {
        let photo = cx.file("photo.png", "image/png", PHOTO).await?;
        cx.model().file(photo).ask("What is it?").await
    });

    let answer = runner(MemoryStore::new(), model.clone()).start(&asker, ()).await.unwrap().result().await.unwrap();

    assert_eq!(answer, "a bee");
    assert_eq!(model.seen(), [[loaded("photo.png", PHOTO)]]);
}

#[tokio::test]
async fn question_of_a_step_continues_after_a_pause() {
    let thinking = Part::Reasoning { text: "hm".to_owned(), data: Some(json!({"signature": "x"})) };
    let metadata = ResponseMetadata { finish: Finish::Paused, ..ResponseMetadata::default() };
    let parts = vec![thinking, Part::Text { text: "I search. ".to_owned() }];
    let paused = Reply::response(ModelResponse { parts, calls: Vec::new(), metadata });
    let model = Arc::new(ScriptedModel::new([paused, Reply::text("A bee.")]));
    let asker = brain("Asker").state(String::new()).step("Ask", async |cx| cx.model().ask("What is it?").await);

    let run = runner(MemoryStore::new(), Arc::clone(&model)).start(&asker, ()).await.unwrap();

    assert_eq!(run.result().await.unwrap(), "I search. A bee.");
    let sent = model.requests()[1].messages.messages();
    assert_eq!(sent.len(), 2, "the beginning of the answer goes back");
    let to = |model| Recipient { provider: "scripted", model, server: "" };
    let private = ["scripted", "other"].map(|model| to(model).made(&sent[1]));
    assert_eq!(private, [true, false], "only its own model gets the private data back");
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Cited;

impl PluginState for Cited {
    const NAME: &'static str = "librarian";
}

/// Adds the handbook as a source of each answer.
struct Librarian;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Librarian {
    type State = Cited;

    fn initial(&self) -> Cited {
        Cited
    }

    async fn response(&self, cx: &mut ResponseInspection<'_, O, S, V, Cited>, _: &ModelResponse) -> Result<()> {
        cx.cite(Citation::builder().title("Handbook").url("https://example.org/handbook").build());
        Ok(())
    }
}

#[tokio::test]
async fn plugin_adds_sources_that_people_see_and_the_model_does_not() {
    let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help.").plugin(Librarian));
    let model = ScriptedModel::new([Reply::text("Yes."), Reply::text("No.")]);
    let model = Arc::new(model);
    let runner = runner(MemoryStore::new(), Arc::clone(&model));
    let chat = runner.conversation("ann");

    let run = chat.send(&helper, (), "May I?").await.unwrap();
    run.result().await.unwrap();
    chat.send(&helper, (), "Really?").await.unwrap().result().await.unwrap();

    insta::assert_snapshot!(shown(&runner.client(), run.id()).await, @r#"
    # Chat
    user: May I?
    assistant: Yes.
    source: Handbook <https://example.org/handbook>
    = {"type":"answered"}
    "#);
    let Message::Assistant { parts, .. } = &model.requests()[1].messages.messages()[1] else { panic!("an answer") };
    assert_eq!(parts.len(), 1, "{parts:?}");
}

#[tokio::test]
async fn file_larger_than_the_limit_is_refused_by_name() {
    let client = runner(MemoryStore::new(), Eyes::new([])).client();
    let large = vec![0; positronic_core::record::LARGEST_BLOB + 1];

    let refused = client.put_file("film.mp4", "video/mp4", large).await.unwrap_err();

    assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
}
