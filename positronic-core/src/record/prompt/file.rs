//! Files: references to their bytes, and attachments of messages.

use std::fmt;
use std::sync::{Arc, OnceLock};

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::record::encoding::content_hash::sha256;
use crate::record::encoding::skip::is_default;

/// The maximum size in bytes of a file that is stored with the runs: 32 MiB. It is written in one commit and read into
/// memory; store larger files elsewhere, and record their address.
pub const LARGEST_BLOB: usize = 32 << 20;

/// The beginning of the URI of a file in the event store.
const BLOB: &str = "blob:";

/// The beginning of the URI of a file that was uploaded to a provider.
const UPLOADED: &str = "uploaded:";

/// A file: its name, its media type, and where its bytes are. It is small: states, options and results can contain it.
///
/// The event store keeps the bytes of a file as long as a run has an event that contains `blob:` and their hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileRef {
    /// The file's name.
    pub name: String,
    /// Its media type, such as `text/markdown`.
    pub media_type: String,
    /// Its size in bytes; 0 if unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub size: u64,
    /// The SHA-256 of its bytes, in hexadecimal digits; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The location of its bytes; see [`FileRef::location`].
    pub uri: String,
}

/// Where the bytes of a file are. An adapter of a model has to decide about each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLocation<'a> {
    /// In the event store, under this hash: `blob:…`.
    Stored(&'a str),
    /// At a URL that a provider can load: `https://…`.
    Url(&'a str),
    /// At a provider, which knows it by this id: `uploaded:anthropic/file_1`.
    Uploaded {
        /// The provider's name.
        provider: &'a str,
        /// The provider's id of the file.
        id: &'a str,
    },
    /// At another URI, which this library does not load.
    Elsewhere(&'a str),
}

/// What a file contains, as far as models distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A picture.
    Image,
    /// A recording of sound.
    Audio,
    /// A film.
    Video,
    /// A PDF document.
    Pdf,
    /// Text, which every model can read as a part of its message.
    Text,
    /// Anything else.
    Other,
}

impl FileRef {
    /// Describes a file in the event store, which has its bytes under their hash.
    pub fn stored(
        name: impl Into<String>,
        media_type: impl Into<String>,
        size: u64,
        sha256: impl Into<String>,
    ) -> Self {
        let sha256 = sha256.into();
        Self { name: name.into(), media_type: media_type.into(), size, uri: format!("{BLOB}{sha256}"), sha256 }
    }

    /// Describes a file at a URL, which the provider loads itself. Its name is the last part of the URL's path.
    ///
    /// ```
    /// use positronic_core::record::FileRef;
    ///
    /// let photo = FileRef::url("https://example.org/photos/bees.jpg?size=large", "image/jpeg");
    /// assert_eq!(photo.name, "bees.jpg");
    /// ```
    pub fn url(url: impl Into<String>, media_type: impl Into<String>) -> Self {
        let uri = url.into();
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("file").to_owned();
        Self { name, media_type: media_type.into(), size: 0, sha256: String::new(), uri }
    }

    /// Describes a file that was uploaded to a provider: the provider's name in events, such as `anthropic`, and its id of the
    /// file. Another provider refuses it.
    pub fn uploaded(provider: &str, id: &str, media_type: impl Into<String>) -> Self {
        let name = id.rsplit('/').next().unwrap_or(id).to_owned();
        let uri = format!("{UPLOADED}{provider}/{id}");
        Self { name, media_type: media_type.into(), size: 0, sha256: String::new(), uri }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Returns where its bytes are.
    #[must_use]
    pub fn location(&self) -> FileLocation<'_> {
        if let Some(hash) = self.blob() {
            return FileLocation::Stored(hash);
        }
        if let Some((provider, id)) = self.uri.strip_prefix(UPLOADED).and_then(|rest| rest.split_once('/')) {
            return FileLocation::Uploaded { provider, id };
        }
        if self.uri.starts_with("https://") || self.uri.starts_with("http://") {
            return FileLocation::Url(&self.uri);
        }
        FileLocation::Elsewhere(&self.uri)
    }

    /// Returns the hash of a file in the event store; `None` if it is elsewhere.
    #[must_use]
    pub fn blob(&self) -> Option<&str> {
        // Not a browser's `blob:https://…`.
        self.uri.strip_prefix(BLOB).filter(|hash| is_hash(hash.as_bytes()) && hash.len() == 64)
    }

    /// Returns what it contains, by its media type.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        let essence = self.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, rest) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, rest) {
            ("text", _) | ("application", "json" | "xml" | "yaml" | "toml") => FileKind::Text,
            // Such as an SVG, which no provider takes as an image.
            _ if rest.ends_with("+xml") || rest.ends_with("+json") => FileKind::Text,
            ("image", _) => FileKind::Image,
            ("audio", _) => FileKind::Audio,
            ("video", _) => FileKind::Video,
            ("application", "pdf") => FileKind::Pdf,
            _ => FileKind::Other,
        }
    }

    /// Describes it in one line: `[file bees.jpg, image/jpeg, 1234 bytes]`.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { name, media_type, size, .. } = self;
        if *size == 0 && self.blob().is_none() {
            return format!("[file {name}, {media_type}]");
        }
        format!("[file {name}, {media_type}, {size} bytes]")
    }
}

