//! Why a file or a folder could not be written, read or listed.

use thiserror::Error;

/// Why a file or a folder could not be written, read or listed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The path is none that a file in the folder may have.
    #[error("`{path}` is no path in the output folder: {reason}; give a relative one such as `notes/report.md`")]
    Name {
        /// The path, with what cannot be seen escaped.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is a file of this name, and it may not be replaced.
    #[error("there is a file `{path}` already, and it may not be replaced; choose another name")]
    Exists {
        /// The path.
        path: String,
    },
    /// There is a file of this name by now, and nobody was asked whether it may be replaced.
    #[error(
        "there is a file `{path}` by now, and nobody was asked whether it may be replaced; write it again to have a person asked"
    )]
    Unasked {
        /// The path.
        path: String,
    },
    /// There is something else of this name.
    #[error("`{path}` is no file but {kind}")]
    NoFile {
        /// The path.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// There is no such file.
    #[error("there is no `{path}` in the output folder; name one that is there")]
    Missing {
        /// The path.
        path: String,
    },
    /// A file is too large.
    #[error("`{path}` has {size} bytes, and a file may have {limit}")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The folder is full.
    #[error("the output folder is full: {used}, and it may hold {limit}")]
    Full {
        /// What it would hold.
        used: String,
        /// What it may hold.
        limit: String,
    },
    /// A file is no text.
    #[error("`{path}` is no text but {size} bytes of {media_type}; a program can read it")]
    Binary {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// Its media type, by its name.
        media_type: String,
    },
    /// The output folder itself can neither be opened nor made.
    #[error("the output folder `{path}` cannot be opened: {source}")]
    Place {
        /// The folder.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The operating system, or the folder's capability, refused.
    #[error("`{path}` in the output folder: {source}")]
    Io {
        /// The path.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
}
