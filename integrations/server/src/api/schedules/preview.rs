//! `/schedules/{schedule}/preview`: the next times of a schedule, also before it is set.

use axum::response::Response;
use positronic_core::schedule::{self, PreviewedTime, ScheduleSpec, TimeShift};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::ScheduleBody;
use super::schedule::{invalid, known};
use crate::api::runs::list::page;
use crate::auth::Scope;
use crate::blocking::off_the_executor;
use crate::cursor::List;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/schedules/{schedule}/preview", "Compute the next times of a schedule", preview)
            .query::<PreviewQuery>()
            .returns::<List<PreviewItem>>(200)
            .problems(&[ProblemType::UnknownSchedule]),
        Route::post(
            "/api/v1/schedules/{schedule}/preview",
            "Compute the next times of a schedule that is not set yet",
            preview_of,
        )
        .scopes(&[Scope::Admin])
        .takes::<ScheduleBody>()
        .query::<PreviewQuery>()
        .returns::<List<PreviewItem>>(200)
        .problems(&[ProblemType::ScheduleInvalid]),
    ]
}

/// A time of a preview.
#[derive(Serialize, JsonSchema)]
struct PreviewItem {
    nominal: Time,
    /// The same in the schedule's zone.
    local: String,
    /// How the clock changes on that day, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<ShiftName>,
}

/// A change of the clock.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ShiftName {
    Forward,
    Back,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewQuery {
    /// The number of times: 10 by default.
    #[serde(default)]
    limit: Option<usize>,
}

async fn preview(cx: RequestContext) -> Result<Response, Problem> {
    let (record, query) = (known(&cx).await?, cx.query::<PreviewQuery>()?);
    let count = page(Some(query.limit.unwrap_or(10)))?;
    compute(&cx, record.schedule.when, count).await
}

async fn preview_of(cx: RequestContext) -> Result<Response, Problem> {
    let (body, query) = (cx.json::<ScheduleBody>()?, cx.query::<PreviewQuery>()?);
    let when = body.schedule(Value::default)?.when;
    let count = page(Some(query.limit.unwrap_or(10)))?;
    compute(&cx, when, count).await
}

/// Computes times, which takes long if they are rare.
async fn compute(cx: &RequestContext, when: ScheduleSpec, count: usize) -> Result<Response, Problem> {
    let now = cx.app.now();
    let times = off_the_executor(move || schedule::preview(&when, now, count)).await?;
    previewed(times.map_err(|error| invalid(&error))?)
}

fn previewed(times: Vec<PreviewedTime>) -> Result<Response, Problem> {
    let item = |PreviewedTime { nominal, local, shift, .. }| PreviewItem {
        nominal: Time(nominal),
        local,
        shift: shift.map(|shift| match shift {
            TimeShift::Forward => ShiftName::Forward,
            TimeShift::Back => ShiftName::Back,
        }),
    };
    json(&List::whole(times.into_iter().map(item).collect()))
}
