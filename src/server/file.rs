//! Replaces a file so that a crash at any moment leaves the old content or the new one (spec Q28).

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Mode of files that did not exist before: what is in them is nobody else's business.
const MODE: u32 = 0o600;

/// Makes `content` the content of `path`, durably, and keeps what was there before as `<path>.bak`.
///
/// The file itself is whole at every moment: it is replaced by renaming a complete, synced one over it. So is the backup.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &target(path)?;
    create_folder(parent(path))?;
    let mode = mode(path)?;
    let fresh = with_suffix(path, ".tmp");
    write_synced(&fresh, content, mode)?;
    keep_backup(path, mode)?;
    fs::rename(&fresh, path)?;
    sync_folder(parent(path))
}

/// Makes `content` the content of a damaged `path`, durably, and leaves its backup alone.
pub(super) fn restore(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &target(path)?;
    let fresh = with_suffix(path, ".tmp");
    write_synced(&fresh, content, mode(path)?)?;
    fs::rename(&fresh, path)?;
    sync_folder(parent(path))
}

/// Whether [`replace`] can be expected to work; nothing is left behind.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    let path = &target(path)?;
    // Folders that are missing are made when there is something to put into them.
    let folder = parent(path).ancestors().find(|folder| folder.is_dir());
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let probe = with_suffix(&folder.unwrap_or(Path::new(".")).join(name), ".tmp");
    // An empty file would find room on a full disk.
    write_synced(&probe, b"\n", MODE)?;
    fs::remove_file(probe)
}

/// The backup of `path`.
pub(super) fn backup_of(path: &Path) -> PathBuf {
    with_suffix(path, ".bak")
}

/// `path` with a suffix behind its whole name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The folder of `path`.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// What `path` leads to: a rename over a symbolic link would cut the link instead of changing the file.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many links as the system itself follows.
    for _ in 0..40 {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        match fs::read_link(&path) {
            // What a link leads to need not be there yet.
            Ok(next) => path = parent(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The mode that `path` has, or is to have.
fn mode(path: &Path) -> io::Result<u32> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.permissions().mode() & 0o7777),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(MODE),
        Err(error) => Err(error),
    }
}

/// Makes sure that a folder is there, durably.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    create_folder(parent(folder))?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    sync_folder(parent(folder))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a new file, durably. What a crash has left of that name goes; so does a symbolic link, which somebody else must have put
/// there: the new file is never what it leads to.
fn write_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    remove_left_over(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    // The process's mask may have taken bits away.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

fn remove_left_over(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the present content the backup: a second name for it where the file system has those, a copy where not.
fn keep_backup(path: &Path, mode: u32) -> io::Result<()> {
    let fresh = with_suffix(path, ".bak.tmp");
    remove_left_over(&fresh)?;
    match fs::hard_link(path, &fresh) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(_) => write_synced(&fresh, &fs::read(path)?, mode)?,
    }
    fs::rename(fresh, backup_of(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
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
    fn what_a_crash_left_behind_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"one").unwrap();
        fs::write(with_suffix(&path, ".tmp"), b"half of a longer cont").unwrap();
        fs::write(with_suffix(&path, ".bak.tmp"), b"hal").unwrap();

        replace(&path, b"two").unwrap();

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
        let plant = |suffix, target: &Path| {
            let link = with_suffix(&path, suffix);
            std::os::unix::fs::symlink(target, link).unwrap();
        };
        let writes: [&dyn Fn() -> io::Result<()>; 3] = [
            &|| check_writable(&path),
            &|| replace(&path, b"two"),
            &|| restore(&path, b"two"),
        ];
        for write in writes {
            for target in [&*victim, &folder.path().join("not-there")] {
                plant(".tmp", target);
                plant(".bak.tmp", target);

                write().unwrap();

                let _ = fs::remove_file(with_suffix(&path, ".bak.tmp"));
                assert_eq!(fs::read(&victim).unwrap(), b"untouched");
                let mode = fs::metadata(&victim).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o644);
                assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
            }
        }
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["file", "file.bak", "victim"]);
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
}
