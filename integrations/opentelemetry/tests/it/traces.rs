//! Exported traces of real runs: examples, approvals, waits, retries, forks, and their content.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use positronic_core::model::cassette::Cassette;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Amounts, ModelError, ModelErrorKind, Path, Settings, SignalKind, Start};
use positronic_core::runner::{Fork, Settled};
use positronic_core::testing::Story;
use serde_json::json;

use crate::machines::{Bench, gated, path, pays};
use crate::receiver::texts;

async fn played<B: positronic_core::dsl::Runnable>(cassette: &str, brain: B, options: B::Options) -> Bench {
    let bench = Bench::new();
    let cassette = Arc::new(Cassette::replay(cassette).unwrap());
    let machine = bench.machine(Arc::clone(&cassette));
    machine.test.play_with(&cassette, brain, options).await;
    machine.flush().await;
    let ids: std::collections::HashSet<_> = bench.receiver.spans().into_iter().map(|span| span.span_id).collect();
    assert_eq!(ids.len(), bench.receiver.spans().len(), "without a crash, no span arrives twice");
    bench
}

#[tokio::test(start_paused = true)]
async fn nested_brain_is_an_agent_in_an_agent() {
    use positronic_examples::nested::{CASSETTE, Newsroom, Topic, newsletter};
    let bench = played(CASSETTE, newsletter().bind(Newsroom::example()), Topic::default()).await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Newsletter status=completed
        2 step Plan
        3 invoke_agent Research status=completed
          4 loop Read outcome=answered
            5 iteration n=0
              6 chat nested
              7 execute_tool search
            8 iteration n=1
              9 chat nested
              10 execute_tool note
              11 execute_tool note
            12 iteration n=2
              13 chat nested
        14 step Write
          15 chat nested
    ");
}

#[tokio::test(start_paused = true)]
async fn waits_and_brains_as_tools_of_the_support_agent() {
    use positronic_examples::acme::Acme;
    use positronic_examples::support::{CASSETTE, SupportOptions, support};
    let bench = played(CASSETTE, support().bind(Acme::example()), SupportOptions::default()).await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Support suspended=true
        2 step Load customer
        3 loop Chat suspended=true
          4 iteration n=0
            5 chat support
            6 execute_tool check_order_status
            7 execute_tool search_knowledge_base
          8 iteration suspended=true n=1
            9 chat support
            10 execute_tool send_response suspended=true
            11 wait webhook verdict=answered by=the cassette
    trace
      15 invoke_agent Support suspended=true [previous_segment: 1 invoke_agent Support] [wait: 11 wait webhook]
        12 loop Chat suspended=true
          13 iteration n=1
            14 execute_tool send_response [wait: 11 wait webhook]
          16 iteration n=2
            17 chat support
            18 execute_tool process_refund
              19 invoke_agent Refund Desk status=completed
                20 step Check
                21 step Rule
                  22 chat support
          23 iteration suspended=true n=3
            24 chat support
            25 wait approval verdict=approved by=the cassette
    trace
      26 invoke_agent Support suspended=true [previous_segment: 15 invoke_agent Support] [wait: 25 wait approval]
        27 loop Chat outcome=exited
          28 iteration n=3
            29 execute_tool refund [wait: 25 wait approval]
          30 iteration n=4
            31 chat support
            32 execute_tool resolve_ticket
        33 invoke_agent Survey suspended=true
          34 loop Ask suspended=true
            35 iteration suspended=true n=0
              36 chat support
              37 execute_tool ask_customer suspended=true
              38 wait webhook verdict=answered by=the cassette
    trace
      43 invoke_agent Support status=completed [previous_segment: 26 invoke_agent Support] [wait: 38 wait webhook]
        39 invoke_agent Survey status=completed
          40 loop Ask outcome=exited
            41 iteration n=0
              42 execute_tool ask_customer [wait: 38 wait webhook]
            44 iteration n=1
              45 chat support
              46 execute_tool record_score
        47 step Cleanup
    ");
}

