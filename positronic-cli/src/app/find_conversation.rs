//! Lookup of conversations by id or unambiguous prefix.

use positronic_core::record::RunId;
use positronic_core::runner::{Client, Ids as _, UuidIds};
use positronic_core::store::{RunFilter, StoreError};

use crate::app::failure::Failure;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::suggest::nearest;

/// Length of a generated id, and minimum length of a prefix that continues a chat.
const LENGTH: usize = 8;
const SHORTEST: usize = 4;
/// Maximum number of listed candidates.
const CANDIDATES: usize = 8;

/// Finds a conversation by its id or a prefix of it.
pub(crate) async fn find(store: &ProjectStore, written: &str, ui: &Ui) -> Result<String, Failure> {
    let all = store.client().conversations().await?;
    if all.iter().any(|one| one.id == written) {
        return Ok(written.to_owned());
    }
    let begins = |id: &str| !written.is_empty() && id.starts_with(written);
    let meant: Vec<_> = all.iter().filter(|one| begins(&one.id)).collect();
    match &*meant {
        [only] => Ok(only.id.clone()),
        [] => {
            let near = nearest(written, all.iter().map(|one| one.id.as_str())).into_iter().map(str::to_owned).collect();
            let (written, place, list) = (written.to_owned(), store.location.clone(), ui.command(&["conversations"]));
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

/// Finds the conversation that a chat continues. An unknown name begins a conversation; an unambiguous prefix of a
/// generated id is that id.
pub(crate) async fn known(store: &ProjectStore, written: &str, ui: &Ui) -> Result<String, Failure> {
    let is_beginning =
        (SHORTEST..LENGTH).contains(&written.len()) && written.bytes().all(|byte| byte.is_ascii_hexdigit());
    match find(store, written, ui).await {
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

/// Generates an unused id: short enough to type, and random from its first digit, so that a prefix is enough.
pub(crate) async fn new_id(client: &Client) -> Result<String, StoreError> {
    loop {
        let drawn = UuidIds.run();
        // The last digits are random, the first ones are the time.
        let digits: String = drawn.as_str().chars().rev().filter(char::is_ascii_hexdigit).take(LENGTH).collect();
        let taken = RunFilter::builder().conversation(digits.as_str()).limit(1).build();
        if client.store().runs(&taken).await?.is_empty() && !exists(client, &digits).await? {
            return Ok(digits);
        }
    }
}

/// Returns whether the id of the conversation's first run is used.
async fn exists(client: &Client, id: &str) -> Result<bool, StoreError> {
    match client.store().run(&RunId::new(format!("{id}-0"))).await {
        Ok(_) => Ok(true),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
