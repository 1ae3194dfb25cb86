//! Output of the commands of a chat that only show something, and of `/files` and `/export`, which write files.

use std::fmt::Write as _;
use std::path::Path;

use positronic_core::projection::Costs;
use positronic_core::record::ToolDecl;
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::PendingItem;

use super::current_conversation::ChatContext;
use super::slash_commands::{Slash, help};
use crate::app::{Failure, format_of, output_path, relative, write_conversation};
use crate::render::figures::{many, tokens};
use crate::render::words::file_kind;
use crate::render::{Style, aligned, budget_limits, budget_usage, cost_line, one_line, shorten};
use crate::session::{asking_party, question_text};

impl ChatContext {
    /// Carries out a command, and returns what it prints.
    pub(super) async fn output(&self, slash: Slash, argument: &str, style: &Style) -> Result<String, Failure> {
        match slash {
            Slash::Tools => self.tools(style.width).await,
            Slash::Usage => self.usage().await,
            Slash::Files => self.files().await,
            Slash::Pending => self.pending_items().await,
            Slash::Export => self.export(argument).await,
            Slash::Id => Ok(self.identity()),
            Slash::History => self.history(argument, style).await,
            Slash::Help | Slash::Retry | Slash::Cancel | Slash::New | Slash::Quit | Slash::Attach | Slash::Detach => {
                Ok(help())
            }
        }
    }

    fn identity(&self) -> String {
        if !self.store.is_persistent() {
            return format!("conversation {}, only in memory", self.id);
        }
        format!("conversation {}\ncontinue it with: {}", self.id, self.back())
    }

    /// Renders the conversation as a transcript, or its last messages.
    pub(super) async fn history(&self, argument: &str, style: &Style) -> Result<String, Failure> {
        let most = if argument.is_empty() { Some(usize::MAX) } else { argument.parse().ok().filter(|most| *most > 0) };
        let most = most.ok_or_else(|| {
            Failure::usage(format!("/history: expected a number of messages, got `{argument}`"))
                .hint("/history shows the whole conversation, and /history 3 the last three messages")
        })?;
        let text = self.recorded().await?.text(most, style, false, SystemClock.now());
        Ok(if text.is_empty() { "\nno message yet".to_owned() } else { text })
    }

    async fn pending_items(&self) -> Result<String, Failure> {
        let items = self.pending().await?;
        if items.is_empty() {
            return Ok("nothing waits".to_owned());
        }
        let line =
            |item: &PendingItem| format!("{} {}", asking_party(&item.pending), question_text(&item.pending, None));
        Ok(items.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// Lists the tools of the last model request.
    async fn tools(&self, columns: usize) -> Result<String, Failure> {
        let Some(tools) = self.recorded().await?.tools()? else { return Ok("no model was asked yet".to_owned()) };
        if tools.is_empty() {
            return Ok("the last model request had no tools".to_owned());
        }
        let pair = |tool: &ToolDecl| (one_line(tool.id.as_str()), one_line(&tool.description));
        let lines = aligned(&tools.iter().map(pair).collect::<Vec<_>>());
        Ok(lines.iter().map(|line| shorten(line, columns) + "\n").collect())
    }

    /// Renders what the last answer and the conversation used and cost, and their budgets.
    async fn usage(&self) -> Result<String, Failure> {
        let runs = self.costs().await?;
        let mut limits = String::new();
        let budget = self.client().conversations().budget(&self.id, self.budget.as_ref()).await?;
        let currency = Some(&*self.prices.currency);
        let whole = budget.and_then(|shared| budget_usage(&shared, currency));
        let each = self.prompt_budget.as_ref().and_then(|budget| budget_limits(budget, currency));
        for (what, budget) in [("budget of the conversation", whole), ("budget of each answer", each)] {
            if let Some(budget) = budget {
                _ = writeln!(limits, "{what}: {budget}");
            }
        }
        let Some(last) = runs.last() else { return Ok(format!("no message yet\n{limits}")) };
        let mut whole = last.clone();
        whole.calls = runs.iter().flat_map(|run| &run.calls).cloned().collect();
        let mut text = String::new();
        for (what, spent, cost) in [
            ("last answer", last.total(), cost_line::cost_line(last)),
            ("conversation", whole.total(), cost_line::current_cost(&whole)),
        ] {
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

    /// Returns the usage and cost of the conversation's runs, in order of their start. It has no forks, which share events with their origins.
    async fn costs(&self) -> Result<Vec<Costs>, Failure> {
        let client = self.client();
        let mut rows = client.conversations().runs(&self.id).await?;
        rows.sort_by(|one, other| (one.started, &one.run).cmp(&(other.started, &other.run)));
        let mut costs = Vec::with_capacity(rows.len());
        for row in rows {
            costs.push(client.costs(&row.run, &self.prices).await?);
        }
        Ok(costs)
    }

    /// Saves the files of tools and models that are not saved, and lists all files.
    async fn files(&self) -> Result<String, Failure> {
        let files = self.recorded().await?.files();
        if files.is_empty() {
            return Ok(match self.folder() {
                Some(folder) => format!("there are no files yet; they are saved in {}", relative(folder.path())),
                None => "there are no files yet; --files DIR saves them".to_owned(),
            });
        }
        let mut text = String::new();
        for (file, is_attached) in &files {
            // A file that cannot be saved does not hide the others.
            let saved = if *is_attached { None } else { Some(self.save(file).await) };
            let place = match saved {
                // The person has it.
                None => "attached".to_owned(),
                Some(Ok(Some(path))) => relative(&path),
                Some(Ok(None)) => file.uri.clone(),
                Some(Err(failure)) => failure.to_string(),
            };
            let what = format!("{} ({})", file.name, file_kind(file));
            _ = writeln!(text, "{}  {}", one_line(&what), one_line(&place));
        }
        Ok(text)
    }

    /// Writes the conversation into a file.
    async fn export(&self, file: &str) -> Result<String, Failure> {
        if file.is_empty() {
            return Ok("name a file: /export talk.md, or /export talk.json".to_owned());
        }
        let file = Path::new(file);
        if output_path(Some(file), false).is_err() {
            return Ok(format!("{} exists: name another file", file.display()));
        }
        write_conversation(file, &self.recorded().await?, format_of(Some(file)), false)?;
        Ok(format!("wrote the conversation to {}", file.display()))
    }
}
