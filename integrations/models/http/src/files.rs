//! Files of messages in the body of a request.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use positronic_core::record::{
    Attachment, FileKind, FileLocation, FileRef, Message, ModelError, ModelErrorKind, ModelRequest, Transcript,
};

use super::capabilities::Capabilities;

/// Base64 with padding, which may be missing in what is read.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How a request contains a file. An adapter has to write each of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent<'a> {
    /// By its bytes, in Base64.
    Base64(String),
    /// By a URL, which the provider loads.
    Url(&'a str),
    /// By the provider's own id.
    Id(&'a str),
    /// As text: the text of a text file, or a line about a file that is not at hand.
    Text(String),
}

impl<'a> FileContent<'a> {
    /// Returns how a request to a provider contains a file. A file of text becomes text, which every model reads.
    ///
    /// A request that is only shown has a line about a file whose bytes are not loaded.
    #[must_use]
    pub fn of(attachment: &'a Attachment) -> Self {
        let file = attachment.file();
        match (file.location(), attachment.bytes()) {
            (_, Some(bytes)) if file.kind() == FileKind::Text => {
                Self::Text(format!("{}\n{}", file.line(), String::from_utf8_lossy(bytes)))
            }
            (_, Some(bytes)) => Self::Base64(BASE64.encode(bytes)),
            (FileLocation::Url(url), None) => Self::Url(url),
            (FileLocation::Uploaded { id, .. }, None) => Self::Id(id),
            (FileLocation::Stored(_) | FileLocation::Elsewhere(_), None) => Self::Text(file.line()),
        }
    }
}

/// Returns a `data:` URL of a file.
#[must_use]
pub fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", BASE64.encode(bytes))
}

/// Reads the media type and the bytes of a `data:` URL in Base64.
#[must_use]
pub fn from_data_url(url: &str) -> Option<(&str, Vec<u8>)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((media_type, from_base64(data)?))
}

/// Decodes Base64; `None` if it is invalid.
#[must_use]
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.trim()).ok()
}

/// The model that a request is for, and what it reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    /// The provider's name in events.
    pub(super) provider: &'a str,
    /// The model.
    pub(super) model: &'a str,
    /// The table of what models read.
    pub(super) capabilities: &'a Capabilities,
}

/// See [`Transport::readable`](super::Transport::readable).
pub(super) fn readable<'a>(
    request: &'a ModelRequest,
    reader: Reader<'_>,
    takes: impl Fn(FileKind, &str, FileLocation<'_>) -> bool,
) -> Result<Cow<'a, ModelRequest>, ModelError> {
    if !request.messages.has_files() {
        return Ok(Cow::Borrowed(request));
    }
    let obstacle = |file: &Attachment| reader.obstacle(file.file(), &takes);
    let mut drops = false;
    for entry in request.messages.read().iter() {
        match &entry.message {
            Message::User { files, .. } => {
                if let Some(sentence) = files.iter().find_map(obstacle) {
                    return Err(ModelError::new(ModelErrorKind::Unsupported, sentence));
                }
            }
            Message::Tool { files, .. } => drops |= files.iter().any(|file| obstacle(file).is_some()),
            Message::Assistant { .. } => {}
        }
    }
    if !drops {
        return Ok(Cow::Borrowed(request));
    }
    let mut messages = request.messages.messages();
    for message in &mut messages {
        if let Message::Tool { files, .. } = message {
            files.retain(|file| obstacle(file).is_none());
        }
    }
    Ok(Cow::Owned(ModelRequest { messages: Transcript::new(messages), ..request.clone() }))
}

