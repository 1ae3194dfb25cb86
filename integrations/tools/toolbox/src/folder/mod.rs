//! An output folder as a capability: its holder reaches only what is inside.

mod error;
mod listing;
mod name;
mod owner_rights;
mod remove;
mod walk;
mod write;

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use futures::lock::Mutex;
use positronic_core::record::FileRef;
use sha2::{Digest as _, Sha256};
use typed_builder::TypedBuilder;

use super::random::random;

pub use error::FolderError;
pub use listing::FolderEntry;
pub(super) use name::OWN;
pub(super) use remove::remove_folder;

/// The limits of an [`OutputFolder`].
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
#[non_exhaustive]
pub struct FolderOptions {
    /// The maximum size of a file, in bytes; 16 MiB by default, since models write kilobytes and programs seldom create larger
    /// files for people. For a file that is larger than [`LARGEST_BLOB`](positronic_core::record::LARGEST_BLOB), the
    /// run only records name, size and hash.
    #[builder(default = 16 << 20)]
    pub max_file: u64,
    /// The maximum total size, in bytes, including hidden files; 256 MiB by default.
    #[builder(default = 256 << 20)]
    pub max_total: u64,
    /// The maximum number of files, including hidden ones and links; 1000 by default, the maximum that a call may show.
    /// Files and folders together number at most 20,000. What is nested deeper than 64 folders counts, but is not listed.
    #[builder(default = 1000)]
    pub max_files: usize,
    /// The maximum bytes per `read_file`; 64 KiB by default: some 16,000 tokens, an eighth of
    /// a common context window of 128,000.
    #[builder(default = 64 << 10)]
    pub max_read: usize,
    /// Whether `write_file` may replace a file.
    #[builder(default)]
    pub overwrite: Overwrite,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Whether a file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// It may.
    #[default]
    Allow,
    /// A person is asked.
    Ask,
    /// It may not.
    Refuse,
}

/// A folder that agents write to and read from. Clones share it.
///
/// Paths are relative to it, with `/` as separator. None leads out: not `..`, not an absolute path, and not a link
/// in it.
///
/// A resumed run does not restore the folder: files that people or programs have deleted or changed meanwhile stay
/// so, since the log does not know about it and restoring would undo it. A model that reads a missing file gets an error. The bytes
/// remain stored with the run: [`Client::blob`](positronic_core::runner::Client::blob) returns them, and `positronic files RUN --save FOLDER` writes them.
///
/// ```
/// use positronic_toolbox::OutputFolder;
///
/// # fn main() -> positronic_core::Result<()> {
/// # let place = std::env::temp_dir().join(format!("positronic-doc-{}", std::process::id()));
/// let folder = OutputFolder::open(&place)?;
/// folder.write("notes/tea.md", b"Tea is hot.")?;
/// assert_eq!(folder.read("notes/tea.md", 0)?.text, "Tea is hot.");
/// assert!(folder.write("../tea.md", b"").is_err());
/// # std::fs::remove_dir_all(place)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OutputFolder {
    inner: Arc<OpenFolder>,
}

struct OpenFolder {
    dir: Dir,
    place: PathBuf,
    options: FolderOptions,
    /// Locked while a program runs here, so that new files can be attributed to it.
    busy: Arc<Mutex<()>>,
}

/// Part of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadText {
    /// The text.
    pub text: String,
    /// The size of the file, in bytes.
    pub size: u64,
    /// The offset of the next part, if there is one.
    pub next: Option<u64>,
}

