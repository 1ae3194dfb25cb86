//! Options of a server.

use std::time::Duration;

use typed_builder::TypedBuilder;

/// Options for the tools of a server. Tools have the server's names here.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
pub struct McpOptions {
    /// The only tools to use; all by default.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| {
        Some(names.into_iter().map(Into::into).collect())
    }))]
    pub only: Option<Vec<String>>,
    /// Tools to omit.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub without: Vec<String>,
    /// New names for tools: pairs of the server's name and the full name for models and people.
    #[builder(default, setter(transform = |pairs: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>| {
        pairs.into_iter().map(|(from, to)| (from.into(), to.into())).collect()
    }))]
    pub renamed: Vec<(String, String)>,
    /// Whether the server's annotations are trusted: `readOnlyHint`, `idempotentHint` and `destructiveHint`. `false` by default,
    /// since a server can declare any tool as read-only.
    #[builder(default)]
    pub trust_annotations: bool,
    /// Tools that change nothing: they need no approval, do not wait for the approval of other calls, and may be rerun after a
    /// crash.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub read_only: Vec<String>,
    /// Tools for which a repeated call with the same arguments has no further effect. They are retried after a failure and after
    /// a crash.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub idempotent: Vec<String>,
    /// Tools that may change something but need no approval.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub unattended: Vec<String>,
    /// Whether a call that may change something needs a person's approval; `true` by default. With `false`, no call needs one.
    #[builder(default = true)]
    pub ask: bool,
    /// Whether the server's instructions are added to the system prompt; `false` by default, since they are untrusted text.
    #[builder(default)]
    pub instructions: bool,
    /// Whether a loop continues without the server's tools if the server was never reached; the model is informed. `false` by
    /// default: the loop fails.
    #[builder(default)]
    pub optional: bool,
    /// How long a run waits after a restart for a server that it has used before, before a loop or an open call fails. 5 minutes
    /// by default; a server that is new to the run is tried only for a few seconds, and loops do not wait for an optional one.
    #[builder(default = Duration::from_secs(5 * 60))]
    pub reconnect_timeout: Duration,
    /// The timeout for starting the server and listing its tools; 30 seconds by default, since `npx` and the like first download
    /// the program.
    #[builder(default = Duration::from_secs(30))]
    pub connect_timeout: Duration,
    /// The timeout of a call; 60 seconds by default, as for every tool.
    #[builder(default = Duration::from_secs(60))]
    pub call_timeout: Duration,
    /// The maximum size of a result for the model, in bytes; 32 KiB by default, some 8,000 tokens. A longer one is stored as a
    /// file, and the model reads its beginning and its end.
    #[builder(default = 32 << 10)]
    pub result: usize,
    /// The maximum size of a message from the server, in bytes; 16 MiB by default. A larger one closes the connection. Over HTTP
    /// it applies to event streams; other answers are limited to 16 MiB.
    #[builder(default = 16 << 20)]
    pub message: usize,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

fn strings(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}
