//! Complete assessment of a link by parametrised round trips.

use core::ffi::c_void;
use core::ops::ControlFlow;

use loggap_core::fit::{Detector, LookAhead, Node, Point};
use loggap_core::measure::{
    AssessMemory, AssessOptions as CoreOptions, Buffers, Clock as _, Experiment, Findings,
    Initiator, Outcome as Round, PlanMemory, PlanOptions, PlanRequirements, Planner, RowHeader,
    SessionOptions, Slot, Warning, coarse_sizes,
};
use loggap_core::model::{Change, Curve, Estimate, SizeLine};
use loggap_core::stats::Confidence;
use loggap_core::units::{Bytes, Picos, SignedPicos};
use loggap_core::wire::ROUNDS_PER_BATCH;

use crate::arena::{Arena, Shortage, Sizer};
use crate::boundary::{Place, bytes_mut, input, plain};
use crate::link::{CheckedClock, CheckedLink, Clock, Link};
use crate::profile::{LOGGAP_MAX_RANGES, MOST_CHANGES, Profile};
use crate::report::{AssessReport, ConclusionKind, conclusion, no_assessment, no_session};
use crate::status::{Detail, Outcome, Status, finish};
use crate::wire::LOGGAP_FRAME_BYTES;

/// Progress of an assessment.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Progress {
    /// Initiators served before this one; 0 while measuring.
    pub queue_position: u32,
    /// Share of the budget (time or messages) spent, in millionths.
    pub spent_ppm: u32,
    /// Messages sent, replies included.
    pub messages: u64,
    /// Number of lost rounds.
    pub lost: u64,
}

/// Called after each batch of rounds, and while waiting for a turn. Returns 0
/// to continue. Any other value ends the measurement; the rounds measured until
/// then are assessed.
pub type ProgressFunction =
    Option<unsafe extern "C" fn(context: *mut c_void, progress: *const Progress) -> i32>;

/// Options of an assessment. Start from `loggap_assess_options_default`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AssessOptions {
    /// Smallest message size in bytes, at least 1.
    pub smallest: u32,
    /// Largest message size in bytes; the link must be able to carry it.
    pub largest: u32,
    /// Number of sizes in the first sweep, from 2 to `sizes`.
    pub coarse_sizes: u32,
    /// Maximum number of sizes, including those added around protocol changes;
    /// at most 65,535.
    pub sizes: u32,
    /// Values kept per quantity and size, from 8 to 65,535.
    pub repetitions: u32,
    /// Maximum number of boundaries between ranges, below `LOGGAP_MAX_RANGES`;
    /// 0 treats all sizes as one range.
    pub max_changes: u32,
    /// Messages per burst, at least 2.
    pub messages: u32,
    /// 1 if sizes may be added around protocol changes or dropped when time
    /// runs short; 0 to measure exactly the sizes of the first sweep.
    pub adapt_sizes: u32,
    /// Goal of precision: a value has converged when half its interval is at
    /// most this many millionths of it.
    pub relative_error_ppm: u32,
    /// Largest residual of a point in millionths of its value before another
    /// range begins. Jumps smaller than this do not split a range.
    pub tolerance_ppm: u32,
    /// Level of all confidence intervals in percent, above 0 and below 100.
    pub confidence_percent: f64,
    /// Time limit of the measurement, in ps.
    pub max_time_ps: u64,
    /// Time limit on a link so slow that sizes would otherwise be dropped, in
    /// ps. No effect unless above `max_time_ps`.
    pub longest_time_ps: u64,
    /// Maximum number of messages, replies included.
    pub max_messages: u64,
    /// Seed of the order of rounds.
    pub seed: u64,
    /// Longest wait for the responder's welcome, in ps.
    pub handshake_ps: u64,
    /// Longest silence of the responder while it serves others, in ps.
    pub queue_ps: u64,
    /// Longest wait for a reply, in ps.
    pub reply_ps: u64,
    /// Shortest timeout of a reply on a link that loses messages, in ps.
    pub shortest_reply_ps: u64,
    /// Progress callback; may be null.
    pub progress: ProgressFunction,
    /// Passed to `progress`.
    pub progress_context: *mut c_void,
}

plain!(AssessOptions);

