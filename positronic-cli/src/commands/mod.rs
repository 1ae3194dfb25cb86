//! The commands by what they do, one file or folder each. Each writes through the [`Ui`](crate::app::Ui) and returns how it
//! ended.

#[cfg(test)]
mod budget_tests;
pub(crate) mod change;
#[cfg(test)]
mod chat_budget_tests;
#[cfg(test)]
mod chat_tests;
pub(crate) mod read;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod run_tests;
pub(crate) mod serve;
pub(crate) mod start;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
