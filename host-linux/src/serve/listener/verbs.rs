//! Listener for links over RDMA verbs.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::{AllowedAddresses, Arrival, TurnedAway, pending};
use crate::link::{AnyLink, LinkSettings, OFFER, VerbsLink, begins_an_offer, canonical};
use crate::machine::clock::Deadline;

/// Time limit for a client's connection data.
const OFFER_LIMIT: Duration = Duration::from_secs(5);
/// Most clients whose connection data are incomplete.
const MOST_PENDING: usize = 64;

/// TCP port on which initiators offer their queue pairs.
#[derive(Debug)]
pub(super) struct VerbsListener {
    listener: TcpListener,
    /// Clients whose connection data are incomplete.
    pending: Vec<Pending>,
    /// Readable when the listener or one of these clients is.
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

    /// Next connected client, or a failed one.
    pub(super) fn accept(
        &mut self,
        allowed: &AllowedAddresses,
        settings: LinkSettings,
    ) -> io::Result<Option<Arrival>> {
        for _ in 0..super::MOST_AT_ONCE {
            let Some((stream, address)) = pending(self.listener.accept())? else { break };
            let address = canonical(address);
            stream.set_nonblocking(true)?;
            let refused = if !allowed.contain(address.ip()) {
                Some(TurnedAway::not_allowed(address))
            } else if self.pending.len() >= MOST_PENDING {
                let reason = "too many clients send connection data".to_owned();
                Some(TurnedAway { peer: address.to_string(), reason })
            } else {
                None
            };
            if let Some(refused) = refused {
                VerbsLink::refuse(&stream, &refused.reason);
                return Ok(Some(Arrival::TurnedAway(refused)));
            }
            self.events.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
            let deadline = Deadline::after(OFFER_LIMIT);
            self.pending.push(Pending { stream, address, offer: [0; OFFER], length: 0, deadline });
        }
        self.pending.retain_mut(Pending::read);
        if let Some((index, reason)) = self.first_useless() {
            let Pending { stream, address, .. } = self.pending.swap_remove(index);
            self.events.delete(&stream)?;
            let (peer, reason) = (address.to_string(), reason.to_owned());
            return Ok(Some(Arrival::TurnedAway(TurnedAway { peer, reason })));
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

impl VerbsListener {
    /// First client that will not complete an offer, and the reason.
    fn first_useless(&self) -> Option<(usize, &'static str)> {
        let reason = |client: &Pending| {
            if !begins_an_offer(client.bytes()) {
                Some("it sent no offer of a queue pair: it needs --transport verbs")
            } else if client.length < OFFER && client.deadline.expired() {
                Some("its connection data did not come whole within 5 s")
            } else {
                None
            }
        };
        self.pending.iter().enumerate().find_map(|(index, client)| Some((index, reason(client)?)))
    }
}

impl Pending {
    /// Part of the offer received so far.
    fn bytes(&self) -> &[u8] {
        self.offer.get(..self.length).unwrap_or_default()
    }

    /// Reads available bytes; false if the client has closed the connection.
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
