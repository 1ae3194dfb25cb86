//! Memory: facts that later runs find, by user, and queries without errors.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, SignalKind, Start};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, TestClock};
use positronic_plugins::{Fact, FactId, FactOwner, FactStore, Memory, MemoryFacts, SqliteFacts};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::contexts;
use crate::support::{Journal, Play, done, tool_texts};

fn user(name: &str) -> FactOwner {
    FactOwner::User(name.to_owned())
}

fn texts(facts: &[Fact]) -> Vec<&str> {
    facts.iter().map(|fact| fact.text.as_str()).collect()
}

/// Shared behaviour of every store of the library.
async fn store_finds_matching_facts_of_their_owner_only(facts: impl FactStore) {
    let (ann, bob) = (user("ann"), user("bob"));
    let said =
        ["Ann eats no nuts.", "Ann lives in Porto.", "Ann loves figs, and figs with honey.", "Ann's dog is old."];
    for fact in said {
        assert_eq!(facts.remember(&ann, fact).await.unwrap(), Fact::new(fact));
    }
    facts.remember(&ann, said[0]).await.unwrap();
    facts.remember(&bob, "Bob eats nuts and figs.").await.unwrap();

    assert_eq!(texts(&facts.list(&ann).await.unwrap()), said, "a fact stored twice exists once");
    let found = async |query: &str| facts.search(&ann, query, 9).await.unwrap();
    assert_eq!(texts(&found("A cake, no NUT?").await), [said[0]], "in singular, without capitals");
    assert_eq!(texts(&found("figs or nuts").await), [said[2], said[0]], "the one that fits best comes first");
    assert_eq!(texts(&found("Does Ann live in Porto?").await)[0], said[1]);
    assert_eq!(
        texts(&found("ann").await),
        [said[3], said[2], said[1], said[0]],
        "of equal ones, the newest comes first"
    );
    assert_eq!(facts.search(&ann, "ann", 2).await.unwrap().len(), 2);
    assert_eq!(facts.search(&ann, "ann", 0).await.unwrap(), []);
    assert_eq!(found("Bob").await, []);
    assert_eq!(facts.search(&user("eve"), "nuts figs ann bob", 9).await.unwrap(), []);
    let run = FactOwner::Run("ann".into());
    assert_eq!(facts.search(&run, "nuts", 9).await.unwrap(), [], "a run id is never a user");

    let id = FactId::of(said[0]);
    assert!(!facts.forget(&bob, &id).await.unwrap(), "it is not his");
    assert!(facts.forget(&ann, &id).await.unwrap());
    assert!(!facts.forget(&ann, &id).await.unwrap());
    assert_eq!(found("nut").await, []);
    assert_eq!(texts(&facts.list(&ann).await.unwrap()), said[1..]);
    facts.remember(&ann, said[0]).await.unwrap();
    assert_eq!(texts(&found("nut").await), [said[0]], "it can be stored again");
}

/// No query text is an error, and no query finds facts that it does not name.
async fn store_accepts_every_text_as_a_query(facts: impl FactStore) {
    let ann = user("ann \" OR owner : bob");
    facts.remember(&ann, "Ann said \"NEAR(a b)\" AND left; ünïcode 日本 \u{0} \u{345}").await.unwrap();
    let long = "figs and \"nuts\" ".repeat(700);
    assert!(long.len() > 10_000);
    let nothing = [
        "",
        "   ",
        "\"",
        "''",
        "\"\"\"",
        "*",
        "^",
        "-",
        "(",
        ")",
        "()",
        "{}",
        ":",
        "+",
        "\u{0}",
        "\u{345}",
        "🦀",
        "a*b^c",
        "owner : bob",
        "fact : x",
        "NOT",
        "x OR",
        "OR",
        "NOT x",
        "\" OR owner : \"",
        "'; DROP TABLE facts; --",
        &long,
    ];
    for query in nothing {
        for limit in [0, 1, usize::MAX] {
            let found = facts.search(&ann, query, limit).await;
            assert!(found.is_ok(), "{query:?} is an error: {}", found.unwrap_err());
        }
    }
    for query in ["\"near\"", "said*", "Ann -left", "a AND b", "(Ann", "ÜNÏCODE", "日本", "unknown OR left"] {
        assert_eq!(facts.search(&ann, query, 9).await.unwrap().len(), 1, "{query:?} shares a word with it");
    }
    assert_eq!(facts.list(&ann).await.unwrap().len(), 1);
}

