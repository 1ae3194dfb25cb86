//! Memory: facts about a user that outlive the run, stored and searched by the model, and shown where relevant.

mod fact;
mod in_memory;
mod rank;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt::Write as _;
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use fact::{Fact, FactId, FactOwner};
pub use in_memory::MemoryFacts;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteFacts;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::record::{ContentHash, Path, hash_text};
use positronic_core::{Error, Result};

use super::latest_input;

/// The maximum length of a fact, in characters.
const LONGEST: usize = 1000;

/// The maximum number of facts that the model's own search returns.
const ANSWERED: usize = 20;

/// A store of facts: [`MemoryFacts`], `SqliteFacts`, or an application's own store, for instance with semantic
/// search.
///
/// Facts of one owner are never visible to another. A fact's id is derived from its text ([`FactId::of`]), so storing
/// the same text twice has no effect, and a retried call after a crash stores nothing twice.
///
/// ```
/// use positronic_plugins::{Fact, FactId, FactOwner, FactStore, MemoryFacts};
/// use positronic_core::Result;
///
/// /// Never shows what looks like a secret.
/// struct Careful(MemoryFacts);
///
/// impl FactStore for Careful {
///     async fn remember(&self, owner: &FactOwner, text: &str) -> Result<Fact> {
///         self.0.remember(owner, &text.replace("password", "…")).await
///     }
///     async fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> Result<Vec<Fact>> {
///         self.0.search(owner, query, limit).await
///     }
///     async fn forget(&self, owner: &FactOwner, id: &FactId) -> Result<bool> {
///         self.0.forget(owner, id).await
///     }
///     async fn list(&self, owner: &FactOwner) -> Result<Vec<Fact>> {
///         self.0.list(owner).await
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no store of facts",
    label = "it cannot remember",
    note = "write `impl FactStore for {Self}`, or use `MemoryFacts` or `SqliteFacts`"
)]
pub trait FactStore: Send + Sync + 'static {
    /// Stores a fact for an owner; an existing one is unchanged.
    ///
    /// # Errors
    ///
    /// An [`Error`] when it cannot be stored.
    fn remember(&self, owner: &FactOwner, text: &str) -> impl Future<Output = Result<Fact>> + Send;

    /// Finds the facts of an owner that match a query, best match first. Any text is a
    /// query; one without words finds nothing.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the search fails.
    fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> impl Future<Output = Result<Vec<Fact>>> + Send;

    /// Deletes a fact of an owner, and returns whether it existed.
    ///
    /// # Errors
    ///
    /// An [`Error`] when it may still exist.
    fn forget(&self, owner: &FactOwner, id: &FactId) -> impl Future<Output = Result<bool>> + Send;

    /// Lists the facts of an owner, oldest first.
    ///
    /// # Errors
    ///
    /// An [`Error`] when they cannot be read.
    fn list(&self, owner: &FactOwner) -> impl Future<Output = Result<Vec<Fact>>> + Send;
}

impl<F: FactStore> FactStore for Arc<F> {
    fn remember(&self, owner: &FactOwner, text: &str) -> impl Future<Output = Result<Fact>> + Send {
        F::remember(self, owner, text)
    }

    fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> impl Future<Output = Result<Vec<Fact>>> + Send {
        F::search(self, owner, query, limit)
    }

    fn forget(&self, owner: &FactOwner, id: &FactId) -> impl Future<Output = Result<bool>> + Send {
        F::forget(self, owner, id)
    }

    fn list(&self, owner: &FactOwner) -> impl Future<Output = Result<Vec<Fact>>> + Send {
        F::list(self, owner)
    }
}

/// Lets the model remember facts about a user across runs.
///
/// | tool | what it does | flags |
/// |---|---|---|
/// | `memory.store {fact}` | stores a fact of at most 1,000 characters, and returns its id | idempotent |
/// | `memory.search {query}` | returns at most 20 facts, best match first | read-only |
/// | `memory.forget {id}` | deletes a fact if it exists | idempotent |
///
/// Before each iteration, the facts that match the latest user input are a context item named `memory`; at most 5 unless
/// [`top`](Self::top) is set. Matches are stored, so a search is made only when the input changes, and a
/// restart sends the same facts; a deleted fact disappears at once. When the search fails, a warning is
/// logged, the iteration uses the earlier matches, and the next one searches again.
///
/// **Owner.** Facts belong to the run's user ([`FactOwner::User`]). A run without a user has its own facts
/// ([`FactOwner::Run`]), shared by all of its loops and brains: two anonymous users never share a memory.
/// [`owner`](Self::owner) sets another owner, for instance a team.
///
/// The store is a constructor argument, so a brain needs no services for it.
///
/// ```
/// use positronic_plugins::{Memory, MemoryFacts};
/// use positronic_core::prelude::*;
///
/// let memory = Memory::new(MemoryFacts::default()).top(3);
/// let brain = brain("Companion").r#loop("Chat", move |cx| {
///     cx.system("Remember what the user tells you of themselves.").input("I eat no nuts.").plugin(memory.clone())
/// });
/// # let _ = brain;
/// ```
#[derive(Clone)]
#[must_use = "a memory has its effect when it is given to a loop"]
#[derive_where(Debug)]
pub struct Memory {
    #[derive_where(skip)]
    facts: Arc<dyn AnyFacts>,
    top: usize,
    owner: Option<FactOwner>,
}

/// The state of [`Memory`]; read it with `cx.plugin_state::<RecalledFacts>()`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecalledFacts {
    /// The path of the searching loop.
    pub loop_at: String,
    /// The hash of query and owner, as text; empty if there was none.
    pub query: String,
    /// The matches, best first.
    pub found: Vec<Fact>,
}