impl AssessOptions {
    fn standard() -> Self {
        let (plan, session) = (PlanOptions::default(), SessionOptions::default());
        Self {
            smallest: 1,
            largest: 1_024,
            coarse_sizes: 8,
            sizes: 12,
            repetitions: 12,
            max_changes: 2,
            messages: plan.messages,
            adapt_sizes: 1,
            relative_error_ppm: plan.assess.relative_error_ppm,
            tolerance_ppm: plan.assess.tolerance_ppm,
            confidence_percent: 95.0,
            max_time_ps: plan.max_time.0,
            longest_time_ps: plan.longest_time.0,
            max_messages: plan.max_messages,
            seed: plan.seed,
            handshake_ps: session.handshake.0,
            queue_ps: session.queue.0,
            reply_ps: session.reply.0,
            shortest_reply_ps: session.shortest_reply.0,
            progress: None,
            progress_context: core::ptr::null_mut(),
        }
    }

    fn check(&self) -> Outcome<()> {
        let (sizes, changes) = (self.sizes, self.max_changes);
        let fields = [
            ("smallest", self.smallest, 1, self.largest),
            ("coarse_sizes", self.coarse_sizes, 2, sizes),
            ("sizes", sizes, 2, u16::MAX.into()),
            ("repetitions", self.repetitions, 8, u16::MAX.into()),
            ("max_changes", changes, 0, MOST_CHANGES),
            ("messages", self.messages, 2, u32::MAX),
            ("adapt_sizes", self.adapt_sizes, 0, 1),
        ];
        for (name, value, least, most) in fields {
            if value < least || value > most {
                return Err(Detail::of(Status::Option).named(name).found(value.into()));
            }
        }
        self.confidence().map(|_| ())
    }

    fn confidence(&self) -> Outcome<Confidence> {
        let wrong = Detail::of(Status::Option).named("confidence_percent");
        Confidence::from_percent(self.confidence_percent).ok_or(wrong)
    }

    fn plan(&self, detector: Detector) -> Outcome<PlanOptions> {
        Ok(PlanOptions {
            assess: CoreOptions {
                confidence: self.confidence()?,
                relative_error_ppm: self.relative_error_ppm,
                tolerance_ppm: self.tolerance_ppm,
                max_changes: self.max_changes as usize,
                detector,
                one_sided: false,
            },
            messages: self.messages,
            max_time: Picos(self.max_time_ps),
            longest_time: Picos(self.longest_time_ps),
            max_messages: self.max_messages,
            adapt_sizes: self.adapt_sizes == 1,
            seed: self.seed,
            ..PlanOptions::default()
        })
    }

    fn session(&self) -> SessionOptions {
        SessionOptions {
            handshake: Picos(self.handshake_ps),
            queue: Picos(self.queue_ps),
            reply: Picos(self.reply_ps),
            shortest_reply: Picos(self.shortest_reply_ps),
            ..SessionOptions::default()
        }
    }

    /// Length of the longest message, data or control, in bytes.
    fn longest_message(&self) -> usize {
        (self.largest as usize).max(LOGGAP_FRAME_BYTES)
    }

    /// Reports progress; true if the caller wants to continue.
    fn goes_on(&self, progress: &Progress) -> bool {
        let Some(tell) = self.progress else { return true };
        // SAFETY: the caller of the library vouches for its function and
        // context; the progress outlives the call.
        unsafe { tell(self.progress_context, progress) == 0 }
    }

    fn needs(&self) -> Outcome<(PlanRequirements, Sizer)> {
        self.check()?;
        let (sizes, repetitions) = (self.sizes as usize, self.repetitions as usize);
        let needs = PlanRequirements::new(sizes, repetitions);
        let needs = needs.ok_or(Detail::of(Status::Option).named("sizes"))?;
        let longest = self.longest_message();
        let lent = if longest > LONGEST_IN_PROFILE { longest } else { 0 };
        let sizer = Sizer::new()
            .array::<u8>(lent)
            .array::<u8>(lent)
            .array::<u32>(self.coarse_sizes as usize)
            .array::<RowHeader>(needs.store.rows)
            .array::<u64>(needs.store.values)
            .array::<Slot>(needs.order)
            .array::<Point>(needs.assess.points)
            .array::<Node>(needs.assess.nodes);
        Ok((needs, sizer))
    }
}

