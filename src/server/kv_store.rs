//! Reads the KV file at start, and saves what can be saved (spec 4, Q28).
//!
//! The file is replaced whole by this server, but it may come from one that writes in place: cut short, empty, or rubbish after
//! a crash. Then its backup stands in, the damaged file is kept aside, and the server starts.

use std::{
    fmt, fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{
    file,
    temporary::{Access, Temporary, with_suffix},
};

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Loaded<T> {
    /// The content; the default if there is none.
    pub table: T,
    /// What the operator must know, worst first. Empty if all is well.
    pub problems: Vec<String>,
}

/// The file is there but cannot be read: starting without it would lose it at the next write.
#[derive(Debug)]
pub struct LoadError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot read {} (kvConfigPath): {}",
            self.path.display(),
            self.error
        )
    }
}

impl std::error::Error for LoadError {}

/// What became of one of the two files.
enum Content<T> {
    Missing,
    /// Why, and its bytes.
    Damaged(String, Vec<u8>),
    /// With its bytes.
    Whole(T, Vec<u8>),
}

/// Loads `path`, or its backup if that is damaged. What is a device or a pipe is not read, since nothing is ever kept there.
///
/// # Errors
///
/// When the file is there and cannot be read: starting without it would lose it at the next write.
pub fn load<T: Default, E: fmt::Display>(
    path: &Path,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Loaded<T>, LoadError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(Loaded {
            table: T::default(),
            problems: Vec::new(),
        });
    }
    let failed = |error| LoadError {
        path: path.to_owned(),
        error,
    };
    // Backups lie beside the file itself.
    let path = &file::target(path).map_err(failed)?;
    let mended = match file::mend(path) {
        Ok(false) => None,
        Ok(true) => Some(file::mended_text(path)),
        Err(error) => Some(format!("cannot restore {}: {error}", path.display())),
    };
    let mut loaded = match read(path, &decode).map_err(failed)? {
        // A backup alone does not count: it is what an operator leaves who removes the file.
        Content::Missing => Loaded {
            table: T::default(),
            problems: Vec::new(),
        },
        Content::Whole(table, _) => Loaded {
            table,
            problems: Vec::new(),
        },
        Content::Damaged(damage, bytes) => recover(path, &damage, &bytes, decode),
    };
    loaded.problems.extend(mended);
    Ok(loaded)
}

/// Whether the file can be written when it has to be: better known at start than at the first change.
///
/// # Errors
///
/// When it cannot.
pub fn check_writable(path: &Path) -> io::Result<()> {
    file::check_writable(path)
}

/// Starts from the backup, and keeps the damaged file for whoever can read more out of it.
fn recover<T: Default, E: fmt::Display>(
    path: &Path,
    damage: &str,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> Loaded<T> {
    let backup = file::backup_of(path);
    let aside = keep_aside(path, bytes);
    let mut problems = vec![match &aside {
        Ok(aside) => format!(
            "{} is damaged: {damage}; it is kept as {}",
            path.display(),
            aside.display()
        ),
        Err(error) => format!(
            "{} is damaged: {damage}; it stays as it is, since it cannot be kept aside: {error}",
            path.display()
        ),
    }];
    let is_kept = aside.is_ok();
    let nothing = "the KV configuration is empty";
    let mut written = Ok(());
    let table = match read(&backup, decode) {
        Ok(Content::Whole(table, bytes)) => {
            problems.push(format!(
                "the state before the last change is taken from {}",
                backup.display()
            ));
            // A start that finds no file must not forget what this one has found in the backup.
            if is_kept {
                written = file::restore(path, &bytes);
            }
            table
        }
        Ok(Content::Missing) => {
            problems.push(format!("there is no {}: {nothing}", backup.display()));
            if is_kept {
                written = remove(path);
            }
            T::default()
        }
        Ok(Content::Damaged(damage, _)) => {
            problems.push(format!(
                "{} is damaged too: {damage}; {nothing}",
                backup.display()
            ));
            if is_kept {
                written = remove(path);
            }
            T::default()
        }
        Err(error) => {
            problems.push(format!(
                "cannot read {}: {error}; {nothing}",
                backup.display()
            ));
            T::default()
        }
    };
    if let Err(error) = written {
        problems.push(format!("cannot write {}: {error}", path.display()));
    }
    Loaded { table, problems }
}

/// Removes what is kept elsewhere.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // A mount of its own, such as an empty file that was made for a container, stays until there is something to put into it.
        Err(error) if error.kind() != ErrorKind::ResourceBusy => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn read<T, E: fmt::Display>(
    path: &Path,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) -> io::Result<Content<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::Missing),
        Err(error) => return Err(error),
    };
    if bytes
        .iter()
        .all(|byte| byte.is_ascii_whitespace() || *byte == 0)
    {
        // Nobody writes such a file on purpose: the original leaves an empty one when it is killed while it writes, and a file
        // system one full of zeros when the power fails.
        let damage = format!("it is {}", emptiness(&bytes));
        return Ok(Content::Damaged(damage, bytes));
    }
    Ok(match decode(&bytes) {
        Ok(table) => Content::Whole(table, bytes),
        Err(error) => Content::Damaged(error.to_string(), bytes),
    })
}