#[tokio::test]
async fn every_store_finds_matching_facts() {
    let folder = tempfile::tempdir().unwrap();
    store_finds_matching_facts_of_their_owner_only(MemoryFacts::default()).await;
    store_finds_matching_facts_of_their_owner_only(SqliteFacts::open(folder.path().join("facts.db")).unwrap()).await;
}

#[tokio::test]
async fn no_query_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    store_accepts_every_text_as_a_query(MemoryFacts::default()).await;
    store_accepts_every_text_as_a_query(SqliteFacts::open(folder.path().join("facts.db")).unwrap()).await;
}

#[tokio::test]
async fn file_with_other_content_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    drop(positronic_sqlite::SqliteStore::open(path("runs.db")).unwrap());
    std::fs::write(path("notes.txt"), "No database at all, but a text that is long enough to be one. ".repeat(20))
        .unwrap();

    for (name, why) in [
        ("runs.db", "runs.db` is not a store of facts: name another file"),
        ("notes.txt", "notes.txt`: file is not a database"),
        ("missing/facts.db", "facts.db`: unable to open database file"),
    ] {
        let error = SqliteFacts::open(path(name)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    positronic_sqlite::SqliteStore::open(path("runs.db")).unwrap();
}

#[tokio::test]
async fn many_handles_write_to_one_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.db");
    let handles: Vec<_> = (0..4).map(|_| SqliteFacts::open(&path).unwrap()).collect();

    let ann = &user("ann");
    let writes = handles.iter().enumerate().map(|(writer, facts)| async move {
        for fact in 0..10 {
            facts.remember(ann, &format!("Fact {fact} of {writer}")).await.unwrap();
            facts.remember(ann, "All say this").await.unwrap();
        }
    });
    futures::future::join_all(writes).await;

    for facts in &handles {
        assert_eq!(facts.list(ann).await.unwrap().len(), 41);
        assert_eq!(facts.search(ann, "fact 9", 5).await.unwrap().len(), 4);
    }
}

fn companion(memory: Memory, says: &'static str) -> Brain<(), ()> {
    brain("Companion").r#loop("Chat", move |cx| cx.system("Help.").input(says).plugin(memory.clone())).build()
}

/// One process: a runner with its own store handle.
async fn process(
    facts: impl FactStore,
    who: Option<&str>,
    says: &'static str,
    replies: Vec<Reply>,
) -> (Story, Vec<ModelRequest>) {
    let model = Arc::new(ScriptedModel::new(replies));
    let ids = CountedIds::default();
    let runner = Runner::new(Arc::clone(&model)).clock(TestClock::default()).ids(ids).lockstep(true);
    let start = Start { user: who.map(str::to_owned), ..Start::default() };
    let run = runner.start_with(&companion(Memory::new(facts), says), (), start).await.unwrap();
    let story = Story::of(&run).await;
    let asked = model.requests();
    model.assert_used();
    (story, asked)
}

fn store(fact: &str) -> Reply {
    Reply::call("memory.store", json!({ "fact": fact }))
}

