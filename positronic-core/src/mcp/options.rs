//! What the author decides about a server's tools.

use std::time::Duration;

use typed_builder::TypedBuilder;

/// How the tools of a server are used. Tools are named as the server names them.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
pub struct McpOptions {
    /// The only tools that are used; all where nothing is said.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| {
        Some(names.into_iter().map(Into::into).collect())
    }))]
    pub only: Option<Vec<String>>,
    /// Tools that are not used.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub without: Vec<String>,
    /// Other names for tools: pairs of the server's name and the whole name that models and people see.
    #[builder(default, setter(transform = |pairs: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>| {
        pairs.into_iter().map(|(from, to)| (from.into(), to.into())).collect()
    }))]
    pub renamed: Vec<(String, String)>,
    /// Whether what the server says of its tools is believed: `readOnlyHint`, `idempotentHint` and `destructiveHint`. It is
    /// not where nothing is said: a server can say of any tool that it only reads.
    #[builder(default)]
    pub trust_annotations: bool,
    /// Tools of which the author knows that they change nothing: nobody is asked, they wait for no other call's approval, and
    /// run again after a crash.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub read_only: Vec<String>,
    /// Tools of which the author knows that running them twice with the same arguments is running them once. They are tried
    /// again after a failure and after a crash.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub idempotent: Vec<String>,
    /// Tools that may change something, and before whose calls nobody is asked all the same.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| strings(names)))]
    pub unattended: Vec<String>,
    /// Whether a person is asked before a call of a tool that may change something; `true` where nothing is said. With `false`,
    /// nobody is asked before any call.
    #[builder(default = true)]
    pub ask: bool,
    /// Whether what the server says about its use stands in the system prompt. It does not where nothing is said: it is a text
    /// of others.
    #[builder(default)]
    pub instructions: bool,
    /// Whether a loop goes on without the server's tools, and is told so, where the server never came up. The loop fails where
    /// nothing is said.
    #[builder(default)]
    pub optional: bool,
    /// How long a server that a run has worked with is waited for where it cannot be reached after a restart: before a loop
    /// fails, and before an open call does. 5 minutes where nothing is said; a server that no run knows is tried for a few seconds
    /// only, and an optional one is not waited for by loops.
    #[builder(default = Duration::from_secs(5 * 60))]
    pub patience: Duration,
    /// How long the server may take until it has started and listed its tools; 30 seconds where nothing is said: `npx` and
    /// the like first fetch what they run.
    #[builder(default = Duration::from_secs(30))]
    pub connect_timeout: Duration,
    /// How long the server may take for a call; 60 seconds where nothing is said, as for every tool.
    #[builder(default = Duration::from_secs(60))]
    pub call_timeout: Duration,
    /// How much of a result a model reads, in bytes; 32 KiB where nothing is said: some 8,000 tokens. What is longer is kept as
    /// a file, and the model reads its beginning and its end.
    #[builder(default = 32 << 10)]
    pub result: usize,
    /// How large one message of the server may be, in bytes; 16 MiB where nothing is said. After a larger one the connection is
    /// closed. Over HTTP it holds for messages of event streams; any other answer is held to 16 MiB.
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
