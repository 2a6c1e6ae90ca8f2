//! Credentials as PASETO version 4 tokens: encrypted under one key on one host (`v4.local`), signed by the issuer for
//! several (`v4.public`).
//!
//! A token says which admission, machine and placement it is for, its number, and until when it is good. That it says so
//! is all that is decided here; whether it is still so is the ledger's to say, by its own clock and its own row.

use pasetors::token::{Local, Public, UntrustedToken};
use pasetors::version4::{LocalToken, PublicToken, V4};

use super::credential::{Credential, Grant, Seal};
use super::keys::SealKeys;
use super::refusal::Refusal;

/// Bound to every token, so that one made with the same key for anything else is none of ours.
const BOUND_TO: Option<&[u8]> = Some(b"tenure admission credential 1");

/// Longest text that is looked at as a token; ours have some 500 bytes.
const TOKEN_BYTES_MAX: usize = 4096;

const NOT_OURS: Refusal = Refusal::Credential { why: "is not one that this ledger made" };

impl Seal for SealKeys {
    fn seal(&self, grant: &Grant) -> Result<Credential, Refusal> {
        let failed = Refusal::Credential { why: "could not be made" };
        let Ok(message) = serde_json::to_vec(grant) else { return Err(failed) };
        let sealed = match self {
            SealKeys::Local(key) => LocalToken::encrypt(key, &message, None, BOUND_TO),
            SealKeys::Issuer(secret, _) => PublicToken::sign(secret, &message, None, BOUND_TO),
            SealKeys::Reader(_) => {
                return Err(Refusal::Credential {
                    why: "cannot be made here: this machine has only the issuer's public key. Where the secret key is",
                });
            }
            SealKeys::Absent => return Err(failed),
        };
        let token = sealed.map_err(|_| failed)?;
        Ok(Credential { token, deadline_ms: grant.deadline_ms, attach_number: grant.attach_number })
    }

    fn open(&self, token: &str) -> Result<Grant, Refusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(NOT_OURS);
        }
        let opened = match self {
            SealKeys::Local(key) => {
                let read = UntrustedToken::<Local, V4>::try_from(token);
                read.and_then(|untrusted| LocalToken::decrypt(key, &untrusted, None, BOUND_TO))
            }
            SealKeys::Issuer(_, public) | SealKeys::Reader(public) => {
                let read = UntrustedToken::<Public, V4>::try_from(token);
                read.and_then(|untrusted| PublicToken::verify(public, &untrusted, None, BOUND_TO))
            }
            SealKeys::Absent => return Err(Refusal::Credential { why: "cannot be read without a key" }),
        };
        let trusted = opened.map_err(|_| NOT_OURS)?;
        serde_json::from_str(trusted.payload()).map_err(|_| NOT_OURS)
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests;
