//! No signature.

use serde_json::Value;

use super::digest::to_hex;
use super::{PayloadError, SignatureError, SignatureScheme, SignedRequest};

const ID: &str = "webhook-id";

/// No signature: every request that reaches the server is accepted. For senders behind another authentication only.
///
/// A delivery's id is the header `webhook-id`. Without it, each request counts as a delivery of its own.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned;

impl SignatureScheme for Unsigned {
    fn verify(&self, _request: &SignedRequest<'_>) -> Result<(), SignatureError> {
        Ok(())
    }

    fn id(&self, request: &SignedRequest<'_>, _payload: &Value) -> Result<String, PayloadError> {
        if let Ok(id) = request.header(ID) {
            return Ok(id.to_owned());
        }
        let mut id = [0; 16];
        let missing = |error| PayloadError::Missing { what: format!("the header `{ID}` (random numbers: {error})") };
        getrandom::fill(&mut id).map_err(missing)?;
        Ok(to_hex(&id))
    }
}
