//! International bank account numbers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::is_apart;

/// The beginning of a number: the country and the check digits.
#[expect(clippy::expect_used, reason = "a constant expression, which a test compiles")]
static BEGINNINGS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?i-u)[A-Z]{2}[0-9]{2}").expect("a valid expression"));

/// The countries of SWIFT's IBAN registry, by the length of their numbers in characters.
const LENGTHS: &[(usize, &str)] = &[
    (15, "NO"),
    (16, "BE"),
    (18, "DK FI FK FO GL NL SD"),
    (19, "MK SI"),
    (20, "AT BA EE KZ LT LU MN XK"),
    (21, "CH HR LI LV"),
    (22, "BG BH CR DE GB GE IE ME RS VA"),
    (23, "AE GI IL IQ OM SO TL"),
    (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
    (25, "LY PT ST"),
    (26, "IS TR"),
    (27, "BI DJ FR GR IT MC MR SM"),
    (28, "AL AZ BY CY DO GT HN HU LB NI PL SV"),
    (29, "BR EG PS QA UA"),
    (30, "JO KW MU YE"),
    (31, "MT SC"),
    (32, "LC"),
    (33, "RU"),
];

/// Returns the places of numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(beginning) = BEGINNINGS.find_at(text, from) {
        let iban = iban_at(text, beginning.start());
        from = iban.as_ref().map_or(beginning.start() + 1, |place| place.end);
        found.extend(iban);
    }
    found
}

/// Returns the place of the number that begins here.
fn iban_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let country = rest.get(..2)?.to_ascii_uppercase();
    let is_of = |(_, countries): &&(usize, &str)| countries.split(' ').any(|code| code == country);
    let length = LENGTHS.iter().find(is_of)?.0;
    let (mut characters, mut end, mut is_separated) = (Vec::with_capacity(length), start, false);
    for (place, character) in rest.char_indices() {
        if character.is_ascii_alphanumeric() {
            characters.push(character.to_digit(36)?);
            (end, is_separated) = (start + place + 1, false);
            if characters.len() == length {
                break;
            }
        } else if is_separated || !matches!(character, ' ' | '\u{a0}' | '\u{202f}' | '-') {
            break;
        } else {
            is_separated = true;
        }
    }
    let place = start..end;
    (characters.len() == length && is_apart(text, &place) && remainder(&characters) == 1).then_some(place)
}

/// Returns the remainder of a division by 97 of the number with its first four characters at its end, and two digits for each letter.
fn remainder(characters: &[u32]) -> u32 {
    let (beginning, account) = characters.split_at_checked(4).unwrap_or_default();
    account.iter().chain(beginning).fold(0, |rest, value| (rest * if *value > 9 { 100 } else { 10 } + value) % 97)
}