#[tokio::test]
async fn another_process_finds_stored_facts_and_another_user_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.db");
    let open = || SqliteFacts::open(&path).unwrap();
    let (_, asked) =
        process(open(), Some("ann"), "I eat no nuts.", vec![store("The user eats no nuts."), done()]).await;
    assert!(
        asked.iter().all(|request| contexts(request).is_empty()),
        "the answer to the first input was found before it"
    );

    let search = || Reply::call("memory.search", json!({"query": "nuts \"OR"}));
    let (story, asked) = process(open(), Some("ann"), "A cake, with nuts?", vec![search(), done()]).await;

    let shown = "memory: Facts from earlier conversations, each with its id:\n- The user eats no nuts. (184d7a81a5e5)";
    assert_eq!(contexts(&asked[0]), [shown]);
    assert_eq!(tool_texts(&asked[1]), [r#"[{"id":"184d7a81a5e5","text":"The user eats no nuts."}]"#]);
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: A cake, with nuts?
    memory.search({"query":"nuts \"OR"}) -> [{"id":"184d7a81a5e5","text":"The user eats no nuts."}]
    assistant: Done.
    = {"type":"answered"}
    "#);
    for who in [Some("bob"), None] {
        let (_, asked) = process(open(), who, "A cake, with nuts?", vec![search(), done()]).await;
        assert!(asked.iter().all(|request| contexts(request).is_empty()));
        assert_eq!(tool_texts(&asked[1]), ["[]"], "{who:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_without_a_user_has_private_facts() {
    let facts = MemoryFacts::default();
    let says = "Nuts?";
    let script = || vec![store("No nuts."), Reply::call("memory.search", json!({"query": "nuts"})), done()];

    let (_, asked) = process(facts.clone(), None, says, script()).await;

    assert!(tool_texts(&asked[2])[1].contains("No nuts."), "the run itself finds it");
    assert_eq!(facts.list(&user("")).await.unwrap(), []);
    let play = Play::new([Reply::call("memory.search", json!({"query": "nuts"})), done()]);
    let team = Memory::new(facts.clone()).owner(user("team"));
    facts.remember(&user("team"), "The team likes nuts.").await.unwrap();
    play.run(&companion(team, says), ()).await;
    assert!(play.last_results()[0].contains("The team likes nuts."), "the configuration can set their user");
}

/// Records each search.
#[derive(Debug, Clone)]
struct Noting(MemoryFacts, Journal, u32);

impl FactStore for Noting {
    async fn remember(&self, owner: &FactOwner, text: &str) -> Result<Fact> {
        self.0.remember(owner, text).await
    }

    async fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> Result<Vec<Fact>> {
        self.1.note(query);
        if self.1.count() <= self.2 {
            return Err(Error::new("nobody remembers"));
        }
        self.0.search(owner, query, limit).await
    }

    async fn forget(&self, owner: &FactOwner, id: &FactId) -> Result<bool> {
        self.0.forget(owner, id).await
    }

    async fn list(&self, owner: &FactOwner) -> Result<Vec<Fact>> {
        self.0.list(owner).await
    }
}

#[tokio::test(start_paused = true)]
async fn search_runs_once_per_input_and_forgotten_facts_disappear_at_once() {
    let team = user("team");
    let noting = Noting(MemoryFacts::default(), Journal::default(), 1);
    for fact in ["Tea at four.", "No tea for Bob."] {
        noting.0.remember(&team, fact).await.unwrap();
    }
    let memory = Memory::new(noting.clone()).owner(team.clone());
    let forget = |fact: &str| Reply::call("memory.forget", json!({"id": FactId::of(fact)}));
    let play = Play::new([
        store("Coffee, not tea."),
        forget("Tea at four."),
        forget("Tea at four."),
        Reply::call("memory.store", json!({"fact": " "})),
        Reply::call("memory.store", json!({"fact": "x".repeat(1001)})),
        done(),
    ]);

    play.run(&companion(memory, "When is tea?"), ()).await;

    let shown: Vec<_> = play.requests().iter().map(|request| contexts(request).join("").lines().count()).collect();
    assert_eq!(
        shown,
        [0, 4, 3, 3, 3, 3],
        "the first search failed, the second found all three, one of them was forgotten"
    );
    assert_eq!(noting.1.take(), ["When is tea?", "When is tea?"]);
    let results = play.last_results();
    assert_eq!(results[1..3], ["forgotten", "forgotten"]);
    assert!(results[3].contains("the fact is empty"), "{}", results[3]);
    assert!(results[4].contains("at most 1000 characters, and this one has 1001"), "{}", results[4]);
    assert_eq!(texts(&noting.0.list(&team).await.unwrap()), ["No tea for Bob.", "Coffee, not tea."]);
}

#[tokio::test(start_paused = true)]
async fn stored_facts_exist_once_after_a_crash_anywhere() {
    // A stored fact outlives the crash, so the input finds only another fact.
    let facts = MemoryFacts::default();
    facts.remember(&user("ann"), "Hello is what she says.").await.unwrap();
    let memory = Memory::new(facts.clone()).owner(user("ann"));
    let tale = Tale {
        definition: companion(memory, "Hello!").definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Chat/0" => store("No nuts."),
            "Chat/1" => Reply::call("memory.forget", json!({"id": FactId::of("Nobody said so.")})),
            _ => done(),
        }),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    };

    let baseline = tale.undisturbed().await;
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }

    assert!(baseline.deaths.len() > 5);
    assert_eq!(texts(&facts.list(&user("ann")).await.unwrap()), ["Hello is what she says.", "No nuts."]);
}
