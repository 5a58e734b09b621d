//! Checks as `JUnit` XML, and as annotations of GitHub.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::BytesDecl;
use quick_xml::events::{BytesText, Event};

use crate::assertion::{Holds, Judged};
use crate::compare::{Comparison, Outcome};
use crate::output::comparison;

/// A check and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// What came of it.
    pub outcome: CheckOutcome,
}

/// What came of a check, with a line about it.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckOutcome {
    /// It holds.
    Passed(String),
    /// It does not.
    Failed(String),
    /// It cannot be told.
    Unknown(String),
}

impl Check {
    /// A check for each assertion, and for each row of `comparison`.
    #[must_use]
    pub fn all(assertions: &[Judged], comparison: Option<&Comparison>) -> Vec<Self> {
        let assertions = assertions.iter().map(|judged| {
            let line = judged.to_string();
            let outcome = match judged.verdict {
                Holds::Holds => CheckOutcome::Passed(line),
                Holds::Fails => CheckOutcome::Failed(line),
                Holds::Unknown => CheckOutcome::Unknown(line),
            };
            Self { name: judged.assertion.to_string(), outcome }
        });
        let rows = comparison.map_or(&[][..], |found| &found.parameters);
        let rows = rows.iter().map(|change| {
            let (name, line) = (comparison::name(change), comparison::line(change));
            let outcome = match change.verdict {
                Outcome::Slower => CheckOutcome::Failed(line),
                Outcome::Same | Outcome::Faster => CheckOutcome::Passed(line),
                Outcome::Unknown => CheckOutcome::Unknown(line),
            };
            Self { name, outcome }
        });
        assertions.chain(rows).collect()
    }

    fn is_failed(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Failed(_))
    }

    fn is_unknown(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Unknown(_))
    }

    /// The check as a workflow command of GitHub, which shows it beside the job; `None` if it holds.
    #[must_use]
    pub fn annotation(&self) -> Option<String> {
        let (level, line) = match &self.outcome {
            CheckOutcome::Failed(line) => ("error", line),
            CheckOutcome::Unknown(line) => ("notice", line),
            CheckOutcome::Passed(_) => return None,
        };
        let line = line.replace('%', "%25");
        Some(format!("::{level} title=loggap::{line}"))
    }
}

/// Writes `checks` as a test suite named `suite`; what cannot be told counts as skipped.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, suite: &str, checks: &[Check]) -> io::Result<()> {
    let mut writer = Writer::new_with_indent(out, b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count =
        |of: fn(&Check) -> bool| checks.iter().filter(|check| of(check)).count().to_string();
    let counts = [
        ("tests", checks.len().to_string()),
        ("failures", count(Check::is_failed)),
        ("skipped", count(Check::is_unknown)),
    ];
    let counts = || counts.iter().map(|(key, value)| (*key, value.as_str()));
    writer.create_element("testsuites").with_attributes(counts()).write_inner_content(
        |writer| {
            writer
                .create_element("testsuite")
                .with_attribute(("name", suite))
                .with_attributes(counts())
                .write_inner_content(|writer| {
                    checks.iter().try_for_each(|check| write_case(writer, suite, check))
                })?;
            Ok(())
        },
    )?;
    writer.get_mut().write_all(b"\n")
}

fn write_case(writer: &mut Writer<&mut dyn Write>, suite: &str, check: &Check) -> io::Result<()> {
    let case = writer
        .create_element("testcase")
        .with_attributes([("classname", suite), ("name", check.name.as_str())]);
    case.write_inner_content(|writer| {
        match &check.outcome {
            CheckOutcome::Passed(line) => {
                writer.create_element("system-out").write_text_content(BytesText::new(line))?
            }
            CheckOutcome::Failed(line) => writer
                .create_element("failure")
                .with_attribute(("message", line.as_str()))
                .write_empty()?,
            CheckOutcome::Unknown(line) => writer
                .create_element("skipped")
                .with_attribute(("message", line.as_str()))
                .write_empty()?,
        };
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quick_xml::Reader;

    #[test]
    fn a_suite_counts_its_checks_and_escapes_their_texts() {
        let check = |name: &str, outcome| Check { name: name.to_owned(), outcome };
        let checks = [
            check("gap<1us@8", CheckOutcome::Failed("fails: gap<1us@8, +20%".into())),
            check("b", CheckOutcome::Passed("holds".into())),
            check("c", CheckOutcome::Unknown("cannot \"tell\"".into())),
        ];
        let mut text = Vec::new();
        write(&mut text, "measure", &checks).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#"<testsuites tests="3" failures="1" skipped="1">"#), "{text}");
        assert!(text.contains(r#"name="gap&lt;1us@8""#), "{text}");
        let mut reader = Reader::from_str(&text);
        let mut names = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Eof => break,
                Event::Start(tag) | Event::Empty(tag) => {
                    names.push(String::from_utf8(tag.name().as_ref().to_vec()).unwrap());
                }
                _ => {}
            }
        }
        assert_eq!(
            names,
            [
                "testsuites",
                "testsuite",
                "testcase",
                "failure",
                "testcase",
                "system-out",
                "testcase",
                "skipped"
            ]
        );
        let annotations: Vec<_> = checks.iter().filter_map(Check::annotation).collect();
        assert_eq!(
            annotations,
            [
                "::error title=loggap::fails: gap<1us@8, +20%25",
                "::notice title=loggap::cannot \"tell\""
            ]
        );
    }
}
