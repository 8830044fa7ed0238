//! Finds what each program destroys, by its arguments.

mod git;

use std::path::Path;

use ollm_protocol::Flow;

use super::{
    Wrong,
    precious::{PreciousPaths, Worth},
    written,
};
use crate::{
    field::Field,
    filter, path,
    program::{Files, is_first_program},
    walk::{Run, Selection, find_roots, finds_everything, found_below, is_every_process, selections},
    writes::{options, values},
};

/// The harm that a program does by its nature, with any files.
pub(super) fn harm(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    match run.name.as_str() {
        "rm" | "grm" | "unlink" | "rimraf" | "del-cli" | "remove-item" => removal(run, precious),
        "chmod" | "chown" | "chgrp" | "gchmod" | "gchown" | "chattr" | "setfacl" => modes(run, precious),
        "mv" | "gmv" => moves(run, precious),
        "ln" | "gln" | "mount" => renames(run, precious),
        "rsync" => mirrors(run, precious).or_else(|| takes_sources(run, precious)),
        "tar" | "bsdtar" | "gtar" => takes_sources(run, precious).or_else(|| unpacks_anywhere(run)),
        "awk" | "gawk" | "mawk" | "nawk" | "sed" | "gsed" => filter_writes(run, precious),
        "find" => search(run, precious),
        "fd" | "fdfind" => hidden_search(run, precious),
        "cpio" | "pax" => unpacks_absolute(run),
        "git" => git::harm(run, precious),
        "kill" => kill(run),
        "killall5" => Some((Flow::Block, "ends every process")),
        "pkill" | "killall" | "skill" => kill_by_name(run),
        "shutdown" | "reboot" | "halt" | "poweroff" => switch_off(run),
        "systemctl" | "loginctl" => service(run),
        "init" | "telinit" => first_word(run, &["0", "6"]),
        "crontab" => {
            options(&run.args).any(|option| is_letters(option, 'r')).then_some((Flow::Block, "deletes the crontab"))
        }
        "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted" => partitions(run),
        "wipefs" | "blkdiscard" | "mkswap" | "mke2fs" => formats(run),
        "cryptsetup" => first_word(run, &["luksFormat", "erase", "luksErase"]),
        "zpool" | "zfs" => first_word(run, &["destroy", "labelclear"]),
        "busctl" | "dbus-send" | "gdbus" | "qdbus" => by_bus(run),
        "iptables" | "ip6tables" | "nft" | "ufw" => firewall(run),
        "umount" => {
            let all = options(&run.args).any(|option| is_letters(option, 'a') || option == "--all");
            all.then_some((Flow::Ask, "takes away every file system"))
        }
        "apk" | "apt" | "apt-get" | "aptitude" | "dnf" | "dpkg" | "pacman" | "rpm" | "yum" | "zypper" => packages(run),
        "lvremove" | "vgremove" | "pvremove" => Some((Flow::Block, "destroys a volume")),
        "lvreduce" | "vgreduce" | "sg_format" => Some((Flow::Ask, "may destroy a volume")),
        "dmsetup" => first_word(run, &["remove_all", "wipe_table"]),
        "kexec" => {
            options(&run.args).any(|option| is_letters(option, 'e')).then_some((Flow::Ask, "starts another system"))
        }
        "fuser" => {
            let has = |letter| options(&run.args).any(|option| is_letters(option, letter));
            (has('k') && has('m')).then_some((Flow::Ask, "ends every program that uses a file system"))
        }
        "efibootmgr" => {
            options(&run.args).any(|option| is_letters(option, 'B')).then_some((Flow::Ask, "removes a way to start"))
        }
        "flashrom" => {
            let writes = |option: &str| is_letters(option, 'w') || is_letters(option, 'E') || option == "--write";
            options(&run.args).any(writes).then_some((Flow::Ask, "overwrites firmware"))
        }
        "mdadm" => {
            let zeroes = options(&run.args).any(|option| is_long(option, "--zero-superblock", 6));
            zeroes.then_some((Flow::Block, "destroys a volume"))
        }
        "btrfs" => {
            let deletes = run.args.iter().any(|arg| arg.text.starts_with("del"));
            deletes.then_some((Flow::Ask, "destroys a volume"))
        }
        "nvme" => first_word(run, &["format", "sanitize"]),
        "diskutil" => first_word(run, &["eraseDisk", "eraseVolume", "zeroDisk", "secureErase", "partitionDisk"]),
        "gpg" | "gpg2" => {
            let deletes = options(&run.args).any(|option| {
                is_long(option, "--delete-secret-keys", 15) || is_long(option, "--delete-secret-and-public-keys", 15)
            });
            deletes.then_some((Flow::Ask, "removes a secret that exists only once"))
        }
        "ssh-keygen" => new_key(run, precious),
        "userdel" | "deluser" => {
            let home = options(&run.args).any(|option| is_letters(option, 'r') || option.starts_with("--remove"));
            home.then_some((Flow::Ask, "removes a home folder"))
        }
        "shred" | "truncate" | "srm" | "wipe" | "trash" | "trash-put" | "rmtrash" => overwriting(run, precious),
        name if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs") => formats(run),
        _ if run.program.files == Files::MayWrite => like_removal(run, precious),
        _ => None,
    }
}

