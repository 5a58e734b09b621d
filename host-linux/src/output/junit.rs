//! Checks as `JUnit` XML, and as annotations of GitHub.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::BytesDecl;
use quick_xml::events::{BytesText, Event};

use crate::assertion::{Holds, Judged};
use crate::compare::{Comparison, Outcome};
use crate::output::comparison;

/// A check with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether it holds.
    pub verdict: Holds,
    /// A line about it.
    pub line: String,
}

impl Check {
    /// A check for each assertion, and for each row of `comparison`.
    #[must_use]
    pub fn all(assertions: &[Judged], comparison: Option<&Comparison>) -> Vec<Self> {
        let assertions = assertions.iter().map(|judged| Self {
            name: judged.assertion.to_string(),
            verdict: judged.verdict,
            line: judged.to_string(),
        });
        let rows = comparison.map_or(&[][..], |found| &found.parameters);
        let rows = rows.iter().map(|change| Self {
            name: change.name.clone(),
            verdict: match change.verdict {
                Outcome::Slower => Holds::Fails,
                Outcome::Same | Outcome::Faster => Holds::Holds,
                Outcome::Unknown => Holds::Unknown,
            },
            line: comparison::line(change),
        });
        assertions.chain(rows).collect()
    }

    /// The check as a workflow command of GitHub, which shows it beside the job; `None` if it holds.
    #[must_use]
    pub fn annotation(&self) -> Option<String> {
        let level = match self.verdict {
            Holds::Fails => "error",
            Holds::Unknown => "notice",
            Holds::Holds => return None,
        };
        let line = self.line.replace('%', "%25");
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
        |verdict| checks.iter().filter(|check| check.verdict == verdict).count().to_string();
    let counts = [
        ("tests", checks.len().to_string()),
        ("failures", count(Holds::Fails)),
        ("skipped", count(Holds::Unknown)),
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
        let name = match check.verdict {
            Holds::Holds => "system-out",
            Holds::Fails => "failure",
            Holds::Unknown => "skipped",
        };
        let element = writer.create_element(name);
        if check.verdict == Holds::Holds {
            element.write_text_content(BytesText::new(&check.line))?;
        } else {
            element.with_attribute(("message", check.line.as_str())).write_empty()?;
        }
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
        let check = |name: &str, verdict, line: &str| Check {
            name: name.to_owned(),
            verdict,
            line: line.to_owned(),
        };
        let checks = [
            check("gap<1us@8", Holds::Fails, "fails: gap<1us@8, +20%"),
            check("b", Holds::Holds, "holds"),
            check("c", Holds::Unknown, "cannot \"tell\""),
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
