//! Files of steps and tools: stored with the runs, for messages to models, for the state, and for people.

use super::context::{StepContext, ToolContext};
use crate::error::Result;
use crate::record::{FileOutput, FileRef, SideOutput};

impl<O, S, V> StepContext<O, S, V> {
    /// Stores a file, for a message or a question to a model, or for the state. The store keeps it as long as an event of the
    /// run refers to it.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use positronic_core::record::{FileRef, UserMessage};
    ///
    /// # async fn photo() -> Result<Vec<u8>> { Ok(Vec::new()) }
    /// let spotter = brain("Spotter")
    ///     .state(None::<FileRef>)
    ///     .step("Take", async |cx| Ok(Some(cx.file("bird.jpg", "image/jpeg", photo().await?).await?)))
    ///     .r#loop("Look", |cx| {
    ///         let bird = cx.state.iter().cloned();
    ///         cx.system("You know all birds.").input(UserMessage::new("Which bird is it?").files(bird))
    ///     });
    /// # let _ = spotter;
    /// ```
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the file is larger than [`LARGEST_BLOB`](crate::store::LARGEST_BLOB), or the store fails.
    pub async fn file(
        &self,
        name: impl Into<String> + Send,
        media_type: impl Into<String> + Send,
        bytes: impl Into<Vec<u8>> + Send,
    ) -> Result<FileRef> {
        self.scope.store_file(name.into(), media_type.into(), bytes.into()).await
    }
}

impl<O, S, V> ToolContext<O, S, V> {
    /// Stores a file that the tool made, and records it; the model reads one line about it.
    ///
    /// The bytes are stored beside the logs: each content once, as long as a run references it. They are
    /// stored before the event that names them. People get them with `positronic files`, programs with
    /// [`Client::blob`](crate::runner::Client::blob).
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # let _ = brain("Report").r#loop("Chat", |cx| cx.system("Help.").tool("report", |t| {
    /// t.execute(async |_: NoArgs, cx| {
    ///     let file = cx.save_file("sales.csv", "text/csv", "month,sales\nMay,3\n").await?;
    ///     Ok(format!("wrote {} bytes", file.size))
    /// })
    /// # }));
    /// ```
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the file is larger than [`LARGEST_BLOB`](crate::store::LARGEST_BLOB), the store fails, or the call
    /// has shown 1000 files and widgets.
    pub async fn save_file(
        &self,
        name: impl Into<String> + Send,
        media_type: impl Into<String> + Send,
        bytes: impl Into<Vec<u8>> + Send,
    ) -> Result<FileRef> {
        let file = self.scope.store_file(name.into(), media_type.into(), bytes.into()).await?;
        self.add_file(file.clone())?;
        Ok(file)
    }

    /// Stores a file and records it; the model gets its contents with the result of the call, and people see it. Use it for a
    /// picture or a document that the model has to look at. A model that cannot read this kind of file gets only the line about it.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # async fn render() -> Result<Vec<u8>> { Ok(Vec::new()) }
    /// # let _ = brain("Report").r#loop("Chat", |cx| cx.system("Help.").tool("chart", |t| {
    /// t.execute(async |_: NoArgs, cx| {
    ///     cx.file("chart.png", "image/png", render().await?).await?;
    ///     Ok("the chart of this month")
    /// })
    /// # }));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ToolContext::save_file`].
    pub async fn file(
        &self,
        name: impl Into<String> + Send,
        media_type: impl Into<String> + Send,
        bytes: impl Into<Vec<u8>> + Send,
    ) -> Result<FileRef> {
        let file = self.scope.store_file(name.into(), media_type.into(), bytes.into()).await?;
        self.show_to_model(file.clone())?;
        Ok(file)
    }

    /// Records a file that is stored or can be loaded elsewhere, whose contents the model gets with the result of the call.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the call has shown 1000 files and widgets.
    pub fn show_to_model(&self, file: FileRef) -> Result<()> {
        let output = SideOutput::File(FileOutput { file, content: true });
        self.scope.link.output(&self.scope.path, output).map(|_| ())
    }

    /// Records a file that is stored elsewhere, at its `uri`; the model reads one line about it.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the call has shown 1000 files and widgets.
    pub fn add_file(&self, file: FileRef) -> Result<()> {
        self.scope.link.output(&self.scope.path, SideOutput::File(file.into())).map(|_| ())
    }
}