impl Reader<'_> {
    /// Returns why the model cannot read a file, if so.
    fn obstacle(&self, file: &FileRef, takes: impl Fn(FileKind, &str, FileLocation<'_>) -> bool) -> Option<String> {
        let Self { provider, model, capabilities } = self;
        let FileRef { name, media_type, .. } = file;
        let (kind, location) = (file.kind(), file.location());
        match location {
            FileLocation::Stored(_) if kind == FileKind::Text => None,
            FileLocation::Elsewhere(uri) => Some(format!(
                "the file `{name}` is at `{uri}`, which `{provider}` cannot load; store its bytes, or give its URL"
            )),
            FileLocation::Uploaded { provider: other, .. } if other != *provider => Some(format!(
                "the file `{name}` was uploaded to `{other}`, and `{provider}` does not have it; upload it there, or attach its bytes"
            )),
            _ if capabilities.reads(provider, model, kind) == Some(false) => Some(format!(
                "the model `{provider}/{model}` cannot read the file `{name}` ({media_type}): it reads {}; choose another model, \
                 convert the file, or correct the table of capabilities",
                capabilities.describe(provider, model)
            )),
            _ if takes(kind, media_type, location) => None,
            FileLocation::Stored(_) => Some(format!(
                "the API of `{provider}` takes no files of the type {media_type}: `{name}`; convert it, or choose another provider"
            )),
            FileLocation::Url(_) | FileLocation::Uploaded { .. } => Some(format!(
                "the API of `{provider}` takes files of the type {media_type} only with their bytes: `{name}`; attach them"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use positronic_core::record::Path;

    #[test]
    fn content_follows_from_the_location_and_the_type() {
        let photo = Attachment::new("a.png", "image/png", *b"\x89PNG");
        assert_eq!(FileContent::of(&photo), FileContent::Base64("iVBORw==".to_owned()));
        let not_loaded = Attachment::from(photo.file().clone());
        assert_eq!(FileContent::of(&not_loaded), FileContent::Text("[file a.png, image/png, 4 bytes]".to_owned()));
        let notes = Attachment::new("notes.md", "text/markdown", *b"# Bees");
        assert_eq!(
            FileContent::of(&notes),
            FileContent::Text("[file notes.md, text/markdown, 6 bytes]\n# Bees".to_owned())
        );
        let page = Attachment::from(FileRef::url("https://example.org/a.png", "image/png"));
        assert_eq!(FileContent::of(&page), FileContent::Url("https://example.org/a.png"));
        assert_eq!(data_url("image/png", b"\x89PNG"), "data:image/png;base64,iVBORw==");
    }

    fn request(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
        ModelRequest {
            path: Path::root().stage("Look").iteration(0),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::new(messages),
            settings: Arc::default(),
        }
    }

    #[test]
    fn unreadable_file_of_a_user_is_refused_and_that_of_a_tool_is_left_out() {
        let capabilities = Capabilities::bundled();
        let reader = |model: &'static str| Reader { provider: "openai", model, capabilities: &capabilities };
        let takes = |kind, _: &str, _: FileLocation<'_>| kind == FileKind::Image;
        let film = Attachment::new("bees.mp4", "video/mp4", *b"film");
        let photo = Attachment::new("bee.png", "image/png", *b"photo");
        let user = |file: &Attachment| Message::User { text: "Look.".to_owned(), files: vec![file.clone()] };
        let refused = |message, model| readable(&request([message]), reader(model), takes).unwrap_err().message;

        assert_eq!(
            refused(user(&photo), "gpt-3.5-turbo"),
            "the model `openai/gpt-3.5-turbo` cannot read the file `bee.png` (image/png): it reads text; choose another model, \
             convert the file, or correct the table of capabilities"
        );
        assert!(refused(user(&film), "my-own").starts_with("the API of `openai` takes no files of the type video/mp4"));
        let elsewhere = Attachment::from(FileRef::uploaded("gemini", "files/a", "image/png"));
        assert!(refused(user(&elsewhere), "gpt-4o").starts_with("the file `a` was uploaded to `gemini`"));

        let (call, name, text) = ("1".to_owned(), "film".to_owned(), film.file().line());
        let result = Message::Tool { call, name, text, files: vec![film, photo.clone()] };
        let asked = request([user(&photo), result]);
        let sent = readable(&asked, reader("gpt-4o"), takes).unwrap();
        let messages = sent.messages.messages();
        assert_eq!(messages.iter().map(|message| message.files().count()).collect::<Vec<_>>(), [1, 1]);
        assert!(matches!(readable(&asked, reader("my-own"), |_, _, _| true), Ok(Cow::Borrowed(_))));
    }
}
