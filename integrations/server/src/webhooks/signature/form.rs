//! Form-encoded bodies, as Slack and GitHub send them.

use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::{PayloadError, SignedRequest, json};

/// The field with JSON.
const PAYLOAD: &str = "payload";

impl SignedRequest<'_> {
    /// Decodes the body by its media type: JSON, or a form. A form's field `payload` contains JSON; a form without it
    /// becomes an object of texts.
    pub(super) fn json_or_form(&self) -> Result<Value, PayloadError> {
        let media_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return self.json();
        }
        let mut fields = Map::new();
        for (name, value) in url::form_urlencoded::parse(self.body) {
            if name == PAYLOAD {
                return json(value.as_bytes());
            }
            fields.insert(name.into_owned(), value.into());
        }
        Ok(Value::Object(fields))
    }
}
