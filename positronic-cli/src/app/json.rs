//! Values of flags that come from a file or stdin, and JSON.

use std::io::Read as _;

use serde_json::Value;

use crate::app::{Failure, Ui};
use crate::cli::no_json;

/// Reads the text of a flag: literal, from the file of `@FILE`, or from stdin with `-`.
pub(crate) fn flag_text(given: &str, ui: &mut Ui) -> Result<String, Failure> {
    match (given, given.strip_prefix('@')) {
        ("-" | "@-", _) => {
            let mut text = String::new();
            ui.input.read_to_string(&mut text).map_err(Failure::file("stdin", "cannot be read"))?;
            Ok(text)
        }
        (_, Some(path)) => std::fs::read_to_string(path).map_err(Failure::file(path, "cannot be read")),
        (text, None) => Ok(text.to_owned()),
    }
}

/// Reads the JSON of a flag, as [`text`] does.
pub(crate) fn flag_json(flag: &str, given: &str, ui: &mut Ui) -> Result<Value, Failure> {
    let text = flag_text(given, ui)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{flag}: {}", no_json(&text, &error)))
            .hint(r#"write a text as '"text"'; @FILE reads a file, and - reads stdin"#)
    })
}
