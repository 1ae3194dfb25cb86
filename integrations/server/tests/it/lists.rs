//! Lists: pages, filters and counts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, EndReason, Event, EventKind, Failure, Path, RunId, Seq};
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope};
use positronic_store_suite::FaultyStore;
use serde_json::{Value, json};

use crate::support::{Shop, refund};

/// Reads a list page by page.
async fn pages(shop: &Shop, token: &str, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = shop.get(token, &format!("{path}{cursor}")).await.json();
        items.extend(page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn pages_of_runs_have_each_run_once() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let mut started = BTreeSet::new();
    for number in 0..5 {
        started.insert(shop.waiting_run(&token, number).await.0.to_string());
    }

    for path in ["/api/v1/runs?limit=2", "/api/v1/runs?limit=2&needs=decision", "/api/v1/runs?limit=2&q=refund"] {
        let listed = pages(&shop, &token, path).await;
        let ids: BTreeSet<_> = listed.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, started, "{path}");
        assert_eq!(listed.len(), 5, "{path}");
        let asks = json!({ "type": "LOOP_APPROVAL_REQUESTED", "path": "Chat/0.0", "name": "refund" });
        assert!(listed.iter().all(|run| run["last_event"] == asks), "{listed:?}");
        assert!(listed.is_sorted_by(|one, other| one["started"].as_str() >= other["started"].as_str()), "{path}");
    }
    let pending = pages(&shop, &token, "/api/v1/pending?limit=2").await;
    assert_eq!(pending.len(), 5);
    assert!(pending.is_sorted_by(|one, other| one["since"].as_str() <= other["since"].as_str()));
}

#[tokio::test]
async fn cursor_beyond_the_log_does_not_keep_the_server_busy() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let (run, _) = shop.waiting_run(&token, 1).await;
    let path = format!("/api/v1/runs/{run}/events?order=desc&limit=1");
    let page = shop.get(&token, &path).await.json();
    let mut content: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(page["next"].as_str().unwrap()).unwrap()).unwrap();
    content["key"] = u64::MAX.into();

    let forged = URL_SAFE_NO_PAD.encode(content.to_string());
    let forged = shop.get(&token, &format!("{path}&cursor={forged}")).await;

    assert_eq!(forged.json()["items"], page["items"]);
}

#[tokio::test]
async fn cursor_continues_only_a_list_with_the_same_filter() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    for number in 0..3 {
        shop.waiting_run(&token, number).await;
    }
    let page = shop.get(&token, "/api/v1/runs?limit=1").await.json();
    let next = page["next"].as_str().unwrap();

    let same = shop.get(&token, &format!("/api/v1/runs?limit=2&cursor={next}")).await;
    let other = shop.get(&token, &format!("/api/v1/runs?status=failed&cursor={next}")).await;
    let broken = shop.get(&token, &format!("/api/v1/runs?cursor={}", &next[1..])).await;

    assert_eq!(same.json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(other.problem(), "bad-cursor");
    assert_eq!(broken.problem(), "bad-cursor");
}