/// `rm`: recursive on something precious, or on who knows what.
fn removal(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    if options(&run.args).any(|option| is_long(option, "--no-preserve-root", 6)) {
        return Some((Flow::Block, "removes the root of the file system"));
    }
    let recursive = options(&run.args)
        .any(|option| is_letters(option, 'r') || is_letters(option, 'R') || is_long(option, "--recursive", 3))
        || matches!(run.name.as_str(), "rimraf" | "del-cli");
    let maybe = run.args.iter().any(|arg| arg.open() && arg.text.is_empty() && arg.tail.as_deref() == Some(""));
    if run.args.iter().any(|arg| precious.is_secret(arg, &run.place)) {
        return Some((Flow::Ask, "removes a secret that exists only once"));
    }
    // A plain name is one file, wherever a link of that name leads.
    let is_one = |target: &&Field| !recursive && !maybe && precious.is_ordinary(target, &run.place);
    operands(run)
        .filter(|target| !is_one(target))
        .filter_map(|target| {
            let worth = precious.worth(target, &run.place);
            match (recursive, worth) {
                (true, _) if is_drive(&target.text) => Some((Flow::Block, "removes or changes a folder of the system")),
                (true, Worth::Vital(what)) => Some((Flow::Block, what)),
                (true, Worth::Doubtful(what)) => Some((Flow::Ask, what)),
                (true, Worth::Common) if precious.is_home_folder(target, &run.place) => {
                    Some((Flow::Ask, "removes a folder of the home"))
                }
                (false, Worth::Vital(what)) if maybe || target.glob => Some((Flow::Ask, what)),
                // One of the files that were found below something vital.
                (false, Worth::Doubtful(what)) if target.text.ends_with('/') && target.hollow.is_none() => {
                    target.open().then_some((Flow::Ask, what))
                }
                (false, Worth::Doubtful(what)) if target.open() && target.shown() == "…" && target.hollow.is_none() => {
                    Some((Flow::Ask, what))
                }
                (false, _) if precious.is_key(target, &run.place) => {
                    Some((Flow::Ask, "changes a file that decides who may log in"))
                }
                _ => None,
            }
        })
        .max_by_key(|(flow, _)| *flow)
}

/// `ssh-keygen -f x`: a new key in place of one that is there.
fn new_key(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let makes = |option: &str| is_letters(option, 't') || is_letters(option, 'N') || is_letters(option, 'f');
    let looks = |option: &str| ["-l", "-y", "-e", "-i", "-p", "-c", "-R", "-F", "-H", "-s", "-Y"].contains(&option);
    let mut files = values(&run.args, &["-f"]).into_iter();
    let makes = options(&run.args).any(makes) && !options(&run.args).any(looks);
    let lost =
        makes && files.any(|file| precious.holds_secret(&file, &run.place) && precious.exists(&file, &run.place));
    lost.then_some((Flow::Ask, "overwrites a secret that exists only once"))
}

