//! The gateway's HTTP server: one port for both wire formats, the buyers' pages, and the hand that plays the buyers.
//!
//! A connection can be cut without an answer, which a plain server does not do.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::account::Dialect;
use super::calls::{self, Answer, Request};
use super::{Shared, control, pages};

/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 1_024 * 1_024;
/// Wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Serves until `stop` ends.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, stop: impl Future<Output = ()> + Send + 'static) {
    let router = Router::new().fallback(handle).with_state(shared);
    let service = router.into_make_service_with_connect_info::<Cut>();
    axum::serve(CuttableListener(listener), service).with_graceful_shutdown(stop).await.expect("it never fails");
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(cut): ConnectInfo<Cut>,
    request: axum::extract::Request,
) -> Response {
    // Whoever called may go away: what was asked for is done all the same.
    let answer = tokio::spawn(answer(shared, request)).await.ok().flatten();
    answer.unwrap_or_else(|| {
        cut.0.store(true, Ordering::SeqCst);
        Response::new(Body::empty())
    })
}

async fn answer(shared: Arc<Shared>, request: axum::extract::Request) -> Option<Response> {
    let (parts, body) = request.into_parts();
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else { return Some(plain(413, "The body is too large")) };
    for dialect in [Dialect::Stripe, Dialect::MercadoPago] {
        let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(dialect.name()));
        if let Some(below) = below.filter(|below| below.starts_with('/')) {
            let method = parts.method.as_str().to_owned();
            let (path, headers, body) = (below.to_owned(), parts.headers, body.to_vec());
            let request = Request { dialect, method, path, query, headers, body };
            return calls::answer(&shared, &request).await.map(json);
        }
    }
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match (parts.method.as_str(), segments.as_slice()) {
        ("GET", ["pay", id]) => pages::show(&shared, id, &parts.headers, false),
        ("POST", ["pay", id]) => pages::press(&shared, id, &parts.headers, &body),
        (method, [first, rest @ ..]) if first.starts_with('_') => {
            json(control::answer(&shared, method, first, rest, &body))
        }
        _ => plain(404, "There is nothing here"),
    })
}

fn json(answer: Answer) -> Response {
    let builder = Response::builder().status(answer.status).header(CONTENT_TYPE, "application/json");
    let builder = answer.headers.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value));
    builder.body(Body::from(answer.body.to_string())).expect("its parts are valid")
}

pub(super) fn plain(status: u16, text: &'static str) -> Response {
    let builder = Response::builder().status(status).header(CONTENT_TYPE, "text/plain; charset=utf-8");
    builder.body(Body::from(text)).expect("its parts are valid")
}

/// Set when a connection is to end without a further byte.
#[derive(Clone)]
struct Cut(Arc<AtomicBool>);

struct CuttableListener(TcpListener);

struct Cuttable {
    stream: TcpStream,
    cut: Cut,
}

impl Listener for CuttableListener {
    type Io = Cuttable;
    type Addr = ();

    async fn accept(&mut self) -> (Cuttable, ()) {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => return (Cuttable { stream, cut: Cut(Arc::default()) }, ()),
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Cut {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().cut.clone()
    }
}

impl AsyncRead for Cuttable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Cuttable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.cut.0.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
