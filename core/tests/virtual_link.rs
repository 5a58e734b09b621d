//! Whole measurements of a link on virtual time whose parameters are known:
//! planner, session, kernels, responder, fit and assessment together.

#[cfg(test)]
mod whole {
    use std::cell::RefCell;
    use std::convert::Infallible;
    use std::ops::ControlFlow;

    use loggap_core::fit::{Cell, Node, Point, Segment};
    use loggap_core::measure::{
        AssessMemory, AssessOptions, AssessRequirements, Assessment, Buffers, Clock, Conclusion,
        Disturbance, Experiment, Initiator, Link, LinkProperties, Outcome, PlanMemory, PlanOptions,
        PlanRequirements, Planner, RowHeader, RowPlan, Sample, SampleStore, SessionOptions,
        Simulated, Slot, StoreRequirements, Truth, coarse_sizes,
    };
    use loggap_core::model::{Change, Range, SizeLine};
    use loggap_core::units::{Bytes, PerByte, Picos, SignedPicos};

    const LARGEST: u32 = 65_536;

    /// Clock and link are one thing that both ends of the session share.
    struct Shared<'a, 't>(&'a RefCell<Simulated<'t>>);

    impl Clock for Shared<'_, '_> {
        fn now(&self) -> u64 {
            self.0.borrow().now()
        }
        fn duration(&self, ticks: u64) -> Picos {
            Picos(ticks)
        }
        fn ticks(&self, duration: Picos) -> u64 {
            duration.0
        }
        fn read_cost(&self) -> Picos {
            self.0.borrow().read_cost()
        }
    }

    impl Link for Shared<'_, '_> {
        type Error = Infallible;
        fn properties(&self) -> LinkProperties {
            self.0.borrow().properties()
        }
        fn send(&mut self, message: &[u8]) -> Result<(), Infallible> {
            self.0.borrow_mut().send(message)
        }
        fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Infallible> {
            self.0.borrow_mut().poll_receive(buffer)
        }
        fn discard(&mut self) -> Result<(), Infallible> {
            self.0.borrow_mut().discard()
        }
    }

    /// The memory of an analysis.
    struct Analysis(Vec<Point>, Vec<Node>, Vec<Cell>, Vec<Segment>);

    impl Analysis {
        fn new(needed: AssessRequirements) -> Self {
            Self(
                vec![Point::default(); needed.points],
                vec![Node::default(); needed.nodes],
                vec![Cell::default(); needed.cells],
                vec![Segment::default(); needed.segments],
            )
        }

