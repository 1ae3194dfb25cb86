//! Tables in files: prices, and capabilities of models.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::app::Failure;

/// The maximum size of a table in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a table. A file with the extension `.json` is JSON, any other is TOML. `format` describes the table by example.
pub(crate) fn read_table<T: DeserializeOwned>(path: &Path, what: &str, format: &str) -> Result<T, Failure> {
    if fs::metadata(path).is_ok_and(|found| found.len() > LARGEST || !(found.is_file() || found.is_dir())) {
        let message = format!("cannot read {}: it is not a file of at most {} KiB", path.display(), LARGEST >> 10);
        return Err(Failure::environment(message).hint(format!("a {what} is {format}")));
    }
    let text = fs::read_to_string(path).map_err(Failure::file(path, "cannot read"))?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let table = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    table.map_err(|reason: String| {
        Failure::environment(format!("invalid {what} {}: {}", path.display(), reason.trim_end()))
            .hint(format!("a {what} is {format}"))
    })
}
