//! Updates of plugins of runs.

use axum::http::StatusCode;
use futures::StreamExt as _;
use positronic_core::dsl::{Options as BrainOptions, Plugin, PluginState, ReceivedUpdate, Services, State};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Seq};
use positronic_core::runner::RunUpdate;
use positronic_server::{Options, Scope, redact_fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Order, Shop, refunding, request};

/// The tone in which a loop writes.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Tone {
    name: String,
}

impl PluginState for Tone {
    const NAME: &'static str = "tone";

    fn update(&mut self, update: &ReceivedUpdate<'_>) -> Result<()> {
        #[derive(Serialize, Deserialize)]
        struct SetTone {
            tone: String,
        }
        impl positronic_core::dsl::PluginUpdate for SetTone {
            type State = Tone;
        }
        let SetTone { tone } = update.read()?;
        self.name = tone;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Toned;

impl<O: BrainOptions, S: State, V: Services> Plugin<O, S, V> for Toned {
    type State = Tone;

    fn initial(&self) -> Tone {
        Tone::default()
    }
}

fn toned() -> Brain<Order, ()> {
    brain("Refund")
        .options::<Order>()
        .r#loop("Chat", |cx| {
            cx.system("You refund.").input("Refund it.").plugin(Toned).tool("refund", |t| {
                t.description("Refunds money")
                    .requires_approval("it costs money")
                    .execute(async |_: Value, _| Ok("refunded"))
            })
        })
        .build()
}

#[tokio::test]
async fn update_of_a_plugin_needs_the_scope_operate_and_is_accepted_once_per_key() {
    let shop = Shop::with(refunding(), toned(), |runner| {
        Options::builder().brains(runner).redact(redact_fields(["tone"])).build()
    });
    let token = shop.token(None, &Scope::ALL).await;
    let starter = shop.token(None, &[Scope::Read, Scope::Run]).await;
    let (ann, lee) =
        (shop.token(Some("ann"), &Scope::ALL).await, shop.token(Some("lee"), &[Scope::Read, Scope::Run]).await);
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let path = format!("/api/v1/runs/{run}/signals");
    let update = |tone: &str| json!({ "type": "update_plugin", "plugin": "tone", "update": { "tone": tone } });
    let keyed = async |body: Value| {
        let mut request = request(&token, "POST", &path, Some(body));
        request.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        shop.send(request).await
    };

    assert_eq!(shop.post(&starter, &path, update("warm")).await.problem(), "scope-missing");
    assert_eq!(shop.post(&lee, &path, update("warm")).await.problem(), "unknown-run");
    let absent = json!({ "type": "update_plugin", "plugin": "notes", "update": {} });
    assert_eq!(shop.post(&token, &path, absent).await.problem(), "not-waiting");
    let elsewhere = json!({ "type": "update_plugin", "plugin": "tone", "update": {}, "to": "Chat//0" });
    assert_eq!(shop.post(&token, &path, elsewhere).await.problem(), "invalid-body");
    let (first, again) = (keyed(update("warm")).await, keyed(update("warm")).await);
    assert_eq!(first.status, StatusCode::OK, "{first:?}");
    assert_eq!((first.json(), again.header("idempotency-replayed")), (again.json(), "true"));
    assert_eq!(keyed(update("cold")).await.problem(), "key-reused");

    shop.post(&ann, &format!("/api/v1/runs/{run}/calls/{id}/decision"), json!({ "approve": true })).await;
    let mut updates = shop.client.follow(&run, Seq(0));
    while !matches!(updates.next().await, Some(Ok(RunUpdate::Settled(_))) | None) {}
    let log = shop.client.events(&run, Seq(0)).await.unwrap();
    let taken = log.iter().find(|event| matches!(&event.kind, EventKind::LoopPluginChanged { update: Some(_), .. }));
    assert!(taken.is_some(), "the plugin has taken it");
    let timeline = shop.get(&ann, &format!("/api/v1/runs/{run}/timeline")).await.json();
    let nodes = timeline["timeline"]["nodes"].as_array().unwrap_or_else(|| panic!("{timeline}"));
    let node = nodes.iter().find(|node| node["kind"]["type"] == "plugin_update").unwrap();
    assert_eq!((&node["status"], &node["kind"]["update"]), (&json!("done"), &json!({ "tone": "[redacted]" })));
    assert_eq!(node["kind"]["actor"]["by"], "service");
}
