//! What crashes, other servers and odd file systems leave of a file.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    process,
    str::{self, Utf8Error},
    thread,
};

use super::{
    super::{
        config_file,
        kv_store::{Loaded, load},
        temporary::tests::names,
    },
    *,
};

/// What the next start finds, and what it has to say of it.
fn found(path: &Path) -> (String, usize) {
    let text =
        |bytes: &[u8]| -> Result<String, Utf8Error> { str::from_utf8(bytes).map(str::to_owned) };
    let Loaded { table, problems } = load(path, text).unwrap();
    (table, problems.len())
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Store::new(path).replace(content).map(drop)
}

/// Ends without tidying up, as a crash does.
fn crash(mut change: Change<'_>) {
    let written = [change.fresh.take(), change.fresh_backup.take()];
    written.into_iter().flatten().for_each(Temporary::abandon);
}

#[test]
fn i1_a_crash_behind_any_step_leaves_the_old_content_or_the_new_one() {
    for before in ["", "old"] {
        for count in 0..=REPLACE.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            if !before.is_empty() {
                replace(&path, b"older").unwrap();
                replace(&path, before.as_bytes()).unwrap();
            }
            if count == 0 {
                // In the middle of the first.
                fs::write(with_suffix(&path, ".1-0.tmp"), b"ne").unwrap();
            }

            let mut change = Change::new(path.clone(), b"new", Backup::Replaced).unwrap();
            change.take(&REPLACE[..count]).unwrap();
            crash(change);

            let (content, problems) = found(&path);
            let is_done = count == REPLACE.len();
            assert!(
                content == "new" || (content == before && !is_done),
                "{count} steps: {content}"
            );
            assert_eq!(problems, 0, "{count} steps");
            replace(&path, b"next").unwrap();
            assert_eq!(found(&path), ("next".to_owned(), 0), "{count} steps");
        }
    }
}

/// A file with a backup, and a change of it on its way in place, so many steps far.
fn in_place(path: &Path, count: usize) {
    replace(path, b"older").unwrap();
    replace(path, b"old").unwrap();
    let mut change = Change::new(path.to_owned(), b"newer", Backup::Replaced).unwrap();
    change.take(&REPLACE[..3]).unwrap();
    change.take(&IN_PLACE[..count]).unwrap();
    crash(change);
}

#[test]
fn a_crash_behind_any_step_of_writing_in_place_leaves_the_old_content_or_the_new_one() {
    for count in 0..=IN_PLACE.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        in_place(&path, count);

        let expected = if count < 5 { "old" } else { "newer" };
        assert_eq!(found(&path), (expected.to_owned(), 0), "{count} steps");
        assert_eq!(fs::read(backup_of(&path)).unwrap(), b"old");
        replace(&path, b"next").unwrap();
        assert_eq!(found(&path), ("next".to_owned(), 0), "{count} steps");
        assert_eq!(fs::read(backup_of(&path)).unwrap(), expected.as_bytes());
    }
}

#[test]
fn a_write_in_place_that_was_cut_short_is_undone_by_the_next_start_or_change() {
    let torn: [&[u8]; 6] = [b"", b"n", b"newe", b"\0\0\0\0\0", b"ne\0\0r", b"ol"];
    for torn in torn {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        in_place(&path, 4);
        fs::write(&path, torn).unwrap();

        // Half a configuration would be one, too.
        let start = config_file::read(&path).unwrap();
        assert_eq!(start.bytes, b"old", "{torn:?}");
        assert!(start.problem.is_some());
        assert_eq!(names(folder.path()), ["file", "file.bak"]);

        in_place(&path, 4);
        fs::write(&path, torn).unwrap();
        assert_eq!(found(&path), ("old".to_owned(), 1), "{torn:?}");
        assert_eq!(found(&path), ("old".to_owned(), 0), "{torn:?}");

        in_place(&path, 4);
        fs::write(&path, torn).unwrap();
        replace(&path, b"next").unwrap();
        assert_eq!(fs::read(backup_of(&path)).unwrap(), b"old", "{torn:?}");
        assert_eq!(names(folder.path()), ["file", "file.bak"]);
    }
}

#[test]
fn what_somebody_else_has_written_since_is_not_undone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    in_place(&path, 4);
    fs::write(&path, b"by hand").unwrap();

    assert_eq!(found(&path), ("by hand".to_owned(), 0));
    assert_eq!(names(folder.path()), ["file", "file.bak"]);
}

