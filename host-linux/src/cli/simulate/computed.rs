//! Runs of patterns that need not be stored.

use loggap_core::measure::Clock;
use loggap_core::sim::implicit::{self, ImplicitError, PatternProgram};
use loggap_core::sim::{Finished, NoNoise, Receive, TraceNoise};
use loggap_core::units::Picos;

use super::job::{EngineUsed, Job, Outcome, Stopwatch};
use crate::cli::CliError;
use crate::simulation::{LoadError, PatternError, Source, bytes_needed, run_pattern};

/// Runs a pattern without storing it; `None` where the pattern has to be
/// stored, because of what it is or of what is to be known, or to decide
/// ties.
pub(super) fn computed(
    job: &Job<'_>,
    source: &Source,
    (clock, started): Stopwatch,
) -> Result<Option<Outcome>, CliError> {
    let Source::Pattern(pattern, options) = source else { return Ok(None) };
    let wanted = &job.wanted;
    if wanted.observed() || job.settings.receive != Receive::Hold {
        return Ok(None);
    }
    // Storing the pattern says what is wrong with the options.
    let Ok(Some(program)) = PatternProgram::new(*pattern, options) else { return Ok(None) };
    let mut finish = Vec::new();
    let listed = if wanted.finish { options.ranks } else { 0 };
    let listed_bytes = u64::from(listed) * size_of::<Picos>() as u64;
    let memory_bytes = bytes_needed(&program).saturating_add(listed_bytes);
    if memory_bytes > job.most_bytes {
        let error = LoadError::Memory { needed: memory_bytes, allowed: job.most_bytes };
        return Err(CliError::failed(error));
    }
    finish.reserve_exact(listed as usize);
    let load = clock.duration(clock.now().saturating_sub(started));
    let result = run(job, &program, job.most_bytes - listed_bytes, |rank, time| {
        if rank < listed {
            finish.push(time);
        }
    })?;
    let outcome = match result {
        Ok(outcome) if outcome.open_ties == 0 => outcome,
        Ok(_)
        | Err(PatternError::Stopped(
            ImplicitError::NoLookahead
            | ImplicitError::Rendezvous { .. }
            | ImplicitError::Protocols,
        )) => return Ok(None),
        Err(error) => return Err(CliError::failed(error)),
    };
    let implicit::Outcome { makespan, last_rank, events, messages, .. } = outcome;
    let whole = clock.duration(clock.now().saturating_sub(started));
    Ok(Some(Outcome {
        ranks: options.ranks,
        ops: events - messages,
        memory_bytes,
        finished: Finished { makespan, last_rank, events },
        load,
        run: whole.since(load),
        finish: wanted.finish.then_some(finish),
        engine: EngineUsed::computed(),
        ..Outcome::default()
    }))
}

/// Runs `program` with the noise of the job.
fn run(
    job: &Job<'_>,
    program: &PatternProgram,
    most_bytes: u64,
    each: impl FnMut(u32, Picos),
) -> Result<Result<implicit::Outcome, PatternError>, CliError> {
    let parameters = job.parameters;
    Ok(match job.noise {
        None => run_pattern(program, (parameters, NoNoise), most_bytes, each),
        Some((source, phases)) => {
            let trace = source.trace().map_err(CliError::usage)?;
            let noise = TraceNoise { trace, phases };
            run_pattern(program, (parameters, noise), most_bytes, each)
        }
    })
}
