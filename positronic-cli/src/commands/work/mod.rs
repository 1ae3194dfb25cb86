//! `positronic work`: continues a run that no worker has, or serves all of them.

mod run;
mod runners;
mod serve;
mod served;

pub(crate) use run::work;
