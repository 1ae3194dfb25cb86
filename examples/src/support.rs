//! A support agent that works on a ticket until it is resolved.
//!
//! The agent searches, looks up orders, writes to the customer and waits for the answer, which may take days and comes
//! by Slack or by email. It asks the refund desk, a brain among the tools; it refunds
//! money, which needs an approval above 100 euros. Two exit tools end the loop. Then a survey, a brain as a
//! stage, asks for feedback, and the last step closes the ticket.
//!
//! The state is a [`Ticket`] up to the last step, which turns it into a [`Closed`] one. Tools see the ticket by
//! reference and change it with `cx.update(…)`, so the run's log contains every change.

use positronic_core::prelude::*;
use positronic_core::record::LoopOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acme::{Acme, Customer, Order, Receipt, Refund};

/// The brain's title.
pub const TITLE: &str = "Support";

/// Answers without a configured model: of the model, the customer, and the person who approves. Written by
/// hand.
pub const CASSETTE: &str = include_str!("../cassettes/support.jsonl");

/// The options of a run, all with defaults.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SupportOptions {
    /// The customer who needs help
    pub customer_id: String,
    /// The customer's first message
    pub message: String,
}

impl Default for SupportOptions {
    fn default() -> Self {
        Self {
            customer_id: "C-7".into(),
            message: "The espresso machine of my order A-1001 leaks. Can I have my money back?".into(),
        }
    }
}

/// The state: the agent's knowledge about the problem.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ticket {
    /// The customer.
    pub customer: Customer,
    /// The most recently viewed order.
    pub order: Option<Order>,
    /// The customer's answers.
    pub answers: Vec<String>,
    /// The answers of the refund desk.
    pub ruling: Option<Ruling>,
    /// The refunds.
    pub receipts: Vec<Receipt>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a ticket ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is still open.
    Open,
    /// The agent solved it, in this way.
    Resolved(String),
    /// A person takes over, for this reason.
    Escalated(String),
}

/// A closed ticket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Closed {
    /// Its customer.
    pub customer_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Refunded euros.
    pub refunded: u32,
    /// The customer's rating from 1 to 5, if there was an answer.
    pub score: Option<u8>,
}

impl Ticket {
    fn open(customer: Customer) -> Self {
        Self { customer, order: None, answers: vec![], ruling: None, receipts: vec![], outcome: Outcome::Open }
    }

    fn closed(self, score: Option<u8>) -> Closed {
        Closed {
            customer_id: self.customer.id,
            outcome: self.outcome,
            refunded: self.receipts.iter().map(|receipt| receipt.refund.amount).sum(),
            score,
        }
    }
}

// The arguments of the tools. The model reads the doc comments of the fields.

/// What to look for in the help pages.
#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Search query
    query: String,
}

/// Which order to look up.
#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// The order's number, such as A-1001
    order_id: String,
}

/// What to tell the customer.
#[derive(Deserialize, JsonSchema)]
struct Response {
    /// Message to send
    message: String,
}

/// How it was solved.
#[derive(Deserialize, JsonSchema)]
struct Resolution {
    /// Summary of how the issue was resolved
    resolution: String,
}

/// Why a person has to take over.
#[derive(Deserialize, JsonSchema)]
struct Escalation {
    /// What a person has to do
    reason: String,
}

/// What a customer answers, on whichever way.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Answer {
    text: String,
}

/// A message in a thread that is shared with the customer.
fn slack() -> Webhook<Answer> {
    webhook("slack")
}

/// A mail from the customer.
fn email() -> Webhook<Answer> {
    webhook("email")
}

