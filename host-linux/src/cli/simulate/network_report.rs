//! What is printed of the network between the ranks.

use std::io::{self, Write};

use loggap_core::sim::Level;
use loggap_core::sim::network::Taper;
use loggap_core::units::Picos;
use serde::Serialize;

use super::network_args::NetworkArgs;
use crate::simulation::{BusyLink, Outcome, ParameterSets};

/// Links that the text lists; JSON lists more.
const SHOWN: usize = 5;
/// From this taper on nobody builds networks.
const STEEPEST: f64 = 64.0;

/// The network, and which of its links were busy.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum NetworkReport {
    /// No link is shared.
    Flat {
        /// From which taper on links would decide; `null` where nothing
        /// crosses leaves, or the schedule is too long to be looked at again.
        decisive_taper: Option<TaperDocument>,
    },
    /// Parameters differ by nearness.
    Levels {
        /// The nearest first.
        levels: Vec<LevelDocument>,
        /// Whether blocks are of nodes, not ranks.
        of_nodes: bool,
    },
    /// Messages share links.
    Flows {
        topology: String,
        placement: String,
        /// What links between switches carry, as a factor.
        link_capacity: f64,
        hosts: u32,
        links: u32,
        /// Length of the steps of `utilization_over_time`.
        #[serde(skip_serializing_if = "Option::is_none")]
        step_s: Option<f64>,
        busiest_links: Vec<LinkDocument>,
    },
}

/// See [`loggap_core::sim::network::Taper`].
#[derive(Serialize)]
pub(super) struct TaperDocument {
    leaf_ranks: u32,
    taper: f64,
}

/// Ranks that are near each other.
#[derive(Serialize)]
pub(super) struct LevelDocument {
    /// Ranks, or nodes, of a block.
    block: u32,
    /// L of the smallest messages.
    latency_s: f64,
}

#[derive(Serialize)]
pub(super) struct LinkDocument {
    link: String,
    /// In links of a host.
    capacity: f64,
    utilization: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    utilization_over_time: Vec<f64>,
}

impl LinkDocument {
    fn new(link: &BusyLink) -> Self {
        let BusyLink { name, capacity, utilization, over_time } = link.clone();
        Self { link: name, capacity, utilization, utilization_over_time: over_time }
    }
}

impl NetworkReport {
    pub(super) fn new(args: &NetworkArgs, sets: &ParameterSets, outcome: &Outcome) -> Self {
        if !sets.levels.is_empty() {
            let first = |at| sets.by_level().find(|set| set.level == at);
            let of = |(at, level): (usize, &Level)| LevelDocument {
                block: level.places.get(),
                latency_s: first(at).map_or(0.0, |set| set.protocol.parameters.latency.seconds()),
            };
            let levels = sets.levels.iter().enumerate().map(of).collect();
            return Self::Levels { levels, of_nodes: !sets.places.is_empty() };
        }
        let Some(usage) = &outcome.network else {
            return Self::Flat { decisive_taper: None };
        };
        let (topology, placement, link_capacity) = args.named();
        Self::Flows {
            topology,
            placement,
            link_capacity,
            hosts: usage.hosts,
            links: usage.links,
            step_s: usage.step.map(|step| Picos(step).seconds()),
            busiest_links: usage.busiest.iter().map(LinkDocument::new).collect(),
        }
    }

    /// From which taper on links would decide a flat run.
    pub(super) fn add_taper(&mut self, taper: Option<Taper>) {
        if let Self::Flat { decisive_taper } = self {
            let document = |Taper { leaf, taper }| TaperDocument { leaf_ranks: leaf, taper };
            *decisive_taper = taper.map(document);
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Flat { decisive_taper: Some(TaperDocument { leaf_ranks, taper }) }
                if *taper < STEEPEST =>
            {
                // As an option it is rounded up, so that links do decide.
                let steep = (taper.max(1.0) * 100.0).ceil() / 100.0;
                writeln!(
                    out,
                    "network                flat; links would decide at the latest from a taper of {steep} on \
                     (leaves of {leaf_ranks}): --network flows --topology tree:{leaf_ranks}:{steep}"
                )
            }
            Self::Flat { .. } => Ok(()),
            Self::Levels { levels, of_nodes } => {
                let what = if *of_nodes { "nodes" } else { "ranks" };
                let block = |level: &LevelDocument| {
                    format!("blocks of {} {what} (L {:.1} ns)", level.block, level.latency_s * 1e9)
                };
                let blocks: Vec<_> = levels.iter().map(block).collect();
                writeln!(out, "network                by nearness: {}", blocks.join(", "))
            }
            Self::Flows { topology, placement, hosts, links, busiest_links, .. } => {
                writeln!(
                    out,
                    "network                {topology}: {hosts} hosts, {links} links, placed: \
                     {placement}"
                )?;
                for link in busiest_links.iter().take(SHOWN) {
                    let busy = link.utilization * 100.0;
                    writeln!(out, "busy                   {busy:5.1}%  {}", link.link)?;
                }
                Ok(())
            }
        }
    }
}
