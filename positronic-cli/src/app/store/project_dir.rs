//! The project's `.positronic` folder, which contains its runs; it is the same from every folder of the project.
//!
//! As with git, the nearest `.positronic` upwards wins. A new one is created next to the
//! `Cargo.lock`: at the root of the cargo workspace, or in the current folder outside of any package.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Name of this command's folder in a project.
const FOLDER: &str = ".positronic";
const MANIFEST: &str = "Cargo.toml";

/// Finds the folder for a project's runs; it may not exist yet.
pub(crate) fn project_folder(here: &Path) -> PathBuf {
    let known = here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir());
    known.unwrap_or_else(|| root(here).unwrap_or_else(|| here.to_owned()).join(FOLDER))
}

/// The parts of a manifest that determine its workspace.
#[derive(Deserialize)]
struct Manifest {
    package: Option<Package>,
    workspace: Option<Workspace>,
}

#[derive(Deserialize)]
struct Package {
    workspace: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Workspace {
    #[serde(default)]
    exclude: Vec<PathBuf>,
}

/// Finds the root of the workspace enclosing a folder, or the folder of a package without one.
fn root(here: &Path) -> Option<PathBuf> {
    let package = here.ancestors().find(|folder| folder.join(MANIFEST).is_file())?;
    let own = read(package);
    if own.as_ref().is_some_and(|own| own.workspace.is_some()) {
        return Some(package.to_owned());
    }
    if let Some(workspace) = own.and_then(|own| own.package?.workspace) {
        // Messages show the path, so remove its `..`.
        return fs::canonicalize(package.join(workspace)).ok().or_else(|| Some(package.to_owned()));
    }
    let enclosing = package.ancestors().skip(1).find_map(|folder| Some((folder, read(folder)?.workspace?)));
    let enclosing = enclosing.filter(|(folder, workspace)| {
        !workspace.exclude.iter().any(|excluded| package.starts_with(folder.join(excluded)))
    });
    Some(enclosing.map_or(package, |(folder, _)| folder).to_owned())
}

/// Reads a folder's manifest; cargo itself reports an invalid one.
fn read(folder: &Path) -> Option<Manifest> {
    toml::from_str(&fs::read_to_string(folder.join(MANIFEST)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder with manifests in it.
    struct Disk(TempDir);

    impl Disk {
        fn with(manifests: &[(&str, &str)]) -> Self {
            let disk = Self(tempfile::tempdir().unwrap());
            for (folder, manifest) in manifests {
                fs::write(disk.made(folder).join(MANIFEST), manifest).unwrap();
            }
            disk
        }

        fn made(&self, folder: &str) -> PathBuf {
            let folder = self.0.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            folder
        }

        /// Finds the project folder from `here`, relative to the disk.
        fn from(&self, here: &str) -> String {
            let found = project_folder(&self.made(here));
            let root = fs::canonicalize(self.0.path()).unwrap();
            let inside = found.strip_prefix(self.0.path()).or_else(|_| found.strip_prefix(root));
            inside.unwrap().to_str().unwrap().to_owned()
        }
    }

    const PACKAGE: &str = "[package]\nname = \"shop\"\n";

    #[test]
    fn workspace_root_is_the_project_from_every_folder_inside() {
        let disk = Disk::with(&[
            ("", "[workspace]\nmembers = [\"apps/*\"]\nexclude = [\"apart\"]"),
            ("apps/shop", PACKAGE),
            ("apart", PACKAGE),
            ("pointed", "[package]\nname = \"pointed\"\nworkspace = \"../other\""),
            ("other", "[workspace]"),
        ]);

        for here in ["", "apps", "apps/shop", "apps/shop/src/brains", "docs"] {
            assert_eq!(disk.from(here), ".positronic", "from {here:?}");
        }
        assert_eq!(disk.from("apart/src"), "apart/.positronic", "it is not a member of the workspace");
        assert_eq!(disk.from("pointed"), "other/.positronic", "its manifest names the workspace");
    }

    #[test]
    fn package_without_a_workspace_is_its_own_project() {
        let disk = Disk::with(&[("shop", PACKAGE), ("alone", "[package]\n[workspace]"), ("broken", "[package")]);

        assert_eq!(disk.from("shop/src/brains"), "shop/.positronic");
        assert_eq!(disk.from("alone/src"), "alone/.positronic");
        assert_eq!(disk.from("broken/src"), "broken/.positronic");
        assert_eq!(disk.from("notes/today"), "notes/today/.positronic");
    }

    #[test]
    fn nearest_existing_folder_wins() {
        let disk = Disk::with(&[("", "[workspace]"), ("apps/shop", PACKAGE)]);

        disk.made("apps/shop/.positronic");
        assert_eq!(disk.from("apps/shop/src"), "apps/shop/.positronic");
        assert_eq!(disk.from("apps"), ".positronic");
        disk.made(".positronic");
        assert_eq!(disk.from("apps/shop/src"), "apps/shop/.positronic");
        assert_eq!(disk.from("apps/bakery"), ".positronic");
        fs::write(disk.made("apps/bakery").join(FOLDER), "a file").unwrap();
        assert_eq!(disk.from("apps/bakery"), ".positronic");
    }
}
