//! Stories of every kind of run, in which a process may die anywhere.
//!
//! Every tool has one effect under its idempotency key, and notes it in its brain's state. If tools are repeatable,
//! the outside world drops a repeated effect; if they are not, it would see the effect twice.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{Runnable, ToolBuilder};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{
    Amounts, BudgetRequest, FileRef, LimitKind, ModelRequest, Pending, PendingKind, SignalKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Board, Job, batch, done, path};

type Deeds = ToolContext<(), Board, Ledger>;
type DeedTool = Tool<(), Board, Ledger>;
type DeedBuilder = ToolBuilder<(), Board, Ledger>;

/// Whether tools are repeatable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tools {
    Idempotent,
    Once,
}

impl Tools {
    fn flag(self, t: DeedBuilder) -> DeedBuilder {
        if self == Self::Idempotent { t.idempotent() } else { t }
    }

    fn act(self, cx: &Deeds, what: &str) {
        match self {
            Self::Idempotent => cx.services.act_once(cx.idempotency_key(), what),
            Self::Once => cx.services.act(cx.idempotency_key(), what),
        }
    }

    /// Creates a tool that has an effect and notes it.
    fn deed(self, name: &str, flags: impl FnOnce(DeedBuilder) -> DeedBuilder) -> DeedTool {
        Tool::new(name, |t| {
            flags(self.flag(t)).description(format!("Does a {name} job")).execute(
                move |job: Job, cx: Deeds| async move {
                    self.act(&cx, &job.id);
                    if job.takes > 0 {
                        tokio::time::sleep(Duration::from_millis(job.takes)).await;
                    }
                    if job.fails {
                        return Err(Error::new(format!("{} broke", job.id)));
                    }
                    let reply = cx.result(format!("{} done", job.id));
                    Ok(reply.update(move |board: &mut Board| board.done.push(job.id)))
                },
            )
        })
    }
}

fn tale<B: Runnable>(
    brain: B,
    ledger: &Ledger,
    says: impl Fn(&str) -> Reply + Send + Sync + 'static,
    answers: impl Fn(&Pending) -> Vec<SignalKind> + Send + Sync + 'static,
) -> Tale {
    Tale {
        definition: brain.definition(),
        options: Value::Null,
        ledger: ledger.clone(),
        says: Arc::new(move |request: &ModelRequest| says(request.path.as_str())),
        answers: Arc::new(answers),
    }
}

fn no_signals(pending: &Pending) -> Vec<SignalKind> {
    panic!("no answer for {pending:?}")
}

pub(crate) fn all(tools: Tools) -> Vec<(&'static str, Tale)> {
    vec![
        ("steps", steps()),
        ("loop", loop_at(tools)),
        ("nested", nested(tools)),
        ("brain tools", brain_tools(tools)),
        ("approvals", approvals(tools)),
        ("waits", waits(tools)),
        ("pauses", pauses(tools)),
        ("decisions", decisions(tools)),
        ("limits", limits(tools)),
    ]
}

/// Limits of iterations and tokens, of loops and of the whole brain; each asks a person for more: before a loop
/// begins, between iterations, inside a called brain, and during a step's question.
fn limits(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let inner = move || {
        brain("Inner").services::<Ledger>().state(Board::default()).r#loop("Deep", move |cx| {
            cx.system("Inside.").tools([tools.deed("inside", |t| t)]).max_tokens(20).ask_for_more()
        })
    };
    let limited = brain("Limits")
        .services::<Ledger>()
        .state(Board::default())
        .step("Ask", async |cx| {
            let mut board = cx.state.clone();
            for question in ["One?", "Two?", "Three?"] {
                board.done.push(cx.model().ask(question).await?);
            }
            Ok(board)
        })
        .r#loop("Work", move |cx| {
            cx.system("Work.")
                .tools([tools.deed("safe", |t| t)])
                .tool("inner", |t| t.brain(inner()).map_output(|board, inner| board.done.extend(inner.done)))
                .max_iterations(2)
                .ask_for_more()
        })
        .bind(ledger.clone())
        .budget(|budget| budget.max_tokens(15).max_iterations(4).ask_for_more());
    tale(
        limited,
        &ledger,
        |path| {
            let used = positronic_core::record::Usage { input: 7, output: 3, ..Default::default() };
            let reply = match path {
                "Work/0" => batch([("safe", "a"), ("safe", "b")]),
                "Work/1" => Reply::calls([("safe", json!({"id": "c"})), ("inner", json!({}))]),
                "Work/1.1/Deep/0" => batch([("inside", "d")]),
                "Work/1.1/Deep/1" => batch([("inside", "e")]),
                "Work/1.1/Deep/2" => batch([("inside", "f")]),
                "Work/2" => batch([("safe", "g")]),
                "Ask/0" | "Ask/1" | "Ask/2" => Reply::text(path),
                _ => done(),
            };
            reply.usage(used)
        },
        |pending| {
            let PendingKind::Budget(BudgetRequest { kind, .. }) = &pending.kind else { panic!("{pending:?}") };
            let more = match kind {
                LimitKind::Iterations => Amounts::iterations(2),
                _ => Amounts::tokens(25),
            };
            vec![SignalKind::Grant { to: pending.call.clone(), more }]
        },
    )
}

