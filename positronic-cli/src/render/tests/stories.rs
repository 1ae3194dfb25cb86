//! Short runs for tests, written by hand.

use std::time::Duration;

use positronic_core::record::{
    Actor, BrainStart, CallFlags, Change, Decision, Delta, DeltaKind, EndReason, Event, EventKind, Failure, Limits,
    LoopOutcome, ModelError, ModelErrorKind, NewEvent, Part, Path, ResponseMetadata, Seq, Shape, SideOutput, SignalId,
    StageKind, StageShape, Timestamp, ToolCall, ToolResult, Usage, WaitSpec, WidgetOutput, hash_text,
};
use serde_json::{Value, json};

/// An input of a view.
#[derive(Debug, Clone)]
pub(crate) enum Beat {
    Event(Box<Event>),
    Delta(Delta),
}

/// A run under construction: each event follows the previous one after some milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) beats: Vec<Beat>,
    now: i64,
    seq: u64,
    take: u32,
    /// The iteration of the last piece, and the number of its pieces.
    pieces: (String, u32),
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

impl Story {
    /// Returns the time after the last event.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now)
    }

    pub(crate) fn after(mut self, millis: i64) -> Self {
        self.now += millis * 1_000;
        self
    }

    pub(crate) fn event(mut self, at: &str, kind: EventKind) -> Self {
        let NewEvent { path, kind, .. } = NewEvent::new(path(at), kind);
        let event = Event {
            seq: Seq(self.seq),
            at: Timestamp(self.now),
            epoch: None,
            clock: None,
            with_next: false,
            path,
            kind,
        };
        self.beats.push(Beat::Event(Box::new(event)));
        self.seq += 1;
        self
    }

    /// Lets another model answer from the beginning: its pieces replace the earlier ones.
    pub(crate) fn anew(mut self) -> Self {
        self.take += 1;
        self.pieces = Default::default();
        self
    }

    pub(crate) fn delta(mut self, at: &str, kind: DeltaKind, text: &str) -> Self {
        let call = (kind == DeltaKind::Arguments).then_some(0);
        let tool = call.map(|_| "search_docs".to_owned());
        if self.pieces.0 != at {
            self.pieces = (at.to_owned(), 0);
        }
        let n = self.pieces.1;
        self.pieces.1 += 1;
        self.beats.push(Beat::Delta(Delta {
            path: path(at),
            attempt: 0,
            generation: self.take,
            part: 0,
            kind,
            call,
            tool,
            n,
            text: text.to_owned(),
        }));
        self
    }

    pub(crate) fn brain(self, at: &str, title: &str, options: Value, stages: &[(&str, StageKind)]) -> Self {
        let stages = stages.iter().map(|(name, kind)| StageShape::new(*name, *kind));
        let start = BrainStart {
            title: title.to_owned(),
            version: 0,
            fingerprint: hash_text(title),
            stages: Shape(stages.collect()),
            options,
            state: Value::Null,
            plugins: positronic_core::record::PluginStates::default(),
            budget: None,
            handed_over: None,
            start: None,
        };
        self.event(at, EventKind::BrainStart(Box::new(start)))
    }

    pub(crate) fn step(self, at: &str, millis: i64) -> Self {
        let duration = Duration::from_millis(millis.unsigned_abs());
        self.event(at, EventKind::StepStart { attempt: 0 })
            .after(millis)
            .event(at, EventKind::StepComplete { change: Some(Change::State(json!({}))), duration })
    }

    pub(crate) fn loop_start(self, at: &str, input: Option<&str>) -> Self {
        let input = input.map(str::to_owned);
        self.event(
            at,
            EventKind::LoopStart {
                input,
                from: positronic_core::record::Speaker::Person,
                message_id: None,
                files: Vec::new(),
                hidden: false,
                continues: None,
                limits: Limits::default(),
            },
        )
    }

    pub(crate) fn ask(self, iteration: &str) -> Self {
        let model = "openai/gpt-5-mini".to_owned();
        self.event(iteration, EventKind::LoopIteration(Box::default()))
            .event(iteration, EventKind::LoopModelCall { attempt: 0, model, question: None })
            .after(1_300)
    }

    pub(crate) fn answer(self, iteration: &str, text: &str, calls: u32) -> Self {
        let mut parts = vec![];
        if !text.is_empty() {
            parts.push(Part::Text { text: text.to_owned() });
        }
        parts.extend((0..calls).map(|index| Part::Call { index }));
        let usage = Usage { input: 812, output: 45, ..Usage::default() };
        let metadata = ResponseMetadata { usage, ..ResponseMetadata::default() };
        self.event(
            iteration,
            EventKind::LoopModelResult { parts: parts.into(), metadata, duration: Duration::from_millis(1300) },
        )
    }

    pub(crate) fn call(self, at: &str, tool: &str, arguments: Value) -> Self {
        let tool = tool.to_owned();
        let call = ToolCall {
            tool,
            arguments: arguments.into(),
            provider_id: None,
            data: None,
            flags: CallFlags::default(),
            gate: None,
            repair: None,
        };
        self.event(at, EventKind::LoopToolCall(Box::new(call)))
    }

    pub(crate) fn run(self, at: &str) -> Self {
        self.event(at, EventKind::LoopToolStart { attempt: 0, detached: false })
    }

    pub(crate) fn result(self, at: &str, millis: i64, result: ToolResult) -> Self {
        let duration = (millis > 0).then(|| Duration::from_millis(millis.unsigned_abs()));
        self.after(millis).event(at, EventKind::LoopToolResult { result, duration, change: None })
    }

    pub(crate) fn ok(self, at: &str, millis: i64, output: Value) -> Self {
        self.result(at, millis, ToolResult::success(output))
    }

    pub(crate) fn loop_complete(self, at: &str, outcome: LoopOutcome) -> Self {
        let usage = Usage { input: 1_624, output: 90, ..Usage::default() };
        self.event(at, EventKind::LoopComplete { outcome, usage, change: None })
    }

    pub(crate) fn approval(self, at: &str, reason: &str) -> Self {
        let (reason, arguments_hash) = (reason.to_owned(), hash_text(""));
        self.event(at, EventKind::LoopApprovalRequested { reason, expires: None, editable: true, arguments_hash })
    }

    pub(crate) fn decide(self, at: &str, decision: Decision, arguments: Option<Value>, reason: Option<&str>) -> Self {
        let actor = Actor { by: Some("ada".to_owned()), ..Actor::default() };
        let (signal, reason) = (SignalId::from("s-1"), reason.map(str::to_owned));
        self.event(at, EventKind::LoopApprovalDecided { decision, arguments, reason, signal, actor })
    }

    pub(crate) fn complete(self, at: &str, result: Value) -> Self {
        self.event(at, EventKind::BrainComplete { result })
    }
}

