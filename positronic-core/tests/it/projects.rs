//! The brains of a project: found by field and type, also in cycles, and replaced in a test; and its webhooks.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, SignalId, SignalKind};
use positronic_core::runner::{Delivered, DeliveryError, Settled};
use positronic_core::store::{MailboxStore as _, MemoryStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Play, done};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Claim {
    amount: u32,
}

positronic_core::brains! {
    /// The brains of a shop.
    #[derive(Debug, Clone)]
    struct ShopBrains for Shop {
        /// Talks to customers.
        support: Brain<(), u32, Shop> = support(),
        /// Pays back.
        refunds: Brain<Claim, Vec<u32>, Shop> = refunds(),
        rates: Brain<(), u32> = brain("Rates").step("Look", async |_| Ok(2)),
    }
}

struct Shop {
    brains: ShopBrains,
    ledger: Ledger,
}

fn shop(ledger: Ledger) -> Shop {
    Shop { brains: ShopBrains::new(), ledger }
}

fn support() -> Brain<(), u32, Shop> {
    brain("Support")
        .services::<Shop>()
        .state(0)
        .r#loop("Chat", |cx| {
            cx.system("Help.").tool("refund", |t| {
                t.brain(&cx.services.brains.refunds)
                    .requires_approval("it is money")
                    .map_output(|paid: &mut u32, parts: Vec<u32>| *paid += parts.iter().sum::<u32>())
            })
        })
        .build()
}

fn refunds() -> Brain<Claim, Vec<u32>, Shop> {
    brain("Refunds")
        .services::<Shop>()
        .options::<Claim>()
        .step("Pay", async |cx| {
            cx.services.ledger.act_once(cx.idempotency_key(), &format!("pay {}", cx.options.amount));
            Ok(vec![cx.options.amount])
        })
        .r#loop("Ask", |cx| {
            cx.system("Ask back.")
                .tool("support", |t| {
                    t.brain(&cx.services.brains.support).map_output(|parts: &mut Vec<u32>, paid| parts.push(paid))
                })
                .tool("rates", |t| {
                    t.brain(&cx.services.brains.rates).map_output(|parts: &mut Vec<u32>, rate| parts.push(rate))
                })
        })
        .build()
}

/// Support calls refunds, which calls support again, which calls refunds again.
fn says(request: &positronic_core::record::ModelRequest) -> Reply {
    let depth = request.path.to_string().matches('/').count();
    let first = request.path.to_string().ends_with("/0");
    match (depth, first) {
        (1, true) => Reply::call("refund", json!({"amount": 10})),
        (3, true) => Reply::calls([("support", json!({})), ("rates", json!({}))]),
        (5, true) => Reply::call("refund", json!({"amount": 5})),
        _ => done(),
    }
}

#[tokio::test(start_paused = true)]
async fn brains_of_a_project_call_each_other_also_after_a_crash_at_any_append() {
    let ledger = Ledger::default();
    let shop = Arc::new(shop(ledger.clone()));
    let tale = Tale {
        definition: shop.brains.support.clone().bind(Arc::clone(&shop)).definition(),
        options: Value::Null,
        ledger,
        says: Arc::new(says),
        answers: Arc::new(|pending| vec![SignalKind::Approve { call: pending.call.clone(), arguments: None }]),
    };

    let baseline = tale.undisturbed().await;

    assert_eq!(baseline.end.state, json!(17));
    let paid: Vec<_> = baseline.end.deeds.iter().map(|(_, what)| what.as_str()).collect();
    assert_eq!(paid.len(), 2, "{paid:?}");
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}

