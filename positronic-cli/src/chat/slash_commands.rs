//! Execution of slash commands.

use positronic_core::runner::{Clock as _, SystemClock};

use super::context::ChatContext;
use super::slash::{Slash, help};
use super::ui::ChatUi;
use crate::app::failure::Failure;
use crate::render::{Line, Style, Tone};
use crate::session::pending::{for_person, is_approval};

impl ChatUi<'_> {
    /// Executes a command, and returns whether it leaves the chat.
    pub(super) async fn command(&mut self, slash: Slash, argument: &str) -> Result<bool, Failure> {
        let style = *self.live.style();
        let said = match slash {
            Slash::Quit => return Ok(true),
            Slash::History => {
                let most = most(argument)?;
                let style = Style { height: None, ..style };
                let text = self.desk.history(most, &style, SystemClock.now()).await?;
                let text = if text.is_empty() { "\nno message yet".to_owned() } else { text };
                // The text is already escaped, and has its colours.
                let lines: Vec<Line> = text.lines().map(|line| Line::new(0).with(Tone::Plain, line)).collect();
                self.live.print(&lines)?;
                return Ok(false);
            }
            Slash::Pending => return self.pending().await,
            Slash::Retry if self.open => "an answer is running: /cancel ends it".to_owned(),
            Slash::Retry => match self.desk.recorded().await?.last_message() {
                Some(text) => {
                    self.send(text);
                    return Ok(false);
                }
                None => "no message yet".to_owned(),
            },
            Slash::Cancel if self.open => return self.cancel().await.map(|()| false),
            Slash::Cancel => "no answer is running".to_owned(),
            Slash::New if self.open || self.sending.is_some() => {
                "an answer is running: /cancel ends it, and /quit leaves it".to_owned()
            }
            Slash::New => {
                self.desk.restart().await?;
                (self.run, self.updates, self.known) = (None, None, None);
                format!("new conversation {}", self.desk.id)
            }
            other => self.desk.tell(other, argument, style.width, style.unicode).await?,
        };
        self.say(Tone::Dim, &said)?;
        Ok(false)
    }

    /// Shows pending items, and asks about the first one. Returns an interrupt of the process.
    async fn pending(&mut self) -> Result<bool, Failure> {
        let waiters = self.desk.waiters().await?;
        self.say(Tone::Dim, &ChatContext::waiting(&waiters))?;
        // Approvals are asked as soon as the input is empty.
        self.left.clear();
        if let Some(run) = self.run.clone().filter(|_| self.open) {
            let pending = run.pending();
            if !pending.iter().any(is_approval)
                && let Some(first) = pending.into_iter().find(for_person)
            {
                return Ok(self.ask(first).await?.is_some());
            }
        }
        Ok(false)
    }
}

/// Parses a number of messages.
fn most(argument: &str) -> Result<usize, Failure> {
    if argument.is_empty() {
        return Ok(usize::MAX);
    }
    argument.parse().ok().filter(|most| *most > 0).ok_or_else(|| Failure::Misused {
        message: format!("/history: `{argument}` is not a number of messages"),
        hint: "/history shows all messages, and /history 3 the last three messages".to_owned(),
    })
}

impl ChatContext {
    /// Executes a command that only shows something.
    pub(super) async fn tell(
        &self,
        slash: Slash,
        argument: &str,
        columns: usize,
        unicode: bool,
    ) -> Result<String, Failure> {
        match slash {
            Slash::Tools => self.tools(columns, unicode).await,
            Slash::Usage => self.usage().await,
            Slash::Files => self.files(unicode).await,
            Slash::Pending => Ok(Self::waiting(&self.waiters().await?)),
            Slash::Export => self.export(argument).await,
            Slash::Id => Ok(self.identity()),
            Slash::History => {
                let style = Style { width: columns, unicode, ..Style::default() };
                self.history(most(argument)?, &style, SystemClock.now()).await
            }
            Slash::Help | Slash::Retry | Slash::Cancel | Slash::New | Slash::Quit => Ok(help()),
        }
    }
}