        fn lend(&mut self) -> AssessMemory<'_> {
            let Self(points, nodes, cells, segments) = self;
            AssessMemory { points, nodes, cells, segments }
        }
    }

    /// What a measurement gave.
    struct Measured {
        assessment: Assessment,
        conclusion: Option<Conclusion>,
        samples: Vec<Sample>,
    }

    fn measure(
        truth: &[Truth],
        disturbance: Disturbance,
        options: PlanOptions,
        rows: usize,
        repetitions: usize,
    ) -> Measured {
        let needed = PlanRequirements::new(rows, repetitions, options.assess.max_changes).unwrap();
        let mut headers = vec![RowHeader::default(); needed.store.rows];
        let mut values = vec![0; needed.store.values];
        let mut plans = vec![RowPlan::default(); needed.plans];
        let mut order = vec![Slot::default(); needed.order];
        let mut analysis = Analysis::new(needed.assess);
        let memory = PlanMemory {
            rows: &mut headers,
            values: &mut values,
            plans: &mut plans,
            order: &mut order,
            assess: analysis.lend(),
        };
        let mut sizes = [0; 32];
        let count = coarse_sizes(1, LARGEST, &mut sizes[..rows.min(32)]);
        let mut planner: Planner<'_> = Planner::new(options, &sizes[..count], memory).unwrap();

        let simulated = RefCell::new(Simulated::new(truth, disturbance, Picos(20_000)));
        let (mut outgoing, mut incoming) = (vec![0; LARGEST as usize], vec![0; LARGEST as usize]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let (clock, link) = (Shared(&simulated), Shared(&simulated));
        let mut session =
            Initiator::connect(clock, link, buffers, SessionOptions::default(), |_| {
                ControlFlow::Continue(())
            })
            .unwrap();
        let mut samples = vec![];
        let now = || Picos(simulated.borrow().now());
        loop {
            let batch: heapless::Vec<Experiment, 16> = planner.poll_batch(now());
            if batch.is_empty() {
                break;
            }
            let mut outcomes = vec![];
            session.run(&batch, |outcome| outcomes.push(outcome)).unwrap();
            for outcome in outcomes {
                match outcome {
                    Outcome::Sample(sample) => {
                        if planner.handle_sample(&sample) == loggap_core::measure::Kept::Stored {
                            samples.push(sample);
                        }
                    }
                    Outcome::Lost(experiment) => planner.handle_lost(&experiment),
                }
            }
        }
        Measured {
            conclusion: planner.conclusion(),
            assessment: planner.assess().unwrap(),
            samples,
        }
    }

    fn truth(first_size: u32, gap: u64, gap_per_byte: u64) -> Truth {
        Truth {
            first_size,
            latency: Picos(5_000_000),
            send_overhead: Picos(700_000),
            send_overhead_per_byte: PerByte(30 << 16),
            recv_overhead: Picos(900_000),
            recv_overhead_per_byte: PerByte(20 << 16),
            gap: Picos(gap),
            gap_per_byte: PerByte(gap_per_byte << 16),
        }
    }

    /// All protocols' lines as (range, parameter, measured, true) at size 1 and
    /// per byte.
    fn compare(measured: &Range, truth: &Truth) -> [(&'static str, f64, f64); 9] {
        let picos = |value: SignedPicos| value.0 as f64;
        let line = |line: Option<SizeLine>| {
            let line = line.expect("measured");
            (picos(line.at_one.value), line.per_byte.value.0 as f64 / 65_536.0)
        };
        let per_byte = |value: PerByte| value.0 as f64 / 65_536.0;
        let (gap, send, recv) =
            (line(Some(measured.gap)), line(measured.send_overhead), line(measured.recv_overhead));
        let half_rtt = line(measured.half_rtt);
        let ends = truth.send_overhead.0 + truth.recv_overhead.0;
        let slope =
            truth.gap_per_byte.0 + truth.send_overhead_per_byte.0 + truth.recv_overhead_per_byte.0;
        [
            ("g", gap.0, truth.gap.0 as f64),
            ("G", gap.1, per_byte(truth.gap_per_byte)),
            ("o_s", send.0, truth.send_overhead.0 as f64),
            ("O_s", send.1, per_byte(truth.send_overhead_per_byte)),
            ("o_r", recv.0, truth.recv_overhead.0 as f64),
            ("O_r", recv.1, per_byte(truth.recv_overhead_per_byte)),
            ("L", picos(measured.latency.expect("positive").value), truth.latency.0 as f64),
            ("RTT/2", half_rtt.0, (truth.latency.0 + ends) as f64),
            ("RTT/2 per byte", half_rtt.1, per_byte(PerByte(slope))),
        ]
    }

    #[test]
    fn without_noise_all_parameters_and_changes_come_out_exactly() {
        let truths =
            [truth(1, 1_500_000, 80), truth(4_097, 6_000_000, 60), truth(20_001, 12_000_000, 50)];
        for protocols in 1..=3 {
            let truths = &truths[..protocols];
            let measured = measure(truths, Disturbance::default(), PlanOptions::default(), 96, 64);
            assert_eq!(measured.conclusion, Some(Conclusion::Converged));
            let Assessment { profile, warnings, .. } = &measured.assessment;
            assert!(warnings.is_empty(), "{warnings:?}");
            assert_eq!(profile.ranges.len(), protocols);
            for (change, truth) in profile.changes.iter().zip(&truths[1..]) {
                let exact = Bytes(u64::from(truth.first_size));
                assert_eq!(*change, Change { at: exact, low: exact, high: exact });
            }
            for (range, truth) in profile.ranges.iter().zip(truths) {
                for (name, value, expected) in compare(range, truth) {
                    // Times to 2 ps, slopes to what 2 ps are over the range.
                    assert!((value - expected).abs() <= 2.0, "{name}: {value}, truly {expected}");
                }
            }
        }
    }

    #[test]
    fn the_stored_samples_in_any_order_give_the_same_assessment() {
        let truths = [truth(1, 1_500_000, 80), truth(4_097, 6_000_000, 60)];
        let disturbance = Disturbance { seed: 3, noise: 0.05, outliers: 0.02, losses: 0.0 };
        let mut measured = measure(&truths, disturbance, PlanOptions::default(), 96, 64);
        measured.samples.reverse();
        measured.samples.sort_by_key(|sample| sample.elapsed);
        let needed = StoreRequirements::new(200, 100).unwrap();
        let mut rows = vec![RowHeader::default(); needed.rows];
        let mut values = vec![0; needed.values];
        let mut store = SampleStore::new(&mut rows, &mut values);
        for sample in &measured.samples {
            store.insert(sample).unwrap();
        }
        let options = AssessOptions::default();
        let mut analysis = Analysis::new(AssessRequirements::new(200, options.max_changes));
        let again = Assessment::new(&store, &options, &mut analysis.lend()).unwrap();
        assert_eq!(again, measured.assessment);
    }
}