/// Sizes that `LOGGAP_ASSESS_BYTES` of the header assumes.
const _: () = {
    let row = size_of::<RowHeader>() + 5 * size_of::<Slot>();
    assert!(row + 4 * size_of::<Point>() + size_of::<Node>() <= 236, "a size has become larger");
};

/// Fills in the defaults: sizes from 1 to 1024 bytes, 8 of them and 4 more
/// around protocol changes, at most 3 ranges, 12 values per size, bursts of 10,
/// 5 percent at 95 percent confidence, a tolerance of 6 percent, at most 2.5 s
/// and 34,000 messages. They suit a small memory; a host uses more sizes,
/// values and changes.
///
/// Errors: `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_assess_options_default(options: *mut AssessOptions) -> i32 {
    // SAFETY: by the contract of this function.
    let place = unsafe { Place::new(options) };
    let outcome = place.map(|mut place| place.put(AssessOptions::standard()));
    // SAFETY: a null detail is allowed.
    unsafe { finish(outcome, core::ptr::null_mut()) }
}

/// Bytes of memory that `loggap_assess` needs with these options; 0 if they are
/// invalid. `LOGGAP_ASSESS_BYTES` is an upper bound of it as a constant
/// expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_assess_bytes(options: *const AssessOptions) -> usize {
    // SAFETY: by the contract of this function.
    let needs = unsafe { input(options) }.and_then(AssessOptions::needs);
    needs.map_or(0, |(_, sizer)| sizer.bytes())
}

/// Assesses a link: opens a session with the responder at its other end, plans
/// and times rounds until every parameter has converged or the budget is spent,
/// detects protocol changes and fits the parameters. Blocks, and keeps no
/// pointer to lent memory. Takes about 7 KiB of stack on a Cortex-M4F. `report`
/// may be null.
///
/// Errors: `LOGGAP_STATUS_OPTION` with the name of the option,
/// `LOGGAP_STATUS_MEMORY` (see `loggap_assess_bytes`), `LOGGAP_STATUS_LINK`,
/// `LOGGAP_STATUS_SILENT`, `LOGGAP_STATUS_REFUSED`, `LOGGAP_STATUS_PROTOCOL`,
/// `LOGGAP_STATUS_STOPPED` (while waiting for a turn), `LOGGAP_STATUS_NO_DATA`,
/// `LOGGAP_STATUS_NULL`, `LOGGAP_STATUS_ALIGNMENT`.
/// If the session fails after rounds have been measured (`LINK`, `SILENT`,
/// `REFUSED`, `PROTOCOL`), `profile` and `report` hold the results of those
/// rounds: the conclusion is `LOGGAP_CONCLUSION_KIND_FAILED`, and `converged`
/// is 0. After any other failure `report` holds the counts as far as they are
/// known. `profile` then has no ranges if measuring had begun, because messages
/// of up to half its size are buffered in it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_assess(
    clock: *const Clock,
    link: *const Link,
    options: *const AssessOptions,
    memory: *mut u8,
    bytes: usize,
    profile: *mut Profile,
    report: *mut AssessReport,
    detail: *mut Detail,
) -> i32 {
    let call = Call { clock, link, options, memory, bytes, profile, report };
    // SAFETY: by the contract of this function.
    unsafe { call.finish(Detector::optimal(), detail) }
}

/// As `loggap_assess`, but detects protocol changes in one pass that looks
/// three points ahead, as the paper does: less code and far less work than the
/// optimal search, but less sensitive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn loggap_assess_look_ahead(
    clock: *const Clock,
    link: *const Link,
    options: *const AssessOptions,
    memory: *mut u8,
    bytes: usize,
    profile: *mut Profile,
    report: *mut AssessReport,
    detail: *mut Detail,
) -> i32 {
    let call = Call { clock, link, options, memory, bytes, profile, report };
    // SAFETY: by the contract of this function.
    unsafe { call.finish(Detector::look_ahead(LookAhead::default()), detail) }
}

/// Arguments of an assessment.
struct Call {
    clock: *const Clock,
    link: *const Link,
    options: *const AssessOptions,
    memory: *mut u8,
    bytes: usize,
    profile: *mut Profile,
    report: *mut AssessReport,
}