fn emptiness(bytes: &[u8]) -> &'static str {
    if bytes.contains(&0) {
        "filled with zero bytes"
    } else {
        "empty"
    }
}

/// Copies a damaged file to the first free name, unless an earlier start has: one that cannot replace the file finds it again and
/// again. A second name of it would not do, since the file may have to be written in place.
fn keep_aside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    loop {
        let aside = with_suffix(path, &format!(".damaged-{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            Temporary::write(path, bytes, Access::of(path)?)?.put(&aside)?;
            return Ok(aside);
        }
        if file::read_regular(&aside)?.is_some_and(|kept| kept == bytes) {
            return Ok(aside);
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content that is whole if it is text in angle brackets.
    fn decode(bytes: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if text.starts_with('<') && text.ends_with('>') {
            Ok(text)
        } else {
            Err("no brackets".to_owned())
        }
    }

    fn loaded(path: &Path) -> Loaded<String> {
        load(path, decode).unwrap()
    }

    #[test]
    fn a_missing_file_is_an_empty_table_and_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            loaded(&folder.path().join("kv")),
            Loaded {
                table: String::new(),
                problems: vec![]
            }
        );
    }

    #[test]
    fn a_whole_file_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        fs::write(&path, "<a>").unwrap();
        assert_eq!(
            loaded(&path),
            Loaded {
                table: "<a>".to_owned(),
                problems: vec![]
            }
        );
    }

    #[test]
    fn a_damaged_or_empty_file_is_kept_aside_and_its_backup_loaded_now_and_at_the_next_start() {
        for damaged in ["", "<a", "\0\0\0", " \0\n"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("kv");
            fs::write(&path, damaged).unwrap();
            fs::write(file::backup_of(&path), "<b>").unwrap();
            fs::write(folder.path().join("kv.damaged-1"), "earlier").unwrap();

            let first = loaded(&path);

            assert_eq!(first.table, "<b>");
            assert_eq!(first.problems.len(), 2, "{:?}", first.problems);
            assert_eq!(
                fs::read_to_string(folder.path().join("kv.damaged-1")).unwrap(),
                "earlier"
            );
            assert_eq!(
                fs::read_to_string(folder.path().join("kv.damaged-2")).unwrap(),
                damaged
            );
            assert_eq!(fs::read_to_string(file::backup_of(&path)).unwrap(), "<b>");
            assert_eq!(
                loaded(&path),
                Loaded {
                    table: "<b>".to_owned(),
                    problems: vec![]
                }
            );
        }
    }

    #[test]
    fn without_a_whole_backup_the_table_is_empty_and_nothing_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        fs::write(&path, "<a").unwrap();
        fs::write(file::backup_of(&path), "b>").unwrap();

        let found = loaded(&path);

        assert_eq!(found.table, "");
        assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
        assert_eq!(
            fs::read_to_string(folder.path().join("kv.damaged-1")).unwrap(),
            "<a"
        );
        assert_eq!(fs::read_to_string(file::backup_of(&path)).unwrap(), "b>");
        assert!(!path.exists());
    }

    #[test]
    fn what_is_kept_aside_already_is_not_kept_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        for _ in 0..2 {
            fs::write(&path, "<a").unwrap();
            assert_eq!(loaded(&path).table, "");
        }
        assert!(folder.path().join("kv.damaged-1").exists());
        assert!(!folder.path().join("kv.damaged-2").exists());
    }

    #[test]
    fn behind_a_symbolic_link_the_backup_is_found_beside_the_file_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let path = folder.path().join("kv");
        fs::write(&path, "<a").unwrap();
        fs::write(file::backup_of(&path), "<b>").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();

        assert_eq!(loaded(&link).table, "<b>");

        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "<b>");
        let kept = fs::read_to_string(folder.path().join("kv.damaged-1"));
        assert_eq!(kept.unwrap(), "<a");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(folder.path(), decode).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&folder.path().display().to_string()),
            "{error}"
        );
    }
}
