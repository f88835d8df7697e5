//! A gateway on a port of its own that records requests byte for byte and answers what a test tells it to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::payments::{CaptureMode, Method};
use time::macros::datetime;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::http_client::Timing;
use crate::{Credentials, Endpoints, GatewayClient, Gateways, NewPayment};

/// What a test does with a request.
pub(crate) enum Reply {
    /// Answers with a status, headers and a body.
    Answer(u16, &'static [(&'static str, &'static str)], String),
    /// Closes the connection.
    Close,
    /// Never answers.
    Hang,
    /// Answers and then sends a body without end, as fast as it is read.
    Endless,
    /// Answers and never finishes the body.
    Slow,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<String>) -> Self {
        Self::Answer(200, &[], body.into())
    }

    pub(crate) fn error(status: u16, body: &str) -> Self {
        Self::Answer(status, &[], body.to_owned())
    }
}

/// A request as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// Method and target.
    pub(crate) line: String,
    /// In order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// As sent.
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The server, until it is dropped.
pub(crate) struct TestServer {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
    accepting: JoinHandle<()>,
}

type Script = Arc<dyn Fn(usize, &Received) -> Reply + Send + Sync>;

impl TestServer {
    /// Answers the n-th request, counted from 0, with what the script says.
    pub(crate) async fn start(script: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, script): (_, Script) = (Arc::clone(&received), Arc::new(script));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&script)));
            }
        });
        Self { address, received, accepting }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// A client of this server, with the times of production divided by ten.
    pub(crate) fn client(&self, credentials: &Credentials) -> GatewayClient {
        self.gateways().client(credentials).unwrap()
    }

    /// The way to it.
    pub(crate) fn gateways(&self) -> Gateways {
        let endpoints = Endpoints {
            stripe: self.address.clone(),
            mercado_pago: self.address.clone(),
            sandbox: Some(self.address.clone()),
        };
        let timing = Timing {
            connect: Duration::from_millis(200),
            attempt: Duration::from_millis(500),
            operation: Duration::from_millis(800),
            backoff: Duration::from_millis(10),
        };
        Gateways::with_timing(endpoints, timing).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, log: Arc<Mutex<Vec<Received>>>, script: Script) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let reply = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            script(log.len() - 1, &request)
        };
        let written = match reply {
            Reply::Close => return,
            Reply::Hang => std::future::pending().await,
            Reply::Answer(status, headers, body) => {
                let mut text = format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\n", body.len());
                headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
                stream.write_all(format!("{text}\r\n{body}").as_bytes()).await
            }
            Reply::Slow => {
                let _ = stream.write_all(b"HTTP/1.1 200 -\r\ncontent-length: 10\r\n\r\n{").await;
                std::future::pending().await
            }
            Reply::Endless => {
                let _ = stream.write_all(b"HTTP/1.1 200 -\r\n\r\n").await;
                while stream.write_all(&[b' '; 8_192]).await.is_ok() {}
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let mut text = String::new();
        if stream.read_line(&mut text).await.ok()? == 0 {
            return None;
        }
        let text = text.trim_end();
        if text.is_empty() {
            break;
        }
        match text.split_once(": ") {
            Some((name, value)) if !line.is_empty() => {
                let name = name.to_ascii_lowercase();
                if name == "content-length" {
                    length = value.parse().unwrap();
                }
                headers.push((name, value.to_owned()));
            }
            _ => line = text.trim_end_matches(" HTTP/1.1").to_owned(),
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { line, headers, body: String::from_utf8(body).unwrap() })
}

pub(crate) const ATTEMPT: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

/// A payment of 10.50.
pub(crate) fn new_payment(method: Method) -> NewPayment<'static> {
    NewPayment {
        attempt_id: ATTEMPT,
        order_id: Uuid::from_u128(2),
        tenant_id: Uuid::from_u128(3),
        key: "pay-1",
        amount_minor: 1_050,
        currency: "BRL",
        method,
        capture: CaptureMode::Automatic,
        expires_at: datetime!(2030-01-31 12:00:00 UTC),
        description: "Numbers 7 & 77",
        return_url: Some("https://store.example/orders/2?paid=1"),
        payer_email: None,
    }
}
