//! Values of flags that come from a file or stdin, and JSON.

use std::fs::File;
use std::io::{self, Read};

use positronic_core::record::check_numbers;
use serde_json::Value;

use crate::app::{Failure, Ui};
use crate::cli::no_json;

/// The largest text of a flag, in bytes: eight times the largest document of a run. An endless file or pipe ends here.
const MAX_BYTES: usize = 64 << 20;

/// Reads the text of a flag: literal, from the file of `@FILE`, or from stdin with `-`.
pub(crate) fn flag_text(given: &str, ui: &mut Ui) -> Result<String, Failure> {
    match (given, given.strip_prefix('@')) {
        ("@", _) => {
            Err(Failure::usage("the name of the file after `@` is empty").hint("@FILE reads a file, @- reads stdin"))
        }
        ("-" | "@-", _) => read(&mut ui.input).map_err(Failure::file("stdin", "cannot read")),
        (_, Some(path)) => File::open(path).and_then(read).map_err(Failure::file(path, "cannot read")),
        (text, None) => Ok(text.to_owned()),
    }
}

fn read(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads the JSON of a flag, as [`flag_text`] does.
pub(crate) fn flag_json(flag: &str, given: &str, ui: &mut Ui) -> Result<Value, Failure> {
    let text = flag_text(given, ui)?;
    let value = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{flag}: {}", no_json(&text, &error)))
            .hint(r#"write a text as '"text"'; @FILE reads a file, and - reads stdin"#)
    })?;
    check_numbers(&text).map_err(|number| Failure::usage(format!("{flag}: the JSON has {number}")))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_and_binary_inputs_are_refused() {
        let refused = |input: &mut dyn Read| read(input).unwrap_err().to_string();

        assert_eq!(refused(&mut io::repeat(b' ')), "it is larger than 64 MiB");
        assert_eq!(refused(&mut &b"\xff\xfe{}"[..]), "it is not UTF-8");
        assert_eq!(read(&b"{}"[..]).unwrap(), "{}");
    }
}
