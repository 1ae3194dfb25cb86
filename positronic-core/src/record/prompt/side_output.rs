//! Outputs of a call for people: files, widgets, and an application's own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::FileRef;
use crate::record::encoding::skip::is_default;
use crate::record::ids::PublicId;

/// A side output of a call, for people. In the record it follows the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SideOutput {
    /// A file.
    File(FileOutput),
    /// A widget.
    Widget(WidgetOutput),
    /// An output of a type that an application adds.
    Custom(CustomOutput),
}

/// A file that a tool made or loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOutput {
    /// The file.
    #[serde(flatten)]
    pub file: FileRef,
    /// Whether the model gets the contents, and not only a line about the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content: bool,
}

impl From<FileRef> for FileOutput {
    fn from(file: FileRef) -> Self {
        Self { file, content: false }
    }
}

/// Data for a user interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WidgetOutput {
    /// The kind of widget that shows the data.
    pub kind: String,
    /// The data.
    pub data: Value,
    /// The text for interfaces that do not know the widget.
    pub fallback: String,
    /// The output that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<PublicId>,
}

/// An output of an application-defined type: the engine records, shows and projects it without knowing the type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomOutput {
    /// The name of the type.
    pub kind: String,
    /// The value.
    pub data: Value,
    /// The text for interfaces that do not know the type.
    pub fallback: String,
    /// The text for the model, in the tool message of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
}
