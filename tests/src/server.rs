//! A server under test, and clients that speak to it by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use loggap_core::wire::{Bounds, FRAME_LEN, Hello, Message, Versions};
use nix::sys::signal::Signal;

use crate::command::{PATIENCE, loggap, loggap_process, send};

/// `loggap serve`, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    /// What carries the messages.
    pub transport: String,
    /// Where it listens.
    pub endpoint: String,
}

impl Server {
    /// A server with these arguments, when it listens.
    #[must_use]
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = loggap_process();
        command.arg("serve").args(arguments).stderr(Stdio::null());
        Self::run(command)
    }

    /// A server by any command that runs one.
    #[must_use]
    pub fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let line = lines.recv_timeout(PATIENCE).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["listening", transport, endpoint] = words[..] else { panic!("{line}") };
        let (transport, endpoint) = (transport.to_owned(), endpoint.to_owned());
        Self { child, lines, transport, endpoint }
    }

    /// A TCP server of this machine on a port of its own.
    #[must_use]
    pub fn tcp(arguments: &[&str]) -> Self {
        Self::start(&[&["--bind", "127.0.0.1", "-p", "0"], arguments].concat())
    }

    /// What it says next: a line per client.
    #[must_use]
    pub fn next_line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Its process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end and says how it ended.
    #[must_use]
    pub fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// What it has said on standard error, which was piped, once it ends.
    #[must_use]
    pub fn killed(mut self) -> String {
        let mut talk = self.child.stderr.take().unwrap();
        self.child.kill().unwrap();
        let mut said = String::new();
        talk.read_to_string(&mut said).unwrap();
        said
    }

    /// What Ctrl-C sends.
    pub fn interrupt(&self) {
        send(Signal::SIGINT, self.child.id());
    }

    /// A short measurement with this server, as JSON.
    #[must_use]
    pub fn measure(&self) -> assert_cmd::Command {
        let mut command = loggap();
        command.args(["measure", "--transport", &self.transport, &self.endpoint]);
        command.args(["-s", "1,64", "--max-time", "0.5", "-J"]);
        command
    }

    /// A client that says nothing yet.
    #[must_use]
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.endpoint).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A client that is being served.
    #[must_use]
    pub fn connect_and_say_hello(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&hello(Versions::OURS, 0)).unwrap();
        // The server may not be done with the client before.
        let mut answer = read(&mut stream);
        while matches!(answer, Message::Queue { .. }) {
            answer = read(&mut stream);
        }
        assert!(matches!(answer, Message::Welcome(_)), "{answer:?}");
        stream
    }
}

/// Lines as they are written, so that one that never comes is no hang.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (line, lines) = mpsc::channel();
    thread::spawn(move || {
        let read = BufReader::new(output).lines().map_while(Result::ok);
        read.map(|text| line.send(text)).all(|sent| sent.is_ok())
    });
    lines
}

/// A control frame on the wire.
#[must_use]
pub fn frame(message: &Message) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame
}

/// A hello of a client that speaks these versions, and that was sent this nonce.
#[must_use]
pub fn hello(versions: Versions, nonce: u64) -> [u8; FRAME_LEN] {
    let bounds = Bounds::default();
    frame(&Message::Hello(Hello { versions, capabilities: 0, bounds, nonce }))
}

/// The next control frame.
pub fn read(stream: &mut TcpStream) -> Message {
    let mut frame = [0; FRAME_LEN];
    stream.read_exact(&mut frame).unwrap();
    Message::parse(&frame).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}
