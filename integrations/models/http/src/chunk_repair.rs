//! An assembler that repairs what another one cannot read.
//!
//! A chunk is fed as it came. Only where it is not valid JSON, or has a number that a value would round, is it repaired and fed
//! again, and the marks of the repair are removed from the pieces and the answer.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{ModelError, ModelErrorKind, ModelResponse, Part, ResponseMetadata, check_numbers};
use serde_json::Value;

use super::assemble::{Assemble, Progress};
use super::json_repair::{half, join_halves, repaired, replace_lone_escapes, restore_literals};

/// An assembler with its repairs.
#[derive(Debug)]
pub(super) struct Repaired<A> {
    inner: A,
    is_repaired: bool,
    /// The first halves of surrogate pairs at the ends of pieces, by the part that they belong to.
    halves: BTreeMap<u32, char>,
}

impl<A: Assemble> Repaired<A> {
    pub(super) const fn new(inner: A) -> Self {
        Self { inner, is_repaired: false, halves: BTreeMap::new() }
    }

    fn read(
        &mut self,
        text: &str,
        read: impl Fn(&mut A, &str) -> Result<Vec<Piece>, ModelError>,
    ) -> Result<Vec<Piece>, ModelError> {
        let generation = self.inner.generation();
        let is_exact = check_numbers(text).is_ok();
        let mut fed = if is_exact { read(&mut self.inner, text) } else { Ok(Vec::new()) };
        let is_malformed = matches!(&fed, Err(error) if error.kind == ModelErrorKind::Malformed);
        if !is_exact || is_malformed {
            if let Some(repaired) = repaired(text) {
                self.is_repaired = true;
                fed = read(&mut self.inner, &repaired);
            } else if !is_exact {
                fed = read(&mut self.inner, text);
            }
        }
        if self.inner.generation() != generation {
            self.halves.clear();
        }
        fed.map(|pieces| self.without_marks(pieces))
    }

    /// Removes the marks of repairs from pieces. A half waits for the next piece of its part.
    fn without_marks(&mut self, mut pieces: Vec<Piece>) -> Vec<Piece> {
        if !self.is_repaired {
            return pieces;
        }
        for piece in &mut pieces {
            if let Some(half) = self.halves.remove(&piece.part) {
                piece.text.insert(0, half);
            }
            if let Some(last) = piece.text.chars().next_back().filter(|last| half(*last).is_some_and(is_first)) {
                piece.text.pop();
                self.halves.insert(piece.part, last);
            }
            restore_literals(&mut piece.text);
            join_halves(&mut piece.text);
        }
        pieces
    }
}

const fn is_first(half: u16) -> bool {
    half < 0xDC00
}

impl<A: Assemble> Assemble for Repaired<A> {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        self.read(chunk, A::feed)
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        self.read(answer, A::feed_complete)
    }

    fn done(&mut self) {
        self.inner.done();
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn generation(&self) -> u32 {
        self.inner.generation()
    }

    fn metadata(&self) -> &ResponseMetadata {
        self.inner.metadata()
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        let mut response = self.inner.finish()?;
        if self.is_repaired {
            response.parts.iter_mut().for_each(mend_part);
        }
        for call in &mut response.calls {
            if self.is_repaired {
                restore_literals(&mut call.arguments);
                join_halves(&mut call.arguments);
                call.data.iter_mut().for_each(mend_value);
            }
            replace_lone_escapes(&mut call.arguments);
        }
        Ok(response)
    }
}

fn mend_part(part: &mut Part) {
    match part {
        Part::Text { text } | Part::Refusal { text } => join_halves(text),
        Part::Reasoning { text, data } => {
            join_halves(text);
            data.iter_mut().for_each(mend_value);
        }
        Part::Opaque { data } => mend_value(data),
        Part::Citations { citations, data } => {
            for citation in citations {
                let texts = [&mut citation.url, &mut citation.title, &mut citation.quote, &mut citation.supports];
                texts.into_iter().flatten().for_each(join_halves);
            }
            data.iter_mut().for_each(mend_value);
        }
        Part::ProviderTool(used) => {
            [&mut used.input, &mut used.output, &mut used.error].into_iter().flatten().for_each(join_halves);
            used.data.iter_mut().for_each(mend_value);
        }
        Part::File { data, .. } => data.iter_mut().for_each(mend_value),
        _ => {}
    }
}

fn mend_value(value: &mut Value) {
    match value {
        Value::String(text) => join_halves(text),
        Value::Array(items) => items.iter_mut().for_each(mend_value),
        Value::Object(fields) => fields.values_mut().for_each(mend_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
