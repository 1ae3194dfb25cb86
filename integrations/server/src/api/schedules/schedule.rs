//! `/schedules`: reads and sets schedules, and starts runs of them.

use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use positronic_core::record::{TickCause, Timestamp};
use positronic_core::runner::{ScheduleError, Schedules};
use positronic_core::schedule::{CronError, Overlap, ScheduleRecord, SpecError, Tick, TickOutcome};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{OverlapName, ScheduleBody};
use super::trigger_key::reserved;
use crate::api::idempotency::Key;
use crate::api::runs::list::page;
use crate::api::runs::start_rules::given_options;
use crate::auth::{Scope, may_start};
use crate::cursor::{self, List, PageQuery};
use crate::problem::{FieldError, Problem, ProblemType};
use crate::redact::with_secrets;
use crate::routes::{RequestContext, Route, created, json};
use crate::time::Time;

const PATH: &str = "/api/v1/schedules/{schedule}";

pub(crate) fn routes() -> Vec<Route> {
    use ProblemType as P;
    let admin = |route: Route| route.scopes(&[Scope::Admin]);
    vec![
        Route::get("/api/v1/schedules", "List the schedules", list)
            .query::<PageQuery>()
            .returns::<ScheduleList>(200)
            .problems(&[P::BadCursor]),
        Route::get(PATH, "Read a schedule", read).returns::<ScheduleItem>(200).problems(&[P::UnknownSchedule]),
        admin(Route::new(Method::PUT, PATH, "Create or replace a schedule; `If-Match` has its version", put))
            .takes::<ScheduleBody>()
            .returns::<ScheduleItem>(200)
            .returns::<ScheduleItem>(201)
            .problems(&[
                P::InvalidPath,
                P::NotAllowed,
                P::PreconditionFailed,
                P::ScheduleInvalid,
                P::UnknownBrain,
                P::OptionsInvalid,
            ]),
        admin(Route::new(Method::DELETE, PATH, "Remove a schedule; runs that have started continue", remove))
            .returns_nothing(204)
            .problems(&[P::UnknownSchedule, P::PreconditionFailed]),
        admin(Route::post(
            "/api/v1/schedules/{schedule}/pause",
            "Pause a schedule; runs that have started continue",
            pause,
        ))
        .takes::<PauseBody>()
        .returns::<ScheduleItem>(200)
        .problems(&[P::UnknownSchedule]),
        admin(Route::post("/api/v1/schedules/{schedule}/resume", "Resume a schedule", resume))
            .returns::<ScheduleItem>(200)
            .problems(&[P::UnknownSchedule]),
        admin(Route::post("/api/v1/schedules/{schedule}/trigger", "Start a run of a schedule now", trigger))
            .takes::<TriggerBody>()
            .idempotent()
            .returns::<TickItem>(202)
            .problems(&[P::UnknownSchedule, P::NotAllowed]),
        admin(Route::post("/api/v1/schedules/{schedule}/backfill", "Start runs for past times without one", backfill))
            .takes::<BackfillBody>()
            .returns::<List<TickItem>>(202)
            .problems(&[P::UnknownSchedule, P::Unprocessable]),
        Route::get("/api/v1/schedules/{schedule}/ticks", "List what happened at the times of a schedule", ticks)
            .query::<PageQuery>()
            .returns::<List<TickItem>>(200)
            .problems(&[P::UnknownSchedule, P::BadCursor]),
    ]
}

/// A schedule.
#[derive(Serialize, JsonSchema)]
struct ScheduleItem {
    id: String,
    /// Grows with each change by a person; the `ETag`.
    version: u64,
    status: ScheduleStatus,
    /// What a person has set, as in `PUT`.
    schedule: ScheduleBody,
    created: Time,
    /// The next nominal time.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<PauseItem>,
    /// Why it starts no runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<BrokenItem>,
    /// The nominal times whose runs have not begun.
    queue: Vec<Time>,
    /// The runs that have not ended.
    running: Vec<String>,
    /// How many of the last runs have failed in a row.
    failures: u32,
}

/// Whether a schedule starts runs.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScheduleStatus {
    Active,
    Paused,
    /// Its last run could not be started, or its times cannot be computed.
    Broken,
    /// It has no time in the future.
    Ended,
}

/// Why a tick exists.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CauseName {
    Scheduled,
    Manual,
    Backfill,
}

/// What became of a tick.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutcomeName {
    /// A server starts its run.
    Due,
    /// It waits for an earlier run.
    Buffered,
    Started,
    Skipped,
    Missed,
    Unknown,
}

