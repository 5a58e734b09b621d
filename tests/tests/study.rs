//! `loggap study`.

use loggap_tests::command::loggap;
use serde_json::Value;

#[test]
fn the_papers_conclusions_come_out() -> Result<(), Box<dyn std::error::Error>> {
    let output = loggap().args(["study", "pipelining", "-J"]).output()?;
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let links = document["links"].as_array().ok_or("no links")?;
    assert_eq!(links.len(), 2);
    // On Ethernet the pipeline looks better up to 256 ranks, then no more.
    let misled: Vec<u64> = serde_json::from_value(links[0]["loop_misleads_at_ranks"].clone())?;
    assert_eq!(misled, [8, 16, 32, 64, 128, 256]);
    for link in links {
        let error = |algorithm: &str, ranks: u64| {
            let rows = link["rows"].as_array()?.iter();
            let mut rows = rows.filter(|row| row["algorithm"] == algorithm);
            rows.find(|row| row["ranks"] == ranks)?["loop_error_s"].as_f64()
        };
        let growth = |algorithm| {
            let errors = (error(algorithm, 1_024)?, error(algorithm, 512)?);
            Some(errors.0 / errors.1)
        };
        // Doubling the ranks doubles one error and adds a tenth to the other.
        assert!((growth("pipeline").ok_or("no row")? - 2.0).abs() < 0.01);
        assert!((growth("binomial").ok_or("no row")? - 10.0 / 9.0).abs() < 0.01);
    }
    Ok(())
}

#[test]
fn the_plots_appear_and_the_table_names_its_units() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().join("fig9");
    let output = loggap()
        .args(["study", "pipelining", "--ranks", "2:32", "-n", "20", "--preset", "odin", "--plot"])
        .arg(&prefix)
        .output()?;
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("loop[us]"), "{text}");
    for ending in ["-time.svg", "-error.svg"] {
        let mut name = prefix.clone().into_os_string();
        name.push(ending);
        let picture = std::fs::read_to_string(name)?;
        assert!(picture.starts_with("<svg") && picture.contains("odin, pipeline, loop"));
    }
    Ok(())
}

#[test]
fn absurd_requests_are_refused_before_any_work() {
    for arguments in [
        &["--ranks", "0"][..],
        &["--ranks", "8G"],
        &["--ranks", "1G", "-n", "4000000000"],
        &["-s", "1G", "--segment", "1", "-n", "4000000000"],
        &["--preset", "abacus"],
        &["-n", "0"],
    ] {
        let assert = loggap().args(["study", "pipelining"]).args(arguments).assert().code(2);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(!message.contains("unrecognized"), "{arguments:?}: {message}");
    }
}