#[tokio::test]
async fn runs_are_filtered_and_counted() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (waiting, _) = shop.waiting_run(&token, 1).await;
    let (cancelled, _) = shop.waiting_run(&token, 2).await;
    let cancel = json!({ "type": "cancel", "reason": "too late" });
    shop.post(&token, &format!("/api/v1/runs/{cancelled}/signals"), cancel).await;
    shop.end(&cancelled).await;

    let row = shop.get(&token, &format!("/api/v1/runs/{cancelled}")).await.json();
    assert!(row["why"].as_str().is_some_and(|why| why.ends_with("too late")), "{row}");
    let ids = async |query: &str| {
        let list = shop.get(&token, &format!("/api/v1/runs?{query}")).await.json();
        let ids = list["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids("status=waiting").await, [waiting.as_str()]);
    assert_eq!(ids("status=cancelled,failed").await, [cancelled.as_str()]);
    assert_eq!(ids("needs=decision").await, [waiting.as_str()]);
    assert_eq!(ids("q=too%20late").await, [cancelled.as_str()]);
    for id in [cancelled.as_str(), &cancelled.as_str()[..13]] {
        assert!(ids(&format!("q={id}")).await.contains(&cancelled.to_string()), "{id}");
    }
    assert_eq!(ids(&format!("q={cancelled}")).await, [cancelled.as_str()]);
    assert_eq!(ids("brain=Other").await, [""; 0]);
    assert_eq!(ids("since=2100-01-01T00:00:00Z").await, [""; 0]);
    let counts = shop.get(&token, "/api/v1/runs/counts").await.json();
    assert_eq!((&counts["waiting"], &counts["cancelled"]), (&json!(1), &json!(1)), "{counts}");
    assert_eq!(counts["capped"], false);
}

#[tokio::test]
async fn runs_are_found_by_the_words_that_lists_show_for_them() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (waiting, _) = shop.waiting_run(&token, 7).await;
    let log = shop.client.events(&waiting, Seq(0)).await.unwrap();
    let with = |seq: usize, kind: EventKind| {
        let like = Arc::clone(log.get(seq).unwrap_or(&log[seq - 1]));
        let mut log = log[..seq].to_vec();
        let event = Event { seq: Seq(seq as u64), path: Path::root(), kind, ..Event::clone(&like) };
        log.push(Arc::new(event));
        log
    };
    let failure = Failure { code: EndReason::Crash, message: "the process ended".to_owned(), retryable: true };
    let parks = EventKind::BrainPaused { signal: "parked".into(), actor: Actor::default(), failure: Some(failure) };
    let claimed = EventKind::RunClaimed { owner: "a worker that has ended".into(), trace: None };
    for (id, log) in [("lost", with(1, claimed)), ("new", log[..1].to_vec()), ("parked", with(log.len(), parks))] {
        shop.client.import(&RunId::new(id), &log).await.unwrap();
    }

    for (status, found) in [
        ("stuck", vec!["lost"]),
        ("queued", vec!["new"]),
        ("parked", vec!["parked"]),
        ("stuck,parked", vec!["lost", "parked"]),
        ("queued,waiting", vec!["new", waiting.as_str()]),
        ("cut%20off", vec![]),
        ("sleeping", vec![]),
    ] {
        let found: BTreeSet<_> = found.into_iter().collect();
        for query in [
            format!("status={status}"),
            format!("q=status:%22{status}%22"),
            format!("q=number%20status:%22{status}%22"),
        ] {
            let list = shop.get(&token, &format!("/api/v1/runs?{query}")).await.json();
            let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
            let ids: BTreeSet<_> = items.iter().map(|run| run["id"].as_str().unwrap()).collect();
            assert_eq!(ids, found, "{query}");
        }
        let counts = shop.get(&token, &format!("/api/v1/runs/counts?status={status}")).await.json();
        let count: u64 = counts.as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(count, found.len() as u64, "{status}: {counts}");
        let sums = shop.get(&token, &format!("/api/v1/runs/sums?status={status}")).await.json();
        assert_eq!(sums["runs"], found.len(), "{status}: {sums}");
    }
    let page = shop.get(&token, "/api/v1/runs?status=stuck,parked&limit=1").await.json();
    let next = format!("/api/v1/runs?status=stuck,parked&limit=1&cursor={}", page["next"].as_str().unwrap());
    assert_eq!(shop.get(&token, &next).await.json()["items"].as_array().unwrap().len(), 1);
    let refused = shop.get(&token, "/api/v1/runs?status=stucc").await.json();
    assert!(refused["detail"].as_str().unwrap().ends_with("did you mean `stuck`?"), "{refused}");
}

#[tokio::test]
async fn search_is_read_as_people_type_it_and_an_error_points_at_the_word() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (one, _) = shop.waiting_run(&token, 1).await;
    let (other, _) = shop.waiting_run(&token, 22).await;
    let list = async |query: &str| shop.get(&token, &format!("/api/v1/runs?{query}")).await.json();

    for (query, found) in [
        ("q=brain:refund%20status:waiting%20tool:refund", vec![&other, &one]),
        ("q=brain:ref%20needs:decision%20since:1h", vec![&other, &one]),
        ("q=number:22", vec![&other]),
        ("q=number:2", vec![]),
        ("q=tool:pay", vec![]),
        ("q=cost:%3E0", vec![]),
        ("q=status:failed&brain=Refund", vec![]),
        ("status=waiting&q=number:1", vec![&one]),
    ] {
        let listed = list(query).await;
        let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
        assert_eq!(ids, found.iter().map(|run| run.as_str()).collect::<Vec<_>>(), "{query}");
    }
    assert_eq!(list("q=number:22").await["items"][0]["input"], "number 22");
    let counts = shop.get(&token, "/api/v1/runs/counts?q=brain:refund").await.json();
    assert_eq!(counts["waiting"], 2);
    for (query, runs, capped) in [
        ("", 2, false),
        ("?status=waiting", 2, false),
        ("?q=model:scripted", 2, false),
        ("?q=number:22", 1, false),
        ("?q=model:other", 0, false),
    ] {
        let sums = shop.get(&token, &format!("/api/v1/runs/sums{query}")).await.json();
        assert_eq!((&sums["runs"], &sums["capped"]), (&json!(runs), &json!(capped)), "{query}: {sums}");
        // The runner has no prices.
        assert_eq!((&sums["costs"], &sums["partly_priced"]), (&json!([]), &json!(runs)), "{query}: {sums}");
    }

    let refused = list("q=user:ann%20stats:failed").await;
    assert_eq!((&refused["word"], &refused["at"]), (&json!("stats"), &json!([9, 14])), "{refused}");
    assert!(refused["detail"].as_str().unwrap().ends_with("did you mean `status`?"), "{refused}");
    let twice = list("q=brain:Refund&brain=Other").await;
    assert!(twice["detail"].as_str().unwrap().contains("both a parameter and a word"), "{twice}");
}

