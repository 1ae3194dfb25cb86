//! What a chat knows: which conversation it is, with which brain, and where its things lie.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_core::record::{
    Actor, Budget, FileOutput, LimitKind, PendingKind, PriceTable, RunId, RunSummary, Timestamp,
};
use positronic_core::runner::{
    Busy, Client, Clock as _, Conversation, ConversationError, ResumeError, RunHandle, Runner, SystemClock,
};
use positronic_core::store::{PendingFilter, PendingItem};
use serde_json::Value;

use super::files::Folder;
use crate::app::cassette_position::Follower;
use crate::app::conversation::Recorded;
use crate::app::conversation::{form, write};
use crate::app::failure::Failure;
use crate::app::find_conversation::new_id;
use crate::app::output_file::refuse_known;
use crate::app::store::{ProjectStore, relative};
use crate::app::ui::Ui;
use crate::render::Style;
use crate::render::costs;
use crate::render::figures::{many, size, tokens};
use crate::render::limits::{allowed, standing};
use crate::render::text::{one_line, shorten, width};
use crate::session::pending::{answers, named, question};

/// A conversation that somebody sits at.
pub(crate) struct ChatContext {
    pub(crate) kept: ProjectStore,
    pub(crate) definition: Arc<BrainDefinition>,
    pub(crate) options: Value,
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    pub(crate) actor: Actor,
    pub(crate) busy: Busy,
    /// What the conversation may use, where that was said here.
    pub(crate) budget: Option<Budget>,
    /// What every conversation that begins here may use.
    pub(crate) said: Option<Budget>,
    /// What each prompt may use.
    pub(crate) each: Option<Budget>,
    /// What is played, where nothing is asked.
    pub(crate) follower: Option<Arc<Follower>>,
    /// The folder around those of the conversations' files; none where they are not to be saved.
    pub(crate) around: Option<PathBuf>,
    pub(crate) prices: PriceTable,
    /// Writes nothing, and knows how this program is called.
    pub(crate) words: Ui,
}

impl ChatContext {
    pub(super) fn client(&self) -> Client {
        self.kept.client()
    }

    pub(super) fn conversation(&self, runner: &Runner) -> Conversation {
        let mut conversation = runner.conversation(self.id.as_str()).actor(self.actor.clone()).busy(self.busy);
        if let Some(user) = &self.user {
            conversation = conversation.user(user.as_str());
        }
        if let Some(budget) = &self.budget {
            conversation = conversation.budget(budget.clone());
        }
        match &self.each {
            Some(each) => conversation.prompt_budget(each.clone()),
            None => conversation,
        }
    }

    /// Begins another conversation.
    pub(super) async fn begin_anew(&mut self) -> Result<(), Failure> {
        self.id = new_id(&self.client()).await?;
        self.budget.clone_from(&self.said);
        if let Some(follower) = &self.follower {
            follower.begin_anew();
        }
        Ok(())
    }

