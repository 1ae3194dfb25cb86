//! Duration of a model's rest after several concurrent requests.

use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use positronic_core::model::wrap::Fallback;
use positronic_core::model::{DeltaSink, Model, NoDeltas};
use positronic_core::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tokio::time::sleep;

use super::limits::request;
use super::{Speaker, hop, says};

/// Answers a request by its path.
struct Moody;

impl Model for Moody {
    fn name(&self) -> String {
        "a/moody".to_owned()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let (takes, fails) = match request.path.as_str() {
            "limited" => (1, Some((ModelErrorKind::RateLimited, Some(Duration::from_mins(10))))),
            "lost" => (2, Some((ModelErrorKind::Connection, None))),
            _ => (3, None),
        };
        Box::pin(async move {
            sleep(Duration::from_secs(takes)).await;
            match fails {
                Some((kind, retry_after)) => Err(ModelError { retry_after, ..ModelError::new(kind, "no") }),
                None => Ok(ModelResponse::default()),
            }
        })
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

#[tokio::test(start_paused = true)]
async fn long_rest_is_not_changed_by_requests_sent_before_it() {
    let model = Fallback::new(Moody).then(Speaker::new("b/two", [says("One."), says("Two."), says("Three.")]));
    let requests = ["limited", "lost", "slow", "next"].map(|who| request(who, 10));
    let [limited, lost, slow, next] = &requests;

    for answer in join_all([limited, lost, slow].map(|request| model.call(request, &NoDeltas))).await {
        answer.unwrap();
    }
    let answer = model.call(next, &NoDeltas).await.unwrap();

    let way: Vec<_> = answer.metadata.via.iter().map(hop).collect();
    assert_eq!(way, ["a/moody rests 598000000"], "it asked for ten minutes, two seconds ago");
}
