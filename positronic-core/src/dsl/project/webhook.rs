//! The webhooks of a project as one typed value, known when it starts.

use std::sync::Arc;

use serde_json::Value;

use crate::dsl::trait_bounds::Payload;
use crate::dsl::usage_panic::usage_panic;
use crate::dsl::wait::Webhook;
use crate::tools::Schema;

/// A webhook of a project without the type of its payload: what [`webhooks!`](crate::webhooks) lists.
#[derive(Debug, Clone)]
pub struct ProjectWebhook {
    name: String,
    description: String,
    schema: Arc<Schema>,
}

impl ProjectWebhook {
    /// Creates it from a webhook. The description is for people.
    #[must_use]
    pub fn of<P: Payload>(hook: &Webhook<P>, description: &str) -> Self {
        let description = description.trim().to_owned();
        Self { name: hook.name().to_owned(), description, schema: Schema::of::<P>() }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it is, for people; empty if its author has not said it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the JSON schema of its payload.
    #[must_use]
    pub fn payload_schema(&self) -> &Arc<Value> {
        self.schema.json()
    }

    /// Checks a payload.
    pub(crate) fn check(&self, payload: &Value) -> Result<(), String> {
        self.schema.check(payload)
    }
}

/// Refuses two webhooks of one name, for the macro [`webhooks!`](crate::webhooks).
#[track_caller]
pub fn check_webhook_names(names: &[&str]) {
    let mut known = std::collections::HashSet::new();
    if let Some(twice) = names.iter().find(|name| !known.insert(**name)) {
        usage_panic(&format!("the project has two webhooks named `{twice}`; give one of them another name"));
    }
}

/// Makes a struct of the webhooks of a project, each with its name and the type of its payload.
///
/// The struct is a part of the project's [services](crate::dsl::Services), as [`brains!`](crate::brains) are: code gets a webhook as
/// `cx.services.webhooks.payment`, and a stage, which has no services when it is built, as `ShopWebhooks::new().payment`. `list()` returns all of
/// them for [`Runner::webhooks`](crate::runner::Runner::webhooks), or `Project::webhooks`, with the first line of each field's docs.
///
/// ```
/// use positronic_core::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// pub struct Payment {
///     cents: u64,
/// }
///
/// positronic_core::webhooks! {
///     /// The webhooks of the shop.
///     pub struct ShopWebhooks {
///         /// The bank's notice of a payment.
///         pub payment: Webhook<Payment> = "payment",
///     }
/// }
///
/// let order = brain("Order")
///     .step("Take", async |_| Ok("order-7".to_owned()))
///     .wait("Payment", |w| w.on(ShopWebhooks::new().payment, String::clone), |_, payment| payment.cents);
/// # let _ = order;
/// let listed = ShopWebhooks::new().list();
/// assert_eq!((listed[0].name(), listed[0].description()), ("payment", "The bank's notice of a payment."));
/// ```
///
/// A webhook that does not exist does not compile:
///
/// ```compile_fail,E0609
/// # use positronic_core::prelude::*;
/// positronic_core::webhooks! {
///     struct Hooks { payment: Webhook<u64> = "payment" }
/// }
/// let wait = Hooks::new().paid.on::<()>("order-7");
/// ```
#[macro_export]
macro_rules! webhooks {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])* $field_vis:vis $field:ident: $webhook:ty = $value:literal),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $doc])* $field_vis $field: $webhook),*
        }

        impl $name {
            /// Makes the webhooks.
            ///
            /// # Panics
            ///
            /// If two of them have the same name, or one a reserved one.
            #[must_use]
            $vis fn new() -> Self {
                $crate::dsl::check_webhook_names(&[$($value),*]);
                Self { $($field: $crate::dsl::webhook($value)),* }
            }

            /// Returns the webhooks without the types of their payloads, in the order of the fields.
            #[must_use]
            $vis fn list(&self) -> ::std::vec::Vec<$crate::dsl::ProjectWebhook> {
                ::std::vec![$({
                    let lines: &[&str] = &[$($doc),*];
                    let first = lines.first().copied().unwrap_or_default();
                    $crate::dsl::ProjectWebhook::of(&self.$field, first)
                }),*]
            }
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
