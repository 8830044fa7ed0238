//! The files of ollm: versioned, locked, atomic; digests, approvals, redaction.
