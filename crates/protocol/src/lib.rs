//! The words of ollm: events, hooks, verdicts, and the dialects that spell them.
