//! The commands in the documentation: each exists, with its flags.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _, Parser as _};

use super::Cli;

/// Flags in the documentation's prose that belong to other programs.
const FLAGS_OF_OTHERS: [&str; 6] = [
    // vLLM and llama.cpp
    "api-key",
    "enable-auto-tool-choice",
    "jinja",
    "reasoning-parser",
    "tool-call-parser",
    // aimock
    "stream-chunk-delay-ms",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Lists the pages of the documentation, and what a new project says about itself.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![workspace().join("README.md"), workspace().join("BENCHMARKS.md")];
    pages.push(workspace().join("positronic-cli/src/app/template/files/README.md"));
    let mut folders = vec![workspace().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A piece of code in a page: a line of a shell block, or a span in prose.
#[derive(Debug)]
enum Code {
    Line(String),
    Span(String),
}

fn code(page: &str) -> Vec<Code> {
    let (mut fence, mut found) = (None::<&str>, Vec::new());
    let mut continued = String::new();
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), fence) {
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) => fence = Some(language.trim()),
            (None, Some("sh" | "bash" | "console")) => match line.strip_suffix('\\') {
                Some(begin) => continued.push_str(begin),
                None => found.push(Code::Line(std::mem::take(&mut continued) + line)),
            },
            (None, Some(_)) => {}
            (None, None) => found.extend(line.split('`').skip(1).step_by(2).map(|span| Code::Span(span.to_owned()))),
        }
    }
    found
}

/// Splits a shell line into its commands and their words, without comments, redirections and variables in front.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            ('|' | ';' | '&' | '>' | '<', None) => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    all.push(words);
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
    };
    all.into_iter().map(|words: Vec<String>| words.into_iter().skip_while(is_variable).collect()).collect()
}

/// Returns the arguments of `positronic`, which a project's own binary takes as well.
fn own_arguments(words: &[String]) -> Option<&[String]> {
    match words.first()?.as_str() {
        "positronic" => words.get(1..),
        "cargo" if words.get(1)? == "run" => {
            let runs_other = words.iter().any(|word| word == "--example");
            words.split(|word| word == "--").nth(1).filter(|_| !runs_other)
        }
        _ => None,
    }
}

/// Checks the words of a span in prose, which may lack arguments: its subcommand exists, and has its flags.
fn check_span(words: &[String]) -> Result<(), String> {
    let root = Cli::command();
    let mut command = &root;
    for word in words {
        if let Some(flag) = word.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or(flag)) {
            if !flag.contains('…') && !has_flag(command, flag) && !has_flag(&root, flag) {
                return Err(format!("`{}` has no flag --{flag}", command.get_name()));
            }
        } else if let Some(inner) = command.find_subcommand(word) {
            command = inner;
        } else if command.has_subcommands() && word.chars().all(|letter| letter.is_ascii_lowercase()) {
            return Err(format!("`{}` has no command {word}", command.get_name()));
        }
    }
    Ok(())
}

fn has_flag(command: &Command, flag: &str) -> bool {
    ["help", "version"].contains(&flag)
        || command
            .get_arguments()
            .any(|argument| argument.get_long_and_visible_aliases().is_some_and(|all| all.contains(&flag)))
}

/// Returns whether any command has a flag.
fn anywhere(command: &Command, flag: &str) -> bool {
    has_flag(command, flag) || command.get_subcommands().any(|inner| anywhere(inner, flag))
}

/// Checks the packages, features and folders that a line gives to cargo.
fn check_cargo(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let manifest = |package: &str| {
        let groups = ["engines", "models", "stores", "tools"].map(|group| format!("integrations/{group}/"));
        let folders = [String::new(), "integrations/".to_owned()].into_iter().chain(groups);
        let folder = package.strip_prefix("positronic-").unwrap_or(package);
        let paths = folders.flat_map(|begin| [format!("{begin}{package}"), format!("{begin}{folder}")]);
        paths.map(|path| workspace().join(path).join("Cargo.toml")).find_map(|path| fs::read_to_string(path).ok())
    };
    let mut package = None;
    for pair in words.windows(2) {
        let [flag, value] = pair else { continue };
        match *flag {
            "-p" | "--package" => package = Some(manifest(value).ok_or_else(|| format!("no package {value}"))?),
            "--path" => package = Some(manifest(value).ok_or_else(|| format!("no folder {value}"))?),
            "--features" => {
                let manifest = package.as_deref().unwrap_or_default();
                if !value.split(',').all(|feature| manifest.contains(&format!("\n{feature} = ["))) {
                    return Err(format!("no feature {value}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check(code: &Code) -> Result<(), String> {
    let (Code::Line(text) | Code::Span(text)) = code;
    for words in commands(text) {
        let begins = words.first().map_or("", String::as_str);
        if begins == "cargo" {
            check_cargo(&words)?;
        }
        match (code, own_arguments(&words)) {
            (Code::Line(_), Some(arguments)) => {
                let arguments = std::iter::once("positronic").chain(arguments.iter().map(String::as_str));
                Cli::try_parse_from(arguments).map_err(|error| error.to_string())?;
            }
            (Code::Span(_), Some(arguments)) => check_span(arguments)?,
            (Code::Span(_), None) if begins.starts_with("--") && begins.len() > 2 => {
                let flag = begins.trim_start_matches('-').split('=').next().unwrap_or_default();
                if !anywhere(&Cli::command(), flag) && !FLAGS_OF_OTHERS.contains(&flag) {
                    return Err(format!("no command has the flag --{flag}"));
                }
            }
            (Code::Span(_), None)
                if words.iter().skip(1).any(|word| word.starts_with("--"))
                    && Cli::command().find_subcommand(begins).is_some() =>
            {
                check_span(&words)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn every_command_and_flag_in_the_documentation_exists() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for code in code(&fs::read_to_string(&page).unwrap()) {
            checked += 1;
            if let Err(problem) = check(&code) {
                wrong.push(format!("{}: {code:?}: {problem}", page.display()));
            }
        }
    }
    assert!(checked > 1000, "only {checked} pieces of code were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_commands_in_documentation_are_found() {
    let line = |text: &str| check(&Code::Line(text.to_owned()));
    let span = |text: &str| check(&Code::Span(text.to_owned()));

    assert!(line("positronic run support --model x/y  # asks").is_ok());
    assert!(line("KEY=… positronic runs | head").is_ok() && line("echo 'Hi' | positronic chat kitchen").is_ok());
    assert!(line("positronic runs --bogus").is_err() && line("cargo run -- fly").is_err());
    assert!(line("echo x && positronic approve").is_err(), "its argument is missing");
    assert!(span("positronic run").is_ok() && span("state --at N").is_ok() && span("--json").is_ok());
    assert!(span("positronic fly").is_err() && span("state --bogus N").is_err() && span("--bogus").is_err());
    assert!(line("cargo install --path positronic-cli --features postgres").is_ok());
    assert!(line("cargo install --path positronic-cli --features warp").is_err());
    assert!(line("cargo bench -p positronic-nothing").is_err());
}
