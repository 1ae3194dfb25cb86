//! `positronic models`: the providers of which a variable is set.

use positronic_providers::{Configured, Provider};
use serde_json::{Map, Value, json};

use super::tiers;
use crate::app::{Failure, Project, SET_MODEL, Ui};
use crate::cli::{EndpointArgs, Exit};
use crate::render::{ProviderRow, provider_table};

/// A provider, or the project's own models.
struct Row {
    provider: String,
    configured: Option<Configured>,
    /// The tiers that it answers, with the names of their models.
    tiers: Vec<(&'static str, String)>,
}

pub(super) fn list(project: Option<&Project>, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    let providers = &ui.settings.providers;
    let row = |configured: Configured| Row {
        provider: configured.provider.to_string(),
        configured: Some(configured),
        tiers: Vec::new(),
    };
    let mut rows: Vec<_> = providers.list().into_iter().map(row).collect();
    let mut problem = None;
    for (tier, model) in tiers(project, &EndpointArgs::default(), ui) {
        let name = match model {
            Ok(Some(model)) => model.name(),
            Ok(None) => continue,
            Err(failure) => {
                problem = problem.or(Some((tier, failure)));
                continue;
            }
        };
        let (provider, model) = name.split_once('/').unwrap_or((&name, ""));
        let known = Provider::ALL.into_iter().find(|known| known.name() == provider);
        if !rows.iter().any(|row| row.provider == provider) {
            let configured = known.map(|known| providers.row(known));
            rows.push(Row { provider: provider.to_owned(), configured, tiers: Vec::new() });
        }
        for row in rows.iter_mut().filter(|row| row.provider == provider) {
            row.tiers.push((tier, model.to_owned()));
        }
    }
    let missing = missing(&rows);
    if json {
        for row in &rows {
            ui.json_line(&document(row))?;
        }
    } else if !rows.is_empty() {
        let rows: Vec<_> = rows.iter().map(in_words).collect();
        ui.print(&provider_table(&rows, ui.columns()))?;
    }
    if rows.is_empty() {
        ui.notice(&format!("no provider is configured: {SET_MODEL}"))?;
    } else if !missing.is_empty() && !json {
        ui.notice(&format!("not configured: {missing}"))?;
    }
    if let Some((tier, failure)) = problem {
        let remedies: String = failure.hints.iter().map(|hint| format!("; {hint}")).collect();
        ui.notice(&format!("the {tier} tier has no model: {failure}{remedies}"))?;
    }
    Ok(Exit::Done)
}

/// Lists the providers that a key would configure, each with its variable.
fn missing(rows: &[Row]) -> String {
    let is_listed = |provider: &Provider| rows.iter().any(|row| row.provider == provider.name());
    let others = Provider::ALL.into_iter().filter(|provider| !is_listed(provider));
    let keys = others.filter_map(|provider| Some((provider, provider.key_variables().first()?)));
    keys.map(|(provider, variable)| format!("{provider} ({variable})")).collect::<Vec<_>>().join(", ")
}

fn in_words(row: &Row) -> ProviderRow {
    let tiers: Vec<_> = row.tiers.iter().map(|(tier, model)| format!("{tier}: {model}")).collect();
    let Row { provider, configured, .. } = row;
    let key = match configured {
        None => "the project's own",
        Some(Configured { provider: Provider::Ollama, .. }) => "not needed",
        Some(configured) => configured.key_variable.unwrap_or("not set"),
    };
    let configured = configured.as_ref();
    ProviderRow {
        provider: provider.clone(),
        key: key.to_owned(),
        default_model: configured.and_then(|it| it.default_model.clone()).unwrap_or_default(),
        base_url: configured.map(|it| it.base_url.clone()).unwrap_or_default(),
        tiers: tiers.join(", "),
    }
}

fn document(row: &Row) -> Value {
    let tiers: Map<String, Value> =
        row.tiers.iter().map(|(tier, model)| ((*tier).to_owned(), model.as_str().into())).collect();
    let configured = row.configured.as_ref();
    json!({
        "provider": row.provider,
        "key_variable": configured.and_then(|it| it.key_variable),
        "base_url": configured.map(|it| &it.base_url),
        "url_variable": configured.and_then(|it| it.url_variable),
        "default_model": configured.and_then(|it| it.default_model.as_ref()),
        "tiers": tiers,
    })
}
