//! What all requests share.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::Method;
use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::auth::{Authenticate, Limits, StoredCallers};
use crate::folds::Folds;
use crate::options::Options;
use crate::problem::{FieldError, Problem, ProblemType};
use crate::routes::{Body, Route, table};

/// The largest number of invalid places that an answer lists.
const MAX_ERRORS: usize = 20;
/// The most characters of the text of an error.
const MAX_ERROR: usize = 500;

/// The state of a router.
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) authenticate: Arc<dyn Authenticate>,
    /// The browser sessions, if the router has its own authentication.
    pub(crate) callers: Option<Arc<StoredCallers>>,
    pub(crate) limits: Limits,
    pub(crate) bodies: Bodies,
    pub(crate) folds: Folds,
}

impl App {
    pub(crate) fn new(client: Client, options: Options) -> Self {
        let (authenticate, callers) = match &options.authenticate {
            Some(given) => (Arc::clone(given), None),
            None => {
                let own = Arc::new(StoredCallers::new(&client, &options));
                (Arc::clone(&own) as Arc<dyn Authenticate>, Some(own))
            }
        };
        let folds = Folds::new(client.clone(), options.prices.clone());
        let limits = Limits::new(&options);
        Self { client, authenticate, callers, limits, bodies: Bodies::of(&table()), folds, options }
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.client.now()
    }
}

/// The compiled schemas of the bodies, by route.
pub(crate) struct Bodies(HashMap<(Method, &'static str), jsonschema::Validator>);

impl Bodies {
    fn of(table: &[Route]) -> Self {
        let compiled = table.iter().filter_map(|route| {
            let Body::Json(schema) = route.body else { return None };
            let mut generator = SchemaSettings::draft2020_12().into_generator();
            let mut schema = schema(&mut generator);
            schema.insert("$defs".to_owned(), Value::Object(generator.take_definitions(true)));
            let validator = jsonschema::validator_for(schema.as_value()).ok()?;
            Some(((route.method.clone(), route.path), validator))
        });
        Self(compiled.collect())
    }

    /// Checks the body of a request to a route.
    pub(crate) fn check(&self, route: &Route, body: &Bytes) -> Result<(), Problem> {
        let value: Value =
            serde_json::from_slice(body).map_err(|error| Problem::new(ProblemType::InvalidJson).detail(error))?;
        match self.0.get(&(route.method.clone(), route.path)) {
            Some(validator) => {
                let errors = errors_of(validator, &value);
                if errors.is_empty() { Ok(()) } else { Err(Problem::new(ProblemType::InvalidBody).errors(errors)) }
            }
            None => Ok(()),
        }
    }
}

/// Lists the places of a value that do not match a schema.
pub(crate) fn errors_of(validator: &jsonschema::Validator, value: &Value) -> Vec<FieldError> {
    let errors = validator.iter_errors(value).take(MAX_ERRORS);
    errors.map(|error| FieldError::new(cut(error.instance_path().as_str()), cut(&error.to_string()))).collect()
}

/// Cuts what quotes a value of the body: the answer to a large body stays small.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
