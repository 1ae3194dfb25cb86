pub(crate) mod stories;

use std::time::Duration;

use positronic_core::record::{
    CODE, DeltaKind, EventKind, LimitKind, LimitReached, LoopOutcome, ModelErrorKind, Part, PriceTable,
    ResponseMetadata, RoutingStep, StageKind, Usage,
};

use super::text::width;
use super::{Plain, Style, View, render};
use stories::{Beat, Story};

fn told(story: &Story) -> View {
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
    render(&told(story), &Style { width, ..Style::default() })
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
fn a_run_with_tools_to_its_end() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("tools_{width}"), frame(&stories::tools(), width));
    }
}

#[test]
fn an_approval_that_is_pending() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("pending_{width}"), frame(&stories::pending(), width));
    }
}

#[test]
fn an_edited_approval_and_a_wait() {
    insta::assert_snapshot!(frame(&stories::waiting(), 80));
}

#[test]
fn a_brain_as_a_tool_and_a_brain_as_a_stage() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("nested_{width}"), frame(&stories::nested(), width));
    }
}

#[test]
fn a_tool_that_fails_and_a_model_that_is_asked_again() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("failing_{width}"), frame(&stories::failing(), width));
    }
    insta::assert_snapshot!("failed_80", frame(&stories::failed(), 80));
}

#[test]
fn a_decision_is_shown_with_its_reason_and_one_that_was_refused_with_what_was_wrong() {
    insta::assert_snapshot!("deciding_80", frame(&stories::deciding(), 80));
    insta::assert_snapshot!("deciding_plain", plain(&stories::deciding()));
}

#[test]
fn only_models_are_counted_and_an_answer_that_was_refused_is_paid_for() {
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
    assert_eq!((view.timeline.answers, view.cost().as_str()), (1, "cost 1.25 USD"));
}

#[test]
fn a_loop_that_a_limit_ended_has_no_check_mark() {
    let iterations = stories::limited(EventKind::LoopMaxIterations { limit: 1 }, LoopOutcome::MaxIterations);
    insta::assert_snapshot!(frame(&iterations, 80), @r#"
    Support Agent  customer_id="C-17"
    ✓ Load customer  210 ms
    ◌ Chat  ended by its limit of 1 iteration · 1,624 tokens in, 90 out · 1.3 s
      › Where is my order, and can I have a refund for the kettle?
      ✓ order_status order="A-1723"  80 ms
        → shipped
    ✓ Close  5 ms
    ✓ completed · 1.5 s · 812 tokens in, 45 out · cost unknown
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
fn a_cancelled_run() {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("cancelled_{width}"), frame(&stories::cancelled(), width));
    }
}

#[test]
fn what_streams_before_the_answer_is_complete() {
    insta::assert_snapshot!(frame(&stories::streaming(), 60));
}

#[test]
fn outputs_and_progress_of_a_running_tool() {
    insta::assert_snapshot!(frame(&stories::outputs(), 60));
}

#[test]
fn a_widget_takes_the_place_of_the_one_that_it_replaces() {
    insta::assert_snapshot!("updates", frame(&stories::updates(1), 60));
    let lines = plain(&stories::updates(0));
    let told: Vec<&str> = lines.lines().filter_map(|line| line.split_once('%').map(|(line, _)| &line[8..])).collect();
    assert_eq!(
        told,
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
fn ascii_style_prints_only_ascii() {
    let style = Style { unicode: false, ..Style::default() };
    for story in all() {
        let frame = render(&told(&story), &style);
        assert!(frame.is_ascii(), "{frame}");
    }
}

#[test]
fn no_line_is_wider_than_the_frame_and_no_control_character_gets_through() {
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
fn a_frame_keeps_within_its_height_and_keeps_what_is_open() {
    let view = told(&stories::pending());
    for height in 4..12 {
        let frame = render(&view, &Style { height: Some(height), ..Style::default() });
        assert!(frame.lines().count() <= height);
        assert!(frame.contains("waiting"), "{frame}");
    }
    insta::assert_snapshot!(render(&view, &Style { height: Some(9), ..Style::default() }));
}

#[test]
fn colours_surround_the_same_text() {
    let view = told(&stories::tools());
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
    ]
}

/// A model fails in the midst of its answer, and another one steps in.
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
