//! A hook's program with its box, and what the box refused.

use std::sync::Arc;

use ollm_process::{BoxWatch, Job, ProcessBox};
use ollm_trust::ProgramBox;

use crate::report::Report;

/// A program that is ready to run. Its box is made when the program starts, perhaps in another process.
#[derive(Debug)]
pub(crate) struct BoxedJob {
    pub(crate) job: Job,
    pub(crate) program_box: Option<ProgramBox>,
}

/// The box of a running program.
#[derive(Debug)]
pub(crate) struct RunningBox(Option<(ProgramBox, Arc<ProcessBox>)>);

impl From<Job> for BoxedJob {
    fn from(job: Job) -> BoxedJob {
        BoxedJob { job, program_box: None }
    }
}

impl BoxedJob {
    /// Makes the box. The error says why the program cannot run in it.
    pub(crate) fn held(self) -> Result<(Job, RunningBox), String> {
        let Some(program_box) = self.program_box else { return Ok((self.job, RunningBox(None))) };
        let job = program_box.hold(self.job);
        let job = job.map_err(|error| format!("it cannot be held to its `permissions`: {error}"))?;
        let made = job.process_box.clone();
        Ok((job, RunningBox(made.map(|made| (program_box, made)))))
    }
}

impl RunningBox {
    /// Adds to a report what the box refused, and every access if the box notes everything.
    pub(crate) fn told(self, mut report: Report, said: &[u8]) -> Report {
        if let Some(error) = report.error.take() {
            report.error = Some(self.with_refusals(error, said));
        } else {
            report.warnings.extend(self.refusals(said));
        }
        if let Some((program_box, made)) = &self.0
            && program_box.watch == BoxWatch::Everything
        {
            report.accesses = made.accesses();
        }
        report
    }

    /// Adds to an error what the box refused, because a refusal is often the cause.
    pub(crate) fn with_refusals(&self, error: String, said: &[u8]) -> String {
        match self.refusals(said) {
            Some(refused) => format!("{error}; {refused}"),
            None => error,
        }
    }

    fn refusals(&self, said: &[u8]) -> Option<String> {
        let (program_box, made) = self.0.as_ref()?;
        program_box.refusals(&made.accesses(), &String::from_utf8_lossy(said))
    }
}
