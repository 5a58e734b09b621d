//! Text over HTTP/1.1, for scrapers of metrics.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;

use crate::machine::clock::Deadline;

/// Longest request, bytes.
const LONGEST: usize = 8_192;
/// Most header lines of a request.
const MOST_HEADERS: usize = 64;
/// Time for a request, and for each wait for more of it or for room for the answer; clients are
/// served one after the other.
const PATIENCE: Duration = Duration::from_secs(2);
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `GET /metrics` with the latest text, on a thread of its own that ends with the program.
#[derive(Debug)]
pub(crate) struct Exposition {
    text: Arc<Mutex<String>>,
}

impl Exposition {
    /// Listens on `address`.
    ///
    /// # Errors
    ///
    /// Errors of binding, such as [`io::ErrorKind::AddrInUse`], and of starting a thread.
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let text = Arc::<Mutex<String>>::default();
        let shown = Arc::clone(&text);
        thread::Builder::new().name("openmetrics".to_owned()).spawn(move || {
            // Signals are for the thread that waits for them.
            let _kept = SigSet::all().thread_block();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else {
                    // No descriptor is free: one may be later.
                    thread::sleep(PATIENCE);
                    continue;
                };
                let text = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let _client_left = answer(&mut stream, &text);
            }
        })?;
        Ok(Self { text })
    }

    /// Replaces the text.
    pub(crate) fn show(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn answer(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let deadline = Deadline::after(PATIENCE);
    let mut request = [0; LONGEST];
    let mut length = 0;
    let (status, body) = loop {
        let received = request.get(..length).unwrap_or_default();
        if let Some(status) = status(received) {
            break (status, if status == OK { text } else { status });
        }
        let Some(rest) = request.get_mut(length..).filter(|rest| !rest.is_empty()) else {
            break (TOO_LONG, TOO_LONG);
        };
        match stream.read(rest)? {
            0 => return Ok(()),
            _ if deadline.expired() => return Err(io::ErrorKind::TimedOut.into()),
            read => length += read,
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {length}\r\n\
         Allow: GET\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

const OK: &str = "200 OK";
const TOO_LONG: &str = "431 Request Header Fields Too Large";

/// Status of the answer to a request; `None` while it is not complete.
fn status(request: &[u8]) -> Option<&'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = match parsed.parse(request) {
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => TOO_LONG,
        Err(_) => "400 Bad Request",
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split_once('?').map_or(path, |(path, _)| path);
            match (parsed.method, path) {
                (Some("GET"), "/metrics") => OK,
                (_, "/metrics") => "405 Method Not Allowed",
                _ => "404 Not Found",
            }
        }
    };
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_request_for_the_metrics_is_answered_with_them() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n", Some(OK)),
            ("GET /metrics?now HTTP/1.0\r\n\r\n", Some(OK)),
            ("GET /metrics HTTP/1.1\r\nHost: here\r\n", None),
            ("", None),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some("405 Method Not Allowed")),
            ("GET / HTTP/1.1\r\n\r\n", Some("404 Not Found")),
            ("\0\0\0\0", Some("400 Bad Request")),
        ] {
            assert_eq!(status(request.as_bytes()), expected, "{request:?}");
        }
        let headers = "a: b\r\n".repeat(MOST_HEADERS + 1);
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
        assert_eq!(status(request.as_bytes()), Some(TOO_LONG));
    }
}
