//! What the code samples leave open: the types and functions that they only name.

use positronic_core::prelude::*;
use positronic_core::record::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Customer {
    pub(crate) name: String,
    pub(crate) tier: String,
    pub(crate) email: String,
    pub(crate) slack_thread: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) customer: Customer,
    pub(crate) history: Vec<String>,
    pub(crate) current_order: String,
    pub(crate) refund_status: Option<String>,
    pub(crate) waiting_for_customer: bool,
    pub(crate) resolved_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Opened {
    pub(crate) customer_id: String,
}
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) order_id: String,
}
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refund {
    pub(crate) status: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// Search query
    pub(crate) query: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Letter {
    /// Message to send
    pub(crate) message: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Reason {
    pub(crate) reason: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Summary {
    pub(crate) summary: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Answer {
    pub(crate) text: String,
}

pub(crate) fn slack() -> Webhook<Answer> {
    webhook("slack")
}
pub(crate) fn email() -> Webhook<Answer> {
    webhook("email")
}

pub(crate) async fn fetch_customer(id: &str) -> Result<Customer> {
    let [name, tier, email, slack_thread] = ["Mira", "gold", "mira@example.com", "thread-7"].map(str::to_owned);
    if id == "C-7" { Ok(Customer { name, tier, email, slack_thread }) } else { Err(Error::new("unknown customer")) }
}
pub(crate) async fn fetch_history(_: &str) -> Result<Vec<String>> {
    Ok(vec!["bought A-7".to_owned()])
}
pub(crate) async fn search_docs(query: &str) -> Result<Vec<String>> {
    Ok(vec![format!("a page about {query}")])
}
pub(crate) async fn order_status(_: &str) -> Result<String> {
    Ok("sent".to_owned())
}
pub(crate) async fn send(_: &Customer, _: &str) -> Result<()> {
    Ok(())
}
pub(crate) async fn update_ticket(_: &Customer, _: &str) -> Result<()> {
    Ok(())
}

pub(crate) fn open_ticket() -> Ticket {
    let customer = Customer { name: "Mira".to_owned(), slack_thread: "thread-7".to_owned(), ..Customer::default() };
    Ticket { customer, current_order: "A-7".to_owned(), ..Ticket::default() }
}

pub(crate) fn refund_processor() -> Brain<Order, Refund> {
    brain("Refund Processor")
        .options::<Order>()
        .step("Refund", async |_| Ok(Refund { status: "paid".to_owned() }))
        .build()
}
pub(crate) fn subscription_manager() -> Brain<Order, String> {
    brain("Subscription Manager").options::<Order>().step("Update", async |_| Ok("updated".to_owned())).build()
}
