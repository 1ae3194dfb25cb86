//! Sets of templates, which can include and extend each other.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use schemars::JsonSchema;
use serde::Serialize;

use crate::check::check;
use crate::error::{Cause, TemplateError, listed};

/// Templates that can include and extend each other by their names. Clones share them.
#[derive(Debug, Clone)]
pub struct TemplateSet(Arc<Environment<'static>>);

/// A template whose variables are the fields of `T`. Clones share it.
#[derive_where(Clone, Debug)]
pub struct Template<T> {
    set: TemplateSet,
    name: String,
    variables: PhantomData<fn(&T)>,
}

impl TemplateSet {
    /// Parses templates, each with its name. [`templates!`](crate::templates) does it for embedded files; call this for texts that are
    /// read when the project starts.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Syntax`] for the first one that is not valid.
    pub fn parse<N, S>(templates: impl IntoIterator<Item = (N, S)>) -> Result<Self, TemplateError>
    where
        N: Into<Cow<'static, str>>,
        S: Into<Cow<'static, str>>,
    {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        // An error then says which part of the line it means.
        environment.set_debug(true);
        if let Ok(syntax) =
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()
        {
            environment.set_syntax(syntax);
        }
        for (name, source) in templates {
            let name = name.into();
            environment.add_template_owned(name.clone(), source).map_err(|error| {
                let Cause { template, line, reason, .. } = Cause::of(&name, &error);
                TemplateError::Syntax { template, line, reason }
            })?;
        }
        Ok(Self(Arc::new(environment)))
    }

    /// Returns a template, checked against the type of its variables.
    ///
    /// # Errors
    ///
    /// [`TemplateError::UnknownTemplate`] if the set has none of this name, [`TemplateError::UnknownVariable`] if it uses a variable that
    /// `T` does not have, and [`TemplateError::Render`] if it or a template that it includes cannot be rendered with any value.
    pub fn template<T: JsonSchema>(&self, name: &str) -> Result<Template<T>, TemplateError> {
        let Ok(template) = self.0.get_template(name) else {
            let known = listed(self.0.templates().map(|(name, _)| name));
            return Err(TemplateError::UnknownTemplate { template: name.to_owned(), known });
        };
        check::<T>(&self.0, &template)?;
        Ok(Template { set: self.clone(), name: name.to_owned(), variables: PhantomData })
    }
}

impl<T> Template<T> {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Serialize> Template<T> {
    /// Renders the template with these values.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Render`] if a value is not there, or a filter refuses one.
    pub fn render(&self, variables: &T) -> Result<String, TemplateError> {
        let rendered = self.set.0.get_template(&self.name).and_then(|template| template.render(Serde(variables)));
        let without_line_break = |mut text: String| {
            if text.ends_with('\n') {
                text.pop();
            }
            text
        };
        rendered.map(without_line_break).map_err(|error| {
            let Cause { template, line, reason, .. } = Cause::of(&self.name, &error);
            TemplateError::Render { template, line, reason }
        })
    }
}
