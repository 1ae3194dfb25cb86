//! Errors of an output folder.

use thiserror::Error;

/// The reason why a file or a folder could not be written, read or listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The path is not allowed in the folder.
    #[error(
        "`{path}` is not a valid path in the output folder: {reason}; give a relative one such as `notes/report.md`"
    )]
    Name {
        /// The path, with invisible characters escaped.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// The file exists and may not be replaced.
    #[error("the file `{path}` exists already and may not be replaced; choose another name")]
    Exists {
        /// The path.
        path: String,
    },
    /// The file was created after the decision about an approval.
    #[error(
        "the file `{path}` exists by now, and its replacement was not approved; write it again to ask for approval"
    )]
    Unasked {
        /// The path.
        path: String,
    },
    /// The path is not a file.
    #[error("`{path}` is not a file but {kind}")]
    NoFile {
        /// The path.
        path: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The file does not exist.
    #[error("there is no `{path}` in the output folder; name one that is there")]
    Missing {
        /// The path.
        path: String,
    },
    /// A file is too large.
    #[error("`{path}` has {size} bytes, but at most {limit} are allowed")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The folder is full.
    #[error("the output folder is full: {used} of at most {limit}")]
    Full {
        /// The required size.
        used: String,
        /// The limit.
        limit: String,
    },
    /// The disk of the folder has little space left.
    #[error("the disk of the output folder has {free} bytes left, and programs leave {reserve} to others")]
    Disk {
        /// The free space, in bytes.
        free: u64,
        /// The space that programs leave, in bytes.
        reserve: u64,
    },
    /// A file is not text.
    #[error("`{path}` is not text but {size} bytes of {media_type}; a program can read it")]
    Binary {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// Its media type, by its name.
        media_type: String,
    },
    /// The output folder can neither be opened nor created.
    #[error("cannot open the output folder `{path}`: {source}")]
    Place {
        /// The folder.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The operating system or the capability refused.
    #[error("`{path}` in the output folder: {source}")]
    Io {
        /// The path.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
}
