//! Payment card numbers.

use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;

use regex::Regex;

use super::is_apart;

/// Groups of digits with single separators between them.
#[expect(clippy::expect_used, reason = "a constant expression, which a test compiles")]
static RUNS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9]+(?:[ \u{a0}\u{202f}-][0-9]+)*").expect("a valid expression"));

/// The longest number that ISO/IEC 7812-1 allows, in digits.
const LONGEST: usize = 19;

/// The ranges of the first four digits in which the networks issue numbers, and how many digits those have.
const NETWORKS: [(RangeInclusive<u16>, RangeInclusive<usize>); 11] = [
    // Mastercard.
    (2221..=2720, 16..=16),
    (5100..=5599, 16..=16),
    // Diners Club.
    (3000..=3059, 14..=19),
    (3600..=3699, 14..=19),
    (3800..=3999, 14..=19),
    // American Express.
    (3400..=3499, 15..=15),
    (3700..=3799, 15..=15),
    // JCB.
    (3528..=3589, 16..=19),
    // Visa. Numbers of 13 digits are no longer issued, and 13 digits that begin with 4 are article numbers.
    (4000..=4999, 16..=19),
    // Maestro.
    (5600..=5899, 16..=19),
    // Discover, UnionPay, RuPay, Maestro.
    (6000..=6999, 16..=19),
];

/// Returns the places of card numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for run in RUNS.find_iter(text) {
        let groups = groups(text, run.range());
        let mut first = 0;
        // Other digits may stand beside the number, such as its month of expiry.
        while let Some(rest) = groups.get(first..) {
            let longest = (1..=rest.len().min(LONGEST)).rev().find_map(|count| {
                let (from, to) = (rest.first()?, rest.get(count - 1)?);
                let place = from.start..to.end;
                is_card(text, &place).then_some((count, place))
            });
            first += longest.as_ref().map_or(1, |(count, _)| *count);
            found.extend(longest.map(|(_, place)| place));
            if first >= groups.len() {
                break;
            }
        }
    }
    found
}

/// Returns the places of the groups of digits in a run.
fn groups(text: &str, run: Range<usize>) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for place in run {
        if !text.as_bytes().get(place).is_some_and(u8::is_ascii_digit) {
            continue;
        }
        match groups.last_mut() {
            Some(group) if group.end == place => group.end += 1,
            _ => groups.push(place..place + 1),
        }
    }
    groups
}

fn is_card(text: &str, place: &Range<usize>) -> bool {
    let Some(shown) = text.get(place.clone()) else { return false };
    // A group has one separator at most after it, so what is much longer than a number is none.
    if shown.len() > LONGEST * 4 {
        return false;
    }
    let digits: Vec<_> = shown.chars().filter_map(|c| c.to_digit(10)).collect();
    let first = digits.iter().take(4).fold(0, |number, digit| number * 10 + digit);
    let is_issued = |(range, lengths): &(RangeInclusive<u16>, RangeInclusive<usize>)| {
        lengths.contains(&digits.len()) && u16::try_from(first).is_ok_and(|first| range.contains(&first))
    };
    NETWORKS.iter().any(is_issued) && passes_luhn(&digits) && is_apart(text, place) && !is_fraction(text, place.start)
}

/// Returns whether the check digit is right: every second digit from the right is doubled, and the sum of all digits is a multiple of ten.
fn passes_luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| if index % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

/// Returns whether the digits from here on are the fraction of a number.
fn is_fraction(text: &str, start: usize) -> bool {
    let before = text.as_bytes().get(..start).unwrap_or_default();
    matches!(before, [.., digit, b'.'] if digit.is_ascii_digit())
}
