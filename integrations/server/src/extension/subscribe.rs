//! Subscriptions to one run, for protocols whose clients name an address. The outgoing webhooks deliver them: unsigned, sent at least
//! once, tried again, and only to the addresses that the options allow.

use std::time::Duration;

use positronic_core::record::{RunId, RunSummary};
use positronic_core::store::{StoreError, content_hash};
use url::Url;

use crate::auth::Scope;
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;
use crate::time::earlier;
use crate::webhooks::outgoing::RunSubscription;
use crate::webhooks::{Endpoint, Records, StoredSubscription, parse_url};

/// How many subscriptions a run has at most.
const MAX_OF_RUN: usize = 8;
/// How many subscriptions the runs of a user have at most.
const MAX_OF_USER: usize = 100;
/// How many subscriptions to runs a store has at most. Those of runs that have ended are removed once they are delivered.
const MAX: usize = 1000;
/// The longest id of a subscription, in bytes; a run's id may be one.
const MAX_ID: usize = 255;
/// The longest URL, in bytes.
const MAX_URL: usize = 2048;
/// How old the timestamp of an event may be when it is appended.
const CLOCK_SKEW: Duration = Duration::from_secs(5);

impl RequestContext {
    /// Creates or replaces a subscription to a run that the caller sees: `row` is from [`RequestContext::run_row`]. The end of the run
    /// or its open question is sent as well, if it has a body; so nothing is missed between the start of a run and the subscription. One that a person has disabled stays disabled.
    ///
    /// # Errors
    ///
    /// [`ProblemType::ScopeMissing`] without the scope `run`, [`ProblemType::InvalidBody`] if the URL is not allowed, or the id or the
    /// URL is too long, [`ProblemType::Unprocessable`] if there are too many.
    pub async fn subscribe(&self, row: &RunSummary, url: &str, new: RunSubscription) -> Result<(), Problem> {
        self.require(Scope::Run)?;
        let url = self.allowed_url(url)?;
        if !(1..=MAX_ID).contains(&new.id.len()) {
            let detail = format!("the id of a subscription has 1 to {MAX_ID} bytes");
            return Err(Problem::new(ProblemType::InvalidBody).detail(detail));
        }
        let (records, id) = (Records::new(self.app.client.clone()), key(&row.run, &new.id)?);
        let known = records.endpoints().await?;
        has_room(&known, Some((&row.run, &id)), row.user.as_deref())?;
        let now = self.app.now();
        let endpoint = Endpoint {
            url: url.to_string(),
            description: Some(format!("a subscription to the run {}", row.run)),
            events: new.bodies.keys().copied().collect(),
            brain: None,
            secrets: Vec::new(),
            created: now,
            since: earlier(now, CLOCK_SKEW),
            disabled: None,
            subscription: Some(StoredSubscription { run: row.run.clone(), user: row.user.clone(), own: new }),
        };
        // Another address has got none of what was delivered to the former one.
        let before = known.iter().find(|(known, _)| *known == id).map(|(_, endpoint)| endpoint);
        let headers = |endpoint: &Endpoint| endpoint.subscription.as_ref().map(|known| known.own.headers.clone());
        if before.is_some_and(|before| before.url != endpoint.url || headers(before) != headers(&endpoint)) {
            records.remove_deliveries(&id).await?;
        }
        let put = |before: Option<Endpoint>| {
            let disabled = before.and_then(|before| before.disabled).filter(|disabled| disabled.by_person);
            Ok::<_, StoreError>(Some(Endpoint { disabled, ..endpoint.clone() }))
        };
        let stored = records.put_endpoint(&id, put).await?.ok_or(ProblemType::Conflict)?;
        Ok(records.catch_up(&id, &stored, now).await?)
    }

    /// Checks that the caller may subscribe an address, before it sends a message: to a run, or to a new one.
    ///
    /// # Errors
    ///
    /// [`ProblemType::ScopeMissing`] without the scope `run`, [`ProblemType::InvalidBody`] if the URL is not allowed or too long,
    /// [`ProblemType::Unprocessable`] if there are too many.
    pub async fn allows_subscription(&self, row: Option<&RunSummary>, url: &str, id: &str) -> Result<(), Problem> {
        self.require(Scope::Run)?;
        self.allowed_url(url)?;
        let known = Records::new(self.app.client.clone()).endpoints().await?;
        match row {
            Some(row) => has_room(&known, Some((&row.run, &key(&row.run, id)?)), row.user.as_deref()),
            None => has_room(&known, None, self.caller()?.user_id()),
        }
    }

    fn allowed_url(&self, url: &str) -> Result<Url, Problem> {
        if url.len() > MAX_URL {
            let detail = format!("the URL of a subscription has at most {MAX_URL} bytes");
            return Err(Problem::new(ProblemType::InvalidBody).detail(detail));
        }
        parse_url(url, self.app.settings.webhook_addresses)
            .map_err(|error| Problem::new(ProblemType::InvalidBody).detail(format!("the URL is not allowed: {error}")))
    }

    /// Lists the subscriptions to a run with their URLs, in the order of their ids.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn subscriptions(&self, row: &RunSummary) -> Result<Vec<(String, RunSubscription)>, Problem> {
        let endpoints = Records::new(self.app.client.clone()).endpoints().await?;
        let of_run = endpoints.into_iter().filter_map(|(_, endpoint)| Some((endpoint.url, endpoint.subscription?)));
        let mut of_run: Vec<_> = of_run.filter(|(_, known)| known.run == row.run).collect();
        of_run.sort_by(|(_, one), (_, other)| one.own.id.cmp(&other.own.id));
        Ok(of_run.into_iter().map(|(url, known)| (url, known.own)).collect())
    }

    /// Removes a subscription to a run, and returns whether it existed.
    ///
    /// # Errors
    ///
    /// [`ProblemType::ScopeMissing`] without the scope `run`.
    pub async fn unsubscribe(&self, row: &RunSummary, id: &str) -> Result<bool, Problem> {
        self.require(Scope::Run)?;
        let key = key(&row.run, id)?;
        Ok(Records::new(self.app.client.clone()).remove_endpoint(&key).await?)
    }
}

/// Checks that there is room for a subscription: to a run, under its key, or to the run that a user is about to start.
fn has_room(known: &[(String, Endpoint)], run: Option<(&RunId, &str)>, user: Option<&str>) -> Result<(), Problem> {
    let others: Vec<_> = known
        .iter()
        .filter(|(id, _)| run.is_none_or(|(_, key)| id != key))
        .filter_map(|(_, endpoint)| endpoint.subscription.as_ref())
        .collect();
    let of_run = others.iter().filter(|known| run.is_some_and(|(run, _)| known.run == *run)).count();
    let of_user = others.iter().filter(|known| user.is_some() && known.user.as_deref() == user).count();
    if of_run < MAX_OF_RUN && of_user < MAX_OF_USER && others.len() < MAX {
        return Ok(());
    }
    let detail = format!(
        "a run has at most {MAX_OF_RUN} subscriptions, the runs of a user {MAX_OF_USER}, and the server {MAX}; remove one first"
    );
    Err(Problem::new(ProblemType::Unprocessable).detail(detail))
}

/// Returns the key of a subscription among the endpoints of outgoing webhooks.
fn key(run: &RunId, id: &str) -> Result<String, Problem> {
    let hash = content_hash(format!("{run}\n{id}").as_bytes())?;
    Ok(format!("run-{}", hash.get(..32).unwrap_or(&hash)))
}
