//! Files that a run writes, opened before it: a path that cannot be written is found at once, not when the figures are lost with it.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

/// A file that is written when the run is over.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
}

impl Output {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(Error::while_doing(path.display()))?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    /// Writes all that it will hold.
    ///
    /// # Errors
    /// When it cannot be written any more.
    pub fn write(mut self, text: &str) -> Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(Error::while_doing(self.path.display()))
    }
}

/// A file whose appearance tells others something: until then it has another name beside its own.
#[derive(Debug)]
pub struct Signal {
    path: PathBuf,
    hidden: PathBuf,
}

impl Signal {
    /// Makes the file under its other name.
    ///
    /// # Errors
    /// When it cannot be made, or could not get its own name.
    pub fn prepare(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::new(format!("{}: is a folder", path.display())));
        }
        let mut hidden = path.as_os_str().to_owned();
        hidden.push(".not-yet");
        let hidden = PathBuf::from(hidden);
        Output::create(&hidden)?;
        let path = path.to_owned();
        Ok(Self { path, hidden })
    }

    /// Gives it its own name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn give(&self) -> Result<()> {
        let renamed = fs::rename(&self.hidden, &self.path);
        renamed.map_err(Error::while_doing(self.path.display()))
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // It has its own name, or will never get it.
        let _ = fs::remove_file(&self.hidden);
    }
}
