//! Where `brain!` says that things are: where the author wrote them.

use std::panic::Location;

use positronic_macros::brain;

use crate::dsl::Brain;

/// The name at a place, read from this file: what the compiler would underline.
fn text_at<'a>(source: &'a str, place: &Location<'_>) -> &'a str {
    let line = source.lines().nth(place.line() as usize - 1).unwrap();
    line[place.column() as usize - 1..].split(['(', ':']).next().unwrap()
}

#[track_caller]
fn expect(brain: &Brain, names: &[&str]) {
    let source = include_str!("places.rs");
    let found: Vec<&str> = brain.stages[1..].iter().map(|(_, place)| text_at(source, place)).collect();
    assert_eq!(found, names);
}

#[test]
fn a_stage_is_where_its_author_wrote_it() {
    let brain = brain! {
        "Support" .step("a", async |_| ()) .loop("b", |_| ())
            .loop("c", |cx| cx.number())
    };
    assert_eq!(brain.title, "Support");
    expect(&brain, &["step", "loop", "loop"]);
    assert_eq!(brain.stages[3].1.line(), brain.stages[2].1.line() + 1);
}

#[test]
fn a_loop_inside_arguments_is_renamed_and_keeps_its_place() {
    let brain = brain! {
        "Outer"
        .brain({
            crate::dsl::brain("Inner")
                .loop("d", |cx| (0..loop { break 5 }).start + cx.number())
        })
        .loop::<u32>("e", |cx| cx.number())
    };
    expect(&brain, &["brain", "loop"]);
    expect(&brain.inner[0], &["loop"]);
}

#[test]
fn a_title_is_any_expression_up_to_the_first_dot() {
    const NAMES: [&str; 2] = ["Support", "Billing"];
    let names = (NAMES[0],);
    assert_eq!(brain! { NAMES[1] }.title, "Billing");
    assert_eq!(brain! { &format!("{} {}", NAMES[0], 2) .loop("a", |_| ()) }.title, "Support 2");
    assert_eq!(brain! { (names.0) .loop("a", |_| ()) }.title, "Support");
}

#[test]
fn loops_of_the_language_stay() {
    let brain = brain! {
        "x"
        .step("a", async |cx| {
            let mut rounds = 0..loop { break 5 };
            loop {
                if rounds.next().is_none() {
                    break cx.number();
                }
            }
        })
    };
    expect(&brain, &["step"]);
}
