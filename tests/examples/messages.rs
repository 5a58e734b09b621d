//! What messages the algorithms of `loggap best` send: a line for each pair of
//! ranks, with the number of messages and bytes, beside which `tests/mpi/rules`
//! puts what Open MPI sends.
//!
//! ```text
//! cargo run -p loggap-tests --example messages -- RANKS OPERATION [NUMBER:SIZE:SEGMENT | SIZE]...
//! ```
//!
//! A size alone is that of a call by the library's own rules.

use std::collections::BTreeMap;

use loggap::collective::{Call, Chosen, FixedRules, Operation};
use loggap_core::units::PerByte;

/// Messages of a pair.
#[derive(Clone, Copy, Default)]
struct Sent {
    messages: u64,
    bytes: u64,
}

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let ranks: u32 = words.next().and_then(|word| word.parse().ok()).ok_or("RANKS?")?;
    let name = words.next().ok_or("OPERATION?")?;
    let operation = Operation::named(&name).ok_or("no such operation")?;
    let mut pairs: BTreeMap<(u32, u32), Sent> = BTreeMap::new();
    for word in words {
        let numbers: Result<Vec<u64>, _> = word.split(':').map(str::parse).collect();
        let (shape, size, segment) = match numbers.as_deref() {
            Ok(&[number, size, segment]) => {
                let known = operation.algorithms().find(|one| u64::from(one.number) == number);
                (known.ok_or(format!("no algorithm {number}"))?.shape, size, segment)
            }
            Ok(&[size]) => {
                let Chosen { shape, segment, .. } =
                    FixedRules::default().choose(operation, ranks, size);
                (shape, size, segment)
            }
            _ => return Err(format!("'{word}' is neither NUMBER:SIZE:SEGMENT nor SIZE")),
        };
        let call = Call { shape, ranks, size, segment, combine: PerByte::ZERO };
        for rank in 0..ranks {
            for message in call.rounds(rank).into_iter().flat_map(|round| round.sends) {
                let sent = pairs.entry((rank, message.peer)).or_default();
                sent.messages += 1;
                sent.bytes += message.size;
            }
        }
    }
    for ((from, to), Sent { messages, bytes }) in pairs {
        println!("{from} {to} {messages} {bytes}");
    }
    Ok(())
}
