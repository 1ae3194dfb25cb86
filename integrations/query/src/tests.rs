use super::term_match::Needle;
use super::*;
use positronic_core::record::{Money, Status, Timestamp};
use positronic_core::store::RunFilter;

/// 2026-11-27 23:30 UTC, in a zone that is an hour ahead.
const CLOCK: QueryClock = QueryClock { now: Timestamp(1_795_822_200_000_000), utc_offset: 3600 };

fn parsed(text: &str) -> RunQuery {
    RunQuery::parse(text, CLOCK).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn conditions_make_a_filter() {
    let hour = 3_600_000_000;
    let midnight = Timestamp(1_795_822_200_000_000 - hour / 2);
    for (text, expected) in [
        ("", RunFilter::default()),
        ("status:failed,waiting", RunFilter::builder().status(vec![Status::Failed, Status::Waiting]).build()),
        ("brain:\"Agent loop\"  user:ann", RunFilter::builder().brain("Agent loop").user("ann").build()),
        ("model:openai/gpt-5-mini", RunFilter::builder().model("openai/gpt-5-mini").build()),
        ("tool:refund tag:urgent", RunFilter::builder().tool("refund").tag("urgent").build()),
        ("cost:>0.1", RunFilter::builder().min_cost(Money::of_nanos(100_000_001)).build()),
        ("cost:>=0.1", RunFilter::builder().min_cost(Money::of_nanos(100_000_000)).build()),
        ("cost:<5", RunFilter::builder().max_cost(Money::of_nanos(4_999_999_999)).build()),
        (
            "cost:1..2",
            RunFilter::builder()
                .min_cost(Money::of_nanos(1_000_000_000))
                .max_cost(Money::of_nanos(2_000_000_000))
                .build(),
        ),
        ("since:today", RunFilter::builder().since(midnight).build()),
        (
            "since:yesterday before:today",
            RunFilter::builder().since(Timestamp(midnight.0 - 24 * hour)).before(midnight).build(),
        ),
        ("since:2026-11-28", RunFilter::builder().since(midnight).build()),
        ("since:2h", RunFilter::builder().since(Timestamp(CLOCK.now.0 - 2 * hour)).build()),
        ("since:2026-11-27T22:30:00Z", RunFilter::builder().since(Timestamp(CLOCK.now.0 - hour)).build()),
        ("needs:decision conversation:c1", RunFilter::builder().person(true).conversation("c1").build()),
    ] {
        let query = parsed(text);
        assert_eq!((query.filter(), query.needles.len()), (&expected, 0), "{text}");
    }
}

#[test]
fn how_runs_stand_narrows_the_statuses_and_is_looked_at_in_each_row() {
    let both = vec![Status::Running, Status::Waiting];
    for (text, statuses, is_counted_by_store) in [
        ("status:stuck", both.clone(), false),
        ("status:\"cut off\"", vec![Status::Completed], false),
        ("status:running,stuck,waiting", both, false),
        ("status:running,paused", vec![Status::Running, Status::Paused], true),
    ] {
        let query = parsed(text);
        assert_eq!((&query.filter().status, query.is_counted_by_store()), (&statuses, is_counted_by_store), "{text}");
    }
}

#[test]
fn other_words_are_looked_for_in_events() {
    let text = |text: &str| Needle::Text(text.to_owned());
    for (query, needles) in [
        ("espresso machine", vec![text("espresso"), text("machine")]),
        ("a \"b  c\" leaks \"\"", vec![text("leaks"), text("b  c"), text("a")]),
        ("\"status:failed\"", vec![text("status:failed")]),
        ("https://example.org/a", vec![text("https://example.org/a")]),
        ("Note: leaks", vec![text("Note:"), text("leaks")]),
        ("amount:249", vec![Needle::Field("amount".to_owned(), "249".to_owned())]),
        (
            "leaks amount:249 status:failed now",
            vec![Needle::Field("amount".to_owned(), "249".to_owned()), text("leaks"), text("now")],
        ),
    ] {
        assert_eq!(parsed(query).needles, needles, "{query}");
    }
}

#[test]
fn error_points_at_the_word_and_suggests() {
    for (text, at, message) in [
        ("user:ann stats:failed", 9..14, "`stats`: there is no such key; did you mean `status`?"),
        (
            "status:faild",
            0..12,
            "`status:faild`: there is no status `faild`: expected running, waiting, paused, completed, failed, cancelled, stuck, queued, sleeping, parked, cut off; did you mean `failed`?",
        ),
        ("cost:much", 0..9, "`cost:much`: expected a cost such as >0.1, <=5 or 0.1..5"),
        ("cost:5..1", 0..9, "`cost:5..1`: 5 is more than 1; write 1..5"),
        ("cost:<0", 0..7, "`cost:<0`: no run costs less than nothing"),
        (
            "x since:soon",
            2..12,
            "`since:soon`: expected an age such as 24h or 7d, today, yesterday, or a date such as 2026-11-27",
        ),
        ("tag:", 0..4, "`tag:`: the value is missing: a tag of a run"),
        ("tag:a tag:b", 6..11, "`tag:b`: this key is there twice"),
        ("needs:money", 0..11, "`needs:money`: expected decision; write needs:decision"),
        ("brain:\"Agent", 0..12, "`brain:\"Agent`: the closing quote is missing"),
    ] {
        let error = RunQuery::parse(text, CLOCK).unwrap_err();
        assert_eq!((error.at.clone(), error.to_string().as_str()), (at, message), "{text}");
    }
}

#[test]
fn search_has_a_limit_of_words() {
    assert!(RunQuery::parse(&"e ".repeat(32), CLOCK).is_ok());
    let error = RunQuery::parse(&"e ".repeat(33), CLOCK).unwrap_err();
    assert_eq!((error.at.clone(), error.to_string().as_str()), (64..65, "`e`: a search has at most 32 words"));
}

#[test]
fn number_is_found_whole_and_field_by_its_value() {
    let field = |value: &str| Needle::Field("amount".to_owned(), value.to_owned());
    for (needle, line, found) in [
        (Needle::Text("249".to_owned()), r#"{"at":1795824900000000,"text":"no"}"#, false),
        (Needle::Text("249".to_owned()), r#"{"at":1795824900000000,"text":"249 euros"}"#, true),
        (Needle::Text("Euros".to_owned()), r#"{"text":"249 euros"}"#, true),
        (field("249"), r#"{"arguments":{"amount":249}}"#, true),
        (field("249"), r#"{"arguments":{"amount":2490}}"#, false),
        (field("249"), r#"{"arguments":{"amount":2490,"more":{"amount":249,"x":1}}}"#, true),
        (field("high"), r#"{"arguments":{"amount":"Higher"}}"#, true),
        (field("true"), r#"{"amount":false}"#, false),
    ] {
        assert_eq!(needle.is_in(line), found, "{needle:?} in {line}");
    }
}