/// Whether this is a drive of another system, or a folder at its root.
fn is_drive(path: &str) -> bool {
    let mut letters = path.chars();
    let drive = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':');
    drive && letters.as_str().trim_matches(['/', '\\']).split(['/', '\\']).count() < 2
}

fn modes(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let recursive = options(&run.args).any(|option| is_letters(option, 'R') || is_long(option, "--recursive", 4));
    if !recursive {
        return locks_out(run, precious);
    }
    operands(run)
        .filter(|target| !target.text.is_empty())
        .filter_map(|target| match precious.worth(target, &run.place) {
            Worth::Vital(what) if !precious.is_project(target, &run.place) => Some((Flow::Block, what)),
            Worth::Doubtful(what) if !target.open() && !precious.is_project(target, &run.place) => {
                Some((Flow::Ask, what))
            }
            _ => None,
        })
        .max_by_key(|(flow, _)| *flow)
}

/// `chmod 000 /`: one folder is enough if everything is in it.
fn locks_out(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let mut rest = run.args.iter().filter(|arg| !arg.text.starts_with("--"));
    let change = rest.next().filter(|_| run.name.ends_with("chmod"))?;
    let takes =
        |clause: &str| clause.contains(['-', '=']) && !clause.contains("=r") && clause.contains(['r', 'x', '=']);
    let locks = match u32::from_str_radix(&change.text, 8) {
        Ok(bits) => bits & 0o500 != 0o500,
        Err(_) => change.text.split(',').any(|clause| !clause.starts_with(['g', 'o']) && takes(clause)),
    };
    let everything = rest.any(|target| !target.open() && precious.is_everything(target, &run.place));
    (locks && everything).then_some((Flow::Ask, "shuts everybody out of everything"))
}

/// `tar --remove-files`, `rsync --remove-source-files`: what is copied is taken away.
fn takes_sources(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    if !options(&run.args).any(|option| option.starts_with("--remove-")) {
        return None;
    }
    operands(run).find_map(|source| match precious.worth(source, &run.place) {
        Worth::Vital(what) if !precious.is_project(source, &run.place) => Some((Flow::Block, what)),
        _ => None,
    })
}

/// `tar xP`: the archive says where its files go.
fn unpacks_anywhere(run: &Run) -> Option<Wrong> {
    let first = run.args.first().map(|first| first.text.as_str());
    let bundles = || options(&run.args).filter(|option| !option.starts_with("--")).chain(first);
    let has = |letter: char, name: &str| {
        bundles().any(|letters| letters.contains(letter)) || options(&run.args).any(|option| is_long(option, name, 5))
    };
    (has('x', "--extract") && has('P', "--absolute-names"))
        .then_some((Flow::Ask, "unpacks to wherever the archive says"))
}

/// `cpio -i`, `pax -r`: these take names in an archive that begin at the root as they are.
fn unpacks_absolute(run: &Run) -> Option<Wrong> {
    let has = |letter: char| options(&run.args).any(|option| is_letters(option, letter));
    let long = |name: &str, shortest| options(&run.args).any(|option| is_long(option, name, shortest));
    let lists = has('t') || long("--list", 4) || long("--no-absolute-filenames", 7);
    let unpacks = if run.name == "pax" { has('r') && !has('w') } else { (has('i') || long("--extract", 4)) && !lists };
    unpacks.then_some((Flow::Ask, "unpacks to wherever the archive says"))
}

/// The files that code of `awk` or `sed` writes: `print > "…"`, `w …`.
fn filter_writes(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let files = run.args.iter().flat_map(|arg| filter::files(&run.name, &arg.text));
    let files = files.filter(|file| file.starts_with('/')).map(Field::literal);
    files.filter_map(|file| written(&file, &run.place, precious)).max_by_key(|(flow, _)| *flow)
}

