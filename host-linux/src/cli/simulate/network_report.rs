//! Report on the network between the ranks.

use std::io::{self, Write};

use loggap_core::model::Protocol;
use loggap_core::sim::{Level, Receive};
use loggap_core::units::Picos;
use serde::Serialize;

use super::Args;
use crate::cli::parameters_used::{ParameterSource, set_fields};
use crate::output::Fields;
use crate::simulation::{BusyLink, Outcome, ParameterSets, Taper};

/// Most links in the text; JSON lists more.
const SHOWN: usize = 5;
/// Taper above which no hint is given, as networks are not built that way.
const STEEPEST: f64 = 64.0;

/// Network model, and the busiest links.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum NetworkReport {
    /// No link is shared.
    Flat {
        /// Taper above which links would determine the makespan; `null` if no message crosses leaf
        /// switches, or if the schedule is too long for another pass.
        decisive_taper: Option<Taper>,
        /// True if receivers were held for bytes, which networks with shared links charge to links
        /// only.
        #[serde(skip)]
        held: bool,
    },
    /// Parameters differ by nearness.
    Levels {
        /// Levels, the nearest first.
        levels: Vec<LevelDocument>,
        /// Parameters of all other pairs of ranks.
        far: LevelParameters,
        /// True if blocks consist of nodes, not ranks.
        of_nodes: bool,
    },
    /// Messages share links.
    Flows {
        topology: String,
        placement: String,
        /// Factor on the capacity of links between switches.
        link_capacity: f64,
        hosts: u32,
        /// Number of hosts with a rank.
        hosts_used: u32,
        links: u32,
        /// Step of `utilization_over_time`, seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        step_s: Option<f64>,
        busiest_links: Vec<BusyLink>,
        /// Number of links that are as busy as the last one listed.
        as_busy_links: usize,
    },
}

/// Level of nearness.
#[derive(Serialize)]
pub(super) struct LevelDocument {
    /// Ranks, or nodes, in a block.
    block: u32,
    /// L of the smallest messages, seconds.
    latency_s: f64,
    #[serde(flatten)]
    parameters: LevelParameters,
}

/// Parameters of messages at a level.
#[derive(Serialize)]
pub(super) struct LevelParameters {
    #[serde(flatten)]
    source: ParameterSource,
    /// Parameter sets by message size, ascending.
    sets: Vec<Fields>,
}

impl LevelParameters {
    /// Parameters of `level`, the nearest being 0.
    fn new(source: ParameterSource, sets: &ParameterSets, level: usize) -> Self {
        let own = sets.by_level().filter(|set| set.level == level);
        let own = own.map(|set| set_fields(sets, set.number, set.protocol));
        Self { source, sets: own.collect() }
    }
}

/// True if a flat run held receiving processors for bytes, for longer than a network with shared
/// links would.
fn holds_for_links(args: &Args, sets: &ParameterSets) -> bool {
    let longer = |(number, protocol): (usize, &Protocol)| {
        let set = &protocol.parameters;
        let receive = sets.receive.get(number).copied().unwrap_or(set.receive_overhead());
        set.gap_per_byte > receive.overhead_per_byte
    };
    args.settings.settings().receive == Receive::Hold
        && sets.protocols.iter().enumerate().any(longer)
}

/// Number of hosts, and of those used if they are fewer.
fn hosts_text(hosts: u32, used: u32) -> String {
    if used < hosts { format!("{used} of {hosts} hosts used") } else { format!("{hosts} hosts") }
}

impl NetworkReport {
    pub(super) fn new(args: &Args, sets: &ParameterSets, outcome: &Outcome) -> Self {
        if !sets.levels.is_empty() {
            return Self::of_levels(args, sets);
        }
        let Some(usage) = &outcome.network else {
            return Self::Flat { decisive_taper: None, held: holds_for_links(args, sets) };
        };
        let (topology, placement, link_capacity) = args.network.named();
        Self::Flows {
            topology,
            placement,
            link_capacity,
            hosts: usage.hosts,
            hosts_used: usage.hosts,
            links: usage.links,
            step_s: usage.step.map(|step| Picos(step).seconds()),
            busiest_links: usage.busiest.clone(),
            as_busy_links: usage.as_busy,
        }
    }

