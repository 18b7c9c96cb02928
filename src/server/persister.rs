//! Writes files while the writer goes on, and reports when they are safe.

use std::path::Path;

use super::{
    file::{self, Store},
    message::PersistJob,
};
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
    paths: Paths,
    files: Files,
    reports: Sender<Command, Unparker>,
}

impl Persister {
    /// Looks at the files before anything is served.
    pub(super) fn new(paths: Paths, reports: Sender<Command, Unparker>) -> Self {
        let files = Files::open(&paths);
        Self {
            paths,
            files,
            reports,
        }
    }

    /// Runs until `stop` is raised and every job sent before that is reported.
    pub(super) fn run(
        mut self,
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

    fn perform(&mut self, job: &PersistJob, parker: &Parker) {
        let (path, store) = match job.ticket.file {
            PersistFile::KvConfig => (&self.paths.kv_config, &mut self.files.kv_config),
            PersistFile::Properties => (&self.paths.properties, &mut self.files.properties),
        };
        let result = match store.replace(&job.content.to_bytes()) {
            Ok(shortcomings) => {
                for shortcoming in shortcomings {
                    tracing::warn!("{path} {shortcoming}");
                }
                Ok(())
            }
            Err(error) => {
                tracing::error!("cannot write {path}: {error}");
                Err(format!("cannot write {path}: {error}"))
            }
        };
        let mut report = Command::Persisted(job.ticket, result);
        // Somebody waits for this report; a full mailbox only delays it.
        while let Err(Full(unsent)) = self.reports.send(report) {
            report = unsent;
            parker.park(Some(RETRY_INTERVAL));
        }
    }
}

/// What is written.
#[derive(Debug)]
struct Files {
    kv_config: Store,
    properties: Store,
}

impl Files {
    /// Tidies up behind servers that were killed, and says what the operator would otherwise see at the first change. Whether the KV
    /// file can be written is said when it is loaded.
    fn open(paths: &Paths) -> Self {
        for path in [&paths.kv_config, &paths.properties] {
            if let Err(error) = file::remove_left_over(Path::new(path)) {
                tracing::debug!("cannot look for temporary files beside {path}: {error}");
            }
        }
        if let Err(error) = file::check_kind(Path::new(&paths.properties)) {
            tracing::warn!(
                "{} (configStorePath) cannot be written, so changes of the configuration will be refused: {error}",
                paths.properties
            );
        }
        let mut kv_config = Store::new(Path::new(&paths.kv_config));
        // Several servers may well read one configuration, as long as no request changes it.
        if let Some(shortcoming) = kv_config.claim() {
            tracing::warn!("{} (kvConfigPath) {shortcoming}", paths.kv_config);
        }
        Self {
            kv_config,
            properties: Store::new(Path::new(&paths.properties)),
        }
    }
}
