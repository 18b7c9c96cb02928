//! What seeds have found, as shortened scripts: a seed stands for another run as soon as [`script`](super::script) changes. Each is
//! here as a failure prints it, and failed before its fault was mended.

use super::{
    request::{Name, Registration, Request, Topic},
    run::play,
    script::{
        Ending, Room, Script,
        Step::{self, Deliver, Finish, Help, Pass, Settle, Stall, Work, Write},
    },
};

#[test]
fn who_is_in_a_large_frame_when_the_process_is_stopped_is_not_taken_for_one_who_stalls() {
    assert_passes(&Script {
        start: vec![],
        room: Room::WIDE,
        steps: vec![
            send(
                1,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h2:1")
                }),
            ),
            Deliver {
                slot: 1,
                bytes: 66536,
            },
            Work,
            send(
                2,
                register(Registration {
                    padding: 131072,
                    ..usual("a", "h2:1")
                }),
            ),
            Deliver {
                slot: 2,
                bytes: 66536,
            },
            Work,
            Stall {
                slot: 0,
                millis: 6000,
            },
        ],
        ending: Ending::Leave,
    });
}

#[test]
fn the_writer_is_told_of_an_end_behind_the_registration_that_the_helper_still_reads() {
    assert_passes(&Script {
        start: vec![],
        room: Room {
            commands: 2,
            orders: 1,
            credits: 4,
            high_water: 200,
            socket: 64,
        },
        steps: vec![
            send(0, register(usual("c", "h1:1"))),
            send(
                0,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h1:1")
                }),
            ),
            Deliver {
                slot: 0,
                bytes: 66536,
            },
            Work,
            Finish { slot: 0 },
            Work,
            Write { commands: 4 },
            Stall { slot: 0, millis: 1 },
            Work,
            Help { jobs: 3 },
            Stall {
                slot: 0,
                millis: 400,
            },
            Write { commands: 5 },
        ],
        ending: Ending::Leave,
    });
}

#[test]
fn a_worker_that_stops_and_so_reads_nothing_judges_nobodys_silence() {
    assert_passes(&Script {
        start: vec![],
        room: Room::WIDE,
        steps: vec![
            send(
                0,
                register(Registration {
                    padding: 131072,
                    ..usual("b", "h1:1")
                }),
            ),
            Deliver {
                slot: 0,
                bytes: 66536,
            },
            Work,
            send(
                2,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h3:1")
                }),
            ),
            Deliver {
                slot: 2,
                bytes: 66536,
            },
            Work,
            Stall {
                slot: 0,
                millis: 6000,
            },
        ],
        ending: Ending::Stop,
    });
}

#[test]
fn a_large_frame_that_begins_behind_another_has_a_time_of_its_own() {
    assert_passes(&Script {
        start: vec![],
        room: Room {
            commands: 2,
            orders: 1,
            credits: 1,
            high_water: 200,
            socket: 64,
        },
        steps: vec![
            send(1, register(usual("c", "h6:1"))),
            send(0, register(usual("c", "h1:1"))),
            send(0, register(usual("c", "h1:1"))),
            send(
                1,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h6:1")
                }),
            ),
            Deliver {
                slot: 1,
                bytes: 66536,
            },
            Work,
            send(
                0,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h1:1")
                }),
            ),
            Deliver {
                slot: 0,
                bytes: 66536,
            },
            Work,
            Pass { millis: 6000 },
            Work,
            Write { commands: 5 },
            Work,
            send(
                1,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h6:1")
                }),
            ),
            Deliver {
                slot: 1,
                bytes: 66536,
            },
            Write { commands: 4 },
            Work,
        ],
        ending: Ending::Leave,
    });
}

