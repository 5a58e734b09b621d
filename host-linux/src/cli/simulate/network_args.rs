//! Options of the network between the ranks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::level_args::LevelArgs;
use crate::flags::parse;
use crate::output::PendingFile;
use crate::output::plot::links::{self, LinksTitle};
use crate::simulation::{NetworkPlan, NetworkUse, Placement, TopologyPlan};
use crate::terminal::{CliError, Console, NamedFiles};

/// A network between the ranks; docs/networks.md has the rules.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub(super) struct NetworkArgs {
    /// Network model [default: flat; levels with --level, flows with
    /// --topology].
    #[arg(long, short_alias = 'n', value_enum, value_name = "MODEL")]
    network: Option<NetworkName>,

    /// Topology: star, tree:16:2, fat-tree:8, torus:4x4x4 or FILE.dot.
    ///
    /// star, tree:HOSTS[:TAPER], fat-tree:PORTS[:TAPER], torus:AxBxC
    /// (torus:A is a ring), dragonfly:GROUPS:ROUTERS:HOSTS, rail:HOSTS:NODES[:TAPER], or a graph in
    /// FILE.dot or FILE.gv.
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Option<String>,

    /// Hosts of the ranks: block, round-robin over first switches, random by
    /// --seed, or a FILE with the host of each rank, from 0 on, or a rank and its
    /// host per line [default: block].
    #[arg(long, value_name = "PLACEMENT", requires = "topology")]
    placement: Option<String>,

    /// Factor on the capacity of links between switches [default: 1].
    ///
    /// Capacities are multiples of a host link, which carries 1/G.
    #[arg(long, value_name = "FACTOR", requires = "topology", value_parser = parse::factor, allow_hyphen_values = true)]
    link_capacity: Option<f64>,

    /// Plot the utilization of the busiest links over time, as SVG.
    #[arg(long, value_name = "FILE.svg", requires = "topology")]
    network_plot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum NetworkName {
    /// No link inside the network is shared: LogGP.
    #[value(alias = "LogGP")]
    Flat,
    /// Parameters differ by nearness.
    Levels,
    /// Messages share links max-min fairly.
    Flows,
    /// LogGOPSim's '-n simple', which has left.
    #[value(hide = true)]
    Simple,
}

impl NetworkArgs {
    /// Plan of a network whose links messages share; records usage over time if it is drawn. Levels
    /// exclude a topology.
    pub(super) fn plan(
        &self,
        seed: u64,
        levels: &LevelArgs,
    ) -> Result<Option<NetworkPlan>, CliError> {
        let topology = match (self.network, &self.topology) {
            (Some(NetworkName::Simple), _) => {
                return Err(CliError::usage(
                    "LogGOPSim's network 'simple' is not modelled; use --network flows --topology \
                     FILE.dot, which shares links max-min fairly",
                ));
            }
            (Some(NetworkName::Flat | NetworkName::Flows), None) if levels.are_given() => {
                return Err(CliError::usage("--level has a meaning with --network levels only"));
            }
            (Some(NetworkName::Levels), None) if !levels.are_given() => {
                return Err(CliError::usage(
                    "--network levels needs --level RANKS:WHAT, such as 8:node.json; see --help",
                ));
            }
            (None | Some(NetworkName::Flat | NetworkName::Levels), None) => return Ok(None),
            (Some(NetworkName::Flat | NetworkName::Levels), Some(_)) => {
                return Err(CliError::usage(
                    "--topology has a meaning with --network flows only; leave one out",
                ));
            }
            (Some(NetworkName::Flows), None) => {
                return Err(CliError::usage(
                    "--network flows needs --topology, such as tree:16:2; see --help",
                ));
            }
            (_, Some(topology)) => TopologyPlan::new(topology).map_err(CliError::usage)?,
        };
        let placement = match self.placement.as_deref() {
            None | Some("block") => Placement::Block,
            Some("round-robin") => Placement::RoundRobin,
            Some("random") => Placement::Random,
            Some(path) if !Path::new(path).exists() => {
                return Err(CliError::usage(format_args!(
                    "--placement '{path}' is none of block, round-robin and random, and no file \
                     with the host of each rank"
                )));
            }
            Some(path) => Placement::read(Path::new(path)).map_err(CliError::usage)?,
        };
        if self.link_capacity.is_some() && !topology.has_inner_links() {
            return Err(CliError::usage(format_args!(
                "--link-capacity is that of links between switches, and '{}' has none; leave it out",
                self.named().0
            )));
        }
        let link_capacity = self.link_capacity.unwrap_or(1.0);
        let watched = self.network_plot.is_some();
        let plan = NetworkPlan { topology, link_capacity, placement, seed, watched };
        // Validates the topology, which does not depend on the number of ranks.
        plan.topology(1, 1).map_err(CliError::usage)?;
        Ok(Some(plan))
    }

