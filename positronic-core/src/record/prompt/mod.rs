//! The record of a loop: its messages, calls, outputs and files.

pub(in crate::record) mod answer_without_text;
pub(in crate::record) mod approval;
pub(in crate::record) mod call;
pub(crate) mod caller_tool;
pub(in crate::record) mod continued;
pub(in crate::record) mod file;
mod file_tokens;
pub(in crate::record) mod made_by;
pub(in crate::record) mod message;
pub(in crate::record) mod older_answer;
pub(in crate::record) mod part;
pub(in crate::record) mod prompt;
pub(in crate::record) mod recorded_call;
pub(in crate::record) mod side_output;
pub(in crate::record) mod tool_id;
