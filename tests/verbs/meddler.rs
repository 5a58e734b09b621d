//! Stands between two ends while they exchange connection data, and changes one
//! byte of what one of them says.
//!
//!     meddler PORT TARGET offer|answer OFFSET XOR
//!
//! Built by `rustc` alone; see `tests/verbs/check`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Bytes of an offer and of an answer (`host-linux/src/link/verbs/offer.rs`).
const LENGTH: usize = 1_024;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, target, which, offset, xor] = words.as_slice() else {
        eprintln!("meddler PORT TARGET offer|answer OFFSET XOR");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let change = (number(offset), u8::try_from(number(xor)).expect("a byte"));
    let listener = TcpListener::bind(("127.0.0.1", number(port) as u16)).expect("listen");
    println!("listening");
    let (mut client, _) = listener.accept().expect("a client");
    let mut server = TcpStream::connect(target).expect("a server");
    pass(&mut client, &mut server, (which == "offer").then_some(change));
    pass(&mut server, &mut client, (which == "answer").then_some(change));
    // Nothing more is said; whoever leaves takes the other along.
    let _ends = client.read(&mut [0]);
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, change: Option<(usize, u8)>) {
    let mut bytes = [0; LENGTH];
    from.read_exact(&mut bytes).expect("connection data");
    if let Some((offset, xor)) = change {
        bytes[offset] ^= xor;
    }
    to.write_all(&bytes).expect("connection data");
}
