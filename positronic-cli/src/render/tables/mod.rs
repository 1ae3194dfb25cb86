//! Tables: the lists of runs, conversations, costs and models, and the layout that they share.

pub(in crate::render) mod conversation_table;
pub(in crate::render) mod cost_table;
pub(in crate::render) mod model_table;
pub(in crate::render) mod run_table;
pub(in crate::render) mod short_ids;
pub(in crate::render) mod table;
