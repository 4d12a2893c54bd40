//! A disk that is full soon.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A file system of its own, mounted at a directory; unmounted at the end.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, and a line that says so, where this process may not mount.
    ///
    /// # Panics
    /// If there cannot be such a directory.
    #[must_use]
    pub fn mount(at: PathBuf, mebibytes: u32) -> Option<Self> {
        std::fs::create_dir_all(&at).expect("a directory");
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                eprintln!(
                    "SKIPPED: cannot mount a small file system: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                None
            }
            Err(error) => {
                eprintln!("SKIPPED: cannot mount a small file system: {error}");
                None
            }
        }
    }

    /// Fills it to the last byte. Returns the file that does.
    ///
    /// # Panics
    /// If it takes no file.
    #[must_use]
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("somebody-elses-file");
        let mut file = File::create(&path).expect("create it");
        let mut length = 1024 * 1024;
        let zeros = vec![0; length];
        while length > 0 {
            match file.write_all(&zeros[..length]) {
                Ok(()) => {}
                Err(_) => length /= 2,
            }
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A failure leaves a mount of a temporary directory; there is nobody to tell.
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}
