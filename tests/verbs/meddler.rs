//! Stands between two ends while they exchange connection data, and changes single
//! bytes of what they say. After that it is silent, and leaves when the client does;
//! or it says a byte to the target after half a second, or stays for so many seconds longer than the client,
//! and leaves when the target does.
//!
//!     meddler PORT TARGET [offer|answer OFFSET XOR]... [then say BYTE|then hold SECONDS]
//!
//! Built by `rustc` alone; see `tests/verbs/check`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Bytes of an offer and of an answer (`host-linux/src/link/verbs/offer.rs`).
const LENGTH: usize = 1_024;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, target, changes @ ..] = words.as_slice() else {
        eprintln!(
            "meddler PORT TARGET [offer|answer OFFSET XOR]... [then say BYTE|then hold SECONDS]"
        );
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let listener = TcpListener::bind(("127.0.0.1", number(port) as u16)).expect("listen");
    println!("listening");
    let (mut client, _) = listener.accept().expect("a client");
    let mut server = TcpStream::connect(target).expect("a server");
    pass(&mut client, &mut server, ("offer", changes));
    pass(&mut server, &mut client, ("answer", changes));
    let then = changes.chunks_exact(3).find(|change| change[0] == "then");
    match then.map(|then| (then[1].as_str(), number(&then[2]))) {
        None => {
            let _left = client.read(&mut [0]);
        }
        Some(("say", byte)) => {
            // While messages travel.
            thread::sleep(Duration::from_millis(500));
            server.write_all(&[byte as u8]).expect("a byte");
            wait_for(&mut server, 30);
        }
        Some(("hold", seconds)) => {
            let _left = client.read(&mut [0]);
            wait_for(&mut server, seconds as u64);
        }
        Some((other, _)) => panic!("then {other}"),
    }
}

/// Waits until the target closes, for at most `seconds`.
fn wait_for(server: &mut TcpStream, seconds: u64) {
    server.set_read_timeout(Some(Duration::from_secs(seconds))).expect("a limit");
    match server.read(&mut [0]) {
        Ok(0) => println!("the target closed"),
        other => println!("the target did not close: {other:?}"),
    }
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, (which, changes): (&str, &[String])) {
    let mut bytes = [0; LENGTH];
    from.read_exact(&mut bytes).expect("connection data");
    for change in changes.chunks_exact(3).filter(|change| change[0] == which) {
        let offset: usize = change[1].parse().expect("a number");
        bytes[offset] ^= change[2].parse::<u8>().expect("a byte");
    }
    to.write_all(&bytes).expect("connection data");
}
