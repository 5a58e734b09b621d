//! Options for the parameters of a simulation, shared by all subcommands that simulate or predict.

use std::path::{Path, PathBuf};

use loggap_core::model::{LogGops, Preset, Protocol, ReceiveOverhead, UnknownPreset};
use loggap_core::sim::{Parameters, Receive, Rendezvous, Settings};
use loggap_core::units::{Bytes, PerByte, Picos};

use super::profile_warnings;
use crate::flags::help;
use crate::flags::parse;
use crate::profile::{ProfileDocument, RangeRecord, SizeSpan, USUAL};
use crate::simulation::ParameterSets;
use crate::terminal::{CliError, Console, NamedFiles};

/// Parameters from single options, a profile or a preset.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Parameters")]
pub(super) struct ParameterArgs {
    /// Wire latency, in ns or with a unit: 2.5us [default: 2500].
    #[arg(short = 'L', long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true)]
    latency: Option<Picos>,

    /// CPU overhead per message, at each end [default: 1500].
    #[arg(short = 'o', long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true)]
    overhead: Option<Picos>,

    /// Gap between messages of one interface [default: 1000].
    #[arg(short = 'g', long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true)]
    gap: Option<Picos>,

    /// Gap per byte, in ns/B or with a unit: 80ps/B [default: 6].
    #[arg(short = 'G', long, value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true)]
    gap_per_byte: Option<PerByte>,

    /// CPU overhead per byte [default: 0].
    #[arg(short = 'O', long, value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true)]
    overhead_per_byte: Option<PerByte>,

    /// Eager limit: longer messages use rendezvous [default: 65535].
    ///
    /// A preset has its own default. The default for an MPI profile is the last size before the
    /// first change of protocol, as in 'measure --flags'.
    #[arg(short = 'S', long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    eager_limit: Option<u64>,

    /// Parameters measured by 'loggap measure -o'.
    #[arg(long, value_name = "FILE", conflicts_with_all = ONE_BY_ONE)]
    profile: Option<PathBuf>,

    /// Parameters of a published link.
    #[arg(long, value_name = "NAME", value_parser = preset, long_help = preset_help("Parameters of a published link"),
          conflicts_with_all = ONE_BY_ONE, conflicts_with = "profile")]
    preset: Option<Preset>,
}

/// Options that --profile and --preset replace.
const ONE_BY_ONE: [&str; 5] = ["latency", "overhead", "gap", "gap_per_byte", "overhead_per_byte"];

/// Finds a preset by name; the error lists all.
pub(super) fn preset(name: &str) -> Result<Preset, String> {
    name.parse().map_err(|unknown: UnknownPreset| {
        let names = Preset::all().iter().map(|preset| preset.name);
        format!("{}{unknown}", help::did_you_mean(name, names))
    })
}

/// Help text that ends with a list of all presets.
pub(super) fn preset_help(about: &str) -> String {
    let list =
        Preset::all().iter().map(|preset| format!("  {:<12} {}", preset.name, preset.source));
    format!("{about}:\n{}\n", list.collect::<Vec<_>>().join("\n"))
}

