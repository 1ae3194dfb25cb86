//! Every kind of stage in one brain: a warranty claim is classified, checked, researched, signed off by a person, and paid.
//!
//! Each stage is in the log on its own, so the run can wait for the person and the bank for days, on any machine.

use std::time::Duration;

use positronic_core::dsl::form;
use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Warranty";

/// Answers without a configured model, and the answers of the person and the bank; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/warranty.jsonl");

/// A claim of a customer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Claim {
    /// Its number
    pub id: String,
    /// What the customer writes
    pub text: String,
    /// How old the product is, in months
    pub months: u32,
}

impl Default for Claim {
    fn default() -> Self {
        let text = "My kettle leaks at the handle. Can I have a new one?".to_owned();
        Self { id: "c-7".to_owned(), text, months: 5 }
    }
}

/// What the customer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Wish {
    /// A new product or the money back
    Replacement,
    /// An answer
    Advice,
}

/// Why a claim ends early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Declined {
    /// The warranty is over.
    TooOld {
        /// How old the product is, in months.
        months: u32,
    },
}

/// The work on a claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    claim: Claim,
    wish: Option<Wish>,
    /// What was done.
    log: Vec<String>,
}

impl Case {
    fn and(mut self, what: impl Into<String>) -> Self {
        self.log.push(what.into());
        self
    }
}

/// The cause of a fault.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What is broken, in a few words
    pub part: String,
    /// Whether the customer broke it
    pub by_customer: bool,
}

/// What the model fills in to look into the manual.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Look {
    /// A part, such as `handle`
    pub part: String,
}

/// The decision of a person.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SignOff {
    /// Whether the customer gets the money back
    pub refund: bool,
    /// A word to the customer
    pub comment: String,
}

/// What the bank reports.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Payment {
    /// Euros
    pub amount: u32,
}

/// Looks into the manual. The tool does not depend on the state, so it is made once, with the brain.
fn manual() -> Tool<String, String> {
    Tool::new("manual", |t| {
        t.description("Says what a part endures")
            .read_only()
            .execute(async |Look { part }, _| Ok(format!("The {part} endures 100 degrees.")))
    })
}

/// Finds the cause of a fault: a loop that ends with a value.
fn diagnosis() -> Brain<String, Cause> {
    brain("Diagnosis")
        .options::<String>()
        .step("Begin", async |cx| Ok(cx.options.to_string()))
        .loop_to(
            "Look",
            |cx| {
                cx.system("Find out which part is broken. Look into the manual.")
                    .input(cx.state.to_string())
                    .output::<Cause>()
            },
            |_, cause| cause,
        )
        .tools([manual()])
        .build()
}

/// Builds the brain. A claim that is too old ends it with the reason.
pub fn warranty() -> Brain<Claim, Result<Vec<String>, Declined>> {
    brain(TITLE)
        .description("Handles a warranty claim")
        .options::<Claim>()
        .step("Open", async |cx| Ok(Case { claim: Claim::clone(&cx.options), wish: None, log: Vec::new() }))
        .guard("In warranty", |case| match case.claim.months {
            0..24 => Ok(()),
            months => Err(Declined::TooOld { months }),
        })
        .prompt(
            "Classify",
            |cx| {
                cx.system("You sort claims.")
                    .ask::<Wish>(format!("What does the customer want?\n{}", cx.state.claim.text))
            },
            |case, wish| Case { wish: Some(wish), ..case },
        )
        .branch("By wish", |mut b| {
            let text = |case: &Case| case.claim.text.clone();
            let diagnosis =
                b.arm("Diagnosis", diagnosis(), text, |case: Case, cause| case.and(format!("broken: {}", cause.part)));
            let advice = b.pass("Advice", |case| case.and("wrote to the customer"));
            b.choose(move |case| match case.wish {
                Some(Wish::Replacement) | None => diagnosis,
                Some(Wish::Advice) => advice,
            })
        })
        .ask_person(
            "Sign off",
            |case| form::<SignOff>(format!("{}: {}. Refund?", case.claim.id, case.log.join(", "))),
            |case, SignOff { refund, comment }| {
                case.and(format!("{}: {comment}", if refund { "refund" } else { "no refund" }))
            },
        )
        .sleep("Let it settle", |_| Duration::from_millis(10))
        .wait(
            "Bank",
            |w| w.on(webhook::<Payment>("bank"), |case| case.claim.id.clone()).within(Duration::from_hours(72)).fresh(),
            |case, payment| match payment {
                Some(Payment { amount }) => case.and(format!("paid {amount} euros")),
                None => case.and("the bank has not answered"),
            },
        )
        .result(|case| case.log.clone())
}