    /// Winds the cassette that is played on over what was answered in other processes.
    pub(crate) fn wind(&self, runner: &Runner) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let (follower, kept) = (self.follower.clone(), self.kept.clone());
        let (id, runner) = (self.id.clone(), runner.clone());
        async move {
            let Some(follower) = follower else { return Ok(()) };
            follower.wind(&kept, &id, &runner.worker().await?).await
        }
    }

    pub(super) async fn recorded(&self) -> Result<Recorded, Failure> {
        Recorded::read(&self.client(), &self.id).await
    }

    /// Returns the conversation's last run.
    pub(super) async fn last(&self) -> Result<Option<RunSummary>, Failure> {
        Ok(self.client().conversation(&self.id).await?.into_iter().next())
    }

    /// Goes on with a run that is not over, or looks at it where another worker has it or its brain is not here.
    pub(super) async fn take_up(&self, runner: &Runner, run: &RunId) -> Result<RunHandle<Value>, Failure> {
        match runner.resume(run).await {
            Ok(run) => Ok(run),
            Err(ResumeError::Store(error)) => Err(error.into()),
            Err(ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::NoBrain { .. }) => {
                Ok(runner.open(run).await?)
            }
            Err(error) => Err(Failure::Refused { message: error.to_string(), hints: Vec::new() }),
        }
    }

    /// Writes the command that comes back to this conversation.
    pub(crate) fn back(&self) -> String {
        let user = self.user.as_deref().map_or_else(Vec::new, |user| vec!["--user", user]);
        self.words.command(&[&["chat", &self.definition.title, "--conversation", &self.id][..], &user].concat())
    }

    /// Says why a message is not taken, once it is not.
    pub(super) fn untaken(&self) -> impl FnOnce(ConversationError) -> Failure + Send + use<> {
        let (back, inbox) = (self.back(), self.words.command(&["inbox"]));
        move |error| untaken(error, &back, &inbox)
    }

    pub(super) fn identity(&self) -> String {
        if !self.kept.lasts() {
            return format!("conversation {}, in memory alone", self.id);
        }
        format!("conversation {}\ncome back with: {}", self.id, self.back())
    }

    /// Writes the last `most` runs as a transcript.
    pub(super) async fn history(&self, most: usize, style: &Style, now: Timestamp) -> Result<String, Failure> {
        Ok(self.recorded().await?.text(most, style, false, now))
    }

    /// Lists the tools that the model had when it was asked last.
    pub(super) async fn tools(&self, columns: usize, unicode: bool) -> Result<String, Failure> {
        let Some(tools) = self.recorded().await?.tools()? else { return Ok("no model was asked yet".to_owned()) };
        if tools.is_empty() {
            return Ok("the model had no tools when it was asked last".to_owned());
        }
        let names: Vec<String> = tools.iter().map(|tool| one_line(tool.id.as_str(), unicode)).collect();
        let column = names.iter().map(|name| width(name)).max().unwrap_or(0).min(columns / 3);
        let mut text = String::new();
        for (tool, name) in tools.iter().zip(names) {
            let gap = " ".repeat(column.saturating_sub(width(&name)));
            let line = format!("{name}{gap}  {}", one_line(&tool.description, unicode));
            _ = writeln!(text, "{}", shorten(line.trim_end(), columns, unicode));
        }
        Ok(text)
    }

    /// Says what the last answer and the conversation used and cost, and what they may use.
    pub(super) async fn usage(&self) -> Result<String, Failure> {
        let bill = self.client().bill(&self.id, &self.prices).await?;
        let mut limits = String::new();
        let budget = self.client().budget(&self.id, self.budget.as_ref()).await?;
        let currency = Some(&*self.prices.currency);
        let whole = budget.and_then(|shared| standing(&shared, currency));
        let each = self.each.as_ref().and_then(|each| allowed(each, currency));
        for (what, budget) in [("budget of the conversation", whole), ("budget of each answer", each)] {
            if let Some(budget) = budget {
                _ = writeln!(limits, "{what}: {budget}");
            }
        }
        let Some(last) = bill.runs.values().last() else { return Ok(format!("nothing was said yet\n{limits}")) };
        let mut text = String::new();
        for (what, spent, cost) in
            [("last answer", last.total(), costs::cost(last)), ("conversation", bill.total(), costs::bill(&bill))]
        {
            let usage = spent.usage;
            let mut line = format!("{what}: {}, {}", many(spent.calls, "model answer"), tokens(&usage));
            let shares =
                [("cached", usage.cached), ("written to the cache", usage.cache_write), ("reasoning", usage.reasoning)];
            for (name, count) in shares {
                if count > 0 {
                    _ = write!(line, ", {count} {name}");
                }
            }
            if spent.calls > 0 {
                _ = write!(line, "; {cost}");
            }
            _ = writeln!(text, "{line}");
        }
        Ok(text + &limits)
    }

    /// Lists what waits for somebody in this conversation.
    pub(super) async fn waiters(&self) -> Result<Vec<PendingItem>, Failure> {
        let Some(last) = self.last().await?.filter(|last| !last.status.is_over()) else { return Ok(Vec::new()) };
        Ok(self.client().store().pending(&PendingFilter::builder().run(last.run).build()).await?)
    }

    /// Says what waits for somebody.
    pub(super) fn waiting(waiters: &[PendingItem]) -> String {
        if waiters.is_empty() {
            return "nothing waits".to_owned();
        }
        let line = |waiter: &PendingItem| format!("{} {}", named(&waiter.pending), question(&waiter.pending, None));
        waiters.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Says how a run goes on that waits for more than it has, which a budget that is given now is not.
    pub(crate) async fn short_of(&self) -> Result<Option<String>, Failure> {
        let waiters = if self.said.is_some() { self.waiters().await? } else { Vec::new() };
        let is_short = |waiter: &&PendingItem| matches!(waiter.pending.kind, PendingKind::Budget { shared: true, .. });
        Ok(waiters.iter().find(is_short).and_then(|waiter| {
            let run = &waiter.run;
            let answer = answers(run.as_str(), &waiter.pending, SystemClock.now(), &self.words).into_iter().next()?;
            Some(format!(
                "the budget is for a run that begins with it; `{run}`, which asks for more, goes on with: {answer}"
            ))
        }))
    }

    /// Saves the files that are not saved, and lists all of them.
    pub(super) async fn files(&self, unicode: bool) -> Result<String, Failure> {
        let files = self.recorded().await?.files();
        if files.is_empty() {
            return Ok(match self.folder() {
                Some(folder) => format!("there are no files yet; they are saved in {}", relative(folder.path())),
                None => "there are no files yet; --files DIR saves them".to_owned(),
            });
        }
        let mut text = String::new();
        for file in &files {
            // One that cannot be saved does not hide the others.
            let place = match self.save(file).await {
                Ok(Some(path)) => relative(&path),
                Ok(None) => file.uri.clone(),
                Err(failure) => failure.to_string(),
            };
            let what = format!("{} ({}, {})", file.name, file.media_type, size(file.size));
            _ = writeln!(text, "{}  {}", one_line(&what, unicode), one_line(&place, unicode));
        }
        Ok(text)
    }

    /// Saves a file, where its bytes are kept here, and returns where it lies.
    pub(super) async fn save(&self, file: &FileOutput) -> Result<Option<PathBuf>, Failure> {
        let (Some(folder), Some(sha256)) = (self.folder(), file.blob()) else { return Ok(None) };
        let Some(bytes) = self.client().blob(sha256).await? else { return Ok(None) };
        let saved = folder.save(&file.name, &bytes);
        saved.map(Some).map_err(|source| Failure::File {
            path: folder.path().to_owned(),
            doing: "cannot take the file",
            source,
        })
    }

    fn folder(&self) -> Option<Folder> {
        self.around.as_ref().map(|around| Folder::new(around, &self.id))
    }

    /// Writes the conversation into a file.
    pub(super) async fn export(&self, file: &str) -> Result<String, Failure> {
        if file.is_empty() {
            return Ok("say into which file: /export talk.md, or /export talk.json".to_owned());
        }
        let file = Path::new(file);
        if refuse_known(Some(file), false).is_err() {
            return Ok(format!("{} is there already: name another file", file.display()));
        }
        write(file, &self.recorded().await?, form(Some(file)), false)?;
        Ok(format!("wrote the conversation to {}", file.display()))
    }
}