/// Builds the support agent.
pub fn support() -> Brain<SupportOptions, Closed, Acme> {
    brain(TITLE)
        .description("Answers a customer until the ticket is resolved")
        .options::<SupportOptions>()
        .services::<Acme>()
        .step("Load customer", async |cx| Ok(Ticket::open(cx.services.customer(&cx.options.customer_id)?)))
        .r#loop("Chat", |cx| {
            let customer = &cx.state.customer;
            cx.system(format!(
                "You are a friendly support agent for Acme.\nCustomer: {}\nAccount type: {}\n\n\
                 Be helpful, concise and professional. Ask the refund desk before you refund anything.",
                customer.name, customer.tier
            ))
            .input(&cx.options.message)
            .tool("search_knowledge_base", |t| {
                t.description("Search our help documentation")
                    .read_only()
                    .execute(async |Search { query }, cx| Ok(cx.services.docs(&query).join("\n")))
            })
            .tool("check_order_status", |t| {
                t.description("Look up a customer's order").read_only().execute(async |Lookup { order_id }, cx| {
                    let order = cx.services.order(&order_id)?;
                    Ok(cx.result(&order).update(|ticket| ticket.order = Some(order)))
                })
            })
            .tool("send_response", |t| {
                t.description("Send a message to the customer and wait for the answer")
                    .wait(|_: &Response, cx| {
                        let customer = &cx.state.customer;
                        [
                            slack().on(&customer.thread).resume(|ticket, answer| ticket.answers.push(answer.text)),
                            email().on(&customer.email).resume(|ticket, answer| ticket.answers.push(answer.text)),
                        ]
                    })
                    .execute(async |Response { message }, cx| {
                        cx.services.send(&cx.state.customer.thread, &message).await;
                        Ok("sent")
                    })
            })
            .tool("process_refund", |t| {
                t.brain(refund_desk())
                    .description(
                        "Ask the refund desk what the customer gets back for the order that was looked up last",
                    )
                    .map_input(|ticket| Claim { order: ticket.order.clone(), answers: ticket.answers.clone() })
                    .map_output(|ticket, ruling| ticket.ruling = Some(ruling))
            })
            .tool("refund", |t| {
                t.description("Pay money back to the customer")
                    .destructive()
                    .idempotent()
                    .approval(|refund: &Refund, _| {
                        (refund.amount > 100).then(|| format!("a refund of {} euros", refund.amount))
                    })
                    .execute(async |refund, cx| {
                        let receipt = cx.services.refund(refund, cx.idempotency_key()).await?;
                        Ok(cx.result(&receipt).update(|ticket| ticket.receipts.push(receipt)))
                    })
            })
            .tool("resolve_ticket", |t| {
                t.description("Mark the support ticket as resolved").exit().execute(
                    async |Resolution { resolution }, cx| {
                        cx.update(|ticket| ticket.outcome = Outcome::Resolved(resolution));
                        Ok("resolved")
                    },
                )
            })
            .tool("escalate", |t| {
                t.description("Escalate to a human agent").exit().execute(async |Escalation { reason }, cx| {
                    cx.services.escalate(&cx.state.customer.id, &reason).await;
                    cx.update(|ticket| ticket.outcome = Outcome::Escalated(reason));
                    Ok("escalated")
                })
            })
            .max_iterations(50)
            .on_max_iterations(OnLimit::Exit)
            .on_exit(|ticket, outcome| {
                if *outcome == LoopOutcome::MaxIterations {
                    ticket.outcome = Outcome::Escalated("the agent found no end".into());
                }
            })
        })
        .brain("Survey", survey())
        .map_input(|ticket| SurveyOptions { thread: ticket.customer.thread.clone(), outcome: ticket.outcome.clone() })
        .map_output(|ticket, survey| ticket.closed(survey.score))
        .step("Cleanup", async |cx| {
            cx.services.close(&cx.state.customer_id).await;
            Ok(cx.state)
        })
        .build()
}

/// The options of the refund desk.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Claim {
    order: Option<Order>,
    answers: Vec<String>,
}

/// What the refund desk says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ruling {
    /// Euros to pay back
    pub amount: u32,
    /// Why, in one sentence
    pub reason: String,
}

/// Builds the refund desk: a brain that judges a claim and pays nothing.
///
/// A model judges in a step. Its answer has a type with a schema, and a misfit is asked again.
fn refund_desk() -> Brain<Claim, Ruling, Acme> {
    brain("Refund Desk")
        .description("Rules on what a customer gets back")
        .options::<Claim>()
        .services::<Acme>()
        .step("Check", async |cx| {
            let order = cx.options.order.clone();
            order.ok_or_else(|| Error::new("no order was looked up yet; call check_order_status first"))
        })
        .step("Rule", async |cx| {
            let policy = cx.services.docs("refunds").join("\n");
            let claim = format!("Order: {} Answers: {:?}", serde_json::to_string(&cx.state)?, cx.options.answers);
            cx.model().system(format!("Rule on a refund. Policy: {policy}")).ask_for::<Ruling>(claim).await
        })
        .build()
}

/// The options of the survey.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct SurveyOptions {
    thread: String,
    outcome: Outcome,
}

/// The result of the survey.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Survey {
    score: Option<u8>,
}

/// How well it went.
#[derive(Deserialize, JsonSchema)]
struct Score {
    /// From 1 (bad) to 5 (good); left out where the customer did not say
    score: Option<u8>,
}

/// Builds the survey: it asks once, and continues without an answer after three days.
fn survey() -> Brain<SurveyOptions, Survey, Acme> {
    brain("Survey")
        .options::<SurveyOptions>()
        .services::<Acme>()
        .state(Survey::default())
        .r#loop("Ask", |cx| {
            cx.system(format!(
                "Ask once how satisfied the customer is, from 1 to 5. It ended so: {:?}",
                cx.options.outcome
            ))
            .tool("ask_customer", |t| {
                t.description("Ask the customer and wait for the answer")
                    .wait(|_: &Response, cx| {
                        let days = std::time::Duration::from_hours(3 * 24);
                        [slack().on(&cx.options.thread).timeout(days).otherwise("no answer came")]
                    })
                    .execute(async |Response { message }, cx| {
                        cx.services.send(&cx.options.thread, &message).await;
                        Ok("sent")
                    })
            })
            .tool("record_score", |t| {
                t.description("Record what the customer thinks").exit().execute(async |Score { score }, cx| {
                    cx.update(move |survey| survey.score = score);
                    Ok("thank you")
                })
            })
            .max_iterations(5)
        })
        .build()
}