/// Steps with values that are computed once, with a question to a model, and with a failing try.
fn steps() -> Tale {
    let ledger = Ledger::default();
    let steps = brain("Steps")
        .services::<Ledger>()
        .state(Board::default())
        .step("Two deeds", async |cx| {
            let mut board = cx.state.clone();
            for what in ["letter", "parcel"] {
                let key = format!("{} {what}", cx.idempotency_key());
                let number = cx
                    .once(what, async {
                        cx.services.act_once(&key, what);
                        Ok(cx.services.deeds().len())
                    })
                    .await?;
                board.done.push(format!("{what} {number}"));
            }
            Ok(board)
        })
        .step("Ask", async |cx| {
            let one = cx.model().ask("One?").await?;
            let two = cx.model().system("Be brief.").ask(format!("After {one}?")).await?;
            Ok(Board { done: [cx.state.done, vec![one, two]].concat() })
        })
        .step("Flaky", async |cx| {
            let tried = cx.services.deeds().iter().any(|(_, what)| what == "tried");
            cx.services.act_once(cx.idempotency_key(), "tried");
            if tried { Ok(cx.state) } else { Err(Error::transient("not yet")) }
        })
        .bind(ledger.clone());
    let mut steps = tale(&steps, &ledger, |_| done(), no_signals);
    steps.says = Arc::new(|request| Reply::text(if request.system.is_empty() { "one" } else { "two" }));
    steps
}

/// A loop with structured actions: some are refused, one batch has a failing action, one needs an approval, and the
/// last iteration summarizes.
fn decisions(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let work = brain("Decisions")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            let config = cx
                .system(format!("{} done.", cx.state.done.len()))
                .input("begin")
                .structured_actions_in_batches()
                .tools([
                    tools.deed("safe", |t| t),
                    tools.deed("gated.job", |t| t.requires_approval("it is dangerous")),
                    tools.deed("finish", DeedBuilder::exit),
                ]);
            // An exit tool that was interrupted in the last iteration is not called again.
            if tools == Tools::Idempotent { config.max_iterations(2).wrap_up() } else { config }
        })
        .bind(ledger.clone());
    let says = |request: &ModelRequest| {
        let job = |id: &str| json!({ "id": id });
        match (request.path.as_str(), request.attempt) {
            ("Work/0", 0) => Reply::text("I would rather talk."),
            ("Work/0", 1) => Reply::actions("Quick.", [("safe", json!({ "id": 7 }))]),
            ("Work/0", _) => Reply::actions(
                "Two at once.",
                [("safe", json!({ "id": "a", "takes": 10 })), ("safe", json!({ "id": "b", "fails": true }))],
            ),
            ("Work/1", _) => Reply::actions("It needs care.", [("gated.job", job("c"))]),
            ("Work/2", 0) => Reply::actions("Done.", [("done", job("d"))]),
            _ => Reply::actions("Done.", [("finish", job("d"))]),
        }
    };
    let approve = |pending: &Pending| vec![SignalKind::Approve { call: pending.call.clone(), arguments: None }];
    let mut tale = tale(&work, &ledger, |_| done(), approve);
    tale.says = Arc::new(says);
    tale
}