/// Origin of parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// A profile's file.
    Profile(&'a Path),
    /// A preset, by name.
    Preset(&'static str),
    /// Options, at least one.
    Options,
    /// Defaults only.
    Defaults,
}

impl ParameterArgs {
    /// Origin of the parameters.
    pub(super) fn origin(&self) -> Origin<'_> {
        let times = [self.latency, self.overhead, self.gap];
        let per_byte = [self.gap_per_byte, self.overhead_per_byte];
        let is_given = times.iter().any(Option::is_some)
            || per_byte.iter().any(Option::is_some)
            || self.eager_limit.is_some();
        match (&self.profile, &self.preset) {
            (Some(path), _) => Origin::Profile(path),
            (None, Some(preset)) => Origin::Preset(preset.name),
            (None, None) if is_given => Origin::Options,
            (None, None) => Origin::Defaults,
        }
    }

    /// True if no relevant parameter is a default: there is a profile or a preset, or all of L, o,
    /// g and G are given.
    pub(super) const fn are_complete(&self, overheads: &OverheadArgs) -> bool {
        let ends = overheads.send_overhead.is_some() && overheads.recv_overhead.is_some();
        let overhead = self.overhead.is_some() || ends;
        self.profile.is_some()
            || self.preset.is_some()
            || (self.latency.is_some()
                && overhead
                && self.gap.is_some()
                && self.gap_per_byte.is_some())
    }

    /// File of the profile, if there is one.
    pub(super) fn profile(&self) -> Option<&Path> {
        self.profile.as_deref()
    }

    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        files.read("--profile", self.profile.as_deref());
    }

    /// Parameter sets by protocol, ascending in size; at least one. Warns of parameters of a
    /// profile that did not converge.
    pub(super) fn protocols(&self, console: &mut Console) -> Result<Vec<Protocol>, CliError> {
        if let Some(path) = &self.profile {
            let document = ProfileDocument::read(path).map_err(CliError::usage)?;
            profile_warnings::not_converged(path, &document, console);
            return self
                .of_profile(&document)
                .map_err(|reason| CliError::usage(format_args!("'{}': {reason}", path.display())));
        }
        Ok(self.without_profile())
    }

    /// Parameter sets of the preset or of the options.
    fn without_profile(&self) -> Vec<Protocol> {
        if let Some(preset) = &self.preset {
            let mut protocols = preset.protocols.to_vec();
            self.limit(&mut protocols);
            return protocols;
        }
        let parameters = LogGops {
            latency: self.latency.unwrap_or(USUAL.latency),
            overhead: self.overhead.unwrap_or(USUAL.overhead),
            gap: self.gap.unwrap_or(USUAL.gap),
            gap_per_byte: self.gap_per_byte.unwrap_or(USUAL.gap_per_byte),
            overhead_per_byte: self.overhead_per_byte.unwrap_or(USUAL.overhead_per_byte),
            eager_limit: self.eager_limit.map_or(USUAL.eager_limit, Bytes),
        };
        vec![Protocol { first: Bytes(0), parameters }]
    }

    /// Replaces the eager limit S of all sets by the requested one, if any.
    pub(super) fn limit(&self, protocols: &mut [Protocol]) {
        for protocol in protocols {
            let limit = &mut protocol.parameters.eager_limit;
            *limit = self.eager_limit.map_or(*limit, Bytes);
        }
    }

    /// True if S was given.
    pub(super) const fn has_eager_limit(&self) -> bool {
        self.eager_limit.is_some()
    }

    /// Requested S, else that of `profile`, else the default.
    pub(super) fn eager_limit(&self, profile: Option<&ProfileDocument>) -> Bytes {
        let measured = || profile.and_then(ProfileDocument::eager_limit);
        self.eager_limit.map(Bytes).or_else(measured).unwrap_or(USUAL.eager_limit)
    }

    fn of_profile(&self, document: &ProfileDocument) -> Result<Vec<Protocol>, String> {
        let eager_limit = self.eager_limit(Some(document));
        let protocol = |RangeRecord { range, .. }: &RangeRecord| {
            let parameters = range
                .loggops(eager_limit)
                .map_err(|error| format!("{}: {error}", SizeSpan::of(range)))?;
            Ok(Protocol { first: range.first, parameters })
        };
        let protocols: Result<Vec<_>, String> = document.ranges.iter().map(protocol).collect();
        let protocols = protocols?;
        if protocols.is_empty() {
            let reason = document.reason.as_deref().unwrap_or("measure again with more time");
            return Err(format!("holds no range of sizes: {reason}"));
        }
        Ok(protocols)
    }
}

/// Separate overheads of the two ends.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Parameters")]
pub(super) struct OverheadArgs {
    /// CPU overhead of the sender [default: -o].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true, conflicts_with_all = ["profile", "preset"])]
    send_overhead: Option<Picos>,

    /// CPU overhead of the receiver [default: -o].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true, conflicts_with_all = ["profile", "preset"])]
    recv_overhead: Option<Picos>,

    /// CPU overhead per byte of the sender [default: -O].
    #[arg(long, value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true, conflicts_with_all = ["profile", "preset"])]
    send_overhead_per_byte: Option<PerByte>,

    /// CPU overhead per byte of the receiver [default: -O].
    #[arg(long, value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true, conflicts_with_all = ["profile", "preset"])]
    recv_overhead_per_byte: Option<PerByte>,
}

impl ParameterArgs {
    /// Parameter sets, with separate receive overheads if given by `overheads` or measured by the
    /// profile. Warns of parameters of a profile that did not converge.
    pub(super) fn sets(
        &self,
        overheads: &OverheadArgs,
        settings: SettingsArgs,
        console: &mut Console,
    ) -> Result<ParameterSets, CliError> {
        let (sets, profile) = self.sets_and_profile(overheads, settings)?;
        self.warn_of(profile.as_ref(), console);
        Ok(sets)
    }