/// No fault of the server's: the simulator judged by what had arrived behind the poll.
#[test]
fn who_had_stalled_before_the_process_was_stopped_may_be_closed_though_it_went_on_meanwhile() {
    assert_passes(&Script {
        start: vec![],
        room: Room {
            commands: 2,
            orders: 1,
            credits: 3,
            high_water: 200,
            socket: 64,
        },
        steps: vec![
            send(3, register(usual("c", "h4:1"))),
            send(0, register(usual("c", "h1:1"))),
            send(
                3,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h4:1")
                }),
            ),
            Deliver {
                slot: 3,
                bytes: 66536,
            },
            Work,
            send(
                2,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h3:1")
                }),
            ),
            Deliver {
                slot: 2,
                bytes: 66536,
            },
            Work,
            Pass { millis: 6000 },
            Work,
            Stall {
                slot: 3,
                millis: 60000,
            },
        ],
        ending: Ending::Leave,
    });
}

#[test]
fn a_zone_does_not_see_a_slave_of_another_that_acts_as_master() {
    assert_passes(&Script {
        start: vec![("supportActingMaster", "true")],
        room: Room::WIDE,
        steps: vec![send(
            0,
            register(Registration {
                id: 2,
                acting: Some(true),
                ..usual("a", "h1:1")
            }),
        )],
        ending: Ending::Leave,
    });
}

/// Plays a script of this file, which is there as it would be printed.
#[test]
fn who_is_not_read_while_its_answers_wait_is_not_closed_for_a_stop_of_the_process() {
    assert_passes(&Script {
        start: vec![],
        room: Room {
            commands: 2,
            orders: 1,
            credits: 3,
            high_water: 200,
            socket: 64,
        },
        steps: vec![
            send(0, register(usual("a", "h1:1"))),
            Settle,
            send(2, register(usual("a", "h3:1"))),
            send(
                2,
                register(Registration {
                    id: -1,
                    topics: vec![Topic {
                        name: "a",
                        perm: 2,
                        queues: 4,
                        flag: 3,
                    }],
                    ..usual("a", "h3:1")
                }),
            ),
            Work,
            send(
                2,
                register(Registration {
                    padding: 131072,
                    ..usual("a", "h3:1")
                }),
            ),
            Deliver {
                slot: 2,
                bytes: 66536,
            },
            Work,
            Write { commands: 2 },
            Deliver {
                slot: 2,
                bytes: 66536,
            },
            send(
                3,
                register(Registration {
                    padding: 131072,
                    ..usual("a", "h4:1")
                }),
            ),
            Deliver {
                slot: 3,
                bytes: 66536,
            },
            Work,
            Pass { millis: 6000 },
            Work,
        ],
        ending: Ending::Leave,
    });
}

/// Of the simulator: it did not know that who has stalled may be closed though its end has arrived behind the poll.
#[test]
fn who_had_stalled_may_be_closed_though_all_it_sent_has_come_with_its_end() {
    assert_passes(&Script {
        start: vec![],
        room: Room::WIDE,
        steps: vec![
            send(
                0,
                register(Registration {
                    padding: 131072,
                    ..usual("a", "h1:1")
                }),
            ),
            Deliver {
                slot: 0,
                bytes: 66536,
            },
            Work,
            send(
                1,
                register(Registration {
                    padding: 131072,
                    ..usual("c", "h2:1")
                }),
            ),
            Deliver {
                slot: 1,
                bytes: 66536,
            },
            Work,
            Finish { slot: 0 },
            Stall {
                slot: 5,
                millis: 60000,
            },
            Stall { slot: 0, millis: 1 },
        ],
        ending: Ending::Leave,
    });
}

fn assert_passes(script: &Script) {
    let printed = script.to_string();
    let squeezed = |text: &str| text.replace(|letter| ", \n".contains(letter), "");
    assert!(
        squeezed(include_str!("found.rs")).contains(&squeezed(&printed)),
        "not as it is printed:\n{printed}"
    );
    assert_eq!(play(script), Ok(()), "{printed}");
}

fn send(slot: usize, request: Request) -> Step {
    Step::send(slot, request)
}

fn register(broker: Registration) -> Request {
    Request::Register(Box::new(broker))
}

fn usual(name: Name, addr: Name) -> Registration {
    Registration::usual(name, addr)
}
