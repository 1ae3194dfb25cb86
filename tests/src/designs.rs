//! What the code samples of the designs leave open: the types and functions that they only name.
//!
//! The pages `docs/guide/appendix/*-samples.md` translate the samples; their code runs as tests of this crate's docs.

#![expect(missing_docs, reason = "the names are those of the designs' samples")]
#![expect(
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::unused_async,
    reason = "the functions only stand for others"
)]

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Customer {
    pub name: String,
    pub tier: String,
    pub email: String,
    pub slack_thread: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ticket {
    pub customer: Customer,
    pub history: Vec<String>,
    pub current_order: String,
    pub refund_status: Option<String>,
    pub waiting_for_customer: bool,
    pub resolved_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    pub customer_id: String,
}
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Order {
    pub order_id: String,
}
#[derive(Debug, Serialize, Deserialize)]
pub struct Refund {
    pub status: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Query {
    /// Search query
    pub query: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Letter {
    /// Message to send
    pub message: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Reason {
    pub reason: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Summary {
    pub summary: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Answer {
    pub text: String,
}

pub fn slack() -> Webhook<Answer> {
    webhook("slack")
}
pub fn email() -> Webhook<Answer> {
    webhook("email")
}

pub async fn fetch_customer(_: &str) -> Result<Customer> {
    Ok(Customer::default())
}
pub async fn fetch_history(_: &str) -> Result<Vec<String>> {
    Ok(Vec::new())
}
pub async fn search_docs(_: &str) -> Result<Vec<String>> {
    Ok(Vec::new())
}
pub async fn order_status(_: &str) -> Result<String> {
    Ok("sent".to_owned())
}
pub async fn send(_: &Customer, _: &str) -> Result<()> {
    Ok(())
}
pub async fn update_ticket(_: &Customer, _: &str) -> Result<()> {
    Ok(())
}

pub fn refund_processor() -> Brain<Order, Refund> {
    brain("Refund Processor")
        .options::<Order>()
        .step("Refund", async |_| Ok(Refund { status: "paid".to_owned() }))
        .build()
}
pub fn subscription_manager() -> Brain<Order, String> {
    brain("Subscription Manager").options::<Order>().step("Update", async |_| Ok("updated".to_owned())).build()
}

pub fn model() -> ScriptedModel {
    ScriptedModel::new([])
}
