//! `finish`: ends the loop with a summary and artifacts.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::Reply;
use positronic_core::record::LoopOutcome;
use positronic_toolbox::{self as toolbox, Finished};
use serde_json::{Value, json};

use crate::desk::{Place, desk};
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Play, error_of, results};

#[tokio::test]
async fn loop_ends_with_the_agents_summary_and_the_state_contains_it() {
    let place = Place::new();
    place.folder.write("report.md", b"Tea.").unwrap();
    let folder = place.folder.clone();
    let said = json!({"summary": "The report is there.", "artifacts": ["report.md"]});
    let play = Play::new([Reply::call("finish", said.clone())]);
    let keep = |end: &mut Option<Finished>, finished| *end = Some(finished);

    let story = play.run(&desk(move || vec![toolbox::finish_with(Some(&folder), keep)]), ()).await;

    assert_eq!(*story.state(), said);
    let outcome = crate::support::prompt(&story, "Work").outcome;
    assert!(matches!(outcome, Some(LoopOutcome::Exited { .. })), "{outcome:?}");
}

#[tokio::test]
async fn missing_artifacts_and_an_empty_summary_do_not_end_the_loop() {
    let place = Place::new();
    place.folder.write("report.md", b"Tea.").unwrap();
    let folder = place.folder.clone();
    let play = Play::new([
        Reply::call("finish", json!({"summary": "Done.", "artifacts": ["report.md", "chart.png", "../secret.txt"]})),
        Reply::call("finish", json!({"summary": " "})),
        Reply::call("finish", json!({"result": "Done."})),
        Reply::call("finish", json!({"summary": "Done."})),
    ]);

    let story = play.run(&desk::<Option<u8>>(move || vec![toolbox::finish(Some(&folder))]), ()).await;

    let results = results(&story, "Work");
    let missing = error_of(&results[0]);
    assert!(missing.contains("there is no `chart.png` in the output folder"), "{missing}");
    assert!(missing.contains("`../secret.txt` is not a valid path"), "{missing}");
    assert!(!missing.contains("`report.md`"), "existing artifacts are not reported: {missing}");
    assert_eq!(error_of(&results[1]), "the summary is empty; say what was reached");
    assert!(error_of(&results[2]).contains("summary"));
    assert!(results[3].is_success());
}

#[tokio::test(start_paused = true)]
async fn loop_ends_once_after_a_crash_anywhere_in_finish() {
    let keep = |end: &mut Option<Finished>, finished| *end = Some(finished);
    let tale = Tale {
        definition: desk(move || vec![toolbox::finish_with(None, keep)]).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Work/0" => Reply::call("finish", json!({"summary": "Done."})),
            other => panic!("unexpected iteration {other}"),
        }),
        answers: Arc::new(|_| Vec::new()),
    };

    let baseline = tale.undisturbed().await;

    assert!(baseline.deaths.len() > 3, "{}", baseline.deaths.len());
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}
