//! What a measurement leaves: files first, then standard output.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loggap_core::units::Picos;

use super::Args;
use crate::cli::report::{self, Report, Strictness};
use crate::cli::{CliError, Console, Exit};
use crate::environment::Fingerprint;
use crate::measurement::{Measurement, Settings};
use crate::output::{FileError, PendingFile};
use crate::profile::{
    ChangeRecord, ProfileDocument, RangeRecord, SCHEMA_VERSION, SizeRecord, Stopped,
};
use crate::samples;
use crate::warning::Warning;

/// The files that were asked for, open but not there yet.
pub(super) struct Files {
    profile: Option<PendingFile>,
    samples: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    pub(super) fn open(args: &Args) -> Result<Self, CliError> {
        let create = |path: &Option<PathBuf>| -> Result<_, FileError> {
            path.as_ref().map(PendingFile::create).transpose()
        };
        Ok(Self {
            profile: create(&args.output)?,
            samples: create(&args.samples)?,
            plot: args.report.open_plot()?,
        })
    }

    /// Where the files stand until they are complete.
    pub(super) fn temporary(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let files = [&self.profile, &self.samples, &self.plot];
        files.into_iter().flatten().filter_map(PendingFile::temporary).map(Path::to_owned)
    }
}

/// What the measurement itself does not know.
pub(super) struct Circumstances<'a> {
    pub(super) host: Fingerprint,
    pub(super) warnings: Vec<Warning>,
    /// From the start of the command to the end of the session.
    pub(super) wall: Picos,
    pub(super) settings: &'a Settings,
}

pub(super) fn export(
    args: &Args,
    measurement: &Measurement,
    circumstances: Circumstances<'_>,
    (files, console): (Files, &mut Console),
) -> Result<Exit, CliError> {
    let document = document(args, measurement, circumstances);
    for warning in &document.warnings {
        console.warn(warning);
    }
    let profile = &measurement.analysis.assessment.profile;
    let (title, subtitle) = (title(&document), subtitle(&document));
    let report = Report {
        document: &document,
        title: &title,
        subtitle: &subtitle,
        profile,
        rows: &measurement.analysis.rows,
        confidence_percent: document.requested.confidence_percent,
        closing: &closing(&document),
    };
    // A file that cannot be written must not take the others and the table
    // along: the first error is told when everything else is done.
    let mut outcome = Ok(());
    if let Some(file) = files.profile {
        let written = file.commit(|out| {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            out.write_all(b"\n")
        });
        outcome = outcome.and(written.map_err(CliError::from));
    }
    if let Some(file) = files.samples {
        let written = file.commit(|out| samples::write(out, &measurement.samples));
        outcome = outcome.and(written.map_err(CliError::from));
    }
    if let Some(file) = files.plot {
        outcome = outcome.and(report.draw(file));
    }
    let printed = args.report.print(&report, console);
    outcome.and(printed)?;
    let strictness = if args.exact.strict { Strictness::Strict } else { Strictness::Lenient };
    Ok(report::exit(strictness, profile))
}

fn document(
    args: &Args,
    measurement: &Measurement,
    circumstances: Circumstances<'_>,
) -> ProfileDocument {
    let Circumstances { host, warnings, wall, settings } = circumstances;
    let assessment = &measurement.analysis.assessment;
    let profile = &assessment.profile;
    let about_run = warnings.iter().map(ToString::to_string);
    let about_link = assessment.warnings.iter().map(ToString::to_string);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall_s = wall.seconds();
    ProfileDocument {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_s: now.as_secs().saturating_sub(wall.0 / 1_000_000_000_000),
        seed: settings.plan.seed,
        host,
        transport: args.link.transport.name().to_owned(),
        method: settings.method.name().to_owned(),
        requested: args.exact.requested(),
        ranges: profile.ranges.iter().copied().map(RangeRecord).collect(),
        changes: profile.changes.iter().copied().map(ChangeRecord::from).collect(),
        sizes: measurement.analysis.rows.iter().copied().map(SizeRecord).collect(),
        messages_sent: measurement.traffic.messages(),
        messages_lost: measurement.traffic.messages_lost,
        wall_s,
        link_busy_share: (measurement.traffic.in_rounds.seconds() / wall_s).clamp(0.0, 1.0),
        stopped: Stopped::from(measurement.conclusion),
        converged: report::is_converged(profile),
        warnings: about_run.chain(about_link).collect(),
    }
}

fn title(document: &ProfileDocument) -> String {
    format!(
        "loggap {} measure: {} over {} to {}",
        document.loggap_version, document.method, document.transport, document.host.link.peer
    )
}

fn subtitle(document: &ProfileDocument) -> String {
    let host = &document.host;
    let processor = host.cpu_model.as_deref().unwrap_or("unknown processor");
    let cpu = host.cpu.map_or_else(|| "not pinned".to_owned(), |cpu| format!("cpu {cpu}"));
    let mtu = host.link.mtu_bytes.map_or_else(String::new, |mtu| format!(", MTU {mtu} B"));
    format!(
        "{processor}, {cpu}, {}, clock {}{mtu}, seed {}",
        host.kernel, host.clock, document.seed
    )
}

fn closing(document: &ProfileDocument) -> Vec<String> {
    vec![format!(
        "{} messages sent, {} lost; {:.2} s, the link in use {:.0}% of it; ended: {}",
        document.messages_sent,
        document.messages_lost,
        document.wall_s,
        document.link_busy_share * 100.0,
        document.stopped
    )]
}