    /// True if messages share links.
    pub(super) const fn is_shared(&self) -> bool {
        self.topology.is_some()
    }

    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        let topology = self.topology.as_deref().map(Path::new);
        files.read("--topology", topology.filter(|path| TopologyPlan::is_file(path)));
        let is_file = |name: &&str| !["block", "round-robin", "random"].contains(name);
        let placement = self.placement.as_deref().filter(is_file);
        files.read("--placement", placement.map(Path::new));
        files.written("--network-plot", self.network_plot.as_deref(), &["svg"]);
    }

    /// Topology, placement and capacity as given on the command line.
    pub(super) fn named(&self) -> (String, String, f64) {
        let topology = self.topology.clone().unwrap_or_default();
        let placement = self.placement.clone().unwrap_or_else(|| "block".to_owned());
        (topology, placement, self.link_capacity.unwrap_or(1.0))
    }

    /// Opens the picture's file, so that a wrong path is reported before the work.
    pub(super) fn open(&self) -> Result<Option<NetworkPicture>, CliError> {
        let Some(path) = &self.network_plot else { return Ok(None) };
        PendingFile::create(path).map(|file| Some(NetworkPicture(file))).map_err(CliError::failed)
    }
}

/// Warns of entries in a network's files that a run with `ranks` ranks does not use, and of links
/// between switches that carry nothing.
pub(super) fn warn(plan: &NetworkPlan, ranks: u32, console: &mut Console) {
    if let TopologyPlan::File(path, graph) = &plan.topology {
        let unknown = graph.unknown_attributes();
        let unknown: Vec<_> = unknown.iter().map(|name| format!("'{name}'")).collect();
        if !unknown.is_empty() {
            console.warn(format_args!(
                "{}: {} ignored: neither capacity and comment, which count here, nor an attribute \
                 that Graphviz draws by",
                path.display(),
                unknown.join(", ") + if unknown.len() == 1 { " is" } else { " are" }
            ));
        }
    }
    if let Placement::Hosts(path, hosts) = &plan.placement
        && hosts.len() > ranks as usize
    {
        console.warn(format_args!(
            "{}: hosts of {} ranks, and there are {ranks}; those of the first are taken",
            path.display(),
            hosts.len()
        ));
    }
    if ranks > 1 && plan.topology.has_inner_links() && plan.is_below_one_switch(ranks) {
        console.warn(format_args!(
            "--topology: all {ranks} ranks are below one switch, so that no link between switches is used, \
             as on a star"
        ));
    }
}

/// Number of hosts used by `ranks` ranks. Only a placement file puts several ranks on a host.
pub(super) fn hosts_used(plan: &NetworkPlan, ranks: u32) -> u32 {
    let Placement::Hosts(_, hosts) = &plan.placement else { return ranks };
    let used: BTreeSet<u32> = hosts.iter().take(ranks as usize).copied().collect();
    u32::try_from(used.len()).unwrap_or(ranks)
}

/// File of the picture, opened before the work.
pub(super) struct NetworkPicture(PendingFile);

impl NetworkPicture {
    pub(super) fn draw(self, usage: &NetworkUse, title: &LinksTitle) -> Result<(), CliError> {
        let svg = links::svg(usage, title).map_err(CliError::failed)?;
        self.0.commit(|out| out.write_all(svg.as_bytes())).map_err(CliError::failed)
    }
}
