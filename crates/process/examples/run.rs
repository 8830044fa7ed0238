//! Runs a program with input, a deadline and nothing of our own environment.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::time::Duration;

use ollm_process::{Children, End, Job};

fn main() {
    let children = Children::new();
    let mut job = Job {
        args: vec!["-c".into(), "cat; exit 3".into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: b"hello".to_vec(),
        ..Job::new("/bin/sh")
    };
    job.limits.timeout = Duration::from_secs(5);
    let outcome = children.run(job);
    println!("{:?} after {:?}", outcome.end, String::from_utf8_lossy(&outcome.stdout));
    assert!(matches!(outcome.end, End::Exited(3)));
    assert_eq!(outcome.stdout, b"hello");
}