impl OutputFolder {
    /// Opens a folder with the default limits, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`FolderError::Place`] when it can neither be opened nor created.
    pub fn open(place: impl AsRef<Path>) -> Result<Self, FolderError> {
        Self::with(place, FolderOptions::default())
    }

    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`FolderError::Place`] when it can neither be opened nor created.
    pub fn with(place: impl AsRef<Path>, options: FolderOptions) -> Result<Self, FolderError> {
        let place = place.as_ref();
        let failed = |source| FolderError::Place { path: place.display().to_string(), source };
        if place.is_file() {
            return Err(failed(std::io::ErrorKind::NotADirectory.into()));
        }
        Dir::create_ambient_dir_all(place, ambient_authority()).map_err(failed)?;
        let place = place.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&place, ambient_authority()).map_err(failed)?;
        Ok(Self::of(dir, place, options))
    }

    /// Opens a subfolder, for instance one per run: `base.folder(cx.run_id().as_str())`.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid, or the folder can neither be opened nor created.
    pub fn folder(&self, path: &str) -> Result<Self, FolderError> {
        let inside = name::checked(path)?;
        self.inner.dir.create_dir_all(&inside).map_err(io(path))?;
        let dir = self.inner.dir.open_dir(&inside).map_err(io(path))?;
        Ok(Self::of(dir, self.inner.place.join(inside), self.inner.options.clone()))
    }

    fn of(dir: Dir, place: PathBuf, options: FolderOptions) -> Self {
        Self { inner: Arc::new(OpenFolder { dir, place, options, busy: Arc::default() }) }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.place
    }

    /// Returns its limits.
    #[must_use]
    pub fn options(&self) -> &FolderOptions {
        &self.inner.options
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.inner.dir
    }

    pub(super) fn busy(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.inner.busy)
    }

    /// Returns whether a file or folder with this path exists.
    ///
    /// # Errors
    ///
    /// [`FolderError::Name`] when the path is invalid.
    pub fn has(&self, path: &str) -> Result<bool, FolderError> {
        let inside = name::checked(path)?;
        Ok(self.inner.dir.symlink_metadata(inside).is_ok())
    }

    /// Reads a part of a text, from an offset on.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid, is not a text file, or the operating system refuses.
    pub fn read(&self, path: &str, offset: u64) -> Result<ReadText, FolderError> {
        use std::io::{Seek as _, SeekFrom};

        let (mut file, size) = self.file(path)?;
        let limit = self.inner.options.max_read as u64;
        file.seek(SeekFrom::Start(offset)).map_err(io(path))?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(io(path))?;
        let binary = || FolderError::Binary { path: path.to_owned(), size, media_type: media_type(Path::new(path)) };
        let end = offset.saturating_add(bytes.len() as u64);
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let whole = error.utf8_error().valid_up_to();
                // A character may be cut at the end of the part, but nowhere else.
                let cut = error.as_bytes().len() - whole;
                if error.utf8_error().error_len().is_some() || cut > 3 || whole == 0 {
                    return Err(binary());
                }
                let mut bytes = error.into_bytes();
                bytes.truncate(whole);
                String::from_utf8(bytes).map_err(|_| binary())?
            }
        };
        if text.contains('\0') {
            return Err(binary());
        }
        let read = offset.saturating_add(text.len() as u64);
        let next = (read < size && end > offset).then_some(read);
        Ok(ReadText { text, size, next })
    }

    /// Returns a file's metadata, with the hash of its bytes.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid or not a file, or the operating system refuses.
    pub fn describe(&self, path: &str) -> Result<FileRef, FolderError> {
        let (mut file, size) = self.file(path)?;
        let mut hash = Sha256::new();
        let mut part = vec![0; 64 << 10];
        loop {
            match file.read(&mut part) {
                Ok(0) => break,
                Ok(read) => hash.update(part.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io(path)(error)),
            }
        }
        Ok(output(&name::checked(path)?, size, hash.finalize().as_slice()))
    }

    /// Reads a complete file, up to the maximum size.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid or not a file, it is too large, or the operating system refuses.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        let (file, size) = self.file(path)?;
        let limit = self.inner.options.max_file;
        let mut bytes = Vec::new();
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io(path))?;
        if read as u64 > limit {
            return Err(FolderError::TooLarge { path: path.to_owned(), size, limit });
        }
        Ok(bytes)
    }

    /// Opens a file for reading. Its kind is checked after opening, so that it cannot be swapped for a pipe.
    fn file(&self, path: &str) -> Result<(File, u64), FolderError> {
        let inside = name::checked(path)?;
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // Opening a pipe without a writer would block otherwise.
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        let file = self.inner.dir.open_with(&inside, &options).map_err(io(path))?;
        let known = file.metadata().map_err(io(path))?;
        if known.is_dir() {
            return Err(no_file(path, "a folder"));
        }
        if !known.is_file() {
            return Err(no_file(path, "a pipe or a device"));
        }
        Ok((file, known.len()))
    }
}

impl fmt::Debug for OutputFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputFolder").field("place", &self.inner.place).finish_non_exhaustive()
    }
}

/// Returns a name for an internal file, which a program cannot guess and create first.
pub(super) fn own_name(what: &str) -> String {
    format!("{OWN}{:016x}-{what}", random())
}

fn output(inside: &Path, size: u64, hash: &[u8]) -> FileRef {
    use std::fmt::Write as _;

    let mut sha256 = String::with_capacity(64);
    for byte in hash {
        // Writing to a string cannot fail.
        _ = write!(sha256, "{byte:02x}");
    }
    let name = slashed(inside);
    FileRef { media_type: media_type(inside), size, sha256, uri: name.clone(), name }
}

/// Formats a path with `/` as separator.
fn slashed(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn media_type(path: &Path) -> String {
    mime_guess::from_path(path).first_or_octet_stream().essence_str().to_owned()
}

fn no_file(path: &str, kind: &'static str) -> FolderError {
    FolderError::NoFile { path: path.to_owned(), kind }
}

fn io(path: &str) -> impl Fn(std::io::Error) -> FolderError + '_ {
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => FolderError::Missing { path: path.to_owned() },
        _ => FolderError::Io { path: path.to_owned(), source },
    }
}