/// `rsync --delete`: the destination becomes what the source is.
fn mirrors(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let deletes = options(&run.args).any(|option| option.starts_with("--del"));
    let into = operands(run).last().filter(|target| deletes && !target.text.contains(':'))?;
    match precious.worth(into, &run.place) {
        Worth::Vital(what) if !precious.is_project(into, &run.place) => Some((Flow::Block, what)),
        _ => None,
    }
}

/// A program that nothing is known about, called as `rm -rf` is.
fn like_removal(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let has = |letter: char| options(&run.args).any(|option| is_letters(option, letter));
    if !(has('f') && (has('r') || has('R'))) {
        return None;
    }
    operands(run).find_map(|target| match precious.worth(target, &run.place) {
        Worth::Vital(_) => Some((Flow::Ask, "may remove what cannot be brought back")),
        _ => None,
    })
}

fn moves(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let targets: Vec<&Field> = operands(run).collect();
    let (last, sources) = targets.split_last()?;
    let into = run.args.iter().find_map(|arg| arg.text.strip_prefix("--target-directory="));
    if last.text == "/dev/null" || into == Some("/dev/null") {
        return Some((Flow::Block, "moves files into nothing"));
    }
    sources.iter().find_map(|source| match precious.worth(source, &run.place) {
        _ if precious.is_secret(source, &run.place) => Some((Flow::Ask, "moves a secret that exists only once")),
        Worth::Vital(what) if !precious.is_project(source, &run.place) => Some((Flow::Block, what)),
        _ => None,
    })
}

/// Another name for everything, by which it can be removed.
fn renames(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let binds = run.name != "mount" || options(&run.args).any(|option| option.contains("bind"));
    let everything = |source: &Field| !source.open() && precious.is_everything(source, &run.place);
    let source = operands(run).next().is_some_and(everything);
    (binds && source).then_some((Flow::Ask, "gives everything in the home or on the machine another name"))
}

/// `find … -delete`, and what it leaves to `rm`; commands run by `-exec` are deeds of their own, too.
fn search(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let writes = |option: &Field| matches!(option.text.as_str(), "-fprint" | "-fprint0" | "-fprintf" | "-fls");
    let lists = run.args.iter().zip(run.args.iter().skip(1)).filter(|(option, _)| writes(option));
    if let Some(wrong) = lists.filter_map(|(_, file)| written(file, &run.place, precious)).max_by_key(|(flow, _)| *flow)
    {
        return Some(wrong);
    }
    let deletes = run.args.iter().any(|arg| arg.text == "-delete");
    let removes = run.args.iter().any(|arg| matches!(&*path::base_name(&arg.text), "rm" | "unlink" | "shred"));
    if !deletes && !removes {
        return None;
    }
    let selections = selections(&run.args);
    let roots = find_roots(&run.args);
    // Without tests it finds what is hidden as well: all that makes the root worth something.
    let all = selections.contains(&Selection::All);
    let whole = roots.iter().filter(|_| all).map(|root| precious.worth(root, &run.place));
    let found = |root| selections.iter().map(move |selection| found_below(root, selection));
    let below = roots.iter().filter(|_| deletes).flat_map(found).map(|found| precious.worth(&found, &run.place));
    let wrongs = whole.chain(below).filter_map(|worth| match worth {
        Worth::Vital(what) => Some((Flow::Block, what)),
        Worth::Doubtful(what) => Some((Flow::Ask, what)),
        Worth::Common => None,
    });
    wrongs.max_by_key(|(flow, _)| *flow)
}

/// `fd` that finds what is hidden as well, and hands everything to `rm`.
fn hidden_search(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let removes = run.args.iter().any(|arg| matches!(&*path::base_name(&arg.text), "rm" | "unlink" | "shred"));
    let roots = finds_everything(&run.args).filter(|_| removes)?;
    let everything = roots.iter().any(|root| !matches!(precious.worth(root, &run.place), Worth::Common));
    everything.then_some((Flow::Ask, "removes everything in a folder, hidden files included"))
}

