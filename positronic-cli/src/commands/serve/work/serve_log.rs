//! Lines of `serve`: one for each event that its level shows, as text or as JSON.

use positronic_core::record::{Event, EventKind, LoopOutcome, RunId, Timestamp};
use serde_json::{Map, Value, json};

use crate::cli::{LogArgs, LogFormat};
use crate::render::one_line;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Every event.
    Debug,
    /// Starts, ends and waits of runs, and what people decide.
    Info,
    /// Failures and retries.
    Warn,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
        }
    }

    /// Returns the level of an event.
    pub(super) fn of(event: &Event) -> Self {
        use EventKind as E;
        match &event.kind {
            E::BrainStart(_) | E::BrainComplete { .. } if event.path.is_root() => Self::Info,
            E::BrainCancelled { .. }
            | E::BrainResumed { .. }
            | E::BrainMigrated { .. }
            | E::UndoStart { .. }
            | E::LoopApprovalRequested { .. }
            | E::LoopApprovalDecided { .. }
            | E::LoopApprovalExpired {}
            | E::LoopWait { .. }
            | E::LoopResume { .. }
            | E::StageWait { .. }
            | E::StageResume { .. }
            | E::BudgetRequested(_)
            | E::BudgetDecided { .. }
            | E::BudgetExpired {} => Self::Info,
            E::BrainPaused { failure: None, .. } => Self::Info,
            E::BrainError(_)
            | E::BrainPaused { .. }
            | E::UndoFailed { .. }
            | E::RunNotClaimed { .. }
            | E::StepRetry { .. }
            | E::LoopModelRetry { .. }
            | E::LoopAnswerBroken { .. }
            | E::LoopToolRetry { .. }
            | E::LoopMaxIterations { .. }
            | E::LoopLimit(_)
            | E::LoopStopped { .. }
            | E::LoopPluginFailed { .. }
            | E::LoopComplete { outcome: LoopOutcome::Failed { .. }, .. } => Self::Warn,
            _ => Self::Debug,
        }
    }
}

/// What `serve` writes of its work.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServeLog {
    least: Level,
    is_json: bool,
}

impl ServeLog {
    pub(super) const fn new(args: &LogArgs) -> Self {
        let least = match (args.quiet, args.verbose) {
            (true, _) => Level::Warn,
            (false, false) => Level::Info,
            (false, true) => Level::Debug,
        };
        Self { least, is_json: matches!(args.log, LogFormat::Json) }
    }

    /// Renders a line about the process.
    pub(super) fn notice(self, level: Level, at: Timestamp, text: &str) -> Option<String> {
        self.line(level, at, text, Map::new(), "")
    }

    /// Renders an event of a run, whose name is the short form of its id.
    pub(super) fn event(self, run: &RunId, name: &str, event: &Event, text: &str) -> Option<String> {
        let fields = json!({"run": run, "seq": event.seq, "event": event.kind.name(), "path": event.path});
        let Value::Object(fields) = fields else { return None };
        self.line(Level::of(event), event.at, text, fields, name)
    }

    fn line(self, level: Level, at: Timestamp, text: &str, fields: Map<String, Value>, name: &str) -> Option<String> {
        if level < self.least {
            return None;
        }
        let time = jiff::Timestamp::from_microsecond(at.0).unwrap_or_default();
        if self.is_json {
            let mut line = json!({"timestamp": time.to_string(), "level": level.word(), "message": text});
            if let Some(all) = line.as_object_mut() {
                all.extend(fields);
            }
            return Some(line.to_string());
        }
        let gap = if name.is_empty() { "" } else { "  " };
        Some(format!("{}  {:<5}  {name}{gap}{}", time.strftime("%Y-%m-%dT%H:%M:%SZ"), level.word(), one_line(text)))
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{Path, Seq};

    use super::*;

    fn event(path: Path, kind: EventKind) -> Event {
        Event {
            seq: Seq(3),
            at: Timestamp(1_795_822_200_000_000),
            epoch: None,
            clock: None,
            with_next: false,
            path,
            kind,
        }
    }

    #[test]
    fn level_selects_the_events_and_json_has_fields() {
        let (run, args) = (RunId::new("ticket-1"), LogArgs::default());
        let [quiet, usual, verbose] = [(true, false), (false, false), (false, true)]
            .map(|(quiet, verbose)| ServeLog::new(&LogArgs { quiet, verbose, ..args }));
        let completed = event(Path::root(), EventKind::BrainComplete { result: Value::Null });
        let nested = event(Path::root().stage("Ask"), EventKind::BrainComplete { result: Value::Null });
        let line = |log: ServeLog, event: &Event| log.event(&run, "ticket-1", event, "completed\nwell");

        assert_eq!(line(usual, &completed).unwrap(), "2026-11-27T23:30:00Z  INFO   ticket-1  completed ⏎ well");
        assert_eq!([line(quiet, &completed), line(usual, &nested)], [None, None]);
        assert!(line(verbose, &nested).unwrap().contains("DEBUG"));
        let json = ServeLog::new(&LogArgs { log: LogFormat::Json, ..args });
        let json: Value = serde_json::from_str(&line(json, &completed).unwrap()).unwrap();
        assert_eq!(
            json,
            json!({
                "timestamp": "2026-11-27T23:30:00Z", "level": "INFO", "message": "completed\nwell",
                "run": "ticket-1", "seq": 3, "event": "BRAIN_COMPLETE", "path": "",
            })
        );
    }
}