#[tokio::test]
async fn run_is_named_by_an_end_of_its_id_that_no_other_run_has() {
    let shop = Shop::new();
    let token = shop.token(Some("ann"), &Scope::ALL).await;
    let stranger = shop.token(Some("bob"), &[Scope::Read]).await;
    let (run, _) = shop.waiting_run(&token, 1).await;
    let end = &run.as_str()[run.as_str().len() - 12..];

    assert_eq!(shop.get(&token, &format!("/api/v1/runs/{end}")).await.json()["id"], run.as_str());
    let events = shop.get(&token, &format!("/api/v1/runs/{end}/events")).await.json();
    assert!(!events["items"].as_array().unwrap().is_empty(), "{events}");
    assert_eq!(shop.get(&stranger, &format!("/api/v1/runs/{end}")).await.problem(), "unknown-run");
    assert_eq!(shop.get(&token, "/api/v1/runs/0000").await.problem(), "unknown-run");
}

#[tokio::test]
async fn events_are_listed_in_both_orders_and_searched() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let (run, _) = shop.waiting_run(&token, 1).await;
    let log = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();
    let all: Vec<u64> = log.iter().map(|event| event.seq.0).collect();
    let path = format!("/api/v1/runs/{run}/events");
    let seqs = async |query: &str| {
        let listed = pages(&shop, &token, &format!("{path}?{query}")).await;
        listed.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };

    assert_eq!(seqs("limit=2").await, all);
    assert_eq!(seqs("limit=2&order=desc").await, all.iter().copied().rev().collect::<Vec<_>>());
    assert_eq!(seqs("after=1&before=4").await, [2, 3]);
    assert_eq!(seqs("type=BRAIN_START").await, [0]);
    let asked = log.iter().find(|event| event.kind.name() == "LOOP_APPROVAL_REQUESTED").unwrap();
    assert_eq!(seqs("q=IT%20COSTS%20money&type=LOOP_APPROVAL_REQUESTED").await, [asked.seq.0]);
    assert!(seqs("path=Chat%2F0.0").await.contains(&asked.seq.0));

    let mut lines = crate::support::request(&token, "GET", &path, None);
    lines.headers_mut().insert("accept", "application/x-ndjson".parse().unwrap());
    let exported = shop.send(lines).await;
    let exported: Vec<_> = exported.text.lines().map(str::to_owned).collect();
    assert_eq!(exported, log.iter().map(|event| event.to_json().unwrap()).collect::<Vec<_>>());
}

#[tokio::test]
async fn conversations_are_listed_in_pages_once_each() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &Scope::ALL[..3]).await;
    let ben = shop.token(Some("ben"), &Scope::ALL[..3]).await;
    for number in 0..5 {
        for token in [&ann, &ben] {
            let user = if *token == ann { "ann" } else { "ben" };
            let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please." });
            let path = format!("/api/v1/conversations/{user}-{number}/messages");
            let run = shop.post(token, &path, said.clone()).await.json();
            let run = positronic_core::record::RunId::new(run["id"].as_str().unwrap());
            // The first conversation has a second run, which is its place in the list.
            if number == 0 {
                let id = shop.question(token, &run).await;
                let decision = format!("/api/v1/runs/{run}/calls/{id}/decision");
                shop.post(token, &decision, json!({ "reject": true })).await;
                shop.end(&run).await;
            }
        }
    }
    let again = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Again." });
    shop.post(&ann, "/api/v1/conversations/ann-0/messages", again).await;

    let listed = pages(&shop, &ann, "/api/v1/conversations?limit=2").await;

    let ids: Vec<_> = listed.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["ann-0", "ann-4", "ann-3", "ann-2", "ann-1"]);
    assert_eq!((&listed[0]["runs"], &listed[1]["runs"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn list_of_conversations_reads_each_conversation_once() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(move |method| {
        counted.fetch_add(usize::from(method == "runs"), Ordering::Relaxed);
        None
    });
    let model = ScriptedModel::from_fn(|_| Reply::text("Done."));
    let shop =
        Shop::of(Runner::new(model).store(store).brain(refund()), |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    for _ in 0..10 {
        let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Please." });
        let run = shop.post(&token, "/api/v1/conversations/chat/messages", said).await.json();
        shop.end(&RunId::new(run["id"].as_str().unwrap())).await;
    }
    reads.store(0, Ordering::Relaxed);

    let listed = shop.get(&token, "/api/v1/conversations").await.json();

    assert_eq!(listed["items"][0]["runs"], 10, "{listed}");
    assert_eq!(reads.load(Ordering::Relaxed), 2, "the rows, and the conversation");
}

#[tokio::test]
async fn search_of_a_user_reads_only_its_runs() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &[Scope::Read, Scope::Run]).await;
    let (run, _) = shop.waiting_run(&ann, 1).await;
    for number in 2..6 {
        shop.waiting_run(&ben, number).await;
    }

    for query in ["q=refund", "needs=decision", "q=refund&needs=decision&limit=1"] {
        let listed = pages(&shop, &ann, &format!("/api/v1/runs?{query}")).await;
        let ids: Vec<_> = listed.iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [run.as_str()], "{query}");
    }
}

