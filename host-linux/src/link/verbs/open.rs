//! Connects two ends over a control connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use loggap_core::wire::FRAME_LEN;
use nix::poll::PollFlags;
use nix::sys::socket::{setsockopt, sockopt};

use super::error::VerbsError;
use super::link::{Parts, RemoteMemory, VerbsLink};
use super::offer::{AUTO_INLINE, Answer, LENGTH, Offer, StationData, Unusable, printable};
use super::one_sided::OneSided;
use super::record::{VerbsPort, VerbsRecord};
use super::settings::{DeviceName, Operation, VerbsSettings};
use super::station::{Layout, Purpose, Station, memory_to_lend};
use crate::link::stream::wait_bounded;
use crate::link::{LinkError, LinkSettings, TcpLink, Transport, Waiting};
use crate::machine::clock::Deadline;

/// Largest packet payload of any kind of port, bytes.
const LARGEST_PACKET: u32 = 4_096;

/// Length of an offer, bytes.
pub(crate) const OFFER: usize = LENGTH;

impl VerbsLink {
    /// Connects to the responder at `address`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if the peer does not accept within the limit of `settings`,
    /// [`LinkError::Verbs`] for errors of RDMA.
    pub fn connect(address: SocketAddr, settings: LinkSettings) -> Result<Self, LinkError> {
        // Report local errors before the peer is contacted.
        let prepared = Prepared::new(&settings)?;
        let peer = address.to_string();
        let control = TcpStream::connect_timeout(&address, settings.limit).map_err(|source| {
            LinkError::Connect { transport: Transport::Verbs, peer: peer.clone(), source }
        })?;
        prepared.connect_over(control, peer, settings)
    }

    /// Connects to the responder at the other end of `control`.
    ///
    /// # Errors
    ///
    /// As for [`VerbsLink::connect`].
    pub fn connect_over(
        control: TcpStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        Prepared::new(&settings)?.connect_over(control, peer, settings)
    }

    /// Opens the device named by `settings` and closes it again, to check whether a responder could
    /// use it; returns its port.
    ///
    /// # Errors
    ///
    /// [`LinkError::Verbs`] for errors of device, port or address.
    pub fn look_at_port(settings: LinkSettings) -> Result<VerbsPort, LinkError> {
        let (operation, layout) = (Operation::Send, Layout::new(2, 64, 0));
        let purpose = Purpose { operation, layout, inline: Some(0), events: false };
        Ok(Station::open(&settings.verbs, purpose)?.record)
    }

    /// Waits for the offer of the initiator at the other end of `control`, and answers it.
    ///
    /// # Errors
    ///
    /// As for [`VerbsLink::connect`].
    pub fn answer_over(
        mut control: TcpStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let mut offer = [0; LENGTH];
        control
            .set_nonblocking(true)
            .and_then(|()| read_within(&mut control, &mut offer, settings.limit))
            .map_err(|error| LinkError::from_io(&peer, "receiving connection data", error))?;
        Self::answer(control, &offer, peer, settings)
    }

    /// Sends the reason to a client that is not served. Nothing was sent before, so the message
    /// fits into the socket's buffer.
    pub(crate) fn refuse(mut control: &TcpStream, reason: &str) {
        let _told_less_well = control.write_all(&Answer::Refused(reason.to_owned()).to_bytes());
    }

    /// Answers an offer received over `control`. A refusal is sent to the peer and returned as an
    /// error.
    pub(crate) fn answer(
        control: TcpStream,
        offer: &[u8; LENGTH],
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let mut offer = match Offer::from_bytes(offer) {
            Ok(offer) => offer,
            Err(unusable) => {
                Self::refuse(&control, &refusal(unusable));
                return Err(unusable.of(&peer).into());
            }
        };
        let opened = settle(&offer, &settings);
        let (station, mtu) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                Self::refuse(&control, &error.to_string());
                return Err(error.into());
            }
        };
        offer.longest = longest(offer.operation, offer.longest, mtu);
        let (data, depth) = (station.data(), station.depth());
        let answer = Answer::Connected { mtu, station: data, depth, port: station.described() };
        (&control)
            .write_all(&answer.to_bytes())
            .map_err(|error| LinkError::from_io(&peer, "sending connection data", error))?;
        let control = quiet(control, &peer)?;
        let record = record(&offer, mtu, &offer.port, &settings);
        let join = Join { control, peer, settings, offer: &offer, one_sided: None };
        Ok(join.link(station, offer.station, record))
    }
}

