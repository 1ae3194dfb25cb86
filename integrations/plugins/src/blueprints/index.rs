//! Ranked full-text search over documents in memory.

use std::collections::HashMap;

use positronic_core::Result;

use super::{Document, DocumentSource};

/// Term frequency saturation, with the usual value of BM25.
const SATURATION: f64 = 1.2;

/// Length normalisation, with the usual value of BM25.
const LENGTH: f64 = 0.75;

/// Documents with less than this part of the best score only have common words, and are dropped.
const FLOOR: f64 = 0.2;

/// The weight of a word in the name or a tag relative to one in the text.
const HEADING: f64 = 3.0;

/// Documents in memory, ranked by [BM25](https://en.wikipedia.org/wiki/Okapi_BM25) over their names, tags and texts.
///
/// Words are runs of letters and digits, ignoring case; there is no stemming. A document matches if it has some
/// of the words, and not only common ones; ties keep the original order.
#[derive(Debug, Clone, Default)]
pub struct MemoryIndex {
    entries: Vec<IndexedDocument>,
    /// The number of documents with a word.
    spread: HashMap<String, f64>,
    /// The average length of a document.
    average: f64,
}

#[derive(Debug, Clone)]
struct IndexedDocument {
    document: Document,
    counts: HashMap<String, f64>,
    length: f64,
}

impl MemoryIndex {
    /// Indexes documents.
    #[must_use]
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let entries: Vec<_> = documents.into_iter().map(IndexedDocument::new).collect();
        let mut spread: HashMap<String, f64> = HashMap::new();
        for word in entries.iter().flat_map(|entry| entry.counts.keys()) {
            *spread.entry(word.clone()).or_default() += 1.0;
        }
        let total: f64 = entries.iter().map(|entry| entry.length).sum();
        Self { average: total / number(entries.len()).max(1.0), entries, spread }
    }

    /// Finds the documents that match a query, best match first.
    #[must_use]
    pub fn find(&self, query: &str, limit: usize) -> Vec<Document> {
        let mut asked: Vec<_> = words(query).collect();
        asked.sort_unstable();
        asked.dedup();
        let scored = self.entries.iter().map(|entry| (self.score(entry, &asked), entry));
        let mut found: Vec<_> = scored.filter(|(score, _)| *score > 0.0).collect();
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let floor = found.first().map_or(0.0, |(best, _)| best * FLOOR);
        found
            .into_iter()
            .filter(|(score, _)| *score >= floor)
            .take(limit)
            .map(|(_, entry)| entry.document.clone())
            .collect()
    }

    fn score(&self, entry: &IndexedDocument, asked: &[String]) -> f64 {
        let documents = number(self.entries.len());
        let held_back = SATURATION * (1.0 - LENGTH + LENGTH * entry.length / self.average.max(1.0));
        let of_word = |word: &String| {
            let (count, spread) = (entry.counts.get(word)?, self.spread.get(word)?);
            let rarity = (1.0 + (documents - spread + 0.5) / (spread + 0.5)).ln();
            Some(rarity * count * (SATURATION + 1.0) / (count + held_back))
        };
        asked.iter().filter_map(of_word).sum()
    }
}

impl IndexedDocument {
    fn new(document: Document) -> Self {
        let mut counts: HashMap<String, f64> = HashMap::new();
        let heading = document.tags.iter().flat_map(|tag| words(tag)).chain(words(&document.name));
        for (word, weight) in heading.map(|word| (word, HEADING)).chain(words(&document.text).map(|word| (word, 1.0))) {
            *counts.entry(word).or_default() += weight;
        }
        let length = counts.values().sum();
        Self { document, counts, length }
    }
}

impl DocumentSource for MemoryIndex {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>> {
        Ok(self.find(query, limit))
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(index: &MemoryIndex, query: &str) -> Vec<String> {
        index.find(query, 9).into_iter().map(|document| document.name).collect()
    }

    #[test]
    fn rare_words_and_names_weigh_more_and_other_documents_are_not_found() {
        let index = MemoryIndex::new([
            Document::new("Shipping", "The parcel leaves on the day of the order. A parcel can be traced."),
            Document::new("Refunds", "The money for an order comes back when the parcel is here."),
            Document::new("Coffee", "How the coffee is roasted.").tags(["beans", "Röstung"]),
        ]);

        assert_eq!(names(&index, "Trace the PARCEL!"), ["Shipping", "Refunds"]);
        assert_eq!(names(&index, "refunds of an order"), ["Refunds", "Shipping"]);
        assert_eq!(names(&index, "röstung"), ["Coffee"]);
        assert_eq!(names(&index, "weather?"), Vec::<String>::new());
        assert_eq!(names(&MemoryIndex::default(), "parcel"), Vec::<String>::new());
        assert_eq!(index.find("the parcel", 1).len(), 1);
    }

    #[test]
    fn ties_keep_the_order_and_shorter_documents_come_first() {
        let same = |name: &str| Document::new(name, "tea");
        let index =
            MemoryIndex::new([same("b"), same("a"), Document::new("c", "tea and much that is about other things")]);
        assert_eq!(names(&index, "tea"), ["b", "a", "c"]);
    }
}
