//! The script: sections of themes of steps.
//!
//! A *section* is one start of a server with given settings, a *theme* one file's worth of steps on one matter, a
//! *step* one thing sent and what comes back. Themes of a section share the server but no connections, and use
//! names of their own.

use std::time::Duration;

use crate::frame::Frame;

mod acting;
mod body_compressed;
mod body_plain;
pub mod build;
mod config;
mod errors;
mod framing;
mod header_binary;
mod header_json;
mod hostile;
mod kv;
mod lists;
mod liveness;
mod register;
mod route;
mod sections;
mod topics_admin;
mod unregister;

pub use sections::sections;

/// Opaque of frames inside raw bytes.
pub const RAW_OPAQUE: i32 = 77;

/// One server start and what is asked of it.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name, unique.
    pub name: &'static str,
    /// Lines of the configuration file.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Its themes, in order.
    pub themes: Vec<Theme>,
}

/// Steps on one matter.
#[derive(Clone, Debug)]
pub struct Theme {
    /// Name, unique; the first part of every step's id.
    pub name: &'static str,
    /// The steps, in order.
    pub steps: Vec<Step>,
    connection: String,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// `theme/name`, unique and stable; empty for an action that shows nothing.
    pub id: String,
    /// Connection it uses; opened when first used, and again after the server closed it.
    pub connection: String,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends one request and takes what comes back.
    Ask(Frame),
    /// Sends one request, and looks only at those lines of the body that begin with one of these keys.
    Lines(Frame, Vec<&'static str>),
    /// Sends one request that should stay unanswered, and sees that the connection still serves.
    Quiet(Frame),
    /// Sends several requests at once.
    Pipeline(Vec<Frame>),
    /// Asks again until the answer is as wanted or the bound has passed; the last answer counts.
    Until(Frame, Wanted),
    /// Sends all of these again and again for a time; the last answer of each counts.
    Repeat(Duration, Vec<Frame>),
    /// Sends bytes on a connection of their own, chunk by chunk.
    Raw(Vec<Vec<u8>>, Watch),
    /// Waits for the server to close the connection.
    AwaitClose,
    /// Closes the connection.
    Close,
    /// Closes the connection by RST.
    Reset,
    /// Sends FIN and leaves the connection open for reading.
    HalfClose,
    /// Waits until the server has worked off closed connections and queued unregistrations.
    Settle,
    /// Opens a listening socket named like the connection; `@name@` stands for its address.
    Listen,
    /// Takes the next frame that arrives at the listener.
    Heard,
    /// Sees that no frame arrives at the listener.
    Unheard,
    /// Asks the server's process to end (SIGTERM).
    Terminate,
}

/// When polling ends.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The answer has this code.
    Code(i32),
    /// The body contains this text.
    BodyWith(&'static str),
    /// The body lacks this text.
    BodyWithout(&'static str),
}

/// What is looked at after raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The answer, the close, or whether the connection still serves.
    Answer,
    /// Whether the connection stays open; it cannot serve, as the frame is unfinished.
    Open,
    /// Only the fate of the connection: whether an answer gets out before the close is a race.
    Fate,
}

impl Theme {
    /// An empty theme, on connection `a`.
    #[must_use]
    pub fn new(name: &'static str) -> Theme {
        Theme {
            name,
            steps: Vec::new(),
            connection: "a".to_owned(),
        }
    }

    /// Makes the following steps use this connection.
    pub fn on(&mut self, connection: &str) -> &mut Theme {
        connection.clone_into(&mut self.connection);
        self
    }

    fn add(&mut self, id: &str, action: Action) {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!("{}/{id}", self.name)
        };
        self.steps.push(Step {
            id,
            connection: self.connection.clone(),
            action,
        });
    }

    /// One request, and whatever comes back.
    pub fn ask(&mut self, id: &str, frame: Frame) {
        self.add(id, Action::Ask(frame));
    }

