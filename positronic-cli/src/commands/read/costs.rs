//! `positronic costs`: what the models of all runs cost, by brain, model, user or day.
//!
//! The logs are read a few at a time and only their sums are kept. An answer that a fork shares with its origin
//! is counted only there, as in all sums over runs.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use positronic_core::prices::PriceTable;
use positronic_core::projection::{CallCost, Cost, Spent};
use positronic_core::record::{RunId, RunSummary, Seq, Timestamp};
use positronic_core::runner::{Client, Clock as _, SystemClock};
use positronic_core::store::{RunFilter, RunPages, StoreError};
use serde_json::{Value, json};

use crate::app::{Failure, ProjectStore, Ui, price_table};
use crate::cli::{CostKey, CostsArgs, Exit, earlier};
use crate::render::figures::many;
use crate::render::{CostRow, cost_table};

/// How many logs are read at once.
const READERS: usize = 4;

pub(crate) async fn costs(args: &CostsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let prices = price_table(args.prices.as_deref(), &ui.settings)?;
    let store = ProjectStore::open_to_read(ui).await?;
    let since = args.since.map(|age| earlier(SystemClock.now(), age));
    let mut sums = Sums::new(args.by.clone(), since, prices);
    for (run, error) in sums.add_runs(&store.client()).await? {
        ui.notice(&format!("skipped {run}, whose costs are missing here: {error}"))?;
    }
    if args.json {
        for (key, sum) in &sums.groups {
            ui.json_line(&sums.document(Some(key), sum))?;
        }
        ui.json_line(&sums.document(None, &sums.total))?;
        return Ok(Exit::Done);
    }
    if sums.total.spent.calls == 0 {
        ui.notice(&match args.since {
            Some(_) => format!("no model has answered within this time in the runs of {}", store.location),
            None => format!("no model has answered in the runs of {} yet", store.location),
        })?;
        return Ok(Exit::Done);
    }
    let heads: Vec<_> = sums.by.iter().map(|key| name(*key)).collect();
    let mut rows: Vec<_> = sums.groups.iter().map(|(key, sum)| sum.row(shown(key))).collect();
    rows.push(sums.total.row(vec!["total".to_owned()]));
    ui.print(cost_table(&heads, &rows, &sums.prices.currency, ui.columns()).trim_end())?;
    ui.notice(&format!("by the prices of {}", sums.prices.as_of))?;
    if sums.total.spent.unpriced > 0 {
        let models: Vec<&str> = sums.unpriced.iter().map(String::as_str).collect();
        let answers = many(sums.total.spent.unpriced, "answer");
        ui.notice(&format!("in no sum: {answers} with an unknown cost, of {}", models.join(", ")))?;
        ui.notice("--prices FILE gives the prices of models")?;
    }
    Ok(Exit::Done)
}

const fn name(key: CostKey) -> &'static str {
    match key {
        CostKey::Brain => "brain",
        CostKey::Model => "model",
        CostKey::User => "user",
        CostKey::Day => "day",
    }
}

fn shown(key: &[Option<String>]) -> Vec<String> {
    key.iter().map(|value| value.clone().unwrap_or_else(|| "-".to_owned())).collect()
}

/// The values of a group, in the order of its keys. A run without a user has none.
type Key = Vec<Option<String>>;

/// The sum over the answers of a group.
#[derive(Default)]
struct Sum {
    runs: u64,
    spent: Spent,
}

impl Sum {
    fn row(&self, key: Vec<String>) -> CostRow {
        CostRow { key, runs: self.runs, spent: self.spent }
    }
}

/// Sums over the runs of a store.
struct Sums {
    by: Vec<CostKey>,
    since: Option<Timestamp>,
    prices: PriceTable,
    groups: BTreeMap<Key, Sum>,
    total: Sum,
    /// The models of answers with an unknown cost.
    unpriced: BTreeSet<String>,
}

impl Sums {
    fn new(by: Vec<CostKey>, since: Option<Timestamp>, prices: PriceTable) -> Self {
        let (groups, total, unpriced) = (BTreeMap::new(), Sum::default(), BTreeSet::new());
        Self { by, since, prices, groups, total, unpriced }
    }

    /// Adds all runs, and returns those whose logs cannot be read.
    async fn add_runs(&mut self, client: &Client) -> Result<Vec<(RunId, StoreError)>, StoreError> {
        let mut filter = RunFilter::builder().build();
        filter.since = self.since;
        let mut pages = RunPages::new(client.store(), filter);
        let mut unreadable = Vec::new();
        while let Some(page) = pages.next().await? {
            let prices = self.prices.clone();
            let prices = &prices;
            let reads = page.iter().map(|row| async move { (row, calls(client, row, prices).await) });
            let mut reads = futures::stream::iter(reads).buffered(READERS);
            while let Some((row, calls)) = reads.next().await {
                match calls {
                    Ok(calls) => self.add(row, &calls),
                    // It was pruned meanwhile.
                    Err(StoreError::NoSuchRun { .. }) => {}
                    Err(error @ (StoreError::Corrupt { .. } | StoreError::Damaged { .. })) => {
                        unreadable.push((row.run.clone(), error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(unreadable)
    }

    fn add(&mut self, row: &RunSummary, calls: &[(Timestamp, CallCost)]) {
        let shared = row.forked_from.as_ref().map(|(_, at)| *at);
        let mut touched = BTreeSet::new();
        for (at, call) in calls {
            if shared.is_some_and(|shared| call.seq <= shared) || self.since.is_some_and(|since| *at < since) {
                continue;
            }
            let key: Key = self.by.iter().map(|key| value(*key, row, *at, call)).collect();
            let sum = self.groups.entry(key.clone()).or_default();
            sum.spent += call;
            sum.runs += u64::from(touched.insert(key));
            self.total.spent += call;
            if call.cost == Cost::Unknown {
                self.unpriced.insert(call.model.clone());
            }
        }
        self.total.runs += u64::from(!touched.is_empty());
    }

    fn document(&self, key: Option<&Key>, sum: &Sum) -> Value {
        let mut document = json!({
            "runs": sum.runs,
            "answers": sum.spent.calls,
            "usage": sum.spent.usage,
            "cost": sum.spent.known,
            "currency": self.prices.currency,
            "as_of": self.prices.as_of,
            "unpriced": sum.spent.unpriced,
        });
        if let Some(fields) = document.as_object_mut() {
            match key {
                Some(key) => {
                    fields.extend(self.by.iter().zip(key).map(|(by, value)| (name(*by).to_owned(), json!(value))));
                }
                None => {
                    fields.insert("total".to_owned(), json!(true));
                    fields.insert("unpriced_models".to_owned(), json!(self.unpriced));
                }
            }
        }
        document
    }
}

fn value(key: CostKey, row: &RunSummary, at: Timestamp, call: &CallCost) -> Option<String> {
    match key {
        CostKey::Brain => Some(row.brain.to_string()),
        CostKey::Model => Some(call.model.clone()),
        CostKey::User => row.user.clone(),
        CostKey::Day => Some(at.to_string().chars().take(DAY).collect()),
    }
}

/// The number of characters of a day: `2026-11-26`.
const DAY: usize = 10;

/// Reads the answers of a run, each with its time.
async fn calls(
    client: &Client,
    row: &RunSummary,
    prices: &PriceTable,
) -> Result<Vec<(Timestamp, CallCost)>, StoreError> {
    let log = client.events(&row.run, Seq(0)).await?;
    Ok(log.iter().filter_map(|event| Some((event.at, CallCost::of(event, prices)?))).collect())
}