/// A loop with parallel, sequential, read-only, failing, refused and unknown calls, and an exit tool.
fn loop_at(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let work = brain("Loop")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            cx.system(format!("{} done.", cx.state.done.len()))
                .input("begin")
                .context("board", cx.state.done.join(", "))
                .tools([
                    tools.deed("safe", |t| t),
                    tools.deed("alone", DeedBuilder::sequential),
                    tools.deed("finish", DeedBuilder::exit),
                    Tool::new("look", |t| t.read_only().execute(async |job: Job, _| Ok(job.id))),
                ])
                .on_exit(|board, outcome| board.done.push(serde_json::to_string(outcome).unwrap()))
        })
        .step("After", async |cx| Ok(cx.state))
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Work/0" => Reply::calls([
            ("safe", json!({"id": "a", "takes": 20})),
            ("look", json!({"id": "l"})),
            ("safe", json!({"id": "b", "takes": 10})),
            ("alone", json!({"id": "c"})),
        ]),
        "Work/1" => Reply::calls([
            ("safe", json!({"id": "d", "fails": true})),
            ("safe", json!({"id": 7})),
            ("nope", json!({})),
            ("safe", json!({"id": "e"})),
        ])
        .and_text("On it."),
        _ => batch([("finish", "f"), ("safe", "never")]),
    };
    tale(&work, &ledger, says, no_signals)
}

fn inner(title: &str, tools: Tools) -> Brain<(), Board, Ledger> {
    brain(title)
        .services::<Ledger>()
        .state(Board::default())
        .step("Begin", async |cx| {
            cx.services.act_once(cx.idempotency_key(), "began");
            Ok(cx.state)
        })
        .r#loop("Deep", move |cx| cx.system("Inside.").tools([tools.deed("safe", |t| t)]))
        .build()
}

/// A brain as a stage, with a loop of its own, between two steps.
fn nested(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let outer = brain("Nested")
        .services::<Ledger>()
        .state(Board::default())
        .step("Before", async |cx| Ok(Board { done: [cx.state.done, vec!["before".to_owned()]].concat() }))
        .brain("Inside", inner("Inner", tools))
        .map_output(|board: Board, inner: Board| Board { done: [board.done, inner.done].concat() })
        .step("Behind", async |cx| Ok(cx.state))
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Inside/Deep/0" => batch([("safe", "a"), ("safe", "b")]),
        "Inside/Deep/1" => batch([("safe", "c")]),
        _ => done(),
    };
    tale(&outer, &ledger, says, no_signals)
}

/// Two concurrent brains as tools, next to a tool.
fn brain_tools(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let outer = brain("Delegates")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            cx.system("Delegate.")
                .tools([tools.deed("safe", |t| t)])
                .tool("one", |t| t.brain(inner("One", tools)).map_output(|board, inner| board.done.extend(inner.done)))
                .tool("two", |t| t.brain(inner("Two", tools)).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Work/0" => Reply::calls([("one", json!({})), ("safe", json!({"id": "s", "takes": 5})), ("two", json!({}))]),
        "Work/0.0/Deep/0" => batch([("safe", "a"), ("safe", "b")]),
        "Work/0.2/Deep/0" => batch([("safe", "c")]),
        _ => done(),
    };
    tale(&outer, &ledger, says, no_signals)
}

