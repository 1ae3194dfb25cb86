//! One turn of a conversation: which one a request continues, and the leg that follows the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use positronic_core::definition::BrainDefinition;
use positronic_core::record::{CallerTool, RunId, RunSummary, Seq};
use positronic_core::runner::{Ids as _, UuidIds};
use positronic_server::extension::{CallResult, Decision, RequestContext, ThreadMessage};
use positronic_server::{Problem, ProblemType};
use serde_json::Value;

use super::error::unsupported;
use super::history::{self, KnownChat};
use super::models::unknown;
use super::newest::{Newest, NewestInput};
use super::speech::{Speech, SpeechEncoder};
use crate::decisions::Decisions;
use crate::leg::Leg;
use crate::shared::Shared;
use crate::thread::{Thread, open_calls, text_question, with_place_of_options};

/// The headers with the conversation of a chat: ours, and that of Open WebUI.
const HEADERS: [&str; 2] = ["x-positronic-conversation", "x-openwebui-chat-id"];
/// How long an answer waits for a run that only a program or a time can continue, before it says so. The API has no word for it while the
/// answer is open, and clients and proxies give up after 30 seconds and more.
const HOLD: Duration = Duration::from_secs(20);
/// The field of `metadata` with it.
const FIELD: &str = "conversation";

/// A turn that has begun.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) conversation: String,
    pub(super) run: RunId,
    /// The event from which on the answer is followed.
    pub(super) from: Seq,
}

/// What a turn begins with.
pub(super) struct TurnOpening<'a> {
    pub(super) brain: &'a str,
    pub(super) newest: &'a Newest,
    pub(super) options: Option<Value>,
    /// The caller's own tools.
    pub(super) caller_tools: Vec<CallerTool>,
    /// The calls of the last answer, each of which needs a result.
    pub(super) asked: Vec<String>,
    /// The program in commands that clients are shown.
    pub(super) program: &'a str,
}

/// Returns the conversation that a request names.
pub(super) fn named(cx: &RequestContext, metadata: Option<&BTreeMap<String, String>>) -> Option<String> {
    let field = metadata.and_then(|metadata| metadata.get(FIELD)).map(String::as_str);
    let header = || HEADERS.iter().find_map(|name| cx.header(name));
    field.or_else(header).map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Returns the brain with a title, if the caller may start its runs.
pub(super) fn brain(cx: &RequestContext, title: &str) -> Result<Arc<BrainDefinition>, Problem> {
    cx.brains()?.into_iter().find(|brain| brain.title == title).ok_or_else(|| unknown(title))
}

/// Returns the id of a new conversation.
pub(super) fn new_conversation() -> String {
    format!("openai-{}", UuidIds.run())
}

/// Begins a turn of a chat without a named conversation: it continues the one in which the caller got the last answer.
pub(super) async fn by_history(cx: &RequestContext, opening: TurnOpening<'_>) -> Result<Turn, Problem> {
    let known = match opening.newest.before.as_slice() {
        [] => Vec::new(),
        _ => history::find(cx, opening.brain, opening.newest).await?,
    };
    let Some(newest) = known.first() else {
        if !opening.newest.has_answers() && matches!(opening.newest.said, NewestInput::Message(_)) {
            return begin(cx, &new_conversation(), opening, None).await;
        }
        let detail = "no conversation of this caller ends with these messages, and a history is not taken from a client; \
                      name the conversation in `metadata.conversation`, or send the newest message alone";
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail).field("param", "messages"));
    };
    let mut meant = newest;
    for chat in &known {
        if continues(cx, chat, &opening).await? {
            meant = chat;
            break;
        }
    }
    let conversation = meant.conversation.clone();
    begin(cx, &conversation, opening, Some(meant)).await
}

/// Returns whether a request continues a conversation in which the same was said as in others: it is the next one there, or was sent before.
async fn continues(cx: &RequestContext, chat: &KnownChat, opening: &TurnOpening<'_>) -> Result<bool, Problem> {
    let thread = Thread::find(cx, &chat.conversation).await?;
    let Some(last) = thread.last() else { return Ok(false) };
    if chat.is_latest(cx, last).await? {
        return Ok(true);
    }
    match &opening.newest.said {
        NewestInput::Message(text) => thread.has_message(cx, &opening.newest.id(&chat.conversation, text)).await,
        NewestInput::Results(_) => Ok(false),
    }
}

