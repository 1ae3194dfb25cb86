//! One agent with all the features that the agent loop's design compares with a graph: tools that come and go, a chart
//! only for people, a file with a one-line summary for the model, an approval, and context from a plugin.
//!
//! An analyst answers a question about sales. The figures are always available; drawing and mailing are tool sets that
//! it activates when needed. Mail to other companies needs an approval. [`Desk`] is a plugin of an application:
//! it adds context derived from past events, and keeps its own state.
//!
//! `docs/guide/appendix/langgraph.md` compares it with the design's graph of the same agent.

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services};
use positronic_core::prelude::*;
use positronic_plugins::Toolsets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Analyst";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/analyst.jsonl");

/// The domain of internal mail.
const HOUSE: &str = "@example.com";

/// The analyst's work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Work {
    /// Names of the written reports.
    pub reports: Vec<String>,
    /// Addresses that got a report.
    pub sent: Vec<String>,
}

/// What is asked of the figures.
#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The year
    year: u16,
}

/// A quarter's sales.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Quarter {
    /// Such as `Q1`
    quarter: String,
    /// Thousands of euros
    sales: u32,
}

/// A chart.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Chart {
    /// What it shows
    title: String,
    /// The bars, from left to right
    bars: Vec<Quarter>,
}

/// A report.
#[derive(Deserialize, JsonSchema)]
struct Report {
    /// The file's name, which ends in `.md`
    name: String,
    /// The report, as Markdown
    text: String,
}

/// A mail with a report.
#[derive(Deserialize, JsonSchema)]
struct Mail {
    /// The address
    to: String,
    /// The report's name
    report: String,
}

type WorkTool = Tool<(), Work>;

fn query() -> WorkTool {
    WorkTool::new("sales.query", |t| {
        t.description("Returns the sales of a year by quarter").read_only().execute(async |Query { year }, _| {
            let sales = match year {
                2025 => [410, 395, 520, 610],
                2026 => [430, 470, 640, 702],
                _ => return Err(Error::new(format!("there are no figures of {year}, only of 2025 and 2026"))),
            };
            let quarters = (1..).zip(sales);
            Ok(quarters.map(|(n, sales)| Quarter { quarter: format!("Q{n}"), sales }).collect::<Vec<_>>())
        })
    })
}

fn draw() -> WorkTool {
    WorkTool::new("chart.draw", |t| {
        t.description("Shows the user a bar chart").idempotent().execute(async |chart: Chart, cx| {
            cx.display_widget("bar_chart", &chart, in_words(&chart))?;
            Ok("the user sees it")
        })
    })
}

fn in_words(Chart { title, bars }: &Chart) -> String {
    let bars: Vec<_> = bars.iter().map(|Quarter { quarter, sales }| format!("{quarter} {sales}")).collect();
    format!("{title}: {}", bars.join(", "))
}

fn write() -> WorkTool {
    WorkTool::new("report.write", |t| {
        t.description("Writes a report into a file").idempotent().execute(async |Report { name, text }, cx| {
            let file = cx.save_file(&name, "text/markdown", text).await?;
            Ok(cx
                .result(format!("{name} has {} bytes", file.size))
                .update(move |work: &mut Work| work.reports.push(name)))
        })
    })
}

fn send() -> WorkTool {
    WorkTool::new("mail.send", |t| {
        t.description("Sends a report by mail")
            .approval(|mail: &Mail, _| {
                (!mail.to.ends_with(HOUSE)).then(|| format!("{} leaves the house, to {}", mail.report, mail.to))
            })
            .execute(async |Mail { to, report }, cx| {
                if !cx.state.reports.contains(&report) {
                    return Err(Error::new(format!("there is no report {report}; write it first")));
                }
                cx.update(move |work: &mut Work| work.sent.push(to));
                Ok("sent")
            })
    })
}

/// Tells the model which reports exist, and the number of its requests.
#[derive(Debug)]
pub struct Desk;

/// State of [`Desk`].
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Number of model requests.
    pub iterations: u32,
}

impl PluginState for Asked {
    const NAME: &'static str = "desk";
}

impl<O: Options, V: Services> Plugin<O, Work, V> for Desk {
    type State = Asked;

    fn initial(&self) -> Asked {
        Asked::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, Work, V, Asked>) -> Result<()> {
        cx.state.iterations += 1;
        let reports = &cx.brain.reports;
        let lies = if reports.is_empty() { "no report yet".to_owned() } else { reports.join(", ") };
        cx.context("desk", format!("On the desk: {lies}."));
        Ok(())
    }
}

/// Builds the brain.
pub fn analyst() -> Brain<(), Work> {
    let toolsets = Toolsets::new()
        .set("figures", "Look up sales", [query()])
        .set("charts", "Show charts", [draw()])
        .set("reports", "Write reports and send them", [write(), send()])
        .active(["figures"]);
    brain(TITLE)
        .description("Answers a question about sales with a chart, and sends a report that somebody has approved")
        .state(Work::default())
        .r#loop("Answer", move |cx| {
            cx.system("You are an analyst. Look figures up before you name any.")
                .input("How did 2026 go? Show me, and send a report to Ada, ada@example.org.")
                .plugin(toolsets.clone())
                .plugin(Desk)
                .max_iterations(12)
        })
        .build()
}
