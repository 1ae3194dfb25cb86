//! Transport to a server process.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::secrets::Secrets;

/// The default `PATH`.
const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that is an MCP server on its standard input and output.
///
/// It inherits no environment and no open files: this process's secrets are none of its business. Besides the author's variables it
/// gets a `PATH` of the system's folders, `LANG=C.UTF-8` and the marker `POSITRONIC_MCP_SERVER`. A server that needs a home
/// folder, like `npx`, needs `.env("HOME", …)`. To prevent inheritance, starting a server marks all descriptors of this process
/// above 2 as close-on-exec.
///
/// The server ends with the last clone of its [`McpServer`](super::super::McpServer): its input is closed, and after two seconds its
/// process group is killed. On Linux, processes that have left the group are then found by the marker and killed, too. A process
/// survives if it has left the group and has cleared its environment or changed its user; on other Unixes, any process that has left
/// the group. Run an untrusted server in a container. If this process is killed, the server's input ends, and the server should
/// exit by itself.
#[derive(Clone)]
#[must_use = "a command is given to `McpServer::new`"]
pub struct McpCommand {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: Option<PathBuf>,
}

impl McpCommand {
    /// Creates a command for a program: a path, or a name in `PATH`.
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

    /// Sets an environment variable of the server. Messages never contain its value. If the name marks a secret, such as `API_KEY`,
    /// and the value has 16 bytes or more, results of calls show it as `[hidden]`, too.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Sets the working directory; this process's own by default.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(super) fn secrets(&self) -> Secrets {
        let texts = self.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        Secrets::named(texts)
    }

    /// Explains why it did not start.
    pub(super) fn not_started(&self, error: &std::io::Error) -> String {
        let program = self.program.display();
        match (error.kind(), &self.folder) {
            (std::io::ErrorKind::NotFound, Some(folder)) => {
                format!("cannot find the program `{program}` or the folder `{}`", folder.display())
            }
            (std::io::ErrorKind::NotFound, None) => {
                let path = self.environment.iter().find(|(name, _)| name == "PATH");
                let path = path.map(|(_, path)| path.display().to_string()).unwrap_or_default();
                format!(
                    "cannot find the program `{program}`; searched in {path}; set another path with `.env(\"PATH\", …)`"
                )
            }
            _ => format!("`{program}` failed to start: {error}"),
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