    /// One request whose body is a list of properties, of which only these matter.
    pub fn lines(&mut self, id: &str, frame: Frame, keys: &[&'static str]) {
        self.add(id, Action::Lines(frame, keys.to_vec()));
    }

    /// One request that stays unanswered.
    pub fn quiet(&mut self, id: &str, frame: Frame) {
        self.add(id, Action::Quiet(frame));
    }

    /// Requests sent in one go.
    pub fn pipeline(&mut self, id: &str, frames: Vec<Frame>) {
        self.add(id, Action::Pipeline(frames));
    }

    /// One request again and again, until its answer is as wanted.
    pub fn until(&mut self, id: &str, wanted: Wanted, frame: Frame) {
        self.add(id, Action::Until(frame, wanted));
    }

    /// Requests again and again for a time.
    pub fn repeat(&mut self, id: &str, time: Duration, frames: Vec<Frame>) {
        self.add(id, Action::Repeat(time, frames));
    }

    /// Bytes on a connection of their own; what comes back, or a close.
    pub fn raw(&mut self, id: &str, bytes: impl Into<Vec<u8>>) {
        self.add(id, Action::Raw(vec![bytes.into()], Watch::Answer));
    }

    /// Bytes that leave the server waiting for more.
    pub fn unfinished(&mut self, id: &str, bytes: impl Into<Vec<u8>>) {
        self.add(id, Action::Raw(vec![bytes.into()], Watch::Open));
    }

    /// Bytes of which only the connection's fate is looked at.
    pub fn fate(&mut self, id: &str, bytes: impl Into<Vec<u8>>) {
        self.add(id, Action::Raw(vec![bytes.into()], Watch::Fate));
    }

    /// Bytes in chunks, with a pause after each.
    pub fn chunks(&mut self, id: &str, chunks: Vec<Vec<u8>>) {
        self.add(id, Action::Raw(chunks, Watch::Answer));
    }

    /// Waits for the server to close the current connection.
    pub fn await_close(&mut self, id: &str) {
        self.add(id, Action::AwaitClose);
    }

    /// Closes a connection.
    pub fn close(&mut self, connection: &str) {
        self.on_other(connection, Action::Close);
    }

    /// Closes a connection by RST.
    pub fn reset(&mut self, connection: &str) {
        self.on_other(connection, Action::Reset);
    }

    /// Sends FIN on a connection.
    pub fn half_close(&mut self, connection: &str) {
        self.on_other(connection, Action::HalfClose);
    }

    /// Waits until closes and queued unregistrations have taken effect.
    pub fn settle(&mut self) {
        self.add("", Action::Settle);
    }

    /// Opens a listener; `@name@` in fields and plain bodies stands for its address.
    pub fn listen(&mut self, name: &str) {
        self.on_other(name, Action::Listen);
    }

    /// The next frame at a listener.
    pub fn heard(&mut self, id: &str, name: &str) {
        self.add_on(name, id, Action::Heard);
    }

    /// That no frame comes to a listener; what could make one come must have been settled before.
    pub fn unheard(&mut self, id: &str, name: &str) {
        self.add_on(name, id, Action::Unheard);
    }

    /// Sends SIGTERM to the server.
    pub fn terminate(&mut self) {
        self.add("", Action::Terminate);
    }

    fn add_on(&mut self, connection: &str, id: &str, action: Action) {
        let id = format!("{}/{id}", self.name);
        self.steps.push(Step {
            id,
            connection: connection.to_owned(),
            action,
        });
    }

    fn on_other(&mut self, connection: &str, action: Action) {
        self.steps.push(Step {
            id: String::new(),
            connection: connection.to_owned(),
            action,
        });
    }
}

impl Action {
    /// What is sent, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Action::Ask(frame) => frame.describe(),
            Action::Lines(frame, keys) => format!("{} (only {keys:?})", frame.describe()),
            Action::Quiet(frame) => format!("(no answer expected) {}", frame.describe()),
            Action::Until(frame, wanted) => format!("(until {wanted:?}) {}", frame.describe()),
            Action::Pipeline(frames) => frames
                .iter()
                .map(Frame::describe)
                .collect::<Vec<_>>()
                .join(" | "),
            Action::Repeat(time, frames) => {
                let each = frames
                    .iter()
                    .map(Frame::describe)
                    .collect::<Vec<_>>()
                    .join(" | ");
                format!("(repeated for {time:?}) {each}")
            }
            Action::Raw(chunks, watch) => {
                let bytes = chunks.concat();
                format!(
                    "raw ({watch:?}, {} chunks) {}",
                    chunks.len(),
                    crate::frame::readable(&bytes, 300)
                )
            }
            other => format!("{other:?}"),
        }
    }
}
