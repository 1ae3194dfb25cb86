//! Tokenisation and ranking of facts, common to all stores of the library.

use std::collections::HashMap;

use super::Fact;

/// Term frequency saturation, with the usual value of BM25.
const SATURATION: f64 = 1.2;

/// Facts with less than this part of the best score only have common words, and are dropped.
const FLOOR: f64 = 0.2;

/// The maximum number of different query words.
const ASKED: usize = 100;

/// Returns the distinct words of a text, in order: runs of letters and digits, in lower case, with English plurals as singulars.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in split(text) {
        if words.len() < ASKED && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns all words of a text, for an index that is queried with [`words`].
pub(super) fn split(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(|word| singular(word.to_lowercase()))
}

/// Strips the plural of an English word; for other languages, the effect on query and fact is the same.
fn singular(mut word: String) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() <= 3 || !word.is_ascii() || !word.ends_with('s') || ends(&["ss", "us", "is"]) {
        return word;
    }
    if word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else {
        word.truncate(word.len() - 1);
    }
    word
}

/// Ranks facts by [BM25](https://en.wikipedia.org/wiki/Okapi_BM25) without length normalisation, since all are short; in
/// a tie the newer one comes first. `facts` are in the order of storing, and contain at least all of
/// the owner's `total` facts with a query word.
pub(super) fn best(facts: Vec<Fact>, total: usize, asked: &[String], limit: usize) -> Vec<Fact> {
    let counted: Vec<(HashMap<String, f64>, Fact)> = facts.into_iter().map(|fact| (counts(&fact.text), fact)).collect();
    let rarity = |word: &String| {
        let spread = number(counted.iter().filter(|(counts, _)| counts.contains_key(word)).count());
        (1.0 + (number(total) - spread + 0.5).max(0.0) / (spread + 0.5)).ln()
    };
    let asked: Vec<(&String, f64)> = asked.iter().map(|word| (word, rarity(word))).collect();
    let score = |counts: &HashMap<String, f64>| {
        let of_word = |(word, rarity): &(&String, f64)| {
            counts.get(*word).map(|count| rarity * count * (SATURATION + 1.0) / (count + SATURATION))
        };
        asked.iter().filter_map(of_word).sum::<f64>()
    };
    let mut found: Vec<(f64, Fact)> = counted.into_iter().rev().map(|(counts, fact)| (score(&counts), fact)).collect();
    found.retain(|(score, _)| *score > 0.0);
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let floor = found.first().map_or(0.0, |(best, _)| best * FLOOR);
    found.into_iter().filter(|(score, _)| *score >= floor).take(limit).map(|(_, fact)| fact).collect()
}

fn counts(text: &str) -> HashMap<String, f64> {
    let mut counts = HashMap::new();
    for word in split(text) {
        *counts.entry(word).or_default() += 1.0;
    }
    counts
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_without_their_plural() {
        assert_eq!(words("Nuts, NUTS; and \"berries\" (2×)!"), ["nut", "and", "berry", "2"]);
        assert_eq!(words("glass bus this gas Üs"), ["glass", "bus", "this", "gas", "üs"]);
        assert_eq!(words(" \u{0}*:^-\" "), Vec::<String>::new());
        assert_eq!(words(&"a b ".repeat(5000)), ["a", "b"]);
    }
}
