//! `positronic inspect`: the inspector page of an exported run, read-only and without a store.

use positronic_server::{Listener, Login, Options, Shutdown};

use super::{add, read_exported};
use crate::app::{Failure, ProjectStore, Ui, Unread, cannot_listen, sign_in_url};
use crate::cli::{Exit, InspectArgs};
use crate::session::interrupts;

pub(crate) async fn inspect(args: &InspectArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.outlive_readers(Unread::IsDropped);
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage(format!("--listen {} is reachable from other machines", args.listen))
            .hint("listen on 127.0.0.1; use `import` and `serve` to show the run to others"));
    }
    let exported = read_exported(&args.file, ui)?;
    let store = ProjectStore::memory();
    add(&exported, &store).await?;
    let cannot_listen = |error| cannot_listen(args.listen, &error);
    let listener = Listener::bind(args.listen).await.map_err(cannot_listen)?;
    let address = listener.address().map_err(cannot_listen)?;
    let (login, shutdown) = (Login::default(), Shutdown::default());
    let url = sign_in_url(&format!("http://{address}/ui/runs/{}", exported.run()), &login)?;
    let options = Options::builder().login(login).shutdown(shutdown.clone()).read_only(true).build();
    ui.notice(&format!("showing {}; press Ctrl-C to stop", args.file.display()))?;
    ui.print(&url)?;
    let served = tokio::spawn(listener.serve(store.client(), options));
    _ = interrupts().recv().await;
    shutdown.begin();
    match served.await {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::environment(format!("the server has stopped: {error}"))),
    }
}
