//! Stands between two ends while they exchange connection data, and changes single
//! bytes of what they say.
//!
//!     meddler PORT TARGET [offer|answer OFFSET XOR]...
//!
//! Built by `rustc` alone; see `tests/verbs/check`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Bytes of an offer and of an answer (`host-linux/src/link/verbs/offer.rs`).
const LENGTH: usize = 1_024;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, target, changes @ ..] = words.as_slice() else {
        eprintln!("meddler PORT TARGET [offer|answer OFFSET XOR]...");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let listener = TcpListener::bind(("127.0.0.1", number(port) as u16)).expect("listen");
    println!("listening");
    let (mut client, _) = listener.accept().expect("a client");
    let mut server = TcpStream::connect(target).expect("a server");
    pass(&mut client, &mut server, ("offer", changes));
    pass(&mut server, &mut client, ("answer", changes));
    // Nothing more is said; whoever leaves takes the other along.
    let _ends = client.read(&mut [0]);
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
