//! A whole frame as text, and what is left out where there are too few lines for it.

use super::figures::many;
use super::layout::{Scrolled, blocks};
use super::style::{Line, Style, Tone};
use super::view::View;

/// Writes everything that is known of a run, one line after the other. Where the style limits the height, what is
/// settled is left out first, the oldest first.
#[must_use]
pub(crate) fn render(view: &View, style: &Style) -> String {
    let lines: Vec<(bool, Line)> = blocks(view, style, &Scrolled::default())
        .into_iter()
        .flat_map(|block| block.lines.into_iter().map(move |line| (block.settled, line)))
        .collect();
    let mut frame = String::new();
    for line in fit(lines, style) {
        frame.push_str(&line.paint(style));
        frame.push('\n');
    }
    frame
}

/// Keeps as many lines as there may be, with a remark for those that are left out. Each line comes with whether it
/// is settled.
pub(crate) fn fit(lines: Vec<(bool, Line)>, style: &Style) -> Vec<Line> {
    let height = style.height.unwrap_or(usize::MAX).max(1);
    let excess = (lines.len() + 1).saturating_sub(height);
    if lines.len() <= height {
        return lines.into_iter().map(|(_, line)| line).collect();
    }
    let settled = lines.iter().filter(|(settled, _)| *settled).count();
    let mut from_settled = excess.min(settled);
    let mut from_rest = excess - from_settled;
    let mut kept = Vec::with_capacity(height);
    let mut remark = None;
    for (index, (settled, line)) in lines.into_iter().enumerate() {
        let left = if settled { &mut from_settled } else { &mut from_rest };
        if *left > 0 {
            *left -= 1;
            remark.get_or_insert(index.min(kept.len()));
        } else {
            kept.push(line);
        }
    }
    if let Some(at) = remark {
        let hidden = many(u64::try_from(excess).unwrap_or(0), "line");
        let sign = if style.unicode { "⋯" } else { "..." };
        kept.insert(at, Line::new(0).with(Tone::Dim, format!("{sign} {hidden} not shown")));
    }
    kept.truncate(height);
    kept
}
