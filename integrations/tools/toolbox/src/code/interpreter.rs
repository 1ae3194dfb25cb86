//! Languages for programs.

use std::path::{Path, PathBuf};

use super::CodeError;

/// Where interpreters are searched, and the `PATH` of programs: the usual folders of Unixes. The environment is not read.
pub(super) const SEARCHED: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];

/// Runs a Python file, with the output folder at the end of the module path. Python's isolated mode (`-I`) finds no modules
/// there, so none can replace a standard one, such as `json.py`, or run automatically, such as `sitecustomize.py`.
const START: &str = "exec((lambda sys, program: (sys.path.append(__import__('os').getcwd()), sys.argv.pop(0), \
     globals().update(__file__=program), compile(open(program, 'rb').read(), program, 'exec'))[-1])\
     (__import__('sys'), __import__('sys').argv[1]))";

/// A language, and its interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The name for models and authors.
    pub name: String,
    /// The program: a name that is searched in the usual folders, or an absolute path.
    pub program: PathBuf,
    /// The arguments before the program's file.
    pub arguments: Vec<String>,
    /// The file extension of its programs, without a dot.
    pub extension: String,
}

impl Interpreter {
    /// Creates a language whose interpreter gets the program as a file.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, extension: impl Into<String>) -> Self {
        Self { name: name.into(), program: program.into(), arguments: Vec::new(), extension: extension.into() }
    }

    /// Returns Python 3, isolated from the environment: its variables, such as `PYTHONPATH`, have no effect. A program can import
    /// modules of the output folder, after standard and installed ones of the same name. No bytecode is
    /// written to disk, and the output of a stopped program is not lost.
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
