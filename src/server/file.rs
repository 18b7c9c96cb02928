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
    let path = target(path)?;
    create_folder(parent(&path))?;
    Change::new(path, content)?.take(&REPLACE)
}

/// Makes `content` the content of a damaged `path`, durably, and leaves its backup alone.
pub(super) fn restore(path: &Path, content: &[u8]) -> io::Result<()> {
    Change::new(target(path)?, content)?.take(&RESTORE)
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

/// A new content on its way to its file, which is no symbolic link.
struct Change<'a> {
    path: PathBuf,
    content: &'a [u8],
    mode: u32,
}

/// One after the other. A crash between two leaves a file that is whole, and at most names beside it that the next change takes.
type Step = fn(&Change<'_>) -> io::Result<()>;

/// See [`replace`].
const REPLACE: [Step; 6] = [
    write_fresh,
    clear_place_of_backup,
    link_backup,
    put_backup,
    put_fresh,
    sync_folder_of,
];

/// See [`restore`].
const RESTORE: [Step; 3] = [write_fresh, put_fresh, sync_folder_of];

impl<'a> Change<'a> {
    fn new(path: PathBuf, content: &'a [u8]) -> io::Result<Self> {
        Ok(Self {
            mode: mode(&path)?,
            path,
            content,
        })
    }

    fn take(&self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| step(self))
    }

    /// Where the new content is written.
    fn fresh(&self) -> PathBuf {
        with_suffix(&self.path, ".tmp")
    }

    /// Where the backup gets ready.
    fn fresh_backup(&self) -> PathBuf {
        with_suffix(&self.path, ".bak.tmp")
    }
}

fn write_fresh(change: &Change<'_>) -> io::Result<()> {
    write_synced(&change.fresh(), change.content, change.mode)
}

fn clear_place_of_backup(change: &Change<'_>) -> io::Result<()> {
    remove_left_over(&change.fresh_backup())
}

/// Gives the present content a second name where the file system has those, a copy where not.
fn link_backup(change: &Change<'_>) -> io::Result<()> {
    let Change { path, mode, .. } = change;
    match fs::hard_link(path, change.fresh_backup()) {
        Ok(()) => Ok(()),
        // The first content has none before it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(_) => write_synced(&change.fresh_backup(), &fs::read(path)?, *mode),
    }
}

fn put_backup(change: &Change<'_>) -> io::Result<()> {
    match fs::rename(change.fresh_backup(), backup_of(&change.path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn put_fresh(change: &Change<'_>) -> io::Result<()> {
    fs::rename(change.fresh(), &change.path)
}

fn sync_folder_of(change: &Change<'_>) -> io::Result<()> {
    sync_folder(parent(&change.path))
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

#[cfg(test)]
mod tests {
    use std::str::{self, Utf8Error};

    use super::{
        super::kv_store::{Loaded, load},
        *,
    };

    /// What the next start finds, and what it has to say of it.
    fn found(path: &Path) -> (String, usize) {
        let text = |bytes: &[u8]| -> Result<String, Utf8Error> {
            str::from_utf8(bytes).map(str::to_owned)
        };
        let Loaded { table, problems } = load(path, text).unwrap();
        (table, problems.len())
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
                    fs::write(with_suffix(&path, ".tmp"), b"ne").unwrap();
                }

                let change = Change::new(path.clone(), b"new").unwrap();
                change.take(&REPLACE[..count]).unwrap();

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