/// Says why a message was not taken, and how to come back to its conversation.
fn untaken(error: ConversationError, back: &str, inbox: &str) -> Failure {
    match error {
        ConversationError::Busy { run, reason } => Failure::Refused {
            message: format!("the run `{run}` is not over, and takes no message now: {reason}"),
            hints: vec![format!("`{inbox}` says whether it waits for somebody, and how to answer")],
        },
        ConversationError::Spent { kind, .. } => {
            let option = match kind {
                LimitKind::Money => "--max-money AMOUNT",
                LimitKind::Tokens => "--max-tokens NUMBER",
                LimitKind::Time => "--max-time TIME",
                LimitKind::Iterations | LimitKind::Failures => "--max-iterations NUMBER",
            };
            Failure::Refused { message: error.to_string(), hints: vec![format!("{back} {option}")] }
        }
        ConversationError::NotYours { conversation } => Failure::Refused {
            message: format!("the conversation `{conversation}` belongs to another user"),
            hints: vec!["say whose it is with --user, or begin another one with --conversation".to_owned()],
        },
        ConversationError::Prices { .. } => Failure::Refused {
            message: error.to_string(),
            hints: vec!["name a table that fits with --prices FILE or in POSITRONIC_PRICES".to_owned()],
        },
        ConversationError::Start(error) => error.into(),
        ConversationError::Store(error) => error.into(),
        ConversationError::Signal(error) => error.into(),
        ConversationError::Resume(ResumeError::Store(error)) => error.into(),
        other => Failure::Refused { message: other.to_string(), hints: Vec::new() },
    }
}
