//! Table of the methods beside each other.

use loggap_core::model::Coefficient;

use super::number::{self, TIME, Unit};
use crate::profile::{MethodRecord, ProfileDocument};

/// The table, and the reasons for what does not agree.
pub(super) fn lines(document: &ProfileDocument) -> Vec<String> {
    let records = &document.methods;
    let Some(smallest) = document.sizes.first().filter(|_| !records.is_empty()) else {
        return Vec::new();
    };
    let size = number::size(smallest.row.size.0);
    let mut lines = vec![format!(
        "at {size:<11}{:<11}{:>10}  {:<24}{}",
        "method", "value", "interval", "beside prtt"
    )];
    lines.extend(records.iter().enumerate().map(|(index, record)| {
        // Each parameter is named once.
        let before = index.checked_sub(1).and_then(|before| records.get(before));
        let is_named = before.is_some_and(|before| before.parameter == record.parameter);
        row(record, if is_named { "" } else { symbol(&record.parameter) })
    }));
    // Each reason has one line.
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for record in records {
        let Some(reason) = &record.reason else { continue };
        let told = format!("{}, {reason}", record.verdict.name());
        let of = format!("{} of {}", symbol(&record.parameter), record.method);
        match reasons.iter_mut().find(|(known, _)| *known == told) {
            Some((_, all)) => all.push(of),
            None => reasons.push((told, vec![of])),
        }
    }
    lines.extend(reasons.into_iter().map(|(told, all)| format!("{} {told}", all.join(", "))));
    lines
}

/// Symbol of the parameter with this key.
fn symbol(key: &str) -> &'static str {
    let is = |of: &Coefficient| !of.is_per_byte() && of.parameter().key() == key;
    Coefficient::ALL.into_iter().find(is).map_or("?", Coefficient::symbol)
}

fn row(record: &MethodRecord, name: &str) -> String {
    let MethodRecord { method, value, lo, hi, verdict, .. } = record;
    let (mut shown, mut interval) = ("-".to_owned(), String::new());
    if let Some(value) = *value {
        let unit = Unit::fitting(TIME, value.abs(), 1.0);
        shown = unit.with_name(value);
        if let Some((low, high)) = lo.zip(*hi) {
            interval = format!("{} to {}", unit.number(low), unit.number(high));
        }
    }
    let verdict = if method == "prtt" { "" } else { verdict.name() };
    let text = format!("{name:<14}{method:<11}{shown:>10}  {interval:<24}{verdict}");
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Agreement, SizeRecord};
    use loggap_core::measure::SizeRow;
    use loggap_core::units::Bytes;

    fn record(method: &str, parameter: &str, micros: Option<f64>) -> MethodRecord {
        MethodRecord {
            method: method.to_owned(),
            parameter: parameter.to_owned(),
            value: micros.map(|value| value * 1e-6),
            lo: micros.map(|value| (value - 0.1) * 1e-6),
            hi: micros.map(|value| (value + 0.1) * 1e-6),
            verdict: Agreement::Agrees,
            reason: None,
        }
    }

    #[test]
    fn each_method_has_a_row_and_each_reason_a_line() {
        let row = SizeRow { size: Bytes(1), ..SizeRow::default() };
        let differs = MethodRecord {
            verdict: Agreement::Differs,
            reason: Some("+50%: a request and its reply".to_owned()),
            ..record("signature", "gap", Some(3.0))
        };
        let unknown = MethodRecord {
            verdict: Agreement::Unknown,
            reason: Some("too few timings for an interval".to_owned()),
            ..record("plogp", "gap", None)
        };
        let document = ProfileDocument {
            sizes: vec![SizeRecord::from(row)],
            methods: vec![
                record("prtt", "half_rtt", Some(0.95)),
                MethodRecord {
                    reason: unknown.reason.clone(),
                    verdict: Agreement::Unknown,
                    ..record("signature", "half_rtt", Some(0.9))
                },
                record("prtt", "gap", Some(2.0)),
                differs,
                unknown,
            ],
            ..ProfileDocument::default()
        };
        let expected = "\
at 1 B        method          value  interval                beside prtt
RTT/2         prtt           950 ns  850 to 1,050
              signature      900 ns  800 to 1,000            unknown
g             prtt          2.00 us  1.90 to 2.10
              signature     3.00 us  2.90 to 3.10            differs
              plogp               -                          unknown
RTT/2 of signature, g of plogp unknown, too few timings for an interval
g of signature differs, +50%: a request and its reply";
        assert_eq!(lines(&document).join("\n"), expected);
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(serde_json::from_str::<ProfileDocument>(&text).unwrap(), document);
        assert!(lines(&ProfileDocument { methods: vec![], ..document }).is_empty());
    }
}
