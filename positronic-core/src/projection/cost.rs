//! Usage and cost of a run, from its log and a price table.

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

use crate::prices::PriceTable;
use crate::record::{CODE, Charge, Event, Money, Path, Seq, Usage};

/// The usage and cost of a run.
///
/// | event | path | usage that it carries | counted here |
/// |---|---|---|---|
/// | `LOOP_MODEL_RESULT` | an iteration; a question of a step or a plugin | `metadata.usage`: the tokens of this answer; `metadata.cost`: what they cost when it came | yes |
/// | `LOOP_ANSWER_REFUSED` | an iteration | as `LOOP_MODEL_RESULT` | yes |
/// | `LOOP_ANSWER_BROKEN` | an iteration, a question | what the provider had reported when the answer broke | yes, and nothing else is |
/// | `LOOP_COMPLETE` | a loop | `usage`: the sum of the loop and all below it | no, it is a sum |
/// | `LOOP_LIMIT`, `BUDGET_REQUESTED` | a loop, a brain | `used`: iterations, tokens, money or time, against the limit | no, it is a sum |
/// | `LOOP_MODEL_RETRY` | an iteration, a question | none | no |
/// | `metadata.via` of an answer | an iteration, a question | models that failed before it: none; an answer from a development cache: what it had used, which costs nothing again | no |
///
/// Amounts follow from the given table; what limits of money have counted is [`Costs::counted`].
///
/// | number | where it is found |
/// |---|---|
/// | an answer of a model | [`Costs::calls`](Costs), by event number |
/// | an iteration, or a question of a step | [`Costs::iterations`], by path |
/// | a prompt: a loop without what is below it | [`Costs::prompt`], by the loop's path; its tokens also in [`Prompt::usage`] |
/// | a loop or a nested brain with all below it | [`Costs::within`], by its path |
/// | a run | [`Costs::total`]; its tokens also in [`RunSummary::usage`] |
/// | a conversation | the sum of its runs, of [`Conversations::runs`] |
/// | what limits of money have counted | [`Costs::counted`]; as of now in the frames of [`RunState`] |
///
/// [`Prompt::usage`]: crate::record::Prompt::usage
/// [`RunSummary::usage`]: crate::record::RunSummary::usage
/// [`Conversations::runs`]: ../runner/struct.Conversations.html#method.runs
/// [`RunState`]: crate::machine::RunState
///
/// A provider's bill can be higher, by answers that broke or were cancelled before their usage was reported, and by requests that were sent again after a crash. A fork's
/// log begins with a copy of another run's, whose answers are counted in both. Answers of a cassette are priced like
/// requested ones if they carry a model's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Costs {
    /// The currency of all amounts.
    pub currency: String,
    /// The day of the prices.
    pub as_of: String,
    /// The currency of the run's limits of money, if the log has it: that of its first cost, or of its
    /// conversation's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_in: Option<String>,
    /// The answers of models, in order of arrival.
    pub calls: Vec<CallCost>,
}

/// The usage and cost of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallCost {
    /// The number of its event.
    pub seq: Seq,
    /// The iteration or the question.
    pub path: Path,
    /// The model, as `provider/model`; the provider alone without a named model.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// The cost by the table.
    pub cost: Cost,
    /// The recorded cost at the time of the answer, which limits of money have counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Charge>,
}

impl CallCost {
    /// Computes the cost of an answer; `None` if the event is not an answer, or the answer is scripted in code.
    #[must_use]
    pub fn of(event: &Event, prices: &PriceTable) -> Option<Self> {
        let metadata = event.kind.answer_metadata()?;
        if metadata.provider == CODE {
            return None;
        }
        Some(Self {
            seq: event.seq,
            path: event.path.clone(),
            model: match metadata.answered_by.as_ref().unwrap_or(&metadata.model).as_str() {
                // Hand-written metadata names no model.
                "" => metadata.provider.clone(),
                model => format!("{}/{model}", metadata.provider),
            },
            usage: metadata.usage,
            cost: prices.charge(metadata).map_or(Cost::Unknown, |charge| Cost::Known(charge.amount)),
            counted: metadata.cost.as_deref().cloned(),
        })
    }
}

/// The cost of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// An amount.
    Known(Money),
    /// Unknown: the model has no price, or the answer has no token counts. It never counts as zero.
    Unknown,
}

