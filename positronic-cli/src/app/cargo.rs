//! Finds the project around the current folder, builds it, and hands the command over to its binary.
//!
//! A project is a package that depends on `positronic-cli`, or that declares `[package.metadata.positronic]`: the nearest one
//! upwards, or the only one of the enclosing workspace.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

use crate::app::{Failure, PROGRAM, Ui, current_folder, template};
use crate::cli::Exit;

/// A binary of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Binary {
    manifest: PathBuf,
    package: String,
    name: String,
}

/// The needed parts of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<CargoPackage>,
}

#[derive(Debug, Deserialize)]
struct CargoPackage {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    default_run: Option<String>,
    metadata: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds the project of the current folder and runs the command in its binary. Returns `None` without a project.
pub(crate) fn delegate(arguments: &[OsString], ui: &mut Ui) -> Result<Option<Exit>, Failure> {
    let Some(binary) = find(&current_folder()?)? else { return Ok(None) };
    let executable = build(&binary, ui)?;
    exec(&executable, arguments).map(Some)
}

fn find(here: &Path) -> Result<Option<Binary>, Failure> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"], here).stderr(Stdio::piped()).output();
    let output = output.map_err(cannot_run)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if message.contains("could not find `Cargo.toml`") {
            return Ok(None);
        }
        return Err(cannot_run(message));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(cannot_run)?;
    choose(metadata.packages, here).map(binary).transpose()
}

fn cannot_run(error: impl Display) -> Failure {
    Failure::environment(format!("cannot run cargo: {error}"))
}

/// Explains that there is no project, and how `program` creates one.
pub(crate) fn no_project<T>(program: &str) -> Result<T, Failure> {
    let source = if template::checkout().is_some() { "" } else { " --path CHECKOUT" };
    Err(Failure::environment("no project found")
        .hint(format!(
            "looked for a package that depends on positronic-cli, from {} upwards",
            current_folder()?.display()
        ))
        .hint(format!("create a project with: {program} new my-project{source}")))
}

/// Selects the nearest project upwards, or else the only one.
fn choose(packages: Vec<CargoPackage>, here: &Path) -> Option<CargoPackage> {
    let mut projects: Vec<CargoPackage> = packages.into_iter().filter(CargoPackage::is_project).collect();
    let depth = |package: &CargoPackage| {
        let folder = package.manifest_path.parent()?;
        here.starts_with(folder).then(|| folder.components().count())
    };
    let nearest = (0..projects.len()).filter_map(|index| Some((depth(projects.get(index)?)?, index))).max();
    match nearest {
        Some((_, index)) => Some(projects.swap_remove(index)),
        None if projects.len() == 1 => projects.pop(),
        None => None,
    }
}

impl CargoPackage {
    fn is_project(&self) -> bool {
        let declares = self.metadata.as_ref().is_some_and(|metadata| metadata.get("positronic").is_some());
        let depends = self.dependencies.iter().any(|dependency| dependency.name == "positronic-cli");
        (declares || depends) && self.binaries().next().is_some()
    }

    fn binaries(&self) -> impl Iterator<Item = &str> {
        let is_binary = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
        self.targets.iter().filter(is_binary).map(|target| target.name.as_str())
    }
}

fn binary(package: CargoPackage) -> Result<Binary, Failure> {
    let names: Vec<String> = package.binaries().map(str::to_owned).collect();
    let name = match (package.default_run, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only.clone(),
        (None, _) => {
            return Err(Failure::environment(format!("the project has several binaries: {}", names.join(", ")))
                .hint("set `default-run` in the package's Cargo.toml"));
        }
    };
    Ok(Binary { manifest: package.manifest_path, package: package.name, name })
}

/// Builds the binary; compiler errors go to stderr unchanged.
fn build(binary: &Binary, ui: &mut Ui) -> Result<PathBuf, Failure> {
    let terminal = ui.settings.stderr_is_terminal && !ui.settings.dumb;
    if terminal {
        write!(ui.err, "building {} …", binary.name)?;
        ui.err.flush()?;
    }
    let folder = binary.manifest.parent().unwrap_or_else(|| Path::new("."));
    let arguments =
        ["build", "--quiet", "--message-format", "json-render-diagnostics", "--package", &binary.package, "--bin"];
    let child = cargo(&arguments, folder).arg(&binary.name).stderr(Stdio::piped()).output();
    let output = child.map_err(cannot_run)?;
    if terminal {
        write!(ui.err, "\r{}\r", " ".repeat(binary.name.chars().count() + 11))?;
    }
    if !output.status.success() {
        ui.err.write_all(&output.stderr)?;
        return Err(Failure::environment("cannot build the project's binary"));
    }
    executable(&output.stdout, &binary.name)
        .ok_or_else(|| cannot_run(format!("the build produced no binary `{}`", binary.name)))
}

/// Finds the built binary in cargo's artifact messages.
fn executable(messages: &[u8], name: &str) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(messages);
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        let is_it = message.pointer("/target/name").and_then(Value::as_str) == Some(name);
        is_it.then(|| message.get("executable").and_then(Value::as_str).map(PathBuf::from)).flatten()
    })
}

fn cargo(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(folder);
    command
}

/// Replaces this process with the project's binary, so that it gets the signals and sets the exit code.
#[cfg(unix)]
fn exec(executable: &Path, arguments: &[OsString]) -> Result<Exit, Failure> {
    use std::os::unix::process::CommandExt as _;
    // This name tells the binary the command line that started it.
    let source = Command::new(executable).arg0(PROGRAM).args(arguments).exec();
    Err(Failure::file(executable, "cannot run")(source))
}

/// Runs the project's binary and returns its exit code.
#[cfg(not(unix))]
fn exec(executable: &Path, arguments: &[OsString]) -> Result<Exit, Failure> {
    let status = Command::new(executable).args(arguments).status();
    let status = status.map_err(Failure::file(executable, "cannot run"))?;
    Ok(Exit::Other(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, dependency: &str, binaries: &[&str]) -> CargoPackage {
        let target = |name: &&str| Target { name: (*name).to_owned(), kind: vec!["bin".to_owned()] };
        CargoPackage {
            name: folder.replace('/', "-"),
            manifest_path: Path::new("/w").join(folder).join("Cargo.toml"),
            dependencies: vec![Dependency { name: dependency.to_owned() }],
            targets: binaries.iter().map(target).collect(),
            default_run: None,
            metadata: None,
        }
    }

    #[test]
    fn nearest_project_upwards_wins_else_the_only_one() {
        let packages = || {
            vec![
                package("", "positronic-cli", &["outer"]),
                package("apps/inner", "positronic-cli", &["inner"]),
                package("lib", "serde", &[]),
            ]
        };
        let name =
            |packages, here: &str| choose(packages, Path::new(here)).map(|package| binary(package).unwrap().name);

        assert_eq!(name(packages(), "/w/apps/inner/src"), Some("inner".to_owned()));
        assert_eq!(name(packages(), "/w/lib"), Some("outer".to_owned()));
        assert_eq!(name(vec![package("a", "positronic-cli", &["a"])], "/w/lib"), Some("a".to_owned()));
        assert_eq!(name(vec![package("a", "serde", &["a"])], "/w/a"), None);
    }

    #[test]
    fn one_of_several_binaries_must_be_named() {
        let mut several = package("a", "positronic-cli", &["one", "two"]);
        assert!(binary(package("a", "positronic-cli", &["one", "two"])).is_err());
        several.default_run = Some("two".to_owned());
        assert_eq!(binary(several).unwrap().name, "two");
    }
}
