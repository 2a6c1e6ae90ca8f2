//! What the end of a command means for its admission.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tenure::admission::Kind;

/// The closing, the exit code as a shell says it, and words.
///
/// Told to stop, it was interrupted, whatever it made of that. A signal from anywhere else is a failure: files may be half
/// changed, so a person decides what comes next.
pub fn of(status: &io::Result<ExitStatus>, stopped: Option<&str>) -> (Kind, Option<i32>, Option<String>) {
    let (code, words) = match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => (Some(code), None),
            (None, Some(signal)) => (Some(128 + signal), Some(format!("killed by signal {signal}"))),
            (None, None) => (None, Some("ended in an unknown way".to_owned())),
        },
        Err(error) => (None, Some(format!("its end could not be learned: {error}"))),
    };
    match (stopped, code) {
        (Some(reason), _) => (Kind::Interrupted, code, Some(reason.to_owned())),
        (None, Some(0)) => (Kind::Succeeded, code, words),
        (None, _) => (Kind::Failed, code, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_says_how_its_admission_is_closed() {
        let exited = |code: i32| Ok(ExitStatus::from_raw(code << 8));
        let killed = |signal: i32| Ok(ExitStatus::from_raw(signal));
        assert_eq!(of(&exited(0), None), (Kind::Succeeded, Some(0), None));
        assert_eq!(of(&exited(3), None).0, Kind::Failed);
        assert_eq!(of(&killed(9), None), (Kind::Failed, Some(137), Some("killed by signal 9".to_owned())));
        assert_eq!(of(&killed(15), Some("why")), (Kind::Interrupted, Some(143), Some("why".to_owned())));
        assert_eq!(of(&exited(0), Some("why")).0, Kind::Interrupted);
        assert_eq!(of(&Err(io::Error::other("x")), None).0, Kind::Failed);
    }
}
