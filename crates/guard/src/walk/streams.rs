//! Programs that run the file which they are given, where that file is what another command prints.

use crate::{
    field::{Field, UNSEEN_STREAM},
    program::{self, Arguments, Files, Program, is_in},
};

/// Programs that take such a file for data, though nothing else is known of them.
#[rustfmt::skip]
const TAKERS: &[&str] = &[
    "bcftools", "bedtools", "code", "delta", "docker", "dyff", "ffmpeg", "gpg", "helm", "icdiff", "kdiff3", "kubeconform",
    "kubectl", "kubeval", "kustomize", "meld", "opendiff", "openssl", "pandoc", "podman", "pygmentize", "samtools", "sdiff",
    "ssh-keygen", "vimdiff", "wdiff", "yamllint",
];

/// Options of filters and clients behind which a file of code stands.
const CODE_FILES: &[&str] =
    &["--exec", "--file", "--include", "--init-file", "--load", "-E", "-S", "-f", "-i", "-init", "-l", "-s", "-u"];

/// Options behind which code or a module stands, so that what follows is data.
const CODE_BEFORE: &[&str] = &["--eval", "--print", "-c", "-e", "-m", "-p"];

/// Whether a program may run a stream of unknown content.
pub(super) fn runs_stream(name: &str, args: &[Field]) -> bool {
    let is_unseen = |arg: &Field| {
        arg.text.strip_suffix(UNSEEN_STREAM).is_some_and(|before| before.is_empty() || before.ends_with('='))
    };
    args.iter().enumerate().filter(|(_, arg)| is_unseen(arg)).any(|(at, arg)| {
        let program = Program::of(name);
        let before = args.get(..at).unwrap_or_default();
        let option = match arg.text.split_once('=') {
            Some((option, _)) => option,
            None => before.last().map(|before| before.text.as_str()).unwrap_or_default(),
        };
        match (program.arguments, program.files) {
            _ if name == "crontab" => true,
            (Arguments::Code, _) if program::runs_its_input(name) => is_first_file(before),
            (Arguments::Code, _) => CODE_FILES.contains(&option),
            (Arguments::MayRun, Files::MayWrite) => !is_in(TAKERS, name),
            _ => false,
        }
    })
}

/// Whether nothing but options and their values stand before it, and no code.
fn is_first_file(before: &[Field]) -> bool {
    let is_option = |arg: &Field| arg.text.starts_with('-');
    let mut after_option = false;
    before.iter().all(|arg| {
        let passes = is_option(arg) || after_option;
        after_option = is_option(arg);
        passes && !CODE_BEFORE.contains(&arg.text.as_str())
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn takers_are_sorted() {
        assert!(super::TAKERS.is_sorted());
    }
}