const SUPPORT: [(&str, StageKind); 3] =
    [("Load customer", StageKind::Step), ("Chat", StageKind::Loop), ("Close", StageKind::Step)];

fn support() -> Story {
    Story::default()
        .brain("", "Support Agent", json!({"customer_id": "C-17"}), &SUPPORT)
        .step("Load customer", 210)
        .loop_start("Chat", Some("Where is my order, and can I have a refund for the kettle?"))
        .ask("Chat/0")
}

/// A completed run with tools.
pub(crate) fn tools() -> Story {
    support()
        .answer("Chat/0", "Let me look both up for you.", 2)
        .call("Chat/0.0", "search_docs", json!({"query": "refund policy for household appliances", "limit": 3}))
        .call("Chat/0.1", "order_status", json!({"order": "A-1723"}))
        .run("Chat/0.0")
        .run("Chat/0.1")
        .ok("Chat/0.1", 80, json!({"status": "shipped", "carrier": "Northwind", "eta": "2026-11-24"}))
        .ok("Chat/0.0", 40, json!("Appliances can be returned within 30 days."))
        .ask("Chat/1")
        .answer(
            "Chat/1",
            "Your order A-1723 has been shipped and arrives on Tuesday.\n\nThe kettle can be returned within 30 days.",
            1,
        )
        .call("Chat/1.0", "resolve", json!({}))
        .run("Chat/1.0")
        .ok("Chat/1.0", 1, Value::Null)
        .event("Chat", EventKind::LoopExit { call: path("Chat/1.0"), tool: "resolve".parse_id() })
        .loop_complete("Chat", LoopOutcome::Exited { tool: "resolve".to_owned() })
        .step("Close", 5)
        .complete("", json!({"customer": "C-17", "resolved": true, "notes": ["shipped", "refund explained"]}))
}

/// An approval is pending, a call after it is deferred.
pub(crate) fn pending() -> Story {
    support()
        .answer("Chat/0", "", 2)
        .call("Chat/0.0", "refund", json!({"order": "A-1723", "amount": 250}))
        .call("Chat/0.1", "send_reply", json!({"message": "I have refunded the kettle."}))
        .approval("Chat/0.0", "a refund of 250 is above the limit of 100")
        .after(4_000)
}

/// The refund is approved with edited arguments, and a call waits for the customer.
pub(crate) fn waiting() -> Story {
    let wait = WaitSpec {
        fresh: false,
        webhook: "slack".to_owned(),
        identifier: "thread-9".to_owned(),
        person: true,
        prompt: Some("the customer's answer".to_owned()),
        schema: json!({}).into(),
        expires: None,
        otherwise: None,
    };
    pending()
        .decide("Chat/0.0", Decision::Approved, Some(json!({"order": "A-1723", "amount": 99})), None)
        .run("Chat/0.0")
        .ok("Chat/0.0", 320, json!({"receipt": "R-5"}))
        .run("Chat/0.1")
        .after(12)
        .event("Chat/0.1", EventKind::LoopWait { waits: vec![wait], output: Value::Null, change: None })
        .after(60_000)
}

