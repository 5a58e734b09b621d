//! Taking connections whose messages go by RDMA verbs.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::{AllowedAddresses, Arrival, TurnedAway, pending};
use crate::link::{AnyLink, LinkSettings, OFFER, VerbsLink, begins_an_offer};
use crate::machine::clock::Deadline;

/// How long a client may take to send its connection data.
const OFFER_LIMIT: Duration = Duration::from_secs(5);
/// Clients that may be doing so at a time.
const MOST_PENDING: usize = 64;

/// A port at which initiators say what they have and want.
#[derive(Debug)]
pub(super) struct VerbsListener {
    listener: TcpListener,
    /// Those whose connection data have not come whole.
    pending: Vec<Pending>,
    /// Readable when the listener is or one of them.
    events: Epoll,
}

#[derive(Debug)]
struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    offer: [u8; OFFER],
    length: usize,
    deadline: Deadline,
}

impl VerbsListener {
    pub(super) fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        events.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        Ok((Self { listener, pending: Vec::new(), events }, bound))
    }

    /// A client that is connected, or one that could not be.
    pub(super) fn accept(
        &mut self,
        allowed: &AllowedAddresses,
        settings: LinkSettings,
    ) -> io::Result<Option<Arrival>> {
        for _ in 0..super::MOST_AT_ONCE {
            let Some((stream, address)) = pending(self.listener.accept())? else { break };
            if !allowed.contain(address.ip()) {
                return Ok(Some(Arrival::TurnedAway(TurnedAway::not_allowed(address))));
            }
            if self.pending.len() >= MOST_PENDING {
                let reason = "too many clients send connection data".to_owned();
                let peer = address.to_string();
                return Ok(Some(Arrival::TurnedAway(TurnedAway { peer, reason })));
            }
            stream.set_nonblocking(true)?;
            self.events.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
            let deadline = Deadline::after(OFFER_LIMIT);
            self.pending.push(Pending { stream, address, offer: [0; OFFER], length: 0, deadline });
        }
        self.pending.retain_mut(|client| !client.deadline.expired() && client.read());
        let foreign = self.pending.iter().position(|client| !begins_an_offer(client.bytes()));
        if let Some(index) = foreign {
            let Pending { stream, address, .. } = self.pending.swap_remove(index);
            self.events.delete(&stream)?;
            let reason = "it wants another transport; --transport verbs there".to_owned();
            return Ok(Some(Arrival::TurnedAway(TurnedAway { peer: address.to_string(), reason })));
        }
        let whole = self.pending.iter().position(|client| client.length == OFFER);
        let Some(index) = whole else { return Ok(None) };
        let Pending { stream, address, offer, .. } = self.pending.swap_remove(index);
        self.events.delete(&stream)?;
        let peer = address.to_string();
        Ok(Some(match VerbsLink::answer(stream, &offer, peer.clone(), settings) {
            Ok(link) => Arrival::Client(AnyLink::Verbs(Box::new(link))),
            Err(error) => Arrival::TurnedAway(TurnedAway { peer, reason: error.to_string() }),
        }))
    }
}

impl Pending {
    /// What has come of its offer.
    fn bytes(&self) -> &[u8] {
        self.offer.get(..self.length).unwrap_or_default()
    }

    /// Reads what has come; false when the client has left.
    fn read(&mut self) -> bool {
        let rest = self.offer.get_mut(self.length..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        match self.stream.read(rest) {
            Ok(0) => false,
            Ok(bytes) => {
                self.length += bytes;
                true
            }
            Err(error) => {
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
            }
        }
    }
}

impl AsFd for VerbsListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.0.as_fd()
    }
}