impl Unusable {
    /// Error for the connection data of `peer`.
    fn of(self, peer: &str) -> VerbsError {
        let peer = peer.to_owned();
        match self {
            Self::Foreign => VerbsError::Foreign { peer },
            Self::Version => VerbsError::Version { peer },
            Self::Wrong(what) => VerbsError::Asked { peer, what },
        }
    }
}

/// Reason to send to an initiator whose offer is unusable.
fn refusal(unusable: Unusable) -> String {
    match unusable {
        Unusable::Foreign | Unusable::Version => {
            "that is no offer of this version; use the same version of loggap on both ends".into()
        }
        Unusable::Wrong(what) => format!("the offer asks for {what}"),
    }
}

/// The initiator's station, open but not connected, and its offer to the responder.
struct Prepared {
    station: Station,
    offer: Offer,
}

impl Prepared {
    /// Opens the local station and builds the offer.
    fn new(settings: &LinkSettings) -> Result<Self, VerbsError> {
        let verbs = &settings.verbs;
        let operation = verbs.operation.unwrap_or(Operation::Send);
        let events = settings.waiting == Waiting::Block;
        if events && matches!(operation, Operation::Write | Operation::Read) {
            return Err(VerbsError::Events { operation });
        }
        let mut most = at_least_a_frame(verbs.longest_message);
        if operation == Operation::Datagram {
            most = most.min(LARGEST_PACKET);
        }
        let layout = Layout::new(verbs.depth, most, memory_to_lend());
        let purpose = Purpose { operation, layout, inline: verbs.inline, events };
        let station = Station::open(verbs, purpose)?;
        let mtu = mtu(verbs, &station)?;
        let depth = station.depth();
        let offer = Offer {
            operation,
            mtu,
            mtu_asked: verbs.mtu.is_some(),
            service_level: verbs.service_level,
            traffic_class: verbs.traffic_class,
            depth,
            longest: longest(operation, most, mtu),
            inline: verbs.inline.unwrap_or(AUTO_INLINE),
            signal_every: signal_every(operation, verbs.signal_every, depth),
            station: station.data(),
            port: station.described(),
        };
        Ok(Self { station, offer })
    }

    /// Sends the offer over `control` and connects the station to the peer that answers.
    fn connect_over(
        self,
        mut control: TcpStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<VerbsLink, LinkError> {
        let Self { mut station, mut offer } = self;
        let mut bytes = [0; LENGTH];
        let exchanged = control
            .set_nonblocking(true)
            // Nothing was sent before, so the offer fits into the socket's buffer.
            .and_then(|()| control.write_all(&offer.to_bytes()))
            .and_then(|()| read_within(&mut control, &mut bytes, settings.limit));
        exchanged.map_err(|source| match source.kind() {
            // A responder of another transport closes the connection because of the unknown data.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                VerbsError::Foreign { peer: peer.clone() }.into()
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                VerbsError::Unanswered { peer: peer.clone(), limit: settings.limit }.into()
            }
            _ => LinkError::from_io(&peer, "exchanging connection data", source),
        })?;
        let answer = Answer::from_bytes(&bytes, &offer).map_err(|unusable| unusable.of(&peer))?;
        let (mtu, theirs, depth, port) = match answer {
            Answer::Connected { mtu, station, depth, port } => (mtu, station, depth, port),
            Answer::Refused(reason) => return Err(VerbsError::Refused { peer, reason }.into()),
        };
        station.connect(&theirs, depth, mtu, &offer)?;
        offer.longest = longest(offer.operation, offer.longest, mtu);
        offer.signal_every = signal_every(offer.operation, settings.verbs.signal_every, depth);
        let control = quiet(control, &peer)?;
        let one_sided =
            (offer.operation == Operation::Read).then(|| Box::new(OneSided::new(offer.longest)));
        let record = record(&offer, mtu, &port, &settings);
        let join = Join { control, peer, settings, offer: &offer, one_sided };
        Ok(join.link(station, theirs, record))
    }
}

