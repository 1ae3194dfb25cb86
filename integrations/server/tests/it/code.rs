//! Runs whose brain's code has changed.

use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope};
use serde_json::json;

use crate::support::{Order, Shop, refund, refunding};

#[tokio::test]
async fn run_whose_code_has_changed_is_neither_resumed_nor_forked() {
    let store = MemoryStore::new();
    let old = Runner::new(refunding()).store(store.clone()).brain(refund());
    let before = Shop::of(old, |runner| Options::builder().brains(runner).build());
    let token = before.token(None, &Scope::ALL).await;
    let (run, _) = before.waiting_run(&token, 7).await;
    let signals = format!("/api/v1/runs/{run}/signals");
    before.post(&token, &signals, json!({ "type": "pause" })).await;
    let changed = brain("Refund").options::<Order>().step("Ask", async |_| Ok(()));
    let new = Runner::new(refunding()).store(store).brain(changed);
    let after = Shop::of(new, |runner| Options::builder().brains(runner).build());

    let resumed = after.post(&token, &signals, json!({ "type": "resume" })).await;
    let head = after.get(&token, &format!("/api/v1/runs/{run}")).await.json();
    let forked = after.post(&token, &format!("/api/v1/runs/{run}/fork"), json!({ "at": head["head"] })).await;
    let rerun = after.post(&token, &format!("/api/v1/runs/{run}/rerun"), json!({ "from": "Chat/0" })).await;

    for refused in [resumed, forked, rerun] {
        assert_eq!(refused.problem(), "code-differs", "{refused:?}");
        assert!(refused.json()["differences"][0].as_str().is_some_and(|text| !text.is_empty()), "{refused:?}");
    }
    assert_eq!(head["actions"]["resume"]["allowed"], false, "{head}");
    assert_eq!(after.client.store().runs(&positronic_core::store::RunFilter::default()).await.unwrap().len(), 1);
    // The server whose code fits still resumes it.
    assert_eq!(before.post(&token, &signals, json!({ "type": "resume" })).await.status, 200);
}

#[tokio::test]
async fn call_whose_tool_the_code_no_longer_has_cannot_be_approved_and_can_be_rejected() {
    let store = MemoryStore::new();
    let old = Runner::new(refunding()).store(store.clone()).brain(refund());
    let before = Shop::of(old, |runner| Options::builder().brains(runner).build());
    let token = before.token(None, &Scope::ALL).await;
    let (run, call) = before.waiting_run(&token, 7).await;
    let renamed = brain("Refund")
        .options::<Order>()
        .r#loop("Chat", |cx| cx.system("You refund.").tool("pay_back", |t| t.execute(async |_: NoArgs, _| Ok("paid"))));
    let new = Runner::new(refunding()).store(store).brain(renamed);
    let after = Shop::of(new, |runner| Options::builder().brains(runner).build());
    let decision = format!("/api/v1/runs/{run}/calls/{call}/decision");
    let log = async || after.client.events(&run, positronic_core::record::Seq(0)).await.unwrap().len();
    let length = log().await;

    let why =
        "the call `Chat/0.0` is open, and its tool `refund` no longer exists: restore the tool, or reject the call";
    let head = after.get(&token, &format!("/api/v1/runs/{run}")).await.json();
    assert_eq!(head["pending"][0]["allowed"], json!({ "allowed": false, "reason": why }), "{head}");
    assert_eq!(head["changed"], why);
    let item = after.get(&token, &format!("/api/v1/runs/{run}/calls/{call}")).await.json();
    assert_eq!(item["allowed"], json!({ "allowed": false, "reason": why }), "{item}");
    let approved = after.post(&token, &decision, json!({ "approve": true })).await;
    assert_eq!(approved.problem(), "code-differs", "{approved:?}");
    assert_eq!(log().await, length, "nothing is recorded");

    // The server that has the tool lets it be approved.
    let head = before.get(&token, &format!("/api/v1/runs/{run}")).await.json();
    assert_eq!(head["pending"][0]["allowed"]["allowed"], true, "{head}");
    let rejected = after.post(&token, &decision, json!({ "reject": true, "reason": "renamed" })).await;
    assert_eq!(rejected.status, 200, "{rejected:?}");
}
