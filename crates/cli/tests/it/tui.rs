//! The panels, by a keyboard and a screen that are made for the test.

mod chat;
mod hooks;
mod load;
mod screen;