/// `-1` as a process means all of them; as the first option it is a signal.
fn kill(run: &Run) -> Option<Wrong> {
    let words: Vec<&str> = run.args.iter().map(|arg| arg.text.as_str()).collect();
    if words.iter().skip(1).any(|word| *word == "-1") {
        return Some((Flow::Block, "ends every process"));
    }
    if !run.place.elsewhere && run.args.iter().any(is_every_process) {
        return Some((Flow::Ask, "ends every process"));
    }
    // The first word may be a signal; `-0` and `-l` only ask.
    let asks = words.first().is_some_and(|first| matches!(*first, "-0" | "-l" | "-L"));
    let mut rest = words.iter().skip(usize::from(words.first() == Some(&"-s")) * 2);
    // In a container the first process is the container's.
    (!asks && !run.place.elsewhere && rest.any(|word| *word == "1"))
        .then_some((Flow::Ask, "ends the first process, and all others with it"))
}

/// Processes by their names: all of them, if every name fits.
fn kill_by_name(run: &Run) -> Option<Wrong> {
    let every = operands(run).any(|name| name.text.chars().all(|next| ".*^$+?".contains(next)) && !name.open());
    let is_signal = |option: &&str| matches!(option.trim_start_matches(['-', 'S', 'I', 'G']), "HUP" | "QUIT" | "URG");
    let of_user = options(&run.args)
        .filter(|option| !is_signal(option) && !option.contains("USR") && !option.ends_with("BUS"))
        .any(|option| is_letters(option, 'u') || is_letters(option, 'U') || option == "--user");
    if operands(run).any(|name| is_first_program(&name.text)) && !run.place.elsewhere {
        return Some((Flow::Ask, "ends the first process, and all others with it"));
    }
    (every || of_user).then_some((Flow::Ask, "ends every process of a user"))
}

fn service(run: &Run) -> Option<Wrong> {
    const STATES: &[&str] = &["poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency", "suspend"];
    let words: Vec<&str> = operands(run).map(|arg| arg.text.as_str()).collect();
    let target = |word: &&str| word.strip_suffix(".target").is_some_and(|state| STATES.contains(&state));
    let starts = matches!(words.first(), Some(&("start" | "isolate" | "restart" | "default" | "set-default")));
    let off = (starts && words.iter().any(target)) || words.first().is_some_and(|word| STATES.contains(word));
    let ends = |word: &&str| matches!(*word, "kill-session" | "kill-user" | "terminate-session" | "terminate-user");
    if run.name == "loginctl" && words.first().is_some_and(ends) {
        return Some((Flow::Ask, "ends every process of a user"));
    }
    off.then_some((Flow::Block, "switches the machine off or destroys a volume"))
}

/// What a message to the manager of the machine or of its sessions asks for.
fn by_bus(run: &Run) -> Option<Wrong> {
    const CALLS: &[&str] = &[
        "Halt",
        "HybridSleep",
        "Hibernate",
        "KExec",
        "KillSession",
        "KillUser",
        "PowerOff",
        "Reboot",
        "Suspend",
        "TerminateUser",
    ];
    let is_call = |arg: &Field| {
        let call = arg.text.rsplit('.').next().unwrap_or_default();
        CALLS.iter().any(|known| call.strip_suffix("WithFlags").unwrap_or(call) == *known)
    };
    run.args.iter().any(is_call).then_some((Flow::Ask, "switches the machine off, or ends what runs on it"))
}

/// Programs of the system that are taken away: all that a pattern fits, or what others need.
fn packages(run: &Run) -> Option<Wrong> {
    let removes = |word: &str| {
        matches!(
            word,
            "autoremove"
                | "del"
                | "erase"
                | "purge"
                | "remove"
                | "rm"
                | "--erase"
                | "--purge"
                | "--remove"
                | "-P"
                | "-r"
        ) || run.name == "pacman" && word.starts_with("-R")
            || run.name == "rpm" && is_letters(word, 'e')
    };
    let every = |arg: &Field| arg.text.contains('*') && arg.text.bytes().all(|byte| b"*.^$".contains(&byte));
    let forced = |arg: &Field| {
        matches!(arg.text.as_str(), "--nodeps" | "-Rdd")
            || (arg.text.starts_with("--force-") && arg.text != "--force-yes")
    };
    let removal = run.args.iter().any(|arg| removes(&arg.text));
    let wrong = run.args.iter().any(|arg| every(arg) || forced(arg));
    (removal && wrong).then_some((Flow::Ask, "removes programs that the system needs"))
}

