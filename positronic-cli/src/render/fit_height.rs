//! A frame as text, shortened to a height.

use super::figures::many;
use super::layout::{Scrolled, blocks};
use super::{Line, Style, Tone, View, shorten};

/// Renders a run line by line. If the style limits the height, settled lines are dropped first, oldest first.
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

/// Drops lines beyond the height, and notes how many. Each line comes with whether it is settled.
pub(crate) fn fit(lines: Vec<(bool, Line)>, style: &Style) -> Vec<Line> {
    let height = style.height.unwrap_or(usize::MAX).max(1);
    let excess = (lines.len() + 1).saturating_sub(height);
    if lines.len() <= height {
        return lines.into_iter().map(|(_, line)| line).collect();
    }
    let settled = lines.iter().filter(|(settled, _)| *settled).count();
    let mut from_settled = excess.min(settled);
    let mut from_rest = excess - from_settled;
    let mut shown = Vec::with_capacity(height);
    let mut remark = None;
    for (index, (settled, line)) in lines.into_iter().enumerate() {
        let left = if settled { &mut from_settled } else { &mut from_rest };
        if *left > 0 {
            *left -= 1;
            remark.get_or_insert(index.min(shown.len()));
        } else {
            shown.push(line);
        }
    }
    if let Some(at) = remark {
        let hidden = many(excess, "line");
        shown.insert(at, Line::new(0).with(Tone::Dim, shorten(&format!("⋯ {hidden} not shown"), style.width)));
    }
    shown.truncate(height);
    shown
}
