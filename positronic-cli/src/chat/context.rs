//! Context of a chat: its conversation, brain, budget and files.

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
use crate::app::cassette_position::CassetteFollower;
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

/// The conversation of a chat, with its settings.
pub(crate) struct ChatContext {
    pub(crate) kept: ProjectStore,
    pub(crate) definition: Arc<BrainDefinition>,
    pub(crate) options: Value,
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    pub(crate) actor: Actor,
    pub(crate) busy: Busy,
    /// Budget of the conversation, if set here.
    pub(crate) budget: Option<Budget>,
    /// Budget of every conversation that begins here.
    pub(crate) said: Option<Budget>,
    /// Budget of each prompt.
    pub(crate) each: Option<Budget>,
    /// The played cassette.
    pub(crate) follower: Option<Arc<CassetteFollower>>,
    /// Parent of the conversations' file folders; `None` if files are not saved.
    pub(crate) around: Option<PathBuf>,
    pub(crate) prices: PriceTable,
    /// Renders commands of this program.
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
    pub(super) async fn restart(&mut self) -> Result<(), Failure> {
        self.id = new_id(&self.client()).await?;
        self.budget.clone_from(&self.said);
        if let Some(follower) = &self.follower {
            follower.restart();
        }
        Ok(())
    }

    /// Advances the played cassette over the answers of other processes.
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

    /// Continues an open run, or watches it if another worker has claimed it or its brain is missing.
    pub(super) async fn continue_run(&self, runner: &Runner, run: &RunId) -> Result<RunHandle<Value>, Failure> {
        match runner.resume(run).await {
            Ok(run) => Ok(run),
            Err(ResumeError::Store(error)) => Err(error.into()),
            Err(ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::NoBrain { .. }) => {
                Ok(runner.open(run).await?)
            }
            Err(error) => Err(Failure::Refused { message: error.to_string(), hints: Vec::new() }),
        }
    }

    /// Renders the command that continues this conversation.
    pub(crate) fn back(&self) -> String {
        let user = self.user.as_deref().map_or_else(Vec::new, |user| vec!["--user", user]);
        self.words.command(&[&["chat", &self.definition.title, "--conversation", &self.id][..], &user].concat())
    }

    /// Explains why a message was refused.
    pub(super) fn refusal(&self) -> impl FnOnce(ConversationError) -> Failure + Send + use<> {
        let (back, inbox) = (self.back(), self.words.command(&["inbox"]));
        move |error| refusal(error, &back, &inbox)
    }

    pub(super) fn identity(&self) -> String {
        if !self.kept.is_persistent() {
            return format!("conversation {}, only in memory", self.id);
        }
        format!("conversation {}\ncontinue it with: {}", self.id, self.back())
    }

    /// Renders the last `most` runs as a transcript.
    pub(super) async fn history(&self, most: usize, style: &Style, now: Timestamp) -> Result<String, Failure> {
        Ok(self.recorded().await?.text(most, style, false, now))
    }

    /// Lists shows the tools of the last model request.
    pub(super) async fn tools(&self, columns: usize, unicode: bool) -> Result<String, Failure> {
        let Some(tools) = self.recorded().await?.tools()? else { return Ok("no model was asked yet".to_owned()) };
        if tools.is_empty() {
            return Ok("the last model request had no tools".to_owned());
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

    /// Renders usage, cost and budget of the last answer and the conversation.
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
        let Some(last) = bill.runs.values().last() else { return Ok(format!("no message yet\n{limits}")) };
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

    /// Lists the pending items of this conversation.
    pub(super) async fn waiters(&self) -> Result<Vec<PendingItem>, Failure> {
        let Some(last) = self.last().await?.filter(|last| !last.status.is_over()) else { return Ok(Vec::new()) };
        Ok(self.client().store().pending(&PendingFilter::builder().run(last.run).build()).await?)
    }

    /// Renders the pending items.
    pub(super) fn waiting(waiters: &[PendingItem]) -> String {
        if waiters.is_empty() {
            return "nothing waits".to_owned();
        }
        let line = |waiter: &PendingItem| format!("{} {}", named(&waiter.pending), question(&waiter.pending, None));
        waiters.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Explains that a new budget does not answer the limit question of an open run.
    pub(crate) async fn short_of(&self) -> Result<Option<String>, Failure> {
        let waiters = if self.said.is_some() { self.waiters().await? } else { Vec::new() };
        let is_short = |waiter: &&PendingItem| matches!(waiter.pending.kind, PendingKind::Budget { shared: true, .. });
        Ok(waiters.iter().find(is_short).and_then(|waiter| {
            let run = &waiter.run;
            let answer = answers(run.as_str(), &waiter.pending, SystemClock.now(), &self.words).into_iter().next()?;
            Some(format!("the budget only applies to new runs; answer `{run}`, which asks for more, with: {answer}"))
        }))
    }

    /// Saves the unsaved files, and lists all files.
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
            // A failure does not hide the other files.
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

    /// Saves a file if the store has its bytes, and returns its path.
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

    /// Exports the conversation to a file.
    pub(super) async fn export(&self, file: &str) -> Result<String, Failure> {
        if file.is_empty() {
            return Ok("name a file: /export talk.md, or /export talk.json".to_owned());
        }
        let file = Path::new(file);
        if refuse_known(Some(file), false).is_err() {
            return Ok(format!("{} already exists: name another file", file.display()));
        }
        write(file, &self.recorded().await?, form(Some(file)), false)?;
        Ok(format!("wrote the conversation to {}", file.display()))
    }
}

/// Explains why a message was refused, and how to continue its conversation.
fn refusal(error: ConversationError, back: &str, inbox: &str) -> Failure {
    match error {
        ConversationError::Busy { run, reason } => Failure::Refused {
            message: format!("the run `{run}` is not over and accepts no message now: {reason}"),
            hints: vec![format!("`{inbox}` shows whether it waits for a person, and how to answer")],
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
            hints: vec!["name the user with --user, or begin another one with --conversation".to_owned()],
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
