//! Random calls for the models of random stories. Separate from the other support, since not every binary uses
//! proptest.

use positronic_core::record::BatchPolicy;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// A call that a random model makes.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) tool: &'static str,
    /// Duration in milliseconds.
    pub(crate) takes: u64,
    pub(crate) fails: bool,
}

/// Generates the calls of a story's two loops: the batches of the outer one, of at most `n` calls, which may end it and
/// call the inner one, and the single batch of the inner one. One in four calls fails.
pub(crate) fn batches(
    tools: &'static [&'static str],
    most: usize,
) -> (impl Strategy<Value = Vec<Vec<Ask>>>, impl Strategy<Value = Vec<Ask>>) {
    let outer = [tools, &["inner", "finish"]].concat();
    (vec(vec(ask(outer), 1..=most), 1..4), vec(ask(tools.to_vec()), 0..4))
}

fn ask(tools: Vec<&'static str>) -> impl Strategy<Value = Ask> {
    (proptest::sample::select(tools), 0..4_u64, any::<bool>(), any::<bool>())
        .prop_map(|(tool, takes, one, other)| Ask { tool, takes: takes * 7, fails: one && other })
}

pub(crate) fn policies() -> impl Strategy<Value = BatchPolicy> {
    prop_oneof![Just(BatchPolicy::Gated), Just(BatchPolicy::Strict), Just(BatchPolicy::Eager)]
}
