//! What the build needs from the machine: a C++ compiler and libclang for RocksDB, git, and ccache if possible.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Outcome, on_path};

/// Something that must be on the machine.
#[derive(Debug)]
struct Need {
    name: &'static str,
    why: &'static str,
    /// Package names to try, one set after another.
    packages: &'static [&'static [&'static str]],
    required: bool,
    present: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        name: "a C++ compiler",
        why: "RocksDB is built from source",
        packages: &[&["g++"]],
        required: true,
        present: has_cxx,
    },
    Need {
        name: "git",
        why: "cargo and the build server use it",
        packages: &[&["git"]],
        required: true,
        present: || on_path("git").is_some(),
    },
    Need {
        name: "libclang",
        why: "the bindings to RocksDB are generated at build time",
        packages: &[
            &["libclang1-14", "libclang-common-14-dev"],
            &["libclang-dev"],
        ],
        required: true,
        present: has_libclang,
    },
    Need {
        name: "ccache",
        why: "RocksDB's objects survive a change of target directory; optional",
        packages: &[&["ccache"]],
        required: false,
        present: || on_path("ccache").is_some(),
    },
];

/// Installs what is missing, or says how. Nothing is touched when nothing is missing.
pub(crate) fn ensure() -> Result<(), Outcome> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        eprintln!("xtask: {} is missing: {}", need.name, need.why);
    }
    if on_path("apt-get").is_none() || !is_root() {
        return advise(&missing);
    }
    let updated = apt(&["update"]);
    for need in &missing {
        let installed = need.packages.iter().any(|packages| {
            let mut arguments = vec!["install", "-y", "--no-install-recommends"];
            arguments.extend(*packages);
            apt(&arguments).is_ok()
        });
        match (installed && (need.present)(), need.required) {
            (true, _) => {}
            (false, false) => eprintln!("xtask: going on without {}", need.name),
            (false, true) => {
                let cause = updated.err().unwrap_or_default();
                return Err(Outcome::Failed(format!(
                    "{} could not be installed {cause}",
                    need.name
                )));
            }
        }
    }
    Ok(())
}

/// Without root or apt: the one command to run. Fails only if something required is missing.
fn advise(missing: &[&Need]) -> Result<(), Outcome> {
    let command = install_command(missing);
    if missing.iter().any(|need| need.required) {
        return Err(Outcome::Failed(format!(
            "run this as root, or install the same by other means, then try again:\n  {command}"
        )));
    }
    eprintln!("xtask: to have it, run as root: {command}");
    Ok(())
}

fn install_command(missing: &[&Need]) -> String {
    let packages: Vec<&str> = missing
        .iter()
        .flat_map(|need| need.packages.first().copied().unwrap_or_default())
        .copied()
        .collect();
    format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    )
}

fn apt(arguments: &[&str]) -> Result<(), String> {
    eprintln!("xtask: $ apt-get {}", arguments.join(" "));
    let status = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("(apt-get {}: {status})", arguments.join(" "))),
        Err(error) => Err(format!("(run apt-get: {error})")),
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn has_cxx() -> bool {
    let given = env::var("CXX").unwrap_or_default();
    let mut words = given.split_whitespace();
    // "ccache g++": the last word is the compiler.
    match words.next_back() {
        Some(compiler) => Path::new(compiler).is_file() || on_path(compiler).is_some(),
        None => ["c++", "g++", "clang++"]
            .iter()
            .any(|name| on_path(name).is_some()),
    }
}

/// Where bindgen would find libclang, and beside it the headers that come with the compiler (`stddef.h`).
fn has_libclang() -> bool {
    if let Some(path) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        return path.is_file() || folder_has_libclang(&path);
    }
    let llvm = folders_in(Path::new("/usr/lib"), "llvm-");
    if llvm
        .iter()
        .any(|folder| folder_has_libclang(&folder.join("lib")) && has_headers(folder))
    {
        return true;
    }
    // Not Debian's layout: the library in a system folder, the headers in /usr/lib*/clang.
    let known = ["/usr/lib64", "/usr/lib", "/usr/local/lib"].map(Path::new);
    let library = known.iter().any(|folder| folder_has_libclang(folder)) || linker_knows_libclang();
    library && (has_headers(Path::new("/usr")) || llvm.iter().any(|folder| has_headers(folder)))
}

fn is_libclang(name: &str) -> bool {
    let rest = name.strip_prefix("libclang").unwrap_or_default();
    (rest.starts_with(".so") || rest.starts_with('-') && rest.contains(".so"))
        && !rest.starts_with("-cpp")
}

fn folder_has_libclang(folder: &Path) -> bool {
    names_in(folder).iter().any(|name| is_libclang(name))
}

fn linker_knows_libclang() -> bool {
    let caches = ["ldconfig", "/sbin/ldconfig"].iter().filter_map(|program| {
        let output = Command::new(program).arg("-p").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    caches.into_iter().any(|text| {
        text.lines()
            .filter_map(|line| line.split_whitespace().next())
            .any(is_libclang)
    })
}

/// `<prefix>/lib*/clang/<version>/include/stddef.h`.
fn has_headers(prefix: &Path) -> bool {
    ["lib", "lib64"].iter().any(|lib| {
        folders_in(&prefix.join(lib).join("clang"), "")
            .iter()
            .any(|version| version.join("include/stddef.h").is_file())
    })
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn folders_in(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names_in(folder)
        .iter()
        .filter(|name| name.starts_with(prefix))
        .map(|name| folder.join(name))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libclang_is_told_from_its_cpp_sibling() {
        for name in ["libclang.so", "libclang-14.so.13", "libclang.so.18.1"] {
            assert!(is_libclang(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang-14.a", "libLLVM-14.so"] {
            assert!(!is_libclang(name), "{name}");
        }
    }

    #[test]
    fn one_command_installs_everything_that_is_missing() {
        let all: Vec<&Need> = NEEDS.iter().collect();
        assert_eq!(
            install_command(&all),
            "apt-get update && apt-get install -y --no-install-recommends \
             g++ git libclang1-14 libclang-common-14-dev ccache"
        );
    }

    #[test]
    fn only_what_is_required_stops_the_build() {
        let (required, optional): (Vec<&Need>, Vec<&Need>) =
            NEEDS.iter().partition(|need| need.required);
        assert!(advise(&optional).is_ok());
        assert!(advise(&required).is_err());
    }
}