/// The recorded cost of answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counted {
    /// The currency.
    pub currency: String,
    /// The day of the last prices; `None` if the providers reported the costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// The sum.
    #[serde(flatten)]
    pub spent: Spent,
}

/// A sum over answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// The number of answers.
    pub calls: u64,
    /// Their known tokens.
    pub usage: Usage,
    /// The sum of the known costs.
    pub known: Money,
    /// The number of answers with an unknown cost.
    pub unpriced: u64,
}

impl Spent {
    /// Returns the total if every cost is known.
    #[must_use]
    pub fn total(&self) -> Cost {
        if self.unpriced == 0 { Cost::Known(self.known) } else { Cost::Unknown }
    }
}

impl<'a> FromIterator<&'a CallCost> for Spent {
    fn from_iter<I: IntoIterator<Item = &'a CallCost>>(calls: I) -> Self {
        let mut spent = Self::default();
        calls.into_iter().for_each(|call| spent += call);
        spent
    }
}

impl std::ops::AddAssign<&CallCost> for Spent {
    fn add_assign(&mut self, call: &CallCost) {
        self.calls += 1;
        self.usage += call.usage;
        match call.cost {
            Cost::Known(cost) => self.known += cost,
            Cost::Unknown => self.unpriced += 1,
        }
    }
}

impl Costs {
    /// Reads a log with a price table.
    #[must_use]
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>, prices: &PriceTable) -> Self {
        let (mut limits_in, mut calls) = (None, Vec::new());
        for event in events {
            limits_in = limits_in.or_else(|| event.currency().map(str::to_owned));
            calls.extend(CallCost::of(event, prices));
        }
        Self { currency: prices.currency.clone(), as_of: prices.as_of.clone(), limits_in, calls }
    }

    /// Sums up the run.
    #[must_use]
    pub fn total(&self) -> Spent {
        self.within(&Path::root())
    }

    /// Sums up a loop or a step with the brains that it called, or the brain of a stage or a call.
    #[must_use]
    pub fn within(&self, path: &Path) -> Spent {
        self.sum(|call| call.path.is_within(path))
    }

    /// Sums up a loop's own iterations or a step's own questions, without the brains that it called.
    #[must_use]
    pub fn prompt(&self, path: &Path) -> Spent {
        self.sum(|call| call.path.parent().as_ref() == Some(path))
    }

    /// Sums up an iteration or a question of a step, including rejected answers.
    #[must_use]
    pub fn spent_at(&self, path: &Path) -> Spent {
        self.sum(|call| call.path == *path)
    }

    /// Sums up each iteration and each question of a step, in order of the first answer.
    #[must_use]
    pub fn iterations(&self) -> IndexMap<Path, Spent> {
        let mut iterations: IndexMap<Path, Spent> = IndexMap::new();
        for call in &self.calls {
            *iterations.entry(call.path.clone()).or_default() += call;
        }
        iterations
    }

    /// Lists the models whose answers have an unknown cost, in order of the first answer.
    #[must_use]
    pub fn unpriced(&self) -> Vec<&str> {
        let unpriced = self.calls.iter().filter(|call| call.cost == Cost::Unknown);
        unpriced.map(|call| call.model.as_str()).collect::<IndexSet<_>>().into_iter().collect()
    }

    /// Sums up the recorded costs, which limits of money have counted. `None` if no answer has a cost. A cost in
    /// another currency counts as unknown.
    #[must_use]
    pub fn counted(&self) -> Option<Counted> {
        let first = &self.calls.iter().find_map(|call| call.counted.as_ref())?.currency;
        let currency = self.limits_in.as_ref().unwrap_or(first).clone();
        // Zero is zero in every currency.
        let is_counted = |charge: &Charge| charge.currency == currency || charge.amount == Money::default();
        let counts = |call: &CallCost| call.counted.clone().filter(is_counted);
        let as_of = self.calls.iter().filter_map(|call| counts(call)?.as_of).next_back();
        let mut spent = Spent::default();
        for call in &self.calls {
            let charge = counts(call);
            let cost = charge.map_or(Cost::Unknown, |charge| Cost::Known(charge.amount));
            spent += &CallCost { cost, ..call.clone() };
        }
        Some(Counted { currency, as_of, spent })
    }

    fn sum(&self, counts: impl Fn(&CallCost) -> bool) -> Spent {
        self.calls.iter().filter(|call| counts(call)).collect()
    }
}
