//! Brains on a small real model, over HTTP: behaviour that no script foresees.
//!
//! `.ci/small-model` installs llama-server and SmolLM2-135M-Instruct and runs this by hand; it takes too long for every
//! run. The model is far too small for good answers and knows no tools, so the tests check only the form: streamed
//! text, usage, and JSON that fits its schema because the server enforces it. `--nocapture` prints its answers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "in tests a panic is the message, and a person reads what this one prints"
)]

mod address;

use std::time::Duration;

use positronic_core::model::wrap::{Concurrency, DevCache, Fallback, RateLimit, RateLimits};
use positronic_core::prelude::*;
use positronic_core::record::{
    ActionFormat, DeltaKind, EndReason, EventKind, Finish, LoopOutcome, ModelErrorKind, OutputKind, Part, Prompt,
    ResponseMetadata, RoutingStep, Settings, ToolResult,
};
use positronic_core::runner::Settled;
use positronic_core::sink::Recorder;
use positronic_core::testing::{CountedIds, Story, Test};
use positronic_openai::{OpenAiChat, OpenAiConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

async fn play<B: positronic_core::dsl::Runnable<Options = ()>>(brain: B) -> (Story, Recorder) {
    let server = address::address("POSITRONIC_SMALL_MODEL", ".ci/small-model");
    let config = OpenAiConfig::builder().base_url(format!("{server}/v1")).model("smollm2").provider("llama-server");
    let recorder = Recorder::new();
    let model = OpenAiChat::new(config.build()).unwrap();
    let runner = Runner::new(model).ids(CountedIds::default()).sink(recorder.clone());
    let run = Test::with(runner).start(brain, ()).await;
    // On a busy machine it writes one word per second.
    let story = tokio::time::timeout(Duration::from_mins(10), Story::of(&run)).await.unwrap();
    (story, recorder)
}

/// Joins the model's texts in a loop.
fn said(record: &Prompt) -> String {
    let parts = record.output.iter().filter_map(|output| match &output.kind {
        OutputKind::Text { parts, .. } => Some(&**parts),
        _ => None,
    });
    let texts = parts.flatten().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Prints the duration of an answer, and returns its response metadata.
fn answers(story: &Story) -> Vec<ResponseMetadata> {
    let mut answers = Vec::new();
    for event in story.log() {
        let EventKind::LoopModelResult { metadata, duration, .. } = &event.kind else { continue };
        let first = metadata.first_chunk.unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred tokens")]
        let rate = metadata.usage.output as f64 / (*duration - first).as_secs_f64().max(0.001);
        println!(
            "{}: {} tokens in, {} of them cached, {} out; first chunk after {:.3} s, whole after {:.3} s, {rate:.0} tokens/s",
            event.path,
            metadata.usage.input,
            metadata.usage.cached,
            metadata.usage.output,
            first.as_secs_f64(),
            duration.as_secs_f64(),
        );
        answers.push(metadata.clone());
    }
    answers
}

#[tokio::test]
async fn text_loop_streams_to_its_end() {
    let settings = || Settings::builder().temperature(0.0).max_output_tokens(60).build();
    let poet = brain("Poet")
        .r#loop("Write", move |cx| {
            cx.system("You are a helpful assistant.")
                .input("Write three sentences about the sea in winter.")
                .settings(settings())
        })
        .r#loop("Shorten", move |cx| {
            let text = cx.record("Write").map(|record| said(&record)).unwrap_or_default();
            cx.system("You shorten texts.").input(format!("Say this in five words: {text}")).settings(settings())
        });

    let (story, recorder) = play(&poet).await;

    println!("{}", story.transcript());
    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let answers = answers(&story);
    assert_eq!(answers.len(), 2);
    for metadata in &answers {
        assert!(matches!(metadata.finish, Finish::Stop | Finish::Length), "{:?}", metadata.finish);
        assert!(metadata.usage.input > 0 && metadata.usage.output > 1, "{:?}", metadata.usage);
    }
    for stage in ["Write", "Shorten"] {
        let pieces: Vec<_> = recorder
            .deltas()
            .into_iter()
            .filter(|delta| delta.kind == DeltaKind::Text && delta.path.as_str().starts_with(stage))
            .map(|delta| delta.text)
            .collect();
        println!("{stage}: {} pieces", pieces.len());
        assert!(pieces.len() > 3, "{pieces:?}");
        assert!(story.transcript().contains(&format!("assistant: {}", pieces.concat())));
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Glad,
    Sad,
    Angry,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Judgement {
    /// What the customer feels.
    mood: Mood,
    /// How urgent it is, from 1 to 5.
    #[schemars(range(min = 1, max = 5))]
    urgency: u8,
    /// Whether a person has to look at it.
    escalate: bool,
}

#[tokio::test]
async fn typed_answer_fits_its_type() {
    let judge = brain("Judge").step("Judge", async |cx| {
        let judgement: Judgement = cx
            .model()
            .system("You judge messages of customers.")
            .settings(Settings::builder().temperature(0.0).max_output_tokens(80).build())
            .ask_for("My parcel is three weeks late and nobody answers me. I want my money back!")
            .await?;
        Ok(judgement)
    });

    let (story, _) = play(&judge).await;

    println!("{}", story.events());
    let Settled::Completed(result) = story.settled() else { panic!("{:?}", story.settled()) };
    println!("{result}");
    let judgement: Judgement = serde_json::from_value(result.clone()).unwrap();
    assert!((1..=5).contains(&judgement.urgency));
    assert_eq!(answers(&story).len(), 1);
}

/// The outcome of a structured loop.
#[derive(Debug, Default)]
struct Went {
    /// The valid actions, as `action(input)`.
    decisions: Vec<String>,
    /// The misfits of the other answers.
    refused: Vec<String>,
    results: Vec<String>,
    outcome: Option<LoopOutcome>,
}

impl Went {
    fn of(story: &Story) -> Self {
        let mut went = Self::default();
        for event in story.log() {
            match &event.kind {
                EventKind::LoopToolCall(call) => went.decisions.push(format!("{}({})", call.tool, call.arguments)),
                EventKind::LoopAnswerRefused { message, .. } => went.refused.push(message.clone()),
                EventKind::LoopToolResult { result, .. } => went.results.push(match result {
                    ToolResult::Success { output, .. } => output.to_string(),
                    ToolResult::Error { message } => format!("error: {message}"),
                    other => format!("{other:?}"),
                }),
                EventKind::LoopComplete { outcome, .. } => went.outcome = Some(outcome.clone()),
                _ => {}
            }
        }
        went
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Write {
    /// The line to write.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Summary {
    /// What was done, in a few words.
    summary: String,
}

/// A goal of two steps: write a line, and report completion.
fn scribe(form: ActionFormat) -> Brain<(), Vec<String>> {
    brain("Scribe")
        .state(Vec::<String>::new())
        .r#loop("Work", move |cx| {
            cx.system("You decide on one action at a time. When a line is written, you finish.")
                .input("Write the line \"Hello, sea\" and finish.")
                .tool("write_line", |t| {
                    t.description("Writes a line of text").execute(async |Write { text }, cx| {
                        Ok(cx.result("written; now finish").update(move |lines: &mut Vec<String>| lines.push(text)))
                    })
                })
                .tool("finish", |t| {
                    t.description("Ends the work").exit().execute(async |Summary { summary }, _| Ok(summary))
                })
                .settings(Settings::builder().temperature(0.0).max_output_tokens(160).build())
                .action_format(form)
                .max_iterations(6)
        })
        .build()
}

async fn decide(form: ActionFormat) -> (Story, Went) {
    let began = tokio::time::Instant::now();
    let (story, _) = play(&scribe(form)).await;
    let went = Went::of(&story);
    println!("--- {form:?}: {:.1} s", began.elapsed().as_secs_f64());
    let metadata = every_answer(&story);
    let sum = |count: fn(&ResponseMetadata) -> u64| metadata.iter().map(count).sum::<u64>();
    println!(
        "{} requests, {} tokens in ({} cached), {} out; refused {}; {:?}",
        metadata.len(),
        sum(|metadata| metadata.usage.input),
        sum(|metadata| metadata.usage.cached),
        sum(|metadata| metadata.usage.output),
        went.refused.len(),
        went.outcome,
    );
    println!("decisions {:#?}\nresults {:#?}\nrefused {:#?}", went.decisions, went.results, went.refused);
    println!("state {:?}", story.state());
    (story, went)
}

/// Returns the response metadata of every answer, including refused ones, and prints the usage of each.
fn every_answer(story: &Story) -> Vec<ResponseMetadata> {
    let mut answers = Vec::new();
    for event in story.log() {
        let (metadata, duration, fits) = match &event.kind {
            EventKind::LoopModelResult { metadata, duration, .. } => (metadata.clone(), *duration, true),
            EventKind::LoopAnswerRefused { metadata, duration, .. } => ((**metadata).clone(), *duration, false),
            _ => continue,
        };
        println!(
            "{}: {} tokens in, {} of them cached, {} out, {:.2} s{}",
            event.path,
            metadata.usage.input,
            metadata.usage.cached,
            metadata.usage.output,
            duration.as_secs_f64(),
            if fits { "" } else { ", refused" },
        );
        answers.push(metadata);
    }
    answers
}

/// Asserts that the loop ends in one of the valid ways, whatever the model answers.
fn assert_valid_end(story: &Story, went: &Went) {
    match went.outcome.as_ref().unwrap() {
        LoopOutcome::Exited { tool } => assert_eq!(tool.as_str(), "finish"),
        LoopOutcome::MaxIterations => {}
        LoopOutcome::Failed { code, .. } => {
            assert_eq!(*code, EndReason::Action);
            assert_eq!(went.refused.len(), 4, "it was asked once, and three times again");
            assert!(matches!(story.settled(), Settled::Failed(_)));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn grammar_restricts_the_model_to_actions() {
    let (story, went) = decide(ActionFormat::Grammar).await;

    assert_valid_end(&story, &went);
    assert!(!went.decisions.is_empty());
    // Only a truncated answer can violate a grammar.
    assert!(went.refused.iter().all(|message| message.contains("cut off")), "{:?}", went.refused);
    assert!(went.results.iter().all(|result| !result.starts_with("error")), "{:?}", went.results);
}

#[tokio::test]
async fn schema_gives_one_object_and_an_input_that_may_belong_to_another_action() {
    let (story, went) = decide(ActionFormat::Schema).await;

    assert_valid_end(&story, &went);
    let open = |message: &String| message.contains("cut off") || message.contains("does not fit");
    assert!(went.refused.iter().all(open), "{:?}", went.refused);
}

#[tokio::test]
async fn text_format_reports_misfits_until_the_answer_fits_or_fails() {
    let (story, went) = decide(ActionFormat::Plain).await;

    assert_valid_end(&story, &went);
}

/// A dead server, with the small model as fallback.
fn with_a_dead_server_before_it(folder: &std::path::Path) -> DevCache<Fallback> {
    let config = |url: String, provider: &str| {
        OpenAiConfig::builder().base_url(format!("{url}/v1")).model("smollm2").provider(provider).build()
    };
    let server = address::address("POSITRONIC_SMALL_MODEL", ".ci/small-model");
    // A recently free port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dead = OpenAiChat::new(config(format!("http://127.0.0.1:{port}"), "dead")).unwrap();
    let alive = OpenAiChat::new(config(server, "llama-server")).unwrap();
    let alive = Concurrency::new(RateLimit::new(alive, RateLimits::builder().requests(10).tokens(5000).build()), 1);
    DevCache::new(Fallback::new(dead).then(alive), folder).unwrap()
}

#[tokio::test]
async fn fallback_replaces_a_dead_server_and_the_cache_answers_a_repeated_request() {
    let folder = tempfile::tempdir().unwrap();
    let brain = || {
        brain("Asker").r#loop("Ask", |cx| {
            cx.system("You are a helpful assistant.")
                .input("Name a colour.")
                .settings(Settings::builder().temperature(0.0).max_output_tokens(20).build())
        })
    };
    let mut stories = Vec::new();
    for _ in 0..2 {
        let runner = Runner::new(with_a_dead_server_before_it(folder.path())).ids(CountedIds::default());
        stories.push(Test::with(runner).run(brain(), ()).await);
    }

    let [first, second] = [0, 1].map(|run| every_answer(&stories[run]).remove(0));
    println!("{:?}\n{:?}", first.via, second.via);
    let down = |hop: &RoutingStep| matches!(hop, RoutingStep::Failed { kind: ModelErrorKind::Connection, model, .. } if model == "dead/smollm2");
    assert!(first.via.len() == 1 && down(&first.via[0]), "{:?}", first.via);
    assert_eq!(first.provider, "llama-server");
    assert!(
        matches!(&second.via[..], [RoutingStep::Cached { usage, .. }] if *usage == first.usage),
        "{:?}",
        second.via
    );
    assert_eq!(stories[0].transcript(), stories[1].transcript());
}
