//! Figures of the runs of a store in memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::contents::Contents;
use crate::record::Status;
use crate::store::figures::{
    EndedFold, EndedRun, FigureFilter, Figures, ModelFold, ModelShare, OpenRuns, WaitingItems,
};

/// Adds up the figures of runs.
pub(super) fn figures(filter: &FigureFilter, contents: &Contents) -> Figures {
    let mut figures = Figures::new(filter);
    let (mut ended, mut models) = (EndedFold::default(), ModelFold::default());
    let mut open: HashMap<_, OpenRuns> = HashMap::new();
    let mut waiting: HashMap<_, WaitingItems> = HashMap::new();
    for stored in contents.runs.values().filter(|stored| filter.counts(&stored.summary)) {
        let row = &stored.summary;
        if let Some(bucket) = filter.bucket_of(row.started) {
            figures.add_started(bucket, 1);
        }
        for (at, _) in stored.pending.iter().filter(|(at, item)| item.kind.is_for_person() && *at < filter.until()) {
            let bucket = filter.bucket_of(*at);
            let group = waiting.entry(bucket).or_insert(WaitingItems { bucket, items: 0, oldest: *at });
            group.items += 1;
            group.oldest = group.oldest.min(*at);
        }
        if let Some(run) = EndedRun::of(row) {
            let Some(bucket) = filter.bucket_of(run.ended) else { continue };
            let mut counted = run;
            for share in row.models.iter().filter(|used| filter.is_of(used)).map(ModelShare::of) {
                models.add(bucket, run.currency, share);
                if filter.model.is_some() {
                    let ModelShare { usage, cost, is_partial, .. } = share;
                    counted = EndedRun { usage, cost, is_partial, ..run };
                }
            }
            ended.add(bucket, &counted);
            continue;
        }
        let owner = row.claim.as_ref().filter(|claim| !claim.released).map(|claim| Arc::clone(&claim.owner));
        let one = OpenRuns {
            status: row.status,
            brain: Arc::clone(&row.brain),
            owner,
            refused: row.refused.filter(|_| row.status == Status::Running),
            person: stored.waits_for_person(),
            due: row.has_work(filter.now),
            runs: 0,
            oldest: row.at,
        };
        let key = (one.status, Arc::clone(&one.brain), one.owner.clone(), one.refused, one.person, one.due);
        let group = open.entry(key).or_insert(one);
        group.runs += 1;
        group.oldest = group.oldest.min(row.at);
    }
    (figures.ended, figures.models) = (ended.groups(), models.groups());
    figures.open = open.into_values().collect();
    figures.waiting = waiting.into_values().collect();
    figures
}
