//! Completions and manual pages.

use std::fs;

use crate::support::{Sandbox, bare, finish};

#[test]
fn completions_for_every_shell_know_the_verbs() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = finish(bare().args(["util", "completions", shell]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        for word in ["claim-next", "why", "--resume", "--holder"] {
            let found = ran.out.contains(word.trim_start_matches('-'));
            assert!(found, "no {word} for {shell}");
        }
    }
    finish(bare().args(["util", "completions", "tcsh"])).refused(2, "bash");
}

#[test]
fn what_bash_completes_is_what_the_program_has() {
    let script = "source <(\"$0\" util completions bash) && COMP_WORDS=(tenure cla) COMP_CWORD=1 && \
                  _tenure tenure cla tenure && echo \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    let ran = finish(bash.args(["-c", script, env!("CARGO_BIN_EXE_tenure")]));
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "claim claim-next"), "{ran:?}");
}

#[test]
fn a_manual_page_for_every_verb() {
    let sandbox = Sandbox::empty();
    let dir = sandbox.root().join("share/man");
    for _ in 0..2 {
        let said = sandbox.ok(["util", "install-man-pages", dir.to_str().expect("UTF-8")]);
        assert!(said.ends_with("man1"), "{said}");
    }
    let help = finish(bare().arg("--help")).out;
    let verbs = help.split_once("Commands:\n").expect(&help).1;
    // A verb stands behind two blanks; what its words go on with on further lines stands behind more.
    let rows = verbs.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let verbs = rows.filter_map(|line| line.split_whitespace().next());
    let mut count = 0;
    for verb in verbs.filter(|&verb| verb != "help") {
        let page =
            fs::read_to_string(dir.join(format!("man1/tenure-{verb}.1"))).unwrap_or_else(|e| panic!("{verb}: {e}"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
    assert!(fs::read_to_string(dir.join("man1/tenure.1")).expect("the page of the program").contains("claim\\-next"));
    let said = sandbox.one(["util", "install-man-pages", dir.to_str().expect("UTF-8")]);
    assert!(said["dir"].as_str().is_some_and(|dir| dir.ends_with("man1")), "{said}");
}

#[test]
fn a_place_that_cannot_be_written_to_is_told() {
    let sandbox = Sandbox::empty();
    fs::write(sandbox.root().join("file"), "mine").expect("a file");
    let place = sandbox.root().join("file");
    let ran = sandbox.run(["util", "install-man-pages", place.to_str().expect("UTF-8")]);
    ran.refused(2, "cannot write manual pages to");
    assert_eq!(fs::read_to_string(&place).expect("the file"), "mine");
}