/// All rules of a firewall at once: what they held off comes in, or who works from elsewhere is locked out.
fn firewall(run: &Run) -> Option<Wrong> {
    let has = |words: &[&str]| run.args.iter().any(|arg| words.contains(&arg.text.as_str()));
    let drops = match run.name.as_str() {
        "nft" => has(&["flush"]),
        "ufw" => has(&["disable", "reset"]),
        _ => has(&["-F", "--flush", "-X", "--delete-chain"]),
    };
    (drops && !run.place.elsewhere).then_some((Flow::Ask, "takes away the rules of a firewall"))
}

fn switch_off(run: &Run) -> Option<Wrong> {
    let harmless =
        run.args.iter().any(|arg| matches!(arg.text.as_str(), "-c" | "--help" | "--version" | "-k" | "--show"));
    let mut plain = run.args.iter().filter(|arg| !arg.text.starts_with('-'));
    // "Shutdown of the old service" names no time, and "reboot the server" is too much for it.
    let is_prose = match (plain.next(), plain.next()) {
        (Some(first), Some(_)) => {
            first.known().is_some_and(|word| word != "now" && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
        }
        _ => false,
    };
    (!harmless && !is_prose).then_some((Flow::Block, "switches the machine off"))
}

fn first_word(run: &Run, verbs: &[&str]) -> Option<Wrong> {
    let first = run.args.iter().find(|arg| !arg.text.starts_with('-'))?;
    let verb = verbs.iter().any(|verb| first.text.eq_ignore_ascii_case(verb));
    verb.then_some((Flow::Block, "switches the machine off or destroys a volume"))
}

fn partitions(run: &Run) -> Option<Wrong> {
    let lists = run.args.iter().any(|arg| match arg.text.as_str() {
        "-l" | "--list" | "-p" | "print" | "--print" => true,
        "-d" | "--dump" => run.name == "sfdisk",
        _ => false,
    });
    let device = run.args.iter().any(|arg| arg.text.starts_with("/dev/"));
    (device && !lists).then_some((Flow::Block, "changes the partitions of a disk"))
}

/// A file system in an image is everyday work, on a device it is not.
fn formats(run: &Run) -> Option<Wrong> {
    let image = |target: &&Field| !target.open() && !path::tidy(Path::new(&target.text)).starts_with("/dev");
    (!operands(run).all(|target| image(&target))).then_some((Flow::Block, "formats a disk"))
}

fn overwriting(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    operands(run).find_map(|target| match precious.worth(target, &run.place) {
        _ if precious.is_secret(target, &run.place) => Some((Flow::Ask, "removes a secret that exists only once")),
        Worth::Vital(what) => Some((Flow::Block, what)),
        Worth::Doubtful(_) if precious.is_system(target, &run.place) => Some((Flow::Block, "overwrites a system file")),
        _ => None,
    })
}

/// The arguments that are not options.
fn operands(run: &Run) -> impl Iterator<Item = &Field> {
    let mut only_operands = false;
    run.args.iter().filter(move |arg| {
        if only_operands {
            return true;
        }
        only_operands = arg.known() == Some("--");
        !(only_operands || arg.text.len() > 1 && arg.text.starts_with('-'))
    })
}

/// Whether this is a bundle of one-letter options with this one among them.
fn is_letters(option: &str, letter: char) -> bool {
    option.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// Whether this is a long option, perhaps shortened to so many characters.
fn is_long(option: &str, full: &str, shortest: usize) -> bool {
    option.len() >= shortest && full.starts_with(option)
}