#[tokio::test(start_paused = true)]
async fn all_brains_of_a_project_are_registered_with_its_services() {
    let shop = Arc::new(shop(Ledger::default()));

    let runner = Runner::new(ScriptedModel::new([Reply::text("Nothing to ask.")])).brains(shop.brains.bind(&shop));

    let titles: Vec<_> = runner.definitions().map(|brain| brain.title.as_str()).collect();
    assert_eq!(titles, ["Support", "Refunds", "Rates"]);
    let refunds = &shop.brains.bind(&shop)[1];
    let run = runner.start(refunds, json!({"amount": 3})).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!([3]));
    assert_eq!(shop.ledger.deeds().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn test_replaces_a_brain_of_a_project() {
    let stub = brain("Refunds").services::<Shop>().options::<Claim>().step("Pay", async |_| Ok(vec![1, 2])).build();
    let shop = Arc::new(Shop { brains: ShopBrains { refunds: stub, ..ShopBrains::new() }, ledger: Ledger::default() });
    let support = brain("Support")
        .services::<Shop>()
        .state(0)
        .r#loop("Chat", |cx| {
            cx.system("Help.").tool("refund", |t| {
                t.brain(&cx.services.brains.refunds)
                    .map_output(|paid: &mut u32, parts| *paid += parts.iter().sum::<u32>())
            })
        })
        .bind(Arc::clone(&shop));

    let story = Play::new([Reply::call("refund", json!({"amount": 10})), done()]).run(&support, ()).await;

    assert_eq!(story.settled(), &Settled::Completed(json!(3)));
    assert!(shop.ledger.deeds().is_empty());
}

positronic_core::webhooks! {
    /// The webhooks of a shop.
    #[derive(Debug, Clone)]
    struct ShopWebhooks {
        /// A claim was paid.
        ///
        /// By the bank.
        paid: Webhook<Claim> = "paid",
        refused: Webhook<String> = "refused",
    }
}

/// A brain that waits for a payment.
fn waits_for_payment() -> Brain<(), u32> {
    brain("Order")
        .step("Take", async |_| Ok("order-7".to_owned()))
        .wait("Payment", |w| w.on(ShopWebhooks::new().paid, String::clone), |_, claim| claim.amount)
        .step("Send", async |cx| Ok(cx.state))
        .build()
}

#[test]
fn webhooks_of_a_project_have_names_types_and_descriptions() {
    let listed = ShopWebhooks::default().list();

    let names: Vec<_> = listed.iter().map(|hook| (hook.name(), hook.description())).collect();
    assert_eq!(names, [("paid", "A claim was paid."), ("refused", "")]);
    assert_eq!(listed[0].payload_schema()["properties"]["amount"]["type"], "integer");
    let structure = waits_for_payment().structure();
    assert_eq!(structure.waits(), [("Payment".to_owned(), "paid")]);
}

#[test]
#[should_panic(expected = "the project has two webhooks named `paid`")]
fn two_webhooks_of_one_name_are_found_when_they_are_made() {
    positronic_core::webhooks! {
        struct Twice { paid: Webhook<Claim> = "paid", again: Webhook<String> = "paid" }
    }
    _ = Twice::new().list();
}

#[tokio::test(start_paused = true)]
async fn payload_of_another_type_is_refused_and_not_stored_unless_a_run_waits() {
    let store = MemoryStore::new();
    let runner = Runner::new(ScriptedModel::new([])).store(store.clone()).brain(waits_for_payment());
    let runner = runner.webhooks(ShopWebhooks::new().list());
    let deliver = async |id: &str, name: &str, payload: Value| {
        runner.deliver(SignalId::new(id), name, "order-7", payload, Actor::default()).await
    };

    let misfit = deliver("d-1", "paid", json!({ "amount": "ten" })).await.unwrap_err();
    assert!(matches!(&misfit, DeliveryError::Payload { webhook, .. } if webhook == "paid"), "{misfit}");
    assert!(store.mailbox().await.unwrap().is_empty(), "it is not stored");
    assert!(matches!(deliver("d-2", "unlisted", json!(1)).await, Ok(Delivered::Kept)), "others are stored unchecked");
    assert!(
        matches!(deliver("d-1", "paid", json!({ "amount": 10 })).await, Ok(Delivered::Kept)),
        "the sender corrects it"
    );

    let run = runner.start(waits_for_payment(), ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 10);

    // A run of older code waits for another type under the same name.
    let older =
        brain("Older").wait("Payment", |w| w.on(webhook::<String>("paid"), |()| "old".to_owned()), |(), text| text);
    let run = runner.start(older, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = SignalId::new("d-3");
    let delivered = runner.deliver(id, "paid", "old", json!("ten"), Actor::default()).await;
    assert!(matches!(delivered, Ok(Delivered::To { .. })), "{delivered:?}");
    assert_eq!(run.result().await.unwrap(), "ten");
}
