//! Calls that a model writes almost right: what a person sees has been decoded, and a repair is in the log.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::timeline::NodeKind;
use positronic_core::record::{
    Actor, ArgumentMistake, DenialCause, EventKind, ModelResponse, Part, PendingKind, ProposedCall, Repair, SignalKind,
    ToolResult,
};
use positronic_core::testing::Story;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Play, done, error_of, path, results, success, waits};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
    #[serde(default)]
    lines: Vec<u8>,
}

/// A code that its type checks, and its schema does not.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Redeem {
    code: Code,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
struct Code(String);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        if text.len() == 4 {
            Ok(Self(text))
        } else {
            Err(format!("a code has 4 letters, and `{text}` has {}", text.len()))
        }
    }
}

fn till() -> Brain<(), Value> {
    brain("Till")
        .state(Value::Null)
        .r#loop("Work", |cx| {
            cx.system("Work.")
                .tool("refund", |t| {
                    t.approval(|refund: &Refund, _| Some(format!("{} euros", refund.amount)))
                        .execute(async |refund: Refund, _| Ok(json!(refund)))
                })
                .tool("redeem", |t| t.requires_approval("a code").execute(async |redeem: Redeem, _| Ok(redeem.code.0)))
                .tool("count", |t| t.execute(async |refund: Refund, _| Ok(refund.amount)))
        })
        .build()
}

/// An answer with calls whose arguments are these texts.
fn texts<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Reply {
    let call = |(name, arguments): (&str, &str)| ProposedCall {
        provider_id: None,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        data: None,
    };
    let calls: Vec<_> = calls.into_iter().map(call).collect();
    let parts = (0..).take(calls.len()).map(|index| Part::Call { index }).collect();
    Reply::response(ModelResponse { parts, calls, ..ModelResponse::default() })
}

fn repairs(story: &Story) -> Vec<Option<Repair>> {
    let repair = |kind: &EventKind| match kind {
        EventKind::LoopToolCall(call) => Some(call.repair.as_deref().cloned()),
        _ => None,
    };
    story.log().iter().filter_map(|event| repair(&event.kind)).collect()
}

