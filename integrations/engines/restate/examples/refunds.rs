//! A refund that a person approves, on Restate, with a scripted model and a store in a file.
//!
//! ```sh
//! npm install --ignore-scripts @restatedev/restate-server@1.7.12
//! node_modules/@restatedev/restate-server-linux-x64/bin/restate-server &
//! cargo run -p positronic-restate --example refunds -- serve &
//! curl localhost:9070/deployments --json '{"uri": "http://localhost:9080"}'
//!
//! cargo run -p positronic-restate --example refunds -- start order-7
//! cargo run -p positronic-restate --example refunds -- approve order-7
//! cargo run -p positronic-restate --example refunds -- outcome order-7
//! ```
//!
//! End `serve` at any moment, approve the refund, and start it again.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, RunId};
use positronic_core::runner;
use positronic_core::store::PendingFilter;
use positronic_restate::{Client, Endpoint};
use positronic_sqlite::SqliteStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const INGRESS: &str = "http://localhost:8080";
const STORE: &str = "refunds.db";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Desk {
    refunded: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

fn refunds() -> Brain<Order, Desk> {
    brain("Refunds")
        .options::<Order>()
        .state(Desk::default())
        .r#loop("Handle", |cx| {
            cx.system("Refund what the customer is owed.").input(format!("The order is {}.", cx.options.id)).tool(
                "refund",
                |t| {
                    t.description("Refund an amount in euros").requires_approval("it pays money").execute(
                        async |Refund { amount }, cx: ToolContext<Order, Desk>| {
                            // A payment provider gets the key, so that a repeated request pays once.
                            println!("paying {amount} EUR, key {}", cx.idempotency_key());
                            tokio::time::sleep(Duration::from_secs(5)).await;
                            let order = cx.options.id.clone();
                            cx.update(move |desk: &mut Desk| desk.refunded.push(order));
                            Ok("paid")
                        },
                    )
                },
            )
        })
        .build()
}

fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Handle/0" => Reply::calls([("refund", json!({"amount": 40}))]),
        _ => Reply::text("The refund is on its way."),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Client::new(INGRESS);
    match arguments[..] {
        ["serve"] => {
            let runner = Runner::new(model()).store(SqliteStore::open(STORE)?);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:9080").await?;
            Endpoint::new(runner, INGRESS).brain(refunds()).serve(listener).await?;
        }
        ["start", order] => client.start(refunds(), Order { id: order.to_owned() }, order).await?,
        ["approve", order] => {
            // Lists come from the store, decisions go through Restate.
            let store = runner::Client::new(SqliteStore::open(STORE)?);
            let pending = PendingFilter::builder().run(RunId::new(order)).build();
            for item in store.store().pending(&pending).await? {
                let ann = Actor::builder().by("ann").channel("terminal").build();
                let seq = client.approve("Refunds", &item.run, &item.pending.call, ann).await?;
                println!("approved {} as event {seq}", item.pending.call);
            }
        }
        ["outcome", order] => println!("{}", serde_json::to_string(&client.outcome("Refunds", order).await?)?),
        _ => println!("usage: refunds serve | start ORDER | approve ORDER | outcome ORDER"),
    }
    Ok(())
}
