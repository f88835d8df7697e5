//! A bucket in this process: uploads in parts as S3 keeps them, with what makes them hard. Checks no signature.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sha2::{Digest, Sha256};

use crate::http::{BUCKET, storage_keys};
use crate::server::{Reply, Request, Server};

/// A file with its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its media type.
    pub media_type: String,
    /// What it is called where it is saved.
    pub disposition: String,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, File>,
    uploads: BTreeMap<String, Upload>,
    begun: usize,
    /// Numbers of the parts that were put, in their order.
    put: Vec<i32>,
    refusals: usize,
    completions_lost: usize,
    in_between: Option<Vec<u8>>,
}

struct Upload {
    key: String,
    media_type: String,
    disposition: String,
    parts: BTreeMap<i32, Vec<u8>>,
}

/// A bucket, until it is dropped.
pub struct FakeBucket {
    server: Server,
    state: Arc<Mutex<State>>,
}

impl FakeBucket {
    /// An empty one.
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(move |request| {
            let reply = serve(&mut locked(&shared), &request);
            async move { reply }
        })
        .await;
        Self { server, state }
    }

    /// Where it is.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// As the worker writes to it.
    #[must_use]
    pub fn writer(&self) -> write_exports::Bucket {
        write_exports::Bucket::at(BUCKET, self.endpoint(), storage_keys())
    }

    /// As the worker that looks at uploads reads it.
    #[must_use]
    pub fn looker(&self) -> check_uploads::Bucket {
        check_uploads::Bucket::at(BUCKET, self.endpoint(), storage_keys())
    }

    /// Bytes that somebody sends by a form, of whatever media type they say.
    pub fn send(&self, key: &str, bytes: &[u8], media_type: &str) {
        let file = File { bytes: bytes.to_vec(), media_type: media_type.to_owned(), disposition: String::new() };
        locked(&self.state).files.insert(key.to_owned(), file);
    }

    /// Other bytes for the next object that is copied, just before it is.
    pub fn send_in_between(&self, bytes: &[u8]) {
        locked(&self.state).in_between = Some(bytes.to_vec());
    }

    /// Every file by its key.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, File> {
        locked(&self.state).files.clone()
    }

    /// Uploads that were begun and neither completed nor aborted.
    #[must_use]
    pub fn open_uploads(&self) -> usize {
        locked(&self.state).uploads.len()
    }

    /// Numbers of all parts that were put, in their order.
    #[must_use]
    pub fn put(&self) -> Vec<i32> {
        locked(&self.state).put.clone()
    }

    /// Refuses the next parts, so many of them.
    pub fn refuse_parts(&self, count: usize) {
        locked(&self.state).refusals = count;
    }

    /// Completes so many uploads and then answers that something went wrong.
    pub fn lose_completions(&self, count: usize) {
        locked(&self.state).completions_lost = count;
    }

    /// Forgets every upload that is open, as a lifecycle rule does.
    pub fn forget_uploads(&self) {
        locked(&self.state).uploads.clear();
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no test panics while it has the bucket")
}

fn serve(state: &mut State, request: &Request) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((request.path.as_str(), ""));
    let key = path.strip_prefix(&format!("/{BUCKET}/")).unwrap_or_default().to_owned();
    let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let upload_id = query.get("uploadId").cloned();
    match (request.method.as_str(), upload_id) {
        ("POST", None) if query.contains_key("uploads") => begin(state, key, request),
        ("PUT", Some(id)) => put(state, &id, &query, request),
        ("POST", Some(id)) => complete(state, &id, request),
        ("DELETE", Some(id)) => {
            state.uploads.remove(&id);
            plain(204)
        }
        ("PUT", None) => copy(state, &key, request),
        ("DELETE", None) => {
            state.files.remove(&key);
            plain(204)
        }
        ("GET", None) if query.contains_key("x-id") => read(state, &key),
        ("HEAD", None) => plain(if state.files.contains_key(&key) { 200 } else { 404 }),
        ("GET", None) if query.contains_key("X-Amz-Signature") => match state.files.get(&key) {
            Some(file) => Reply {
                status: 200,
                headers: vec![
                    ("content-type", file.media_type.clone()),
                    ("content-disposition", file.disposition.clone()),
                ],
                body: file.bytes.clone(),
            },
            None => plain(404),
        },
        _ => plain(403),
    }
}

