//! Deltas through wrappers: watchers get all of them, in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::wrap::{Concurrency, DevCache, Fallback, RateLimit, RateLimits, Router};
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::record::{
    DeltaKind, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Part, Path, Transcript,
};
use proptest::prelude::*;

/// A model that streams its deltas, and then answers with them or fails.
#[derive(Clone, Debug)]
struct Streams {
    pieces: Vec<String>,
    fails: bool,
}

impl Model for Streams {
    fn name(&self) -> String {
        "test/streams".to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            for text in &self.pieces {
                let piece = Piece { part: 0, kind: DeltaKind::Text, call: None, tool: None, text: text.clone() };
                deltas.piece(piece);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if self.fails {
                return Err(ModelError::new(ModelErrorKind::Truncated, "cut"));
            }
            let text = self.pieces.concat();
            Ok(ModelResponse { parts: vec![Part::Text { text }], ..ModelResponse::default() })
        })
    }

    fn wire(&self, _: &ModelRequest) -> String {
        "{}".to_owned()
    }
}

/// Renders what a watcher sees, without discarded deltas.
#[derive(Default)]
struct Watcher(Mutex<Vec<String>>);

impl DeltaSink for Watcher {
    fn piece(&self, piece: Piece) {
        self.0.lock().unwrap().push(piece.text);
    }

    fn restart(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// The wrappers around the models, innermost first.
#[derive(Debug, Clone, Copy)]
enum Around {
    Concurrency,
    RateLimit,
    Router,
    Fallback,
    DevCache,
}

fn around(model: Arc<dyn Model>, what: Around, folder: &std::path::Path) -> Arc<dyn Model> {
    match what {
        Around::Concurrency => Arc::new(Concurrency::new(model, 1)),
        Around::RateLimit => Arc::new(RateLimit::new(model, RateLimits::builder().requests(9).tokens(99).build())),
        Around::Router => Arc::new(Router::new(Arc::clone(&model)).when("all", model, |_| true)),
        Around::Fallback => Arc::new(Fallback::new(model)),
        Around::DevCache => Arc::new(DevCache::new(model, folder).unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn deltas_are_complete_unique_and_ordered(
        models in prop::collection::vec(
            (prop::collection::vec("[a-z ]{1,4}", 0..6), any::<bool>()).prop_map(|(pieces, fails)| Streams { pieces, fails }),
            1..5,
        ),
        wraps in prop::collection::vec(
            prop::sample::select(vec![Around::Concurrency, Around::RateLimit, Around::Router, Around::Fallback, Around::DevCache]),
            0..5,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (first, others) = models.split_first().unwrap();
        let fallback = others.iter().fold(Fallback::new(first.clone()), |fallback, model| fallback.then(model.clone()));
        let model = wraps.iter().fold(Arc::new(fallback) as Arc<dyn Model>, |model, what| around(model, *what, folder.path()));
        let request = ModelRequest {
            path: Path::root(),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::default(),
            settings: Arc::default(),
        };
        let watcher = Watcher::default();

        let outcome = runtime.block_on(model.call(&request, &watcher));

        let shown = watcher.0.into_inner().unwrap();
        match models.iter().find(|model| !model.fails) {
            Some(answers) => {
                prop_assert_eq!(&shown, &answers.pieces);
                prop_assert_eq!(outcome.unwrap().text(), answers.pieces.concat());
            }
            None => {
                prop_assert!(outcome.is_err());
                // The deltas of the last try stay until the runner discards them.
                prop_assert_eq!(&shown, &models.last().unwrap().pieces);
            }
        }
    }
}
