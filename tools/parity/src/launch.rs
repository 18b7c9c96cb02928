//! Starting servers under test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// What every name server prints once it serves.
const BOOT_LINE: &str = "The Name Server boot success";

/// A program start on a loaded machine takes this long at most.
const BOOT_BOUND: Duration = Duration::from_secs(90);

/// How long the runner waits for things that take no time in one server and some in another.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// All sections at once, each with its server.
    pub parallel: bool,
    /// Silence after which the runner looks whether the connection still serves.
    pub quiet: Duration,
    /// How long a straggler may come after a later request was answered.
    pub grace: Duration,
    /// Pause between the chunks of a frame sent in pieces.
    pub chunk_pause: Duration,
    /// Pause between polls, and how long to poll.
    pub poll_step: Duration,
    /// How long to poll for.
    pub poll_bound: Duration,
    /// How long to wait for a notification.
    pub notice_bound: Duration,
}

impl Pace {
    /// For servers that answer the requests of a connection in order and at once.
    #[must_use]
    pub fn brisk() -> Pace {
        Pace {
            parallel: true,
            quiet: Duration::from_millis(250),
            grace: Duration::from_millis(15),
            chunk_pause: Duration::from_millis(1),
            poll_step: Duration::from_millis(5),
            poll_bound: Duration::from_secs(6),
            notice_bound: Duration::from_millis(1500),
        }
    }

    /// For servers with thread pools on a busy machine, one at a time.
    #[must_use]
    pub fn patient() -> Pace {
        Pace {
            parallel: false,
            quiet: Duration::from_millis(600),
            grace: Duration::from_millis(250),
            chunk_pause: Duration::from_millis(3),
            poll_step: Duration::from_millis(40),
            poll_bound: Duration::from_secs(8),
            notice_bound: Duration::from_millis(2500),
        }
    }
}

/// Starts servers.
pub trait Launcher {
    /// What the server is called in reports.
    fn name(&self) -> String;

    /// How patient the runner should be.
    fn pace(&self) -> Pace;

    /// Starts a server for a section with these settings, and waits until it serves.
    ///
    /// # Errors
    /// It does not start.
    fn launch(&mut self, section: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Server>>;
}

/// A running server; dropping it ends it.
pub trait Server: Send {
    /// Where it listens.
    fn address(&self) -> SocketAddr;

    /// Sends it SIGTERM.
    ///
    /// # Errors
    /// The signal cannot be sent.
    fn terminate(&mut self) -> Result<()>;

    /// Whether it was sent SIGTERM.
    fn is_ending(&self) -> bool;
}

/// A server process with a folder of its own.
#[derive(Debug)]
pub struct ProcessServer {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
    keep_folder: bool,
    ending: bool,
}

impl Server for ProcessServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn terminate(&mut self) -> Result<()> {
        self.ending = true;
        let status = Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(Error::new("cannot signal the server".to_owned()))
        }
    }

    fn is_ending(&self) -> bool {
        self.ending
    }
}

impl Drop for ProcessServer {
    fn drop(&mut self) {
        // A process that ended by itself can neither be killed nor needs to be.
        self.child.kill().unwrap_or_default();
        if let Err(error) = self.child.wait() {
            eprintln!("cannot wait for the server's end: {error}");
        }
        if !self.keep_folder
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// Starts a native `mqnamesrv`.
#[derive(Debug)]
pub struct ProcessLauncher {
    program: PathBuf,
    pace: Pace,
}

impl ProcessLauncher {
    /// Starts the program at `path`, seen from the present folder; each server has a folder of its own.
    pub fn new(path: impl Into<PathBuf>) -> ProcessLauncher {
        let path = path.into();
        ProcessLauncher {
            program: std::path::absolute(&path).unwrap_or(path),
            pace: Pace::brisk(),
        }
    }
}

impl Launcher for ProcessLauncher {
    fn name(&self) -> String {
        "ours".to_owned()
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn launch(&mut self, section: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Server>> {
        let folder = fresh_folder(&std::env::temp_dir(), section)?;
        let conf = write_conf(&folder, 0, settings)?;
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(conf).current_dir(&folder);
        command.env("HOME", &folder).env("ROCKETMQ_HOME", &folder);
        command
            .env_remove("NAMESRV_ADDR")
            .env_remove("ROCKETMQ_SERIALIZE_TYPE")
            .env_remove("JAVA_OPT_EXT");
        Ok(Box::new(start(command, folder, false, None)?))
    }
}

/// Starts a process, waits for its boot line and learns its address from it, unless it is known.
///
/// # Errors
/// The process does not start, or does not say that it serves in time.
pub fn start(
    mut command: Command,
    folder: PathBuf,
    keep_folder: bool,
    known: Option<SocketAddr>,
) -> Result<ProcessServer> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(fs::File::create(folder.join("stderr.txt"))?);
    let mut child = command
        .spawn()
        .map_err(|error| Error::new(format!("cannot start {command:?}: {error}")))?;
    let output = child.stdout.take().expect("standard output is piped");
    // From here on the guard ends the process, whatever fails.
    let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut server = ProcessServer {
        child,
        address: known.unwrap_or(unknown),
        folder,
        keep_folder,
        ending: false,
    };
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output)
            .lines()
            .map_while(std::result::Result::ok)
        {
            if line.contains(BOOT_LINE) && sender.send(line).is_err() {
                return;
            }
        }
    });
    let line = receiver.recv_timeout(BOOT_BOUND).map_err(|_| {
        let text = fs::read_to_string(server.folder.join("stderr.txt")).unwrap_or_default();
        Error::new(format!(
            "the server does not say that it serves; its standard error: {text}"
        ))
    })?;
    if known.is_none() {
        let address = line
            .rsplit("address ")
            .next()
            .and_then(|text| text.trim().parse().ok());
        server.address = address.ok_or_else(|| Error::new(format!("no address in {line:?}")))?;
    }
    Ok(server)
}

/// Writes `namesrv.conf` with the given settings, on `127.0.0.1`, and returns its path.
///
/// # Errors
/// The file cannot be written.
pub fn write_conf(folder: &Path, port: u16, settings: &[(&str, &str)]) -> Result<PathBuf> {
    let conf = folder.join("namesrv.conf");
    let kv = folder.join("kvConfig.json");
    let lines: String = settings
        .iter()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    let text = format!(
        "bindAddress=127.0.0.1\nlistenPort={port}\nkvConfigPath={}\n{lines}",
        kv.display()
    );
    fs::write(&conf, text)?;
    Ok(conf)
}

/// A new folder for one server.
///
/// # Errors
/// It cannot be made.
pub fn fresh_folder(parent: &Path, section: &str) -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Only a number to tell folders of this process apart; it orders nothing.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = parent.join(format!("parity-{}-{count}-{section}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A port nobody listens on right now.
///
/// # Errors
/// None is free.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
