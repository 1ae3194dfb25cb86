//! `positronic show`: a brain or a run.

mod brain;
mod run;

pub(crate) use brain::show;
pub(crate) use run::show_run;