/// A brain called as a tool, and one that is a stage.
pub(crate) fn nested() -> Story {
    Story::default()
        .brain("", "Support Agent", Value::Null, &[("Chat", StageKind::Loop), ("Survey", StageKind::Brain)])
        .loop_start("Chat", None)
        .ask("Chat/0")
        .answer("Chat/0", "", 1)
        .call("Chat/0.0", "billing", json!({"question": "Why was I charged twice?"}))
        .run("Chat/0.0")
        .event("Chat/0.0", EventKind::LoopBrainStart { title: "Billing".to_owned(), options: json!({}) })
        .brain("Chat/0.0", "Billing", json!({}), &[("Load", StageKind::Step), ("Answer", StageKind::Loop)])
        .step("Chat/0.0/Load", 30)
        .loop_start("Chat/0.0/Answer", None)
        .ask("Chat/0.0/Answer/0")
        .answer("Chat/0.0/Answer/0", "One of the two charges is a reservation that is released tomorrow.", 0)
        .loop_complete("Chat/0.0/Answer", LoopOutcome::Answered)
        .complete("Chat/0.0", json!("released tomorrow"))
        .event(
            "Chat/0.0",
            EventKind::LoopBrainComplete { result: Some(json!("released tomorrow")), error: None, handed_back: false },
        )
        .ok("Chat/0.0", 0, json!("released tomorrow"))
        .ask("Chat/1")
        .answer("Chat/1", "It is only a reservation.", 0)
        .loop_complete("Chat", LoopOutcome::Answered)
        .brain("Survey", "Survey", json!({}), &[("Ask", StageKind::Loop), ("Store", StageKind::Step)])
        .loop_start("Survey/Ask", None)
        .ask("Survey/Ask/0")
        .delta("Survey/Ask/0", DeltaKind::Text, "How happy are you with ")
        .delta("Survey/Ask/0", DeltaKind::Text, "our answer?")
}

/// A tool fails, is retried and fails again; the model is unreachable; the run fails.
pub(crate) fn failing() -> Story {
    let due = |story: &Story, millis: i64| Timestamp(story.now + millis * 1_000);
    let story = support()
        .answer("Chat/0", "", 2)
        .call("Chat/0.0", "order_status", json!({"order": "A-1723"}))
        .call("Chat/0.1", "refnd", json!("{\"order\": "))
        .result("Chat/0.1", 0, ToolResult::error("there is no tool `refnd`; the tools are order_status, refund"))
        .run("Chat/0.0")
        .after(500);
    let retry = EventKind::LoopToolRetry { attempt: 0, message: "connection reset".to_owned(), due: due(&story, 200) };
    let story = story
        .event("Chat/0.0", retry)
        .after(200)
        .event("Chat/0.0", EventKind::LoopToolStart { attempt: 1, detached: false })
        .result(
            "Chat/0.0",
            700,
            ToolResult::error("the order service at \u{1b}[31morders.internal\u{1b}[0m does not answer"),
        )
        .ask("Chat/1");
    let error = ModelError::new(ModelErrorKind::RateLimited, "too many requests (429)");
    let retry = EventKind::LoopModelRetry { attempt: 0, error, due: due(&story, 3_000) };
    story.event("Chat/1", retry).after(1_200)
}

/// Structured actions, with a text before the first one.
pub(crate) fn deciding() -> Story {
    let refused = EventKind::LoopAnswerRefused {
        attempt: 0,
        guard: None,
        calls: Vec::new(),
        message: "the answer has no JSON object".to_owned(),
        parts: [Part::Text { text: "I would look it up.".to_owned() }].into(),
        metadata: Box::default(),
        duration: Duration::from_millis(900),
    };
    let reason = Part::Reasoning { text: "The order's state is not known yet.".to_owned(), data: None };
    let decided = EventKind::LoopModelResult {
        parts: [reason, Part::Call { index: 0 }].into(),
        metadata: ResponseMetadata::default(),
        duration: Duration::from_millis(800),
    };
    support()
        .after(900)
        .event("Chat/0", refused)
        .event("Chat/0", EventKind::LoopModelCall { attempt: 1, model: "openai/gpt-5".to_owned(), question: None })
        .after(800)
        .event("Chat/0", decided)
        .call("Chat/0.0", "order_status", json!({"order": "A-1723"}))
        .run("Chat/0.0")
        .ok("Chat/0.0", 80, json!("shipped"))
}

