pub(crate) mod files;
pub(crate) mod stories;

use std::collections::HashMap;
use std::time::Duration;

use positronic_core::prices::PriceTable;
use positronic_core::record::{
    CODE, DeltaKind, EventKind, LimitKind, LimitReached, LoopOutcome, ModelErrorKind, Part, ResponseMetadata,
    RoutingStep, StageKind, Usage,
};

use serde_json::Value;

use super::cost_line::cost;
use super::sentences::sentences;
use super::text::width;
use super::{Plain, Style, View, render};
use stories::{Beat, Story};

fn view_of(story: &Story) -> View {
    let mut view = View::new();
    for beat in &story.beats {
        match beat {
            Beat::Event(event) => view.apply(event),
            Beat::Delta(delta) => view.apply_delta(delta),
        }
    }
    view.tick(story.now());
    view
}

fn frame(story: &Story, width: usize) -> String {
    render(&view_of(story), &Style { width, ..Style::default() })
}

fn plain(story: &Story) -> String {
    let mut out = Vec::new();
    let mut plain = Plain::new(&mut out, Style::default());
    for beat in &story.beats {
        if let Beat::Event(event) = beat {
            plain.event(event).unwrap();
        }
    }
    drop(plain);
    String::from_utf8(out).unwrap()
}

#[test]
fn step_that_runs_again_after_a_crash_says_so() {
    let claim = |owner: &str| EventKind::RunClaimed { owner: owner.to_owned(), trace: None };
    let stages = [("Load", StageKind::Step), ("Save", StageKind::Step)];
    let story = Story::default()
        .brain("", "Stock", Value::Null, &stages)
        .event("", claim("first"))
        .step("Load", 200)
        .event("Save", EventKind::StepStart { attempt: 0 })
        .after(800)
        .event("", claim("second"));
    assert_eq!(
        plain(&story),
        "00:00.0 Stock starts\n00:00.2 Load: done in 200 ms\n00:01.0 Save: run again after a crash\n"
    );
    insta::assert_snapshot!(frame(&story, 80), @r"
    Stock
    ✓ Load  200 ms
    ⠹ Save
      → run again after a crash
    ⠹ running · 1 s
    ");
    let released = Story::default()
        .brain("", "Stock", Value::Null, &stages)
        .event("", claim("first"))
        .event("Load", EventKind::StepStart { attempt: 0 })
        .event("", EventKind::RunReleased { reason: "it ends".to_owned() })
        .event("", claim("second"));
    assert_eq!(plain(&released), "00:00.0 Stock starts\n00:00.0 Load: run again\n");
}

#[test]
fn run_with_tools_is_shown() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("tools_{width}"), frame(&stories::tools(), width));
    }
}

#[test]
fn pending_approval_is_shown() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("pending_{width}"), frame(&stories::pending(), width));
    }
}

#[test]
fn edited_approval_and_a_wait_are_shown() {
    insta::assert_snapshot!(frame(&stories::waiting(), 80));
}

#[test]
fn nested_brains_are_shown() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("nested_{width}"), frame(&stories::nested(), width));
    }
}

#[test]
fn failing_tool_and_retried_model_are_shown() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("failing_{width}"), frame(&stories::failing(), width));
    }
    insta::assert_snapshot!("failed_80", frame(&stories::failed(), 80));
}

#[test]
fn structured_action_shows_its_reason_and_a_refused_one_its_fault() {
    insta::assert_snapshot!("deciding_80", frame(&stories::deciding(), 80));
    insta::assert_snapshot!("deciding_plain", plain(&stories::deciding()));
}