/// Approvals: unchanged, with edited arguments, and rejected; also of a call inside a brain.
fn approvals(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let gated = move || tools.deed("gated", |t| t.requires_approval("it is dangerous"));
    let deep = move || {
        brain("Careful")
            .services::<Ledger>()
            .state(Board::default())
            .r#loop("Deep", move |cx| cx.system("Inside.").tools([gated()]))
    };
    let outer = brain("Approvals")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            cx.system("Ask first.")
                .tools([gated(), tools.deed("safe", |t| t)])
                .tool("deep", |t| t.brain(deep()).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Work/0" => batch([("safe", "a"), ("gated", "b"), ("gated", "c"), ("gated", "d"), ("safe", "e")]),
        // One rejected call, called again, and one inside a brain.
        "Work/1" => Reply::calls([("gated", json!({"id": "c"})), ("deep", json!({}))]),
        "Work/1.1/Deep/0" => batch([("gated", "f"), ("gated", "g")]),
        _ => done(),
    };
    let answers = |pending: &Pending| {
        let call = pending.call.clone();
        vec![match pending.arguments["id"].as_str().unwrap() {
            "c" | "g" => SignalKind::Reject { call, reason: Some("no".to_owned()) },
            "d" => SignalKind::Approve { call, arguments: Some(json!({"id": "edited"})) },
            _ => SignalKind::Approve { call, arguments: None },
        }]
    };
    tale(&outer, &ledger, says, answers)
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Waits: for a webhook that changes the state, for a reply, and one that expires.
fn waits(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let ask = move || {
        Tool::new("ask", |t: DeedBuilder| {
            tools
                .flag(t)
                .wait(|job: &Job, _| {
                    [
                        webhook::<Note>("slack").on(&job.id).resume(|board, note| board.done.push(note.text)),
                        webhook::<Note>("mail").on(&job.id).resume(|board, note| board.done.push(note.text)),
                    ]
                })
                .execute(move |job: Job, cx: Deeds| async move {
                    tools.act(&cx, &job.id);
                    Ok(cx.result(format!("asked {}", job.id)))
                })
        })
    };
    let reply = move || {
        Tool::new("reply", |t: DeedBuilder| {
            tools.flag(t).execute(move |job: Job, cx: Deeds| async move {
                tools.act(&cx, &job.id);
                Ok(cx.result(()).wait_for_reply::<String>("Well?"))
            })
        })
    };
    let timed = move || {
        Tool::new("timed", |t: DeedBuilder| {
            tools
                .flag(t)
                .wait(|job: &Job, _| {
                    [webhook::<Note>("late").on(&job.id).timeout(Duration::from_secs(60)).otherwise("nobody came")]
                })
                .execute(move |job: Job, cx: Deeds| async move {
                    tools.act(&cx, &job.id);
                    Ok(())
                })
        })
    };
    let outer = brain("Waits")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("Ask.").tools([ask(), reply(), timed(), tools.deed("safe", |t| t)]))
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Work/0" => batch([("ask", "a"), ("safe", "b"), ("reply", "c")]),
        "Work/1" => batch([("timed", "d"), ("ask", "e")]),
        _ => done(),
    };
    let answers = |pending: &Pending| {
        let PendingKind::Answer { waits } = &pending.kind else { panic!("{pending:?}") };
        let identifier = waits[0].identifier.clone();
        let call = pending.call.clone();
        match pending.tool.as_str() {
            "ask" => {
                let name = waits[1].webhook.clone();
                let payload = json!({"text": format!("answer to {identifier}")});
                vec![SignalKind::Webhook { name, identifier, payload }]
            }
            "reply" => vec![SignalKind::Reply { call, payload: json!("fine") }],
            _ => Vec::new(),
        }
    };
    tale(&outer, &ledger, says, answers)
}

/// Widgets and files.
pub(crate) fn outputs(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let show = move || {
        Tool::new("show", |t: DeedBuilder| {
            tools.flag(t).execute(move |job: Job, cx: Deeds| async move {
                cx.progress("beginning");
                let uri = format!("file:///{}", job.id);
                let (media_type, sha256) = ("text/plain".to_owned(), "0".repeat(64));
                tools.act(&cx, &job.id);
                cx.add_file(FileRef { name: job.id.clone(), media_type, size: 3, sha256, uri })?;
                Ok(job.id)
            })
        })
    };
    let outer = brain("Outputs")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("Show.").tools([show()]))
        .bind(ledger.clone());
    let says = |place: &str| if place == "Work/0" { batch([("show", "a"), ("show", "b")]) } else { done() };
    tale(&outer, &ledger, says, no_signals)
}

/// Messages and pauses between decisions.
fn pauses(tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let outer = brain("Pauses")
        .services::<Ledger>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            cx.system("Wait.").tools([tools.deed("gated", |t| t.requires_approval("sure?")), tools.deed("safe", |t| t)])
        })
        .bind(ledger.clone());
    let says = |place: &str| match place {
        "Work/0" => batch([("gated", "a"), ("safe", "b")]),
        "Work/1" => batch([("gated", "c")]),
        _ => done(),
    };
    let answers = |pending: &Pending| {
        let call = pending.call.clone();
        let text = format!("about {call}");
        let to = Some(path("Work"));
        vec![
            SignalKind::Message { to, text, message_id: None, files: Vec::new(), caller_tools: None },
            SignalKind::Pause,
            SignalKind::Approve { call, arguments: None },
        ]
    };
    tale(&outer, &ledger, says, answers)
}
