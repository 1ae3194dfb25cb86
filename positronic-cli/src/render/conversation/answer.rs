//! Answers as plain text.

use positronic_core::projection::Prompts;
use positronic_core::record::{Output, OutputKind, Path};

/// Renders the visible part of an answer as plain text: its texts, and the fallbacks of widgets. The first `known` outputs
/// of a loop are skipped.
pub(crate) fn plain_answer(prompts: &Prompts, known: impl Fn(&Path) -> usize) -> String {
    let spoken = prompts.spoken().filter(|prompt| prompt.visible);
    let mut fresh: Vec<&Output> = spoken.flat_map(|prompt| prompt.output.iter().skip(known(&prompt.path))).collect();
    // A loop that gets its dialogue back goes on after those that had taken it over.
    fresh.sort_by_key(|output| output.at);
    let said = |output: &Output| match &output.kind {
        OutputKind::Text { .. } => output.kind.text(),
        OutputKind::Widget(widget) => Some(widget.fallback.clone()),
        OutputKind::Custom(custom) => Some(custom.fallback.clone()),
        _ => None,
    };
    let said: Vec<String> =
        fresh.into_iter().filter_map(said).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
    said.join("\n\n")
}

/// Returns whether a loop belongs to the run's own brain.
pub(crate) fn is_own(path: &Path) -> bool {
    path.parent().is_some_and(|owner| owner.is_root())
}