#[tokio::test]
async fn runs_are_listed_and_counted_by_their_tags() {
    let shop = Shop::new();
    let (ann, ben) =
        (shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await, shop.token(Some("ben"), &[Scope::Read]).await);
    let start = async |tags: Value| {
        let order = json!({ "brain": "Refund", "options": { "number": 7 }, "tags": tags });
        shop.post(&ann, "/api/v1/runs", order).await
    };
    let plain = start(json!([])).await.json();
    let urgent = start(json!(["urgent", "eu"])).await.json();

    let listed = shop.get(&ann, "/api/v1/runs?tag=urgent").await.json();
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, [&urgent["id"]]);
    assert_eq!((&listed["items"][0]["tags"], &plain["tags"]), (&json!(["urgent", "eu"]), &Value::Null));
    let counts = shop.get(&ann, "/api/v1/runs/counts?tag=eu").await.json();
    let sum: u64 = ["running", "waiting"].iter().map(|status| counts[*status].as_u64().unwrap()).sum();
    assert_eq!(sum, 1, "{counts}");
    assert_eq!(shop.get(&ann, "/api/v1/runs?tag=urg").await.json()["items"], json!([]));
    assert_eq!(shop.get(&ben, "/api/v1/runs?tag=urgent").await.json()["items"], json!([]));

    let long = "x".repeat(65);
    for tags in [json!(["eu", ""]), json!(["eu", "eu"]), json!(["eu", "a\u{7}"]), json!(["eu", long])] {
        let refused = start(tags).await;
        assert_eq!(refused.problem(), "unprocessable");
        assert_eq!(refused.json()["errors"][0]["pointer"], "/tags/1", "{refused:?}");
    }
    let many: Vec<_> = (0..17).map(|number| number.to_string()).collect();
    assert_eq!(start(json!(many)).await.json()["errors"][0]["pointer"], "/tags/16");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    #[serde(rename = "text")]
    _text: String,
}

/// A brain that asks for an answer, and then for an approval.
fn asking() -> Brain<(), ()> {
    brain("Asking")
        .r#loop("Work", |cx| {
            let pay = Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
            cx.system("").input("Ask, then pay.").tools([pay]).tool("ask", |t| {
                t.wait(|_: &NoArgs, _| [webhook::<Answer>("orders").on("T-1").resume(|_: &mut (), _| {})])
                    .execute(async |_: NoArgs, _| Ok("asked"))
            })
        })
        .build()
}

#[tokio::test]
async fn pending_item_names_the_answers_in_its_run_that_are_older_than_their_questions() {
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Work/0" => Reply::call("ask", json!({})),
        _ => Reply::call("pay", json!({})),
    });
    let shop = Shop::with(model, asking(), |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let answer = json!({ "text": "yes" });
    shop.client.deliver("late".into(), "orders", "T-1", answer, Actor::default()).await.unwrap();

    let started = shop.post(&token, "/api/v1/runs?wait=25", json!({ "brain": "Asking" })).await.json();

    let run = started["id"].as_str().unwrap();
    let items = shop.get(&token, &format!("/api/v1/pending?run={run}")).await.json();
    let older = &items["items"][0]["older_answers"];
    assert_eq!((&older[0]["tool"], &older[0]["call"]), (&json!("ask"), &json!("Work/0.0")), "{items}");
    assert!(older[0]["received"].as_str().unwrap() < items["items"][0]["since"].as_str().unwrap(), "{items}");
    let why = started["why"].as_str().unwrap();
    assert!(why.ends_with(" The answer to `ask` at `Work/0.0` is older than its question."), "{why}");
}
