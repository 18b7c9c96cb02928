//! Replaces a file so that a crash at any moment leaves the old content or the new one (spec Q28).
//!
//! What is no regular file is left alone. A file that is a mount of its own, as a container's may be, cannot be replaced: it is
//! written in place, and [`mend`] finds out whether that was cut short.

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::temporary::{self, Access, Temporary, parent, with_suffix};

/// A file that is replaced again and again.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// The present file, if this process has written or claimed it: locked, so that others can tell.
    held: Option<File>,
    /// What has been said of it; once is enough.
    told: Vec<Shortcoming>,
}

/// What an operator should know of a file that was written nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcoming {
    /// Another process has written or claimed it, too.
    Shared,
    /// It is a mount of its own.
    InPlace,
    /// The file system has no sync of folders, or this process may not open the folder.
    FolderNotSynced,
}

impl fmt::Display for Shortcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => {
                "is also another server's, and each replaces what the other has written: give each a path of its own"
            }
            Self::InPlace => {
                "is a mount of its own and cannot be replaced, so it is written in place, which is not atomic: mount its folder instead"
            }
            Self::FolderNotSynced => {
                "lies in a folder that cannot be synced: if the power fails, the latest change may be lost"
            }
        })
    }
}

impl Store {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            held: None,
            told: Vec::new(),
        }
    }

    /// Makes it known to other servers that this one writes the file, and looks whether one of them does.
    pub(super) fn claim(&mut self) -> Option<Shortcoming> {
        // What cannot be opened, or on a file system without locks, is nobody's.
        let file = File::open(target(&self.path).ok()?).ok()?;
        let is_held = self.held.as_ref().is_some_and(|held| is_same(held, &file));
        if is_held {
            return None;
        }
        match file.try_lock() {
            Ok(()) => {
                self.held = Some(file);
                None
            }
            Err(TryLockError::WouldBlock) => self.tell(Shortcoming::Shared),
            Err(TryLockError::Error(_)) => None,
        }
    }

    /// Makes `content` the content of the file, durably, and keeps what was there before as `<path>.bak`. Returns what has not been
    /// said before.
    ///
    /// The file itself is whole at every moment: it is replaced by renaming a complete, synced one over it. So is the backup.
    pub(super) fn replace(&mut self, content: &[u8]) -> io::Result<Vec<Shortcoming>> {
        let path = target(&self.path)?;
        create_folder(parent(&path))?;
        mend(&path)?;
        let mut found: Vec<_> = self.claim().into_iter().collect();
        let mut change = Change::new(path, content, Backup::Replaced)?;
        change.take(&REPLACE)?;
        let more: Vec<_> = std::mem::take(&mut change.shortcomings);
        found.extend(more.into_iter().filter_map(|one| self.tell(one)));
        // What is written in place stays the file that was claimed.
        self.held = change.into_lock().or(self.held.take());
        Ok(found)
    }

    fn tell(&mut self, shortcoming: Shortcoming) -> Option<Shortcoming> {
        let is_new = !self.told.contains(&shortcoming);
        is_new.then(|| {
            self.told.push(shortcoming);
            shortcoming
        })
    }
}

/// Makes `content` the content of a damaged `path`, durably, and leaves its backup alone.
pub(super) fn restore(path: &Path, content: &[u8]) -> io::Result<()> {
    Change::new(target(path)?, content, Backup::Left)?.take(&REPLACE)
}

/// Whether [`Store::replace`] can be expected to work; nothing is left behind.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    let path = &target(path)?;
    // The folder of a mounted file may be writable, though the file is not.
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => return Err(error),
        Ok(_) | Err(_) => {}
    }
    // Folders that are missing are made when there is something to put into them.
    let folder = parent(path).ancestors().find(|folder| folder.is_dir());
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let place = folder.unwrap_or(Path::new(".")).join(name);
    // An empty file would find room on a full disk.
    Temporary::write(&place, b"\n", Access::of(path)?).map(drop)
}

/// Whether `path` is there and is something else than a regular file: a device, a pipe, a folder. Such a thing is never replaced.
pub(super) fn check_kind(path: &Path) -> io::Result<()> {
    let file_type = match fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        // Who wants it will see why it cannot be had.
        Err(_) => return Ok(()),
    };
    let kind = if file_type.is_file() {
        return Ok(());
    } else if file_type.is_dir() {
        "a folder"
    } else if file_type.is_char_device() || file_type.is_block_device() {
        "a device"
    } else if file_type.is_fifo() {
        "a pipe"
    } else {
        "a socket"
    };
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("it is {kind}, not a regular file"),
    ))
}

