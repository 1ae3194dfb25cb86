//! A server that is started as a process.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::mcp::secrets::Secrets;

/// Where programs are looked for, unless the author gives a `PATH`.
const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that is an MCP server and speaks over its input and output.
///
/// It inherits no environment and no open files: a token that this process was given is not the server's business. Beside what the
/// author names, it has a `PATH` of the system's folders, `LANG=C.UTF-8` and the mark `POSITRONIC_MCP_SERVER`. A server that keeps
/// things in a home folder, as `npx` does, needs `.env("HOME", …)`. So that no open file is inherited, starting a server marks
/// every descriptor of this process above 2 as close-on-exec.
///
/// The server ends with the last clone of its [`McpServer`](super::super::McpServer): its input is closed, and after two seconds its
/// process group is killed. On Linux, processes that have left the group are then found by the mark and killed, too. What outlives
/// the server is a process that has left the group and has either cleared its environment or become another user's; on
/// other Unixes, any that has left the group. A server that must not be able to leave anything belongs into a container. Where this
/// process is killed, the server's input ends, and it is up to the server to go.
#[derive(Clone)]
#[must_use = "a command is given to `McpServer::new`"]
pub struct McpCommand {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: Option<PathBuf>,
}

impl McpCommand {
    /// Begins with a program: a path, or a name that is looked for in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        let environment = vec![("PATH".into(), SEARCHED.into()), ("LANG".into(), "C.UTF-8".into())];
        Self { program: program.into(), arguments: Vec::new(), environment, folder: None }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the server's environment. No message shows its value. Where it is a secret by its name, such as `API_KEY`,
    /// and has 16 bytes or more, it is `[hidden]` in the results of calls, too.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Sets the folder in which the server runs; this process's own where nothing is said.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(super) fn secrets(&self) -> Secrets {
        let texts = self.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        Secrets::named(texts)
    }

    /// Says why it was not started.
    pub(super) fn not_started(&self, error: &std::io::Error) -> String {
        let program = self.program.display();
        match (error.kind(), &self.folder) {
            (std::io::ErrorKind::NotFound, Some(folder)) => {
                format!("there is no program `{program}`, or no folder `{}`", folder.display())
            }
            (std::io::ErrorKind::NotFound, None) => {
                let path = self.environment.iter().find(|(name, _)| name == "PATH");
                let path = path.map(|(_, path)| path.display().to_string()).unwrap_or_default();
                format!(
                    "there is no program `{program}`; it was looked for in {path}; give another path with `.env(\"PATH\", …)`"
                )
            }
            _ => format!("`{program}` could not be started: {error}"),
        }
    }
}

impl fmt::Debug for McpCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and values may be secrets.
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("McpCommand")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("environment", &names)
            .field("folder", &self.folder)
            .finish()
    }
}
