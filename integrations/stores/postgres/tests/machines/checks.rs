//! The promises, checked against logs and the ledger.

use std::collections::BTreeMap;

use positronic_core::machine::RunState;
use positronic_core::record::{Event, EventKind, Path, RunId, Seq, Status, ToolResult};
use positronic_core::store::prelude::*;
use serde_json::Value;

use crate::brains::is_repeatable;
use crate::cluster::Cluster;
use crate::ledger::What;

/// What happened in runs.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) events: usize,
    pub(crate) claims: usize,
    pub(crate) calls: usize,
    pub(crate) interrupted: usize,
    /// How many calls were refused for their arguments.
    pub(crate) refused: usize,
    /// How many effects of repeatable calls happened again.
    pub(crate) repeated: usize,
}

/// A call of a run.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) path: Path,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) result: ToolResult,
    starts: usize,
}

pub(crate) async fn log(cluster: &Cluster, run: &RunId) -> Vec<Event> {
    let log = cluster.store.read(run, Seq(0), usize::MAX).await.unwrap();
    log.iter().map(|event| (**event).clone()).collect()
}

/// Lists the calls of a log in order. Each has exactly one result.
pub(crate) fn calls(log: &[Event]) -> Vec<Made> {
    let made = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopToolCall(call) => Some((event.path.clone(), call)),
        _ => None,
    });
    made.map(|(path, call)| {
        let of_call: Vec<_> = log.iter().filter(|event| event.path == path).collect();
        let results: Vec<_> = of_call
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::LoopToolResult { result, .. } => Some(result.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results.len(), 1, "{path}: {of_call:#?}");
        let starts = of_call.iter().filter(|event| matches!(event.kind, EventKind::LoopToolStart { .. })).count();
        let (tool, arguments) = (call.tool.clone(), Value::clone(&call.arguments));
        Made { path, tool, arguments, result: results[0].clone(), starts }
    })
    .collect()
}

/// Checks that each run has completed with a legal log with one committer at a time, and that its effects are those of
/// its log: each recorded once, and nothing repeated that is not repeatable.
pub(crate) async fn check(cluster: &Cluster, runs: &[RunId]) -> Figures {
    let mut effects: BTreeMap<(RunId, Path), Vec<What>> = BTreeMap::new();
    for entry in cluster.ledger.all() {
        effects.entry((entry.run, entry.call)).or_default().push(entry.what);
    }
    let mut figures = Figures::default();
    for run in runs {
        let log = log(cluster, run).await;
        assert_eq!(cluster.row(run).await.status, Status::Completed, "`{run}`");
        RunState::replay(&log).unwrap_or_else(|error| panic!("`{run}`: {error}"));
        check_committers(run, &log);
        figures.events += log.len();
        figures.claims += log.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. })).count();
        for made in calls(&log) {
            let happened = effects.remove(&(run.clone(), made.path.clone())).unwrap_or_default();
            let count = |what| happened.iter().filter(|other| **other == what).count();
            let (begun, ended) = (count(What::Begin), count(What::End));
            let place = format!("`{run}` {made:?}: {happened:?}");
            figures.calls += 1;
            assert!(begun <= made.starts, "an effect began without its start in the log: {place}");
            if is_repeatable(&made.tool) {
                figures.repeated += begun.saturating_sub(1);
            } else {
                assert!(begun <= 1, "it ran twice: {place}");
            }
            match made.result {
                // It waits for a person, and has no effect.
                ToolResult::Success { .. } if made.tool == "say" => {}
                ToolResult::Success { .. } => assert!(ended >= 1, "a success without its effect: {place}"),
                ToolResult::Interrupted { .. } => {
                    assert!(!is_repeatable(&made.tool), "{place}");
                    figures.interrupted += 1;
                }
                // Arguments that do not match their schema are refused before the call starts.
                ToolResult::Error { message } if message.contains("the arguments") => {
                    assert!(made.starts == 0 && happened.is_empty(), "a refused call was started: {place}");
                    figures.refused += 1;
                }
                _ => panic!("{place}"),
            }
        }
    }
    effects.retain(|(run, _), _| runs.contains(run));
    assert!(effects.is_empty(), "effects that no log has: {effects:?}");
    figures
}

/// Checks that each event of a worker has the epoch of the last claim.
fn check_committers(run: &RunId, log: &[Event]) {
    let mut held = None;
    for event in log {
        if matches!(event.kind, EventKind::RunClaimed { .. }) {
            assert!(event.epoch > held, "`{run}`: {event:?}");
            held = event.epoch;
        }
        assert!(event.epoch.is_none() || event.epoch == held, "`{run}`: {event:?}");
    }
}
