//! A line between one worker and the database, which can be cut.

use std::pin::pin;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A TCP proxy on a port of its own.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = watch::Sender::new(false);
        let is_cut = cut.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, is_cut.subscribe()));
            }
        });
        Self { port, cut, task }
    }

    /// Stops forwarding, as a network without errors that loses all packets, or forwards new connections again.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut client: TcpStream, server: u16, mut cut: watch::Receiver<bool>) {
    let mut both = pin!(async {
        let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
        copy_bidirectional(&mut client, &mut server).await
    });
    tokio::select! {
        biased;
        // The connection stays open and silent until the line is repaired.
        _ = cut.wait_for(|cut| *cut) => {}
        _ = &mut both => return,
    }
    _ = cut.wait_for(|cut| !*cut).await;
}
