//! `positronic models check`: asks models for one tool call and one word.
//!
//! A model is asked twice: it calls a tool, and gets the tool's result before it answers, so that a signature or an id that
//! it refuses shows here and not in the first real run.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use positronic_core::model::{Model, RetryPolicy};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::{Cost, Costs, Spent};
use positronic_core::record::{Event, EventKind, Seq};
use serde_json::{Value, json};

use super::{NORMAL, tiers};
use crate::app::{Failure, Project, SET_MODEL, Ui, price_table, provided_model};
use crate::cli::{Exit, ModelArgs, ModelsCheckArgs};
use crate::render::{CheckRow, check_table, figures, shorten};

/// The time for a model, which a local server may have to load first.
const AT_MOST: Duration = Duration::from_mins(2);

/// The longest reason in the table.
const REASON: usize = 400;

/// A checked model.
struct Checked {
    model: String,
    /// Why it failed.
    failure: Option<String>,
    time: Duration,
    spent: Spent,
}

pub(super) async fn check(project: Option<&Project>, args: &ModelsCheckArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let prices = price_table(args.prices.as_deref(), &ui.settings)?;
    let models = if args.models.is_empty() { configured(project, args, ui) } else { named(args, ui) };
    if models.is_empty() {
        return Err(Failure::model("no model is configured")
            .hint(SET_MODEL)
            .hint("or name a model: models check MODEL"));
    }
    let checks = models.into_iter().map(|(name, model)| async {
        match model {
            Ok(model) => probe(name, model, &prices).await,
            Err(failure) => {
                let why = std::iter::once(failure.to_string()).chain(failure.hints).collect::<Vec<_>>().join("; ");
                Checked { model: name, failure: Some(why), time: Duration::ZERO, spent: Spent::default() }
            }
        }
    });
    let checked = join_all(checks).await;
    if args.json {
        for model in &checked {
            ui.json_line(&document(model, &prices))?;
        }
    } else {
        let rows: Vec<_> = checked.iter().map(|model| in_words(model, &prices)).collect();
        ui.print(&check_table(&rows, ui.columns()))?;
        for row in rows.iter().filter(|row| !row.why.is_empty()) {
            ui.notice(&format!("{}: {}", row.model, row.why))?;
        }
    }
    Ok(if checked.iter().all(|model| model.failure.is_none()) { Exit::Done } else { Exit::NoModel })
}

/// The string or name of a model, and the model or why there is none.
type Candidate = (String, Result<Arc<dyn Model>, Failure>);

/// Returns the models of both tiers, and the default model of each configured provider.
fn configured(project: Option<&Project>, args: &ModelsCheckArgs, ui: &Ui) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |name: String, model| {
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name, model));
        }
    };
    let defaults = ui.settings.providers.list().into_iter().filter_map(|row| row.default_model);
    let defaults: Vec<_> = defaults.map(|name| (provided(&name, args, ui), name)).collect();
    for (tier, model) in tiers(project, &args.endpoint, ui) {
        match model {
            Ok(Some(model)) => add(model.name(), Ok(model)),
            Ok(None) => {}
            // Several providers have a default model, and each is checked.
            Err(_) if tier == NORMAL && ui.settings.model.is_none() && !defaults.is_empty() => {}
            Err(failure) => add(format!("the {tier} tier"), Err(failure)),
        }
    }
    for (model, name) in defaults {
        add(model.as_ref().map_or(name, |model| model.name()), model);
    }
    found
}

fn named(args: &ModelsCheckArgs, ui: &Ui) -> Vec<Candidate> {
    args.models.iter().map(|name| (name.clone(), provided(name, args, ui))).collect()
}

fn provided(name: &str, args: &ModelsCheckArgs, ui: &Ui) -> Result<Arc<dyn Model>, Failure> {
    let flags = ModelArgs { endpoint: args.endpoint.clone(), ..ModelArgs::default() };
    provided_model(name, &flags, &ui.settings)
}

fn probing() -> Brain {
    brain("Check")
        .r#loop("Ask", |cx| {
            let system =
                "This is a test of a connection. Call the tool `ready` once. Then answer with the single word: ready";
            let config = cx.system(system).input("Call the tool, then answer.").max_iterations(3);
            config.tool("ready", |t| {
                t.description("Confirms that tools can be called").execute(async |_: NoArgs, _| Ok("ready"))
            })
        })
        .build()
}

/// Asks a model once, without retries.
async fn probe(name: String, model: Arc<dyn Model>, prices: &PriceTable) -> Checked {
    let retry = RetryPolicy::builder().limit(0).build();
    let runner = Runner::new(model).retry_policy(retry);
    let failed = |why: String| Checked {
        model: name.clone(),
        failure: Some(why),
        time: Duration::ZERO,
        spent: Spent::default(),
    };
    let run = match runner.start(&probing(), ()).await {
        Ok(run) => run,
        Err(error) => return failed(error.to_string()),
    };
    let ended = tokio::time::timeout(AT_MOST, run.result()).await;
    let log = match run.events(Seq(0)).await {
        Ok(log) => log,
        Err(error) => return failed(error.to_string()),
    };
    let failure = match ended {
        Err(_) => Some(format!("no answer within {}", figures::duration(AT_MOST))),
        Ok(Err(error)) => Some(without_loop(&error.to_string())),
        Ok(Ok(())) if !log.iter().any(|event| is_call(event)) => Some("it answered without the tool call".to_owned()),
        Ok(Ok(())) => run.answer().is_none().then(|| "it called the tool and gave no answer".to_owned()),
    };
    let time = log.first().zip(log.last()).map(|(first, last)| last.at.since(first.at)).unwrap_or_default();
    Checked { model: name, failure, time, spent: Costs::of(log.iter().map(|event| &**event), prices).total() }
}

/// Removes the name of the loop from an error of its model.
fn without_loop(error: &str) -> String {
    error.strip_prefix("the model of the loop `Ask` failed: ").unwrap_or(error).to_owned()
}

fn is_call(event: &Event) -> bool {
    matches!(event.kind, EventKind::LoopToolResult { .. })
}

fn in_words(checked: &Checked, prices: &PriceTable) -> CheckRow {
    let is_answered = checked.spent.calls > 0;
    let cost = match checked.spent.total() {
        Cost::Known(cost) => figures::money(cost.nanos(), Some(&prices.currency)),
        Cost::Unknown => "unknown".to_owned(),
    };
    CheckRow {
        model: checked.model.clone(),
        result: if checked.failure.is_none() { "ok" } else { "failed" },
        time: figures::duration(checked.time),
        tokens: figures::count(checked.spent.usage.total()),
        cost: if is_answered { cost } else { String::new() },
        why: checked.failure.as_deref().map(|why| shorten(why, REASON)).unwrap_or_default(),
    }
}

fn document(checked: &Checked, prices: &PriceTable) -> Value {
    let cost = match checked.spent.total() {
        Cost::Known(cost) if checked.spent.calls > 0 => {
            json!({"amount": cost, "currency": prices.currency, "as_of": prices.as_of})
        }
        Cost::Known(_) | Cost::Unknown => Value::Null,
    };
    json!({
        "model": checked.model,
        "ok": checked.failure.is_none(),
        "error": checked.failure,
        "milliseconds": u64::try_from(checked.time.as_millis()).unwrap_or(u64::MAX),
        "usage": checked.spent.usage,
        "cost": cost,
    })
}
