//! Processes that end in the middle of tools.

use positronic_core::record::ToolResult;

use crate::bench::Bench;
use crate::server::until;

#[tokio::test]
async fn a_killed_service_interrupts_only_the_call_in_flight_that_may_not_run_again() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.hold("b");
    bench.hold("c");
    bench.run("run", &[&[("pay", "a")], &[("pay", "b"), ("look", "c")], &[("pay", "d")]]).await;
    bench.noted("b begins").await;
    bench.noted("c begins").await;

    bench.kill_service();
    bench.let_end("b");
    bench.let_end("c");
    bench.serve().await;

    let log = bench.completed("run").await;
    assert!(matches!(log.result("Work/1.0"), ToolResult::Interrupted { .. }), "{:?}", log.result("Work/1.0"));
    assert!(log.succeeded("Work/0.0") && log.succeeded("Work/1.1") && log.succeeded("Work/2.0"));
    assert_eq!((bench.count("a begins"), bench.count("a done")), (1, 1));
    assert_eq!((bench.count("b begins"), bench.count("b done")), (1, 0), "never twice");
    assert_eq!((bench.count("c begins"), bench.count("c done")), (2, 1), "it is read-only");
    assert_eq!(log.done(), ["a", "c", "d"]);
}

#[tokio::test]
async fn a_call_in_another_process_outlives_the_process_that_drives_the_run() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.hold("a");
    bench.hold("b");
    bench.hold("c");
    bench.run("run", &[&[("pay", "a")], &[("pay", "b"), ("pay", "c")]]).await;
    bench.noted("a begins").await;
    bench.serve_elsewhere().await;
    bench.let_end("a");
    bench.noted("b begins").await;
    bench.noted("c begins").await;

    bench.kill_service();
    bench.let_end("b");
    bench.noted("b done").await;
    bench.serve().await;
    bench.let_end("c");

    let log = bench.completed("run").await;
    assert!(log.succeeded("Work/1.0") && log.succeeded("Work/1.1"), "{:?}", log.result("Work/1.0"));
    assert_eq!(bench.ledger().len(), 6, "each begins and ends once: {:?}", bench.ledger());
    assert_eq!(log.count("LOOP_TOOL_START"), 3, "the next process attaches to the calls");
    assert_eq!(log.sorted(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_killed_server_loses_no_call_of_a_living_service() {
    let Some(mut bench) = Bench::start().await else { return };
    for id in ["a", "b"] {
        bench.hold(id);
    }
    bench.run("run", &[&[("pay", "a"), ("pay", "b")], &[("pay", "c")]]).await;
    bench.noted("a begins").await;
    bench.noted("b begins").await;

    bench.server.kill();
    bench.let_end("a");
    bench.noted("a done").await;
    bench.server.restart().await;
    bench.let_end("b");

    let log = bench.completed("run").await;
    for (id, call) in [("a", "Work/0.0"), ("b", "Work/0.1"), ("c", "Work/1.0")] {
        assert_eq!((bench.count(&format!("{id} begins")), bench.count(&format!("{id} done"))), (1, 1), "{id}");
        assert!(log.succeeded(call), "{:?}", log.result(call));
    }
    assert_eq!(log.sorted(), ["a", "b", "c"]);
}

#[tokio::test]
async fn killed_server_and_service_together_keep_what_is_recorded() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.hold("b");
    bench.run("run", &[&[("pay", "a")], &[("pay", "b")], &[("pay", "c")]]).await;
    bench.noted("b begins").await;

    bench.server.kill();
    bench.kill_service();
    bench.let_end("b");
    bench.server.restart().await;
    bench.serve().await;

    let log = bench.completed("run").await;
    assert!(matches!(log.result("Work/1.0"), ToolResult::Interrupted { .. }), "{:?}", log.result("Work/1.0"));
    assert_eq!(bench.ledger(), ["a begins", "a done", "b begins", "c begins", "c done"]);
    assert_eq!(log.done(), ["a", "c"]);
}

#[tokio::test]
async fn a_call_that_ends_while_the_server_is_frozen_is_recorded_once() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.hold("a");
    bench.run("run", &[&[("pay", "a")], &[("pay", "b")]]).await;
    bench.noted("a begins").await;

    bench.server.signal("STOP");
    bench.let_end("a");
    bench.noted("a done").await;
    // The outcome is in the process of the call, and on the way to a server that dies.
    bench.server.signal("CONT");
    bench.server.kill();
    bench.server.restart().await;

    let log = bench.completed("run").await;
    assert_eq!(bench.ledger(), ["a begins", "a done", "b begins", "b done"]);
    assert!(log.succeeded("Work/0.0"), "{:?}", log.result("Work/0.0"));
}

