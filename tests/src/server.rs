//! The smallest HTTP/1.1 server that a client of ours can talk to: one handler, bodies with a length, keep-alive.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its path with the query.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers, without the length.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A server on a port of its own, until it is dropped.
pub struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts serving. The handler may take as long as it likes.
    pub async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handler = Arc::new(handler);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let handler = Arc::clone(&handler);
                tokio::spawn(async move { while_open(stream, &*handler).await });
            }
        });
        Self { address, accepting }
    }

    /// `127.0.0.1` and the port.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn while_open<H, F>(stream: TcpStream, handler: &H)
where
    H: Fn(Request) -> F,
    F: Future<Output = Reply>,
{
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let reply = handler(request).await;
        let mut head = format!("HTTP/1.1 {} -\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let bytes = [head.as_bytes(), &reply.body].concat();
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// The next request, or none when the client has gone.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let first = line(stream).await?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    assert_eq!(header("transfer-encoding"), None, "this server reads bodies with a length only");
    let mut body = vec![0; header("content-length").unwrap_or("0").parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { method, path, headers, body })
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
