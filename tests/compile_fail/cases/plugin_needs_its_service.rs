//! A plugin with a service needs a brain whose services contain it.

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Provides, State};
use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

struct Mailer;
struct Acme;

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Read;

impl PluginState for Read {
    const NAME: &'static str = "post";
}

struct Post;

impl<O: Options, S: State, V: Provides<Mailer>> Plugin<O, S, V> for Post {
    type State = Read;

    fn initial(&self) -> Read {
        Read
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Read>) -> Result<()> {
        let _: &Mailer = cx.service();
        Ok(())
    }
}

fn main() {
    _ = brain("Clerk").services::<Acme>().r#loop("Sort", |cx| cx.system("Sort the post.").plugin(Post));
}