#[test]
fn a_file_that_is_being_written_in_place_is_left_to_who_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    replace(&path, b"old").unwrap();
    let mut change = Change::new(path.clone(), b"new", Backup::Replaced).unwrap();
    change.take(&REPLACE[..3]).unwrap();
    change.take(&IN_PLACE[..4]).unwrap();
    fs::write(&path, b"ne").unwrap();

    assert!(!mend(&path).unwrap());

    assert_eq!(fs::read(&path).unwrap(), b"ne");
    change.take(&IN_PLACE[4..]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn half_a_configuration_without_a_backup_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    in_place(&path, 4);
    fs::write(&path, b"new").unwrap();
    fs::remove_file(backup_of(&path)).unwrap();

    let error = config_file::read(&path).unwrap_err();

    assert!(error.to_string().contains("file.bak"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let link = folder.path().join("link");
    let _socket = UnixListener::bind(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();

    for path in [&path, &link] {
        let writes = [replace(path, b"one"), check_writable(path)];
        for written in writes.into_iter().chain([restore(path, b"one")]) {
            let error = written.unwrap_err().to_string();
            assert_eq!(error, "it is a socket, not a regular file");
        }
        assert_eq!(found(path), (String::new(), 0));
    }

    assert_eq!(names(folder.path()), ["file", "link"]);
    let file_type = fs::symlink_metadata(&path).unwrap().file_type();
    assert!(file_type.is_socket());
    let device = config_file::read(Path::new("/dev/zero")).unwrap_err();
    assert!(device.to_string().contains("longer"), "{device}");
}

#[test]
fn two_servers_that_write_one_file_are_told_and_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    replace(&path, b"first").unwrap();
    let mut one = Store::new(&path);
    let mut other = Store::new(&path);
    assert_eq!(one.claim(), None);
    assert_eq!(other.claim(), Some(Shortcoming::Shared));
    assert_eq!(one.replace(b"one").unwrap(), []);
    assert_eq!(other.replace(b"other").unwrap(), []);
    assert_eq!(one.replace(b"one").unwrap(), [Shortcoming::Shared]);

    thread::scope(|scope| {
        for store in [&mut one, &mut other] {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(store.replace(b"content").unwrap(), []);
                }
            });
        }
    });

    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(fs::read(backup_of(&path)).unwrap(), b"content");
    drop(one);
    drop(other);
    remove_left_over(&path).unwrap();
    assert_eq!(names(folder.path()), ["file", "file.bak"]);
    assert_eq!(Store::new(&path).claim(), None);
}

#[test]
fn a_folder_that_the_file_system_does_not_sync_is_no_error_and_told_once() {
    // As some network file systems, this one has no sync of folders.
    let folder = File::open("/proc").unwrap();
    assert!(folder.sync_all().is_err());
    assert!(!sync_if_possible(&folder).unwrap());

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let mut change = Change::new(path.clone(), b"new", Backup::Replaced).unwrap();
    change.folder = Some(folder);
    change.take(&REPLACE).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(change.shortcomings, [Shortcoming::FolderNotSynced]);
    let mut store = Store::new(&path);
    assert!(store.tell(Shortcoming::FolderNotSynced).is_some());
    assert!(store.tell(Shortcoming::FolderNotSynced).is_none());
}

#[test]
fn a_new_file_gets_its_folders_and_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/kvConfig.json");

    replace(&path, b"one").unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(names(&folder.path().join("a/b")), ["kvConfig.json"]);
}

#[test]
fn a_replaced_file_keeps_its_mode_and_leaves_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"one").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();

    replace(&path, b"two").unwrap();
    replace(&path, b"three").unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"three");
    assert_eq!(fs::read(backup_of(&path)).unwrap(), b"two");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(names(folder.path()), ["file", "file.bak"]);
}

#[test]
fn what_a_crash_left_behind_is_in_nobodys_way_and_the_next_start_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"one").unwrap();
    let mut change = Change::new(path.clone(), b"half", Backup::Replaced).unwrap();
    change.take(&REPLACE[..2]).unwrap();
    crash(change);

    replace(&path, b"two").unwrap();
    remove_left_over(&path).unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::read(backup_of(&path)).unwrap(), b"one");
    assert_eq!(names(folder.path()), ["file", "file.bak"]);
}

#[test]
fn a_symbolic_link_planted_beside_the_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let victim = folder.path().join("victim");
    fs::write(&path, b"one").unwrap();
    fs::write(&victim, b"untouched").unwrap();
    fs::set_permissions(&victim, Permissions::from_mode(0o644)).unwrap();
    let plant = |suffix: &str, target: &Path| {
        let link = with_suffix(&path, suffix);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, link).unwrap();
    };
    let own = format!(".{}-0.tmp", process::id());
    let writes: [&dyn Fn() -> io::Result<()>; 3] = [
        &|| check_writable(&path),
        &|| replace(&path, b"two"),
        &|| restore(&path, b"two"),
    ];
    for write in writes {
        for target in [&*victim, &folder.path().join("not-there")] {
            plant(&own, target);
            plant(".bak", target);
            plant(".writing", target);

            write().unwrap();

            remove_left_over(&path).unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"untouched");
            let mode = fs::metadata(&victim).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644);
            assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
        }
    }
    assert!(!folder.path().join("not-there").exists());
    assert_eq!(fs::read(&path).unwrap(), b"two");
}

#[test]
fn a_symbolic_link_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    let link = folder.path().join("link");
    fs::write(&real, b"one").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();

    replace(&link, b"two").unwrap();

    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"two");
}

#[test]
fn a_symbolic_link_to_a_file_that_is_not_there_yet_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("real/file", &link).unwrap();

    replace(&link, b"one").unwrap();

    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(folder.path().join("real/file")).unwrap(), b"one");
}

#[test]
fn a_check_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"one").unwrap();

    check_writable(&path).unwrap();
    check_writable(&folder.path().join("a/b")).unwrap();

    assert_eq!(names(folder.path()), ["file"]);
    assert_eq!(fs::read(&path).unwrap(), b"one");
}

#[test]
fn a_path_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"one").unwrap();

    assert!(replace(&file.join("below"), b"two").is_err());
    assert!(check_writable(&file.join("below")).is_err());
}
