//! Writes files while the writer goes on, and reports when they are safe.

use super::{file, message::PersistJob};
use crate::{
    limits::{PERSIST_JOBS_MAX, RETRY_INTERVAL},
    registry::{Command, command::PersistFile},
    sync::{Flag, Full, Parker, Receiver, Sender, Unparker},
};

/// Where the files lie.
#[derive(Debug)]
pub(super) struct Paths {
    /// `kvConfigPath`
    pub(super) kv_config: String,
    /// `configStorePath`
    pub(super) properties: String,
}

/// The thread that writes files.
#[derive(Debug)]
pub(super) struct Persister {
    pub(super) paths: Paths,
    pub(super) reports: Sender<Command, Unparker>,
}

impl Persister {
    /// Runs until `stop` is raised and every job sent before that is reported.
    pub(super) fn run(
        self,
        mut jobs: Receiver<PersistJob, Unparker>,
        parker: &Parker,
        stop: &Flag,
    ) {
        loop {
            let stopping = stop.is_raised();
            let drained = jobs.drain(PERSIST_JOBS_MAX, |job| self.perform(&job, parker));
            if drained.count == 0 {
                if stopping {
                    return;
                }
                parker.park(None);
            }
        }
    }

    fn perform(&self, job: &PersistJob, parker: &Parker) {
        let path = match job.ticket.file {
            PersistFile::KvConfig => &self.paths.kv_config,
            PersistFile::Properties => &self.paths.properties,
        };
        let result = file::replace(path.as_ref(), &job.content.to_bytes()).map_err(|error| {
            tracing::error!("cannot write {path}: {error}");
            format!("cannot write {path}: {error}")
        });
        let mut report = Command::Persisted(job.ticket, result);
        // Somebody waits for this report; a full mailbox only delays it.
        while let Err(Full(unsent)) = self.reports.send(report) {
            report = unsent;
            parker.park(Some(RETRY_INTERVAL));
        }
    }
}