#[tokio::test(start_paused = true)]
async fn wait_lasts_from_the_request_to_the_decision_in_the_segment_of_the_request() {
    let bench = Bench::new();
    let machine = bench.machine(pays());
    let run = machine.test.start(gated(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(Duration::from_hours(3)).await;

    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    Story::of(&run).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Shop suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
            5 wait approval verdict=approved by=ann
    trace
      6 invoke_agent Shop status=completed [previous_segment: 1 invoke_agent Shop] [wait: 5 wait approval]
        7 loop Work outcome=answered
          8 iteration n=0
            9 execute_tool pay [wait: 5 wait approval]
          10 iteration n=1
            11 chat scripted
    ");
    let spans = bench.receiver.spans();
    let wait = spans.iter().find(|span| span.name == "wait approval").unwrap();
    assert_eq!((wait.end_time_unix_nano - wait.start_time_unix_nano) / 1_000_000_000, 3 * 3600);
}

#[tokio::test(start_paused = true)]
async fn rejected_cancelled_and_paused_work() {
    let bench = Bench::new();
    let machine = bench.machine(pays());
    let rejected = machine.test.start(gated(), ()).await;
    assert!(matches!(rejected.settled().await, Settled::Waiting(_)));
    rejected.reject(&path("Work/0.0"), "too dear", "bob").await.unwrap();
    Story::of(&rejected).await;
    tokio::time::sleep(Duration::from_secs(60)).await;

    let cancelled = machine.test.start(gated(), ()).await;
    assert!(matches!(cancelled.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    cancelled.pause().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    cancelled.resume().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    cancelled.cancel("enough").await.unwrap();
    Story::of(&cancelled).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Shop suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
            5 wait approval verdict=rejected by=bob
    trace
      6 invoke_agent Shop status=completed [previous_segment: 1 invoke_agent Shop] [wait: 5 wait approval]
        7 loop Work outcome=answered
          8 iteration n=1
            9 chat scripted
    trace
      10 invoke_agent Shop suspended=true
        11 loop Work suspended=true
          12 iteration suspended=true n=0
            13 chat scripted
            14 wait approval verdict=withdrawn
        15 wait pause verdict=resumed
    trace
      16 invoke_agent Shop error=cancelled status=cancelled [previous_segment: 10 invoke_agent Shop] [wait: 15 wait pause] [wait: 14 wait approval]
    ");
}

#[tokio::test(start_paused = true)]
async fn tries_of_models_tools_and_steps_are_spans() {
    let bench = Bench::new();
    let busy = ModelError { status: Some(429), ..ModelError::new(ModelErrorKind::RateLimited, "slow down, secret") };
    let replies =
        [Reply::error(busy), Reply::calls([("flaky", json!({})), ("invented", json!({}))]), Reply::text("Done.")];
    let machine = bench.machine(ScriptedModel::new(replies));
    let tried = Arc::new(AtomicU32::new(0));
    let brain = brain("Tries").r#loop("Work", move |cx| {
        let tried = Arc::clone(&tried);
        cx.system("Work.").input("Go.").tool("flaky", |t| {
            t.idempotent().retries(1).execute(move |_: NoArgs, _| {
                let is_first = tried.fetch_add(1, Ordering::Relaxed) == 0;
                async move { if is_first { Err(Error::transient("not yet, secret")) } else { Ok("at last") } }
            })
        })
    });

    machine.test.run(brain, ()).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Tries status=completed
        2 loop Work outcome=answered
          3 iteration n=0
            4 chat scripted error=rate_limited retried=true
            5 chat scripted attempt=1
            6 execute_tool error=tool
            7 execute_tool flaky error=tool retried=true
            8 execute_tool flaky attempt=1
          9 iteration n=1
            10 chat scripted
    ");
    let spans = bench.receiver.spans();
    let refused = spans.iter().find(|span| span.name == "chat scripted").unwrap();
    assert_eq!(texts(&refused.attributes)["http.response.status_code"], "429");
    assert!(!bench.receiver.has("secret"), "the texts of errors are content");
}

#[tokio::test(start_paused = true)]
async fn budget_is_a_wait() {
    let bench = Bench::new();
    let replies = [Reply::call("look", json!({})), Reply::text("Seen.")];
    let machine = bench.machine(ScriptedModel::new(replies));
    let brain = brain("Limited").budget(|budget| budget.max_iterations(1).ask_for_more()).r#loop("Work", |cx| {
        cx.system("Look.").input("Go.").tool("look", |t| t.read_only().execute(async |_: NoArgs, _| Ok("seen")))
    });
    let run = machine.test.start(brain, ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    run.grant(&Path::root(), Amounts::iterations(5), "ann").await.unwrap();
    Story::of(&run).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Limited suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
            5 execute_tool look
        6 wait budget verdict=approved by=ann
    trace
      7 invoke_agent Limited status=completed [previous_segment: 1 invoke_agent Limited] [wait: 6 wait budget]
        8 loop Work outcome=answered
          9 iteration n=1
            10 chat scripted
    ");
}

#[tokio::test(start_paused = true)]
async fn fork_exports_only_its_own_spans_and_links_to_its_origin() {
    let bench = Bench::new();
    let machine = bench.machine(pays());
    let run = machine.test.start(gated(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    machine.flush().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let runner = machine.test.runner().clone().brain(gated());
    let at = run.events(positronic_core::record::Seq(0)).await.unwrap().last().unwrap().seq;

    let fork = runner.fork(run.id(), at, Fork::default()).await.unwrap();
    assert!(matches!(fork.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    fork.approve(&path("Work/0.0"), "ann").await.unwrap();
    Story::of(&fork).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Shop suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
    trace
      6 invoke_agent Shop status=completed [forked_from: 1 invoke_agent Shop]
        5 wait approval verdict=approved by=ann
        7 loop Work outcome=answered
          8 iteration n=0
            9 execute_tool pay [wait: 5 wait approval]
          10 iteration n=1
            11 chat scripted
    ");
}

#[tokio::test(start_paused = true)]
async fn trace_context_of_a_start_is_the_parent_and_that_of_a_signal_a_link() {
    let bench = Bench::new();
    let machine = bench.machine(pays());
    let asked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let decided = "00-11111111111111111111111111111111-2222222222222222-01";
    let actor = Actor::builder().by("web").build().traced(asked, Some("vendor=1"));
    let start = Start { actor, ..Start::default() };
    let run = machine.test.runner().start_with(gated(), (), start).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let signal = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({})) };
    run.signal(signal, Actor::builder().by("ann").build().traced(decided, None)).await.unwrap();
    Story::of(&run).await;
    machine.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace (parent in another system)
      1 invoke_agent Shop suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
            5 wait approval verdict=approved by=ann [signal: elsewhere]
    trace
      6 invoke_agent Shop status=completed [previous_segment: 1 invoke_agent Shop] [wait: 5 wait approval]
        7 loop Work outcome=answered
          8 iteration n=0
            9 execute_tool pay [wait: 5 wait approval]
          10 iteration n=1
            11 chat scripted
    ");
    let spans = bench.receiver.spans();
    let first = spans.iter().find(|span| span.name == "invoke_agent Shop").unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&first.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((hex(&first.parent_span_id).as_str(), first.trace_state.as_str()), ("b7ad6b7169203331", "vendor=1"));
    let wait = spans.iter().find(|span| span.name == "wait approval").unwrap();
    assert_eq!(hex(&wait.links[0].trace_id), "11111111111111111111111111111111");
    let segments: std::collections::HashSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(segments.len(), 2, "the second segment is a trace of its own");
}

#[tokio::test(start_paused = true)]
async fn segment_follows_the_sampling_of_its_parent() {
    let bench = Bench::new();
    let machine = bench.machine(ScriptedModel::new([Reply::text("Hello.")]));
    let unsampled = Actor::default().traced("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", None);
    let start = Start { actor: unsampled, ..Start::default() };
    let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hi."));

    let run = machine.test.runner().start_with(greeter, (), start).await.unwrap();
    Story::of(&run).await;
    machine.flush().await;

    assert_eq!(bench.tree(), "");
}

#[tokio::test(start_paused = true)]
async fn content_is_exported_only_on_request() {
    let texts = ["Sell.", "It is paid.", "paid by card", "too dear"];
    for with_content in [false, true] {
        let bench = Bench::new();
        let machine = bench.machine_with(pays(), |traces| if with_content { traces.with_content() } else { traces });
        let approved = machine.test.start(gated(), ()).await;
        assert!(matches!(approved.settled().await, Settled::Waiting(_)));
        approved.approve(&path("Work/0.0"), "ann").await.unwrap();
        Story::of(&approved).await;
        let rejected = machine.test.start(gated(), ()).await;
        assert!(matches!(rejected.settled().await, Settled::Waiting(_)));
        rejected.reject(&path("Work/0.0"), "too dear", "ann").await.unwrap();
        Story::of(&rejected).await;
        machine.flush().await;

        assert!(bench.receiver.has("invoke_agent"));
        for text in texts {
            assert_eq!(bench.receiver.has(text), with_content, "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn chat_has_the_attributes_of_the_conventions() {
    let bench = Bench::new();
    let usage = positronic_core::record::Usage { input: 90, output: 12, cached: 64, ..Default::default() };
    let machine = bench.machine(ScriptedModel::new([Reply::text("Hello.").usage(usage)]));
    let settings = || Settings::builder().temperature(0.5).max_output_tokens(100).build();
    let greeter = brain("Greeter").r#loop("Greet", move |cx| cx.system("Greet.").input("Hi.").settings(settings()));
    machine.test.run(greeter, ()).await;
    machine.flush().await;

    let spans = bench.receiver.spans();
    let chat = spans.iter().find(|span| span.name == "chat scripted").unwrap();
    let mut lines: Vec<_> = texts(&chat.attributes).iter().map(|(name, value)| format!("{name} = {value}")).collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @"
    gen_ai.conversation.id = run-1
    gen_ai.operation.name = chat
    gen_ai.provider.name = scripted
    gen_ai.request.max_tokens = 100
    gen_ai.request.model = scripted
    gen_ai.request.temperature = 0.5
    gen_ai.response.finish_reasons = [stop]
    gen_ai.response.model = scripted
    gen_ai.usage.cache_read.input_tokens = 64
    gen_ai.usage.input_tokens = 90
    gen_ai.usage.output_tokens = 12
    positronic.event = 4
    positronic.path = Greet/0
    positronic.run = run-1
    ");
    assert_eq!(chat.kind, 3, "a chat is a client's span");
}
