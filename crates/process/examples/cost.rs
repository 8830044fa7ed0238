//! What running a program through this crate costs, as a ratio to the standard library: `cost PROGRAM [ROUNDS]`.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ollm_process::{BoxMeans, BoxRules, BoxWatch, Children, Job, ProcessBox};

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next().unwrap_or_else(|| "/bin/true".into());
    let rounds = args.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(2000);

    let first = Instant::now();
    let children = Children::new();
    black_box(children.run(Job::new(&program)));
    let first = first.elapsed();

    let (mut floor, mut ours, mut floor_at_once, mut at_once) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(time(|| black_box(bare(&program))));
        ours.push(time(|| black_box(children.run(Job::new(&program)))));
    }
    for _ in 0..rounds / 8 {
        let jobs = (0..8).map(|_| Job::new(&program)).collect();
        at_once.push(time(|| black_box(children.run_all(jobs))));
        floor_at_once.push(time(|| black_box(bare_at_once(&program))));
    }
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..rounds / 8 {
        let started = Instant::now();
        let resident = children.start(&Job::new("/bin/cat"));
        starts.push(started.elapsed());
        ends.push(time(|| resident.map(|resident| resident.stop(Duration::from_secs(1)))));
    }
    let kinds = [BoxMeans::Namespaces, BoxMeans::Landlock].map(|means| (means, BoxWatch::Nothing));
    for (means, watch) in kinds.into_iter().chain([(BoxMeans::Landlock, BoxWatch::Refused)]) {
        boxed(means, watch, &program, rounds / 4, &children);
    }
    let guards: Vec<_> = (0..100).map(|_| time(|| Children::new().run(Job::new(&program)))).collect();

    let [floor, ours, floor_at_once, at_once] = [floor, ours, floor_at_once, at_once].map(median);
    let [starts, ends, guards] = [starts, ends, guards].map(median);
    println!("one job: standard library {floor:?}, run {ours:?}, ratio {:.3}", ratio(ours, floor));
    println!(
        "8 jobs at once: standard library {floor_at_once:?}, run_all {at_once:?}, ratio {:.3}",
        ratio(at_once, floor_at_once)
    );
    println!("resident: start {starts:?}, end {ends:?}");
    println!("guard, one job and end of the guard  {guards:?}; first ever {first:?}");
}

/// What a box adds, beside the same job without one.
fn boxed(means: BoxMeans, watch: BoxWatch, program: &str, rounds: usize, children: &Children) {
    let paths = ["/etc/passwd", "/etc/group", "/etc/hosts", "/usr/share", "/var/log"];
    let rules = BoxRules { read_only: paths.map(PathBuf::from).to_vec(), watch, ..BoxRules::default() };
    let started = Instant::now();
    let made = match ProcessBox::new(means, &rules) {
        Ok(made) => Arc::new(made),
        Err(error) => return println!("box by {}: {error}", means.name()),
    };
    let making = started.elapsed();
    let (mut plain, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(time(|| black_box(children.run(Job::new(program)))));
        let job = Job { process_box: Some(Arc::clone(&made)), ..Job::new(program) };
        inside.push(time(|| black_box(children.run(job))));
    }
    let [plain, inside] = [plain, inside].map(median);
    let watched = if watch == BoxWatch::Nothing { "" } else { ", watched" };
    let name = means.name();
    println!(
        "box by {name}{watched}: made in {making:?}; job {plain:?}, in the box {inside:?}, ratio {:.3}",
        ratio(inside, plain)
    );
}

fn bare(program: &str) -> bool {
    command(program).output().is_ok_and(|output| output.status.success())
}

fn bare_at_once(program: &str) -> bool {
    let children: Vec<_> = (0..8).map(|_| command(program).spawn()).collect();
    children.into_iter().all(|child| child.and_then(Child::wait_with_output).is_ok())
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ratio(ours: Duration, floor: Duration) -> f64 {
    ours.as_secs_f64() / floor.as_secs_f64()
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    black_box(work());
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
