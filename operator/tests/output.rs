//! What the command does when what it says cannot be written.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{PipeWriter, pipe};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A pipe that nobody reads any more.
fn unread() -> PipeWriter {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer
}

/// Makes a key: the command whose result needs no database.
fn make_key(name: &str, stdout: impl Into<Stdio>) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tirada"));
    command.args(["keys", "signing", "--kid", "test", "--file"]).arg(&file).stdout(stdout).stderr(Stdio::piped());
    let output = command.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    output
}

#[test]
fn a_reader_who_has_read_enough_is_no_fault() {
    let read = make_key("read", Stdio::piped());
    assert!(read.status.success() && String::from_utf8_lossy(&read.stdout).contains("TokenKeys"), "{read:?}");
    let unread = make_key("unread", unread());
    assert_eq!((unread.status.code(), unread.stderr.as_slice()), (Some(0), &b""[..]), "{unread:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_cannot_be_written_is_a_fault() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = make_key("full", full);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.starts_with("tirada: it is done, but the result cannot be written") && !said.contains("panic"),
        "{said}"
    );
}

#[test]
fn a_failure_that_nobody_hears_has_its_exit_code() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tirada"));
    let status = command.arg("queues").env_remove("TIRADA_DATABASE_URL").stderr(unread()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