/// A pause of a schedule.
#[derive(Serialize, JsonSchema)]
struct PauseItem {
    at: Time,
    /// Who has paused it; absent if failed runs did.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Why a schedule could not start its last run.
#[derive(Serialize, JsonSchema)]
struct BrokenItem {
    at: Time,
    reason: String,
}

/// What happened at a time of a schedule.
#[derive(Serialize, JsonSchema)]
struct TickItem {
    nominal: Time,
    cause: CauseName,
    /// When this was recorded.
    at: Time,
    outcome: OutcomeName,
    /// The run that it starts or has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Why it starts no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// If set, the record stands for all times after this one up to `nominal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PauseBody {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TriggerBody {
    /// What happens while an earlier run has not ended; as the schedule says by default.
    #[serde(default)]
    overlap: Option<OverlapName>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackfillBody {
    /// The first time of the range.
    from: Time,
    /// The last time of the range.
    until: Time,
    /// What happens while an earlier run has not ended; `buffer_all` by default.
    #[serde(default)]
    overlap: Option<OverlapName>,
}

/// A list of schedules.
#[derive(Serialize, JsonSchema)]
struct ScheduleList {
    items: Vec<ScheduleItem>,
    /// The cursor of the next page; `null` at the end of the list.
    next: Option<String>,
    /// The schedules whose records cannot be read, such as those of a later release. Callers that see only one user's schedules see none.
    unreadable: Vec<Unreadable>,
}

/// A schedule whose record cannot be read.
#[derive(Serialize, JsonSchema)]
struct Unreadable {
    id: String,
    error: String,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let PageQuery { cursor, limit } = cx.query()?;
    let (caller, limit) = (cx.caller()?, page(limit)?);
    let filter = ("schedules", caller.only_user());
    let after = cursor.map(|text| cursor::decode::<String>(&text, &filter)).transpose()?;
    let all = cx.app.client.schedules().list().await?;
    // Whose they are is not known.
    let unreadable = all.unreadable.into_iter().filter(|_| caller.only_user().is_none());
    let unreadable = unreadable.map(|one| Unreadable { id: one.id, error: one.error.to_string() }).collect();
    let seen = |record: &ScheduleRecord| caller.only_user().is_none_or(|user| is_of(record, user));
    let is_later = |record: &ScheduleRecord| after.as_ref().is_none_or(|after| record.id > *after);
    let mut records: Vec<_> = all.schedules.into_iter().filter(seen).filter(is_later).collect();
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().filter(|_| more).map(|last| cursor::encode(&last.id, &filter));
    let mut items = Vec::with_capacity(records.len());
    for record in records {
        items.push(item(&cx, record).await?);
    }
    json(&ScheduleList { items, next, unreadable })
}

/// Returns the schedule in the path. That of another user does not exist for the caller.
pub(crate) async fn known(cx: &RequestContext) -> Result<ScheduleRecord, Problem> {
    let id = cx.param("schedule")?;
    let record = cx.app.client.schedules().get(id).await?;
    let user = cx.caller()?.only_user();
    record.filter(|record| user.is_none_or(|user| is_of(record, user))).ok_or_else(|| unknown(id))
}

fn is_of(record: &ScheduleRecord, user: &str) -> bool {
    record.schedule.user.as_deref() == Some(user)
}

fn unknown(id: &str) -> Problem {
    Problem::new(ProblemType::UnknownSchedule).detail(format!("there is no schedule `{id}`"))
}

/// Returns the schedules, on which the caller acts.
fn schedules(cx: &RequestContext) -> Result<Schedules, Problem> {
    Ok(cx.app.client.schedules().by(cx.caller()?.person()))
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    with_etag(&cx, known(&cx).await?, StatusCode::OK).await
}

async fn put(cx: RequestContext) -> Result<Response, Problem> {
    let id = cx.param("schedule")?;
    let body: ScheduleBody = cx.json()?;
    let definition = cx.app.brain(&body.brain)?;
    may_start(&cx.app.settings, cx.caller()?, &body.brain)?;
    let default = || cx.app.settings.brains.default_options(&definition);
    let mut schedule = body.schedule(default)?;
    let known = cx.app.client.schedules().get(id).await?.map(|known| known.schedule);
    schedule.options = match known.filter(|known| known.brain == schedule.brain) {
        Some(known) => with_secrets(cx.app.settings.redact.as_ref(), &known.options, schedule.options)?,
        None => given_options(&cx.app, &definition, Some(schedule.options))?.unwrap_or_default(),
    };
    cx.app.read_options(&definition, &schedule.options)?;
    let schedules = schedules(&cx)?;
    let record = match expected(&cx)? {
        Some(version) => schedules.set_if(id, schedule, version).await,
        None => schedules.set(id, schedule).await,
    };
    let record = record.map_err(problem)?;
    let status = if record.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    with_etag(&cx, record, status).await
}

/// Returns the version that the request expects: 0 if the schedule must not exist.
fn expected(cx: &RequestContext) -> Result<Option<u64>, Problem> {
    let header = |name| cx.parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if header(IF_NONE_MATCH).is_some_and(|value| value.trim() == "*") {
        return Ok(Some(0));
    }
    let Some(tag) = header(IF_MATCH) else { return Ok(None) };
    let number = tag.trim().trim_matches('"').parse();
    number.map(Some).map_err(|_| Problem::new(ProblemType::PreconditionFailed).detail("`If-Match` is not a version"))
}

async fn remove(cx: RequestContext) -> Result<Response, Problem> {
    let record = known(&cx).await?;
    let schedules = schedules(&cx)?;
    match expected(&cx)? {
        Some(version) => schedules.remove_if(&record.id, version).await.map_err(problem)?,
        None => _ = schedules.remove(&record.id).await?,
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn pause(cx: RequestContext) -> Result<Response, Problem> {
    let (id, body) = (cx.param("schedule")?, cx.json::<PauseBody>()?);
    let paused = schedules(&cx)?.pause(id, body.reason.as_deref()).await;
    with_etag(&cx, paused.map_err(problem)?, StatusCode::OK).await
}

async fn resume(cx: RequestContext) -> Result<Response, Problem> {
    let record = known(&cx).await?;
    may_start(&cx.app.settings, cx.caller()?, &record.schedule.brain)?;
    let resumed = cx.app.client.schedules().resume(&record.id).await;
    with_etag(&cx, resumed.map_err(problem)?, StatusCode::OK).await
}

async fn trigger(cx: RequestContext) -> Result<Response, Problem> {
    let (record, body) = (known(&cx).await?, cx.json::<TriggerBody>()?);
    may_start(&cx.app.settings, cx.caller()?, &record.schedule.brain)?;
    let (key, id) = (Key::of(&cx)?, &record.id);
    let reserved = reserved(&cx, &key, id, body.overlap).await?;
    let overlap = body.overlap.map(Overlap::from);
    let tick = schedules(&cx)?.trigger_at(id, reserved.nominal, overlap).await.map_err(problem)?;
    let mut response = accepted(&tick_item(id, &tick))?;
    key.mark(&mut response, reserved.is_known);
    Ok(response)
}

async fn backfill(cx: RequestContext) -> Result<Response, Problem> {
    let (record, body) = (known(&cx).await?, cx.json::<BackfillBody>()?);
    may_start(&cx.app.settings, cx.caller()?, &record.schedule.brain)?;
    let id = &record.id;
    let overlap = body.overlap.map_or(Overlap::BufferAll, Overlap::from);
    let filled = schedules(&cx)?.backfill(id, body.from.0, body.until.0, overlap).await;
    accepted(&List::whole(filled.map_err(problem)?.iter().map(|tick| tick_item(id, tick)).collect()))
}

fn accepted(value: &impl Serialize) -> Result<Response, Problem> {
    let mut response = json(value)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

async fn ticks(cx: RequestContext) -> Result<Response, Problem> {
    let (record, query) = (known(&cx).await?, cx.query::<PageQuery>()?);
    let limit = page(query.limit)?;
    let filter = ("ticks", &record.id);
    let before = query.cursor.map(|text| cursor::decode::<(Timestamp, TickCause)>(&text, &filter)).transpose()?;
    let ticks = cx.app.client.schedules().ticks(&record.id, before, limit).await.map_err(problem)?;
    let last = ticks.last().filter(|_| ticks.len() == limit);
    let next = last.map(|tick| cursor::encode(&(tick.nominal, tick.cause), &filter));
    json(&List { items: ticks.iter().map(|tick| tick_item(&record.id, tick)).collect(), next })
}

async fn with_etag(cx: &RequestContext, record: ScheduleRecord, status: StatusCode) -> Result<Response, Problem> {
    let (id, etag) = (record.id.clone(), format!("\"{}\"", record.version));
    let item = item(cx, record).await?;
    let mut response = if status == StatusCode::CREATED { created("", &id, &item)? } else { json(&item)? };
    if let Ok(etag) = HeaderValue::try_from(etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    Ok(response)
}

/// Returns the started runs of a schedule that have not ended. A server notes their end when it checks the schedule again.
async fn running(cx: &RequestContext, record: &ScheduleRecord) -> Result<Vec<String>, Problem> {
    let mut running = Vec::new();
    for tick in &record.running {
        match cx.app.client.store().run(&tick.run).await {
            Ok(row) if row.status.is_over() => {}
            Ok(_) => running.push(tick.run.to_string()),
            Err(StoreError::NoSuchRun { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(running)
}

async fn item(cx: &RequestContext, record: ScheduleRecord) -> Result<ScheduleItem, Problem> {
    let status = match &record {
        ScheduleRecord { paused: Some(_), .. } => ScheduleStatus::Paused,
        ScheduleRecord { broken: Some(_), .. } => ScheduleStatus::Broken,
        ScheduleRecord { next: None, .. } => ScheduleStatus::Ended,
        _ => ScheduleStatus::Active,
    };
    Ok(ScheduleItem {
        running: running(cx, &record).await?,
        status,
        schedule: ScheduleBody::of(record.schedule),
        version: record.version,
        created: Time(record.created),
        next: record.next.map(Time),
        paused: record.paused.map(|paused| PauseItem { at: Time(paused.at), by: paused.by, reason: paused.reason }),
        broken: record.broken.map(|broken| BrokenItem { at: Time(broken.at), reason: broken.reason }),
        queue: record.queue.iter().map(|tick| Time(tick.nominal)).collect(),
        failures: record.failures,
        id: record.id,
    })
}

fn tick_item(schedule: &str, tick: &Tick) -> TickItem {
    let (outcome, reason) = match &tick.outcome {
        TickOutcome::Due => (OutcomeName::Due, None),
        TickOutcome::Buffered => (OutcomeName::Buffered, None),
        TickOutcome::Started { .. } => (OutcomeName::Started, None),
        TickOutcome::Skipped { reason } => (OutcomeName::Skipped, Some(reason)),
        TickOutcome::Missed { reason } => (OutcomeName::Missed, Some(reason)),
        _ => (OutcomeName::Unknown, None),
    };
    TickItem {
        nominal: Time(tick.nominal),
        cause: match tick.cause {
            TickCause::Manual => CauseName::Manual,
            TickCause::Backfill => CauseName::Backfill,
            _ => CauseName::Scheduled,
        },
        at: Time(tick.at),
        outcome,
        run: reason.is_none().then(|| tick.scheduled(schedule).run().to_string()),
        reason: reason.map(ToString::to_string),
        since: tick.since.map(Time),
    }
}

fn changed(id: &str, version: u64) -> Problem {
    let detail = format!("the schedule `{id}` has version {version}");
    Problem::new(ProblemType::PreconditionFailed).detail(detail).field("version", version)
}

pub(crate) fn problem(error: ScheduleError) -> Problem {
    match error {
        ScheduleError::Store(error) => error.into(),
        ScheduleError::NotFound { id } => unknown(&id),
        ScheduleError::Changed { id, version } => changed(&id, version),
        ScheduleError::Spec(error) => invalid(&error),
        error @ ScheduleError::Id { .. } => Problem::new(ProblemType::InvalidPath).detail(error),
        error => Problem::new(ProblemType::Unprocessable).detail(error),
    }
}

/// Names the invalid place of a specification; a cron expression's also with its position.
pub(crate) fn invalid(error: &SpecError) -> Problem {
    let problem = Problem::new(ProblemType::ScheduleInvalid).detail(error);
    let pointer = match error {
        SpecError::Cron { error: CronError { position, .. }, index, .. } => {
            let place = FieldError::new(format!("/cron/{index}"), error.to_string());
            return problem.errors(vec![place]).field("position", position);
        }
        SpecError::Zone { .. } => "/zone",
        SpecError::Interval => "/every",
        SpecError::Jitter => "/jitter_seconds",
        SpecError::Dates { .. } => "/exclude",
        SpecError::TooMany { list, .. } => {
            let place = FieldError::new(format!("/{list}"), error.to_string());
            return problem.errors(vec![place]);
        }
        _ => "",
    };
    problem.errors(vec![FieldError::new(pointer, error.to_string())])
}
