//! A file on its way to its place: under a name that no other process uses, and gone when whoever wrote it is gone.
//!
//! Several servers may have their files in one folder, and by mistake even the same file. So a name carries the process's id and a
//! number, and is never taken from anybody. Whose it is shows an advisory lock, since ids repeat: in a container they all are 1.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    process,
};

/// Mode of files that did not exist before: what is in them is nobody else's business.
const MODE: u32 = 0o600;

/// The end of a temporary name.
const SUFFIX: &str = ".tmp";

/// A temporary name, which goes with this value unless it has been put in its place.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    is_put: bool,
    /// Holds the lock. Open for reading alone, so that it keeps no file system from becoming read-only.
    lock: Option<File>,
}

/// Who may do what with a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    mode: u32,
    owner: Option<(u32, u32)>,
}

impl Temporary {
    /// Writes `content` durably under a name beside `place`.
    pub(super) fn write(place: &Path, content: &[u8], access: Access) -> io::Result<Self> {
        let (path, mut file) = under_a_free_name(place, |path| {
            // A symbolic link of that name is somebody else's too: it is not followed.
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(access.mode)
                .open(path)
        })?;
        let mut written = Self {
            path,
            is_put: false,
            lock: None,
        };
        // Some file systems have no locks. What is left behind there stays.
        let lock = File::open(&written.path).ok();
        written.lock = lock.filter(|file| file.try_lock().is_ok());
        access.give(&file);
        file.write_all(content)?;
        file.sync_all()?;
        Ok(written)
    }

    /// Gives `place` a second name beside it.
    pub(super) fn link(place: &Path) -> io::Result<Self> {
        let (path, ()) = under_a_free_name(place, |path| fs::hard_link(place, path))?;
        Ok(Self {
            path,
            is_put: false,
            lock: None,
        })
    }

    /// Renames it.
    pub(super) fn put(&mut self, place: &Path) -> io::Result<()> {
        fs::rename(&self.path, place)?;
        self.is_put = true;
        Ok(())
    }

    /// Leaves it where it is, as a crash does.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.is_put = true;
    }

    /// Its lock, which goes with the file wherever that is put.
    pub(super) fn into_lock(mut self) -> Option<File> {
        self.lock.take()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_put {
            // It is in nobody's way but the disk's, and the next start looks for it again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Access {
    /// What `path` has, or is to have.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Self {
                mode: metadata.permissions().mode() & 0o7777,
                owner: Some((metadata.uid(), metadata.gid())),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self {
                mode: MODE,
                owner: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// Gives it to a file, as far as this process may and the file system can: some have neither owners nor modes. A file of another
    /// owner would be closed to the server that is started as the first one again.
    fn give(self, file: &File) {
        if let Some((user, group)) = self.owner {
            let is_given = fchown(file, Some(user), Some(group)).is_ok();
            if !is_given && let Err(error) = fchown(file, None, Some(group)) {
                tracing::debug!("a file that is replaced changes its owner: {error}");
            }
        }
        // The process's mask may have taken bits away, and so may the change of the owner.
        if let Err(error) = file.set_permissions(Permissions::from_mode(self.mode)) {
            tracing::debug!("a file that is replaced changes its mode: {error}");
        }
    }
}

/// Removes what processes that are gone have left beside `place`, as far as that can be told.
pub(super) fn remove_left_over(place: &Path) -> io::Result<()> {
    let Some(name) = place.file_name() else {
        return Ok(());
    };
    for entry in fs::read_dir(parent(place))? {
        let entry = entry?;
        if is_name_beside(&entry.file_name(), name) && entry.file_type()?.is_file() {
            let path = entry.path();
            // Whoever is writing it has locked it.
            if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

/// Takes the first name of this process that is free.
fn under_a_free_name<T>(
    place: &Path,
    take: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut number = 0_u32;
    loop {
        let path = with_suffix(place, &format!(".{}-{number}{SUFFIX}", process::id()));
        match take(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            taken => return taken.map(|taken| (path, taken)),
        }
    }
}

/// Whether `name` is a temporary one of the file that is called `place`.
fn is_name_beside(name: &OsStr, place: &OsStr) -> bool {
    let middle = name
        .as_encoded_bytes()
        .strip_prefix(place.as_encoded_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    let Some(middle) = middle else { return false };
    let mut parts = middle.split(|byte| *byte == b'-');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The names in a folder, sorted.
    pub(in super::super) fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn private() -> Access {
        Access {
            mode: MODE,
            owner: None,
        }
    }

    #[test]
    fn two_that_write_at_once_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");

        let mut one = Temporary::write(&place, b"one", private()).unwrap();
        let mut other = Temporary::write(&place, b"other", private()).unwrap();
        other.put(&place).unwrap();
        one.put(&place).unwrap();

        assert_eq!(fs::read(&place).unwrap(), b"one");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_is_not_put_in_its_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        fs::write(&place, b"file").unwrap();

        drop(Temporary::write(&place, b"one", private()).unwrap());
        drop(Temporary::link(&place).unwrap());

        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_is_left_by_the_dead_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        let others = [
            "file",
            "file.1-x.tmp",
            "file.1.tmp",
            "file.bak",
            "file.tmp",
            "file2.1-0.tmp",
        ];
        for name in others {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        fs::write(folder.path().join("file.1-0.tmp"), b"ha").unwrap();
        fs::write(folder.path().join("file.99999999-17.tmp"), b"").unwrap();
        let living = Temporary::write(&place, b"new", private()).unwrap();

        remove_left_over(&place).unwrap();

        let mut expected: Vec<String> = others.map(str::to_owned).to_vec();
        expected.push(format!("file.{}-0.tmp", process::id()));
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        drop(living);
    }

    #[test]
    fn the_owner_of_a_file_is_given_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        fs::write(&place, b"file").unwrap();
        if std::os::unix::fs::chown(&place, Some(4321), Some(1234)).is_err() {
            println!("not run: only root gives files away");
            return;
        }

        let access = Access::of(&place).unwrap();
        let mut next = Temporary::write(&place, b"next", access).unwrap();
        next.put(&place).unwrap();

        let owner = fs::metadata(&place).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (4321, 1234));
    }

    #[test]
    fn a_file_system_that_has_no_modes_and_owners_of_files_is_no_error() {
        // As with CIFS, nobody may change those of this one.
        let file = File::open("/proc/self/status").unwrap();
        let refused = file.set_permissions(Permissions::from_mode(0o600));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);

        Access {
            mode: 0o600,
            owner: Some((1, 1)),
        }
        .give(&file);
    }
}