#[test]
fn usage_counts_model_answers_including_refused_ones() {
    let metadata = |provider: &str, input| {
        let usage = Usage { input, ..Usage::default() };
        ResponseMetadata {
            provider: provider.to_owned(),
            model: "gpt-5".to_owned(),
            usage,
            ..ResponseMetadata::default()
        }
    };
    let code = EventKind::LoopModelResult { parts: [].into(), metadata: metadata(CODE, 0), duration: Duration::ZERO };
    let refused = EventKind::LoopAnswerRefused {
        attempt: 0,
        guard: None,
        calls: Vec::new(),
        message: "no action".to_owned(),
        parts: [].into(),
        metadata: metadata("openai", 1_000_000).into(),
        duration: Duration::ZERO,
    };
    let mut view = View::new().priced(Some(PriceTable::bundled()));

    for beat in &Story::default().event("Chat/0", code.clone()).event("Chat/1", code).beats {
        if let Beat::Event(event) = beat {
            view.apply(event);
        }
    }
    assert_eq!(view.timeline.answers, 0);
    for beat in &Story::default().event("Chat/2", refused).beats {
        if let Beat::Event(event) = beat {
            view.apply(event);
        }
    }
    assert_eq!((view.timeline.answers, cost(&view.timeline).as_str()), (1, "cost 1.25 USD"));
}

#[test]
fn loop_ended_by_a_limit_has_no_check_mark() {
    let iterations = stories::limited(EventKind::LoopMaxIterations { limit: 1 }, LoopOutcome::MaxIterations);
    insta::assert_snapshot!(frame(&iterations, 80), @r#"
    Support Agent  customer_id="C-17"
    ✓ Load customer  210 ms
    ◌ Chat  ended by its limit of 1 iteration · 1,624 tokens in, 90 out · 1.3 s
      › Where is my order, and can I have a refund for the kettle?
      ✓ order_status order="A-1723"  80 ms
        → shipped
    ✓ Close  5 ms
    ◌ completed, cut off · 1.5 s · 812 tokens in, 45 out · cost unknown
    "#);
    let limit = |kind, limit| {
        let reached =
            EventKind::LoopLimit(LimitReached { kind, limit, used: limit, of: None, shared: false, unpriced: None });
        let frame = frame(&stories::limited(reached, LoopOutcome::Limit { limit: kind }), 100);
        frame.lines().find(|line| line.contains("Chat")).unwrap().to_owned()
    };
    insta::assert_snapshot!(limit(LimitKind::Tokens, 1_000), @"◌ Chat  1 iteration · ended by its limit of 1,000 tokens · 1,624 tokens in, 90 out · 1.3 s");
    insta::assert_snapshot!(limit(LimitKind::Time, 90_000_000), @"◌ Chat  1 iteration · ended by its limit of 1 min 30 s · 1,624 tokens in, 90 out · 1.3 s");
}

#[test]
fn cancelled_run_is_shown() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("cancelled_{width}"), frame(&stories::cancelled(), width));
    }
}

#[test]
fn streaming_answer_is_shown() {
    insta::assert_snapshot!(frame(&stories::streaming(), 60));
}

#[test]
fn outputs_and_progress_of_a_running_tool_are_shown() {
    insta::assert_snapshot!(frame(&stories::outputs(), 60));
}

#[test]
fn replacing_widget_takes_the_place_of_the_earlier_one() {
    insta::assert_snapshot!("updates", frame(&stories::updates(1), 60));
    let lines = plain(&stories::updates(0));
    let view_of: Vec<&str> =
        lines.lines().filter_map(|line| line.split_once('%').map(|(line, _)| &line[8..])).collect();
    assert_eq!(
        view_of,
        [
            "Chat › report: shows: 0 ",
            "Chat › report: updated: 50 ",
            "Chat › tidy: updated: 90 ",
            "Chat › tidy: updated: 100 ",
        ]
    );
}

#[test]
fn plain_lines() {
    insta::assert_snapshot!("plain_tools", plain(&stories::tools()));
    insta::assert_snapshot!("plain_waiting", plain(&stories::waiting()));
    insta::assert_snapshot!("plain_failed", plain(&stories::failed()));
}

