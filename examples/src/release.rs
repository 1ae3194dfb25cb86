//! A loop whose tools depend on the state: an untested version cannot be deployed, since there is no such tool yet.
//!
//! The closure runs before every model call with the current state. So plain Rust decides the next tools:
//! `.tools(…)` accepts an iterator, and an `Option` is a list of one tool or none. The exit tools come late, so
//! `.require_exit()` prevents a text from ending the loop before there is one.
//!
//! This example uses the macros: `brain!` allows `.loop`, and `#[tool]` creates a tool
//! from an async function whose doc comments the model reads.

use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Release";

/// Answers without a configured model, and the approvals; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/release.jsonl");

/// The progress of the release.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Release {
    /// Number of test runs.
    pub test_runs: u32,
    /// Whether the tests have passed.
    pub tested: bool,
    /// The deployed version.
    pub deployed: Option<String>,
    /// Why it was postponed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postponed: Option<String>,
    /// The announcements.
    pub announced: Option<String>,
}

/// Runs all tests.
#[tool(sequential)]
async fn run_tests(cx: ToolContext<(), Release>) -> Result<&'static str> {
    // One test fails at the first run.
    let passed = cx.state.test_runs > 0;
    let report = if passed { "all tests passed" } else { "1 test failed: it ran out of time" };
    cx.update(move |release| {
        release.test_runs += 1;
        release.tested = passed;
    });
    Ok(report)
}

/// Deploys a version.
#[tool(destructive, approval = "this reaches every user")]
async fn deploy(
    /// Such as 1.4.0
    version: String,
    cx: ToolContext<(), Release>,
) -> Result<&'static str> {
    cx.update(|release| release.deployed = Some(version));
    Ok("deployed")
}

/// Gives up on the release for today.
#[tool(exit)]
async fn postpone(
    /// One sentence
    reason: String,
    cx: ToolContext<(), Release>,
) -> Result<&'static str> {
    cx.update(|release| release.postponed = Some(reason));
    Ok("postponed")
}

/// Tells everybody what is new.
#[tool(exit)]
async fn announce(
    /// One sentence
    news: String,
    cx: ToolContext<(), Release>,
) -> Result<&'static str> {
    cx.update(|release| release.announced = Some(news));
    Ok("announced")
}

/// Builds the brain.
pub fn release() -> Brain<(), Release> {
    brain! {
        TITLE
        .description("Tests, deploys and announces a version")
        .state(Release::default())
        .loop("Ship", |cx| {
            let Release { tested, deployed, .. } = &*cx.state;
            cx.system("Ship version 1.4.0. You get more tools as you get further.")
                .tools((!tested).then(run_tests))
                .tools((*tested && deployed.is_none()).then(deploy))
                .tools((*tested && deployed.is_none()).then(postpone))
                .tools(deployed.is_some().then(announce))
                .require_exit()
                .max_iterations(10)
        })
        .build()
    }
}
