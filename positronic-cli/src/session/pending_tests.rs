use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use positronic_core::record::{
    Gate, Path, Pending, PendingKind, RunId, RunSummary, Seq, Status, Timestamp, Usage, WaitSpec,
};
use positronic_core::store::{PendingItem, WaitingRun};
use serde_json::json;

use super::pending::{LISTED_ROWS, pending_entry};
use crate::app::{Settings, Ui};
use crate::cli::Color;
use crate::render::{ShortIds, run_table, width};

const HOUR: i64 = 3_600_000_000;

fn row(run: &str, brain: &str, status: Status, why: Option<&str>, age: i64) -> RunSummary {
    RunSummary {
        run: RunId::new(run),
        brain: brain.into(),
        version: 1,
        user: None,
        starter: None,
        tags: Vec::new(),
        conversation: None,
        after: None,
        forked_from: None,
        parent: None,
        status,
        why: why.map(str::to_owned),
        last_event: None,
        input: None,
        result: None,
        cut_off: None,
        stopped_by: None,
        tools: std::sync::Arc::default(),
        since: Timestamp(100 * HOUR - age / 2),
        started: Timestamp(100 * HOUR - age),
        at: Timestamp(100 * HOUR),
        next: Seq(12),
        usage: Usage { input: 12_345, output: 678, ..Usage::default() },
        active: None,
        cost: None,
        models: Arc::default(),
        cause: None,
        claim: None,
        refused: None,
        crashes: None,
        parked: false,
        wake: None,
        mail: false,
        pending: None,
        older_answers: Arc::default(),
    }
}

fn ui() -> Ui {
    let settings = Settings { unicode: true, ..Settings::default() };
    let (input, sink) = (Box::new(std::io::empty()), || Box::new(std::io::sink()));
    Ui { color: Color::Never, program: "desk".to_owned(), ..Ui::new(input, sink(), sink(), settings) }
}

#[test]
fn table_of_runs_fits_the_width() {
    let why = "The run has been waiting since event 7 for a person's decision about `refund` at `Chat/0.0` (249 euros \u{1b}[2J).";
    let rows = [
        row("ticket-1", "Support", Status::Waiting, Some(why), 5 * HOUR),
        row("ticket-2", "A brain with a very long title", Status::Completed, None, 90 * HOUR),
        row("ticket-3", "旅行の計画", Status::Failed, Some("the floor is wet"), HOUR / 60),
        row("ticket-4", "Support", Status::Running, None, HOUR),
    ];

    for columns in [20, 60, 100] {
        let text = run_table(
            &rows,
            &ShortIds::default(),
            &HashSet::from([RunId::new("ticket-4")]),
            &HashMap::new(),
            Timestamp(100 * HOUR),
            columns,
        );
        assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        insta::assert_snapshot!(format!("runs_{columns}"), text);
    }
}

#[test]
fn pending_items_show_the_commands_that_answer_them() {
    let pending = |kind| Pending {
        call: Path::parse("Chat/1.0").unwrap(),
        tool: "refund".to_owned(),
        arguments: Arc::new(json!({"order": "A-1001", "amount": 249})),
        since: Seq(7),
        kind,
    };
    let gate = Gate { reason: "more than 100 euros".to_owned(), valid_for: None, editable: true };
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let wait = |webhook: &str, identifier: &str| WaitSpec {
        fresh: false,
        webhook: webhook.to_owned(),
        identifier: identifier.to_owned(),
        schema: Arc::new(schema.clone()),
        prompt: None,
        person: true,
        expires: Some(Timestamp(100 * HOUR)),
        otherwise: None,
    };
    let waits = vec![wait("slack", "it's 7"), wait("reply", "")];

    let written = [PendingKind::Approval { gate, expires: None }, PendingKind::Answer { waits }].map(|kind| {
        let waiter = PendingItem {
            run: RunId::new("ticket-1"),
            brain: "Support".into(),
            at: Timestamp(95 * HOUR),
            pending: pending(kind),
            about: WaitingRun::default(),
        };
        pending_entry(&waiter, "ticket-1", None, Timestamp(98 * HOUR), (60, Some(LISTED_ROWS)), &ui())
    });

    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn long_arguments_show_their_size_first_and_print_in_full() {
    let code: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let gate = Gate { reason: "it runs".to_owned(), valid_for: None, editable: true };
    let waiter = PendingItem {
        run: RunId::new("ticket-1"),
        brain: "Support".into(),
        at: Timestamp(0),
        pending: Pending {
            call: Path::parse("Chat/1.0").unwrap(),
            tool: "run_code".to_owned(),
            arguments: Arc::new(json!({ "code": code })),
            since: Seq(7),
            kind: PendingKind::Approval { gate, expires: None },
        },
        about: WaitingRun::default(),
    };
    let written = |most| pending_entry(&waiter, "ticket-1", None, Timestamp(HOUR), (60, most), &ui());

    let listed = written(Some(LISTED_ROWS));
    assert!(listed.contains("\n  with arguments of 101 lines, 901 bytes:\n  code:\n    line 0\n"), "{listed}");
    assert!(listed.contains("\n    line 18\n  … 81 more rows: desk show ticket-1\n"), "{listed}");
    assert!(
        listed.contains("\n    desk approve ticket-1 Chat/1.0 --args @FILE\n"),
        "they are edited in a file: {listed}"
    );
    let whole = written(None);
    assert!(whole.contains("\n    line 99\n    desk approve ticket-1 Chat/1.0\n"), "{whole}");
}
