//! Source positions: errors point at the author's code.
//!
//! The DSL panics at the position of the call, which is also what the compiler underlines.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use positronic_core::dsl::brain as plain;
use positronic_core::prelude::{Brain, Result};
use positronic_core::{brain, tool};

thread_local! {
    static WATCHING: Cell<bool> = const { Cell::new(false) };
    static PLACE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Returns the word of this file at which `build` panics.
fn panics_at<T>(build: impl FnOnce() -> T) -> &'static str {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| match info.location() {
            Some(place) if WATCHING.get() => PLACE.set((place.line(), place.column())),
            _ => usual(info),
        }));
    });
    WATCHING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(build));
    WATCHING.set(false);
    assert!(outcome.is_err(), "it did not panic");
    let (line, column) = PLACE.get();
    let line = include_str!("places.rs").lines().nth(line as usize - 1).unwrap();
    line[column as usize - 1..].split("//").next().unwrap().trim_end()
}

#[test]
fn renamed_call_keeps_its_span() {
    let place = panics_at(|| {
        brain! {
            "Support" .step("Chat", async |_| Ok(1)) .loop("Chat", |cx| cx.system("twice"))
        }
    });
    assert_eq!(place, r#"loop("Chat", |cx| cx.system("twice"))"#);
}

#[test]
fn renamed_call_inside_arguments_keeps_its_span() {
    let place = panics_at(|| {
        brain! {
            "Outer"
            .loop("Chat", |cx| cx.system("once"))
            .brain("Inner", {
                plain("Inner").step("a", async |_| Ok(1))
                    .loop("a", |cx| cx.system("within")) // this is it
            }).map_output(|(), inner| inner)
        }
    });
    assert_eq!(place, r#"loop("a", |cx| cx.system("within"))"#);
}

#[test]
fn call_beside_a_renamed_one_keeps_its_span() {
    let place = panics_at(|| brain! { "x" .loop("a", |cx| cx.system("")) .step("a", async |_| Ok(1)) }); // this is it
    assert_eq!(place, r#"step("a", async |_| Ok(1)) });"#);
}

#[test]
fn duplicate_tool_names_are_reported_where_they_are_added() {
    /// Stops.
    #[tool]
    async fn stop() -> Result<()> {
        Ok(())
    }
    let build = || brain! { "x" .loop("a", |cx| cx.system("").tools([stop(), stop()])) }; // this is it
    let place = panics_at(|| super::bench::iteration(build(), (), &super::bench::scope(().into(), ())));
    assert!(place.starts_with("tools([stop(), stop()])"), "{place}");
}

#[test]
fn title_is_any_expression_up_to_the_first_dot() {
    const NAMES: [&str; 2] = ["Support", "Billing"];
    let names = (NAMES[0],);
    let step = async |_| Ok(());
    assert_eq!(brain! { NAMES[1] }.step("Do", step).build().title(), "Billing");
    assert_eq!(brain! { format!("{} {}", NAMES[0], 2) .step("Do", step) }.build().title(), "Support 2");
    assert_eq!(brain! { (names.0) .step("Do", step) }.build().title(), "Support");
}

#[test]
#[expect(clippy::never_loop, reason = "`0..loop { break 5 }` must stay unchanged")]
fn loops_of_the_language_are_unchanged() {
    let counter: Brain<(), u32> = brain! {
        "Counter"
        .step("Count", async |_| {
            let mut iterations = 0..loop { break 5 };
            loop {
                if iterations.next().is_none() {
                    break Ok(iterations.end);
                }
            }
        })
        .loop("Say", |cx| cx.system(loop { break format!("{}", cx.state) }))
    }
    .build();
    let scope = super::bench::scope(5.into(), ());
    assert_eq!(&*super::bench::iteration(counter, (), &scope).system, "5");
}
