//! Arguments of `schedule`.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use positronic_core::record::Timestamp;
use positronic_core::schedule::{DateRange, Overlap};

use super::brains::OptionArgs;
use super::signals::By;
use super::value_parsers::{age, limit, name, text};

/// Notes in `schedule add --help`.
const ADD: &str = "\
A cron expression has five fields: minute, hour, day of the month, month, day of the week; with seconds before them six. It \
knows names (MON, JAN), L, W and #, and @hourly, @daily, @weekly, @monthly and @yearly. On the days on which the clock changes, \
a fixed time counts once: a skipped time moves to the end of the gap. `schedule preview` shows the next times.

`work` and `serve` start the runs. A run that waits for a person has not ended.";

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    pub(crate) what: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Add a schedule, or replace one
    Add(Box<ScheduleAddArgs>),
    /// List schedules, or what happened at the times of one
    List(ScheduleListArgs),
    /// Pause a schedule; runs that have started continue
    Pause(SchedulePauseArgs),
    /// Resume a schedule; times missed during the pause start no runs
    Resume(ScheduleIdArgs),
    /// Remove a schedule; runs that have started continue
    Remove(ScheduleIdArgs),
    /// Show the next times of a schedule, or of given times
    Preview(SchedulePreviewArgs),
    /// Start a run of a schedule now
    Trigger(ScheduleTriggerArgs),
    /// Start runs for past times that have none
    Backfill(ScheduleBackfillArgs),
}

/// When a schedule starts runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Times")]
pub(crate) struct WhenArgs {
    /// Cron expression, such as "0 9 * * MON-FRI"; repeatable
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Vec<String>,
    /// Interval, such as 15m, 6h or 1d, counted from 1970-01-01 UTC; repeatable
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) every: Vec<Duration>,
    /// Single time, such as 2026-12-24T18:00:00+01:00; repeatable
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Vec<Timestamp>,
    /// IANA time zone of cron expressions and excluded dates [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// No time before this one
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) start: Option<Timestamp>,
    /// No time after this one
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) end: Option<Timestamp>,
    /// No time on a date, such as 2026-12-24 or 2026-12-24/2026-12-31; repeatable
    #[arg(long, value_name = "DATES", value_parser = dates)]
    pub(crate) exclude: Vec<DateRange>,
    /// Delay each run by a random time below this one
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) jitter: Option<Duration>,
}

/// Which missed times start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CatchUpArg {
    /// None
    None,
    /// The latest one
    #[default]
    Latest,
    /// All, at most 100
    All,
}

#[derive(Debug, Args)]
#[command(after_help = ADD)]
pub(crate) struct ScheduleAddArgs {
    /// Name of the schedule, of letters, digits and the characters - . _
    pub(crate) id: String,
    /// The brain's title or a prefix of it; case, spaces and dashes are ignored
    pub(crate) brain: String,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    /// Message to the brain: its first loop begins with it
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(crate) message: Option<String>,
    /// The user that the runs belong to
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) when: WhenArgs,
    /// What happens while an earlier run has not ended
    #[arg(long, value_name = "POLICY", value_parser = overlap(), default_value = "skip", help_heading = "Policies")]
    pub(crate) overlap: Overlap,
    /// Which times that were missed start a run
    #[arg(long, value_name = "WHICH", value_enum, default_value_t, help_heading = "Policies")]
    pub(crate) catch_up: CatchUpArg,
    /// How long ago a missed time may be
    #[arg(long, value_name = "TIME", value_parser = age, default_value = "1h", help_heading = "Policies")]
    pub(crate) within: Duration,
    /// Pause the schedule after this many failed runs in a row
    #[arg(long, value_name = "NUMBER", help_heading = "Policies")]
    pub(crate) pause_on_failure: Option<u32>,
    /// Replace the schedule if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleListArgs {
    /// The schedule whose ticks are listed, the last one first [default: list all schedules]
    pub(crate) id: Option<String>,
    /// Largest number of ticks
    #[arg(long, value_name = "NUMBER", default_value_t = 20, requires = "id")]
    pub(crate) limit: usize,
    /// Write JSON, one schedule or tick per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleIdArgs {
    /// The schedule
    pub(crate) id: String,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchedulePauseArgs {
    /// The schedule
    pub(crate) id: String,
    /// Reason
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct SchedulePreviewArgs {
    /// The schedule [default: the times of the flags]
    #[arg(conflicts_with_all = ["cron", "every", "at"])]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) when: WhenArgs,
    /// Number of times
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) count: NonZeroUsize,
    /// Write JSON, one time per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleTriggerArgs {
    /// The schedule
    pub(crate) id: String,
    /// What happens while an earlier run has not ended [default: as the schedule says]
    #[arg(long, value_name = "POLICY", value_parser = overlap())]
    pub(crate) overlap: Option<Overlap>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleBackfillArgs {
    /// The schedule
    pub(crate) id: String,
    /// The first time of the range
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) from: Timestamp,
    /// The last time of the range
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Timestamp,
    /// What happens while an earlier run has not ended
    #[arg(long, value_name = "POLICY", value_parser = overlap(), default_value = "buffer-all")]
    pub(crate) overlap: Overlap,
    /// Write JSON, one tick per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a time with its offset.
fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|error| format!("{error}; write it as 2026-12-24T18:00:00+01:00"))
}

fn dates(text: &str) -> Result<DateRange, String> {
    text.parse().map_err(|error: positronic_core::schedule::SpecError| error.to_string())
}

/// The policies of overlap and their names.
const OVERLAPS: [(&str, Overlap); 5] = [
    ("skip", Overlap::Skip),
    ("buffer-one", Overlap::BufferOne),
    ("buffer-all", Overlap::BufferAll),
    ("cancel-other", Overlap::CancelOther),
    ("allow", Overlap::Allow),
];

fn overlap() -> impl TypedValueParser<Value = Overlap> {
    let names = PossibleValuesParser::new(OVERLAPS.map(|(name, _)| name));
    names.map(|word| OVERLAPS.into_iter().find(|(name, _)| *name == word).map(|(_, policy)| policy).unwrap_or_default())
}
