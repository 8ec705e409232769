//! Connections: a bounded number, each with a bounded time for its request.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Connections at once. For one more, the oldest is closed: whoever sends half a request and waits does not keep a probe out.
const CONNECTIONS: usize = 256;
/// For a TLS handshake, and for the head of a request, from the answer before it on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// How long answers under way may take after the shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Before the next attempt to accept, where the system has no room for a connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves `router` until `shutdown` is ready.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    let (stop, stopping) = watch::channel(());
    let mut open = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.as_mut() => break,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection to the pages was not accepted");
                sleep(NO_ROOM).await;
                continue;
            }
        };
        by_age.retain(|connection| !connection.is_finished());
        if by_age.len() >= CONNECTIONS
            && let Some(oldest) = by_age.pop_front()
        {
            oldest.abort();
        }
        by_age.push_back(open.spawn(talk(stream, tls.clone(), router.clone(), stopping.clone())));
    }
    drop(stop);
    let finished = async { while open.join_next().await.is_some() {} };
    if timeout(LAST_ANSWERS, finished).await.is_err() {
        tracing::debug!("connections to the pages were closed under way");
    }
}

async fn talk(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, stopping: watch::Receiver<()>) {
    let Some(tls) = tls else { return answer(stream, router, stopping).await };
    match timeout(HEAD_TIME, tls.accept(stream)).await {
        Ok(Ok(stream)) => answer(stream, router, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client of the pages does not speak TLS as we do"),
        Err(_) => tracing::debug!("a client of the pages did not finish its handshake"),
    }
}

async fn answer<S>(stream: S, router: Router, mut stopping: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the pages ended");
    }
}
