//! Counts in a file that many processes may change at once.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_store::versioned;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("counter.json");
    let mut last = 0;
    for _ in 0..3 {
        // Version 1, at most 4096 bytes; the file is locked meanwhile and replaced in one step.
        last = versioned::update(&path, 1, 4096, |before| {
            let count = before.as_ref().and_then(|before| before.get("count")).and_then(Value::as_u64).unwrap_or(0) + 1;
            Ok((Some(json!({"version": 1, "count": count})), count))
        })?;
    }
    println!("{}", std::fs::read_to_string(&path)?);
    assert_eq!(last, 3);
    Ok(())
}