#[tokio::test]
async fn parallel_calls_killed_in_the_middle_keep_the_results_of_those_that_ended() {
    let Some(mut bench) = Bench::start().await else { return };
    for id in ["c", "d"] {
        bench.hold(id);
    }
    let batch = [("pay", "a"), ("pay", "b"), ("pay", "c"), ("look", "d")];
    bench.run("run", &[&batch, &[("near", "e")]]).await;
    bench.noted("a done").await;
    bench.noted("b done").await;
    bench.noted("c begins").await;
    bench.noted("d begins").await;
    until("two results are recorded", async || bench.log("run").await.count("LOOP_TOOL_RESULT") == 2).await;

    bench.kill_service();
    for id in ["c", "d"] {
        bench.let_end(id);
    }
    bench.serve().await;

    let log = bench.completed("run").await;
    for id in ["a", "b"] {
        assert_eq!((bench.count(&format!("{id} begins")), bench.count(&format!("{id} done"))), (1, 1), "{id}");
    }
    assert_eq!((bench.count("c begins"), bench.count("c done")), (1, 0), "never twice");
    assert!(matches!(log.result("Work/0.2"), ToolResult::Interrupted { .. }), "{:?}", log.result("Work/0.2"));
    assert!(log.succeeded("Work/0.0") && log.succeeded("Work/0.1") && log.succeeded("Work/0.3"));
    assert_eq!(log.sorted(), ["a", "b", "d", "e"]);
    assert_eq!(log.count("LOOP_TOOL_START"), 6, "only the call that may run again begins again");
    assert_eq!(log.count("LOOP_TOOL_RETRY"), 1);
}

#[tokio::test]
async fn a_service_that_stops_ends_its_calls_and_takes_no_more() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.hold("a");
    bench.run("run", &[&[("pay", "a")], &[("pay", "b")]]).await;
    bench.noted("a begins").await;

    bench.stop_service();
    bench.let_end("a");
    bench.stopped().await;
    assert_eq!(bench.ledger(), ["a begins", "a done"]);
    bench.serve().await;

    let log = bench.completed("run").await;
    assert!(log.succeeded("Work/0.0") && log.succeeded("Work/1.0"), "{:?}", log.result("Work/0.0"));
    assert_eq!(bench.ledger(), ["a begins", "a done", "b begins", "b done"]);
}

#[tokio::test]
async fn a_call_longer_than_the_servers_patience_is_performed_once() {
    let Some(bench) = Bench::start().await else { return };

    bench.run("run", &[&[("slow", "a")]]).await;

    let log = bench.completed("run").await;
    assert_eq!(*log.result("Work/0.0"), ToolResult::Success { output: "run:Work/0.0".into(), brief: None });
    assert_eq!(log.count("RUN_CLAIMED"), 1, "no segment was cut off");
}

#[tokio::test]
async fn a_result_that_restate_cannot_store_is_an_error_of_the_call() {
    let Some(bench) = Bench::start().await else { return };

    bench.run("run", &[&[("large", "a")], &[("pay", "b")]]).await;

    let log = bench.completed("run").await;
    let ToolResult::Error { message, .. } = log.result("Work/0.0") else { panic!("{:?}", log.result("Work/0.0")) };
    assert!(message.starts_with("the tool did its work, but its result is too large"), "{message}");
}
