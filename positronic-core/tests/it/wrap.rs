//! Model wrappers: their effect on a request, and its record in the log.

mod deltas;
mod dev_cache;
mod fallback;
mod limits;
mod rests;
mod router;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::prelude::*;
use positronic_core::record::{
    ActionFormat, DeltaKind, EventKind, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ResponseMetadata,
    RoutingStep, Usage,
};
use positronic_core::testing::Story;

/// A named model that streams some words before it fails.
pub(crate) struct Speaker {
    name: String,
    script: ScriptedModel,
    form: ActionFormat,
    babble: Vec<String>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Speaker {
    pub(crate) fn new(name: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(name, ScriptedModel::new(replies))
    }

    pub(crate) fn of(name: &str, script: ScriptedModel) -> Self {
        let babble = ["I ", "was ", name].map(str::to_owned).into();
        Self { name: name.to_owned(), script, form: ActionFormat::default(), babble, asked: Arc::default() }
    }

    /// Streams these words before it fails.
    pub(crate) fn babbling(self, pieces: &[&str]) -> Self {
        Self { babble: pieces.iter().map(|piece| (*piece).to_owned()).collect(), ..self }
    }

    pub(crate) fn deciding(self, form: ActionFormat) -> Self {
        Self { form, ..self }
    }

    /// Echoes its request.
    pub(crate) fn asked(&self) -> Arc<Mutex<Vec<ModelRequest>>> {
        Arc::clone(&self.asked)
    }
}

impl Model for Speaker {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            let mut outcome = self.script.call(request, deltas).await;
            match &mut outcome {
                Ok(response) => {
                    let (provider, model) = self.name.split_once('/').unwrap();
                    (response.metadata.provider, response.metadata.model) = (provider.to_owned(), model.to_owned());
                }
                Err(_) => {
                    for text in &self.babble {
                        let kind = DeltaKind::Text;
                        deltas.piece(Piece { part: 0, kind, call: None, tool: None, text: text.clone() });
                    }
                }
            }
            outcome
        })
    }

    fn action_format(&self) -> ActionFormat {
        self.form
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.script.wire(request)
    }
}

pub(crate) fn fails(kind: ModelErrorKind) -> Reply {
    Reply::error(ModelError::new(kind, "no"))
}

pub(crate) fn fails_for(kind: ModelErrorKind, wait: Duration) -> Reply {
    Reply::error(ModelError { retry_after: Some(wait), ..ModelError::new(kind, "no") })
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::text(text).usage(Usage { input: 100, output: 10, ..Usage::default() })
}

/// A loop with one request.
pub(crate) fn asker() -> Brain<(), ()> {
    brain("Asker").r#loop("Ask", |cx| cx.system("Answer.").input("Why?")).build()
}

/// Returns the metadata of each answer.
pub(crate) fn metadata(story: &Story) -> Vec<ResponseMetadata> {
    let metadata = story.log().iter().filter_map(|event| match &event.kind {
        EventKind::LoopModelResult { metadata, .. } => Some(metadata.clone()),
        _ => None,
    });
    metadata.collect()
}

/// Summarizes the response metadata of each answer.
pub(crate) fn ways(story: &Story) -> Vec<String> {
    metadata(story)
        .iter()
        .map(|metadata| {
            let mut way: Vec<String> = metadata.via.iter().map(hop).collect();
            way.push(format!("{}/{}", metadata.provider, metadata.model));
            way.join(" → ")
        })
        .collect()
}

pub(crate) fn hop(hop: &RoutingStep) -> String {
    match hop {
        RoutingStep::Routed { rule, .. } => format!("rule {rule}"),
        RoutingStep::Failed { model, kind, .. } => format!("{model} {kind:?}"),
        RoutingStep::Resting { model, left, .. } => format!("{model} rests {}", left.as_micros()),
        RoutingStep::Waited { reason, time } => format!("{reason:?} {}", time.as_micros()),
        RoutingStep::Cached { usage, .. } => format!("cached {}", usage.total()),
        RoutingStep::CacheFailed { .. } => "cache failed".to_owned(),
        other => panic!("{other:?}"),
    }
}