fn is_hash(digits: &[u8]) -> bool {
    digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Finds the hashes of stored files in the JSON of an event.
pub(crate) fn stored_files(json: &str) -> impl Iterator<Item = &str> {
    // Nearly no event has one, and `contains` is several times faster than `match_indices`.
    let found = json.contains(BLOB).then(|| json.match_indices(BLOB));
    found.into_iter().flatten().filter_map(|(at, _)| {
        let hash = json.get(at + BLOB.len()..at + BLOB.len() + 64)?;
        is_hash(hash.as_bytes()).then_some(hash)
    })
}

/// A file in a message for a model, or in a model's answer, with its bytes if they are loaded.
///
/// The runner loads the bytes of a stored file before it sends a request; only the [`FileRef`] is serialized.
#[derive(Clone, Serialize, Deserialize)]
#[derive_where(PartialEq)]
#[serde(transparent)]
pub struct Attachment {
    file: FileRef,
    /// Shared by all clones, so that the bytes are loaded once.
    #[serde(skip)]
    #[derive_where(skip)]
    bytes: Arc<OnceLock<Arc<[u8]>>>,
}

impl Attachment {
    /// Creates an attachment of a new file, which gets stored with the event that records it.
    pub fn new(name: impl Into<String>, media_type: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let file = FileRef::stored(name, media_type, bytes.len() as u64, sha256(&bytes));
        Self { file, bytes: Arc::new(OnceLock::from(bytes)) }
    }

    /// Creates an attachment of a file that a model made, which has no name: `number` counts the files of the answer from 1, so the first
    /// PNG image is `image-1.png`. An invalid media type becomes `application/octet-stream`.
    pub fn made(number: usize, media_type: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        let is_valid =
            |char: char| char.is_ascii_alphanumeric() || matches!(char, '/' | '+' | '-' | '.' | '_' | ';' | '=' | ' ');
        let is_valid =
            media_type.len() <= 100 && media_type.split('/').count() == 2 && media_type.chars().all(is_valid);
        let media_type = if is_valid { media_type } else { "application/octet-stream" };
        let (kind, rest) = media_type.split_once('/').unwrap_or_default();
        let kind = if matches!(kind, "image" | "audio" | "video") { kind } else { "file" };
        let subtype = rest.split([';', '+']).next().unwrap_or_default().trim_start_matches("x-").to_ascii_lowercase();
        let is_plain = (1..=5).contains(&subtype.len()) && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let extension = match &*subtype {
            "jpeg" => "jpg",
            "mpeg" if kind == "audio" => "mp3",
            "plain" => "txt",
            other if is_plain => other,
            _ => "bin",
        };
        Self::new(format!("{kind}-{number}.{extension}"), media_type, bytes)
    }

    /// Returns the file.
    #[must_use]
    pub const fn file(&self) -> &FileRef {
        &self.file
    }

    /// Returns the bytes; `None` if they are not loaded, or the file is not in the event store.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.get().map(|bytes| &**bytes)
    }

    /// Loads the bytes of a stored file, unless they are.
    pub(crate) fn load(&self, bytes: Arc<[u8]>) {
        // A second load has the same bytes.
        _ = self.bytes.set(bytes);
    }
}

impl From<FileRef> for Attachment {
    fn from(file: FileRef) -> Self {
        Self { file, bytes: Arc::default() }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_follows_from_the_uri() {
        let hash = "a".repeat(64);
        let stored = FileRef::stored("a.png", "image/png", 3, &hash);
        assert_eq!(stored.location(), FileLocation::Stored(&hash));
        let uploaded = FileRef::uploaded("gemini", "https://host/v1beta/files/a1", "video/mp4");
        assert_eq!(
            uploaded.location(),
            FileLocation::Uploaded { provider: "gemini", id: "https://host/v1beta/files/a1" }
        );
        assert_eq!(uploaded.name, "a1");
        let page = FileRef::url("https://example.org", "text/html");
        assert_eq!((page.location(), &*page.name), (FileLocation::Url("https://example.org"), "example.org"));
        let other = FileRef { uri: "blob:https://example.org/1".to_owned(), ..page };
        assert_eq!(other.location(), FileLocation::Elsewhere("blob:https://example.org/1"));
    }

    #[test]
    fn made_file_is_named_by_its_media_type() {
        let name = |media_type: &str, number| Attachment::made(number, media_type, *b"x").file().name.clone();

        assert_eq!(name("image/jpeg", 1), "image-1.jpg");
        assert_eq!(name("audio/L16;codec=pcm;rate=24000", 2), "audio-2.l16");
        assert_eq!(name("application/vnd.ms-excel", 3), "file-3.bin");
        for invalid in ["../x", "image/../../x", "image/png\nX: y", "png"] {
            let file = Attachment::made(4, invalid, *b"x");
            assert!(!file.file().name.contains(['/', '\n']), "{invalid:?}");
            assert!(!file.file().media_type.contains('\n'), "{invalid:?}");
        }
    }

    #[test]
    fn stored_files_are_found_in_json() {
        let (one, other) = ("0".repeat(64), "f".repeat(64));
        let json = format!(r#"{{"uri":"blob:{one}","text":"blob:short blob:","state":["blob:{other}"]}}"#);

        assert_eq!(stored_files(&json).collect::<Vec<_>>(), [&one, &other]);
    }
}