/// Requested packet payload, or that of the port, bytes.
fn mtu(verbs: &VerbsSettings, station: &Station) -> Result<u16, VerbsError> {
    let active = station.port.mtu;
    match verbs.mtu {
        None => Ok(active),
        Some(asked) if asked <= active => Ok(asked),
        Some(asked) => Err(VerbsError::Mtu {
            asked,
            active,
            whose: format!("{} at this end", station.record.device),
        }),
    }
}

/// Number of sends for each completion.
fn signal_every(operation: Operation, asked: Option<u16>, depth: u16) -> u16 {
    match operation {
        // The slot of a datagram becomes free when its completion is known.
        Operation::Datagram => 1,
        _ => asked.unwrap_or(depth / 4).clamp(1, depth),
    }
}

/// Length limit raised to that of a control frame, which is a message too.
const fn at_least_a_frame(longest: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "a few dozen bytes")]
    const FRAME: u32 = FRAME_LEN as u32;
    if longest < FRAME { FRAME } else { longest }
}

/// Longest message; a datagram is limited to one packet.
fn longest(operation: Operation, asked: u32, mtu: u16) -> u32 {
    match operation {
        Operation::Datagram => asked.min(mtu.into()),
        _ => asked,
    }
}

/// Fills `bytes`, within `limit` in total.
fn read_within(control: &mut TcpStream, bytes: &mut [u8], limit: Duration) -> io::Result<()> {
    let deadline = Deadline::after(limit);
    let mut rest = bytes;
    while !rest.is_empty() {
        match control.read(rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => rest = rest.get_mut(read..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_bounded(control.as_fd(), PollFlags::POLLIN)?;
            }
            Err(error) => return Err(error),
        }
        if !rest.is_empty() && deadline.expired() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// Opens the responder's station and connects it to the peer that made the offer; returns also the
/// common packet payload.
fn settle(offer: &Offer, settings: &LinkSettings) -> Result<(Station, u16), VerbsError> {
    let verbs = &settings.verbs;
    if let Some(served) = verbs.operation.filter(|served| *served != offer.operation) {
        return Err(VerbsError::Operation { served, asked: offer.operation });
    }
    let (asked, allowed) = (offer.longest, at_least_a_frame(verbs.longest_message));
    if asked > allowed {
        return Err(VerbsError::Longest { asked, allowed });
    }
    let one_sided = matches!(offer.operation, Operation::Write | Operation::Read);
    let purpose = Purpose {
        operation: offer.operation,
        layout: Layout::new(offer.depth, offer.longest, memory_to_lend()),
        inline: (offer.inline != AUTO_INLINE).then_some(offer.inline),
        events: settings.waiting == Waiting::Block && !one_sided,
    };
    let mut station = Station::open(verbs, purpose)?;
    let active = station.port.mtu;
    if offer.mtu_asked && offer.mtu > active {
        let whose = format!("{} at the responder", station.record.device);
        return Err(VerbsError::Mtu { asked: offer.mtu, active, whose });
    }
    let mtu = offer.mtu.min(active);
    station.connect(&offer.station, offer.depth, mtu, offer)?;
    Ok((station, mtu))
}

/// Prepares the control connection for its remaining use: to show that the peer has closed it, or,
/// by keep-alive, that its machine is gone.
fn quiet(control: TcpStream, peer: &str) -> Result<TcpStream, LinkError> {
    /// Seconds of silence before the first keep-alive probe, and between probes.
    const SILENCE: u32 = 10;
    /// Unanswered keep-alive probes until the connection fails.
    const QUESTIONS: u32 = 3;
    let kept = setsockopt(&control, sockopt::TcpKeepIdle, &SILENCE)
        .and_then(|()| setsockopt(&control, sockopt::TcpKeepInterval, &SILENCE))
        .and_then(|()| setsockopt(&control, sockopt::TcpKeepCount, &QUESTIONS))
        .and_then(|()| setsockopt(&control, sockopt::KeepAlive, &true));
    kept.map_err(|error| LinkError::from_io(peer, "setting SO_KEEPALIVE", error.into()))?;
    // TCP_NODELAY and non-blocking, as for every TCP connection of this program.
    let settings = LinkSettings { limit: Duration::from_secs(1), ..LinkSettings::default() };
    let link = TcpLink::from_stream(control, settings)?.named(peer.to_owned());
    Ok(link.into_stream())
}

/// Everything that a link is made of, besides the station.
struct Join<'a> {
    control: TcpStream,
    peer: String,
    settings: LinkSettings,
    offer: &'a Offer,
    one_sided: Option<Box<OneSided>>,
}

impl Join<'_> {
    fn link(self, station: Station, theirs: StationData, record: VerbsRecord) -> VerbsLink {
        let depth = station.depth();
        let Station { queue, layout, record: here, .. } = station;
        let operation = self.offer.operation;
        VerbsLink::of(Parts {
            queue,
            control: self.control,
            peer: self.peer,
            settings: self.settings,
            operation,
            layout,
            longest: self.offer.longest,
            remote: RemoteMemory { address: theirs.address, key: theirs.key },
            signal_every: self.offer.signal_every,
            one_sided: self.one_sided,
            record: VerbsRecord { here, depth, ..record },
        })
    }
}

