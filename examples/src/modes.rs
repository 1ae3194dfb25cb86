//! A loop with modes: it understands a problem, solves it, waits for the customer, and ends.
//!
//! Each mode has its prompt, its tools, and its transitions. The model changes the mode with
//! `mode.enter`. Entering `awaiting_response` waits for the customer's answer, entering `resolved` ends the loop;
//! neither needs its own tool.

use positronic_core::prelude::*;
use positronic_plugins::Modes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Helpdesk";

/// Answers without a configured model, and the customer's replies; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/modes.jsonl");

/// The customer's problem.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Problem {
    /// The customer's contact.
    pub thread: String,
    /// The problem.
    pub text: String,
}

impl Default for Problem {
    fn default() -> Self {
        Self { thread: "thread-3".to_owned(), text: "My grinder does not start any more.".to_owned() }
    }
}

/// Knowledge about the problem.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ticket {
    /// The customer's contact.
    pub thread: String,
    /// The findings.
    pub facts: Vec<String>,
    /// The messages to the customer.
    pub advice: Vec<String>,
}

/// A message of the customer's.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// What the customer says.
    pub text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Fact {
    /// One sentence
    fact: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Advice {
    /// What to do, in a sentence or two
    advice: String,
}

fn slack() -> Webhook<Answer> {
    webhook("slack")
}

fn modes(ticket: &Ticket) -> Modes<Ticket> {
    Modes::new("gathering_info")
        .mode("gathering_info", |m| {
            m.description("when more has to be known")
                .prompt("First, understand the customer's problem. Note what you find out.")
                .tools(["note", "look_up_order"])
                .leads_to(["solving"])
        })
        .mode("solving", |m| {
            m.description("when the problem is clear")
                .prompt("Now solve the problem: find what helps, and advise the customer.")
                .tools(["search_manual", "advise"])
                .leads_to(["awaiting_response", "gathering_info"])
        })
        .mode("awaiting_response", |m| {
            m.description("after advice, to hear what the customer says to it")
                .prompt("The customer has answered.")
                .tools(["note"])
                .wait([slack().on(&ticket.thread).person().prompt("Does it help?")])
                .leads_to(["gathering_info", "solving", "resolved"])
        })
        .mode("resolved", |m| m.description("when the customer is content").exit())
}

/// Builds the brain.
pub fn helpdesk() -> Brain<Problem, Ticket> {
    brain(TITLE)
        .description("Helps a customer: understands, solves, waits, and ends when it helps")
        .options::<Problem>()
        .step("Open", async |cx| {
            Ok(Ticket { thread: cx.options.thread.clone(), facts: Vec::new(), advice: Vec::new() })
        })
        .r#loop("Chat", |cx| {
            cx.system("You help customers of a coffee shop.")
                .context("facts", format!("What is known: {:?}", cx.state.facts))
                .input(&cx.options.text)
                .tool("look_up_order", |t| {
                    t.description("Finds what the customer has bought")
                        .read_only()
                        .execute(async |_: NoArgs, _| Ok("a grinder G2, 14 months ago, in use every day"))
                })
                .tool("note", |t| {
                    t.description("Notes what was found out").execute(async |Fact { fact }, cx| {
                        cx.update(|ticket| ticket.facts.push(fact));
                        Ok("noted")
                    })
                })
                .tool("search_manual", |t| {
                    t.description("Searches the manual of what the customer has bought")
                        .read_only()
                        .execute(async |_: NoArgs, _| {
                            Ok("G2: if it does not start, 1. fasten the hopper until it clicks, 2. let it cool for an hour.")
                        })
                })
                .tool("advise", |t| {
                    t.description("Tells the customer what to do").execute(async |Advice { advice }, cx| {
                        cx.update(|ticket| ticket.advice.push(advice));
                        Ok("told")
                    })
                })
                .plugin(modes(&cx.state))
                .max_iterations(20)
        })
        .build()
}
