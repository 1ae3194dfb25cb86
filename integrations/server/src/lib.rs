//! Serves the runs of a store over HTTP: an API, the inspector page, webhooks.
