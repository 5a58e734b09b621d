//! Every reason that the core gives says what it is about.

#[cfg(test)]
mod reasons {
    use loggap_core::fit::{FitError, PointError, Requirements};
    use loggap_core::goal::{ANY, ANY_TAG};
    use loggap_core::measure::{Invalid, Phase, PlanError, ServeError, SessionError, StoreError};
    use loggap_core::sim::implicit::ImplicitError;
    use loggap_core::sim::network::{NetworkBuildError, TopologyError};
    use loggap_core::sim::{BuildError, SimError, Unfinished, Unsuitable};
    use loggap_core::sync::{DriftError, PingError};
    use loggap_core::units::Picos;
    use loggap_core::wire::ethernet::FrameError;
    use loggap_core::wire::{Limited, ParseError, ParseErrorKind, Refusal, Versions};

    /// Texts, and what has to stand in them.
    fn say(texts: &[(String, &[&str])]) {
        for (text, parts) in texts {
            for part in *parts {
                assert!(text.contains(part), "{text:?} lacks {part:?}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_samples_and_points_is_said_in_numbers() {
        say(&[
            (StoreError::RowsFull(12).to_string(), &["12 sizes"]),
            (StoreError::CellFull(13).to_string(), &["13 values"]),
            (StoreError::MessagesDiffer(4, 9).to_string(), &["burst of 4", "bursts of 9"]),
            (StoreError::KindsDiffer.to_string(), &["cannot be mixed"]),
            (PlanError::NoSizes.to_string(), &["no message size"]),
            (PlanError::EmptyMessage.to_string(), &["begin with 1"]),
            (PlanError::TooFewMessages(1).to_string(), &["burst of 1", "-n 2"]),
            (PlanError::Memory(40).to_string(), &["40 sizes"]),
            (FitError::NoPoints.to_string(), &["measure some sizes"]),
            (FitError::Order { curve: 1, index: 7, size: 99 }.to_string(), &["point 7", "99 B"]),
            (FitError::Memory(Requirements { nodes: 33 }).to_string(), &["33 nodes"]),
            (PointError::Value.to_string(), &["value", "53 days"]),
            (PointError::Sigma.to_string(), &["standard error", "53 days"]),
        ]);
    }

    #[test]
    fn a_session_that_ends_says_in_which_phase_and_why() {
        type Error = SessionError<&'static str>;
        let (limit, phase) = (Picos(3_000_000_000_000), Phase::Queue);
        let kind = ParseErrorKind::Kind(77);
        let (what, asked, allowed) = (Limited::Message, 1_001, 1_000);
        say(&[
            (Error::Link("unplugged").to_string(), &["unplugged"]),
            (Error::Refused(Refusal::Busy { waiting: 5 }).to_string(), &["refused", "5 others"]),
            (Error::Silent { phase, limit }.to_string(), &["the queue", "3", "loggap serve"]),
            (
                Error::Malformed { phase, error: ParseError { at: 9, kind } }.to_string(),
                &["the queue", "byte 9", "77"],
            ),
            (Error::OutOfOrder { phase, kind: 6 }.to_string(), &["the queue", "kind 6"]),
            (Error::Misplaced { tag: 0x21 }.to_string(), &["0x21"]),
            (Error::OutOfBounds { what, asked, allowed }.to_string(), &["1001", "1000"]),
            (Error::Invalid(Invalid::EmptyMessage).to_string(), &["0 bytes"]),
            (Error::Invalid(Invalid::NoMessages).to_string(), &["0 messages"]),
            (Error::Invalid(Invalid::SeveralReceives).to_string(), &["1 message"]),
            (Error::TooSmall { needed: 456, lent: 7 }.to_string(), &["456", "7"]),
            (ServeError::Link("unplugged").to_string(), &["unplugged"]),
            (ServeError::<&str>::Silent(limit).to_string(), &["initiator", "3"]),
            (ServeError::<&str>::TooSmall { needed: 456, lent: 7 }.to_string(), &["456", "7"]),
        ]);
        let phases = [
            Phase::Handshake,
            Phase::Queue,
            Phase::Batch,
            Phase::Round,
            Phase::Synchronisation,
            Phase::Description,
        ];
        let mut names: Vec<String> = phases.iter().map(Phase::to_string).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), phases.len());
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        let [initiator, responder] =
            [(3, 4), (1, 1)].map(|(lowest, highest)| Versions { lowest, highest });
        let [second, minute] = [1_000_000_000_000, 60_000_000_000_000];
        let time = |what| Refusal::Bounds { what, asked: minute, allowed: second }.to_string();
        let count = |what| Refusal::Bounds { what, asked: 400, allowed: 300 }.to_string();
        say(&[
            (
                Refusal::Version { initiator, responder }.to_string(),
                &["speaks 3 to 4", "responder 1;"],
            ),
            (Refusal::OutOfOrder { kind: 8 }.to_string(), &["kind 8"]),
            (Refusal::Malformed { at: 2 }.to_string(), &["byte 2"]),
            (time(Limited::Pause), &[&Picos(minute).to_string(), &Picos(second).to_string()]),
            (time(Limited::Silence), &[&Picos(minute).to_string(), &Picos(second).to_string()]),
            (time(Limited::Session), &[&Picos(minute).to_string(), &Picos(second).to_string()]),
            (count(Limited::Message), &["400", "300"]),
            (count(Limited::Messages), &["400", "300"]),
            (count(Limited::Rounds), &["400", "300"]),
        ]);
    }

    #[test]
    fn what_is_wrong_with_a_frame_is_said_with_its_place() {
        let error = |kind| ParseError { at: 19, kind }.to_string();
        say(&[
            (error(ParseErrorKind::Truncated(5)), &["byte 19", "5 more"]),
            (error(ParseErrorKind::Magic), &["byte 19", "not loggap"]),
            (error(ParseErrorKind::BodyLength(999)), &["byte 19", "999"]),
            (
                error(ParseErrorKind::Checksum { found: 0xaa, computed: 0xbb }),
                &["byte 19", "aa", "bb"],
            ),
            (error(ParseErrorKind::Kind(50)), &["kind 50"]),
            (error(ParseErrorKind::Version(51)), &["version 51"]),
            (error(ParseErrorKind::Field("messages", 52)), &["messages 52"]),
            (FrameError::Truncated { needed: 60, had: 14 }.to_string(), &["14 bytes", "60"]),
            (FrameError::Foreign { at: 12 }.to_string(), &["byte 12"]),
        ]);
    }

    #[test]
    fn why_clocks_cannot_be_compared_is_said_with_the_times() {
        let [first, second] = [7_000_000, 5_000_000].map(Picos);
        say(&[
            (DriftError::NoOffsets.to_string(), &["no ping"]),
            (
                DriftError::Order { first, second }.to_string(),
                &[&first.to_string(), &second.to_string()],
            ),
            (DriftError::Implausible(2_000_000_000).to_string(), &["2000 us"]),
            (PingError::Backwards(first).to_string(), &[&first.to_string()]),
            (PingError::TooFarApart.to_string(), &["53 days"]),
        ]);
    }

    #[test]
    fn why_a_simulation_does_not_run_or_end_names_rank_and_operation() {
        let (rank, op, from) = (11, 22, 33);
        let waiting = |peer, tag| Unfinished::Waiting { rank, op, peer, tag }.to_string();
        say(&[
            (BuildError::TooManyOps.to_string(), &["2^32"]),
            (BuildError::Full.to_string(), &["memory"]),
            (BuildError::Order { rank }.to_string(), &["rank 11"]),
            (BuildError::UnknownOp { rank, op }.to_string(), &["rank 11", "operation 22"]),
            (BuildError::Peer { rank, op, peer: 9 }.to_string(), &["22", "rank 11", "rank 9"]),
            (BuildError::Peer { rank, op, peer: ANY }.to_string(), &["no rank in particular"]),
            (BuildError::Unit { rank, op }.to_string(), &["operation 22", "rank 11"]),
            (BuildError::Unsuitable(Unsuitable::Units).to_string(), &["windows", "processors"]),
            (Unsuitable::NoLookahead.to_string(), &["o + L is 0"]),
            (Unsuitable::Rendezvous { size: 70 }.to_string(), &["70 bytes"]),
            (Unsuitable::Long { size: 71 }.to_string(), &["71 bytes"]),
            (Unsuitable::TooManyOps.to_string(), &["2^30"]),
            (SimError::Overflow { rank }.to_string(), &["rank 11", "213 days"]),
            (
                SimError::TooManyAtOnce { time: Picos(5) }.to_string(),
                &["2^32", &Picos(5).to_string()],
            ),
            (SimError::NetworkFull { messages: 76 }.to_string(), &["76 messages", "memory"]),
            (NetworkBuildError::Full.to_string(), &["memory"]),
            (NetworkBuildError::Placement { rank }.to_string(), &["rank 11"]),
            (NetworkBuildError::Topology(TopologyError::Zero).to_string(), &["at least 1"]),
            (TopologyError::Capacity.to_string(), &["above 0"]),
            (TopologyError::OddPorts { ports: 77 }.to_string(), &["77"]),
            (TopologyError::Dimensions { dimensions: 78 }.to_string(), &["78", "torus:8x8x8"]),
            (TopologyError::TooLarge.to_string(), &["2^31"]),
            (TopologyError::TooFewHosts { hosts: 79, ranks: 80 }.to_string(), &["79", "80"]),
            (TopologyError::Unknown.to_string(), &["tree:HOSTS:TAPER"]),
            (SimError::Overflow { rank: u32::MAX }.to_string(), &["2^64 ps", "network"]),
            (ImplicitError::from(SimError::Overflow { rank }).to_string(), &["rank 11"]),
            (ImplicitError::NoLookahead.to_string(), &["stored schedule"]),
            (ImplicitError::Rendezvous { size: 72 }.to_string(), &["72 bytes"]),
            (ImplicitError::Protocols.to_string(), &["several protocols"]),
            (ImplicitError::Nodes { lent: 73 }.to_string(), &["73"]),
            (ImplicitError::Memory.to_string(), &["memory"]),
            (ImplicitError::Peer { rank, peer: 74 }.to_string(), &["rank 11", "rank 74"]),
            (ImplicitError::Unreceived { messages: 75 }.to_string(), &["75 messages"]),
            (ImplicitError::Waiting { receives: 76 }.to_string(), &["76 receives"]),
            (
                Unfinished::Unreceived { rank, from, op, tag: 44 }.to_string(),
                &["rank 11", "rank 33", "operation 22", "tag 44"],
            ),
            (waiting(33, 44), &["rank 11", "operation 22", "rank 33", "tag 44"]),
            (waiting(ANY, ANY_TAG), &["rank any", "tag any"]),
            (Unfinished::NeverReady { rank, op }.to_string(), &["operation 22", "rank 11"]),
        ]);
    }
}
