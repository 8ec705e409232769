//! A store on this machine that speaks as S3, Google Cloud Storage and Azure do, as far as reading goes, and fails as it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What the store takes for credentials.
pub const KEY: &str = "AKIATESTKEY";
pub const SECRET: &str = "a-secret-of-the-tests";

/// How an object, or what is asked of it, fails.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// With this status and code.
    With(u16, &'static str),
    /// With this status and code, so many times.
    Times(usize, u16, &'static str),
    /// Half of the body, then the connection ends; so many times.
    Cut(usize),
    /// No answer at all.
    Silent,
    /// After so many ranges of it it is another object.
    Changes(usize),
    /// The conditions of a request are not looked at, and after so many ranges it is another object.
    Careless(usize),
}

#[derive(Clone)]
struct Object {
    bytes: Arc<Vec<u8>>,
    version: u64,
    asked: usize,
}

#[derive(Default)]
struct Content {
    objects: BTreeMap<(String, String), Object>,
    fails: BTreeMap<String, Fails>,
    requests: Vec<String>,
    page: usize,
    open: bool,
    version: u64,
}

/// The store, for as long as the process lives.
pub struct Stub {
    pub port: u16,
    content: Arc<Mutex<Content>>,
}

impl Stub {
    /// An empty store; what it lists comes in pages of so many keys.
    pub fn new(page: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let content = Arc::new(Mutex::new(Content { page, ..Content::default() }));
        let shared = Arc::clone(&content);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let content = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &content));
            }
        });
        Self { port, content }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("nobody has failed")
    }

    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        let mut content = self.content();
        content.version += 1;
        let object = Object { bytes: Arc::new(bytes.into()), version: content.version, asked: 0 };
        content.objects.insert((bucket.to_owned(), key.to_owned()), object);
    }

    /// What is asked of a key (or of a listing, by `?` and its prefix) fails from now on.
    pub fn fail(&self, key: &str, how: Fails) {
        self.content().fails.insert(key.to_owned(), how);
    }

    /// Nobody has to say who he is.
    pub fn open(&self) {
        self.content().open = true;
    }

    /// Method, path, query and range of all that was asked so far.
    pub fn requests(&self) -> Vec<String> {
        self.content().requests.clone()
    }
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
}

fn request(input: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    Some(Request { method, path: decoded(path), query, headers })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("text")
}

/// Status, headers, body, and how many bytes of it are sent.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    sent: usize,
}

impl Answer {
    fn new(status: u16, body: Vec<u8>) -> Self {
        let sent = body.len();
        Self { status, headers: Vec::new(), body, sent }
    }

    fn error(status: u16, code: &str, request: &Request) -> Self {
        // As the real ones do, it says more than anybody should print.
        let quoted: String = request.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        Self::new(
            status,
            format!("<Error><Code>{code}</Code><CanonicalRequest>{quoted}{SECRET}</CanonicalRequest></Error>").into(),
        )
    }
}