/// [`failing`] to its end.
pub(crate) fn failed() -> Story {
    let message = "too many requests (429), tried 4 times".to_owned();
    let failure =
        Failure { code: EndReason::Model, message: format!("the loop `Chat` failed: {message}"), retryable: true };
    failing()
        .after(9_000)
        .loop_complete("Chat", LoopOutcome::Failed { code: EndReason::Model, message, retryable: true })
        .event("", EventKind::BrainError(failure))
}

/// A loop that a limit ends, and a stage after it.
pub(crate) fn limited(limit: EventKind, outcome: LoopOutcome) -> Story {
    support()
        .answer("Chat/0", "", 1)
        .call("Chat/0.0", "order_status", json!({"order": "A-1723"}))
        .run("Chat/0.0")
        .ok("Chat/0.0", 80, json!("shipped"))
        .event("Chat", limit)
        .loop_complete("Chat", outcome)
        .step("Close", 5)
        .complete("", Value::Null)
}

/// A person cancels while a tool runs and another waits.
pub(crate) fn cancelled() -> Story {
    let interrupted = ToolResult::Interrupted { reason: "the run was cancelled".to_owned() };
    let skipped = ToolResult::Skipped { reason: "the run was cancelled".to_owned() };
    support()
        .answer("Chat/0", "", 2)
        .call("Chat/0.0", "search_docs", json!({"query": "refunds"}))
        .call("Chat/0.1", "refund", json!({"order": "A-1723", "amount": 250}))
        .run("Chat/0.0")
        .approval("Chat/0.1", "a refund of 250 is above the limit of 100")
        .after(2_500)
        .event("Chat/0.1", EventKind::LoopApprovalWithdrawn { cause: "the run was cancelled".to_owned() })
        .result("Chat/0.0", 0, interrupted)
        .result("Chat/0.1", 0, skipped)
        .loop_complete("Chat", LoopOutcome::Cancelled)
        .event(
            "",
            EventKind::BrainCancelled { signal: None, actor: Actor::default(), reason: Some("Ctrl-C".to_owned()) },
        )
}

/// A tool shows a widget and its progress, while the arguments of a call stream.
pub(crate) fn streaming() -> Story {
    support()
        .delta(
            "Chat/0",
            DeltaKind::Reasoning,
            "The customer asks two things.\nFirst the order.\nThen the refund.\nI need both tools.",
        )
        .delta("Chat/0", DeltaKind::Arguments, "{\"query\": \"refund po")
}

/// A running tool with a widget and progress.
pub(crate) fn outputs() -> Story {
    let widget = WidgetOutput {
        kind: "chart".to_owned(),
        data: json!([1, 2]),
        fallback: "Refunds a month: 1, 2".to_owned(),
        replaces: None,
    };
    support()
        .answer("Chat/0", "", 1)
        .call("Chat/0.0", "report", json!({}))
        .run("Chat/0.0")
        .event(
            "Chat/0.0",
            EventKind::LoopOutput { id: path("Chat/0.0").public_id(), output: SideOutput::Widget(widget) },
        )
        .delta("Chat/0.0", DeltaKind::Progress, "page 3 of 8")
        .after(2_100)
}

/// A tool that replaces a widget `rows` lines later, and a tool of another loop that replaces it last.
pub(crate) fn updates(rows: u32) -> Story {
    let bar = |id: &str, replaces: Option<&str>, text: &str| {
        let output = |id: &str| path(id).public_id();
        let widget = WidgetOutput {
            kind: "bar".to_owned(),
            data: Value::Null,
            fallback: text.to_owned(),
            replaces: replaces.map(output),
        };
        EventKind::LoopOutput { id: output(id), output: SideOutput::Widget(widget) }
    };
    let mut story = support().answer("Chat/0", "", 2).call("Chat/0.0", "report", json!({})).run("Chat/0.0");
    story = story.event("Chat/0.0", bar("one", None, "0 %")).event("Chat/0.0", bar("two", Some("one"), "50 %"));
    for row in 0..rows {
        story = story.event("Chat/0.0", bar(&format!("row {row}"), None, &format!("row {row}")));
    }
    let done = ToolResult::success(Value::Null);
    let story = story.result("Chat/0.0", 80, done).call("Chat/0.1", "tidy", json!({})).run("Chat/0.1");
    story.event("Chat/0.1", bar("three", Some("two"), "90 %")).event("Chat/0.1", bar("four", Some("one"), "100 %"))
}

trait ParseId {
    fn parse_id(&self) -> positronic_core::record::ToolId;
}

impl ParseId for str {
    fn parse_id(&self) -> positronic_core::record::ToolId {
        positronic_core::record::ToolId::new(self).unwrap()
    }
}