#[tokio::test(start_paused = true)]
async fn arguments_that_a_person_sees_have_been_decoded() {
    let play = Play::new([
        texts([("refund", r#"{"amount": 5.0, "lines": [1e1]}"#), ("redeem", r#"{"code": "long code"}"#)]),
        done(),
    ]);

    let run = play.start(till(), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"], "a call that cannot be decoded asks no person");
    assert_eq!(*run.pending()[0].arguments, json!({"amount": 5, "lines": [10]}));
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    let results = results(&play.story(&run).await, "Work");
    assert_eq!(results[0], success(json!({"amount": 5, "lines": [10]})));
    assert_eq!(
        error_of(&results[1]),
        "the arguments do not match the schema: a code has 4 letters, and `long code` has 9"
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_call_is_recognised_in_every_form_of_its_numbers() {
    let play = Play::new([
        texts([("refund", r#"{"amount": 50}"#)]),
        texts([("refund", r#"{"amount": 50.0}"#), ("refund", r#"{"amount": 5e1}"#)]),
        done(),
    ]);
    let run = play.start(till(), ()).await;
    waits(&run).await;

    run.reject(&path("Work/0.0"), "too much", "ann").await.unwrap();

    let results = results(&play.story(&run).await, "Work");
    assert_eq!(results.len(), 3);
    for again in &results[1..] {
        assert!(matches!(again, ToolResult::Denied { cause: Some(DenialCause::Repeated), .. }), "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_from_persons_and_programs_are_decoded_as_those_of_models_are() {
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    struct Desk {
        open: u32,
    }
    let asks = brain("Desk").options::<Desk>().state(0_u32).r#loop("Work", |cx| {
        cx.system("Work.")
            .tool("refund", |t| t.requires_approval("money").execute(async |refund: Refund, _| Ok(json!(refund))))
            .tool("wait", |t| {
                t.wait(|_: &NoArgs, _| [webhook::<u32>("paid").on("x").resume(|state: &mut u32, paid| *state += paid)])
                    .execute(async |_, _| Ok(()))
            })
    });
    let play = Play::new([texts([("refund", r#"{"amount": 5}"#), ("wait", "{}")]), done()]);
    let run = play.start(asks.erased(), json!({"open": 2.0})).await;
    waits(&run).await;

    let edited = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({"amount": 7.0})) };
    run.signal(edited, Actor::default()).await.unwrap();
    waits(&run).await;
    run.webhook("paid", "x", json!(3.0)).await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(results(&story, "Work"), [success(json!({"amount": 7, "lines": []})), success(3.0)]);
    assert_eq!(*run.state().root.as_ref().unwrap().state, json!(3));
}

#[tokio::test(start_paused = true)]
async fn near_misses_are_repaired_and_the_log_says_what() {
    use ArgumentMistake::{ExtraBracket, InCodeFence, InString, ValueInString};
    let play = Play::new([
        texts([
            ("count", r#""{\"amount\": 1}""#),
            ("count", "```json\n{\"amount\": 2}\n```"),
            ("count", r#"{"amount": 3}}"#),
            ("count", r#"{"amount": "4", "lines": "[1]"}"#),
            ("functions.count", r#"{"amount": 5}"#),
            (" Count", r#"{"amount": 6}"#),
            ("count", r#"{"amount": 7}"#),
        ]),
        done(),
    ]);

    let story = play.run(till(), ()).await;

    let expected: Vec<_> = (1..=7).map(success).collect();
    assert_eq!(results(&story, "Work"), expected);
    let named = |name: &str| {
        let mut repair = Repair::default();
        repair.name = Some(name.to_owned());
        Some(repair)
    };
    let with = |mistakes: &[ArgumentMistake]| {
        let mut repair = Repair::default();
        repair.arguments = mistakes.to_vec();
        Some(repair)
    };
    assert_eq!(
        repairs(&story),
        [
            with(&[InString]),
            with(&[InCodeFence]),
            with(&[ExtraBracket]),
            with(&[ValueInString]),
            named("functions.count"),
            named(" Count"),
            None,
        ]
    );
    let timeline = story.timeline();
    let clauses: Vec<_> = timeline
        .nodes()
        .filter_map(|node| match &node.kind {
            NodeKind::Call(call) => call.repair.as_ref().map(|repair| repair.clause()),
            _ => None,
        })
        .collect();
    assert_eq!(clauses[0], "its arguments were JSON in a string");
    assert_eq!(clauses[4], "the model wrote the name `functions.count`");
    let name = |kind: &EventKind| match kind {
        EventKind::LoopToolCall(call) => Some(call.tool.clone()),
        _ => None,
    };
    let names: Vec<_> = story.log().iter().filter_map(|event| name(&event.kind)).collect();
    assert!(names.iter().all(|name| *name == "count"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn call_with_several_meanings_is_refused_as_it_is() {
    let play = Play::new([
        texts([
            ("count", r#"{"amount": 1} {"amount": 2}"#),
            ("count", r#"{"amount": "one"}"#),
            ("counts", r#"{"amount": 1}"#),
            ("count", r#"{"amount": 1"#),
        ]),
        done(),
    ]);

    let story = play.run(till(), ()).await;

    assert!(results(&story, "Work").iter().all(|result| matches!(result, ToolResult::Error { .. })));
    assert_eq!(repairs(&story), [None, None, None, None]);
}

#[tokio::test(start_paused = true)]
async fn person_is_asked_about_the_repaired_call() {
    let play = Play::new([texts([("functions.refund", r#""{\"amount\": 9.0}""#)]), done()]);

    let run = play.start(till(), ()).await;

    waits(&run).await;
    let pending = run.pending().remove(0);
    assert_eq!((&*pending.tool, &*pending.arguments), ("refund", &json!({"amount": 9})));
    let PendingKind::Approval { gate, .. } = pending.kind else { panic!("{}", pending.call) };
    assert_eq!(gate.reason, "9 euros");
}