fn serve(stream: &TcpStream, content: &Mutex<Content>) {
    let mut input = BufReader::new(stream);
    while let Some(request) = request(&mut input) {
        let range = request.headers.get("range").map_or("", String::as_str);
        let asked: Vec<String> = request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let line = format!("{} {}?{} {range}", request.method, request.path, asked.join("&"));
        let answer = {
            let mut content = content.lock().expect("nobody has failed");
            content.requests.push(line);
            content.answer(&request)
        };
        let Some(answer) = answer else {
            std::thread::sleep(Duration::from_secs(120));
            return;
        };
        let mut head = format!("HTTP/1.1 {} Said\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let body = if request.method == "HEAD" { &[][..] } else { &answer.body[..answer.sent] };
        let mut output = stream;
        let sent = output.write_all(head.as_bytes()).and_then(|()| output.write_all(body));
        if sent.is_err() || answer.sent < answer.body.len() {
            return;
        }
    }
}

const WRITTEN: &str = "2026-11-01T12:00:00.000Z";
const WRITTEN_HTTP: &str = "Sun, 01 Nov 2026 12:00:00 GMT";

fn etag(object: &Object) -> String {
    format!("\"version-{}\"", object.version)
}

impl Content {
    /// What is said to a request; none where nothing is.
    fn answer(&mut self, request: &Request) -> Option<Answer> {
        let (bucket, key) = request.path[1..].split_once('/').unwrap_or((&request.path[1..], ""));
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let lists =
            request.query.contains_key("list-type") || request.query.get("comp").is_some_and(|what| what == "list");
        let prefix = request.query.get("prefix").cloned().unwrap_or_default();
        let named = if lists { format!("?{prefix}") } else { key.clone() };
        match self.fails.get_mut(&named) {
            Some(Fails::With(status, code)) => return Some(Answer::error(*status, code, request)),
            Some(Fails::Times(left, status, code)) if *left > 0 => {
                *left -= 1;
                return Some(Answer::error(*status, code, request));
            }
            Some(Fails::Silent) => return None,
            _ => {}
        }
        let says = request.headers.get("authorization").map_or("", String::as_str);
        if !self.open && !says.contains(KEY) {
            return Some(Answer::error(403, "InvalidAccessKeyId", request));
        }
        if request.headers.get("x-amz-security-token").is_some_and(|token| token.contains("expired")) {
            return Some(Answer::error(400, "ExpiredToken", request));
        }
        if !self.objects.keys().any(|(known, _)| *known == bucket) {
            return Some(Answer::error(404, "NoSuchBucket", request));
        }
        Some(if lists { self.list(&bucket, &prefix, request) } else { self.object(&bucket, &key, request) })
    }

    fn object(&mut self, bucket: &str, key: &str, request: &Request) -> Answer {
        let fails = self.fails.get(key).copied();
        let Some(object) = self.objects.get_mut(&(bucket.to_owned(), key.to_owned())) else {
            return Answer::error(404, "NoSuchKey", request);
        };
        if let Some(range) = request.headers.get("range") {
            object.asked += 1;
            if let Some(Fails::Changes(after) | Fails::Careless(after)) = fails
                && object.asked > after
            {
                object.version = 1_000_000;
            }
            let is_careless = matches!(fails, Some(Fails::Careless(_)));
            if request.headers.get("if-match").is_some_and(|wanted| *wanted != etag(object)) && !is_careless {
                return Answer::error(412, "PreconditionFailed", request);
            }
            let (from, to) = range.trim_start_matches("bytes=").split_once('-').expect("a range");
            let (from, to): (usize, usize) = (from.parse().expect("a number"), to.parse().expect("a number"));
            let to = to.min(object.bytes.len() - 1);
            let mut answer = Answer::new(206, object.bytes[from..=to].to_vec());
            answer.headers = described(object);
            answer.headers.push(("content-range", format!("bytes {from}-{to}/{}", object.bytes.len())));
            if let Some(Fails::Cut(left)) = self.fails.get_mut(key)
                && *left > 0
            {
                *left -= 1;
                answer.sent /= 2;
            }
            return answer;
        }
        let mut answer = Answer::new(200, object.bytes.to_vec());
        answer.headers = described(object);
        answer
    }

    fn list(&self, bucket: &str, prefix: &str, request: &Request) -> Answer {
        let is_azure = request.query.contains_key("comp");
        let after =
            request.query.get(if is_azure { "marker" } else { "continuation-token" }).cloned().unwrap_or_default();
        // What is below a delimiter is one folder; a folder counts as a key does.
        let mut entries: BTreeMap<String, Option<&Object>> = BTreeMap::new();
        for ((_, key), object) in self.objects.iter().filter(|((of, key), _)| of == bucket && key.starts_with(prefix)) {
            match key[prefix.len()..].find('/').filter(|_| request.query.contains_key("delimiter")) {
                Some(at) => entries.insert(key[..=prefix.len() + at].to_owned(), None),
                None => entries.insert(key.clone(), Some(object)),
            };
        }
        let left: Vec<_> = entries.into_iter().filter(|(name, _)| *name > after).collect();
        let more = left.len() > self.page;
        // In no order: nobody may rely on one.
        let page: Vec<_> = left.into_iter().take(self.page).collect();
        let next = page.last().map(|(name, _)| name.clone()).filter(|_| more);
        let said: String = page.iter().rev().map(|(name, object)| entry(name, *object, is_azure)).collect();
        let body = match (is_azure, next) {
            (true, next) => format!(
                "<EnumerationResults><Blobs>{said}</Blobs><NextMarker>{}</NextMarker></EnumerationResults>",
                next.unwrap_or_default()
            ),
            (false, Some(next)) => {
                format!(
                    "<ListBucketResult>{said}<NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>"
                )
            }
            (false, None) => format!("<ListBucketResult>{said}</ListBucketResult>"),
        };
        Answer::new(200, body.into())
    }
}

fn described(object: &Object) -> Vec<(&'static str, String)> {
    vec![("etag", etag(object)), ("last-modified", WRITTEN_HTTP.to_owned())]
}

fn entry(name: &str, object: Option<&Object>, is_azure: bool) -> String {
    match (object, is_azure) {
        (None, false) => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
        (None, true) => format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>"),
        (Some(object), false) => format!(
            "<Contents><Key>{name}</Key><Size>{}</Size><LastModified>{WRITTEN}</LastModified><ETag>{}</ETag></Contents>",
            object.bytes.len(),
            etag(object).replace('"', "&quot;")
        ),
        (Some(object), true) => format!(
            "<Blob><Name>{name}</Name><Properties><Last-Modified>{WRITTEN_HTTP}</Last-Modified><Content-Length>{}</Content-Length>\
             <Content-Type>x</Content-Type><Etag>{}</Etag></Properties></Blob>",
            object.bytes.len(),
            etag(object).trim_matches('"')
        ),
    }
}