impl Call {
    /// Assesses and returns the status.
    ///
    /// # Safety
    ///
    /// All pointers are null or satisfy the contract of `loggap_assess`.
    unsafe fn finish(self, detector: Detector, detail: *mut Detail) -> i32 {
        // SAFETY: the contract is the same.
        let outcome = unsafe { self.run(detector) };
        // SAFETY: by the contract of this function.
        unsafe { finish(outcome, detail) }
    }

    /// # Safety
    ///
    /// As [`Call::finish`].
    unsafe fn run(self, detector: Detector) -> Outcome<()> {
        // SAFETY: by the contract of this function.
        let profile = unsafe { Place::new(self.profile) }?;
        // SAFETY: by the contract of this function.
        let report = unsafe { Place::optional(self.report) }?;
        // SAFETY: by the contract of this function.
        let clock = unsafe { input(self.clock) }?.checked()?;
        // SAFETY: by the contract of this function.
        let link = unsafe { input(self.link) }?.checked()?;
        // Copied: a callback that modifies the options, which is forbidden, does no harm.
        // SAFETY: by the contract of this function.
        let options = *unsafe { input(self.options) }?;
        let options = &options;
        let (needs, sizer) = options.needs()?;
        let plan = options.plan(detector)?;
        // SAFETY: by the contract of this function.
        let mut arena = unsafe { Arena::new(self.memory, self.bytes, sizer) }?;
        // SAFETY: nothing else accesses it during this call.
        let mut report = unsafe { report.clear() };
        let mut planned = planner(&mut arena, options, plan, &needs);
        let planner = planned.as_mut().map_err(|detail| *detail)?;
        // SAFETY: by the contract of this function.
        let scratch = unsafe { bytes_mut(self.profile.cast(), size_of::<Profile>()) }?;
        let buffers = buffers(options.longest_message(), scratch, &mut arena)?;
        let measured = measure(&clock, link, buffers, options, planner, report.as_deref_mut());
        // SAFETY: nothing else accesses it during this call.
        let profile = unsafe { profile.clear() }.ok_or(Detail::of(Status::Null))?;
        let mut told = Told { profile, report, converged: true };
        // Rounds before a failure are assessed like those before a stop.
        let assessed = assess(planner, &mut told);
        if assessed.is_err() {
            told.profile.empty();
        }
        let outcome = measured.and(assessed);
        if let Some(report) = told.report {
            let over = planner.conclusion().map_or(ConclusionKind::Failed, conclusion);
            report.conclusion = over as u32;
            report.converged = (outcome.is_ok() && told.converged).into();
        }
        outcome
    }
}

/// Longest message buffered in the caller's profile: its halves are the two
/// message buffers, since it is not written before the last message has
/// arrived.
const LONGEST_IN_PROFILE: usize = size_of::<Profile>() / 2;

fn buffers<'m>(
    longest: usize,
    profile: &'m mut [u8],
    arena: &mut Arena<'m>,
) -> Result<Buffers<'m>, Shortage> {
    if longest > LONGEST_IN_PROFILE {
        return Ok(Buffers { outgoing: arena.array(longest)?, incoming: arena.array(longest)? });
    }
    let (outgoing, incoming) = profile.split_at_mut_checked(LONGEST_IN_PROFILE).ok_or(Shortage)?;
    Ok(Buffers {
        outgoing: outgoing.get_mut(..longest).ok_or(Shortage)?,
        incoming: incoming.get_mut(..longest).ok_or(Shortage)?,
    })
}

#[inline(never)]
fn planner<'m>(
    arena: &mut Arena<'m>,
    options: &AssessOptions,
    plan: PlanOptions,
    needs: &PlanRequirements,
) -> Outcome<Plan<'m>> {
    let sizes = arena.array(options.coarse_sizes as usize)?;
    let count = coarse_sizes(options.smallest, options.largest, sizes);
    let sizes = sizes.get(..count).unwrap_or_default();
    let memory = PlanMemory {
        rows: arena.array(needs.store.rows)?,
        values: arena.array(needs.store.values)?,
        order: arena.array(needs.order)?,
        assess: AssessMemory {
            points: arena.array(needs.assess.points)?,
            nodes: arena.array(needs.assess.nodes)?,
        },
    };
    // `needs` has checked sizes, messages and memory.
    Plan::new(plan, sizes, memory).map_err(|_| Detail::of(Status::Option).named("sizes"))
}

