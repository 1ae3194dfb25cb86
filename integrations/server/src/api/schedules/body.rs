//! What a person sets of a schedule, as JSON.

use std::time::Duration;

use positronic_core::record::Budget;
use positronic_core::schedule::{CatchUp, DateRange, Interval, Overlap, Schedule, ScheduleSpec, SpecError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::problem::{FieldError, Problem, ProblemType};
use crate::time::Time;

/// A schedule to set.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleBody {
    /// The title of the brain that it starts.
    pub(crate) brain: String,
    /// The options, which match the brain's schema; its default options by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
    /// The message that opens the first loop of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The user that the runs belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The budget of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BudgetBody>")]
    budget: Option<Box<Budget>>,
    /// Cron expressions, such as `0 9 * * MON-FRI`.
    #[serde(default)]
    cron: Vec<String>,
    /// Intervals, which count from 1970-01-01 UTC.
    #[serde(default)]
    every: Vec<IntervalBody>,
    /// Single times.
    #[serde(default)]
    at: Vec<Time>,
    /// The IANA time zone of cron expressions and excluded dates; UTC by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<Time>,
    /// Dates without times: `2026-12-24` or `2026-12-24/2026-12-31`.
    #[serde(default)]
    exclude: Vec<String>,
    /// Each run starts at a random but fixed delay below this one.
    #[serde(default)]
    jitter_seconds: u64,
    /// What a tick does while an earlier run has not ended.
    #[serde(default)]
    overlap: OverlapName,
    /// What happens to missed times.
    #[serde(default)]
    catch_up: CatchUpBody,
    /// Pauses the schedule after this many failed runs in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pause_on_failure: Option<u32>,
}

/// The budget of a run.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is the schema of the core's type")]
struct BudgetBody {
    max_iterations: Option<u64>,
    max_tokens: Option<u64>,
    /// A decimal number as text, such as `2.50`.
    max_money: Option<String>,
    /// Microseconds of active time.
    max_time: Option<u64>,
    /// What happens at a limit, as in an export of a run.
    on_limit: Option<String>,
    /// Whether a person is asked for more first.
    ask: Option<AskBody>,
}

/// How a person is asked for more of a budget.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is the schema of the core's type")]
struct AskBody {
    /// How long the request is valid, in microseconds.
    valid_for: Option<u64>,
}

/// An interval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IntervalBody {
    seconds: u64,
    #[serde(default)]
    offset_seconds: u64,
}

/// What a tick does while an earlier run has not ended.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverlapName {
    #[default]
    Skip,
    BufferOne,
    BufferAll,
    CancelOther,
    Allow,
}

/// What happens to missed times.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CatchUpBody {
    mode: CatchUpMode,
    /// How long ago a missed time may be.
    #[serde(default = "hour")]
    within_seconds: u64,
    /// The largest number of missed times that start a run with the mode `all`.
    #[serde(default = "hundred")]
    most: u32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CatchUpMode {
    None,
    Latest,
    All,
}

const fn hour() -> u64 {
    60 * 60
}

const fn hundred() -> u32 {
    100
}

impl Default for CatchUpBody {
    fn default() -> Self {
        Self { mode: CatchUpMode::Latest, within_seconds: hour(), most: hundred() }
    }
}

impl From<OverlapName> for Overlap {
    fn from(name: OverlapName) -> Self {
        match name {
            OverlapName::Skip => Self::Skip,
            OverlapName::BufferOne => Self::BufferOne,
            OverlapName::BufferAll => Self::BufferAll,
            OverlapName::CancelOther => Self::CancelOther,
            OverlapName::Allow => Self::Allow,
        }
    }
}

impl ScheduleBody {
    /// Returns the schedule; `options` are those of a brain that is started without any.
    pub(crate) fn schedule(self, options: impl FnOnce() -> Value) -> Result<Schedule, Problem> {
        let exclude = |(index, text): (usize, &String)| {
            text.parse::<DateRange>().map_err(|error: SpecError| {
                let errors = vec![FieldError::new(format!("/exclude/{index}"), error.to_string())];
                Problem::new(ProblemType::ScheduleInvalid).detail(error).errors(errors)
            })
        };
        let mut when = ScheduleSpec::default();
        when.exclude = self.exclude.iter().enumerate().map(exclude).collect::<Result<_, _>>()?;
        let interval = |body: &IntervalBody| Interval {
            every: Duration::from_secs(body.seconds),
            offset: Duration::from_secs(body.offset_seconds),
        };
        when.every = self.every.iter().map(interval).collect();
        when.at = self.at.iter().map(|time| time.0).collect();
        (when.start, when.end) = (self.start.map(|time| time.0), self.end.map(|time| time.0));
        (when.cron, when.zone, when.jitter) = (self.cron, self.zone, Duration::from_secs(self.jitter_seconds));
        let CatchUpBody { mode, within_seconds, most } = self.catch_up;
        let within = Duration::from_secs(within_seconds);
        let mut schedule = Schedule::new(self.brain)
            .when(when)
            .options(self.options.unwrap_or_else(options))
            .overlap(self.overlap.into())
            .catch_up(match mode {
                CatchUpMode::None => CatchUp::None,
                CatchUpMode::Latest => CatchUp::Latest { within },
                CatchUpMode::All => CatchUp::All { within, most },
            });
        (schedule.message, schedule.user, schedule.budget) = (self.message, self.user, self.budget);
        schedule.pause_on_failure = self.pause_on_failure;
        Ok(schedule)
    }

    /// Returns what a person has set, to be shown or set again.
    pub(crate) fn of(schedule: Schedule) -> Self {
        let when = schedule.when;
        let interval = |interval: &Interval| IntervalBody {
            seconds: interval.every.as_secs(),
            offset_seconds: interval.offset.as_secs(),
        };
        let catch_up = |mode, within: Duration, most| CatchUpBody { mode, within_seconds: within.as_secs(), most };
        Self {
            brain: schedule.brain,
            options: Some(schedule.options),
            message: schedule.message,
            user: schedule.user,
            budget: schedule.budget,
            every: when.every.iter().map(interval).collect(),
            cron: when.cron,
            at: when.at.into_iter().map(Time).collect(),
            zone: when.zone,
            start: when.start.map(Time),
            end: when.end.map(Time),
            exclude: when.exclude.iter().map(ToString::to_string).collect(),
            jitter_seconds: when.jitter.as_secs(),
            overlap: match schedule.overlap {
                Overlap::BufferOne => OverlapName::BufferOne,
                Overlap::BufferAll => OverlapName::BufferAll,
                Overlap::CancelOther => OverlapName::CancelOther,
                Overlap::Allow => OverlapName::Allow,
                _ => OverlapName::Skip,
            },
            catch_up: match schedule.catch_up {
                CatchUp::None => catch_up(CatchUpMode::None, CatchUp::ON_TIME, hundred()),
                CatchUp::All { within, most } => catch_up(CatchUpMode::All, within, most),
                policy => catch_up(CatchUpMode::Latest, policy.within(), hundred()),
            },
            pause_on_failure: schedule.pause_on_failure,
        }
    }
}
