//! The shelves of ollm: what is declared and installed.
