//! Connections of the pages, bounded in number and time.

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

/// Above it the oldest is closed: half-sent requests must not block a probe.
const MAX_CONNECTIONS: usize = 256;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEAD_BYTES: usize = 16 << 10;
const PENDING_ANSWERS_TIMEOUT: Duration = Duration::from_secs(2);
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

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
                tracing::debug!(%error, "failed to accept a connection to the HTTP pages");
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        by_age.retain(|connection| !connection.is_finished());
        if by_age.len() >= MAX_CONNECTIONS
            && let Some(oldest) = by_age.pop_front()
        {
            oldest.abort();
        }
        by_age.push_back(open.spawn(handle_connection(stream, tls.clone(), router.clone(), stopping.clone())));
    }
    drop(stop);
    let finished = async { while open.join_next().await.is_some() {} };
    if timeout(PENDING_ANSWERS_TIMEOUT, finished).await.is_err() {
        tracing::debug!("closed open connections to the HTTP pages");
    }
}

async fn handle_connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, stopping: watch::Receiver<()>) {
    let Some(tls) = tls else { return serve_requests(stream, router, stopping).await };
    match timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_requests(stream, router, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake with a client of the HTTP pages failed"),
        Err(_) => tracing::debug!("TLS handshake with a client of the HTTP pages timed out"),
    }
}

async fn serve_requests<S>(stream: S, router: Router, mut stopping: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
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
        tracing::debug!(%error, "connection to the HTTP pages failed");
    }
}
