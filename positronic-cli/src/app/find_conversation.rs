//! Which conversation is meant: an id may be shortened while it fits one alone.

use positronic_core::record::RunId;
use positronic_core::runner::{Client, Ids as _, UuidIds};
use positronic_core::store::{RunFilter, StoreError};

use crate::app::failure::Failure;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::suggest::nearest;

/// How long the ids are that are made here, and how much of one is enough to go on with a chat by it.
const LENGTH: usize = 8;
const SHORTEST: usize = 4;
/// How many conversations an ambiguous id lists.
const CANDIDATES: usize = 8;

/// Finds the conversation whose id a person wrote, or its beginning.
pub(crate) async fn find(kept: &ProjectStore, written: &str, ui: &Ui) -> Result<String, Failure> {
    let all = kept.client().conversations().await?;
    if all.iter().any(|one| one.id == written) {
        return Ok(written.to_owned());
    }
    let begins = |id: &str| !written.is_empty() && id.starts_with(written);
    let meant: Vec<_> = all.iter().filter(|one| begins(&one.id)).collect();
    match &*meant {
        [only] => Ok(only.id.clone()),
        [] => {
            let near = nearest(written, all.iter().map(|one| one.id.as_str())).into_iter().map(str::to_owned).collect();
            let (written, place, list) = (written.to_owned(), kept.place.clone(), ui.command(&["conversations"]));
            Err(Failure::UnknownConversation { written, place, near, list })
        }
        several => {
            let candidates = several.iter().take(CANDIDATES);
            let mut candidates: Vec<String> =
                candidates.map(|one| format!("{}  {}, {}", one.id, one.last.brain, one.last.status.as_str())).collect();
            if several.len() > CANDIDATES {
                candidates.push("and more; use a longer prefix".to_owned());
            }
            Err(Failure::AmbiguousConversation { written: written.to_owned(), candidates })
        }
    }
}

/// Finds the conversation that a chat is to go on with. A name that no conversation has is that of a new one; the
/// beginning of an id that was made here is that id, as long as it fits one alone.
pub(crate) async fn known(kept: &ProjectStore, written: &str, ui: &Ui) -> Result<String, Failure> {
    let is_beginning =
        (SHORTEST..LENGTH).contains(&written.len()) && written.bytes().all(|byte| byte.is_ascii_hexdigit());
    match find(kept, written, ui).await {
        Ok(id) if id == written || (is_beginning && is_made(&id)) => Ok(id),
        Err(failure @ Failure::AmbiguousConversation { .. }) if is_beginning => Err(failure),
        Ok(_) | Err(Failure::UnknownConversation { .. } | Failure::AmbiguousConversation { .. }) => {
            Ok(written.to_owned())
        }
        Err(failure) => Err(failure),
    }
}

fn is_made(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Makes an id that no conversation has: short enough to be written, and with its chance at the beginning, so that a
/// part of it is enough.
pub(crate) async fn new_id(client: &Client) -> Result<String, StoreError> {
    loop {
        let drawn = UuidIds.run();
        // The last digits are drawn, the first ones say the time.
        let digits: String = drawn.as_str().chars().rev().filter(char::is_ascii_hexdigit).take(LENGTH).collect();
        let taken = RunFilter::builder().conversation(digits.as_str()).most(1).build();
        if client.store().runs(&taken).await?.is_empty() && !exists(client, &digits).await? {
            return Ok(digits);
        }
    }
}

/// Says whether there is a run of the name that the conversation's first one gets.
async fn exists(client: &Client, id: &str) -> Result<bool, StoreError> {
    match client.store().run(&RunId::new(format!("{id}-0"))).await {
        Ok(_) => Ok(true),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