#[test]
fn sentences_of_a_node_only_grow() {
    for story in all() {
        let (mut view, mut said) = (View::new(), HashMap::<_, Vec<String>>::new());
        for beat in &story.beats {
            let Beat::Event(event) = beat else { continue };
            view.apply(event);
            for node in view.timeline.nodes() {
                let now = sentences(&view.timeline, node);
                let before = said.insert(node.id, now.clone()).unwrap_or_default();
                assert!(now.starts_with(&before), "{before:?}, then {now:?}");
            }
        }
    }
}

#[test]
fn ascii_style_prints_only_ascii() {
    let style = Style { unicode: false, ..Style::default() };
    for story in all() {
        let frame = render(&view_of(&story), &style);
        assert!(frame.is_ascii(), "{frame}");
    }
}

#[test]
fn lines_fit_the_frame_and_contain_no_control_characters() {
    for story in all() {
        for columns in (20..=200).step_by(3) {
            let frame = frame(&story, columns);
            for line in frame.lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

#[test]
fn frame_fits_its_height_and_shows_what_is_open() {
    let view = view_of(&stories::pending());
    for height in 4..12 {
        let frame = render(&view, &Style { height: Some(height), ..Style::default() });
        assert!(frame.lines().count() <= height);
        assert!(frame.contains("waiting"), "{frame}");
    }
    insta::assert_snapshot!(render(&view, &Style { height: Some(9), ..Style::default() }));
    let narrow = render(&view, &Style { height: Some(4), width: 15, ..Style::default() });
    assert!(narrow.lines().any(|line| line.starts_with("⋯ ") && line.ends_with('…') && width(line) <= 15), "{narrow}");
}

#[test]
fn colours_surround_the_same_text() {
    let view = view_of(&stories::tools());
    let colour = render(&view, &Style { colour: true, ..Style::default() });

    assert!(colour.contains("\u{1b}[32m✓\u{1b}[0m"));
    assert_eq!(strip(&colour), render(&view, &Style::default()));
}

fn strip(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').unwrap().1);
    }
    plain
}

fn all() -> Vec<Story> {
    vec![
        stories::tools(),
        stories::pending(),
        stories::waiting(),
        stories::nested(),
        stories::failing(),
        stories::failed(),
        stories::cancelled(),
        stories::limited(EventKind::LoopMaxIterations { limit: 1 }, LoopOutcome::MaxIterations),
        stories::streaming(),
        stories::outputs(),
        files::answered(),
    ]
}

/// A model fails during its answer, and its fallback answers.
fn stepped_in() -> Story {
    Story::default()
        .brain("", "Support", serde_json::Value::Null, &[("Chat", StageKind::Loop)])
        .loop_start("Chat", None)
        .ask("Chat/0")
        .delta("Chat/0", DeltaKind::Text, "The first mod")
        .anew()
        .delta("Chat/0", DeltaKind::Text, "The second ")
        .delta("Chat/0", DeltaKind::Text, "model")
}

#[test]
fn stream_of_a_failed_model_is_not_shown_next_to_the_answer_of_its_fallback() {
    let story = stepped_in();
    let shown = frame(&story, 80);
    assert!(shown.contains("The second model") && !shown.contains("The first"), "{shown}");

    let failed = RoutingStep::Failed {
        model: "openai/gpt-5".to_owned(),
        kind: ModelErrorKind::Server,
        message: "overloaded (HTTP 503)".to_owned(),
    };
    let metadata = ResponseMetadata {
        provider: "groq".to_owned(),
        model: "llama".to_owned(),
        via: vec![failed],
        ..ResponseMetadata::default()
    };
    let parts = [Part::Text { text: "The second model".to_owned() }].into();
    let story =
        story.event("Chat/0", EventKind::LoopModelResult { parts, metadata, duration: Duration::from_millis(1300) });

    for shown in [frame(&story, 100), plain(&story)] {
        assert_eq!(shown.matches("The second model").count(), 1, "{shown}");
        assert!(shown.contains("openai/gpt-5 failed: overloaded (HTTP 503); answered by groq/llama"), "{shown}");
    }
}
