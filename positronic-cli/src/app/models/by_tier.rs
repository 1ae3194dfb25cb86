//! One model out of those of both tiers.

use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ModelError, ModelRequest, ModelResponse, Tier};

/// A model that routes each request to the model of its tier, under the name of the normal one.
pub(crate) struct ByTier {
    pub(crate) normal: Arc<dyn Model>,
    pub(crate) high: Option<Arc<dyn Model>>,
}

impl ByTier {
    fn of(&self, request: &ModelRequest) -> &dyn Model {
        match (request.settings.tier, &self.high) {
            (Tier::High, Some(high)) => &**high,
            (Tier::High, None) | (Tier::Normal, _) => &*self.normal,
        }
    }
}

impl Model for ByTier {
    fn name(&self) -> String {
        self.normal.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.of(request).call(request, deltas)
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.normal)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.of(request).wire(request)
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::model::NoDeltas;
    use positronic_core::model::scripted::{Reply, ScriptedModel};
    use positronic_core::record::Transcript;

    use super::*;

    #[tokio::test]
    async fn recording_asks_the_model_of_each_tier() {
        let says = |text: &'static str| Arc::new(ScriptedModel::new([Reply::text(text)])) as Arc<dyn Model>;
        let both = ByTier { normal: says("normal"), high: Some(says("high")) };
        let request = |tier| ModelRequest {
            path: positronic_core::record::Path::root().stage("Ask").iteration(0),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::default(),
            settings: Arc::new(positronic_core::record::Settings::builder().tier(tier).build()),
        };

        assert_eq!(both.call(&request(Tier::High), &NoDeltas).await.unwrap().text(), "high");
        assert_eq!(both.call(&request(Tier::Normal), &NoDeltas).await.unwrap().text(), "normal");
    }
}