/// Undoes a write in place that was cut short, from the backup; says whether there was one.
pub(super) fn mend(path: &Path) -> io::Result<bool> {
    let path = target(path)?;
    let marker = marker_of(&path);
    let (Some(intended), Ok(lock)) = (read_regular(&marker)?, File::open(&marker)) else {
        return Ok(false);
    };
    // Whoever writes it holds the lock, from before the name is there.
    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(false);
    }
    let Some(found) = read_regular(&path)? else {
        fs::remove_file(marker)?;
        return Ok(false);
    };
    let backup = read_regular(&backup_of(&path))?;
    let is_torn = is_part(&found, &intended)
        || backup
            .as_ref()
            .is_some_and(|backup| is_part(&found, backup));
    if is_torn {
        let backup = backup.ok_or_else(|| {
            let backup = backup_of(&path);
            io::Error::other(format!(
                "writing it was cut short, and there is no {}",
                backup.display()
            ))
        })?;
        overwrite(&path, &backup)?;
    }
    fs::remove_file(marker)?;
    Ok(is_torn)
}

/// What an operator is told who finds a file mended.
pub(super) fn mended_text(path: &Path) -> String {
    format!(
        "writing {} in place was cut short: the state before that is taken from {}",
        path.display(),
        backup_of(path).display()
    )
}

/// Removes what processes that are gone have left beside `path`.
pub(super) fn remove_left_over(path: &Path) -> io::Result<()> {
    temporary::remove_left_over(&target(path)?)
}

/// The backup of `path`.
pub(super) fn backup_of(path: &Path) -> PathBuf {
    with_suffix(path, ".bak")
}

/// A new content on its way to its file, which is no symbolic link.
struct Change<'a> {
    path: PathBuf,
    content: &'a [u8],
    access: Access,
    backup: Backup,
    /// Open from the beginning, so that a change which has been made is not refused for want of a descriptor or a permission.
    folder: Option<File>,
    fresh: Option<Temporary>,
    fresh_backup: Option<Temporary>,
    shortcomings: Vec<Shortcoming>,
}

/// What becomes of the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backup {
    /// The content of the file replaces it.
    Replaced,
    /// It is where the new content comes from.
    Left,
}

/// One after the other. A crash between two leaves a file that is whole, and at most names beside it that a start removes.
type Step = fn(&mut Change<'_>) -> io::Result<()>;

/// See [`Store::replace`].
const REPLACE: [Step; 5] = [
    write_fresh,
    link_backup,
    put_backup,
    put_fresh,
    sync_folder_of,
];

/// Instead of putting the fresh file over a mount. A crash between two leaves what [`mend`] makes whole.
const IN_PLACE: [Step; 6] = [
    copy_backup,
    put_backup,
    put_marker,
    sync_folder_of,
    overwrite_file,
    remove_marker,
];

impl<'a> Change<'a> {
    fn new(path: PathBuf, content: &'a [u8], backup: Backup) -> io::Result<Self> {
        let folder = match File::open(parent(&path)) {
            Ok(folder) => Some(folder),
            // A folder may be open for writing alone.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            access: Access::of(&path)?,
            path,
            content,
            backup,
            folder,
            fresh: None,
            fresh_backup: None,
            shortcomings: Vec::new(),
        })
    }

    fn take(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| step(self))
    }

    fn has_shortcoming(&mut self, shortcoming: Shortcoming) {
        if !self.shortcomings.contains(&shortcoming) {
            self.shortcomings.push(shortcoming);
        }
    }

    /// The lock of the fresh file, if that is now the file.
    fn into_lock(self) -> Option<File> {
        let is_in_place = self.shortcomings.contains(&Shortcoming::InPlace);
        let lock = self.fresh?.into_lock();
        lock.filter(|_| !is_in_place)
    }
}

fn write_fresh(change: &mut Change<'_>) -> io::Result<()> {
    let fresh = Temporary::write(&change.path, change.content, change.access)?;
    change.fresh = Some(fresh);
    Ok(())
}

/// Gives the present content a second name where the file system has those, a copy where not.
fn link_backup(change: &mut Change<'_>) -> io::Result<()> {
    // The first content has none before it, and what has its second name already cannot be given it again.
    if change.backup == Backup::Left || is_linked(&change.path) {
        return Ok(());
    }
    match Temporary::link(&change.path) {
        Ok(link) => change.fresh_backup = Some(link),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(_) => write_backup(change)?,
    }
    Ok(())
}

