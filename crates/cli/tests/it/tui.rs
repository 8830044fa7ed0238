//! The panels, by a keyboard and a screen that are made for the test.

mod approvals;
mod chat;
mod hooks;
mod keys;
mod load;
mod screen;
