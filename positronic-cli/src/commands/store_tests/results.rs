//! `result`: what a run has returned.

use positronic_core::prelude::*;
use serde_json::json;

use super::desk::{Desk, begun, scripted};
use crate::app::Project;

#[test]
fn result_is_printed_with_an_exit_code_by_the_status_of_the_run() {
    let desk = Desk::new();
    let double = brain("Double").step("Double", async |_| Ok(42_u32));
    let fails = brain("Fails").step("Fail", async |_| Err::<(), _>("no stock".into()));
    let (double, fails) = (scripted([]).brain(double), scripted([]).brain(fails));
    desk.call(&double, &["run", "double", "--id", "order-1"]);
    desk.call(&fails, &["run", "fails", "--id", "order-2"]);
    begun(&desk, "ticket-1");
    let result = |arguments: &[&str]| desk.call(&Project::new(), arguments);

    let completed = result(&["result", "order-1", "--wait"]);
    assert_eq!((completed.code, &*completed.out, &*completed.err), (0, "42\n", ""));
    assert_eq!(desk.json(&["result", "order-1"]), json!({"run": "order-1", "status": "completed", "result": 42}));

    let failed = result(&["result", "order-2"]);
    assert_eq!((failed.code, &*failed.out), (1, ""));
    assert!(failed.err.starts_with("the run order-2 has no result: it is failed: ") && failed.err.contains("no stock"));
    let failed = result(&["result", "order-2", "--json"]);
    assert!(failed.code == 1 && failed.out.contains("\"status\": \"failed\""), "{}", failed.out);

    let waiting = result(&["result", "ticket-1"]);
    assert_eq!((waiting.code, &*waiting.out), (3, ""));
    assert!(waiting.err.ends_with("wait for its end with: desk result ticket-1 --wait\n"), "{}", waiting.err);
}

#[test]
fn result_waits_for_the_end_of_the_run() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    std::thread::scope(|threads| {
        let result = threads.spawn(|| desk.call(&Project::new(), &["result", "ticket-1", "--wait", "--json"]));
        let cancelled = desk.call(&scripted([]), &["cancel", "ticket-1"]);
        assert_eq!(cancelled.code, 0, "{}", cancelled.err);
        let result = result.join().unwrap();
        assert!(result.code == 4 && result.out.contains("\"status\": \"cancelled\""), "{}{}", result.out, result.err);
    });
}
