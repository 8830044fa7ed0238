//! Judges unknown programs that get everything there is: the home, the root, a whole disk.

use ollm_protocol::Flow;

use super::{Wrong, is_disk, precious::PreciousPaths};
use crate::{
    field::Field,
    program::{Arguments, Files, is_in},
    walk::Run,
};

/// Programs that look at a folder or a disk, or that take it for one on another machine.
#[rustfmt::skip]
const LOOKERS: &[&str] = &[
    "adb", "blkid", "code", "cursor", "distrobox", "docker", "docker-compose", "duf", "dust", "gdu", "kubectl", "lxc",
    "machinectl", "ncdu", "nerdctl", "open", "podman", "smartctl", "ssh", "tmux", "toolbox", "udevadm", "vagrant",
    "xdg-open", "z", "zed", "zoxide",
];

/// Options whose value is where something starts or is put below, not what is worked on.
#[rustfmt::skip]
const WHERE: &[&str] = &[
    "--chdir", "--cwd", "--directory", "--prefix", "--root", "--workdir", "--working-directory", "-C", "-D", "-subj", "-w",
];

/// What may be lost when a program of which nothing is known is given all of something.
pub(super) fn entrusted(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let unknown = (run.program.arguments, run.program.files) == (Arguments::MayRun, Files::MayWrite);
    if !unknown || run.place.elsewhere || !run.args.iter().any(|arg| arg.text.contains('/')) {
        return None;
    }
    if is_in(LOOKERS, &run.name) || (run.name == "hdparm" && !erases(run)) {
        return None;
    }
    let mut before = "";
    run.args.iter().find_map(|arg| {
        let option = std::mem::replace(&mut before, arg.text.as_str());
        let (option, value) = match arg.text.split_once('=').filter(|(name, _)| name.starts_with('-')) {
            Some((name, value)) => (name, &Field { text: value.to_owned(), ..arg.clone() }),
            None => (option, arg),
        };
        if arg.open() || !value.text.starts_with('/') {
            None
        } else if is_disk(&value.text) {
            Some((Flow::Ask, "may overwrite a device"))
        } else {
            let everything = !WHERE.contains(&option) && precious.is_everything(value, &run.place);
            everything.then_some((Flow::Ask, "may change everything in the home or on the machine"))
        }
    })
}

/// Whether `hdparm` is told to do more than to show and set.
fn erases(run: &Run) -> bool {
    const ERASES: &[&str] = &["--security", "--trim", "--write", "--make-bad", "--fwdownload", "--dco", "--sanitize"];
    run.args.iter().any(|arg| ERASES.iter().any(|option| arg.text.starts_with(option)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn lookers_are_sorted() {
        assert!(super::LOOKERS.is_sorted());
    }
}
