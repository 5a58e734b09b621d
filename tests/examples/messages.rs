//! What messages the algorithms of `loggap best` send: a line for each pair of
//! ranks, with the number of messages and bytes, beside which `tests/mpi/rules`
//! puts what Open MPI sends.
//!
//! ```text
//! cargo run -p loggap-tests --example messages -- RANKS OPERATION [NUMBER:SIZE:SEGMENT]...
//! ```

use std::collections::BTreeMap;

use loggap::collective::{Call, Operation};
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
    let operation = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    let operation = operation.ok_or("no such operation")?;
    let mut pairs: BTreeMap<(u32, u32), Sent> = BTreeMap::new();
    for word in words {
        let numbers: Result<Vec<u64>, _> = word.split(':').map(str::parse).collect();
        let Ok([number, size, segment]) = numbers.as_deref() else {
            return Err(format!("'{word}' is not NUMBER:SIZE:SEGMENT"));
        };
        let algorithm = operation.algorithms().find(|one| u64::from(one.number) == *number);
        let shape = algorithm.ok_or(format!("no algorithm {number}"))?.shape;
        let call = Call { shape, ranks, size: *size, segment: *segment, combine: PerByte::ZERO };
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
