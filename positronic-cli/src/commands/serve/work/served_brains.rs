//! The brains and versions that a worker serves: `work --brain TITLE` or `--brain TITLE@VERSION`.

use positronic_core::record::ClaimRefusal;
use positronic_core::runner::NoRunner;

use crate::app::{Failure, Project};

/// The brains that a worker serves; none stands for all.
#[derive(Debug, Clone, Default)]
pub(super) struct Served(Vec<(String, Option<u32>)>);

impl Served {
    /// Reads the values of `--brain`. Without a version, every version is served that the code can continue.
    pub(super) fn read(written: &[String], project: &Project) -> Result<Self, Failure> {
        let read = |written: &String| {
            let (name, version) = match written.rsplit_once('@') {
                Some((name, version)) => {
                    let number = version.parse().map_err(|_| {
                        let what = format!("`--brain {written}`: `{version}` is not the number of a version");
                        Failure::usage(what).hint("write TITLE or TITLE@VERSION, such as `Refund@2`")
                    })?;
                    (name, Some(number))
                }
                None => (written.as_str(), None),
            };
            Ok((project.find(name)?.definition.title.clone(), version))
        };
        written.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Refuses a run or a trigger of a brain that is not served. A trigger starts the version of the code.
    pub(super) fn check(&self, title: &str, version: Option<u32>) -> Result<(), NoRunner> {
        let fits = |(served, only): &(String, Option<u32>)| {
            served == title && only.zip(version).is_none_or(|(only, version)| only == version)
        };
        if self.0.is_empty() || self.0.iter().any(fits) {
            return Ok(());
        }
        let listed: Vec<_> = self.0.iter().map(name).collect();
        let message = format!("the worker serves only {}", listed.join(", "));
        Err(NoRunner { message, refusal: Some(ClaimRefusal::NoBrain) })
    }
}

fn name((title, version): &(String, Option<u32>)) -> String {
    version.map_or_else(|| format!("`{title}`"), |version| format!("`{title}` version {version}"))
}