    /// Warns of parameters of the profile that did not converge.
    pub(super) fn warn_of(&self, profile: Option<&ProfileDocument>, console: &mut Console) {
        if let (Some(path), Some(document)) = (&self.profile, profile) {
            profile_warnings::not_converged(path, document, console);
        }
    }

    /// Parameter sets, and the profile that they are from, if any.
    pub(super) fn sets_and_profile(
        &self,
        overheads: &OverheadArgs,
        settings: SettingsArgs,
    ) -> Result<(ParameterSets, Option<ProfileDocument>), CliError> {
        let Some(path) = &self.profile else { return Ok((self.one_by_one(overheads), None)) };
        let (sets, document) = self.sets_of_profile(path, settings)?;
        Ok((sets, Some(document)))
    }

    /// Parameter sets of a profile, with the requested S.
    pub(super) fn sets_of_profile(
        &self,
        path: &Path,
        settings: SettingsArgs,
    ) -> Result<(ParameterSets, ProfileDocument), CliError> {
        let document = ProfileDocument::read(path).map_err(CliError::usage)?;
        let sets = self.apart(&document, settings);
        let sets =
            sets.map_err(|reason| CliError::usage(format_args!("'{}': {reason}", path.display())))?;
        Ok((sets, document))
    }

    /// Parameter sets of the preset or of the options.
    fn one_by_one(&self, overheads: &OverheadArgs) -> ParameterSets {
        let mut protocols = self.without_profile();
        let ends = self.preset.as_ref().and_then(|preset| preset.ends);
        let [send_overhead, recv_overhead] = match ends {
            Some(ends) => ends.map(Some),
            None => [overheads.send_overhead, overheads.recv_overhead],
        };
        let mut receive = Vec::with_capacity(protocols.len());
        for protocol in &mut protocols {
            let set = &mut protocol.parameters;
            receive.push(ReceiveOverhead {
                overhead: recv_overhead.unwrap_or(set.overhead),
                overhead_per_byte: overheads
                    .recv_overhead_per_byte
                    .unwrap_or(set.overhead_per_byte),
            });
            set.overhead = send_overhead.unwrap_or(set.overhead);
            let per_byte = overheads.send_overhead_per_byte;
            set.overhead_per_byte = per_byte.unwrap_or(set.overhead_per_byte);
        }
        ParameterSets::new(protocols, receive)
    }

    fn apart(
        &self,
        document: &ProfileDocument,
        settings: SettingsArgs,
    ) -> Result<ParameterSets, String> {
        // A profile without usable parameters is refused with the same message.
        self.of_profile(document)?;
        let ranges = document.ranges.iter().map(|record| &record.range);
        ParameterSets::of_ranges(
            ranges,
            self.eager_limit(Some(document)),
            settings.settings().rendezvous,
        )
        .map_err(|error| error.to_string())
    }
}

/// Converts the sets for a simulation.
pub(super) fn parameters(protocols: &[Protocol]) -> Result<Parameters<'_>, CliError> {
    Parameters::per_protocol(protocols).ok_or_else(|| {
        CliError::usage(format_args!(
            "a simulation takes up to {} parameter sets, in ascending order of size",
            Parameters::MOST
        ))
    })
}

/// Rules of sending and receiving.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
pub(super) struct SettingsArgs {
    /// CPU use of a receive.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ReceiveName::Hold)]
    receive: ReceiveName,

    /// Protocol of messages above the eager limit.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = RendezvousName::Instant)]
    rendezvous: RendezvousName,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ReceiveName {
    /// The CPU is busy until all bytes have arrived, as in LogGOPSim.
    Hold,
    /// The interface receives bytes without the CPU, as in LogGOPS.
    Overlap,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RendezvousName {
    /// The sender continues at the instant of the match, as in LogGOPSim.
    Instant,
    /// RTS, CTS and data are messages, as in LogGPS.
    Handshake,
}

impl SettingsArgs {
    pub(super) const fn settings(self) -> Settings {
        Settings {
            receive: match self.receive {
                ReceiveName::Hold => Receive::Hold,
                ReceiveName::Overlap => Receive::Overlap,
            },
            rendezvous: match self.rendezvous {
                RendezvousName::Instant => Rendezvous::Instant,
                RendezvousName::Handshake => Rendezvous::Handshake,
            },
        }
    }
}
