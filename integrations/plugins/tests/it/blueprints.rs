//! Blueprints: the documents that the model reads, when they are searched for, and what is stored.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::SignalKind;
use positronic_core::runner::Settled;
use positronic_plugins::{Blueprints, Document, DocumentSource, FoundBlueprints, MarkdownFolder, MemoryIndex};
use serde_json::{Value, json};

use crate::support::boundaries::crash_everywhere;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::contexts;
use crate::support::{Journal, Play, done};

/// An index that records its queries and fails on request.
#[derive(Debug, Clone)]
struct Library {
    journal: Journal,
    index: MemoryIndex,
    fails: u32,
}

impl Library {
    fn new() -> Self {
        let index = MemoryIndex::new([
            Document::new("Refunds", "Broken goods are paid back within 30 days."),
            Document::new("Shipping", "Parcels leave on the day of the order."),
            Document::new("Grinders", "A broken grinder is often too warm.").tags(["coffee"]),
        ]);
        Self { journal: Journal::default(), index, fails: 0 }
    }
}

impl DocumentSource for Library {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>> {
        self.journal.note(query);
        if self.journal.count() <= self.fails {
            return Err(Error::new("the library is closed"));
        }
        Ok(self.index.find(query, limit))
    }
}

fn desk(blueprints: Blueprints) -> Brain<(), ()> {
    brain("Desk")
        .r#loop("Chat", move |cx| {
            cx.system("Help.")
                .input("My grinder is broken.")
                .plugin(blueprints.clone())
                .tool("look", |t| t.read_only().execute(async |_: NoArgs, _| Ok("nothing")))
        })
        .build()
}

fn look() -> Reply {
    Reply::call("look", json!({}))
}

/// Returns the names of the documents in each request.
fn found(play: &Play) -> Vec<String> {
    let names = |texts: Vec<String>| {
        let names: Vec<_> = texts.iter().filter_map(|text| text.split(": ").next()).map(str::to_owned).collect();
        names.join(" ")
    };
    play.requests().iter().map(|request| names(contexts(request))).collect()
}

#[tokio::test(start_paused = true)]
async fn best_documents_are_context_and_searched_once_per_input() {
    let library = Library::new();
    let slow = look().after(std::time::Duration::from_secs(1));
    let play = Play::new([look(), slow, look(), done()]);
    let run = play.start(&desk(Blueprints::new(library.clone()).top(2)), ()).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    run.message("What about parcels?", "ann").await.unwrap();

    let story = play.story(&run).await;

    insta::assert_snapshot!(contexts(&play.requests()[0]).join("\n---\n"), @r"
    blueprint/Grinders: # Grinders

    A broken grinder is often too warm.
    ---
    blueprint/Refunds: # Refunds

    Broken goods are paid back within 30 days.
    ");
    let before = "blueprint/Grinders blueprint/Refunds";
    assert_eq!(found(&play), [before, before, "blueprint/Shipping", "blueprint/Shipping"]);
    assert_eq!(library.journal.take(), ["My grinder is broken.", "What about parcels?"]);
    assert!(!story.transcript().contains("too warm"), "documents are no part of the conversation");
}

#[tokio::test(start_paused = true)]
async fn configuration_can_set_the_search_query() {
    let asking = brain("Asking")
        .state(String::new())
        .r#loop("Chat", |cx| {
            cx.system("Help.").plugin(Blueprints::new(Library::new()).query(cx.state.as_str())).tool("hear", |t| {
                t.execute(async |_: NoArgs, cx| Ok(cx.result("heard").update(|heard| "refunds".clone_into(heard))))
            })
        })
        .r#loop("Then", |cx| cx.system("Help.").plugin(Blueprints::new(Library::new())))
        .step("Look", async |cx| Ok(cx.plugin_state::<FoundBlueprints>()?.found.len()));
    let play = Play::new([Reply::call("hear", json!({})), done(), done()]);

    let story = play.run(&asking, ()).await;

    assert_eq!(found(&play), ["", "blueprint/Refunds", ""], "a loop without an input finds nothing");
    assert_eq!(*story.state(), json!(0));
}

#[tokio::test(start_paused = true)]
async fn failed_search_is_retried_in_the_next_iteration() {
    let library = Library { fails: 2, ..Library::new() };
    let play = Play::new([look(), look(), look(), done()]);

    let story = play.run(&desk(Blueprints::new(library.clone()).top(1)), ()).await;

    assert_eq!(found(&play), ["", "", "blueprint/Grinders", "blueprint/Grinders"]);
    assert_eq!(library.journal.take().len(), 3);
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn markdown_folder_is_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("machines/grinder.md", "---\ntags: coffee\n---\n# Grinders that do not start\n\nLet them cool.");
    write("refunds.md", "What is broken is paid back.");
    write("notes.txt", "My grinder is broken.");
    write(".drafts/grinder.md", "My grinder is broken.");
    let source = MarkdownFolder::open(folder.path()).unwrap();

    let found = source.search("a broken grinder, and coffee", 9).await.unwrap();

    let tagged = Document::new("Grinders that do not start", "Let them cool.").tags(["coffee"]);
    assert_eq!(found, [tagged, Document::new("refunds", "What is broken is paid back.")]);
    let missing = MarkdownFolder::open(folder.path().join("missing")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read `") && missing.contains("missing`: "), "{missing}");
    std::fs::write(folder.path().join("latin.md"), b"\xe9t\xe9").unwrap();
    let latin = MarkdownFolder::open(folder.path()).unwrap_err().to_string();
    assert!(latin.starts_with("cannot read `") && latin.contains("latin.md`: "), "{latin}");
}

#[tokio::test(start_paused = true)]
async fn found_documents_survive_every_crash() {
    let tale = Tale {
        definition: desk(Blueprints::new(Library::new()).top(1)).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| if request.path.as_str() == "Chat/2" { done() } else { look() }),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    };
    let document = json!({"name": "Grinders", "tags": ["coffee"], "text": "A broken grinder is often too warm."});
    let query = positronic_core::record::hash_text("1 My grinder is broken.").to_string();
    let kept = json!({"loop_at": "Chat", "query": query, "found": [document]});
    crash_everywhere(&tale, "blueprints", &kept).await;
}
