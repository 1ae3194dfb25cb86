//! The webhooks of a project: their list, and the payloads that are refused.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::webhooks::{Hook, Hooks};
use positronic_server::{Options, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::Shop;

#[derive(Deserialize, JsonSchema)]
struct Payment {
    cents: u64,
}

positronic_core::webhooks! {
    struct ShopWebhooks {
        /// The bank's notice of a payment.
        payment: Webhook<Payment> = "payment",
        order: Webhook<u32> = "order",
    }
}

fn shop() -> Shop {
    let order = brain("Order")
        .options::<u32>()
        .state(String::new())
        .wait("Paid", |w| w.on(ShopWebhooks::new().payment, |_| "order-7".to_owned()), |_, paid| paid.cents)
        .step("Send", async |cx| Ok(cx.state));
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new());
    let runner =
        runner.webhooks(ShopWebhooks::new().list()).start_on(ShopWebhooks::new().order, order, |number| number);
    let hooks = Hooks::default().add("payment", Hook::unsigned());
    Shop::of(runner, |runner| Options::builder().brains(runner).hooks(hooks).build())
}

#[tokio::test]
async fn webhooks_of_the_project_are_listed_with_who_waits_for_them() {
    let shop = shop();
    let token = shop.token(None, &[Scope::Read]).await;

    let listed = shop.get(&token, "/api/v1/hooks").await.json();

    let mut items = listed["items"].clone();
    assert_eq!(items[0]["payload_schema"]["properties"]["cents"]["type"], "integer", "{listed}");
    for item in items.as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("payload_schema");
    }
    assert_eq!(
        items,
        json!([
            { "name": "payment", "description": "The bank's notice of a payment.", "starts": [], "waits": ["Order"], "accepted": true },
            { "name": "order", "description": "", "starts": ["Order"], "waits": [], "accepted": false },
        ])
    );
}

#[tokio::test]
async fn payload_that_does_not_fit_its_webhook_is_refused_at_the_door() {
    let shop = shop();
    let send = async |cents: &str| {
        let body = Body::from(format!(r#"{{"cents": {cents}}}"#));
        let request =
            Request::post("/api/v1/hooks/payment/order-7").header("host", "127.0.0.1").header("webhook-id", "d-1");
        shop.send(request.body(body).unwrap()).await
    };

    let misfit = send("\"ten\"").await;
    let corrected = send("10").await;

    assert_eq!(misfit.problem(), "payload-invalid");
    assert_eq!(
        (corrected.status, &corrected.json()["accepted"]),
        (StatusCode::ACCEPTED, &json!("kept")),
        "{corrected:?}"
    );
}
