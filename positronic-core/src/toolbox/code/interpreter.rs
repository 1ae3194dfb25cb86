//! The languages that programs are written in.

use std::path::{Path, PathBuf};

use super::CodeError;

/// Where interpreters are looked for, and the search path of programs: the usual folders of Unixes. The environment is not read.
pub(super) const SEARCHED: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];

/// Runs a file of Python, with modules of the output folder behind all others. Python's own isolated mode (`-I`) finds no module
/// there, and so none that takes the place of one of its own, such as `json.py`, or that runs by itself, such as `sitecustomize.py`.
const START: &str = "exec((lambda sys, program: (sys.path.append(__import__('os').getcwd()), sys.argv.pop(0), \
     globals().update(__file__=program), compile(open(program, 'rb').read(), program, 'exec'))[-1])\
     (__import__('sys'), __import__('sys').argv[1]))";

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

    /// Returns Python 3, isolated from the environment: its variables, such as `PYTHONPATH`, have no effect. A program can import
    /// modules of the output folder, but none of them before Python's own or an installed one of the same name. Nothing of them is
    /// compiled to disk, and what a stopped program has printed is written.
    #[must_use]
    pub fn python3() -> Self {
        let arguments = ["-I", "-B", "-u", "-c", START].map(str::to_owned).into();
        Self { arguments, ..Self::new("python3", "python3", "py") }
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
