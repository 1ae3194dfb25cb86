//! Mistakes of authors that types cannot prevent: each panics before anything runs, and says what to do.

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;

fn desk() -> Brain {
    brain("Desk").step("Open", async |_| Ok(())).build()
}

fn runner() -> Runner {
    Runner::new(ScriptedModel::new([]))
}

#[test]
#[should_panic(expected = "the runner has two brains named `Desk`; give one of them another title")]
fn runner_refuses_two_brains_of_one_title() {
    _ = runner().brain(desk()).brain(desk());
}

#[test]
fn runner_takes_the_same_brain_twice() {
    let desk = desk();

    assert_eq!(runner().brain(&desk).brain(desk).definitions().count(), 1);
}

#[test]
#[should_panic(expected = "` ` cannot be the title of a brain, by which people and commands name it")]
fn brain_needs_a_title_with_a_letter() {
    _ = brain(" ");
}