/// A copy of what is about to be written over, under a name of its own.
fn copy_backup(change: &mut Change<'_>) -> io::Result<()> {
    if change.backup == Backup::Replaced && is_linked(&change.path) {
        write_backup(change)?;
    }
    Ok(())
}

fn write_backup(change: &mut Change<'_>) -> io::Result<()> {
    let content = fs::read(&change.path)?;
    let copy = Temporary::write(&change.path, &content, change.access)?;
    change.fresh_backup = Some(copy);
    Ok(())
}

fn put_backup(change: &mut Change<'_>) -> io::Result<()> {
    match change.fresh_backup.take() {
        Some(mut backup) => backup.put(&backup_of(&change.path)),
        None => Ok(()),
    }
}

fn put_fresh(change: &mut Change<'_>) -> io::Result<()> {
    match put_at(&mut change.fresh, &change.path) {
        Err(error) if is_of_a_mount(&error) => {
            change.has_shortcoming(Shortcoming::InPlace);
            change.take(&IN_PLACE)
        }
        put => put,
    }
}

/// From here on whoever finds the file torn knows it.
fn put_marker(change: &mut Change<'_>) -> io::Result<()> {
    put_at(&mut change.fresh, &marker_of(&change.path))
}

fn put_at(fresh: &mut Option<Temporary>, place: &Path) -> io::Result<()> {
    let fresh = fresh.as_mut().expect("a fresh file is written first");
    fresh.put(place)
}

/// What cannot be written is undone, so that a refused change does not come back.
fn overwrite_file(change: &mut Change<'_>) -> io::Result<()> {
    let Err(error) = overwrite(&change.path, change.content) else {
        return Ok(());
    };
    // Otherwise the marker stays, and the next change or start does it.
    if let Some(backup) = read_regular(&backup_of(&change.path))?
        && overwrite(&change.path, &backup).is_ok()
    {
        remove_marker(change)?;
    }
    Err(error)
}

fn remove_marker(change: &mut Change<'_>) -> io::Result<()> {
    // If it stays, it says of a file that is whole that it might not be: that is looked into.
    let _ = fs::remove_file(marker_of(&change.path));
    Ok(())
}

fn sync_folder_of(change: &mut Change<'_>) -> io::Result<()> {
    let is_synced = match &change.folder {
        Some(folder) => sync_if_possible(folder)?,
        None => false,
    };
    if !is_synced {
        change.has_shortcoming(Shortcoming::FolderNotSynced);
    }
    Ok(())
}

/// There while `path` is written in place: what is to be written.
fn marker_of(path: &Path) -> PathBuf {
    with_suffix(path, ".writing")
}

/// Cut short first, so that a half-written file is the beginning of the new content, and never a mixture.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Whether `found` is what is left of writing `content` in place: its beginning, in which a power failure may have left zeros.
fn is_part(found: &[u8], content: &[u8]) -> bool {
    found.len() <= content.len()
        && found != content
        && found
            .iter()
            .zip(content)
            .all(|(found, byte)| found == byte || *found == 0)
}

/// Whether an error of a rename says that the file is a mount of its own, or that its file system renames nothing over it.
fn is_of_a_mount(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy | ErrorKind::CrossesDevices
    )
}

/// Whether a file and its backup are one: two names of it.
fn is_linked(path: &Path) -> bool {
    let identity = |path: &Path| fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()));
    match (identity(path), identity(&backup_of(path))) {
        (Ok(file), Ok(backup)) => file == backup,
        _ => false,
    }
}

fn is_same(one: &File, other: &File) -> bool {
    let identity = |file: &File| file.metadata().map(|file| (file.dev(), file.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// The content of a regular file, if there is one.
pub(super) fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::read(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What `path` leads to: a rename over a symbolic link would cut the link instead of changing the file.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    check_kind(path)?;
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
    match File::open(parent(folder)) {
        Ok(parent) => sync_if_possible(&parent).map(drop),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether it could be synced: some network and FUSE mounts know of no such thing for a folder, and a change that has been made is
/// not to be refused for that.
fn sync_if_possible(folder: &File) -> io::Result<bool> {
    match folder.sync_all() {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::INVAL | Errno::BADF | Errno::NOTSUP | Errno::NOSYS)
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