fn record(offer: &Offer, mtu: u16, peer: &str, settings: &LinkSettings) -> VerbsRecord {
    VerbsRecord {
        operation: offer.operation.name().to_owned(),
        mtu_bytes: mtu,
        // Inline size, depth and registered bytes are filled in by the link.
        inline_bytes: offer.inline,
        depth: 0,
        signal_every: offer.signal_every,
        service_level: offer.service_level,
        traffic_class: offer.traffic_class,
        events: settings.waiting == Waiting::Block,
        registered_bytes: 0,
        calls: Vec::new(),
        here: VerbsPort::default(),
        there: port_of_peer(peer),
    }
}

/// Parses the peer's description of its port, in JSON. Unknown fields, as other versions may have,
/// are ignored.
fn port_of_peer(json: &str) -> VerbsPort {
    let port: VerbsPort = serde_json::from_str(json).unwrap_or_default();
    VerbsPort {
        device: DeviceName::new(&port.device).map_or_else(String::new, |_| port.device),
        firmware: printable(&port.firmware),
        link_layer: printable(&port.link_layer),
        interface: port.interface.as_deref().map(printable),
        ..port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_port_of_the_peer_has_nothing_that_acts_on_a_terminal() {
        let json = r#"{"device":"mlx5_0","port":1,"firmware":"20\u001b[2J","link_layer":"a\rb",
            "rate_bits_per_s":null,"mtu_bytes":1024,"numa_node":null,"interface":"e\nns\u202e1",
            "gid_index":3}"#;
        let port = port_of_peer(json);
        assert_eq!((port.device.as_str(), port.firmware.as_str()), ("mlx5_0", "20?[2J"));
        assert_eq!((port.link_layer.as_str(), port.interface.as_deref()), ("a?b", Some("e?ns?1")));
        assert_eq!(port_of_peer(&json.replace("mlx5_0", "mlx5\\u0007")).device, "");
        assert_eq!(port_of_peer("no JSON"), VerbsPort::default());
    }

    #[test]
    fn a_peer_that_sends_byte_after_byte_has_the_limit_for_all_of_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut control, _) = listener.accept().unwrap();
        control.set_nonblocking(true).unwrap();
        slow.write_all(&[7; 10]).unwrap();
        let whole = read_within(&mut control, &mut [0; 10], Duration::from_secs(10));
        assert!(whole.is_ok(), "{whole:?}");
        // Sends until the reader gives up.
        let sender = thread::spawn(move || {
            while slow.write_all(&[7]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let late = read_within(&mut control, &mut [0; LENGTH], Duration::from_millis(200));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(control);
        sender.join().unwrap();
    }
}
