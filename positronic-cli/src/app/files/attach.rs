//! Files that a person attaches to a message: read from disk, or named by a URL that the provider loads.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use positronic_core::record::{Attachment, FileKind, FileRef, LARGEST_BLOB, UserMessage};
use positronic_core::runner::Client;

use crate::app::Failure;
use crate::render::figures::size;

/// The media type of a file that is nothing known.
const UNKNOWN: &str = "application/octet-stream";

/// Reads the files of `--attach`.
pub(crate) fn attachments(written: &[PathBuf]) -> Result<Vec<Attachment>, Failure> {
    written.iter().map(|written| attachment(written)).collect()
}

/// Reads a file, or refers to a URL.
pub(crate) fn attachment(written: &Path) -> Result<Attachment, Failure> {
    match written.to_str() {
        Some(url) if url.starts_with("https://") || url.starts_with("http://") => at_url(url),
        _ => read(written),
    }
}

/// Creates the message of a command: a text, files, or both.
pub(crate) fn message(text: Option<&String>, attached: &[Attachment]) -> Option<UserMessage> {
    let files = attached.iter().map(|one| one.file().clone());
    let text = text.cloned().or_else(|| (!attached.is_empty()).then(String::new));
    text.map(|text| UserMessage::new(text).files(files))
}

/// Stores the bytes of files; an event must refer to them within an hour.
pub(crate) async fn store_attachments(attached: &[Attachment], client: &Client) -> Result<(), Failure> {
    for bytes in attached.iter().filter_map(Attachment::bytes) {
        client.put_blob(bytes.to_vec()).await?;
    }
    Ok(())
}

fn at_url(url: &str) -> Result<Attachment, Failure> {
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if let Some((_, host)) = host.rsplit_once('@') {
        let message = format!("cannot attach the URL at {host}: it contains a password, which the log would store");
        return Err(Failure::usage(message).hint("leave out the user and the password, or attach the file itself"));
    }
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let Some(media_type) = mime_guess::from_path(path).first() else {
        let message = format!("cannot attach {url}: the end of its path does not show its media type");
        return Err(Failure::usage(message).hint("use a URL that ends with, for example, .jpg; or download the file"));
    };
    Ok(FileRef::url(url, media_type.essence_str()).into())
}

fn read(path: &Path) -> Result<Attachment, Failure> {
    let refused = |why: &dyn Display| Failure::usage(format!("cannot attach {}: {why}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| refused(&error))?;
    if metadata.is_dir() {
        return Err(refused(&"it is a folder").hint("name its files one by one"));
    }
    if !metadata.is_file() {
        return Err(refused(&"it is not a regular file"));
    }
    let too_large = || {
        let largest = u64::try_from(LARGEST_BLOB).unwrap_or(u64::MAX);
        refused(&format!("it is larger than {}", size(largest))).hint("upload it, and attach its URL")
    };
    if usize::try_from(metadata.len()).is_ok_and(|length| length <= LARGEST_BLOB) {
        let bytes = fs::read(path).map_err(|error| refused(&error))?;
        // A file that another process writes may have grown.
        match bytes.len() {
            0 => Err(refused(&"it is empty")),
            1..=LARGEST_BLOB => Ok(attached(path, bytes)),
            _ => Err(too_large()),
        }
    } else {
        Err(too_large())
    }
}

fn attached(path: &Path, bytes: Vec<u8>) -> Attachment {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let media_type = media_type(path, &bytes);
    Attachment::new(name, media_type, bytes)
}

/// Returns the media type of a file: by its content where that is an image, audio, a video or a PDF, since providers check
/// it; else by its extension. Text with an unknown extension, or one of a program, is `text/plain`, which models can read.
fn media_type(path: &Path, bytes: &[u8]) -> String {
    let by_name = mime_guess::from_path(path).first().map(|found| found.essence_str().to_owned());
    let by_content = infer::get(bytes).map(|found| found.mime_type().to_owned());
    let kind = |media_type: &str| FileRef::url("", media_type).kind();
    if let Some(found) = by_content.as_ref().filter(|found| !matches!(kind(found), FileKind::Text | FileKind::Other)) {
        return found.clone();
    }
    let is_text = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
    match (by_name, by_content) {
        (Some(found), _) if !is_text || kind(&found) == FileKind::Text => found,
        _ if is_text => "text/plain".to_owned(),
        (_, found) => found.unwrap_or_else(|| UNKNOWN.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    #[test]
    fn media_type_follows_from_content_and_extension() {
        let media_type = |name: &str, bytes: &[u8]| media_type(Path::new(name), bytes);

        assert_eq!(media_type("bees.png", PNG), "image/png");
        assert_eq!(media_type("bees.jpg", PNG), "image/png", "the content counts");
        assert_eq!(media_type("bees", PNG), "image/png");
        assert_eq!(media_type("paper", b"%PDF-1.7 "), "application/pdf");
        assert_eq!(media_type("notes.md", b"# Bees"), "text/markdown");
        assert_eq!(media_type("main.ts", b"let bees = 3;"), "text/plain", "not a video");
        assert_eq!(media_type("run.sh", b"#!/bin/sh\n"), "text/plain");
        assert_eq!(media_type("data.json", b"{}"), "application/json");
        assert_eq!(media_type("LICENSE", "größe".as_bytes()), "text/plain");
        assert_eq!(media_type("drawing.svg", b"<svg/>"), "image/svg+xml");
        assert_eq!(media_type("bees.zip", b"PK\x03\x04\0\xff"), "application/zip");
        assert_eq!(media_type("blob", b"\0\xff\xfe"), UNKNOWN);
    }

    #[test]
    fn file_that_cannot_be_attached_is_a_usage_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("empty"), "").unwrap();
        fs::File::create(path("large")).unwrap().set_len(LARGEST_BLOB as u64 + 1).unwrap();
        let refused = |written: &Path| {
            let failure = attachment(written).unwrap_err();
            assert_eq!(failure.exit, crate::cli::Exit::Usage);
            failure.prose().replace(folder.path().to_str().unwrap(), "desk")
        };

        insta::assert_snapshot!(
            [folder.path(), &path("none"), &path("empty"), &path("large"), Path::new("https://x.org/a?b=c.png")]
                .map(refused)
                .concat(),
            @r"
        error: cannot attach desk: it is a folder
          name its files one by one
        error: cannot attach desk/none: No such file or directory (os error 2)
        error: cannot attach desk/empty: it is empty
        error: cannot attach desk/large: it is larger than 32 MiB
          upload it, and attach its URL
        error: cannot attach https://x.org/a?b=c.png: the end of its path does not show its media type
          use a URL that ends with, for example, .jpg; or download the file
        "
        );
    }

    #[test]
    fn url_is_referred_to_and_a_file_has_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bees.png");
        fs::write(&path, PNG).unwrap();

        let attached = attachments(&[path, PathBuf::from("https://x.org/hive.jpg?size=1")]).unwrap();

        let bytes: Vec<_> = attached.iter().map(Attachment::bytes).collect();
        assert_eq!(bytes, [Some(PNG), None]);
        let message = message(None, &attached).unwrap();
        let files: Vec<_> = message.files.iter().map(|file| (&*file.name, &*file.media_type, file.size)).collect();
        assert_eq!(files, [("bees.png", "image/png", 16), ("hive.jpg", "image/jpeg", 0)]);
        assert_eq!(super::message(None, &[]), None);
    }
}
