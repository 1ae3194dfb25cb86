//! `/brains`: what runs can be started of.

use std::sync::Arc;

use axum::response::Response;
use positronic_core::definition::BrainDefinition;
use positronic_core::dsl::Structure;
use positronic_core::record::Status;
use positronic_core::store::{RunFilter, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::runs::next_model::NextModel;
use crate::api::pending::pending_item::Allowed;
use crate::app::App;
use crate::auth::{Caller, Scope, may_start};
use crate::cursor::List;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

/// How many of the last runs the figures are about.
const RECENT: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/brains", "List the brains of this server", list).returns::<List<BrainItem>>(200),
        Route::get("/api/v1/brains/{title}", "Read a brain, with figures of its last runs", brain)
            .returns::<BrainItem>(200)
            .problems(&[ProblemType::UnknownBrain]),
    ]
}

/// A brain.
#[derive(Serialize, JsonSchema)]
struct BrainItem {
    title: String,
    version: u32,
    /// The hash that identifies the code of its stages.
    fingerprint: String,
    description: String,
    /// The JSON schema of its options.
    options_schema: Value,
    /// The options of a start that names none.
    default_options: Value,
    stages: Vec<StageItem>,
    /// The stages with the brains that they run; only in the answer for one brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    structure: Option<Structure>,
    /// The webhooks that start runs of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    starts_on: Vec<String>,
    /// Whether the caller may start runs of it.
    start: Allowed,
    /// Which model would answer in a run of it; only in the answer for one brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<NextModel>,
    /// Figures of its last runs; only in the answer for one brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<RecentRuns>,
}

/// A stage of a brain.
#[derive(Serialize, JsonSchema)]
struct StageItem {
    name: String,
    /// `step`, `loop`, `brain`, …
    kind: String,
}

/// Figures of the last 100 runs that have ended.
#[derive(Serialize, JsonSchema)]
struct RecentRuns {
    completed: usize,
    failed: usize,
    cancelled: usize,
    /// The median of the time from start to end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<u64>,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let (app, caller) = (&cx.app, cx.caller()?);
    let items = app.settings.brains.definitions().iter().map(|brain| item(app, caller, brain, None)).collect();
    json(&List::whole(items))
}

async fn brain(cx: RequestContext) -> Result<Response, Problem> {
    let (app, definition) = (&cx.app, cx.app.brain(cx.param("title")?)?);
    let recent = recent(app, cx.caller()?, &definition.title).await?;
    let mut item = item(app, cx.caller()?, &definition, Some(recent));
    item.model = Some(NextModel::of(app, &definition.title, &[]).await);
    json(&item)
}

impl App {
    /// Returns the brain with this title.
    pub(crate) fn brain(&self, title: &str) -> Result<Arc<BrainDefinition>, Problem> {
        let found = self.settings.brains.definitions().into_iter().find(|brain| brain.title == title);
        found.ok_or_else(|| {
            Problem::new(ProblemType::UnknownBrain)
                .detail(format!("there is no brain `{title}`; `GET /api/v1/brains` lists them"))
        })
    }
}

fn item(app: &App, caller: &Caller, brain: &BrainDefinition, recent: Option<RecentRuns>) -> BrainItem {
    let stages = brain.stages.iter();
    BrainItem {
        title: brain.title.clone(),
        version: brain.version,
        fingerprint: brain.fingerprint().to_string(),
        description: brain.description.clone(),
        options_schema: Value::clone(brain.options.json()),
        default_options: app.settings.brains.default_options(brain),
        stages: stages
            .map(|stage| StageItem { name: stage.name.clone(), kind: stage.body.kind().to_string() })
            .collect(),
        structure: recent.is_some().then(|| brain.structure()),
        starts_on: starts_on(app, &brain.title),
        start: match (Allowed::to(app, caller, Scope::Run), may_start(&app.settings, caller, &brain.title)) {
            (allowed, Err(_)) if allowed.allowed => Allowed::no(&"the caller may not start runs of this brain"),
            (allowed, _) => allowed,
        },
        model: None,
        recent,
    }
}

/// Returns the webhooks that start runs of a brain.
fn starts_on(app: &App, title: &str) -> Vec<String> {
    let starts = app.settings.brains.starts();
    starts.iter().filter(|start| start.brain == title).map(|start| start.webhook.clone()).collect()
}

async fn recent(app: &App, caller: &Caller, title: &str) -> Result<RecentRuns, StoreError> {
    let over = vec![Status::Completed, Status::Failed, Status::Cancelled];
    let mut filter = RunFilter::builder().brain(title).status(over).limit(RECENT).build();
    filter.user = caller.only_user().map(str::to_owned);
    let rows = app.client.store().runs(&filter).await?;
    let count = |status| rows.iter().filter(|row| row.status == status).count();
    let ended = rows.iter().filter(|row| row.status != Status::Cancelled);
    let mut times: Vec<u64> =
        ended.map(|row| u64::try_from(row.at.since(row.started).as_millis()).unwrap_or(u64::MAX)).collect();
    times.sort_unstable();
    // The nearest rank: the first time that so many percent of the runs do not exceed.
    let quantile = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Ok(RecentRuns {
        completed: count(Status::Completed),
        failed: count(Status::Failed),
        cancelled: count(Status::Cancelled),
        p50_ms: quantile(50),
        p95_ms: quantile(95),
    })
}
