//! Processes of this machine that take part.

use std::thread;

use loggap_core::measure::{Clock, SessionError};
use loggap_core::units::Picos;

use super::{Activity, End, Plan, Role, Shape, common_gap};
use crate::link::{AnyLink, HostLink, LinkError, Transport};
use crate::machine::clock::HostClock;
use crate::machine::placement::{self, Closeness, Cpu, Topology};
use crate::serve::local::{Process, Responder};
use crate::terminal::CliError;

/// One processor of each core that this process may use: threads of a core share its execution
/// units.
pub(crate) fn processors() -> Vec<Cpu> {
    let allowed = placement::allowed();
    let topology = Topology::of(&allowed);
    let mut cores: Vec<Cpu> = Vec::new();
    for cpu in allowed {
        let is_sibling = |core: &Cpu| topology.closeness(*core, cpu) == Closeness::Siblings;
        if !cores.iter().any(is_sibling) {
            cores.push(cpu);
        }
    }
    cores
}

/// Runs between this process and others that it starts.
#[derive(Debug)]
pub(crate) struct Local<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) transport: Transport,
    /// Processors, in turn; the first is this process's.
    pub(crate) cpus: Vec<Cpu>,
}

impl Local<'_> {
    /// Gap of a run of `shape` with `k` processes. This process is the one of many, or holds the
    /// requesters of all pairs, each in a thread.
    pub(crate) fn run(&self, shape: Shape, k: u32) -> Result<Option<Picos>, CliError> {
        let (ours, theirs) = match shape {
            Shape::ManyToOne => (self.plan.replier(), self.plan.requester()),
            Shape::OneToMany | Shape::Pairs => (self.plan.requester(), self.plan.replier()),
        };
        let mut cpus = self.cpus.iter().copied().cycle();
        let own = cpus.next();
        let start = |_| self.start(theirs, cpus.next());
        let started: Result<Vec<_>, CliError> = (0..k).map(start).collect();
        let (mut links, processes): (Vec<AnyLink>, Vec<Process>) = started?.into_iter().unzip();
        let clock = HostClock::monotonic_raw();
        let origin = clock.now();
        let end = |links: &mut [AnyLink], cpu: Option<Cpu>| {
            // Failure costs time, and shows in the interval.
            let _unpinned = cpu.map(placement::pin);
            let links: Vec<&mut dyn HostLink> = links.iter_mut().map(|link| &mut **link).collect();
            End::new(clock, links, ours, self.plan.size, origin).run()
        };
        let activities = match shape {
            Shape::ManyToOne | Shape::OneToMany => end(&mut links, own),
            Shape::Pairs => thread::scope(|scope| {
                let threads: Vec<_> = (links.chunks_mut(1))
                    .map(|link| (link, cpus.next()))
                    .map(|(link, cpu)| scope.spawn(move || end(link, cpu)))
                    .collect();
                let mut all: Result<Vec<Activity>, SessionError<LinkError>> = Ok(Vec::new());
                for thread in threads {
                    let one = thread.join().unwrap_or_else(|_panic| Ok(Vec::new()));
                    all = all.and_then(|all| Ok([all, one?].concat()));
                }
                all
            }),
        };
        drop(links);
        let activities = activities.map_err(CliError::failed)?;
        processes.into_iter().try_for_each(Process::finish)?;
        Ok(common_gap(&activities, shape.requesters(k)))
    }

    fn start(&self, role: Role, cpu: Option<Cpu>) -> Result<(AnyLink, Process), CliError> {
        let responder =
            Responder { cpu, longest_message: self.plan.size, ..Responder::new(self.transport)? };
        Ok(responder.spawn_as(Some(role))?)
    }
}
