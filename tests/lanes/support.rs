//! The brain of all lanes: a support case with three tools, one of which ends it.

use std::time::Duration;

use positronic_core::model::{Model, RetryPolicy};
use positronic_core::prelude::*;
use positronic_core::record::Delta;
use positronic_core::runner::RunHandle;
use positronic_core::sink::Recorder;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test};
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses, Timeouts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) orders: Vec<u32>,
    pub(crate) resolution: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// The order's number.
    number: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Resolution {
    /// What was done for the customer.
    summary: String,
}

pub(crate) fn support() -> Brain<(), Ticket> {
    brain("Support")
        .state(Ticket { orders: Vec::new(), resolution: None })
        .r#loop("Chat", |cx| {
            cx.system(format!("You are a support agent. Orders seen: {:?}.", cx.state.orders))
                .input("Where are my orders 17 and 4? – “Zoë”\n")
                .tool("docs.search", |t| {
                    t.description("Searches the help pages")
                        .read_only()
                        .execute(async |Search { query }, _| Ok(format!("One page about {query}.")))
                })
                .tool("look_up_order", |t| {
                    t.description("Looks up an order").idempotent().execute(async |Lookup { number }, cx| {
                        if number == 4 {
                            return Err(Error::new("there is no order 4"));
                        }
                        let found = serde_json::json!({"number": number, "status": "sent"});
                        Ok(cx.result(found).update(move |ticket| ticket.orders.push(number)))
                    })
                })
                .tool("resolve", |t| {
                    t.description("Closes the case").exit().execute(async |Resolution { summary }, cx| {
                        Ok(cx.result("closed").update(|ticket| ticket.resolution = Some(summary)))
                    })
                })
                .max_iterations(8)
        })
        .build()
}

/// A finished run with its deltas.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) story: Story,
    pub(crate) deltas: Vec<Delta>,
}

/// Configures an adapter for a model of a server.
pub(crate) fn config(server: &str, model: &str) -> OpenAiConfig {
    OpenAiConfig::builder().base_url(format!("{server}/v1")).api_key("not-a-key").model(model).build()
}

pub(crate) fn chat(server: &str, model: &str) -> OpenAiChat {
    OpenAiChat::new(config(server, model)).unwrap()
}

/// An adapter with short timeouts for the first chunk and between chunks.
pub(crate) fn impatient(server: &str, model: &str, patience: Duration) -> OpenAiChat {
    let timeouts = Timeouts::builder().first_chunk(patience).idle(patience).build();
    let mut config = config(server, model);
    config.timeouts = timeouts;
    OpenAiChat::new(config).unwrap()
}

pub(crate) fn responses(server: &str, model: &str) -> OpenAiResponses {
    OpenAiResponses::new(config(server, model)).unwrap()
}

/// Plays the support case with a model. The runner's own delays are short; those of a server are respected.
pub(crate) async fn play(model: impl Model) -> Played {
    let retry = RetryPolicy::builder().first(Duration::from_millis(60)).build();
    let recorder = Recorder::new();
    let runner = Runner::new(model).ids(CountedIds::default()).retry_policy(retry).lockstep(true);
    let test = Test::with(runner.sink(recorder.clone()));
    let run: RunHandle<Ticket> = test.start(&support(), ()).await;
    let story = tokio::time::timeout(Duration::from_secs(30), Story::of(&run)).await.unwrap();
    Played { story, deltas: recorder.deltas() }
}
