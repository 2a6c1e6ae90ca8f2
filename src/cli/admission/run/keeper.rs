//! One admission from its start to its recorded end: the credential, what is appended, the wish to stop, the closing.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tenure::admission::runs::{Ended, RunFiles};
use tenure::admission::{AdmId, By, Credential, Kind, MachineId, Phase, Record, Refusal, Stop};

use super::{closing, life};
use crate::cli::admission::desk::Desk;
use crate::cli::admission::refusal::is_undecided;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit, Problem};
use crate::cli::out;

/// How often the end is told to a ledger that does not answer, before it is left to the next `pickup`.
const CLOSE_TRIES: u32 = 4;

/// Keeps one admission.
pub struct Keeper<'d, 'a> {
    desk: &'d Desk<'a>,
    machine: MachineId,
    record: Record,
    credential: Credential,
    files: RunFiles,
    renew_at: Instant,
    lapses_at: Instant,
    last_input: u64,
    stopped: Option<String>,
    /// The last trouble that was told, so that each is told once.
    told: Option<String>,
}

/// What is told at the end.
#[derive(Serialize)]
struct Report<'a> {
    admission: AdmId,
    request: &'a str,
    attempt: u32,
    closing: Kind,
    exit_code: Option<i32>,
    reason: Option<&'a str>,
    /// Whether the ledger has it.
    recorded: bool,
}

impl<'d, 'a> Keeper<'d, 'a> {
    pub fn new(
        desk: &'d Desk<'a>,
        machine: MachineId,
        record: Record,
        credential: Credential,
        files: RunFiles,
    ) -> Keeper<'d, 'a> {
        let now = Instant::now();
        let mut keeper = Keeper {
            desk,
            machine,
            record,
            credential,
            files,
            renew_at: now,
            lapses_at: now,
            last_input: 0,
            stopped: None,
            told: None,
        };
        keeper.plan_renewal();
        keeper
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    pub fn files(&self) -> &RunFiles {
        &self.files
    }

    pub fn token(&self) -> &str {
        &self.credential.token
    }

    pub fn home_dir(&self) -> &Path {
        self.desk.home.dir()
    }

    pub fn json(&self) -> bool {
        self.desk.context.json
    }

    /// Why it was told to stop, if it was.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    fn plan_renewal(&mut self) {
        let life = life(self.desk, &self.credential);
        let now = Instant::now();
        // Half of it is left for a ledger that does not answer at once.
        (self.renew_at, self.lapses_at) = (now + life / 2, now + life);
    }

    /// Records that the command is about to run.
    pub fn mark_started(&mut self) -> Result<(), Refusal> {
        let (ledger, id, token) = (&self.desk.ledger, self.record.admission, &self.credential.token);
        self.record = ledger.mark_started(&id, token, &self.desk.subject, &self.machine)?;
        Ok(())
    }

    /// A new credential, put where the command finds it.
    pub fn attach(&mut self) -> Result<(), Refusal> {
        let answer = self.desk.ledger.attach(&self.record.admission, &self.desk.subject, &self.machine)?;
        let Some(credential) = answer.credential else { return Ok(()) };
        self.credential = credential;
        self.plan_renewal();
        if self.files.dir().exists()
            && let Err(error) = self.files.put_credential(&self.credential.token)
        {
            self.tell(&format!("the new credential could not be handed over: {error}"));
        }
        Ok(())
    }

    /// Notes that it should end, where the command can read it.
    pub fn stop(&mut self, reason: &str) {
        if self.stopped.is_none() {
            self.stopped = Some(reason.to_owned());
            if let Err(error) = self.files.put_stop(reason) {
                self.tell(&format!("the wish to stop could not be handed over: {error}"));
            }
        }
    }

    /// Asks the ledger what is new. True: the command should end.
    ///
    /// A ledger that does not answer changes nothing: the command goes on, and so does its ownership.
    pub fn look(&mut self) -> bool {
        match self.what_is_new() {
            Ok(None) => {}
            Ok(Some(reason)) => self.stop(&reason),
            Err(refusal) => self.tell(&format!("the ledger does not answer, and the command goes on: {refusal}")),
        }
        if self.stopped.is_none() && Instant::now() >= self.renew_at {
            self.renew();
        }
        self.stopped.is_some()
    }

    fn what_is_new(&mut self) -> Result<Option<String>, Refusal> {
        let (ledger, id) = (&self.desk.ledger, self.record.admission);
        let record = ledger.show(&id)?;
        if record.phase == Phase::Closed {
            return Ok(Some(format!("it was closed meanwhile: {}", record.closing.map_or("", Kind::name))));
        }
        match ledger.stopping(&id)? {
            Some(Stop::Placement) => return Ok(Some("its placement has changed".to_owned())),
            Some(Stop::Asked) => return Ok(Some(record.stop_reason.unwrap_or_else(|| "asked to stop".to_owned()))),
            None => {}
        }
        for input in ledger.inputs(&id, Some(self.last_input))? {
            match self.files.put_more(input.number, &input.bytes) {
                Ok(()) => self.last_input = input.number,
                Err(error) => {
                    self.tell(&format!("input {} could not be handed over: {error}", input.number));
                    break;
                }
            }
        }
        Ok(None)
    }

