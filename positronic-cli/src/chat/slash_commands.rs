//! Slash commands of a chat: parsing, completion and help.

use crate::cli::did_you_mean;
use crate::render::aligned;

/// A command of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    History,
    Tools,
    Usage,
    Files,
    Attach,
    Detach,
    Pending,
    Retry,
    Cancel,
    Export,
    Id,
    New,
    Quit,
}

/// The commands: name, argument, and what it does.
const ALL: [(Slash, &str, &str, &str); 14] = [
    (Slash::Help, "help", "", "lists the commands"),
    (Slash::History, "history", "[NUMBER]", "shows the conversation, or its last messages"),
    (Slash::Tools, "tools", "", "lists the tools of the last model request"),
    (Slash::Usage, "usage", "", "shows tokens and cost of the last answer and of the conversation, and its budget"),
    (Slash::Files, "files", "", "lists the files of the conversation, and where they are saved"),
    (Slash::Attach, "attach", "[FILE]", "attaches a file or a URL to the next message, or lists what is attached"),
    (Slash::Detach, "detach", "[NAME]", "removes the attached files, or one of them"),
    (Slash::Pending, "pending", "", "lists what waits for an answer, and asks you"),
    (Slash::Retry, "retry", "", "sends the last message again"),
    (Slash::Cancel, "cancel", "", "ends the answer that is running"),
    (Slash::Export, "export", "FILE", "exports the conversation to a file: .md or .json"),
    (Slash::Id, "id", "", "shows the conversation's id, and how to continue it"),
    (Slash::New, "new", "", "begins a new conversation"),
    (Slash::Quit, "quit", "", "exits; the conversation is stored"),
];

/// Other names of commands.
const ALSO: [(&str, Slash); 4] =
    [("exit", Slash::Quit), ("q", Slash::Quit), ("?", Slash::Help), ("stop", Slash::Cancel)];

/// What a person has entered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A message.
    Message(String),
    /// A command, with its argument.
    Command(Slash, String),
    /// An unknown command, with what to print.
    Unknown(String),
}

/// Parses what a person has entered. Two slashes at the beginning send one.
pub(super) fn parse(text: &str) -> Written {
    let Some(rest) = text.trim().strip_prefix('/') else { return Written::Message(text.to_owned()) };
    if rest.starts_with('/') {
        return Written::Message(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match named(&name.to_lowercase()) {
        Some(slash) => Written::Command(slash, argument.trim().to_owned()),
        None => {
            let near = did_you_mean(name, ALL.iter().map(|(_, known, _, _)| *known), "/");
            let meant = near.unwrap_or_else(|| "`/help` lists the commands".to_owned());
            Written::Unknown(format!("unknown command `/{name}`; {meant} (`//` sends a slash)"))
        }
    }
}

/// Finds a command by its name, or by an unambiguous prefix.
fn named(name: &str) -> Option<Slash> {
    let exact = ALL.iter().find(|(_, known, _, _)| *known == name).map(|(slash, ..)| *slash);
    let also = || ALSO.iter().find(|(known, _)| *known == name).map(|(_, slash)| *slash);
    exact.or_else(also).or_else(|| match &*beginning(name) {
        [only] if !name.is_empty() => named(only),
        _ => None,
    })
}

fn beginning(name: &str) -> Vec<&'static str> {
    ALL.iter().map(|(_, known, _, _)| *known).filter(|known| known.starts_with(name)).collect()
}

/// Completes the name of a command as far as it is unambiguous, and lists the candidates where it is not.
pub(super) fn complete(text: &str) -> Option<(String, Vec<String>)> {
    let name = text.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace))?;
    let known = beginning(name);
    match &*known {
        [] => None,
        [only] => Some((format!("/{only} "), Vec::new())),
        [first, ..] => {
            let shared = (0..=first.len())
                .rev()
                .find(|end| first.get(..*end).is_some_and(|start| known.iter().all(|known| known.starts_with(start))));
            let start = first.get(..shared.unwrap_or(0)).unwrap_or_default();
            Some((format!("/{start}"), known.iter().map(|name| format!("/{name}")).collect()))
        }
    }
}

/// Lists the commands and the keys.
pub(super) fn help() -> String {
    let called = |name: &str, argument: &str| format!("/{name} {argument}").trim_end().to_owned();
    let pairs: Vec<_> =
        ALL.iter().map(|(_, name, argument, what)| (called(name, argument), (*what).to_owned())).collect();
    aligned(&pairs).join("\n")
        + "\n\nEnter sends, Alt-Enter or Ctrl-J begins a line, the arrow keys recall earlier input. Ctrl-C ends the answer \
            that is running, else leaves; Ctrl-D leaves. Two slashes send a message that begins with one."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_finds_a_command_by_its_name_or_prefix() {
        let command = |slash, rest: &str| Written::Command(slash, rest.to_owned());

        assert_eq!(parse("/help"), command(Slash::Help, ""));
        assert_eq!(parse(" /HIS 3 "), command(Slash::History, "3"));
        assert_eq!(parse("/export talk.md"), command(Slash::Export, "talk.md"));
        assert_eq!(parse("/exit"), command(Slash::Quit, ""));
        assert_eq!(parse("/stop"), command(Slash::Cancel, ""));
        assert_eq!(parse("a /help"), Written::Message("a /help".to_owned()));
    }

    #[test]
    fn unknown_command_is_refused_and_two_slashes_send_one() {
        let Written::Unknown(said) = parse("/tolls") else { panic!("it is not a command") };
        assert_eq!(said, "unknown command `/tolls`; did you mean `/tools`? (`//` sends a slash)");
        let Written::Unknown(said) = parse("/etc/passwd is a file") else { panic!("it is not a command") };
        assert_eq!(said, "unknown command `/etc/passwd`; `/help` lists the commands (`//` sends a slash)");
        assert!(matches!(parse("/"), Written::Unknown(_)));
        assert!(matches!(parse("/e"), Written::Command(Slash::Export, _)));
        assert!(matches!(parse("/h"), Written::Unknown(_)), "it may be /help or /history");
        assert_eq!(parse("//etc/passwd is a file"), Written::Message("/etc/passwd is a file".to_owned()));
    }

    #[test]
    fn complete_adds_what_is_unambiguous() {
        assert_eq!(complete("/us"), Some(("/usage ".to_owned(), Vec::new())));
        assert_eq!(complete("/h"), Some(("/h".to_owned(), vec!["/help".to_owned(), "/history".to_owned()])));
        assert_eq!(complete("/hel").map(|(text, _)| text).as_deref(), Some("/help "));
        assert_eq!((complete("hello"), complete("/x"), complete("/export f")), (None, None, None));
    }

    #[test]
    fn help_names_every_command() {
        insta::assert_snapshot!(help());
    }
}
