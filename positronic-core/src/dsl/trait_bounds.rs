//! Trait bounds of the types in a brain, each with an explanatory compiler message.

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values can be the state of a brain.
///
/// The state is stored as JSON, and code sees the decoded value. So a value must survive a round trip through
/// JSON: floats are finite, integers fit into 64 bits, the keys of a map are strings (or
/// numbers, or `bool`s), and the type decodes its own encoding. The JSON nests at most
/// [64 levels](crate::record::MAX_DOCUMENT_DEPTH) and has at most
/// [8 MiB](crate::record::MAX_DOCUMENT_BYTES), or the limit of the runner's builder (`max_document_bytes`). A value beyond
/// that is an error of the step, the tool or the `on_exit` that made it, which names the location in the value, and nothing
/// of it is stored. Fields with `#[serde(skip)]` are lost. Every type that derives `Serialize` and `Deserialize` and owns its
/// data is a `State`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of a brain",
    label = "this type cannot be written as JSON and read back",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`, and let it own its data"
)]
pub trait State: Serialize + DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> State for T {}

/// A type for the options of a brain: they are stored, and their schema is shown to people and models.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the options of a brain",
    label = "this type has no schema, or cannot be written as JSON and read back",
    note = "derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`"
)]
pub trait Options: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static> Options for T {}

/// A type for a tool's arguments; the model sees its schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "a tool's arguments are decoded from JSON by a schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`; a tool without arguments takes `NoArgs`"
)]
pub trait ToolArgs: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolArgs for T {}

/// A type for what a webhook or a person sends to a waiting call; it is checked against its schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the payload of a webhook",
    label = "this type has no schema, against which a payload is checked",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`; any JSON is a `serde_json::Value`"
)]
pub trait Payload: JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema + 'static> Payload for T {}

/// A type for an answer of a model or a person; the answer is checked against its schema and decoded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of an answer",
    label = "an answer is decoded from JSON by a schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`; any text is a `String`"
)]
pub trait TypedAnswer: DeserializeOwned + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + 'static> TypedAnswer for T {}

/// A closure of a loop's configuration that runs later: for a call, for its result, or at the end of the loop.
#[diagnostic::on_unimplemented(
    message = "this closure captures what it cannot use later, such as the `cx` of the loop around it",
    label = "this closure runs later, on any thread, when the loop's `cx` is gone",
    note = "use the closure's own arguments, such as `|arguments, cx| …` in `.approval`, `.wait` and `.execute`",
    note = "or copy what it needs before the tool, `let limit = cx.state.limit;`, and write `move |…| …`"
)]
pub trait Standalone: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + Sync + 'static> Standalone for T {}

/// Marks a tool without a known type of arguments.
#[derive(Debug)]
pub struct Unset(());

/// Marks the type of a tool's arguments, set by its first closure.
#[derive(Debug)]
pub struct Args<T>(std::marker::PhantomData<fn(T)>);

/// Ensures that all closures of a tool have the same type of arguments.
#[diagnostic::on_unimplemented(
    message = "the closures of one tool take the same arguments, but this one takes `{T}`",
    label = "another closure of this tool takes other arguments",
    note = "give `.approval`, `.wait` and `.execute` of one tool the same argument type"
)]
pub trait Agrees<T> {}

impl<T> Agrees<T> for Unset {}
impl<T> Agrees<T> for Args<T> {}

/// The return value of an approval closure, or a future of it: `Some(reason)` requires an approval.
#[diagnostic::on_unimplemented(
    message = "an approval closure returns `Option<String>`, not `{Self}`",
    label = "`Some(reason)` asks a person, `None` lets the call run",
    note = "return `Option<String>`, or a future of one"
)]
pub trait IntoVerdict<When> {
    /// Makes the verdict.
    fn into_verdict(self) -> BoxFuture<'static, Option<String>>;
}

/// Marks an immediate verdict.
#[derive(Debug)]
pub struct Now(());

/// Marks a verdict from a future.
#[derive(Debug)]
pub struct Later(());

impl IntoVerdict<Now> for Option<String> {
    fn into_verdict(self) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(self))
    }
}

#[diagnostic::do_not_recommend]
impl<F: Future<Output = Option<String>> + Send + 'static> IntoVerdict<Later> for F {
    fn into_verdict(self) -> BoxFuture<'static, Option<String>> {
        Box::pin(self)
    }
}