    /// A new credential before the old one runs out. Denied, the command may go on for as long as the old one is good.
    fn renew(&mut self) {
        let refusal = match self.attach() {
            Ok(()) => return,
            Err(refusal) => refusal,
        };
        let undecided = is_undecided(&refusal);
        let denied = matches!(refusal, Refusal::Denied { .. });
        let lapsed = Instant::now() >= self.lapses_at;
        if !undecided && (!denied || lapsed) {
            self.stop(&refusal.to_string());
            return;
        }
        self.tell(&format!("the credential was not renewed: {refusal}"));
        self.renew_at = Instant::now() + Duration::from_secs(1);
    }

    /// Nothing was started: closes it as that, and ends with the code that a shell would give.
    pub fn never_started(mut self, code: u8, error: &'static str, reason: &str) -> CliError {
        self.close_unstarted(reason);
        let message = format!("{reason}; {} was closed, and the next attempt is allowed", self.record.admission);
        let fields = serde_json::Map::from_iter([("admission".to_owned(), self.record.admission.to_string().into())]);
        CliError::Problem(Problem { exit: Exit::Number(code), code: error, message, hint: None, fields })
    }

    /// Closes as not started.
    pub fn close_unstarted(&mut self, reason: &str) {
        if let Err(refusal) = self.close(Kind::FailedBeforeStart, None, Some(reason.to_owned())) {
            self.tell(&format!("{} could not be closed: {refusal}", self.record.admission));
        }
    }

    /// Records how it ended, and ends as the command did.
    pub fn ended(mut self, kind: Kind, exit_code: Option<i32>, reason: Option<String>) -> Result<Exit, CliError> {
        let ended = Ended { kind, exit_code, reason: reason.clone() };
        // What the ledger cannot take now, the next pickup on this machine tells it.
        let noted = self.files.make().and_then(|()| self.files.put_ended(&ended));
        let closed = self.close(kind, exit_code, reason.clone());
        let recorded = closed.is_ok();
        match closed {
            Ok(()) => {}
            Err(refusal) if is_undecided(&refusal) && noted.is_ok() => self.tell(&format!(
                "how it ended could not be recorded ({refusal}); `tenure adm pickup` on this machine does that"
            )),
            Err(refusal) => self.tell(&format!("how it ended could not be recorded: {refusal}")),
        }
        let report = Report {
            admission: self.record.admission,
            request: self.record.request.as_str(),
            attempt: self.record.attempt.get(),
            closing: kind,
            exit_code,
            reason: reason.as_deref(),
            recorded,
        };
        if self.json() {
            self.desk.context.out.mark_changed();
            self.desk.context.out.json(&report)?;
        } else if let Some(reason) = &reason {
            out::note(&format!("tenure: {} {kind}: {}", report.admission, escape::message(reason)));
        }
        let code = exit_code.and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(Exit::Refused, Exit::Number))
    }

    /// Tells the ledger, again and again for a while when it does not answer.
    fn close(&mut self, kind: Kind, exit_code: Option<i32>, reason: Option<String>) -> Result<(), Refusal> {
        let mut pause = Duration::from_millis(200);
        for _ in 1..CLOSE_TRIES {
            match self.close_once(kind, exit_code, reason.clone()) {
                Err(refusal) if is_undecided(&refusal) => std::thread::sleep(pause),
                other => return other,
            }
            pause *= 2;
        }
        self.close_once(kind, exit_code, reason)
    }

    fn close_once(&mut self, kind: Kind, exit_code: Option<i32>, reason: Option<String>) -> Result<(), Refusal> {
        let by = |token: &str| By::Destination { token: token.to_owned(), caller: self.machine };
        let closing = closing(kind, exit_code, reason);
        let id = self.record.admission;
        let closed = match self.desk.ledger.close(&id, &by(&self.credential.token), &closing) {
            // Somebody else on this machine made a newer credential; ours is made anew.
            Err(Refusal::Credential { .. }) => {
                self.attach()?;
                let by = By::Destination { token: self.credential.token.clone(), caller: self.machine };
                self.desk.ledger.close(&id, &by, &closing)
            }
            other => other,
        };
        match closed {
            Ok(record) => {
                self.record = record;
                self.clean_up();
                Ok(())
            }
            // It has ended in the ledger already; nothing is left to tell.
            Err(refusal @ (Refusal::Closed { .. } | Refusal::NotOwner { .. })) => {
                self.clean_up();
                match refusal.record().filter(|record| self.is_ours(record, kind)) {
                    Some(record) => {
                        self.record = record.clone();
                        Ok(())
                    }
                    None => Err(refusal),
                }
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Whether it is closed by what was said from here: the answer to that was lost, and the surface has been taken since.
    fn is_ours(&self, record: &Record, kind: Kind) -> bool {
        let by = format!("machine {}", self.machine);
        record.closing == Some(kind) && record.closed_by.as_ref() == Some(&by)
    }

    fn clean_up(&mut self) {
        if let Err(error) = self.files.remove() {
            self.tell(&format!("its files are left: {error}"));
        }
    }

    fn tell(&mut self, text: &str) {
        if self.told.as_deref() != Some(text) {
            out::note(&format!("tenure: {}", escape::message(text)));
            self.told = Some(text.to_owned());
        }
    }
}