impl PluginState for RecalledFacts {
    const NAME: &'static str = "memory";
}

impl Memory {
    /// Creates the plugin with its store.
    pub fn new(facts: impl FactStore) -> Self {
        Self { facts: Arc::new(facts), top: 5, owner: None }
    }

    /// Sets the maximum number of facts shown before an iteration; with 0, only the model searches.
    pub const fn top(mut self, facts: usize) -> Self {
        self.top = facts;
        self
    }

    /// Sets the owner of the facts instead of the run's user.
    pub fn owner(mut self, owner: FactOwner) -> Self {
        self.owner = Some(owner);
        self
    }
}

/// A type-erased store.
trait AnyFacts: Send + Sync {
    fn remember<'a>(&'a self, owner: &'a FactOwner, text: &'a str) -> BoxFuture<'a, Result<Fact>>;
    fn search<'a>(&'a self, owner: &'a FactOwner, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Fact>>>;
    fn forget<'a>(&'a self, owner: &'a FactOwner, id: &'a FactId) -> BoxFuture<'a, Result<bool>>;
}

impl<F: FactStore> AnyFacts for F {
    fn remember<'a>(&'a self, owner: &'a FactOwner, text: &'a str) -> BoxFuture<'a, Result<Fact>> {
        Box::pin(FactStore::remember(self, owner, text))
    }

    fn search<'a>(&'a self, owner: &'a FactOwner, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Fact>>> {
        Box::pin(FactStore::search(self, owner, query, limit))
    }

    fn forget<'a>(&'a self, owner: &'a FactOwner, id: &'a FactId) -> BoxFuture<'a, Result<bool>> {
        Box::pin(FactStore::forget(self, owner, id))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Store {
    /// One fact, as a sentence that can be understood alone
    fact: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// Words that stand in the fact
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Forget {
    /// The fact's id
    id: FactId,
}

fn fingerprint(owner: &FactOwner, top: usize, query: &str) -> ContentHash {
    hash_text(&format!("{owner}\n{top} {query}"))
}

fn checked(fact: &str) -> Result<&str> {
    let fact = fact.trim();
    match fact.chars().count() {
        0 => Err(Error::new("the fact is empty")),
        long if long > LONGEST => Err(Error::new(format!(
            "a fact has at most {LONGEST} characters, and this one has {long}: store what matters, as several facts"
        ))),
        _ => Ok(fact),
    }
}

fn shown(found: &[Fact]) -> String {
    let mut text = "Facts from earlier conversations, each with its id:".to_owned();
    for Fact { id, text: fact } in found {
        _ = write!(text, "\n- {fact} ({id})");
    }
    text
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Memory {
    type State = RecalledFacts;

    fn initial(&self) -> RecalledFacts {
        RecalledFacts::default()
    }

    fn tool_names(&self, own: &dyn Fn(&str) -> String) -> Vec<String> {
        ["memory.store", "memory.search", "memory.forget"].map(own).to_vec()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, RecalledFacts>) -> Result<()> {
        let owner = self.owner.clone().unwrap_or_else(|| match cx.user_id() {
            Some(user) => FactOwner::User(user.to_owned()),
            None => FactOwner::Run(cx.run_id().clone()),
        });
        let loop_at = cx.path().parent().as_ref().map(Path::to_string).unwrap_or_default();
        if cx.state.loop_at != loop_at {
            cx.state = RecalledFacts { loop_at, ..RecalledFacts::default() };
        }
        let query = cx.history().and_then(latest_input).unwrap_or_default();
        let hash = fingerprint(&owner, self.top, &query).to_string();
        if self.top == 0 || query.trim().is_empty() {
            (cx.state.query, cx.state.found) = (String::new(), Vec::new());
        } else if cx.state.query != hash {
            match self.facts.search(&owner, &query, self.top).await {
                Ok(mut found) => {
                    found.truncate(self.top);
                    (cx.state.query, cx.state.found) = (hash, found);
                }
                Err(error) => {
                    tracing::warn!(run = %cx.run_id(), path = %cx.path(), %error, "no facts are found for this iteration");
                }
            }
        }
        if !cx.state.found.is_empty() {
            let text = shown(&cx.state.found);
            cx.context("memory", text);
        }

        let known = (Arc::clone(&self.facts), Arc::new(owner));
        cx.tool("memory.store", |t| {
            let known = known.clone();
            t.description("Remembers a fact about the user for later conversations").idempotent().execute(
                move |Store { fact }, _| {
                    let (facts, owner) = known.clone();
                    async move { Ok(json!({ "id": facts.remember(&owner, checked(&fact)?).await?.id })) }
                },
            )
        })?;
        cx.tool("memory.search", |t| {
            let known = known.clone();
            t.description("Searches the remembered facts about the user by keywords").read_only().execute(
                move |Search { query }, _| {
                    let (facts, owner) = known.clone();
                    async move { facts.search(&owner, &query, ANSWERED).await }
                },
            )
        })?;
        cx.tool("memory.forget", |t| {
            t.description("Deletes a remembered fact about the user that is no longer true or no longer wanted")
                .idempotent()
                .execute(move |Forget { id }, cx| {
                    let (facts, owner) = known.clone();
                    async move {
                        facts.forget(&owner, &id).await?;
                        cx.update(move |recalled| recalled.found.retain(|fact| fact.id != id));
                        Ok("forgotten")
                    }
                })
        })
    }
}
