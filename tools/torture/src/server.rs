//! The process under test: started from a folder that outlives it, as often as wanted.

use std::{
    fs::{self, OpenOptions},
    io::{Read, Seek, SeekFrom},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use parity::{Error, Result, launch::write_conf};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

use crate::{pause, usage::Usage};

/// What it prints once it serves, before its address.
const BOOT_LINE: &str = "The Name Server boot success. serializeType=JSON, address ";

/// A program start on a loaded machine takes this long at most.
const BOOT_BOUND: Duration = Duration::from_secs(90);

/// Where a server's files are. They stay while servers come and go.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    conf: PathBuf,
    state: PathBuf,
    binary: PathBuf,
    environment: Vec<(String, String)>,
}

/// A running process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    booted_in: Duration,
}

impl Home {
    /// A new folder with a configuration.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn new(binary: &Path, settings: &[(&str, &str)]) -> Result<Home> {
        let folder = tempfile::Builder::new().prefix("torture-").tempdir()?;
        let state = folder.path().join("state");
        fs::create_dir(&state)?;
        let conf = write_conf(&state, 0, settings)?;
        Ok(Home {
            folder,
            conf,
            state,
            binary: std::path::absolute(binary)?,
            environment: Vec::new(),
        })
    }

    /// Starts servers with this variable.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The folder of the files that a server writes.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// The KV file.
    pub(crate) fn kv_file(&self) -> PathBuf {
        self.state.join("kvConfig.json")
    }

    /// The configuration file.
    pub(crate) fn conf_file(&self) -> &Path {
        &self.conf
    }

    /// A file beside that folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the server and waits until it serves.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn start(&self) -> Result<Server> {
        let log = self.beside("log.txt");
        let mut output = OpenOptions::new().create(true).append(true).open(&log)?;
        let logged = output.seek(SeekFrom::End(0))?;
        let mut command = Command::new(&self.binary);
        command
            .arg("-c")
            .arg(&self.conf)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env_remove("WAYPOST_LOG")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        let started = Instant::now();
        let child = command
            .spawn()
            .map_err(|error| Error::new(format!("cannot start {command:?}: {error}")))?;
        // From here on the guard ends the process, whatever fails.
        let mut server = Server {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            log,
            booted_in: Duration::ZERO,
        };
        server.address = server.await_boot(logged, started)?;
        server.booted_in = started.elapsed();
        Ok(server)
    }
}

impl Server {
    fn await_boot(&mut self, logged: u64, started: Instant) -> Result<SocketAddr> {
        loop {
            let ended = self.child.try_wait()?;
            let text = self.log_from(logged)?;
            let address = text.lines().find_map(|line| line.strip_prefix(BOOT_LINE));
            if let Some(address) = address.and_then(|address| address.parse().ok()) {
                return Ok(address);
            }
            if ended.is_some() || started.elapsed() > BOOT_BOUND {
                return Err(Error::new(format!("the server does not start: {text}")));
            }
            pause(Duration::from_millis(1));
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From its start to its boot line.
    pub(crate) fn booted_in(&self) -> Duration {
        self.booted_in
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it holds now.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid())
    }

    /// What all servers of its home have logged.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn log(&self) -> Result<String> {
        self.log_from(0)
    }

    fn log_from(&self, offset: u64) -> Result<String> {
        let mut file = fs::File::open(&self.log)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)
            .map_err(|error| Error::new(format!("cannot signal the server: {error}")))
    }

    /// Sets how many descriptors it may have open.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn limit_descriptors(&self, count: u64) -> Result<()> {
        let limit = Rlimit {
            current: Some(count),
            maximum: Some(count),
        };
        let pid = Some(Pid::from_child(&self.child));
        prlimit(pid, Resource::Nofile, limit)
            .map(|_| ())
            .map_err(|error| Error::new(format!("cannot limit descriptors: {error}")))
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for its end: its exit code and how long it took; `None` if it does not end.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn wait(&mut self, bound: Duration) -> Result<Option<(Option<i32>, Duration)>> {
        let started = Instant::now();
        while started.elapsed() < bound {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some((status.code(), started.elapsed())));
            }
            pause(Duration::from_millis(1));
        }
        Ok(None)
    }

    /// Ends it in order: SIGTERM, exit code 0.
    ///
    /// # Errors
    /// It does not end so.
    pub(crate) fn terminate(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        match self.wait(BOOT_BOUND)? {
            Some((Some(0), _)) => Ok(()),
            other => Err(Error::new(format!(
                "the server does not end in order: {other:?}"
            ))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that ended by itself can neither be killed nor needs to be.
        self.child.kill().unwrap_or_default();
        if let Err(error) = self.child.wait() {
            crate::say(&format!("cannot wait for the server's end: {error}"));
        }
    }
}

/// Allows this process as many descriptors as the system does; says how many.
pub(crate) fn raise_own_limit() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Without it there are fewer peers, which the caller sees from the answer.
    match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}