    fn of_levels(args: &Args, sets: &ParameterSets) -> Self {
        let first = |at| sets.by_level().find(|set| set.level == at);
        let each = sets.levels.iter().zip(args.levels.sources()).enumerate();
        let of = |(at, (level, source)): (usize, (&Level, ParameterSource))| LevelDocument {
            block: level.places.get(),
            latency_s: first(at).map_or(0.0, |set| set.protocol.parameters.latency.seconds()),
            parameters: LevelParameters::new(source, sets, at),
        };
        let source = ParameterSource::from(args.parameters.origin());
        Self::Levels {
            levels: each.map(of).collect(),
            far: LevelParameters::new(source, sets, sets.levels.len()),
            of_nodes: !sets.places.is_empty(),
        }
    }

    /// Sets the number of hosts with a rank.
    pub(super) const fn add_hosts_used(&mut self, used: u32) {
        if let Self::Flows { hosts_used, .. } = self {
            *hosts_used = used;
        }
    }

    /// Sets the taper above which links would determine the makespan of a flat run.
    pub(super) fn add_taper(&mut self, taper: Option<Taper>) {
        if let Self::Flat { decisive_taper, .. } = self {
            *decisive_taper = taper;
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Flat { decisive_taper: Some(Taper { leaf, taper }), held }
                if *taper < STEEPEST =>
            {
                // Rounded up, so that links do determine the makespan at this value.
                let steep = (taper.max(1.0) * 100.0).ceil() / 100.0;
                writeln!(
                    out,
                    "network                flat: no link is shared. With leaf switches of {leaf} ranks and a \
                     taper of {steep} or more, traffic between leaves alone would take longer than this makespan; \
                     compare --topology tree:{leaf}:{steep} with --topology star"
                )?;
                if *held {
                    writeln!(
                        out,
                        "                       receivers were busy for (s - 1)G per message, which a network does not cause: \
                         see --receive overlap"
                    )?;
                }
                Ok(())
            }
            Self::Flat { .. } => Ok(()),
            Self::Levels { levels, of_nodes, .. } => {
                let what = if *of_nodes { "nodes" } else { "ranks" };
                let block = |level: &LevelDocument| {
                    format!("blocks of {} {what} (L {:.1} ns)", level.block, level.latency_s * 1e9)
                };
                let blocks: Vec<_> = levels.iter().map(block).collect();
                writeln!(out, "network                by nearness: {}", blocks.join(", "))
            }
            Self::Flows {
                topology,
                placement,
                hosts,
                hosts_used,
                links,
                busiest_links,
                as_busy_links,
                ..
            } => {
                writeln!(
                    out,
                    "network                {topology}: {}, {links} links, placed: {placement}",
                    hosts_text(*hosts, *hosts_used)
                )?;
                write_busiest(out, busiest_links, *as_busy_links)
            }
        }
    }
}

/// Writes the busiest links, and the number of others as busy as the last one; `not_listed` of
/// these are not in `listed`.
fn write_busiest(out: &mut dyn Write, listed: &[BusyLink], not_listed: usize) -> io::Result<()> {
    for link in listed.iter().take(SHOWN) {
        writeln!(out, "busy                   {:5.1}%  {}", link.utilization * 100.0, link.name)?;
    }
    let least = listed.get(SHOWN - 1).map_or(0.0, |link| link.utilization);
    let others = listed.iter().skip(SHOWN);
    // Utilizations that are printed alike.
    let alike = others.filter(|link| least - link.utilization < 5e-4).count();
    let more = if alike + SHOWN == listed.len() { not_listed } else { 0 };
    match alike + more {
        0 => Ok(()),
        alike => writeln!(out, "busy                           and {alike} more like the last"),
    }
}
