//! Files that come with a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use positronic_core::record::FileRef;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::blocking::{LARGE, off_the_executor};
use crate::problem::{FieldError, Problem, ProblemType};

/// The maximum bytes of a body with files: one file of the largest size that stores accept, in base 64.
pub(crate) const MAX_FILES_BODY: usize = 45 << 20;

/// A file of a message: its bytes, or a URL that the model's provider loads. A reference to a stored file is not possible,
/// since it could be another user's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewFile")]
#[non_exhaustive]
pub struct MessageFile {
    /// The file's name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Its bytes, in base 64.
    #[serde(default)]
    pub base64: Option<String>,
    /// Its URL, with https.
    #[serde(default)]
    pub url: Option<String>,
}

impl App {
    /// Stores the files of a message.
    pub(crate) async fn stored_files(&self, files: Vec<MessageFile>) -> Result<Vec<FileRef>, Problem> {
        let mut stored = Vec::with_capacity(files.len());
        for (index, file) in files.into_iter().enumerate() {
            let invalid = |detail: &str| {
                let errors = vec![FieldError::new(format!("/files/{index}"), detail)];
                Problem::new(ProblemType::InvalidBody).errors(errors)
            };
            let name = file.name.unwrap_or_else(|| "file".to_owned());
            stored.push(match (file.base64, file.url) {
                (Some(base64), None) => {
                    let decoded = if base64.len() <= LARGE {
                        STANDARD.decode(base64)
                    } else {
                        off_the_executor(move || STANDARD.decode(base64)).await?
                    };
                    let bytes = decoded.map_err(|_| invalid("`base64` cannot be decoded"))?;
                    self.client.put_file(name, file.media_type, bytes).await?
                }
                (None, Some(url)) if url.starts_with("https://") => FileRef::url(url, file.media_type).named(name),
                (None, Some(_)) => return Err(invalid("`url` is not an https URL")),
                (Some(_), Some(_)) | (None, None) => return Err(invalid("expected either `base64` or `url`")),
            });
        }
        Ok(stored)
    }
}
