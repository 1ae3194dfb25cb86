//! The languages that programs are written in.

use std::path::{Path, PathBuf};

use super::CodeError;

/// Where interpreters are looked for, and the search path of programs: the usual folders of Unixes. The environment is not read.
pub(super) const SEARCHED: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];

/// A language, and the program that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its name, by which models and authors know it.
    pub name: String,
    /// The program: a name that is looked for in the usual folders, or an absolute path.
    pub program: PathBuf,
    /// What it is given before the program's file.
    pub arguments: Vec<String>,
    /// How the names of its programs end, without a dot.
    pub extension: String,
}

impl Interpreter {
    /// Makes a language whose programs are given to its interpreter as a file.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, extension: impl Into<String>) -> Self {
        Self { name: name.into(), program: program.into(), arguments: Vec::new(), extension: extension.into() }
    }

    /// Returns Python 3.
    #[must_use]
    pub fn python3() -> Self {
        Self::new("python3", "python3", "py")
    }

    /// Returns the system's shell.
    #[must_use]
    pub fn sh() -> Self {
        Self::new("sh", "sh", "sh")
    }

    /// Finds the program on this machine.
    pub(super) fn find(&self) -> Result<PathBuf, CodeError> {
        let places: Vec<_> = if self.program.is_absolute() {
            vec![self.program.clone()]
        } else {
            SEARCHED.iter().map(|folder| Path::new(folder).join(&self.program)).collect()
        };
        places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
            let looked: Vec<_> = places.iter().map(|place| format!("`{}`", place.display())).collect();
            CodeError::NoInterpreter { name: self.name.clone(), looked: looked.join(" or ") }
        })
    }
}
