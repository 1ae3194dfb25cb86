//! Runs whose brain's code has changed.

use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope};
use serde_json::json;

use crate::support::{Order, Shop, refund, refunding};

#[tokio::test]
async fn run_whose_code_has_changed_is_neither_resumed_nor_forked() {
    let store = MemoryStore::new();
    let old = Runner::builder().model(refunding()).store(store.clone()).build().brain(refund());
    let before = Shop::of(old, |runner| Options::builder().brains(runner).build());
    let token = before.token(None, &Scope::ALL).await;
    let (run, _) = before.waiting_run(&token, 7).await;
    let signals = format!("/api/v1/runs/{run}/signals");
    before.post(&token, &signals, json!({ "type": "pause" })).await;
    let changed = brain("Refund").options::<Order>().step("Ask", async |_| Ok(()));
    let new = Runner::builder().model(refunding()).store(store).build().brain(changed);
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
