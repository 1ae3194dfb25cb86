//! The messages that a client has after the events that it got: what a snapshot sends again.

use serde_json::Value;

use super::event::{Event, Function, Message, ToolCall};

/// The messages of a thread.
#[derive(Debug, Default)]
pub(super) struct Messages(Vec<Message>);

impl Messages {
    /// Returns the messages, in order.
    pub(super) fn list(&self) -> Vec<Message> {
        self.0.clone()
    }

    /// Puts messages before the others.
    pub(super) fn prepend(&mut self, messages: Vec<Message>) {
        self.0.splice(0..0, messages);
    }

    /// Adds a user's message, unless it is there.
    pub(super) fn add_user(&mut self, id: &str, content: &str) {
        if !self.0.iter().any(|message| message.id() == id) {
            let (id, content) = (id.to_owned(), content.to_owned());
            self.0.push(Message::User { id, content, subagent_run_id: None });
        }
    }

    /// Folds an event.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::TextMessageStart { message_id, role: "user", subagent_run_id } => {
                let (id, subagent_run_id) = (message_id.clone(), subagent_run_id.clone());
                self.0.push(Message::User { id, content: String::new(), subagent_run_id });
            }
            Event::TextMessageStart { message_id, subagent_run_id, .. } => {
                self.assistant(message_id, subagent_run_id.as_ref(), |content, _| _ = content.get_or_insert_default());
            }
            Event::TextMessageContent { message_id, delta, .. } => self.extend(message_id, delta),
            Event::ReasoningMessageStart { message_id, subagent_run_id, .. } => {
                let (id, subagent_run_id) = (message_id.clone(), subagent_run_id.clone());
                self.0.push(Message::Reasoning { id, content: String::new(), subagent_run_id });
            }
            Event::ReasoningMessageContent { message_id, delta, .. } => self.extend(message_id, delta),
            Event::ToolCallStart { tool_call_id, tool_call_name, parent_message_id, subagent_run_id } => {
                let function = Function { name: tool_call_name.clone(), arguments: String::new() };
                let call = ToolCall { id: tool_call_id.clone(), kind: "function", function };
                self.assistant(parent_message_id, subagent_run_id.as_ref(), |_, calls| calls.push(call));
            }
            Event::ToolCallArgs { tool_call_id, delta, .. } => {
                if let Some(call) = self.call(tool_call_id) {
                    call.function.arguments.push_str(delta);
                }
            }
            Event::ToolCallResult { message_id, tool_call_id, content, metadata, subagent_run_id, .. } => {
                self.0.push(Message::Tool {
                    id: message_id.clone(),
                    content: content.clone(),
                    tool_call_id: tool_call_id.clone(),
                    metadata: metadata.clone(),
                    subagent_run_id: subagent_run_id.clone(),
                });
            }
            Event::ActivitySnapshot { message_id, activity_type, content, subagent_run_id, .. } => {
                let (id, subagent_run_id) = (message_id.clone(), subagent_run_id.clone());
                let activity = Message::Activity {
                    id,
                    activity_type: activity_type.clone(),
                    content: content.clone(),
                    subagent_run_id,
                };
                match self.0.iter_mut().find(|message| message.id() == message_id) {
                    Some(known) => *known = activity,
                    None => self.0.push(activity),
                }
            }
            _ => {}
        }
    }

    /// Sets the arguments of a call. Returns whether they were different.
    pub(super) fn set_arguments(&mut self, id: &str, arguments: &Value) -> bool {
        let Some(call) = self.call(id) else { return false };
        if serde_json::from_str::<Value>(&call.function.arguments).is_ok_and(|known| known == *arguments) {
            return false;
        }
        call.function.arguments = arguments.to_string();
        true
    }

    /// Removes messages and calls.
    pub(super) fn remove(&mut self, ids: &[String], calls: &[String]) {
        self.0.retain_mut(|message| {
            let is_listed = ids.iter().any(|id| id == message.id());
            if let Message::Assistant { tool_calls, content, .. } = message {
                let had_calls = !tool_calls.is_empty();
                tool_calls.retain(|call| !calls.contains(&call.id));
                let is_empty = had_calls && tool_calls.is_empty() && content.is_none();
                return !is_listed && !is_empty;
            }
            !is_listed
        });
    }

    fn extend(&mut self, id: &str, delta: &str) {
        match self.0.iter_mut().find(|message| message.id() == id) {
            Some(Message::Assistant { content, .. }) => content.get_or_insert_default().push_str(delta),
            Some(Message::User { content, .. } | Message::Reasoning { content, .. }) => content.push_str(delta),
            _ => {}
        }
    }

    fn assistant(
        &mut self,
        id: &str,
        brain: Option<&String>,
        change: impl FnOnce(&mut Option<String>, &mut Vec<ToolCall>),
    ) {
        let is_own = |message: &Message| matches!(message, Message::Assistant { id: known, .. } if known == id);
        if !self.0.iter().any(is_own) {
            let (id, subagent_run_id) = (id.to_owned(), brain.cloned());
            self.0.push(Message::Assistant { id, content: None, tool_calls: Vec::new(), subagent_run_id });
        }
        if let Some(Message::Assistant { content, tool_calls, .. }) = self.0.iter_mut().find(|message| is_own(message))
        {
            change(content, tool_calls);
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.0.iter_mut().rev().find_map(|message| match message {
            Message::Assistant { tool_calls, .. } => tool_calls.iter_mut().find(|call| call.id == id),
            _ => None,
        })
    }
}

impl Message {
    fn id(&self) -> &str {
        match self {
            Self::User { id, .. }
            | Self::Assistant { id, .. }
            | Self::Reasoning { id, .. }
            | Self::Tool { id, .. }
            | Self::Activity { id, .. } => id,
        }
    }
}
