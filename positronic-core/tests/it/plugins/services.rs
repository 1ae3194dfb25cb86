//! Services that a plugin needs from its brain.

use positronic_core::dsl::{Options, Plugin, Preparation, Provides, State};
use positronic_core::prelude::*;

use super::Nothing;
use crate::support::contexts;
use crate::support::{Play, done};

/// A service that a plugin needs.
#[derive(Debug)]
struct Greeting(&'static str);

struct House {
    greeting: Greeting,
}

impl Provides<Greeting> for House {
    fn provided(&self) -> &Greeting {
        &self.greeting
    }
}

#[derive(Debug, Clone, Copy)]
struct Polite;

impl<O: Options, S: State, V: Provides<Greeting>> Plugin<O, S, V> for Polite {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        let greeting = cx.service::<Greeting>().0;
        cx.context("greeting", greeting);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_gets_its_services_from_the_brain() {
    let house = brain("House").services::<House>().r#loop("Greet", |cx| cx.system("Greet.").plugin(Polite));
    let bare = brain("Bare").services::<Greeting>().r#loop("Greet", |cx| cx.system("Greet.").plugin(Polite));
    let (one, other) = (Play::new([done()]), Play::new([done()]));

    one.run(&house.bind(House { greeting: Greeting("Good day") }), ()).await;
    other.run(&bare.bind(Greeting("Hello")), ()).await;

    assert_eq!(contexts(&one.last_request()), ["greeting: Good day"]);
    assert_eq!(contexts(&other.last_request()), ["greeting: Hello"]);
}