fn header(request: &Request, wanted: &str) -> String {
    let found = request.headers.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn read(state: &State, key: &str) -> Reply {
    let Some(file) = state.files.get(key) else { return error(404, "NoSuchKey") };
    let headers = vec![("etag", etag(&file.bytes)), ("content-type", file.media_type.clone())];
    Reply { status: 200, headers, body: file.bytes.clone() }
}

/// Only what is the same as when it was read is copied.
fn copy(state: &mut State, to: &str, request: &Request) -> Reply {
    let from = header(request, "x-amz-copy-source");
    let from = from.trim_start_matches('/').strip_prefix(BUCKET).unwrap_or_default().trim_start_matches('/');
    let in_between = state.in_between.take();
    let Some(file) = state.files.get_mut(from) else { return error(404, "NoSuchKey") };
    if let Some(bytes) = in_between {
        file.bytes = bytes;
    }
    if header(request, "x-amz-copy-source-if-match") != etag(&file.bytes) {
        return error(412, "PreconditionFailed");
    }
    let (media_type, disposition) = (header(request, "content-type"), header(request, "content-disposition"));
    let copied = File { bytes: file.bytes.clone(), media_type, disposition };
    let body =
        format!("<CopyObjectResult><ETag>{}</ETag></CopyObjectResult>", etag(&copied.bytes).replace('"', "&quot;"));
    state.files.insert(to.to_owned(), copied);
    xml(200, &body)
}

fn begin(state: &mut State, key: String, request: &Request) -> Reply {
    state.begun += 1;
    let id = format!("upload-{}", state.begun);
    let (media_type, disposition) = (header(request, "content-type"), header(request, "content-disposition"));
    state.uploads.insert(id.clone(), Upload { key: key.clone(), media_type, disposition, parts: BTreeMap::new() });
    xml(
        200,
        &format!(
            "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        ),
    )
}

fn put(state: &mut State, id: &str, query: &BTreeMap<String, String>, request: &Request) -> Reply {
    if state.refusals > 0 {
        state.refusals -= 1;
        return error(503, "SlowDown");
    }
    let number: i32 = query["partNumber"].parse().expect("a number");
    let Some(upload) = state.uploads.get_mut(id) else { return error(404, "NoSuchUpload") };
    upload.parts.insert(number, request.body.clone());
    state.put.push(number);
    Reply { status: 200, headers: vec![("etag", etag(&request.body))], body: Vec::new() }
}

fn complete(state: &mut State, id: &str, request: &Request) -> Reply {
    let Some(upload) = state.uploads.get(id) else { return error(404, "NoSuchUpload") };
    let body = String::from_utf8_lossy(&request.body).replace("&quot;", "\"");
    let named: Vec<&str> =
        body.split("<ETag>").skip(1).map(|rest| rest.split("</ETag>").next().unwrap_or_default()).collect();
    let is_whole = upload.parts.keys().copied().eq(1..=i32::try_from(named.len()).expect("few parts"));
    let is_same = upload.parts.values().map(|bytes| etag(bytes)).eq(named.iter().map(|one| (*one).to_owned()));
    if named.is_empty() || !is_whole || !is_same {
        return error(400, "InvalidPart");
    }
    let upload = state.uploads.remove(id).expect("it was there");
    let bytes = upload.parts.into_values().flatten().collect();
    let file = File { bytes, media_type: upload.media_type, disposition: upload.disposition };
    let before = state.files.insert(upload.key.clone(), file);
    assert!(before.is_none(), "{} was written twice", upload.key);
    if state.completions_lost > 0 {
        state.completions_lost -= 1;
        return error(503, "SlowDown");
    }
    xml(
        200,
        &format!(
            "<CompleteMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{}</Key><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>",
            upload.key
        ),
    )
}

fn etag(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

fn plain(status: u16) -> Reply {
    Reply { status, ..Reply::default() }
}

fn error(status: u16, code: &str) -> Reply {
    xml(status, &format!("<Error><Code>{code}</Code><Message>as asked</Message></Error>"))
}

fn xml(status: u16, body: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}").into_bytes();
    Reply { status, headers: vec![("content-type", "application/xml".to_owned())], body }
}
