//! The model of commands without a configured one.

use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse};

use crate::app::SET_MODEL;

/// Placeholder without a configured model, for brains that may not need one.
pub(crate) struct NoModel;

impl NoModel {
    /// Its name in place of a model's.
    pub(crate) const NAME: &str = "none/none";
}

impl Model for NoModel {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let advice = format!("no model is configured: {SET_MODEL}");
        Box::pin(std::future::ready(Err(ModelError::new(ModelErrorKind::Auth, advice))))
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}
