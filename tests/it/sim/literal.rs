//! A script as the Rust that makes it, so that what is printed of a failing one is pasted into [`found`](super::found); and the
//! scripts that are like it but for one thing, which takes less to write.

use std::fmt::{self, Debug, Display, Formatter};

use super::{
    request::{Registration, Request},
    script::{Ending, Room, Script, Step},
};
use crate::world::Header;

/// `$do!(registration, usual one, each field in turn)`, for all but the two that make it the usual one of its kind.
macro_rules! for_each_field {
    ($do:ident, $one:expr, $usual:expr) => {
        $do!(
            $one,
            $usual,
            [
                cluster,
                id,
                topics,
                version,
                acting,
                zone,
                timeout_millis,
                filter_servers,
                mappings,
                form,
                padding,
                checksum,
                fault
            ]
        )
    };
}

macro_rules! unusual {
    ($one:expr, $usual:expr, [$($field:ident),*]) => {{
        let mut fields = Vec::new();
        $(if $one.$field != $usual.$field {
            fields.push(format!("{}: {}", stringify!($field), rust(&$one.$field)));
        })*
        fields
    }};
}

macro_rules! with_one_usual {
    ($one:expr, $usual:expr, [$($field:ident),*]) => {{
        let mut simpler = Vec::new();
        $(if $one.$field != $usual.$field {
            simpler.push(Registration { $field: $usual.$field, ..Registration::clone($one) });
        })*
        simpler
    }};
}

impl Display for Script {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            start,
            room,
            steps,
            ending,
        } = self;
        writeln!(out, "Script {{\n    start: {},", rust(start))?;
        match *room {
            Room::WIDE => writeln!(out, "    room: Room::WIDE,")?,
            room => writeln!(out, "    room: {room:?},")?,
        }
        writeln!(out, "    steps: vec![")?;
        for step in steps {
            writeln!(out, "        {},", of_step(step))?;
        }
        writeln!(out, "    ],\n    ending: Ending::{ending:?},\n}}")
    }
}

fn of_step(step: &Step) -> String {
    let Step::Send {
        slot,
        request,
        oneway,
        header,
    } = step
    else {
        return rust(step);
    };
    let request = if let Request::Register(one) = request {
        of_registration(one)
    } else {
        rust(request)
    };
    if is_usual(*oneway, *header) {
        format!("send({slot}, {request})")
    } else {
        format!(
            "Send {{ slot: {slot}, request: {request}, oneway: {oneway}, header: Header::{header:?} }}"
        )
    }
}

fn of_registration(one: &Registration) -> String {
    let usual = Registration::usual(one.name, one.addr);
    let fields = for_each_field!(unusual, one, usual);
    let usual = format!("usual({:?}, {:?})", one.name, one.addr);
    if fields.is_empty() {
        return format!("register({usual})");
    }
    let fields = fields.join(", ");
    format!("register(Registration {{ {fields}, ..{usual} }})")
}

fn is_usual(oneway: bool, header: Header) -> bool {
    !oneway && header == Header::Json
}

/// What is `Debug` is Rust, but for what it leaves out.
fn rust(value: &impl Debug) -> String {
    format!("{value:?}").replace('[', "vec![")
}

/// Scripts with one unusual thing less.
pub(super) fn simpler(script: &Script) -> impl Iterator<Item = Script> + '_ {
    let without_a_line = (0..script.start.len()).map(|line| {
        let mut simpler = script.clone();
        simpler.start.remove(line);
        simpler
    });
    let with_room = (script.room != Room::WIDE).then(|| Script {
        room: Room::WIDE,
        ..script.clone()
    });
    let leaving = (script.ending != Ending::Leave).then(|| Script {
        ending: Ending::Leave,
        ..script.clone()
    });
    let of_steps = script
        .steps
        .iter()
        .enumerate()
        .flat_map(move |(number, step)| {
            simpler_steps(step).into_iter().map(move |step| {
                let mut simpler = script.clone();
                simpler.steps[number] = step;
                simpler
            })
        });
    without_a_line
        .chain(with_room)
        .chain(leaving)
        .chain(of_steps)
}

fn simpler_steps(step: &Step) -> Vec<Step> {
    let Step::Send {
        slot,
        request,
        oneway,
        header,
    } = step
    else {
        return Vec::new();
    };
    let mut simpler = Vec::new();
    if !is_usual(*oneway, *header) {
        simpler.push(Step::send(*slot, request.clone()));
    }
    if let Request::Register(one) = request {
        let registrations =
            for_each_field!(with_one_usual, one, Registration::usual(one.name, one.addr));
        simpler.extend(registrations.into_iter().map(|one| Step::Send {
            slot: *slot,
            request: Request::Register(Box::new(one)),
            oneway: *oneway,
            header: *header,
        }));
    }
    simpler
}

impl Step {
    /// A request as most are sent.
    pub(super) fn send(slot: usize, request: Request) -> Self {
        Self::Send {
            slot,
            request,
            oneway: false,
            header: Header::Json,
        }
    }
}