type Plan<'m> = Planner<'m, LOGGAP_MAX_RANGES>;

/// Receiver of the findings: writes them to the caller's profile and report.
struct Told<'c> {
    profile: &'c mut Profile,
    report: Option<&'c mut AssessReport>,
    converged: bool,
}

impl Findings for Told<'_> {
    fn change(&mut self, change: Change) {
        self.profile.add_change(&change);
    }

    fn range(&mut self, first: Bytes, last: Bytes) {
        self.profile.add_range(first, last);
    }

    fn line(&mut self, curve: Curve, line: &SizeLine) {
        self.converged &= line.mark().converged();
        self.profile.add_line(curve, line);
    }

    fn latency(&mut self, latency: &Estimate<SignedPicos>) {
        self.converged &= latency.mark.converged();
        self.profile.add_latency(latency);
    }

    fn warning(&mut self, warning: Warning) {
        if let Some(report) = &mut self.report {
            report.warn(warning);
        }
    }
}

/// A batch of rounds.
///
/// cbindgen:ignore
type Experiments = heapless::Vec<Experiment, ROUNDS_PER_BATCH>;

type Session<'c> = Initiator<'c, &'c CheckedClock, CheckedLink>;

/// Opens a session and runs the planner's rounds until the plan is finished.
#[inline(never)]
fn measure(
    clock: &CheckedClock,
    link: CheckedLink,
    buffers: Buffers<'_>,
    options: &AssessOptions,
    planner: &mut Plan<'_>,
    report: Option<&mut AssessReport>,
) -> Outcome<()> {
    let mut connected = connect(clock, link, buffers, options);
    let session = connected.as_mut().map_err(|detail| *detail)?;
    let began = clock.duration(clock.now());
    let outcome = rounds(session, options, planner);
    if let Some(report) = report {
        report.wall_ps = clock.duration(clock.now()).since(began).0;
        report.count(session.traffic());
    }
    if outcome.is_ok() {
        // Everything has been measured: a lost goodbye does no harm.
        let _ = session.goodbye();
    }
    outcome
}

/// Not inlined, nor are the functions below, so that their stack frames share memory.
#[inline(never)]
fn connect<'c>(
    clock: &'c CheckedClock,
    link: CheckedLink,
    buffers: Buffers<'c>,
    options: &AssessOptions,
) -> Outcome<Session<'c>> {
    let mut stopped = false;
    let on_queue = |queue_position| {
        if options.goes_on(&Progress { queue_position, ..Progress::default() }) {
            return ControlFlow::Continue(());
        }
        stopped = true;
        ControlFlow::Break(())
    };
    let session = Initiator::connect(clock, link, buffers, options.session(), on_queue);
    session.map_err(|error| if stopped { Detail::of(Status::Stopped) } else { no_session(error) })
}

#[inline(never)]
fn rounds(
    session: &mut Session<'_>,
    options: &AssessOptions,
    planner: &mut Plan<'_>,
) -> Outcome<()> {
    let clock = *session.clock();
    let now = || clock.duration(clock.now());
    let mut batch = Experiments::new();
    loop {
        next(planner, now(), &mut batch);
        if batch.is_empty() {
            return Ok(());
        }
        run(session, &batch, planner)?;
        let done = planner.progress(now());
        let (spent_ppm, messages, lost) = (done.spent_ppm, done.messages, done.lost);
        if !options.goes_on(&Progress { queue_position: 0, spent_ppm, messages, lost }) {
            planner.stop();
        }
    }
}

#[inline(never)]
fn next(planner: &mut Plan<'_>, now: Picos, batch: &mut Experiments) {
    planner.fill_batch(now, batch);
}

#[inline(never)]
fn run(session: &mut Session<'_>, batch: &[Experiment], planner: &mut Plan<'_>) -> Outcome<()> {
    let each = |outcome| match outcome {
        Round::Sample(sample) => {
            let _whether_kept = planner.handle_sample(&sample);
        }
        Round::Late(experiment) => planner.handle_late(&experiment),
        Round::Lost(experiment) => planner.handle_lost(&experiment),
    };
    session.run(batch, each).map_err(no_session)
}

#[inline(never)]
fn assess(planner: &mut Plan<'_>, told: &mut Told<'_>) -> Outcome<()> {
    planner.tell(told).map_err(no_assessment)
}