/// Sends the newest input to a conversation. `known` is how the caller has left it.
pub(super) async fn begin(
    cx: &RequestContext,
    conversation: &str,
    opening: TurnOpening<'_>,
    known: Option<&KnownChat>,
) -> Result<Turn, Problem> {
    let TurnOpening { brain: title, newest, options, caller_tools, asked, program } = opening;
    let definition = brain(cx, title)?;
    let thread = Thread::find(cx, conversation).await?;
    thread.last().map_or(Ok(()), |row| refuse_other_brain(row, title))?;
    let text = match &newest.said {
        NewestInput::Message(text) => text,
        NewestInput::Results(results) => {
            let Some(row) = thread.last() else {
                let detail = format!("the conversation `{conversation}` has no call that could have a result");
                return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
            };
            return answer(cx, row, conversation, results, &asked).await;
        }
    };
    let takes_tools = definition.takes_caller_tools();
    if !caller_tools.is_empty() && !takes_tools {
        let detail = format!(
            "the brain `{title}` does not take tools of its caller; leave them out, or let its author opt in with `.caller_tools()` after \
             the loop"
        );
        return Err(unsupported("tools", &detail));
    }
    if !thread.is_conversation() {
        let detail = "this is the id of a run outside of a conversation, which takes no messages here";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    }
    let turn = |run: RunId, from: Seq| Turn { conversation: conversation.to_owned(), run, from };
    if let Some(row) = thread.last()
        && let Some(question) = text_question(cx, row).await?
    {
        let mut decisions = Decisions::new(cx);
        decisions.check_scope(row, &question)?;
        let reply = Decision::Reply { payload: text.as_str().into(), wait: None };
        decisions.send(row, &question, reply, &format!("openai/{question}/{text}")).await?;
        return Ok(turn(row.run.clone(), row.next));
    }
    let has_history = !newest.before.is_empty();
    let id = if has_history { newest.id(conversation, text) } else { UuidIds.signal().to_string() };
    let is_repeated = has_history && thread.has_message(cx, &id).await?;
    if let (Some(known), Some(last), false) = (known, thread.last(), is_repeated)
        && !known.is_latest(cx, last).await?
    {
        let detail =
            "the conversation has continued since the last of these messages; fork its run to continue from there";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    }
    if !is_repeated && let Some(row) = thread.last() {
        refuse_open_calls(cx, program, row).await?;
    }
    let has_loop = definition.stages.iter().any(|stage| stage.body.as_loop().is_some());
    let (text, options) =
        if has_loop { (Some(text.clone()), options) } else { (None, Some(options_in(text, options)?)) };
    let sent = ThreadMessage::builder().thread(conversation).brain(title).id(id).text(text).options(options);
    // A request without tools takes back those of the one before.
    let sent = cx.send(sent.caller_tools(takes_tools.then_some(caller_tools)).build()).await;
    let place = if has_loop { "`options` in the body" } else { "the message, as JSON, or `options` in the body" };
    let sent = sent.map_err(|problem| with_place_of_options(problem, place))?;
    Ok(turn(sent.run, sent.from))
}

/// Records the results of calls of the caller's tools: of all that the last answer asked for.
pub(super) async fn answer(
    cx: &RequestContext,
    row: &RunSummary,
    conversation: &str,
    results: &[CallResult],
    asked: &[String],
) -> Result<Turn, Problem> {
    let missing = asked.iter().filter(|id| !results.iter().any(|result| result.call == **id));
    let missing: Vec<_> = missing.map(|id| format!("`{id}`")).collect();
    if !missing.is_empty() {
        let detail = format!(
            "the results of the calls {} are missing; send one for each call of the last answer",
            missing.join(", ")
        );
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
    }
    let from = cx.answer_calls(row, results).await?;
    Ok(Turn { conversation: conversation.to_owned(), run: row.run.clone(), from })
}

/// Refuses input for an open run of another brain than the model that is to answer.
pub(super) fn refuse_other_brain(row: &RunSummary, title: &str) -> Result<(), Problem> {
    if row.status.is_over() || *row.brain == *title {
        return Ok(());
    }
    let detail = format!(
        "the conversation has the open run `{}` of the brain `{}`: name that one as the model, or wait for the end of its run",
        row.run, row.brain
    );
    Err(Problem::new(ProblemType::NotWaiting).detail(detail).field("param", "model"))
}

/// Refuses a message to a run that waits for results of calls.
async fn refuse_open_calls(cx: &RequestContext, program: &str, row: &RunSummary) -> Result<(), Problem> {
    let (run, open) = (&row.run, open_calls(cx, row).await?);
    let open: Vec<_> = open.iter().map(|item| format!("`{}` of `{}`", item.call.id_in(run), item.tool)).collect();
    if open.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "the run waits for the results of the calls {}; send them, without a further message, or cancel the run: {program} cancel {run}",
        open.join(", ")
    );
    Err(Problem::new(ProblemType::NotWaiting).detail(detail))
}

/// Reads the options of a brain without a loop, which takes no message.
fn options_in(text: &str, options: Option<Value>) -> Result<Value, Problem> {
    if let Some(options) = options {
        return Ok(options);
    }
    serde_json::from_str(text).map_err(|error| {
        let detail =
            format!("the brain has no loop for a message, so the message has to be its options as JSON: {error}");
        Problem::new(ProblemType::OptionsInvalid).detail(detail)
    })
}

/// Follows what a run says from an event on.
pub(super) async fn speech(
    cx: &RequestContext,
    shared: &Shared,
    row: &RunSummary,
    from: Seq,
) -> Result<impl Stream<Item = Speech> + Send + use<>, Problem> {
    let hold = shared.hold.min(HOLD);
    let leg = Leg { answers_calls: true, hold, ..shared.from(row.run.clone(), from) };
    leg.open(cx.viewer()?, None, SpeechEncoder::new(shared.caller_result(cx, &row.brain)?, Arc::clone(&shared.program)))
        .await
}
