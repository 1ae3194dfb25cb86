//! The verbs, one a file. Each writes through the [`Ui`](crate::ui::Ui) and returns how it ended.

mod list;
mod new;
mod run;
mod show;
#[cfg(test)]
mod tests;

pub(crate) use list::list;
pub(crate) use new::new;
pub(crate) use run::run;
pub(crate) use show::show;
