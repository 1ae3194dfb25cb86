//! What the models of random stories ask for. Apart from the rest of the support, since not every binary knows proptest.

use positronic_core::record::BatchPolicy;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// A call that a random model makes.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) tool: &'static str,
    /// How long it takes, in milliseconds.
    pub(crate) takes: u64,
    pub(crate) fails: bool,
}

/// Makes calls of these tools, one in four of which fails.
pub(crate) fn asks(tools: Vec<&'static str>) -> impl Strategy<Value = Ask> {
    (proptest::sample::select(tools), 0..4_u64, any::<bool>(), any::<bool>())
        .prop_map(|(tool, takes, one, other)| Ask { tool, takes: takes * 7, fails: one && other })
}

pub(crate) fn policies() -> impl Strategy<Value = BatchPolicy> {
    prop_oneof![Just(BatchPolicy::Gated), Just(BatchPolicy::Strict), Just(BatchPolicy::Eager)]
}
